"""Gemini CLI: ``tmp/<name>/chats/`` in its folder; ``tmp/<name>/.project_root`` says for which folder.

A message is written again, with the same id, when there is more of it.
"""

from __future__ import annotations

import hashlib
import os

from swarm.machine import foreign
from swarm.machine.tail import END, Tail, iso, mapping, newest_first, number, text, whole
from swarm.usage.spending.use import Counts, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any


#: In a home that swarm made for an agent: the user's own, to which its links lead.
USERS = "user-home"


def home_of(env: Mapping[str, str], home: str) -> str:
    """Return the folder of its records, for a program with this environment: the user's, also for an agent's child."""
    named = env.get("GEMINI_CLI_HOME") or home
    try:
        with open(os.path.join(named, USERS), encoding="utf-8") as file:
            named = file.read(4096)
    except (OSError, ValueError):
        pass  # it is the user's
    return f"{named}/.gemini"


class Record:
    """All conversations of one worktree; arguments as ``usage.spending.meter`` gives them."""

    def __init__(self, home: str, cwd: str, since_ms: int) -> None:
        self._folder = os.path.join(home, "tmp")
        self._cwd = cwd
        self._since = iso(since_ms)
        self._tails: dict[str, Tail] = {}
        self._times: dict[str, int] = {}
        self._roots: dict[str, str] = {}

    def grown(self) -> bool:
        """Whether there may be something new."""
        return any(tail.grown() if _is_lines(tail.path) else self._is_newer(tail.path) for tail in self.tails())

    def uses(self) -> Iterator[Use]:
        """Give the answers that were added since the last look."""
        for _, message in self.lines(b'"tokens"'):
            use = use_of(message)
            if use is not None:
                yield use

    def lines(self, *words: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the messages that were added since, each with the file it is from."""
        for tail in self.tails():
            for line in tail.lines(*words) if _is_lines(tail.path) else self._again(tail.path):
                for message in _messages(line):
                    if text(message.get("timestamp")) >= self._since:
                        yield tail.path, message

    def latest(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the end of the newest conversation."""
        path = next(iter(newest_first(self._paths())), "")
        lines = Tail(path).last(END, b'"gemini"') if _is_lines(path) else [whole(path)] if path else []
        for line in lines:
            for message in _messages(line):
                if text(message.get("timestamp")) >= self._since:
                    yield path, message

    def tails(self) -> list[Tail]:
        """Return the files there are now; their names sort by time."""
        for path in sorted(self._paths()):
            if path not in self._tails:
                self._tails[path] = Tail(path)
        return list(self._tails.values())

    def _paths(self) -> Iterator[str]:
        for folder in self._folders():
            found = foreign.below(os.path.join(folder, "chats"))
            yield from (path for path in found if path.endswith((".jsonl", ".json")))

    def _folders(self) -> Iterator[str]:
        hashed = hashlib.sha256(os.fsencode(self._cwd)).hexdigest()
        for name in foreign.names(self._folder):
            folder = os.path.join(self._folder, name)
            if name not in self._roots:
                self._roots[name] = _first_line(os.path.join(folder, ".project_root"))
            if name == hashed or self._roots[name] == self._cwd:
                yield folder
            elif not self._roots[name]:
                del self._roots[name]  # not written yet

    def _again(self, path: str) -> list[dict[str, Any]]:
        """Return the whole file of an earlier version's kind if it changed."""
        if not self._is_newer(path):
            return []
        self._times[path] = _time_of(path)
        return [whole(path)]

    def _is_newer(self, path: str) -> bool:
        return _time_of(path) != self._times.get(path)


def use_of(message: dict[str, Any]) -> Use | None:
    """Return the usage in one message; None without any."""
    tokens = mapping(message.get("tokens"))
    if not tokens or not text(message.get("id")):
        return None
    cached = number(tokens.get("cached"))
    counts = Counts(
        input=max(0, number(tokens.get("input")) - cached) + number(tokens.get("tool")),
        output=number(tokens.get("output")) + number(tokens.get("thoughts")),
        cache_read=cached,
        requests=1,
    )
    return Use(text(message.get("id")), text(message.get("model")), counts)


def _messages(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for holder in (line, mapping(line.get("$set"))):
        found = holder.get("messages")
        yield from (one for one in found if isinstance(one, dict)) if isinstance(found, list) else ()
    if "id" in line and "type" in line:
        yield line


def _is_lines(path: str) -> bool:
    return path.endswith(".jsonl")


def _first_line(path: str) -> str:
    try:
        with open(foreign.open_file(path), encoding="utf-8", errors="surrogateescape") as file:
            return file.read(1 << 16).rstrip("\n")
    except OSError:
        return ""


def _time_of(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
