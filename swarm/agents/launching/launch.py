"""Launch agent programs: their instructions, their private files and their panes.

    PrepareRun ─► OpenPanes (each waits at its gate) ─► … ─► WriteRecord ══ committed ══► the gates open

A pane runs swarm's launcher.  It starts the program only when the session's record carries the
operation, and ends without having started anything when the operation was taken back.  So no agent works
before its set exists, and nothing has to be launched after the commit: a crash there leaves a swarm that starts.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm import supervisor
from swarm.agents.launching.launch_files import PrepareRun
from swarm.agents.launching.launch_request import options_for
from swarm.kit.errors import SwarmError
from swarm.kit.words import count
from swarm.programs import registry
from swarm.roles.environment import environ_of
from swarm.roles.options import RoleOptions, plain
from swarm.sandbox import launching as boxes
from swarm.terminal.marks import panes_of, repository_mark
from swarm.terminal.values import PanePlan
from swarm.worktrees.lock_reason import is_running_reason, running_reason
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.agents.launching.unseen import Unseen
    from swarm.project.model import Agent, Parent
    from swarm.project.world import World
    from swarm.roles.role import Role
    from swarm.terminal.values import Pane

#: How often, and after how many seconds, a pane is looked at that should be dead.
_LOOKS, _LOOK_AGAIN = 50, 0.02


def pane_plan(world: World, session: str, agent: str, tree: Path) -> PanePlan:
    """Return the pane of an agent: swarm's launcher with the file that tells it the rest."""
    launcher = Path(supervisor.__file__).with_name("launcher.py")
    spec = world.layout.run_folder(session, agent) / "launch.json"
    return PanePlan(agent, tree, (sys.executable, "-I", "-S", str(launcher), str(spec)))


@dataclass(frozen=True, slots=True)
class PreapproveFolder(Step):
    """Answer a program's questions at its first start, and at that in a folder, beforehand.

    Attributes:
        trees: the folders; one that swarm did not make is not among them: the user says whom to trust there.
        program: its name.
        home: the file of the program's that must know the folders.
        env: how the agents' environment differs from the caller's, as `role_fields.plain` gives it.
        box_home: the private home of an agent in a box, which has nothing of the caller's environment.
        door: the address there of the door to its models; empty: it has none.
    """

    program: str
    home: str
    trees: tuple[str, ...]
    env: dict[str, Any]
    box_home: str = ""
    door: str = ""

    def do(self, world: World) -> None:
        trees = [Path(tree) for tree in self.trees]
        environ = environ_of(world, RoleOptions.from_plain({"env": self.env}).env)
        if self.box_home:
            environ = {"HOME": self.box_home, **registry.program(self.program).at_door(self.door)}
        registry.program(self.program).preapprove(self.home, world.layout.root, trees, environ)

    def undo_files(self, world: World) -> None:
        with contextlib.suppress(SwarmError):  # the file belongs to the program; leftovers there do no harm
            registry.program(self.program).withdraw(self.home, [Path(tree) for tree in self.trees])

    def say(self) -> str:
        what = f"let {self.program} know {count(len(self.trees), 'worktree')}" if self.trees else ""
        return f"{what or f'answer the first questions of {self.program}'} ({self.home})"


@dataclass(frozen=True, slots=True)
class OpenPanes(Step):
    """Open one pane per agent; a dead pane that an agent still has is used again.

    Attributes:
        agents: (name, worktree) each.
        beside: the agent in whose window they are to be, if it has a pane.
    """

    session: str
    agents: tuple[tuple[str, str], ...]
    beside: str = ""

    def do(self, world: World) -> None:
        world.progress(count(len(self.agents), "pane"))
        there = self._dead_panes(world)
        plans = [pane_plan(world, self.session, name, Path(tree)) for name, tree in self.agents]
        for plan in plans:
            if plan.agent in there:
                world.terminal.respawn(there[plan.agent].id, plan)
        fresh = [plan for plan in plans if plan.agent not in there]
        if fresh:
            mark = repository_mark(world.layout.root)
            per_window = world.settings.tmux.panes_per_window
            beside = _pane_of_address(world, self.beside) if self.beside else None
            world.terminal.open(mark, self.operation, self.session, fresh, per_window, beside)

    def _dead_panes(self, world: World) -> dict[str, Pane]:
        """Return the panes that can be used again; one whose program has just ended is dead in a moment."""
        names = {name for name, _ in self.agents}
        mine: list[Pane] = []
        for _ in range(_LOOKS):
            mine = [pane for pane in panes_of(world, self.session) if pane.agent in names]
            if all(pane.dead for pane in mine):
                break
            time.sleep(_LOOK_AGAIN)
        return {pane.agent: pane for pane in mine if pane.dead}

    def undo_files(self, world: World) -> None:
        # A pane from before stays: its launcher ends, because its gate does not open.
        mark = repository_mark(world.layout.root)
        mine = [p.id for p in world.terminal.panes() if p.operation == self.operation and p.repository == mark]
        world.terminal.kill(mine)

    def say(self) -> str:
        return f"open {count(len(self.agents), 'pane')} in tmux"


