"""The rules files in ``swarm/data/screens``, read when a program's state is asked of its screen."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from swarm.domain.screens import Rules

_FOLDER = Path(__file__).parents[2] / "data" / "screens"


@cache
def load(program: str) -> Rules:
    """Return the rules of a program that swarm ships."""
    with (_FOLDER / f"{program}.toml").open("rb") as file:
        return Rules.of(program, tomllib.load(file))
