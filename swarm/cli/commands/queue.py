"""``swarm queue …``: lists of work that agents share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from swarm import NothingToTake, UsageProblem
from swarm.api.data import queued_data, taken_data, task_word
from swarm.cli import completion, given
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, lines_of
from swarm.cli.verb import Run, group, milliseconds, seconds_of, span, verb

if TYPE_CHECKING:
    from swarm import Task, TaskOutcome

app = group(
    "queue", "Share work between agents: add tasks, take them, finish them.", "swarm queue take work --wait 60s"
)

_STYLES = {"given up": "bad", "blocked": "warn", "done": "good"}


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="The queue.", autocompletion=completion.queues, show_default=False),
]
Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="Tasks that you took.", show_default=False)]


@verb(
    app,
    "add",
    attempt="cannot add a task to queue {name}",
    examples="""
    swarm queue add work 'port parser.py'
    swarm queue add work --id tests --after parser,lexer 'run all tests'
    git diff main | swarm queue add work -
    """,
)
def add(
    run: Run,
    name: Name,
    text: Annotated[str, typer.Argument(metavar="TEXT|-", help="Text of the task; - reads stdin.", show_default=False)],
    priority: Annotated[
        str, typer.Option("--priority", metavar="WORD", help="interrupt, high, normal or low.")
    ] = "normal",
    after: Annotated[
        list[str] | None,
        typer.Option("--after", metavar="ID,...", help="Tasks to finish first.", show_default=False),
    ] = None,
    task_id: Annotated[
        str,
        typer.Option(
            "--id",
            metavar="ID",
            help="Id of your choice; adding twice under one id makes one task.",
            show_default=False,
        ),
    ] = "",
    ttl: Annotated[
        str | None,
        typer.Option(
            "--ttl",
            metavar="TIME",
            help="Give the task up unless it is taken within TIME, such as 2h.",
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Add a task; the first task creates the queue."""
    needed = [one for several in after or () for one in several.split(",") if one]
    whole = _stdin() if text == "-" else text
    if not whole.strip():
        raise UsageProblem("the task is empty", hint="give the task as text")
    life = span("--ttl", ttl) / 1000
    receipt = run.open().queues.get(name).add(whole, priority=priority, after=needed, task_id=task_id, ttl=life)
    data = {"queue": name, "id": receipt.id, "priority": receipt.lane, "duplicate": receipt.duplicate}

    def show(output: Output) -> None:
        output.out(f"{receipt.id} is in queue {name}{' already' if receipt.duplicate else ''}")

    return Answer(data, show, next=(f"take it with: swarm queue take {name}",))


def _stdin() -> str:
    """Return the text on standard input.

    Raises:
        UsageProblem: it is no text.
    """
    data = given.from_stdin(1 << 20)
    if len(data) > 1 << 20:
        raise UsageProblem("the text is longer than 1 MiB", hint="put it into a file and name that")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise UsageProblem(f"stdin is not UTF-8 text: {error}", hint="put it into a file and name that") from None


@verb(
    app,
    "take",
    attempt="cannot take a task from queue {name}",
    examples="""
    swarm queue take work
    swarm queue take work --wait 10m --lease 1h --json
    """,
)
def take(
    run: Run,
    name: Name,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="TIME", help="Wait this long for a task, such as 60s.", show_default=False),
    ] = None,
    lease: Annotated[
        str, typer.Option("--lease", metavar="TIME", help="Keep the task this long; after that, others may take it.")
    ] = "10m",
    most: Annotated[str, typer.Option("--max", metavar="N", help="Take up to N tasks.")] = "1",
) -> Answer:
    """Take the most urgent ready task. Exit status 75: none is ready."""
    seconds = seconds_of("--wait", wait) or 0
    held = (milliseconds("--lease", lease) or 0) / 1000
    given.need_stdout("take a task")
    claim = run.open().queues.get(name).take(wait=seconds, limit=_number(most, 1000), lease=held)
    if claim is None:
        hint = f"see what it holds with `swarm queue list {name}`, or wait for a task: --wait 10m"
        raise NothingToTake(f"no task of queue {name} can be taken now", hint=hint)
    data = {
        "queue": name,
        "claim": claim.id,
        "lease": lease,
        "tasks": taken_data(claim),
    }
    ids = " ".join(message.id for message in claim.messages)

    def show(output: Output) -> None:
        for number, message in enumerate(claim.messages):
            again = f", try {claim.attempts[number]}" if claim.attempts[number] > 1 else ""
            output.out(f"{message.id} from {message.sender}{again}:")
            for line in lines_of(message.body):
                output.out(f"  {line}")

    return Answer(data, show, next=(f"when done: swarm queue done {name} {ids} --result 'the outcome'",))


def _number(text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= most and len(text) < 9):
        raise UsageProblem(f"--max {text}: give a number from 1 to {most}")
    return int(text)


