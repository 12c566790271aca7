"""Run a view until Ctrl-C, which ends it without an error."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from swarm import Interrupted
from swarm.cli.output import Answer
from swarm.cli.verb import Run


def until_ctrl_c(run: Run, view: Callable[[], None]) -> Answer:
    """Run a view that ends with Ctrl-C. A terminal ends in silence; for machines the last line gives the reason.

    Raises:
        Interrupted: by another signal than Ctrl-C, or what is printed is for machines.
    """
    try:
        view()
    except Interrupted as end:
        if run.output.json or end.facts.get("signum") != signal.SIGINT:
            raise
        run.output.err()  # below the ^C of the terminal
        return Answer({}, lambda _output: None, exit_code=128 + signal.SIGINT)
    return Answer({}, lambda _output: None)


def again(run: Run, look: Callable[[], None], pause: float) -> Answer:
    """Repeat a look until Ctrl-C; see ``until_ctrl_c``."""

    def view() -> None:
        while True:
            look()
            time.sleep(pause)

    return until_ctrl_c(run, view)
