"""A kill storm over the message bus: writers and readers are killed at any moment and started again.

Each writes down in the ledger what it is about to do and what it was told; ``ledger.py`` judges.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from swarm.bus import box
from swarm.bus.box import Limits
from swarm.bus.filebus import FileBus
from swarm.bus.log import lines, log
from swarm.bus.message import Message
from swarm.bus.reader import taking
from swarm.bus.wire import PRIORITIES
from swarm.project.errors import Locked
from tests.support.ledger import judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from swarm.bus.protocol import Claim

LIMITS = Limits(messages=10**9, octets=1 << 50)
#: A writer cuts its own write short and dies once in so many records; what it leaves is what readers stumble over.
TEAR_EVERY = 150
#: One in so many messages has any priority; the others are normal.
MIX_EVERY = 3


class Plan:
    """How large a storm is."""

    def __init__(self, writers: int, readers: int, inboxes: int, messages: int, seed: int = 0, bug: str = "") -> None:
        self.writers, self.readers, self.inboxes = writers, readers, inboxes
        self.each = messages // writers
        self.seed = seed
        self.bug = bug
        self.kill_every = 0.06
        self.patience = 600.0
        self.roll_at = 1 << 17  # so that logs are rolled all the time, too


# --- the processes ---------------------------------------------------------------------------------


class Ledger:
    """The shared file; a line is one write, so lines of different processes never mix."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, line: str) -> None:
        os.write(self._fd, line.encode() + b"\n")


def open_bus(plan: Plan, folder: Path, inbox: str) -> FileBus:
    """The bus as a process of the storm has it."""
    bus = FileBus(folder / "messages", limits=LIMITS)
    opened = bus._box(inbox)
    for one in (*opened.lanes, opened.reader_log.log):
        one._roll_at = plan.roll_at
    return bus


def body_of(sender: str, number: int) -> str:
    """A body that proves itself: its length and content follow from whose and which it is."""
    text = f"{sender}:{number}:" + "ä\n" * (crc32(f"{sender}{number}".encode()) % 60)
    return f"{text}{crc32(text.encode()):08x}"


def write(plan: Plan, folder: Path, me: int) -> None:
    """Send the rest of a writer's messages; one whose fate is unknown is sent again under its id."""
    ledger = Ledger(folder / "ledger")
    sender = f"w{me}"
    inbox = f"inbox.i{me % plan.inboxes}"
    bus = open_bus(plan, folder, inbox)
    done = folder / f"done-{me}"
    number = int(done.read_text() or 0) if done.exists() else 0
    randomness = random.Random(f"{plan.seed}{me}{number}{os.getpid()}")
    tearing_writes(ledger, randomness)
    state = os.open(done, os.O_WRONLY | os.O_CREAT, 0o600)
    parent = os.getppid()
    while number < plan.each and os.getppid() == parent:
        ledger.note(f"T {sender} {number} {inbox}")
        priority = PRIORITIES[crc32(f"{number}{sender}".encode()) % 4] if number % MIX_EVERY == 0 else "normal"
        message = Message(inbox, sender, body_of(sender, number), id=f"{sender}-{number}", priority=priority)
        patiently(partial(bus.send, message, durable=number % 100 == 0))
        ledger.note(f"A {sender} {number}")
        if number % 50 == 0:
            patiently(partial(bus.send, message))
        number += 1
        os.pwrite(state, b"%09d" % number, 0)


def read(plan: Plan, folder: Path, me: int) -> None:
    """Take, look, acknowledge; until nothing more will come."""
    ledger = Ledger(folder / "ledger")
    inbox = f"inbox.i{me % plan.inboxes}"
    bus = open_bus(plan, folder, inbox)
    randomness = random.Random(f"{plan.seed}r{me}{os.getpid()}")
    parent = os.getppid()
    while os.getppid() == parent:
        claim = patiently(partial(bus.receive, inbox, wait=0.5, limit=randomness.choice((1, 20, 100)), lease=1000))
        if claim is None:
            if (folder / "written").exists() and bus.depth(inbox)[:2] == (0, 0):
                return
            continue
        ledger.note(f"R {os.getpid()} {inbox} {' '.join(_look(ledger, claim))}")
        kept = claim.messages
        if randomness.random() < 0.05:
            ledger.note(f"N {os.getpid()} {_name(claim.messages[-1])}")
            delay = randomness.choice((0, 0.01))
            patiently(partial(bus.nack, claim, (claim.messages[-1].id,), delay=delay))
            kept = kept[:-1]
        if kept:
            names = " ".join(_name(m) for m in kept)
            ledger.note(f"B {os.getpid()} {names}")
            patiently(partial(bus.ack, claim, tuple(m.id for m in kept)))
            ledger.note(f"K {os.getpid()} {names}")


def patiently(act: Callable[[], Any]) -> Any:
    """Do what was refused only because others were at it, again; on a machine with too much to do that happens."""
    while True:
        try:
            return act()
        except Locked:
            continue


def _look(ledger: Ledger, claim: Claim) -> Iterable[str]:
    for message in claim.messages:
        sender, _, number = message.id.partition("-")
        if message.body != body_of(sender, int(number)) or message.sender != sender:
            ledger.note(f"! torn {message.id}")
        yield _name(message)


def _name(message: Message) -> str:
    return message.id.replace("-", ":")


