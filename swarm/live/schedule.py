"""When to look at what no file tells: a few agents often, all of them seldom, git in turn."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from swarm.live.look import is_untold
from swarm.programs.status import State

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from swarm.sessions.values import AgentStatus

    Pair = tuple[str, str]

#: Seconds between two looks at everything but git.
_WHOLE = 10.0
#: At everything again after something went wrong.
_AGAIN = 2.0
#: At an agent that is judged by its screen: one that works, and one that does not.
_BUSY, _CALM = 0.5, 4.0
#: At the worktree of one agent, in turn: at rest this is most of what swarm runs.
_TURN = 2.5
#: So long after a look there is another: a pane closes, and a program says why its turn ended, a moment later.
_SETTLED = (1.0, 3.2)
_BUSY_STATES = frozenset({State.WORKING, State.STARTING})


class Schedule:
    """What is due when. For one thread.

    Args:
        git: seconds between two looks at the worktree of an agent that works; 0: never.

    Attributes:
        not_before: the time of the next look that nobody waits for.
    """

    def __init__(self, git: float) -> None:
        self._git = git
        now = time.monotonic()
        self._whole, self._turn = now + _WHOLE, now + _TURN
        self._settles: dict[Pair, list[float]] = {}
        self._busy, self._calm = now + _BUSY, now + _CALM
        self._trees: dict[Pair, float] = {}
        self._order: list[Pair] = []
        self._untold = self._untold_busy = False
        self.not_before = 0.0

    def left(self) -> float:
        """Return after how many seconds something is due."""
        due = [self._whole, *(times[0] for times in self._settles.values())]
        due += [self._turn] if self._git else []
        due += [self._calm] if self._untold else []
        due += [self._busy] if self._untold_busy else []
        now = time.monotonic()
        return max(0.0, min(due) - now, self.not_before - now)

    def pause(self, seconds: float) -> None:
        """Let some time pass before the next look that nobody asked for."""
        self.not_before = time.monotonic() + seconds

    def is_whole_due(self) -> bool:
        """Whether all is to be looked at."""
        return time.monotonic() >= self._whole

    def look_at_all_soon(self) -> None:
        """Something went wrong: look again."""
        self._whole = time.monotonic() + _AGAIN

    def looked_at_all(self, agents: Mapping[Pair, AgentStatus]) -> None:
        """All was looked at."""
        self._whole = time.monotonic() + _WHOLE
        self._note(agents)

    def happened(self, pairs: Collection[Pair]) -> None:
        """Something happened to agents."""
        now = time.monotonic()
        for pair in pairs:
            if pair not in self._settles:
                self._settles[pair] = [now + later for later in _SETTLED]

    def due_states(self, agents: Mapping[Pair, AgentStatus]) -> set[Pair]:
        """Return the agents that are to be looked at now."""
        now = time.monotonic()
        found: set[Pair] = set()
        for pair, times in list(self._settles.items()):
            if now >= times[0]:
                found.add(pair)
                self._settles[pair] = [one for one in times if one > now]
                if not self._settles[pair]:
                    del self._settles[pair]
        self._note(agents)
        for due, busy in ((self._busy, True), (self._calm, False)):
            if now >= due:
                found |= {
                    pair
                    for pair, one in agents.items()
                    if is_untold(one) and (one.status.state in _BUSY_STATES) is busy
                }
        self._busy = now + _BUSY if now >= self._busy else self._busy
        self._calm = now + _CALM if now >= self._calm else self._calm
        return found

    def due_trees(self, agents: Mapping[Pair, AgentStatus]) -> set[Pair]:
        """Return the agents about whose worktrees git is asked now: those that work, and one of the others in turn."""
        now = time.monotonic()
        if not self._git or now < self._turn:
            return set()
        self._turn = now + _TURN
        found = {
            pair
            for pair, one in agents.items()
            if one.status.state in _BUSY_STATES and now >= self._trees.get(pair, 0.0) + self._git
        }
        self._order = [pair for pair in self._order if pair in agents] or list(agents)
        if self._order:
            found.add(self._order.pop(0))
        self._trees = {pair: now if pair in found else self._trees.get(pair, 0.0) for pair in agents}
        return found

    def _note(self, agents: Mapping[Pair, AgentStatus]) -> None:
        untold = [one for one in agents.values() if is_untold(one)]
        self._untold = bool(untold)
        self._untold_busy = any(one.status.state in _BUSY_STATES for one in untold)
