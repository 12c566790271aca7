"""Stop every act of the bus at every change of the file system that it makes, or let that change fail.

A normal run tries half of the points, each commit another half; ``SWARM_CRASH=full`` (``scripts/crash``) tries all.

Afterwards the box is as before the act or as after it, never anything else; if the act had returned
it is as after it; doing the act again always ends there; and what is in the box arrives whole, once
and in order.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus.errors import ClaimLost, MessageNotFound
from swarm.bus.filebus import FileBus  # loaded before the fork
from swarm.bus.message import Message
from swarm.bus.protocol import Keep
from swarm.bus.reader import reader_log
from swarm.kit import files  # noqa: F401  # loaded before the fork
from swarm.kit.errors import SwarmError
from swarm.machine.atomic import is_temporary
from swarm.messages import deadlines
from swarm.supervisor import awaited
from tests.bus.rigs import FakeMachine
from tests.support import tracer
from tests.support.share import FULL, TURN
from tests.support.tracer import Action

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]

DEV, USER, WORK = "dev@s", "user", "queue.work"
_REFUSED = 3


class World:
    """A folder of boxes, and the machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.machine = FakeMachine()
        self.machine.alive[os.getpid()] = 1

    def bus(self) -> FileBus:
        return FileBus(self.root, self.machine, saved=lambda: ())

    def say(self, bus: FileBus, name: str, **more: Any) -> None:
        bus.send(Message(DEV, "user", name, id=name, time_ms=1, **more))

    def take(self, bus: FileBus, limit: int = 1) -> Any:
        return bus.receive(DEV, limit=limit, holder=self.machine.holder())


@dataclass(frozen=True)
class Scene:
    """What is there, and what is done.

    Attributes:
        between: the act is several; it may also stop between them.
    """

    before: Callable[[World, FileBus], None]
    act: Callable[[World, FileBus], None]
    between: bool = False


def _two(world: World, bus: FileBus) -> None:
    world.say(bus, "a")
    world.say(bus, "b")


def _torn(world: World, bus: FileBus) -> None:
    _two(world, bus)
    for lane in ("normal", "reader"):
        with (world.root / "inbox" / "dev-s" / lane / "active.log").open("ab") as file:
            file.write(b'{"schema":1,"id":"torn","from":"us')


def _claimed(world: World, bus: FileBus) -> None:
    _two(world, bus)
    world.take(bus, 2)


def _dying(world: World, bus: FileBus) -> None:
    bus.declare(DEV, generation="g2")
    world.say(bus, "a", generation="g1")
    world.say(bus, "b")


def _dead(world: World, bus: FileBus) -> None:
    _dying(world, bus)
    bus.nack(world.take(bus))


def _dropped(world: World, bus: FileBus) -> None:
    world.say(bus, "a")
    folder = world.root / "inbox" / "dev-s" / "drop"
    (folder / "1.txt").write_text("dropped text")
    os.utime(folder / "1.txt", ns=(5, 5))
    (folder / "2.bin").write_bytes(b"\xff\xfe")


def _settle(what: str) -> Callable[[World, FileBus], None]:
    def act(_: World, bus: FileBus) -> None:
        for claim in bus.claims(DEV):
            getattr(bus, what)(claim)

    return act


def _with(
    module: Any, name: str, value: Any, act: Callable[[World, FileBus], None]
) -> Callable[[World, FileBus], None]:
    def changed(world: World, bus: FileBus) -> None:
        before = getattr(module, name)
        setattr(module, name, value)
        try:
            act(world, bus)
        finally:
            setattr(module, name, before)

    return changed


def _behind(world: World, bus: FileBus) -> None:
    """One task is done, one is taken, one waits for both."""
    for name, after in (("a", ()), ("b", ()), ("c", ("a", "b"))):
        bus.send(Message(WORK, "user", name, id=name, time_ms=1, after=after))
    claim = bus.receive(WORK, limit=2, holder=world.machine.holder(), who="dev@s")
    assert claim is not None
    bus.ack(claim, ("a",), note="done")


