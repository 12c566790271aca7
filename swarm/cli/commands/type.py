"""``swarm type``: type a text into an agent's pane."""

from __future__ import annotations

from typing import Annotated

import typer

from swarm import UsageProblem
from swarm.api.words import split_agent
from swarm.cli import completion, given
from swarm.cli.output import Answer
from swarm.cli.verb import Run, verb

_LONGEST = 1 << 20


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(
        root,
        "type",
        attempt="cannot type into {agent}",
        examples="swarm type developer@feature-x 'Go on, please.'\n"
        "swarm type developer - <long-text.md\nswarm type developer y --no-enter",
    )(type_)


def type_(
    run: Run,
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT[@SESSION]",
            help="Agent; name the session where several sessions have such an agent.",
            autocompletion=completion.agents,
            show_default=False,
        ),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to type; - reads standard input.")],
    enter: Annotated[bool, typer.Option("--enter/--no-enter", help="Press Enter after the text.")] = True,
) -> Answer:
    """Type a text into an agent's pane, character by character as given."""
    name, session = split_agent(agent)
    words = _typed() if text == "-" else text
    pane = run.open().panes.type(name, words, session, enter=enter)
    data = {"agent": name, "pane": pane, "entered": enter}
    return Answer(data, lambda output: output.out(f"typed into {pane}" + ("" if enter else "; Enter was not pressed")))


def _typed() -> str:
    data = given.from_stdin(_LONGEST)
    if len(data) > _LONGEST:
        raise UsageProblem("the text is longer than 1 MiB", hint="put it into a file and name that")
    return data.decode("utf-8", "replace")
