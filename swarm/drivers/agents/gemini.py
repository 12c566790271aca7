"""Gemini CLI: started in its terminal interface, or for one task, under a conversation id chosen beforehand.

Nothing is written into the user's ``~/.gemini`` or the worktree.  The program has no option for instructions and
takes settings only from folders that nobody else may write to, so the role's text opens the first prompt.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.domain.panes import LaunchSpec
from swarm.domain.permission_gemini import translate
from swarm.domain.permissions import Rules
from swarm.domain.role_fields import PermissionMode
from swarm.drivers.agents import told
from swarm.drivers.agents.base import Program
from swarm.drivers.agents.notes import note
from swarm.drivers.agents.screens import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.domain import screens
    from swarm.domain.panes import Launch
    from swarm.domain.settings import Telemetry

#: The role's deny rules.
_POLICY = "denied.toml"
_MODES = {
    PermissionMode.DEFAULT: "default",
    PermissionMode.ACCEPT_EDITS: "auto_edit",
    PermissionMode.AUTO: "auto_edit",
    PermissionMode.PLAN: "plan",
    PermissionMode.DONT_ASK: "default",
    PermissionMode.BYPASS: "yolo",
}


class Gemini(Program):
    """``gemini``."""

    name = "gemini"
    prints = True

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start a conversation under the id chosen beforehand, or take it up again."""
        resume = launch.resume and _has_conversation(launch)
        argv = [launch.executable, "--resume" if resume else "--session-id", launch.conversation]
        argv += ["--skip-trust", "--approval-mode", _MODES[launch.options.permission_mode]]
        policy = translate(Rules.parse(deny=launch.options.permissions.deny)).policy
        files = {_POLICY: policy} if policy else {}
        if policy:  # an administrator's wins over all else, yolo too
            argv += ["--admin-policy", _listed(launch)]
        if launch.options.model:
            argv += ["--model", launch.options.model]
        if launch.options.print:
            argv.append(f"--prompt={told.print_prompt(launch, again=True) if resume else _first(launch)}")
            return LaunchSpec(tuple(argv), {}, files | note(self.name, asked="no"), prints=True)
        asked = not resume
        if asked:
            argv.append(f"--prompt-interactive={_first(launch)}")
        return LaunchSpec(tuple(argv), {}, files | note(self.name, asked="yes" if asked else "no"))

    def screens(self) -> screens.Rules | None:
        """Its state is read from its title, and from the questions on its screen."""
        return load(self.name)

    def telemetry(self, wish: Telemetry) -> Mapping[str, str]:
        """Return its own variables; the address it takes from OpenTelemetry's. By itself it would send prompts."""
        return {
            "GEMINI_TELEMETRY_ENABLED": "true",
            "GEMINI_TELEMETRY_TARGET": "local",
            "GEMINI_TELEMETRY_OTLP_PROTOCOL": wish.protocol.partition("/")[0],
            "GEMINI_TELEMETRY_LOG_PROMPTS": str(wish.prompts).lower(),
        }


def _listed(launch: Launch) -> str:
    """Return where the policy is; the program takes a comma for the end of a path, and names of ours have none."""
    path = str(launch.run_dir / _POLICY)
    return os.path.relpath(path, launch.worktree) if "," in path else path


def _has_conversation(launch: Launch) -> bool:
    home = Path(launch.environ.get("HOME") or "~").expanduser()
    return any(home.glob(f".gemini/tmp/*/chats/session-*-{launch.conversation[:8]}.json*"))


def _first(launch: Launch) -> str:
    task = told.prompt(launch) if launch.task else "There is no task yet. Answer only that you are ready."
    return f"{told.role(launch).strip()}\n\nThat is who you are in all of this conversation. Your task:\n\n{task}"
