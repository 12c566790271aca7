"""``swarm wait``: until agents are idle, done or stopped, or a message comes."""

from __future__ import annotations

from typing import Annotated

import typer

from swarm.cli import completion
from swarm.cli.output import Answer
from swarm.cli.text import plain
from swarm.cli.verb import Run, seconds_of, verb


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "wait",
        attempt="cannot wait",
        examples="""
        swarm wait developer@feature-x
        swarm wait all@feature-x
        swarm wait developer reviewer --until done --timeout 30m
        swarm wait --until message --timeout 60
        """,
    )(wait)


def wait(
    run: Run,
    agents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[AGENT[@SESSION]…]",
            help="Agents, such as all@feature-x; default: wait for a message in your own inbox.",
            autocompletion=completion.agents,
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="STATE",
            help="idle, done, stopped or message; default: idle, without agents message.",
            show_default=False,
        ),
    ] = "",
    timeout: Annotated[
        str | None,
        typer.Option(
            "--timeout", metavar="SECONDS", help="Give up after this time, such as 90 or 30m.", show_default=False
        ),
    ] = None,
    any_of: Annotated[
        bool, typer.Option("--any", help="Return at the first agent that reaches the state.", show_default=False)
    ] = False,
) -> Answer:
    """Wait until agents reach a state or get a message.

    Exit status: 0 reached, 75 timed out, 1 can no longer be reached.
    """
    wanted = until or ("idle" if agents else "message")
    reached = run.open().wait_for(agents or (), wanted, timeout=seconds_of("--timeout", timeout), any_of=any_of)
    data = [{"agent": one.address, "state": one.state, "detail": one.detail} for one in reached]
    lines = [f"{one.address}: {one.state}" + (f" ({plain(one.detail)})" if one.detail else "") for one in reached]
    return Answer({"until": wanted, "reached": data}, lambda output: output.out("\n".join(lines)))
