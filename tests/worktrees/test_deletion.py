"""Removed worktrees are deleted by a process that outlives the command, after one more look at each."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import worktrees
from swarm.machine import locks
from swarm.project.layout import Layout
from swarm.testing.lab import Lab, file_digests
from swarm.testing.terminal import wait_for
from swarm.worktrees import deletion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm import Swarm

pytestmark = pytest.mark.integration

S = "feature-x"


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The process is not started: as after a kill, or when the machine goes off."""
    with monkeypatch.context() as patch:
        patch.setattr(deletion, "start", lambda _layout: None)
        yield patch


def team(lab: Lab) -> Swarm:
    """A session of two, one with uncommitted work."""
    swarm = lab.swarm
    swarm.create(S, ["developer", "reviewer"])
    lab.write({"README": "mine\n", "new.txt": "new\n"}, lab.tree("developer"))
    return swarm


def trash(lab: Lab) -> list[Path]:
    """Return the trees that are still to be deleted."""
    return sorted((lab.root / ".swarm/trash").glob("*/*.tree"))


def mark(lab: Lab, name: str) -> str:
    """Let what the process is be noted when it starts, and return the program to start it with."""
    program = lab.root.parent / "python"
    note = lab.root.parent / name
    fds = " ".join(f"/proc/$$/{one}" for one in ("fd/0", "fd/1", "fd/2", "cwd"))
    program.write_text(
        f'#!/bin/sh\ncat /proc/$$/stat | cat >"{note}.stat"\nreadlink {fds} | cat >"{note}.fd"\n'
        f'env | cat >"{note}.env"\nexec "{sys.executable}" "$@"\n'
    )
    program.chmod(0o755)
    return str(program)


def test_the_command_returns_and_a_process_deletes(lab: Lab) -> None:
    swarm = team(lab)
    report = swarm.cleanup([S], force=True)

    assert [one.branch_deleted for one in report.removed] == [True, True]
    assert not (lab.root / ".worktrees").exists()
    assert swarm.operations.unfinished() == ()
    wait_for(lambda: not trash(lab) and not list((lab.root / ".swarm/trash").glob("*")), "the end of the deletion")
    assert file_digests(lab.root / ".swarm/salvage") == {}


