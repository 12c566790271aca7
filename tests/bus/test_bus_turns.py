"""Every order in which the file operations of few acts can follow each other, up to so many changes of turn.

A storm finds by chance what needs three processes at three places; here each place is tried in turn.
Each scene begins warm: the boxes are there, and whoever acts has them open, as a process that lives on.
"""

from __future__ import annotations

import gc
import hashlib
import os
import random
import shutil
import tempfile
import time
from contextlib import nullcontext
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus.errors import AttachmentProblem
from swarm.bus.filebus import FileBus  # loaded before anything is counted
from swarm.bus.keeping import blobs, unused
from swarm.bus.log import parts
from swarm.bus.log.log import Log
from swarm.bus.message import Message
from swarm.bus.protocol import Keep
from swarm.bus.wire import PRIORITIES
from swarm.kit import files  # noqa: F401  # loaded before anything is counted
from tests.bus.rigs import FakeMachine
from tests.support.interleave import CHANGES, Run, Turn, explore
from tests.support.ledger import Judge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from swarm.bus.box import Box
    from swarm.bus.protocol import Claim

    Acts = Sequence[Callable[[int], None]]
    Stops = Callable[[int, str, str], bool]

pytestmark = [pytest.mark.crash, pytest.mark.timeout(1200)]

FULL = os.environ.get("SWARM_CRASH") == "full"
DEV = "dev@s"
#: What a killed writer leaves behind: longer than several of the messages here.
TORN = b'{"schema":1,"id":"torn","from":"x","to":"dev@s' + b"y" * 900
SWITCHES = 1 + FULL
#: What the kill of a writer leaves of its line, in tenths; 9 is all but the newline.
CUTS = (1, 9, 10) if FULL else (9, 10)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is room: a thousand runs, each on files of its own."""
    with tempfile.TemporaryDirectory(prefix="turns-") as name:
        yield Path(name)


#: For how long a log's file is taken for the active one without a look: by the clock it would be by chance.
NEVER, ALWAYS = 0.0, 1e9


def sure(*seconds: float) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("_sure", seconds, indirect=True)


@pytest.fixture
def _sure(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_SURE", request.param)


class Stage:
    """One run of a scene on files of its own, and what its acts noted."""

    def __init__(self, original: Path, root: Path, roll_at: int) -> None:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(original, root, copy_function=shutil.copyfile)
        self.root = root
        self.machine = FakeMachine()
        self.ledger: list[str] = []
        self._roll_at = roll_at
        self._open: list[FileBus] = []

    def bus(self) -> FileBus:
        """A process that has looked into the box before."""
        bus = FileBus(self.root, self.machine)
        bus.depth(DEV)
        for lane in box(bus).lanes:
            lane._roll_at = self._roll_at
        self._open.append(bus)
        return bus

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    def again(self, buses: list[FileBus], lives: int) -> FileBus:
        """The bus of an act; after a kill another one, and the files of the old are closed, as the kernel does."""
        while len(buses) <= lives:
            buses[-1].close()
            buses.append(self.bus())
        return buses[-1]

    def sender(self, name: str, lanes: Sequence[int], *, ids: bool = True) -> Callable[[int], None]:
        """Sends a message to each lane; begun again it goes on where it does not know better, under the same ids.

        Without ids of its own it takes fewer locks, and cannot begin again.
        """
        buses = [self.bus()]
        sent: list[int] = []

        def act(lives: int) -> None:
            bus = self.again(buses, lives)
            for number in range(len(sent), len(lanes)) if ids or not lives else ():
                own, priority = f"{name}-{number}" * ids, PRIORITIES[lanes[number]]
                bus.send(Message(DEV, name, str(number), id=own, priority=priority), durable=False)
                self.ledger.append(f"A {name} {number}")
                sent.append(number)

        return act

    def reader(self, pid: int = 200, times: int = 1, limit: int = 10, *, nack: bool = False) -> Callable[[int], None]:
        """Takes and acknowledges; killed, what it holds goes back."""
        self.machine.alive[pid] = 1
        buses = [self.bus()]

        def act(lives: int) -> None:
            if lives:
                self.ledger.append(f"X {pid}")
                self.machine.alive[pid] += 1
            bus = self.again(buses, lives)
            for _ in range(times):
                self.settle(bus, pid, bus.receive(DEV, limit=limit, holder=self.machine.holder(pid)), nack=nack)

        return act

    def settle(self, bus: FileBus, pid: int, claim: Claim | None, *, nack: bool = False) -> None:
        if claim is None:
            return
        names = [f"{message.sender}:{message.body}" for message in claim.messages]
        self.ledger.append(f"R {pid} {DEV} {' '.join(names)}")
        if nack:
            self.ledger.append(f"N {pid} {names.pop()}")
            bus.nack(claim, (claim.messages[-1].id,))
        if names:
            self.ledger.append(f"B {pid} {' '.join(names)}")
            bus.ack(claim, tuple(message.id for message in claim.messages[: len(names)]))
            self.ledger.append(f"K {pid} {' '.join(names)}")

    def verdict(self) -> str:
        """Take what is left; return what was wrong."""
        bus = self.bus()
        for pid in self.machine.alive:
            self.machine.alive[pid] += 1
            self.ledger.append(f"X {pid}")
        self.machine.alive[300] = 3
        while claim := bus.receive(DEV, limit=10, holder=self.machine.holder(300)):
            self.settle(bus, 300, claim)
        self.ledger += [f"D {one.message.sender}:{one.message.body}" for one in bus.dead(DEV)]
        bad = os.listdir(self.root / "inbox" / "dev-s" / "bad")
        self.close()
        judge = Judge()
        for line in self.ledger:
            judge.hear(line)
        judge.close()
        return "; ".join([*judge.verdict.examples, *bad])


def box(bus: FileBus) -> Box:
    return bus._box("inbox.dev-s")


def prepared(folder: Path, before: Callable[[FileBus], Any] = lambda _: None, torn: str = "") -> Path:
    """The files that each run of a scene begins with."""
    original = folder / "original"
    shutil.rmtree(original, ignore_errors=True)
    bus = FileBus(original, FakeMachine())
    bus.declare(DEV)
    before(bus)
    bus.close()
    if torn:
        with (original / "inbox" / "dev-s" / torn / "active.log").open("ab") as file:
            file.write(TORN)
    return original


def all_of(
    original: Path,
    acts: Callable[[Stage], Acts],
    stops: Stops,
    kills: Mapping[int, Sequence[int]] | None = None,
    roll_at: int = 1 << 20,
    switches: int = SWITCHES,
) -> Iterator[tuple[dict[int, Turn], Stage]]:
    """Run every plan; give each with what it left."""
    stages: list[Stage] = []

    def make(plan: Mapping[int, Turn]) -> Run:
        stages[:] = [Stage(original, original.parent / "run", roll_at)]
        return Run(acts(stages[0]), plan, stops)

    for plan, _ in explore(make, switches, kills):
        yield plan, stages[0]
        stages[0].close()


def changes_of(place: Sequence[str], looking: int) -> Stops:
    """Stop where others change some logs, and where one act looks at them; all else is the same in any order."""
    return lambda me, operation, where: where in place and (me >= looking or operation in CHANGES)


def wrong_in(runs: Iterator[tuple[dict[int, Turn], Stage]], at_least: int) -> list[str]:
    found = [(plan, stage.verdict(), stage.ledger) for plan, stage in runs]
    assert len(found) >= at_least
    return [f"{plan}: {why}: {ledger}" for plan, why, ledger in found if why]


# --- the order of a sender's messages ------------------------------------------------------------------

PAIRS = list(permutations(range(4), 2))


def sent_and_read(stage: Stage, lanes: Sequence[int]) -> Acts:
    return stage.sender("s", lanes), stage.reader()


def test_the_garbage_collector_rests_during_a_run() -> None:
    seen: list[bool] = []

    Run([lambda _: seen.append(gc.isenabled())], {}).go()

    assert (seen, gc.isenabled()) == ([False], True)


@pytest.mark.usefixtures("_sure")
@sure(NEVER, *[ALWAYS] * FULL)
@pytest.mark.parametrize("torn", ["second", "first", ""] if FULL else ["second"])
def test_two_messages_come_in_order_wherever_their_reader_is_stopped(torn: str, folder: Path) -> None:
    for lanes in PAIRS if FULL else PAIRS[::4]:
        where = {"first": PRIORITIES[lanes[0]], "second": PRIORITIES[lanes[1]]}.get(torn, "")
        runs = all_of(
            prepared(folder, torn=where),
            partial(sent_and_read, lanes=lanes),
            changes_of(PRIORITIES, 1),
        )
        wrong = wrong_in(runs, 20)
        assert not wrong, f"{lanes}: {len(wrong)}, such as " + "\n".join(wrong[:5])


def test_the_turns_find_ends_that_count_what_a_killed_writer_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message sent later took the place of the torn one, before the end that its reader had noted."""
    monkeypatch.setattr(Log, "whole_end", Log.end)
    runs = all_of(
        prepared(folder, torn="normal"),
        partial(sent_and_read, lanes=(0, 2)),
        changes_of(PRIORITIES, 1),
    )
    assert any("s:1 before 0" in found for found in wrong_in(runs, 20))


