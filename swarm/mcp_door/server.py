"""The MCP server: its tools and instructions, on the official SDK; one object serves any number of connections."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel.server import Server
from mcp_types import ListToolsResult, Tool, ToolAnnotations
from pydantic import TypeAdapter

from swarm import __version__
from swarm.mcp_door import tasks
from swarm.mcp_door.calls import Calls
from swarm.mcp_door.results import Failed
from swarm.mcp_door.tools import INSTRUCTIONS, TOOLS, described

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import CallToolRequestParams, CallToolResult, PaginatedRequestParams
    from pydantic import BaseModel

    from swarm.api.serving import Client

NAME = "swarm"
#: The agent of the connection, or of the request, that is being served in this task.
CLIENT: ContextVar[Client] = ContextVar("CLIENT")


def build() -> Server[Any]:
    """Return the server; ``CLIENT`` is to be set around each connection or request."""
    calls = Calls()

    async def list_tools(_context: ServerRequestContext, _params: PaginatedRequestParams | None) -> ListToolsResult:
        client = CLIENT.get()
        found = ListToolsResult(tools=[_offer(name) for name in await calls.offered(client)])
        client.note_opened()
        return found

    async def call(context: ServerRequestContext, name: str, given: dict[str, Any] | None) -> CallToolResult:
        async def progress(done: float, total: float, words: str) -> None:
            await context.session.report_progress(done, total, words)

        return await calls.call(CLIENT.get(), name, given, progress)

    async def call_tool(context: ServerRequestContext, params: CallToolRequestParams) -> Any:
        known = params.name == tasks.TOOL and tasks.is_declared(context) and not CLIENT.get().prints
        seconds = tasks.seconds_of(params.arguments) if known else 0.0
        if not seconds:
            return await call(context, params.name, params.arguments)
        first = await call(context, params.name, tasks.look_first(params.arguments))
        wait = tasks.begun(params.arguments, seconds, first)
        return first if wait is None else {"resultType": "task", **wait.told("working")}

    async def get_task(context: ServerRequestContext, params: tasks.TaskParams) -> dict[str, Any]:
        wait = tasks.read(params.task_id)
        found = await call(context, tasks.TOOL, wait.look())
        told = found.structured_content or {}
        over = found.is_error or told.get("event") is not None or wait.is_over
        return wait.told("completed", found) if over else wait.told("working")

    async def cancel_task(_context: ServerRequestContext, params: tasks.TaskParams) -> dict[str, Any]:
        return tasks.read(params.task_id).told("cancelled")

    server: Server[Any] = Server(
        NAME, version=__version__, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool
    )
    server.extensions[tasks.EXTENSION] = {}
    server.add_request_handler("tasks/get", tasks.TaskParams, get_task)
    server.add_request_handler("tasks/cancel", tasks.TaskParams, cancel_task)
    return server


def _either(result: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a result or an error: clients check an error against it, too, and show nothing else then."""
    kinds: Any = result | Failed
    found: dict[str, Any] = TypeAdapter(kinds).json_schema()
    return {"type": "object", **found}


def _offer(name: str) -> Tool:
    tool = TOOLS[name]
    return Tool(
        name=name,
        description=described(tool),
        input_schema=tool.arguments.model_json_schema(),
        output_schema=_either(tool.result),
        annotations=ToolAnnotations(read_only_hint=not tool.changes, destructive_hint=False, open_world_hint=False),
    )
