"""A door that serves by itself: ``python -P -m swarm.mcp_door ROOT AGENT``, JSON-RPC on stdin and stdout."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swarm import SwarmError
from swarm.api import serving

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.api.serving import Client


def main(words: Sequence[str]) -> int:
    """Serve one agent until its program is gone; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    root, name = words
    try:
        client = serving.itself(Path(root), name)
    except SwarmError as problem:
        sys.stderr.write(f"error: {problem.message}\n")
        return problem.exit_code
    import anyio

    anyio.run(_serve, client)
    sys.stderr.flush()
    os._exit(0)  # a wait of a client that is gone may go on for seconds, and takes nothing


async def _serve(client: Client) -> None:
    from mcp.server.stdio import stdio_server

    from swarm.mcp_door.server import CLIENT, build

    CLIENT.set(client)
    server = build()
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
