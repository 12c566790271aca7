"""How much CPU the commands of every day use, against a bare Python.

Measured is the CPU of a process and its children, user and system, so that neither a disk nor another program counts.
The minimum of all turns is shown: what else runs on the machine only ever adds.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarks import hooks, scratch

_BARE = "python -I -S -c pass"
_PLAIN, _AT_EACH_CALL = 12.0, 3.0
_REQUEST = b'{"tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/"}'
_AGENT = "developer@bench"
#: Each command with its goal, as a ratio to the bare Python.
_COMMANDS: dict[tuple[str, ...], float] = {
    ("version",): _PLAIN,
    ("--help",): _PLAIN,
    ("send", "--help"): _PLAIN,
    ("start", "--help"): _PLAIN,
    ("send", _AGENT, "please look at parser.py"): _PLAIN,
    ("inbox", _AGENT): _PLAIN,
    ("approvals",): _PLAIN,
    ("permission-request", "--agent", _AGENT, "--wait", "0"): _PLAIN,
    ("status",): _PLAIN,
    ("list",): _PLAIN,
    ("why", _AGENT): _PLAIN,
}


class _Case(NamedTuple):
    name: str
    argv: list[str]
    goal: float | None
    given: bytes = b""


def run(*, quick: bool) -> list[dict[str, object]]:
    """Measure in turns; the first one only makes the caches."""
    with scratch.folder() as top:
        program = str(Path(sys.executable).with_name("swarm"))
        env = {**scratch.environment(top / "home"), "SWARM_TMUX_SOCKET": str(top / "tmux.sock")}
        repository = _repository(top, program, env)
        cases = [
            _Case(_BARE, [sys.executable, "-I", "-S", "-c", "pass"], None),
            _Case("python -c 'import typer'", [sys.executable, "-c", "import typer"], None),
            *(
                _Case(f"swarm {' '.join(args[:2])}", [program, *args], goal, _REQUEST)
                for args, goal in _COMMANDS.items()
            ),
            *(_Case(name, argv, _AT_EACH_CALL, hooks.event(top)) for name, argv in hooks.commands(top).items()),
        ]
        cpu: dict[str, list[float]] = {case.name: [] for case in cases}
        for turn in range(3 if quick else 26):
            for case in cases:
                taken = cpu_ms(case.argv, repository, env, case.given)
                if turn:
                    cpu[case.name].append(taken)
    least = {name: min(taken) for name, taken in cpu.items()}
    return [
        {
            "command": case.name,
            "cpu_ms": round(least[case.name], 2),
            "ratio": round(least[case.name] / least[_BARE], 2),
            "goal": case.goal,
        }
        for case in cases
    ]


def cpu_ms(argv: list[str], folder: Path, env: dict[str, str], given: bytes = b"") -> float:
    """Run a program in a folder; return the CPU milliseconds of it and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=folder, env=env, input=given, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def _repository(top: Path, program: str, env: dict[str, str]) -> Path:
    """Make a repository with a session of two agents."""
    path = top / "repository"
    scratch.repository(path, env, 3)
    create = [program, "worktree", "create", "bench", "--roles", "developer,reviewer", "--quiet"]
    subprocess.run(create, cwd=path, env=env, stdout=subprocess.DEVNULL, check=True)
    return path


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'start-up, least CPU':<30} {'ms':>7} {'to bare':>8} {'goal':>7}"]
    for row in rows:
        goal = "" if row["goal"] is None else f"<= {row['goal']:g}"
        lines.append(f"{row['command']:<30} {row['cpu_ms']:>7} {row['ratio']:>8} {goal:>7}")
    return lines