def test_the_process_belongs_to_no_terminal_and_hears_nobody(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = team(lab)
    monkeypatch.setattr(sys, "executable", mark(lab, "process"))
    monkeypatch.setenv("SWARM_RUN_DIR", "/an/agents")
    swarm.cleanup([S], force=True)

    wait_for(lambda: not list((lab.root / ".swarm/trash").glob("*")), "the end of the deletion")
    note = lab.root.parent / "process"
    facts = Path(f"{note}.stat").read_text().rpartition(")")[2].split()
    assert facts[3] != str(os.getsid(0))
    assert facts[4] == "0", "it has a terminal"
    assert Path(f"{note}.fd").read_text().split() == ["/dev/null"] * 3 + ["/"]
    assert "SWARM_" not in Path(f"{note}.env").read_text()
    wait_for(lambda: not any(_is_zombie(child) for child in _children()), "the end of the deletion")


def _children() -> list[int]:
    out = subprocess.run(["ps", "-o", "pid=", "--ppid", str(os.getpid())], capture_output=True, check=False).stdout
    return [int(word) for word in out.split()]


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def test_the_next_command_goes_on_with_what_a_killed_process_left(lab: Lab, held: pytest.MonkeyPatch) -> None:
    team(lab).cleanup([S], force=True)
    assert len(trash(lab)) == 2
    held.undo()

    lab.swarm.create("other", ["developer"])
    assert (lab.root / ".worktrees/developer-other").is_dir()
    wait_for(lambda: not trash(lab), "the end of the deletion")


@pytest.mark.parametrize("agent", ["developer", "reviewer"], ids=["with work", "clean"])
def test_what_changed_in_the_trash_is_kept_whole_and_comes_back(lab: Lab, held: pytest.MonkeyPatch, agent: str) -> None:
    team(lab).cleanup([S], force=True)
    (tree,) = (one for one in trash(lab) if one.name.startswith(agent))
    lab.write({"README": "written by a process that stayed\n"}, tree)
    held.undo()

    lab.swarm.recover()
    assert trash(lab) == []
    (late,) = (lab.root / ".swarm/salvage" / S / agent).glob("*/late")
    assert (late / "README").read_text() == "written by a process that stayed\n"
    assert "changed after it was saved" in (lab.root / ".swarm/journal/history.jsonl").read_text()
    lab.swarm.restore(S)
    assert (lab.tree(agent) / "README").read_text() == "written by a process that stayed\n"


def test_the_look_is_over_before_another_command_begins(lab: Lab, held: pytest.MonkeyPatch) -> None:
    """Else a restore right after would not bring back what changed."""
    team(lab).cleanup([S], force=True)
    lab.write({"README": "late\n"}, trash(lab)[0])

    lab.swarm.restore(S)  # no process has run
    assert (lab.tree("developer") / "README").read_text() == "late\n"
    assert not list((lab.root / ".swarm/trash").glob(f"*/{deletion.NOTE}"))


def test_half_a_deletion_is_no_change(lab: Lab, held: pytest.MonkeyPatch) -> None:
    """What a kill in the middle of the deletion leaves is not taken for work."""
    team(lab).cleanup([S], force=True)
    layout = Layout(lab.root)
    (operation,) = deletion.over(layout)
    deletion.look_again(layout, operation)
    (trash(lab)[0] / "README").unlink()

    lab.swarm.recover()
    assert trash(lab) == []
    assert not list((lab.root / ".swarm/salvage").rglob("late"))


def test_the_trash_of_an_operation_under_way_is_nobodys(lab: Lab, held: pytest.MonkeyPatch) -> None:
    team(lab).cleanup([S], force=True)
    layout = Layout(lab.root)
    (operation,) = deletion.over(layout)
    entry = layout.journal / f"{operation}.json"
    (layout.trash_folder(operation) / deletion.NOTE).rename(entry)

    deletion.run(layout)
    assert len(trash(lab)) == 2
    lab.swarm.recover()
    assert not entry.exists()
    assert trash(lab) == []


def test_only_one_process_deletes_the_same(lab: Lab, held: pytest.MonkeyPatch) -> None:
    team(lab).cleanup([S], force=True)
    layout = Layout(lab.root)
    (operation,) = deletion.over(layout)
    fd = os.open(layout.trash_folder(operation), os.O_RDONLY | os.O_DIRECTORY)
    try:
        assert locks.try_lock(fd)
        deletion.run(layout)
        assert len(trash(lab)) == 2
        found = {one.name: one for one in lab.swarm.doctor()}["trash"]
        assert (found.state, found.text) == ("ok", "2 removed worktrees still being deleted in the background")
    finally:
        os.close(fd)
    deletion.run(layout)
    assert trash(lab) == []


def test_doctor_names_what_nobody_deletes(lab: Lab, held: pytest.MonkeyPatch) -> None:
    team(lab).cleanup([S], force=True)
    (folder,) = (lab.root / ".swarm/trash").iterdir()
    os.utime(folder, (0, 0))
    found = {one.name: one for one in lab.swarm.doctor()}["trash"]
    assert (found.state, found.hint) == ("warn", "swarm recover")


def test_a_repository_that_is_gone_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", deletion.__name__, str(tmp_path / "gone")]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not (tmp_path / "gone").exists()


def test_files_that_nobody_may_write_are_deleted(lab: Lab) -> None:
    swarm = team(lab)
    folder = lab.tree("developer") / "closed"
    lab.write({"closed/file": "x\n"}, lab.tree("developer"))
    (folder / "file").chmod(0o400)
    folder.chmod(0o500)
    swarm.cleanup([S], force=True)
    wait_for(lambda: not list((lab.root / ".swarm/trash").glob("*")), "the end of the deletion")


def test_the_documents_functions_and_the_setting_wait(lab: Lab) -> None:
    team(lab)
    worktrees.full_cleanup(repo=lab.root)
    assert not (lab.root / ".swarm/trash").exists()
    lab.swarm.create(S, ["developer"])
    lab.open(cleanup__background=False).cleanup([S])
    assert not (lab.root / ".swarm/trash").exists()


def test_discarded_work_is_deleted_the_same_way(lab: Lab, held: pytest.MonkeyPatch) -> None:
    from swarm.testing.terminal import at_terminal

    team(lab)
    at_terminal(lambda: lab.swarm.cleanup([S], force=True, discard=True))
    lab.write({"README": "late\n"}, trash(lab)[0])
    lab.swarm.recover()
    assert trash(lab) == []
    assert not list((lab.root / ".swarm/salvage").rglob("late"))
