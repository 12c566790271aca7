"""Values of prepared worktrees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        line: as it is shown.
        outcome: in words; empty when all is well.
        seconds: how long it took.
        tail: the last lines that it printed.
    """

    line: str
    outcome: str = ""
    seconds: float = 0
    tail: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Selected:
    """Files of the main checkout that patterns mean.

    Attributes:
        paths: relative to its root.
        lacking: what was named and is not there.
        problems: what was left out, and why.
    """

    paths: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of one setup.

    Attributes:
        copied, linked: how many files and folders.
        copies: which files were copied, as far as they were few enough to be noted.
        seconds: all of it.
        log: where the commands' output is.
        left: files unknown to git that were there after the setup → a mark that shows whether they changed since.
    """

    copied: int = 0
    linked: int = 0
    copies: tuple[str, ...] = ()
    seconds: float = 0
    commands: tuple[Ended, ...] = ()
    warnings: tuple[str, ...] = ()
    left: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
