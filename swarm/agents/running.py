"""Stop running agents, and forget stopped ones."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from swarm.agents import endings
from swarm.agents.budgets import drawn
from swarm.agents.errors import AgentNotRunning
from swarm.agents.launching import launch, launch_files
from swarm.agents.view import View
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.kit.words import count
from swarm.machine import own
from swarm.machine.processes import is_alive, start_of
from swarm.machine.run_folder import runfiles
from swarm.programs import processes, registry
from swarm.project.swarm_dir import socket_dir
from swarm.project.world import in_session, new_operation_id
from swarm.terminal.marks import panes_of, stamp_of
from swarm.worktrees import transaction
from swarm.worktrees.steps import layout_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.terminal.values import Pane

#: How long a launcher that has passed its gate may take to say whom it started.
_BEGIN_SECONDS = 2.0


# --- stop ---------------------------------------------------------------------------------------


def stop(world: World, session: Session, agents: Sequence[Agent]) -> tuple[str, ...]:
    """End the programs of some agents, each with everything it started; worktrees and panes stay.

    Returns:
        What could not be ended.
    """
    mine = [agent for agent in agents if agent.program]
    if not mine:
        return ()
    world.progress(f"stopping {count(len(mine), 'agent')}")
    view = View(world)
    survivors = _end(world, session, mine, view)
    for agent in mine:
        if not agent.shared and not view.facts(session, agent).elsewhere:
            launch.release(world, world.layout.root / agent.worktree)
    endings.report(world, (session,))
    for agent in mine:
        drawn.settle(world, session, agent, over=True)
    outcome = f"could not end {count(len(survivors), 'process', 'processes')}" if survivors else "done"
    transaction.note(world, new_operation_id(), "stop", session.name, outcome)
    return tuple(survivors)


def _end(world: World, session: Session, agents: Sequence[Agent], view: View) -> list[str]:
    """End the programs of some agents at once; return the processes that survived."""
    folders = {agent: world.layout.run_folder(session.name, agent.name) for agent in agents}
    folders = {agent: folder for agent, folder in folders.items() if folder.is_dir()}
    if not folders:
        return []
    with ThreadPoolExecutor(min(len(folders), 32)) as pool:  # a gate may take its time
        list(pool.map(lambda agent: _let_no_more_start(folders[agent], session, agent, view), folders))
    stamps = [(folder, stamp_of(session, agent.name, world.layout.root)) for agent, folder in folders.items()]
    survivors = [one for left in processes.end_agents(stamps, world.settings.agents.stop_grace) for one in left]
    for agent, folder in folders.items():
        launch_files.drop_environment(folder)
        if not processes.facts(folder).supervised:
            _sweep_socket(world, session, agent)
        elsewhere = view.facts(session, agent).elsewhere
        survivors += [f"the conversation of {agent.name} in {elsewhere}"] if elsewhere else []
        survivors += [] if agent.shared else processes.left_behind(folder, world.layout.root / agent.worktree)
    return survivors


def _let_no_more_start(folder: Path, session: Session, agent: Agent, view: View) -> None:
    """Note that an agent is being stopped, unless its own end came before that."""
    if view.status(session, agent).runs:
        note = {"schema": 1, "at_ms": time.time_ns() // 1_000_000}
        files.write_atomic(folder / "stop.json", json.dumps(note).encode("ascii"))
        _shut_gate(folder, view.pane(session, agent))


def _shut_gate(folder: Path, pane: Pane | None) -> None:
    """Make sure that no program is about to start: its launcher waits at the gate, or has named its program."""
    if pane is None or pane.dead:
        return
    deadline = time.monotonic() + _BEGIN_SECONDS
    launcher = start_of(pane.pid)
    with suppress(FileNotFoundError):
        own.unlink(os.fspath(folder / "launch.json"))  # the process that removes it decides
        # The launcher ends without it; until then the agent counts as starting, and a resume would start nothing.
        while launcher is not None and is_alive(pane.pid, launcher) and time.monotonic() < deadline:
            time.sleep(0.01)
        return
    while processes.facts(folder).supervisor != pane.pid and time.monotonic() < deadline:
        time.sleep(0.01)


def forget(world: World, session: Session, agent: Agent) -> None:
    """Close an agent's pane and delete the notes about its program; its usage stays.

    The parent of a spawned agent is told, if it does not know the outcome.
    """
    from swarm.usage import count as usage

    if session.is_child:
        endings.tell_removed(world, session, agent)
        if agent.shared:
            layout_steps.remove(world.layout.root / agent.worktree, agent.name)

    world.terminal.kill(pane.id for pane in panes_of(world, session.name) if pane.agent == agent.name)
    usage.keep(world, session, agent)
    folder = world.layout.run_folder(session.name, agent.name)
    with suppress(SwarmError, OSError):  # the program's own file: leftovers there stop no cleanup
        if launch.is_in_swarms_folder(world, agent) or _was_last_in_swarms(world, session, agent):
            program = registry.program(agent.program or "shell", agent.command)
            program.forget(folder, world.layout.root / agent.worktree)
    _sweep_socket(world, session, agent)
    files.remove_tree(folder)
    if folder.parent.is_dir():
        if not any(other.is_dir() for other in folder.parent.iterdir()):
            files.unlink_if_there(folder.parent / "label.lock")  # of the launchers
        files.remove_empty(folder.parent)


def _was_last_in_swarms(world: World, session: Session, agent: Agent) -> bool:
    """Whether nobody else of its program works in a worktree of swarm's; other folders are the user's to know."""
    tree = world.layout.root / agent.worktree
    if tree.parent not in (world.layout.base, world.layout.subtrees):
        return False
    all_ = ((one.name, each) for one in world.sessions.scan()[0] for each in one.agents)
    others = [each for name, each in all_ if (name, each.name) != (session.name, agent.name)]
    return not any(each.program == agent.program and world.layout.root / each.worktree == tree for each in others)


def _sweep_socket(world: World, session: Session, agent: Agent) -> None:
    """Remove the socket that a killed supervisor left; one that ends by itself takes its socket along."""
    swarm_dir = in_session(world, session).swarm_dir
    file = socket_dir.agent_socket(swarm_dir, world.layout.root, session.name, agent.name)
    for path in (file, file.with_name(file.name + runfiles.NEW_SOCKET)):
        with suppress(SwarmError, OSError):  # none there, or not to be removed: it harms nobody
            if path.is_socket():
                files.unlink_if_there(path)
    runfiles.remove(os.fspath(world.layout.run_folder(session.name, agent.name)), runfiles.SOCKET)


def first_with_pane(world: World, session: Session) -> Agent:
    """Return the first agent of a session that has a pane; without any the first."""
    there = {pane.agent for pane in panes_of(world, session.name)}
    return next((one for one in session.agents if one.name in there), session.agents[0])


def pane_of(world: World, session: Session, agent: Agent) -> str:
    """Return the id of an agent's pane.

    Raises:
        AgentNotRunning: it has none.
    """
    for pane in panes_of(world, session.name):
        if pane.agent == agent.name:
            return pane.id
    alive = processes.facts(world.layout.run_folder(session.name, agent.name)).alive
    hint = "it runs; `swarm doctor` shows more" if alive else f"bring it back with `swarm resume {session.name}`"
    raise AgentNotRunning(f"agent {agent.name} of {session.name} has no pane", hint=hint)
