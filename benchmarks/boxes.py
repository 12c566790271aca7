"""What a box costs: a start, a look, taking in a commit, work inside, and status, in turns with the same without one.

A start is measured on the clock, from the command until the agent's program acts: most of it happens in the pane.
Work inside is measured as CPU, as the shell tells it.  The medians are shown.  At a high load the clock says little:
run it with `nice -n -20`.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import scratch
from swarm import Swarm

if TYPE_CHECKING:
    from collections.abc import Callable

_ROLE = "developer"
#: Says when it begins, as nanoseconds since 1970, and stays.
_BEGINS = "sh -c 'date +%s%N > began.new; mv began.new began; exec sleep 100000'"
_LONGEST = 120.0
#: What is done inside and outside, as scripts.
_WORK = {
    "git status, 100 times": "for i in $(seq 100); do git status --porcelain >/dev/null; done",
    "unpack and compile packages": (
        "rm -rf out; mkdir out; tar -xf packages.tar -C out; python3 -m compileall -q out; find out -type f | wc -l"
        " >/dev/null; rm -rf out"
    ),
    "a test run": (
        "export TMPDIR=/dev/shm; for i in 1 2 3; do python3 -m unittest discover -q -s cases >/dev/null 2>&1; done"
    ),
}
_TEST = """
import os, subprocess, tempfile, unittest
class T(unittest.TestCase):
    def test(self):
        with tempfile.TemporaryDirectory() as d:
            for n in range(200):
                with open(f"{d}/{n}", "w") as f: f.write("x" * n)
            self.assertEqual(len(os.listdir(d)), 200)
        self.assertEqual(sum(range(20000)), 199990000)
        subprocess.run(["true"], check=True)
"""
_PACKAGES, _TESTS = 1500, 30


class _Cost(NamedTuple):
    wall_ms: float
    cpu_ms: float


class _Pair:
    """A repository with one agent in a box, `boxed`, and one without, `plain`."""

    def __init__(self, top: Path) -> None:
        self.env = {**scratch.environment(top / "home"), "SWARM_TMUX_SOCKET": str(top / "tmux.sock")}
        self.env["SWARM_AGENTS_NUDGE"] = "never"
        self.path = top / "repository"
        scratch.repository(self.path, self.env, 1000)
        self._fill(top)

    def _fill(self, top: Path) -> None:
        """Put tests and an archive of packages into the repository."""
        packages = top / "packages"
        for number in range(_PACKAGES):
            file = packages / f"p{number % 50}" / f"m{number}.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"def f{number}(x):\n    return [x + {number} for _ in range(10)]\n" * 3, encoding="ascii")
        with tarfile.open(self.path / "packages.tar", "w") as archive:
            archive.add(packages, "packages")
        shutil.rmtree(packages)
        (self.path / "cases").mkdir()
        for number in range(_TESTS):
            (self.path / f"cases/test_{number}.py").write_text(_TEST, encoding="ascii")
        for words in (["add", "-A"], ["commit", "-qm", "work"]):
            subprocess.run(["git", *words], cwd=self.path, env=self.env, check=True)

    def swarm(self, *args: str) -> _Cost:
        """Run a command of swarm's."""
        argv = [str(Path(sys.executable).with_name("swarm")), *args]
        return measured(lambda: subprocess.run(argv, cwd=self.path, env=self.env, check=True, capture_output=True))

    def tree(self, session: str) -> Path:
        """Return the worktree of a session's agent."""
        return self.path / ".worktrees" / f"{_ROLE}-{session}"

    def began(self, session: str, *args: str) -> float:
        """Run a command that starts an agent; return after how many milliseconds its program began."""
        told = self.tree(session) / "began"
        told.unlink(missing_ok=True)
        before = time.time_ns()
        self.swarm(*args)
        until = time.monotonic() + _LONGEST
        while not told.exists():
            if time.monotonic() > until:
                raise RuntimeError(f"the agent of {session} does not begin")
            time.sleep(0.002)
        return (int(told.read_text()) - before) / 1e6

    def start(self, session: str, *more: str) -> float:
        """Start an agent for the first time."""
        return self.began(session, "start", session, "--roles", _ROLE, "--agent-cmd", _BEGINS, *more)


