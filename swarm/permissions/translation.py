"""Shared parts of translating role rules into another program's rule language."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.permissions.rules import EDITORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Programs that run the command which follows them.
WRAPPERS = ("command", "doas", "env", "exec", "find", "nice", "nohup", "sudo", "time", "timeout", "xargs")

BY_TEXT = "by the text of each command, so one hidden in quotes, variables or a script is not seen"
ITS_WRITES = "by its own tools, not by what a command writes"
ITS_READS = "by its read tool, not by searches and commands"
BY_ADDRESS = "by the text of an address, so one written otherwise is not seen"
NO_TOOL = "it has no such tool"
MORE_THAN_SAID = "it would be allowed more than the rule says, so it is asked about"


class Gap(NamedTuple):
    """A rule that a program enforces only in part.

    Attributes:
        rule: as written.
        why: in words.
        in_part: some of it is held.
    """

    rule: str
    why: str
    in_part: bool = False


class Gaps(NamedTuple):
    """The rules of a role that a program does not enforce, or only in part."""

    allow: tuple[Gap, ...] = ()
    deny: tuple[Gap, ...] = ()


def spaced(pattern: str) -> str:
    """Return a command's pattern in today's form: ``git *`` for ``git:*``."""
    return pattern.removesuffix(":*") + " *" if pattern.endswith(":*") else pattern


class Way(NamedTuple):
    """A program's way to write the parts of a deny rule's parentheses, as texts in its own language.

    Attributes:
        commands, files: all forms of one.
        address: any that has this text in it.
        name: of an agent or a skill.
    """

    commands: Callable[[str], Iterable[str]]
    files: Callable[[str], Iterable[str]]
    address: Callable[[str], str]
    name: Callable[[str], str]


def denied_forms(tool: str, pattern: str, way: Way) -> tuple[tuple[str, ...], str]:
    """Return the forms of a deny rule's argument, and the calls that they do not cover."""
    if tool == "Bash":
        return tuple(way.commands(pattern)), BY_TEXT
    if tool in EDITORS:
        return tuple(way.files(pattern)), ITS_WRITES
    if tool == "WebFetch":
        return (way.address(pattern.removeprefix("domain:").removeprefix("*")),), BY_ADDRESS
    return (way.name(pattern),), ""
