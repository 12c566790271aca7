"""How many programs a verb starts: as many for a big team as for a small one, or a few more for each agent.

Time depends on the machine; this does not.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

TEAM = 6


class Counted:
    """A lab in which every git that swarm runs is noted."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self._log = lab.root.parent / "gits"
        bin_ = lab.root.parent / "counted"
        bin_.mkdir()
        program = bin_ / "git"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{self._log}"\nexec "{shutil.which("git")}" "$@"\n')
        program.chmod(0o755)
        self._path = f"{bin_}:{lab.env['PATH']}"

    def gits(self, act: Callable[[Any], object]) -> list[str]:
        """Do something with a fresh ``Swarm``; return the gits that ran."""
        self._log.unlink(missing_ok=True)
        lab = self.lab
        path, lab.env["PATH"] = lab.env["PATH"], self._path
        try:
            swarm = lab.swarm
        finally:
            lab.env["PATH"] = path
        act(swarm)
        return self._log.read_text().splitlines()

    def team(self, agents: int) -> None:
        """Start a session, each agent with a commit of its own."""
        self.lab.swarm.create("feature-x", [f"developer:{agents}"])
        for number in range(1, agents + 1):
            tree = self.lab.tree(f"developer-{number}")
            self.lab.write({f"new{number}": "x\n", "README": "hello\n"}, tree)
            self.lab.commit("work", cwd=tree)


@pytest.fixture
def counted(lab: Lab) -> Counted:
    return Counted(lab)


def test_a_merge_takes_as_many_gits_for_a_big_team_as_for_a_small_one(counted: Counted) -> None:
    counted.team(TEAM)

    ran = counted.gits(lambda swarm: swarm.merge("feature-x"))

    assert len(ran) <= 21, ran  # one asks for the version, once in a process; three are for a prune of the user


def test_a_forecast_takes_as_many_gits_for_a_big_team_as_for_a_small_one(counted: Counted) -> None:
    counted.team(TEAM)

    ran = counted.gits(lambda swarm: swarm.conflicts())

    assert len(ran) <= 10, ran


def test_a_cleanup_takes_as_many_gits_for_a_big_team_as_for_a_small_one(counted: Counted) -> None:
    counted.team(TEAM)
    counted.lab.swarm.merge("feature-x")

    ran = counted.gits(lambda swarm: swarm.cleanup(["feature-x"]))
    assert len(ran) <= 11, ran

    counted.lab.swarm.create("fresh", [f"developer:{TEAM}"])
    ran = counted.gits(lambda swarm: swarm.cleanup(["fresh"]))
    assert len(ran) <= 8, ran


def test_a_cleanup_of_work_takes_one_more_git_for_each_agent(counted: Counted) -> None:
    counted.team(TEAM)
    for number in range(1, TEAM + 1):
        counted.lab.write({"README": f"{number}\n", "more": "x\n"}, counted.lab.tree(f"developer-{number}"))

    ran = counted.gits(lambda swarm: swarm.cleanup(["feature-x"], force=True))

    assert len(ran) <= 10 + TEAM, ran