def measured(act: Callable[[], object]) -> _Cost:
    """Do something, and return what it took."""
    used, began = _used(), time.perf_counter()
    act()
    return _Cost((time.perf_counter() - began) * 1000, (_used() - used) * 1000)


def _used() -> float:
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def run(*, quick: bool) -> list[dict[str, object]]:
    """Measure all of it."""
    turns = 2 if quick else 12
    with scratch.folder() as top:
        pair = _Pair(top)
        try:
            rows = _starts(pair, turns)
            rows += _looks(pair, turns * 3)
            rows += _taking_in(pair, turns)
            rows += _work(pair, 1 if quick else 5)
            return rows + _status(pair, turns, 2 if quick else 8)
        finally:
            subprocess.run(
                ["tmux", "-S", pair.env["SWARM_TMUX_SOCKET"], "kill-server"], capture_output=True, check=False
            )


def _starts(pair: _Pair, turns: int) -> list[dict[str, object]]:
    first: dict[str, list[float]] = {"plain": [], "boxed": []}
    later: dict[str, list[float]] = {"plain": [], "boxed": []}
    for turn in range(turns + 1):
        for kind in ("plain", "boxed"):
            name = f"{kind}{turn}"
            taken = pair.start(name, *(["--sandbox"] if kind == "boxed" else []))
            pair.swarm("stop", name)
            again = pair.began(name, "resume", name)
            pair.swarm("stop", name)
            if turn:  # the first only makes the caches
                first[kind].append(taken)
                later[kind].append(again)
            if turn < turns:
                pair.swarm("cleanup", name, "--force")
    # The last two stay, for what follows.
    return [
        _row("first start, until its program acts", first["plain"], first["boxed"], "ms", 60.0),
        _row("later start, until its program acts", later["plain"], later["boxed"], "ms", 12.0),
    ]


def _looks(pair: _Pair, turns: int) -> list[dict[str, object]]:
    world = Swarm.open(pair.path, environ=pair.env)._opened.world  # noqa: SLF001  # what status asks
    found: dict[str, list[_Cost]] = {"plain": [], "boxed": []}
    trees = {kind: next(pair.path.glob(f".worktrees/{_ROLE}-{kind}*")) for kind in found}

    def look(tree: Path) -> None:
        asked = world.git.begin_status(tree)
        try:
            asked.result()
        finally:
            asked.end()

    for turn in range(turns + 1):
        for kind, tree in trees.items():
            cost = measured(lambda tree=tree: look(tree))  # type: ignore[misc]
            if turn:
                found[kind].append(cost)
    return [
        _row("a look at a worktree, clock", *_each(found, "wall_ms"), "ms", 10.0),
        _row("a look at a worktree, CPU", *_each(found, "cpu_ms"), "ms", 10.0),
    ]


def _each(found: dict[str, list[_Cost]], name: str) -> tuple[list[float], list[float]]:
    plain, boxed = ([getattr(one, name) for one in found[kind]] for kind in ("plain", "boxed"))
    return plain, boxed


def _taking_in(pair: _Pair, turns: int) -> list[dict[str, object]]:
    swarm = Swarm.open(pair.path, environ=pair.env)
    session = next(one.name for one in swarm.sessions() if one.name.startswith("boxed"))
    found: list[_Cost] = []
    for turn in range(turns + 1):
        script = f"echo {turn} > file-{turn}; git add file-{turn}; git commit -qm {turn}"
        done = swarm.boxes.run(_ROLE, session, argv=["sh", "-ec", script])
        if done.code:
            raise RuntimeError(done.err.decode("utf-8", "replace"))
        cost = measured(lambda: swarm.worktrees.take_in(_ROLE, session))
        if turn:
            found.append(cost)
    nothing = [0.0]
    return [
        _row("taking in one commit, clock", nothing, [one.wall_ms for one in found], "ms", 110.0),
        _row("taking in one commit, CPU", nothing, [one.cpu_ms for one in found], "ms", 110.0),
    ]


