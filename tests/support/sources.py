"""swarm's own source files, each read and parsed once for all tests that look at them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

#: The package.
SWARM = Path(__file__).parents[2] / "swarm"


@cache
def files() -> tuple[Path, ...]:
    """Return all modules, sorted."""
    return tuple(sorted(SWARM.rglob("*.py")))


@cache
def text_of(path: Path) -> str:
    """Return the text of a module."""
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return every node of a module's syntax tree."""
    return tuple(ast.walk(ast.parse(text_of(path))))
