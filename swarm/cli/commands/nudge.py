"""``swarm type``, and ``swarm _nudge``, which an agent's supervisor runs when messages wait."""

from __future__ import annotations

from typing import Annotated

import typer

from swarm import UsageProblem
from swarm.cli import completion, given
from swarm.cli.output import Answer
from swarm.cli.verb import Run, split_agent, verb

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
    verb(root, "_nudge", attempt="cannot tell {agent}", examples="swarm _nudge developer feature-x", hidden=True)(nudge)


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


def nudge(
    run: Run,
    agent: Annotated[str, typer.Argument(metavar="AGENT", show_default=False)],
    session: Annotated[str, typer.Argument(metavar="SESSION", show_default=False)],
    heartbeat: Annotated[str, typer.Option("--heartbeat", metavar="PERIOD", show_default=False)] = "",
    idle: Annotated[bool, typer.Option("--idle", help="Only say by the exit status whether it is idle.")] = False,
) -> Answer:
    """Notify an agent of its messages, or send it the heartbeat of its role."""
    swarm = run.open()
    if idle:
        state = str(swarm.why(agent, session).status.state)
        return Answer({"state": state}, lambda _output: None, exit_code=0 if state == "idle" else 1, status="ok")
    if heartbeat:
        sent = swarm.delivery.heartbeat(agent, session, heartbeat)
        return Answer({"sent": sent}, lambda _output: None)
    words = swarm.delivery.nudge(agent, session)
    return Answer({"outcome": words}, lambda output: output.out(words))