@pytest.mark.parametrize("lanes", [(0, 2, 2), (2, 0, 3), (3, 2, 0)] if FULL else [(0, 2)])
def test_they_do_wherever_their_sender_is_killed_and_begins_again(lanes: Sequence[int], folder: Path) -> None:
    runs = all_of(
        prepared(folder),
        lambda stage: (stage.sender("s", lanes), stage.reader(times=2, limit=2)),
        changes_of(PRIORITIES, 1),
        kills={0: CUTS},
    )
    wrong = wrong_in(runs, 40)
    assert not wrong, f"{len(wrong)}, such as " + "\n".join(wrong[:5])


@pytest.mark.skipif(not FULL, reason="many runs; what a kill beside leaves is there from the beginning above")
def test_they_do_when_another_sender_is_killed_beside(folder: Path) -> None:
    runs = all_of(
        prepared(folder),
        lambda stage: (stage.sender("x", (2,)), stage.sender("s", (0, 2)), stage.reader()),
        changes_of(PRIORITIES, 2),
        kills={0: (9,)},
    )
    wrong = wrong_in(runs, 40)
    assert not wrong, f"{len(wrong)}, such as " + "\n".join(wrong[:5])


@pytest.mark.parametrize("nack", [False, True] if FULL else [True])
def test_they_do_with_two_readers_of_which_one_is_killed(nack: bool, folder: Path) -> None:
    runs = all_of(
        prepared(folder),
        lambda stage: (
            stage.sender("s", (3, 2, 0)),
            stage.reader(200, 2, nack=nack),
            stage.reader(201, 2, limit=2),
        ),
        lambda me, operation, where: operation in CHANGES and where in (*PRIORITIES, "reader"),
        kills={1: CUTS, 2: (10,)} if FULL else {1: (9,)},
    )
    wrong = wrong_in(runs, 40)
    assert not wrong, f"{len(wrong)}, such as " + "\n".join(wrong[:5])


