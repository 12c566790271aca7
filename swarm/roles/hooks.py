"""Read the hooks of a role: by event, or nested as in a program's own settings file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from swarm.kit.forms import Field, Form, choice, filled, gather, mapping, refuse, seconds, text
from swarm.roles.options import EVENTS, Hook


def _hook(**found: Any) -> dict[str, Any]:
    if "command" not in found:
        refuse("is missing", key="command")
    found.pop("type", None)
    return found


_MATCHER = Field(text(longest=1000), "For which tools; empty is all.")
_HOOK = mapping(
    {
        "matcher": _MATCHER,
        "command": Field(text(filled, longest=10_000, lines=True, least=1), "A shell command."),
        "timeout": Field(seconds(1, 3600), "Longest time; the program's own without."),
        "type": Field(choice("command"), "The kind of hook: a command."),
    },
    _hook,
)


def _inner(raw: Any) -> list[dict[str, Any]]:
    if not isinstance(raw, (list, tuple)):
        refuse("must be a list")
    return gather(((place,), "", partial(_HOOK.read, item)) for place, item in enumerate(raw))


#: An entry may also stand as in the settings file of a program.
_NESTED = mapping(
    {"matcher": _MATCHER, "hooks": Field(Form("list of hooks", _inner, {"type": "array", "items": _HOOK.schema}), "")},
    dict[str, Any],
)


def _entry(event: str, raw: Any) -> list[Hook]:
    if isinstance(raw, Mapping) and raw.get("hooks") is not None:
        outer = _NESTED.read(raw)
        return [Hook(event, **{"matcher": outer.get("matcher", ""), **one}) for one in outer["hooks"]]
    return [Hook(event, **_HOOK.read(raw))]


def _hooks(raw: Any) -> tuple[Hook, ...]:
    if not isinstance(raw, Mapping):
        refuse("must be a mapping of events")
    found = gather(((event,), "", partial(_event, event, raw[event])) for event in raw)
    return tuple(hook for several in found for hook in several)


def _event(event: str, raw: Any) -> list[Hook]:
    if event not in EVENTS:
        refuse(f"must be one of {', '.join(EVENTS)}", value=repr(event), at_key=True)
    items = [((place,), item) for place, item in enumerate(raw)] if isinstance(raw, list) else [((), raw)]
    found = gather((path, event, partial(_entry, event, item)) for path, item in items)
    return [hook for several in found for hook in several]


_ANY_HOOK = {"anyOf": [_HOOK.schema, _NESTED.schema]}
#: The key ``hooks``.
HOOKS = Form(
    "mapping of events, each with a list of hooks",
    _hooks,
    {
        "type": ["object", "null"],
        "propertyNames": {"enum": list(EVENTS)},
        "additionalProperties": {"anyOf": [*_ANY_HOOK["anyOf"], {"type": "array", "items": _ANY_HOOK}]},
    },
)
