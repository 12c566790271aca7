"""``swarm hook``: the commands that hooks of agent programs run."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from swarm.api.words import split_agent
from swarm.cli.hooktrouble import hook_failed
from swarm.cli.output import Answer
from swarm.cli.verb import Run, group, verb

app = group("hook", "Commands for the hooks of agent programs.", "swarm hook collect < event.json")

#: With this exit status a hook wakes the program with its output.
WAKE = 2


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(app, "collect", attempt="cannot take the event", examples="swarm hook collect --agent developer < event.json")
def collect(
    run: Run,
    agent: Annotated[
        str, typer.Option("--agent", metavar="AGENT[@SESSION]", help="Agent of the event.", show_default=False)
    ] = "",
) -> Answer:
    """Record an event of an agent's program, read as JSON from stdin. Never fails, never waits."""
    from swarm import Hooks

    noted = False
    warnings: tuple[str, ...] = ()
    try:
        event = dict(json.loads(sys.stdin.buffer.read()).items())  # of anything but an object this is an error
        if agent:
            run.open().hooks.collect(event, *split_agent(agent))
        else:
            Hooks.collect_own(event)
        noted = True
    except Exception as error:  # noqa: BLE001  # a hook must not disturb the program
        warnings = hook_failed(run, agent, "collect", error)
    return Answer({"noted": noted}, lambda _output: None, warnings)


@verb(app, "turn-end", attempt="cannot look at the tree", examples="swarm hook turn-end", hidden=True)
def turn_end(run: Run) -> Answer:
    """Tell the agent whose program's hook runs this what is open in its tree, before it goes idle."""
    from swarm.api.hooks import words_at_turn_end

    warnings: tuple[str, ...] = ()
    try:
        words = words_at_turn_end(run.open())
        if words:
            sys.stdout.write(json.dumps({"decision": "block", "reason": words}) + "\n")
    except Exception as error:  # noqa: BLE001  # a hook must not disturb the program
        warnings = hook_failed(run, "", "turn-end", error)
    return Answer({}, lambda _output: None, warnings)


@verb(app, "deliver", attempt="cannot deliver", examples="swarm hook deliver", hidden=True)
def deliver(
    run: Run,  # noqa: ARG001  # every verb has it
    now: Annotated[bool, typer.Option("--now", help="Deliver waiting messages, and do not wait for more.")] = False,
) -> Answer:
    """Wait for messages of the agent whose program's hook runs this, and wake the program with them."""
    from swarm.api.hooks import turns_of_this_program

    turns = turns_of_this_program(lambda: json.loads(sys.stdin.buffer.read() or b"{}"))
    if turns is None:
        return Answer({}, lambda _output: None)
    words = turns.at_once() if now else turns.next()
    if words:
        sys.stderr.write(words)
        sys.stderr.flush()
        turns.hand_over()
    return Answer({}, lambda _output: None, exit_code=WAKE if words else 0, status="ok")
