"""The request of a merge: agents, target and way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from swarm.kit.errors import UsageProblem
from swarm.merging.values import MergeMethod

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session


@dataclass(frozen=True, slots=True)
class Request:
    """The request of a merge.

    Attributes:
        target: a session, or one agent of it; see `project/targets.py`.
        into: the target branch; None for the one that the session started from.
        committed_only: leave out uncommitted work, instead of refusing.
        nested: take in nested repositories (gitlinks) that the branch does not have.
    """

    target: str
    into: str | None = None
    how: MergeMethod = MergeMethod.MERGE
    committed_only: bool = False
    nested: bool = False


def request(target: str, *, into: str | None, how: str, committed_only: bool, nested: bool = False) -> Request:
    """Read the words of a request; `project/targets.py` reads the target.

    Raises:
        UsageProblem
    """
    try:
        way = MergeMethod(how)
    except ValueError:
        ways = ", ".join(MergeMethod)
        raise UsageProblem(f"cannot merge by {how!r}", hint=f"how is one of: {ways}") from None
    return Request(target, into, way, committed_only, nested)


@dataclass(frozen=True, slots=True)
class Work:
    """One agent's branch to be merged."""

    session: Session
    agent: Agent
    tip: str

    @property
    def name(self) -> str:
        """Return the agent's address, as users write it."""
        return f"{self.agent.name}@{self.session.name}"
