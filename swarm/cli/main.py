"""The entry of the program: what needs no library is answered here, everything else in ``app``."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of; that one loads a library
import os
import sys

TYPE_CHECKING = False  # the module `typing` costs as much as everything else here
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

_VERSION_WORDS = frozenset({"version", "--version"})
#: Commands that an agent runs all the time; mostly they need no library.
_QUICK = frozenset({"send", "inbox"})
_HARMLESS = frozenset({"--json", "--no-color", "--quiet"})
_ASKS_HELP: tuple[list[str], ...] = ([], ["-h"], ["--help"])
#: Widths of the terminal for which the first page of help lies ready; from the last one on it gets no wider.
HELP_WIDTHS = (80, 100)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Args:
        argv: the command, for a caller that goes on afterwards; the process is all swarm's without it.
    """
    end_at_ctrl_c()
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    finally:
        if argv is not None:
            raise_at_ctrl_c()


def _run(args: list[str]) -> int:
    _replace_closed_streams()
    code = at_once(args)
    if code is not None:
        return code
    if args and args[0] in _QUICK and "_SWARM_COMPLETE" not in os.environ:
        from swarm.cli import quick

        code = quick.run(args)
        if code is not None:
            return code
    from swarm.cli.app import run

    return run(args)


def end_at_ctrl_c() -> None:
    """End at Ctrl-C from now on, without a word: there is nothing to take back, and Python would show where it was.

    Where it is ignored, or somebody else's already, it stays so.
    """
    _hand_over(_signal.default_int_handler.__name__, _end)


def raise_at_ctrl_c() -> None:
    """Let Ctrl-C raise ``KeyboardInterrupt`` again, as Python begins with."""
    _hand_over(_end.__name__, _signal.default_int_handler)


def _hand_over(name: str, handler: Callable[[int, FrameType | None], object]) -> None:
    """Replace the handler of this name, which may be the one of ``bin/swarm``."""
    if getattr(_signal.getsignal(_signal.SIGINT), "__name__", "") == name:
        try:
            _signal.signal(_signal.SIGINT, handler)
        except ValueError:  # we are called in another thread than the first, which signals do not reach
            return


def _end(signum: int, _frame: FrameType | None) -> None:
    os._exit(128 + signum)


def _replace_closed_streams() -> None:
    """Let no file take the place of a stream that whoever started us has closed; libraries look at streams, too."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number: this one
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  # until the process ends


def at_once(args: list[str]) -> int | None:
    """Answer what asks for the version or the first page of help; None: it is something else."""
    if _asks_version(args):
        return _version(as_json="--json" in args)
    if args in _ASKS_HELP and "_SWARM_COMPLETE" not in os.environ and (text := _help()):
        return _print(text)
    return None


def _asks_version(args: list[str]) -> bool:
    asked = [word for word in args if word in _VERSION_WORDS]
    return len(asked) == 1 and all(word in _HARMLESS or word in _VERSION_WORDS for word in args)


def _version(*, as_json: bool) -> int:
    from swarm.version import __version__

    text = f"swarm {__version__}\n"
    if as_json:
        head = '{"schema": 1, "command": "version", "status": "ok", "exit_code": 0, '
        text = f'{head}"data": {{"version": "{__version__}"}}, "errors": []}}\n'
    return _print(text)


def _help() -> str:
    """Return the first page of help if it lies ready for the width of this terminal; a test keeps it up to date."""
    try:
        columns = int(os.environ.get("COLUMNS") or 0)
        if columns <= 0:
            columns = os.get_terminal_size(1).columns if os.isatty(1) else HELP_WIDTHS[0]
        columns = min(columns, HELP_WIDTHS[-1])
        path = os.path.join(os.path.dirname(__file__), f"help-{columns}.txt")
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _print(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, AttributeError):
        from swarm.cli.output import lost_output

        return lost_output()
    return 0
