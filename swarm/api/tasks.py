"""The namespace ``swarm.tasks``: work for agent programs without a terminal, which no crash loses."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Unpack

    from swarm.approvals.values import Answer, Approval
    from swarm.programs.reading.transcript import TranscriptEntry
    from swarm.project.model import Parent
    from swarm.tasks.bench import Bench
    from swarm.tasks.requests import TaskOptions
    from swarm.tasks.values import AgentTask, TaskEvent, TaskMessage, TaskOutput, TaskPage, TaskState

#: How often a wait looks: soon at first, as many tasks are short.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
#: So long a submit waits for its turn to start the task; then whoever looks next does.
_TURN = 5.0


class Tasks(Door):
    """Tasks for agent programs without a terminal. Call it for those that are not over.

    A task is in a folder of its own from the moment in which ``submit`` returns. Its program runs under a supervisor,
    not under this process: when this one ends, the task goes on, and the next process that looks finds it again.
    """

    def __call__(self) -> tuple[AgentTask, ...]:
        """Return the tasks that are not over, oldest first."""
        return self.list()

    def submit(self, prompt: str, **options: Unpack[TaskOptions]) -> AgentTask:
        """Accept a task and start it, if not too many run already.

        Args:
            prompt: what is to be done.
            options: see ``TaskOptions``.

        Raises:
            UsageProblem, ProgramMissing, RoleNotFound: it cannot be done so; nothing was written.
            TaskTaken: another task has the id.
            TaskBusy: the session, or the agent, has another unfinished task.

        Example:
            >>> task = swarm.tasks.submit("Review the last commit", program="demo")  # doctest: +SKIP
            >>> swarm.tasks.wait(task.id).output                                       # doctest: +SKIP
        """
        from swarm.tasks import flow, requests

        bench = self._bench()
        with files.os_errors("cannot submit the task"):
            env = requests.check_environment(dict(options.get("env") or {}))
            task = requests.plan(bench, prompt, options, self._by())
            self._ready_for("task")
            made = requests.accept(bench, task, env, alone=options.get("alone", False))
            flow.advance(bench, wait=_TURN)
            return bench.store.get(made.id)

    def get(self, task_id: str) -> AgentTask:
        """Return a task as it is now.

        Raises:
            TaskNotFound
        """
        from swarm.tasks import flow

        with files.os_errors(f"cannot look at task {task_id}"):
            return flow.settle_one(self._bench(), task_id)

    def list(
        self, *, finished: bool = False, states: Sequence[TaskState | str] = (), agent: str = ""
    ) -> tuple[AgentTask, ...]:
        """Return tasks, oldest first: those that are not over.

        Args:
            finished: also those that are over.
            states: only those in these states, finished ones too.
            agent: only those with this label.
        """
        from swarm.tasks import flow

        bench = self._bench()
        with files.os_errors("cannot list the tasks"):
            flow.advance(bench)
            found = bench.store.scan()[0] if finished or states else bench.store.unfinished()
        wanted = {str(state) for state in states}
        return tuple(one for one in found if (not wanted or one.state in wanted) and (not agent or one.agent == agent))

    def continue_(self, task_id: str, prompt: str) -> AgentTask:
        """Give a held task its next prompt; its program takes up the conversation.

        Raises:
            TaskNotFound
            TaskOver, TaskNotIdle: it does not wait for one.
        """
        from swarm.tasks import requests

        with files.os_errors(f"cannot continue task {task_id}"):
            return requests.go_on(self._changing_task("tasks.continue_", task_id), task_id, prompt)

    def message(self, task_id: str, text: str, *, message_id: str = "") -> TaskMessage:
        """Send a held task a message, and return its receipt, which ``messages`` brings up to date.

        A program that can be told things while it works has it in its present turn; otherwise the message is the next
        prompt, as it is where the task is idle. From the return on no crash loses it, and the program gets it once.

        Args:
            message_id: of your choice; sending twice under one id sends one message.

        Raises:
            TaskNotFound
            TaskOver, TaskNotHeld: it takes none.
            TaskTaken: another message has the id.
        """
        from swarm.tasks import requests

        with files.os_errors(f"cannot send a message to task {task_id}"):
            bench = self._changing_task("tasks.message", task_id)
            return requests.message(bench, task_id, text, message_id, self._by()[0])

    def messages(self, task_id: str) -> tuple[TaskMessage, ...]:
        """Return the messages to a task, oldest first, each with where it stands.

        Raises:
            TaskNotFound
        """
        from swarm.tasks.held import messages

        with files.os_errors(f"cannot read the messages to task {task_id}"):
            return messages.all_of(self._bench().store, self.get(task_id))

    def take(self, task_id: str, timeout: float | None = None) -> AgentTask:
        """Move the conversation of a held task into a pane, once its turn is over: an agent goes on in it there.

        The agent is ``pane.address`` of the task; nobody else starts a program in that conversation until
        ``give_back``. A crash leaves it with the task or with the pane, never with both.

        Args:
            timeout: seconds to wait for the end of its turn; None waits as long as it takes.

        Raises:
            TaskNotFound
            TaskOver, TaskNotHeld, TaskInPane: it cannot be taken over.
            WaitOver: the time was up first.
        """
        from swarm.tasks.errors import TaskNotIdle
        from swarm.tasks.held import taking

        with files.os_errors(f"cannot take task {task_id}"):
            bench = self._changing_task("tasks.take", task_id)
            taking.check(bench, self.get(task_id))
            while True:
                try:
                    return taking.take(bench, self.wait(task_id, timeout))
                except TaskNotIdle:  # another turn began in between
                    continue

    def give_back(self, task_id: str) -> AgentTask:
        """End the program in the pane of a task that was taken over, close the pane, and hold the task again.

        Raises:
            TaskNotFound
            TaskOver, TaskNotTaken: it is in no pane.
            NotReturned: the program would not end, and keeps the conversation.
        """
        from swarm.tasks.held import taking

        with files.os_errors(f"cannot give back task {task_id}"):
            return taking.give_back(self._changing_task("tasks.give_back", task_id), task_id)

    def ask(self, task_id: str, file: str) -> Answer | None:
        """Have a request of a task's program answered; its supervisor calls this.

        Args:
            file: with the request; the answer is put beside it.

        Raises:
            TaskNotFound
        """
        from swarm.api.approvals import parent_waits, reviewer_of
        from swarm.tasks.held import asking
        from swarm.tasks.held.asking import is_of_supervisor

        with files.os_errors(f"cannot ask for task {task_id}"):
            bench = self._bench()
            task = bench.store.get(task_id)
            if not is_of_supervisor(task):
                self._changing_task("tasks.ask", task_id)
            return asking.ask(bench, task, file, partial(reviewer_of, self._world), parent_waits())

    def end(self, task_id: str) -> AgentTask:
        """Complete a held task; its conversation can be taken up by a later task of its session.

        Raises:
            TaskNotFound
            TaskOver, TaskNotIdle: it is over, or works.
        """
        from swarm.tasks import requests

        with files.os_errors(f"cannot end task {task_id}"):
            return requests.end(self._changing_task("tasks.end", task_id), task_id)

    def cancel(self, task_id: str, *, wait: bool = True) -> AgentTask:
        """End a task and everything that its program started; this takes ten seconds at most.

        Args:
            wait: return when it is over; else at once, with the state ``cancelling``.

        Raises:
            TaskNotFound
            TaskOver: it is over.
        """
        from swarm.tasks import requests

        with files.os_errors(f"cannot cancel task {task_id}"):
            return requests.cancel(self._changing_task("tasks.cancel", task_id), task_id, wait=wait)

    def events(self, task_id: str, *, after: int = 0) -> tuple[TaskEvent, ...]:
        """Return the events of a task behind a number; they are numbered from 1, without a gap.

        Raises:
            TaskNotFound
        """
        bench = self._bench()
        with files.os_errors(f"cannot read the events of task {task_id}"):
            return tuple(one for one in bench.store.events(self.get(task_id)) if one.number > after)

    def history(self, page: int = 1, limit: int = 20) -> TaskPage:
        """Return a page of the finished tasks, newest first.

        Args:
            limit: tasks on a page, from 1 to 100.

        Raises:
            UsageProblem: there can be no such page.
        """
        from swarm.tasks import flow, history

        bench = self._bench()
        with files.os_errors("cannot read the history of the tasks"):
            flow.advance(bench)
            flow.tidy(bench)
            return history.page(bench.store, page, limit)

    def output(self, task_id: str) -> tuple[TaskOutput, ...]:
        """Return what the program wrote in each run, raw, oldest first; of long output the end.

        Raises:
            TaskNotFound
        """
        from swarm.tasks import history

        bench = self._bench()
        with files.os_errors(f"cannot read the output of task {task_id}"):
            return history.outputs(bench.store, bench.store.get(task_id))

    def follow(self, task_id: str, *, all_of_it: bool = True) -> Iterator[TaskEvent | TranscriptEntry | Approval]:
        """Yield what happens to a task until it is over: its events, its conversation, and its requests as they come.

        Requests come again when they are over. Meanwhile tasks that are due are started, as by every look.

        Args:
            all_of_it: begin with what was there before; else with what comes now.

        Raises:
            TaskNotFound
        """
        from swarm.tasks.held.following import Following

        bench = self._bench()
        with files.os_errors(f"cannot follow task {task_id}"):
            task = self.get(task_id)
            following = Following(bench, task, all_of_it=all_of_it)
            try:
                while True:
                    yield from following.more(task)
                    if task.is_over:
                        return
                    following.wait()
                    task = self.get(task_id)
            finally:
                following.close()

    def show(self, task_id: str) -> str:
        """Open a pane that follows a task, or show the one that does; return its id.

        Raises:
            TaskNotFound
            TmuxMissing, TerminalProblem: there is no pane.
        """
        from swarm.tasks.held import pane

        with files.os_errors(f"cannot open a pane for task {task_id}"):
            bench = self._bench()
            return pane.follow(bench, bench.store.get(task_id))

    def wait(self, task_id: str, timeout: float | None = None) -> AgentTask:
        """Wait until a task is over, or idle because it is held; meanwhile start what is due.

        Args:
            timeout: seconds; None waits as long as it takes.

        Raises:
            TaskNotFound
            WaitOver: the time was up first.
        """
        from swarm.sessions.errors import WaitOver
        from swarm.tasks.values import TaskState

        deadline = None if timeout is None else time.monotonic() + timeout
        pause = _FIRST_PAUSE
        while True:
            task = self.get(task_id)
            if task.is_over or task.state is TaskState.IDLE:
                return task
            left = _LONGEST_PAUSE if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitOver(f"task {task_id} is {task.shown} still after {timeout:g} s")
            time.sleep(min(pause, left))
            pause = min(_LONGEST_PAUSE, pause * 1.3)

    def advance(self, *, dispatch: bool = True) -> float:
        """Settle what is over and start what is due: what every look does, for a server between two looks.

        Args:
            dispatch: start tasks; else only settle.

        Returns:
            In how many seconds the next queued task is due.
        """
        from swarm.tasks import flow

        bench = self._bench()
        with files.os_errors("cannot look at the tasks"):
            flow.advance(bench, dispatch=dispatch)
            return flow.next_due(bench)

    # --- what the verbs share -------------------------------------------------------------------

    def _bench(self) -> Bench:
        from swarm.tasks.bench import Bench
        from swarm.tasks.store import Store

        store = Store(self._world.layout)
        return Bench(self._world, store, lambda name: self._role_in(None, name), self._changing, self._may_start)

    def _may_start(self, task: AgentTask) -> bool:
        """Whether this process may start a task: of an agent its own ones alone, as they get its environment."""
        from swarm.callers import rights

        who = rights.caller(self._world)
        return who is None or _is_of(task, who.me)

    def _by(self) -> tuple[str, str]:
        """Return who calls, and of an agent which run of its name."""
        from swarm.callers import caller, parents

        me = parents.starter(self._world)
        return (me.address, me.generation) if me is not None else (caller.actor(self._world), "")

    def _changing_task(self, verb: str, task_id: str) -> Bench:
        """Return what acting on a task needs, if the caller may act on it.

        Raises:
            NotForAgents: it is an agent, and did not submit the task.
        """
        from swarm.callers import rights
        from swarm.callers.errors import NotForAgents

        bench = self._bench()
        task = bench.store.get(task_id)
        who = rights.caller(self._world)
        if who is not None and not _is_of(task, who.me):
            doing = verb.partition(".")[2].rstrip("_").replace("_", " ")
            raise NotForAgents(f"cannot {doing} {task_id}: you are agent {who.address}, and did not submit it")
        return bench


def _is_of(task: AgentTask, me: Parent | None) -> bool:
    """Whether an agent submitted a task; None is one that the machine does not show."""
    return me is not None and (me.address, me.generation) == (task.by, task.generation)
