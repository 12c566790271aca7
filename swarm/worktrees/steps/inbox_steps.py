"""Steps that make, save and restore agents' inboxes."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.bus.errors import IdTaken
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine.inbox_watch import Inbox, dropped
from swarm.messages import undelivered
from swarm.messages.inboxes import bus_of, events_folder, inbox_folder
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from swarm.bus.message import Message
    from swarm.bus.protocol import PostBus
    from swarm.project.model import Agent, Session
    from swarm.project.world import World

#: An agent's boxes, by their names in a salvage folder.
_BOXES = {"inbox": inbox_folder, "events": events_folder}
_AT_ONCE = 16


def declare(world: World, session_name: str, agents: Iterable[str] | None = None) -> None:
    """Make the inboxes of a session's agents, or of some; existing messages stay.

    Where that fails the first message makes it: a session that has started is no failure.
    """
    session = world.sessions.get(session_name)
    if session is None:
        return
    wanted = None if agents is None else set(agents)
    made = [
        (f"{agent.name}@{session.name}", session.generation_of(agent))
        for agent in session.agents
        if wanted is None or agent.name in wanted
    ]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # each waits for the disk; together they wait once
        list(pool.map(lambda one: _declare(world, *one), made))


def _declare(world: World, address: str, generation: str) -> None:
    bus = bus_of(world)
    try:
        with suppress(SwarmError, OSError):
            bus.declare(address, generation=generation)
    finally:
        bus.close()


def retire(world: World, session: Session, agent: Agent, salvage: Path, trash: Path, *, discard: bool) -> None:
    """Take the inbox and the events of an agent that goes away: into its salvage, or, with nothing in them, the trash.

    Done again after a crash it finds them moved, and does nothing.  What others write to at this very moment takes
    what they write along.
    """
    for kind, folder_of in _BOXES.items():
        folder = folder_of(world, session.name, agent.name)
        if not folder.is_dir():
            continue
        bare = _is_bare(folder)
        if kind == "inbox" and not bare:
            undelivered.notify_senders(world, session, agent, discard=discard)
        if discard or bare:
            files.rename_if_there(folder, trash / f"{folder.name}.{kind}")
        else:
            _save(world, folder, salvage, kind)


def _save(world: World, folder: Path, salvage: Path, kind: str) -> None:
    target = salvage / kind
    if files.exists(target):  # a message came after an earlier try
        target = _later(target)
    files.make_private_dir(salvage.parent.parent.parent)
    for part in (salvage.parent.parent, salvage.parent, salvage):
        files.make_private_dir(part)
    _move(world, folder, target)


def _move(world: World, folder: Path, target: Path) -> None:
    """Move a box, but not while a process collects references to attachments, which might miss it."""
    with bus_of(world).attachments_stay():
        files.rename_if_there(folder, target)


@dataclass(frozen=True, slots=True)
class BringInboxBack(Step):
    """Put the saved inbox, or events, of an agent in its place.

    What came between two tries of a cleanup was saved in a box of its own, and what came right after one may lie where
    the agent's box was.  Both come behind what was saved first; nobody is told anew of what is there already.
    """

    saved: str
    folder: str

    def do(self, world: World) -> None:
        saved, folder = Path(self.saved), Path(self.folder)
        if not saved.is_dir():
            return
        if files.exists(folder):
            _move(world, folder, _later(saved))
        files.make_private_dir(folder.parent.parent)
        files.make_private_dir(folder.parent)
        _move(world, saved, folder)
        for more in _saved_later(saved):
            _add(world, more, folder)

    def undo_files(self, world: World) -> None:
        # It was saved when this was planned: if it is not there now, what stands in its place is it.
        if Path(self.saved).parent.is_dir() and not files.exists(Path(self.saved)):
            _move(world, Path(self.folder), Path(self.saved))

    def say(self) -> str:
        return f"restore the messages of {Path(self.folder).name}"


def _later(saved: Path) -> Path:
    """Return where a box is saved that is younger than the saved one; their names sort by age."""
    return saved.with_name(f"{saved.name}.{time.time_ns():020d}")


def _saved_later(saved: Path) -> list[Path]:
    return sorted(one for one in saved.parent.glob(f"{saved.name}.*") if one.suffix[1:].isdigit() and one.is_dir())


def _add(world: World, more: Path, folder: Path) -> None:
    """Forward the waiting messages of a box to another, each under its id."""
    from swarm.bus.keeping.saved import waiting_in

    ordered = folder.parent.name == "inbox"
    with closing(bus_of(world)) as bus:
        for message in waiting_in(more, ordered=ordered):
            _send_on(bus, message, more.suffix[1:])
    for name in dropped(str(more)):
        number = "" if not files.exists(folder / "drop" / name) else f"{more.suffix[1:]}-"
        files.rename_if_there(more / "drop" / name, folder / "drop" / f"{number}{name}")
    _move(world, more, more.with_name(f"{more.name}.restored"))


def _send_on(bus: PostBus, message: Message, number: str) -> None:
    """Send a message again under its id; if another one has that by now, under one that follows from it."""
    try:
        bus.send(message)
    except IdTaken:
        bus.send(message._replace(id=f"{message.id[:70]}-{number}"))


def steps_back(world: World, operation: str, session: str, agent: str, salvage: Path) -> Iterator[Step]:
    """Give the steps that bring an agent's messages and events back, if some were saved with it."""
    for kind, folder_of in _BOXES.items():
        saved = salvage / kind
        if saved.is_dir():
            yield BringInboxBack(operation, str(saved), str(folder_of(world, session, agent)))


def _is_bare(folder: Path) -> bool:
    """Whether nothing was ever sent there."""
    return Inbox(str(folder)).is_fresh()
