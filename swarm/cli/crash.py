"""Write the traceback of a bug into a private file."""

from __future__ import annotations

import os
import platform
import secrets
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from swarm import SwarmError
from swarm.api.known import main_checkout
from swarm.machine import own
from swarm.version import __version__


class Bug(SwarmError):
    """Something in swarm itself went wrong."""

    code = "BUG"
    exit_code = 70
    default_hint = "please report it with that file; it holds no content of your files"


def write_report(error: BaseException, args: Sequence[str]) -> Bug:
    """Write down what is needed to find the bug and return it as an error that names the file."""
    what = f"this is a bug in swarm: {type(error).__name__}: {error}"
    for folder in _folders():
        try:
            path = _write(folder, _text(error, args))
        except OSError:
            continue
        return Bug(f"{what}; details are in {path}", file=str(path))
    return Bug(what, hint="please report it", details=_text(error, args))


def _folders() -> Iterator[Path]:
    try:
        root = main_checkout(Path.cwd())
    except OSError:
        root = None
    if root is not None and (root / ".swarm").is_dir() and not (root / ".swarm").is_symlink():
        own.trust(str(root / ".swarm"))
        yield root / ".swarm"
    yield Path(tempfile.gettempdir())


def _text(error: BaseException, args: Sequence[str]) -> str:
    head = f"swarm {__version__}, python {platform.python_version()}, {platform.platform()}"
    trace = "".join(traceback.format_exception(error))
    return f"{head}\narguments: {list(args)!r}\nexecutable: {sys.executable}\n\n{trace}"


def _write(folder: Path, text: str) -> Path:
    path = folder / f"swarm-crash-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}.txt"
    fd = own.open(os.fspath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return path
