"""The state of all agents."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swarm.agents import orphans
from swarm.agents.view import View
from swarm.machine.inbox_watch import Inbox
from swarm.machine.run_folder import runfiles
from swarm.machine.sockets.heard import Heard
from swarm.messages.inboxes import inbox_folder
from swarm.programs.status import State
from swarm.sessions import listing
from swarm.sessions.sockets import Sockets, with_socket
from swarm.sessions.values import AgentStatus, SessionStatus

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from swarm.agents.outside import Outside
    from swarm.programs.status import Status
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.sessions.values import WorktreeInfo

#: So many agents that do not run are looked at in any case.
_FEW = 8

# --- what they are doing ------------------------------------------------------------------------


def count_unread(world: World, agents: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int | None]:
    """Return how many messages wait for each agent (session, name); None: its inbox cannot be read."""
    folders = {one: os.fspath(inbox_folder(world, *one)) for one in agents}
    used = {one for one, folder in folders.items() if not Inbox(folder).is_fresh()}
    if not used:
        return dict.fromkeys(folders, 0)
    from swarm.bus.reader.waiting import unread

    return {one: unread(folder) if one in used else 0 for one, folder in folders.items()}


def status(
    world: World,
    sessions: Sequence[Session],
    *,
    look: bool | None,
    unread: bool = True,
    trees: bool = True,
    ask: bool = True,
) -> tuple[SessionStatus, ...]:
    """Return the state of every agent, from one look at tmux, one at git, and their own notes.

    Args:
        sessions: with the agents to look at.
        look: also ask git about uncommitted changes and commits, once per agent; None: not of many that do not run.
        unread: also count the messages that wait.
        trees: also look where the worktrees are and what is checked out there.
        ask: also ask the agents' supervisors on their sockets, all at once, while the rest is looked at.
    """
    sockets = Sockets(world, sessions if ask else ())
    view = View(world, {(s.name, a.name) for s in sessions for a in s.agents})
    # States first: an agent that is idle has committed by then, and is not shown without its last commit.
    states = {(s.name, a.name): view.status(s, a) for s in sessions for a in s.agents}
    asked = _worth_a_look(sessions, states) if look is None else look
    infos = listing.recorded(world, sessions, look=asked) if sessions and trees else []
    known = {(info.session, info.agent): info for info in infos}
    waiting = count_unread(world, states) if unread else {}
    heard = sockets.answers()
    held = _held(world, sessions)
    found = []
    for session in sessions:
        agents = []
        for agent in session.agents:
            one = (session.name, agent.name)
            socket = heard.get(one, Heard())
            info, concluded = known.get(one), with_socket(states[one], socket)
            made = _agent_status(world, view, session, agent, concluded, info, trees=trees)
            agents.append(
                made._replace(unread=waiting.get(one), socket=socket.path, stale=socket.stale, held=held.get(one, ""))
            )
        found.append(SessionStatus(session, overall([a.status.state for a in agents]), tuple(agents)))
    return tuple(found)


def _held(world: World, sessions: Sequence[Session]) -> Mapping[tuple[str, str], str]:
    """Return why agents' last commits are in their boxes alone."""
    if not any(agent.box for session in sessions for agent in session.agents):
        return {}
    from swarm.sandbox import fresh  # most have none

    return fresh.refusals(world, sessions)


def _agent_status(
    world: World,
    view: View,
    session: Session,
    agent: Agent,
    now: Status,
    info: WorktreeInfo | None,
    *,
    trees: bool,
) -> AgentStatus:
    pane = view.pane(session, agent)
    return AgentStatus(
        agent=agent,
        status=now,
        pane=pane.id if pane else "",
        pid=view.pid(session, agent),
        worktree=world.layout.root / agent.worktree,
        head=info.head if info else "",
        ahead=info.ahead if info else None,
        dirty=info.dirty if info else None,
        missing=info.missing if info else trees,
        session=session.name,
        exit_code=None if now.runs else view.facts(session, agent).exit_code,
        blocked=_blocked(world, session, agent, now),
        limits=_limits(world, session, agent),
        outside=_outside(world, session, agent),
    )


def _outside(world: World, session: Session, agent: Agent) -> tuple[Outside, ...]:
    """Return what changed outside of an agent's worktree during its turns."""
    run_dir = world.layout.run_folder(session.name, agent.name)
    if not os.path.exists(run_dir / runfiles.OUTSIDE):
        return ()
    from swarm.agents import outside  # most have none

    return outside.notes(run_dir)


def _limits(world: World, session: Session, agent: Agent) -> Mapping[str, int | str] | None:
    """Return how much may be used up in an agent's box."""
    if agent.box is None or not agent.is_boxed:
        return None
    from swarm.sandbox.bounds import limits  # most have none

    return limits.limits_of(agent.box, world.layout.run_folder(session.name, agent.name))


def _blocked(world: World, session: Session, agent: Agent, status: Status) -> dict[str, Any] | None:
    """Return the tool for which an agent waits for permission."""
    if status.state is not State.WAITING:
        return None
    from swarm.programs import blocking  # few wait

    run_dir = world.layout.run_folder(session.name, agent.name)
    return blocking.blocked(world.layout.state, run_dir, session.name, agent.name)


def _worth_a_look(sessions: Sequence[Session], states: Mapping[tuple[str, str], Status]) -> Container[tuple[str, str]]:
    """Return the agents about whose worktrees git is asked.

    It takes git a few milliseconds each. So of many that do not run only those of the newest session are looked at.
    """
    resting = [one for one, state in states.items() if not state.runs]
    if len(resting) <= _FEW:
        return states
    names = {session for session, _ in resting}
    newest = max((one for one in sessions if one.name in names), key=lambda session: session.created_ms)
    return {one for one, state in states.items() if state.runs or one[0] == newest.name}


def overall(states: Sequence[State]) -> State:
    """Return the state of a whole session: the state that most needs attention wins."""
    order = (
        *(State.WAITING, State.FAILED, State.UNKNOWN, State.STARTING),
        *(State.WORKING, State.IDLE, State.DONE, State.STOPPED),
    )
    return next((state for state in order if state in states), State.STOPPED)


# --- bring back -----------------------------------------------------------------------------------


def label(world: World, found: Sequence[SessionStatus]) -> None:
    """Show the states in the pane borders and the status line of tmux, and note what screens showed."""
    from swarm.programs.reading import seen  # a look alone notes nothing

    for one in (a for s in found for a in s.agents):
        seen.note(world.layout.run_folder(one.session, one.agent.name), one.status)
    former = {s.session.name: orphans.former_parent(world, s.session) for s in found if s.session.is_child}
    panes = {a.pane: _words(a, former.get(s.session.name, "")) for s in found for a in s.agents if a.pane}
    if not panes:
        return
    waiting = [a.agent.name for s in found for a in s.agents if a.status.state is State.WAITING]
    count: dict[str, int] = {}
    for s in found:
        for a in s.agents:
            count[a.status.state] = count.get(a.status.state, 0) + 1
    summary = ", ".join(f"{n} {state}" for state, n in sorted(count.items()))
    if waiting:
        summary = f"waiting for you: {', '.join(waiting)} · {summary}"
    world.terminal.label(panes, summary)


def _words(item: AgentStatus, orphan_of: str) -> str:
    """Return the state of an agent for its pane, and whose orphan it is."""
    detail = "".join(c if c.isprintable() and c != "#" else " " for c in item.status.detail)[:60]
    shown = item.status.state + (f": {detail}" if detail and item.status.state is State.WAITING else "")
    return f"{shown} (orphan of {orphan_of})" if orphan_of else shown
