"""What changed between two looks, as the live model and the log of events tell it.

A look is a table: (thing, subject) → its fields.  The fields of a thing form groups; of a group of which one field
changed, the whole group is told, under one kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.eventlog.values import Happened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Key = tuple[str, str]
    Fields = Mapping[str, Any]

AGENT, SESSION, APPROVAL, OPERATION, TASK = "agent", "session", "approval", "operation", "task"
#: What the live model looks at, in the order in which changes of one look are told: no agent without its session.
THINGS = (OPERATION, SESSION, AGENT, APPROVAL)
_ALL = (*THINGS, TASK)
#: Fields of an agent → the kind under which they are told; any other is ``record``.
_GROUPS = {
    **dict.fromkeys(("state", "detail", "since", "evidence", "pane", "pid", "blocked", "socket", "stale"), "state"),
    **dict.fromkeys(("head", "ahead", "dirty", "missing", "held"), "git"),
    "unread": "inbox",
}
_BORN = {APPROVAL: "opened", OPERATION: "begun"}
_GONE = {APPROVAL: "answered", OPERATION: "ended"}


def between(old: Mapping[Key, Fields], new: Mapping[Key, Fields]) -> list[Happened]:
    """Return what happened from one look to the next."""
    found = [Happened(f"{key[0]}.{_GONE.get(key[0], 'removed')}", key[1], old[key]) for key in old if key not in new]
    found.sort(key=lambda one: -_ALL.index(_thing(one)))
    for thing in _ALL:
        for key, fields in new.items():
            if key[0] != thing:
                continue
            if key not in old:
                found.append(Happened(f"{thing}.{_BORN.get(thing, 'added')}", key[1], None, fields))
            elif old[key] != fields:
                found += _changed(key, old[key], fields)
    return found


def _changed(key: Key, old: Fields, new: Fields) -> Iterable[Happened]:
    thing, subject = key
    groups: dict[str, list[str]] = {}
    for name in new:
        groups.setdefault(_group(thing, name), []).append(name)
    for group, names in groups.items():
        before, after = ({name: fields.get(name) for name in names} for fields in (old, new))
        if before != after:
            yield Happened(f"{thing}.{group}", subject, before, after)


def _group(thing: str, field: str) -> str:
    if thing == AGENT:
        return _GROUPS.get(field, "record")
    return "state" if field == "state" else "record"


def _thing(one: Happened) -> str:
    return one.kind.partition(".")[0]


def apply(table: dict[Key, Fields], kind: str, subject: str, after: Fields | None) -> None:
    """Bring a table up to a change; kinds that change nothing in it are passed over."""
    thing, _, what = kind.partition(".")
    if thing not in _ALL:
        return
    key = (thing, subject)
    if what == _BORN.get(thing, "added"):
        table[key] = dict(after or {})
    elif what == _GONE.get(thing, "removed"):
        table.pop(key, None)
    elif key in table:
        table[key] = {**table[key], **(after or {})}
