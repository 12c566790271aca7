"""The verb ``run``: one agent, or any command, by the same way as ``start``."""

from __future__ import annotations

import contextlib
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypedDict, cast
from uuid import uuid4

from swarm.api.agents import Agents
from swarm.api.sets import options_of
from swarm.kit import files
from swarm.kit.errors import UsageProblem, raise_all
from swarm.project import names
from swarm.sessions.errors import AgentExists, BaseNotFound

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Unpack

    from swarm.agents.launching.launch_request import LaunchRequest
    from swarm.api.swarm import Swarm
    from swarm.api.team import AgentHandle
    from swarm.project.model import Agent, Session
    from swarm.roles.role import Role
    from swarm.sessions.create.create_request import Place, Request
    from swarm.sessions.reports import CreateReport


class RunOptions(TypedDict, total=False):
    """The options of ``Swarm.run``.

    Attributes:
        args: further arguments of its program.
        overrides: keys of its role with other values, such as ``{"model": "opus"}``.
        program: an agent program by its name; default: the role's, else the setting.
        print_mode: it does the task without a dialog, and ends.
        sandbox: whether it runs in a box, which needs a worktree; None: as its role and the settings say.
        pod: the team that it is to join, and whose roles come first; swarm makes it if there is none of this name.
            Default: ``SWARM_POD``.
        directory: where ``root_dir: .`` is; default: the folder with which ``Swarm.open`` was called.
        setup: give its worktree the files and run the commands that configuration and role name.
        dry_run: only return the plan.
    """

    args: Sequence[str]
    overrides: Mapping[str, object]
    program: str | None
    print_mode: bool
    sandbox: bool | None
    pod: str
    directory: str | os.PathLike[str] | None
    setup: bool
    dry_run: bool


