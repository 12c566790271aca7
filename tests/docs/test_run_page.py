"""The page about `swarm run`: its commands do what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration
PAGE = Path(__file__).parents[2] / "docs/run.md"


def test_the_commands_of_the_page_work_as_they_are_written(panes: PaneLab) -> None:
    (block,) = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)

    for line in block.splitlines():
        done = panes.cli(*shlex.split(line.removeprefix("$ swarm ")))
        assert done.returncode == 0, (line, done.stderr)
    assert panes.swarm.sessions() == ()


def test_the_role_of_the_page_is_one_and_a_task_prints_its_result(panes: PaneLab) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    folder = panes.root / "roles"
    folder.mkdir()
    (folder / "fixer.yaml").write_text(text.replace("root_dir: projects/app", 'root_dir: "."'))

    done = panes.cli("run", "fixer", "demo: steps 1\ndemo: delay 0\n", "--agent", "demo")

    assert (done.returncode, bool(done.stdout.strip())) == (0, True), done.stderr
    assert "keeps its worktree" in done.stderr + done.stdout  # the demo agent commits
    assert (panes.root / ".swarm/worktrees/fixer").is_dir()
