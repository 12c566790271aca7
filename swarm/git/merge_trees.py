"""Ask one git to merge many pairs of commits, without a working tree."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.git.running.explain import explain
from swarm.kit.errors import SwarmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from swarm.git.history import Asks
    from swarm.git.running.started import Started

_FLAGS = ("merge-tree", "--write-tree", "-z", "--messages")
#: What git ends with when it is given an option that it does not know.
_UNKNOWN_OPTION = 129


class Answer(NamedTuple):
    """The result of one merge.

    Attributes:
        tree: with conflict markers in it where it is not clean.
        stages: (mode, object, stage, path) of the files in conflict.
        said: what git says of some paths: (these, of what kind, in words).
    """

    clean: bool
    tree: str
    stages: tuple[tuple[str, str, str, str], ...]
    said: tuple[tuple[tuple[str, ...], str, str], ...]


def merge_trees(git: Asks, pairs: Sequence[tuple[str, str]]) -> list[Answer | SwarmError]:
    """Merge the pairs one after the other; an error stands for one that git could not try."""
    found: list[Answer | SwarmError] = []
    while len(found) < len(pairs):
        left = pairs[len(found) :]
        try:
            code, out, err = _run(git, left)
        except SwarmError as error:
            return [*found, *(error for _ in left)]
        done = list(_read(out))
        found += done
        if len(done) < len(left):  # git ends at one that it cannot try
            found.append(explain("cannot try the merge", code, err.decode("utf-8", "replace").strip()))
    return found


class Merger:
    """A git that merges one pair after the other, where each is known only when the one before is done.

    Args:
        known: a commit and its tree. git keeps back the last byte of an answer until the next one, so each question
            is followed by another one, the answer to which is known.
    """

    def __init__(self, start: Callable[..., Started], known: tuple[str, str]) -> None:
        self._git = start(*_FLAGS, "--stdin", what="cannot try the merge")
        self._known = known[0]
        self._end = b"1\0" + known[1].encode("ascii") + b"\0\0"

    def merge(self, ours: str, theirs: str) -> Answer:
        """Merge a pair.

        Raises:
            GitFailed or one of its kind: git could not try it, and has ended.
        """
        question = f"{ours} {theirs}\n{self._known} {self._known}\n".encode("ascii")
        said = self._git.say(question, lambda said: b"\0" + self._end in said[1:])
        return next(_read(said.removeprefix(b"\0")))

    def end(self) -> None:
        """End the git."""
        self._git.end()


def _run(git: Asks, pairs: Sequence[tuple[str, str]]) -> tuple[int, bytes, bytes]:
    """Run git on several pairs, or on the first of them where it takes no more: git 2.38."""
    lines = "".join(f"{ours} {theirs}\n" for ours, theirs in pairs).encode("ascii")
    code, out, err = git.attempt(*_FLAGS, "--stdin", stdin=lines)
    if code == _UNKNOWN_OPTION:
        code, out, err = git.attempt(*_FLAGS, *pairs[0])
        if code in (0, 1):
            out = b"%d\0%b\0" % (1 - code, out)
    return code, out, err


def _read(out: bytes) -> Iterator[Answer]:
    """Yield the complete answers."""
    fields = iter([os.fsdecode(item) for item in out.split(b"\0")[:-1]])
    with contextlib.suppress(StopIteration):
        while True:
            answer = _read_one(fields)
            yield answer


def _read_one(fields: Iterator[str]) -> Answer:
    clean, tree = next(fields) == "1", next(fields).strip()
    stages = []
    while item := next(fields):
        facts, _, path = item.partition("\t")
        mode, oid, stage = facts.split(" ")
        stages.append((mode, oid, stage, path))
    said = []
    while (number := next(fields)).isdigit():  # nothing ends the answer, and so does git's advice about submodules
        paths = tuple([next(fields) for _ in range(int(number))])
        said.append((paths, next(fields), next(fields)))
    return Answer(clean, tree, tuple(stages), tuple(said))
