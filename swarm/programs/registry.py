"""The agent programs that swarm knows, by name; each is loaded when it is asked for."""

from __future__ import annotations

import shlex
import shutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from swarm.kit.errors import UsageProblem
from swarm.kit.words import did_you_mean
from swarm.programs import plain
from swarm.programs.errors import ProgramMissing
from swarm.project.names import PROGRAMS as PROGRAMS  # noqa: PLC0414  # offered here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.base import Program

COMMAND = "command"


def program(name: str, command: tuple[str, ...] = ()) -> Program:
    """Return the program of a name; ``command`` is any argv of the user's.

    Raises:
        UsageProblem: the name is not known.
    """
    if name == COMMAND:
        return plain.Command(command)
    if name not in PROGRAMS:
        hint = did_you_mean(name, PROGRAMS, f"use one of {', '.join(PROGRAMS)}, or --agent-cmd")
        raise UsageProblem(f"unknown agent program {name!r}", hint=hint)
    return _load(name)


def services(environ: Mapping[str, str]) -> dict[str, object]:
    """Return the marks of the services of all programs, as an agent may start another program. See `serving.py`."""
    known = [_load(name) for name in PROGRAMS]
    return {
        "records": [str(file) for one in known for file in one.services(environ)],
        "marks": {name: environ.get(name, "") for one in known for name in one.background},
        "talks": {name: pattern for one in known for name, pattern in one.talks(environ).items()},
    }


def noted(told: Mapping[str, str]) -> Program:
    """Return the program of a note in a run folder; without a note a program with default answers."""
    name = told.get("program", "")
    return _load(name) if name in PROGRAMS else plain.Plain(name)


@cache
def _load(name: str) -> Program:
    if name == plain.Shell.name:
        return plain.Shell()
    made: Program = import_module(f"swarm.programs.{name}.program").PROGRAM
    return made


def find(name: str, command: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Return the executable of a program.

    Raises:
        ProgramMissing: it is not installed; the hint names those that are.
    """
    wanted = program(name, command).executable(environ)
    found = shutil.which(wanted, path=environ.get("PATH"))
    if found is None:
        there = installed(environ)
        raise ProgramMissing(
            f"the agent program {wanted} is not installed",
            hint=f"installed here: {', '.join(there)}; for example: swarm start … --agent demo",
        )
    return found


def installed(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the programs that could be started."""
    path = environ.get("PATH")
    return tuple(name for name in PROGRAMS if shutil.which(program(name).executable(environ), path=path))


def read_command(text: str) -> tuple[str, ...]:
    """Split a command as a shell would, without being one.

    Raises:
        UsageProblem
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageProblem(f"cannot read the agent command {text!r}: {error}") from error
    if not words:
        raise UsageProblem("the agent command is empty", hint="for example: --agent-cmd 'aider --model x'")
    return words
