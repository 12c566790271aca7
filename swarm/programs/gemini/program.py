"""Gemini CLI: started in its terminal interface, or for one task, under a conversation id chosen beforehand.

Nothing is written into the user's ``~/.gemini`` or the worktree.  The program has no option for instructions, so the
role's text opens the first prompt.  It takes an administrator's settings only from folders of root's; whoever is not
root gets a home for each agent, of links to the user's, with settings of its own.

Rules are policy files of the run folder.  An option that names such a file puts away those that the user's settings
name, so these are named again.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files as fsio
from swarm.kit.errors import SwarmError
from swarm.machine import records
from swarm.permissions.decide import Rules
from swarm.programs import door, model_access, prompts
from swarm.programs.base import COUNTED, OWN, RULES, Program, home_of, seen_login
from swarm.programs.errors import RulesNotEnforced
from swarm.programs.gemini import turns
from swarm.programs.gemini.spending import USERS
from swarm.programs.gemini.spending import home_of as home_of_records
from swarm.programs.gemini.translate import translate
from swarm.programs.reading.notes import note
from swarm.programs.values import PROMPT, LaunchSpec, Login
from swarm.roles.options import PermissionMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from swarm.permissions.translation import Gaps
    from swarm.programs.model_access import Service
    from swarm.programs.turns import Said
    from swarm.programs.values import Launch
    from swarm.project.config.sections import Telemetry
    from swarm.roles.options import RoleOptions

_DENIED, _ALLOWED = "denied.toml", "allowed.toml"
#: Takes the place of the machine's own settings, and holds them.
_SETTINGS, _SYSTEM = "gemini-settings.json", "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
#: In the run folder: a home of links.
_HOME = "gemini"
#: Where the program has the machine's own files. With policies of the machine it takes no others as an administrator's.
_MACHINE = Path("/Library/Application Support/GeminiCli" if sys.platform == "darwin" else "/etc/gemini-cli")
_LARGEST = 4 << 20
_MODES = {
    PermissionMode.DEFAULT: "default",
    PermissionMode.ACCEPT_EDITS: "auto_edit",
    PermissionMode.AUTO: "auto_edit",
    PermissionMode.PLAN: "plan",
    PermissionMode.DONT_ASK: "default",
    PermissionMode.BYPASS: "yolo",
}

#: In a box, whose home is new, it would ask how to log in, and there are no administrator's settings to name the door.
#: This is written inside: the host writes nothing there.
_BEGIN_IN_BOX = 'f=$HOME/.gemini/settings.json; [ -e "$f" ] || { mkdir -p "${f%/*}" && echo "$0" >"$f"; }; exec "$@"'
#: The same where there is no administrator's file. What the user's home has is linked: logins, policies, conversations.
_BEGIN_AT_HOME = """
home=$1 user=$2 settings=$3
shift 3
mkdir -p "$user/tmp" "$home/.gemini" && cp "$settings" "$home/.gemini/settings.json" || exec "$@"
for one in "$user"/* "$user"/.[!.]*; do
  [ "${one##*/}" = settings.json ] || [ ! -e "$one" ] || ln -sfn "$one" "$home/.gemini/${one##*/}"
done
printf %s "${user%/.gemini}" >"$home/$0" && GEMINI_CLI_HOME=$home && export GEMINI_CLI_HOME
exec "$@"
"""
_LOGIN_IN_BOX = {"security": {"auth": {"selectedType": "gemini-api-key"}}}


class Gemini(Program):
    """``gemini``.

    Args:
        machine: the folder of the machine's own files.
    """

    name = "gemini"
    tells_version = True
    title = "Gemini CLI"
    acts = (".gemini/settings.json", "**/.gemini/")
    prints = True
    turns = True
    holds = (OWN,)
    obeys = RULES | COUNTED | {"telemetry", "model", "permission_mode", "heartbeat", "print"}

    def __init__(self, machine: Path = _MACHINE) -> None:
        self._machine = machine

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the program's name."""
        return self.name

    def check(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Refuse deny rules on a machine where the program would leave them aside."""
        policies = self._machine / "policies"
        if options.permissions.deny and any(policies.glob("*.toml")):
            yield RulesNotEnforced(
                f"cannot enforce the deny rules of a role with Gemini CLI: this machine has its own policies in "
                f"{policies}, and Gemini CLI then ignores those of swarm"
            )

    def gaps(self, rules: Rules) -> Gaps:
        """Return which rules it holds in part only, or not at all."""
        return translate(rules).gaps

    def launch(self, launch: Launch) -> LaunchSpec:
        """Start a conversation under the id chosen beforehand, or take it up again."""
        resume = launch.turn.resume if launch.turn else launch.resume and _has_conversation(launch)
        held, at_home = self._door(launch), self._door_at_home(launch)
        argv = [
            *(_begin_in_box(launch) if launch.models_at else _begin_at_home(launch) if at_home else ()),
            launch.executable,
            "--resume" if resume else "--session-id",
            launch.conversation,
        ]
        argv += ["--skip-trust", "--approval-mode", _MODES[launch.options.permission_mode]]
        given = launch.options.permissions
        said = translate(Rules.parse(given.allow, given.deny), str(launch.worktree), launch.options.worktree.subdir)
        files = {name: text for name, text in ((_DENIED, said.denied), (_ALLOWED, said.allowed)) if text}
        if said.denied:  # an administrator's wins over all else, yolo too
            argv += _policies("--admin-policy", launch, _DENIED, self._named(launch, "adminPolicyPaths"))
        if said.allowed:
            own = self._named(launch, "policyPaths") or [str(_home(launch.environ) / "policies")]
            argv += _policies("--policy", launch, _ALLOWED, own)
        if launch.options.model:
            argv += ["--model", launch.options.model]
        argv += launch.args
        env = {**_variables(launch.models_at), **({_SYSTEM: str(launch.run_dir / _SETTINGS)} if held else {})}
        files |= held | at_home
        if launch.turn is not None:
            argv += ["--output-format", "stream-json"]
            files[PROMPT] = launch.turn.text if resume else _first(launch)
            return LaunchSpec(tuple(argv), env, files | note(self.name, asked="no"), prints=True, stdin=PROMPT)
        if launch.options.print:
            argv.append(f"--prompt={prompts.print_prompt(launch, again=True) if resume else _first(launch)}")
            return LaunchSpec(tuple(argv), env, files | note(self.name, asked="no"), prints=True)
        asked = not resume
        if asked:
            argv.append(f"--prompt-interactive={_first(launch)}")
        return LaunchSpec(tuple(argv), env, files | note(self.name, asked="yes" if asked else "no"))

    def said(self, out: Path) -> Said:
        """Return what it said of a turn."""
        return turns.said(out)

    def knows(self, launch: Launch) -> bool:
        """Whether it has a record of the conversation."""
        return _has_conversation(launch)

    def _door(self, launch: Launch) -> dict[str, str]:
        """Return the settings with the door; none where the program would leave them aside, or the machine's are odd.

        It takes such settings only from a file of the administrator's, in folders that nobody else may write to.
        """
        return self._with_door(launch, self._machines(launch)) if _is_administrators(launch.run_dir) else {}

    def _door_at_home(self, launch: Launch) -> dict[str, str]:
        """Return the user's settings with the door, for a home of the agent's own; none where they are odd."""
        if _is_administrators(launch.run_dir):
            return {}
        return self._with_door(launch, _home(launch.environ) / "settings.json")

    def _with_door(self, launch: Launch, file: Path) -> dict[str, str]:
        if not launch.door or launch.models_at:
            return {}
        try:
            found = records.read_object(str(file), _LARGEST, follow=True) if fsio.exists(file) else {}
        except (OSError, ValueError):
            return {}
        if not isinstance(found.get("mcpServers", {}), dict):
            return {}
        users = _home(launch.environ) / "settings.json"
        known = (self._machines(launch), users, launch.worktree / ".gemini/settings.json")
        servers = {**found.get("mcpServers", {}), door.name_beside(known): _server(launch)}
        return {_SETTINGS: json.dumps({**found, "mcpServers": servers}, indent=2)}

    def _machines(self, launch: Launch) -> Path:
        """Return the machine's own settings."""
        return Path(launch.environ.get(_SYSTEM) or self._machine / "settings.json")

    def _named(self, launch: Launch, key: str) -> list[str]:
        """Return the policies that settings name: the user's, the project's, the machine's."""
        machine = launch.environ.get(_SYSTEM) or self._machine / "settings.json"
        files = (_home(launch.environ) / "settings.json", launch.worktree / ".gemini/settings.json", Path(machine))
        return list(dict.fromkeys(path for file in files for path in _listed(file, key)))

    def login(self, environ: Mapping[str, str]) -> Login:
        """Return whether it has an account to use."""
        home = Path(home_of_records(environ, str(home_of(environ))))
        keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI")
        return Login(seen_login(environ, keys, [home / "oauth_creds.json"]), "start `gemini` once and log in")

    def models(self, options: RoleOptions, environ: Mapping[str, str]) -> tuple[Service, ...]:
        """Return Google's API, by key: a login by Google's account speaks to another API, which has no door."""
        key = environ.get("GEMINI_API_KEY") or environ.get("GOOGLE_API_KEY")
        return (model_access.google(environ.get("GOOGLE_GEMINI_BASE_URL", ""), {"x-goog-api-key": key} if key else {}),)

    def telemetry(self, wish: Telemetry) -> Mapping[str, str]:
        """Return its own variables; the address it takes from OpenTelemetry's. By itself it would send prompts."""
        return {
            "GEMINI_TELEMETRY_ENABLED": "true",
            "GEMINI_TELEMETRY_TARGET": "local",
            "GEMINI_TELEMETRY_OTLP_PROTOCOL": wish.protocol.partition("/")[0],
            "GEMINI_TELEMETRY_LOG_PROMPTS": str(wish.prompts).lower(),
        }


PROGRAM = Gemini()


def _is_administrators(folder: Path) -> bool:
    """Whether root owns a folder and all above it, and no other user may write to them."""
    try:
        found = [one.stat() for one in (folder, *folder.parents)]
    except OSError:
        return False
    return all(one.st_uid == 0 and not one.st_mode & 0o022 for one in found)


def _policies(option: str, launch: Launch, name: str, others: Iterable[str]) -> Iterator[str]:
    """Give the words that name policies; the program takes a comma for the end of a path, our own names have none."""
    for path in (str(launch.run_dir / name), *others):
        yield from (option, os.path.relpath(path, launch.worktree) if "," in path else path)


def _listed(file: Path, key: str) -> list[str]:
    """Return the paths that a file of settings lists under a key; it may have comments, which JSON has not."""
    try:
        text = fsio.read_small(file, _LARGEST).decode("utf-8", "replace")
        found = re.search(rf'"{key}"\s*:\s*\[([^\]]*)\]', text)
        return [json.loads(one) for one in re.findall(r'"(?:[^"\\]|\\.)*"', found[1])] if found else []
    except (OSError, SwarmError, ValueError):
        return []


def _server(launch: Launch) -> dict[str, object]:
    """Return the entry of the door."""
    command, *args = launch.door
    return {"command": command, "args": args, "trust": True, "timeout": door.LONGEST * 1000}


def _begin_in_box(launch: Launch) -> tuple[str, ...]:
    """Return the words before the program that give it settings in its new home; it keeps those that are there."""
    servers = {door.NAME: _server(launch)} if launch.door else {}
    return "/bin/sh", "-c", _BEGIN_IN_BOX, json.dumps({**_LOGIN_IN_BOX, "mcpServers": servers})


def _begin_at_home(launch: Launch) -> tuple[str, ...]:
    """Return the words before the program that make a home of links for it, or renew that."""
    made, users = launch.run_dir / _HOME, _home(launch.environ)
    return "/bin/sh", "-c", _BEGIN_AT_HOME, USERS, str(made), str(users), str(launch.run_dir / _SETTINGS)


def _variables(door: str) -> dict[str, str]:
    """Return the variables by which the program in a box finds its door; without one none."""
    if not door:
        return {}
    return {"GEMINI_API_KEY": model_access.PLACEHOLDER, "GOOGLE_GEMINI_BASE_URL": f"{door}/google"}


def _home(environ: Mapping[str, str]) -> Path:
    return Path(home_of_records(environ, environ.get("HOME") or "~")).expanduser()


def _has_conversation(launch: Launch) -> bool:
    return any(_home(launch.environ).glob(f"tmp/*/chats/session-*-{launch.conversation[:8]}.json*"))


def _first(launch: Launch) -> str:
    task = prompts.prompt(launch) if launch.task else "There is no task yet. Answer only that you are ready."
    return f"{prompts.role(launch).strip()}\n\nThat is who you are in all of this conversation. Your task:\n\n{task}"
