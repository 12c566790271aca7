"""What a team comes to its end with: forecast, merge and cleanup, against plain git, in turns.

Measured on ext4 with a journal (``scratch.disk``), syncs included.  Plain git is what a careful shell script does: a
``git merge-tree`` for each pair, ``git merge --no-ff`` for each branch, ``git worktree remove --force`` and
``git branch -D`` for each.  swarm does more in its time: it looks for work that is not committed, tries before it
touches anything, saves before it removes, and syncs.
"""

from __future__ import annotations

import gc
import resource
import shutil
import threading
import time
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import scratch
from swarm import Swarm
from swarm.testing.terminal import at_terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZES = ((100, 1), (100, 16), (2000, 1), (2000, 16))
QUICK = ((100, 4),)
VERBS = ("conflicts", "merge", "cleanup", "cleanup, dirty")
#: The ratios to reach with sixteen agents, as (verb, files) → at most; and the gits that a verb may run.
GOALS = {("conflicts", 0): 1.2, ("merge", 0): 1.0, ("cleanup", 100): 1.0, ("cleanup", 2000): 0.3}
GOALS |= {("cleanup, dirty", 0): 1.5}


@dataclass
class Side:
    """One way of doing it: wall and CPU milliseconds of each verb, turn by turn, and how many gits it ran."""

    root: Path
    env: dict[str, str]
    wall: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    gits: dict[str, int] = field(default_factory=dict)
    after: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def timed(self, verb: str, act: Callable[[dict[str, str]], object], count: scratch.Counter | None) -> None:
        """Do something, and note what it took; or, in the turn that is not timed, how many gits it ran.

        What goes on in the background is awaited, and noted apart.
        """
        if count is not None:
            count.forget()
            act({**self.env, "PATH": f"{count.folder}:{self.env['PATH']}"})
            self._await_deletion()
            self.gits[verb] = count.count()
            return
        before, began = _cpu_ms(), time.perf_counter_ns()
        act(self.env)
        self.wall.setdefault(verb, []).append((time.perf_counter_ns() - began) / 1e6)
        self.cpu.setdefault(verb, []).append(_cpu_ms() - before)
        before, began = _cpu_ms(), time.perf_counter_ns()
        self._await_deletion()
        self.after.setdefault(verb, []).append(((time.perf_counter_ns() - began) / 1e6, _cpu_ms() - before))

    def _await_deletion(self) -> None:
        trash = self.root / ".swarm/trash"
        while trash.is_dir() and any(trash.iterdir()):
            time.sleep(0.002)
        while threading.active_count() > 1:  # the one that waits for the process, whose time counts when it is over
            time.sleep(0.002)


def _cpu_ms() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) * 1000


def measure(top: Path, files: int, agents: int, repetitions: int) -> list[dict[str, object]]:
    """Return a row for each verb; the repositories are new."""
    env = scratch.environment(top / "home")
    place = top / f"team-{files}x{agents}"
    names = scratch.repository(place / "plain", env, files)
    scratch.repository(place / "swarm", env, files)
    counter = scratch.Counter(place / "counted")
    sides = [(Side(place / "plain", env), _plain), (Side(place / "swarm", env), _swarm)]
    for turn in range(repetitions + 1):  # in the first one files get into the cache, and gits are counted
        for side, act in sides if turn % 2 else sides[::-1]:
            act(side, agents, names, counter if turn == 0 else None)
    shutil.rmtree(place)
    plain, ours = (side for side, _ in sides)
    return [_row(verb, files, agents, plain, ours) for verb in VERBS if verb in plain.wall]


def _row(verb: str, files: int, agents: int, plain: Side, ours: Side) -> dict[str, object]:
    theirs, own = median(plain.wall[verb]), median(ours.wall[verb])
    return {
        "verb": verb,
        "files": files,
        "agents": agents,
        "git_ms": round(theirs, 1),
        "swarm_ms": round(own, 1),
        "ratio": round(own / theirs, 2),
        "git_cpu_ms": round(median(plain.cpu[verb]), 1),
        "swarm_cpu_ms": round(median(ours.cpu[verb]), 1),
        "git_processes": plain.gits[verb],
        "swarm_processes": ours.gits[verb],
        "after_ms": round(median(wall for wall, _ in ours.after[verb]), 1),
        "after_cpu_ms": round(median(cpu for _, cpu in ours.after[verb]), 1),
        "goal": GOALS.get((verb, files), GOALS.get((verb, 0))) if agents == 16 else None,
    }


