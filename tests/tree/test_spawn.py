"""Subtrees and workers: where they work, whose they are, what is refused; all or nothing (TREE-01 to 09, 13, 24)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for
from tests.support.tree import WAIT, as_agent, code_of, end, process, quiet, subtree, told, worker

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture
def lab(panes: PaneLab) -> PaneLab:
    return quiet(panes)


def record(lab: PaneLab, session: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((lab.root / ".swarm/sessions" / session / "session.json").read_text())
    return found


def environment(lab: PaneLab, agent: str, session: str) -> dict[str, str]:
    """Return the environment of an agent's program; for a moment its process has that of its supervisor."""
    place = Path(f"/proc/{process(lab, agent, session)['pid']}/environ")
    wait_for(lambda: "\0SWARM_ACTOR=" in f"\0{place.read_text()}", f"the program of {agent}@{session} to begin")
    return dict(one.split("=", 1) for one in place.read_text().split("\0") if "=" in one)


def windows(lab: PaneLab) -> dict[str, str]:
    """Return the window of each agent's pane."""
    rows = lab.tmux.rows("#{@swarm_agent} #{window_id}")
    return dict(row.split() for row in rows if len(row.split()) == 2)


def test_a_subtree_has_a_branch_a_worktree_and_a_window_of_its_own(lab: PaneLab) -> None:
    """TREE-01, 02, 03, 04, 05, 06; C-01, C-23; PANE-06; ENV-05: the user is the root."""
    made = subtree(lab, "auth", task="write the login")

    tree = lab.root / ".swarm/worktrees/auth"
    one = made.agent
    assert (one.address, one.kind, one.parent, one.depth) == ("lead@auth", "subtree", "user", 2)
    assert (one.branch, one.path, made.existing) == ("main.auth", tree, False)
    assert lab.git("rev-parse", "main.auth") == made.base == lab.git("rev-parse", "HEAD")
    assert lab.git("symbolic-ref", "--short", "HEAD", cwd=tree) == "main.auth"
    env = environment(lab, "lead", "auth")
    assert (env["SWARM_SESSION_ID"], env["SWARM_SESSION"], env["SWARM_ROLE"]) == ("main.auth", "auth", "lead")
    assert (lab.run("lead", "auth") / "task.md").read_text() == "write the login"
    assert "parent" not in record(lab, "auth")
    assert record(lab, "auth")["kind"] == "subtree"
    subtree(lab, "docs", role="developer")
    assert windows(lab)["lead"] != windows(lab)["developer"]


def test_a_child_is_cut_from_its_callers_own_commit_and_knows_its_parent(lab: PaneLab) -> None:
    """TREE-13, 21; C-23: a lead of a team spawns; branch and parent are its own, whatever they are called."""
    lab.git("checkout", "-q", "-b", "release-1.2")
    lab.start("boss=architect", "fx", program="shell", task="")
    lab.until("boss", "idle")
    tree = lab.tree("boss", "fx")
    lab.write({"plan.md": "the plan\n"}, tree)
    tip = lab.commit("the plan", cwd=tree)
    boss = as_agent(lab, "boss", "fx")

    made = subtree(lab, "auth", by=boss)
    below = subtree(lab, "deep", by=as_agent(lab, "lead", "auth", tree__max_depth=3))

    assert (made.base, made.agent.branch) == (tip, "swarm/boss-fx.auth")
    assert (made.agent.parent, made.agent.depth) == ("boss@fx", 2)
    assert (lab.root / ".swarm/worktrees/auth/plan.md").exists()
    generation = lab.swarm.sessions.get("fx").agents[0].operation
    assert record(lab, "auth")["parent"] == {"agent": "boss", "session": "fx", "generation": generation}
    assert (below.agent.branch, below.agent.depth) == ("swarm/boss-fx.auth.deep", 3)
    assert below.agent.path == lab.root / ".swarm/worktrees/auth.deep"  # beside it: no worktree lies inside another
    assert [one["session"] for one in record(lab, "deep")["ancestors"]] == ["fx"]  # type: ignore[attr-defined]


