"""Codex: started in its terminal interface, or for one task with ``exec``; all of ours is on the command line.

Nothing is written into the user's ``~/.codex``: trust for the worktree, the role's text and the hooks that hold its
rules are given with ``-c``.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.machine.run_folder import runfiles
from swarm.permissions.rules import Rules
from swarm.programs import door, guarded, prompts
from swarm.programs.base import COUNTED, GUARD, RULES, Program, home_of, seen_login
from swarm.programs.codex import access, calls, hooks, queue, served, turns
from swarm.programs.errors import RulesNotEnforced
from swarm.programs.reading.notes import note
from swarm.programs.values import PROMPT, LaunchSpec, Login
from swarm.roles.options import PermissionMode, Unclear

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swarm.kit.errors import SwarmError
    from swarm.permissions.translation import Gaps
    from swarm.programs.model_access import Service
    from swarm.programs.turns import Said, Turn
    from swarm.programs.values import Launch
    from swarm.roles.options import RoleOptions

#: How the role's permission mode is said here.
_MODES = {
    PermissionMode.DEFAULT: ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    PermissionMode.ACCEPT_EDITS: ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    PermissionMode.AUTO: ("--ask-for-approval", "on-request", "--sandbox", "workspace-write"),
    PermissionMode.PLAN: ("--ask-for-approval", "on-request", "--sandbox", "read-only"),
    PermissionMode.DONT_ASK: ("--ask-for-approval", "never", "--sandbox", "workspace-write"),
    PermissionMode.BYPASS: ("--dangerously-bypass-approvals-and-sandbox",),
}
#: The same for ``exec``, which asks nobody and knows some of these options only as settings.
_IN_BOX = {
    **dict.fromkeys(("workspace-write", "read-only"), "danger-full-access"),
    **dict.fromkeys(
        ('sandbox_mode="workspace-write"', 'sandbox_mode="read-only"'), 'sandbox_mode="danger-full-access"'
    ),
}
_PRINT_MODES = {
    **dict.fromkeys(PermissionMode, ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="workspace-write"')),
    PermissionMode.PLAN: ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="read-only"'),
    PermissionMode.BYPASS: ("--dangerously-bypass-approvals-and-sandbox",),
}


class Codex(Program):
    """``codex``."""

    name = "codex"
    tells_version = True
    title = "Codex"
    acts = (".codex/config.toml", "**/.codex/")
    prints = True
    turns = True
    interrupts = 2.0
    takes_texts = True
    holds = (GUARD,)
    obeys = RULES | COUNTED | {"model", "permission_mode", "heartbeat", "print"}

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def check(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Refuse deny rules where the installed program would not run the hook that holds them."""
        found = shutil.which(self.executable(environ), path=environ.get("PATH")) if options.permissions.deny else None
        if found and not hooks.are_run(found, environ):
            yield RulesNotEnforced(
                f"cannot enforce the deny rules of a role with {found}: it would not run swarm's hook, "
                "because its version differs or this machine allows no hooks"
            )

    def gaps(self, rules: Rules) -> Gaps:
        """Return which rules its hook does not hold."""
        return calls.gaps(rules)

    def services(self, environ: Mapping[str, str]) -> list[Path]:
        """Return the notes of its service for sessions in the background."""
        earlier = ("app-server.pid", "app-server-updater.pid")
        return [_home(environ) / served.FOLDER / name for name in (served.PID, "daemon-updater.pid", *earlier)]

    def talks(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variable that each command of a conversation has."""
        return served.talks(str(_home(environ)))

    def left_behind(self, run_dir: Path, worktree: Path) -> list[str]:
        """Return the commands of a conversation in the agent's worktree that nothing holds any more."""
        source = runfiles.read(str(run_dir), runfiles.RECORD) or {}
        return served.left_behind(str(source.get("home")), str(worktree))

    def hand_over(self, run_dir: Path, pid: int, text: str) -> str:
        """Put a text into the conversation by ``codex queue``."""
        return queue.hand_over(run_dir, pid, text)

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it with its first prompt, or take up the newest conversation of its worktree."""
        if launch.turn is not None:
            return _turn(launch, launch.turn)
        return _print(launch) if launch.options.print else _interactive(launch)

    def said(self, out: Path) -> Said:
        """Return what it said of a turn."""
        return turns.said(out)

    def knows(self, launch: Launch) -> bool:
        """Whether it has a record of the conversation with words of a user in it."""
        return queue.has(_home(launch.environ), launch.conversation)

    def last_conversation(self, launch: Launch) -> str:
        """Return the newest one of its folder."""
        return _conversation(launch)

    def models(self, options: RoleOptions, environ: Mapping[str, str]) -> tuple[Service, ...]:
        """Return OpenAI's API, or the provider that the user's settings name."""
        return access.models(_home(environ), environ)

    def login(self, environ: Mapping[str, str]) -> Login:
        """Return whether it has an account to use."""
        seen = seen_login(environ, ("CODEX_API_KEY", "OPENAI_API_KEY"), [_home(environ) / "auth.json"])
        return Login(seen, "codex login")


PROGRAM = Codex()


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CODEX_HOME") or home_of(environ) / ".codex")


def _interactive(launch: Launch) -> LaunchSpec:
    again = _conversation(launch) if launch.resume else ""
    argv = [launch.executable, *(("resume",) if again else ()), *_settings(launch)]
    argv += (*_mode(launch, _MODES), *launch.args)
    asked = bool(launch.task and not again)
    if again:  # named: by itself it passes by those without a terminal
        argv += ["--", again]
    elif asked:
        argv += ["--", prompts.prompt(launch)]
    files = note(Codex.name, asked="yes" if asked else "no") | _files(launch)
    return LaunchSpec(tuple(argv), access.variables(launch.models_at), files)


def _mode(launch: Launch, modes: Mapping[PermissionMode, tuple[str, ...]]) -> Iterator[str]:
    """Give the words of a permission mode. In a box its own sandbox cannot start, and the box takes its place."""
    boxed = "SWARM_SANDBOX" in launch.environ
    for word in modes[launch.options.permission_mode]:
        yield _IN_BOX.get(word, word) if boxed else word


def _print(launch: Launch) -> LaunchSpec:
    again = _conversation(launch) if launch.resume else ""
    argv = [launch.executable, "exec", *(("resume",) if again else ()), *_settings(launch)]
    argv += (*_mode(launch, _PRINT_MODES), *launch.args)
    argv += ["--", *((again,) if again else ()), prompts.print_prompt(launch, again=bool(again))]
    files = note(Codex.name, asked="no") | _files(launch)
    return LaunchSpec(tuple(argv), access.variables(launch.models_at), files, prints=True)


def _turn(launch: Launch, turn: Turn) -> LaunchSpec:
    """Return how it does one turn: it reads the prompt, and a file ends; an open pipe it would wait for."""
    argv = [launch.executable, "exec", *(("resume",) if turn.resume else ()), *_settings(launch)]
    argv += (*_mode(launch, _PRINT_MODES), "--json", "--skip-git-repo-check", *launch.args)
    argv += ["--", *((launch.conversation,) if turn.resume else ()), "-"]
    files = {**note(Codex.name, asked="no"), **_files(launch), PROMPT: turn.text}
    return LaunchSpec(tuple(argv), access.variables(launch.models_at), files, prints=True, stdin=PROMPT)


def _settings(launch: Launch) -> list[str]:
    """Return the settings that both interfaces share."""
    trusted = f"projects={{{_toml(str(launch.worktree))}={{trust_level={_toml('trusted')}}}}}"
    # A login shell would set PATH anew, and the agent's commands would not find what it was started with.
    settings = ["check_for_update_on_startup=false", "allow_login_shell=false", trusted]
    settings.append(f"developer_instructions={_toml(prompts.role(launch))}")
    settings += _held(launch)
    settings += _door(launch)
    settings += access.settings(launch.models_at)
    words = [word for setting in settings for word in ("-c", setting)]
    return [*words, *(("--model", launch.options.model) if launch.options.model else ())]


def _door(launch: Launch) -> list[str]:
    """Return the settings of the door: there before the first turn, its calls without question and limit."""
    if not launch.door:
        return []
    known = (_home(launch.environ) / "config.toml", launch.worktree / ".codex/config.toml")
    server = f"mcp_servers.{door.name_beside(known)}"
    command, *args = launch.door
    return [
        f"{server}.command={_toml(command)}",
        f"{server}.args=[{','.join(_toml(one) for one in args)}]",
        f"{server}.required=true",
        f"{server}.startup_timeout_sec={door.START}",
        f"{server}.tool_timeout_sec={door.LONGEST}",
        f'{server}.default_tools_approval_mode="approve"',
    ]


def _rules(launch: Launch) -> Rules:
    """Return the role's rules; in the mode that only reads none opens anything."""
    said = launch.options.permissions
    plans = launch.options.permission_mode is PermissionMode.PLAN
    return Rules.parse(() if plans else said.allow, said.deny)


def _files(launch: Launch) -> dict[str, str]:
    """Return the rules for the hook, which refuses unclear calls because it cannot make the program ask."""
    rules = _rules(launch)
    allow, deny = ([rule.text for rule in some] for some in rules)
    return guarded.files(launch, deny, allow, unclear=Unclear.DENY)


def _held(launch: Launch) -> list[str]:
    """Return the settings by which the rules are held."""
    rules = _rules(launch)
    events = [*([hooks.BEFORE] if rules.deny else []), *([hooks.ASKED] if rules.allow else [])]
    settings = hooks.settings(launch.run_dir, events) if events else []
    if rules.deny:  # no hook sees input for a running program
        settings.append("features.unified_exec_tty=false")
    if calls.without_web(rules.deny):
        settings.append('web_search="disabled"')
    return settings


def _conversation(launch: Launch) -> str:
    """Return the id of the newest conversation of this worktree; empty without one.

    Without one the program would show a list to choose from.
    """
    return queue.newest(_home(launch.environ), str(launch.worktree))


def _toml(text: str) -> str:
    """Return a text as TOML writes it; JSON's way is a part of that, but for the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
