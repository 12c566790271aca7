"""The example program: short, typed, made of public names alone, and it does what it says."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import swarm

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs/examples/team.py"


def test_the_example_is_short_and_needs_public_names_alone() -> None:
    text = EXAMPLE.read_text()
    assert len(text.splitlines()) <= 60
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    ours = [one for one in imports if "swarm" in ast.unparse(one)]
    assert [one.module for one in ours if isinstance(one, ast.ImportFrom)] == ["swarm"]
    assert {alias.name for one in ours for alias in one.names} <= set(swarm.__all__)


def test_the_example_is_type_checked_with_everything_else() -> None:
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert mypy["strict"]
    assert "docs/examples" in mypy["files"]


def test_the_example_starts_collects_and_merges(panes: PaneLab) -> None:
    task = "demo: delay 0\ndemo: steps 1\n"

    done = subprocess.run(
        [sys.executable, "-P", str(EXAMPLE), "feature-x", task, "demo"],
        cwd=panes.root,
        env=panes.env,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    *said, merged = done.stdout.splitlines()
    assert {line.partition(":")[0] for line in said} >= {"researcher", "developer"}
    assert merged.startswith("merged into main: ")
    assert all((panes.root / path).is_file() for path in merged.removeprefix("merged into main: ").split(", "))
