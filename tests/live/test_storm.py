"""A storm of random changes: at rest the model is what a fresh status says, for every reader.

``SWARM_LIVE_STORM=N`` makes N rounds of it instead of one, each with changes of its own.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from swarm import SwarmError
from swarm.approvals.data import approval_data
from swarm.eventlog import changes
from swarm.live.values import LOST
from swarm.machine import inotify
from swarm.machine.run_folder import program_facts
from swarm.sessions.data import table
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm import Change, Live, SessionStatus, Snapshot
    from swarm.testing.panes import PaneLab

ROUNDS = int(os.environ.get("SWARM_LIVE_STORM", "1"))
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300 + 120 * ROUNDS)]
_CHANGES = 40
Table = dict[tuple[str, str], Any]


def whole(snapshot: Snapshot) -> Table:
    """Return a snapshot as one table."""
    found: Table = {**table(snapshot.sessions)}
    found |= {("approval", one.question.id): approval_data(one) for one in snapshot.approvals}
    return found | {("operation", name): dict(one) for name, one in snapshot.operations.items()}


class Reader(threading.Thread):
    """A reader that begins with a snapshot and knows the rest from changes alone."""

    def __init__(self, live: Live, *, slow: bool) -> None:
        super().__init__(daemon=True)
        self.live = live
        self.go = threading.Event()  # a slow one begins only now
        if not slow:
            self.go.set()
        self.revision = -1
        self.table: Table = {}
        self.holes: list[tuple[int, Change]] = []
        self.lost = 0
        self._begin()

    def _begin(self) -> None:
        snapshot = self.live.snapshot()
        self.table, self.revision = whole(snapshot), snapshot.revision

    def run(self) -> None:
        self.go.wait()
        while not self.live.is_closed:
            for change in self.live.changes(after=self.revision):
                if change.kind == LOST:
                    self.lost += 1
                    self._begin()
                    break
                if change.revision != self.revision + 1:
                    self.holes.append((self.revision, change))
                changes.apply(self.table, change.kind, change.subject, change.after)
                self.revision = change.revision


class Storm:
    """Does one random thing after the other."""

    def __init__(self, lab: PaneLab, seed: int) -> None:
        self.lab = lab
        self.random = random.Random(seed)
        self.made = 0

    def rage(self, times: int) -> None:
        kinds: list[Callable[[], object]] = [
            *[self.say] * 10,
            *[self.send] * 4,
            *[self.take] * 3,
            *[self.commit] * 3,
            *(self.kill, self.stop, self.resume, self.create, self.cleanup),
        ]
        for _ in range(times):
            try:
                self.random.choice(kinds)()
            except (SwarmError, OSError):  # of an agent that is gone
                continue

    def one(self) -> tuple[str, str]:
        pairs = [(session.name, agent.name) for session in self.lab.swarm.sessions() for agent in session.agents]
        return self.random.choice(pairs)

    def say(self) -> None:
        session, agent = self.one()
        state = self.random.choice(["working", "idle", "waiting"])
        program_facts.write_state(self.lab.run(agent, session), state, f"{self.random.random()}")  # type: ignore[arg-type]

    def send(self) -> None:
        session, agent = self.one()
        self.lab.swarm.send(f"{agent}@{session}", "a message")

    def take(self) -> None:
        session, agent = self.one()
        taken = self.lab.swarm.messages.take(f"{agent}@{session}")
        if taken is not None and self.random.random() < 0.7:
            self.lab.swarm.messages.ack([one.id for one in taken.messages], f"{agent}@{session}")

    def commit(self) -> None:
        session, agent = self.one()
        tree = self.lab.swarm.worktrees.path(agent, session)
        (tree / "storm.txt").write_text(f"{self.random.random()}\n")
        if self.random.random() < 0.7:
            self.lab.git("-C", str(tree), "add", "-A")
            self.lab.git("-C", str(tree), "commit", "-qm", "storm")

    def kill(self) -> None:
        session, agent = self.one()
        if pid := self.lab.one(agent, session).pid:
            os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        session, agent = self.one()
        self.lab.swarm.stop([session], agent=agent)

    def resume(self) -> None:
        self.lab.swarm.resume(["fx"])

    def create(self) -> None:
        self.made += 1
        self.lab.swarm.create(f"s{self.made}-{self.random.randrange(10**6)}", "architect")

    def cleanup(self) -> None:
        others = [one.name for one in self.lab.swarm.sessions() if one.name != "fx"]
        if others:
            self.lab.swarm.cleanup([self.random.choice(others)], force=True)


def facts(found: tuple[SessionStatus, ...]) -> Table:
    """Return what must be the same at rest: all but who said so."""
    return {
        key: {name: value for name, value in fields.items() if name != "evidence"}
        for key, fields in table(found).items()
    }


@pytest.mark.parametrize("told", [True, False], ids=["inotify", "looking"])
def test_at_rest_the_model_is_a_fresh_status_for_every_reader(
    panes: PaneLab, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    if not told:
        monkeypatch.setattr(inotify, "begin", lambda: -1)
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer:3")
    panes.all_until("idle")
    with panes.swarm.live(git=1.0, tell=True) as live:
        readers = [Reader(live, slow=number == 0) for number in range(4)]
        for reader in readers:
            reader.start()
        for _ in range(ROUNDS):
            seed = random.randrange(1 << 32) if ROUNDS > 1 else 17
            Storm(panes, seed).rage(_CHANGES)
            at_rest: list[Table] = []

            def is_right(at_rest: list[Table] = at_rest) -> bool:
                live.refresh(60)
                at_rest[:] = [facts(live.snapshot().sessions), facts(panes.swarm.status())]
                return at_rest[0] == at_rest[1]

            try:
                wait_for(is_right, "a model that is a fresh status", 90)
            except AssertionError as error:
                model, fresh = at_rest
                wrong = {
                    key: (model.get(key), fresh.get(key)) for key in model | fresh if model.get(key) != fresh.get(key)
                }
                raise AssertionError(f"seed {seed}: {wrong}") from error
            readers[0].go.set()
            for reader in readers:
                wait_for(
                    lambda reader=reader: reader.table == whole(live.snapshot()),  # type: ignore[misc]
                    "a reader that knows all of it",
                    90,
                )
        assert [reader.holes for reader in readers] == [[]] * len(readers)
        assert live.snapshot().revision > 20
