"""Completions: what came of an agent's task, told once under one id, whoever noticed first.

    its own word ─┐
    its exit      ├─► the note in its run folder (the first one counts) ─► the queue of its parent ─► "told"
    a stop, …    ─┘

The note is on the disk before anybody is told, and tells what was said first and last.  A process that dies between
the two leaves a note that is not told; whoever looks next tells it, under the same id, which makes it one event.
Only the agent itself corrects what was said; all else that happens later is an event of another kind.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.agents import event_values, events
from swarm.bus.addressing import USER
from swarm.bus.message import Message
from swarm.callers import parents
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import locks, own, records
from swarm.machine.run_folder import runfiles
from swarm.machine.run_folder.program_facts import one_line
from swarm.messages.inboxes import bus_of, post_own

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.agents.event_values import AgentEvent
    from swarm.project.model import Agent, Session
    from swarm.project.world import World

#: Who noticed.
WORD, EXIT, BUDGET, STOP, LOST = "word", "exit", "budget", "stop", "lost"
#: The type of the message to the parent's inbox.
COMPLETION = "completion"
_LIMIT = 1 << 20


class Statement(NamedTuple):
    """What was said of the outcome of a task.

    Attributes:
        number: 1 is the completion, each later one corrects it.
        status: ``success``, ``failure`` or ``stopped``.
        text: the words of the agent; empty when it did not say it itself.
        cause: why, in the words of whoever noticed.
        by: who noticed: ``word``, ``exit``, ``budget``, ``stop`` or ``lost``.
        name: of the end of the program that was noticed.
        head, ahead, dirty: what git says of the work.
    """

    number: int
    status: str
    text: str
    cause: str
    by: str
    time_ms: int
    name: str = ""
    head: str = ""
    ahead: int | None = None
    dirty: bool | None = None


class Note(NamedTuple):
    """All that was said of one task.

    Attributes:
        id: of the completion's event.
        first, last: the completion, and the last word about it.
        told: how many statements are in the parent's queue for certain.
    """

    id: str
    first: Statement
    last: Statement
    told: int


def id_of(session: Session, agent: Agent) -> str:
    """Return the id of the completion of an agent's task; it follows from the record alone."""
    task = f"{session.name}/{agent.name}/{session.generation_of(agent)}/1"
    return f"event.complete.{sha256(task.encode()).hexdigest()[:24]}"


def look(world: World, session: Session, agent: Agent) -> Note | None:
    """Return what was said of the outcome of an agent's task; None: nothing yet."""
    run = world.layout.run_folder(session.name, agent.name)
    record = records.read(str(run / runfiles.COMPLETION), _LIMIT)
    if record is None or record.get("run") != session.generation_of(agent):
        return None
    try:
        return Note(str(record["id"]), Statement(**record["first"]), Statement(**record["last"]), int(record["told"]))
    except (KeyError, TypeError, ValueError):
        return None


def say(world: World, session: Session, agent: Agent, status: str, text: str) -> Statement:
    """Keep and tell what an agent says itself: its completion, or a correction of what was said before.

    The same words again change nothing.
    """
    with _hold(world, session, agent) as run:
        note = look(world, session, agent)
        if note is not None and (note.last.by, note.last.status, note.last.text) == (WORD, status, text):
            _tell(world, session, agent, run, note)
            return note.last
        made = _statement(world, session, agent, note, status, by=WORD, text=text)
        _keep(world, session, agent, run, note, made)
        return made


def notice(
    world: World, session: Session, agent: Agent, status: str, cause: str, *, by: str, time_ms: int, name: str
) -> None:
    """Keep and tell an end that somebody noticed; after a completion it is an event of its own.

    Args:
        name: of this end of the program: told twice it is one event.
    """
    with _hold(world, session, agent) as run:
        note = look(world, session, agent)
        if note is None:
            made = _statement(world, session, agent, None, status, by=by, cause=cause, time_ms=time_ms, name=name)
            _keep(world, session, agent, run, None, made)
            return
        _tell(world, session, agent, run, note)
    if note.first.name == name:
        return  # this very end was the completion, and only that was not written down
    kind = event_values.AGENT_ENDED
    ended = events.event(kind, agent.name, session.name, status, cause, name=name, time_ms=time_ms)
    events.publish(world, session, ended._replace(by=by))


def tell(world: World, session: Session, agent: Agent) -> None:
    """Tell what was kept and not told, because the process that kept it died."""
    note = look(world, session, agent)
    if note is not None and note.told < note.last.number:
        with _hold(world, session, agent) as run:
            found = look(world, session, agent)
            if found is not None:
                _tell(world, session, agent, run, found)


