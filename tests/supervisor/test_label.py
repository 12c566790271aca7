"""When a supervisor has the states shown: after each change, also of a program that never stops writing."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from swarm.supervisor.label import Label
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.component,
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),  # the supervisor reaps it
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

STEP = 8


def looks(folder: Path) -> int:
    told = folder / "looks"
    return len(told.read_text()) if told.exists() else 0


def _are(folder: Path, count: int) -> bool:
    return looks(folder) == count


def label_of(folder: Path) -> tuple[Label, Path]:
    run, terminal = folder / "run" / "builder", folder / "terminal"
    run.mkdir(parents=True)
    terminal.touch()
    argv = [b"/bin/sh", b"-c", b'printf x >> "$0"', os.fsencode(folder / "looks")]
    return Label(str(run), argv, {b"PATH": os.environb[b"PATH"]}, terminal=str(terminal)), terminal


def wrote_at(terminal: Path, seconds: float) -> None:
    os.utime(terminal, (seconds, seconds))


def test_what_a_program_wrote_is_looked_at_when_the_step_of_time_is_over(tmp_path: Path) -> None:
    label, terminal = label_of(tmp_path)
    wrote_at(terminal, time.time() - 2 * STEP)
    wait_for(lambda: label.look() and looks(tmp_path) == 1, "a look")


def test_a_program_that_never_stops_writing_is_looked_at_for_each_step(tmp_path: Path) -> None:
    label, terminal = label_of(tmp_path)
    now = time.time() + 10 * STEP  # no step of these is over before the test is
    for count in range(3):
        wrote_at(terminal, now + count * STEP)
        wait_for(lambda: label.look() > 1.5, "a look at the terminal's time")
        wait_for(partial(_are, tmp_path, count), f"{count} looks")