def test_a_worker_shares_its_parents_folder_and_window(lab: PaneLab) -> None:
    """TREE-08, 13; ENV-05: it is known by its name, its role, and the branch of its lead."""
    subtree(lab, "auth")
    made = worker(lab, "tests", by=as_agent(lab, "lead", "auth"), task="run the tests")

    assert (made.agent.address, made.agent.kind, made.agent.parent) == ("tests@auth-tests", "worker", "lead@auth")
    assert made.agent.path == lab.root / ".swarm/worktrees/auth"
    assert windows(lab)["tests"] == windows(lab)["lead"]
    env = environment(lab, "tests", "auth-tests")
    assert (env["SWARM_SESSION_ID"], env["SWARM_ACTOR"], env["SWARM_ROLE"]) == ("main.auth", "tests", "worker")
    assert lab.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main", "main.auth"]
    assert len(lab.git("worktree", "list").splitlines()) == 2
    one = lab.swarm.sessions.get("auth-tests")
    assert (one.agents[0].shared, one.base) == (True, lab.git("rev-parse", "main.auth"))


def test_the_same_spawn_again_returns_the_child_and_another_one_is_refused(lab: PaneLab) -> None:
    """TREE-24: idempotent for the same parent, slug and task."""
    first = subtree(lab, "auth", task="one")
    before = lab.swarm.operations()

    again = lab.swarm.tree.spawn_subtree("one", "auth", command=WAIT)
    assert (again.existing, again.agent.address) == (True, first.agent.address)
    assert code_of(lambda: lab.swarm.tree.spawn_subtree("two", "auth", command=WAIT)) == "ALREADY_THERE"
    assert code_of(lambda: as_agent(lab, "lead", "auth").tree.spawn_worker("", "x")) == "INVALID_NAME"
    lead = as_agent(lab, "lead", "auth", tree__max_depth=5)
    assert code_of(lambda: lead.tree.spawn_subtree("one", "auth", command=WAIT)) == "ALREADY_THERE"  # of another parent
    assert lab.swarm.operations() == before
    end(lab, "lead", "auth")
    lab.until("lead", "failed", session="auth")
    assert code_of(lambda: lab.swarm.tree.spawn_subtree("one", "auth", command=WAIT)) == "ALREADY_THERE"


@pytest.mark.parametrize("slug", ["a.b", "", "x" * 41, "-x", "..", "a\nb", "root", "ä"])
def test_a_slug_that_cannot_be_part_of_a_branch_is_refused(lab: PaneLab, slug: str) -> None:
    """TREE-05."""
    before = lab.fingerprint()

    assert code_of(lambda: lab.swarm.tree.spawn_subtree("x", slug, command=WAIT)) in ("INVALID_NAME", "NAME_RESERVED")

    assert lab.fingerprint() == before
    assert not (lab.root / ".swarm").exists()


def test_a_task_is_needed_and_a_slash_becomes_part_of_the_slug(lab: PaneLab) -> None:
    assert code_of(lambda: lab.swarm.tree.spawn_subtree(" \n", "auth", command=WAIT)) == "USAGE"
    assert subtree(lab, "Feature/Login Form").agent.branch == "main.feature-login-form"


@pytest.mark.parametrize(("most", "depths"), [(1, []), (2, [2]), (3, [2, 3])])
def test_leads_exist_down_to_the_depth_of_the_setting(lab: PaneLab, most: int, depths: list[int]) -> None:
    """TREE-07; C-41: the root is at 1. Workers are leaves, and do not count."""
    lab.env["SWARM_TREE_MAX_DEPTH"] = str(most)
    by = lab.swarm
    found: list[int] = []
    for slug in ("one", "two"):
        if len(found) == len(depths):
            break
        made = subtree(lab, slug, by=by)
        found.append(made.agent.depth)
        by = as_agent(lab, "lead", slug)
    assert found == depths
    before = lab.fingerprint()
    assert code_of(lambda: by.tree.spawn_subtree("x", "last", command=WAIT)) == "TREE_LIMIT"
    assert lab.fingerprint() == before
    work = worker(lab, "tests", by=by)
    helper = as_agent(lab, "tests", work.agent.session)
    assert code_of(lambda: helper.tree.spawn_worker("more", "x", command=WAIT)) == "NOT_FOR_AGENTS"
    assert code_of(lambda: helper.tree.spawn_subtree("x", "more", command=WAIT)) == "NOT_FOR_AGENTS"


