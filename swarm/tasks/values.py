"""Values of tasks: the states, the one table of what may follow, the record of a task and of its runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.project.model import Boxed


class TaskState(StrEnum):
    """The states of a task.

    Outsiders see ``starting``, ``interrupted`` and those of a pane as ``working``: ``AgentTask.shown``.
    """

    QUEUED = "queued"  # accepted; no program has it now
    STARTING = "starting"  # a supervisor waits for the record to name its operation
    WORKING = "working"
    IDLE = "idle"  # held: its turn is over, and it waits for `continue` or `end`
    CANCELLING = "cancelling"
    TAKING = "taking"  # a process moves its conversation into a pane
    TAKEN = "taken"  # its conversation goes on in a pane
    RETURNING = "returning"  # a process ends that pane's program
    INTERRUPTED = "interrupted"  # its supervisor is gone without a word: a reboot, or somebody killed it
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_S = TaskState
#: What may follow a state; nothing follows the last three.
TRANSITIONS: Mapping[TaskState, frozenset[TaskState]] = {
    _S.QUEUED: frozenset({_S.STARTING, _S.FAILED, _S.CANCELLED}),
    _S.STARTING: frozenset({_S.WORKING, _S.QUEUED, _S.FAILED}),
    _S.WORKING: frozenset({_S.IDLE, _S.COMPLETED, _S.FAILED, _S.QUEUED, _S.CANCELLING, _S.INTERRUPTED}),
    _S.IDLE: frozenset({_S.QUEUED, _S.TAKING, _S.COMPLETED, _S.CANCELLED}),
    _S.TAKING: frozenset({_S.TAKEN, _S.IDLE}),
    _S.TAKEN: frozenset({_S.RETURNING, _S.CANCELLED}),
    _S.RETURNING: frozenset({_S.IDLE, _S.TAKEN}),
    _S.CANCELLING: frozenset({_S.CANCELLED}),
    _S.INTERRUPTED: frozenset({_S.QUEUED, _S.FAILED, _S.CANCELLED}),
    _S.COMPLETED: frozenset(),
    _S.FAILED: frozenset(),
    _S.CANCELLED: frozenset(),
}
FINAL = frozenset(state for state, following in TRANSITIONS.items() if not following)
#: In these a program may run.
RUNNING = frozenset({_S.STARTING, _S.WORKING, _S.CANCELLING})
#: In these the task's conversation is in a pane, or on its way; no program may be started for the task.
IN_PANE = frozenset({_S.TAKING, _S.TAKEN, _S.RETURNING})
_SHOWN = dict.fromkeys((_S.STARTING, _S.INTERRUPTED, *IN_PANE), _S.WORKING)


class Place(StrEnum):
    """Where the program of a task works."""

    SESSION = "session"  # a folder of its own, kept between the tasks that name the same session
    WORKTREE = "worktree"  # an ordinary session of one agent, with a branch and a worktree


class FailureType(StrEnum):
    """Why a task failed."""

    PROGRAM = "program_error"  # the program, or its model, says so
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"  # its supervisor is gone, and the work cannot be taken up again
    NOT_STARTED = "not_started"  # there was no program to run, or it could not be run
    SANDBOX = "sandbox_error"


class TaskFailure(NamedTuple):
    """A failure of a task, or of one of its runs.

    Attributes:
        type: see ``FailureType``.
        message: what happened, in one line.
        retryable: another try may go well.
    """

    type: FailureType
    message: str
    retryable: bool = False


class TokenUsage(NamedTuple):
    """Tokens that a task has used, as its program says at the end of each turn."""

    input: int = 0
    output: int = 0


_NOTHING_USED = TokenUsage()


class TaskRun(NamedTuple):
    """One process of a task's program.

    Attributes:
        operation: names its folder, ``runs/<operation>``, and opens its supervisor's gate.
        turn: which prompt of the task it was for, from 1.
        resumed: it took up the conversation of an earlier run.
        started_ms, ended_ms: milliseconds since 1970; 0: not yet.
        supervisor, supervisor_start, boot_id: the process that was started for it; 0: none yet.
        pid: of the program; it is kept after the end.
        cause: why it ended, as its supervisor says: exited, signal, stopped, hangup, budget, timeout; ``lost`` where
            the supervisor is gone without a word, ``never begun`` where that was before the program.
        exit_code, signal: how it ended; None: not that way.
        failure: None: it went well, or is not over.
    """

    operation: str
    turn: int
    resumed: bool = False
    started_ms: int = 0
    ended_ms: int = 0
    supervisor: int = 0
    supervisor_start: int = 0
    boot_id: str = ""
    pid: int = 0
    cause: str = ""
    exit_code: int | None = None
    signal: int | None = None
    failure: TaskFailure | None = None


class MessageState(StrEnum):
    """Where a message to a held task stands."""

    QUEUED = "queued"  # no turn has it yet
    IN_TURN = "in_turn"  # the program has it
    ANSWERED = "answered"  # the turn that has it ended well
    UNDELIVERED = "undelivered"  # the task was over first


class TaskMessage(NamedTuple):
    """A message to a held task, and its receipt.

    Attributes:
        number: from 1, in the order in which they were sent.
        turn: which prompt it belongs to, from 1; 0: none yet.
    """

    id: str
    number: int
    text: str
    by: str
    at_ms: int
    state: MessageState
    turn: int = 0


class TurnReceipt(NamedTuple):
    """Says for good which turn of a task has a message."""

    message: str
    turn: int


class InPane(NamedTuple):
    """Where the conversation of a task is that was taken over.

    Attributes:
        session, agent: the agent that has it.
        operation: the one that starts this agent; when it is committed, the agent has the conversation.
        pid, start, boot_id: the process that moves it there, or back.
    """

    session: str
    agent: str
    operation: str
    pid: int
    start: int
    boot_id: str

    @property
    def address(self) -> str:
        """How messages call the agent."""
        return f"{self.agent}@{self.session}"


class TaskEvent(NamedTuple):
    """One entry of a task's log.

    Attributes:
        number: from 1, without a gap.
        time_ms: milliseconds since 1970.
        kind: accepted, starting, started, retry, waiting, requeued, interrupted, held, continued, taking, taken,
            returning, returned, cancelling, completed, failed or cancelled.
        state: of the task from then on.
        detail: more in words; may be empty.
        operation: the run it is about; empty: none.
    """

    number: int
    time_ms: int
    kind: str
    state: TaskState
    detail: str = ""
    operation: str = ""


@dataclass(frozen=True, slots=True)
class AgentTask:
    """A task for an agent program without a terminal, as its record says.

    Attributes:
        id: names its folder, ``.swarm/tasks/<id>``.
        state: see ``TaskState``.
        prompts: that of the submit, then one for each ``continue_``.
        program, command: the agent program; the argv where that is any command.
        place: where it works.
        session_id: of its folder, or of its session of agents; another task can name it to go on there.
        conversation: id by which its program can resume; chosen beforehand, or as the program said.
        model, role: of its agent; empty: as configured.
        agent: a label of the caller's: who does this task, such as the name of a served agent.
        by: who submitted it; of an agent its address, and in *generation* which run of its name.
        timeout: seconds that one turn may take.
        hold: it stays ``idle`` after each turn, until ``continue_`` or ``end``.
        tries: how often swarm starts a turn, at most, where the failure is one that may pass.
        repeatable: it may be done again from the start where its program keeps no conversation.
        preamble: a text that stands before the first prompt, such as a project's.
        created_ms, started_ms, ended_ms: milliseconds since 1970; 0: not yet.
        due_ms: it is not started again before.
        operation: of the run that is being started or runs; empty: none.
        operations: those whose gates are open.
        runs: its processes so far.
        receipts: which turns have which messages; of a run that is not over they may be missing.
        pane: where its conversation is, or goes; None: the task has it.
        output: the program's last answer, or what there was of it.
        exit_code: of the last run; None: it has none.
        usage: tokens.
        failure: why it failed; None: it did not.
        events: the number of its last event.
        last_event: the event itself, for a log that lacks it.
        box: how its program is boxed, as it was decided when the task was accepted; None: no box was wanted.
        workdir: the user's folder in which its program works; empty: one of its session.
        session_dir: the folder with the folder of its session; empty: swarm's own.
    """

    id: str
    state: TaskState
    prompts: tuple[str, ...]
    program: str
    session_id: str
    conversation: str
    created_ms: int
    command: tuple[str, ...] = ()
    place: Place = Place.SESSION
    model: str = ""
    role: str = ""
    agent: str = ""
    by: str = ""
    generation: str = ""
    timeout: float = 0.0
    hold: bool = False
    tries: int = 1
    repeatable: bool = False
    preamble: str = ""
    started_ms: int = 0
    ended_ms: int = 0
    due_ms: int = 0
    operation: str = ""
    operations: tuple[str, ...] = ()
    runs: tuple[TaskRun, ...] = ()
    receipts: tuple[TurnReceipt, ...] = ()
    pane: InPane | None = None
    output: str = ""
    exit_code: int | None = None
    usage: TokenUsage = _NOTHING_USED
    failure: TaskFailure | None = None
    events: int = 0
    last_event: TaskEvent | None = None
    box: Boxed | None = None
    workdir: str = ""
    session_dir: str = ""

    @property
    def shown(self) -> TaskState:
        """The state for outsiders, who know nothing of starts, interruptions and panes."""
        return _SHOWN.get(self.state, self.state)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in FINAL

    @property
    def is_boxed(self) -> bool:
        """Whether its program runs in a box."""
        return self.box is not None and not self.box.reason

    @property
    def turn(self) -> int:
        """The number of the prompt it is at, from 1."""
        return len(self.prompts)

    @property
    def run(self) -> TaskRun | None:
        """The run that is being started or runs; None: there is none."""
        return next((one for one in self.runs if one.operation == self.operation), None) if self.operation else None


class TaskOutput(NamedTuple):
    """What the program of a task wrote, raw.

    Attributes:
        run: which run.
        stdout, stderr: the bytes.
    """

    run: TaskRun
    stdout: bytes
    stderr: bytes


class TaskPage(NamedTuple):
    """A page of the history.

    Attributes:
        tasks: newest first.
        page: its number, from 1.
        limit: tasks on a page.
        total: tasks in the history.
    """

    tasks: tuple[AgentTask, ...]
    page: int
    limit: int
    total: int