def _freed(world: World, bus: FileBus) -> None:
    _behind(world, bus)
    _settle_work("ack")(world, bus)


def _settle_work(what: str, **more: Any) -> Callable[[World, FileBus], None]:
    def act(_: World, bus: FileBus) -> None:
        for claim in bus.claims(WORK):
            getattr(bus, what)(claim, **more)

    return act


def _give_up(world: World, bus: FileBus) -> None:
    """Give up what is taken; whoever looks next tells the sender, if it could not be told before."""
    _settle_work("fail", reason="no way")(world, bus)
    assert bus.receive(WORK, holder=world.machine.holder()) is None


def _take_task(world: World, bus: FileBus) -> None:
    assert bus.receive(WORK, holder=world.machine.holder(), who="dev@s") is not None


def _add_behind(_: World, bus: FileBus) -> None:
    bus.send(Message(WORK, "user", "d", id="d", time_ms=1, after=("c", "a")))


def _roll(world: World, bus: FileBus) -> None:
    box = bus._box("inbox.dev-s")
    box.lanes[2]._roll_at = 10
    world.say(bus, "c")


def _settled(waiting: bool) -> Callable[[World, FileBus], None]:
    """Several parts whose messages are all done, and a dead letter; with or without one that waits."""

    def before(world: World, bus: FileBus) -> None:
        box = bus._box("inbox.dev-s")
        for one in (*box.lanes, box.reader_log.log):
            one._roll_at = 600
        for name in "abcd":
            world.say(bus, name)
            claim = world.take(bus)
            (bus.fail(claim, reason="no way") if name == "b" else bus.ack(claim))
        bus.receive(DEV)  # tells the sender of it
        if waiting:
            world.say(bus, "g")

    return before


def _prune(_: World, bus: FileBus) -> None:
    bus.prune(DEV, Keep(-100 * 365 * 86_400_000))  # the machine's clock is set to long before the files were made


def _attached(world: World, bus: FileBus) -> None:
    """Attachments, old but for one, of messages that wait, are done and are not kept, and of none at all."""
    _settled(waiting=True)(world, bus)
    for name in ("waiting", "done", "sent", "never", "young"):
        artifact = bus.attach(name.encode(), name)
        if name != "young":
            os.utime(world.root / "blobs" / artifact["sha256"], (5, 5))
        if name in ("waiting", "done"):
            bus.send(Message("user" if name == "done" else DEV, "user", name, id=name, artifacts=(artifact,)))
    claim = bus.receive("user", limit=9, holder=world.machine.holder())
    assert claim is not None
    bus.ack(claim)


def _half_attached(world: World, bus: FileBus) -> None:
    """The same, and what a killed copying left."""
    _attached(world, bus)
    half = world.root / "blobs" / f".copy.{'0' * 8}.tmp"
    half.write_text("half")
    os.utime(half, (5, 5))


def _prune_attachments(world: World, bus: FileBus) -> None:
    bus.prune("user", Keep(-100 * 365 * 86_400_000))
    bus.prune_attachments(Keep(0))


def _attach_and_send(world: World, bus: FileBus) -> None:
    """The same content as one that nobody needs just now."""
    artifact = bus.attach(b"sent", "sent")
    bus.send(Message(DEV, "user", "e", id="e", time_ms=1, artifacts=(artifact,)))


def _awaited(world: World, bus: FileBus) -> None:
    """A message whose answer was overdue at once."""
    question = Message(DEV, "user", "q", id="q", time_ms=1, requires_response=True, deadline_ms=1)
    deadlines.note(str(world.root), question, [DEV])
    bus.send(question)
    while any(one.left_ms > 0 for one in awaited.read_all(deadlines.folder_of(str(world.root)))):
        pass


def _tell_overdue(world: World, bus: FileBus) -> None:
    deadlines.notify_senders(bus, str(world.root))


