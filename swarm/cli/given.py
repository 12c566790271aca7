"""Standard input and output of a command."""

from __future__ import annotations

import os
import sys

from swarm import EnvironmentProblem, UsageProblem


def from_stdin(limit: int) -> bytes:
    """Read standard input, at most one byte more than *limit*.

    Raises:
        UsageProblem: it is closed, or cannot be read.
    """
    if sys.stdin is None:
        raise UsageProblem("there is no text: standard input is closed", hint="write the text after the command")
    try:
        return sys.stdin.buffer.read(limit + 1)
    except OSError as error:
        raise UsageProblem(f"cannot read standard input: {error.strerror}") from error


def is_typed() -> bool:
    """Whether standard input is a terminal, whose user would not know that a command waits for text."""
    return sys.stdin is not None and sys.stdin.isatty()


def need_stdout(what: str) -> None:
    """Refuse a closed standard output, so that taken messages are seen.

    Raises:
        EnvironmentProblem: standard output is closed.
    """
    if _is_closed():
        raise EnvironmentProblem(
            f"cannot {what}: standard output is closed, so the output would be lost", hint="leave `>&-` out"
        )


def _is_closed() -> bool:
    """Whether the caller closed standard output; in its place is a stream of ours that leads nowhere."""
    return sys.stdout is None or getattr(sys.stdout, "name", "") == os.devnull
