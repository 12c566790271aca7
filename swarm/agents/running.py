"""Running agents: their state, and stopping them."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from swarm.agents import asked, endings, launch
from swarm.kit import files
from swarm.kit.errors import AgentNotRunning, SwarmError
from swarm.kit.words import count
from swarm.machine import own
from swarm.programs.status import PaneFacts, State, conclude
from swarm.project.world import new_operation_id
from swarm.terminal.marks import panes_of, repository_mark, stamp_of
from swarm.worktrees import transaction

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from swarm.approvals.values import Question
    from swarm.programs.screen_rules import Verdict
    from swarm.programs.status import ProgramFacts, Status
    from swarm.programs.values import Pane
    from swarm.project.model import Agent, Session
    from swarm.project.world import World

#: How long a launcher that has passed its gate may take to say whom it started.
_BEGIN_SECONDS = 2.0


class View:
    """One look at tmux and the run folders, asked about many agents; each fact is read once."""

    def __init__(self, world: World, only: Collection[tuple[str, str]] | None = None) -> None:
        """Look at tmux.

        Args:
            only: the (session, agent) pairs that will be asked about; None: any.
        """
        self._world = world
        self._facts: dict[tuple[str, str], ProgramFacts] = {}
        mark = repository_mark(world.layout.root)
        panes = world.terminal.panes()
        self._server = bool(panes) or world.terminal.running()
        self._screens: dict[str, tuple[str, list[str]]] | None = None  # asked for when somebody needs one
        self._questions: dict[tuple[str, str], Question] | None = None  # likewise
        self._panes: dict[tuple[str, str], Pane] = {
            (pane.session, pane.agent): pane
            for pane in panes
            if pane.repository == mark and (only is None or (pane.session, pane.agent) in only)
        }

    def pane(self, session: Session, agent: Agent) -> Pane | None:
        return self._panes.get((session.name, agent.name))

    def facts(self, session: Session, agent: Agent) -> ProgramFacts:
        name = (session.name, agent.name)
        if name not in self._facts:
            self._facts[name] = self._world.processes.facts(self._world.layout.run_folder(*name))
        return self._facts[name]

    def pid(self, session: Session, agent: Agent) -> int:
        facts = self.facts(session, agent)
        return facts.pid if facts.alive else 0

    def status(self, session: Session, agent: Agent) -> Status:
        pane = self.pane(session, agent)
        facts = self.facts(session, agent)
        seen = PaneFacts(
            pane.id if pane else "",
            dead=pane.dead if pane else False,
            server=self._server,
            screen=self._screen(agent, facts, pane.id) if pane and not pane.dead else None,
        )
        found = conclude(agent.program, facts, seen)
        if found.state is not State.WAITING:
            return found
        if self._questions is None:
            self._questions = asked.open_questions(self._world)
        return asked.in_words(found, self._questions, session.name, agent.name)

    def _screen(self, agent: Agent, facts: ProgramFacts, pane: str) -> Verdict | None:
        """Read the state from the screen of a program that says nothing itself; all of them are looked at at once."""
        silent = (facts.own is None or facts.own.state == State.STARTING) and not facts.prints
        rules = self._world.programs.get(agent.program, agent.command).screens() if facts.alive and silent else None
        if rules is None:
            return None
        if self._screens is None:
            self._screens = self._world.terminal.shows(one.id for one in self._panes.values() if not one.dead)
        return rules.read(*self._screens[pane], asked=facts.asked) if pane in self._screens else None


def state_of(world: World, session: Session, agent: Agent) -> Status:
    """Return what one agent is doing, with the evidence."""
    return View(world, {(session.name, agent.name)}).status(session, agent)


def live_agents(world: World, session: Session) -> tuple[Agent, ...]:
    """Return the agents of a session whose program runs."""
    view = View(world, {(session.name, a.name) for a in session.agents})
    return tuple(a for a in session.agents if a.program and view.status(session, a).runs)


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
    with ThreadPoolExecutor(min(len(mine), 32)) as pool:  # each may take its time to end; together they take one
        ends = pool.map(lambda agent: _end(world, session, agent, view), mine)
        survivors = [one for several in ends for one in several]
    for agent in mine:
        if not view.facts(session, agent).elsewhere:
            launch.release(world, world.layout.root / agent.worktree)
    endings.tell(world, (session,))
    outcome = f"could not end {count(len(survivors), 'process', 'processes')}" if survivors else "done"
    transaction.note(world, new_operation_id(), "stop", session.name, outcome)
    return tuple(survivors)


def _end(world: World, session: Session, agent: Agent, view: View) -> tuple[str, ...]:
    folder = world.layout.run_folder(session.name, agent.name)
    if not folder.is_dir():
        return ()
    if view.status(session, agent).runs:  # else how it ended by itself is what counts
        note = {"schema": 1, "at_ms": world.host.now_ns() // 1_000_000}
        files.write_atomic(folder / "stop.json", json.dumps(note).encode("ascii"))
        _shut_gate(world, folder, view.pane(session, agent))
    stamp = stamp_of(session, agent.name, world.layout.root)
    left = world.processes.end_agent(folder, stamp, world.settings.agents.stop_grace)
    launch.drop_environment(folder)
    elsewhere = view.facts(session, agent).elsewhere
    return (*left, *([f"the conversation of {agent.name} in {elsewhere}"] if elsewhere else ()))


def _shut_gate(world: World, folder: Path, pane: Pane | None) -> None:
    """Make sure that nothing is about to start: its launcher is at the gate, or says whom it started."""
    if pane is None or pane.dead:
        return
    with suppress(FileNotFoundError):
        own.unlink(os.fspath(folder / "launch.json"))  # whoever removes it decides
        return
    deadline = time.monotonic() + _BEGIN_SECONDS
    while world.processes.facts(folder).supervisor != pane.pid and time.monotonic() < deadline:
        time.sleep(0.01)


def forget(world: World, session: Session, agent: Agent) -> None:
    """Close an agent's pane and delete the notes about its program; what it used up is kept."""
    from swarm.usage import count as usage

    world.terminal.kill(pane.id for pane in panes_of(world, session.name) if pane.agent == agent.name)
    usage.keep(world, session, agent)
    folder = world.layout.run_folder(session.name, agent.name)
    with suppress(SwarmError, OSError):  # the program's own file: what is left over there stops no cleanup
        world.programs.get(agent.program or "shell", agent.command).forget(folder, world.layout.root / agent.worktree)
    files.remove_tree(folder)
    if folder.parent.is_dir():
        if not any(other.is_dir() for other in folder.parent.iterdir()):
            files.unlink_if_there(folder.parent / "label.lock")  # of the launchers
        files.remove_empty(folder.parent)


def pane_of(world: World, session: Session, agent: Agent) -> str:
    """Return the id of an agent's pane.

    Raises:
        AgentNotRunning: it has none.
    """
    for pane in panes_of(world, session.name):
        if pane.agent == agent.name:
            return pane.id
    alive = world.processes.facts(world.layout.run_folder(session.name, agent.name)).alive
    hint = "it runs: `swarm doctor` tells more" if alive else f"bring it back with `swarm resume {session.name}`"
    raise AgentNotRunning(f"agent {agent.name} of {session.name} has no pane", hint=hint)
