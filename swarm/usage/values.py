"""Values of usage: tokens, cost and time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class ModelUsage:
    """The usage of one model.

    Attributes:
        model: as the agent's program calls it.
        input: tokens read, without those from the model's cache and those put there.
        output: tokens written, thoughts included.
        cache_read, cache_write: tokens read from the cache; read and put there.
        requests: answers, each counted once.
        cost: US dollars; None when the price of a model is not known.
    """

    model: str = ""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    requests: int = 0
    cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input + self.output + self.cache_read + self.cache_write

    def plus(self, other: ModelUsage) -> ModelUsage:
        """Return both together; the cost is known if both are."""
        return replace(
            self,
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            requests=self.requests + other.requests,
            cost=None if self.cost is None or other.cost is None else self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """The usage of one agent.

    Attributes:
        program: the program that plays it.
        models: in the order of their names.
        minutes: for how long its program ran, all its starts together.
        recorded: its program records its usage in a form that swarm reads.
        created_ms: when it was made, in milliseconds since 1970.
        removed_ms: when it was removed; 0 while it is there.
    """

    session: str
    agent: str
    role: str
    program: str
    models: tuple[ModelUsage, ...]
    minutes: float
    recorded: bool
    created_ms: int
    removed_ms: int = 0

    @property
    def total(self) -> ModelUsage:
        """All models together."""
        return total(self.models)


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The usage of several agents.

    Attributes:
        prices_as_of: the day of swarm's table of prices.
    """

    agents: tuple[AgentUsage, ...]
    prices_as_of: str

    @property
    def models(self) -> tuple[ModelUsage, ...]:
        """Each model, of all agents together."""
        found: dict[str, ModelUsage] = {}
        for one in (model for agent in self.agents for model in agent.models):
            found[one.model] = found.get(one.model, ModelUsage(one.model)).plus(one)
        return tuple(found[name] for name in sorted(found))

    @property
    def total(self) -> ModelUsage:
        """Everything."""
        return total(self.models)

    @property
    def minutes(self) -> float:
        """Of all agents."""
        return sum(agent.minutes for agent in self.agents)

    @property
    def unpriced(self) -> tuple[str, ...]:
        """The models whose price is not known."""
        return tuple(one.model for one in self.models if one.cost is None)


def total(models: Iterable[ModelUsage]) -> ModelUsage:
    """Return several models together."""
    whole = ModelUsage()
    for one in models:
        whole = whole.plus(one)
    return whole
