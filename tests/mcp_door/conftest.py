"""Agents whose doors the tests open."""

from __future__ import annotations

import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.api import serving
from swarm.testing.terminal import wait_for
from tests.support.puppet import Puppets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.panes import PaneLab


@pytest.fixture
def puppets(panes: PaneLab) -> Puppets:
    """Give agents that do what the test says: lead@fx and developer@fx."""
    made = Puppets(panes)
    made.start("fx", "developer,reviewer")
    return made


class Serving:
    """A server of the repository, as a process."""

    def __init__(self, lab: PaneLab) -> None:
        self.lab = lab
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *words: str) -> int:
        """Start it; return its port."""
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "swarm", "serve", *words],
            cwd=self.lab.root,
            env=self.lab.env,
            stderr=subprocess.PIPE,
        )
        process = self.process
        wait_for(lambda: serving.status(self.lab.root) is not None or process.poll() is not None, "the server", 60)
        now = serving.status(self.lab.root)
        assert now is not None, process.communicate()[1]
        return now.port

    def end(self, signum: int = signal.SIGTERM) -> int:
        """End it; return its exit status."""
        assert self.process is not None
        self.process.send_signal(signum)
        self.process.communicate(timeout=30)
        code, self.process = self.process.returncode, None
        return code


@pytest.fixture
def server(panes: PaneLab) -> Iterator[Serving]:
    """Give a server that is not started yet."""
    made = Serving(panes)
    yield made
    if made.process is not None:
        made.end(signal.SIGKILL)