def test_width_descendants_and_pace_are_limited_by_the_living(lab: PaneLab) -> None:
    """The caps count agents that live, not records; the pace counts spawns."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth", tree__max_children=2)
    for name in ("a", "b"):
        worker(lab, name, by=lead)
    assert code_of(lambda: lead.tree.spawn_worker("c", "x", command=WAIT)) == "TREE_LIMIT"
    end(lab, "a", "auth-a")
    lab.until("a", "failed", session="auth-a")
    worker(lab, "c", by=lead)
    whole = as_agent(lab, "lead", "auth", tree__max_descendants=3)
    assert code_of(lambda: whole.tree.spawn_worker("d", "x", command=WAIT)) == "TREE_LIMIT"
    fast = as_agent(lab, "lead", "auth", tree__spawns_per_minute=3)
    assert code_of(lambda: fast.tree.spawn_worker("d", "x", command=WAIT)) == "TREE_LIMIT"


def test_what_is_not_committed_is_refused_for_an_agent_and_named_for_a_person(lab: PaneLab) -> None:
    """A child does not see what its caller has not committed."""
    lab.write({"draft.md": "mine"})
    made = subtree(lab, "auth")
    assert any("draft.md" in warning for warning in made.warnings)
    tree = lab.root / ".swarm/worktrees/auth"
    lab.write({"new.md": "not yet"}, tree)
    lead = as_agent(lab, "lead", "auth", tree__max_depth=3)

    assert code_of(lambda: lead.tree.spawn_subtree("x", "deep", command=WAIT)) == "UNCOMMITTED"

    assert [one.name for one in lab.swarm.sessions()] == ["auth"]
    deep = subtree(lab, "deep", by=lead, from_head=True)
    assert not (deep.agent.path / "new.md").exists()
    worker(lab, "tests", by=lead)  # it sees all of it


def test_a_spawn_that_fails_leaves_nothing(lab: PaneLab) -> None:
    """TREE-24: no worktree, no branch, no window, no record."""
    lab.git("branch", "main.auth")
    before, panes = lab.fingerprint(), lab.panes()

    assert code_of(lambda: lab.swarm.tree.spawn_subtree("x", "auth", command=WAIT)) == "BRANCH_EXISTS"
    assert code_of(lambda: lab.swarm.tree.spawn_subtree("x", "docs", role="nobody")) == "ROLE_NOT_FOUND"
    assert code_of(lambda: lab.swarm.tree.spawn_subtree("x", "docs", program="gemini")) == "AGENT_MISSING"

    assert (lab.fingerprint(), lab.panes()) == (before, panes)
    assert lab.swarm.sessions() == ()


def test_a_dry_run_says_what_would_be_done(lab: PaneLab) -> None:
    before = lab.fingerprint()
    plan = lab.swarm.tree.spawn_subtree("x", "auth", command=WAIT, dry_run=True)

    assert (plan.dry_run, plan.agent.branch, plan.agent.depth) == (True, "main.auth", 2)
    assert any("main.auth" in step for step in plan.steps)
    assert lab.fingerprint() == before


def test_on_a_detached_head_the_root_is_called_root(lab: PaneLab) -> None:
    """TREE-02."""
    lab.git("checkout", "-q", "--detach")
    assert subtree(lab, "auth").agent.branch == "root.auth"


def test_stop_cleanup_and_restore_know_a_subtree_as_any_session(lab: PaneLab) -> None:
    made = subtree(lab, "auth")
    lab.write({"work.md": "work"}, made.agent.path)
    lab.commit("work", cwd=made.agent.path)
    lab.swarm.stop(["auth"])
    assert told(lab, "user") == [("WorkerComplete", "lead@auth", "stopped")]
    lab.swarm.cleanup(["auth"], force=True)
    assert not made.agent.path.exists()
    lab.swarm.restore("auth")
    one = lab.swarm.sessions.get("auth")
    assert (one.kind, one.depth) == ("subtree", 2)
    assert (made.agent.path / "work.md").exists()


def test_the_folder_of_the_subtrees_is_a_setting(lab: PaneLab) -> None:
    """TREE-19: default below swarm's own folder; git sees nothing of it, and the last cleanup removes it."""
    lab.env |= {"SWARM_TREE_WORKTREE_BASE": "leads/here", "SWARM_TREE_MAX_DEPTH": "3"}
    before = lab.git("status", "--porcelain")
    made = subtree(lab, "auth")
    below = subtree(lab, "deep", by=as_agent(lab, "lead", "auth"))
    worker(lab, "tests", by=as_agent(lab, "lead", "auth"))
    base = lab.root / "leads/here"
    assert (made.agent.path, below.agent.path) == (base / "auth", base / "auth.deep")
    assert (base / "auth/.swarm/agents/tests/agent.json").exists()
    assert lab.git("status", "--porcelain") == before
    (base / "lost").mkdir()
    assert [one.name for one in lab.swarm.tree() if one.kind == "no record"] == ["lost"]
    (base / "lost").rmdir()
    lab.swarm.tree.stop("auth")
    lab.swarm.tree.cleanup("auth")
    assert not base.exists()

    lab.write({"leads/here/mine.md": "of the project"})
    lab.commit("tracked")
    assert code_of(lambda: lab.swarm.tree.spawn_subtree("x", "auth", command=WAIT)) == "STATE_DIR"
    assert lab.swarm.sessions() == ()


