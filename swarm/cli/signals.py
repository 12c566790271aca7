"""Signals: the first asks for an orderly end, the second ends at once.

    signal ──► any thread ──► pipe ──► listener ──► 1st: wakes the main thread, which raises Interrupted
                                                    2nd: ends the process

The system may hand a signal to any thread, and Python then runs the handler only when the main
thread next does something; in the middle of waiting for git that can be never.  So a listener wakes
it up.  SIGPIPE stays as Python has it (an error of the write): ended by the signal itself, swarm
could not take back what it had begun when a git at the other end of a pipe goes away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import NoReturn

from swarm import Interrupted

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WAKE = signal.SIGURG  # means nothing to anybody here, and is ignored where it is not caught
_STOP = b"\0"


@contextlib.contextmanager
def watched(tell: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within this block signals raise ``Interrupted`` in the main thread; ignored signals stay ignored.

    Args:
        tell: called before that, by the handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asking = tuple(one for one in _ASKING if signal.getsignal(one) not in (signal.SIG_IGN, None))
    ask = _Ask(tell)
    before = {number: signal.signal(number, ask) for number in asking}
    before[_WAKE] = signal.signal(_WAKE, _nothing)
    try:
        with _listening(asking):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _Ask:
    """The handler: raises once."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._asked = False
        self._tell = tell

    def __call__(self, signum: int, _frame: FrameType | None) -> None:
        if self._asked:
            _end(signum)
        self._asked = True
        self._tell()
        raise Interrupted(f"interrupted by {signal.Signals(signum).name}", signum=signum)


def _nothing(_signum: int, _frame: FrameType | None) -> None:
    """Do nothing: that a handler ran is enough to wake the main thread."""


def _end(signum: int) -> NoReturn:
    os._exit(128 + signum)  # whatever is half done, the next command finishes or takes back


@contextlib.contextmanager
def _listening(asking: tuple[int, ...]) -> Iterator[None]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    thread = threading.Thread(target=_listen, args=(reader, asking), name="swarm-signals", daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        with contextlib.suppress(OSError):
            os.write(writer, _STOP)
        thread.join()
        os.close(reader)
        os.close(writer)


def _listen(reader: int, asking: tuple[int, ...]) -> None:
    main = threading.main_thread().ident or 0
    seen = 0
    while True:
        for number in os.read(reader, 64):
            if number == _STOP[0]:
                return
            if number in asking:
                seen += 1
                if seen > 1:
                    _end(number)
                signal.pthread_kill(main, _WAKE)
