"""Who writes to a box at the same time as others waits for them, for as long as the settings say."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import pytest

from swarm.bus.filebus import FileBus
from swarm.bus.log import files
from swarm.bus.message import Message
from swarm.messages.office.post import Post
from swarm.project.config.settings import Settings
from swarm.project.errors import Locked

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.protocol import Bus

pytestmark = pytest.mark.integration

DEV = "dev@s"
SENDERS, EACH = 12, 25


def send(bus: Bus, name: str) -> None:
    bus.send(Message(DEV, "user", name, id=name))


def test_a_sender_waits_longer_than_it_takes_to_ask_for_how_long(tmp_path: Path) -> None:
    FileBus(tmp_path).declare(DEV)
    with (tmp_path / "inbox/dev-s/normal/active.log").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def patience() -> float:
            fcntl.flock(held, fcntl.LOCK_UN)
            return 60.0

        send(FileBus(tmp_path, patience=patience), "waited")

    assert [one.message.body for one in FileBus(tmp_path).peek(DEV)] == ["waited"]


@pytest.mark.parametrize("lock", ["normal/active.log", ".", "reader.lock"])
def test_the_setting_says_how_long(tmp_path: Path, lock: str) -> None:
    (tmp_path / "config.yaml").write_text("messages:\n  lock_timeout: 1s\n")
    post = Post(tmp_path, environ={"HOME": str(tmp_path)})
    post.bus.declare(DEV)
    held = os.open(tmp_path / "messages/inbox/dev-s" / lock, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Locked, match="within 1 s: process") as caught:
            post.bus.receive(DEV) if lock == "reader.lock" else send(post.bus, "x")
    finally:
        os.close(held)

    assert caught.value.exit_code == 75
    assert "messages.lock_timeout" in (caught.value.hint or "")


def test_a_mistake_in_the_settings_stops_no_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PATIENCE", 0.6)
    (tmp_path / "config.yaml").write_text("messages:\n  lock_timeout: never\n")
    post = Post(tmp_path, environ={"HOME": str(tmp_path)})
    post.bus.declare(DEV)
    with (tmp_path / "messages/inbox/dev-s/normal/active.log").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Locked):
            send(post.bus, "x")
    send(post.bus, "y")


def test_whoever_was_told_nothing_waits_as_the_default_says() -> None:
    assert Settings().messages.lock_timeout == files.PATIENCE


def test_many_senders_at_once_all_get_through(tmp_path: Path) -> None:
    """With ids of their own each looks for its message, and syncs what it finds, below one lock."""
    bus = FileBus(tmp_path)
    bus.declare(DEV)
    children = []
    for number in range(SENDERS):
        child = os.fork()
        if not child:
            try:
                own = FileBus(tmp_path)
                for count in range(EACH):
                    for _ in range(2):
                        own.send(Message(DEV, f"w{number}@s", f"{count}", id=f"{number}-{count}"))
            except BaseException:  # noqa: BLE001  # what it is the parent's assertion shows
                os._exit(1)
            os._exit(0)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * SENDERS

    got: dict[str, list[str]] = {}
    for one in bus.peek(DEV, 1000):
        got.setdefault(one.message.sender, []).append(one.message.body)
    assert got == {f"w{number}@s": [str(count) for count in range(EACH)] for number in range(SENDERS)}
