"""Values of the live model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.approvals.values import Approval
    from swarm.sessions.values import AgentStatus, SessionStatus

#: A reader was too slow, or asked for what the model never had: it takes a new snapshot.
LOST = "lost"
#: What the pane of an agent shows.
SCREEN = "screen"


class Change(NamedTuple):
    """One change of the live model.

    Attributes:
        revision: changes are numbered without a gap, from the start of the model on.
        kind: ``agent.added``, ``agent.state``, ``agent.git``, ``agent.inbox``, ``agent.record``, ``agent.removed``;
            ``session.added``, ``session.state``, ``session.record``, ``session.removed``; ``approval.opened``,
            ``approval.answered``; ``operation.begun``, ``operation.ended``; ``screen``; ``lost``: this reader was too
            slow, and takes a new snapshot.
        subject: an agent as ``name@session``, a session, the id of an approval or an operation.
        before, after: the fields of that kind, as ``swarm status --json`` names them.
        at_ms: when the model learnt of it, in milliseconds since 1970.
        epoch: which model that was; revisions of different ones have nothing to do with each other.
    """

    revision: int
    kind: str
    subject: str = ""
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    at_ms: int = 0
    epoch: str = ""

    @property
    def id(self) -> str:
        """Epoch and revision as one word, which ``changes(after=…)`` takes."""
        return f"{self.epoch}-{self.revision}"


class Snapshot(NamedTuple):
    """All that the live model knows at one revision. Nothing in it ever changes.

    Attributes:
        epoch, revision: as for ``Change``.
        at_ms: when the last change was known.
        sessions: as ``Swarm.status`` returns them.
        approvals: requests and questions that wait.
        operations: changes that are under way, or were interrupted: id → verb and session.
        problems: what could not be looked at, in words.
    """

    epoch: str
    revision: int
    at_ms: int
    sessions: tuple[SessionStatus, ...] = ()
    approvals: tuple[Approval, ...] = ()
    operations: Mapping[str, Mapping[str, Any]] = {}
    problems: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Epoch and revision as one word, which ``changes(after=…)`` takes."""
        return f"{self.epoch}-{self.revision}"

    def agent(self, name: str, session: str | None = None) -> AgentStatus | None:
        """Return an agent by its name, ``name`` or ``name@session``; None when there is none, or more than one."""
        name, _, at = name.partition("@")
        wanted = session or at
        found = [
            one
            for group in self.sessions
            for one in group.agents
            if one.agent.name == name and wanted in ("", group.session.name)
        ]
        return found[0] if len(found) == 1 else None
