"""Values of git's history."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, for people to read."""

    id: str
    author: str
    time: int
    subject: str