SCENES = {
    "declare": Scene(lambda *_: None, lambda _, bus: bus.declare("new@s", generation="g1"), between=True),
    "send": Scene(_two, lambda w, bus: w.say(bus, "c")),
    "send-first": Scene(lambda *_: None, lambda w, bus: w.say(bus, "c")),
    "send-rolled": Scene(_two, _roll),
    "send-again": Scene(_two, lambda w, bus: w.say(bus, "b")),
    "send-after-torn": Scene(_torn, lambda w, bus: w.say(bus, "c")),
    "take": Scene(_two, lambda w, bus: w.take(bus)),
    "take-after-torn": Scene(_torn, lambda w, bus: w.take(bus)),
    "take-dead": Scene(_dying, lambda w, bus: w.take(bus), between=True),
    "ack": Scene(_claimed, _settle("ack")),
    "ack-snapshot": Scene(_claimed, _with(reader_log, "_SNAPSHOT_EVERY", 1, _settle("ack"))),
    "nack": Scene(_claimed, _settle("nack")),
    "requeue": Scene(_dead, lambda _, bus: bus.requeue(DEV, "a")),
    "task-add": Scene(_behind, _add_behind),
    "task-take": Scene(_freed, _take_task),
    "task-done": Scene(_behind, _settle_work("ack", note="it works")),
    "task-fail": Scene(_behind, _give_up, between=True),
    "prune": Scene(_settled(waiting=True), _prune),
    "prune-all": Scene(_settled(waiting=False), _prune),
    "attach": Scene(_attached, _attach_and_send, between=True),
    "prune-attachments": Scene(_half_attached, _prune_attachments, between=True),
    "overdue": Scene(_awaited, _tell_overdue, between=True),
    "drop": Scene(_dropped, lambda w, bus: w.take(bus, 5), between=True),
}
ACTIONS = ("kill-tree", "enospc", "eio", "enospc+sticky", "eio+sticky")


def seen(world: World) -> Any:
    """Everything a user could see."""
    bus = world.bus()
    found: dict[str, Any] = {}
    for address in (DEV, USER, WORK, "new@s"):
        try:
            waiting = [(one.message.body, one.state, one.attempts) for one in bus.peek(address)]
            dead = [(one.message.body, one.reason) for one in bus.dead(address)]
            kept = [one.message.body for one in bus.history(address)]
            found[address] = (waiting, dead, bus.depth(address)[:3], kept)
        except SwarmError as error:
            found[address] = error.code
    tasks = world.bus().tasks(WORK, settled=True)
    found["tasks"] = [(t.stored.message.id, t.stored.state, t.needs, t.blocked, t.who, t.note) for t in tasks]
    drop = world.root / "inbox" / "dev-s"
    found["attachments"] = attachments(world)
    # Of a file set aside the name holds the inode, and every trial has its own copy.
    found["files"] = [[re.sub("-[0-9a-f]+", "", n) for n in sorted(os.listdir(drop / x))] for x in ("drop", "bad")]
    return found


def attachments(world: World) -> list[str]:
    """Return those that there are; every message that is kept must have what it refers to."""
    bus = world.bus()
    for address in (DEV, USER):
        for one in bus.history(address):
            for artifact in one.message.artifacts:
                bus.attachment(artifact)
    there = sorted((world.root / "blobs").iterdir()) if (world.root / "blobs").is_dir() else []
    return [path.read_text() for path in there if not path.name.startswith(".")]


