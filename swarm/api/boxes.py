"""The namespace ``swarm.boxes``: the boxes of agents, what is seen in them, and what was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swarm.api.door import Door
from swarm.kit import files
from swarm.kit.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.sandbox.inside import Said

#: Seconds for a command in a box.
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class BoxReport:
    """How an agent is boxed, as it was decided at its start, and what it asked of the network.

    Attributes:
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
    """The boxes of agents."""

    def explain(self, agent: str, session: str | None = None) -> BoxReport:
        """Return what an agent's box shows and allows, and what was refused to it."""
        found, one = self._find(agent, session)
        box = one.box
        if box is None:
            return BoxReport(one.name, found.name, "")
        from swarm.machine.run_folder import decisions  # most have none
        from swarm.sandbox.bounds import limits

        run_dir = self._world.layout.run_folder(found.name, one.name)
        return BoxReport(
            one.name,
            found.name,
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

    def run(self, agent: str, session: str | None = None, *, argv: Sequence[str], stdin: bytes = b"") -> Said:
        """Run a command in an agent's box, beside its program, and return how it ended and what it said.

        It sees what the agent sees, and has no network. It may change what the agent may change.

        Raises:
            UsageProblem: the agent has no box.
        """
        from swarm.sandbox import private
        from swarm.sandbox.inside import Inside

        found, one = self._find(agent, session)
        self._refuse_strangers("boxes.run", found, one)
        base = self._world.layout.box_folder(found.name, one.name)
        if not one.is_boxed or not files.exists(base):
            raise UsageProblem(f"{one.name}@{found.name} has no box", hint="start it with --sandbox")
        tree = self._world.layout.root / one.worktree
        box = private.box_of(tree, self._world.git.common, base)
        return Inside(box, self._world.environ, timeout=_LONGEST).run(*argv, stdin=stdin)
