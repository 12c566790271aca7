"""Stop start, a pod's launch, resume, stop and cleanup at every change of the file system, with agents in real panes.

Whatever happens: after the next command there is the whole running set or nothing of it, no agent has
run before its set was committed, and other people's panes are as they were.  The normal run tries a few
points of each, other ones with each commit; ``SWARM_CRASH=full`` tries all.  ``SWARM_CRASH_AT=37`` with ``-k`` repeats
one point, and ``SWARM_CRASH_TURN`` the points of a commit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm, SwarmError
from swarm.machine.sockets.status_client import Asking
from swarm.project.swarm_dir import dirs
from swarm.testing.lab import environment
from swarm.testing.panes import PaneLab, TmuxServer, states
from swarm.testing.terminal import wait_for
from tests.support.crash import Bench, Child
from tests.support.share import FULL, TURN
from tests.support.tracer import Action, Outcome, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.crash, pytest.mark.timeout(7200 if FULL else 300)]

AGENTS = ("researcher", "developer")
#: Tells that it has run, and by which start.
PROGRAM = ("sh", "-c", 'echo "$SWARM_ACTOR" >> "$HOME/ran"; exec sleep 600')
ACTIONS = ("kill-tree", "kill-root", "term-root", "enospc", "eio")
ONLY = int(os.environ.get("SWARM_CRASH_AT", "0"))
CHUNKS = 8 if FULL else 1
#: How many points of each are tried in a normal run, by action.
FEW = {
    "start": (8, 4, 4, 4, 3),
    "resume": (4, 2, 2, 3, 2),
    "stop": (3, 1, 1, 2, 1),
    "cleanup": (4, 2, 2, 2, 2),
    "run": (4, 2, 2, 2, 2),
    "pod": (6, 3, 3, 3, 2),
    "forget": (4, 2, 2, 2, 2),
}


class Stage:
    """A repository at a fixed place and a tmux server with the user's own panes in it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        for left in (bench.site, bench.top / "made"):  # by the scenarios of another module
            shutil.rmtree(left, ignore_errors=True)
        bench.site.mkdir(parents=True)
        (bench.site / "tmp").mkdir()
        self.server = TmuxServer({**environment(bench.site / "home"), "TMPDIR": str(bench.site / "tmp")})
        self.server("new-session", "-d", "-c", "/", "-s", "mine", "sleep", "6000")
        self.server("new-session", "-d", "-c", "/", "-s", "swarm-other", "sleep", "6000")
        self._fresh()
        self.theirs = self.panes_of_others()

    def _fresh(self) -> None:
        lab = PaneLab.__new__(PaneLab)
        lab.tmux = self.server
        folder = self.bench.top / "made"
        made = PaneLab(folder, share=lab)
        os.rename(made.root, self.bench.site / "my project")
        self.bench.save("panes")

    def put_up(self) -> PaneLab:
        """Give the repository as it was in the beginning."""
        base = self.bench.load("panes")
        lab = PaneLab.__new__(PaneLab)
        lab.root, lab.tmux = base.root, self.server
        lab.env = {
            **base.env,
            "SWARM_TMUX_SOCKET": self.server.socket,
            "SWARM_AGENTS_STOP_GRACE": "1",
            "SWARM_WORKTREES_DURABLE": "false",
        }
        return lab

    def panes_of_others(self) -> list[str]:
        """Return what is not swarm's."""
        rows = self.server.rows("#{@swarm_mark}|#{pane_id} #{pane_pid} #{window_id} #{session_name} #{pane_dead}")
        return [row for row in rows if row.startswith("|")]

    def sweep(self, lab: PaneLab) -> None:
        """Take away what a trial left, whether it was right or not."""
        for row in self.server.rows("#{@swarm_mark}|#{pane_id}"):
            if not row.startswith("|"):
                self.server("kill-pane", "-t", row.split("|")[1], check=False)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not running(lab), "nothing that runs", 3)
        for pid in running(lab):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """End the server."""
        self.server.kill()
        self.server.remove()


def running(lab: PaneLab) -> dict[int, str]:
    """Return launchers, programs and what only shows states."""
    found = lab.processes()
    return {p: words for p, words in found.items() if not words.startswith("tmux") and words != "sleep 6000"}


