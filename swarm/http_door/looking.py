"""The looks of a server at its tasks: at once after a request that changes one, else after a pause."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from swarm import SwarmError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from swarm.api.agent_server import Log

#: Between two looks while there are tasks, and while there are none.
BUSY_PAUSE, IDLE_PAUSE = 0.25, 1.0


async def look_on(
    look: Callable[[], Awaitable[None]], is_busy: Callable[[], bool], changed: asyncio.Event, log: Log
) -> None:
    """Look until the process ends; the log is told of the same trouble once.

    Args:
        changed: set after a request that changed something.
    """
    trouble = ""
    while True:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(changed.wait(), BUSY_PAUSE if is_busy() else IDLE_PAUSE)
        changed.clear()
        try:
            await look()
            trouble = ""
        except (SwarmError, OSError) as problem:
            if str(problem) != trouble:
                trouble = str(problem)
                log.say("warning", f"cannot look at the tasks: {problem}")
