"""Make a set of worktrees, all or nothing."""

from __future__ import annotations

import contextlib
import json
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from swarm.agents.launching import launch, launch_checks, launch_request
from swarm.callers import parents, rights
from swarm.kit import files as fsio
from swarm.kit.errors import (
    SwarmError,
)
from swarm.machine.processes import boot_id
from swarm.project import codec
from swarm.project import layout as places
from swarm.project.model import OWN, SHARED, TEAM, Agent, Placed, Session
from swarm.project.world import in_session, new_operation_id
from swarm.sandbox import steps as box_steps
from swarm.sandbox import wish as box_wish
from swarm.sessions.create.create_checks import check
from swarm.sessions.create.create_request import Facts, Request, is_run, pays, verb
from swarm.sessions.reports import CreatedAgent, CreateReport
from swarm.worktrees import hiding, pool, transaction
from swarm.worktrees.setup import setup
from swarm.worktrees.steps import branch_steps, file_steps, inbox_steps, layout_steps, pool_steps, tree_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.project.world import World
    from swarm.sessions.create.create_request import Place
    from swarm.worktrees.steps.step import Step

_CHANGED = "uncommitted changes of {} stay there; the worktrees start from the last commit"


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a new set; nothing of it is done yet."""

    operation: transaction.Operation
    report: CreateReport
    facts: Facts


def create(world: World, request: Request, facts: Facts | None = None) -> CreateReport:
    """Make the set. The caller holds the lock and has recovered.

    Args:
        facts: of the plan that was made before waiting for the lock: history does not change.

    Raises:
        SwarmError: nothing was made.
    """
    world = in_session(world, world.sessions.get(request.session))
    changes = _Changes(world, request)
    try:
        plan = make_plan(world, request, facts, look=False)
        if request.makes_trees and not fsio.exists(world.layout.base / ".gitignore"):
            changes.warnings()  # or the folder would be seen before it is hidden
        transaction.run(world, plan.operation)
        if request.launch is not None:
            inbox_steps.declare(world, request.session, [agent.name for agent in request.agents])
        warnings = (*plan.report.warnings, *setup.warnings(world, plan.operation), *changes.warnings())
        return replace(plan.report, warnings=warnings)
    finally:
        changes.end()


def make_plan(
    world: World,
    request: Request,
    facts: Facts | None = None,
    *,
    look: bool = True,
    problems: Sequence[SwarmError] = (),
) -> Plan:
    """Look at everything, change nothing.

    Args:
        look: also look for uncommitted changes, to warn of them.

    Raises:
        SwarmError: see ``check``.
    """
    start = check(world, request, facts, problems=problems, ahead=not look)
    plan = _lay_out(world, request, start.base_ref, start.commit, start.facts, look=look)
    warnings = (*plan.report.warnings, *(_Changes(world, request).warnings() if look else ()))
    return replace(plan, report=replace(plan.report, warnings=warnings))


def _warnings(world: World, request: Request, agents: Sequence[Agent]) -> Iterator[str]:
    """Tell what of the agents' roles has no effect, or not the one that somebody may expect."""
    yield from launch_checks.warnings(list(zip(agents, request.roles, strict=True)), run=is_run(request))
    if request.launch:
        yield from rights.warnings(world, request.roles)
        yield from box_wish.warnings(world, request.launch.sandbox, request.roles)


