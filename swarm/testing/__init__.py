"""The test kit of our own tests, for the tests of programs that use swarm.

In ``conftest.py``::

    pytest_plugins = ["swarm.testing"]

Then a test may ask for a scratch repository (``swarm_lab``), or for one whose agents run in a tmux server of its own
(``swarm_panes``).  ``swarm_api`` is a scripted stand-in of the model APIs.  All of it is removed at the end, and a test
fails if a process of its agents is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.api import Api, Request, Turn, call, fail, hang, hold, say
from swarm.testing.lab import Lab
from swarm.testing.panes import PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = [
    "Api",
    "Lab",
    "PaneLab",
    "Request",
    "Turn",
    "call",
    "fail",
    "hang",
    "hold",
    "say",
    "swarm_api",
    "swarm_lab",
    "swarm_panes",
    "wait_for",
]


@pytest.fixture
def swarm_lab(tmp_path: Path) -> Lab:
    """Give a scratch repository with one commit; its path has a space in it, and no setting of yours counts."""
    return Lab(tmp_path.resolve())


@pytest.fixture
def swarm_panes(tmp_path: Path) -> Iterator[PaneLab]:
    """Give a scratch repository whose agents run in a tmux server of its own."""
    made = PaneLab(tmp_path.resolve())
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def swarm_api() -> Iterator[Api]:
    """Give a server on loopback that answers like the model APIs do, by a script."""
    with Api() as made:
        yield made
