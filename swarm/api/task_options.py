"""What the tasks of a served agent are: what is asked for, and of the rest what the agent's file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit.errors import UsageProblem
from swarm.services import definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.services.values import ServedAgent
    from swarm.tasks.requests import TaskOptions


def of_agent(agent: ServedAgent, asked: Mapping[str, Any]) -> TaskOptions:
    """Return the options of an agent's task: what is asked for, and of the rest what the agent's file says."""
    says = agent.says
    known: dict[str, Any] = {
        "model": says.model,
        "role": says.role,
        "timeout": says.timeout,
        "hold": says.hold,
        "tries": says.tries,
        "sandbox": says.sandbox.enabled,
        "session_dir": says.session_dir,
        **{key: value for key, value in asked.items() if value is not None},
        "agent": agent.name,
    }
    known |= {"command": says.command} if says.command else {"program": says.program}
    return known  # type: ignore[return-value]  # the keys are those of the options


def check_model(agent: ServedAgent | None, model: str) -> None:
    """Refuse a model that an agent's program cannot have; without an agent, what can be the name of none.

    Raises:
        UsageProblem
    """
    from swarm.roles import agent_file

    try:
        agent_file.check_model(model)
        if agent is not None:
            definition.check_model(agent.says._replace(model=model))
    except ValueError as problem:
        raise UsageProblem(str(problem)) from None
