"""Worktrees that git cannot read any more: what git's notes about them held is saved all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.lab import file_digests

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

BRANCH = "swarm/developer-fx"


@pytest.fixture
def swarm(lab: Lab) -> Swarm:
    return lab.open(worktrees__durable=False)


def make(swarm: Swarm, lab: Lab) -> tuple[Path, Path]:
    """Make a session; return the agent's worktree and git's folder for it."""
    swarm.create("fx", ["developer"])
    tree = lab.tree("developer", "fx")
    return tree, lab.root / ".git" / "worktrees" / tree.name


def collect_garbage(lab: Lab) -> None:
    lab.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    lab.git("gc", "--quiet", "--prune=now")


def index_of(lab: Lab, tree: Path) -> list[str]:
    return lab.git("ls-files", "--stage", cwd=tree).splitlines()


def test_a_detached_commit_outlives_a_damaged_index(lab: Lab, swarm: Swarm) -> None:
    tree, admin = make(swarm, lab)
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    lab.write({"work.txt": "work\n"}, tree)
    tip = lab.commit("on no branch", cwd=tree)
    (admin / "index").write_text("trash\n")
    before = file_digests(tree)

    swarm.cleanup(["fx"], force=True)
    collect_garbage(lab)
    swarm.restore("fx")

    assert (admin / "HEAD").read_text().strip() == tip
    assert lab.git("status", "--porcelain", cwd=tree) == ""
    assert file_digests(tree) == before
    assert lab.git("rev-parse", BRANCH) == lab.git("rev-parse", f"{tip}^")


def test_amended_commits_outlive_a_damaged_index(lab: Lab, swarm: Swarm) -> None:
    tree, admin = make(swarm, lab)
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    first = lab.commit("first", cwd=tree)
    lab.git("commit", "--quiet", "--amend", "--allow-empty", "-m", "second", cwd=tree)
    (admin / "index").write_text("trash\n")

    swarm.cleanup(["fx"], force=True)
    collect_garbage(lab)

    assert lab.git("cat-file", "-t", first) == "commit"


@pytest.mark.parametrize("version", [2, 4])
def test_staged_content_outlives_an_index_without_its_end(lab: Lab, swarm: Swarm, version: int) -> None:
    tree, admin = make(swarm, lab)
    lab.write({"a-staged.txt": "nowhere else\n"}, tree)
    lab.git("add", "a-staged.txt", cwd=tree)
    lab.git("update-index", f"--index-version={version}", cwd=tree)
    blob = lab.git("rev-parse", ":a-staged.txt", cwd=tree)
    (tree / "a-staged.txt").write_text("changed since\n")
    index = admin / "index"
    data = index.read_bytes()
    index.write_bytes(data[: data.index(b"run.sh") + 3])

    swarm.cleanup(["fx"], force=True)
    collect_garbage(lab)

    assert lab.git("cat-file", "blob", blob) == "nowhere else"


@pytest.mark.parametrize("head", [None, "garbage\n"])
def test_a_worktree_without_head_comes_back_with_what_was_staged(lab: Lab, swarm: Swarm, head: str | None) -> None:
    tree, admin = make(swarm, lab)
    lab.write({"staged.txt": "nowhere else\n"}, tree)
    lab.git("add", "staged.txt", cwd=tree)
    (tree / "staged.txt").write_text("changed since\n")
    before = index_of(lab, tree)
    (tree / ".git").unlink()
    (admin / "HEAD").unlink()
    if head is not None:
        (admin / "HEAD").write_text(head)

    swarm.cleanup(["fx"], force=True)
    collect_garbage(lab)
    swarm.restore("fx")

    assert index_of(lab, tree) == before
    assert lab.git("show", ":staged.txt", cwd=tree) == "nowhere else"
    assert (tree / "staged.txt").read_text() == "changed since\n"
    assert lab.git("symbolic-ref", "HEAD", cwd=tree) == f"refs/heads/{BRANCH}"


@pytest.mark.parametrize("damaged", [False, True])
def test_a_split_index_leaves_no_part_of_itself_in_the_repository(lab: Lab, swarm: Swarm, *, damaged: bool) -> None:
    lab.git("config", "core.splitIndex", "true")
    tree, admin = make(swarm, lab)
    lab.write({"staged.txt": "nowhere else\n"}, tree)
    lab.git("add", "staged.txt", cwd=tree)
    before = index_of(lab, tree)
    if damaged:
        (admin / "HEAD").unlink()
    parts = set((lab.root / ".git").glob("sharedindex.*"))

    (removed,) = swarm.cleanup(["fx"], force=True).removed
    collect_garbage(lab)
    swarm.restore("fx")

    assert removed.whole == damaged
    assert set((lab.root / ".git").glob("sharedindex.*")) == parts
    assert index_of(lab, tree) == before
    assert lab.git("show", ":staged.txt", cwd=tree) == "nowhere else"


def test_where_a_lost_head_was_is_read_from_its_log(lab: Lab, swarm: Swarm) -> None:
    tree, admin = make(swarm, lab)
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    tip = lab.commit("on no branch", cwd=tree)
    (admin / "HEAD").unlink()

    swarm.cleanup(["fx"], force=True)
    collect_garbage(lab)
    swarm.restore("fx")

    assert (admin / "HEAD").read_text().strip() == tip
    assert lab.git("status", "--porcelain", cwd=tree) == ""


def test_a_detached_commit_is_known_without_the_way_to_the_repository(lab: Lab, swarm: Swarm) -> None:
    tree, admin = make(swarm, lab)
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    tip = lab.commit("on no branch", cwd=tree)
    (admin / "commondir").unlink()
    (admin / "logs" / "HEAD").unlink()

    swarm.cleanup(["fx"], force=True)
    collect_garbage(lab)
    swarm.restore("fx")

    assert (admin / "HEAD").read_text().strip() == tip
