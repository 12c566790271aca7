"""What a lead or a child is told at the end of its turn: which children work on, what is to be folded in, what it owes.

It is told once for each state of things: a program that is held up at every end of a turn would never be idle.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from swarm.agents import completions, event_values
from swarm.agents.view import View
from swarm.callers import family, parents
from swarm.kit.words import count
from swarm.machine.run_folder import runfiles
from swarm.project.model import SUBTREE

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World

_SAID = "ending.json"
#: So many children are named.
_MOST = 10


def words(world: World) -> str:
    """Return what the calling agent is told as its turn ends; empty when there is nothing, or it was told before."""
    me = parents.starter(world)
    there = parents.find(world, me) if me is not None else None
    if there is None:
        return ""
    session, agent = there
    told = _told(world, session, agent)
    run = str(world.layout.run_folder(session.name, agent.name))
    mark = sha256("\n".join(told).encode()).hexdigest() if told else ""
    if not told or (runfiles.read(run, _SAID) or {}).get("said") == mark:
        return ""
    runfiles.write(run, _SAID, {"said": mark})
    return "\n".join((*told, "This is said once: end your turn again if all of it is as you want it."))


def _told(world: World, session: Session, agent: Agent) -> list[str]:
    mine = list(family.children(world.sessions.scan()[0], family.as_parent(session, agent)))
    view = View(world, {(one.name, each.name) for one in mine for each in one.agents})
    open_, merge = [], []
    for one in mine:
        for each in one.agents:
            note = completions.look(world, one, each)
            if note is None and each.program and view.status(one, each).runs:
                open_.append(f"{each.name}@{one.name}")
            elif note is not None and one.kind == SUBTREE and note.last.status == event_values.SUCCESS:
                merge.append(one.name)
    found = []
    if open_:
        found.append(
            f"{count(len(open_), 'child', 'children')} of yours {'is' if len(open_) == 1 else 'are'} still at work:"
            f" {_listed(open_)}. You are told of each outcome, also after this turn; to wait for the next one now:"
            " wait_for_event, or `swarm wait-event --after last`."
        )
    if merge:
        found.append(
            f"Finished and not merged: {_listed(merge)}. Check it, then: `swarm merge --tree {merge[0]}`; or remove it:"
            f" `swarm cleanup --tree {merge[0]}`."
        )
    if session.is_child and not open_ and completions.look(world, session, agent) is None:
        found.append(
            "You have not said what came of your task. If it is finished, or cannot be done: notify_parent, or"
            " `swarm notify-parent success|failure 'TEXT'`."
        )
    return found


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return ", ".join(sorted(names)[:_MOST]) + more
