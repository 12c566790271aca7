"""The power goes: of the logs only what was synced is left. What is sent afterwards stands in the place of the rest."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from tests.bus.rigs import FakeMachine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.crash

DEV = "dev@s"


class Disk:
    """A bus, and how much of each of its files is on the disk."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.synced: dict[int, int] = {}  # of the file with this inode
        self.machine = FakeMachine()
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self.noting(getattr(os, name)))
        self.bus = FileBus(root, self.machine)
        self.bus.declare(DEV, generation="g2")

    def noting(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def noted(fd: int) -> None:
            sync(fd)
            info = os.fstat(fd)
            self.synced[info.st_ino] = info.st_size

        return noted

    def lose_power(self) -> None:
        """Take away what no sync has made durable, and let everybody begin anew."""
        self.bus.close()
        for path in self.root.rglob("*.log"):
            info = path.stat()
            os.truncate(path, min(info.st_size, self.synced.get(info.st_ino, 0)))
        self.machine.reboot()
        self.bus = FileBus(self.root, self.machine)

    def say(self, name: str, *, by: str = "a@s", durable: bool = True, **more: str) -> None:
        self.bus.send(Message(DEV, by, name, **more), durable=durable)  # type: ignore[arg-type]  # texts

    def arriving(self) -> list[str]:
        got = []
        while claim := self.bus.receive(DEV, holder=self.machine.holder()):
            got += [message.body for message in claim.messages]
            self.bus.ack(claim)
        return got


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


def test_what_is_sent_after_an_urgent_message_comes_after_it_though_others_messages_were_lost(disk: Disk) -> None:
    """It notes where the other lanes end; nothing that it did not mean may come to stand before that."""
    disk.say("of another, " + "x" * 500, by="b@s", durable=False)  # or its sender was just about to sync it
    disk.say("urgent", priority="high")
    disk.lose_power()
    disk.say("later")

    assert [one for one in disk.arriving() if "another" not in one] == ["urgent", "later"]


def test_the_same_when_the_lane_had_just_begun_another_part(disk: Disk) -> None:
    disk.say("of another, " + "x" * 500, by="b@s", durable=False)
    lane = disk.bus._box("inbox.dev-s").lanes[2]
    lane.roll()
    lane.end()
    disk.say("urgent", priority="high")
    folder = disk.root / "inbox/dev-s/normal"
    (rolled,) = (path for path in folder.iterdir() if path.name != "active.log")
    rolled.rename(folder / "active.log")  # no folder was synced since then
    disk.lose_power()
    disk.say("later")

    assert [one for one in disk.arriving() if "another" not in one] == ["urgent", "later"]


def test_what_one_knows_to_be_on_the_disk_was_of_a_box_that_is_gone(disk: Disk) -> None:
    """Another box took its path since; nothing of that one is known."""
    disk.say("of another, " + "x" * 500, by="b@s")
    disk.say("urgent in the old box", priority="high")
    others = FileBus(disk.root, disk.machine)
    others.remove(DEV)
    others.declare(DEV)
    others.send(Message(DEV, "b@s", "of another"), durable=False)
    disk.say("urgent", priority="high")
    disk.lose_power()
    disk.say("later")

    assert [one for one in disk.arriving() if "another" not in one] == ["urgent", "later"]


def test_nothing_is_synced_for_a_message_that_need_not_be_behind_another(disk: Disk) -> None:
    disk.say("first")
    before = dict(disk.synced)
    disk.say("second")

    assert len([one for one in disk.synced if disk.synced[one] != before.get(one)]) == 1


def test_what_was_given_up_takes_no_later_message_along(disk: Disk) -> None:
    """The readers' note of it says only where it stood."""
    disk.say("same size 1", durable=False)
    claim = disk.bus.receive(DEV, holder=disk.machine.holder())
    assert claim is not None
    disk.bus.fail(claim, reason="no way")
    disk.lose_power()
    disk.say("same size 2")

    assert disk.arriving() == ["same size 2"]


def test_what_a_reader_finds_to_be_dead_takes_no_later_message_along(disk: Disk) -> None:
    disk.say("same size 1", durable=False, generation="g1")
    assert disk.bus.receive(DEV, holder=disk.machine.holder()) is None
    disk.bus.declare(DEV, generation="g3")  # syncs the readers' notes
    disk.lose_power()
    disk.say("same size 2", generation="g3")

    assert disk.arriving() == ["same size 2"]
