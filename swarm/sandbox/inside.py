"""Run a command in a box, and take what it says: this is how swarm looks at what an agent can write.

Whatever git, a filter or a hook does there, it does as the agent could, and no more.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit.errors import SwarmError
from swarm.sandbox import command
from swarm.sandbox.enter import descriptor
from swarm.sandbox.errors import SandboxUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO

    from swarm.sandbox.values import Box

#: What a command in a box may say, if nothing else is asked for; the rest is an agent's flood.
LIMIT = 64 << 20


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

    def run(self, *argv: str, stdin: bytes = b"", limit: int = LIMIT) -> Said:
        """Run a command in the box and return what it said.

        Raises:
            SwarmError: it took too long, or said too much; it was ended.
        """
        import tempfile

        what = f"cannot run {argv[0]} in the box of {self.box.tree}"
        with tempfile.TemporaryFile() as given:
            given.write(stdin)
            given.seek(0)
            with self.started(*argv, stdin=given) as process:
                out, err = _listen(process, self._timeout, limit, what)
                return Said(process.wait(), out, err)


def _listen(process: subprocess.Popen[bytes], timeout: float, limit: int, what: str) -> tuple[bytes, bytes]:
    """Return what a process says until it closes both its outputs."""
    import selectors
    import time

    assert process.stdout is not None  # noqa: S101  # they are pipes
    assert process.stderr is not None  # noqa: S101
    heard: dict[int, bytearray] = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for fd in heard:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise SwarmError(f"{what}: it did not end within {timeout:g} s")
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                heard[key.fd] += piece
                if not piece:
                    selector.unregister(key.fd)
                if len(heard[key.fd]) > limit:
                    raise SwarmError(f"{what}: it said more than {limit} bytes")
    out, err = heard.values()
    return bytes(out), bytes(err)
