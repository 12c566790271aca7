"""Names for the shell's Tab key, from swarm's files only: no git, nothing written, no error shown."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from swarm.cli.output import write
from swarm.cli.verb import ROOT, Run

_LIMIT = 1 << 24
_SALVAGE = "refs/swarm/salvage/"
#: What bash takes for the end of a word although our names contain it.
_BREAKS = ("@", ":", "=")


def _quiet(names: Callable[[ModuleType, Path, str], Iterator[str]]) -> Callable[..., list[str]]:
    """Make a completion of a function ``(known, root, incomplete)``: it never fails, and never prints."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        with contextlib.suppress(Exception):
            from swarm.api import known  # only the Tab key needs it; every command imports this module

            root = known.main_checkout(_directory(ctx))
            if root is not None:
                return [name for name in names(known, root, incomplete) if name.startswith(incomplete)]
        return []

    return complete


def _directory(ctx: typer.Context) -> Path:
    """Return where the command would work, with every ``-C`` on the line so far."""
    levels = []
    level: Any = ctx
    while level is not None:
        levels.append(level.params.get("directories") or ())
        level = level.parent
    return Path.cwd().joinpath(*(one for several in reversed(levels) for one in several)).absolute()


@_quiet
def sessions(known: ModuleType, root: Path, incomplete: str) -> Iterator[str]:
    """Complete session names, and behind a slash the agents of one."""
    if "/" not in incomplete:
        yield from known.session_names(root)
        return
    for session in known.sessions(root):
        yield from (f"{session.name}/{agent.name}" for agent in session.agents)


@_quiet
def agents(known: ModuleType, root: Path, _incomplete: str) -> Iterator[str]:
    """Complete ``agent@session``."""
    for session in known.sessions(root):
        for agent in session.agents:
            yield f"{agent.name}@{session.name}"


@_quiet
def recipients(known: ModuleType, root: Path, incomplete: str) -> Iterator[str]:
    """Complete the last name in a list of recipients."""
    before, comma, _ = incomplete.rpartition(",")
    found = ["user", "parent", "all"]
    for session in known.sessions(root):
        found += [f"{agent.name}@{session.name}" for agent in session.agents]
        found += sorted({f"role:{agent.role}" for agent in session.agents})
    found += known.bridge_names(root)
    yield from (f"{before}{comma}{name}" for name in dict.fromkeys(found))


@_quiet
def event_kinds(known: ModuleType, _root: Path, _incomplete: str) -> Iterator[str]:
    """Complete the kinds of events."""
    yield from known.event_kinds()


@_quiet
def targets(known: ModuleType, root: Path, _incomplete: str) -> Iterator[str]:
    """Complete ``session`` or ``session/agent``."""
    for session in known.sessions(root):
        yield session.name
        yield from (f"{session.name}/{agent.name}" for agent in session.agents)


@_quiet
def roles(known: ModuleType, root: Path, _incomplete: str) -> Iterator[str]:
    """Complete role names."""
    yield from known.role_names(root)


@_quiet
def role_lists(known: ModuleType, root: Path, incomplete: str) -> Iterator[str]:
    """Complete the last role of ``a,b,c``."""
    before, comma, _ = incomplete.rpartition(",")
    taken = before.split(",") if comma else []
    for name in known.role_names(root):
        if name not in taken:
            yield f"{before}{comma}{name}"


@_quiet
def queues(known: ModuleType, root: Path, _incomplete: str) -> Iterator[str]:
    """Complete the names of task queues."""
    yield from known.queue_names(root)


@_quiet
def tasks(known: ModuleType, root: Path, _incomplete: str) -> Iterator[str]:
    """Complete the ids of tasks."""
    yield from known.task_ids(root)


def _salvaged(root: Path) -> list[tuple[str, str, str]]:
    """Return (session, agent, id) of saved work: loose refs are folders, packed ones lines of a file."""
    git = root / ".git"
    found = {
        (path.parent.parent.name, path.parent.name, path.name)
        for path in (git / _SALVAGE).glob("*/*/*")
        if path.is_dir() and any(path.iterdir())
    }
    with contextlib.suppress(OSError), (git / "packed-refs").open("rb") as file:
        for line in os.fsdecode(file.read(_LIMIT)).splitlines():
            _, _, ref = line.partition(" ")
            parts = ref.removeprefix(_SALVAGE).split("/")
            if ref.startswith(_SALVAGE) and len(parts) > 3:  # session, agent, id, part
                found.add((parts[0], parts[1], parts[2]))
    return sorted(found, reverse=True)


@_quiet
def salvaged(_known: ModuleType, root: Path, incomplete: str) -> Iterator[str]:
    """Complete ``session``, ``session/agent`` or ``session/agent@id``."""
    found = _salvaged(root)
    if "@" in incomplete:
        yield from (f"{session}/{agent}@{id_}" for session, agent, id_ in found)
        return
    yield from sorted({session for session, _, _ in found})
    yield from sorted({f"{session}/{agent}" for session, agent, _ in found})


@_quiet
def settings(known: ModuleType, _root: Path, _incomplete: str) -> Iterator[str]:
    """Complete the keys of the configuration."""
    yield from known.settings()


@_quiet
def pod_templates(known: ModuleType, root: Path, _incomplete: str) -> Iterator[str]:
    """Complete the names of pod templates."""
    yield from known.pod_templates(root)


@_quiet
def pods(known: ModuleType, root: Path, _incomplete: str) -> Iterator[str]:
    """Complete the names of pods."""
    yield from dict.fromkeys(session.pod for session in known.sessions(root) if session.pod)


@_quiet
def overrides(known: ModuleType, _root: Path, incomplete: str) -> Iterator[str]:
    """Complete the keys of roles that a start can change."""
    before, colon, _ = incomplete.rpartition(":")
    yield from (f"{before}{colon}{key}=" for key in known.override_keys())


# --- answering the shell -------------------------------------------------------------------------


def answer(command: Any, run: Run) -> int:  # a class of typer's copy of click
    """Answer a request of the shell's completion function."""
    before = _mend_bash_words(os.environ)
    said = io.StringIO()
    code = 0
    with contextlib.redirect_stdout(said):
        try:
            command.main(args=[], prog_name=ROOT, standalone_mode=False, obj=run)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    lines = [line.removeprefix(before) for line in said.getvalue().splitlines() if line]
    write(sys.stdout, "".join(f"{line}\n" for line in lines))
    return code


def _mend_bash_words(environ: MutableMapping[str, str]) -> str:
    """Join words that bash split at ``@``, ``:`` and ``=``; return bash's part of the word."""
    if environ.get(f"_{ROOT.upper()}_COMPLETE") != "complete_bash":
        return ""
    words = environ.get("COMP_WORDS", "").split("\n" if "\n" in environ.get("COMP_WORDS", "") else " ")
    index = int(environ.get("COMP_CWORD", "0") or 0)
    if index >= len(words):
        words += [""] * (index - len(words) + 1)
    last = words[index]
    joined: list[str] = []
    for word in words[: index + 1]:
        glue = joined and len(joined) > 1 and (word[:1] in _BREAKS or joined[-1][-1:] in _BREAKS)
        if glue:
            joined[-1] += word
        else:
            joined.append(word)
    if last in _BREAKS:  # the break itself is the word under the cursor
        last = ""
    environ["COMP_WORDS"] = " ".join(joined)
    environ["COMP_CWORD"] = str(len(joined) - 1)
    before = joined[-1].removesuffix(last) if last else joined[-1] if joined[-1][-1:] in _BREAKS else ""
    return before.removesuffix("@")  # which readline takes for a part of the word, unlike the others
