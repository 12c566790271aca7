"""Load the screen rules of a program."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from swarm.programs.reading.screen_rules import Rules

_FOLDER = Path(__file__).parents[2] / "data" / "screens"


@cache
def load(program: str) -> Rules:
    """Return the rules of a program that swarm ships."""
    with (_FOLDER / f"{program}.toml").open("rb") as file:
        return Rules.of(program, tomllib.load(file))


def find(program: str) -> Rules | None:
    """Return the rules of a program; None where swarm ships none."""
    return load(program) if (_FOLDER / f"{program}.toml").is_file() else None
