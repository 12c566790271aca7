"""Notice what changed outside of an agent's worktree while it was at work: evidence for a person, and no proof.

    seen at rest ──► its turn ──► at rest again: what changed meanwhile in the main checkout, and where agents rested?

An agent without a box can write wherever its user can.  Once a turn is over git is asked, as for a status, about the
main checkout and the worktrees of agents that were at rest all the time.  What it names counts if the file system says
that it changed during the turn.  Who changed it nobody knows: it may have been the user.  So where the agent's own
conversation names the file, that is said, too.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit.errors import Interrupted, SwarmError
from swarm.machine import tail
from swarm.machine.run_folder import runfiles
from swarm.programs.status import State
from swarm.usage.count import source_of
from swarm.usage.spending.meter import open_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.project.model import Session
    from swarm.project.world import World
    from swarm.sessions.values import AgentStatus, SessionStatus

_AT_WORK = frozenset({State.STARTING, State.WORKING, State.UNKNOWN})
#: So many notes of an agent, files of one, and other worktrees are kept or looked at.
_MOST_NOTES, _MOST_FILES, _MOST_TREES = 10, 20, 16
#: The times of files are those of the kernel's last tick.
_TICK_MS = 20
#: So much of the end of its conversation is searched for names of files.
_SEARCHED = 4 << 20


class Outside(NamedTuple):
    """Files that changed outside of an agent's worktree during its turn.

    Attributes:
        from_ms, at_ms: the time between which they changed; the turn lies in it.
        tree: the folder in which they are: the main checkout, or the worktree of another agent.
        owner: whose worktree that is; empty: the main checkout.
        files: relative to *tree*, as git names them; of very many only some.
        more: how many further ones there are.
        named: those that the agent's own conversation names.
        others: who else was at work in that time.
    """

    from_ms: int
    at_ms: int
    tree: str
    owner: str
    files: tuple[str, ...]
    more: int = 0
    named: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def notes(run_dir: Path) -> tuple[Outside, ...]:
    """Return what was noticed of an agent, the newest first."""
    kept = (runfiles.read(str(run_dir), runfiles.OUTSIDE) or {}).get("found")
    return tuple(_note(one) for one in kept if isinstance(one, dict)) if isinstance(kept, list) else ()


def _note(one: Mapping[str, Any]) -> Outside:
    files, named, others = (_texts(one.get(name)) for name in ("files", "named", "others"))
    from_ms, at_ms, more = (_number(one.get(name)) for name in ("from_ms", "at_ms", "more"))
    return Outside(from_ms, at_ms, str(one.get("tree")), str(one.get("owner") or ""), files, more, named, others)


def look(world: World, found: Sequence[SessionStatus]) -> int:
    """Look after each agent without a box whose turn is over; return how many notes were made."""
    if not world.settings.agents.watch_outside:
        return 0
    every = [(one.session, item) for one in found for item in one.agents]
    made = 0
    for session, item in every:
        if item.agent.program and not item.agent.is_boxed and not item.agent.shared:
            try:
                made += _look_after(world, session, item, every)
            except Interrupted:
                raise
            except (SwarmError, OSError):
                continue  # what cannot be looked at is looked at after the next turn
    return made


def _look_after(world: World, session: Session, item: AgentStatus, every: Sequence[tuple[Session, AgentStatus]]) -> int:
    run = world.layout.run_folder(session.name, item.agent.name)
    known = runfiles.read(str(run), runfiles.OUTSIDE) or {}
    seen_ms, before = known.get("seen_ms"), known.get("state")
    state = {"state": str(item.status.state), "since_ms": item.status.since_ms}
    now_ms = time.time_ns() // 1_000_000
    if not isinstance(seen_ms, int):
        seen_ms = _number((runfiles.read(str(run), runfiles.PROCESS) or {}).get("started_ms")) or now_ms
    if item.status.state in _AT_WORK or not run.is_dir():
        if known.get("state") != state["state"] and run.is_dir():
            runfiles.write(str(run), runfiles.OUTSIDE, {**known, **state, "seen_ms": seen_ms})
        return 0
    if (before, known.get("since_ms")) == (state["state"], state["since_ms"]):
        return 0
    fresh = list(_changed(world, session, item, every, seen_ms, now_ms))
    kept = known.get("found")
    older = kept if isinstance(kept, list) else []
    told = [*(one._asdict() for one in fresh), *older][:_MOST_NOTES]
    runfiles.write(str(run), runfiles.OUTSIDE, {**state, "seen_ms": now_ms, "found": told})
    return len(fresh)


def _changed(
    world: World,
    session: Session,
    item: AgentStatus,
    every: Sequence[tuple[Session, AgentStatus]],
    from_ms: int,
    at_ms: int,
) -> Iterator[Outside]:
    """Yield what changed since a time in the main checkout and in the worktrees of agents that were at rest."""
    mine = (session.name, item.agent.name)
    resting = [(one, other) for one, other in every if _rested(one, other, mine, from_ms)][:_MOST_TREES]
    others = tuple(
        f"{other.agent.name}@{one.name}"
        for one, other in every
        if (one.name, other.agent.name) != mine and other.agent.program and not _is_at_rest(other, from_ms)
    )
    trees = {world.layout.root: "", **{other.worktree: f"{other.agent.name}@{one.name}" for one, other in resting}}
    asked = {tree: world.git.begin_status(tree) for tree in trees}
    said: bytes | None = None
    try:
        for tree, owner in trees.items():
            files = _since(tree, asked[tree].result(), from_ms)
            if files:
                said = _conversation(world, session, item) if said is None else said
                shown = tuple(files[:_MOST_FILES])
                named = tuple(one for one in shown if _spelled(f"{tree}/{one}") in said)
                yield Outside(from_ms, at_ms, str(tree), owner, shown, len(files) - len(shown), named, others)
    finally:
        for one in asked.values():
            one.end()


def _is_at_rest(item: AgentStatus, from_ms: int) -> bool:
    """Whether an agent did nothing since a time."""
    return item.status.state not in _AT_WORK and bool(item.status.since_ms) and item.status.since_ms < from_ms


def _rested(session: Session, item: AgentStatus, mine: tuple[str, str], from_ms: int) -> bool:
    """Whether what changed in the worktree of another agent since a time was not its own work."""
    other = (session.name, item.agent.name) != mine and not item.agent.shared and not item.missing
    return other and _is_at_rest(item, from_ms) and not item.agent.is_boxed


def _since(tree: Path, status: bytes, from_ms: int) -> list[str]:
    """Return the paths of a status of git that changed since a time, as the file system tells."""
    found = []
    parts = iter(status.split(b"\0"))
    for part in parts:
        if not part:
            continue
        if part[:1] in b"RC":
            next(parts, b"")  # where it was before
        name = os.fsdecode(part[3:])
        if _changed_ms(os.path.join(tree, name)) >= from_ms - _TICK_MS:
            found.append(name)
    return found


def _changed_ms(path: str) -> int:
    """Return when a file was written, or, of one that is gone, its folder."""
    for one in (path.rstrip("/"), os.path.dirname(path.rstrip("/"))):
        try:
            return os.lstat(one).st_ctime_ns // 1_000_000
        except OSError:
            continue
    return 0


def _conversation(world: World, session: Session, item: AgentStatus) -> bytes:
    """Return the end of an agent's newest conversation, as it is written down."""
    record = open_record(source_of(world, session, item.agent))
    tails = getattr(record, "tails", None)  # a database has none
    paths = tail.newest_first(one.path for one in tails()) if tails is not None else []
    return tail.end_of(paths[0], _SEARCHED) if paths else b""


def _spelled(path: str) -> bytes:
    """Return a path as it stands in JSON."""
    return json.dumps(path, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