def _work(trees: list[Path], names: list[str], *, commit: dict[str, str] | None) -> None:
    """Let each agent change a file of its own and make another one."""
    for number, tree in enumerate(trees):
        target = tree / names[(number * 7) % len(names)]
        if target.is_symlink():
            target.unlink()
        target.write_text(f"changed by {number}\n", encoding="utf-8")
        (tree / f"new-{number}.txt").write_text("new\n", encoding="utf-8")
        if commit is not None:
            scratch.git(tree, commit, "add", "--all")
            scratch.git(tree, commit, "commit", "--quiet", "-m", f"work {number}")


def _plain(side: Side, agents: int, names: list[str], count: scratch.Counter | None) -> None:
    branches = [f"agent-{number}" for number in range(agents)]
    paths = [side.root.parent / f"plain-{branch}" for branch in branches]
    env = side.env

    def add() -> None:
        for branch, path in zip(branches, paths, strict=True):
            scratch.git(side.root, env, "worktree", "add", "-q", "-b", branch, str(path), "HEAD")

    def forecast(env: dict[str, str]) -> None:
        for pair in combinations(branches, 2):
            scratch.git(side.root, env, "merge-tree", "--write-tree", *pair)

    def merge(env: dict[str, str]) -> None:
        for branch in branches:
            scratch.git(side.root, env, "merge", "--quiet", "--no-ff", "-m", f"merge {branch}", branch)

    def remove(env: dict[str, str]) -> None:
        for branch, path in zip(branches, paths, strict=True):
            scratch.git(side.root, env, "worktree", "remove", "--force", str(path))
            scratch.git(side.root, env, "branch", "-q", "-D", branch)

    start = scratch.git(side.root, env, "rev-parse", "HEAD").strip()
    add()
    _work(paths, names, commit=env)
    if agents > 1:
        side.timed("conflicts", forecast, count)
    side.timed("merge", merge, count)
    side.timed("cleanup", remove, count)
    scratch.git(side.root, env, "reset", "--quiet", "--hard", start)
    add()
    _work(paths, names, commit=None)
    side.timed("cleanup, dirty", remove, count)


def _swarm(side: Side, agents: int, names: list[str], count: scratch.Counter | None) -> None:
    env = side.env

    def create() -> list[Path]:
        return [one.path for one in Swarm.open(side.root, environ=env).create("bench", [f"developer:{agents}"]).agents]

    start = scratch.git(side.root, env, "rev-parse", "HEAD").strip()
    _work(create(), names, commit=env)
    if agents > 1:
        side.timed("conflicts", lambda env: Swarm.open(side.root, environ=env).conflicts(), count)
    side.timed("merge", lambda env: Swarm.open(side.root, environ=env).merge("bench"), count)
    side.timed("cleanup", lambda env: Swarm.open(side.root, environ=env).cleanup(["bench"]), count)
    scratch.git(side.root, env, "reset", "--quiet", "--hard", start)
    _work(create(), names, commit=None)
    side.timed("cleanup, dirty", lambda env: Swarm.open(side.root, environ=env).cleanup(["bench"], force=True), count)
    at_terminal(lambda: Swarm.open(side.root, environ=env).salvage.drop(everything=True))


def run(top: Path, *, quick: bool) -> list[dict[str, object]]:
    """Measure every row."""
    gc.collect()
    sizes = QUICK if quick else SIZES
    return [row for files, agents in sizes for row in measure(top, files, agents, 2 if quick else 9)]


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    sides = f"{'git':>7} {'swarm':>7}"
    lines = [
        f"{'team':<16} {'files x agents':>14}  {'wall ms':^22}  {'CPU ms':^15}  {'afterwards ms':^15}  {'gits':^11}",
        f"{'':31}  {sides} {'ratio':>6}  {sides}  {'wall':>7} {'CPU':>7}  {'git':>5} {'swarm':>5} {'goal':>8}",
    ]
    for row in rows:
        goal = "" if row["goal"] is None else f"<= {row['goal']:g}"
        after = f"{row['after_ms']:>7} {row['after_cpu_ms']:>7}"
        lines.append(
            f"{row['verb']:<16} {row['files']:>6} x {row['agents']:<5}  {row['git_ms']:>7} {row['swarm_ms']:>7} "
            f"{row['ratio']:>6}  {row['git_cpu_ms']:>7} {row['swarm_cpu_ms']:>7}  {after}  {row['git_processes']:>5} "
            f"{row['swarm_processes']:>5} {goal:>8}"
        )
    return lines
