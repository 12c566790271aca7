"""What differs by where a task works: start its program, find its folders, end what it left."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import uuid4

from swarm.agents.launching import unseen
from swarm.kit import files
from swarm.machine import processes as machine
from swarm.programs import processes, turns
from swarm.project.chore import chore
from swarm.project.errors import RecordProblem
from swarm.tasks import in_worktree, launching, secrecy
from swarm.tasks.bench import GRACE, new_run, program_of, with_run
from swarm.tasks.folders import workspace
from swarm.tasks.held import messages
from swarm.tasks.values import Place, TaskState

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from swarm.programs.values import Launch
    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask, TaskRun

#: The prompt after an end that was not the program's own: its conversation has the task already.
_GO_ON = "You were stopped before your task was done. Go on with it where you were."


# --- start --------------------------------------------------------------------------------------


def plan(bench: Bench, task: AgentTask) -> tuple[AgentTask, turns.Turn]:
    """Write down that a queued task is being started, by this process; the caller holds the lock.

    Raises:
        SwarmError: it cannot be started, and is queued still.
    """
    turn = _turn(bench, task)
    planned, run = new_run(task, resumed=turn.resume)
    me = os.getpid()
    mine = run._replace(supervisor=me, supervisor_start=machine.start_of(me) or 0, boot_id=machine.boot_id())
    planned = replace(planned, runs=with_run(planned, mine))
    return bench.store.change(planned, TaskState.STARTING, "starting", _how(turn)), turn


def launch(bench: Bench, task: AgentTask, turn: turns.Turn) -> None:
    """Start the supervisor of a planned run. Of a worktree that may take its time, and needs no lock of the tasks.

    Raises:
        SwarmError: nothing was started.
        OSError
    """
    run = run_of(task)
    files.make_private_dir(streams(bench, task, run))
    secrecy.note(bench, task)
    if task.place is Place.WORKTREE:
        in_worktree.start(bench, task, run, turn, talk_of(bench, task, turn))
        return
    folder = launching.write(bench, task, run, turn, talk_of(bench, task, turn))
    unseen.start(folder / unseen.LAUNCH, folder)


def begun(bench: Bench, task: AgentTask) -> AgentTask:
    """Write down that a planned run was started: that opens its gate, unless its session's record did already."""
    run = run_of(task)
    found = unseen.started(streams(bench, task, run)) or unseen.Started(0, 0, "")
    started = run._replace(supervisor=found.pid, supervisor_start=found.start, boot_id=found.boot_id)
    return bench.store.change(
        task,
        TaskState.WORKING,
        "started",
        f"supervisor {found.pid}",
        runs=with_run(task, started),
        operations=(*task.operations, run.operation),
        started_ms=task.started_ms or time.time_ns() // 1_000_000,
    )


def not_started(bench: Bench, task: AgentTask, *, mine: bool = False) -> AgentTask:
    """Return what became of a start that nobody finished: its program runs, or the task is queued again.

    The gate of a run in a folder is shut, as the task's record does not name its operation; that of a run in a worktree
    is open when the session's record does.

    Args:
        mine: this process began it, and has given up; else one that lives is left alone.
    """
    run = run_of(task)
    if not mine and is_supervised(run):
        return task
    if task.place is Place.WORKTREE:
        with bench.changing(f"task {task.id}"):  # which takes back what was not committed
            if in_worktree.is_begun(bench, task, run):
                return begun(bench, task)
    files.remove_tree(streams(bench, task, run))
    rest = tuple(one for one in task.runs if one.operation != run.operation)
    return bench.store.change(task, TaskState.QUEUED, "requeued", "its start was not finished", runs=rest, operation="")


def _how(turn: turns.Turn) -> str:
    if turn.again:
        return "goes on in its conversation"
    return "in the conversation of before" if turn.resume else ""


def _turn(bench: Bench, task: AgentTask) -> turns.Turn:
    """Return what the program is told: its prompt, or only to go on where its conversation has that already."""
    program = program_of(task)
    resume = bool(task.conversation) and program.knows(_probe(bench, task))
    text = task.prompts[-1]
    if task.turn == 1 and task.preamble:
        text = f"{task.preamble.rstrip()}\n\n{text}"
    if messages.is_talked_with(task):
        name = messages.uuid_of(task, task.turn)
        again = resume and name in heard(bench, task)
        return turns.Turn(_GO_ON if again else text, resume, again, str(uuid4()) if again else name)
    tried = [one for one in task.runs if one.turn == task.turn and one.pid]
    again = resume and bool(tried)
    return turns.Turn(_GO_ON if again else text, resume, again)


