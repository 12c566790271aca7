"""``swarm outbox``: the messages that an agent has sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from swarm.cli import completion
from swarm.cli.commands.message import open_messages
from swarm.cli.output import Answer, Output
from swarm.cli.text import plain
from swarm.cli.verb import Run, verb
from swarm.cli.views.messages import Most, count_of, show_stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Stored

_Agent = Annotated[
    str | None,
    typer.Argument(
        metavar="[AGENT[@SESSION]]",
        help="Messages from this agent; default: from you.",
        autocompletion=completion.agents,
        show_default=False,
    ),
]


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(root, "outbox", attempt="cannot list messages", examples="swarm outbox\nswarm outbox developer@feature-x")(
        outbox
    )


def outbox(run: Run, agent: _Agent = None, most: Most = "100") -> Answer:
    """List the messages that an agent has sent, and where each is now. Changes nothing.

    A broadcast is shown once for each recipient. `swarm message ID` shows the history of one.
    """
    messages = open_messages(run)
    found = messages.outbox(agent, count_of("--max", most))
    address = messages.address(agent)
    data = {"sender": address, "messages": [one.as_dict() for one in found]}
    return Answer(data, lambda output: _show(output, found, address))


def _show(output: Output, found: Sequence[Stored], address: str) -> None:
    if not found:
        output.err(f"no messages from {plain(address)}")
    for one in found:
        show_stored(output, one, f"to {plain(one.message.to)}")
