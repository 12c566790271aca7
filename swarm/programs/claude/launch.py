"""How Claude Code is started: its arguments, its environment, its configuration folder."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit import files as fsio
from swarm.kit.errors import SwarmError
from swarm.machine import hook_events, records
from swarm.machine.run_folder import runfiles as files
from swarm.programs import door, prompts, reviewer
from swarm.programs.claude import SETTINGS, access, rules, settings, speech
from swarm.programs.reading.notes import note
from swarm.programs.team_prompt import with_team
from swarm.programs.values import PROMPT, LaunchSpec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.programs.values import Launch

#: The role's text and what holds for every agent.
_SYSTEM = "system.md"
#: The door, in a file of the run folder: a project's own `.mcp.json` would be asked about.
_DOOR = ".claude/mcp.json"
#: Variables from an outer Claude Code for its children; an agent is no child session.
_NOT_INHERITED = (
    *("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "CLAUDE_ENV_FILE"),
    *("CLAUDE_PROJECT_DIR", "CLAUDE_CODE_CHILD_SESSION"),
)


def spec(launch: Launch, hooks: Mapping[str, Sequence[Any]]) -> LaunchSpec:
    """Return all that the launcher needs; *hooks* are swarm's own, in the program's form."""
    folder = config_folder(launch.options.claude_config_dir, launch.environ)
    servers = mcp_servers(launch.worktree, launch.main, config_file(folder, launch.environ))
    name = door.OTHER if door.NAME in servers else door.NAME
    made = settings.make(launch.options, hooks=hooks, servers=servers, door=name if launch.door else "")
    env = {
        **access.variables(launch.models_at),
        "DISABLE_AUTOUPDATER": "1",
    }  # left to itself it replaces the machine's installation within seconds
    if made[settings.NO_VIEW] is True:  # also for what its tools run; older versions know the setting by this alone
        env["CLAUDE_CODE_DISABLE_AGENT_VIEW"] = "1"
    if is_own_choice(folder, launch.environ):
        env["CLAUDE_CONFIG_DIR"] = str(folder)
    env |= _door_environment(launch)
    argv, asked = _argv(launch, folder)
    told = {} if launch.turn is None else {PROMPT: launch.turn.text}
    files = {
        **told,
        SETTINGS: json.dumps(made, indent=2),
        **rules.files(launch),
        **note("claude", config=str(folder), home=str(config_file(folder, launch.environ)), asked=asked),
        _SYSTEM: with_team(launch, _role_text(launch)),
        **_reviewer(launch),
        **_door(launch, name),
    }
    if not launch.resume:  # the conversation of an earlier start is over
        fsio.unlink_if_there(launch.run_dir / hook_events.CONVERSATION)
    says = str(folder / "sessions" / "{pid}.json")
    prints = launch.options.print
    without = (*_NOT_INHERITED, *(access.KEYS if launch.models_at else ()))
    stdin = PROMPT if told and launch.turn is not None and not launch.turn.id else ""
    return LaunchSpec(argv, env, files, without=without, awaits=True, says=says, prints=prints, stdin=stdin)


def _door(launch: Launch, name: str) -> dict[str, str]:
    """Return the file that names the door: its tools are in the first turn, and its calls take their time."""
    if not launch.door:
        return {}
    command, *args = launch.door
    entry = {"type": "stdio", "command": command, "args": args, "alwaysLoad": True, "timeout": door.LONGEST * 1000}
    return {_DOOR: json.dumps({"mcpServers": {name: entry}}, indent=2)}


def _door_environment(launch: Launch) -> dict[str, str]:
    """Return the variables that let a slow start and a long wait be; the user's own stay."""
    wanted = {
        "MCP_TIMEOUT": str(door.START * 1000),
        "MCP_CONNECTION_NONBLOCKING": "0",
        "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "0",
    }
    return {name: value for name, value in wanted.items() if launch.door and name not in launch.environ}


def _reviewer(launch: Launch) -> dict[str, str]:
    """Return the settings with which the role's reviewer is asked."""
    one = launch.options.permissions.reviewer
    if not one.enabled:  # also when an earlier launch had one
        fsio.unlink_if_there(launch.run_dir / reviewer.INSTRUCTIONS)
        return {files.REVIEWER: "{}"}
    how = {"executable": launch.executable, "model": one.model, "timeout": one.timeout}
    return {reviewer.INSTRUCTIONS: one.instructions, files.REVIEWER: json.dumps(how)}


