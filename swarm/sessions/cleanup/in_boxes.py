"""The boxes of agents whose worktrees are removed: take in, save what is only in there, put them aside.

take in ──► [save] a capture made in the box, as refs of the entry ──► [remove] home to the entry, the rest to the trash
refused or impossible: the whole box goes to the entry, and nothing of it is lost
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import Interrupted, SwarmError
from swarm.project import layout as places
from swarm.sandbox import fresh, intake, steps
from swarm.worktrees.reports import Risk, RiskKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.project.world import World
    from swarm.sessions.cleanup.cleanup_request import Request
    from swarm.worktrees.examine import Target

#: The part of an entry that holds what only git in the box knew.
PART = "box"


def take_in(world: World, request: Request) -> None:
    """Take in what is committed in the boxes of the sessions that a cleanup is about; a refusal is a risk."""
    named = {*request.sessions, *(session for session, _ in request.agents)}
    fresh.take_in(world, [one for one in world.sessions.all() if not named or one.name in named], everything=True)


def with_risk(world: World, targets: Iterable[Target]) -> tuple[Target, ...]:
    """Return the targets; each of which commits could not be taken in with that as a risk."""
    found = tuple(targets)
    refused = fresh.refusals(world, {t.session.name: t.session for t in found}.values())
    return tuple(_with_risk(target, refused.get((target.session.name, target.agent.name), "")) for target in found)


def _with_risk(target: Target, why: str) -> Target:
    return replace(target, risks=(*target.risks, Risk(RiskKind.UNREADABLE, why))) if why else target


def save(world: World, operation: str, targets: Iterable[Target]) -> None:
    """Save what only git in the boxes knows, under refs of the entries; where that fails the box alone has it."""
    for target in targets:
        if target.agent.shared:
            continue  # all that git knows is in the box of its lead
        top = places.salvage_ref(target.session.name, target.agent.name, operation, PART)
        try:
            intake.capture(world, fresh.source_of(world, target.session.name, target.agent), top)
        except Interrupted:
            raise
        except (SwarmError, OSError):
            continue  # the box goes to the entry, whole


def has_box(world: World, target: Target) -> bool:
    """Whether a target has a box."""
    base = world.layout.box_folder(target.session.name, target.agent.name)
    return target.agent.is_boxed and files.exists(base)


def remove(world: World, record: dict[str, Any], item: dict[str, Any]) -> None:
    """Put an agent's box into its entry, or with nothing to save into the trash."""
    entry = world.layout.salvage_folder(item["session"], item["agent"], record["operation"])
    steps.put_aside(world, record["operation"], item["session"], item["agent"], None if record["discard"] else entry)
