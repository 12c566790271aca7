"""The agent programs that swarm knows, by name."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING

from swarm.kit.errors import UsageProblem
from swarm.programs import plain, shell
from swarm.programs.claude import program as claude
from swarm.programs.codex import program as codex
from swarm.programs.demo import program as demo
from swarm.programs.errors import ProgramMissing
from swarm.programs.gemini import program as gemini
from swarm.programs.opencode import program as opencode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.project.ports import AgentProgram

#: Programs by the name the user types, in the order they are suggested.
PROGRAMS: dict[str, AgentProgram] = {
    program.name: program
    for program in (
        claude.Claude(),
        codex.Codex(),
        gemini.Gemini(),
        opencode.Opencode(),
        shell.Shell(),
        demo.Demo(),
    )
}
COMMAND = "command"


def program(name: str, command: tuple[str, ...] = ()) -> AgentProgram:
    """Return the program of a name; ``command`` is any argv of the user's.

    Raises:
        UsageProblem: the name is not known.
    """
    if name == COMMAND:
        return plain.Command(command)
    try:
        return PROGRAMS[name]
    except KeyError:
        known = ", ".join(PROGRAMS)
        raise UsageProblem(f"unknown agent program {name!r}", hint=f"use one of {known}, or --agent-cmd") from None


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
    return tuple(
        name for name, one in PROGRAMS.items() if shutil.which(one.executable(environ), path=environ.get("PATH"))
    )


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


class AgentPrograms:
    """The programs above, as the engine asks for them. Implements ``ports.Programs``."""

    def get(self, name: str, command: tuple[str, ...] = ()) -> AgentProgram:
        """Return the program of a name."""
        return program(name, command)

    def find(self, name: str, command: tuple[str, ...], environ: Mapping[str, str]) -> str:
        """Return its executable."""
        return find(name, command, environ)

    def installed(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names of those that could be started."""
        return installed(environ)
