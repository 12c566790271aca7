"""The environment of an agent, for a shell of the user's in its worktree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.agents.launching.launch_files import pane_environment
from swarm.agents.launching.launch_request import options_for
from swarm.programs import registry
from swarm.programs.values import Launch
from swarm.roles.options import RoleOptions

if TYPE_CHECKING:
    from swarm.project.model import Agent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role

#: Where there is no /proc, this variable makes a process the agent.
_IDENTITY = "SWARM_RUN_DIR"
#: Of the caller's terminal, which is no pane of the agent's.
_TERMINAL = ("TMUX", "TMUX_PANE", "COLUMNS", "LINES")


def environment_of(world: World, session: Session, agent: Agent, role: Role | None) -> dict[str, str]:
    """Return the variables that an agent's program gets, made from the caller's environment.

    What makes a process the agent is not among them: in such a shell the user stays the user.
    """
    folder = world.layout.run_folder(session.name, agent.name)
    program = registry.program(agent.program or "shell", agent.command)
    launch = Launch(
        agent=agent.name,
        role=agent.role,
        session=session.name,
        worktree=world.layout.root / agent.worktree,
        run_dir=folder,
        role_file=folder / "role.md",
        task_file=folder / "task.md",
        task="",
        conversation=agent.conversation,
        resume=True,
        executable="",
        options=options_for(agent, role) if agent.program else role.options if role else RoleOptions(),
        main=world.layout.root,
        branch=agent.branch,
    )
    terminal = {name: world.environ[name] for name in _TERMINAL if name in world.environ}
    ports = {name: str(port) for name, port in agent.ports}
    made = {**pane_environment(world, launch, program), **ports, **terminal}
    return {name: value for name, value in made.items() if name != _IDENTITY}
