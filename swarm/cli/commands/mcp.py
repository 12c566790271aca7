"""``swarm mcp`` and ``swarm serve``: swarm's tools for the programs of agents, by the Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from swarm import UsageProblem
from swarm.cli.output import Answer
from swarm.cli.verb import Run, verb

_LAST_PORT = 65535


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(
        root,
        "mcp",
        attempt="cannot open the MCP door of {agent}",
        examples="swarm mcp --agent developer",
    )(mcp)
    verb(root, "serve", attempt="cannot serve the agents", examples="swarm serve\nswarm serve --port 9050")(serve)


def mcp(
    run: Run,
    agent: Annotated[
        str | None,
        typer.Option("--agent", metavar="NAME", help="The agent that calls; swarm checks it.", show_default=False),
    ] = None,
) -> Answer:
    """Offer swarm's tools to an agent's program by MCP, on stdin and stdout.

    The agent's own program starts this; `swarm start` writes that into its configuration. It forwards to the server
    of the repository (`swarm serve`), and serves by itself when none runs.
    """
    from swarm.api import serving

    serving.become_door(run.open(), agent or "")
    return Answer({})


def serve(
    run: Run,
    port: Annotated[
        str, typer.Option("--port", metavar="N", help="Port on 127.0.0.1; default: any free one.", show_default=False)
    ] = "0",
    unit: Annotated[
        bool,
        typer.Option(
            "--unit", help="Serve nothing; write a file by which systemd or launchd serves it.", show_default=False
        ),
    ] = False,
) -> Answer:
    """Serve this project in one process, until Ctrl-C: to programs and dashboards by HTTP, to its agents by MCP.

    Agents and tasks need no server, and go on when it ends or is killed. One runs per repository.
    """
    from swarm.api import serving

    number = _port(port)
    swarm = run.open()
    if unit:
        from swarm.cli.commands.agent import unit_written

        return unit_written(swarm.services.write_unit())
    place = serving.Place.of(swarm)
    place.check_installed()
    from swarm.mcp_door.serve import serve as serve_all

    def ready(on: int) -> None:
        run.output.err(f"serving {swarm.root} on http://127.0.0.1:{on}; Ctrl-C ends it")

    serve_all(place, number, ready)
    return Answer({}, lambda output: output.err("the server ended"))


def _port(text: str) -> int:
    if text.isascii() and text.isdecimal() and int(text[:6]) <= _LAST_PORT:
        return int(text)
    raise UsageProblem(f"--port {text[:20]}: this is no port", hint="a number from 1024 to 65535; 0 is any free one")
