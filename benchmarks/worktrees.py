"""Sets of worktrees: swarm's library against plain git, one after the other, in turns.

Plain git is what a careful shell script does: ``git worktree add -q -b BRANCH PATH HEAD`` for each,
later ``git worktree remove --force`` and ``git branch -D`` for each.  swarm does more in its time:
it checks first, writes down what it does, puts the roles' instructions in, verifies every tree,
syncs the file system; and on cleanup it saves before it removes.
"""

from __future__ import annotations

import gc
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import scratch
from swarm import Swarm
from swarm.testing.terminal import at_terminal, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZES = ((100, 1), (100, 4), (100, 16), (2000, 1), (2000, 4), (2000, 16))
QUICK = ((100, 1), (100, 4))


@dataclass
class Side:
    """One way of doing it, and how long it took, in milliseconds."""

    root: Path
    create: list[float] = field(default_factory=list)
    status: list[float] = field(default_factory=list)
    cleanup: list[float] = field(default_factory=list)
    opened: int | None = None

    def forget(self) -> None:
        """Drop what was measured so far."""
        for times in (self.create, self.status, self.cleanup):
            times.clear()


def measure(top: Path, files: int, trees: int, repetitions: int) -> dict[str, object]:
    """Return one row of the table; the repositories are new."""
    env = scratch.environment(top / "home")
    place = top / f"{files}x{trees}"
    names = scratch.repository(place / "plain", env, files)
    scratch.repository(place / "swarm", env, files)
    scratch.repository(place / "pool", env, files)
    plain, ours, pooled = Side(place / "plain"), Side(place / "swarm"), Side(place / "pool")
    sides: list[tuple[Side, Callable[..., None]]] = [(plain, _plain), (ours, _swarm), (pooled, _pooled)]
    for turn in range(repetitions + 1):
        for side, act in sides if turn % 2 else sides[::-1]:
            act(side, env, trees, names, look_closely=turn == 0)
        if turn == 0:  # files are in the cache now, and modules imported
            for side, _ in sides:
                side.forget()
    shutil.rmtree(place)
    taken = median(pooled.create)
    theirs = median(plain.create)
    recycled = {"git_ms": round(theirs, 2), "swarm_ms": round(taken, 2), "ratio": round(taken / theirs, 3)}
    return {**_row(files, trees, plain, ours), "recycled": recycled}


def _row(files: int, trees: int, plain: Side, ours: Side) -> dict[str, object]:
    row: dict[str, object] = {"files": files, "worktrees": trees}
    for what in ("create", "status", "cleanup"):
        theirs, own = median(getattr(plain, what)), median(getattr(ours, what))
        row[what] = {"git_ms": round(theirs, 2), "swarm_ms": round(own, 2), "ratio": round(own / theirs, 3)}
    if plain.opened is not None:
        row["opened_by_first_status"] = {"git": plain.opened, "swarm": ours.opened}
    return row


def _plain(side: Side, env: dict[str, str], trees: int, names: list[str], *, look_closely: bool) -> None:
    paths = [side.root.parent / f"plain-tree-{number}" for number in range(trees)]
    began = _now()
    for path in paths:
        _run(side.root, env, "worktree", "add", "-q", "-b", path.name, str(path), "HEAD")
    side.create.append(_now() - began)
    _first_status(side, env, paths[0], names, look_closely=look_closely)
    began = _now()
    for path in paths:
        _run(side.root, env, "worktree", "remove", "--force", str(path))
        _run(side.root, env, "branch", "-q", "-D", path.name)
    side.cleanup.append(_now() - began)


def _swarm(side: Side, env: dict[str, str], trees: int, names: list[str], *, look_closely: bool) -> None:
    began = _now()
    made = Swarm.open(side.root, environ=env).create("bench", [f"developer:{trees}"])
    side.create.append(_now() - began)
    _first_status(side, env, made.agents[0].path, names, look_closely=look_closely)
    began = _now()
    Swarm.open(side.root, environ=env).cleanup(["bench"])
    side.cleanup.append(_now() - began)
    at_terminal(lambda: Swarm.open(side.root, environ=env).salvage.drop(everything=True))