def dead_sockets(lab: PaneLab) -> list[str]:
    """Return the agents' sockets on which nobody answers (SESS-14)."""
    state = lab.root / ".swarm"
    if not os.path.isdir(state / "sockets"):
        return []
    folder = dirs.sockets_dir(state, environ=lab.env)
    paths = {path.name: str(folder / path.name) for path in (state / "sockets").iterdir()}
    return [name for name, heard in Asking(paths, within=5).answers().items() if heard.stale]


@pytest.fixture(scope="module")
def stage(bench: Bench) -> Iterator[Stage]:
    made = Stage(bench)
    try:
        yield made
    finally:
        made.close()


# --- what is stopped ------------------------------------------------------------------------------


def start(swarm: Swarm) -> object:
    return swarm.start("fx", list(AGENTS), command=PROGRAM, task="the goal")


def up(lab: PaneLab) -> None:
    """Have the session run."""
    start(lab.swarm)
    wait_for(lambda: ran(lab) == sorted(AGENTS), "both at work")


def ended(lab: PaneLab) -> None:
    """Have it run and be stopped."""
    up(lab)
    lab.swarm.stop(["fx"])
    Path(lab.env["HOME"], "ran").unlink()


def ran(lab: PaneLab) -> list[str]:
    """Return who has run since it was last asked to be forgotten."""
    file = Path(lab.env["HOME"], "ran")
    return sorted(file.read_text().split()) if file.exists() else []


def run(swarm: Swarm) -> object:
    """Run a command in the main checkout, where it has no worktree of its own."""
    return swarm.run(name="fx", command=PROGRAM)


def shared(lab: PaneLab) -> None:
    """Have that run, with work of the user's beside it."""
    run(lab.swarm)
    wait_for(lambda: ran(lab) == ["fx"], "it at work")
    (lab.root / "draft.txt").write_text("the user's")


#: Each key that makes more than `start` does: a role of pods, a count, an override, variables, a held task.
TEMPLATE = """\
pod_name: fx
vars: {goal: {}, more: 0}
env: {TEAM: a}
agents:
  - {name: researcher, role: seeker, task: "${goal}", overrides: {model: small}}
  - {name: developer, role: developer, task: then, after: [researcher], env: {TEAM: b}}
  - {name: extra, role: reviewer, count: "${more}"}
"""


def template(lab: PaneLab) -> None:
    """Have a template, and a role that only pods see."""
    pods = lab.root / ".swarm/pods"
    for name, text in {"templates/team": TEMPLATE, "roles/seeker": "name: seeker\ninstructions: Seek.\n"}.items():
        file = pods / f"{name}.yaml"
        file.parent.mkdir(parents=True, mode=0o700)
        file.write_text(text)
    lab.root.joinpath(".swarm").chmod(0o700)
    lab.root.joinpath(".swarm/.gitignore").write_text("*\n")


def launch(swarm: Swarm) -> object:
    return swarm.pods.launch("team", {"goal": "seek"}, command=PROGRAM)


VERBS: dict[str, tuple[Callable[[PaneLab], None], Callable[[Swarm], object]]] = {
    "start": (lambda _lab: None, start),
    "resume": (ended, lambda swarm: swarm.resume(["fx"])),
    "stop": (up, lambda swarm: swarm.stop(["fx"])),
    "cleanup": (up, lambda swarm: swarm.cleanup(["fx"], force=True)),
    "run": (lambda _lab: None, run),
    "pod": (template, launch),
    "forget": (shared, lambda swarm: swarm.cleanup(["fx"], force=True)),
}


