"""What a careful user ran into: hints that must not cost work, spoiled worktrees, what cannot all come back."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError, SymlinkInTheWay
from swarm.sessions.errors import BaseNotFound, CleanupFailed
from swarm.testing.lab import file_digests
from swarm.testing.terminal import wait_for
from swarm.worktrees.errors import WorkAtRisk
from swarm.worktrees.reports import RiskKind

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.lab import Lab, Person

pytestmark = pytest.mark.integration


@pytest.fixture
def swarm(lab: Lab) -> Swarm:
    return lab.open(worktrees__durable=False)


def make(swarm: Swarm, lab: Lab, *agents: str) -> Path:
    swarm.create("fx", list(agents))
    return lab.tree(agents[0], "fx")


def refused(swarm: Swarm | Person, **how: bool) -> WorkAtRisk:
    with pytest.raises(WorkAtRisk) as caught:
        swarm.cleanup(["fx"], **how)
    return caught.value


def test_who_refused_to_discard_is_not_told_to_discard(lab: Lab, swarm: Swarm) -> None:
    tree = make(swarm, lab, "developer")
    lab.write({"notes.txt": "not committed\n"}, tree)

    assert refused(lab.person, discard=True).hint.startswith("--force instead of --discard")
    assert refused(swarm).hint.startswith("commit it, or add --force")


def test_a_process_that_is_no_agent_is_not_to_be_stopped_by_swarm(lab: Lab, swarm: Swarm) -> None:
    tree = make(swarm, lab, "developer")
    with subprocess.Popen(["sleep", "600"], cwd=tree) as sleeper:
        try:
            hint = refused(swarm).hint
        finally:
            sleeper.kill()

    assert "swarm stop" not in hint
    assert hint.startswith("let them end")
    wait_for(lambda: swarm.cleanup(["fx"]).removed, "the cleanup")


def test_a_lock_is_taken_away_by_the_command_that_is_named(lab: Lab, swarm: Swarm) -> None:
    make(swarm, lab, "developer")
    swarm.worktrees.lock("developer", "fx", reason="mine")

    assert "swarm worktree unlock developer@fx" in refused(swarm).hint


def test_discarded_commits_are_named(lab: Lab, swarm: Swarm) -> None:
    tree = make(swarm, lab, "developer", "reviewer")
    lab.write({"work.txt": "work\n"}, tree)
    tip = lab.commit("work", cwd=tree)

    removed = lab.person.cleanup(["fx"], discard=True).removed

    assert {one.agent: one.notes for one in removed} == {
        "developer": (
            f"no branch holds its commits any more; before git deletes them: git branch swarm/developer-fx {tip}",
        ),
        "reviewer": (),
    }


def test_edited_instructions_are_kept_when_they_are_replaced(lab: Lab, swarm: Swarm) -> None:
    tree = make(swarm, lab, "developer")
    file = tree / "CLAUDE.local.md"
    before = file.read_text()
    assert swarm.worktrees.update_role("developer", "fx", force=True).kept is None
    file.write_text("notes of the agent\n")

    info = swarm.worktrees.update_role("developer", "fx", force=True)

    assert file.read_text() == before
    assert info.kept is not None
    assert info.kept.read_text() == "notes of the agent\n"
    assert info.kept.is_relative_to(lab.root / ".swarm" / "salvage")


@pytest.mark.parametrize("precious", ["build/.env", "target/my id.pem", "dist/deep/er/notes.sqlite", "out/.env.local"])
def test_precious_files_are_work_also_where_all_else_can_be_made_again(lab: Lab, precious: str) -> None:
    swarm = lab.open(worktrees__durable=False, cleanup__bulk=["build", "target", "dist", "out"])
    lab.write({".gitignore": "build/\ntarget\ndist/*\nout/\n"})
    lab.commit("ignored")
    tree = make(swarm, lab, "developer")
    folder = precious.partition("/")[0]
    lab.write({precious: "secret\n", f"{folder}/made.js": "1"}, tree)

    (risk,) = refused(swarm).facts["agents"][0].risks
    assert (risk.kind, risk.items) == (RiskKind.PRECIOUS, (precious,))
    (removed,) = swarm.cleanup(["fx"], force=True).removed
    assert removed.dropped == (f"{folder}/",)
    swarm.restore("fx")

    assert (tree / precious).read_text() == "secret\n"
    assert not (tree / folder / "made.js").exists()


def test_what_git_holds_comes_back_although_moved_files_were_deleted(lab: Lab, swarm: Swarm) -> None:
    lab.write({".gitignore": "*.log\n"})
    lab.commit("logs")
    tree = make(swarm, lab, "developer")
    lab.write({"big.log": "x" * (3 << 20), "notes.txt": "not committed\n"}, tree)
    swarm.cleanup(["fx"], force=True)
    (kept,) = (lab.root / ".swarm" / "salvage").rglob("big.log")
    kept.unlink()

    report = swarm.restore("fx")

    assert (tree / "notes.txt").read_text() == "not committed\n"
    assert [warning for warning in report.warnings if "big.log" in warning and "not brought back" in warning]


@pytest.mark.parametrize("content", [b"", b"DIRC", b"DIRC garbage that is no index at all"])
def test_a_worktree_with_a_damaged_index_is_kept_whole(lab: Lab, swarm: Swarm, content: bytes) -> None:
    tree = make(swarm, lab, "developer", "reviewer")
    lab.write({"notes.txt": "not committed\n"}, tree)
    index = lab.root / ".git" / "worktrees" / tree.name / "index"
    index.write_bytes(content)
    before = file_digests(tree)

    error = refused(swarm)
    (risk,) = error.facts["agents"][0].risks
    assert risk.items == (str(index),)
    assert "/swarm-" not in risk.text
    assert error.hint.startswith("it cannot be committed; --force salvages")
    removed = swarm.cleanup(["fx"], force=True).removed
    assert [one.whole for one in removed] == [True, False]
    assert not tree.exists()
    swarm.restore("fx/developer")

    assert file_digests(tree) == before
    assert lab.git("status", "--porcelain", cwd=tree) == "?? notes.txt"
    (damaged,) = (lab.root / ".swarm" / "salvage").rglob("late-admin/index")
    assert damaged.read_bytes() == content


def test_a_folder_that_git_does_not_know_cannot_be_committed(lab: Lab, swarm: Swarm) -> None:
    tree = make(swarm, lab, "developer")
    shutil.rmtree(lab.root / ".git" / "worktrees" / tree.name)
    lab.write({"new.txt": "new\n"}, tree)

    assert refused(swarm).hint.startswith("it cannot be committed; --force salvages")
    (removed,) = swarm.cleanup(["fx"], force=True).removed
    assert removed.whole
    swarm.restore("fx")

    assert lab.git("status", "--porcelain", cwd=tree) == "?? new.txt"


def test_a_session_comes_back_but_for_who_is_there(lab: Lab, swarm: Swarm) -> None:
    make(swarm, lab, "developer", "reviewer", "architect")
    lab.git("worktree", "move", str(lab.tree("architect", "fx")), str(lab.root.parent / "elsewhere"))
    swarm.cleanup(["fx"], force=True)
    swarm.restore("developer@fx")

    report = swarm.restore("fx")

    assert [agent.name for agent in report.agents] == ["reviewer"]
    assert len(report.warnings) == 2
    assert "developer is there already" in report.warnings
    with pytest.raises(SwarmError) as caught:
        swarm.restore("fx")
    assert "developer" in caught.value.message


def test_a_worktree_that_git_would_not_look_at_is_not_called_clean(lab: Lab, swarm: Swarm) -> None:
    tree = make(swarm, lab, "developer")
    (tree / ".git").unlink()
    lab.write({"notes.txt": "not committed\n"}, tree)

    (info,) = swarm.worktrees("fx")

    assert info.dirty is None


@pytest.mark.parametrize("base", ["^main", "main..main", "-x", "no-such"])
def test_what_is_no_commit_is_no_base(lab: Lab, swarm: Swarm, base: str) -> None:
    with pytest.raises(BaseNotFound):
        swarm.create("fx", ["developer"], base=base)


def test_a_commit_is_named_by_its_message(lab: Lab, swarm: Swarm) -> None:
    lab.write({"a.txt": "a\n"})
    tip = lab.commit("a message with ^ and {}")

    swarm.create("fx", ["developer"], base=":/a message with ")

    assert lab.git("rev-parse", "swarm/developer-fx") == tip


def test_a_linked_state_folder_is_not_initialised(lab: Lab) -> None:
    from swarm.project.swarm_dir.dirs import init_dir

    elsewhere = lab.root.parent / "elsewhere"
    elsewhere.mkdir()
    (lab.root / ".swarm").symlink_to(elsewhere)

    with pytest.raises(SymlinkInTheWay):
        init_dir(lab.root / ".swarm")
    assert list(elsewhere.iterdir()) == []


def test_unfinished_operations_are_named(lab: Lab, swarm: Swarm) -> None:
    make(swarm, lab, "developer")
    assert swarm.operations.describe_unfinished() == ()
    (lab.root / ".swarm" / "journal" / "20260101T000000-0.json").write_text(
        '{"schema": 1, "verb": "create", "session": "x"}'
    )

    assert swarm.operations.describe_unfinished() == ("create of x",)
    assert len(swarm.operations.unfinished()) == 1


def test_a_branch_that_git_named_by_a_link_comes_back(lab: Lab, swarm: Swarm) -> None:
    lab.git("config", "core.preferSymlinkRefs", "true")
    tree = make(swarm, lab, "developer")
    lab.git("switch", "--quiet", "-c", "idea", cwd=tree)
    assert (lab.root / ".git/worktrees" / tree.name / "HEAD").is_symlink()
    tip = lab.commit("idea", cwd=tree)

    swarm.cleanup(["fx"], force=True)
    swarm.restore("fx")

    assert lab.git("rev-parse", "HEAD", cwd=tree) == tip
    assert lab.git("symbolic-ref", "--short", "HEAD", cwd=tree) == "idea"


def nested_worktree(lab: Lab, tree: Path) -> tuple[Path, str]:
    """Make a worktree inside an agent's, with a commit that nothing else names."""
    inner = tree / "tools" / "inner"
    lab.git("worktree", "add", "--quiet", "--detach", str(inner), cwd=tree)
    return inner, lab.commit("on no branch", cwd=inner)


