"""Read a role's YAML file: every key, its type and its limits."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Any

from swarm.kit import commandline
from swarm.kit.scalars import fraction_from, seconds_from, show_seconds
from swarm.kit.yaml import Listing, Node, Pair, Scalar, Table
from swarm.kit.yaml_reader import Key, Reader, choice, filled, gather, listing, number, refuse, switch, table, text
from swarm.permissions import decide
from swarm.project.names import PROGRAM_ALIASES, PROGRAMS
from swarm.roles.options import (
    EVENTS,
    Env,
    Heartbeat,
    Hook,
    Limits,
    PermissionMode,
    Permissions,
    Policy,
    Reviewer,
    RoleOptions,
    Setup,
    Teardown,
    Unclear,
    WorktreeOptions,
)
from swarm.roles.rights import Right

_DAY = 86_400
_WEEK = 7 * _DAY
_LONG = 1 << 20
#: How people call the programs, and how swarm does.
_PROGRAMS = {**{name: name for name in PROGRAMS}, **PROGRAM_ALIASES}
#: Keys of a program's settings that have a key of their own here, or would switch off what swarm needs.
_NOT_IN_SETTINGS = {
    "permissions": "use `permissions:` of the role",
    "hooks": "use `hooks:` of the role",
    "model": "use `model:` of the role",
    "env": "use `env:` of the role",
    "disableAllHooks": "swarm's own hooks must run",
    "allowManagedHooksOnly": "swarm's own hooks must run",
    "defaultMode": "use `permission_mode:` of the role",
}


# --- checks of single texts -----------------------------------------------------------------------


def _word(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][^\s]*", value) is None:
        raise ValueError("must be one word that begins with a letter or digit")
    return value


def _folder(value: str) -> str:
    if value == ".":
        return value
    return "/".join(part for part in commandline.inside(value).split("/") if part not in ("", ".")) or "."


def _root_dir(value: str) -> str:
    if "\0" in value or not value.strip():
        raise ValueError("must be a path: absolute, from ~/, or relative to the swarm directory")
    return os.path.normpath(value)


def _config_dir(value: str) -> str:
    if not value.startswith(("/", "~/")):
        raise ValueError("must be an absolute path, or one that begins with ~/")
    return value


def _variables(value: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_*?]+", value) is None:
        raise ValueError("must be the name of a variable, or a pattern with * and ?")
    return value


def _rule(value: str) -> str:
    decide.parse_rule(value)
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("must be a whole number")  # noqa: TRY004  # the caller tells where
    return value


def _decimal(value: object) -> float:
    if isinstance(value, bool) or re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", str(value)) is None:
        raise ValueError("must be a number such as 5 or 2.50")
    return float(str(value))


def _time(low: float, high: float) -> Reader:
    return number(low, high, seconds_from, show_seconds)


# --- blocks ---------------------------------------------------------------------------------------


def _block(make: Any, keys: dict[str, Key]) -> Reader:
    read = table(keys)
    return lambda node, key: make(**read(node, key))


_REVIEWER_KEYS = {
    "enabled": Key(switch),
    "instructions": Key(text(filled, longest=_LONG, lines=True)),
    "model": Key(text(_word, longest=100)),
    "timeout": Key(_time(1, 55)),
}


def _reviewer(node: Node, key: str) -> Reviewer:
    """Instructions alone switch it on; without any it cannot be on."""
    found = table(_REVIEWER_KEYS)(node, key)
    made = Reviewer(**{"enabled": "instructions" in found, **found})
    if made.enabled and not made.instructions:
        refuse(node, f"{key}.instructions", "are missing", "say what to allow, to deny and to ask about")
    return made


_RULES = listing(text(_rule, longest=decide.LONGEST_RULE), most=500)
_PERMISSIONS = _block(
    Permissions,
    {
        "allow": Key(_RULES),
        "deny": Key(_RULES),
        "unclear": Key(choice(Unclear, Unclear)),
        "agent": Key(_reviewer, "reviewer", ("reviewer", "review_agent")),
    },
)


def _heartbeat(node: Node, key: str) -> Heartbeat:
    found = table(
        {
            "idle_timeout": Key(_time(1, _WEEK)),
            "message": Key(text(filled, longest=10_000, lines=True)),
            "condition": Key(text(longest=10_000, lines=True)),
        }
    )(node, key)
    for wanted in ("idle_timeout", "message"):
        if wanted not in found:
            refuse(node, f"{key}.{wanted}", "is missing")
    return Heartbeat(**found)


_LINE = text(commandline.command, longest=10_000, lines=True)


def _program(node: Node, key: str) -> str:
    """Read a command as one line or as words; it is kept as one line that splits into these words."""
    if not isinstance(node, Listing):
        line: str = _LINE(node, key)
        return line
    try:
        return commandline.argv(listing(text(longest=10_000, lines=True), distinct=False)(node, key))
    except ValueError as error:
        refuse(node, key, str(error))


_COMMANDS = listing(_program, distinct=False)
_FILES = listing(text(commandline.inside))
_POLICY = Key(choice(Policy, Policy), aliases=("on_failure", "on_error"))
_SETUP = _block(
    Setup,
    {
        "copy": Key(_FILES),
        "link": Key(_FILES, aliases=("symlink",)),
        "run": Key(_COMMANDS, aliases=("commands",)),
        "ports": Key(listing(text(commandline.port, longest=100), most=20)),
        "timeout": Key(_time(1, _DAY)),
        "policy": _POLICY,
    },
)
_TEARDOWN = _block(
    Teardown, {"run": Key(_COMMANDS, aliases=("commands",)), "timeout": Key(_time(1, _DAY)), "policy": _POLICY}
)
_LIMITS = _block(
    Limits,
    {
        "tokens": Key(number(1, 10**12, _whole)),
        "cost": Key(number(0.01, 10**6, _decimal)),
        "minutes": Key(number(0.1, 10**6, _decimal)),
        "agents": Key(number(1, 256, _whole)),
    },
)
_WORKTREE = _block(
    WorktreeOptions,
    {
        "enabled": Key(switch),
        "branch_from": Key(text(_word, longest=250)),
        "use_detached_head": Key(switch),
        "subdir": Key(text(_folder)),
    },
)


def _values(node: Node, key: str) -> dict[str, str]:
    if not isinstance(node, Table):
        refuse(node, key, "must be a mapping of names and values")
    name, value = text(commandline.variable, longest=100), text(longest=32_000, lines=True)

    def one(pair: Pair) -> tuple[str, str]:
        return name(pair.key, key), value(pair.value, f"{key}.{pair.key.value}")

    return dict(gather((pair.key, partial(one, pair)) for pair in node.pairs.values()))


def _env(node: Node, key: str) -> Env:
    patterns = listing(text(_variables, longest=100))
    found = table(
        {
            "pass": Key(patterns, "keep", ("keep", "pass_through")),
            "drop": Key(patterns, aliases=("remove", "unset")),
            "set": Key(_values, aliases=("add",)),
        }
    )(node, key)
    return Env(narrow="keep" in found, **found)


# --- hooks and settings ---------------------------------------------------------------------------

_HOOK_KEYS = {
    "matcher": Key(text(longest=1000)),
    "command": Key(text(filled, longest=10_000, lines=True)),
    "timeout": Key(_time(1, 3600)),
    "type": Key(choice(("command",)), ""),
}


def _hooks(node: Node, key: str) -> tuple[Hook, ...]:
    """Read ``event: [{matcher, command, timeout}]``; an entry may also stand as in the settings file of a program."""
    if not isinstance(node, Table):
        refuse(node, key, "must be a mapping of events")
    found = gather((pair.key, partial(_event, pair, key)) for pair in node.pairs.values())
    return tuple(hook for several in found for hook in several)


def _event(pair: Pair, key: str) -> list[Hook]:
    event = choice(EVENTS)(pair.key, key)
    items = pair.value.items if isinstance(pair.value, Listing) else (pair.value,)
    found = gather((item, partial(_entry, item, f"{key}.{event}", event)) for item in items)
    return [hook for several in found for hook in several]


def _entry(node: Node, key: str, event: str) -> list[Hook]:
    inner = node.get("hooks") if isinstance(node, Table) else None
    if inner is None:
        return [_hook(node, key, event, "")]
    outer = table({"matcher": _HOOK_KEYS["matcher"], "hooks": Key(lambda _node, _key: None)})(node, key)
    if not isinstance(inner, Listing):
        refuse(inner, f"{key}.hooks", "must be a list")
    matcher = str(outer.get("matcher", ""))
    return gather((item, partial(_hook, item, key, event, matcher)) for item in inner.items)


def _hook(node: Node, key: str, event: str, matcher: str) -> Hook:
    found = table(_HOOK_KEYS)(node, key)
    if "command" not in found:
        refuse(node, f"{key}.command", "is missing")
    found.pop("type", None)
    return Hook(**{"event": event, "matcher": matcher, **found})


def _settings(node: Node, key: str) -> dict[str, Any]:
    if not isinstance(node, Table):
        refuse(node, key, "must be a mapping")
    for name, pair in node.pairs.items():
        if name in _NOT_IN_SETTINGS:
            refuse(pair.key, f"{key}.{name}", "cannot stand here", _NOT_IN_SETTINGS[name])
    return _as_json(node, key)  # type: ignore[no-any-return]  # of a mapping it makes a mapping


def _as_json(node: Node, key: str) -> Any:
    """Return values that are another program's: with numbers that keep their fractions, which are text elsewhere."""
    if isinstance(node, Table):
        return {name: _as_json(pair.value, f"{key}.{name}") for name, pair in node.pairs.items()}
    if isinstance(node, Listing):
        return [_as_json(item, key) for item in node.items]
    value = node.plain()
    if not isinstance(node, Scalar) or not node.bare or not isinstance(value, str):
        return value
    try:
        fraction = fraction_from(value)
    except ValueError as error:
        refuse(node, key, str(error))
    return value if fraction is None else fraction


