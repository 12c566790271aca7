"""Old messages are removed while others send and take, and all of those who do it are killed again and again."""

from __future__ import annotations

import os
import random
import signal
from itertools import count
from typing import TYPE_CHECKING

import pytest

from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from swarm.bus.protocol import Keep
from swarm.bus.wire import PRIORITIES
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.bus.box import Box

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]

DEV = "dev@s"
WRITERS, EACH = 2, 80
#: Nothing is too young.
AT_ONCE = Keep(-100 * 365 * 86_400_000)


class SmallParts(FileBus):
    """Each part of a log holds a few messages."""

    def _box(self, address: str) -> Box:
        found = super()._box(address)
        for log in (*found.lanes, found.reader_log.log):
            log._roll_at = 1500
        return found


def child(act: Callable[[], None]) -> int:
    pid = os.fork()
    if not pid:
        try:
            act()
        except BaseException:  # noqa: BLE001  # the parent sees the status
            os._exit(1)
        os._exit(0)
    return pid


class Trial:
    """Writers that are left alone, and three that are killed in turn; what they took stands in a ledger."""

    def __init__(self, folder: Path) -> None:
        self.ledger = folder / "ledger"
        self.root = folder / "messages"
        self.bus = SmallParts(self.root)
        self.bus.declare(DEV)
        self.writers = [child(lambda number=n: self.write(number)) for n in range(WRITERS)]  # type: ignore[misc]
        self.acts = (self.read, self.prune, self.prune)
        self.victims = [child(act) for act in self.acts]

    def write(self, number: int) -> None:
        bus = SmallParts(self.root)
        for n in range(EACH):
            lane = PRIORITIES[(n * 7 + number) % 4]
            bus.send(Message(DEV, f"w{number}@s", str(n), id=f"{number}-{n}", priority=lane), durable=False)

    def read(self) -> None:
        bus = SmallParts(self.root)
        out = os.open(self.ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        while True:
            claim = bus.receive(DEV, wait=10, limit=random.choice((1, 4, 9)))
            if claim is not None:
                bodies = [f"{message.sender} {message.body}\n" for message in claim.messages]
                os.write(out, "".join(f"got {one}" for one in bodies).encode())
                bus.ack(claim)
                os.write(out, "".join(f"ack {one}" for one in bodies).encode())

    def prune(self) -> None:
        while True:
            SmallParts(self.root).prune(DEV, AT_ONCE)

    def notes(self) -> list[list[str]]:
        return [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []

    def is_over(self) -> bool:
        self.writers = [pid for pid in self.writers if not _ended_well(pid)]
        return not self.writers and self.bus.depth(DEV)[:2] == (0, 0)

    def run(self) -> None:
        """Kill one after the other; each time something must have gone on, so no message is taken too often."""
        for turn in count():
            seen = len(self.notes())
            wait_for(lambda: len(self.notes()) > seen or self.is_over(), "progress")  # noqa: B023  # called at once
            if self.is_over():
                return
            pid = self.victims[turn % 3]
            os.kill(pid, signal.SIGKILL)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL, f"{turn % 3} failed"
            self.victims[turn % 3] = child(self.acts[turn % 3])

    def end(self) -> None:
        for pid in (*self.victims, *self.writers):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _ended_well(pid: int) -> bool:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        assert os.waitstatus_to_exitcode(status) == 0, "a writer failed"
    return ended == pid


def test_nothing_is_lost_or_comes_again_while_old_messages_go(tmp_path: Path) -> None:
    trial = Trial(tmp_path)
    try:
        trial.run()
    finally:
        trial.end()

    got: dict[str, list[int]] = {f"w{number}@s": [] for number in range(WRITERS)}
    done = set()
    for what, sender, body in trial.notes():
        if what == "ack":
            done.add((sender, body))
            continue
        assert (sender, body) not in done, "it came again after it was acknowledged"
        assert int(body) in {0, *(one + 1 for one in got[sender])}, "it overtook an earlier one"
        got[sender].append(int(body))
    assert {sender: sorted(set(bodies)) for sender, bodies in got.items()} == {s: list(range(EACH)) for s in got}
    SmallParts(trial.root).prune(DEV, AT_ONCE)
    assert trial.bus.removed(DEV) == WRITERS * EACH, "all of them are done"
