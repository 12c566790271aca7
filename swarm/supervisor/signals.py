"""Signals of a supervisor: noted by a handler, and none is lost while it waits."""

from __future__ import annotations

import contextlib
import os
import select
import signal

_STOPS = (signal.SIGTERM, signal.SIGHUP)
#: Keys of the user's belong to the program; a stray one must not end or stop its supervisor.
_IGNORED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGPIPE,
)


class Signals:
    """From its making on, signals of this process are noted.

    Attributes:
        stops: the SIGTERM and SIGHUP that came, in order.
    """

    def __init__(self) -> None:
        self.stops: list[int] = []
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        for signum in (*_STOPS, signal.SIGCHLD):
            signal.signal(signum, self._note)
        for signum in _IGNORED:
            signal.signal(signum, signal.SIG_IGN)

    def _note(self, signum: int, _frame: object) -> None:
        if signum in _STOPS:
            self.stops.append(signum)

    def wait(self, seconds: float | None, also: tuple[int, ...] = ()) -> list[int]:
        """Return at the next signal, or at once if one came since the last wait, or when the time is up.

        Args:
            also: further descriptors; one that can be read is a reason to return, too.

        Returns:
            Those that can be read.
        """
        ready, _, _ = select.select([self._read, *also], [], [], seconds)
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 512):
                pass
        return ready


def block() -> None:
    """Hold every signal back."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


def unblock() -> None:
    """Let the signals through, those held back first."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def restore_defaults() -> None:
    """Treat every signal as a new program expects, also those that Python or our caller ignores."""
    for signum in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):  # some the C library keeps for itself
            signal.signal(signum, signal.SIG_DFL)


def name(signum: int) -> str:
    """Return ``SIGTERM`` and the like."""
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"
