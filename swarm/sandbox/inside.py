"""Run a command in a box, and take what it says: this is how swarm looks at what an agent can write.

Whatever git, a filter or a hook does there, it does as the agent could, and no more.
"""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit.errors import SwarmError
from swarm.sandbox import command
from swarm.sandbox.errors import SandboxUnavailable
from swarm.supervisor.boxed.enter import descriptor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import IO

    from swarm.sandbox.values import Box

#: What a command in a box may say, if nothing else is asked for; the rest is an agent's flood.
LIMIT = 64 << 20
#: So much of its error text is kept.
_ERRORS = 1 << 16


class Said(NamedTuple):
    """How a command in a box ended, and what it said."""

    code: int
    out: bytes
    err: bytes


class Inside:
    """Runs commands in one box.

    Args:
        environ: the caller's; only the way to bubblewrap is taken from it.
        timeout: seconds that one command may take.
    """

    def __init__(self, box: Box, environ: Mapping[str, str], timeout: float = 120.0) -> None:
        self.box = box
        self._timeout = timeout
        self._program = command.find(environ)
        if not self._program:
            raise SandboxUnavailable(f"cannot make a box: {command.PROGRAM} is not installed")
        self._options = "\0".join(command.options(box))
        self._filter = command.call_filter()

    @contextmanager
    def started(
        self, *argv: str, stdin: int | IO[bytes] = subprocess.DEVNULL, stdout: int | IO[bytes] = subprocess.PIPE
    ) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command in the box; when the block ends, so does all that it started."""
        calls = descriptor("filter", self._filter)
        options = descriptor("options", os.fsencode(f"{self._options}\0--seccomp\0{calls}"))
        try:
            process = subprocess.Popen(
                [self._program, "--args", str(options), "--", *command.inner(self.box, argv)],
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                pass_fds=(calls, options),
                start_new_session=True,
            )
        finally:
            os.close(calls)
            os.close(options)
        try:
            with process:
                try:
                    yield process
                finally:
                    if process.poll() is None:
                        process.kill()  # and with bubblewrap ends everything in its process namespace
        finally:
            process.poll()

    def run(self, *argv: str, stdin: bytes = b"", env: Mapping[str, str] | None = None, limit: int = LIMIT) -> Said:
        """Run a command in the box and return what it said.

        Args:
            env: further variables; they stand in the command line, where everybody can read them.

        Raises:
            SwarmError: it took too long, or said too much; it was ended.
        """
        out = bytearray()
        code, err = self.save(out.extend, *argv, stdin=stdin, env=env, limit=limit)
        return Said(code, bytes(out), err)

    def save(
        self,
        sink: Callable[[bytes], object],
        *argv: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        limit: int = LIMIT,
    ) -> tuple[int, bytes]:
        """Run a command in the box and give *sink* what it writes, piece by piece; return status and error text.

        Raises:
            SwarmError: it took too long, or wrote too much; it was ended.
        """
        import tempfile

        what = f"cannot run {argv[0]} in the box of {self.box.tree}"
        words = ("env", *(f"{name}={value}" for name, value in env.items()), *argv) if env else argv
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            deadline = time.monotonic() + self._timeout
            with self.started(*words, stdin=given) as process:
                try:
                    err = _listen(process, sink, deadline, limit, what)
                    return process.wait(max(0.0, deadline - time.monotonic())), err
                except subprocess.TimeoutExpired:
                    raise SwarmError(f"{what}: it did not end within {self._timeout:g} s") from None


def _listen(
    process: subprocess.Popen[bytes], sink: Callable[[bytes], object], deadline: float, limit: int, what: str
) -> bytes:
    """Take what a process says until it closes both its outputs; return the error text, or its beginning."""
    import selectors

    assert process.stdout is not None  # noqa: S101  # they are pipes
    assert process.stderr is not None  # noqa: S101
    errors, written = bytearray(), 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:  # also of one that always has something to say
                raise subprocess.TimeoutExpired(what, left)
            for key, _ in selector.select(left):
                piece = os.read(key.fd, 1 << 16)
                if not piece:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors += piece[: _ERRORS - len(errors)]
                else:
                    written += len(piece)
                    if written > limit:
                        raise SwarmError(f"{what}: it wrote more than {limit} bytes")
                    sink(piece)
    return bytes(errors)
