"""Stop a bridge's supervisor at every change of the file system, or let that change fail; then start it again.

Whatever happens: each message reaches the command, none does after the command was told ``acked``, what the command
says arrives once, and a request gets its answer. A normal run tries a few points of each action, other ones with each
commit; ``SWARM_CRASH=full`` (``scripts/crash``) tries all.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from swarm.approvals import decide
from swarm.approvals.store import Approvals
from swarm.approvals.values import Answer, Question, Verdict
from swarm.bridges import gateway, place
from swarm.bridges.definition import Definition
from swarm.bridges.gateway import Gateway
from swarm.bridges.ledger import Ledger
from swarm.kit.errors import SwarmError
from swarm.machine import processes
from swarm.messages.office.post import Post
from swarm.testing.lab import Lab
from tests.support import tracer
from tests.support.share import FULL, TURN
from tests.support.tracer import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.crash, pytest.mark.timeout(3600 if FULL else 240)]

ACTIONS = ("kill-tree", "kill-root", "enospc", "eio")
CHUNKS = 8 if FULL else 1
#: How many points of an action are tried in a normal run.
FEW = 6
_REFUSED = 3
_PATIENCE = 20.0

#: Writes down all it is told; acknowledges and answers; ends when something could not be done, as a careful one does.
COMMAND = """
import json, sys
heard = open(sys.argv[1], "a")
def say(**line):
    print(json.dumps({"v": 1, **line}), flush=True)
print("begins", file=heard, flush=True)
say(type="message", id="77", to="developer@fx", body="from outside")
for text in sys.stdin:
    print(text, end="", file=heard, flush=True)
    line = json.loads(text)
    if line["type"] == "message":
        say(type="ack", id=line["id"])
    elif line["type"] == "approval" and "code" in line:
        say(type="answer", id=line["id"], allow=True, code=line["code"])
    elif line["type"] == "error":
        sys.exit(1)
