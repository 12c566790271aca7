"""Run setup and teardown commands: without a shell, with a time limit.

What a command prints goes straight into a file, so that a server that it leaves behind can go on printing.
Everything it starts inherits a stamp in its environment, by which the next swarm finds it after a crash.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from swarm.git.running.ground import Ground
from swarm.kit import files, kill
from swarm.kit.commandline import STAMP, words_of
from swarm.kit.postponed import postponed
from swarm.machine import own
from swarm.worktrees.setup.setup_values import Ended

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from swarm.kit.kill import Process

_GRACE = 2.0
_MOST_OUTPUT = 64 << 20
#: Sizes of the kept beginning and end of a command's output.
_KEPT = 1 << 20
_FIRST_LOOK, _LONGEST_PAUSE = 0.002, 0.05
_MOST_ROUNDS = 5
_TAIL_LINES, _TAIL_BYTES = 20, 8192


def program(words: Sequence[str], environ: Mapping[str, str]) -> str:
    """Return the path of a command's program; empty without one, the word itself when it is a path."""
    return words[0] if "/" in words[0] else shutil.which(words[0], path=environ.get("PATH", os.defpath)) or ""


def run(
    line: str,
    *,
    cwd: Path,
    environ: Mapping[str, str],
    log: Path,
    limit: float,
    stopped: Callable[[], bool],
) -> Ended:
    """Run a command to its end; one that fails, or takes too long, is ended with all it started.

    Args:
        environ: the whole environment, with a stamp of this command alone.
        log: where its output is added.
        stopped: asked again and again; true ends the command.
    """
    words = words_of(line)
    found = program(words, environ)
    began = time.monotonic()
    out = own.open(os.fspath(log), os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        files.write_all(out, f"$ {line}\n".encode("utf-8", "surrogateescape"))
        start = os.fstat(out).st_size
        if not found:
            return Ended(line, f"could not be started: there is no program {words[0]}")
        try:
            process = _start([found, *words[1:]], words[0], cwd, environ, out)
        except OSError as error:
            return Ended(line, f"could not be started: {error.strerror or error}")
        outcome = _wait(process, environ[STAMP], began + limit, stopped, lambda: os.fstat(out).st_size - start)
        if outcome == _TOO_LONG:
            outcome = f"did not end within {limit:g} s"
        _shorten(out, start)
        return Ended(line, outcome, time.monotonic() - began, _tail(log, start) if outcome else ())
    finally:
        os.close(out)


_TOO_LONG = "too long"


def _start(words: Sequence[str], name: str, cwd: Path, environ: Mapping[str, str], out: int) -> subprocess.Popen[bytes]:
    path = words[0] if os.path.isabs(words[0]) else os.path.join(cwd, words[0])
    try:
        return _spawn(path, [name, *words[1:]], cwd, environ, out)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script that does not name its interpreter is the shell's, also for git.
    return _spawn("/bin/sh", ["sh", path, *words[1:]], cwd, environ, out)


def _spawn(path: str, argv: Sequence[str], cwd: Path, environ: Mapping[str, str], out: int) -> subprocess.Popen[bytes]:
    with postponed(), Ground(cwd).held() as start:
        return subprocess.Popen(
            argv,
            executable=path,
            cwd=start,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def _wait(
    process: subprocess.Popen[bytes],
    stamp: str,
    deadline: float,
    stopped: Callable[[], bool],
    printed: Callable[[], int],
) -> str:
    """Wait for the end, and return the failure in words; empty on success."""
    outcome, pause = "was interrupted", _FIRST_LOOK
    try:
        while (code := _code_of(process)) is None:
            if stopped():
                return outcome
            if time.monotonic() > deadline:
                return _TOO_LONG
            if printed() > _MOST_OUTPUT:
                return f"printed more than {_MOST_OUTPUT >> 20} MiB"
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)
        outcome = _in_words(code)
    finally:
        if outcome:
            _end(process, stamp)
        process.wait()
    return outcome


def _in_words(code: int) -> str:
    if code == 0:
        return ""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def _code_of(process: subprocess.Popen[bytes]) -> int | None:
    """Return how it ended, None while it runs; its pid stays taken, because its group is still to be ended by that."""
    if not hasattr(os, "waitid"):  # macOS
        return process.poll()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _end(process: subprocess.Popen[bytes], stamp: str) -> None:
    """End a command that is not waited for yet, and everything that it started."""

    def left() -> list[Process]:
        found = dict.fromkeys(kill.tree(process.pid))
        found.update(dict.fromkeys(kill.stamped(stamp, variable=STAMP, below=True)))
        return list(found)

    end_all(left)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)  # what left the tree and hides its environment


def end_stamped(*stamps: str) -> int:
    """End the processes that carry one of these stamps or one below it; return the number of survivors."""
    from swarm.kit import kill

    return len(end_all(lambda: kill.stamped(*stamps, variable=STAMP, below=True)))


def end_all(look: Callable[[], list[Process]]) -> list[Process]:
    """End the processes that *look* finds, repeatedly while they start others; return the survivors."""
    grace = _GRACE
    for _ in range(_MOST_ROUNDS):
        found = look()
        if not found:
            return []
        kill.end(found, grace)
        grace = 0.0
    return look()


def _shorten(out: int, start: int) -> None:
    """Cut the middle out of a command's output. Processes it left behind may still add to the end."""
    end = os.fstat(out).st_size
    left = end - start - 2 * _KEPT
    if left <= 0:
        return
    last = os.pread(out, _KEPT, end - _KEPT)
    os.ftruncate(out, start + _KEPT)
    files.write_all(out, f"\n[swarm left out {left} bytes here]\n".encode() + last)


def _tail(log: Path, start: int) -> tuple[str, ...]:
    """Return the last lines of a command's output, without control characters."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(start, size - _TAIL_BYTES))
        text = file.read(_TAIL_BYTES).decode("utf-8", "replace")
    lines = [line.rpartition("\r")[2] if not line.endswith("\r") else line[:-1] for line in text.split("\n")]
    cleaned = ["".join(c if c.isprintable() or c == "\t" else "" for c in _without_escapes(line)) for line in lines]
    return tuple([line for line in cleaned if line.strip()][-_TAIL_LINES:])


def _without_escapes(line: str) -> str:
    import re

    return re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", "", line)
