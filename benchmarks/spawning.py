"""How long the spawn of a subtree takes, beside `swarm start` of one agent of the same role; the agents run `cat`."""

from __future__ import annotations

import subprocess
import time
from statistics import median

from benchmarks import scratch
from benchmarks.pods import command

_GOAL = 1.2


def run(*, quick: bool) -> list[dict[str, object]]:
    """Start and remove an agent by both commands in turns, with a tmux server that runs, and compare the medians."""
    turns = 2 if quick else 15
    ways = {
        "start": ["start", "one", "--roles", "lead", "--agent-cmd", "cat", "--task", "do it"],
        "spawn subtree": ["spawn", "subtree", "two", "do it", "--agent-cmd", "cat"],
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    with scratch.folder() as top:
        env = {**scratch.environment(top / "home"), "SWARM_TMUX_SOCKET": str(top / "tmux.sock")}
        env["SWARM_TREE_SPAWNS_PER_MINUTE"] = "0"
        path = top / "repository"
        scratch.repository(path, env, 100)
        try:
            for turn in range(turns + 1):
                for way, args in ways.items():
                    before = time.perf_counter()
                    command(path, env, *args)
                    if turn:  # the first only makes the caches
                        taken[way].append(time.perf_counter() - before)
                    command(path, env, "stop", "--all")
                    command(path, env, "cleanup", "--all", "--force")
        finally:
            subprocess.run(["tmux", "-S", env["SWARM_TMUX_SOCKET"], "kill-server"], capture_output=True, check=False)
    base = median(taken["start"])
    return [
        {
            "command": way,
            "ms": round(median(found) * 1000, 1),
            "ratio": round(median(found) / base, 3),
            "goal": _GOAL if way != "start" else None,
        }
        for way, found in taken.items()
    ]


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'one agent by':<14} {'ms':>8} {'ratio':>7} {'goal':>7}"]
    for row in rows:
        goal = "" if row["goal"] is None else f"<= {row['goal']:g}"
        lines.append(f"{row['command']:<14} {row['ms']:>8} {row['ratio']:>7} {goal:>7}")
    return lines
