"""Handles: the agents of a session, each with its verbs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

from swarm.programs.reading.transcript import last_said
from swarm.project.errors import AgentNotFound
from swarm.sessions.errors import NoRecord, NotReached
from swarm.sessions.reports import CreateReport
from swarm.worktrees.errors import WorkAtRisk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self, Unpack

    from swarm.api.swarm import Swarm
    from swarm.merging.values import DiffReport
    from swarm.messages.office.post import Sent
    from swarm.messages.send_options import SendOptions
    from swarm.programs.reading.transcript import TranscriptEntry
    from swarm.sessions.reports import ResumeReport, StopReport
    from swarm.sessions.values import AgentStatus


class AgentResult(NamedTuple):
    """The outcome of an agent's turn or program.

    Attributes:
        address: the agent, as ``name@session``.
        state: ``idle``, ``done``, ``failed`` or ``stopped``.
        detail: more about that, in a few words.
        text: the last words of the agent; empty when swarm cannot read its conversation. Untrusted.
        head: the commit that it is at.
        ahead: how many commits it made; None when git cannot tell.
        dirty: whether it has changes that are not committed; None when git cannot tell.
        exit_code: of its program, if that has ended by itself.
    """

    address: str
    state: str
    detail: str
    text: str
    head: str
    ahead: int | None
    dirty: bool | None
    exit_code: int | None = None


class AgentHandle:
    """One agent of a session. Its methods are the verbs of ``Swarm`` of the same names, about this agent.

    Attributes:
        report: of its start, where ``Swarm.run`` made this.
    """

    def __init__(self, swarm: Swarm, name: str, session: str, report: CreateReport | None = None) -> None:
        self._swarm = swarm
        self.report = report
        self.name = name
        self.session = session

    @property
    def address(self) -> str:
        """The agent, as messages name it: ``name@session``."""
        return f"{self.name}@{self.session}"

    def __repr__(self) -> str:
        return f"<AgentHandle {self.address}>"

    def send(self, body: str, **options: Unpack[SendOptions]) -> Sent:
        """Send it a message; see ``Swarm.send``."""
        return self._swarm.send(self.address, body, **options)[0]

    def transcript(self) -> tuple[TranscriptEntry, ...]:
        """Return its conversation so far, oldest first."""
        return self._swarm.transcript(self.name, self.session)

    def watch_transcript(self) -> Iterator[tuple[TranscriptEntry, ...]]:
        """Yield its conversation so far, then new entries."""
        return self._swarm.watch_transcript(self.name, self.session)

    def peek(self, *, lines: int = 40) -> list[str]:
        """Return the last lines that its pane shows."""
        return self._swarm.peek(self.name, self.session, lines=lines)

    def diff(self, *, patch: bool = True) -> DiffReport:
        """Show its changes since it left its base branch, committed or not."""
        return self._swarm.diff(self.name, self.session, patch=patch)

    def status(self) -> AgentStatus:
        """Return its state with every piece of evidence; see ``Swarm.why``."""
        return self._swarm.why(self.name, self.session)

    def stop(self) -> StopReport:
        """End its program with everything that it started; worktree and pane stay."""
        return self._swarm.stop([self.session], agent=self.name)

    def resume(self) -> ResumeReport:
        """Start it again if it does not run."""
        return self._swarm.resume([self.session], agent=self.name)

    def restart(self) -> ResumeReport:
        """Stop it if it runs, and start it again."""
        return self._swarm.restart(self.name, self.session)

    def result(self, timeout: float | None = None) -> AgentResult:
        """Wait until its turn or its program is over, and return the outcome.

        Args:
            timeout: seconds; None waits as long as it takes, 0 only looks.

        Raises:
            WaitOver: it was still at work.
        """
        with contextlib.suppress(NotReached):  # it has ended: its outcome is reported all the same
            self._swarm.wait_for([self.address], timeout=timeout)
        found, text = self.status(), ""
        with contextlib.suppress(NoRecord):
            text = last_said(self.transcript())
        state, detail = str(found.status.state), found.status.detail
        return AgentResult(self.address, state, detail, text, found.head, found.ahead, found.dirty, found.exit_code)

    def show(self) -> str:
        """Make its pane the one that an attached terminal shows; return the pane's id."""
        return self._swarm.panes.show(self.name, self.session)

    def tidy(self) -> Path | None:
        """Remove it, unless something changed in its worktree; return the worktree if it stays.

        Of an agent that works in a folder which is not its own only the record goes.
        """
        found = self.status()
        if not found.agent.shared and (found.ahead != 0 or found.dirty is not False):
            return found.worktree
        try:
            self._swarm.worktrees.remove(self.name, self.session)
        except WorkAtRisk:  # such as files that git ignores
            return found.worktree
        return None


@dataclass(frozen=True, slots=True, repr=False)
class Team(CreateReport):
    """The agents of a session: the report of their start, and a handle for each.

    Example:
        >>> team = swarm.start("feature-x", ["researcher", "developer"])  # doctest: +SKIP
        >>> team["developer"].send("please begin with the parser")        # doctest: +SKIP
        >>> team["developer"].result(timeout=600).text                    # doctest: +SKIP
    """

    _swarm: Swarm | None = field(default=None, compare=False)

    @classmethod
    def of(cls, swarm: Swarm, report: CreateReport) -> Self:
        """Return a report with handles."""
        return cls(**{one.name: getattr(report, one.name) for one in fields(CreateReport)}, _swarm=swarm)

    def __getitem__(self, name: str) -> AgentHandle:
        """Return an agent by its name, compared without case.

        Raises:
            AgentNotFound
        """
        found = next((one.name for one in self.agents if one.name.casefold() == name.casefold()), None)
        if found is None or self._swarm is None:
            there = ", ".join(agent.name for agent in self.agents)
            raise AgentNotFound(f"session {self.session} has no agent {name[:40]!a}", hint=f"it has: {there}")
        return AgentHandle(self._swarm, found, self.session)

    def __iter__(self) -> Iterator[AgentHandle]:
        return (self[agent.name] for agent in self.agents)

    def __len__(self) -> int:
        return len(self.agents)

    def __repr__(self) -> str:
        return f"<Team {self.session}: {', '.join(agent.name for agent in self.agents)}>"