class Stage:
    """One scene, set up once and copied for each trial."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self.scene = scene
        self.original = World(folder / "original")
        self.world = World(folder / "trial")
        with_boxes = self.original.bus()
        for address in (DEV, USER, WORK):
            with_boxes.declare(address)
        scene.before(self.original, with_boxes)
        self.reset()
        self.before = seen(self.world)
        outcome = self.run(None, None)
        assert outcome.exit_code == 0
        self.points = [(p.syscall, p.path) for p in outcome.points]
        self.after = seen(self.world)
        self.arrives = self.arriving()
        assert sorted(self.arrives) == sorted({*self.arrives}), "more than once"

    def arriving(self) -> list[str]:
        """Take and acknowledge all there is, and one more."""
        self.world.machine.pass_time(10_000)
        bus = self.world.bus()
        bus.send(Message(DEV, "user", "last"))
        got = []
        while claim := self.world.take(bus):
            got += [m.body for m in claim.messages]
            bus.ack(claim)
        self.world.machine.pass_time(-10_000)
        return got

    def reset(self) -> None:
        shutil.rmtree(self.world.root, ignore_errors=True)
        # Hard links would be changed along; moves keep the inodes of dropped files, copies need not.
        shutil.copytree(self.original.root, self.world.root, copy_function=shutil.copy2)

    def run(self, at: int | None, action: Action | None, *, sticky: bool = False) -> tracer.Outcome:
        root = str(self.world.root)

        def target() -> int:
            try:
                self.scene.act(self.world, self.world.bus())
            except SwarmError:
                return _REFUSED
            return 0

        return tracer.trace(target, at=at, action=action, sticky=sticky, scope=lambda p: p.path.startswith(root))

    def trial(self, at: int, name: str) -> str:
        """Do it with one fault; return what is wrong afterwards."""
        self.reset()
        action, _, sticky = name.partition("+")
        outcome = self.run(at, Action(action), sticky=bool(sticky))
        if not outcome.fired:
            return f"{at}: never reached"
        if outcome.exit_code not in (0, _REFUSED, None):
            return f"{at} {self.points[at - 1]}: ended with {outcome.exit_code}"
        now = seen(self.world)
        allowed = [self.after] if outcome.exit_code == 0 else [self.before, self.after]
        if not self.scene.between and now not in allowed:
            return f"{at} {self.points[at - 1]} exit {outcome.exit_code}: {now}"
        syscall = self.points[at - 1][0]
        # A snapshot is allowed to fail, and so is a notice: it is sent later.
        may_fail = "reader" in self.points[at - 1][1] or "inbox/user" in self.points[at - 1][1]
        if action == "eio" and syscall in ("fsync", "fdatasync") and outcome.exit_code == 0 and not may_fail:
            return f"{at} {self.points[at - 1]}: a failed sync was called good"
        return self.finish(at)

    def finish(self, at: int) -> str:
        """Do it again: it ends as without a fault; then everything arrives once and in order."""
        try:
            if seen(self.world) != self.after:
                self.scene.act(self.world, self.world.bus())
        except (ClaimLost, MessageNotFound):
            pass
        now = seen(self.world)
        if now != self.after:
            return f"{at} {self.points[at - 1]}: done again it is {now} instead of {self.after}"
        left = [p.name for p in self.world.root.rglob("*.tmp") if not is_temporary(p.name, "reader.state")]
        got = self.arriving()
        if got != self.arrives:
            return f"{at} {self.points[at - 1]}: {got} arrived instead of {self.arrives}"
        return f"{at}: left {left}" if len(left) > 1 else ""


@pytest.fixture(scope="module", autouse=True)
def _traced() -> None:
    reason = tracer.why_unsupported()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the crash suite must run in CI: {reason}")
        pytest.skip(reason)


@pytest.mark.parametrize("name", list(SCENES))
def test_an_act_is_done_or_not_done_at_every_point(name: str, tmp_path: Path) -> None:
    stage = Stage(SCENES[name], tmp_path.resolve())
    assert stage.points
    step = 1 if FULL else 2
    wrong = [
        f"{action}: {found}"
        for number, action in enumerate(ACTIONS)
        for at in range(1 + (TURN + number) % step, len(stage.points) + 1, step)
        if (found := stage.trial(at, action))
    ]

    assert not wrong, f"{len(wrong)} of {len(stage.points)} points:\n" + "\n".join(wrong[:12])