@pytest.mark.parametrize("base", [".git/x", ".swarm", ".swarm/other", "../x", "/nowhere/x"])
def test_a_folder_that_cannot_hold_subtrees_is_refused(lab: PaneLab, base: str) -> None:
    lab.env["SWARM_TREE_WORKTREE_BASE"] = base
    assert code_of(lab.open) == "CONFIG"


def test_the_layout_of_the_documents_is_there_for_people_and_no_more(lab: PaneLab) -> None:
    """TREE-08, 16, 17, 20, 21: liveness is never read from it; a folder without a record is shown as such."""
    made = subtree(lab, "auth")
    work = worker(lab, "tests", by=as_agent(lab, "lead", "auth"))
    worker(lab, "own")  # of the user, in the main checkout

    tree = made.agent.path
    assert (tree / ".swarm/config.local").read_text() == 'role = "tl"\n'
    written = json.loads((tree / ".swarm/agents/tests/agent.json").read_text())
    assert (written["parent"], written["session"]) == ("lead@auth", work.agent.session)
    assert (lab.root / ".swarm/agents/own/agent.json").exists()
    assert lab.git("status", "--porcelain", cwd=tree) == lab.git("status", "--porcelain") == ""
    (tree / ".swarm/agents/ghost").mkdir()
    (lab.root / ".swarm/worktrees/lost/.swarm/agents/w").mkdir(parents=True)
    before = sorted(lab.root.joinpath(".swarm/worktrees").rglob("*"))
    found = {(one.name, one.kind) for one in lab.swarm.tree()}
    assert found == {
        *(("lead", "subtree"), ("tests", "worker"), ("own", "worker")),
        *(("ghost", "no record"), ("lost", "no record"), ("w", "no record")),
    }
    assert sorted(lab.root.joinpath(".swarm/worktrees").rglob("*")) == before
    shown = {one.name: one.state for one in lab.swarm.tree.list_agents()}
    assert {shown[name] for name in ("lead", "tests", "own")} == {"unknown"}  # they live, and say nothing of themselves

    lab.swarm.tree.stop("auth")
    assert {one.name: one.state for one in lab.swarm.tree.list_agents()}["tests"] == "stopped"
    lab.swarm.cleanup([work.agent.session])
    assert not (tree / ".swarm/agents/tests").exists()
    lab.swarm.cleanup(["auth"])  # what swarm wrote is nobody's work
    assert not tree.exists()


def test_claude_asks_nobody_in_the_worktree_of_a_lead_with_another_program(lab: PaneLab) -> None:
    """TREE-09: the lead's worktree is swarm's; the user's own folder the user trusts, or not."""
    lab.program("claude", f"#!{WAIT[0]}\nimport time\ntime.sleep(600)\n")
    file = Path(lab.env["HOME"]) / ".claude.json"
    subtree(lab, "auth")
    tree = str(lab.root / ".swarm/worktrees/auth")
    lead = as_agent(lab, "lead", "auth")
    for name in ("one", "two"):
        worker(lab, name, by=lead, command=(), program="claude")
    worker(lab, "mine", command=(), program="claude")

    def trusted() -> list[str]:
        return [name for name, one in json.loads(file.read_text())["projects"].items() if one]

    assert trusted() == [tree]
    lab.swarm.tree.stop("lead@auth")
    lab.swarm.cleanup(["auth-one"])
    assert trusted() == [tree]  # the other one may be started again
    lab.swarm.cleanup(["auth-two"])
    assert trusted() == []
