"""The demo that the README names does all it says, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest

from tests.support.procs import PROJECT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_the_demo_goes_as_told_and_leaves_nothing() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="demo-") as folder:  # a socket's path is short
        env = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(
            [PROJECT / "scripts/demo"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
        assert "rolled back: start of crash" in done.stdout  # its last act
        assert os.listdir(folder) == []
