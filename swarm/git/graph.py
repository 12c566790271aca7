"""The history of some commits, walked once: ancestors, and the commits at which histories parted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.git.errors import GitFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.git.history import Asks

_FORMAT = "--format=%m %H %T %P"


class Graph:
    """The commits that not all of the given ones have.

    Args:
        tips: the commits to ask about; one that is not there is taken for one without parents.

    Attributes:
        trees: commit → its tree.
    """

    def __init__(self, git: Asks, tips: Iterable[str]) -> None:
        self._git = git
        wanted = [tip for tip in dict.fromkeys(tips) if tip]
        self._edge = self._common(wanted)
        self._parents: dict[str, tuple[str, ...]] = {}
        self.trees: dict[str, str] = {}
        lines = [*wanted, *([f"^{self._edge}"] if self._edge else [])]
        flags = ("--boundary", "--ignore-missing", "--topo-order", "--no-show-signature", "--no-color", _FORMAT)
        out = git.ask("log", *flags, "--stdin", stdin="".join(f"{line}\n" for line in lines).encode("ascii"))
        for line in out.decode("ascii").splitlines():
            mark, commit, self.trees[commit], *parents = line.split(" ")
            if mark != "-":
                self._parents[commit] = tuple(parent for parent in parents if parent)
        self._reached: dict[str, frozenset[str]] = {}

    def _common(self, tips: list[str]) -> str:
        """Return a commit that all of them have; empty if there is none."""
        if len(tips) < 2:
            return ""
        code, out, _ = self._git.attempt("merge-base", "--octopus", *tips)
        return out.decode("ascii").split()[0] if code == 0 else ""

    def tree_of(self, commit: str) -> str:
        """Return the tree of one of the given commits, or of one that ``fork`` gave.

        Raises:
            GitFailed: there is no such commit.
        """
        try:
            return self.trees[commit]
        except KeyError:
            raise GitFailed(f"cannot read the history: commit {commit} is missing") from None

    def knows(self, commits: Iterable[str]) -> bool:
        """Whether it can tell about all these commits, and they are there."""
        return all(commit in self._parents or (commit and commit == self._edge) for commit in commits)

    def has(self, new: str, old: str) -> bool:
        """Whether *new* has everything that *old* has; both are among the given commits."""
        return old == self._edge or old in self._reach(new)

    def since(self, new: str, old: str) -> list[str]:
        """Return the commits that *new* has and *old* has not, the newest first."""
        lacking = self._reach(new) - self._reach(old)
        return [commit for commit in self._parents if commit in lacking]

    def is_merge(self, commit: str) -> bool:
        """Whether a commit of ``since`` has several parents."""
        return len(self._parents[commit]) > 1

    def fork(self, one: str, other: str) -> str:
        """Return where two histories parted; empty if they have nothing in common."""
        both = {commit for commit in self._reach(one) & self._reach(other) if commit in self._parents}
        older = {parent for commit in both for parent in self._parents[commit]}
        last = both - older
        if not last:
            return self._edge
        if len(last) == 1 and (not self._edge or self._edge in self._reach(*last)):
            return last.pop()
        code, out, _ = self._git.attempt("merge-base", one, other)  # they met more than once
        return out.decode("ascii").split()[0] if code == 0 else ""

    def _reach(self, tip: str) -> frozenset[str]:
        """Return a commit and its ancestors, down to where the walk ended."""
        if tip not in self._reached:
            found = {tip}
            queue = [tip]
            while queue:
                more = [parent for parent in self._parents.get(queue.pop(), ()) if parent not in found]
                found.update(more)
                queue += more
            self._reached[tip] = frozenset(found)
        return self._reached[tip]
