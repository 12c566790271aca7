"""Adjust a role at a start: ``--override KEY=VALUE``, for the keys that `swarm.roles.file.ROLE` marks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.kit.errors import raise_all
from swarm.kit.forms import Field, name_of, refuse, shown, troubles_of
from swarm.kit.words import did_you_mean
from swarm.roles.errors import OverrideProblem
from swarm.roles.file import ROLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from swarm.project.names import AgentSpec
    from swarm.roles.options import RoleOptions
    from swarm.roles.role import Role

#: Keys that could give an agent more than its role: an agent that starts others cannot set them.
WIDENING = frozenset({"claude_config_dir", "root_dir", "worktree.enabled"})


def keys() -> tuple[str, ...]:
    """Return the dotted keys that can be overridden."""
    return tuple(_keys(ROLE.fields))


def _keys(fields: Mapping[str, Field], before: str = "") -> Iterator[str]:
    for name, field in fields.items():
        if field.override:
            yield before + name
        yield from _keys(field.form.fields, f"{before}{name}.")


def read_words(words: Sequence[str]) -> dict[str, str]:
    """Return the overrides of ``KEY=VALUE`` words; of two with one key the last.

    Raises:
        OverrideProblem: a word has no ``=``, or no key.
    """
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise OverrideProblem(f"cannot read the override {shown(word)}: it must be KEY=VALUE")
        found.pop(key.strip(), None)
        found[key.strip()] = value
    return found


def assign(agents: Sequence[AgentSpec], overrides: Mapping[str, object]) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the overrides of each agent, by its name, with the keys in their first spelling.

    Args:
        overrides: by ``KEY`` for all agents, or by ``NAME:KEY`` for an agent or all agents of a role.

    Raises:
        OverrideProblem: a name, key or value is wrong; or ``Refused`` with all problems.
    """
    found: dict[str, dict[str, str]] = {agent.name: {} for agent in agents if agent.role}
    problems: list[OverrideProblem] = []
    for word, raw in overrides.items():
        name, _, dotted = word.rpartition(":")
        meant = [agent.name for agent in agents if agent.role and (not name or name in (agent.name, agent.role))]
        try:
            if not meant:
                there = ", ".join(dict.fromkeys(agent.name for agent in agents))
                refuse(f"there is no agent or role {shown(name)}" if name else "needs a role", f"there is {there}")
            key = check(dotted, raw)
        except ValueError as error:
            (one,) = troubles_of(error)[:1]
            problems.append(OverrideProblem(f"cannot override {shown(word)}: {one.text}", hint=one.hint))
            continue
        for agent in meant:
            found[agent][key] = text_of(raw)
    raise_all("cannot read the overrides", problems)
    return {agent: tuple(values.items()) for agent, values in found.items() if values}


def check(dotted: str, raw: object) -> str:
    """Check a key and its value, and return the key in its first spelling.

    Raises:
        Misfit: there is no such key, it cannot be overridden, or its form refuses the value.
    """
    names, field = _find(dotted)
    field.form.read(field.form.split(text_of(raw)))
    return ".".join(names)


def _find(dotted: str) -> tuple[list[str], Field]:
    names: list[str] = []
    fields, field = ROLE.fields, None
    for part in dotted.split("."):
        known = name_of(fields, part)
        if known is None:
            refuse("is no key of a role" if not names else f"{names[0]} has no such key", _hint(dotted))
        names.append(known)
        field, fields = fields[known], fields[known].form.fields
    if field is None or not field.override:
        refuse("this key cannot be overridden", f"write it into the role's file; {_hint('')}")
    return names, field


def _hint(dotted: str) -> str:
    return did_you_mean(dotted, keys(), f"the keys for an override are {', '.join(keys())}")


def text_of(raw: object) -> str:
    """Return a value as the command line would give it."""
    return str(raw).lower() if isinstance(raw, bool) else str(raw)


def adjusted(role: Role, overrides: Sequence[tuple[str, str]]) -> Role:
    """Return a role as overrides change it.

    Raises:
        OverrideProblem: together with what the role says they make no whole, or an older record holds what no longer
            can be overridden.
    """
    options = role.options
    for block in dict.fromkeys(key.partition(".")[0] for key, _ in overrides):
        given = {key.partition(".")[2]: value for key, value in overrides if key.partition(".")[0] == block}
        try:
            options = _with(options, block, given)
        except ValueError as error:
            (one,) = troubles_of(error)[:1]
            words = " ".join(f"{block}.{name}" if name else block for name in given)
            raise OverrideProblem(
                f"cannot override {words} of role {role.name}: {one.inside((), block).text}",
                hint=one.hint or f"override {block}.{one.key}, too" if one.key else one.hint,
            ) from None
    return role if options is role.options else replace(role, options=options)


def _with(options: RoleOptions, block: str, given: Mapping[str, str]) -> RoleOptions:
    whole = ROLE.fields[block]
    if "" in given:
        changed: dict[str, Any] = {block: whole.form.read(whole.form.split(given[""]))}
        if block == "agent_type":
            changed["command"] = ()  # the file may name one of the two alone
        return replace(options, **changed)
    plain = {name: whole.form.fields[name].form.split(value) for name, value in given.items()}
    now: Any = getattr(options, block)
    if now is None:  # the role's file has no such block
        return replace(options, **{block: whole.form.read(plain)})
    values = {name: whole.form.fields[name].form.read(value) for name, value in plain.items()}
    return replace(options, **{block: replace(now, **values)})
