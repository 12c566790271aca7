"""The project's folder is moved, and git and its worktrees do not find each other any more: nothing of them is lost."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from swarm.testing.lab import file_digests
from swarm.worktrees.errors import WorkAtRisk
from swarm.worktrees.reports import RiskKind
from tests.support.library import documents

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


def open_at(lab: Lab, root: Path) -> Swarm:
    lab.root = root
    return lab.open(worktrees__durable=False)


def make(lab: Lab) -> tuple[str, str]:
    """Make a session with a detached commit and something staged; return both objects."""
    lab.open(worktrees__durable=False).create("fx", ["developer"])
    tree = lab.tree("developer", "fx")
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    tip = lab.commit("on no branch", cwd=tree)
    lab.write({"staged.txt": "staged\n"}, tree)
    lab.git("add", "staged.txt", cwd=tree)
    blob = lab.git("rev-parse", ":staged.txt", cwd=tree)
    lab.write({"staged.txt": "changed since\n"}, tree)
    return tip, blob


@pytest.fixture
def moved(lab: Lab) -> tuple[Swarm, str, str]:
    """Give a session whose project was moved, with a commit and an object that nothing else names."""
    tip, blob = make(lab)
    return open_at(lab, lab.root.rename(lab.root.parent / "moved project")), tip, blob


def test_a_moved_worktree_is_listed_as_what_it_is(lab: Lab, moved: tuple[Swarm, str, str]) -> None:
    swarm, tip, _ = moved

    (info,) = swarm.worktrees("fx")
    shown = swarm.worktrees.show("developer", "fx")

    assert (info.missing, info.head, info.branch) == (False, tip, "")
    assert shown.changes == ("AM staged.txt",)
    assert shown.commits[0].id == tip


def test_a_moved_worktree_is_refused_with_the_command_that_mends_it(lab: Lab, moved: tuple[Swarm, str, str]) -> None:
    swarm, _, _ = moved
    with pytest.raises(WorkAtRisk) as caught:
        swarm.cleanup(["fx"])
    (risk,) = (risk for risk in caught.value.facts["agents"][0].risks if risk.kind is RiskKind.IDENTITY)
    (check,) = (check for check in swarm.doctor() if check.name == "worktrees")

    assert risk.items == (check.hint,) == ("git worktree repair .worktrees/*",)
    lab.git("worktree", "repair", str(lab.tree("developer", "fx")))
    assert lab.git("status", "--porcelain", cwd=lab.tree("developer", "fx")) == "AM staged.txt"


def test_a_moved_worktree_is_saved_wholly_and_comes_back(lab: Lab, moved: tuple[Swarm, str, str]) -> None:
    swarm, tip, blob = moved
    tree = lab.tree("developer", "fx")
    before = file_digests(tree, skip={".git"})

    swarm.cleanup(["fx"], force=True)
    assert not tree.exists()
    assert not (lab.root / ".git" / "worktrees").exists()
    assert not documents(swarm).branch_exists("swarm/developer-fx")
    lab.git("gc", "--quiet", "--prune=now")
    swarm.restore("fx")

    assert lab.git("rev-parse", "HEAD", ":staged.txt", cwd=tree).splitlines() == [tip, blob]
    assert lab.git("status", "--porcelain", cwd=tree) == "AM staged.txt"
    assert file_digests(tree, skip={".git"}) == before


def test_a_moved_worktree_whose_folder_is_gone_is_recalled(lab: Lab, moved: tuple[Swarm, str, str]) -> None:
    swarm, tip, blob = moved
    shutil.rmtree(lab.tree("developer", "fx"))

    swarm.cleanup(["fx"])
    lab.git("gc", "--quiet", "--prune=now")
    swarm.restore("fx")

    tree = lab.tree("developer", "fx")
    assert lab.git("rev-parse", "HEAD", ":staged.txt", cwd=tree).splitlines() == [tip, blob]
    assert (tree / "staged.txt").read_text() == "staged\n"


def test_a_copy_of_a_project_is_cleaned_up_and_the_original_stays(lab: Lab) -> None:
    tip, blob = make(lab)
    original = lab.root
    before = lab.fingerprint(), file_digests(original / ".worktrees"), file_digests(original / ".git/worktrees")
    shutil.copytree(original, original.parent / "copy", symlinks=True)
    swarm = open_at(lab, original.parent / "copy")

    swarm.cleanup(["fx"], force=True)
    lab.git("gc", "--quiet", "--prune=now")
    swarm.restore("fx")

    tree = lab.tree("developer", "fx")
    assert lab.git("rev-parse", "HEAD", ":staged.txt", cwd=tree).splitlines() == [tip, blob]
    lab.root = original
    now = lab.fingerprint(), file_digests(original / ".worktrees"), file_digests(original / ".git/worktrees")
    assert now == before


def test_a_worktree_of_the_same_name_elsewhere_is_not_taken_for_the_agents(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create("fx", ["developer"])
    lab.git("worktree", "remove", "--force", str(lab.tree("developer", "fx")))
    elsewhere = lab.root.parent / "disk" / "developer-fx"
    lab.git("worktree", "add", "--quiet", "--detach", str(elsewhere))
    elsewhere.parent.rename(lab.root.parent / "taken out")

    swarm.cleanup(["fx"], force=True)

    assert (lab.root / ".git" / "worktrees" / "developer-fx" / "HEAD").is_file()


def test_a_branch_is_free_that_only_a_worktree_that_is_gone_had(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create("fx", ["developer"])
    tip = lab.commit("work", cwd=lab.tree("developer", "fx"))
    swarm.cleanup(["fx"], keep_branches=True)
    elsewhere = lab.root.parent / "elsewhere"
    lab.git("worktree", "add", "--quiet", str(elsewhere), "swarm/developer-fx")
    shutil.rmtree(elsewhere)

    swarm.restore("fx")

    assert lab.git("rev-parse", "HEAD", cwd=lab.tree("developer", "fx")) == tip
    assert lab.git("symbolic-ref", "HEAD", cwd=lab.tree("developer", "fx")) == "refs/heads/swarm/developer-fx"