def tearing_writes(ledger: Ledger, randomness: random.Random) -> None:
    """Let a record's write be cut short now and then, as a kill half way would."""
    whole = lines.seal

    def seal(record: bytes, number: int) -> bytes:
        line = whole(record, number)
        if record.startswith(b'{"schema"') and randomness.random() < 1 / TEAR_EVERY:
            caller = sys._getframe(1).f_locals
            os.write(caller["fd"], line[: randomness.randrange(len(line))])
            ledger.note(f"X {os.getpid()}")
            os.kill(os.getpid(), signal.SIGKILL)
        return line

    vars(lines)["seal"] = seal  # in this process only


# --- planted bugs: the judge must find each ----------------------------------------------------------


def _forget_acks() -> None:
    true_ack = taking.ack

    def ack(*args: Any) -> None:
        if random.random() > 0.2:
            true_ack(*args)

    vars(taking)["ack"] = ack


def _merge_torn_tails() -> None:
    def learn(self: Any, size: int) -> bool:
        numbers = [line.number for line in self.read(0) if line.number >= 0]
        self._size, self._number = size, numbers[-1] if numbers else 0
        return True

    vars(log)["Log"]._learn = learn
    vars(log)["parted"] = lambda line: [line] if line else []  # else a merged record would be found in its line


BUGS: dict[str, Callable[[], Any]] = {
    "acks are forgotten": _forget_acks,
    "torn tails are merged": _merge_torn_tails,
    "ids are not compared": lambda: setattr(box.Box, "find", lambda *_: None),
    "leases are ignored": lambda: setattr(taking, "over", lambda *_: "because"),
    "the urgent overtake": lambda: setattr(box.Box, "tails", lambda *_: []),
}


# --- the storm -------------------------------------------------------------------------------------


def storm(plan: Plan, folder: Path) -> None:
    """Run it; returns when all writers have sent everything and the readers found nothing more."""
    ledger = Ledger(folder / "ledger")
    bus = FileBus(folder / "messages", limits=LIMITS)
    for number in range(plan.inboxes):
        bus.declare(f"inbox.i{number}")
    bus.close()
    jobs: dict[int, tuple[Callable[[Plan, Path, int], None], int]] = {}
    left = [(write, n) for n in range(plan.writers)] + [(read, n) for n in range(plan.readers)]
    for act, number in left:
        jobs[_fork(plan, folder, act, number)] = (act, number)
    randomness = random.Random(plan.seed)
    deadline = time.monotonic() + plan.patience
    try:
        while jobs:
            time.sleep(randomness.uniform(0, 2 * plan.kill_every))
            if time.monotonic() > deadline:
                ledger.note("! it did not end")
                return
            victim = randomness.choice(list(jobs))
            if jobs[victim][0] is write or not (folder / "written").exists():
                ledger.note(f"X {victim}")
                os.kill(victim, signal.SIGKILL)
            _start_again(plan, folder, ledger, jobs)
    finally:
        for pid in jobs:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    for number in range(plan.inboxes):
        for one in bus.dead(f"inbox.i{number}"):
            if one.reason.startswith("it was handed out"):
                ledger.note(f"D {_name(one.message)}")
    bus.close()


def _start_again(plan: Plan, folder: Path, ledger: Ledger, jobs: dict[int, Any]) -> None:
    for pid in list(jobs):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if not ended:
            continue
        act, number = jobs.pop(pid)
        if os.WIFSIGNALED(status):
            jobs[_fork(plan, folder, act, number)] = (act, number)
        elif os.WEXITSTATUS(status):
            ledger.note(f"! a process failed: {act.__name__} {number}")
            jobs[_fork(plan, folder, act, number)] = (act, number)
    if not any(act is write for act, _ in jobs.values()):
        (folder / "written").touch()


def _fork(plan: Plan, folder: Path, act: Callable[[Plan, Path, int], None], number: int) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the one that started us, who ends us
        try:
            if plan.bug:
                BUGS[plan.bug]()
            act(plan, folder, number)
            code = 0
        except BaseException as error:  # noqa: BLE001 - told, and the process ends
            os.write(2, f"{act.__name__} {number}: {error!r}\n".encode())
        finally:
            os._exit(code)
    return pid


def main(argv: list[str] | None = None) -> int:
    """Run a storm and print the verdict."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.storm", description="One storm; many: scripts/storm."
    )
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--readers", type=int, default=16)
    parser.add_argument("--inboxes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--bug", default="", choices=["", *BUGS])
    wish = parser.parse_args(argv)
    plan = Plan(wish.writers, wish.readers, wish.inboxes, wish.messages, wish.seed, wish.bug)
    plan.patience = 6 * 3600
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no process of it stays
    with tempfile.TemporaryDirectory(prefix="storm-") as name:
        began = time.monotonic()
        storm(plan, Path(name))
        took = time.monotonic() - began
        verdict = judge(Path(name) / "ledger")
        bad = sum(len(list(folder.iterdir())) for folder in Path(name).glob("messages/inbox/*/bad"))
    sys.stdout.write(
        f"{plan.writers} writers, {plan.readers} readers, {plan.inboxes} inboxes, seed {plan.seed}\n"
        f"{verdict}; {bad} set aside; {took:.0f} s, {plan.each * plan.writers / took:.0f} messages/s\n"
        + ("\n".join(verdict.examples) or "every promise held")
        + "\n"
    )
    return 1 if verdict.wrong or bad else 0


if __name__ == "__main__":
    sys.exit(main())