def _work(pair: _Pair, turns: int) -> list[dict[str, object]]:
    swarm = Swarm.open(pair.path, environ=pair.env)
    session = next(one.name for one in swarm.sessions() if one.name.startswith("boxed"))
    tree = next(pair.path.glob(f".worktrees/{_ROLE}-plain*"))
    env = {**pair.env, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    rows = []
    for name, script in _WORK.items():
        found: dict[str, list[float]] = {"plain": [], "boxed": []}
        argv = ["sh", "-ec", f"{script}; times"]
        for turn in range(turns + 1):
            done = subprocess.run(argv, cwd=tree, env=env, check=True, stdout=subprocess.PIPE)
            outside, inside = _times(done.stdout), _times(_inside(swarm, session, argv))
            if turn or turns == 1:
                found["plain"].append(outside)
                found["boxed"].append(inside)
        rows.append(_row(f"{name}, CPU", found["plain"], found["boxed"], "ratio", 1.1))
    return rows


def _inside(swarm: Swarm, session: str, argv: list[str]) -> bytes:
    done = swarm.boxes.run(_ROLE, session, argv=argv)
    if done.code:
        raise RuntimeError(done.err.decode("utf-8", "replace"))
    return done.out


def _times(said: bytes) -> float:
    """Return the milliseconds of CPU that a shell's ``times`` tells: its own, and those of all that it started."""
    words = said.decode("ascii").split()[-4:]
    return sum(int(m) * 60000 + float(s) * 1000 for m, s in (word.rstrip("s").split("m") for word in words))


def _status(pair: _Pair, turns: int, agents: int) -> list[dict[str, object]]:
    """Ask for the status of some agents, without changes and with a change in each tree since the last look."""
    pair.swarm("cleanup", "--all", "--force")
    rows = []
    found: dict[tuple[str, bool], list[float]] = {}
    for kind, more in (("plain", []), ("boxed", ["--sandbox"])):
        for number in range(agents):
            pair.start(f"{kind}{number}", *more)
        pair.swarm("stop", "--all")
        for turn in range(turns + 1):
            for changed in (False, True):
                if changed:
                    for number in range(agents):
                        (pair.tree(f"{kind}{number}") / "changed").write_text(str(turn), encoding="ascii")
                cost = pair.swarm("status")
                if turn:
                    found.setdefault((kind, changed), []).append(cost.wall_ms)
        pair.swarm("cleanup", "--all", "--force")
    for changed in (False, True):
        words = f"status of {agents} agents, {'a change in each' if changed else 'nothing new'}, clock"
        goal = 10.0 * agents if changed else 10.0
        rows.append(_row(words, found["plain", changed], found["boxed", changed], "ms", goal))
    return rows


def _row(name: str, plain: list[float], boxed: list[float], kind: str, goal: float) -> dict[str, object]:
    before, after = median(plain), median(boxed)
    more = after / before if kind == "ratio" else after - before
    return {
        "what": name,
        "without_ms": round(before, 1),
        "boxed_ms": round(after, 1),
        "more": round(more, 3 if kind == "ratio" else 1),
        "unit": kind,
        "goal": goal,
    }


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'boxes':<50} {'without':>9} {'boxed':>9} {'more':>12} {'goal':>9}"]
    for row in rows:
        more = f"{row['more']} times" if row["unit"] == "ratio" else f"{row['more']} ms"
        goal = f"<= {row['goal']:g}"
        lines.append(f"{row['what']:<50} {row['without_ms']:>9} {row['boxed_ms']:>9} {more:>12} {goal:>9}")
    return lines
