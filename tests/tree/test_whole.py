"""Whole parts of the tree: stop, clean up, merge and adopt; the children of an ended parent (TREE-23)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from swarm import AgentNotRunning
from swarm.agents import running
from swarm.callers import parents
from swarm.testing.terminal import wait_for
from tests.support.tree import WAIT, as_agent, code_of, end, quiet, subtree, told, worker

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
def lab(panes: PaneLab) -> PaneLab:
    lab = quiet(panes)
    lab.env["SWARM_TREE_MAX_DEPTH"] = "4"
    return lab


def grown(lab: PaneLab) -> Swarm:
    """Grow auth ─ deep ─ a worker, and auth ─ a worker; return auth's lead."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    worker(lab, "w", by=lead)
    subtree(lab, "deep", by=lead)
    worker(lab, "w", by=as_agent(lab, "lead", "deep"))
    return lead


def work(lab: PaneLab, session: str, **files: str) -> Path:
    """Let a lead commit something, and report success."""
    tree = lab.root / lab.swarm.sessions.get(session).agents[0].worktree
    lab.write({f"{name}.md": text for name, text in files.items()}, tree)
    lab.commit(f"work of {session}", cwd=tree)
    as_agent(lab, "lead", session).tree.notify_parent("success", "done")
    return tree


def states(lab: PaneLab) -> dict[str, str]:
    return {one.address: one.state for one in lab.swarm.tree()}


# --- stop ----------------------------------------------------------------------------------------------


def test_all_below_an_agent_are_stopped_and_its_parent_is_told_once(lab: PaneLab) -> None:
    lead = grown(lab)
    subtree(lab, "docs")

    assert code_of(lambda: lead.tree.stop("lead@auth")) == "NOT_FOR_AGENTS"  # it would end with it
    assert code_of(lambda: lead.tree.stop("lead@docs")) == "NOT_FOR_AGENTS"
    report = lab.swarm.tree.stop("auth")

    assert set(report.stopped) == {("auth", "lead"), ("auth-w", "w"), ("deep", "lead"), ("deep-w", "w")}
    assert {state for who, state in states(lab).items() if who != "lead@docs"} == {"stopped"}
    assert states(lab)["lead@docs"] != "stopped"
    assert sorted(told(lab, "user")) == [
        ("TreeStopped", "lead@auth", "stopped"),
        ("WorkerComplete", "lead@auth", "stopped"),
    ]
    assert told(lab, "lead-deep") == [("WorkerComplete", "w@deep-w", "stopped")]
    assert lab.swarm.tree.stop("auth").stopped == ()


def test_a_lead_stops_its_own_children(lab: PaneLab) -> None:
    lead = grown(lab)
    assert {session for session, _ in lead.tree.stop("deep").stopped} == {"deep", "deep-w"}
    assert lab.one("w", "auth-w").status.runs


