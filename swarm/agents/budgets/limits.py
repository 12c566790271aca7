"""Usage limits of an agent: given to its supervisor, and reported to the user when they come near.

The supervisor counts and ends (``supervisor/budget.py``); here is what needs the session's record or the bus.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from swarm.agents import event_values, events
from swarm.agents.budgets import drawn
from swarm.agents.errors import LimitReached
from swarm.bus.message import POSTMASTER, Message
from swarm.callers import parents
from swarm.kit.words import count
from swarm.machine.run_folder import runfiles
from swarm.machine.run_folder.program_facts import one_line
from swarm.messages.inboxes import bus_of, post_own
from swarm.programs import processes
from swarm.project.chore import chore
from swarm.roles.options import RoleOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.agents.event_values import AgentEvent
    from swarm.project import names
    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World
    from swarm.roles.options import Limits
    from swarm.roles.role import Role

NOTICE = "budget"
DISK = "disk"


def limits_of(world: World, options: RoleOptions) -> Limits:
    """Return the limits of a role's agents: the role's own, else the configuration's."""
    own, general = options.limits, world.settings.limits
    return replace(
        own,
        tokens=own.tokens or general.tokens,
        cost=own.cost or general.cost,
        minutes=own.minutes or general.minutes,
        agents=own.agents or general.agents,
    )


def note(run: Path, limits: Limits, operation: str) -> None:
    """Note the limits of an agent's start; those of its children are drawn on them. Without any there is no note."""
    held = {"tokens": limits.tokens, "cost": limits.cost, "minutes": limits.minutes}
    if any(held.values()):
        runfiles.write(str(run), runfiles.LIMITS, {"operation": operation, **held})
    else:
        runfiles.remove(str(run), runfiles.LIMITS)


