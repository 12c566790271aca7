"""Verbs on agents in panes: start, stop, resume."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from swarm.kit import files
from swarm.kit.errors import SwarmError, UsageProblem, raise_all
from swarm.project import names
from swarm.sessions.errors import SessionExists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm.agents.launching.launch_request import LaunchRequest
    from swarm.api.swarm import Swarm
    from swarm.api.team import Team
    from swarm.project.model import Agent, Session
    from swarm.sessions.reports import CreateReport, ResumeReport, Skipped, StopReport

from swarm.api.looking import Looking
from swarm.api.sets import options_of


class Agents(Looking):
    """Verbs about the programs that run in the worktrees."""

    def start(  # noqa: PLR0913  # what a start may say
        self,
        session: str | None,
        roles: str | Sequence[str | names.AgentSpec],
        *,
        base: str | None = None,
        task: str = "",
        tasks: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
        program: str | None = None,
        command: str | Sequence[str] = (),
        print_mode: bool = False,
        sandbox: bool | None = None,
        beside: str = "",
        setup: bool = True,
        dry_run: bool = False,
    ) -> Team:
        """Make the set of worktrees and start one agent in each, in its own tmux pane: all or nothing.

        The team that comes back is the report, and ``team["developer"]`` a handle of that agent.

        Args:
            session: None makes a name from the task.
            roles, base: as for ``create``.
            task: the prompt for every agent.
            tasks: the own task of one agent, by its name, or of all agents of a role, by the role.
            overrides: keys of the roles with other values, such as ``{"model": "opus"}``; ``developer:model`` is for
                one agent or role alone.
            program: an agent program by its name, such as ``demo``; default: the role's, else the setting's.
            command: any command instead, as words or as one text with quotes.
            print_mode: each does the task without a dialog, and ends; without it as the roles say.
            sandbox: whether each runs in a box; None: as the roles and the settings say.
            beside: an agent, ``name`` or ``name@session``: its window gets the panes, as for workers
                beside their lead, instead of in windows of their own.
            setup: as for ``create``.
            dry_run: only return the plan.

        Raises:
            SwarmError: nothing was made and nothing runs; ``Refused`` holds several problems at once.
        """
        wish = self._wish(*(task, tasks, overrides, program, command, beside), print_mode=print_mode, sandbox=sandbox)
        named_after = task.strip() or next(iter((tasks or {}).values()), "")
        if session is None and not named_after:
            raise UsageProblem("cannot name the session: it has no task", hint="name the session, or give a task")
        return self._start_as(session, named_after, roles, base, wish, setup=setup, dry_run=dry_run)

    def _wish(
        self,
        task: str,
        tasks: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
        program: str | None = None,
        command: str | Sequence[str] = (),
        beside: str = "",
        *,
        print_mode: bool = False,
        workflow: str = "",
        sandbox: bool | None = None,
    ) -> LaunchRequest:
        """Return the program to start, and its input."""
        from swarm.agents.launching.launch_request import LaunchRequest
        from swarm.programs.registry import COMMAND, read_command

        argv = read_command(command) if isinstance(command, str) and command else tuple(command)
        chosen = COMMAND if argv else program or self._world.settings.agents.program
        at = self._address_of_pane(beside)
        told, changed = tuple((tasks or {}).items()), tuple((overrides or {}).items())
        pod = self._pod_around()
        made = LaunchRequest(chosen, argv, task, workflow, at, bool(argv or program), print_mode, told, changed, pod)
        return replace(made, sandbox=sandbox)

    def _pod_around(self) -> str:
        """Return the pod of the caller, which those that it starts belong to as well."""
        from swarm.roles.pods.template import check_pod

        name = self._world.environ.get("SWARM_POD", "")
        try:
            return check_pod(name) if name else ""
        except ValueError as error:
            raise UsageProblem(f"SWARM_POD={name[:60]!a} {error}", hint="unset SWARM_POD, or correct it") from None

    def _start_as(
        self,
        session: str | None,
        named_after: str,
        roles: str | Sequence[str | names.AgentSpec],
        base: str | None,
        wish: LaunchRequest,
        *,
        setup: bool,
        dry_run: bool,
    ) -> Team:
        """Start under a name, or where there is none under a fresh one made from a text."""
        from swarm.agents import tasks

        if session is not None:
            return self._start(names.check_new_session(session), roles, base, wish, setup=setup, dry_run=dry_run)
        while True:
            fresh = tasks.session_name(named_after, self._world.sessions.names())
            try:
                return self._start(fresh, roles, base, wish, setup=setup, dry_run=dry_run)
            except SessionExists:  # another process took it at the same moment
                continue

    def _start(
        self,
        name: str,
        roles: str | Sequence[str | names.AgentSpec],
        base: str | None,
        wish: LaunchRequest,
        *,
        setup: bool,
        dry_run: bool,
    ) -> Team:
        from swarm.agents import tasks
        from swarm.sessions.create import create, create_request

        specs = names.expand_roles(roles)
        texts, problems = self._role_texts(specs, name, wanted=True, pod=bool(wish.pod))
        try:
            wish = replace(wish, tasks=tuple(tasks.assign(specs, dict(wish.tasks)).items()))
        except UsageProblem as problem:
            problems.append(problem)
        if wish.overrides:
            from swarm.agents.launching import launch_request

            try:
                wish, texts = launch_request.overridden(self._world, specs, texts, wish)
            except SwarmError as problem:
                problems += getattr(problem, "problems", (problem,))
        start, checkout = self._start_of(base)
        request = create_request.Request(
            name, specs, texts, start, wish, options_of(texts) if setup else None, checkout
        )
        with self._making(f"cannot start session {name}"):
            plan = self._preflight(request, problems, dry_run=dry_run)
            if plan is not None and dry_run:
                return self._team(replace(plan.report, dry_run=True))
            with self._changing(f"start {name}"):
                return self._team(create.create(self._world, request, plan and plan.facts))

    def team(self, session: str) -> Team:
        """Return the agents of an existing session, as ``start`` returned them. Never writes, never waits.

        Raises:
            SessionNotFound
        """
        from swarm.sessions.create import create

        return self._team(create.report_of(self._world, self._session(session)))

    def _team(self, report: CreateReport) -> Team:
        from swarm.api.team import Team

        return Team.of(cast("Swarm", self), report)

    def _address_of_pane(self, agent: str) -> str:
        """Return an agent's full address; it must have a pane."""
        from swarm.agents import running

        if not agent:
            return ""
        name, _, session = agent.partition("@")
        found, one = self._find(name, session or None)
        running.pane_of(self._world, found, one)
        return f"{one.name}@{found.name}"

    def start_workflow(  # noqa: PLR0913  # what a start may say
        self,
        kind: str,
        goal: str,
        *,
        session: str | None = None,
        base: str | None = None,
        tasks: Mapping[str, str] | None = None,
        overrides: Mapping[str, object] | None = None,
        program: str | None = None,
        command: str | Sequence[str] = (),
        print_mode: bool = False,
        sandbox: bool | None = None,
        beside: str = "",
        setup: bool = True,
        dry_run: bool = False,
    ) -> Team:
        """Start the agents that a kind of work takes, under one session, with the goal handed over.

        Args:
            kind: name of a workflow, such as ``research``, ``implement``, ``review``, ``full``.
            session: default: a fresh name made from the goal.
            base, tasks, overrides, program, command, print_mode, sandbox, beside, setup, dry_run: as for ``start``.
        """
        from swarm.api.workflows import Workflows

        workflow = Workflows(self._opened).get(kind)
        wish = self._wish(
            workflow.tell(goal),
            tasks,
            overrides,
            program=program,
            command=command,
            beside=beside,
            print_mode=print_mode,
            workflow=workflow.name,
            sandbox=sandbox,
        )
        return self._start_as(session, goal, list(workflow.roles), base, wish, setup=setup, dry_run=dry_run)

    def stop(self, sessions: Sequence[str] = (), *, everything: bool = False, agent: str = "") -> StopReport:
        """End the programs of agents, each with everything it started; worktrees and panes stay.

        Args:
            sessions: sessions or agents; or *everything*.
            agent: only this one, of the one session named or of the only session that has it.
        """
        from swarm.agents import running, view
        from swarm.sessions.reports import StopReport

        # Refused, not there, or nothing at all: told without waiting, and without making a folder for it.
        if not self._choose("stop", sessions, everything=everything, agent=agent) and self._is_bare():
            return StopReport(())
        survivors: list[str] = []
        stopped: list[tuple[str, str]] = []
        with files.os_errors("cannot stop the agents"), self._changing("stop"):
            # Read again below the lock: a session may have been started or changed while this waited.
            for session, group in self._choose("stop", sessions, everything=everything, agent=agent):
                live = set(view.live_agents(self._world, session))
                stopped += [(session.name, one.name) for one in group if one in live]
                survivors += running.stop(self._world, session, group)
        return StopReport(tuple(stopped), tuple(survivors))

    def resume(self, sessions: Sequence[str] = (), *, everything: bool = False, agent: str = "") -> ResumeReport:
        """Restart stopped agents: same worktrees, same panes, and where the program can, same conversation.

        Agents that did their task in print mode are left alone.
        """
        from swarm.sessions.reports import ResumeReport

        if not self._choose("resume", sessions, everything=everything, agent=agent) and self._is_bare():
            return ResumeReport((), ())
        with files.os_errors("cannot resume the agents"), self._changing("resume"):
            # Read again below the lock: a record read before could bring back an agent removed since.
            return self._resume(self._choose("resume", sessions, everything=everything, agent=agent))

    def _resume(self, chosen: Sequence[tuple[Session, tuple[Agent, ...]]], *, anew: bool = False) -> ResumeReport:
        from swarm.agents.budgets import limits
        from swarm.sessions import resume
        from swarm.sessions.reports import ResumeReport, Skipped

        started: list[tuple[str, str]] = []
        running: list[tuple[str, str]] = []
        skipped: list[Skipped] = []
        done: list[tuple[str, str]] = []
        for session, group in chosen:
            role = partial(self._role_in, session)
            with_program = [one for one in group if one.program]
            try:
                finished = () if anew else resume.finished(self._world, session, with_program, role)
                with_program = [one for one in with_program if one not in finished]
                over = limits.spent(self._world, session, with_program, role)
                with_program = [one for one in with_program if one not in over]
                if over and not with_program and len(chosen) == 1:
                    raise_all(f"cannot resume session {session.name}", over.values())
                skipped += [_left_out(f"{one.name}@{session.name}", problem) for one, problem in over.items()]
                self._refuse_where_tasks_talk(session, with_program)
                names_started = resume.resume(self._world, session, with_program, role, anew=anew)
            except SwarmError as problem:
                if len(chosen) == 1:
                    raise
                skipped.append(Skipped(session.name, problem.message, problem.code))
                continue
            started += [(session.name, name) for name in names_started]
            running += [(session.name, a.name) for a in with_program if a.name not in names_started]
            done += [(session.name, one.name) for one in finished]
        return ResumeReport(tuple(started), tuple(running), tuple(skipped), tuple(done))

    def restart(self, agent: str, session: str | None = None) -> ResumeReport:
        """Stop one agent if it runs, and start it again; one in print mode does its task anew.

        It does not stop an agent that it cannot start again.
        """
        from swarm.agents import running
        from swarm.agents.budgets import limits
        from swarm.sessions import resume

        self._choose("restart", (session,) if session else (), everything=False, agent=agent)
        with files.os_errors(f"cannot restart {agent}"), self._changing(f"restart {agent}"):
            found, one = self._find(agent, session)
            self._refuse_strangers("restart", found, one)
            if one.program:
                role = partial(self._role_in, found)
                over = limits.spent(self._world, found, (one,), role)
                raise_all(f"cannot restart {one.name}@{found.name}", over.values())
                resume.refuse_start(self._world, found, (one,), role)
                self._refuse_where_tasks_talk(found, (one,))
            survivors = running.stop(self._world, found, (one,))
            report = self._resume([(found, (one,))], anew=True)
        return replace(report, survivors=survivors)

    def _refuse_where_tasks_talk(self, session: Session, agents: Sequence[Agent]) -> None:
        """Refuse agents of which a task has the conversation: two programs would go on in it."""
        if not self._world.layout.tasks.is_dir():
            return
        from swarm.tasks.held import taking
        from swarm.tasks.store import Store

        taking.refuse_others(Store(self._world.layout), session.name, [one.name for one in agents])

    def _choose(
        self, verb: str, sessions: Sequence[str], *, everything: bool, agent: str
    ) -> list[tuple[Session, tuple[Agent, ...]]]:
        """Return the agents of which sessions are meant; refuse where the caller may not do that to them."""
        if agent:
            found, one = self._find(agent, sessions[0] if sessions else None)
            chosen: list[tuple[Session, tuple[Agent, ...]]] = [(found, (one,))]
        elif everything:
            chosen = [(session, session.agents) for session in self._sessions()]
        else:
            chosen = [(target.session, target.agents) for target in map(self._target, sessions)]
        for session, group in chosen:
            self._refuse_strangers(verb, session, *group)
        return chosen


def _left_out(name: str, problem: SwarmError) -> Skipped:
    from swarm.sessions.reports import Skipped

    return Skipped(name, f"{problem.message.removeprefix(f'{name} is ')}; {problem.hint}", problem.code)
