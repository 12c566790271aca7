"""Prices of tokens: US dollars for a million, by names of models."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from swarm.usage.spending.use import Counts

_MILLION = 1_000_000
#: Prefixes of a provider before the name: ``anthropic/``, ``us.anthropic.``, ``models/``.
_BEFORE = re.compile(r"^(.*/)?((us|eu|apac|global)\.)?(anthropic\.)?")
#: What stands behind the name of the same model: a size of context, a release, a date.
_BEHIND = re.compile(r"(\[\w+\]|@[\w-]+|-v\d+(:\d+)?|-\d{8}|-\d{4}-\d{2}-\d{2}|-latest)$")


class Prices:
    """A table.

    Args:
        table: ``models``: name → ``[input, output, cache read, cache write, cache write for an hour]``; ``as_of``.
        own: the user's, looked at first; names may be patterns.
    """

    def __init__(self, table: Mapping[str, Any], own: Mapping[str, Sequence[float]] | None = None) -> None:
        self.as_of = str(table.get("as_of") or "")
        self._models: dict[str, Sequence[float]] = dict(table.get("models") or {})
        self._own: dict[str, Sequence[float]] = dict(own or table.get("own") or {})

    def plain(self) -> dict[str, Any]:
        """Return the whole table as JSON knows it."""
        return {"as_of": self.as_of, "models": self._models, "own": self._own}

    def of(self, model: str) -> Sequence[float] | None:
        """Return the five prices of a model; None when they are not known."""
        name = model.lower()
        for pattern, prices in self._own.items():
            if fnmatchcase(name, pattern.lower()):
                return prices
        name = _BEFORE.sub("", name)
        while name not in self._models:
            shorter = _BEHIND.sub("", name)
            if shorter == name:
                return None
            name = shorter
        return self._models[name]

    def cost(self, model: str, counts: Counts) -> float | None:
        """Return the cost of tokens; the program's own figure counts if the model's price is unknown."""
        prices = self.of(model)
        if prices is None:
            return counts.told_cost or None
        read, written, from_cache, to_cache, for_long = prices
        short = max(0, counts.cache_write - counts.cache_write_long)
        whole = counts.input * read + counts.output * written + counts.cache_read * from_cache
        return (whole + short * to_cache + counts.cache_write_long * for_long) / _MILLION