def spec(
    world: World,
    agent: str,
    session: str,
    limits: Limits,
    source: Mapping[str, Any],
    disk: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the limits and prices that an agent's supervisor enforces; empty without limits.

    Args:
        source: where its program's records are.
        disk: of an agent in a box: how much it may have on the disk, and how that is measured.
    """
    if not (limits.tokens or limits.cost or limits.minutes or disk):
        return {}
    from swarm.usage import price_table

    return {
        "tokens": limits.tokens,
        "cost": limits.cost,
        "minutes": limits.minutes,
        "disk": dict(disk or {}),
        "source": dict(source),
        "prices": price_table.load(world.settings).plain() if limits.cost else {},
        "tell": chore(world, "budget", agent, session),
    }


def spent(
    world: World, session: Session, agents: Iterable[Agent], role: Callable[[str], Role]
) -> dict[Agent, LimitReached]:
    """Return the agents that do not run and would be stopped at once if they were started again."""
    found: dict[Agent, LimitReached] = {}
    for agent in agents:
        if processes.facts(world.layout.run_folder(session.name, agent.name)).alive:
            continue
        one = role(agent.role)
        kind, words = _over(world, session, agent, limits_of(world, one.options))
        if kind:
            found[agent] = LimitReached(
                f"{agent.name}@{session.name} is over its budget of {words}",
                hint=f"raise {_set_where(one, kind)}",
            )
            continue
        asked = drawn.Asked(session.name, agent.name, limits_of(world, one.options))
        for problem in drawn.too_little(world, parents.heir(world, session), [asked]):
            found[agent] = problem
    return found


def _set_where(role: Role, kind: str) -> str:
    """Return the place to change a limit: the role's own overrides the setting."""
    return f"limits.{kind} in {role.source}" if getattr(role.options.limits, kind) else f"the setting limits.{kind}"


def _over(world: World, session: Session, agent: Agent, limits: Limits) -> tuple[str, str]:
    """Return which limit an agent has reached, and that in words; both empty when it has reached none."""
    if not (limits.tokens or limits.cost or limits.minutes):
        return "", ""
    from swarm.usage import price_table
    from swarm.usage.count import usage_of

    used = usage_of(world, session, agent, price_table.load(world.settings))
    cost = sum(one.cost or 0 for one in used.models)
    if limits.tokens and used.total.tokens >= limits.tokens:
        return "tokens", f"{limits.tokens:,} tokens ({used.total.tokens:,} used)"
    if limits.cost and cost >= limits.cost:
        return "cost", f"${limits.cost:,.2f} (${cost:,.2f} used)"
    if limits.minutes and used.minutes >= limits.minutes:
        return "minutes", f"{limits.minutes:g} minutes"
    return "", ""


def too_many(
    world: World, session: Session | None, specs: Sequence[names.AgentSpec], roles: Sequence[Role | None]
) -> Iterator[LimitReached]:
    """Yield errors for roles with more agents in a session than they allow.

    Args:
        session: as it is; None when it is to be made.
        specs, roles: the agents that are to be added.
    """
    there = Counter(agent.role.casefold() for agent in session.agents) if session else Counter[str]()
    wanted = Counter(one.role.casefold() for one in specs)
    for role in {one.name.casefold(): one for one in roles if one is not None}.values():
        most = limits_of(world, role.options).agents
        name = role.name.casefold()
        if most and there[name] + wanted[name] > most:
            had = f", and has {there[name]}" if there[name] else ""
            yield LimitReached(
                f"role {role.name} allows {count(most, 'agent')} in a session{had};"
                f" {wanted[name]} {'is' if wanted[name] == 1 else 'are'} asked for",
                hint=f"ask for fewer, or raise {_set_where(role, 'agents')}",
            )


def too_little(
    world: World,
    payer: Parent | None,
    session: str,
    specs: Sequence[names.AgentSpec],
    roles: Sequence[Role | None],
) -> Iterator[LimitReached]:
    """Yield a refusal for each new agent for which too little of its parent's budget is left."""
    if payer is not None:
        options = [role.options if role is not None else RoleOptions() for role in roles]
        asked = [
            drawn.Asked(session, spec.name, limits_of(world, one)) for spec, one in zip(specs, options, strict=True)
        ]
        yield from drawn.too_little(world, payer, asked)


def report(world: World, session: Session, agent: Agent) -> int:
    """Report an agent's use of its limits to the user's inbox; a repeated report makes one message.

    That it comes near one also is an event for whoever started it.
    """
    record = runfiles.read(str(world.layout.run_folder(session.name, agent.name)), runfiles.BUDGET) or {}
    notes = record.get("notes")
    found = [note for note in notes if isinstance(note, dict)] if isinstance(notes, list) else []
    found = [note for note in found if note.get("level") != "over"]  # the report of its end says so
    if not found:
        return 0
    messages = [_message(session, agent, note) for note in found]
    with closing(bus_of(world)) as bus:
        post_own(bus, *messages, *(_to_itself(session, agent, one) for one in messages if _is_near_disk(one)))
    near = [message for message in messages if message.metadata["level"] == "near"]
    if near:
        events.publish(world, session, *(_event(session, agent, message) for message in near))
    return len(found)


def tell_of_disk(world: World, session: Session, agent: Agent) -> Iterator[Message]:
    """Yield the word to an agent that was stopped for its disk; it reads that when it is started again."""
    record = runfiles.read(str(world.layout.run_folder(session.name, agent.name)), runfiles.BUDGET) or {}
    notes = record.get("notes")
    for note in notes if isinstance(notes, list) else ():
        if isinstance(note, dict) and (note.get("kind"), note.get("level")) == (DISK, "over"):
            yield _to_itself(session, agent, _message(session, agent, note))


def _is_near_disk(message: Message) -> bool:
    """Whether an agent can do something about a limit itself."""
    return (message.metadata["kind"], message.metadata["level"]) == (DISK, "near")


def _to_itself(session: Session, agent: Agent, message: Message) -> Message:
    """Return what an agent is told of its disk."""
    return message._replace(
        to=f"{agent.name}@{session.name}",
        generation=session.generation_of(agent),
        body="Delete what you do not need, in your worktree and your home. At the limit you are stopped.",
    )


def _event(session: Session, agent: Agent, message: Message) -> AgentEvent:
    kind, limit = event_values.BUDGET_NEAR, str(message.metadata["kind"])
    name, near = message.id, event_values.NEAR
    return events.event(kind, agent.name, session.name, near, limit, name=name, message=message.subject)


def _message(session: Session, agent: Agent, note: Mapping[str, Any]) -> Message:
    who, words = f"{agent.name}@{session.name}", one_line(str(note.get("words")))
    kind, level, limit = (str(note.get(key)) for key in ("kind", "level", "limit"))
    once = f"{who} {session.generation_of(agent)} {kind} {level} {limit}"
    return Message(
        to="user",
        sender=POSTMASTER,
        type=NOTICE,
        id=f"budget.{sha256(once.encode()).hexdigest()[:16]}",
        subject=f"{who}: {words}",
        body=f"{_look_by(kind, who, session.name)}. At the limit swarm stops it and keeps its work.",
        metadata={"agent": agent.name, "session": session.name, "kind": kind, "level": level, "limit": limit},
    )


def _look_by(kind: str, who: str, session: str) -> str:
    """Return the command that shows what counts."""
    if kind == DISK:
        return f"What takes it: `swarm sandbox exec {who} -- du -xhd2 . /home/agent`"
    return f"Usage: `swarm usage {session}`"
