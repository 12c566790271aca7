"""The state of all agents, and resuming stopped ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from swarm.agents import launch, running
from swarm.kit.errors import Interrupted, SwarmError, WorktreeNotFound, raise_all
from swarm.messages.post import Post
from swarm.programs.status import State
from swarm.project import codec
from swarm.project import layout as places
from swarm.project.model import AgentStatus, SessionStatus
from swarm.project.world import in_session, new_operation_id
from swarm.sessions import listing
from swarm.worktrees import inbox_steps, steps, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role


# --- what they are doing ------------------------------------------------------------------------


def _unread(world: World, addresses: Sequence[str]) -> dict[str, int | None]:
    """Return how many messages wait for each agent; None: its inbox cannot be read."""
    post = Post(world.layout.state, environ=world.environ)
    found: dict[str, int | None] = {}
    for address in addresses:
        try:
            found |= post.unread([address])
        except Interrupted:
            raise
        except SwarmError:  # doctor says why
            found[address] = None
    return found


def status(world: World, sessions: Sequence[Session], *, look: bool) -> tuple[SessionStatus, ...]:
    """Return the state of every agent, from one look at tmux, one at git, and their own notes.

    Args:
        sessions: with the agents to look at.
        look: also ask git about uncommitted changes and commits, once per agent.
    """
    view = running.View(world, {(s.name, a.name) for s in sessions for a in s.agents})
    # States first: an agent that is idle has committed by then, and is not shown without its last commit.
    states = {(s.name, a.name): view.status(s, a) for s in sessions for a in s.agents}
    trees = {info.path: info for info in listing.recorded(world, sessions, look=look)} if sessions else {}
    unread = _unread(world, [f"{a.name}@{s.name}" for s in sessions for a in s.agents])
    found = []
    for session in sessions:
        agents = []
        for agent in session.agents:
            info = trees.get(world.layout.root / agent.worktree)
            concluded = states[session.name, agent.name]
            pane = view.pane(session, agent)
            agents.append(
                AgentStatus(
                    agent=agent,
                    status=concluded,
                    pane=pane.id if pane else "",
                    pid=view.pid(session, agent),
                    worktree=world.layout.root / agent.worktree,
                    head=info.head if info else "",
                    ahead=info.ahead if info else None,
                    dirty=info.dirty if info else None,
                    missing=info.missing if info else True,
                    unread=unread[f"{agent.name}@{session.name}"],
                    session=session.name,
                )
            )
        found.append(SessionStatus(session, overall([a.status.state for a in agents]), tuple(agents)))
    return tuple(found)


def overall(states: Sequence[State]) -> State:
    """Return what a session as a whole is: what most needs a look wins."""
    order = (
        *(State.WAITING, State.FAILED, State.UNKNOWN, State.STARTING),
        *(State.WORKING, State.IDLE, State.DONE, State.STOPPED),
    )
    return next((state for state in order if state in states), State.STOPPED)


# --- bring back -----------------------------------------------------------------------------------


def finished(world: World, session: Session, agents: Sequence[Agent], role: Callable[[str], Role]) -> tuple[Agent, ...]:
    """Return those that did their task in print mode and ended well: there is nothing to take up."""
    view = running.View(world)
    done = [a for a in agents if view.status(session, a).state is State.DONE and view.facts(session, a).prints]
    return tuple(a for a in done if launch.options_for(world, a, role(a.role)).print)


def resume(
    world: World, session: Session, agents: Sequence[Agent], role: Callable[[str], Role], *, anew: bool = False
) -> tuple[str, ...]:
    """Start again the programs that do not run, in the same worktrees; all of them or none.

    Args:
        anew: those in print mode do their task anew instead of going on with it.

    Returns:
        The names of the agents that were started.
    """
    world = in_session(world, session)
    view = running.View(world)
    wanted = [a for a in agents if a.program and not view.status(session, a).runs]
    told = refuse_start(world, session, wanted, role)
    if not wanted:
        return ()
    operation = new_operation_id()
    record = replace(session, operations=(*session.operations, operation))
    if anew:
        told = [(_with_new_conversation(world, a, r), r) for a, r in told]
        changed = {a.name: a for a, _ in told}
        record = replace(record, agents=tuple(changed.get(a.name, a) for a in session.agents))
    how: dict[str, Any] = {"resume": True, "anew": anew, "beside": session.beside}
    todo = (
        *launch.start_steps(world, operation, session.name, told, session.task, **how),
        steps.WriteRecord(operation, codec.session_to_bytes(record).decode("ascii")),
    )
    started, boot = world.host.now_ns(), world.host.boot_id()
    refs = (places.op_ref(operation),)
    transaction.run(world, transaction.Operation(operation, "resume", session.name, started, boot, todo, refs))
    inbox_steps.declare(world, session.name, [agent.name for agent in wanted])
    return tuple(agent.name for agent in wanted)


def refuse_start(
    world: World, session: Session, wanted: Sequence[Agent], role: Callable[[str], Role]
) -> list[tuple[Agent, Role]]:
    """Refuse what could not be started again; else return each agent with its role as it is now."""
    world = in_session(world, session)
    problems: list[SwarmError] = [
        WorktreeNotFound(
            f"the worktree of {agent.name} is gone: {world.layout.root / agent.worktree}",
            hint=f"remove what is left of it with `swarm worktree remove {agent.name}@{session.name} --force`",
        )
        for agent in wanted
        if not (world.layout.root / agent.worktree).is_dir()
    ]
    for agent in {(a.program, a.command): a for a in wanted}.values():
        wish = launch.Wish(agent.program, agent.command)
        problems += [p for p in launch.problems(world, wish) if str(p) not in map(str, problems)]
    raise_all(f"cannot resume session {session.name}", problems)
    told = [(agent, role(agent.role)) for agent in wanted]
    refused = [p for a, r in told for p in launch.refusals(world, _wish_of(a, session), r)]
    raise_all(f"cannot resume session {session.name}", refused)
    return told


def _wish_of(agent: Agent, session: Session) -> launch.Wish:
    return launch.Wish(agent.program, agent.command, session.task, print_mode=agent.print_mode)


def _with_new_conversation(world: World, agent: Agent, role: Role) -> Agent:
    """Return the agent with another conversation, if it is to do its task anew: programs take no id twice."""
    fresh = launch.options_for(world, agent, role).print and agent.conversation
    return replace(agent, conversation=str(uuid4())) if fresh else agent


def label(world: World, found: Sequence[SessionStatus]) -> None:
    """Show the states in the pane borders and the status line of tmux."""
    panes = {a.pane: _words(a) for s in found for a in s.agents if a.pane}
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


def _words(item: AgentStatus) -> str:
    detail = "".join(c if c.isprintable() and c != "#" else " " for c in item.status.detail)[:60]
    return item.status.state + (f": {detail}" if detail and item.status.state is State.WAITING else "")
