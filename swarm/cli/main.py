"""The entry of the program."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

#: Python looks for garbage after 700 new objects; loading makes fifty times as many, and all of them stay.
_ALLOCATIONS = 100_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: the command, for a caller that goes on afterwards; without it the process is all swarm's.
    """
    end_at_ctrl_c()
    if argv is None:
        gc.set_threshold(_ALLOCATIONS)
    try:
        _replace_closed_streams()
        if "SWARM_SOCKET" in os.environ:
            from swarm.api.forwarding import forwarded

            code = forwarded(sys.argv[1:] if argv is None else argv)
            if code is not None:
                return code
        from swarm.cli.app import run

        return run(list(sys.argv[1:] if argv is None else argv))
    finally:
        if argv is None:
            gc.freeze()  # all memory goes with the process; Python would look for cycles in it first
        else:
            raise_at_ctrl_c()


def end_at_ctrl_c() -> None:
    """End silently at Ctrl-C from now on: nothing needs undoing, and Python would print a traceback.

    Where the user's shell ignores Ctrl-C, or the calling program handles it, that stays so.
    """
    _replace_handler(signal.default_int_handler, _end)


def raise_at_ctrl_c() -> None:
    """Let Ctrl-C raise ``KeyboardInterrupt`` again, as Python begins with."""
    _replace_handler(_end, signal.default_int_handler)


def _replace_handler(old: object, new: signal._HANDLER) -> None:
    if signal.getsignal(signal.SIGINT) is old:
        try:
            signal.signal(signal.SIGINT, new)
        except ValueError:  # only the first thread may; signals do not reach any other
            return


def _end(signum: int, _frame: FrameType | None) -> None:
    os._exit(128 + signum)


def _replace_closed_streams() -> None:
    """Let no file take the place of a stream that the caller has closed; libraries look at streams, too."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number: this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # until the process ends