@pytest.mark.usefixtures("_sure")
@sure(ALWAYS, *[NEVER] * FULL)
@pytest.mark.parametrize("lanes", [(0, 0, 2), (2, 2, 0), (0, 2, 2, 0)] if FULL else [(0, 0, 2)])
def test_they_do_when_every_message_begins_another_part(lanes: Sequence[int], folder: Path) -> None:
    """Twice a change of turn: a reader that saw a part closed, but not yet with its final name, must look again."""
    runs = all_of(
        prepared(folder),
        lambda stage: (stage.sender("s", lanes), stage.reader(times=2, limit=3)),
        changes_of([PRIORITIES[lane] for lane in lanes], 1),
        roll_at=10,
        switches=2,
    )
    wrong = wrong_in(runs, 40)
    assert not wrong, f"{len(wrong)}, such as " + "\n".join(wrong[:5])


@pytest.mark.parametrize("seed", range(500 if FULL else 3))
def test_many_acts_in_any_turns(seed: int, folder: Path) -> None:
    """Too many to try all: some, by chance, each with several changes of turn and a kill."""
    chance = random.Random(seed)
    lanes = [[chance.randrange(4) for _ in range(4)] for _ in range(3)]
    torn = chance.choice(("", *PRIORITIES, "reader"))
    roll_at = chance.choice((10, 600, 1 << 20))
    original = prepared(folder, torn=torn)
    steps = 100
    for _ in range(20):
        stage = Stage(original, folder / "run", roll_at)
        acts = [stage.sender(name, wanted, ids=name != "u") for name, wanted in zip("stu", lanes, strict=True)]
        acts += [stage.reader(200, 3, limit=3, nack=chance.random() < 0.3), stage.reader(201, 3, limit=2)]
        plan = {chance.randrange(steps): Turn(chance.randrange(5)) for _ in range(chance.randrange(2, 8))}
        plan[chance.randrange(steps)] = Turn(chance.randrange(5), chance.choice((1, 5, 9, 10)))
        run = Run(acts, plan, lambda _, operation, where: bool(where))
        run.go()
        steps = len(run.steps)
        assert not (found := stage.verdict()), f"{plan}: {found}: {stage.ledger}"


