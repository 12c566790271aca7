"""Translate errors: into swarm's own, or into a crash report."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit.errors import SAYS_ATTEMPT, Refused, SwarmError, told_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def as_problem(error: BaseException, attempt: str) -> SwarmError | None:
    """Return an error as one of swarm's own, with the attempt in front; None for a bug."""
    error = told_of(error)
    if isinstance(error, OSError):
        from swarm.kit import files

        error = files.translate(error, attempt or "cannot do this")
    if not isinstance(error, SwarmError):
        return None
    if attempt and not isinstance(error, Refused) and not error.message.startswith(SAYS_ATTEMPT):
        error.preface(attempt)
    return error


def bug_report(error: BaseException, args: Sequence[str]) -> str:
    """Return the text of a bug report, with the traceback."""
    import platform
    import sys
    import traceback

    from swarm.version import __version__

    head = f"swarm {__version__}, python {platform.python_version()}, {platform.platform()}"
    trace = "".join(traceback.format_exception(error))
    return f"{head}\narguments: {list(args)!r}\nexecutable: {sys.executable}\n\n{trace}"


def write_bug_report(text: str, near: Path) -> Path | None:
    """Write a text into a private file in ``.swarm`` of the repository around a folder, else with temporary files.

    Returns:
        The file; None where none can be written.
    """
    for folder in _folders(near):
        try:
            return _write(folder, text)
        except OSError:
            continue
    return None


def _folders(near: Path) -> Iterator[Path]:
    from swarm.api.known import main_checkout
    from swarm.machine import own

    try:
        root = main_checkout(near)
    except OSError:
        root = None
    if root is not None and (root / ".swarm").is_dir() and not (root / ".swarm").is_symlink():
        own.trust(str(root / ".swarm"))
        yield root / ".swarm"
    yield Path(tempfile.gettempdir())


def _write(folder: Path, text: str) -> Path:
    from swarm.machine import own

    path = folder / f"swarm-crash-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}.txt"
    fd = own.open(os.fspath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path
