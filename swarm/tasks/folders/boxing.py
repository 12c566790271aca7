"""The boxes of tasks: who gets one, decided when a task is accepted, and what it shows of a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.kit.errors import UsageProblem, raise_all
from swarm.programs import registry
from swarm.sandbox import inherited, private, wish
from swarm.sandbox import launching as boxes
from swarm.sandbox.errors import SandboxUnavailable
from swarm.tasks.folders import workspace
from swarm.tasks.values import Place

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.programs.values import Launch
    from swarm.project.model import Boxed
    from swarm.project.world import World
    from swarm.roles.role import Role
    from swarm.tasks.bench import Bench
    from swarm.tasks.folders.workspace import Where
    from swarm.tasks.values import AgentTask


def decide(bench: Bench, asked: bool | None, role: Role, there: Where | None) -> Boxed | None:  # noqa: FBT001  # as the option says it
    """Return how the program of a new task is boxed. Nothing is written.

    Args:
        there: the folder of the session that the task names, or is to have; None: it gets a worktree.

    Raises:
        SandboxUnavailable: no box can be made.
        UsageProblem: the session goes on otherwise.
        NotForAgents, ConfigProblem: what is wanted is not for the caller to say.
    """
    world = bench.world
    begun = there is not None and bool(there.known())
    known = there.boxed() if begun and there is not None else None
    if begun and asked is None and known is not None:
        asked = True
    raise_all("cannot submit the task", list(wish.problems(world, asked, [(role, False)])))
    made = wish.boxed(world, asked, role)
    if not begun:
        return made
    if (made is None) != (known is None):
        how = "in a box" if known is not None else "without one"
        words = f"cannot submit the task: its session was begun {how}, and goes on so"
        raise UsageProblem(words, hint="name another session")
    above = inherited.of_caller(world)
    if above is None or known is None or made is None:
        return known
    return inherited.within(known, above)._replace(denied=made.denied)


def require(bench: Bench, task: AgentTask) -> None:
    """Refuse to start a task whose box cannot be made any more.

    Raises:
        SandboxUnavailable
    """
    cause, hint = wish.unavailable(bench.world) if task.is_boxed else ("", "")
    if cause:
        raise SandboxUnavailable(f"cannot make a box: {cause}", hint=hint)


def home(bench: Bench, task: AgentTask) -> Path:
    """Return the private home of a task's program, on the machine."""
    layout = bench.world.layout
    if task.place is Place.WORKTREE:
        return boxes.home_of(bench.world, task.session_id, task.role)
    return workspace.of(layout, task).box / "home"


def kept(world: World, task: AgentTask) -> boxes.Kept | None:
    """Return how the program of a task in a folder is kept; None: it has no box."""
    if task.box is None or task.box.reason:
        return None
    there = workspace.of(world.layout, task)
    return boxes.Kept(task.box, there.box, private.folder_box(there.work, there.box))


def introduce(bench: Bench, task: AgentTask, launch: Launch) -> None:
    """Answer the first questions of a program in a new home beforehand."""
    program, environ = registry.program(task.program, task.command), {"HOME": launch.environ["HOME"]}
    file = program.home(launch.options, environ)
    if file:
        environ |= program.at_door(launch.models_at)
        program.preapprove(file, bench.world.layout.root, [launch.worktree], environ)
