"""Requests about tasks: submit, continue, end and cancel, each checked before anything is written."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, TypedDict
from uuid import uuid4

from swarm.kit import redaction
from swarm.kit.errors import UsageProblem
from swarm.programs import registry
from swarm.project import names
from swarm.project.errors import Locked
from swarm.project.names import PROGRAMS
from swarm.tasks import flow, history, places
from swarm.tasks.bench import GRACE, PATIENCE
from swarm.tasks.errors import TaskBusy, TaskInPane, TaskNotIdle, TaskOver, TaskTaken
from swarm.tasks.folders import boxing, named, workspace
from swarm.tasks.held import messages, taking
from swarm.tasks.settle import finish, settle
from swarm.tasks.store import check_id
from swarm.tasks.values import AgentTask, Place, TaskMessage, TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.tasks.bench import Bench

_LONGEST_PROMPT = 1 << 20
_LONGEST_TIMEOUT = 7 * 86_400.0
_MOST_VARIABLES, _LONGEST_VALUE = 100, 1 << 15
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
#: Names of variables by which swarm and the loader are steered.
_OURS = re.compile(r"SWARM_|TMUX|LD_|DYLD_|GIT_|PYTHON", re.IGNORECASE)
_AFTER_GRACE, _LOOK_AGAIN = 1.0, 0.02


class TaskOptions(TypedDict, total=False):
    """The options of ``Swarm.tasks.submit``.

    Attributes:
        program: an agent program by its name; default: the role's, else the setting.
        command: any command instead, as words or as one text with quotes; it reads the prompt.
        model: for the program; default: the role's, else the program's own.
        role: whose instructions, rules and limits its program has.
        sandbox: whether its program runs in a box; default: as the role and the setting ``sandbox.enabled`` say.
        session_id: a folder of an earlier task, whose conversation goes on, or the name of a new one.
        workdir: a folder of yours in which it works: one of the setting ``tasks.workdirs``, or below one.
        session_dir: where the folders of its sessions are; only people can say that.
        worktree: it works in a worktree of its own, as an ordinary session of one agent.
        timeout: seconds that one turn may take; default: the setting ``tasks.timeout``.
        hold: it stays idle after each turn until ``continue_`` or ``end``.
        tries: how often a turn is started at most; default: the setting ``tasks.tries``.
        repeatable: it may be done again from the start where its program keeps no conversation.
        env: variables for the program; none whose name looks like a secret's.
        preamble: a text that stands before the prompt.
        task_id: of your choice; submitting twice under one id makes one task.
        agent: a label: who does the task.
        alone: refuse while that agent has another unfinished task.
    """

    program: str | None
    command: str | Sequence[str]
    model: str
    role: str
    sandbox: bool | None
    session_id: str | None
    workdir: str | None
    session_dir: str
    worktree: bool
    timeout: float | None
    hold: bool
    tries: int | None
    repeatable: bool
    env: Mapping[str, str]
    preamble: str
    task_id: str
    agent: str
    alone: bool


def new_task_id() -> str:
    """Return an id; ids sort by time."""
    return f"task-{time.time_ns() // 1_000_000:x}{os.urandom(3).hex()}"


def plan(bench: Bench, prompt: str, options: TaskOptions, by: tuple[str, str]) -> AgentTask:
    """Return the task that is asked for; nothing is written.

    Args:
        by: who asks, and of an agent which run of its name.

    Raises:
        UsageProblem, ProgramMissing, RoleNotFound: it cannot be done so.
    """
    task_id = check_id(options.get("task_id") or new_task_id())
    settings = bench.world.settings
    role = options.get("role") or ""
    found = bench.role(role)  # one that is not there is refused here
    program, command = _program(options, found.options.agent_type or settings.agents.program)
    _check_program(bench, program, command)
    worktree = options.get("worktree", False)
    session_id = _session_id(options.get("session_id"), task_id, worktree=worktree)
    workdir = named.workdir(bench.world, options.get("workdir") or "")
    session_dir = named.session_dir(bench.world, options.get("session_dir") or "")
    if worktree:
        _check_worktree(role, workdir or session_dir)
    there = None if worktree else workspace.where(bench.world.layout, session_id, session_dir, workdir)
    if there is not None:
        workdir = _goes_on(there, workdir, session_id)
    known = there.conversation(program) if there is not None else ""
    return AgentTask(
        id=task_id,
        state=TaskState.QUEUED,
        prompts=(check_prompt(prompt),),
        program=program,
        command=command,
        session_id=session_id,
        conversation=known or str(uuid4()),
        created_ms=time.time_ns() // 1_000_000,
        place=Place.WORKTREE if worktree else Place.SESSION,
        model=_text("model", options.get("model") or ""),
        role=role,
        box=boxing.decide(bench, options.get("sandbox"), found, there),
        workdir=workdir,
        session_dir=session_dir,
        agent=check_id(options["agent"], "agent name") if options.get("agent") else "",
        by=by[0],
        generation=by[1],
        timeout=_number("timeout", options.get("timeout"), settings.tasks.timeout, _LONGEST_TIMEOUT),
        hold=options.get("hold", False) is True,
        tries=int(_number("tries", options.get("tries"), settings.tasks.tries, 20)),
        repeatable=options.get("repeatable", False) is True,
        preamble=_text("preamble", options.get("preamble") or "", _LONGEST_PROMPT),
    )


def _check_worktree(role: str, elsewhere: str) -> None:
    """Refuse a task in a worktree that lacks what one needs, or names another folder."""
    if not role:
        raise UsageProblem("a task in a worktree needs a role", hint="for example: --role developer")
    if elsewhere:
        raise UsageProblem("a task in a worktree works in no other folder", hint="leave workdir and session_dir out")


def _goes_on(there: workspace.Where, workdir: str, session_id: str) -> str:
    """Return the folder in which a session works; one that is there goes on where it was."""
    known = there.known()
    before = str(known.get("workdir", ""))
    if known and workdir and workdir != before:
        raise UsageProblem(
            f"cannot go on in {workdir}: session {session_id} works in {before or 'a folder of its own'}",
            hint="name another session, or no workdir",
        )
    return before if known else workdir


def check_prompt(prompt: object) -> str:
    """Return a prompt that can be given to a program.

    Raises:
        UsageProblem
    """
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageProblem("prompt is required", hint='for example: swarm task "Review the last commit"')
    return _text("prompt", prompt, _LONGEST_PROMPT)


def _text(what: str, text: object, longest: int = 200) -> str:
    if not isinstance(text, str) or "\0" in text:
        raise UsageProblem(f"{what} must be text")
    if len(text.encode("utf-8", "surrogatepass")) > longest:
        raise UsageProblem(f"{what} is too long: at most {longest} bytes are allowed")
    if longest <= 200 and not text.isprintable():
        raise UsageProblem(f"{what} must be one printable line")
    return text


def _number(what: str, value: object, default: float, most: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        raise UsageProblem(f"{what} must be a number above 0, and at most {most:g}")
    return float(value)


def _program(options: TaskOptions, default: str) -> tuple[str, tuple[str, ...]]:
    command = options.get("command") or ()
    argv = registry.read_command(command) if isinstance(command, str) else tuple(command)
    if argv and options.get("program"):
        raise UsageProblem("both a program and a command are given", hint="give one of them")
    return (registry.COMMAND, argv) if argv else (options.get("program") or default, ())


def _check_program(bench: Bench, name: str, command: tuple[str, ...]) -> None:
    """Refuse a program that cannot do a task, or is not installed."""
    if not registry.program(name, command).turns:
        able = ", ".join(one for one in PROGRAMS if registry.program(one).turns)
        raise UsageProblem(f"cannot give a task to {name}: it needs a terminal", hint=f"use one of {able}")
    registry.find(name, command, bench.world.environ)


def _session_id(given: object, task_id: str, *, worktree: bool) -> str:
    if given is None or given == "":
        return task_id[: names.MAX_LENGTH] if worktree else f"session-{task_id.removeprefix('task-')}"[:64]
    if worktree:
        raise UsageProblem("a task in a worktree has a session of its own", hint="leave the session out")
    return check_id(given, "session id")


def check_environment(env: object) -> dict[str, str]:
    """Return the caller's variables for a program.

    Raises:
        UsageProblem: one looks like a secret, or steers more than the program.
    """
    if not isinstance(env, dict) or len(env) > _MOST_VARIABLES:
        raise UsageProblem(f"env must be a mapping of at most {_MOST_VARIABLES} variables")
    for name, value in env.items():
        if not isinstance(name, str) or not name.isascii() or _VARIABLE.fullmatch(name) is None:
            raise UsageProblem(f"env: {ascii(name)[:60]} cannot name a variable")
        if redaction.names_secret(name):
            raise UsageProblem(
                f"env: {name} looks like a secret, and secrets do not travel with tasks",
                hint="put it into the environment of the process that starts the tasks",
            )
        if _OURS.match(name):
            raise UsageProblem(f"env: {name} cannot be set for a task")
        if not isinstance(value, str) or "\0" in value or len(value) > _LONGEST_VALUE:
            raise UsageProblem(f"env: the value of {name} must be text of at most {_LONGEST_VALUE} characters")
    return dict(env)


def accept(bench: Bench, task: AgentTask, env: dict[str, str], *, alone: bool) -> AgentTask:
    """Write a planned task down; from then on no crash loses it.

    Raises:
        TaskTaken: another task has this id.
        TaskBusy: its session, or its agent, has another unfinished task.
    """
    with bench.store.accepting(PATIENCE):
        there = bench.store.find(task.id)
        if there is not None:
            if _is_same(there, task):
                return there
            raise TaskTaken(f"cannot submit {task.id}: another task has this id")
        for other in bench.store.unfinished():
            if _same_session(other, task):
                raise TaskBusy(f"session {task.session_id} is in use by {other.id}", current_task=other.id)
            if task.workdir and other.workdir and named.overlap(task.workdir, other.workdir):
                raise TaskBusy(f"{task.workdir} is in use by {other.id}", current_task=other.id)
            if alone and task.agent and other.agent == task.agent:
                raise TaskBusy(f"agent {task.agent} is busy with {other.id}", current_task=other.id)
        if task.place is Place.SESSION:
            workspace.claim(bench.world.layout, task)
        return bench.store.add(task, env)


def _same_session(one: AgentTask, other: AgentTask) -> bool:
    names = ("session_id", "place", "session_dir")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _is_same(there: AgentTask, task: AgentTask) -> bool:
    """Whether a task was submitted before: what the caller asked for is the same."""
    asked = ("program", "command", "model", "role", "place", "agent", "hold", "preamble", "workdir")
    if (there.box is None) != (task.box is None):
        return False
    return there.prompts[0] == task.prompts[0] and all(getattr(there, one) == getattr(task, one) for one in asked)


def go_on(bench: Bench, task_id: str, prompt: str) -> AgentTask:
    """Give a held task its next prompt, and start that.

    Raises:
        TaskOver, TaskNotIdle
    """
    text = check_prompt(prompt)
    with bench.store.acting(PATIENCE):
        task = _idle(bench, task_id, "continue")
        task = bench.store.change(task, TaskState.QUEUED, "continued", prompts=(*task.prompts, text))
    return flow.settle_one(bench, task.id)


def message(bench: Bench, task_id: str, text: str, message_id: str, by: str) -> TaskMessage:
    """Send a held task a message: into the turn that it is at, or as its next prompt.

    Raises:
        TaskOver, TaskNotHeld, TaskTaken
    """
    said = check_prompt(text)
    with bench.store.acting(PATIENCE):
        task = settle(bench, bench.store.get(task_id))
        if not any(one.id == message_id for one in messages.all_of(bench.store, task)):
            _refuse_over(task, "send a message to")
            _refuse_in_pane(task, "send a message to")
        sent = messages.put(bench, task, said, message_id, by)
        more = messages.as_prompt(bench, task) if task.state is TaskState.IDLE else None
        if more is not None:
            bench.store.change(task, TaskState.QUEUED, "continued", "with a message", **more)
    task = flow.settle_one(bench, task_id)
    return next(one for one in messages.all_of(bench.store, task) if one.id == sent.id)


def end(bench: Bench, task_id: str) -> AgentTask:
    """Complete a held task.

    Raises:
        TaskOver, TaskNotIdle
    """
    with bench.store.acting(PATIENCE):
        done = finish(bench, _idle(bench, task_id, "end"), TaskState.COMPLETED)
        history.prune(bench)
        return done


def _idle(bench: Bench, task_id: str, verb: str) -> AgentTask:
    task = settle(bench, bench.store.get(task_id))
    _refuse_over(task, verb)
    _refuse_in_pane(task, verb)
    if task.state is not TaskState.IDLE:
        raise TaskNotIdle(f"cannot {verb} {task_id}: it is {task.shown}", state=str(task.shown))
    return task


def _refuse_in_pane(task: AgentTask, verb: str) -> None:
    if task.pane is not None:
        where = f"its conversation is in the pane of {task.pane.address}"
        raise TaskInPane(f"cannot {verb} {task.id}: {where}", hint=f"give it back: swarm task give-back {task.id}")


def _refuse_over(task: AgentTask, verb: str) -> None:
    if task.is_over:
        raise TaskOver(f"cannot {verb} {task.id}: it is {task.state}", final_state=str(task.state))


def cancel(bench: Bench, task_id: str, *, wait: bool) -> AgentTask:
    """End a task and everything that its program started, within ``GRACE``; asked twice, at once.

    Args:
        wait: return when it is over; else as soon as it is ordered.

    Raises:
        TaskOver
    """
    _await_start(bench, task_id)
    if bench.store.get(task_id).state is TaskState.TAKEN:
        taking.give_back(bench, task_id)
    with bench.store.acting(PATIENCE):
        task = settle(bench, bench.store.get(task_id))
        _refuse_over(task, "cancel")
        _refuse_in_pane(task, "cancel")
        if task.state in (TaskState.QUEUED, TaskState.IDLE, TaskState.INTERRUPTED):
            done = finish(bench, task, TaskState.CANCELLED)
            history.prune(bench)
            return done
        if task.state is TaskState.WORKING:
            task = bench.store.change(task, TaskState.CANCELLING, "cancelling")
        if task.run is not None:
            places.ask_to_end(task.run)
    return _await_end(bench, task) if wait else task


def _await_start(bench: Bench, task_id: str) -> None:
    """Wait while a process starts the task: a worktree may take its time, and is made whole or not at all."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        task = bench.store.get(task_id)
        if task.state is not TaskState.STARTING or not places.is_supervised(places.run_of(task)):
            return
        time.sleep(_LOOK_AGAIN)
    raise Locked(f"cannot cancel {task_id}: it is being started for longer than {PATIENCE:g} s")


def _await_end(bench: Bench, task: AgentTask) -> AgentTask:
    run = task.run
    deadline = time.monotonic() + GRACE + _AFTER_GRACE
    while run is not None and places.is_supervised(run) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)
    return flow.settle_one(bench, task.id)
