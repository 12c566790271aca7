"""Hold signals back while a program is being started."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def postponed() -> Iterator[None]:
    """Let the handlers of signals that ask for the end run after this block.

    Only the main thread runs them. A mask is no help: another thread may be handed the signal, and the
    program that is started would inherit the mask.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting = _Waiting()
    try:
        waiting.take()
        yield
    finally:
        waiting.give_back()


class _Waiting:
    """Stands in for the handlers; outside the block it passes on at once, so nothing is lost at either end."""

    def __init__(self) -> None:
        found = {number: signal.getsignal(number) for number in _ASKING}
        self._handlers: dict[int, Callable[[int, FrameType | None], object]] = {
            number: handler
            for number, handler in found.items()
            if callable(handler) and not isinstance(handler, signal.Handlers)
        }
        self._held = False
        self._came: list[int] = []

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        if self._held:
            self._came.append(signum)
        else:
            self._handlers[signum](signum, frame)

    def take(self) -> None:
        for number in self._handlers:
            signal.signal(number, self)
        self._held = True

    def give_back(self) -> None:
        self._held = False
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for number in self._came:
            self._handlers[number](number, None)
