"""``swarm wait-event``: the next thing that happened to the agents one has started."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from swarm import AgentEvent, WaitOver
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.text import iso, plain
from swarm.cli.verb import Run, seconds_of, split_agent, verb

_STYLES = {True: "good", False: "bad", None: ""}


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "wait-event",
        attempt="cannot wait for an event",
        examples="""
        swarm wait-event --timeout 10m
        swarm wait-event --kind WorkerComplete --json
        swarm wait-event --session feature-x --agent developer
        """,
    )(wait_event)


_Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="SECONDS", help="Give up after this time, such as 90 or 10m.", show_default=False
    ),
]
_Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Only this one, repeatable: WorkerComplete, AgentIdle, AgentWaiting, BudgetNear, BudgetReached.",
        autocompletion=completion.event_kinds,
        show_default=False,
    ),
]
_Session = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="SESSION",
        help="Only events of this session.",
        autocompletion=completion.sessions,
        show_default=False,
    ),
]
_Agents = Annotated[
    list[str] | None,
    typer.Option(
        "--agent",
        metavar="AGENT[@SESSION]",
        help="Only events of this agent, repeatable.",
        autocompletion=completion.agents,
        show_default=False,
    ),
]


def _agent(text: str) -> str:
    name, session = split_agent(text)
    return name if session is None else f"{name}@{session}"


def wait_event(
    run: Run, timeout: _Timeout = None, kinds: _Kinds = None, session: _Session = None, agents: _Agents = None
) -> Answer:
    """Print the next event of the agents that you started; each event is delivered once.

    An agent gets the events of sessions that it started; you get those of all others. Exit status 75: timed out.
    """
    seconds = seconds_of("--timeout", timeout)
    swarm = run.open()
    names = [_agent(one) for one in agents or ()]
    event = swarm.wait_for_event(seconds, kinds or (), session=session, agents=names, ack=False)
    if event is None:
        raise WaitOver(f"no event came within {seconds:g} s", hint="wait again, or for longer")
    code = _print(run, event)
    if code == 0:  # only printed events count as seen
        swarm.events.done(event)
    raise typer.Exit(code)


def _print(run: Run, event: AgentEvent) -> int:
    """Print an event now, before it counts as seen; return the exit status."""
    run.output.clear_progress()
    return run.output.answer(run.command, Answer({"event": event_data(event)}, lambda output: _show(output, event)))


def event_data(event: AgentEvent) -> dict[str, Any]:
    """Return an event for machines."""
    told = {name: value for name, value in event._asdict().items() if name != "time_ms"}
    return {**told, "at": iso(event.time_ms)}


def _show(output: Output, event: AgentEvent) -> None:
    output.out(f"{event.kind} {plain(event.message)}", _STYLES[event.succeeded])
