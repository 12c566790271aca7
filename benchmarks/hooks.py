"""How long a hook of Claude Code takes at every tool call, against a bare Python: ``python -m benchmarks.hooks``."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import swarm.permissions.guard
from swarm.programs.claude import rules
from swarm.programs.values import Launch
from swarm.roles.options import Permissions, RoleOptions

_BARE = "python -I -S -c pass"
_GOALS = {"event, noted": 1.5, "event, rules for other tools": 1.5, "event, judged by rules": 3.0}
_DENY = ("Bash(rm *)", "Bash(git push *)", "Read(.env)", "Edit(vault/**)")
_EVENT = {
    "hook_event_name": "PreToolUse",
    "session_id": "6c1ed0a4-0d4f-4b0f-9c56-0d8f7f9a3b11",
    "permission_mode": "default",
    "tool_name": "Bash",
    "tool_input": {"command": "cd src && git status && ls -l | head -n 20", "description": "look"},
}


def run(*, quick: bool) -> list[dict[str, object]]:
    """Measure in turns; the first turn does not count."""
    guard = Path(swarm.permissions.guard.__file__)
    python = [sys.executable, "-I", "-S"]
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        event = json.dumps({**_EVENT, "cwd": name}).encode()
        commands = {
            _BARE: [*python, "-c", "pass"],
            "event, noted": [*python, str(guard.parents[1] / "machine" / "hook.py"), name],
            "event, rules for other tools": [*python, str(guard), _folder(top, "WebFetch(domain:example.com)")],
            "event, judged by rules": [*python, str(guard), _folder(top, *_DENY)],
        }
        times: dict[str, list[float]] = {one: [] for one in commands}
        for _ in range(6 if quick else 61):
            for one, command in commands.items():
                began = time.perf_counter_ns()
                subprocess.run(command, input=event, stdout=subprocess.DEVNULL, check=True)
                times[one].append((time.perf_counter_ns() - began) / 1e6)
    middle = {one: median(taken[1:]) for one, taken in times.items()}
    return [
        {"command": one, "ms": round(ms, 2), "ratio": round(ms / middle[_BARE], 2), "goal": _GOALS.get(one)}
        for one, ms in middle.items()
    ]


def _folder(top: Path, *deny: str) -> str:
    """Make the run folder of an agent with these rules."""
    folder = top / f"rules-{len(deny)}"
    folder.mkdir()
    options = RoleOptions(permissions=Permissions(deny=deny))
    role, task = folder / "role.md", folder / "task.md"
    launch = Launch("a", "r", "s", top, folder, role, task, "", "", resume=False, executable="claude", options=options)
    for file, text in rules.files(launch).items():
        (folder / file).write_text(text, encoding="utf-8")
    return str(folder)


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'hooks':<30} {'ms':>7} {'to bare':>8} {'(goal)':>7}"]
    return lines + [f"{r['command']:<30} {r['ms']:>7} {r['ratio']:>8} {r['goal'] or '':>7}" for r in rows]


if __name__ == "__main__":
    sys.stdout.write("\n".join(table(run(quick=False))) + "\n")
