"""What a supervisor makes of its agent's inbox: when it has somebody look into it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from swarm.supervisor.mail import Mail

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

ADDRESS = "developer@fx"


class Chores:
    """Counts the looks, and has each end well at once."""

    def __init__(self) -> None:
        self.looks = 0

    def start(self, *_args: Any) -> Any:
        self.looks += 1
        return SimpleNamespace(status=0)


def watched(tmp_path: Path) -> tuple[Mail, Chores, Path]:
    inbox = tmp_path / "messages/inbox/developer-fx"
    chores = Chores()
    run = tmp_path / "run"
    run.mkdir()
    told = SimpleNamespace(inbox=str(inbox), nudge=[b"look"], pause=0, awaited=False)
    launch = SimpleNamespace(run_dir=str(run), mail=told, label_env={})
    mail = Mail(cast("Any", launch), cast("Any", chores), cast("Any", SimpleNamespace(maybe=lambda: True)))
    return mail, chores, inbox


def test_an_inbox_is_looked_into_for_messages_and_not_for_being_made(tmp_path: Path) -> None:
    """A look costs a quarter of a second of the processor, and at a start there are as many as agents."""
    bus = FileBus(tmp_path / "messages")
    mail, chores, inbox = watched(tmp_path)

    mail.look()
    (inbox / "normal").mkdir(parents=True)
    (inbox / "normal/.active.log.tmp").write_text("on its way")
    mail.look()
    (inbox / "normal/.active.log.tmp").unlink()
    bus.declare(ADDRESS)
    mail.look()
    mail.look()
    assert chores.looks == 0

    bus.send(Message(to=ADDRESS, sender="user", body="hello"))
    mail.look()
    assert chores.looks == 1


def test_a_dropped_file_that_was_empty_at_the_last_look_is_news_when_it_is_written(tmp_path: Path) -> None:
    FileBus(tmp_path / "messages").declare(ADDRESS)
    mail, chores, inbox = watched(tmp_path)
    file = inbox / "drop/note.txt"

    file.touch()
    mail.look()
    assert chores.looks == 0

    file.write_text("from a script")
    mail.look()
    assert chores.looks == 1
