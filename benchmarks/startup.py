"""How long the program takes for what is done all day, against a bare Python and a plain typer program."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks import scratch

_BARE = "python -I -S -c pass"
_TYPER = """\
import typer
app = typer.Typer()

@app.command()
def send(to: str, text: str) -> None:
    with open("sent", "a") as file:
        print(to, text, file=file)

app()
"""
#: What was wanted of some, as a ratio to the bare Python.
_GOALS = dict.fromkeys(("swarm version", "swarm --help", "swarm send, in memory"), 12.0)
_WORDS = ["developer", "please look at parser.py"]


def run(*, quick: bool) -> list[dict[str, object]]:
    """Measure in turns; the first turn does not count.

    A message is synced: that is the disk's time, and on a busy one longer than all the rest.
    """
    with scratch.folder() as memory, tempfile.TemporaryDirectory(prefix=".bench-start-", dir=".") as name:
        program = str(Path(sys.executable).with_name("swarm"))
        on_disk, in_memory = _repository(Path(name).resolve(), program), _repository(memory, program)
        (memory / "app.py").write_text(_TYPER, encoding="utf-8")
        commands = {
            _BARE: (in_memory, [sys.executable, "-I", "-S", "-c", "pass"]),
            "python -c pass": (in_memory, [sys.executable, "-c", "pass"]),
            "swarm version": (in_memory, [program, "version"]),
            "swarm --help": (in_memory, [program, "--help"]),
            "swarm send, in memory": (in_memory, [program, "send", *_WORDS]),
            "swarm send, on a disk": (on_disk, [program, "send", *_WORDS]),
            "typer program": (in_memory, [sys.executable, str(memory / "app.py"), *_WORDS]),
        }
        times: dict[str, list[float]] = {one: [] for one in commands}
        for _ in range(4 if quick else 26):
            for one, (folder, command) in commands.items():
                began = time.perf_counter_ns()
                subprocess.run(command, cwd=folder, env=_environment(folder), stdout=subprocess.DEVNULL, check=True)
                times[one].append((time.perf_counter_ns() - began) / 1e6)
    middle = {one: median(taken[1:]) for one, taken in times.items()}
    rows: list[dict[str, object]] = []
    for one, ms in middle.items():
        row = {"command": one, "ms": round(ms, 2), "ratio": round(ms / middle[_BARE], 3)}
        rows.append({**row, "to_typer": round(ms / middle["typer program"], 3), "goal": _GOALS.get(one)})
    return rows


def _environment(repository: Path) -> dict[str, str]:
    return scratch.environment(repository.parent / "home")


def _repository(top: Path, program: str) -> Path:
    """Make a repository with a session of one agent."""
    path = top / "repository"
    env = _environment(path)
    scratch.repository(path, env, 3)
    create = [program, "worktree", "create", "bench", "--roles", "developer", "--quiet"]
    subprocess.run(create, cwd=path, env=env, stdout=subprocess.DEVNULL, check=True)
    subprocess.run([program, "send", *_WORDS], cwd=path, env=env, stdout=subprocess.DEVNULL, check=True)
    return path


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'start-up':<22} {'ms':>7} {'to bare':>8} {'(goal)':>7} {'to typer':>9}"]
    for row in rows:
        goal = "" if row["goal"] is None else f"{row['goal']:g}"
        left = f"{row['command']:<22} {row['ms']:>7.1f} {row['ratio']:>8.2f}"
        lines.append(f"{left} {goal:>7} {row['to_typer']:>9.3f}")
    return lines