def _pane_of_address(world: World, address: str) -> Pane | None:
    agent, _, session = address.partition("@")
    return next((pane for pane in panes_of(world, session) if pane.agent == agent), None)


@dataclass(frozen=True, slots=True)
class LockRunning(Step):
    """Lock the worktrees of agents that are about to run, so that no cleanup elsewhere takes them away."""

    session: str
    agents: tuple[tuple[str, str], ...]

    def do(self, world: World) -> None:
        for name, tree in self.agents:
            admin = world.git.admin_of(Path(tree))
            if admin is not None and admin.locked is None:
                world.git.lock(admin, running_reason(name, self.session))

    def undo_files(self, world: World) -> None:
        for _, tree in self.agents:
            release(world, Path(tree))

    def say(self) -> str:
        return "lock the worktrees while their agents run"


def release(world: World, tree: Path) -> None:
    """Take swarm's own lock off a worktree; the user's stays."""
    admin = world.git.admin_of(tree)
    if admin is not None and is_running_reason(admin.locked):
        world.git.unlock(admin)


def start_steps(  # noqa: PLR0913  # what a start may say
    world: World,
    operation: str,
    session: str,
    agents: Sequence[tuple[Agent, Role | None]],
    task: str,
    *,
    resume: bool,
    anew: bool = False,
    fresh: bool = False,
    beside: str = "",
    parent: Parent | None = None,
    unseen: Unseen | None = None,
) -> Iterator[Step]:
    """Give the steps that open the panes of some agents.

    Args:
        agents: each with its role.
        task: the one for all of them; each has its own in its record.
        resume: they were started before, and take up their conversations.
        anew: those in print mode do their task anew instead.
        fresh: all of them begin a new conversation instead.
        beside: the agent in whose window the panes are to be.
        parent: the agent on whose budget theirs are drawn.
        unseen: the one agent is started for a turn without a pane.
    """
    from swarm.project.codec import agent_to_dict
    from swarm.project.model import whole_task

    root = world.layout.root
    for agent, role in agents:
        tree = str(root / agent.worktree)
        text, options = role.instructions if role else "", options_for(agent, role)
        new = fresh or (anew and options.print)
        told = "" if agent.after else whole_task(task, agent.task)  # `agents.after` sends it later
        told = told if unseen is None else unseen.text
        how = {"options": plain(options), "anew": new, "parent": tuple(parent or ())}
        how["unseen"] = {} if unseen is None else unseen._asdict()
        yield PrepareRun(operation, session, agent_to_dict(agent), tree, text, told, resume, **how)
    yield from _introductions(world, operation, session, agents)
    pairs = tuple((agent.name, str(root / agent.worktree)) for agent, _ in agents)
    own = tuple((agent.name, str(root / agent.worktree)) for agent, _ in agents if not agent.shared)
    if own:
        yield LockRunning(operation, session, own)
    if unseen is None:
        yield OpenPanes(operation, session, pairs, beside)
        return
    from swarm.agents.launching.unseen import StartUnseen

    yield from (StartUnseen(operation, session, name, unseen.folder) for name, _ in pairs)


def is_in_swarms_folder(world: World, agent: Agent) -> bool:
    """Whether swarm made the folder in which an agent works: its worktree, or the workspace of a task."""
    return not agent.shared or (world.layout.root / agent.worktree).is_relative_to(world.layout.workspaces)


def is_in_leads_worktree(world: World, agent: Agent) -> bool:
    """Whether an agent works in a worktree that swarm made for another one."""
    own = (one for session in world.sessions.scan()[0] for one in session.agents if not one.shared)
    root = world.layout.root
    return any(root / one.worktree == root / agent.worktree for one in own)


def _introductions(
    world: World, operation: str, session: str, agents: Sequence[tuple[Agent, Role | None]]
) -> Iterator[PreapproveFolder]:
    """Give one step for each file with the answers to a program's first questions; most programs have none."""
    found: dict[str, PreapproveFolder] = {}
    for agent, role in agents:
        options = role.options if role else RoleOptions()
        apart = str(boxes.home_of(world, session, agent.name)) if agent.is_boxed else ""
        door = boxes.door_of(agent.box) if agent.is_boxed and agent.box is not None else ""
        environ = {"HOME": apart} if apart else environ_of(world, options.env)
        if apart:
            options = replace(options, claude_config_dir="")
        home = registry.program(agent.program, agent.command).home(options, environ)
        if home:
            first = PreapproveFolder(operation, agent.program, home, (), plain(options.env), apart, door)
            one = found.setdefault(f"{agent.program} {home} {first.env}", first)
            known = apart or is_in_swarms_folder(world, agent) or is_in_leads_worktree(world, agent)
            trees = (str(world.layout.root / agent.worktree),) if known else ()
            found[f"{agent.program} {home} {first.env}"] = replace(one, trees=(*one.trees, *trees))
    yield from found.values()