# --- reading while the end of a log is mended ----------------------------------------------------------


@pytest.mark.usefixtures("_sure")
@sure(NEVER, ALWAYS)
@pytest.mark.parametrize(("torn", "roll_at"), [(70, 1), (0, 1 << 20), (70, 1 << 20)])
def test_who_reads_a_log_while_its_end_is_changed_misses_nothing(torn: int, roll_at: int, folder: Path) -> None:
    """A reader can piece a line together from what was cut off and what came after, and must not pass over any.

    While a part gets its final name there is no active one.
    """
    read: list[int] = []

    def make(plan: Mapping[int, Turn]) -> Run:
        root = folder / "log"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        log, writer, reader = Log(str(root)), Log(str(root), roll_at), Log(str(root))
        for number in range(2):
            log.append(b'{"op":"%d"}' % number)
        with open(log.path, "ab") as file:
            file.write(TORN[:torn])
        reader.end()

        def write(_: int) -> None:
            for number in range(2, 6):
                writer.append(b'{"op":"%d"}' % number)

        def look(_: int) -> None:
            read[:] = [line.number for line in reader.read()]

        return Run((write, look), plan, lambda me, operation, _: bool(me) or operation in CHANGES)

    for _count, (plan, _) in enumerate(explore(make, 2)):
        assert read == list(range(1, len(read) + 1)), plan
    assert _count > 40


def test_who_looks_while_the_notes_are_mended_knows_all_of_them_afterwards(folder: Path) -> None:
    def before(bus: FileBus) -> None:
        for number in range(6):
            bus.send(Message(DEV, "s", str(number)))

    watching: list[FileBus] = []

    def acts(stage: Stage) -> Acts:
        watching[:] = [stage.bus()]
        return stage.reader(times=5, limit=1), lambda _: (watching[0].depth(DEV), None)[1]

    for plan, stage in all_of(prepared(folder, before, "reader"), acts, changes_of(("reader",), 1)):
        assert watching[0].depth(DEV) == stage.bus().depth(DEV), plan
        assert not stage.verdict(), plan


def test_who_looks_for_ids_while_the_end_is_mended_finds_each_afterwards(folder: Path) -> None:
    """A process that asks often remembers the ids it read; one that it passed over would be unknown to it for ever."""
    watching: list[FileBus] = []

    def acts(stage: Stage) -> Acts:
        watching[:] = [stage.bus()]
        for _ in range(5):
            watching[0].record_event(DEV, "old", "seen")
        return stage.sender("s", (2,) * 6), lambda _: watching[0].record_event(DEV, "old", "seen")

    original = prepared(folder, lambda bus: bus.send(Message(DEV, "s", id="old")), "normal")
    for plan, _ in all_of(original, acts, changes_of(("normal",), 1)):
        for number in range(6):
            assert box(watching[0]).find(f"s-{number}"), plan


# --- attachments ---------------------------------------------------------------------------------------


