"""What Claude Code runs at every tool call."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import swarm.permissions.guard
from swarm.programs.claude import rules
from swarm.programs.values import Launch
from swarm.roles.options import Permissions, RoleOptions

_DENY = ("Bash(rm *)", "Bash(git push *)", "Read(.env)", "Edit(vault/**)")
_EVENT = {
    "hook_event_name": "PreToolUse",
    "session_id": "6c1ed0a4-0d4f-4b0f-9c56-0d8f7f9a3b11",
    "permission_mode": "default",
    "tool_name": "Bash",
    "tool_input": {"command": "cd src && git status && ls -l | head -n 20", "description": "look"},
}


def commands(top: Path) -> dict[str, list[str]]:
    """Return what Claude Code runs at a tool call: of an agent without rules, with others, and with those that matter.

    Args:
        top: where the run folders of the agents are made.
    """
    guard = Path(swarm.permissions.guard.__file__)
    python = [sys.executable, "-I", "-S"]
    return {
        "hook, noted": [*python, str(guard.parents[1] / "machine" / "hook.py"), str(top)],
        "guard, rules for other tools": [*python, str(guard), _folder(top, "WebFetch(domain:example.com)")],
        "guard, judged by rules": [*python, str(guard), _folder(top, *_DENY)],
    }


def event(cwd: Path) -> bytes:
    """Return a tool call as the program tells it."""
    return json.dumps({**_EVENT, "cwd": str(cwd)}).encode()


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
