"""Parts of a role that have no effect with a program; every one is reported.

Some keys swarm itself obeys whatever the program is; some only a program can obey, and not each does; some count with
``swarm run`` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.permissions import decide
from swarm.programs import registry
from swarm.programs.base import RULES
from swarm.project.names import PROGRAMS
from swarm.roles.options import PermissionMode, RoleOptions
from swarm.roles.role import RoleKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.roles.role import Role

#: Keys without effect in print mode, with reasons.
NOT_IN_PRINT = {"heartbeat": "such an agent is never idle"}
#: Keys that count with ``swarm run`` alone, and what holds in a team.
ONLY_RUN = {
    "worktree.enabled": "in a team every agent works in a worktree of its own",
    "worktree.branch_from": "for a team give the starting point of all: `swarm start … --base`",
    "worktree.use_detached_head": "in a team every agent works on a branch of its own",
}


#: The note about rights in a role that agents can edit.
NO_RIGHTS = "has no effect: it counts in a swarm directory outside of the repository, where agents do not work"


class Note(NamedTuple):
    """A key without effect.

    Attributes:
        key: as in the file.
        text: in words.
        programs: with which agent programs; empty is all.
    """

    key: str
    text: str
    programs: tuple[str, ...] = ()


def given(options: RoleOptions) -> tuple[str, ...]:
    """Return the keys that the role's file gives, of those that could be without effect."""
    plain = RoleOptions()
    found = [
        key
        for key in ("model", "system_prompt", "hooks", "settings", "claude_config_dir", "heartbeat", "print")
        if getattr(options, key) != getattr(plain, key)
    ]
    if options.permission_mode is not PermissionMode.DEFAULT:
        found.append("permission_mode")
    found += [f"permissions.{key}" for key in ("allow", "deny") if getattr(options.permissions, key)]
    if options.permissions.reviewer.enabled:
        found.append("permissions.agent")
    found += [f"limits.{key}" for key in ("tokens", "cost") if getattr(options.limits, key)]
    found += ["telemetry"] if options.telemetry else []
    wish = options.worktree
    found += ["worktree.enabled"] if wish.enabled is False else []
    found += ["worktree.branch_from"] if wish.branch_from else []
    found += ["worktree.use_detached_head"] if wish.use_detached_head else []
    return tuple(found)


def notes(options: RoleOptions, programs: Sequence[str] = ()) -> tuple[Note, ...]:
    """Return the keys without effect with these programs.

    Args:
        programs: default: the one that the role names, or else every known one.
    """
    if not programs:
        own = "command" if options.command else options.agent_type
        programs = (own,) if own else PROGRAMS
    return (*_without_effect(options, programs), *_gaps(options, programs), *_unknown_tools(options))


def notes_of(role: Role) -> tuple[Note, ...]:
    """Return the parts of a named role without effect, including rights that agents could edit."""
    found = notes(role.options)
    if role.options.may and role.kind is not RoleKind.SWARM_DIR:
        return (*found, Note("may", NO_RIGHTS))
    return found


def _without_effect(options: RoleOptions, programs: Sequence[str]) -> Iterator[Note]:
    for key in given(options):
        if key in ONLY_RUN:
            yield Note(key, f"counts with `swarm run` alone; {ONLY_RUN[key]}")
            continue
        deaf = tuple(name for name in programs if key not in _obeyed(name))
        if deaf:
            verb = "is not enforced by" if key in RULES or key == "permission_mode" else "has no effect with"
            yield Note(key, f"{verb} {', '.join(deaf)}", deaf)
        printing = tuple(name for name in programs if options.print and {"print", key} <= _obeyed(name))
        if printing and key in NOT_IN_PRINT:
            yield Note(key, f"has no effect in print mode: {NOT_IN_PRINT[key]}", printing)


def _gaps(options: RoleOptions, programs: Sequence[str]) -> Iterator[Note]:
    """Name the rules that a program with its own rules enforces only in part, or not at all."""
    rules = decide.Rules.parse(options.permissions.allow, options.permissions.deny)
    for program in programs:
        gaps = registry.program(program).gaps(rules) if program in PROGRAMS else None
        if gaps is None:
            continue
        for key, found in (("allow", gaps.allow), ("deny", gaps.deny)):
            for in_part, why in dict.fromkeys((gap.in_part, gap.why) for gap in found):
                which = ", ".join(gap.rule for gap in found if (gap.in_part, gap.why) == (in_part, why))
                verb = "is held by" if in_part else "is not enforced by"
                joint = " only " if in_part else ": "
                yield Note(f"permissions.{key}", f"{verb} {program} for {which}{joint}{why}", (program,))


def _obeyed(program: str) -> frozenset[str]:
    return registry.program(program).obeys if program in (*PROGRAMS, registry.COMMAND) else frozenset()


def _unknown_tools(options: RoleOptions) -> Iterator[Note]:
    for key in ("allow", "deny"):
        for text in getattr(options.permissions, key):
            rule = decide.parse_rule(text)
            if not decide.is_known(rule):
                close = decide.like(rule.tool)
                hint = f"; did you mean {close}?" if close else ""
                yield Note(
                    f"permissions.{key}", f"{rule.tool} is no tool that swarm knows, so the rule may never count{hint}"
                )