def heard(bench: Bench, task: AgentTask) -> frozenset[str]:
    """Return the ids of the texts that the program's own record has; nothing where it is not talked with."""
    return program_of(task).heard(_probe(bench, task)) if messages.is_talked_with(task) else frozenset()


def talk_of(bench: Bench, task: AgentTask, turn: turns.Turn) -> dict[str, Any]:
    """Return how the supervisor talks with the program; empty: it does not."""
    if not turn.id:
        return {}
    folder = messages.folder_of(bench.store, task)
    files.make_private_dir(folder)
    return {
        "speech": program_of(task).speech,
        "id": turn.id,
        "text": turn.text,
        "messages": str(folder),
        "known": messages.known(bench, task, heard(bench, task)),
        "ask": chore(bench.world, "ask", task.id),
        "within": bench.world.settings.tasks.answer_within,
    }


def probe(bench: Bench, task: AgentTask, folder: Path) -> Launch:
    """Return what a program is asked with, which conversation it had last.

    Args:
        folder: its run folder.
    """
    return replace(_probe(bench, task), run_dir=folder)


def _probe(bench: Bench, task: AgentTask) -> Launch:
    """Return what a program is asked with, whether it knows the conversation."""
    nothing = turns.Turn("")
    if task.place is not Place.WORKTREE:
        return launching.launch_of(bench, task, bench.store.run_folder(task.id, "none"), nothing)
    found = launching.launch_of(bench, task, in_worktree.run_dir(bench, task), nothing)
    around = {name: value for name, value in found.environ.items() if name != launching.HOME}
    return replace(found, worktree=in_worktree.tree_of(bench, task), environ=around)


# --- find ---------------------------------------------------------------------------------------


def run_of(task: AgentTask) -> TaskRun:
    """Return the run that is being started or runs."""
    run = task.run
    if run is None:
        raise RecordProblem(f"cannot use the record of {task.id}: it names no run")
    return run


def run_dir(bench: Bench, task: AgentTask, run: TaskRun) -> Path:
    """Return where the supervisor of a run writes."""
    return in_worktree.run_dir(bench, task) if task.place is Place.WORKTREE else streams(bench, task, run)


def streams(bench: Bench, task: AgentTask, run: TaskRun) -> Path:
    """Return the folder with what the program of a run wrote."""
    return bench.store.run_folder(task.id, run.operation)


def is_supervised(run: TaskRun) -> bool:
    """Whether the supervisor of a run is there; of one that is being started, the process that does that."""
    return run.boot_id == machine.boot_id() and machine.is_alive(run.supervisor, run.supervisor_start)


def is_removed(bench: Bench, task: AgentTask) -> bool:
    """Whether the user has removed the session in which a task works."""
    return task.place is Place.WORKTREE and in_worktree.session_of(bench, task) is None


# --- end ----------------------------------------------------------------------------------------


def forget_launch(bench: Bench, task: AgentTask, run: TaskRun) -> None:
    """Remove the launch file of a run, if it is still there: it holds an environment."""
    files.unlink_if_there(run_dir(bench, task, run) / unseen.LAUNCH)


def ask_to_end(run: TaskRun) -> None:
    """Ask the supervisor of a run to end it; within ``GRACE`` it ends all that the program started."""
    if run.boot_id == machine.boot_id():
        machine.send(run.supervisor, run.supervisor_start, signal.SIGTERM)


def end_rest(bench: Bench, task: AgentTask, run: TaskRun) -> None:
    """End what a lost supervisor left behind."""
    forget_launch(bench, task, run)
    seen = in_worktree.stamp(bench, task) if task.place is Place.WORKTREE else _stamp(bench, task)
    processes.end_agents([(run_dir(bench, task, run), seen)], min(GRACE, bench.world.settings.agents.stop_grace))


def _stamp(bench: Bench, task: AgentTask) -> str:
    return launching.stamp_of(bench.world.layout.root, task.id)


def take_in(bench: Bench, task: AgentTask) -> str:
    """Take in what was committed in a task's box; return in words why that is refused; empty: it is not."""
    return in_worktree.take_in(bench, task) if task.place is Place.WORKTREE else ""


def note_conversation(bench: Bench, task: AgentTask) -> None:
    """Write down which conversation goes on where the task worked; the record of an agent has its own."""
    if task.place is Place.SESSION:
        workspace.note(bench.world.layout, task)