def _role_text(launch: Launch) -> str:
    try:
        return launch.role_file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _argv(launch: Launch, folder: Path) -> tuple[tuple[str, ...], str]:
    """Return the arguments, and ``yes`` where a first prompt is among them that begins a dialog."""
    options = launch.options
    conversation = conversation_of(launch.run_dir) if launch.resume else ""
    begun_anew = conversation not in ("", launch.conversation)
    conversation = conversation or launch.conversation
    resume = launch.resume and can_resume(folder, conversation)
    option = "--resume" if resume else "--session-id"
    # Of a turn in one word: an id that begins with a dash would be taken for an option.
    argv = [launch.executable, *([f"{option}={conversation}"] if launch.turn else [option, conversation])]
    # Always said: a fresh configuration may start in a mode that runs tools without asking.
    argv += ["--permission-mode", str(options.permission_mode)]
    argv += ["--settings", str(launch.run_dir / SETTINGS), "--name", launch.agent]
    if options.model:
        argv += ["--model", options.model]
    if options.system_prompt:
        argv += ["--system-prompt", options.system_prompt]
    if launch.door:
        argv += ["--mcp-config", str(launch.run_dir / _DOOR)]  # an option comes behind it: it takes all words up to one
    argv += ["--append-system-prompt-file", str(launch.run_dir / _SYSTEM)]  # not remembered: also when resumed
    argv += launch.args
    if launch.turn is not None:  # a whole line for each thing that it does, also into a file
        argv += ["--print", "--output-format", "stream-json", "--verbose"]
        argv += speech.ARGUMENTS if launch.turn.id else ()
    elif options.print:
        argv += ["--print", "--", prompts.print_prompt(launch, again=resume)]
    asked = bool(launch.task and not options.print and not resume and not begun_anew)
    if asked:
        argv += ["--", prompts.prompt(launch)]
    return tuple(argv), "yes" if asked else "no"


def conversation_of(run_dir: Path) -> str:
    """Return the last conversation of an agent's program; empty if it never reported one.

    It begins another one by itself, at ``/clear`` for one; then that is what the user wants to go on with.
    """
    found = (files.read(str(run_dir), hook_events.CONVERSATION) or {}).get("id")
    return found if isinstance(found, str) and _is_id(found) else ""


def _is_id(text: str) -> bool:
    from uuid import UUID

    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def can_resume(folder: Path, conversation: str) -> bool:
    """Whether a conversation can be resumed.

    A program killed in its first moments left a file without a word of anybody in it.  Claude Code neither resumes
    that nor begins anew under its id, so it is removed.
    """
    files = list(folder.glob(f"projects/*/{conversation}.jsonl"))
    if any(_has_words(path) for path in files):
        return True
    for path in files:
        fsio.unlink_if_there(path)
    return False


#: So much of a line is read at once; the mark that is looked for stands near its beginning.
_LONGEST_LINE = 1 << 20


def _has_words(path: Path) -> bool:
    try:
        with fsio.open_regular(path) as lines:
            return any(b'"type":"user"' in line for line in iter(partial(lines.readline, _LONGEST_LINE), b""))
    except (SwarmError, OSError):
        return False  # a pipe or the like, which an agent may have put there


# --- where its configuration is --------------------------------------------------------------------


def config_folder(wanted: str, environ: Mapping[str, str]) -> Path:
    """Return the configuration folder: the role's, else the swarm directory's if it has a login, else the user's.

    An empty folder of its own would have no account, so an agent never gets one by itself.

    Args:
        wanted: what the role says; a relative path counts from the swarm directory.
        environ: of the agent; ``SWARM_DIR`` in it is the swarm directory.
    """
    home = Path(environ.get("HOME") or "~").expanduser()
    swarm_dir = Path(environ.get("SWARM_DIR") or home)
    if wanted.startswith("~/"):
        return home / wanted[2:]
    if wanted:
        return swarm_dir / wanted  # an absolute path stays
    shared = swarm_dir / "claude-config" / "default"
    return shared if fsio.exists(shared / ".credentials.json") else _users_own(environ, home)


def _users_own(environ: Mapping[str, str], home: Path) -> Path:
    own = environ.get("CLAUDE_CONFIG_DIR")
    return Path(own) if own else home / ".claude"


def is_own_choice(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether the program needs a variable to find its folder."""
    return folder != _users_own(environ, Path(environ.get("HOME") or "~").expanduser())


def config_file(folder: Path, environ: Mapping[str, str]) -> Path:
    """Return the file of first-run answers: in the configuration folder, or next to the default one."""
    usual = Path(environ.get("HOME") or "~").expanduser() / ".claude"
    named = environ.get("CLAUDE_CONFIG_DIR") or is_own_choice(folder, environ)
    return folder / ".claude.json" if named else usual.with_name(".claude.json")


# --- MCP servers of the project --------------------------------------------------------------------


def mcp_servers(worktree: Path, main: Path, config: Path) -> dict[str, bool]:
    """Return the servers that the project asks for, and which of them the user approved in the main checkout."""
    wanted = _object(worktree / ".mcp.json").get("mcpServers")
    if not isinstance(wanted, dict) or not wanted:
        return {}
    projects = _object(config).get("projects")
    project = projects.get(os.fspath(main)) if isinstance(projects, dict) else None
    said = [_object(main / ".claude" / "settings.local.json"), project if isinstance(project, dict) else {}]
    every = any(one.get("enableAllProjectMcpServers") is True for one in said)
    approved = {str(name) for one in said for name in _list(one.get("enabledMcpjsonServers"))}
    refused = {str(name) for one in said for name in _list(one.get("disabledMcpjsonServers"))}
    return {str(name): (every or name in approved) and name not in refused for name in wanted}


def _object(path: Path) -> dict[str, Any]:
    try:
        return records.read_object(str(path), 64 << 20, follow=True)
    except (OSError, ValueError):
        return {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
