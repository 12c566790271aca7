"""The state of agents from one look at tmux and the run folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.programs import processes
from swarm.programs.status import PaneFacts, State, conclude
from swarm.terminal.marks import repository_mark

if TYPE_CHECKING:
    from collections.abc import Collection

    from swarm.approvals.values import Question
    from swarm.programs.status import ProgramFacts, Status, Verdict
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.terminal.values import Pane


class View:
    """One look at tmux and the run folders, asked about many agents; each fact is read once."""

    def __init__(self, world: World, only: Collection[tuple[str, str]] | None = None) -> None:
        """Look at tmux.

        Args:
            only: the (session, agent) pairs that will be asked about; None: any.
        """
        self._world = world
        self._facts: dict[tuple[str, str], ProgramFacts] = {}
        self._server, panes = world.terminal.look_around()
        mark = repository_mark(world.layout.root) if panes else ""
        self._screens: dict[str, tuple[str, list[str]]] | None = None  # requested on first use
        self._questions: dict[tuple[str, str], Question] | None = None  # likewise
        self._panes: dict[tuple[str, str], Pane] = {
            (pane.session, pane.agent): pane
            for pane in panes
            if pane.repository == mark and (only is None or (pane.session, pane.agent) in only)
        }

    def pane(self, session: Session, agent: Agent) -> Pane | None:
        """Return the agent's pane."""
        return self._panes.get((session.name, agent.name))

    def facts(self, session: Session, agent: Agent) -> ProgramFacts:
        """Return the facts about the agent's program from its run folder."""
        name = (session.name, agent.name)
        if name not in self._facts:
            self._facts[name] = processes.facts(self._world.layout.run_folder(*name))
        return self._facts[name]

    def pid(self, session: Session, agent: Agent) -> int:
        """Return the process of the agent's program; 0 where it does not run."""
        facts = self.facts(session, agent)
        return facts.pid if facts.alive else 0

    def status(self, session: Session, agent: Agent) -> Status:
        """Return the agent's state, with the evidence."""
        pane = self.pane(session, agent)
        facts = self.facts(session, agent)
        seen = PaneFacts(
            pane.id if pane else "",
            dead=pane.dead if pane else False,
            server=self._server,
            screen=self._screen(session, agent, facts, pane.id) if pane and not pane.dead else None,
            begins=_begins(session, facts, pane),
        )
        found = conclude(agent.program, facts, seen)
        if agent.after and found.state is State.IDLE:
            from swarm.agents import after

            held = after.why_held(self._world, session, agent)
            return found._replace(detail=held) if held else found
        if found.state is not State.WAITING:
            return found
        from swarm.agents import asked

        if self._questions is None:
            self._questions = asked.open_questions(self._world)
        return asked.in_words(found, self._questions, session.name, agent.name)

    def _screen(self, session: Session, agent: Agent, facts: ProgramFacts, pane: str) -> Verdict | None:
        """Read the state from the screen of a program that says nothing itself; all of them are looked at at once.

        What an idle one said last is in its record.
        """
        from swarm.programs import registry

        silent = (facts.own is None or facts.own.state == State.STARTING) and not facts.prints
        rules = registry.program(agent.program, agent.command).screens() if facts.alive and silent else None
        if rules is None:
            return None
        if self._screens is None:
            self._screens = self._world.terminal.shows(one.id for one in self._panes.values() if not one.dead)
        found = rules.read(*self._screens[pane], asked=facts.asked) if pane in self._screens else None
        return found._replace(detail=self._last_words(session, agent)) if found and found.state == State.IDLE else found

    def _last_words(self, session: Session, agent: Agent) -> str:
        from swarm.machine.run_folder.program_facts import one_line
        from swarm.programs.reading.transcripts import last_words
        from swarm.usage.count import source_of

        return one_line(last_words(source_of(self._world, session, agent)))


def _begins(session: Session, facts: ProgramFacts, pane: Pane | None) -> bool:
    """Whether a launcher has claimed the session's last launch, and the run folder still tells of the one before.

    The pane alone does not show it: a user may run another program there.
    """
    later = bool(session.operations) and facts.operation not in {"", session.operations[-1]}
    return pane is not None and not pane.dead and later and pane.pid != facts.supervisor


def state_of(world: World, session: Session, agent: Agent) -> Status:
    """Return the state of one agent, with the evidence."""
    return View(world, {(session.name, agent.name)}).status(session, agent)


def live_agents(world: World, session: Session) -> tuple[Agent, ...]:
    """Return the agents of a session whose program runs."""
    view = View(world, {(session.name, a.name) for a in session.agents})
    return tuple(a for a in session.agents if a.program and view.status(session, a).runs)
