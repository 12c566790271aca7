"""Tasks as users give them: for all agents, for one of them, in an option, a file or standard input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from swarm import UsageProblem
from swarm.cli import given

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.cli.verb import Run

_LIMIT = 1 << 20
#: Stands for every agent in ``--task all=TEXT``; no agent and no role can be called so.
_ALL = "all"

Task = Annotated[
    list[str] | None,
    typer.Option(
        "--task",
        metavar="[AGENT=]TEXT",
        help="Prompt for every agent; AGENT=TEXT and AGENT=@FILE are for one agent or role. - reads stdin.",
        show_default=False,
    ),
]
TaskFile = Annotated[
    str | None,
    typer.Option(
        "--task-file",
        metavar="FILE",
        help="File with the prompt; a line `=== AGENT ===` begins the part of one agent. - is stdin.",
        show_default=False,
    ),
]


def read_tasks(run: Run, options: Sequence[str] | None, file: str | None) -> tuple[str, dict[str, str]]:
    """Return the task of all agents, and the further tasks of some.

    Raises:
        UsageProblem: a text cannot be read, or is given twice.
    """
    from swarm.api.known import read_sections

    given_ones = [_split(option) for option in options or ()]
    if sum(source == "-" for _, source, _ in given_ones) + (file == "-") > 1:
        raise UsageProblem("cannot read two tasks from standard input", hint="write one of them into a file")
    common, own = read_sections(_read(run, file)) if file is not None else ("", {})
    found = {_ALL: common, **own} if common else own
    for name, source, text in given_ones:
        if name in found:
            whose = "for all agents" if name == _ALL else f"of {name}"
            raise UsageProblem(f"the task {whose} is given twice", hint="give it once; AGENT=TEXT is for one agent")
        found[name] = _read(run, source) if source else text
    return found.pop(_ALL, ""), found


def _split(option: str) -> tuple[str, str, str]:
    """Return for whom a text is, the file where it stands or ``-``, and else the text itself."""
    name = re.match(r"([A-Za-z0-9][A-Za-z0-9_-]{0,39})=", option)
    if name is None:
        return _ALL, "-" if option == "-" else "", option
    rest = option[name.end() :]
    file = rest[1:] if rest.startswith("@") else rest if rest == "-" else ""
    if rest == "@":
        raise UsageProblem(
            f"cannot read the task: no file is named in {option}", hint=f"for example: {name[0]}@goal.md"
        )
    return name[1], file, rest


def _read(run: Run, file: str) -> str:
    """Return the text of a file; ``-`` is standard input."""
    try:
        data = given.from_stdin(_LIMIT) if file == "-" else Path(run.directory, file).read_bytes()
        text = data.decode("utf-8")
    except OSError as error:
        raise UsageProblem(f"cannot read the task: {file}: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"cannot read the task: it is not UTF-8: {error.reason}") from error
    if len(data) > _LIMIT or "\0" in text:
        raise UsageProblem("cannot read the task: it must be text of at most 1 MiB")
    return text
