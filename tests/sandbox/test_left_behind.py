"""A supervisor that is killed at any step of a start leaves nothing of its box behind: no program, no bubblewrap."""

from __future__ import annotations

import json
import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from swarm.machine import processes
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300), pytest.mark.usefixtures("boxes")]


def _named(tag: str) -> list[tuple[int, str]]:
    """Return the processes, with what they are, in whose command line a word stands."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        words = processes.read(f"/proc/{pid}/cmdline").split(b"\0")
        if tag.encode() in words:
            found.append((int(pid), processes.read(f"/proc/{pid}/comm").decode().strip()))
    return found


def _count(tag: str, name: str) -> int:
    return sum(what == name for _, what in _named(tag))


#: What is there when the supervisor is killed.
STEPS: dict[str, Callable[[str], bool]] = {
    "it has told of its child": lambda _: True,
    "its child has become bubblewrap": lambda tag: _count(tag, "bwrap") >= 1,
    "bubblewrap has its other half": lambda tag: _count(tag, "bwrap") >= 2,
    "the program runs": lambda tag: _count(tag, "sleep") >= 1,
}


@pytest.mark.parametrize("step", STEPS)
def test_nothing_of_a_box_is_left_when_its_supervisor_is_killed(panes: PaneLab, step: str) -> None:
    for turn in range(3):
        tag, session = f"9{os.getpid():07}{list(STEPS).index(step)}{turn}", f"s{turn}"
        panes.swarm.start(session, ["developer"], command=["sleep", tag], sandbox=True)
        told = panes.root / f".swarm/sessions/{session}/run/developer/process.json"
        wait_for(told.exists, "the supervisor")
        supervisor = json.loads(told.read_bytes())["supervisor_pid"]
        wait_for(lambda tag=tag: STEPS[step](tag), step)  # type: ignore[misc]

        os.kill(supervisor, signal.SIGKILL)

        wait_for(lambda tag=tag: not any(what == "sleep" for _, what in _named(tag)), "the end of the program")  # type: ignore[misc]
        panes.swarm.stop([session])
        wait_for(lambda tag=tag: not _named(tag), "the end of its box")  # type: ignore[misc]


def test_bubblewrap_bears_the_stamp_by_which_a_stop_finds_what_is_left_of_an_agent(panes: PaneLab) -> None:
    """Killed in between, bubblewrap leaves a process that waits for ever; and it bears nothing else."""
    tag = f"8{os.getpid():07}"
    panes.swarm.start("s", ["developer"], command=["sleep", tag], sandbox=True)
    wait_for(lambda: _count(tag, "sleep") == 1, "the program")

    stamps = [
        word
        for pid, what in _named(tag)
        if what == "bwrap"
        for word in processes.read(f"/proc/{pid}/environ").split(b"\0")
        if word
    ]

    assert len(set(stamps)) == 1
    assert stamps[0].startswith(b"SWARM_AGENT_ID=")


def test_a_box_that_begins_after_the_end_of_its_supervisor_ends_at_once(panes: PaneLab) -> None:
    """Where no terminal hangs up, nothing else binds the two until bubblewrap says so itself."""
    tag = f"7{os.getpid():07}"
    held = panes.root.parent / "held"
    held.touch()
    folder = panes.root.parent / "slow"
    folder.mkdir()
    slow = folder / "bwrap"
    wait = f'case "$*" in *{tag}*) while [ -e "{held}" ]; do sleep 0.01; done;; esac'
    slow.write_text(f'#!/bin/sh\ntrap "" HUP\n{wait}\nexec {shutil.which("bwrap")} "$@"\n')
    slow.chmod(0o755)
    panes.env["PATH"] = f"{folder}:{panes.env['PATH']}"
    panes.open().start("s", ["developer"], command=["sleep", tag], sandbox=True)
    wait_for(lambda: _count(tag, "bwrap") == 1, "the slow bubblewrap")
    told = json.loads((panes.root / ".swarm/sessions/s/run/developer/process.json").read_bytes())

    os.kill(told["supervisor_pid"], signal.SIGKILL)
    wait_for(lambda: not processes.is_alive(told["supervisor_pid"], told["supervisor_start"]), "its end")
    held.unlink()

    wait_for(lambda: not _named(tag), "the end of the box")