@verb(
    app,
    "done",
    attempt="cannot finish the tasks of queue {name}",
    examples="""
    swarm queue done work tests
    swarm queue done work tests --result 'all 312 pass, see commit 1a2b'
    """,
)
def done(
    run: Run,
    name: Name,
    ids: Ids,
    result: Annotated[
        str, typer.Option("--result", metavar="TEXT|-", help="Result, shown by `list --all`.", show_default=False)
    ] = "",
) -> Answer:
    """Finish tasks; tasks that depend on them become ready."""
    text = _stdin() if result == "-" else result
    return _settled(name, run.open().queues.get(name).done(ids, text), "done")


@verb(app, "back", attempt="cannot return tasks to queue {name}", examples="swarm queue back work tests --delay 5m")
def back(
    run: Run,
    name: Name,
    ids: Ids,
    delay: Annotated[
        str | None,
        typer.Option(
            "--delay", metavar="TIME", help="Hand it out no earlier than after this time.", show_default=False
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.", show_default=False)] = "",
) -> Answer:
    """Return tasks for others to take, even tasks that were given up."""
    later = (milliseconds("--delay", delay) or 0) / 1000
    return _settled(name, run.open().queues.get(name).back(ids, delay=later, reason=reason), "back in the queue")


@verb(
    app,
    "fail",
    attempt="cannot give up the tasks of queue {name}",
    examples="swarm queue fail work tests --reason 'no compiler here'",
)
def fail(
    run: Run,
    name: Name,
    ids: Ids,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why it cannot be done.", show_default=False)],
) -> Answer:
    """Give tasks up: swarm notifies their sender and blocks the tasks that depend on them."""
    return _settled(name, run.open().queues.get(name).fail(ids, reason), "given up")


@verb(
    app,
    "extend",
    attempt="cannot extend the lease in queue {name}",
    examples="swarm queue extend work tests --lease 1h",
)
def extend(
    run: Run,
    name: Name,
    ids: Ids,
    lease: Annotated[str, typer.Option("--lease", metavar="TIME", help="New lease from now.")] = "10m",
) -> Answer:
    """Extend the lease on tasks, and on those taken together with them."""
    seconds = (milliseconds("--lease", lease) or 0) / 1000
    return _settled(name, run.open().queues.get(name).extend(ids, seconds), f"yours for {lease}")


def _settled(name: str, settled: TaskOutcome, word: str) -> Answer:
    def show(output: Output) -> None:
        for one in settled.ids:
            output.out(f"{one}: {word}")
        for one in settled.already:
            output.out(f"{one}: was already done")

    return Answer({"queue": name, "ids": list(settled.ids), "already": list(settled.already)}, show)


@verb(app, "list", attempt="cannot list queue {name}", examples="swarm queue list work\nswarm queue list work --all")
def list_(
    run: Run,
    name: Name,
    all: Annotated[
        bool, typer.Option("--all", help="Also show finished tasks, with results.", show_default=False)
    ] = False,
    most: Annotated[str, typer.Option("--max", metavar="N", help="At most N.")] = "1000",
) -> Answer:
    """List the tasks of a queue with state, worker and dependencies."""
    tasks = run.open().queues.get(name).tasks(_number(most, 100_000), settled=all)

    def show(output: Output) -> None:
        if not tasks:
            output.err(f"queue {name} is empty")
            return
        columns = (
            Column("ID", keep="all"),
            Column("STATE"),
            Column("WHO", 2),
            Column("SINCE", 3, right=True),
            Column("TASK"),
            Column("NOTE", 1),
        )
        output.table(columns, [_row(task) for task in tasks])

    return Answer({"queue": name, "tasks": [queued_data(task) for task in tasks]}, show)


def _row(task: Task) -> Sequence[str | Cell]:
    message = task.stored.message
    word = task_word(task)
    first = lines_of(message.body)[0]
    return (
        message.id,
        Cell(word, _STYLES.get(word, "")),
        task.who or "-",
        age(task.since_ms) if task.since_ms else "-",
        message.subject or first,
        _note(task),
    )


def _note(task: Task) -> str:
    if task.blocked or task.stored.reason:
        return task.blocked or task.stored.reason
    if task.needs:
        return "after " + ", ".join(task.needs)
    return lines_of(task.note)[0] if task.note else ""


@verb(app, "names", attempt="cannot list the queues", examples="swarm queue names")
def names(run: Run) -> Answer:
    """List the queues and the number of tasks in each."""
    found = run.open().queues()

    def show(output: Output) -> None:
        if not found:
            output.err("no queues; the first task creates one: swarm queue add NAME TEXT")
            return
        columns = (
            Column("QUEUE", keep="all"),
            *(Column(word, right=True) for word in ("WAITING", "TAKEN", "GIVEN UP")),
        )
        rows = [(name, str(depth.waiting), str(depth.claimed), str(depth.dead)) for name, depth in found]
        output.table(columns, rows)

    data = [{"queue": n, "waiting": d.waiting, "taken": d.claimed, "given_up": d.dead} for n, d in found]
    return Answer({"queues": data}, show)
