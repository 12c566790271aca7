"""The namespace ``swarm.pods``: teams as files, and those that run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from swarm.api.door import Door
from swarm.kit import files
from swarm.kit.errors import Refused, SwarmError
from swarm.project import names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.api.team import Team
    from swarm.project.model import Session
    from swarm.roles.find import RolePlaces
    from swarm.roles.pods.template import Pod, PodTemplate
    from swarm.sessions.reports import StopReport


class CheckedPod(NamedTuple):
    """The result of the check of one pod template.

    Attributes:
        source: its file; None when it was not found by its name.
        problems: why it cannot be launched.
    """

    name: str
    source: Path | None
    problems: tuple[SwarmError, ...] = ()


class Pods(Door):
    """Teams as files. Call it for all templates that can be read."""

    @property
    def _pod_places(self) -> RolePlaces:
        return replace(self._roles, pod=True)

    def __call__(self) -> tuple[PodTemplate, ...]:
        """Return all readable templates."""
        return self.scan()[0]

    def scan(self) -> tuple[tuple[PodTemplate, ...], tuple[SwarmError, ...]]:
        """Return all readable templates, and the problems of the others."""
        from swarm.roles.pods import find as pods

        return pods.scan(self._pod_places)

    def get(self, name: str) -> PodTemplate:
        """Return a template by its name.

        Raises:
            PodNotFound
            ConfigProblem, Refused: it cannot be read; file, line and column are named.
        """
        from swarm.roles.pods import find as pods

        with files.os_errors(f"cannot read the pod template {name}"):
            return pods.find(name, self._pod_places)

    def expand(self, name: str, variables: Mapping[str, object] | None = None, *, pod: str = "") -> Pod:
        """Return the agents of a template, with values for its variables.

        Args:
            pod: the name of the pod; default: as the template says.

        Raises:
            UsageProblem: a variable has no value, or a wrong one.
        """
        return self._expand(self.get(name), variables, pod)

    def _expand(self, template: PodTemplate, variables: Mapping[str, object] | None, pod: str) -> Pod:
        from swarm.roles.pods import find as pods

        with files.os_errors(f"cannot read the pod template {template.name}"):
            return pods.expand(template, variables or {}, self._world.environ, pod)

    def check(self, which: Sequence[str] = ()) -> tuple[CheckedPod, ...]:
        """Check templates with all their roles; variables without a value get one for this.

        Args:
            which: names; without any all templates.
        """
        if which:
            return tuple(self._checked(name) for name in which)
        good, problems = self.scan()
        broken = tuple(CheckedPod("", None, _several(one)) for one in problems)
        return (*(self._checked(one.name) for one in good), *broken)

    def _checked(self, name: str) -> CheckedPod:
        from swarm.roles.pods import find as pods

        try:
            template = self.get(name)
        except SwarmError as error:
            return CheckedPod(name, None, _several(error))
        try:
            pod = pods.expand(template, {}, self._world.environ, sample=True)
        except SwarmError as error:
            return CheckedPod(template.name, template.source, _several(error))
        return CheckedPod(template.name, template.source, tuple(self._wrong_roles(pod)))

    def _wrong_roles(self, pod: Pod) -> Iterator[SwarmError]:
        from swarm.roles.overrides import adjusted

        told: set[str] = set()
        for one in pod.members:
            try:
                adjusted(self._role_in(None, one.role, pod=True), one.overrides)
            except SwarmError as error:
                if str(error) not in told:
                    told.add(str(error))
                    yield error

    def init(self, name: str, *, session: str | None = None, user: bool = False) -> Path:
        """Write a new template that explains every key, and return it; never overwrite a file.

        Args:
            session: write the team of this session instead.
            user: write it into the user's swarm directory instead of the project's.

        Raises:
            PodExists, InvalidName, SessionNotFound
        """
        from swarm.roles.pods import init

        members = () if session is None else self._session(session).agents
        team = [(one.name, one.role, one.task, one.overrides, one.after) for one in members]
        return init.write(name, self._pod_places, team, private=user)

    def running(self) -> dict[str, tuple[Session, ...]]:
        """Return the sessions of each pod, by its name."""
        found: dict[str, list[Session]] = {}
        for one in self._world.sessions.scan()[0]:
            if one.pod:
                found.setdefault(one.pod, []).append(one)
        return {name: tuple(found[name]) for name in sorted(found)}

    def launch(
        self,
        template: str,
        variables: Mapping[str, object] | None = None,
        *,
        pod: str = "",
        session: str | None = None,
        base: str | None = None,
        overrides: Mapping[str, object] | None = None,
        program: str | None = None,
        command: str | Sequence[str] = (),
        setup: bool = True,
        dry_run: bool = False,
    ) -> Team:
        """Start all agents of a template, in one session: all of them or none.

        Args:
            variables: values of its variables, by name.
            pod: the name of the pod; default: ``SWARM_POD``, else as the template says.
            session: default: *pod*, else the name that the template gives the pod.
            overrides: win over those of the template.
            base, program, command, setup, dry_run: as for ``Swarm.start``.

        Raises:
            PodNotFound: there is no such template.
            SwarmError: nothing was made and nothing runs; ``Refused`` holds several problems at once.
        """
        from swarm.api.swarm import Swarm

        swarm = Swarm(self._opened)
        wish = swarm._wish("", program=program, command=command)  # noqa: SLF001  # of the same object
        file = self.get(template)
        found = self._expand(file, variables, pod or wish.pod)
        name = names.check_new_session(session or pod or file.pod_name or found.name)
        changes = {f"{one.name}:{key}": value for one in found.members for key, value in one.overrides}
        told = {one.name: one.task for one in found.members if one.task.strip()}
        wish = replace(
            wish,
            tasks=tuple(told.items()),
            overrides=tuple({**changes, **(overrides or {})}.items()),
            pod=found.name,
            template=found.template,
            env=tuple((one.name, one.env) for one in found.members if one.env),
            after=tuple((one.name, one.after) for one in found.members if one.after),
        )
        specs = [names.AgentSpec(one.name, one.role) for one in found.members]
        return swarm._start(name, specs, base, wish, setup=setup, dry_run=dry_run)  # noqa: SLF001  # the same

    def release(self, agent: str, session: str | None = None) -> tuple[str, ...]:
        """Give an agent its held task now, and return the agents for whom it waited.

        Args:
            session: default: the only one that has the agent.

        Raises:
            AgentNotFound, SessionNotFound, Ambiguous
            NotHeld: it has its task, or was never to wait.
        """
        from swarm.agents import after

        of_session, one = self._find(agent, session)
        self._refuse_strangers("pods.release", of_session, one)
        with files.os_errors(f"cannot release the task of {one.name}@{of_session.name}"):
            return after.release(self._world, of_session, one)

    def stop(self, pod: str) -> StopReport:
        """Stop the agents of a pod, and of no other; worktrees and panes stay.

        Raises:
            PodNotFound: no session belongs to it.
        """
        from swarm.api.swarm import Swarm
        from swarm.roles.errors import PodNotFound

        running = self.running()
        if pod not in running:
            there = f"the pods are {', '.join(running)}" if running else "start one: swarm pod launch TEMPLATE"
            raise PodNotFound(f"there is no pod {pod[:60]!a}", hint=there)
        return Swarm(self._opened).stop([one.name for one in running[pod]])


def _several(error: SwarmError) -> tuple[SwarmError, ...]:
    return error.problems if isinstance(error, Refused) else (error,)
