"""A sync that failed is told to everybody whom it concerns, and what it was about is written again."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from swarm.kit.errors import EnvironmentProblem
from tests.bus.rigs import FakeMachine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.integration

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
    with bus._box("inbox.dev-s").mutex:  # the second sender lets go of it when it knows which sync it depends on
        disk.go_on.set()

    for one in (first, second):
        with pytest.raises(EnvironmentProblem):
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
    with pytest.raises(EnvironmentProblem):
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