class Attached(Stage):
    """Attachments that nothing refers to, but for what the acts of a run send."""

    def __init__(self, original: Path, root: Path) -> None:
        super().__init__(original, root, 1 << 20)
        for path in (self.root / "blobs").iterdir():
            os.utime(path, (5, 5))
        self.refused: list[str] = []
        self.machine.now = time.time_ns() // 1_000_000

    def bus(self) -> FileBus:
        bus = FileBus(self.root, self.machine, saved=lambda: [str(self.root / "saved")])
        self._open.append(bus)
        return bus

    def attaches(self, _: int) -> None:
        """Attaches what is there already, under another name, and sends it."""
        self.bus().send(Message(DEV, "a", artifacts=(self.bus().attach(b"one", "again"),)), durable=False)

    def passes_on(self, _: int) -> None:
        """Sends what somebody else attached, and maybe is not there any longer."""
        try:
            self.bus().send(Message(DEV, "b", artifacts=(ARTIFACT,)), durable=False)
        except AttachmentProblem as error:
            self.refused.append(str(error))

    def moves(self, _: int) -> None:
        """Brings a saved box back, as a restore does."""
        with self.bus().attachments_stay():
            os.rename(self.root / "saved", self.root / "inbox/other")

    def sweeps(self, _: int) -> None:
        self.bus().prune_attachments(Keep(0))

    def missing(self) -> list[str]:
        """Return what a message has that is not there; and what else there is."""
        bus = self.bus()
        wrong = []
        for address in bus.addresses():
            for one in bus.peek(address):
                for artifact in one.message.artifacts:
                    try:
                        bus.attachment(artifact)
                    except AttachmentProblem as error:
                        wrong.append(f"{one.message.sender}: {error}")
        return wrong


ARTIFACT = {"sha256": hashlib.sha256(b"one").hexdigest(), "size": 3, "name": "one"}


def with_attachments(folder: Path) -> Path:
    def before(bus: FileBus) -> None:
        bus.attach(b"one", "one")
        bus.attach(b"two", "two")
        bus.declare("inbox.other")
        bus.send(Message("inbox.other", "c", artifacts=(bus.attach(b"three", "three"),)))

    original = prepared(folder, before)
    (original / "inbox/other").rename(original / "saved")
    return original


def swept(original: Path, acts: Callable[[Attached], Acts]) -> Iterator[tuple[dict[int, Turn], Attached]]:
    stages: list[Attached] = []

    def make(plan: Mapping[int, Turn]) -> Run:
        stages[:] = [Attached(original, original.parent / "run")]
        return Run(acts(stages[0]), plan, lambda *_: True)

    for plan, _ in explore(make, 1):
        yield plan, stages[0]
        stages[0].close()


ACTS: dict[str, Callable[[Attached], Acts]] = {
    "attach": lambda stage: (stage.attaches, stage.sweeps),
    "pass on": lambda stage: (stage.passes_on, stage.sweeps),
    "move": lambda stage: (stage.moves, stage.sweeps),
    "two sweeps": lambda stage: (stage.attaches, stage.sweeps, stage.sweeps),
}


@pytest.mark.parametrize("name", [one for one in ACTS if FULL or one != "two sweeps"])
def test_no_message_is_left_without_its_attachment(name: str, folder: Path) -> None:
    outcomes = set()
    for plan, stage in swept(with_attachments(folder), ACTS[name]):
        assert not (wrong := stage.missing()), f"{plan}: {wrong}"
        outcomes.add(bool(stage.refused))
        assert hashlib.sha256(b"two").hexdigest() not in os.listdir(stage.root / "blobs"), plan
    assert outcomes == ({True, False} if name == "pass on" else {False})


@pytest.mark.parametrize(
    ("name", "bug"),
    [("pass on", "in_use"), ("attach", "locked_folder"), ("pass on", "reads once"), ("move", "reads once")],
)
def test_the_turns_find_what_the_locks_of_attachments_are_for(
    name: str, bug: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bug == "reads once":
        once = unused._Boxes.read
        monkeypatch.setattr(unused._Boxes, "read", lambda self, *a: once(self, *a) if not self._read else None)
    else:
        monkeypatch.setattr(blobs, bug, lambda *_, **__: nullcontext())
    found = swept(with_attachments(folder), ACTS[name])

    assert any(stage.missing() or (name == "attach" and stage.refused) for _, stage in found)