def _lay_out(world: World, request: Request, base_ref: str, commit: str, facts: Facts, *, look: bool) -> Plan:
    unseen = request.launch.unseen if request.launch else None
    known = request.launch.operation if request.launch else ""
    operation = known or (unseen.operation if unseen else new_operation_id())
    now_ms = time.time_ns() // 1_000_000
    file = world.settings.worktrees.instructions_file
    tracked = _is_tracked(world, request, commit, facts)
    agents: list[Agent] = []
    place: list[Step] = []
    for spec, role, where in zip(request.agents, request.roles, request.places_in(world), strict=True):
        placed: tuple[Placed, ...] = ()
        if role is not None and not tracked and where.tree != SHARED:
            placed = (Placed(file, file_steps.digest(role.instructions)),)
            place.append(file_steps.PlaceInstructions(operation, str(where.folder), file, role.instructions))
        wish = request.launch
        agent = Agent(
            *(spec.name, spec.role, where.branch, _path(world, where), "", commit, now_ms, placed),
            operation=operation,
            may=rights.given(world, role) if wish else (),
            tree=where.tree,
        )
        if wish is not None:
            agent = launch_request.equipped(agent, wish.of(role), wish.conversation or str(uuid4()))
            agent = agent._replace(box=wish.decided if unseen else box_wish.boxed(world, wish.sandbox, role))
        agents.append(agent)
    if request.setup is not None and not any(agent.shared for agent in agents):  # those folders are ready
        agents = list(setup.equipped(world, agents, request.session, request.setup))
    todo = (
        *_make_steps(world, operation, request, tuple(agents), facts.content),
        *place,
        *_finish_steps(world, operation, request, base_ref, commit, now_ms, tuple(agents), look=look),
    )
    branches = [agent.branch for agent in agents if agent.branch]
    refs = (places.op_ref(operation), *(places.HEADS + branch for branch in branches)) if request.makes_trees else ()
    made = tuple(_created(world, agent) for agent in agents)
    report = CreateReport(
        session=request.session,
        base_ref=base_ref,
        base=commit,
        agents=made,
        warnings=(*((_tracked_warning(file),) if tracked else ()), *_warnings(world, request, agents)),
        steps=tuple(step.say() for step in todo),
    )
    now, boot = time.time_ns(), boot_id()
    done = transaction.Operation(operation, verb(request), request.session, now, boot, todo, refs)
    return Plan(done, report, facts)


def _is_tracked(world: World, request: Request, commit: str, facts: Facts) -> bool:
    """Whether the project has the instructions file in its history, so that none can be placed."""
    if not request.makes_trees or not any(request.roles):
        return False
    file = world.settings.worktrees.instructions_file
    return bool(world.git.tracked(commit, (file,))) if facts.file is None else facts.file


def _path(world: World, where: Place) -> str:
    """Return a folder as the record has it: a worktree in the project moves with it, another folder does not."""
    inside = where.folder.is_relative_to(world.layout.root)
    return os.path.relpath(where.folder, world.layout.root) if inside and where.tree == OWN else str(where.folder)


def _make_steps(
    world: World, operation: str, request: Request, agents: Sequence[Agent], content: str
) -> Iterator[Step]:
    agents = [agent for agent in agents if not agent.shared]
    if not agents:
        return
    base = (world.layout.root / agents[0].worktree).parent
    yield file_steps.MakeBase(operation, str(base), base.is_dir(), fsio.exists(base / ".gitignore"))
    yield branch_steps.ReserveBranches(
        operation,
        tuple((agent.branch, agent.base) for agent in agents if agent.branch),
        tuple((request.session, agent.name) for agent in agents if agent.branch),
        agents[0].base,
    )
    file = world.settings.worktrees.instructions_file
    placed = any(agent.placed for agent in agents)
    if placed:
        yield from hiding.steps_before(world, operation, file)
    taken = tuple(admin.name for admin in world.git.admin_dirs())
    for agent in agents:
        tree = world.layout.root / agent.worktree
        elsewhere = request.fork is not None  # all that will be in it is in the worktree from which it is forked
        yield tree_steps.AddWorktree(operation, str(tree), agent.branch, agent.base, taken, salvaged=elsewhere)
    trees = tuple(str(world.layout.root / agent.worktree) for agent in agents)
    waiting = pool.choose(world.layout, len(trees), content) if request.fork is None else ()
    if waiting:
        yield pool_steps.TakeParked(operation, tuple(zip(trees, waiting, strict=False)), agents[0].base, content)
    yield tree_steps.FillWorktrees(operation, trees, agents[0].base, content)
    if request.fork is not None and request.fork.paths:
        yield tree_steps.CopyWork(operation, trees[0], request.fork.snapshot, request.fork.paths)
    if placed:
        yield from hiding.steps_within(world, operation, file, trees)


