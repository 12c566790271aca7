"""Codex: ``sessions/<year>/<month>/<day>/rollout-*.jsonl`` in its home; the first line names the folder it works in."""

from __future__ import annotations

import os

from swarm.machine import foreign
from swarm.machine.tail import END, Tail, iso, mapping, newest_first, number, text
from swarm.usage.spending.use import Counts, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_HEAD = 4 << 20


def home_of(env: Mapping[str, str], home: str) -> str:
    """Return the folder of its records, for a program with this environment."""
    return env.get("CODEX_HOME") or f"{home}/.codex"


class Record:
    """All conversations of one worktree; arguments as ``usage.spending.meter`` gives them."""

    def __init__(self, home: str, cwd: str, since_ms: int) -> None:
        self._folder = os.path.join(home, "sessions")
        self._cwd = cwd
        self._since = iso(since_ms)
        self._tails: dict[str, Tail | None] = {}
        self._states: dict[str, _Rollout] = {}

    def grown(self) -> bool:
        """Whether there may be something new."""
        return any(tail.grown() for tail in self.tails())

    def uses(self) -> Iterator[Use]:
        """Give the answers that were added since the last look."""
        for path, line in self.lines(b'"token_', b'"turn_context"'):
            state = self._states.setdefault(path, _Rollout(os.path.basename(path)))
            use = state.take(line)
            if use is not None:
                yield use

    def lines(self, *words: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the lines that were added since, each with the file it is from."""
        for tail in self.tails():
            for line in tail.lines(*words):
                if text(line.get("timestamp")) >= self._since:
                    yield tail.path, line

    def latest(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the end of the newest conversation."""
        path = next((one for one in newest_first(self._paths()) if self._is_mine(one)), "")
        for line in Tail(path).last(END, b'"assistant"') if path else ():
            if text(line.get("timestamp")) >= self._since:
                yield path, line

    def tails(self) -> list[Tail]:
        """Return the files there are now; their names sort by time."""
        for path in sorted(self._paths()):
            if path not in self._tails:
                mine = self._is_mine(path)
                if mine is not None:
                    self._tails[path] = Tail(path) if mine else None
        return [tail for tail in self._tails.values() if tail is not None]

    def _paths(self) -> Iterator[str]:
        """Give the files of the days since the agent was made."""
        first = self._since[:10].replace("-", "/")
        for year in _names(self._folder):
            for month in _names(os.path.join(self._folder, year)):
                for day in _names(os.path.join(self._folder, year, month)):
                    if f"{year}/{month}/{day}" < _day_before(first):
                        continue
                    folder = os.path.join(self._folder, year, month, day)
                    names = (name for name in _names(folder) if name.startswith("rollout-") and name.endswith(".jsonl"))
                    yield from (os.path.join(folder, name) for name in names)

    def _is_mine(self, path: str) -> bool | None:
        """Whether a file is of this worktree; None when that is not written yet."""
        for line in Tail(path).lines():
            cwd = text(mapping(line.get("payload")).get("cwd"))
            return cwd == self._cwd or cwd.startswith(f"{self._cwd}/")
        return None


class _Rollout:
    """The content of one file so far: model and counts stand apart."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._model = ""
        self._tells_each = False
        self._total = Counts()

    def take(self, line: dict[str, Any]) -> Use | None:
        payload = mapping(line.get("payload"))
        if line.get("type") == "turn_context":
            self._model = text(payload.get("model")) or self._model
        elif line.get("type") == "token_usage_record":
            self._tells_each = True
            key = text(payload.get("response_id"))
            return Use(key or f"{self._name}/{line.get('ordinal')}", self._model, _counts(payload.get("usage")))
        elif payload.get("type") == "token_count" and not self._tells_each:
            return self._from_totals(mapping(payload.get("info")))
        return None

    def _from_totals(self, info: dict[str, Any]) -> Use | None:
        """Earlier versions tell only totals, and the same one again and again."""
        total = _counts(info.get("total_token_usage"))
        if not total.tokens or total == self._total:
            return None
        restarted = total.tokens < self._total.tokens
        counts = _counts(info.get("last_token_usage") if restarted else info.get("total_token_usage"))
        if not restarted:
            counts.add(self._total, -1)
            counts.requests = 1
        self._total = total
        return Use(f"{self._name}/{total.input}/{total.cache_read}/{total.output}", self._model, counts)


def _counts(usage: object) -> Counts:
    """Return counts in our sense, as the input that Codex counts includes the cache."""
    told = mapping(usage)
    cached, written = number(told.get("cached_input_tokens")), number(told.get("cache_write_input_tokens"))
    return Counts(
        input=max(0, number(told.get("input_tokens")) - cached - written),
        output=number(told.get("output_tokens")),
        cache_read=cached,
        cache_write=written,
        requests=1,
    )


def _names(folder: str) -> list[str]:
    return foreign.names(folder)


def _day_before(day: str) -> str:
    """Return a day that is surely earlier: the folders are in local time."""
    import datetime as dt

    try:
        return (dt.date.fromisoformat(day.replace("/", "-")) - dt.timedelta(days=1)).strftime("%Y/%m/%d")
    except ValueError:
        return ""
