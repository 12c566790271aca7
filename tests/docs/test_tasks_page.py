"""The page about tasks: its commands do what it says, and its Python runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.procs import PROJECT

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
TEXT = (Path(__file__).parents[2] / "docs/tasks.md").read_text()


def test_the_commands_of_the_page_work_as_they_are_written(panes: PaneLab) -> None:
    blocks = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 3
    said = {}

    for line in "".join(blocks).splitlines():
        done = panes.cli(*shlex.split(line.removeprefix("$ swarm ")))
        assert done.returncode == 0, (line, done.stderr)
        said[line] = done.stdout

    first, second, held, again, *_ = said.values()
    assert (first, held, again) == ("it is done\n", "painted\n", "painted twice\n")
    assert second.strip().isdigit()
    assert said["$ swarm task wait door"] == "the frame is blue\n"
    assert "answered" in said["$ swarm task messages door"]
    assert said["$ swarm task take door"].startswith("door is in the pane of developer@door\n")
    assert said["$ swarm task give-back door"].startswith("door is idle\n")
    assert panes.swarm.tasks() == ()


def test_the_python_of_the_page_runs(panes: PaneLab) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    env = {**panes.env, "PYTHONPATH": str(PROJECT)}

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=panes.root, env=env, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == ["completed hello 1", "1 accepted", "2 starting", "3 started", "4 completed"]
