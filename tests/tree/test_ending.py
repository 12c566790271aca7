"""What a lead or a child hears at the end of its turn: once for each state, and nothing where nothing is open."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.api.hooks import words_at_turn_end
from swarm.machine import turn_end
from swarm.testing.terminal import wait_for
from tests.support.tree import SWARM, as_agent, end, process, quiet, subtree, worker

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
ONCE = "This is said once: end your turn again if all of it is as you want it."


@pytest.fixture
def lab(panes: PaneLab) -> PaneLab:
    lab = quiet(panes)
    lab.env["SWARM_TREE_MAX_DEPTH"] = "3"
    return lab


def test_a_lead_hears_of_its_children_and_of_what_it_owes(lab: PaneLab) -> None:
    """TREE-23: the stop hook of a subtree."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    assert words_at_turn_end(lead).startswith("You have not said what came of your task.")
    assert words_at_turn_end(lead) == ""

    worker(lab, "tests", by=lead)
    subtree(lab, "deep", by=lead)
    words = words_at_turn_end(lead)
    assert words.startswith("2 children of yours are still at work: lead@deep, tests@auth-tests. You are told")
    assert words.endswith(ONCE)
    assert words_at_turn_end(lead) == ""

    as_agent(lab, "lead", "deep").tree.notify_parent("success", "done")
    end(lab, "tests", "auth-tests")
    wait_for(lambda: lab.one("tests", "auth-tests").status.state == "failed", "the end of the worker")
    wait_for(lambda: lead.tree.list_agents()[-1].completion is not None, "its completion")
    words = words_at_turn_end(lead)
    assert "Finished and not merged: deep. Check it, then: `swarm merge --tree deep`" in words
    assert "You have not said what came of your task." in words
    lead.tree.notify_parent("success", "done")
    lab.swarm.tree.stop("lead@deep")
    lab.swarm.tree.cleanup("lead@deep", force=True)
    assert words_at_turn_end(lead) == ""


def test_nobody_else_hears_anything(lab: PaneLab) -> None:
    lab.start("boss=architect", "fx", program="shell", task="")
    lab.until("boss", "idle")
    boss = as_agent(lab, "boss", "fx")
    assert words_at_turn_end(boss) == words_at_turn_end(lab.swarm) == ""
    subtree(lab, "auth", by=boss)
    assert words_at_turn_end(boss).startswith("1 child of yours is still at work: lead@auth.")


def test_the_hook_looks_closely_only_where_there_may_be_something(lab: PaneLab, tmp_path: Path) -> None:
    lab.start("boss=architect", "fx", program="shell", task="")
    process(lab, "boss", "fx")

    def said(run: Path, **event: bool) -> str:
        argv = [sys.executable, "-I", "-S", turn_end.__file__, str(run), sys.executable, "-c", "print('closely')"]
        told = json.dumps({"hook_event_name": "Stop", **event})
        done = subprocess.run(argv, input=told, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.strip()

    assert said(lab.run("boss", "fx")) == ""
    assert said(tmp_path / "nowhere") == ""
    subtree(lab, "auth", by=as_agent(lab, "boss", "fx"))
    assert said(lab.run("boss", "fx")) == "closely"
    assert said(lab.run("boss", "fx"), stop_hook_active=True) == ""
    assert said(lab.run("lead", "auth")) == "closely"
    as_agent(lab, "lead", "auth").tree.notify_parent("success", "done")
    assert said(lab.run("lead", "auth")) == ""


def test_the_command_of_the_hook_holds_up_a_turn_and_never_fails(lab: PaneLab, tmp_path: Path) -> None:
    made = subtree(lab, "auth", command=(), program="shell")
    lab.until("lead", "idle", session="auth")
    out = tmp_path / "out"

    lab.type(
        "lead",
        f"{SWARM} hook turn-end > {shlex.quote(str(out))}.new; mv {shlex.quote(str(out))}.new {shlex.quote(str(out))}",
        session="auth",
    )

    wait_for(out.exists, "the hook to end")
    told = json.loads(out.read_text())
    assert told["decision"] == "block"
    assert "notify_parent" in told["reason"]
    assert made.agent.kind == "subtree"
    done = lab.cli("hook", "turn-end")  # of a person
    assert (done.returncode, done.stdout) == (0, "")