def _finish_steps(
    world: World,
    operation: str,
    request: Request,
    base_ref: str,
    commit: str,
    now_ms: int,
    agents: tuple[Agent, ...],
    *,
    look: bool,
) -> Iterator[Step]:
    old = world.sessions.get(request.session)
    own = [(str(world.layout.root / one.worktree), one.branch, one.base) for one in agents if not one.shared]
    if own:
        yield tree_steps.Verify(operation, tuple(own))
    if request.setup is not None and own:
        yield from setup.steps_for(world, operation, request.session, agents, request.setup, count=look)
    yield from box_steps.made(world, operation, request.session, agents)
    if request.child is not None:
        yield from _layout(world, operation, request, agents)
    wish = request.launch
    if wish is not None:
        pairs = list(zip(agents, request.roles, strict=True))
        goal, beside = (old.task, old.beside) if old and request.add else (wish.task, wish.beside)
        how: dict[str, Any] = {"beside": beside, "parent": pays(world, request), "unseen": wish.unseen}
        yield from launch.start_steps(
            world, operation, request.session, pairs, goal, resume=bool(wish.conversation), **how
        )
    yield file_steps.SyncToDisk(operation, str(world.layout.base.parent if own else world.layout.state))
    if request.fork is not None:  # the commits of the other agent are its work, too
        agents = tuple(agent._replace(base=request.fork.base) for agent in agents)
    child = request.child
    if child is not None and not own:
        base_ref, commit = child.ref, child.commit
    session = _record(world, request, old, (base_ref, commit), now_ms)
    record = session._replace(operations=(*session.operations, operation), agents=(*session.agents, *agents))
    yield file_steps.WriteRecord(operation, codec.session_to_bytes(record).decode("ascii"))


def _record(world: World, request: Request, old: Session | None, start: tuple[str, str], now_ms: int) -> Session:
    """Return the record of the session but for what is new; who joins one has its task, pod and place in the tree."""
    if old is not None:
        base_ref, base = (old.base_ref, old.base) if old.base else start  # agents without a worktree have none
        return old._replace(base_ref=base_ref, base=base)
    wish, child = request.launch, request.child
    return Session(
        name=request.session,
        operations=(),
        created_ms=now_ms,
        base_ref=start[0],
        base=start[1],
        agents=(),
        task=wish.task if wish else "",
        workflow=wish.workflow if wish else "",
        beside=wish.beside if wish else "",
        parent=child.parent if child else parents.starter(world),
        swarm_dir=str(world.swarm_dir),
        pod=wish.pod if wish else "",
        template=wish.template if wish else "",
        kind=child.kind if child else TEAM,
        depth=child.depth if child else 0,
        ancestors=child.ancestors if child else parents.line_above(world),
    )


def _layout(world: World, operation: str, request: Request, agents: Sequence[Agent]) -> Iterator[Step]:
    """Give the steps that write the place of a child into the folder where it works, if that folder is swarm's."""
    child = request.child
    for agent in agents:
        tree = world.layout.root / agent.worktree
        if not agent.shared:
            yield layout_steps.WriteLayout(operation, str(tree), "", layout_steps.LEAD)
        elif child is not None and child.has_layout:
            parent = child.parent.address if child.parent is not None else "user"
            facts = {"name": agent.name, "role": agent.role, "session": request.session, "parent": parent}
            text = json.dumps({**facts, "program": agent.program, "branch": child.ref}) + "\n"
            yield layout_steps.WriteLayout(operation, str(tree), agent.name, text)


def report_of(world: World, session: Session) -> CreateReport:
    """Return the report of an existing session, with all its agents."""
    agents = tuple(_created(world, agent) for agent in session.agents)
    return CreateReport(session.name, session.base_ref, session.base, agents)


def _created(world: World, agent: Agent) -> CreatedAgent:
    return CreatedAgent(
        name=agent.name,
        role=agent.role,
        branch=agent.branch,
        path=world.layout.root / agent.worktree,
        tree=agent.tree,
        instructions=agent.placed[0].path if agent.placed else "",
    )


def _tracked_warning(file: str) -> str:
    return f"the project has a {file} of its own, so the role's instructions were not put into the worktrees"


class _Changes:
    """The warning about uncommitted changes where the set starts; git looks for them in the background."""

    def __init__(self, world: World, request: Request) -> None:
        named = request.base is not None and request.checkout is None
        needless = named or not request.makes_trees or (request.checkout is None and world.git.is_untouched())
        self._where = f"your worktree {request.checkout.name}" if request.checkout else "the main checkout"
        self._asked = None if needless else world.git.begin_status(request.checkout or world.layout.root)
        self._warnings: tuple[str, ...] | None = () if needless else None

    def warnings(self) -> tuple[str, ...]:
        if self._warnings is None:
            self._warnings = ()
            with contextlib.suppress(SwarmError):  # only a warning is lost
                if self._asked is not None and self._asked.result():
                    self._warnings = (_CHANGED.format(self._where),)
        return self._warnings

    def end(self) -> None:
        if self._asked is not None:
            self._asked.end()
