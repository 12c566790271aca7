"""What the enumeration has found, each at the very call that showed it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import filelock
import pytest

from swarm import SwarmError
from swarm.git import gitdir
from swarm.kit import files
from swarm.kit.errors import Interrupted
from swarm.worktrees.steps import file_steps, tree_steps
from tests.support.crash import AgainTrials, Trials
from tests.support.scenarios import ROLES, SCENARIOS, SESSION

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.lab import Lab
    from tests.support.crash import Bench, Setup

pytestmark = pytest.mark.crash


def points(setup: Setup, syscall: str, path: str, *, git: bool) -> list[int]:
    """Return the points of a scenario at which swarm, or a git of its, makes such a call."""
    found = [
        point.index
        for point in setup.outcome.points
        if point.syscall.startswith(syscall) and re.search(path, point.path) and point.is_root is not git
    ]
    assert found, f"{setup.scenario.name} has no {syscall} of {path}"
    return found


#: name of the finding: (scenario, action, system call, path, made by git)
FOUND = {
    "git says done and its lock on packed-refs stays": ("cleanup", "eio", "unlink", r"/packed-refs\.lock$", True),
    "git writes a branch's log and then fails to make the branch": ("create", "eio", "rename", r"/heads/swarm/", True),
    "git writes a part of a branch's log": ("create", "eio", "write", r"/logs/refs/heads/swarm/", True),
    "git is stopped, takes its registration back and leaves the folder": (
        *("create-git", "int-root", "mkdir", r"/\.worktrees/developer-fx$", True),
    ),
    "the record is in place and its sync fails": ("create", "eio", "fsync", r"/sessions/fx$", False),
    "the journal entry is in place and its sync fails": ("create", "eio", "fsync", r"/\.swarm/journal$", False),
    "a session's folder without a record": ("create", "kill-tree", "openat", r"/sessions/fx/\.session", False),
    "the exclude file is half written": ("create", "kill-tree", "rename", r"/info/exclude$", False),
    "packed-refs.new of a killed git": ("cleanup-packed", "kill-tree", "rename", r"/packed-refs$", True),
    "git is killed while it deletes a branch": ("cleanup-packed", "kill-self", "unlink", r"/packed-refs", True),
    "settings of a branch that is gone": ("cleanup-packed", "kill-tree", "openat", r"/config\.lock$", True),
    "cleanup is about to go on, and the sync of its note fails": (
        *("cleanup", "eio", "fsync", r"/\.swarm/journal$", False),
    ),
    "a signal while worktrees are removed": ("cleanup", "term-root", "unlink", r"/refs/heads/swarm/", True),
    "nothing can be removed, and the disk stays so": ("cleanup-packed", "eio+sticky", "mkdir", r"/trash/", False),
    "git deletes a branch and cannot remove its log": ("cleanup", "eio", "unlink", r"/logs/refs/heads/swarm/", True),
    "some refs of a saved branch are written": ("cleanup-all", "eio", "rename", r"/salvage/leftover/", True),
    "a saved branch is not deleted yet": ("cleanup-all", "kill-tree", "unlink", r"/heads/swarm/developer-gone", True),
    "a folder above that of the worktrees is there already": ("create-hidden", "eio", "mkdir", r"/work/trees$", False),
    "a record is half written while an agent is removed": (
        *("remove", "kill-tree", "rename", r"/sessions/fx/session\.json$", False),
    ),
    "git is killed while salvage is dropped": ("salvage-drop", "kill-tree", "unlink", r"/salvage/", True),
    "the log of a restored branch is half written": ("restore", "kill-tree", "rename", r"/logs/refs/heads/", False),
    "instructions are half written": ("update-role", "kill-tree", "rename", r"/CLAUDE\.local\.md$", False),
    "a lock is half written": ("lock", "kill-tree", "rename", r"/locked$", False),
    "a signal before commands of a teardown run": ("cleanup-setup", "int-root", "mkdir", r"/\.swarm/trash$", False),
    "a signal while commands of a teardown run": ("cleanup-setup", "term-root", "write", r"/teardown-.*\.log$", True),
    "the trash is there, and empty": ("cleanup-setup", "kill-tree", "unlinkat", r"/\.swarm/trash$", False),
}


@pytest.mark.parametrize("name", FOUND)
def test_found(bench: Bench, name: str) -> None:
    scenario, action, syscall, path, git = FOUND[name]
    setup = bench.setup(SCENARIOS[scenario])

    tally = Trials(setup, action).run(points(setup, syscall, path, git=git)[:4])

    assert not tally.violations, "\n".join(tally.violations)


@pytest.mark.parametrize(("name", "at"), [("create", 0.6), ("restore", 0.9)])
def test_half_of_an_earlier_try_is_not_in_the_way_of_the_next(bench: Bench, name: str, at: float) -> None:
    setup = bench.setup(SCENARIOS[name])

    tally = AgainTrials(setup, "kill-tree").run([int(setup.count * at)])

    assert not tally.violations, "\n".join(tally.violations)


# --- smaller ones, without a kill -----------------------------------------------------------------------


@pytest.mark.parametrize("text", [b"", b"*.swp\n", b"*.swp\n/no line end", b"\n\n", b"ends in space "])
def test_exclude_file_is_afterwards_what_it_was(lab: Lab, text: bytes) -> None:
    exclude = lab.root / ".git/info/exclude"
    exclude.write_bytes(text)
    lab.swarm.create(SESSION, ROLES[:1])
    assert exclude.read_bytes() != text
    assert lab.git("status", "--porcelain", cwd=lab.tree(ROLES[0], SESSION)) == ""
    lab.swarm.cleanup([SESSION])
    assert exclude.read_bytes() == text


def test_what_the_user_wrote_behind_our_block_stays_a_line_of_its_own(lab: Lab) -> None:
    exclude = lab.root / ".git/info/exclude"
    exclude.write_bytes(b"/no line end")
    lab.swarm.create(SESSION, ROLES[:1])
    exclude.write_bytes(exclude.read_bytes() + b"later\n")
    lab.swarm.cleanup([SESSION])
    assert exclude.read_bytes() == b"/no line end\nlater\n"


def test_failed_create_takes_only_its_own_line_out_of_the_exclude_file(lab: Lab) -> None:
    lab.swarm.create("plain", ROLES[:1], instructions=False)
    before = lab.fingerprint()
    lab.git("config", "filter.bad.smudge", "false")
    lab.git("config", "filter.bad.required", "true")
    (lab.root / ".git/info/attributes").write_text("README filter=bad\n")
    with pytest.raises(SwarmError):
        lab.swarm.create(SESSION, ROLES[:1])
    lab.git("config", "--remove-section", "filter.bad")
    assert lab.fingerprint() == before


def test_a_lock_of_somebody_else_is_never_moved(lab: Lab, tmp_path: Path) -> None:
    """Neither one that was there before, nor one that is being worked with."""
    common = lab.root / ".git"
    lock = common / "packed-refs.lock"
    lock.write_text("theirs")
    since = lock.stat().st_mtime_ns + 3_000_000_000
    assert gitdir.remove_stale_locks(common, lab.root, [lock], since, tmp_path / "aside") == [str(lock)]
    assert lock.read_text() == "theirs"


def test_sweeping_takes_only_what_a_write_of_ours_left(tmp_path: Path) -> None:
    names = [".exclude.tmp", ".exclude.0123456.tmp", ".exclude.01234567.tmp", "exclude", ".other.01234567.tmp"]
    for name in names:
        (tmp_path / name).touch()
    files.sweep_temporaries(tmp_path, "exclude")
    assert {path.name for path in tmp_path.iterdir()} == set(names) - {".exclude.01234567.tmp"}


def test_update_role_does_not_bring_back_an_agent_removed_meanwhile(lab: Lab) -> None:
    lab.swarm.create(SESSION, ROLES[:2])
    late = lab.swarm.worktrees
    find = late._find

    def find_and_lose(agent: str, session: str | None) -> object:
        found = find(agent, session)
        if lab.swarm.sessions.get(SESSION).agent(ROLES[1]) is not None:
            lab.swarm.worktrees.remove(ROLES[1], SESSION)
        return found

    late._find = find_and_lose  # type: ignore[method-assign, assignment]
    late.update_role(ROLES[0], SESSION)

    assert [agent.name for agent in lab.swarm.sessions.get(SESSION).agents] == ROLES[:1]


def test_branch_without_worktree_can_be_saved_and_comes_back(lab: Lab) -> None:
    lab.swarm.create(SESSION, ROLES[:1])
    lab.write({"work.txt": "work\n"}, lab.tree(ROLES[0], SESSION))
    tip = lab.commit("work", cwd=lab.tree(ROLES[0], SESSION))
    lab.swarm.cleanup([SESSION], keep_branches=True)
    report = lab.swarm.cleanup(everything=True)
    assert report.branches == (f"swarm/{ROLES[0]}-{SESSION}",)
    assert tip in lab.git("rev-list", "--all").split()


@pytest.mark.parametrize("late", [True, False], ids=["when all is done", "before"])
def test_a_signal_that_comes_too_late_is_told_with_what_is_done(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    unlock = filelock.unlock_descriptor

    def interrupted(done: object, *_: object) -> None:
        if isinstance(done, int):
            unlock(done)
        raise Interrupted("interrupted by SIGTERM", signum=15)

    place, name = (filelock, "unlock_descriptor") if late else (tree_steps.Verify, "do")
    monkeypatch.setattr(place, name, interrupted)

    with pytest.raises(Interrupted) as caught:
        lab.swarm.create(SESSION, ROLES[:1])

    said = "(create of fx is done, and stays)" if late else "swarm undid everything it had begun"
    assert said in caught.value.message
    assert len(lab.swarm.sessions()) == late


def test_block_markers_can_be_told_apart() -> None:
    assert file_steps.EXCLUDE_BEGIN not in file_steps.EXCLUDE_BEGIN_GLUED
