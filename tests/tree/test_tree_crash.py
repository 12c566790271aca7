"""Stop a spawn, a completion, and the stop and the merge of a tree at every change of the file system.

Whatever happens: a child is there and runs, or nothing of it is left, also of what it draws on its parent's budget; a
task has one completion and no other; a tree that was being stopped is stopped; each subtree is merged whole or not at
all, and removed only after that.  The normal run tries a few points of each, other ones with each commit;
``SWARM_CRASH=full`` tries all.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents import endings
from swarm.agents.budgets import drawn as budgets
from swarm.machine.run_folder import drawn, runfiles
from swarm.testing.panes import states
from swarm.testing.terminal import wait_for
from tests.agents.test_start_crash import ACTIONS, CHUNKS, ONLY, PROGRAM, Stage, Trial, ran, running, stage
from tests.support.share import FULL, TURN
from tests.support.tree import as_agent, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swarm import Swarm
    from swarm.testing.panes import PaneLab
    from tests.support.tracer import Outcome

__all__ = ["stage"]  # the fixture
pytestmark = [pytest.mark.crash, pytest.mark.timeout(7200 if FULL else 300)]

#: How many points of each are tried in a normal run, by action.
FEW = {
    "spawn": (6, 3, 3, 3, 2),
    "worker": (4, 2, 2, 2, 2),
    "budget": (4, 2, 2, 2, 2),
    "notify": (6, 3, 2, 3, 2),
    "stop_tree": (3, 2, 2, 2, 1),
    "merge_tree": (6, 3, 3, 3, 2),
}
TREE = ".swarm/worktrees/fx"


def spawn(swarm: Swarm) -> object:
    return swarm.tree.spawn_subtree("do it", "fx", command=PROGRAM)


def work(swarm: Swarm) -> object:
    return swarm.tree.spawn_worker("fx", "do it", command=PROGRAM)


#: A program whose tokens are counted; it is also asked whether it takes its settings.
COUNTED = """#!/bin/sh
[ "$3" = doctor ] && exit 0
echo "$SWARM_ACTOR" >> "$HOME/ran"
exec sleep 600
"""


def limited(lab: PaneLab) -> None:
    """Have a lead run that may use up 1,000 tokens."""
    lab.env["SWARM_TREE_MIN_TOKENS"] = "50"
    lab.program("claude", COUNTED)
    for name, limits in (("boss", {"tokens": 1000}), ("worker", {})):
        body = {"name": name, "description": "x", "instructions": "You work.", "limits": limits}
        lab.write({f"roles/{name}.yaml": json.dumps(body)})
    lab.start("boss", "top", program="claude", task="")
    wait_for(lambda: ran(lab) == ["boss"], "the lead at work")


def draw(lab: PaneLab) -> Any:
    """Spawn a worker that gets half of what its lead has."""
    return as_agent(lab, "boss", "top").tree.spawn_worker("fx", "do it", program="claude")


def up(lab: PaneLab) -> None:
    """Have a subtree run."""
    spawn(lab.swarm)
    wait_for(lambda: ran(lab) == ["lead"], "the lead at work")


def grown(lab: PaneLab) -> None:
    """Have a subtree run with a worker in it."""
    up(lab)
    as_agent(lab, "lead", "fx").tree.spawn_worker("w", "do it", command=PROGRAM)
    wait_for(lambda: ran(lab) == ["lead", "w"], "both at work")


def done(lab: PaneLab) -> None:
    """Have a subtree whose work is committed and reported."""
    up(lab)
    lab.write({"work.md": "work"}, lab.root / TREE)
    lab.commit("work", cwd=lab.root / TREE)
    notify(lab)


def notify(lab: PaneLab) -> object:
    return as_agent(lab, "lead", "fx").tree.notify_parent("success", "done")


VERBS: dict[str, tuple[Callable[[PaneLab], None], Callable[[Swarm], object]]] = {
    "spawn": (lambda _lab: None, spawn),
    "worker": (lambda _lab: None, work),
    "budget": (limited, lambda swarm: swarm),
    "notify": (up, lambda swarm: swarm),
    "stop_tree": (grown, lambda swarm: swarm.tree.stop("fx")),
    "merge_tree": (done, lambda swarm: swarm.tree.merge("fx")),
}


class TreeTrial(Trial):
    """One command about a tree, one fault, the next command, and a look at everything."""

    def __init__(self, stage: Stage, verb: str, action: str) -> None:
        self.stage, self.verb, self.action = stage, verb, action
        self.prepare, self.act = VERBS[verb]
        self.lab = stage.put_up()
        self.prepare(self.lab)
        if own := {"notify": notify, "budget": draw}.get(verb):
            lab = self.lab
            self.act = lambda _swarm: own(lab)  # as the agent
        self.before = self.look()

    def _after_spawn(self, outcome: Outcome, words: str) -> Iterator[str]:
        yield from self._after_child(outcome, words, "lead")

    def _after_worker(self, outcome: Outcome, words: str) -> Iterator[str]:
        yield from self._after_child(outcome, words, "fx")

    def _after_child(self, outcome: Outcome, words: str, agent: str) -> Iterator[str]:
        if self.lab.swarm.sessions():
            wait_for(lambda: ran(self.lab) == [agent], f"it has run once, not {ran(self.lab)}")
            if not self.lab.one(agent, "fx").status.runs or self.lab.panes() != [f"fx {agent}"]:
                yield f"it does not run: {self.lab.swarm.status()}"
            if not self.act(self.lab.swarm).existing:  # type: ignore[attr-defined]
                yield "the same spawn again made another one"
            self.lab.swarm.cleanup(["fx"], force=True)
            self.lab.swarm.recover()
        elif outcome.exit_code == 0:
            yield f"it reported success, and there is nothing: {words}"
        yield from self._nothing({"exclude"} if self.lab.swarm.operations()[-1:] else set())
        if self.lab.panes() or (self.lab.root / TREE).exists():
            yield f"left over: {self.lab.panes()}"

    def _after_budget(self, outcome: Outcome, words: str) -> Iterator[str]:
        lab, name = self.lab, "top-fx"
        run = str(lab.run("boss", "top"))
        if name in [one.name for one in lab.swarm.sessions()]:
            wait_for(lambda: ran(lab) == ["boss", "fx"], f"each has run once, not {ran(lab)}")
            held = (runfiles.read(str(lab.run("fx", name)), runfiles.LIMITS) or {}).get("tokens")
            if (held, drawn.total(run)["tokens"]) != (500, 500):
                yield f"it may use up {held}, and {drawn.total(run)} is drawn"
            if not draw(lab).existing:
                yield "the same spawn again made another one"
            lab.swarm.cleanup([name], force=True)
            lab.swarm.recover()
        elif outcome.exit_code == 0:
            yield f"it reported success, and there is nothing: {words}"
        if drawn.total(run)["tokens"]:
            yield f"drawn for nobody: {drawn.total(run)}"
        wait_for(lambda: lab.panes() == ["top boss"], f"its pane to go: {lab.panes()}")
        after = self.look()
        for key, value in self.before.items():
            if key != "exclude" and after[key] != value:
                yield f"{key}: {value!r} became {after[key]!r}"
        if draw(lab).existing:
            yield "the next spawn made nothing"

    def _after_notify(self, outcome: Outcome, words: str) -> Iterator[str]:
        endings.report(self.lab.swarm._world)
        first = told(self.lab, "user")
        if outcome.exit_code == 0 and len(first) != 1:
            yield f"it reported success, and {first} was told: {words}"
        notify(self.lab)
        if told(self.lab, "user") != [("WorkerComplete", "lead@fx", "success")]:
            yield f"after it was said again: {told(self.lab, 'user')}"

    def _after_stop_tree(self, outcome: Outcome, words: str) -> Iterator[str]:
        if outcome.exit_code == 0:
            wait_for(lambda: not running(self.lab), "nothing that runs")
        self.lab.swarm.tree.stop("fx")
        wait_for(lambda: not running(self.lab), f"nothing that runs: {running(self.lab)}")
        if set(states(self.lab.swarm).values()) != {"stopped"}:
            yield f"{states(self.lab.swarm)} after {words}"
        for owner, who in (("user", "lead@fx"), ("lead-fx", "w@fx-w")):
            found = [one for one in told(self.lab, owner) if one[0] == "WorkerComplete"]
            if found != [("WorkerComplete", who, "stopped")]:
                yield f"{owner} was told {found}"

    def _after_merge_tree(self, outcome: Outcome, words: str) -> Iterator[str]:
        landed, there = (self.lab.root / "work.md").exists(), bool(self.lab.swarm.sessions())
        if not there and not landed:
            yield f"it was removed before it was merged: {words}"
        if outcome.exit_code == 0 and there and not outcome.fired:
            yield f"it reported success, and the subtree is there: {words}"
        if there:
            (node,) = self.lab.swarm.tree.merge("fx")
            if not (node.merged and node.cleaned):
                yield f"it cannot be done again: {node}"
        self.lab.swarm.recover()
        if (self.lab.root / "work.md").read_text() != "work" or self.lab.git("status", "--porcelain", "-uno"):
            yield f"the main checkout is {self.lab.git('status', '--porcelain')}"
        wait_for(lambda: not running(self.lab), f"nothing that runs: {running(self.lab)}")


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    return {}


def points_of(stage: Stage, verb: str) -> int:
    """Return how many points a run without a fault has."""
    trial = TreeTrial(stage, verb, "kill-tree")
    try:
        outcome, words = trial.run(None)
        assert outcome.exit_code == 0, words
        problems = list(trial.judge(outcome, words))
        assert not problems, problems
    finally:
        stage.sweep(trial.lab)
    return len(outcome.points)


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_tree_is_whole_whatever_stops_a_command(
    stage: Stage,
    counts: dict[str, int],
    verb: str,
    action: str,
    chunk: int,
    record_property: Callable[[str, object], None],
) -> None:
    """TREE-24, and the same for completions, stops and merges."""
    if verb not in counts:
        counts[verb] = points_of(stage, verb)
    count = counts[verb]
    stride = CHUNKS if FULL else max(1, count // FEW[verb][ACTIONS.index(action)])
    first = 1 + chunk if FULL else 1 + (7 * (1 + ACTIONS.index(action)) + TURN) % stride
    points = [ONLY] if ONLY else list(range(first, count + 1, stride))
    began, fired = time.monotonic(), 0
    violations: list[str] = []
    for at in points:
        trial = TreeTrial(stage, verb, action)
        try:
            outcome, words = trial.run(at)
            fired += outcome.fired
            point: Any = outcome.points[at - 1] if len(outcome.points) >= at else None
            where = f"{verb}, {action} at {at} of {count} ({point})"
            violations += [f"{where}: {problem}" for problem in trial.judge(outcome, words)]
        finally:
            stage.sweep(trial.lab)
    kinds = {"kills": "kill" in action, "signals": "term" in action, "faults": action in ("enospc", "eio")}
    tally: dict[str, Any] = {"scenario": f"tree-{verb}", "action": action, "points": count, "trials": len(points)}
    tally |= {name: fired if so else 0 for name, so in kinds.items()}
    tally |= {"not_reached": len(points) - fired, "ended": {}, "violations": len(violations), "slowest_recovery_ms": 0}
    record_property("crash", {**tally, "found": violations[:20], "seconds": time.monotonic() - began})
    assert not violations, f"{len(violations)} violations:\n" + "\n".join(violations[:20])


# --- planted bugs -----------------------------------------------------------------------------------


def budget_of_an_undone_start_stays_drawn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(budgets, "take_back", lambda *_: None)


def nothing_is_drawn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(budgets, "draw", lambda _world, _parent, asked, _operation: asked.limits)


#: Each with the parts of the command at which it is looked for, one after the other; 1: the last point.
BUGS: dict[Callable[[pytest.MonkeyPatch], None], tuple[float, ...]] = {
    budget_of_an_undone_start_stays_drawn: (0.6, 0.7, 0.5, 0.8),
    nothing_is_drawn: (1.0,),
}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_of_the_budgets_is_found(
    stage: Stage, counts: dict[str, int], monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """What stays drawn for nobody, or is not drawn at all: a trial says so.

    A rest that is not given back cannot be planted here: the agent's supervisor, another process, gives it back too.
    """
    if "budget" not in counts:
        counts["budget"] = points_of(stage, "budget")
    bug(monkeypatch)
    found: list[str] = []
    for part in BUGS[bug]:
        trial = TreeTrial(stage, "budget", "kill-tree")
        try:
            found += trial.judge(*trial.run(max(1, int(counts["budget"] * part))))
        finally:
            stage.sweep(trial.lab)
        if found:
            break
    assert any("drawn" in one for one in found), found
