"""Fixtures that every kind of test uses."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from typing import TYPE_CHECKING

import pytest

# Thousands of small files are made and deleted. In memory that takes a fraction of the time, and on some
# disks it gets slower with each deletion. In containers that folder often has 64 MB, which is not enough.
_MEMORY = "/dev/shm"
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 1 << 30:
    os.environ["TMPDIR"] = _MEMORY
    tempfile.tempdir = None

# The folder is chosen before anything asks for it.
pytest_plugins = ["swarm.testing", "tests.support.kinds", "tests.support.timing", "tests.support.crash_plugin"]

# A shell starts what it runs in the background with Ctrl-C ignored, and nohup does so with SIGHUP; every program
# we start would inherit that. A handler that does nothing is the same for us, and is not inherited.
for signum in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(signum) is signal.SIG_IGN:
        signal.signal(signum, lambda *_: None)

if TYPE_CHECKING:
    from swarm.testing.lab import Lab
    from swarm.testing.panes import PaneLab


@pytest.fixture
def panes(swarm_panes: PaneLab) -> PaneLab:
    """Give a scratch repository whose agents run in a tmux server of its own."""
    return swarm_panes


@pytest.fixture
def lab(swarm_lab: Lab) -> Lab:
    """Give a scratch repository whose path has a space in it."""
    return swarm_lab
