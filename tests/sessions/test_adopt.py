"""Records that are lost are made anew from the copies in git's own folders; nothing else is taken for one."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from swarm.project.layout import RECORD_COPY

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


@pytest.fixture
def swarm(lab: Lab) -> Swarm:
    return lab.open(worktrees__durable=False)


def copies(lab: Lab) -> list[Path]:
    return sorted((lab.root / ".git" / "worktrees").glob(f"*/{RECORD_COPY}"))


def clean_all(lab: Lab) -> None:
    """What a user types to be rid of everything that is not in git; worktrees are left alone by git."""
    lab.git("clean", "-fdx")
    assert not (lab.root / ".swarm").exists()


def test_a_cleaned_repository_knows_its_sessions_again(lab: Lab, swarm: Swarm) -> None:
    swarm.create("one", ["developer", "reviewer"])
    swarm.create("two", ["developer"])
    lab.write({"work.txt": "work\n"}, lab.tree("developer", "one"))
    before = {(s.name, s.created_ms, s.base, tuple(a.name for a in s.agents)) for s in swarm.sessions()}
    clean_all(lab)
    assert swarm.sessions() == ()

    notes = swarm.recover().notes

    assert len(notes) == 2
    assert {(s.name, s.created_ms, s.base, tuple(a.name for a in s.agents)) for s in swarm.sessions()} == before
    assert swarm.worktrees.show("developer", "one").info.dirty
    assert swarm.recover().notes == ()


def test_a_cleanup_needs_no_record(lab: Lab, swarm: Swarm) -> None:
    before = lab.fingerprint()
    swarm.create("fx", ["developer", "reviewer"])
    lab.write({"work.txt": "work\n"}, lab.tree("developer", "fx"))
    clean_all(lab)

    assert swarm.cleanup(everything=True, force=True).worktrees_removed == 2

    swarm.restore("fx")
    assert (lab.tree("developer", "fx") / "work.txt").read_text() == "work\n"
    swarm.cleanup(everything=True, force=True)
    lab.person.salvage.drop(everything=True)
    assert lab.fingerprint() == before


def test_a_record_that_is_there_is_never_written_over(lab: Lab, swarm: Swarm) -> None:
    swarm.create("fx", ["developer", "reviewer"])
    swarm.worktrees.remove("reviewer", "fx")
    record = lab.root / ".swarm" / "sessions" / "fx" / "session.json"
    before = record.read_bytes()

    assert swarm.recover().notes == ()
    assert record.read_bytes() == before
    record.unlink()
    swarm.recover()
    (session,) = swarm.sessions()
    assert [agent.name for agent in session.agents] == ["developer"]


def test_an_agent_that_came_later_is_in_every_copy(lab: Lab, swarm: Swarm) -> None:
    swarm.create("fx", ["developer"])
    swarm.create("fx", ["reviewer"])
    shutil.rmtree(lab.root / ".swarm" / "sessions")
    copies(lab)[0].unlink()

    swarm.recover()

    (session,) = swarm.sessions()
    assert [agent.name for agent in session.agents] == ["reviewer"]  # of the other nobody can say that it is ours


def test_what_was_moved_away_or_spoiled_is_left_alone(lab: Lab, swarm: Swarm) -> None:
    swarm.create("fx", ["developer", "reviewer", "architect"])
    lab.git("worktree", "move", str(lab.tree("developer", "fx")), str(lab.root.parent / "elsewhere"))
    (lab.root / ".git" / "worktrees" / "reviewer-fx" / RECORD_COPY).write_bytes(b"{")
    shutil.rmtree(lab.root / ".swarm" / "sessions")

    swarm.recover()

    (session,) = swarm.sessions()
    assert [agent.name for agent in session.agents] == ["architect"]


def test_what_cannot_be_copied_does_no_harm(lab: Lab, swarm: Swarm, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm.kit import files

    true_write = files.write_atomic

    def write(path: Path, *rest: object, **how: object) -> None:
        if path.name == RECORD_COPY:
            raise OSError(28, "No space left on device")
        true_write(path, *rest, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "write_atomic", write)
    swarm.create("fx", ["developer"])

    assert copies(lab) == []
    assert [session.name for session in swarm.sessions()] == ["fx"]
