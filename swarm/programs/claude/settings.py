"""The settings file of one Claude Code agent: made from its role, checked, and given with ``--settings``.

A value of the wrong kind makes the program drop the whole file, in print mode without a word, deny rules
included.  So nothing is written that it would not accept: what swarm knows is checked here, the rest is the program's
own to say (``accepted.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.permissions.rules import Rules
from swarm.programs.claude import translate
from swarm.roles.options import EVENTS, PermissionMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from swarm.roles.options import Hook, RoleOptions

#: The user's other sessions may write to this one: past the bus, and without a question.
INBOUND = "crossSessionInbound"
#: The view from which a conversation goes on in the program's own service, where nobody of swarm's sees it.
NO_VIEW = "disableAgentView"
#: The tools for that.
_CROSS_SESSION = ("SendMessage", "ListAgents")
_TEXTS = (
    *("model", "apiKeyHelper", "outputStyle", "language", "effortLevel", "awsAuthRefresh", "awsCredentialExport"),
    INBOUND,
)
_SWITCHES = (
    *("includeCoAuthoredBy", "enableAllProjectMcpServers", "disableAllHooks", "alwaysThinkingEnabled"),
    *("skipDangerousModePermissionPrompt", "spinnerTipsEnabled", "fastMode", "respectGitignore", NO_VIEW),
)
_LISTS = ("enabledMcpjsonServers", "disabledMcpjsonServers")
_NUMBERS = ("cleanupPeriodDays",)
_PLUGINS = "enabledPlugins"
_TABLES = ("statusLine", "spinnerVerbs", "sandbox")
#: Of these it is known here what they may be, the inside of tables apart.
KNOWN = frozenset((*_TEXTS, *_SWITCHES, *_LISTS, *_NUMBERS, "permissions", "hooks", "env", _PLUGINS))
_RULES = ("allow", "deny", "ask", "additionalDirectories")
_MCP_KEYS = ("enableAllProjectMcpServers", *_LISTS)


def make(
    options: RoleOptions, *, hooks: Mapping[str, Sequence[Any]], servers: Mapping[str, bool], door: str = ""
) -> dict[str, Any]:
    """Return the settings of an agent.

    Args:
        hooks: swarm's own, in the program's form: event → list of ``{matcher, hooks}``.
        servers: MCP servers of the project's ``.mcp.json``: whether the user has approved each. Undecided ones
            would be asked about; they are left out until somebody approves them.
        door: the name of swarm's own MCP server, whose tools are allowed; empty: there is none.
    """
    made: dict[str, Any] = {NO_VIEW: True, INBOUND: "refuse"}
    made |= {key: value for key, value in options.settings.items() if key != "hooks"}
    rules = made.get("permissions")
    own = translate.translate(Rules.parse(options.permissions.allow, options.permissions.deny))
    allow = _joined(rules, "allow", (*own.allow, *((f"mcp__{door}",) if door else ())))
    made["permissions"] = {
        **(rules if isinstance(rules, dict) else {}),
        "allow": allow,
        "deny": _joined(rules, "deny", (*own.deny, *(tool for tool in _CROSS_SESSION if tool not in allow))),
        "defaultMode": str(options.permission_mode),
    }
    given = options.settings.get("hooks")
    all_hooks = _merged(given if isinstance(given, dict) else {}, _of_role(options.hooks), hooks)
    if all_hooks:
        made["hooks"] = all_hooks
        made["disableAllHooks"] = False  # said here it wins over the user's own settings
    if options.permission_mode is PermissionMode.BYPASS:
        made["skipDangerousModePermissionPrompt"] = True
    if servers and not any(key in made for key in _MCP_KEYS):
        made["enabledMcpjsonServers"] = sorted(name for name, approved in servers.items() if approved)
        made["disabledMcpjsonServers"] = sorted(name for name, approved in servers.items() if not approved)
    return made


def _joined(rules: Any, key: str, more: Iterable[str]) -> list[Any]:
    there = rules.get(key) if isinstance(rules, dict) else None
    return list(dict.fromkeys([*(there if isinstance(there, list) else ()), *more]))


def _of_role(hooks: Iterable[Hook]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for hook in hooks:
        command: dict[str, Any] = {"type": "command", "command": hook.command}
        if hook.timeout:
            command["timeout"] = hook.timeout
        found.setdefault(hook.event, []).append({"matcher": hook.matcher, "hooks": [command]})
    return found


def _merged(*several: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in several:
        for event, entries in one.items():
            found.setdefault(event, []).extend(entries if isinstance(entries, list | tuple) else [entries])
    return found


# --- what the program would not accept -------------------------------------------------------------


def problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """Return the problems of some settings, in words; none if the program will accept them."""
    kinds = ((_TEXTS, str, "a text"), (_SWITCHES, bool, "true or false"), (_TABLES, dict, "a mapping"))
    for keys, kind, word in (*kinds, (_NUMBERS, int, "a whole number")):
        for key in keys:
            if key in settings and type(settings[key]) is not kind:
                yield f"settings.{key}: must be {word}"
    for key in _LISTS:
        if key in settings and not _is_texts(settings[key]):
            yield f"settings.{key}: must be a list of texts"
    plugins = settings.get(_PLUGINS, {})
    if not isinstance(plugins, dict) or not all(isinstance(on, bool) or _is_texts(on) for on in plugins.values()):
        yield f"settings.{_PLUGINS}: must be true, false or versions, by plugin"
    env = settings.get("env", {})
    if not isinstance(env, dict) or not _is_texts(list(env.values())):
        yield "settings.env: must be texts by name"
    yield from _rule_problems(settings.get("permissions", {}))
    yield from _hook_problems(settings.get("hooks", {}))


def _rule_problems(rules: Any) -> Iterator[str]:
    if not isinstance(rules, dict):
        yield "settings.permissions: must be a mapping"
        return
    for key in _RULES:
        if key in rules and not _is_texts(rules[key]):
            yield f"settings.permissions.{key}: must be a list of texts"
    mode = rules.get("defaultMode")
    if mode is not None and mode not in set(PermissionMode):
        yield f"settings.permissions.defaultMode: {mode!r} is none of {', '.join(PermissionMode)}"


def _hook_problems(hooks: Any) -> Iterator[str]:
    if not isinstance(hooks, dict):
        yield "settings.hooks: must be a mapping of events"
        return
    for event, entries in hooks.items():
        where = f"settings.hooks.{event}"
        if event not in EVENTS:
            yield f"{where}: Claude Code has no such event"
        elif not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
            yield f"{where}: must be a list of {{matcher, hooks}}"
        elif not all(isinstance(one.get("matcher", ""), str) and _is_commands(one.get("hooks")) for one in entries):
            yield f"{where}: each entry needs hooks, a list of {{type: command, command: …}}"


def _is_commands(hooks: Any) -> bool:
    return isinstance(hooks, list) and all(
        isinstance(one, dict)
        and isinstance(one.get("type"), str)
        and (one["type"] != "command" or isinstance(one.get("command"), str))
        and isinstance(one.get("timeout", 1), int | float)
        for one in hooks
    )


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
