"""One call of a tool: check what is given, act as the agent in a thread, and turn every error into a result.

    call ── arguments ── thread: verb of the library ── structured result
              └── wrong ────────────┴── error ── {code, message, hint}, isError

A wait is made of short looks: between two of them a client that has given up is noticed, and what was taken for
it goes back.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, ValidationError

from swarm import SwarmError, UsageProblem
from swarm.api.problems import as_problem, bug_report, write_bug_report
from swarm.mcp_door.results import Failed, ProblemTold
from swarm.mcp_door.tools import TOOLS, offered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from swarm.api.serving import Client
    from swarm.mcp_door.arguments import Arguments
    from swarm.mcp_door.tools import Tool

#: So often a waiting client is told that the wait goes on; the most impatient one gives up after a minute.
_TELL_EVERY = 20.0
#: Verbs that act at the same time, and waits; a wait keeps no verb from its turn.
_ACTS, _WAITS = 24, 400
_BUG = "BUG"


class Calls:
    """What is called in one process."""

    def __init__(self) -> None:
        self._acts = anyio.CapacityLimiter(_ACTS)
        self._waits = anyio.CapacityLimiter(_WAITS)

    async def offered(self, client: Client) -> tuple[str, ...]:
        """Return the tools of an agent; all of them where it cannot be told."""
        with contextlib.suppress(SwarmError, OSError):
            found: tuple[str, ...] = await self._thread(self._acts, client, offered)
            return found
        return tuple(TOOLS)

    async def call(
        self,
        client: Client,
        name: str,
        given: dict[str, Any] | None,
        progress: Callable[[float, float, str], Awaitable[None]],
    ) -> CallToolResult:
        """Call one tool; whatever goes wrong is in the result."""
        try:
            tool = _tool(name)
            asked = _checked(tool, given or {})
            if tool.seconds is None:
                done = await self._thread(self._acts, client, lambda swarm: tool.act(swarm, asked))
            else:
                done = await self._wait(client, tool, asked, tool.seconds(asked), progress)
            return _result(done)
        except Exception as error:  # noqa: BLE001  # nothing leaves as a traceback
            return _failed(client, name, error)

    async def _wait(
        self,
        client: Client,
        tool: Tool,
        asked: Arguments,
        seconds: float,
        progress: Callable[[float, float, str], Awaitable[None]],
    ) -> BaseModel:
        """Look until something comes or the time is over; say now and then that it goes on."""
        began = told = time.monotonic()
        while True:
            look = max(0.0, min(tool.look, began + seconds - time.monotonic()))
            found: BaseModel = await self._thread(
                self._waits,
                client,
                lambda swarm, look=look: tool.act(swarm, asked, look),
                takes=tool.undo is not None,
            )
            try:
                await anyio.lowlevel.checkpoint()
            except anyio.get_cancelled_exc_class():
                await self._undo(client, tool, found)
                raise
            now = time.monotonic()
            if now >= began + seconds or _has_something(found):
                return found
            if now - told >= _TELL_EVERY:
                told = now
                await progress(now - began, seconds, "still waiting")

    async def _undo(self, client: Client, tool: Tool, found: BaseModel) -> None:
        """Give back what a wait had taken for a client that is gone."""
        undo = tool.undo
        if undo is not None:
            await self._thread(self._acts, client, lambda swarm: undo(swarm, found))

    async def _thread(
        self, limiter: anyio.CapacityLimiter, client: Client, do: Callable[..., Any], *, takes: bool = True
    ) -> Any:
        """Run a verb in a thread; it goes on to its end there, also for a client that is gone.

        Args:
            takes: its result is waited for even then, since something may have to go back.
        """
        with anyio.CancelScope(shield=takes):
            return await anyio.to_thread.run_sync(lambda: client.act(do), limiter=limiter, abandon_on_cancel=not takes)


def _has_something(found: BaseModel) -> bool:
    """Whether a wait is over before its time: there are messages, or an event."""
    return any(bool(getattr(found, field, None)) for field in ("messages", "event"))


def _tool(name: str) -> Tool:
    tool = TOOLS.get(name)
    if tool is None:
        raise UsageProblem(f"there is no tool {name[:60]!a}", hint="one of " + ", ".join(TOOLS))
    return tool


def _checked(tool: Tool, given: dict[str, Any]) -> Arguments:
    """Return what a tool is given.

    Raises:
        UsageProblem: it is not what the tool takes; all that is wrong is told.
    """
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False, include_context=False)
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))[:80]!a}: {one['msg']}" for one in found[:5])
        takes = ", ".join(tool.arguments.model_fields) or "no arguments"
        raise UsageProblem(f"cannot call {tool.name}: {wrong}", hint=f"it takes: {takes}") from None


def _result(done: BaseModel) -> CallToolResult:
    content = done.model_dump(mode="json")
    return CallToolResult(content=[TextContent(type="text", text=done.model_dump_json())], structured_content=content)


def failure(problem: SwarmError) -> CallToolResult:
    """Return an error as a result: the same code, cause and hint as on the command line."""
    return _told(ProblemTold(code=problem.code, message=problem.message, hint=problem.hint))


def _told(told: ProblemTold) -> CallToolResult:
    text = f"{told.code}: {told.message}" + (f"\nhint: {told.hint}" if told.hint else "")
    content = Failed(error=told).model_dump(mode="json")
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=content, is_error=True)


def _failed(client: Client, name: str, error: Exception) -> CallToolResult:
    problem = as_problem(error, "")
    if problem is not None:
        return failure(problem)
    report = write_bug_report(bug_report(error, ["mcp", name]), Path(client.root))
    where = f"; {report} tells more" if report else ""
    return _told(ProblemTold(code=_BUG, message=f"cannot call {name}: this is a bug of swarm{where}"))
