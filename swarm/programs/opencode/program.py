"""opencode: started in its terminal interface, or for one task with ``run``.

Our part of its configuration travels in its environment.  The role's rules go where the program looks last.
Deny rules also go to the program's own agents, as rules of an agent come after the rules for all.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit.errors import UsageProblem
from swarm.permissions.decide import Rules
from swarm.programs import door, prompts
from swarm.programs.base import COUNTED, OWN, RULES, Program, home_of, seen_login
from swarm.programs.opencode import access, turns
from swarm.programs.opencode.translate import translate
from swarm.programs.reading.notes import note
from swarm.programs.values import LaunchSpec, Login
from swarm.roles.options import PermissionMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swarm.kit.errors import SwarmError
    from swarm.permissions.translation import Gaps
    from swarm.programs.model_access import Service
    from swarm.programs.opencode.translate import Translation
    from swarm.programs.turns import Said
    from swarm.programs.values import Launch
    from swarm.roles.options import RoleOptions

_CONFIG = "OPENCODE_CONFIG_CONTENT"
#: Added to all other configuration, as the last.
_LAST = "OPENCODE_PERMISSION"
_ITS_AGENTS = ("build", "plan", "general", "explore")
#: The one prompt of print mode.  ``run`` would put quotes around an argument with blanks and fails over a number.
_PROMPT = "prompt.md"
_FROM_FILE = ("/bin/sh", "-c", f'exec "$0" "$@" <"$SWARM_RUN_DIR/{_PROMPT}"')
#: One variable holds 128 KiB on Linux; some are left for what the user gives in the same way.
_MOST = 100_000
#: The permissions of each mode; without them the program asks about nothing.
_ASK = {"edit": "ask", "bash": "ask", "webfetch": "ask"}
_MODES: dict[PermissionMode, dict[str, str]] = {
    PermissionMode.DEFAULT: _ASK,
    PermissionMode.ACCEPT_EDITS: {**_ASK, "edit": "allow"},
    PermissionMode.AUTO: {**_ASK, "edit": "allow"},
    PermissionMode.PLAN: {**_ASK, "edit": "deny"},
    PermissionMode.DONT_ASK: dict.fromkeys(_ASK, "deny"),
    PermissionMode.BYPASS: dict.fromkeys(_ASK, "allow"),
}


class Opencode(Program):
    """``opencode``."""

    name = "opencode"
    tells_version = True
    title = "OpenCode"
    acts = ("opencode.json", "opencode.jsonc", "**/.opencode/")
    prints = True
    turns = True
    holds = (OWN,)
    obeys = RULES | COUNTED | {"model", "permission_mode", "heartbeat", "print"}

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def check(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Refuse more deny rules than one variable of its environment can carry to it."""
        said = translate(Rules.parse(options.permissions.allow, options.permissions.deny))
        if len(json.dumps(said.denials)) * len(_ITS_AGENTS) > _MOST:
            yield UsageProblem(
                "cannot enforce the deny rules of a role with opencode: they are too many to pass to it",
                hint="combine several rules, such as Bash(git *) for single commands of git",
            )

    def gaps(self, rules: Rules) -> Gaps:
        """Return which rules it holds in part only, or not at all."""
        return translate(rules).gaps

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start it with its first prompt, or take up the newest conversation of its worktree."""
        session = _conversation(launch) if launch.resume else ""
        prints = launch.options.print
        argv = [*_FROM_FILE, launch.executable, "run"] if prints else [launch.executable]
        if launch.turn is not None:
            session = launch.conversation if launch.turn.resume else ""
            argv = [launch.executable, "run", "--format", "json"]
        if session:
            argv += ["--session", session]
        if launch.options.model:
            argv += ["--model", launch.options.model]
        argv += launch.args
        asked = bool(launch.task and not session and not prints)
        if asked:
            argv.append(f"--prompt={prompts.prompt(launch)}")
        files = note(self.name, asked="yes" if asked else "no")
        if prints:
            files[_PROMPT] = launch.turn.text if launch.turn else prompts.print_prompt(launch, again=bool(session))
        rules = _rules(launch)
        env = {_CONFIG: json.dumps(_config(launch, rules)), "OPENCODE_DISABLE_AUTOUPDATE": "1"}
        if launch.models_at:
            env["OPENCODE_DISABLE_MODELS_FETCH"] = "1"  # its list of models is on a host that the box does not reach
        if rules.permission:
            env[_LAST] = json.dumps({**_given(launch, _LAST), **rules.permission})
        return LaunchSpec(tuple(argv), env, files, prints=prints, stdin=_PROMPT if launch.turn else "")

    def said(self, out: Path) -> Said:
        """Return what it said of a turn."""
        return turns.said(out)

    def knows(self, launch: Launch) -> bool:
        """Whether its database has the conversation."""
        return bool(_ask(launch, "select session_id from message where session_id = ? limit 1", launch.conversation))

    def last_conversation(self, launch: Launch) -> str:
        """Return the newest one of its folder."""
        return _conversation(launch)

    def models(self, options: RoleOptions, environ: Mapping[str, str]) -> tuple[Service, ...]:
        """Return the APIs for which the user has a key."""
        return access.models(environ)

    def login(self, environ: Mapping[str, str]) -> Login:
        """Return whether it has an account to use."""
        data = Path(environ.get("XDG_DATA_HOME") or home_of(environ) / ".local/share")
        keys = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")
        return Login(seen_login(environ, keys, [data / "opencode/auth.json"]), "opencode auth login")


PROGRAM = Opencode()


def _given(launch: Launch, name: str) -> dict[str, Any]:
    """Return the user's own settings from the same variable."""
    try:
        found = json.loads(launch.environ.get(name) or "{}")
    except ValueError:
        return {}
    return dict(found) if isinstance(found, dict) else {}


