"""Of several who wait for the same file to be on the disk one syncs it for all; nobody is told so without a proof."""

from __future__ import annotations

import fcntl
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from swarm.domain.errors import Environment
from swarm.domain.message import Message
from swarm.store.bus import FileBus, together
from tests.contract.bus import FakeMachine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEV = "dev@s"
_LONG = 30


class Disk:
    """Counts syncs, and lets one of them take until it is told to go on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._true = os.fdatasync
        self.syncs = 0
        self.held = threading.Event()
        self.go_on = threading.Event()
        self.hold_next = False
        self.fail_next = False
        patch.setattr(os, "fdatasync", self.sync)

    def sync(self, fd: int) -> None:
        self.syncs += 1
        hold, self.hold_next = self.hold_next, False
        if hold:
            self.held.set()
            assert self.go_on.wait(_LONG)
        fail, self.fail_next = self.fail_next, False
        if fail:
            raise OSError(5, "Input/output error")
        self._true(fd)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as threads:
        yield threads


def bus_at(root: Path) -> FileBus:
    """Return a bus with files of its own, as another process has them."""
    bus = FileBus(root, FakeMachine())
    bus.declare(DEV)
    return bus


def say(bus: FileBus, text: str) -> None:
    bus.send(Message(DEV, "user", text))


def wait_until_added(root: Path, text: str) -> None:
    path = root / "inbox/dev-s/normal/active.log"
    deadline = threading.Event()
    for _ in range(_LONG * 100):
        if f'"{text}"'.encode() in path.read_bytes():
            return
        deadline.wait(0.01)
    raise AssertionError(f"{text} was never added")


def test_one_syncs_for_all_that_added_something_meanwhile(tmp_path: Path, disk: Disk, pool: ThreadPoolExecutor) -> None:
    buses = [bus_at(tmp_path) for _ in range(4)]
    for bus in buses:
        say(bus, "so that each has the file open")
    before = disk.syncs
    disk.hold_next = True
    first = pool.submit(say, buses[0], "first")
    assert disk.held.wait(_LONG)
    others = [pool.submit(say, bus, f"other {n}") for n, bus in enumerate(buses[1:])]
    for n in range(3):
        wait_until_added(tmp_path, f"other {n}")

    assert not any(other.done() for other in others)  # that sync began before them: it proves nothing
    disk.go_on.set()
    for one in (first, *others):
        one.result(_LONG)

    # The sync that was under way, and one for all the others; had one of them come to it late, one more.
    assert disk.syncs - before in (2, 3)


def test_a_sync_by_one_who_opened_the_file_later_proves_nothing(tmp_path: Path, disk: Disk) -> None:
    """The system may have told somebody else that writing it failed, and tells the one who came later nothing."""
    early, late = bus_at(tmp_path), bus_at(tmp_path)
    log = early._box("inbox.dev-s").lanes[2]
    early.send(Message(DEV, "user", "early"), durable=False)
    handle = log.handle()
    say(late, "late")
    before = disk.syncs
    handle.sync()

    assert disk.syncs == before + 1


def test_a_sync_by_one_who_had_the_file_open_is_enough(tmp_path: Path, disk: Disk) -> None:
    early, late = bus_at(tmp_path), bus_at(tmp_path)
    say(late, "so that it has the file open")
    early.send(Message(DEV, "user", "early"), durable=False)
    handle = early._box("inbox.dev-s").lanes[2].handle()
    say(late, "late")
    before = disk.syncs
    handle.sync()

    assert disk.syncs == before


def test_who_stops_in_the_middle_holds_up_nobody_for_long(tmp_path: Path, disk: Disk) -> None:
    bus = bus_at(tmp_path)
    say(bus, "one")
    with open(together.mark_of(str(tmp_path / "inbox/dev-s/normal")), "rb") as mark:
        fcntl.flock(mark, fcntl.LOCK_EX)
        before = disk.syncs
        say(bus, "two")

    assert disk.syncs == before + 1


@pytest.mark.parametrize("content", [b"", b"x", b"\xff" * 20, bytes(8) + b"\x7f" * 8 + bytes(4)])
def test_a_damaged_note_is_not_believed(tmp_path: Path, disk: Disk, content: bytes) -> None:
    bus = bus_at(tmp_path)
    say(bus, "one")
    (tmp_path / "inbox/dev-s/normal.synced").write_bytes(content)
    before = disk.syncs
    say(bus, "two")

    assert disk.syncs == before + 1


def test_without_the_note_each_syncs_alone(tmp_path: Path, disk: Disk) -> None:
    bus = bus_at(tmp_path)
    (tmp_path / "inbox/dev-s/normal.synced").mkdir()
    before = disk.syncs
    say(bus, "one")

    assert disk.syncs == before + 1


def test_a_new_part_begins_with_a_new_note(tmp_path: Path, disk: Disk) -> None:
    """Else what was said of records of the same numbers would be believed."""
    bus, other = bus_at(tmp_path), bus_at(tmp_path)
    for n in range(5):
        say(bus, f"{n}")
    (tmp_path / "inbox/dev-s/normal/active.log").unlink()  # by foreign hands: the numbers begin anew
    bus.close()
    say(other, "first of the new file")
    before = disk.syncs
    bus.send(Message(DEV, "user", "second"), durable=False)
    bus._box("inbox.dev-s").lanes[2].handle().sync()

    assert disk.syncs == before + 1


def test_what_failed_for_one_is_not_told_to_be_done_in_another_thread(
    tmp_path: Path, disk: Disk, pool: ThreadPoolExecutor
) -> None:
    """They share the open file, and the system tells each open file but once."""
    bus = bus_at(tmp_path)
    say(bus, "so that the file is open")
    disk.hold_next = disk.fail_next = True
    first = pool.submit(say, bus, "first")
    assert disk.held.wait(_LONG)
    second = pool.submit(say, bus, "second")
    wait_until_added(tmp_path, "second")
    disk.go_on.set()

    for one in (first, second):
        with pytest.raises(Environment):
            one.result(_LONG)
    say(bus, "after that")


def test_an_acknowledgement_whose_sync_failed_is_written_again(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = bus_at(tmp_path)
    say(bus, "one")
    claim = bus.receive(DEV)
    assert claim is not None
    bus._box("inbox.dev-s").secure(claim.places)  # so that the next sync is that of the acknowledgement
    disk.fail_next = True
    with pytest.raises(Environment):
        bus.ack(claim)
    true_write, written = os.pwrite, []

    def write(fd: int, data: bytes, place: int) -> int:
        written.append(data)
        return true_write(fd, data, place)

    monkeypatch.setattr(os, "pwrite", write)
    before = disk.syncs
    bus.ack(claim)

    assert any(b'"op": "ack"' in data or b'"op":"ack"' in data for data in written)
    assert disk.syncs == before + 1
    assert bus_at(tmp_path).receive(DEV) is None