"""


class Bounded(Gateway):
    """Ends when everything is done, or after a time."""

    def run(self) -> None:
        self.until = time.monotonic() + _PATIENCE
        self.done = False
        super().run()

    def _news(self) -> bytes:
        found = super()._news()
        self.done = not found and self._is_done()
        if self.done or time.monotonic() > self.until:
            self.stop()
        return found

    def _is_done(self) -> bool:
        waits = (*self._waiting(), *self._waiting_own(), *decide.look_in(self._state, problems=[]))
        return not waits and bool(self._post.history("developer@fx"))


class Beginning(Bounded):
    """Has nothing to do."""

    def _is_done(self) -> bool:
        return True


class Stage:
    """A repository with messages for the user and the bridge, and a request; copied for each trial."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab(folder)
        self.lab.swarm.create("fx", "developer")
        self.state = self.lab.root / ".swarm"
        self.heard = folder / "heard"
        self.command = (sys.executable, "-I", "-S", str(folder / "command.py"), str(self.heard))
        (folder / "command.py").write_text(COMMAND)
        with closing(self.post().bus):
            Beginning(*self.parts()).run()  # the first start tells no old messages
            post = self.post()
            self.sent = [post.send(to, text)[0].id for to, text in (("user", "a"), ("phone", "b"), ("user", "c"))]
            me = os.getpid()
            asked = Question("", "fx", "developer", "Bash", {"command": "make"}, time.time_ns() // 1_000_000, me)
            start, boot = processes.start_of(me) or 0, processes.boot_id()
            self.asked = Approvals(self.state / "approvals").ask(
                Question(**{**{n: getattr(asked, n) for n in asked.__slots__}, "pid_start": start, "boot": boot})
            )
        self.image = folder / "image"
        shutil.copytree(self.state, self.image, symlinks=True)

    def post(self) -> Post:
        return Post(self.state, environ=self.lab.env)

    def gateway(self) -> Bounded:
        return Bounded(*self.parts())

    def parts(self) -> Any:
        definition = Definition("phone", self.command, self.state, may=("approve",))
        return definition, self.state, self.post(), self.lab.env, self.answer

    def answer(self, question: str, given: Answer) -> object:
        def nowhere(_question: Question) -> Any:
            raise AssertionError

        return decide.answer(Approvals(self.state / "approvals"), question, given, nowhere)

    def reset(self) -> None:
        shutil.rmtree(self.state)
        shutil.copytree(self.image, self.state, symlinks=True)
        self.heard.unlink(missing_ok=True)

    def run(self, at: int | None = None, name: str = "") -> tracer.Outcome:
        root = str(self.state)

        def target() -> int:
            try:
                self.gateway().run()
            except (SwarmError, OSError):
                return _REFUSED
            return 0

        scope = lambda point: point.path.startswith(root)  # noqa: E731
        return tracer.trace(target, at=at, action=Action(name) if at is not None else None, scope=scope, timeout=60)

    def trial(self, at: int, name: str) -> tuple[tracer.Outcome, list[str]]:
        """Run with one fault, then without one; return what is not as it must be."""
        self.reset()
        outcome = self.run(at, name)
        wrong = []
        if outcome.timed_out or outcome.exit_code not in (0, _REFUSED, None):
            wrong.append(f"it hung or broke: {outcome.exit_code}")
        again = self.gateway()
        again.run()
        if not again.done:
            wrong.append("it does not come to an end")
        return outcome, [*wrong, *self.wrong()]

    def wrong(self) -> Iterator[str]:
        lines = [json.loads(one) for one in self.heard.read_text().splitlines() if one != "begins"]
        for name in self.sent:
            told = [n for n, one in enumerate(lines) if (one["type"], one["id"]) == ("message", name)]
            ends = [n for n, one in enumerate(lines) if (one["type"], one["id"]) == ("acked", name)]
            if not told:
                yield f"{name} never came"
            if ends and told[-1] > ends[0]:
                yield f"{name} came again after it was acknowledged"
        with closing(self.post().bus):
            ledger = Ledger(self.state / "bridges/phone" / place.LEDGER)
            left = [one.message.body for one in self.post().history("user") if not ledger.is_acked(one)]
            left += [one.message.body for one in self.post().inbox("bridge.phone")]
            dead = self.post().dead("bridge.phone")
            arrived = [one.message.body for one in self.post().history("developer@fx")]
        if left or dead or arrived != ["from outside"]:
            yield f"not acknowledged: {left}, dead: {dead}, arrived: {arrived}"
        given = Approvals(self.state / "approvals").answer_of(self.asked.id)
        if given is None or (given.verdict, given.by) != (Verdict.ALLOW, "bridge:phone"):
            yield f"the answer is {given}"
        temporary = [path.name for path in (self.state / "bridges").rglob("*.tmp")]
        if temporary:
            yield f"left: {temporary}"


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    reason = tracer.why_unsupported()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the crash suite must run in CI: {reason}")
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gateway, "_LOOK_EVERY", 0.05)
        patch.setattr(gateway, "_FIRST_PAUSE", 0.1)
        patch.setattr(gateway, "_LONGEST_PAUSE", 0.5)
        yield Stage(tmp_path_factory.mktemp("bridge").resolve())


@pytest.fixture(scope="module")
def count(stage: Stage) -> int:
    """Return how many points a run without a fault has."""
    stage.reset()
    outcome = stage.run()
    assert outcome.exit_code == 0, outcome
    assert list(stage.wrong()) == []
    return len(outcome.points)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("name", ACTIONS)
def test_nothing_is_lost_and_nothing_comes_twice(
    stage: Stage, count: int, name: str, chunk: int, record_property: Callable[[str, object], None]
) -> None:
    stride = CHUNKS if FULL else max(1, count // FEW)
    first = 1 + chunk if FULL else 1 + (7 * ACTIONS.index(name) + TURN) % stride
    points = range(first, count + 1, stride)
    began, fired, wrong = time.monotonic(), 0, []
    for at in points:
        outcome, problems = stage.trial(at, name)
        fired += outcome.fired
        where = outcome.points[at - 1] if len(outcome.points) >= at else None
        wrong += [f"{name} at {at} of {count} ({where}): {problem}" for problem in problems]

    kinds = {"kills": "kill" in name, "signals": False, "faults": "kill" not in name}
    tally = {"scenario": "bridge", "action": name, "points": count, "trials": len(points)}
    tally |= {kind: fired if so else 0 for kind, so in kinds.items()}
    tally |= {"not_reached": len(points) - fired, "ended": {}, "violations": len(wrong), "slowest_recovery_ms": 0}
    record_property("crash", {**tally, "found": wrong[:20], "seconds": time.monotonic() - began})
    assert not wrong, f"{len(wrong)} violations:\n" + "\n".join(wrong[:20])