def _config(launch: Launch, rules: Translation) -> dict[str, Any]:
    """Return the user's settings with ours."""
    made = _given(launch, _CONFIG)
    said = made.get("instructions")
    made["instructions"] = [*(said if isinstance(said, list) else ()), str(launch.role_file)]
    made.setdefault("permission", _permissions(launch))
    made["autoupdate"] = False
    if launch.door:
        made["mcp"] = {**_table(made.get("mcp")), **_door(launch, made)}
    if launch.models_at:
        made["provider"] = {**_table(made.get("provider")), **access.providers(launch.models_at)}
    if rules.denials:
        agents = _table(made.get("agent"))
        made["agent"] = {**agents, **{name: _denying(agents.get(name), rules) for name in _ITS_AGENTS}}
    return made


def _door(launch: Launch, given: dict[str, Any]) -> dict[str, Any]:
    """Return the entry of the door, whose calls take their time."""
    home = Path(launch.environ.get("XDG_CONFIG_HOME") or home_of(launch.environ) / ".config") / "opencode"
    names = ("opencode.json", "opencode.jsonc")
    known = [folder / name for folder in (home, launch.main, launch.worktree) for name in names]
    taken = door.NAME in _table(given.get("mcp"))
    entry = {"type": "local", "command": list(launch.door), "enabled": True, "timeout": door.LONGEST * 1000}
    return {door.OTHER if taken else door.name_beside(known): entry}


def _denying(agent: object, rules: Translation) -> dict[str, Any]:
    found = _table(agent)
    said = found.get("permission")
    return {**found, "permission": {**({"*": said} if isinstance(said, str) else _table(said)), **rules.denials}}


def _table(found: object) -> dict[str, Any]:
    return dict(found) if isinstance(found, dict) else {}


def _rules(launch: Launch) -> Translation:
    """Return the role's rules; a mode in which nothing is written is not opened by one that allows to."""
    said = launch.options.permissions
    rules = Rules.parse(said.allow, said.deny)
    if launch.options.permission_mode is PermissionMode.PLAN:
        rules = rules._replace(allow=tuple(rule for rule in rules.allow if rule.tool != "Edit"))
    return translate(rules, _permissions(launch)["bash"])


def _permissions(launch: Launch) -> dict[str, str]:
    """Return the permissions; print mode denies requests, because a question there ends the turn."""
    found = _MODES[launch.options.permission_mode]
    if not launch.options.print:
        return found
    return {tool: "deny" if answer == "ask" else answer for tool, answer in found.items()}


def _conversation(launch: Launch) -> str:
    """Return the id of the newest conversation of this worktree; empty without one.

    ``--continue`` would take the newest one of the whole repository, which may be another agent's.
    """
    query = "select id from session where directory = ? and parent_id is null order by time_updated desc limit 1"
    return _ask(launch, query, str(launch.worktree))


def _ask(launch: Launch, query: str, value: str) -> str:
    """Return the first value that its database has for a query; empty without one."""
    from swarm.programs.opencode import database

    environ = launch.environ
    data = Path(environ.get("XDG_DATA_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".local" / "share")
    found = database.rows(str(data / "opencode" / "opencode.db"), query, (value,))
    return str(found[0][0]) if found else ""
