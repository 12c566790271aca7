"""Codex: started in its terminal interface, with everything of ours on the command line.

Nothing is written into the user's ``~/.codex``: trust for the worktree and the role's text are given with ``-c``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

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


class Codex(Program):
    """``codex``."""

    name = "codex"

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it with its first prompt, or take up the newest conversation of its worktree."""
        resume = launch.resume and _has_conversation(launch)
        trusted = f"projects={{{_toml(str(launch.worktree))}={{trust_level={_toml('trusted')}}}}}"
        # A login shell would set PATH anew, and the agent's commands would not find what it was started with.
        settings = ["check_for_update_on_startup=false", "allow_login_shell=false", trusted]
        settings.append(f"developer_instructions={_toml(told.role(launch))}")
        argv = [launch.executable, *(("resume", "--last") if resume else ())]
        for setting in settings:
            argv += ["-c", setting]
        argv += _MODES[launch.options.permission_mode]
        if launch.options.model:
            argv += ["--model", launch.options.model]
        asked = bool(launch.task and not resume)
        if asked:
            argv += ["--", told.prompt(launch)]
        return LaunchSpec(tuple(argv), {}, note(self.name, asked="yes" if asked else "no"))

    def screens(self) -> Rules | None:
        """Its state is read from its title and the line above its input."""
        return load(self.name)


def _has_conversation(launch: Launch) -> bool:
    """Whether there is one of this worktree; without one it would show a list to choose from."""
    environ = launch.environ
    home = Path(environ.get("CODEX_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".codex")
    wanted = f'"cwd":{json.dumps(str(launch.worktree), ensure_ascii=False)}'
    for path in home.glob("sessions/*/*/*/rollout-*.jsonl"):
        with path.open(encoding="utf-8", errors="replace") as lines:
            if wanted in lines.readline().replace('": ', '":'):
                return True
    return False


def _toml(text: str) -> str:
    """Return a text as TOML writes it; JSON's way is a part of that, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
