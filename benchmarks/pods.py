"""How long a team takes to start from a pod template, beside `swarm start` with the same roles.

The whole command is measured, in turns that change which is first, each with a tmux server that runs already; the
agents run `cat`. On a busy machine the CPU time of the command and its children says more than the clock.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from statistics import median
from typing import TYPE_CHECKING

from benchmarks import scratch

if TYPE_CHECKING:
    from pathlib import Path

_GOAL = 1.1
_ROLES = ("researcher", "developer", "reviewer", "architect")


def run(*, quick: bool) -> list[dict[str, object]]:
    """Start and remove the same team by both commands, and compare the medians."""
    number, turns = (4, 2) if quick else (12, 12)
    taken: dict[str, list[tuple[float, float]]] = {"start": [], "pod launch": []}
    with scratch.folder() as top:
        env = {**scratch.environment(top / "home"), "SWARM_TMUX_SOCKET": str(top / "tmux.sock")}
        path = top / "repository"
        scratch.repository(path, env, 100)
        team = [(f"a{at}", _ROLES[at % len(_ROLES)]) for at in range(number)]
        template = path / ".swarm" / "pods" / "templates" / "team.yaml"
        roles = ",".join(f"{name}={role}" for name, role in team)
        ways = {
            "start": ["start", "team", "--roles", roles, "--agent-cmd", "cat"],
            "pod launch": ["pod", "launch", "team", "--agent-cmd", "cat"],
        }
        try:
            for turn in range(turns + 1):
                for way, args in sorted(ways.items(), reverse=bool(turn % 2)):
                    if not template.exists() and turn == 0:
                        command(path, env, "init")
                        template.parent.mkdir(parents=True, exist_ok=True)
                        template.write_text("agents:\n" + "".join(f"- {{name: {n}, role: {r}}}\n" for n, r in team))
                    before, cpu = time.perf_counter(), _cpu()
                    command(path, env, *args)
                    if turn:  # the first only makes the caches
                        taken[way].append((time.perf_counter() - before, _cpu() - cpu))
                    command(path, env, "stop", "--all")
                    command(path, env, "cleanup", "--all", "--force")
        finally:
            subprocess.run(["tmux", "-S", env["SWARM_TMUX_SOCKET"], "kill-server"], capture_output=True, check=False)
    base, base_cpu = (median(column) for column in zip(*taken["start"], strict=True))
    rows: list[dict[str, object]] = []
    for way, found in taken.items():
        clock, used = (median(column) for column in zip(*found, strict=True))
        ms = {"ms": round(clock * 1000, 1), "ratio": round(clock / base, 3)}
        cpu_ms = {"cpu_ms": round(used * 1000, 1), "cpu_ratio": round(used / base_cpu, 3)}
        goal = _GOAL if way != "start" else None
        rows.append({"command": way, "agents": number, **ms, **cpu_ms, "goal": goal})
    return rows


def _cpu() -> float:
    """Return the CPU seconds of all children that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def command(path: Path, env: dict[str, str], *args: str) -> None:
    """Run a command of swarm's."""
    subprocess.run([sys.executable, "-m", "swarm", *args], cwd=path, env=env, capture_output=True, check=True)


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'a team by':<14} {'agents':>7} {'ms':>8} {'ratio':>7} {'cpu ms':>8} {'ratio':>7} {'goal':>7}"]
    for row in rows:
        goal = "" if row["goal"] is None else f"<= {row['goal']:g}"
        used = f"{row['cpu_ms']:>8} {row['cpu_ratio']:>7}"
        lines.append(f"{row['command']:<14} {row['agents']:>7} {row['ms']:>8} {row['ratio']:>7} {used} {goal:>7}")
    return lines
