"""Tokens: of one answer of a model, and of many."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(slots=True)
class Counts:
    """How much was read and written.

    Attributes:
        input: read, without what came from the cache or went into it.
        output: written, with what was only thought.
        cache_read, cache_write: read from the model's cache, read and put into it.
        cache_write_long: how much of *cache_write* was put there for an hour, which costs more.
        requests: answers of the model.
        told_cost: US dollars, where the program tells them.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_long: int = 0
    requests: int = 0
    told_cost: float = 0.0

    @property
    def tokens(self) -> int:
        """Everything read and written."""
        return self.input + self.output + self.cache_read + self.cache_write

    def add(self, other: Counts, times: int = 1) -> None:
        """Add others; with -1 take them away."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + times * getattr(other, one.name))


@dataclass(frozen=True, slots=True)
class Use:
    """One answer.

    Attributes:
        key: names it: told again, it is the same answer, and the last word counts.
        model: as the program calls it.
    """

    key: str
    model: str
    counts: Counts
