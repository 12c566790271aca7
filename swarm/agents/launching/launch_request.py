"""The program that runs the agents, and its input."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from swarm.programs import registry
from swarm.roles.options import RoleOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.agents.launching.unseen import Unseen
    from swarm.project.model import Agent, Boxed
    from swarm.project.names import AgentSpec
    from swarm.project.world import World
    from swarm.roles.role import Role


#: The name of the agent program that is any command of the user's.
_COMMAND = "command"


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """The program that runs the agents, and its input.

    Attributes:
        command: the argv when the program is ``command``.
        args: further arguments of the program.
        task: the goal of all agents.
        tasks: for some agents their own (name, task) beside it.
        overrides: the wanted changes of roles; once assigned, for some agents (name, changes of its role).
        pod: the pod that the agents belong to.
        template: the pod template that it was made from.
        env: for some agents (name, variables of its environment).
        after: for some agents (name, the agents that finish their tasks first).
        workflow: which kind of work it is.
        beside: the agent in whose window the panes are opened; empty: windows of their own.
        named: the user named the program, so what a role names does not count.
        print_mode: all of them do the task and end, whatever their roles say.
        sandbox: whether all of them run in boxes; None: as settings and roles say.
        unseen: the one agent is started for a turn without a pane; None: in a pane.
        conversation: which the one agent takes up; empty: each begins a new one.
        operation: which starts them, where it is known before; empty: a new one.
        decided: how that one is boxed; None: it has no box.
    """

    program: str
    command: tuple[str, ...] = ()
    task: str = ""
    workflow: str = ""
    beside: str = ""
    named: bool = True
    print_mode: bool = False
    tasks: tuple[tuple[str, str], ...] = ()
    overrides: tuple[tuple[str, Any], ...] = ()
    pod: str = ""
    template: str = ""
    env: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    after: tuple[tuple[str, tuple[str, ...]], ...] = ()
    args: tuple[str, ...] = ()
    sandbox: bool | None = None
    unseen: Unseen | None = None
    conversation: str = ""
    operation: str = ""
    decided: Boxed | None = None

    def task_of(self, agent: str) -> str:
        """Return the agent's own task, beyond the task of the team."""
        return dict(self.tasks).get(agent, "")

    def of(self, role: Role | None) -> LaunchRequest:
        """Return the request for an agent of this role, which may name its own program."""
        if self.named or role is None:
            return self
        if role.options.command:
            return replace(self, program=_COMMAND, command=role.options.command)
        return replace(self, program=role.options.agent_type or self.program)


def equipped(agent: Agent, wish: LaunchRequest, conversation: str) -> Agent:
    """Return the agent's record with its program."""
    return agent._replace(
        program=wish.program,
        command=wish.command,
        conversation=conversation,
        print_mode=wish.print_mode,
        task=wish.task_of(agent.name),
        overrides=dict(wish.overrides).get(agent.name, ()),
        env=(*dict(wish.env).get(agent.name, ()), *((("SWARM_POD", wish.pod),) if wish.pod else ())),
        after=dict(wish.after).get(agent.name, ()),
        args=wish.args,
    )


def overridden(
    world: World, specs: Sequence[AgentSpec], roles: Sequence[Role | None], wish: LaunchRequest
) -> tuple[LaunchRequest, tuple[Role | None, ...]]:
    """Return the request and the roles as the wanted overrides change them.

    Raises:
        OverrideProblem, NotForAgents, Refused
    """
    from swarm.callers import rights
    from swarm.roles import overrides

    changed = overrides.assign(specs, dict(wish.overrides))
    rights.check_overrides(world, {key for pairs in changed.values() for key, _ in pairs})
    adjusted = tuple(
        overrides.adjusted(role, changed[spec.name]) if role is not None and spec.name in changed else role
        for spec, role in zip(specs, roles, strict=True)
    )
    return replace(wish, overrides=tuple(changed.items())), adjusted


def role_for(agent: Agent, role: Role) -> Role:
    """Return the role as the start of an agent adjusted it."""
    from swarm.roles.overrides import adjusted

    return adjusted(role, agent.overrides) if agent.overrides else role


def options_for(agent: Agent, role: Role | None) -> RoleOptions:
    """Return an agent's options: those of its role, with the print mode requested at its start."""
    options = role.options if role else RoleOptions()
    can = registry.program(agent.program, agent.command).prints
    return replace(options, print=can and (options.print or agent.print_mode))