class Running(Agents):
    """The verb ``run``."""

    def run(
        self,
        role: str = "",
        *,
        name: str = "",
        command: str | Sequence[str] = (),
        task: str = "",
        **options: Unpack[RunOptions],
    ) -> AgentHandle:
        """Start one agent in its own tmux pane: where its role says, or just in a folder.

        It is an agent as those of ``start``: with an inbox, a state, and an end. With ``worktree.enabled`` in its role
        it works in a worktree of its own, which a later run of the same name uses again. Otherwise it works in the
        ``root_dir`` of its role, of which swarm changes and removes nothing.

        Args:
            role: its role; empty: none, then *name* and *command* are required.
            name: default: the name of the role. Its session has the same name.
            command: any command instead of an agent program, as words or as one text with quotes.
            task: its prompt.
            options: see ``RunOptions``.

        Raises:
            AgentExists: an agent of this name runs, or was started elsewhere.
            NotARepo: its role asks for a worktree, and the folder is in no repository.

        Example:
            >>> swarm.run("reviewer").send("please look at parser.py")  # doctest: +SKIP
        """
        from swarm.roles.overrides import adjusted

        given = Path(options.get("directory") or self._opened.start).absolute()
        with files.os_errors("cannot run an agent"):
            found = self._role_in(None, role, pod=bool(self._pod_of(options)))
            agent = names.check_name("agent", name or role) if name or role else ""
            if not agent or not (role or command):
                hint = "swarm run --role ROLE, or: swarm run --name NAME -- COMMAND"
                raise UsageProblem("neither a role nor a name and a command are given", hint=hint)
            changed = self._changed(found, agent, options)
            found = adjusted(found, changed) if changed else found
            home = self._home_of(found, given)
        wish = home._wish_for(agent, command, task, options)  # noqa: SLF001  # of the same class
        wish = replace(wish, overrides=((agent, changed),) if changed else ())
        return home._run(found, agent, given, wish, options)  # noqa: SLF001  # of the same class

    def _changed(self, role: Role, name: str, options: RunOptions) -> tuple[tuple[str, str], ...]:
        """Return how the role is to be changed, if the caller may do that."""
        from swarm.callers import rights
        from swarm.roles import overrides

        wanted = options.get("overrides") or {}
        if wanted and not role.name:
            raise UsageProblem("there is no role whose keys could be changed", hint="name one: swarm run --role ROLE")
        changed = overrides.assign((names.AgentSpec(name, role.name),), wanted).get(name, ()) if wanted else ()
        rights.check_overrides(self._world, {key for key, _ in changed})
        return tuple(changed)

    def _wish_for(self, name: str, command: str | Sequence[str], task: str, options: RunOptions) -> LaunchRequest:
        print_mode = options.get("print_mode", False)
        program = options.get("program")
        wish = self._wish("", {name: task} if task else None, program=program, command=command, print_mode=print_mode)
        args, box = tuple(options.get("args", ())), options.get("sandbox")
        return replace(wish, args=args, pod=self._pod_of(options), sandbox=box)

    def _pod_of(self, options: RunOptions) -> str:
        return names.check_pod(options.get("pod") or "") or self._pod_around()

    def _home_of(self, role: Role, given: Path) -> Self:
        """Return the repository, or swarm directory, that knows the agents in a role's ``root_dir``."""
        from swarm.api.door import open_repository
        from swarm.project.find import main_checkout
        from swarm.sessions.create.single import folder_of

        folder = folder_of(self._world, role, given)
        if main_checkout(folder) in (self._repository, None):
            return self
        environ = {**self._world.environ, "SWARM_DIR": str(self._opened.swarm_dir or "")}
        return type(self)(open_repository(folder, environ, None, self._world.progress))

    def _run(self, role: Role, name: str, given: Path, wish: LaunchRequest, options: RunOptions) -> AgentHandle:
        from swarm.api.team import AgentHandle
        from swarm.project.model import OWN
        from swarm.sessions.create import create, create_request, single

        session, dry_run = names.check_new_session(wish.pod or name), options.get("dry_run", False)
        place = single.place(self._world, name, role, single.folder_of(self._world, role, given))
        own = place.tree == OWN
        request = create_request.Request(
            session,
            (names.AgentSpec(name, role.name),),
            (role if role.name else None,),
            role.options.worktree.branch_from or single.BRANCH_FROM if own else None,
            wish,
            options_of((role,)) if own and options.get("setup", True) else None,
            places=(place,),
            add=True,
        )
        with self._making(f"cannot run {name}"), self._naming_the_branch(role):
            report = None if dry_run else self._again(request, role, wish, place)
            if report is None:
                plan = self._preflight(request, [], dry_run=dry_run)
                if plan is not None and dry_run:
                    report = replace(plan.report, dry_run=True)
                else:
                    with self._changing(f"run {name}"):
                        report = create.create(self._world, request, plan and plan.facts)
        if not dry_run:
            from swarm.sessions import sockets

            sockets.wait_for_answer(self._world, self._session(session), name)
        return AgentHandle(cast("Swarm", self), name, session, report)

    @contextlib.contextmanager
    def _naming_the_branch(self, role: Role) -> Iterator[None]:
        """Let an error about the branch that nobody asked for say which one there is."""
        try:
            yield
        except BaseNotFound as error:
            if not role.options.worktree.branch_from and (branch := self._world.git.head_branch()):
                error.message += f"; the role names no branch, and the main checkout is on {branch}"
                error.hint = f"swarm run --role {role.name} --override worktree.branch_from={shlex.quote(branch)}"
            raise

    def _again(self, request: Request, role: Role, wish: LaunchRequest, place: Place) -> CreateReport | None:
        """Start an agent that is there already and does not run; None: there is none of this name."""
        from swarm.agents.launching import launch_checks
        from swarm.agents.launching.launch_request import equipped
        from swarm.sandbox import wish as box_wish
        from swarm.sessions import resume
        from swarm.sessions.create import create

        if self._known(request) is None:
            return None
        with self._changing(f"run {request.agents[0].name}"):
            known = self._known(request)  # read again below the lock
            if known is None:
                return None
            session, agent = known
            self._refuse_rerun(session, agent, place)
            mine = wish.of(role)
            problems = [*launch_checks.problems(self._world, mine)]
            problems += launch_checks.refusals(self._world, mine, role, placed=True)
            raise_all(f"cannot run {agent.name}", problems)
            box_wish.check_again(self._world, mine.sandbox, role, agent)
            now = equipped(agent, mine, str(uuid4()))._replace(role=role.name)
            resume.run_again(self._world, session, now, role)
            found = self._session(session.name)
            return create.report_of(self._world, found._replace(agents=(now,)))

    def _known(self, request: Request) -> tuple[Session, Agent] | None:
        session = self._world.sessions.get(request.session)
        agent = session.agent(request.agents[0].name) if session is not None else None
        return (session, agent) if session is not None and agent is not None else None

    def _refuse_rerun(self, session: Session, agent: Agent, place: Place) -> None:
        """Refuse to rerun an agent that is running, belongs to another caller, or was started elsewhere."""
        from swarm.agents import view
        from swarm.sessions.create import single

        self._refuse_strangers("restart", session, agent)
        address = f"{agent.name}@{session.name}"
        if view.state_of(self._world, session, agent).runs:
            hint = f"attach to it: swarm attach {address}; or give the new one another --name"
            raise AgentExists(f"{address} runs already", hint=hint)
        single.again(self._world, session, agent, place)
