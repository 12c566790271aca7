"""Errors about tasks."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_TRY_AGAIN, SwarmError


class TaskNotFound(SwarmError):
    """No task of this id."""

    code = "TASK_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm task list` shows the tasks; the oldest finished ones are removed (tasks.keep)"


class TaskFailed(SwarmError):
    """The task failed, or was cancelled."""

    code = "TASK_FAILED"
    default_hint = "`swarm task show ID` shows its runs, and `swarm task output ID` what its program wrote"


class TaskTaken(SwarmError):
    """Another task, with another prompt or program, has this id."""

    code = "TASK_TAKEN"
    exit_code = EXIT_EXISTS
    default_hint = "choose another id, or none"


class TaskOver(SwarmError):
    """The task is finished."""

    code = "TASK_OVER"
    exit_code = EXIT_EXISTS
    default_hint = "`swarm task show ID` shows what came of it"


class TaskNotIdle(SwarmError):
    """The task is not held, or its turn is not over."""

    code = "TASK_NOT_IDLE"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait until it is idle; only a task that was submitted with --hold waits for more"


class TaskBusy(SwarmError):
    """The agent, or the session that the task names, has another unfinished task."""

    code = "TASK_BUSY"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait for the other task, or cancel it with `swarm task cancel ID`"


class TaskInPane(SwarmError):
    """The conversation of the task goes on in a pane."""

    code = "TASK_IN_PANE"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "give it back first with `swarm task give-back ID`"


class TaskNotHeld(SwarmError):
    """The task ends with its turn: it takes no messages, and cannot be taken over."""

    code = "TASK_NOT_HELD"
    default_hint = "submit it with --hold"


class TaskNotTaken(SwarmError):
    """The conversation of the task is in no pane."""

    code = "TASK_NOT_TAKEN"
    default_hint = "`swarm task take ID` moves it into one"


class NotReturned(SwarmError):
    """The program in the pane would not end, and keeps the conversation."""

    code = "TASK_NOT_RETURNED"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "look at it with `swarm why AGENT`, and try again"
