"""What holds each deny rule of a role: the box, swarm's guard, the program's own rules, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from swarm.permissions.boxed import in_box
from swarm.permissions.rules import Rules, parse_rule
from swarm.programs import registry
from swarm.programs.base import OWN
from swarm.project.names import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.permissions.translation import Gap
    from swarm.roles.options import RoleOptions


class RuleHold(NamedTuple):
    """What holds one deny rule with some programs.

    Attributes:
        rule: as written.
        programs: which they are.
        by: ``guard`` for swarm's hook, ``program`` for the program's own rules; empty: nothing does outside of a box.
        note: what of it they hold alone, or why they do not.
        box: in a box, the box holds it as well.
        box_note: what of it the box holds alone, or why it does not.
    """

    rule: str
    programs: tuple[str, ...]
    by: tuple[str, ...]
    note: str
    box: bool
    box_note: str


def rule_holds(options: RoleOptions, programs: Sequence[str] = ()) -> tuple[RuleHold, ...]:
    """Return what holds the deny rules of a role.

    Args:
        programs: default: the one that the role names, or else every known one.
    """
    if not programs:
        own = registry.COMMAND if options.command else options.agent_type
        programs = (own,) if own else PROGRAMS
    alike: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for name in programs:
        for rule, by, note in _of_program(options, name):
            alike.setdefault((rule, by, note), []).append(name)
    order = {rule: number for number, (rule, _, _) in reversed(list(enumerate(alike)))}
    found = []
    for (rule, by, note), names in sorted(alike.items(), key=lambda one: order[one[0][0]]):
        inside = in_box(parse_rule(rule))
        found.append(RuleHold(rule, tuple(names), by, note, inside.holds, inside.note))
    return tuple(found)


def _of_program(options: RoleOptions, name: str) -> Iterator[tuple[str, tuple[str, ...], str]]:
    program = registry.program(name)
    deny = program.denied(options)
    gaps = program.gaps(Rules.parse((), deny))
    missing: dict[str, Gap] = {gap.rule: gap for gap in gaps.deny} if gaps is not None else {}
    for rule in deny:
        gap = missing.get(rule)
        if gap is None:
            yield rule, program.holds, ""
        else:
            yield rule, tuple(one for one in program.holds if gap.in_part or one != OWN), gap.why
