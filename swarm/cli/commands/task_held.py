"""``swarm task message`` and ``messages``: tell a held task more, also while its program works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.cli.commands.task import Id, Prompt, app, read_text
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, iso, lines_of
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    from swarm import TaskMessage

_STYLES = {"answered": "good", "queued": "warn", "undelivered": "bad"}
_WORDS = {
    "queued": "waits for its program to hear it",
    "in_turn": "is in turn {turn}",
    "answered": "was answered in turn {turn}",
    "undelivered": "was not heard: the task is over",
}


@verb(
    app,
    "message",
    attempt="cannot send a message to task {task_id}",
    examples='swarm task message paint "Take green instead"\ngit diff | swarm task message paint -',
)
def message(
    run: Run,
    task_id: Id,
    text: Prompt,
    message_id: Annotated[
        str,
        typer.Option(
            "--id",
            metavar="ID",
            help="Id of your choice; sending twice under one id sends one message.",
            show_default=False,
        ),
    ] = "",
) -> Answer:
    """Send a held task a message: into the turn that it is at, where its program can hear it, or as its next prompt."""
    sent = run.open().tasks.message(task_id, read_text(run, text), message_id=message_id)

    def show(output: Output) -> None:
        output.out(f"message {sent.id} {_WORDS[sent.state].format(turn=sent.turn)}", _STYLES.get(sent.state, ""))

    return Answer({"id": task_id, "message": _data(sent)}, show, next=(f"see: swarm task messages {task_id}",))


@verb(
    app,
    "messages",
    attempt="cannot show the messages to task {task_id}",
    examples="swarm task messages paint",
)
def messages(run: Run, task_id: Id) -> Answer:
    """Show the messages to a task, and which turn has each."""
    found = run.open().tasks.messages(task_id)

    def show(output: Output) -> None:
        if not found:
            output.err("no messages")
            return
        columns = (
            Column("ID", keep="all"),
            Column("STATE", keep="all"),
            Column("TURN", right=True),
            Column("AGE", 1, right=True),
            Column("TEXT"),
        )
        output.table(columns, [_row(one) for one in found])

    return Answer({"id": task_id, "messages": [_data(one) for one in found]}, show)


def _row(one: TaskMessage) -> tuple[str | Cell, ...]:
    state = str(one.state)
    first = next((line for line in lines_of(one.text) if line.strip()), "")
    return one.id, Cell(state.replace("_", " "), _STYLES.get(state, "")), str(one.turn or "-"), age(one.at_ms), first


def _data(one: TaskMessage) -> dict[str, Any]:
    return {
        "id": one.id,
        "number": one.number,
        "text": one.text,
        "by": one.by,
        "sent_at": iso(one.at_ms),
        "state": one.state,
        "turn": one.turn or None,
    }