@pytest.mark.parametrize("damaged", [False, True])
def test_a_worktree_inside_an_agents_is_never_taken_along(lab: Lab, swarm: Swarm, *, damaged: bool) -> None:
    tree = make(swarm, lab, "developer", "reviewer")
    inner, tip = nested_worktree(lab, tree)
    if damaged:
        (lab.root / ".git" / "worktrees" / tree.name / "index").write_text("trash\n")

    with pytest.raises(CleanupFailed, match="inside it: tools/inner") as caught:
        swarm.worktrees.remove("developer", "fx", force=True)
    assert f"git worktree move '{inner}' PATH" in caught.value.hint
    with pytest.raises(CleanupFailed, match="inside it: tools/inner"):
        lab.person.worktrees.remove("developer", "fx", force=True, discard=True)
    report = swarm.cleanup(["fx"], force=True)
    assert [one.agent for one in report.removed] == ["reviewer"]
    assert "tools/inner; first `git worktree move" in report.skipped[0].reason
    assert lab.git("rev-parse", "HEAD", cwd=inner) == tip

    lab.git("worktree", "move", str(inner), str(lab.root.parent / "elsewhere"))
    assert swarm.cleanup(["fx"], force=True).worktrees_removed == 1
    assert lab.git("rev-parse", "HEAD", cwd=lab.root.parent / "elsewhere") == tip


