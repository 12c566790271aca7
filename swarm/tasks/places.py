"""What differs by where a task works: start its program, find its folders, end what it left."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.machine import processes as machine
from swarm.programs import processes, turns
from swarm.tasks import launching, workspace
from swarm.tasks.bench import GRACE, new_run, program_of, with_run
from swarm.tasks.values import TaskState

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask, TaskRun

#: The prompt after an end that was not the program's own: its conversation has the task already.
_GO_ON = "You were stopped before your task was done. Go on with it where you were."


def start(bench: Bench, task: AgentTask) -> AgentTask:
    """Start the next run of a queued task; the caller holds the lock.

    Raises:
        SwarmError: it cannot be started; the record says ``starting``.
        OSError
    """
    turn = _turn(bench, task)
    planned, run = new_run(task, resumed=turn.resume)
    planned = bench.store.change(planned, TaskState.STARTING, "starting", _how(turn))
    folder = launching.write(bench, planned, run, turn)
    pid, began = launching.start(folder / launching.LAUNCH, folder)
    started = run._replace(supervisor=pid, supervisor_start=began, boot_id=machine.boot_id())
    return bench.store.change(
        planned,
        TaskState.WORKING,
        "started",
        f"supervisor {pid}",
        runs=with_run(planned, started),
        operations=(*planned.operations, run.operation),
        started_ms=task.started_ms or time.time_ns() // 1_000_000,
    )


def _how(turn: turns.Turn) -> str:
    if turn.again:
        return "goes on in its conversation"
    return "in the conversation of before" if turn.resume else ""


def _turn(bench: Bench, task: AgentTask) -> turns.Turn:
    """Return what the program is told: its prompt, or only to go on where its conversation has that already."""
    program = program_of(task)
    probe = launching.launch_of(bench, task, bench.store.run_folder(task.id, "none"), turns.Turn(""))
    resume = bool(task.conversation) and program.knows(probe)
    tried = [one for one in task.runs if one.turn == task.turn and one.pid]
    text = task.prompts[-1]
    if task.turn == 1 and task.preamble:
        text = f"{task.preamble.rstrip()}\n\n{text}"
    again = resume and bool(tried)
    return turns.Turn(_GO_ON if again else text, resume, again)


def not_started(bench: Bench, task: AgentTask) -> AgentTask:
    """Queue a task again whose start nobody finished: its gate is shut, as the record does not name the operation."""
    run = task.run
    rest = tuple(one for one in task.runs if one is not run)
    if run is not None:
        files.remove_tree(bench.store.run_folder(task.id, run.operation))
    return bench.store.change(task, TaskState.QUEUED, "requeued", "its start was not finished", runs=rest, operation="")


def run_dir(bench: Bench, task: AgentTask, run: TaskRun) -> Path:
    """Return where the supervisor of a run writes."""
    return bench.store.run_folder(task.id, run.operation)


def streams(bench: Bench, task: AgentTask, run: TaskRun) -> Path:
    """Return the folder with what the program of a run wrote."""
    return bench.store.run_folder(task.id, run.operation)


def forget_launch(bench: Bench, task: AgentTask, run: TaskRun) -> None:
    """Remove the launch file of a run, if it is still there: it holds an environment."""
    files.unlink_if_there(run_dir(bench, task, run) / launching.LAUNCH)


def ask_to_end(run: TaskRun) -> None:
    """Ask the supervisor of a run to end it; within ``GRACE`` it ends all that the program started."""
    import signal

    if run.boot_id == machine.boot_id():
        machine.send(run.supervisor, run.supervisor_start, signal.SIGTERM)


def is_supervised(run: TaskRun) -> bool:
    """Whether the supervisor of a run is there."""
    return run.boot_id == machine.boot_id() and machine.is_alive(run.supervisor, run.supervisor_start)


def end_rest(bench: Bench, task: AgentTask, run: TaskRun) -> None:
    """End what a lost supervisor left behind."""
    forget_launch(bench, task, run)
    stamp = launching.stamp_of(bench.world.layout.root, task.id)
    processes.end_agents([(run_dir(bench, task, run), stamp)], min(GRACE, bench.world.settings.agents.stop_grace))


def note_conversation(bench: Bench, task: AgentTask) -> None:
    """Write down which conversation goes on where the task worked."""
    workspace.note(bench.world.layout, task)
