"""How much more CPU looks need with many sessions that do not run, and with many agents.

Measured as in `startup`: user and system, children too, the minimum of all turns.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks import scratch, startup
from swarm import Swarm

#: Of a look with many sessions, and of one with many agents, to the same with one.
_SESSIONS_GOAL, _AGENTS_GOAL = 1.3, 3.0


class _Case(NamedTuple):
    name: str
    repository: Path
    argv: list[str]
    goal: float | None
    env: dict[str, str]


def run(*, quick: bool) -> list[dict[str, object]]:
    """Measure in turns; the first one only makes the caches."""
    sessions, agents = (10, 8) if quick else (200, 64)
    with scratch.folder() as top:
        one = _repository(top / "one", 1, 1)
        many = _repository(top / "sessions", sessions, 1)
        team = _repository(top / "agents", 1, agents)
        cases = [
            *(
                _case(args, one, "1 session of 1 agent", None)
                for args in (["status"], ["list"], ["why", "developer@s0"])
            ),
            *(
                _case(args, many, f"{sessions} sessions", _SESSIONS_GOAL)
                for args in (["status"], ["list"], ["why", "developer@s0"])
            ),
            _case(["status"], team, f"{agents} agents", _AGENTS_GOAL),
        ]
        least = dict.fromkeys((case.name for case in cases), float("inf"))
        for turn in range(2 if quick else 8):
            for case in cases:
                taken = startup.cpu_ms(case.argv, case.repository, case.env)
                if turn:
                    least[case.name] = min(least[case.name], taken)
    base = {case.argv[1]: least[case.name] for case in cases if case.goal is None}
    return [
        {
            "command": case.name,
            "cpu_ms": round(least[case.name], 2),
            "ratio": round(least[case.name] / base[case.argv[1]], 2),
            "goal": case.goal,
        }
        for case in cases
    ]


def _case(args: list[str], made: tuple[Path, dict[str, str]], what: str, goal: float | None) -> _Case:
    program = str(Path(sys.executable).with_name("swarm"))
    return _Case(f"{args[0]}, {what}", made[0], [program, *args], goal, made[1])


def _repository(top: Path, sessions: int, agents: int) -> tuple[Path, dict[str, str]]:
    """Make a repository with sessions of worktrees in which nothing runs; return it with its environment."""
    top.mkdir()
    env = {**scratch.environment(top / "home"), "SWARM_TMUX_SOCKET": str(top / "tmux.sock")}
    path = top / "repository"
    scratch.repository(path, env, 3)
    swarm = Swarm.open(path, environ=env)
    for number in range(sessions):
        swarm.create(f"s{number}", "developer" if agents == 1 else f"developer:{agents}")
    return path, env


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'looks, least CPU':<30} {'ms':>7} {'to one':>8} {'goal':>7}"]
    for row in rows:
        goal = "" if row["goal"] is None else f"<= {row['goal']:g}"
        lines.append(f"{row['command']:<30} {row['cpu_ms']:>7} {row['ratio']:>8} {goal:>7}")
    return lines
