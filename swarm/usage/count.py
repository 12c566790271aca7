"""Count agents' usage from their programs' records."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.kit.errors import SwarmError
from swarm.machine.run_folder import program_facts, runfiles, runtime
from swarm.machine.run_folder.program_facts import one_line
from swarm.project import targets
from swarm.project.errors import SessionNotFound
from swarm.usage import log, price_table
from swarm.usage.log import Kept
from swarm.usage.spending.meter import Meter, open_record
from swarm.usage.values import AgentUsage, ModelUsage, UsageReport

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.usage.spending.prices import Prices

_MINUTE_MS = 60_000


def report(world: World, session: str | None, *, everything: bool) -> UsageReport:
    """Count.

    Args:
        session: only this one, with the agents of it that were removed; or one agent.
        everything: all that were removed, too.

    Raises:
        SessionNotFound: there is none of this name, and was none.
    """
    table = price_table.load(world.settings)
    there = world.sessions.all()
    kept = log.read(world.layout.usage) if everything or session is not None else ()
    known = [(one.name, agent.name) for one in there for agent in one.agents]
    known += [(one.usage.session, one.usage.agent) for one in kept]
    meant = _meant(session, [*known, *((one.name, "") for one in there)])
    if session is not None and not meant:
        raise SessionNotFound(f"there is no session {session}, and nothing is known of an earlier one")
    pairs = [(one, agent) for one in there for agent in one.agents if (one.name, agent.name) in meant]
    live = [usage_of(world, one, agent, table) for one, agent in pairs if agent.program]
    names = {_whose(one) for one in live}
    gone = [
        _counted_again(one, table)
        for one in kept
        if one.whose not in names and (one.usage.session, one.usage.agent) in meant
    ]
    return UsageReport((*live, *gone), table.as_of)


def _meant(text: str | None, known: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the (session, agent) pairs that a word names: a session comes before an agent of the same name."""
    if text is None:
        return set(known)
    agent, session = (one and one.casefold() for one in targets.split_agent(text))
    if session is not None:
        return {one for one in known if (one[0].casefold(), one[1].casefold()) == (session, agent)}
    whole = {one for one in known if one[0].casefold() == agent}
    return whole or {one for one in known if one[1].casefold() == agent}


def usage_of(world: World, session: Session, agent: Agent, table: Prices) -> AgentUsage:
    """Return one agent's usage so far."""
    run = world.layout.run_folder(session.name, agent.name)
    found = counted(source_of(world, session, agent), table)
    before = _kept_of(world, session, agent)
    return AgentUsage(
        session=session.name,
        agent=agent.name,
        role=agent.role,
        program=agent.program,
        models=found or (),
        minutes=_minutes(run) + (before.usage.minutes if before else 0),
        recorded=found is not None,
        created_ms=agent.created_ms,
    )


def source_of(world: World, session: Session, agent: Agent) -> Mapping[str, Any]:
    """Return where an agent's program writes down its conversations; empty when that is not known."""
    run = world.layout.run_folder(session.name, agent.name)
    source = runfiles.read(str(run), runfiles.RECORD)
    if source is not None:
        return {**source, "run_dir": str(run)}
    before = _kept_of(world, session, agent)
    return before.source if before else {}


def _kept_of(world: World, session: Session, agent: Agent) -> Kept | None:
    """Return the recorded usage of an agent that was removed and restored."""
    whose = (session.name.casefold(), agent.name.casefold(), agent.created_ms)
    return next((one for one in log.read(world.layout.usage) if one.whose == whose), None)


def counted(source: Mapping[str, Any], table: Prices) -> tuple[ModelUsage, ...] | None:
    """Return each model of a record; None when the program has no record that is known."""
    record = open_record(source)
    if record is None:
        return None
    meter = Meter(record)
    meter.look()
    return tuple(
        ModelUsage(
            model=one_line(model) or "unknown",
            input=counts.input,
            output=counts.output,
            cache_read=counts.cache_read,
            cache_write=counts.cache_write,
            requests=counts.requests,
            cost=table.cost(model, counts) if counts.tokens else 0.0,
        )
        for model, counts in sorted(meter.models.items())
    )


def _minutes(run: Path) -> float:
    process, ended = program_facts.read_process(run), program_facts.read_exit(run)
    if process is not None and (ended is None or not ended.is_of(process)) and program_facts.alive(process):
        return (process.ran_ms + time.time_ns() // 1_000_000 - process.started_ms) / _MINUTE_MS
    return runtime.ran_before(str(run)) / _MINUTE_MS


# --- removed agents -------------------------------------------------------------------------------


def keep(world: World, session: Session, agent: Agent) -> None:
    """Record an agent's usage, before its notes are deleted.

    Nothing of this may stand in the way of a cleanup.
    """
    run = str(world.layout.run_folder(session.name, agent.name))
    if runfiles.read(run, runfiles.PROCESS) is None:
        return  # it never ran, or this was done before
    with suppress(SwarmError, OSError):
        usage = usage_of(world, session, agent, price_table.load(world.settings))
        source = {key: value for key, value in source_of(world, session, agent).items() if key != "run_dir"}
        log.add(world.layout.usage, Kept(replace(usage, removed_ms=time.time_ns() // 1_000_000), source))
        runfiles.remove(run, runfiles.PROCESS)


def _counted_again(kept: Kept, table: Prices) -> AgentUsage:
    """Count a removed agent again from its program's records, if they exist: it may have written after the count."""
    found = counted(kept.source, table)
    return replace(kept.usage, models=found) if found else kept.usage


def _whose(usage: AgentUsage) -> tuple[str, str, int]:
    return usage.session.casefold(), usage.agent.casefold(), usage.created_ms
