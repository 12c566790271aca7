"""The namespace ``swarm.boxes``: the boxes of agents, what is seen in them, and what was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swarm.api.door import Door
from swarm.kit import files
from swarm.kit.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.project.model import Boxed
    from swarm.sandbox.inside import Said
    from swarm.sandbox.values import Box
    from swarm.tasks.store import Store
    from swarm.tasks.values import AgentTask

#: The place of a task in a folder; others work as an agent does.
_FOLDER = "session"
#: Seconds for a command in a box.
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class BoxReport:
    """How an agent or a task is boxed, as it was decided at its start, and what it asked of the network.

    Attributes:
        agent: its name, or the id of a task.
        session: of an agent; of a task that works in a folder it is empty.
        by: the program that makes its box; ``noop`` with the reason where one was wanted and none could be made;
            empty: none was wanted.
        read_only, read_write: paths of the machine that it sees beside its worktree, its home and the programs.
        network: the preset of hosts.
        hosts: further hosts.
        private_networks: networks that are reached although they are not public.
        limits: how much it may use up: ``processes``, and in bytes ``memory``, ``tmp`` and ``disk``; ``messages``
            in an hour; 0 is no limit. ``memory_by`` is ``cgroup`` where memory counts for all its processes together,
            ``process`` where for each; ``disk_used`` is what it took at the last look.
        rules: the deny rules of its role: each as written, whether the box holds it, and what is to be said of that.
        decisions: the last ones about the network, newest first: ``at_ms``, ``by``, ``target``, ``allowed``, ``reason``
            and ``times``.
    """

    agent: str
    session: str
    by: str
    read_only: tuple[str, ...] = ()
    read_write: tuple[str, ...] = ()
    network: str = ""
    hosts: tuple[str, ...] = ()
    private_networks: tuple[str, ...] = ()
    limits: dict[str, int | str] | None = None
    rules: tuple[tuple[str, bool, str], ...] = ()
    decisions: tuple[dict[str, Any], ...] = ()


class Boxes(Door):
    """The boxes of agents and of tasks; a task is named by its id where an agent is asked for."""

    def explain(self, agent: str, session: str | None = None) -> BoxReport:
        """Return what an agent's box shows and allows, and what was refused to it."""
        task = self._task(agent) if session is None else None
        if task is not None and task.place == _FOLDER:
            last = task.runs[-1].operation if task.runs else "none"
            return _report(task.id, "", task.box, self._store.run_folder(task.id, last))
        found, one = self._find(*_agent_of(task, agent, session))
        return _report(one.name, found.name, one.box, self._world.layout.run_folder(found.name, one.name))

    def run(self, agent: str, session: str | None = None, *, argv: Sequence[str], stdin: bytes = b"") -> Said:
        """Run a command in an agent's box, beside its program, and return how it ended and what it said.

        It sees what the agent sees, and has no network. It may change what the agent may change.

        Raises:
            UsageProblem: the agent has no box.
        """
        from swarm.sandbox.inside import Inside

        task = self._task(agent) if session is None else None
        if task is not None and task.place == _FOLDER:
            box = self._box_of_task(task)
        else:
            box = self._box_of_agent(*_agent_of(task, agent, session))
        return Inside(box, self._world.environ, timeout=_LONGEST).run(*argv, stdin=stdin)

    @property
    def _store(self) -> Store:
        from swarm.tasks.store import Store

        return Store(self._world.layout)

    def _task(self, name: str) -> AgentTask | None:
        """Return the task of an id, unless an agent is called so."""
        if any(session.agent(name) is not None for session in self._world.sessions.all()):
            return None
        known = self._store
        return known.find(name) if name in known.ids() else None

    def _box_of_task(self, task: AgentTask) -> Box:
        from swarm.callers import rights
        from swarm.tasks.folders import boxing

        rights.check(self._world, "boxes.run", [], attempt=f"cannot run a command in the box of {task.id}")
        kept = boxing.kept(self._world, task) if task.is_boxed and task.runs else None
        if kept is None:
            raise UsageProblem(f"{task.id} has no box", hint="submit it with --sandbox, and wait until it is started")
        return kept.box

    def _box_of_agent(self, agent: str, session: str | None) -> Box:
        from swarm.sandbox import private

        found, one = self._find(agent, session)
        self._refuse_strangers("boxes.run", found, one)
        base = self._world.layout.box_folder(found.name, one.name)
        if not one.is_boxed or not files.exists(base):
            raise UsageProblem(f"{one.name}@{found.name} has no box", hint="start it with --sandbox")
        return private.box_of(self._world.layout.root / one.worktree, self._world.git.common, base)


def _agent_of(task: AgentTask | None, agent: str, session: str | None) -> tuple[str, str | None]:
    """Return which agent is meant: of a task in a worktree its own."""
    return (agent, session) if task is None else (task.role, task.session_id)


def _report(name: str, session: str, box: Boxed | None, run_dir: Path) -> BoxReport:
    if box is None:
        return BoxReport(name, session, "")
    from swarm.machine.run_folder import decisions  # most have none
    from swarm.sandbox.bounds import limits

    return BoxReport(
        name,
        session,
        box.by,
        box.read_only,
        box.read_write,
        box.network,
        box.hosts,
        box.private,
        limits.limits_of(box, run_dir),
        limits.rules_of(run_dir),
        tuple(decisions.last(str(run_dir))),
    )
