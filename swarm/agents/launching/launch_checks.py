"""Reasons against starting an agent, and parts of its role without effect."""

from __future__ import annotations

import shlex
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from swarm.agents.launching import telemetry
from swarm.kit.errors import ConfigProblem, SwarmError, UsageProblem
from swarm.programs import registry
from swarm.project import find
from swarm.project.layout import root_dir
from swarm.roles.environment import environ_of
from swarm.roles.options import RoleOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.agents.launching.launch_request import LaunchRequest
    from swarm.programs.base import Program
    from swarm.project.model import Agent
    from swarm.project.world import World
    from swarm.roles.role import Role

_DENY = "permissions.deny"
_BOX_TOO = ", but for what its box holds: `swarm role check`"


def problems(world: World, wish: LaunchRequest) -> Iterator[SwarmError]:
    """Yield all reasons against a start, before anything is made."""
    pane = () if wish.unseen else (world.terminal.check,)
    for look in (*pane, lambda: registry.find(wish.program, wish.command, world.environ)):
        try:
            look()
        except SwarmError as problem:
            yield problem


def refusals(world: World, wish: LaunchRequest, role: Role | None, *, placed: bool = False) -> Iterator[SwarmError]:
    """Yield the parts of a role that its program would refuse, and a wrong repository.

    Args:
        placed: its place was chosen by what the role says.
    """
    options = role.options if role else RoleOptions()
    if role is not None and not placed:
        yield from misplaced(world, role, f"cannot start {role.name}", "start")
    try:
        program = registry.program(wish.program, wish.command)
    except SwarmError:
        return  # ``problems`` tells it, with all the others
    yield from program.check(options, environ_of(world, options.env))
    yield from telemetry.problems(world, options)
    yield from _print_refusals(program, wish, role)


def misplaced(world: World, role: Role, attempt: str, command: str) -> Iterator[SwarmError]:
    """Yield the error for a role of another repository: its ``root_dir`` is elsewhere, or nowhere.

    Args:
        attempt: what cannot be done, such as "cannot start developer".
        command: what to do there instead.
    """
    wanted, home = role.options.root_dir, world.environ.get("HOME", "")
    folder = root_dir(wanted, cwd=world.layout.root, swarm_dir=world.swarm_dir, home=home)
    root = find.main_checkout(folder) if folder.is_dir() else None
    if root is None:
        yield ConfigProblem(
            f"{attempt}: its root_dir {folder} is not a folder in a git repository",
            hint=f"a relative path counts from {world.swarm_dir}; inside the worktree use `worktree: {{subdir: …}}`",
        )
    elif not world.layout.root.samefile(root):
        yield UsageProblem(
            f"{attempt} here: its root_dir is in another repository, {root}",
            hint=f"swarm -C {shlex.quote(str(root))} {command} …",
        )


def project_refusals(world: World, wish: LaunchRequest, role: Role | None, commit: str) -> Iterator[SwarmError]:
    """Yield the questions about the project that its program would ask at the start.

    Args:
        commit: where the worktrees start.
    """
    options = role.options if role else RoleOptions()
    try:
        program = registry.program(wish.program, wish.command)
    except SwarmError:
        return  # ``problems`` tells it
    asked = replace(options, print=program.prints and (options.print or wish.print_mode))
    read = partial(world.trees.saved_file, commit)
    yield from program.check_project(asked, environ_of(world, options.env), world.layout.root, read)


def _printing() -> Iterator[str]:
    return (name for name in registry.PROGRAMS if registry.program(name).prints)


def _print_refusals(program: Program, wish: LaunchRequest, role: Role | None) -> Iterator[SwarmError]:
    """Yield the reasons against a start in print mode."""
    by_role = role is not None and role.options.print
    if wish.print_mode and not program.prints:
        yield UsageProblem(
            f"cannot start {_called(program, wish)} in print mode: the program has no print mode",
            hint=f"remove --print, or choose a program with one: --agent {', '.join(_printing())}",
        )
    elif (wish.print_mode or by_role) and program.prints and not wish.task.strip():
        whose = f" {role.name}" if role is not None else ""
        yield UsageProblem(
            f"cannot start{whose} in print mode without a task: it does one task and ends",
            hint="give a task: swarm start … --task TEXT" + (", or remove `print` from the role" if by_role else ""),
        )


def _called(program: Program, wish: LaunchRequest) -> str:
    """Return the name of the requested program, as users know it."""
    return f"the command {wish.command[0]}" if wish.command else program.name


def warnings(agents: Sequence[tuple[Agent, Role | None]], *, run: bool = False) -> tuple[str, ...]:
    """Name the parts of the agents' roles without effect in their programs.

    Args:
        run: it is the one agent of ``swarm run``, with which more of them count.
    """
    from swarm.programs import role_effects

    found = (
        f"{note.key} of role {role.name} {note.text}{_BOX_TOO if agent.is_boxed and note.key == _DENY else ''}"
        for agent, role in agents
        if role is not None and agent.program
        for note in role_effects.notes(_asked_of(agent, role), (agent.program,))
        if not (run and note.key in role_effects.ONLY_RUN)
    )
    return tuple(dict.fromkeys(found))


def _asked_of(agent: Agent, role: Role) -> RoleOptions:
    return replace(role.options, print=role.options.print or agent.print_mode)
