"""Make a set of worktrees, all or nothing."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from swarm.agents import launch, launch_checks, launch_request
from swarm.callers import parents, rights
from swarm.kit import files as fsio
from swarm.kit.errors import (
    SwarmError,
)
from swarm.machine.processes import boot_id
from swarm.project import codec, names
from swarm.project import layout as places
from swarm.project.model import Agent, Placed, Session
from swarm.project.world import in_session, new_operation_id
from swarm.sessions.create.create_checks import check
from swarm.sessions.create.create_request import Facts, Request, verb
from swarm.sessions.reports import CreatedAgent, CreateReport
from swarm.worktrees import hiding, transaction
from swarm.worktrees.setup import setup
from swarm.worktrees.steps import branch_steps, file_steps, inbox_steps, tree_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.project.world import World
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
        if not fsio.exists(world.layout.base / ".gitignore"):
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


def _lay_out(world: World, request: Request, base_ref: str, commit: str, facts: Facts, *, look: bool) -> Plan:
    operation = new_operation_id()
    now_ms = time.time_ns() // 1_000_000
    prefix = world.settings.worktrees.branch_prefix
    file = world.settings.worktrees.instructions_file
    tracked = bool(world.git.tracked(commit, (file,))) if facts.file is None else facts.file
    tracked = tracked and any(request.roles)
    agents: list[Agent] = []
    place: list[Step] = []
    for spec, role in zip(request.agents, request.roles, strict=True):
        tree = world.layout.worktree(spec.name, request.session)
        placed: tuple[Placed, ...] = ()
        if role is not None and not tracked:
            placed = (Placed(file, file_steps.digest(role.instructions)),)
            place.append(file_steps.PlaceInstructions(operation, str(tree), file, role.instructions))
        branch = names.branch_name(spec.name, request.session, prefix)
        relative = os.path.relpath(tree, world.layout.root)
        wish = request.launch
        may = rights.given(world, role) if wish else ()
        agent = Agent(spec.name, spec.role, branch, relative, "", commit, now_ms, placed, operation=operation, may=may)
        agents.append(launch_request.equipped(agent, wish.of(role), str(uuid4())) if wish else agent)
    if request.setup is not None:
        agents = list(setup.equipped(world, agents, request.session, request.setup))
    todo = (
        *_make_steps(world, operation, request, tuple(agents), facts.content),
        *place,
        *_finish_steps(world, operation, request, base_ref, commit, now_ms, tuple(agents), look=look),
    )
    refs = (places.op_ref(operation), *(places.HEADS + agent.branch for agent in agents))
    made = tuple(_created(world, agent) for agent in agents)
    report = CreateReport(
        session=request.session,
        base_ref=base_ref,
        base=commit,
        agents=made,
        warnings=(
            *((_tracked_warning(file),) if tracked else ()),
            *launch_checks.warnings(list(zip(agents, request.roles, strict=True))),
            *(rights.warnings(world, request.roles) if request.launch else ()),
        ),
        steps=tuple(step.say() for step in todo),
    )
    now, boot = time.time_ns(), boot_id()
    done = transaction.Operation(operation, verb(request), request.session, now, boot, todo, refs)
    return Plan(done, report, facts)


def _make_steps(
    world: World, operation: str, request: Request, agents: tuple[Agent, ...], content: str
) -> Iterator[Step]:
    base = world.layout.base
    yield file_steps.MakeBase(operation, str(base), base.is_dir(), fsio.exists(base / ".gitignore"))
    yield branch_steps.ReserveBranches(
        operation,
        tuple((agent.branch, agent.base) for agent in agents),
        tuple((request.session, agent.name) for agent in agents),
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
    yield tree_steps.Verify(
        operation, tuple((str(world.layout.root / agent.worktree), agent.branch, agent.base) for agent in agents)
    )
    if request.setup is not None:
        yield from setup.steps_for(world, operation, request.session, agents, request.setup, count=look)
    wish = request.launch
    if wish is not None:
        told = list(zip(agents, request.roles, strict=True))
        yield from launch.start_steps(
            world, operation, request.session, told, wish.task, resume=False, beside=wish.beside
        )
    yield file_steps.SyncToDisk(operation, str(world.layout.base.parent))
    old = world.sessions.get(request.session)
    if request.fork is not None:  # the commits of the other agent are its work, too
        agents = tuple(agent._replace(base=request.fork.base) for agent in agents)
    given = None if request.fork else wish
    session = Session(
        name=request.session,
        operations=(*(old.operations if old else ()), operation),
        created_ms=old.created_ms if old else now_ms,
        base_ref=old.base_ref if old else base_ref,
        base=old.base if old else commit,
        agents=(*(old.agents if old else ()), *agents),
        task=given.task if given else old.task if old else "",
        workflow=given.workflow if given else old.workflow if old else "",
        beside=given.beside if given else old.beside if old else "",
        parent=old.parent if old else parents.starter(world),
        swarm_dir=old.swarm_dir if old else str(world.swarm_dir),
        pod=old.pod if old else wish.pod if wish else "",
        template=old.template if old else wish.template if wish else "",
    )
    yield file_steps.WriteRecord(operation, codec.session_to_bytes(session).decode("ascii"))


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
        instructions=agent.placed[0].path if agent.placed else "",
    )


def _tracked_warning(file: str) -> str:
    return f"the project has a {file} of its own, so the role's instructions were not put into the worktrees"


class _Changes:
    """The warning about uncommitted changes where the set starts; git looks for them in the background."""

    def __init__(self, world: World, request: Request) -> None:
        named = request.base is not None and request.checkout is None
        needless = named or (request.checkout is None and world.git.is_untouched())
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
