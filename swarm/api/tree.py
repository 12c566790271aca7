"""The namespace ``swarm.tree``: subtrees and workers that agents spawn, and what comes of them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from swarm.api.sets import options_of
from swarm.api.whole_trees import WholeTrees
from swarm.kit import files
from swarm.kit.errors import SwarmError, raise_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Unpack

    from swarm.api.swarm import Swarm
    from swarm.messages.office.post import Sent
    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World
    from swarm.sessions.create.create_request import Request
    from swarm.sessions.reports import CreateReport
    from swarm.tree.ground import Ground
    from swarm.tree.spawn import Wanted
    from swarm.tree.values import Awaited, Notified, Spawned, TreeAgent


class SpawnOptions(TypedDict, total=False):
    """What a spawn can be told beside the task and the name.

    Attributes:
        role: default: the setting ``tree.lead_role`` or ``tree.worker_role``.
        program: an agent program by its name; default: what the role names, else the program of the caller.
        command: any command instead, as words or as one text with quotes.
        overrides: keys of the role with other values, such as ``{"model": "opus"}``.
        from_head: of a subtree: from the caller's last commit, whatever is not committed.
        setup: of a subtree: as for ``Swarm.create``.
        dry_run: only return the plan.
    """

    role: str
    program: str | None
    command: str | Sequence[str]
    overrides: Mapping[str, object]
    from_head: bool
    setup: bool
    dry_run: bool


class Tree(WholeTrees):
    """The tree of agents. Call it for the agents in it, parents before their children.

    Who calls is seen, never said: an agent reaches its own parent and what is below itself, a person everything.
    """

    def __call__(self, *, everything: bool = False, look: bool = True) -> tuple[TreeAgent, ...]:
        """Return the agents of the tree. Never writes, never waits.

        Args:
            everything: also the teams that no spawn made, where a person asks; an agent sees itself and what is below.
            look: also ask git for uncommitted changes and commits.
        """
        from swarm.tree import listing

        with files.os_errors("cannot look at the tree"):
            me = self._ground().me
            found = listing.whole(self._world, me, look=look)
        return found if everything or me is not None else _grown(found)

    def spawn_subtree(self, task: str, branch_name: str, **options: Unpack[SpawnOptions]) -> Spawned:
        """Start a lead of its own branch and worktree, cut from the caller's last commit: all or nothing.

        Its branch is ``<the caller's branch>.<slug>``, its worktree ``.swarm/worktrees/<slug>``, and it has a window of
        its own. The same spawn again returns the child that is there.

        Args:
            task: its whole instructions; it has no other context.
            branch_name: gives the slug, which has no dots.
            options: see ``SpawnOptions``.

        Raises:
            AlreadyThere, TreeLimit, Uncommitted, NotForAgents
            SwarmError: nothing was made and nothing runs; ``Refused`` holds several problems at once.
        """
        from swarm.tree import ground, spawn

        here = self._ground()
        role = options.get("role") or self._world.settings.tree.lead_role
        wanted = spawn.subtree(task, branch_name, role)
        ground.refuse_leaf(here, f"cannot spawn {wanted.session}")
        self._world.git.require((2, 20), f"make a worktree for {wanted.session}")
        return self._spawn(wanted, here, role, options)

    def spawn_worker(self, name: str, prompt: str, **options: Unpack[SpawnOptions]) -> Spawned:
        """Start a helper in the caller's folder, in a pane beside the caller's: all or nothing.

        It has no branch and no worktree of its own, and no children. The same spawn again returns the worker that is
        there.

        Args:
            name: of the worker.
            prompt: its whole instructions; it has no other context.
            options: see ``SpawnOptions``.

        Raises:
            AlreadyThere, TreeLimit, NotForAgents
            SwarmError: nothing was made and nothing runs; ``Refused`` holds several problems at once.
        """
        from swarm.tree import ground, spawn

        here = self._ground()
        role = options.get("role") or self._world.settings.tree.worker_role
        wanted = spawn.worker(name, prompt, here)
        ground.refuse_leaf(here, f"cannot spawn {wanted.agent}")
        return self._spawn(wanted, here, role, options)

    def _spawn(self, wanted: Wanted, here: Ground, role: str, options: SpawnOptions) -> Spawned:
        from swarm.tree import spawn

        with self._all._making(f"cannot spawn {wanted.session}"):  # noqa: SLF001  # of the same object
            known = spawn.there(self._world, wanted, here)
            if known is not None:
                return self._spawned(*known, existing=True)
            self._take_in_own(here)
            spawn.refuse_other_branch(self._world, wanted, here)
            looked = wanted.kind == "subtree" and not (options.get("from_head") and here.me is not None)
            changes = spawn.uncommitted(self._world, here) if looked else ()
            problems = [*spawn.check_limits(self._world, wanted, here)]
            problems += spawn.refuse_uncommitted(wanted, here, changes)
            problems += spawn.refuse_tracked(self._world, wanted)
            request = self._request(wanted, here, role, options)
            plan = self._preflight(request, problems, dry_run=options.get("dry_run", False))
            told = (*self._told_of_changes(changes), *self._told_of_setup(here, request))
            if plan is not None and options.get("dry_run"):
                return self._planned(wanted, here, plan.report, told)
            return self._made(wanted, here, request, plan, told)

    def _made(self, wanted: Wanted, here: Ground, request: Request, plan: Any, told: Sequence[str]) -> Spawned:
        """Make the child below the lock, where nobody else makes it, and no limit is reached meanwhile."""
        from swarm.sessions.create import create
        from swarm.tree import spawn

        with self._changing(f"spawn {wanted.session}"):
            known = spawn.there(self._world, wanted, here)
            if known is not None:
                return self._spawned(*known, existing=True)
            raise_all(
                f"cannot spawn {wanted.session}",
                [*spawn.refuse_stopped(self._world, wanted, here), *spawn.check_limits(self._world, wanted, here)],
            )
            report = create.create(self._world, request, plan and plan.facts)
        session = self._session(wanted.session)
        spawned = self._spawned(session, session.agents[0], existing=False)
        return spawned._replace(base=session.base, warnings=(*report.warnings, *told), steps=report.steps)

    def _request(self, wanted: Wanted, here: Ground, role: str, options: SpawnOptions) -> Request:
        from swarm.agents.launching import launch_request
        from swarm.tree import spawn

        spawn.refuse_wider(wanted, here, options.get("command"), options.get("overrides"))
        spawn.refuse_unfixed(self._world, wanted, here)
        found = self._role_in(None, role)
        program = options.get("program") or (None if found.options.agent_type else spawn.program_of(here) or None)
        wish = self._all._wish(  # noqa: SLF001  # of the same object
            "",
            overrides=options.get("overrides"),
            program=program,
            command=options.get("command", ()),
        )
        setup = options_of((found,)) if options.get("setup", True) and not spawn.in_box(here) else None
        request = spawn.request(self._world, wanted, here, found, wish, setup)
        if wish.overrides and request.launch is not None:
            changed, roles = launch_request.overridden(self._world, request.agents, request.roles, request.launch)
            request = replace(request, launch=changed, roles=roles)
        return request

    def _take_in_own(self, here: Ground) -> None:
        """Take in what the calling agent committed in its box: what is made, or said, now is about that.

        Raises:
            IntakeRefused: it is not fit for the repository.
        """
        from swarm.sandbox import fresh
        from swarm.tree import spawn

        if spawn.in_box(here) and here.agent is not None:
            with self._changing(f"take in {here.name}"):
                fresh.require_of(self._world, here.agent)

    def _told_of_changes(self, changes: Sequence[str]) -> tuple[str, ...]:
        from swarm.tree import spawn

        if not changes:
            return ()
        return (f"uncommitted changes stay where they are, and the child does not see them: {spawn.named(changes)}",)

    def _told_of_setup(self, here: Ground, request: Request) -> tuple[str, ...]:
        from swarm.tree import spawn
        from swarm.worktrees.setup.setup import parts_of

        roles = [role for role in request.roles if role is not None and request.makes_trees and spawn.in_box(here)]
        if not any(parts_of(self._world, one) for one in options_of(tuple(roles))):
            return ()
        return ("its setup is left out: it would run outside of boxes, on files that you wrote",)

    def _spawned(self, session: Session, agent: Agent, *, existing: bool) -> Spawned:
        from swarm.agents.budgets import drawn
        from swarm.tree import listing
        from swarm.tree.values import Spawned

        found = listing.one(self._world, session, agent)
        return Spawned(found, existing=existing, budget=drawn.told(self._world, session, agent))

    def _planned(self, wanted: Wanted, here: Ground, report: CreateReport, told: Sequence[str]) -> Spawned:
        from swarm.tree.values import Spawned, TreeAgent

        made = report.agents[0]
        agent = TreeAgent(
            address=f"{wanted.agent}@{wanted.session}",
            name=wanted.agent,
            session=wanted.session,
            kind=wanted.kind,
            role=made.role,
            program="",
            parent=here.me.address if here.me is not None else "user",
            branch=made.branch or here.branch,
            path=made.path,
            depth=here.depth + 1,
            state="",
            task=wanted.task,
        )
        return Spawned(agent, base=report.base, warnings=(*report.warnings, *told), steps=report.steps, dry_run=True)

    def notify_parent(self, status: str, message: str) -> Notified:
        """Tell the parent what came of one's task: durably, and once; other words later correct it.

        The head, the commits and the uncommitted changes go along as git shows them.

        Args:
            status: ``success`` or ``failure``.
            message: what was done, where it is, and what is left.

        Raises:
            NoParent: the caller is the root.
            UsageProblem: there is no such status, or the message is empty or too long.
        """
        from swarm.tree import notify

        with files.os_errors("cannot notify your parent"):
            here = self._ground()
            with suppress(SwarmError):  # what cannot be taken in is no reason to say nothing
                self._take_in_own(here)
            return notify.notify(self._world, here, status, message)

    def report(self, message: str) -> Sent:
        """Send the parent a message about the work, any number of times; it is no completion.

        Raises:
            NoParent: the caller is the root.
            UsageProblem: the message is empty or too long.
        """
        from swarm.tree import notify

        notify.reporter(self._ground())
        text = notify.check_text(message, "cannot report to your parent")
        return self._all.send("parent", text)[0]

    def wait_for_event(
        self,
        after: str | None = None,
        timeout: float | None = None,
        kinds: Sequence[str] = (),
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Awaited:
        """Return the first event of one's children after a cursor; the event stays, and asking again gives it again.

        ``Swarm.wait_for_event`` takes events; this one only reads them, so that a client that gives up loses none.
        It also returns when a child asks something (``ChildAsks``).

        Args:
            after: the cursor of the last answer, which acknowledges its event; default: the last one handed in.
            timeout: seconds; default 45. 0 only looks. There is no wait without an end.
            kinds: only these; others before the one that comes are acknowledged with it.
            progress: called with the seconds gone, every 20 seconds.

        Raises:
            WaitCycle: agents would wait for each other.
            UsageProblem: the cursor or a kind is none, or the time is too long.
        """
        from swarm.tree import waiting

        with files.os_errors("cannot wait for an event"):
            self._ready_for("wait-event")
            return waiting.wait(
                self._world, self._post, after=after, timeout=timeout, kinds=tuple(kinds), progress=progress
            )

    def list_agents(self, *, everything: bool = False) -> tuple[TreeAgent, ...]:
        """Return the caller and the agents below it; of a person the whole tree. Git is not asked.

        Args:
            everything: of a person also the teams that no spawn made.
        """
        return self(everything=everything, look=False)

    def acting_for(self, pid: int) -> Swarm:
        """Return swarm as the agent of another process uses it: for servers that see who calls.

        The agent is what the machine shows above that process, as with a command that the agent runs itself.

        Args:
            pid: of the process at the other end of a connection.

        Raises:
            NotForAgents: no agent of this repository can be seen above the process.
        """
        from swarm.callers import acting

        return self._acting(acting.by_process(self._world, pid))

    def acting_as(self, agent: Parent) -> Swarm:
        """Return swarm as an agent uses it whose process cannot be seen: for servers that gave it a token.

        Args:
            agent: the very run for which the token was given out, with its generation.

        Raises:
            NotForAgents: this run is over, or has not begun.
        """
        from swarm.callers import acting

        return self._acting(acting.by_record(self._world, agent))

    def _acting(self, world: World) -> Swarm:
        from pathlib import Path

        from swarm.api.door import Opened
        from swarm.api.swarm import Swarm

        where = world.environ.get("PWD", "")
        start = Path(where) if where.startswith("/") else self._opened.start
        return Swarm(Opened(world, self._opened.swarm_dir, start))

    def _ground(self) -> Ground:
        from swarm.tree import ground

        with files.os_errors("cannot find your place in the tree"):
            return ground.stand(self._world, self._opened.start)


def _grown(found: tuple[TreeAgent, ...]) -> tuple[TreeAgent, ...]:
    """Return the agents that a spawn made, those above them, and what no record knows."""
    above: set[str] = set()
    for one in reversed(found):
        if one.kind != "team" or one.address in above:
            above.add(one.parent)
    return tuple(one for one in found if one.kind != "team" or one.address in above)
