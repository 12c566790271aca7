"""How two commits differ, and the checkout that shows one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working tree and git's folder for it."""

    tree: Path
    gitdir: Path


@dataclass(frozen=True, slots=True)
class Changes:
    """How two commits differ: path → (mode, object id) before and after."""

    old: Mapping[str, tuple[str, str]]
    new: Mapping[str, tuple[str, str]]

    @property
    def paths(self) -> frozenset[str]:
        """Every path that differs."""
        return frozenset((*self.old, *self.new))

    def but(self, paths: Collection[str]) -> Changes:
        """Return the changes of the other paths."""
        return Changes(*({p: e for p, e in side.items() if p not in paths} for side in (self.old, self.new)))

    def made_by(self, other: Changes) -> frozenset[str]:
        """Return the paths that another way from the same beginning leads to the same end."""
        return frozenset(p for p in self.paths & other.paths if self.new.get(p) == other.new.get(p))