class Trial:
    """One command, one fault, the next command, and a look at everything."""

    def __init__(self, stage: Stage, verb: str, action: str) -> None:
        self.stage, self.verb, self.action = stage, verb, action
        self.prepare, self.act = VERBS[verb]
        self.lab = stage.put_up()
        self.prepare(self.lab)
        self.before = self.look()

    def look(self) -> dict[str, Any]:
        """Return what must not change when nothing is done."""
        record = self.lab.root / ".swarm/sessions/fx/session.json"
        return {
            **self.lab.fingerprint(),
            "record": record.read_bytes() if record.exists() else b"",
            "states": states(self.lab.swarm),
            "run": sorted(str(p) for p in self.lab.root.glob(".swarm/sessions/*/run/*/*launch.json*")),
        }

    def run(self, at: int | None) -> tuple[Outcome, str]:
        """Run the command with the fault at a point; None: without one."""
        child = Child(lambda: self.act(self.lab.swarm))
        action = Action(self.action) if at is not None else None
        outcome = trace(child, at=at, action=action, timeout=40)
        return outcome, child.words()

    def judge(self, outcome: Outcome, words: str) -> Iterator[str]:
        """Say everything that is not as it must be."""
        if outcome.timed_out or outcome.exit_code == 97:
            yield f"it hung or broke: {words}"
        try:
            took = self._recovery()
            if took > 5 and took > 5 + 10 * (idle := self._recovery()):
                yield f"the recovery took {took:.1f} s, one with nothing to do {idle:.1f} s"
            yield from getattr(self, f"_after_{self.verb}")(outcome, words)
        except (SwarmError, AssertionError) as error:
            yield f"{type(error).__name__}: {error}"
        if self.stage.panes_of_others() != self.stage.theirs:
            yield f"other people's panes: {self.stage.theirs} became {self.stage.panes_of_others()}"
        for name in (".swarm/trash", ".swarm/journal"):
            left = [p.name for p in (self.lab.root / name).glob("*") if p.name != "history.jsonl"]
            if left:
                yield f"left in {name}: {left}"
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not dead_sockets(self.lab), "the sockets to answer, or to be gone", 5)
        if dead_sockets(self.lab):
            yield f"nobody listens on {dead_sockets(self.lab)}"

    def _recovery(self) -> float:
        """Recover; return how long it took."""
        began = time.monotonic()
        self.recover()
        return time.monotonic() - began

    def recover(self) -> None:
        """Recover in this process."""
        self.lab.swarm.recover()

    def _after_start(self, outcome: Outcome, words: str) -> Iterator[str]:
        if self.lab.swarm.sessions():
            yield from self._whole()
            self.lab.swarm.cleanup(["fx"], force=True)
            self.lab.swarm.recover()  # until its files are deleted
        elif outcome.exit_code == 0:
            yield f"it reported success, and there is nothing: {words}"
        yield from self._nothing({"exclude"} if "fx" in str(self.lab.swarm.operations()[-1:]) else set())

    def _after_pod(self, outcome: Outcome, words: str) -> Iterator[str]:
        for session in self.lab.swarm.sessions():
            held = {agent.name: agent.after for agent in session.agents}
            if (session.pod, held) != ("fx", {"researcher": (), "developer": ("researcher",)}):
                yield f"the record says {session}"
        if self.lab.swarm.pods.running() and self.lab.swarm.messages.history("developer@fx"):
            yield "the held task was sent"
        yield from self._after_start(outcome, words)

    def _whole(self) -> Iterator[str]:
        wait_for(lambda: ran(self.lab) == sorted(AGENTS), f"each has run once, not {ran(self.lab)}")
        found = self.lab.swarm.status()[0].agents
        if not all(one.status.runs and one.pane and one.pid for one in found):
            yield f"not all run: {found}"
        if self.lab.panes() != ["fx developer", "fx researcher"]:
            yield f"panes: {self.lab.panes()}"
        locks = self.lab.git("worktree", "list", "--porcelain").count("locked swarm: agent ")
        if locks != len(AGENTS):
            yield f"{locks} worktrees are locked"

    def _nothing(self, but: set[str]) -> Iterator[str]:
        wait_for(lambda: not running(self.lab), f"nothing that runs: {running(self.lab)}")
        after = self.look()
        for key, value in self.before.items():
            if key not in but and after[key] != value:
                yield f"{key}: {value!r} became {after[key]!r}"
        if self.verb in ("start", "pod") and self.lab.panes():
            yield f"panes are left: {self.lab.panes()}"
        sessions = list((self.lab.root / ".swarm/sessions").glob("*"))
        if self.verb in ("start", "pod") and sessions:
            yield f"left over: {list((self.lab.root / '.swarm/sessions').rglob('*'))}"

    def _after_resume(self, outcome: Outcome, words: str) -> Iterator[str]:
        if self.lab.swarm.sessions.get("fx").operations[-1:] != self._operation():
            yield from self._whole()
            return
        if outcome.exit_code == 0:
            yield f"it reported success, and nothing runs: {words}"
        yield from self._nothing(set())
        if ran(self.lab):
            yield f"{ran(self.lab)} ran without a commit"
        if len(self.lab.swarm.resume(["fx"]).started) != len(AGENTS):
            yield "it cannot be done again"

    def _operation(self) -> tuple[str, ...]:
        import json

        return tuple(json.loads(self.before["record"])["operations"][-1:])

    def _after_stop(self, outcome: Outcome, words: str) -> Iterator[str]:
        if outcome.exit_code == 0:
            wait_for(lambda: not running(self.lab), "nothing that runs")
        self.lab.swarm.stop(["fx"])
        wait_for(lambda: not running(self.lab), f"nothing that runs: {running(self.lab)}")
        if set(states(self.lab.swarm).values()) != {"stopped"}:
            yield f"{states(self.lab.swarm)} after {words}"
        if "locked" in self.lab.git("worktree", "list", "--porcelain"):
            yield "a worktree stays locked"
        if not all(self.lab.tree(name, "fx").is_dir() for name in AGENTS):
            yield "a worktree is gone"

    def _after_run(self, outcome: Outcome, words: str) -> Iterator[str]:
        if self.lab.swarm.sessions():
            wait_for(lambda: ran(self.lab) == ["fx"], f"it has run once, not {ran(self.lab)}")
            if not self.lab.swarm.status()[0].agents[0].status.runs:
                yield f"it does not run: {self.lab.swarm.status()}"
            self.lab.swarm.cleanup(["fx"], force=True)
        elif outcome.exit_code == 0:
            yield f"it reported success, and there is nothing: {words}"
        yield from self._nothing(set())
        if self.lab.panes():
            yield f"panes are left: {self.lab.panes()}"

    def _after_forget(self, outcome: Outcome, words: str) -> Iterator[str]:
        if self.lab.swarm.sessions():
            if outcome.exit_code == 0:
                yield f"it reported success, and the session is there: {words}"
            self.lab.swarm.cleanup(["fx"], force=True)
        wait_for(lambda: not running(self.lab), f"nothing that runs: {running(self.lab)}")
        after = self.lab.fingerprint()
        yield from (
            f"{key}: {self.before[key]!r} became {value!r}" for key, value in after.items() if self.before[key] != value
        )
        if self.lab.panes():
            yield f"panes are left: {self.lab.panes()}"

    def _after_cleanup(self, outcome: Outcome, words: str) -> Iterator[str]:
        if not self.lab.swarm.sessions():
            wait_for(lambda: not running(self.lab), f"nothing that runs: {running(self.lab)}")
            if self.lab.panes():
                yield f"panes are left: {self.lab.panes()}"
            if list((self.lab.root / ".swarm/sessions").glob("*")) or self.lab.git("branch", "--list", "swarm/*"):
                yield "something is left over"
            return
        if outcome.exit_code == 0:
            yield f"it reported success, and the session is there: {words}"
        if len(self.lab.swarm.sessions.get("fx").agents) != len(AGENTS) or self.lab.panes() != [
            "fx developer",
            "fx researcher",
        ]:
            yield f"half of it is gone: {self.lab.swarm.sessions.get('fx')} {self.lab.panes()}"
        self.lab.swarm.cleanup(["fx"], force=True)
        self.lab.swarm.recover()  # until its files are deleted


