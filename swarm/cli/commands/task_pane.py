"""``swarm task attach``, ``take`` and ``give-back``: follow a task, and go on in its conversation in a pane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from swarm import AgentTask, TaskEvent, TranscriptEntry
from swarm.api.data import approval_data
from swarm.cli.commands.task import Id, app, result_of
from swarm.cli.commands.transcript import Page, entry_data
from swarm.cli.output import Answer
from swarm.cli.text import plain
from swarm.cli.verb import Run, seconds_of, verb
from swarm.cli.views.tasks import event_data, task_data
from swarm.cli.views.watch import until_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm import Approval

    News = TaskEvent | TranscriptEntry | Approval

_STYLES = {"open": "warn", "allowed": "good", "denied": "bad"}


@verb(
    app,
    "attach",
    attempt="cannot follow task {task_id}",
    examples="swarm task attach paint\nswarm task attach paint --pane",
)
def attach(
    run: Run,
    task_id: Id,
    pane: Annotated[
        bool, typer.Option("--pane", help="In a pane of tmux instead of here.", show_default=False)
    ] = False,
    new: Annotated[bool, typer.Option("--new", help="Leave out what was there before.", show_default=False)] = False,
) -> Answer:
    """Follow a task until it is over: what its program says, what happens to it, and what it asks.

    Ctrl-C leaves the task as it is. `swarm approve` answers requests, `swarm task message` says more to a held task.
    """
    tasks = run.open().tasks
    if pane:
        opened = tasks.show(task_id)
        hint = ("look: swarm attach",)
        return Answer({"id": task_id, "pane": opened}, lambda output: output.out(f"pane {opened}"), next=hint)
    news = tasks.follow(task_id, all_of_it=not new)
    over: list[AgentTask] = []

    def view() -> None:
        _tell(run, task_id, news)
        over.append(tasks.get(task_id))

    ended = until_ctrl_c(run, view)
    if not over:
        run.output.err(f"{task_id} goes on; come back with: swarm task attach {task_id}")
        return ended
    return result_of(over[0], told=True)


def _tell(run: Run, task_id: str, news: Iterable[News]) -> None:
    output, page = run.output, Page(run.output, task_id)
    for one in news:
        if output.json:
            output.answer(run.command, Answer(_data(task_id, one), lambda _output: None))
        elif isinstance(one, TranscriptEntry):
            page.show([one])
        elif isinstance(one, TaskEvent):
            output.out(f"[{one.kind}{f': {plain(one.detail)}' if one.detail else ''}]", "dim")
        else:
            asked, stand = one.question, str(one.standing)
            words = " --answer '…'" * len(asked.questions)
            how = f"; swarm approve {asked.id}{words}, or swarm deny {asked.id}" if one.waits else ""
            output.out(f"[asks {asked.id}, {stand}: {plain(asked.summary)}{how}]", _STYLES.get(stand, ""))


def _data(task_id: str, one: News) -> dict[str, object]:
    if isinstance(one, TranscriptEntry):
        return {"id": task_id, "entry": entry_data(task_id, one)}
    if isinstance(one, TaskEvent):
        return {"id": task_id, "event": event_data(one)}
    return {"id": task_id, "approval": approval_data(one)}


@verb(
    app,
    "take",
    attempt="cannot take task {task_id}",
    examples="swarm task take paint\nswarm task take paint --timeout 10m",
)
def take(
    run: Run,
    task_id: Id,
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", metavar="TIME", help="Longest wait for the end of its turn.", show_default=False),
    ] = None,
) -> Answer:
    """Move the conversation of a held task into a pane, when its turn is over, and go on in it by hand."""
    task = run.open().tasks.take(task_id, seconds_of("--timeout", timeout))
    where = task.pane.address if task.pane else ""
    return Answer(
        {"task": task_data(task), "agent": where},
        lambda output: output.out(f"{task.id} is in the pane of {where}"),
        next=(f"look: swarm attach {where}", f"later: swarm task give-back {task.id}"),
    )


@verb(
    app,
    "give-back",
    attempt="cannot give back task {task_id}",
    examples="swarm task give-back paint",
)
def give_back(run: Run, task_id: Id) -> Answer:
    """End the program in the pane of a task that was taken over, and hold the task again."""
    task = run.open().tasks.give_back(task_id)
    hint = (f"go on: swarm task continue {task.id} TEXT",)
    return Answer({"task": task_data(task)}, lambda output: output.out(f"{task.id} is {task.shown}"), next=hint)
