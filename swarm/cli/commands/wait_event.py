"""``swarm wait-event``: the next thing that happened to the agents one has started."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from swarm import AgentEvent, UsageProblem, WaitOver
from swarm.api.words import split_agent
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.text import iso, plain
from swarm.cli.verb import Run, seconds_of, verb

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
        swarm wait-event --after last
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
        help="Only this one, repeatable, such as WorkerComplete, AgentIdle, AgentWaiting or ChildAsks.",
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


_After = Annotated[
    str | None,
    typer.Option(
        "--after",
        metavar="CURSOR",
        help="Read the first event behind this one, and leave it there; 'last' goes on where you were.",
        show_default=False,
    ),
]


def wait_event(
    run: Run,
    timeout: _Timeout = None,
    kinds: _Kinds = None,
    session: _Session = None,
    agents: _Agents = None,
    after: _After = None,
) -> Answer:
    """Print the next event of the agents that you started; each event is delivered once.

    An agent gets the events of sessions that it started; you get those of all others. Exit status 75: timed out.

    With --after it is read and not taken: a wait that is cut off loses nothing. It also ends when a child asks
    something, and after 45 seconds without an event. The cursor that it prints acknowledges the event in the next wait.
    """
    seconds = seconds_of("--timeout", timeout)
    if after is not None:
        if session is not None or agents:
            raise UsageProblem("--after reads all your events", hint="leave --session and --agent out")
        return _awaited(run, "" if after == "last" else after, seconds, kinds or ())
    swarm = run.open()
    names = [_agent(one) for one in agents or ()]
    event = swarm.wait_for_event(seconds, kinds or (), session=session, agents=names, ack=False)
    if event is None:
        raise WaitOver(f"no event came within {seconds:g} s", hint="wait again, or for longer")
    code = _print(run, event)
    if code == 0:  # only printed events count as seen
        swarm.events.done(event)
    raise typer.Exit(code)


def _awaited(run: Run, after: str, seconds: float | None, kinds: Sequence[str]) -> Answer:
    """Read the first event behind a cursor."""
    found = run.open().tree.wait_for_event(
        after or None, seconds, kinds, progress=lambda gone: run.output.progress(f"waiting, {gone:.0f} s")
    )
    event = found.event
    data = {"event": None if event is None else event_data(event), "cursor": found.cursor, "more": found.more}
    if event is None:
        return Answer(data, lambda output: output.out(f"no event; cursor {found.cursor}"))

    def show(output: Output) -> None:
        _show(output, event)
        for line in event.text.splitlines():
            output.out(f"  {plain(line)}")
        more = f"; {found.more} more" if found.more else ""
        output.out(f"cursor {found.cursor}{more}", "dim")

    return Answer(data, show, next=(f"the next one: swarm wait-event --after {found.cursor}",))


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
