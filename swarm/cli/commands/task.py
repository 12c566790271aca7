"""``swarm task …``: work for agent programs without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import TaskFailed, TaskState, UsageProblem
from swarm.cli import completion, given
from swarm.cli.commands.start import Agent
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, lines_of, plain
from swarm.cli.verb import Run, group, seconds_of, verb
from swarm.cli.views.tasks import event_data, task_data

if TYPE_CHECKING:
    from swarm import AgentTask, TaskRun

app = group(
    "task",
    "Give an agent program work without a terminal, and get its result.",
    'swarm task "Review the last commit"',
    default="submit",
)
_LIMIT = 1 << 20
_STYLES = {"failed": "bad", "cancelled": "warn", "idle": "warn", "taken": "warn", "completed": "good"}


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    from swarm.cli.commands import task_held, task_pane  # noqa: F401  # they add to the group

    root.add_typer(app)


Id = Annotated[str, typer.Argument(metavar="ID", help="The task.", autocompletion=completion.tasks, show_default=False)]
Prompt = Annotated[str, typer.Argument(metavar="TEXT|-", help="What is to be done; - reads stdin.", show_default=False)]
Detach = Annotated[bool, typer.Option("--detach", help="Return as soon as the task is accepted.", show_default=False)]

AgentCommand = Annotated[
    str | None,
    typer.Option("--agent-cmd", metavar="COMMAND", help="Any command, which reads the text.", show_default=False),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Model of the program.", show_default=False)]
RoleName = Annotated[
    str | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Role whose instructions, rules and limits count.",
        autocompletion=completion.roles,
        show_default=False,
    ),
]
SessionId = Annotated[
    str | None,
    typer.Option("--session", metavar="ID", help="Go on where an earlier task worked.", show_default=False),
]
InWorktree = Annotated[
    bool,
    typer.Option("--worktree", help="Work on a branch in a worktree of its own; see --role.", show_default=False),
]
Workdir = Annotated[
    str | None,
    typer.Option(
        "--workdir", metavar="DIR", help="Work in this folder, which tasks.workdirs allows.", show_default=False
    ),
]
InBox = Annotated[
    bool | None,
    typer.Option(
        "--sandbox/--no-sandbox",
        help="Run the program in a box, or not; default: as role and sandbox.enabled say.",
        show_default=False,
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="TIME", help="Longest time, such as 30m; see tasks.timeout.", show_default=False),
]
Hold = Annotated[
    bool,
    typer.Option("--hold", help="Wait for `continue` or `end` after each turn.", show_default=False),
]
Tries = Annotated[
    str | None,
    typer.Option("--tries", metavar="N", help="Start it up to N times; see tasks.tries.", show_default=False),
]
OwnId = Annotated[
    str,
    typer.Option(
        "--id",
        metavar="ID",
        help="Id of your choice; submitting twice under one id makes one task.",
        show_default=False,
    ),
]
AgentUrl = Annotated[
    str | None,
    typer.Option(
        "--agent-url", metavar="URL", help="Ask a served agent, such as http://127.0.0.1:9000.", show_default=False
    ),
]
AnyAgent = Annotated[
    bool,
    typer.Option("--any-agent", help="Ask a served agent of this swarm directory that is idle.", show_default=False),
]


@verb(
    app,
    "submit",
    attempt="cannot submit the task",
    examples="""
    swarm task "Review the last commit"
    swarm task --agent demo --timeout 10m "Write release notes"
    swarm task --worktree --role developer "Fix the parser"
    swarm task --sandbox "Try this script: …"
    swarm task submit "Sum up the README" --detach
    git diff | swarm task -
    """,
)
def submit(
    run: Run,
    text: Prompt,
    agent: Agent = None,
    agent_cmd: AgentCommand = None,
    model: Model = None,
    role: RoleName = None,
    session: SessionId = None,
    worktree: InWorktree = False,
    workdir: Workdir = None,
    sandbox: InBox = None,
    timeout: Timeout = None,
    hold: Hold = False,
    tries: Tries = None,
    task_id: OwnId = "",
    detach: Detach = False,
    agent_url: AgentUrl = None,
    any_agent: AnyAgent = False,
) -> Answer:
    """Give a task to an agent program, wait for its end, and print its result.

    Ctrl-C ends the wait, not the task. Exit status: 0 completed, or held; 1 failed or cancelled.
    """
    if agent and agent_cmd:
        raise UsageProblem("both --agent and --agent-cmd are given", hint="give one of them")
    if agent_url is not None or any_agent:
        if agent or agent_cmd or role or tries or task_id or sandbox is not None:
            what = "--agent, --agent-cmd, --role, --tries, --id and --sandbox"
            raise UsageProblem(f"--agent-url and --any-agent go without {what}", hint="the served agent has its own")
        asked: dict[str, Any] = {"prompt": read_text(run, text), "model": model, "session_id": session, "hold": hold}
        asked |= {"timeout_seconds": seconds_of("--timeout", timeout), "workdir": _folder(run, workdir)}
        return _by_url(run, agent_url, asked, any_agent=any_agent, detach=detach)
    how: dict[str, Any] = {"program": agent, "command": agent_cmd or "", "model": model or "", "role": role or ""}
    how |= {"session_id": session, "worktree": worktree, "hold": hold, "task_id": task_id}
    how |= {"workdir": _folder(run, workdir), "sandbox": sandbox}
    how |= {"timeout": seconds_of("--timeout", timeout), "tries": _number("--tries", tries, 20)}
    tasks = run.open().tasks
    task = tasks.submit(read_text(run, text), **how)
    if task.box is not None and task.box.reason:
        run.output.err(f"warning: {task.id} runs without a box: {task.box.by}")
    if detach:
        return _accepted(task)
    run.output.err(f"accepted {task.id}; Ctrl-C leaves it at work")
    return result_of(tasks.wait(task.id))


def _by_url(run: Run, url: str | None, asked: dict[str, Any], *, any_agent: bool, detach: bool) -> Answer:
    """Give a task to a served agent."""
    from swarm.cli.commands import task_by_url

    if url is not None and any_agent:
        raise UsageProblem("both --agent-url and --any-agent are given", hint="give one of them")
    return task_by_url.submit(run, url, asked, detach=detach)


def read_text(run: Run, text: str) -> str:
    """Return the prompt as it is given, from a file behind ``@``, or from standard input."""
    if text != "-" and not text.startswith("@"):
        return text
    try:
        data = given.from_stdin(_LIMIT) if text == "-" else Path(run.directory, text[1:]).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise UsageProblem(f"cannot read the task: {text[1:]}: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"cannot read the task: it is not UTF-8: {error.reason}") from error


def _folder(run: Run, text: str | None) -> str | None:
    """Return a folder as the user types it, from where the command runs."""
    return text and (text if text.startswith("~/") else str(run.directory / text))


def _number(option: str, text: str | None, most: int) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 9 and 1 <= int(text) <= most):
        raise UsageProblem(f"{option} {text}: give a number from 1 to {most}")
    return int(text)


def _accepted(task: AgentTask) -> Answer:
    def show(output: Output) -> None:
        output.out(f"{task.id} is {task.shown}")

    return Answer({"task": task_data(task)}, show, next=(f"wait: swarm task wait {task.id}",))


def result_of(task: AgentTask, *, told: bool = False) -> Answer:
    """Return what came of a task.

    Args:
        told: its output was shown before.
    """
    good = task.state in (TaskState.COMPLETED, TaskState.IDLE)
    why = task.failure.message if task.failure else ""
    words = "" if good else f"{task.id} {task.state}{f': {why}' if why else ''}"
    problem = TaskFailed(words, hint=f"look: swarm task show {task.id}") if words else None
    return Answer(
        {"task": task_data(task)},
        lambda output: None if told else _show_output(output, task),
        warnings=(words,) if words else (),
        errors=(problem.as_dict(),) if problem else (),
        next=(f"go on: swarm task continue {task.id} TEXT",) if task.state is TaskState.IDLE else (),
        exit_code=problem.exit_code if problem else 0,
        status="error" if problem else "",
    )


def _show_output(output: Output, task: AgentTask) -> None:
    if task.output.strip():
        for line in lines_of(task.output):
            output.out(line)


@verb(
    app,
    "wait",
    attempt="cannot wait for task {task_id}",
    examples="swarm task wait task-1a1f85359667b9c69 --timeout 10m",
)
def wait(
    run: Run,
    task_id: Id,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Longest wait, such as 10m.", show_default=False)
    ] = None,
) -> Answer:
    """Wait for the end of a task, and print its result. Exit status 75: the time was up first."""
    return result_of(run.open().tasks.wait(task_id, seconds_of("--timeout", timeout)))


@verb(app, "list", attempt="cannot list the tasks", examples="swarm task list\nswarm task list --all")
def list_(
    run: Run,
    all: Annotated[bool, typer.Option("--all", help="Also show finished tasks.", show_default=False)] = False,
) -> Answer:
    """List the tasks that are not over."""
    found = run.open().tasks.list(finished=all)

    def show(output: Output) -> None:
        if not found:
            output.err("no tasks" if all else "no unfinished tasks; `swarm task history` shows the others")
            return
        _table(output, found)

    return Answer({"tasks": [task_data(task) for task in found]}, show)


def _table(output: Output, tasks: Sequence[AgentTask]) -> None:
    columns = (
        Column("ID", keep="all"),
        Column("STATE"),
        Column("AGENT", 2),
        Column("AGE", 3, right=True),
        Column("TASK"),
    )
    output.table(columns, [_row(task) for task in tasks])


def in_words(task: AgentTask) -> str:
    """Return the state of a task for people, who may have it in a pane."""
    return str(task.state if task.state is TaskState.TAKEN else task.shown)


def _row(task: AgentTask) -> Sequence[str | Cell]:
    state = in_words(task)
    first = next((line for line in lines_of(task.prompts[0]) if line.strip()), "")
    return (task.id, Cell(state, _STYLES.get(state, "")), task.agent or task.program, age(task.created_ms), first)


@verb(app, "show", attempt="cannot show task {task_id}", examples="swarm task show task-1a1f85359667b9c69")
def show(run: Run, task_id: Id) -> Answer:
    """Show a task: state, runs, result."""
    task = run.open().tasks.get(task_id)

    def tell(output: Output) -> None:
        output.out(f"{task.id} is {in_words(task)}", _STYLES.get(in_words(task), "heading"))
        for name, value in _facts(task):
            output.item(f"  {name:<9}", plain(value))
        _show_output(output, task)

    return Answer({"task": task_data(task)}, tell)


def _facts(task: AgentTask) -> list[tuple[str, str]]:
    facts = [
        ("task", lines_of(task.prompts[-1])[0]),
        ("program", " ".join(task.command) or task.program),
        ("session", task.session_id),
        ("pane", task.pane.address if task.pane else ""),
        ("folder", task.workdir),
        ("box", task.box.by if task.box else ""),
        ("by", task.by),
        ("accepted", f"{age(task.created_ms)} ago"),
        ("tokens", f"{task.usage.input:,} in, {task.usage.output:,} out" if any(task.usage) else ""),
        *(("run", _in_words(run)) for run in task.runs),
        ("failure", f"{task.failure.type}: {task.failure.message}" if task.failure else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _in_words(run: TaskRun) -> str:
    how = f"signal {run.signal}" if run.signal is not None else f"exit status {run.exit_code}"
    end = f"{run.cause}, {how}" if run.ended_ms else "at work"
    return f"turn {run.turn}{', resumed' if run.resumed else ''}: {end}"


@verb(
    app,
    "continue",
    attempt="cannot continue task {task_id}",
    examples='swarm task continue task-1a1f85359667b9c69 "Now the tests"',
)
def continue_(run: Run, task_id: Id, text: Prompt, detach: Detach = False) -> Answer:
    """Give a held task its next text, and print the result."""
    tasks = run.open().tasks
    task = tasks.continue_(task_id, read_text(run, text))
    return _accepted(task) if detach else result_of(tasks.wait(task.id))


@verb(app, "end", attempt="cannot end task {task_id}", examples="swarm task end task-1a1f85359667b9c69")
def end(run: Run, task_id: Id) -> Answer:
    """Complete a held task."""
    return result_of(run.open().tasks.end(task_id))


@verb(app, "cancel", attempt="cannot cancel task {task_id}", examples="swarm task cancel task-1a1f85359667b9c69")
def cancel(
    run: Run,
    task_id: Id,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return at once.", show_default=False)] = False,
) -> Answer:
    """End a task and all that its program started, within ten seconds."""
    task = run.open().tasks.cancel(task_id, wait=not no_wait)
    return Answer({"task": task_data(task)}, lambda output: output.out(f"{task.id} is {task.shown}"))


@verb(app, "history", attempt="cannot list the history", examples="swarm task history\nswarm task history --page 2")
def history(
    run: Run,
    page: Annotated[str, typer.Option("--page", metavar="N", help="The page, from 1.")] = "1",
    most: Annotated[str, typer.Option("--max", metavar="N", help="Tasks on a page, at most 100.")] = "20",
) -> Answer:
    """List the finished tasks, newest first."""
    found = run.open().tasks.history(_number("--page", page, 10_000_000) or 1, _number("--max", most, 100) or 1)

    def show(output: Output) -> None:
        if not found.tasks:
            output.err("no finished tasks on this page")
            return
        _table(output, found.tasks)

    data = {"tasks": [task_data(task) for task in found.tasks], "page": found.page, "total": found.total}
    return Answer(data, show)


@verb(
    app,
    "events",
    attempt="cannot show the events of task {task_id}",
    examples="swarm task events task-1a1f85359667b9c69",
)
def events(
    run: Run,
    task_id: Id,
    after: Annotated[
        str | None, typer.Option("--after", metavar="N", help="Only those behind this number.", show_default=False)
    ] = None,
) -> Answer:
    """Show what happened to a task, step by step."""
    found = run.open().tasks.events(task_id, after=_number("--after", after, 99_999_999) or 0)

    def show(output: Output) -> None:
        for one in found:
            output.item(
                f"{one.number:>4}  {age(one.time_ms):>4} ago  ", f"{one.kind}{f': {one.detail}' if one.detail else ''}"
            )

    return Answer({"id": task_id, "events": [event_data(one) for one in found]}, show)


@verb(
    app,
    "output",
    attempt="cannot show the output of task {task_id}",
    examples="swarm task output task-1a1f85359667b9c69",
)
def output(run: Run, task_id: Id) -> Answer:
    """Show what the program of a task wrote, raw, of each run."""
    found = run.open().tasks.output(task_id)

    def show(output: Output) -> None:
        for one in found:
            output.out(f"run {one.run.operation}", "heading")
            for data in (one.stdout, one.stderr):
                for line in lines_of(data.decode("utf-8", "replace")) if data else ():
                    output.out(line)

    runs = [
        {
            "run": one.run.operation,
            "stdout": one.stdout.decode("utf-8", "replace"),
            "stderr": one.stderr.decode("utf-8", "replace"),
        }
        for one in found
    ]
    return Answer({"id": task_id, "runs": runs}, show)
