"""A git that runs: wait for its answer, listen to it, end it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from typing import TYPE_CHECKING, TypeVar

from swarm.git.errors import GitBroken, GitFailed, GitTimeout
from swarm.git.running.explain import explain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from swarm.git.running import ground


S = TypeVar("S")
T = TypeVar("T")

_GRACE = 5.0
#: So much of an output is kept, and of what git and a filter complain: an agent could make either endless.
LONGEST_OUTPUT, LONGEST_COMPLAINT = 2 << 30, 1 << 20
#: How many gits look at the same time.
_AT_ONCE = 8


class _TooLong(Exception):
    """A program says more than anybody reads."""


class Started:
    """A git that runs.

    Args:
        what: the attempt in the user's words.
        ended: told when it does not run any more.
        place: where it runs.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        timeout: float,
        what: str,
        ended: Callable[[subprocess.Popen[bytes]], None],
        place: ground.Ground,
    ) -> None:
        self._process = process
        self._timeout = timeout
        self._what = what
        self._ended = ended
        self._place = place
        self._complaints = b""

    def outcome(self) -> tuple[int, bytes, bytes]:
        """Wait for the end, and return (exit code, output, error text), also after a failure.

        Raises:
            GitTimeout: it did not end in time and was ended.
        """
        try:
            out, err = _listen(self._process, self._timeout)
        except subprocess.TimeoutExpired:
            end_process(self._process)
            raise GitTimeout(f"{self._what}: git did not end within {self._timeout:g} s") from None
        except _TooLong:
            end_process(self._process)
            raise GitFailed(f"{self._what}: git said more than {LONGEST_OUTPUT} bytes") from None
        except BaseException:
            # A signal or Ctrl-C: git must not go on changing things while we roll back.
            end_process(self._process)
            raise
        finally:
            self._ended(self._process)
        self._place.check()
        return self._process.returncode, out, err

    def use_the_time(self, act: Callable[[], object]) -> None:
        """Do something before the end is waited for; git does not live on if that fails."""
        try:
            act()
        except BaseException:
            self.end()
            raise

    def result(self) -> bytes:
        """Wait for the end, and return the output.

        Raises:
            GitFailed or one of its kind.
        """
        code, out, err = self.outcome()
        if code != 0:
            raise explain(self._what, code, err.decode("utf-8", "replace").strip())
        return out

    def say(self, question: bytes, whole: Callable[[bytes], bool]) -> bytes:
        """Send a request to a listening git, and return its answer.

        Args:
            question: short enough for a pipe to take it at once.
            whole: whether so much is all that it says to this.

        Raises:
            GitFailed or one of its kind: it ended instead of an answer.
        """
        try:
            said = self._hear(question, whole)
        except subprocess.TimeoutExpired:
            self.end()
            raise GitTimeout(f"{self._what}: git did not answer within {self._timeout:g} s") from None
        except BaseException:
            self.end()
            raise
        if said is None:
            code, _, err = self.outcome()
            raise explain(self._what, code, (self._complaints + err).decode("utf-8", "replace").strip())
        self._place.check()
        return said

    def _hear(self, question: bytes, whole: Callable[[bytes], bool]) -> bytes | None:
        """Return the answer; None if it ended before that was whole."""
        process, deadline, said = self._process, time.monotonic() + self._timeout, b""
        assert process.stdin is not None  # noqa: S101  # they are pipes
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):  # what it says before it ends tells why
            os.write(process.stdin.fileno(), question)
        out, err = process.stdout.fileno(), process.stderr.fileno()
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(err, select.POLLIN)
        while not whole(said):
            for fd, _ in poll.poll(_left(process, deadline, self._timeout) * 1000):
                chunk = os.read(fd, 1 << 16)
                if fd == err:
                    self._complaints += chunk[: LONGEST_COMPLAINT - len(self._complaints)]
                    if not chunk:
                        poll.unregister(err)
                elif chunk:
                    said += chunk
                else:
                    return None
        return said

    def end(self) -> None:
        """End the process if it was not awaited."""
        end_process(self._process)
        self._ended(self._process)


def side_by_side(begin: Callable[[T], Started], wanted: Sequence[T]) -> list[bytes | None]:
    """Run a git for each of *wanted*, several at a time; return their outputs, None for a failure."""
    found: list[bytes | None] = []
    for at in range(0, len(wanted), _AT_ONCE):
        begun: list[Started | None] = []
        try:
            begun.extend(_unless_it_fails(begin, one) for one in wanted[at : at + _AT_ONCE])
            found += [None if one is None else _unless_it_fails(Started.result, one) for one in begun]
        finally:
            for left in begun:
                if left is not None:
                    left.end()
    return found


def _unless_it_fails(act: Callable[[T], S], given: T) -> S | None:
    try:
        return act(given)
    except (GitFailed, GitBroken):
        return None


@contextlib.contextmanager
def as_file(data: bytes | int | None) -> Iterator[int]:
    """Give a descriptor to read *data* from; one that takes all of it at once, so that writing never has to wait.

    Without data it is a pipe, for one question after the other; what is a descriptor already stays one.
    """
    if isinstance(data, int):
        yield data
        return
    if data is None:
        yield subprocess.PIPE
        return
    if not data:
        yield subprocess.DEVNULL
        return
    if len(data) <= select.PIPE_BUF:
        reader, writer = os.pipe()
        try:
            os.write(writer, data)
            os.close(writer)
            yield reader
        finally:
            os.close(reader)
        return
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


def _listen(process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    """Return a program's output until it ends, as ``communicate`` does.

    ``communicate`` with a timeout sleeps for a millisecond before it looks whether the program has
    ended; that is as long as most git commands take.

    Raises:
        subprocess.TimeoutExpired, _TooLong
    """
    deadline = time.monotonic() + timeout
    assert process.stdout is not None  # noqa: S101  # they are pipes
    assert process.stderr is not None  # noqa: S101
    with process.stdout as out, process.stderr as err:
        heard: dict[int, list[bytes]] = {out.fileno(): [], err.fileno(): []}
        left = {out.fileno(): LONGEST_OUTPUT, err.fileno(): LONGEST_COMPLAINT}
        said = tuple(heard.values())
        poll = select.poll()
        for fd in heard:
            poll.register(fd, select.POLLIN)
        while heard:
            ready = poll.poll(_left(process, deadline, timeout) * 1000)
            for fd, _ in ready:
                chunk = os.read(fd, 1 << 16)
                if chunk:
                    left[fd] -= len(chunk)
                    if left[fd] > 0:
                        heard[fd].append(chunk)
                    elif fd == out.fileno():
                        raise _TooLong
                else:
                    poll.unregister(fd)
                    del heard[fd]
    _await_end(process, deadline)
    process.wait(max(0.0, deadline - time.monotonic()))
    return b"".join(said[0]), b"".join(said[1])


def _left(process: subprocess.Popen[bytes], deadline: float, timeout: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise subprocess.TimeoutExpired(process.args, timeout)
    return left


def _await_end(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Wait for the end without a sleep, where the system offers a descriptor for it."""
    with contextlib.suppress(OSError, AttributeError):
        fd = os.pidfd_open(process.pid)
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(fd)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """End git and its child processes, and stop listening."""
    kill_process(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def kill_process(process: subprocess.Popen[bytes]) -> None:
    """End git and its child processes: first politely, so that it removes its own lock files."""
    if process.returncode is not None:
        return  # its pid may be reused by now
    for signum, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signum)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        break
    # git has ended, but a filter that ignores the first signal has not; nothing may write on.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