def test_a_worktree_inside_an_agents_is_found_after_the_project_was_moved(lab: Lab, swarm: Swarm) -> None:
    nested_worktree(lab, make(swarm, lab, "developer"))
    lab.root = lab.root.rename(lab.root.parent / "moved")

    with pytest.raises(CleanupFailed, match="inside it: tools/inner"):
        lab.open().cleanup(["fx"], force=True)


def test_a_folder_that_became_a_repository_is_moved_by_hand_and_the_rest_is_saved(lab: Lab, swarm: Swarm) -> None:
    tree = make(swarm, lab, "developer")
    lab.write({"staged.txt": "staged\n"}, tree)
    lab.git("add", "staged.txt", cwd=tree)
    (tree / ".git").unlink()
    lab.git("init", "--quiet", cwd=tree)
    tip = lab.commit("its own", cwd=tree)

    with pytest.raises(CleanupFailed, match="repository of its own") as caught:
        swarm.cleanup(["fx"], force=True)
    assert f"mv '{tree}' PATH" in caught.value.hint

    elsewhere = tree.rename(lab.root.parent / "elsewhere")
    swarm.cleanup(["fx"])
    swarm.restore("fx")
    assert lab.git("status", "--porcelain", cwd=tree) == "A  staged.txt"
    assert lab.git("rev-parse", "HEAD", cwd=elsewhere) == tip