@contextmanager
def _hold(world: World, session: Session, agent: Agent) -> Iterator[Path]:
    """Let only one process at a time say something of an agent's task."""
    run = world.layout.run_folder(session.name, agent.name)
    fd = own.open(str(run / runfiles.COMPLETION_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        locks.lock(fd)
        yield run
    finally:
        os.close(fd)


def _statement(
    world: World, session: Session, agent: Agent, note: Note | None, status: str, *, by: str, **more: Any
) -> Statement:
    head, ahead, dirty = proof(world, session, agent)
    return Statement(
        number=note.last.number + 1 if note else 1,
        status=status,
        text=str(more.get("text", "")),
        cause=str(more.get("cause", "")),
        by=by,
        time_ms=int(more.get("time_ms") or time.time_ns() // 1_000_000),
        name=str(more.get("name", "")),
        head=head,
        ahead=ahead,
        dirty=dirty,
    )


def _keep(world: World, session: Session, agent: Agent, run: Path, note: Note | None, made: Statement) -> None:
    if note is not None:
        _tell(world, session, agent, run, note)  # nothing is told before what came before it
    kept = Note(id_of(session, agent), note.first if note else made, made, note.last.number if note else 0)
    _write(run, session, agent, kept, durable=True)
    _tell(world, session, agent, run, kept)


def _write(run: Path, session: Session, agent: Agent, note: Note, *, durable: bool) -> None:
    record = {
        "schema": records.SCHEMA,
        "run": session.generation_of(agent),
        "id": note.id,
        "first": note.first._asdict(),
        "last": note.last._asdict(),
        "told": note.told,
    }
    files.write_atomic(run / runfiles.COMPLETION, json.dumps(record).encode("ascii") + b"\n", durable=durable)


def _tell(world: World, session: Session, agent: Agent, run: Path, note: Note) -> None:
    """Put the last statement into the parent's queue, unless it is there; the caller holds the lock."""
    if note.told >= note.last.number:
        return
    event = event_of(session, agent, note.id, note.last)
    events.publish(world, session, event)
    if note.last.by == WORD:  # all other ends are reported to the inbox by whoever noticed them
        with closing(bus_of(world)) as bus:
            post_own(bus, _message(world, session, agent, note, event))
    _write(run, session, agent, note._replace(told=note.last.number), durable=False)


def _message(world: World, session: Session, agent: Agent, note: Note, event: AgentEvent) -> Message:
    """Return the message that brings an agent's own word into the inbox of its parent, which may be idle."""
    parent = parents.heir(world, session)
    return Message(
        to=parent.address if parent is not None else USER,
        sender=event.worker,
        type=COMPLETION,
        id=f"{note.id.removeprefix('event.')}.{note.last.number}",
        subject=event.message[:200],
        body=note.last.text,
        metadata={"status": note.last.status, "event": event.id},
        generation=parent.generation if parent is not None else "",
        sender_generation=session.generation_of(agent),
    )


def event_of(session: Session, agent: Agent, first: str, said: Statement) -> AgentEvent:
    """Return the event that tells a statement; *first* is the id of the completion."""
    kind = event_values.WORKER_COMPLETE if said.number == 1 else event_values.COMPLETION_CORRECTED
    worker = f"{agent.name}@{session.name}"
    words = f"{worker}: {said.status}" + (f" ({one_line(in_words(said))})" if in_words(said) else "")
    return event_values.AgentEvent(
        id=first if said.number == 1 else f"{first}.{said.number}",
        kind=kind,
        worker=worker,
        session=session.name,
        agent=agent.name,
        status=said.status,
        message=words,
        cause=said.cause,
        time_ms=said.time_ms,
        text=said.text,
        by=said.by,
        head=said.head,
        ahead=said.ahead,
        dirty=said.dirty,
        about="" if said.number == 1 else first,
    )


def in_words(said: Statement) -> str:
    """Return a statement in a few words: those of the agent, or the cause, and what git says."""
    begun = said.text.strip().splitlines()[0] if said.text.strip() else said.cause
    proofs = [] if said.ahead is None else [f"{said.ahead} commit{'' if said.ahead == 1 else 's'}"]
    proofs += ["uncommitted changes"] if said.dirty else []
    return "; ".join(part for part in (begun[:200], ", ".join(proofs)) if part)


# --- what git says ------------------------------------------------------------------------------------


def proof(world: World, session: Session, agent: Agent) -> tuple[str, int | None, bool | None]:
    """Return the commit that an agent is at, how many it made since its spawn, and whether there are changes."""
    tree = world.layout.root / agent.worktree
    base = agent.base or session.base
    with suppress(SwarmError, OSError):  # what came of the task is told without it
        return _proof(world, tree, base)
    return "", None, None


def _proof(world: World, tree: Path, base: str) -> tuple[str, int | None, bool | None]:
    code, out, _ = world.git.runner.attempt("rev-parse", "--verify", "HEAD", cwd=tree)
    if code != 0:
        return "", None, None
    head = out.decode("ascii", "replace").strip()
    ahead = world.git.counts([(head, base)])[0] if base else None
    folder = world.git.own_folder(tree)
    if folder is not None:
        return head, ahead, world.uncommitted.are_any([(tree, folder)])[0]
    asked = world.git.begin_status(tree)
    try:
        return head, ahead, bool(asked.result())
    finally:
        asked.end()


def parent_of(world: World, session: Session) -> str:
    """Return who is told of an agent: an address, or ``user``."""
    parent = parents.heir(world, session)
    return parent.address if parent is not None else "user"