def test_a_spawn_that_waited_while_its_caller_was_stopped_is_refused(lab: PaneLab, monkeypatch: Any) -> None:
    """A server that acts for an agent may still hold a call of it when the tree above is stopped."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth")
    real = type(lead.tree)._made

    def late(self: Any, *args: Any) -> Any:
        lab.swarm.tree.stop("auth")
        return real(self, *args)

    monkeypatch.setattr(type(lead.tree), "_made", late)
    assert code_of(lambda: lead.tree.spawn_worker("w", "x", command=WAIT)) == AgentNotRunning.code
    assert [one.name for one in lab.swarm.sessions()] == ["auth"]


def test_a_stop_that_was_killed_half_way_goes_on(lab: PaneLab, monkeypatch: Any) -> None:
    grown(lab)
    real, calls = running.stop, []

    def once(*args: Any) -> Any:
        calls.append(args)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(running, "stop", once)
        with pytest.raises(KeyboardInterrupt):
            lab.swarm.tree.stop("auth")
    assert "stopped" in states(lab).values()
    assert set(states(lab).values()) != {"stopped"}

    lab.swarm.recover()

    assert set(states(lab).values()) == {"stopped"}
    assert [one for one in told(lab, "user") if one[0] == "TreeStopped"] == [("TreeStopped", "lead@auth", "stopped")]


# --- merge and clean -----------------------------------------------------------------------------------


def test_a_tree_is_merged_from_the_leaves_and_what_has_landed_is_removed(lab: PaneLab) -> None:
    """TREE-23: merge, then clean."""
    lead = grown(lab)
    for session, name in (("auth-w", "w"), ("deep-w", "w")):
        as_agent(lab, name, session).tree.notify_parent("success", "done")
    work(lab, "deep", deep="deep")
    work(lab, "auth", auth="auth")
    plan = lab.swarm.tree.merge("auth", dry_run=True)
    assert [(one.session, one.into, one.merged) for one in plan] == [
        ("deep", "main.auth", True),
        ("auth", "main", True),
    ]
    assert len(lab.swarm.sessions()) == 4

    done = lab.swarm.tree.merge("auth")

    assert [(one.session, one.merged, one.cleaned, one.why) for one in done] == [
        ("deep", True, True, ""),
        ("auth", True, True, ""),
    ]
    assert (lab.root / "deep.md").read_text() == "deep"
    assert (lab.root / "auth.md").read_text() == "auth"
    assert lab.swarm.sessions() == ()
    assert lab.git("branch", "--format=%(refname:short)").split() == ["main"]
    assert not lead.root.joinpath(".swarm/worktrees/auth").exists()


def test_a_lead_folds_its_child_into_its_own_branch(lab: PaneLab) -> None:
    lead = grown(lab)
    work(lab, "deep", deep="deep")
    as_agent(lab, "w", "deep-w").tree.notify_parent("success", "done")

    (done,) = lead.tree.merge("lead@deep")

    assert (done.merged, done.cleaned, done.into) == (True, True, "main.auth")
    assert (lab.root / ".swarm/worktrees/auth/deep.md").exists()  # the checkout of its branch followed
    assert lab.git("log", "-1", "--format=%s", "main") == "first"


def test_a_conflict_ends_it_and_leaves_what_is_above(lab: PaneLab) -> None:
    grown(lab)
    tree = lab.root / lab.swarm.sessions.get("auth").agents[0].worktree
    work(lab, "deep", same="one")
    lab.write({"same.md": "two"}, tree)
    lab.commit("two", cwd=tree)
    as_agent(lab, "lead", "auth").tree.notify_parent("success", "done")
    before = lab.git("rev-parse", "main", "main.auth")

    done = lab.cli("merge", "--tree", "auth", "--json")

    first, second = lab.swarm.tree.merge("auth")
    assert (first.session, first.merged, first.code) == ("deep", False, "MERGE_CONFLICT")
    assert (second.session, second.merged, second.why) == ("auth", False, "lead@deep could not be merged")
    assert done.returncode == 1
    assert '"status": "partial"' in done.stdout
    assert lab.git("rev-parse", "main", "main.auth") == before
    assert len(lab.swarm.sessions()) == 4


def test_open_and_failed_tasks_are_not_merged_unless_that_is_asked_for(lab: PaneLab) -> None:
    made = subtree(lab, "auth")
    lab.write({"half.md": "half"}, made.agent.path)
    lab.commit("half", cwd=made.agent.path)
    (one,) = lab.swarm.tree.merge("auth")
    assert (one.merged, one.why) == (False, "the task of lead@auth is open")
    as_agent(lab, "lead", "auth").tree.notify_parent("failure", "no")
    (one,) = lab.swarm.tree.merge("auth")
    assert (one.merged, one.why) == (False, "lead@auth reported failure")

    (one,) = lab.swarm.tree.merge("auth", unfinished=True, clean=False)

    assert (one.merged, one.cleaned) == (True, False)
    assert (lab.root / "half.md").exists()


def test_a_merged_subtree_in_which_a_worker_still_works_stays(lab: PaneLab) -> None:
    grown(lab)
    work(lab, "deep", deep="deep")
    (one,) = as_agent(lab, "lead", "auth").tree.merge("deep")
    assert (one.merged, one.cleaned, one.why) == (True, False, "w@deep-w below it still works")
    assert lab.one("w", "deep-w").status.runs


def test_a_cleanup_of_a_tree_takes_all_or_nothing(lab: PaneLab) -> None:
    grown(lab)
    assert code_of(lambda: lab.swarm.tree.cleanup("auth")) == "WORK_AT_RISK"  # they run
    assert code_of(lambda: lab.swarm.cleanup(["auth"])) == "WORK_AT_RISK"
    lab.swarm.tree.stop("auth")
    lab.write({"draft.md": "mine"}, lab.root / ".swarm/worktrees/auth.deep")
    assert code_of(lambda: lab.swarm.tree.cleanup("auth")) == "WORK_AT_RISK"
    assert len(lab.swarm.sessions()) == 4

    report = lab.swarm.tree.cleanup("auth", force=True)

    assert (report.worktrees_removed, len(report.removed)) == (2, 4)
    assert lab.swarm.sessions() == ()


def test_a_folder_in_which_a_worker_lives_is_not_removed(lab: PaneLab) -> None:
    subtree(lab, "auth")
    worker(lab, "w", by=as_agent(lab, "lead", "auth"))
    lab.swarm.stop(["auth"])
    assert code_of(lambda: lab.swarm.cleanup(["auth"])) == "WORK_AT_RISK"
    assert lab.one("w", "auth-w").status.runs


# --- adopt, and orphans --------------------------------------------------------------------------------


def test_a_person_gives_a_child_another_parent(lab: PaneLab) -> None:
    lead = grown(lab)
    subtree(lab, "docs")
    assert code_of(lambda: lead.tree.adopt("deep", "lead@docs")) == "NOT_FOR_AGENTS"
    assert code_of(lambda: lab.person.tree.adopt("auth", "lead@deep")) == "USAGE"
    assert code_of(lambda: lab.person.tree.adopt("deep", "w@auth-w")) == "USAGE"

    one = lab.person.tree.adopt("deep", "lead@docs")

    assert (one.parent, one.depth) == ("lead@docs", 3)
    deep = lab.swarm.sessions.get("deep-w")
    assert [each.session for each in parents.line_of(deep)] == ["deep", "docs"]
    as_agent(lab, "lead", "deep").tree.notify_parent("success", "done")
    assert told(lab, "lead-docs") == [("WorkerComplete", "lead@deep", "success")]
    assert told(lab, "lead-auth") == []
    assert lab.person.tree.adopt("deep", "user").parent == "user"


def test_children_of_an_ended_parent_go_on_by_default(lab: PaneLab) -> None:
    grown(lab)
    end(lab, "lead", "auth")
    wait_for(lambda: told(lab, "user"), "the completion")
    lab.swarm.doctor()
    assert lab.one("w", "auth-w").status.runs
    as_agent(lab, "w", "auth-w").tree.notify_parent("success", "done")
    assert told(lab, "lead-auth") == [("WorkerComplete", "w@auth-w", "success")]  # a resumed parent finds it


def test_children_of_an_ended_parent_are_stopped_where_the_setting_says_so(lab: PaneLab) -> None:
    lab.env["SWARM_TREE_ON_PARENT_END"] = "stop"
    grown(lab)
    end(lab, "lead", "auth")
    below = (("w", "auth-w"), ("w", "deep-w"), ("lead", "deep"))
    wait_for(lambda: not any(lab.one(*one).status.runs for one in below), "the end of those below it")


def test_children_of_an_ended_parent_are_left_in_peace_where_the_setting_says_so(lab: PaneLab) -> None:
    lab.env |= {"SWARM_TREE_ON_PARENT_END": "pause", "SWARM_AGENTS_NUDGE": "idle"}
    subtree(lab, "auth")
    made = worker(lab, "w", by=as_agent(lab, "lead", "auth"), command=(), program="shell")
    lab.until("w", "idle", session=made.agent.session)
    end(lab, "lead", "auth")
    wait_for(lambda: told(lab, "user"), "the completion")
    lab.swarm.send("w@auth-w", "hello")
    assert lab.swarm.delivery.nudge("w", "auth-w") == "its parent has ended, and it is left in peace"
