"""Codex: started in its terminal interface, or for one task with ``exec``; all of ours is on the command line.

Nothing is written into the user's ``~/.codex``: trust for the worktree and the role's text are given with ``-c``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.domain.panes import LaunchSpec
from swarm.domain.role_fields import PermissionMode
from swarm.drivers.agents import told
from swarm.drivers.agents.base import Program
from swarm.drivers.agents.notes import note
from swarm.drivers.agents.screens import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.domain.panes import Launch
    from swarm.domain.screens import Rules

#: How the role's permission mode is said here. There are no rules for single tools.
_MODES = {
    PermissionMode.DEFAULT: ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    PermissionMode.ACCEPT_EDITS: ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    PermissionMode.AUTO: ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    PermissionMode.PLAN: ("--ask-for-approval", "on-request", "--sandbox", "read-only"),
    PermissionMode.DONT_ASK: ("--ask-for-approval", "never", "--sandbox", "workspace-write"),
    PermissionMode.BYPASS: ("--dangerously-bypass-approvals-and-sandbox",),
}
#: The same for ``exec``, which asks nobody and knows some of these options only as settings.
_PRINT_MODES = {
    **dict.fromkeys(PermissionMode, ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="workspace-write"')),
    PermissionMode.PLAN: ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="read-only"'),
    PermissionMode.BYPASS: ("--dangerously-bypass-approvals-and-sandbox",),
}


class Codex(Program):
    """``codex``."""

    name = "codex"
    prints = True

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it with its first prompt, or take up the newest conversation of its worktree."""
        return _print(launch) if launch.options.print else _interactive(launch)

    def screens(self) -> Rules | None:
        """Its state is read from its title and the line above its input."""
        return load(self.name)


def _interactive(launch: Launch) -> LaunchSpec:
    resume = bool(launch.resume and _conversation(launch))
    argv = [launch.executable, *(("resume", "--last") if resume else ()), *_settings(launch)]
    argv += _MODES[launch.options.permission_mode]
    asked = bool(launch.task and not resume)
    if asked:
        argv += ["--", told.prompt(launch)]
    return LaunchSpec(tuple(argv), {}, note(Codex.name, asked="yes" if asked else "no"))


def _print(launch: Launch) -> LaunchSpec:
    again = _conversation(launch) if launch.resume else ""
    argv = [launch.executable, "exec", *(("resume",) if again else ()), *_settings(launch)]
    argv += _PRINT_MODES[launch.options.permission_mode]
    argv += ["--", *((again,) if again else ()), told.print_prompt(launch, again=bool(again))]
    return LaunchSpec(tuple(argv), {}, note(Codex.name, asked="no"), prints=True)


def _settings(launch: Launch) -> list[str]:
    """Return what is the same in both interfaces."""
    trusted = f"projects={{{_toml(str(launch.worktree))}={{trust_level={_toml('trusted')}}}}}"
    # A login shell would set PATH anew, and the agent's commands would not find what it was started with.
    settings = ["check_for_update_on_startup=false", "allow_login_shell=false", trusted]
    settings.append(f"developer_instructions={_toml(told.role(launch))}")
    words = [word for setting in settings for word in ("-c", setting)]
    return [*words, *(("--model", launch.options.model) if launch.options.model else ())]


def _conversation(launch: Launch) -> str:
    """Return the id of the newest conversation of this worktree; empty when there is none.

    Without one the program would show a list to choose from.
    """
    environ = launch.environ
    home = Path(environ.get("CODEX_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".codex")
    for path in sorted(home.glob("sessions/*/*/*/rollout-*.jsonl"), reverse=True):
        with path.open(encoding="utf-8", errors="replace") as lines:
            head = _payload(lines.readline())
        if head.get("cwd") == str(launch.worktree):
            return str(head.get("id") or "")
    return ""


def _payload(line: str) -> dict[str, Any]:
    """Return what the first line of a conversation tells of it."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    payload = found.get("payload") if isinstance(found, dict) else None
    return payload if isinstance(payload, dict) else {}


def _toml(text: str) -> str:
    """Return a text as TOML writes it; JSON's way is a part of that, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
