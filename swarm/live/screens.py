"""Screens of agents, for as long as a reader asks for them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from swarm.eventlog.values import Happened
from swarm.kit.errors import SwarmError
from swarm.live.look import subject
from swarm.live.values import SCREEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from swarm.live.look import Look
    from swarm.sessions.values import AgentStatus


class Shown:
    """The wish of one reader to see an agent's screen; ``close`` ends it, and so does the end of a ``with`` block."""

    def __init__(self, agent: str, lines: int, every: float, end: Callable[[Shown], None]) -> None:
        self.agent = agent
        self.lines = lines
        self.every = every
        self._end = end

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Look no more, unless another reader wants it."""
        self._end(self)


class Screens:
    """The screens that are asked for. ``show`` is for any thread, the rest for the model's.

    Args:
        wake: makes the model look.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._mutex = threading.Lock()
        self._wishes: list[Shown] = []
        self._due: dict[str, float] = {}
        self._seen: dict[str, tuple[tuple[str, ...], str]] = {}

    def show(self, agent: str, lines: int, every: float) -> Shown:
        """Look at a screen from now on."""
        wish = Shown(agent, lines, every, self._leave)
        with self._mutex:
            self._wishes.append(wish)
            self._due[agent] = 0.0
            self._seen.pop(agent, None)  # a new reader has seen nothing yet
        self._wake()
        return wish

    def _leave(self, wish: Shown) -> None:
        with self._mutex:
            self._wishes = [one for one in self._wishes if one is not wish]
            if all(one.agent != wish.agent for one in self._wishes):
                self._due.pop(wish.agent, None)
                self._seen.pop(wish.agent, None)

    def left(self) -> float:
        """Return after how many seconds a screen is to be looked at."""
        with self._mutex:
            return max(0.0, min(self._due.values(), default=float("inf")) - time.monotonic())

    def look(self, look: Look, agents: Mapping[tuple[str, str], AgentStatus]) -> Iterator[Happened]:
        """Look at the screens that are due; yield those that show something else."""
        now = time.monotonic()
        with self._mutex:
            due = [agent for agent, at in self._due.items() if now >= at]
            lines = {agent: max(one.lines for one in self._wishes if one.agent == agent) for agent in due}
            for agent in due:
                self._due[agent] = now + min(one.every for one in self._wishes if one.agent == agent)
        panes = {subject(pair): one.pane for pair, one in agents.items()} if due else {}
        for agent in due:
            shown, problem = self._shown(look, panes.get(agent, ""), lines[agent])
            with self._mutex:
                if agent not in self._due or self._seen.get(agent) == (shown, problem):
                    continue
                self._seen[agent] = (shown, problem)
            yield Happened(SCREEN, agent, None, {"lines": list(shown), "problem": problem})

    def _shown(self, look: Look, pane: str, lines: int) -> tuple[tuple[str, ...], str]:
        if not pane:
            return (), "it has no pane"
        try:
            return tuple(look.screen(pane, lines)), ""
        except SwarmError as problem:
            return (), problem.message
