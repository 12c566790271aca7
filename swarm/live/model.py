"""All that is known of a project at one moment, brought up to date part by part."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from swarm.approvals.data import approval_data
from swarm.eventlog import changes
from swarm.live.look import Look, pairs_of
from swarm.programs.status import State
from swarm.sessions import data
from swarm.sessions.status import overall
from swarm.sessions.values import SessionStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from swarm.approvals.values import Approval
    from swarm.eventlog.values import Happened
    from swarm.project.model import Session
    from swarm.sessions.values import AgentStatus, WorktreeInfo

    Pair = tuple[str, str]

#: An agent in one of these has just committed, if it did: its worktree is looked at before that is told.
_RESTS = frozenset({State.IDLE, State.WAITING, State.DONE, State.FAILED, State.STOPPED})
#: Of more agents at once git is asked after their states were told.
_FEW = 4


class Model:
    """The state of one repository. For one thread.

    Attributes:
        table: the same as data, (thing, subject) → fields; what changes is told by comparing two of these.
    """

    def __init__(self, look: Look, *, git: bool) -> None:
        self._look = look
        self._git = git
        self.sessions: dict[str, Session] = {}
        self.agents: dict[Pair, AgentStatus] = {}
        self.approvals: dict[str, Approval] = {}
        self.operations: dict[str, dict[str, Any]] = {}
        self.problems: list[str] = []
        self.table: dict[changes.Key, Mapping[str, Any]] = {}

    # --- look -----------------------------------------------------------------------------------------

    def look_at_records(self) -> set[Pair]:
        """Read the records of all sessions; return the agents that were not there before, or are others now."""
        former = self.sessions
        self.sessions, self.problems = self._look.sessions()
        there = set(pairs_of(self.sessions.values()))
        self.agents = {pair: one for pair, one in self.agents.items() if pair in there}
        return {
            (session.name, agent.name)
            for session in self.sessions.values()
            for agent in session.agents
            if (session.name, agent.name) not in self.agents or former.get(session.name) != session
        }

    def look_at_states(self, pairs: Collection[Pair]) -> set[Pair]:
        """Look at agents; return those of which the worktree is to be looked at, too."""
        known = [pair for pair in pairs if pair in set(pairs_of(self.sessions.values()))]
        rest: set[Pair] = set()
        for pair, now in self._look.states(self.sessions, known).items():
            before = self.agents.get(pair)
            if before is None:
                self.agents[pair] = now._replace(unread=None)
                rest.add(pair)
                continue
            if before.status.state is not now.status.state and now.status.state in _RESTS:
                rest.add(pair)
            self.agents[pair] = now._replace(
                head=before.head,
                ahead=before.ahead,
                dirty=before.dirty,
                missing=before.missing,
                unread=before.unread,
            )
        return rest if self._git else set()

    def look_at_trees(self, pairs: Collection[Pair]) -> None:
        """Ask git about worktrees."""
        known = [pair for pair in pairs if pair in self.agents]
        for pair, info in self._look.trees(self.sessions, known, ask=True).items():
            self.agents[pair] = _with_tree(self.agents[pair], info)

    def look_at_inboxes(self, pairs: Collection[Pair]) -> None:
        """Count waiting messages."""
        known = [pair for pair in pairs if pair in self.agents]
        for pair, number in self._look.unread(known).items():
            self.agents[pair] = self.agents[pair]._replace(unread=number)

    def look_at_approvals(self) -> set[Pair]:
        """Look at requests and questions; return the agents of which one came or went."""
        former = self.approvals
        self.approvals = self._look.approvals()
        moved = former.keys() ^ self.approvals.keys()
        asked = [(former.get(one) or self.approvals[one]).question for one in moved]
        return {(one.session, one.agent) for one in asked} & self.agents.keys()

    def look_at_operations(self) -> None:
        """Look at what is being changed."""
        self.operations = self._look.operations()

    # --- tell -----------------------------------------------------------------------------------------

    def tell(self) -> tuple[list[Happened], dict[str, Any]]:
        """Return what changed since the last time, and the fields of the snapshot."""
        sessions = tuple(self._status_of(one) for one in self.sessions.values())
        table = self._table(sessions)
        happened = [self._with_answer(one) for one in changes.between(self.table, table)]
        self.table = table
        return happened, {
            "sessions": sessions,
            "approvals": tuple(self.approvals.values()),
            "operations": MappingProxyType(dict(self.operations)),
            "problems": tuple(self.problems),
        }

    def _status_of(self, session: Session) -> SessionStatus:
        found = tuple(self.agents[pair] for pair in pairs_of([session]) if pair in self.agents)
        return SessionStatus(session, overall([one.status.state for one in found]), found)

    def _table(self, sessions: Iterable[SessionStatus]) -> dict[changes.Key, Mapping[str, Any]]:
        table: dict[changes.Key, Mapping[str, Any]] = {**data.table(sessions)}
        table |= {(changes.APPROVAL, name): approval_data(one) for name, one in self.approvals.items()}
        return table | {(changes.OPERATION, name): one for name, one in self.operations.items()}

    def _with_answer(self, one: Happened) -> Happened:
        """Add to the end of a request what came of it."""
        return one._replace(after=self._look.answer(one.subject)) if one.kind == "approval.answered" else one


def _with_tree(one: AgentStatus, info: WorktreeInfo) -> AgentStatus:
    return one._replace(head=info.head, ahead=info.ahead, dirty=info.dirty, missing=info.missing)


def is_few(pairs: Collection[Pair]) -> bool:
    """Whether so few worktrees are to be looked at that their agents' states can wait for that."""
    return len(pairs) <= _FEW
