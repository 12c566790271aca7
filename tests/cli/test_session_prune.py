"""``swarm session prune``: old sessions go, never those of a live agent, never uncommitted work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.panes import QUICK

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def test_only_what_is_over_and_safe_goes(panes: PaneLab) -> None:
    swarm = panes.swarm
    for session in ("old", "dirty"):
        swarm.create(session, ["developer"])
    panes.write({"work.txt": "mine"}, panes.tree("developer", "dirty"))
    panes.start("reviewer", "live", task=QUICK)
    panes.until("reviewer", "idle")

    assert panes.json("session", "prune", "--older-than", "1h")["data"]["removed"] == []
    planned = panes.json("session", "prune", "--older-than", "1ms", "--dry-run")["data"]
    assert [one["session"] for one in planned["removed"]] == ["old"]
    assert panes.tree("developer", "old").is_dir()

    done = panes.json("session", "prune", "--older-than", "1ms")

    assert done["exit_code"] == 0
    assert {one.name for one in panes.swarm.sessions()} == {"dirty", "live"}
    assert (panes.tree("developer", "dirty") / "work.txt").read_text() == "mine"
    assert panes.until("reviewer", "idle").pid
    (entry,) = (one for one in panes.json("log", "old")["data"]["operations"] if one["verb"] != "create")
    assert entry["verb"] == "session prune"


def test_the_history_calls_each_way_of_removing_by_its_name(panes: PaneLab) -> None:
    panes.swarm.create("fx", ["developer", "reviewer"])
    panes.json("worktree", "remove", "reviewer@fx")
    panes.tree("developer", "fx").rename(panes.root.parent / "elsewhere")
    panes.json("worktree", "prune")

    verbs = [one["verb"] for one in panes.json("log", "fx")["data"]["operations"]]
    assert verbs == ["create", "worktree remove", "worktree prune"]


def test_a_time_without_a_unit_is_refused(panes: PaneLab) -> None:
    done = panes.cli("session", "prune", "--older-than", "7")
    assert done.returncode == 2
    assert "the unit is missing" in done.stderr
