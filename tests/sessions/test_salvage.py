"""Saved work: what is listed, what is dropped, what is never saved by mistake; cleanup's other switches."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm
from swarm.kit.errors import Ambiguous, UsageProblem
from swarm.project.errors import ReservedName, SessionNotFound
from swarm.sessions.errors import CleanupFailed
from swarm.testing.lab import file_digests
from swarm.testing.terminal import at_terminal
from swarm.worktrees.errors import SalvageNotFound, WorkAtRisk
from swarm.worktrees.saved import salvage
from tests.support.library import documents
from tests.support.work import process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

BRANCH = "swarm/developer-feature-x"


@pytest.fixture
def swarm(lab: Lab) -> Swarm:
    return lab.open(worktrees__durable=False)


def work(lab: Lab, agent: str = "developer", session: str = "feature-x") -> str:
    """A commit and a change of one agent; return the commit."""
    tree = lab.tree(agent, session)
    lab.write({"work.txt": f"{agent} {session}\n"}, tree)
    tip = lab.commit(f"work of {agent}", cwd=tree)
    lab.write({"notes.txt": "not committed\n"}, tree)
    return tip


def salvage_refs(lab: Lab) -> list[str]:
    return lab.git("for-each-ref", "--format=%(refname)", "refs/swarm/").splitlines()


# --- list and show ------------------------------------------------------------------------------------


def test_entries_are_listed_newest_first_and_told_in_full(lab: Lab, swarm: Swarm) -> None:
    for session in ("one", "two"):
        swarm.create(session, ["developer"])
        work(lab, "developer", session)
        swarm.cleanup([session], force=True)
    entries = swarm.salvage()
    assert [entry.session for entry in entries] == ["two", "one"]
    assert [entry.session for entry in swarm.salvage("ONE")] == ["one"]
    (entry,) = swarm.salvage("one")
    assert entry.name == f"one/developer@{entry.id}"
    assert swarm.salvage.get(entry.name) == entry
    assert swarm.salvage.get("ONE/Developer") == entry
    assert entry.record.branch == "swarm/developer-one"
    assert entry.head == entry.branch_tip == lab.git("rev-parse", f"refs/swarm/salvage/one/developer/{entry.id}/head")


def test_looking_at_nothing_makes_nothing(lab: Lab, swarm: Swarm) -> None:
    before = lab.fingerprint()
    assert swarm.salvage() == ()
    assert swarm.cleanup(everything=True).removed == ()
    assert documents(swarm).cleanup_swarm_branches() == 0
    assert lab.fingerprint() == before
    assert not (lab.root / ".swarm").exists()


# --- drop ---------------------------------------------------------------------------------------------


def test_dropped_work_is_gone_with_refs_and_files(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False, cleanup__large_file=10)
    swarm.create("feature-x", ["developer", "reviewer"])
    tip = work(lab)
    swarm.cleanup(["feature-x"], force=True)
    assert (lab.root / ".swarm/salvage").is_dir()
    (dropped,) = lab.person.salvage.drop(["feature-x/developer"], now=True)
    assert dropped.agent == "developer"
    assert [entry.agent for entry in swarm.salvage()] == ["reviewer"]
    assert not any("/developer/" in ref for ref in salvage_refs(lab))
    assert not (lab.root / ".swarm/salvage").exists()
    with pytest.raises(SalvageNotFound):
        swarm.restore("feature-x/developer")
    lab.git("gc", "--quiet", "--prune=now")
    with pytest.raises(AssertionError):
        lab.git("cat-file", "-e", tip)


def test_dropping_everything_leaves_no_trace(lab: Lab, swarm: Swarm) -> None:
    before = lab.fingerprint()
    for session in ("one", "two"):
        swarm.create(session, ["developer"])
        work(lab, "developer", session)
        swarm.cleanup([session], force=True)
    assert len(lab.person.salvage.drop(everything=True, now=True)) == 2
    assert salvage_refs(lab) == []
    assert not (lab.root / ".git/refs/swarm").exists()
    assert lab.fingerprint() == before


def test_a_drop_takes_every_entry_of_a_name_and_restore_brings_one_back(lab: Lab, swarm: Swarm) -> None:
    for _ in range(2):
        swarm.create("feature-x", ["developer", "reviewer"])
        work(lab)
        swarm.cleanup(["feature-x"], force=True)
    assert len(swarm.salvage()) == 4

    assert len(lab.person.salvage.drop(["feature-x/developer"])) == 2
    assert [entry.agent for entry in swarm.salvage()] == ["reviewer", "reviewer"]
    assert len(lab.person.salvage.drop(["feature-x"])) == 2
    assert swarm.salvage() == ()
    assert len(swarm.salvage(dropped=True)) == 4
    with pytest.raises(SalvageNotFound):
        lab.person.salvage.drop(["feature-x"])
    swarm.restore("feature-x/developer")
    assert (lab.tree("developer") / "notes.txt").read_text() == "not committed\n"


def test_what_was_dropped_is_deleted_when_its_time_is_over_or_at_once(lab: Lab, swarm: Swarm) -> None:
    def saved(session: str) -> None:
        swarm.create(session, ["developer"])
        work(lab, "developer", session)
        swarm.cleanup([session], force=True)

    saved("one")
    lab.person.salvage.drop(["one"])
    saved("two")
    assert len(salvage_refs(lab)) > 0
    assert [entry.session for entry in swarm.salvage(dropped=True)] == ["one"]
    record = lab.root / ".swarm/dropped.json"
    record.write_text(re.sub(r"\d{13}", str(time.time_ns() // 1_000_000 - 7 * 86_400_000), record.read_text()))
    saved("three")
    assert not any("/one/" in ref for ref in salvage_refs(lab))
    assert not record.exists()

    lab.person.salvage.drop(["two"])
    lab.person.salvage.drop(["two"], now=True)
    assert not any("/two/" in ref for ref in salvage_refs(lab))
    assert len(at_terminal(lambda: lab.open(cleanup__keep_dropped="0").salvage.drop(["three"]))) == 1
    assert salvage_refs(lab) == []
    assert not record.exists()


def test_a_damaged_note_of_what_was_dropped_deletes_nothing(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    swarm.cleanup(["feature-x"])
    lab.person.salvage.drop(everything=True)
    (lab.root / ".swarm/dropped.json").write_text("{")
    swarm.create("other", ["developer"])
    swarm.cleanup(["other"])

    assert [entry.session for entry in swarm.salvage()] == ["other", "feature-x"]


def test_dropping_by_age_spares_what_is_younger(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    swarm.cleanup(["feature-x"])
    assert lab.person.salvage.drop(older_than_ms=3_600_000) == ()
    assert len(lab.person.salvage.drop(older_than_ms=0)) == 1


def test_a_drop_names_what_it_means(lab: Lab, swarm: Swarm) -> None:
    with pytest.raises(UsageProblem):
        lab.person.salvage.drop()
    with pytest.raises(SalvageNotFound):
        lab.person.salvage.drop(["feature-x"])


# --- discard, keep, age -------------------------------------------------------------------------------


def test_discard_saves_nothing_and_says_so(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    work(lab)
    with pytest.raises(WorkAtRisk):
        lab.person.cleanup(["feature-x"], discard=True)  # it implies nothing about force
    (removed,) = lab.person.cleanup(["feature-x"], discard=True, force=True).removed
    assert removed.salvage == ""
    assert removed.saved_files == 0
    assert removed.discarded == ("notes.txt",)
    assert swarm.salvage() == ()
    assert salvage_refs(lab) == []
    assert not (lab.root / ".swarm/salvage").exists()
    assert not documents(swarm).branch_exists(BRANCH)


def test_what_is_only_staged_counts_as_saved(lab: Lab) -> None:
    lab.swarm.create("s", ["developer", "reviewer"])
    tree = lab.tree("developer", "s")
    (tree / "README").write_text("staged\n")
    (tree / "run.sh").chmod(0o644)
    lab.git("add", "--update", cwd=tree)
    lab.write({"README": "staged, and gone from the tree\n"}, lab.tree("reviewer", "s"))
    lab.git("add", "README", cwd=lab.tree("reviewer", "s"))
    (lab.tree("reviewer", "s") / "README").unlink()
    report = lab.swarm.cleanup(["s"], force=True)
    assert [removed.saved_files for removed in report.removed] == [2, 1]


def test_kept_branches_stay_and_are_not_counted(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    tip = work(lab)
    report = swarm.cleanup(["feature-x"], force=True, keep_branches=True)
    assert (report.worktrees_removed, report.branches_removed) == (1, 0)
    assert lab.git("rev-parse", BRANCH) == tip


def test_age_takes_old_sessions_and_skips_what_is_at_risk(lab: Lab, swarm: Swarm, monkeypatch: Any) -> None:
    for session in ("old", "risky", "unknown", "young"):
        swarm.create(session, ["developer"])
    lab.write({"notes.txt": "n"}, lab.tree("developer", "risky"))
    for session, hours in (("old", 30), ("risky", 30), ("unknown", None)):
        _age(swarm, session, hours)
    assert documents(swarm).cleanup_orphaned_worktrees() == 1
    assert [session.name for session in swarm.sessions()] == ["risky", "unknown", "young"]
    report = swarm.cleanup(older_than_ms=86_400_000)
    assert report.removed == ()
    assert {one.name: one.code for one in report.skipped} == {
        "risky/developer": "WORK_AT_RISK",
        "unknown": "",
        "young": "",
    }
    assert "unknown" in {one.name: one.reason for one in report.skipped}["unknown"]
    report = swarm.cleanup(older_than_ms=86_400_000, force=True)
    assert [one.session for one in report.removed] == ["risky"]


def _age(swarm: Swarm, session: str, hours: int | None) -> None:

    record = swarm.sessions.get(session)
    made = 0 if hours is None else time.time_ns() // 1_000_000 - hours * 3_600_000
    swarm._world.sessions.write(record._replace(created_ms=made))


def test_locked_and_living_worktrees_are_not_old(lab: Lab, swarm: Swarm) -> None:
    for session in ("locked", "alive"):
        swarm.create(session, ["developer"])
    swarm.worktrees.lock("developer", "locked", reason="mine")
    with process(cwd=lab.tree("developer", "alive")):
        assert documents(swarm).cleanup_orphaned_worktrees(max_age_ms=0) == 0
        assert len(swarm.cleanup(older_than_ms=0).skipped) == 2
    swarm.worktrees.unlock("developer", "locked")
    assert documents(swarm).cleanup_orphaned_worktrees(max_age_ms=0) == 2


# --- what changes while swarm looks -------------------------------------------------------------------


def with_progress(lab: Lab, act: Callable[[str], None]) -> Swarm:
    return Swarm.open(lab.root, environ=lab.env, flags={"worktrees.durable": False}, progress=act)


def test_work_done_after_it_was_saved_is_kept_too(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    work(lab)
    tree = lab.tree("developer")

    def write_late(text: str) -> None:
        if text.startswith("removing"):
            lab.write({"notes.txt": "newer\n", "late.txt": "late\n", "src/app.py": "changed\n"}, tree)
            lab.git("add", "late.txt", cwd=tree)

    with_progress(lab, write_late).cleanup(["feature-x"], force=True)
    assert not tree.exists()
    lab.git("gc", "--quiet", "--prune=now")
    swarm.restore("feature-x")
    assert lab.git("show", ":late.txt", cwd=tree) == "late"
    assert (tree / "notes.txt").read_text() == "newer\n"
    status = lab.git("status", "--porcelain", cwd=tree).splitlines()
    assert status == ["A  late.txt", " M src/app.py", "?? notes.txt"]


def test_a_commit_made_after_the_saving_keeps_its_branch(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    made: list[str] = []

    def commit_late(text: str) -> None:
        if text.startswith("removing"):
            lab.write({"late.txt": "late"}, tree)
            made.append(lab.commit("late", cwd=tree))

    report = with_progress(lab, commit_late).cleanup(["feature-x"], force=True)
    assert lab.git("rev-parse", BRANCH) == made[0]
    assert report.branches_removed == 0
    assert not tree.exists()


def test_what_took_the_place_of_a_tree_meanwhile_stays_and_the_rest_goes(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["researcher", "developer", "reviewer"])
    tree = lab.tree("developer")
    aside = lab.root.parent / "aside"

    def swap(text: str) -> None:
        if text == "removing feature-x/researcher":
            tree.rename(aside)
            tree.symlink_to(lab.root)

    before = file_digests(lab.root, skip={".git", ".swarm", ".worktrees"})
    with pytest.raises(CleanupFailed) as caught:
        with_progress(lab, swap).cleanup(["feature-x"], force=True)
    assert [one.name for one in caught.value.facts["failed"]] == ["feature-x/developer"]
    assert [one.agent for one in caught.value.facts["report"].removed] == ["researcher", "reviewer"]
    assert file_digests(lab.root, skip={".git", ".swarm", ".worktrees"}) == before
    assert documents(swarm).branch_exists(BRANCH)
    assert [agent.name for agent in swarm.sessions.get("feature-x").agents] == ["developer"]
    tree.unlink()
    aside.rename(tree)
    assert swarm.cleanup(["feature-x"]).worktrees_removed == 1


def gone_by_hand(lab: Lab) -> None:
    """What a user types who wants to be rid of an agent without swarm."""
    lab.git("worktree", "remove", "--force", str(lab.tree("developer")))
    lab.git("branch", "--quiet", "-D", BRANCH)


def test_where_nothing_is_left_nothing_is_saved_and_the_others_come_back(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer", "reviewer"])
    tip = work(lab, "reviewer")
    gone_by_hand(lab)

    removed = swarm.cleanup(["feature-x"], force=True).removed

    assert {one.agent: bool(one.salvage) for one in removed} == {"developer": False, "reviewer": True}
    assert removed[0].notes == ("its folder and its branch were already gone: there was nothing to save",)
    assert [agent.name for agent in swarm.restore("feature-x").agents] == ["reviewer"]
    assert lab.git("rev-parse", "HEAD", cwd=lab.tree("reviewer")) == tip


def test_what_was_saved_before_is_not_hidden_by_nothing(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    tip = work(lab)
    swarm.cleanup(["feature-x"], force=True)
    swarm.restore("feature-x")
    gone_by_hand(lab)
    swarm.cleanup(["feature-x"])

    swarm.restore("feature-x")

    assert lab.git("rev-parse", "HEAD", cwd=lab.tree("developer")) == tip


def test_an_entry_that_an_earlier_version_made_of_nothing_is_passed_over(
    lab: Lab, swarm: Swarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    swarm.create("feature-x", ["developer", "reviewer"])
    gone_by_hand(lab)
    monkeypatch.setattr(salvage, "is_nothing", lambda _target, _tip: False)
    swarm.cleanup(["feature-x"])
    assert len(swarm.salvage()) == 2

    assert [agent.name for agent in swarm.restore("feature-x").agents] == ["reviewer"]
    assert len(lab.person.salvage.drop(["feature-x/developer"])) == 1


# --- which, and from where ----------------------------------------------------------------------------


def test_swarm_branches_are_told_by_who_made_them_not_by_their_name(lab: Lab, swarm: Swarm) -> None:
    lab.git("branch", "swarm/mine")
    swarm.create("feature-x", ["developer", "reviewer"])
    tip = work(lab)
    swarm.cleanup(["feature-x"], force=True, keep_branches=True)
    swarm.create("other", ["developer"])
    assert documents(swarm).cleanup_swarm_branches() == 2
    assert documents(swarm).branch_exists("swarm/mine")
    assert documents(swarm).branch_exists("swarm/developer-other")
    assert not documents(swarm).branch_exists(BRANCH)
    saved = swarm.salvage.get("leftover/developer-feature-x")
    assert saved.branch_tip == tip
    report = swarm.restore("leftover/developer-feature-x")
    assert (report.agents, report.branches) == ((), (BRANCH,))
    assert lab.git("rev-parse", BRANCH) == tip
    assert [session.name for session in swarm.sessions()] == ["other"]


@pytest.mark.parametrize("name", ["leftover", "LeftOver"])
def test_no_session_is_called_as_saved_branches_are(lab: Lab, swarm: Swarm, name: str) -> None:
    for make in (swarm.create, swarm.start):
        with pytest.raises(ReservedName, match="the word is reserved"):
            make(name, ["developer"])
    with pytest.raises(ReservedName):
        swarm.start_workflow("research", "a goal", session=name)
    assert swarm.sessions() == ()


def test_leftover_branches_with_long_names_are_saved_too(lab: Lab, swarm: Swarm) -> None:
    long = "s" * 40
    swarm.create(long, ["a=developer", "b=developer"])
    tips = {agent: lab.commit(agent, cwd=lab.tree(agent, long)) for agent in "ab"}
    swarm.cleanup([long], keep_branches=True)
    assert documents(swarm).cleanup_swarm_branches() == 2
    for entry in swarm.salvage("leftover"):
        swarm.restore(entry.name)
    assert {agent: lab.git("rev-parse", f"swarm/{agent}-{long}") for agent in "ab"} == tips


def test_cleanup_of_everything_takes_leftover_branches_along(lab: Lab, swarm: Swarm) -> None:
    before = lab.fingerprint()
    swarm.create("feature-x", ["developer"])
    swarm.cleanup(["feature-x"], keep_branches=True)
    swarm.create("other", ["developer"])
    report = swarm.cleanup(everything=True)
    assert report.branches == (BRANCH,)
    assert (report.worktrees_removed, report.branches_removed) == (1, 2)
    assert lab.fingerprint() == before


def test_names_are_found_without_case(lab: Lab, swarm: Swarm) -> None:
    swarm.create("Feature-X", ["Developer"])
    assert swarm.sessions.get("feature-x").name == "Feature-X"
    assert swarm.worktrees.show("DEVELOPER", "FEATURE-X").info.agent == "Developer"
    assert swarm.worktrees.remove("developer", "feature-X").worktrees_removed == 1
    assert swarm.salvage("FEATURE-X")[0].agent == "Developer"


def test_cleanup_from_inside_the_worktree_that_goes(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    inside = lab.open(lab.tree("developer") / "src", worktrees__durable=False)
    assert inside.root == lab.root
    assert inside.cleanup(["feature-x"]).worktrees_removed == 1
    assert not lab.tree("developer").exists()


def test_cleanup_by_a_process_that_stands_in_the_tree(lab: Lab, swarm: Swarm, monkeypatch: Any) -> None:
    swarm.create("feature-x", ["developer"])
    monkeypatch.chdir(lab.tree("developer") / "src")
    with pytest.raises(WorkAtRisk):
        swarm.cleanup(["feature-x"])
    assert swarm.cleanup(["feature-x"], force=True).worktrees_removed == 1
    assert not lab.tree("developer").exists()


def test_two_sessions_with_the_same_role(lab: Lab, swarm: Swarm) -> None:
    swarm.create("one", ["developer"])
    swarm.create("two", ["developer"])
    for call in (
        swarm.worktrees.show,
        swarm.worktrees.remove,
        swarm.worktrees.lock,
        documents(swarm).get_worktree_info,
        documents(swarm).worktree_exists,
    ):
        with pytest.raises(Ambiguous) as caught:
            call("developer")
        assert "developer@one" in caught.value.message
        assert "developer@two" in caught.value.message
    assert swarm.worktrees.remove("developer", "one").worktrees_removed == 1
    assert swarm.worktrees.show("developer").info.session == "two"


def test_what_is_not_there_is_said_and_nothing_is_removed(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    with pytest.raises(SessionNotFound):
        swarm.cleanup(["feature-x", "other"])
    assert lab.tree("developer").is_dir()


def test_prune_forgets_only_what_is_gone_and_keeps_branches(lab: Lab, swarm: Swarm) -> None:
    import shutil

    swarm.create("feature-x", ["developer", "reviewer"])
    tip = work(lab)
    shutil.rmtree(lab.tree("developer"))
    report = swarm.worktrees.prune()
    assert [one.agent for one in report.removed] == ["developer"]
    assert lab.git("rev-parse", BRANCH) == tip
    assert lab.tree("reviewer").is_dir()
    assert [agent.name for agent in swarm.sessions.get("feature-x").agents] == ["reviewer"]


def test_files_of_the_user_in_the_folder_of_worktrees_stay_and_are_named(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    mine = lab.root / ".worktrees" / "mine"
    mine.mkdir()
    (mine / "file").write_text("x")
    report = swarm.cleanup(everything=True)
    assert (mine / "file").read_text() == "x"
    assert [str(mine) in warning for warning in report.warnings] == [True]


def test_a_worktree_of_the_user_on_the_agents_branch_keeps_the_branch(lab: Lab, swarm: Swarm, tmp_path: Path) -> None:
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    lab.git("worktree", "add", "--quiet", str(tmp_path / "review"), BRANCH)
    report = swarm.cleanup(["feature-x"])
    assert report.branches_removed == 0
    assert lab.git("status", "--porcelain", "--branch", cwd=tmp_path / "review").startswith(f"## {BRANCH}")


def test_a_dry_run_of_cleanup_changes_nothing(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    work(lab)
    before = (lab.fingerprint(), file_digests(lab.root / ".worktrees"), swarm.operations())
    report = swarm.cleanup(["feature-x"], force=True, dry_run=True)
    assert report.dry_run
    assert [one.agent for one in report.removed] == ["developer"]
    with pytest.raises(WorkAtRisk):
        swarm.cleanup(["feature-x"], dry_run=True)
    assert (lab.fingerprint(), file_digests(lab.root / ".worktrees"), swarm.operations()) == before


def test_an_exclude_file_that_was_not_there_is_gone_again(lab: Lab) -> None:
    exclude = lab.root / ".git" / "info" / "exclude"
    exclude.unlink(missing_ok=True)
    before = lab.fingerprint()

    lab.swarm.create("feature-x", ["developer"])
    assert exclude.is_file()
    lab.swarm.cleanup(["feature-x"])

    assert not exclude.exists()
    assert lab.fingerprint() == before


@pytest.mark.parametrize("way", ["made by the agent", "untracked", "given by the setup"])
def test_precious_files_are_kept_outside_of_all_refs(lab: Lab, way: str) -> None:
    """`git push --mirror` sends every ref, also with `transfer.hideRefs`."""
    secret = "TOKEN=4711-of-the-user\n"
    lab.write(
        {".env": secret if way == "given by the setup" else "", ".gitignore": "" if way == "untracked" else ".env\n"}
    )
    lab.git("add", ".gitignore")
    lab.git("commit", "--quiet", "-m", "ignore")
    swarm = lab.open(setup__copy=[".env"] if way == "given by the setup" else [])
    tree = swarm.create("fx", "developer").paths()["developer"]
    lab.write({".env": secret}, tree)
    mirror = lab.root.parent / "mirror.git"
    lab.git("init", "--quiet", "--bare", str(mirror))

    swarm.cleanup(["fx"], force=True)
    lab.git("config", "transfer.hideRefs", "refs/swarm")
    lab.git("push", "--quiet", "--mirror", str(mirror))

    assert "refs/swarm/salvage/" in lab.git("for-each-ref", cwd=mirror)
    for repository in (lab.root, mirror):
        listed = lab.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)", cwd=repository)
        blobs = [line.split()[0] for line in listed.splitlines() if line.endswith("blob")]
        assert not [blob for blob in blobs if "4711" in lab.git("cat-file", "blob", blob, cwd=repository)]
    kept = [path for path in (lab.root / ".swarm" / "salvage").rglob(".env") if path.is_file()]
    assert [path.read_text() for path in kept] == [secret]
    swarm.restore("fx")
    assert (tree / ".env").read_text() == secret


@pytest.mark.parametrize(
    "name", [".ENV.production", "id_ed25519", ".netrc", ".npmrc", "prod.tfvars", "Credentials.json"]
)
def test_names_of_secrets_are_known_in_any_case(lab: Lab, name: str) -> None:
    tree = lab.swarm.create("fx", "developer").paths()["developer"]
    (lab.root / ".git" / "info" / "exclude").write_text(f"{name}\n")
    lab.write({name: "TOKEN=4711\n"}, tree)

    with pytest.raises(WorkAtRisk):
        lab.swarm.cleanup(["fx"])
    lab.swarm.cleanup(["fx"], force=True)

    assert [path.name for path in (lab.root / ".swarm" / "salvage").rglob(f"files/{name}")] == [name]