def _command(node: Node, key: str) -> tuple[str, ...]:
    import shlex

    if isinstance(node, Listing):
        found: tuple[str, ...] = listing(text(longest=10_000), distinct=False)(node, key)
    else:
        line = text(filled, longest=10_000)(node, key)
        try:
            found = tuple(shlex.split(line))
        except ValueError as error:
            refuse(node, key, f"cannot be read: {error}")
    if not found or not found[0]:
        refuse(node, key, "must name a program")
    return found


# --- the file -------------------------------------------------------------------------------------

_TEXT = text(longest=_LONG, lines=True)
KEYS = {
    "name": Key(text(), aliases=("role_name",)),
    "description": Key(text(longest=500, lines=True)),
    "instructions": Key(_TEXT, aliases=("append_system_prompt",)),
    "instructions_file": Key(text(commandline.inside)),
    "system_prompt": Key(_TEXT),
    "agent_type": Key(
        choice(_PROGRAMS, _PROGRAMS.__getitem__), aliases=("agent", "program", "agent_harness", "harness")
    ),
    "command": Key(_command, aliases=("agent_command", "agent_harness_command")),
    "model": Key(text(_word, longest=100), aliases=("agent_model",)),
    "permission_mode": Key(
        choice(
            PermissionMode,
            PermissionMode,
            {"delegate": "programs no longer know it; use acceptEdits, or let `permissions.agent` decide"},
        ),
        aliases=("claude_permission_mode",),
    ),
    "root_dir": Key(text(_root_dir, longest=4096), aliases=("working_dir", "cwd")),
    "claude_config_dir": Key(text(_config_dir), aliases=("config_dir",)),
    "permissions": Key(_PERMISSIONS),
    "hooks": Key(_hooks),
    "settings": Key(_settings),
    "env": Key(_env),
    "heartbeat": Key(_heartbeat),
    "setup": Key(_SETUP),
    "teardown": Key(_TEARDOWN),
    "limits": Key(_LIMITS),
    "worktree": Key(_WORKTREE),
    "telemetry": Key(switch),
    "print": Key(switch, aliases=("print_mode", "headless", "non_interactive")),
    "may": Key(listing(choice(Right, Right)), aliases=("rights",)),
}
_OPTIONS = frozenset(RoleOptions.__dataclass_fields__)
_READ = table(KEYS)


def read(tree: Table) -> dict[str, Any]:
    """Return the values of a role's file by the names of `KEYS`.

    Raises:
        ConfigProblem: something is wrong with it; `nodes.problems_of` gives every single problem.
    """
    found: dict[str, Any] = _READ(tree, "")
    if "command" in found and "agent_type" in found:
        place = next(pair.key for name, pair in tree.pairs.items() if name in ("command", *KEYS["command"].aliases))
        refuse(place, "command", "stands beside agent_type", "keep one of the two")
    return found


def options(values: dict[str, Any]) -> RoleOptions:
    """Return those of the values that are options."""
    return RoleOptions(**{name: value for name, value in values.items() if name in _OPTIONS})
