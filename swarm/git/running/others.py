"""Git processes that somebody else has started in a repository, as Linux shows them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.machine import processes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

CAN_SEE = processes.HAS_PROC
_COLLECT = (b"gc", b"prune", b"repack")
_WITH_VALUE = (b"-C", b"-c", b"--git-dir", b"--work-tree", b"--namespace", b"--config-env")


def at_work(common: Path, trees: Sequence[str]) -> Iterator[int]:
    """Give the git processes whose folder is in this repository, or that were told to work on it.

    Args:
        trees: its working trees.
    """
    places = (str(common), *trees)
    for entry in os.listdir("/proc"):
        name = processes.read(f"/proc/{entry}/comm").strip() if entry.isdigit() else b""
        if name != b"git" and not name.startswith(b"git-"):
            continue
        try:
            cwd = os.readlink(f"/proc/{entry}/cwd")
        except OSError:
            continue
        told = _told_folder(int(entry), cwd)
        if any(one == place or one.startswith(place + "/") for place in places for one in (cwd, told)):
            yield int(entry)


def collecting(common: Path, trees: Sequence[str]) -> int:
    """Return a ``git gc``, ``git prune`` or ``git repack`` in this repository; 0 where there is none to be seen."""
    gits = at_work(common, trees) if CAN_SEE else ()
    return next((pid for pid in gits if subcommand(_argv(pid)) in _COLLECT), 0)


def subcommand(argv: Sequence[bytes]) -> bytes:
    """Return the command in a command line of git; empty where there is none."""
    words = iter(argv[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, b"")
        elif not word.startswith(b"-"):
            return word
    return b""


def named_folder(argv: Sequence[bytes]) -> bytes:
    """Return the git folder that a command line of git names; empty where it names none."""
    words = iter(argv[1:])
    found = b""
    for word in words:
        if word == b"--git-dir":
            found = next(words, b"")
        elif word.startswith(b"--git-dir="):
            found = word.removeprefix(b"--git-dir=")
        elif word in _WITH_VALUE:
            next(words, b"")
        elif not word.startswith(b"-"):
            break
    return found


def _told_folder(pid: int, cwd: str) -> str:
    """Return the git folder that a process was told to use, by an option or a variable."""
    variables = processes.environment(pid).split(b"\0")
    by_variable = next((word.removeprefix(b"GIT_DIR=") for word in variables if word.startswith(b"GIT_DIR=")), b"")
    told = named_folder(_argv(pid)) or by_variable
    return os.path.realpath(os.path.join(cwd, os.fsdecode(told))) if told else ""


def _argv(pid: int) -> list[bytes]:
    """Return the command line of a process; empty when it has ended."""
    return processes.read(f"/proc/{pid}/cmdline").split(b"\0")