class FreshTrial(Trial):
    """The next command is a process of its own, by the command line: it has loaded nothing but what it needs."""

    def recover(self) -> None:
        """Recover in another process."""
        words = [sys.executable, "-m", "swarm", "recover"]
        done = subprocess.run(words, cwd=self.lab.root, env=self.lab.env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("verb", ["start", "resume"])
def test_swarm_recover_in_a_process_of_its_own(stage: Stage, verb: str) -> None:
    trial = FreshTrial(stage, verb, "kill-tree")
    try:
        child = Child(lambda: trial.act(trial.lab.swarm))
        opened = lambda point: "/run/" in point.path and point.path.endswith("launch.json")  # noqa: E731
        outcome = trace(child, at=len(AGENTS), action=Action.KILL_TREE, scope=opened, timeout=40)
        assert outcome.fired
        assert [*trial.lab.root.glob(".swarm/journal/*.json")], "else this test shows nothing"
        problems = list(trial.judge(outcome, child.words()))
        assert not problems, problems
    finally:
        stage.sweep(trial.lab)


def test_a_resume_killed_as_it_writes_for_the_launcher_leaves_the_environment_nowhere(stage: Stage) -> None:
    secret = "a-token-of-the-user-4711"
    trial = Trial(stage, "resume", "kill-tree")
    trial.lab.env["SOME_TOKEN"] = secret
    try:
        child = Child(lambda: trial.act(trial.lab.swarm))
        written = lambda point: point.path.endswith("/launch.json")  # noqa: E731  # its rename
        outcome = trace(child, at=1, action=Action.KILL_TREE, scope=written, timeout=40)
        assert outcome.fired
        assert holding(trial.lab, secret), "else this test shows nothing"

        trial.lab.swarm.recover()

        assert holding(trial.lab, secret) == []
    finally:
        stage.sweep(trial.lab)


@pytest.mark.parametrize("name", ["launch.json", ".launch.json.0123abcd.tmp", "inside/.settings.json.0123abcd.tmp"])
def test_what_was_written_for_a_launcher_that_never_came_goes_with_a_stop(stage: Stage, name: str) -> None:
    trial = Trial(stage, "resume", "kill-tree")
    try:
        left = trial.lab.root / ".swarm/sessions/fx/run/developer" / name
        left.parent.mkdir(exist_ok=True)
        left.write_text('{"env": {"SOME_TOKEN": "secret-4711"}}')

        trial.lab.swarm.stop(["fx"])

        assert not left.exists()
    finally:
        stage.sweep(trial.lab)


def holding(lab: PaneLab, text: str) -> list[Path]:
    """Return the files of swarm's own with a text in them."""
    files = [path for path in (lab.root / ".swarm").rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


def points_of(stage: Stage, verb: str) -> int:
    """Return how many points a run without a fault has."""
    trial = Trial(stage, verb, "kill-tree")
    try:
        outcome, words = trial.run(None)
        assert outcome.exit_code == 0, words
        problems = list(trial.judge(outcome, words))
        assert not problems, problems
    finally:
        stage.sweep(trial.lab)
    return len(outcome.points)


@pytest.fixture(scope="module")
def counts() -> dict[str, int]:
    return {}


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("verb", VERBS)
def test_the_whole_running_set_or_nothing(
    stage: Stage,
    counts: dict[str, int],
    verb: str,
    action: str,
    chunk: int,
    record_property: Callable[[str, object], None],
) -> None:
    if verb not in counts:
        counts[verb] = points_of(stage, verb)
    count = counts[verb]
    few = FEW[verb][ACTIONS.index(action)]
    stride = CHUNKS if FULL else max(1, count // few)
    first = 1 + chunk if FULL else 1 + (7 * (1 + ACTIONS.index(action)) + TURN) % stride
    points = [ONLY] if ONLY else list(range(first, count + 1, stride))
    began, violations, fired = time.monotonic(), [], 0
    for at in points:
        trial = Trial(stage, verb, action)
        try:
            outcome, words = trial.run(at)
            fired += outcome.fired
            point = outcome.points[at - 1] if len(outcome.points) >= at else None
            where = f"{verb}, {action} at {at} of {count} ({point})"
            violations += [f"{where}: {problem}" for problem in trial.judge(outcome, words)]
        finally:
            stage.sweep(trial.lab)
    kinds = {"kills": "kill" in action, "signals": "term" in action, "faults": action in ("enospc", "eio")}
    facts = {name: fired if so else 0 for name, so in kinds.items()}
    tally = {"scenario": f"panes-{verb}", "action": action, "points": count, "trials": len(points), **facts}
    tally |= {"not_reached": len(points) - fired, "ended": {}, "violations": len(violations), "slowest_recovery_ms": 0}
    tally |= {"found": violations[:20]}
    record_property("crash", {**tally, "seconds": time.monotonic() - began})
    assert not violations, f"{len(violations)} violations:\n" + "\n".join(violations[:20])
