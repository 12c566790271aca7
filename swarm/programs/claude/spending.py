"""Claude Code: ``projects/<folder, with dashes>/<conversation>.jsonl`` in its configuration folder.

One answer is written as several lines, one for each block, with the same id and the usage so far: the last one counts.
``/clear`` begins another file, a fork copies lines into one, and each subagent has a file of its own below the
conversation's folder.  So everything below the folder of the agent's worktree counts, and each answer once.  A folder
that is not the agent's own holds conversations of others, too: there its own count, which swarm knows by their ids.
"""

from __future__ import annotations

import os
import re

from swarm.machine import foreign
from swarm.machine.run_folder import drawn
from swarm.machine.tail import END, Tail, iso, mapping, newest_first, number, text
from swarm.usage.spending.use import Counts, Use

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

#: Its records tell which conversations are an agent's own.
KNOWS_OWN = True
#: The model name of its own entries.
_NO_MODEL = "<synthetic>"
#: Longer names of folders are cut, and a hash is added.
_LONGEST = 200


def home_of(env: Mapping[str, str], home: str) -> str:
    """Return the folder of its records, for a program with this environment."""
    return env.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"


class Record:
    """All conversations of one worktree; in a folder that others share, those of one agent.

    Args:
        home: the configuration folder.
        cwd: where the program was started.
        since_ms: what is older belongs to somebody else.
        own: the agent's first conversation, where it shares the folder; empty: all are its own.
        run_dir: where its hooks write down which conversation it has now, and which children work in its folder.
    """

    def __init__(self, home: str, cwd: str, since_ms: int, own: str = "", run_dir: str = "") -> None:
        self._own = {own} if own else set()
        self._others: set[str] = set()
        self._run_dir = run_dir
        self._projects = os.path.join(home, "projects")
        self._name = re.sub(r"[^a-zA-Z0-9]", "-", cwd)
        self._cwd = cwd
        self._since = iso(since_ms)
        self._tails: dict[str, Tail] = {}
        self._mine: dict[str, bool] = {}

    def grown(self) -> bool:
        """Whether there may be something new."""
        return any(tail.grown() for tail in self.tails())

    def uses(self) -> Iterator[Use]:
        """Give the answers that were added since the last look."""
        for _, line in self.lines(b'"usage"'):
            use = use_of(line)
            if use is not None:
                yield use

    def lines(self, *words: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the lines that were added since, each with the file it is from."""
        for tail in self.tails():
            for line in tail.lines(*words):
                if self._is_mine(tail.path, line) and text(line.get("timestamp")) >= self._since:
                    yield tail.path, line

    def latest(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the end of the newest conversation."""
        talks = (one for one in self._paths() if os.path.basename(os.path.dirname(one)) != "subagents")
        path = next(iter(newest_first(talks)), "")
        for line in Tail(path).last(END, b'"assistant"') if path else ():
            if self._is_mine(path, line) and text(line.get("timestamp")) >= self._since:
                yield path, line

    def tails(self) -> list[Tail]:
        """Return the files there are now, oldest conversation first, subagents behind theirs."""
        for path in sorted(self._paths(), key=_begun):
            if path not in self._tails:
                self._tails[path] = Tail(path)
        return list(self._tails.values())

    def _paths(self) -> Iterator[str]:
        if self._own:
            self._own |= drawn.current(self._run_dir)
        elif self._run_dir:
            self._others |= drawn.conversations(self._run_dir)
        for folder in self._folders():
            for path in _entries(folder):
                name, is_record = os.path.basename(path).removesuffix(".jsonl"), path.endswith(".jsonl")
                if is_record and name not in self._others and (not self._own or name in self._own):
                    yield path
                    inner = os.path.join(path.removesuffix(".jsonl"), "subagents")
                    yield from (one for one in _entries(inner) if one.endswith(".jsonl"))

    def _folders(self) -> list[str]:
        if len(self._name) <= _LONGEST:
            return [os.path.join(self._projects, self._name)]
        return [one for one in _entries(self._projects) if os.path.basename(one).startswith(self._name[:_LONGEST])]

    def _is_mine(self, path: str, line: dict[str, Any]) -> bool:
        """Whether a file is of this worktree: other paths give the same name."""
        if path not in self._mine:
            cwd = text(line.get("cwd"))
            if not cwd:
                return True  # not reported yet
            self._mine[path] = cwd == self._cwd or cwd.startswith(f"{self._cwd}/")
        return self._mine[path]


def use_of(line: dict[str, Any]) -> Use | None:
    """Return the usage in one line; None without any."""
    message = mapping(line.get("message"))
    usage, model = mapping(message.get("usage")), text(message.get("model"))
    if line.get("type") != "assistant" or not usage or model == _NO_MODEL:
        return None
    key = f"{text(message.get('id')) or text(line.get('uuid'))}/{text(line.get('requestId'))}"
    counts = Counts(
        input=number(usage.get("input_tokens")),
        output=number(usage.get("output_tokens")),
        cache_read=number(usage.get("cache_read_input_tokens")),
        cache_write=number(usage.get("cache_creation_input_tokens")),
        cache_write_long=number(mapping(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")),
        requests=1,
    )
    return Use(key, model, counts)


def _entries(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in foreign.names(folder)]


def _begun(path: str) -> tuple[float, str]:
    """Return the sort key of a file: the time of its last write."""
    try:
        return os.stat(path).st_mtime, path
    except OSError:
        return 0.0, path