def _pooled(side: Side, env: dict[str, str], trees: int, names: list[str], *, look_closely: bool) -> None:  # noqa: ARG001
    """Start with worktrees of the pool, but for the first time, which does not count."""
    flags = {"worktrees.pool": trees, "cleanup.background": True}
    began = _now()
    swarm = Swarm.open(side.root, environ=env, flags=flags)
    there = len(swarm.worktrees.pool())
    swarm.create("bench", [f"developer:{trees}"])
    side.create.append(_now() - began)
    if not look_closely and there != trees:
        raise RuntimeError(f"{there} worktrees wait in the pool, not {trees}")
    Swarm.open(side.root, environ=env, flags=flags).cleanup(["bench"])
    wait_for(lambda: not list((side.root / ".swarm/trash").glob("*")), "the end of the parking", 600)


def _first_status(side: Side, env: dict[str, str], tree: Path, names: list[str], *, look_closely: bool) -> None:
    if look_closely:  # only in the round that does not count: strace is slow
        side.opened = _opened(env, tree, names)
        return
    began = _now()
    _run(tree, env, "status", "--porcelain")
    side.status.append(_now() - began)


def _opened(env: dict[str, str], tree: Path, names: list[str]) -> int | None:
    """Count the tracked files that ``git status`` opens; None where there is no strace."""
    if shutil.which("strace") is None:
        return None
    log = tree.parent.parent / "strace.log"
    command = ["strace", "-f", "-e", "trace=open,openat", "-o", str(log), "git", "status", "--porcelain"]
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, check=False)
    if done.returncode != 0:
        return None  # not allowed here
    text = log.read_text(encoding="utf-8", errors="replace")
    log.unlink()
    opened = {part.split('"')[1].removeprefix(f"{tree}/") for part in text.splitlines() if '"' in part}
    return len(opened & set(names))


def _run(cwd: Path, env: dict[str, str], *args: str) -> None:
    subprocess.run(["git", *args], cwd=cwd, env=env, stdout=subprocess.DEVNULL, check=True)


def _now() -> float:
    return time.perf_counter_ns() / 1e6


def run(top: Path, *, quick: bool) -> list[dict[str, object]]:
    """Measure every row."""
    gc.collect()
    return [measure(top, files, trees, repetitions(files * trees, quick=quick)) for files, trees in _sizes(quick=quick)]


def repetitions(work: int, *, quick: bool) -> int:
    """Return how often: small rows are noisier and cheaper."""
    return 3 if quick else 25 if work <= 2000 else 11  # files written


def _sizes(*, quick: bool) -> tuple[tuple[int, int], ...]:
    return QUICK if quick else SIZES


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    head = f"{'files x trees':>13}  {'create ms':^21}  {'first status ms':^21}  {'files':^9}  {'cleanup ms':^21}"
    head += f"  {'recycled':^14}"
    units = f"{'':13}" + f"  {'git':>6} {'swarm':>6} {'ratio':>7}" * 2 + f"  {'opened':^9}"
    lines = [head, units + f"  {'git':>6} {'swarm':>6} {'ratio':>7}  {'swarm':>6} {'ratio':>7}"]
    for row in rows:
        text = f"{row['files']:>5} x {row['worktrees']:<5}"
        cells = [_cells(row[what]) for what in ("create", "status", "cleanup")]
        opened = row.get("opened_by_first_status")
        seen = f"{opened['git']:>4} {opened['swarm']:>4}" if isinstance(opened, dict) else f"{'-':^9}"
        recycled = _cells(row["recycled"])[7:]
        lines.append(f"{text:>13}  {cells[0]}  {cells[1]}  {seen}  {cells[2]}  {recycled}")
    return lines


def _cells(found: object) -> str:
    assert isinstance(found, dict)  # made above
    return f"{found['git_ms']:>6.1f} {found['swarm_ms']:>6.1f} {found['ratio']:>7.2f}"
