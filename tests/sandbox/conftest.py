"""A machine that can make boxes, and agents that have one."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm.sandbox import check, intake, private, steps
from swarm.sandbox.inside import Inside, Said

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.world import World
    from swarm.testing.lab import Lab

SESSION = "feature-x"


@pytest.fixture(scope="session")
def _can_make_boxes() -> check.BoxCheck:
    return check.check(os.environ)


@pytest.fixture
def boxes(_can_make_boxes: check.BoxCheck) -> None:
    """Leave a test out where no box can be made; with ``SWARM_REQUIRE_BOX`` it fails."""
    if not _can_make_boxes.available:
        (pytest.fail if os.environ.get("SWARM_REQUIRE_BOX") else pytest.skip)(_can_make_boxes.cause)


class Boxed:
    """An agent of a lab with a box."""

    def __init__(self, lab: Lab, agent: str = "developer") -> None:
        self.lab = lab
        self.agent = agent
        self.tree = lab.tree(agent)
        self.world: World = lab.swarm._opened.world
        self.base: Path = self.world.layout.box_folder(SESSION, agent)
        self.step = steps.MakeBox("an-operation", SESSION, agent, str(self.tree))
        self.step.do(self.world)
        self.source = intake.Source(f"{agent}@{SESSION}", self.tree, self.base)
        self.branch = private.branch_of(self.tree, self.world.git.common)

    def run(self, *argv: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Said:
        """Run a program in the box."""
        box = private.box_of(self.tree, self.world.git.common, self.base)
        return Inside(box, os.environ, timeout=60).run(*argv, stdin=stdin, env=env)

    def sh(self, script: str, *words: str) -> str:
        """Run a script in the box, which must end well; return what it says."""
        code, out, err = self.run("sh", "-ec", script, "sh", *words)
        assert code == 0, (script, out, err)
        return os.fsdecode(out).strip()

    def take_in(self, **options: bool | int) -> intake.TakenIn:
        return intake.take_in(self.world, self.source, **options)  # type: ignore[arg-type]  # as they are named

    def tip(self) -> str:
        """Return where the agent's branch is on the host."""
        return self.lab.git("rev-parse", self.branch)


@pytest.fixture
def boxed(lab: Lab, boxes: None) -> Boxed:
    """Give a developer with a box, beside a reviewer without one."""
    lab.swarm.create(SESSION, ["developer", "reviewer"])
    return Boxed(lab)


def packs(lab: Lab) -> set[str]:
    """Return the files in which the repository has packs."""
    return set(os.listdir(lab.root / ".git/objects/pack"))


def is_whole(lab: Lab) -> bool:
    """Whether git finds nothing wrong with the repository."""
    done = subprocess.run(
        ["git", "fsck", "--full", "--strict"], cwd=lab.root, env=lab.env, capture_output=True, check=False
    )
    return done.returncode == 0
