"""Teams that run: a message to an idle pane, the time after a start, and the end.

The agents are shells, and programs that end at once, in panes of a tmux server of their own.  CPU seconds are those of
the supervisors and of what they started, read from /proc: without the shells, without tmux, without the command that is
measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import scratch

if TYPE_CHECKING:
    from collections.abc import Callable

_AGENTS, _SECONDS, _PATIENCE = 32, 10.0, 10.0
_TICK = os.sysconf("SC_CLK_TCK")


class _Team(NamedTuple):
    """A repository with a tmux server."""

    root: Path
    env: dict[str, str]

    def swarm(self, *words: str) -> str:
        """Run the program; return what it prints."""
        program = Path(sys.executable).with_name("swarm")
        return subprocess.run(
            [program, *words], cwd=self.root, env=self.env, capture_output=True, check=True, text=True
        ).stdout

    def tmux(self, *words: str) -> str:
        """Ask tmux."""
        command = ["tmux", "-S", self.env["SWARM_TMUX_SOCKET"], *words]
        return subprocess.run(command, env=self.env, capture_output=True, check=True, text=True).stdout

    def timed(self, *words: str) -> float:
        """Run the program; return how many milliseconds it took."""
        began = time.perf_counter()
        self.swarm(*words)
        return (time.perf_counter() - began) * 1000

    def cpu(self) -> float:
        """Return the CPU seconds of supervisors and of all that they have started and that has ended."""
        found = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                words = (stat.parent / "cmdline").read_bytes().split(b"\0")
                times = stat.read_text().rpartition(")")[2].split()[11:15]
            except OSError:
                continue
            if any(word.endswith(b"launcher.py") for word in words) and os.fsencode(self.root) in b" ".join(words):
                found += sum(map(int, times))
        return found / _TICK


def run(*, quick: bool) -> list[dict[str, object]]:
    """Start a team, speak to some of it, and end it."""
    agents, turns = (4, 2) if quick else (_AGENTS, 9)
    with scratch.folder() as top:
        team = _Team(top / "repository", {**scratch.environment(top / "home"), "SWARM_TMUX_SOCKET": str(top / "s")})
        scratch.repository(team.root, team.env, 3)
        try:
            return _measure(team, agents, turns)
        finally:
            team.tmux("kill-server")


def _measure(team: _Team, agents: int, turns: int) -> list[dict[str, object]]:
    start = team.timed("start", "bench", "--roles", f"developer:{agents}", "--agent", "shell")
    before = team.cpu()
    at_once = team.timed("status")
    time.sleep(_SECONDS)
    after_start = team.cpu() - before
    later = median(team.timed("status") for _ in range(3))
    before = team.cpu()
    time.sleep(_SECONDS)
    at_rest = (team.cpu() - before) / _SECONDS * 100
    typed = median(_delivery(team, number) for number in range(1, turns + 1))
    team.swarm("stop", "bench")
    team.swarm(
        "start", "ends", "--roles", f"developer:{agents}", "--agent-cmd", "sleep 100000"
    )  # a shell stays for SIGTERM
    time.sleep(_SECONDS / 2)
    stop = team.timed("stop", "ends")
    return [
        _row(f"start of {agents}, ms", start, None),
        _row(f"CPU s in {_SECONDS:g} s after it", after_start, 0.5),
        _row("status then, to later", at_once / later, 1.5),
        _row("at rest, % of a core", at_rest, 0.3),
        _row("line typed after send, ms", typed, 60),
        _row(f"stop of {agents}, ms", stop, 500),
    ]


def _delivery(team: _Team, number: int) -> float:
    """Send a message to an agent that got none yet; return the milliseconds until its pane shows the line."""
    name = f"developer-{number}"
    listed = (
        line.split(" ", 1) for line in team.tmux("list-panes", "-a", "-F", "#{@swarm_agent} #{pane_id}").split("\n")
    )
    pane = next(one[1] for one in listed if one[0] == name)
    team.swarm("send", name, "please look at parser.py")
    return _until(lambda: "new message" in team.tmux("capture-pane", "-p", "-J", "-t", pane))


def _until(seen: Callable[[], bool]) -> float:
    began = time.perf_counter()
    while not seen():
        if time.perf_counter() - began > _PATIENCE:
            raise RuntimeError("nothing was typed")
        time.sleep(0.002)
    return (time.perf_counter() - began) * 1000


def _row(what: str, value: float, goal: float | None) -> dict[str, object]:
    return {"what": what, "value": round(value, 2), "goal": goal}


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'a team that runs':<30} {'found':>8} {'goal':>7}"]
    for row in rows:
        goal = "" if row["goal"] is None else f"<= {row['goal']:g}"
        lines.append(f"{row['what']:<30} {row['value']:>8} {goal:>7}")
    return lines
