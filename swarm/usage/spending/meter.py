"""Count an agent's usage, each answer once."""

from __future__ import annotations

import os
from importlib import import_module

from swarm.usage.spending.use import Counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    from swarm.usage.spending.prices import Prices
    from swarm.usage.spending.use import Use

    class Record(Protocol):
        """A program's record of its conversations."""

        def grown(self) -> bool:
            """Whether there may be something new."""

        def uses(self) -> Iterator[Use]:
            """Give the answers that were added since the last look."""

        def lines(self, *words: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
            """Yield the new lines, each with its conversation."""

        def latest(self) -> Iterator[tuple[str, dict[str, Any]]]:
            """Return the end of the newest conversation, long enough for its last text."""


#: So many answers are known again, and so many models told apart.
_MOST_ANSWERS, _MOST_MODELS = 1 << 20, 1000


def source_of(
    program: str, command: tuple[str, ...], env: Mapping[str, str], cwd: str, since_ms: int
) -> dict[str, Any]:
    """Return where the records of an agent are, as JSON knows it.

    Args:
        program: its name.
        command: the argv of one that is any command; it may well be one of the known ones.
        env: the environment of the program.
        cwd: where it is started.
        since_ms: when the agent was made.
    """
    name = os.path.basename(command[0]) if command else program
    home = env.get("HOME") or os.path.expanduser("~")
    module = _spending(name)
    found = module.home_of(env, home) if module else ""
    where = os.path.realpath(cwd)  # as the program finds it
    return {"program": name, "home": found, "cwd": where, "since_ms": since_ms}


def open_record(source: Mapping[str, Any]) -> Record | None:
    """Return the record of a source; None when the program has none that is known."""
    name, home, cwd, since = (source.get(key) for key in ("program", "home", "cwd", "since_ms"))
    module = _spending(name) if isinstance(name, str) else None
    if module is None or not isinstance(home, str) or not isinstance(cwd, str) or not isinstance(since, int):
        return None
    whose = (str(source.get("conversation")) if source.get("shared") else "", str(source.get("run_dir") or ""))
    record: Record = module.Record(home, cwd, since, *(whose if getattr(module, "KNOWS_OWN", False) else ()))
    return record


def tells_apart(program: str, command: tuple[str, ...]) -> bool:
    """Whether what several agents use up in one folder is counted apart; so it is where nothing is counted at all."""
    module = _spending(os.path.basename(command[0]) if command else program)
    return module is None or bool(getattr(module, "KNOWS_OWN", False))


def _spending(name: str) -> Any:
    """Return the module in a program's folder that reads its records; None without one."""
    try:
        return import_module(f"swarm.programs.{name}.spending") if name.isidentifier() else None
    except ModuleNotFoundError:
        return None


class Meter:
    """The sums of one record."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._seen: dict[str, Use] = {}
        self.models: dict[str, Counts] = {}

    def look(self) -> bool:
        """Read new lines; return whether any came."""
        if not self._record.grown():
            return False
        for use in self._record.uses():
            old = self._seen.get(use.key)
            if old is not None:
                self._sum(old.model).add(old.counts, -1)
            if old is not None or len(self._seen) < _MOST_ANSWERS:  # of further ones each line counts
                self._seen[use.key] = use
            self._sum(use.model).add(use.counts)
        return True

    def tokens(self) -> int:
        """Everything read and written."""
        return sum(counts.tokens for counts in self.models.values())

    def cost(self, prices: Prices) -> tuple[float, list[str]]:
        """Return the cost, and the models without a price."""
        known = {model: prices.cost(model, counts) for model, counts in self.models.items() if counts.tokens}
        return sum(cost or 0.0 for cost in known.values()), [model for model, cost in known.items() if cost is None]

    def _sum(self, model: str) -> Counts:
        known = model in self.models or len(self.models) < _MOST_MODELS
        return self.models.setdefault(model if known else "", Counts())
