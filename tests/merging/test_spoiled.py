"""A merge beside worktrees that an agent has spoiled: nothing is left out in silence, and nothing written elsewhere."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from swarm.git import gitdir
from swarm.merging.errors import MergeBlocked, NotCommitted
from swarm.testing.lab import file_digests

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

S = "feature-x"


def _admin(tree: Path) -> Path:
    found = gitdir.pointer_of(tree)
    assert found is not None
    return found


def link_in_gits_folder(lab: Lab, tree: Path) -> None:
    (_admin(tree) / "link").symlink_to(lab.root.parent / "elsewhere")


def repository_of_its_own(lab: Lab, tree: Path) -> None:
    (tree / ".git").unlink()
    lab.git("init", "--quiet", str(tree))


def damaged_index(lab: Lab, tree: Path) -> None:
    (_admin(tree) / "index").write_bytes(b"DIRC and no more")


def worktree_inside(lab: Lab, tree: Path) -> None:
    lab.git("worktree", "add", "--quiet", "-b", "inside", str(tree / "inside"))


def link_in_place_of_the_trash(lab: Lab, tree: Path) -> None:
    trash = lab.root / ".swarm/trash"
    shutil.rmtree(trash, ignore_errors=True)
    trash.symlink_to(lab.root.parent)


@pytest.mark.parametrize(
    ("spoil", "known"),
    [
        (link_in_gits_folder, True),
        (repository_of_its_own, False),
        (damaged_index, False),
        (worktree_inside, True),
        (link_in_place_of_the_trash, True),
    ],
)
def test_work_that_is_not_committed_is_told_where_no_cleanup_could_remove_it(
    lab: Lab, spoil: Callable[[Lab, Path], None], *, known: bool
) -> None:
    tree = lab.open(worktrees__durable=False).create(S, ["developer"]).paths()["developer"]
    lab.write({"done.txt": "done\n"}, tree)
    lab.commit("done", tree)
    lab.write({"README": "not committed\n"}, tree)
    spoil(lab, tree)

    with pytest.raises(NotCommitted) as refused:
        lab.swarm.merge(S)

    kinds = {str(risk.kind) for risk in refused.value.facts["agents"][0].risks}
    assert ("modified" if known else "unreadable") in kinds
    assert {str(risk.kind) for risk in lab.swarm.worktrees.show("developer").risks} == kinds
    assert not (lab.root / "done.txt").exists()
    assert lab.swarm.merge(S, committed_only=True).warnings
    assert (lab.root / "done.txt").read_text() == "done\n"


@pytest.mark.parametrize("place", ["my project", "my project/.worktrees/reviewer-feature-x", "another folder"])
def test_a_worktree_that_git_is_told_to_look_for_elsewhere_is_not_written_to_there(lab: Lab, place: str) -> None:
    trees = lab.open(worktrees__durable=False).create(S, ["developer", "reviewer"]).paths()
    lab.write({"README": "reviewed\n", "new.txt": "new\n"}, trees["reviewer"])
    lab.commit("reviewed", trees["reviewer"])
    folder = lab.root.parent / place
    if not folder.exists():
        lab.write({"README": lab.git("show", "main:README") + "\n"}, folder)
    (_admin(trees["developer"]) / "gitdir").write_text(f"{folder}/.git\n")
    before = file_digests(folder, skip={".git", ".swarm", ".worktrees"})

    with pytest.raises(MergeBlocked, match="are damaged"):
        lab.swarm.merge("reviewer@feature-x", into="swarm/developer-feature-x")

    assert file_digests(folder, skip={".git", ".swarm", ".worktrees"}) == before
    assert lab.git("rev-parse", "swarm/developer-feature-x") == lab.git("rev-parse", "main")
