"""Whatever an agent left in its worktree: refused, saved, removed, brought back, byte for byte."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.git.changes import Checkout
from swarm.kit.errors import SwarmError
from swarm.roles import find
from swarm.sessions.errors import CleanupFailed
from swarm.testing.lab import Lab, file_digests
from swarm.worktrees.errors import WorkAtRisk
from swarm.worktrees.reports import RiskKind
from tests.support.library import documents
from tests.support.work import BRANCH, KINDS, Kind, commits_of, kept_commits, process, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm import Swarm

pytestmark = pytest.mark.integration

SESSION = "feature-x"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_work_is_refused_saved_removed_and_brought_back(lab: Lab, kind: Kind) -> None:
    if kind.prepare is not None:
        kind.prepare(lab)
    clean = lab.fingerprint()
    swarm = lab.open(worktrees__durable=False, **kind.flags)
    swarm.create(SESSION, ["developer"])
    tree = lab.tree("developer")
    kind.make(lab, tree)
    before = state_of(lab, tree)
    if kind.damage is not None:
        kind.damage(tree)
        before["files"] = file_digests(tree, skip={".git"})

    _assert_seen_alike(lab, tree)
    _plain_cleanup(lab, swarm, kind, tree)
    known = commits_of(lab)
    users = lab.fingerprint()

    with no_hooks(lab):
        report = swarm.cleanup([SESSION], force=bool(kind.risks)).removed[0]
    assert set(kind.lost) == {name.rstrip("/") for name in report.dropped} | _unsaved(report.notes)
    _assert_gone(lab, tree, clean, users)
    assert known <= kept_commits(lab)
    lab.git("gc", "--quiet", "--prune=now")

    with no_hooks(lab):
        swarm.restore(SESSION)
    _assert_same(lab, tree, kind, before)
    lab.git("fsck", "--strict", "--no-dangling")
    if kind.after is not None:
        kind.after(lab, tree)

    swarm.cleanup([SESSION], force=True)
    assert not tree.exists()
    assert len(swarm.salvage(SESSION)) == 2


def _assert_seen_alike(lab: Lab, tree: Path) -> None:
    """Looked at with others, by as few gits as will do, a worktree is what it is when git is asked everything.

    But a file that is shown to be the very blob is not one that may differ from it.
    """
    trees, admin = lab.swarm._world.trees, lab.root / ".git/worktrees" / tree.name
    (found,) = trees.look_all([Checkout(tree, admin)], [frozenset()])
    if isinstance(found, SwarmError):
        with pytest.raises(type(found)):
            trees.look(tree, admin)
    else:
        asked = trees.look(tree, admin)
        assert set(found.rewritten) <= set(asked.rewritten)
        assert found == replace(asked, rewritten=found.rewritten)


@contextlib.contextmanager
def no_hooks(lab: Lab) -> Iterator[None]:
    """No hook of the repository runs in this block."""
    trace = lab.root.parent / "hook ran"
    trace.unlink(missing_ok=True)
    yield
    assert not trace.exists()


def _plain_cleanup(lab: Lab, swarm: Swarm, kind: Kind, tree: Path) -> None:
    admin = lab.root / ".git/worktrees" / tree.name
    untouched = (lab.fingerprint(), _contents(tree), _contents(admin), swarm.sessions())
    if not kind.risks:
        assert len(swarm.cleanup([SESSION], dry_run=True).removed) == 1
    else:
        with pytest.raises(WorkAtRisk) as caught:
            swarm.cleanup([SESSION])
        (agent,) = caught.value.facts["agents"]
        assert (agent.session, agent.agent, agent.path) == (SESSION, "developer", tree)
        assert {risk.kind for risk in agent.risks} == kind.risks
    assert (lab.fingerprint(), _contents(tree), _contents(admin), swarm.sessions()) == untouched
    assert swarm.salvage() == ()
    assert swarm.operations.unfinished() == ()


def _contents(folder: Path) -> dict[str, str]:
    return file_digests(folder)


def _unsaved(notes: tuple[str, ...]) -> set[str]:
    prefix = "could not be saved: "
    return {name for note in notes if note.startswith(prefix) for name in note.removeprefix(prefix).split(", ")}


def _assert_gone(lab: Lab, tree: Path, clean: dict[str, Any], users: dict[str, Any]) -> None:
    assert not tree.exists()
    assert not (lab.root / ".git/worktrees" / tree.name).exists()
    assert not documents(lab.swarm).branch_exists(BRANCH)
    now = lab.fingerprint()
    for part in ("head", "index", "stash", "files", "status"):
        assert now[part] == users[part], part
    assert now["exclude"] == clean["exclude"]
    assert now["locks"] == []
    theirs = [line for line in users["refs"].splitlines() if f"refs/heads/{BRANCH} " not in line]
    assert now["refs"].splitlines() == theirs
    assert not (lab.root / ".worktrees").exists()


def _assert_same(lab: Lab, tree: Path, kind: Kind, before: dict[str, Any]) -> None:
    now = state_of(lab, tree)
    now["files"] |= {name: text for name, text in before["files"].items() if _below(name, kind.lost)}
    lost = [f"! {name}" for name in before["files"] if _below(name, kind.lost)]
    lost += [f"? {name}" for name in before["files"] if _below(name, kind.lost)]
    before = {**before, "status": [line for line in before["status"] if line not in lost]}
    for part, value in before.items():
        if part in kind.unlike:
            continue
        assert now[part] == value, part


def _below(name: str, tops: tuple[str, ...]) -> bool:
    return any(name == top or name.startswith(top + "/") for top in tops)


# --- processes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["working directory", "open file"])
def test_a_living_process_protects_its_tree(lab: Lab, how: str) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create(SESSION, ["developer", "reviewer"])
    tree = lab.tree("developer")
    where = {"cwd": tree / "src"} if how == "working directory" else {"opened": tree / "README"}
    with process(**where) as child:
        with pytest.raises(WorkAtRisk) as caught:
            swarm.cleanup([SESSION])
        (agent,) = caught.value.facts["agents"]
        assert agent.agent == "developer"
        assert [risk.kind for risk in agent.risks] == [RiskKind.PROCESS]
        assert f"(pid {child.pid})" in agent.risks[0].items[0]
        assert tree.is_dir()
        assert lab.tree("reviewer").is_dir()  # all or none: also the one without a risk
        assert swarm.cleanup([SESSION], force=True).worktrees_removed == 2
        assert child.poll() is None  # swarm ends no process
    swarm.restore(SESSION)
    assert tree.is_dir()


# --- the worktree is not what it was ------------------------------------------------------------------


def test_a_tree_deleted_by_hand_comes_back_from_what_git_still_knows(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create(SESSION, ["developer"])
    tree = lab.tree("developer")
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    lab.write({"one.txt": "committed\n"}, tree)
    tip = lab.commit("detached", cwd=tree)
    lab.write({"two.txt": "staged\n"}, tree)
    lab.git("add", "two.txt", cwd=tree)
    known = commits_of(lab)
    shutil.rmtree(tree)

    (info,) = swarm.worktrees()
    assert info.missing
    (removed,) = swarm.cleanup([SESSION]).removed
    assert removed.notes == ("its folder was already gone",)
    assert not (lab.root / ".git/worktrees" / tree.name).exists()
    assert known <= kept_commits(lab)
    lab.git("gc", "--quiet", "--prune=now")

    swarm.restore(SESSION)
    assert lab.git("rev-parse", "HEAD", cwd=tree) == tip
    assert (tree / "one.txt").read_text() == "committed\n"
    assert (tree / "two.txt").read_text() == "staged\n"
    assert lab.git("status", "--porcelain", cwd=tree) == "A  two.txt"


@pytest.mark.parametrize("force", [False, True])
def test_a_link_to_the_main_checkout_is_never_followed(lab: Lab, force: bool) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create(SESSION, ["developer", "reviewer"])
    tree = lab.tree("developer")
    tree.rename(lab.root.parent / "aside")
    tree.symlink_to(lab.root)
    before = lab.fingerprint()

    report = swarm.cleanup([SESSION], force=force)
    assert [(one.name, one.code) for one in report.skipped] == [("feature-x/developer", "IDENTITY")]
    assert [one.agent for one in report.removed] == ["reviewer"]
    with pytest.raises(CleanupFailed, match="symbolic link"):
        swarm.cleanup([SESSION], force=force)
    assert tree.is_symlink()
    after = lab.fingerprint()
    for part in ("head", "index", "files", "status", "config"):
        assert after[part] == before[part]
    assert [agent.name for agent in swarm.sessions.get(SESSION).agents] == ["developer"]

    tree.unlink()  # the way out
    assert swarm.cleanup([SESSION]).worktrees_removed == 1
    assert swarm.sessions() == ()


@pytest.mark.parametrize("force", [False, True])
def test_a_tree_that_became_a_repository_of_its_own_stays(lab: Lab, force: bool) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create(SESSION, ["developer"])
    tree = lab.tree("developer")
    (tree / ".git").unlink()
    lab.git("init", "--quiet", cwd=tree)
    lab.commit("mine", cwd=tree)
    before = file_digests(tree)
    with pytest.raises(CleanupFailed, match="repository of its own"):
        swarm.cleanup([SESSION], force=force)
    assert file_digests(tree) == before


def test_a_moved_worktree_is_refused_and_stays_where_it_is(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create(SESSION, ["developer"])
    elsewhere = lab.root.parent / "elsewhere"
    lab.git("worktree", "move", str(lab.tree("developer")), str(elsewhere))
    lab.write({"new.txt": "new"}, elsewhere)
    before = file_digests(elsewhere)

    with pytest.raises(WorkAtRisk) as caught:
        swarm.cleanup([SESSION])
    (risk,) = caught.value.facts["agents"][0].risks
    assert (risk.kind, risk.items) == (RiskKind.IDENTITY, (str(elsewhere),))
    report = swarm.cleanup([SESSION], force=True)
    assert report.branches_removed == 0
    assert file_digests(elsewhere) == before
    assert "?? new.txt" in lab.git("status", "--porcelain", cwd=elsewhere).splitlines()
    assert documents(swarm).branch_exists(BRANCH)


def test_a_folder_that_git_has_forgotten_is_kept_whole(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create(SESSION, ["developer"])
    tree = lab.tree("developer")
    lab.write({"new.txt": "new", "README": "changed"}, tree)
    (tree / "run.sh").chmod(0o700)
    (tree / "link").symlink_to("README")
    (tree / ".git").unlink()
    lab.git("worktree", "prune", "--expire=now")
    before = file_digests(tree)

    with pytest.raises(WorkAtRisk) as caught:
        swarm.cleanup([SESSION])
    assert [risk.kind for risk in caught.value.facts["agents"][0].risks] == [RiskKind.IDENTITY]
    swarm.cleanup([SESSION], force=True)
    assert not tree.exists()
    swarm.restore(SESSION)
    assert file_digests(tree, skip={".git"}) == before
    assert lab.git("status", "--porcelain", cwd=tree).splitlines() == [" M README", "?? link", "?? new.txt"]


def test_a_file_at_the_place_of_the_tree_is_kept(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False)
    swarm.create(SESSION, ["developer"])
    tree = lab.tree("developer")
    tree.rename(lab.root.parent / "aside")
    tree.write_text("a file\n")
    with pytest.raises(WorkAtRisk):
        swarm.cleanup([SESSION])
    assert tree.read_text() == "a file\n"
    swarm.cleanup([SESSION], force=True)
    assert not tree.exists()
    (late,) = (lab.root / ".swarm/salvage").rglob("late")
    assert late.read_text() == "a file\n"
    assert [entry.agent for entry in swarm.salvage()] == ["developer"]


# --- what may not be read -----------------------------------------------------------------------------


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    """Be nobody in this block."""
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def open_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that every user may write to; pytest's own are closed to others, and this checkout may be, too."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    # What is imported on first use must be there already: the interpreter may be out of nobody's reach.
    rehearsal = Lab(tmp_path.resolve()).open(worktrees__durable=False)
    rehearsal.create(SESSION, ["developer"])
    rehearsal.cleanup([SESSION])
    rehearsal.restore(SESSION)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o777)
        shipped = shutil.copytree(find.builtin_roles_dir(), Path(name, "shipped"))
        monkeypatch.setattr(find, "builtin_roles_dir", lambda: shipped)
        yield Path(name)


def test_what_may_not_be_read_is_moved_and_comes_back(open_folder: Path) -> None:
    with another_user():
        lab = Lab(open_folder)
        swarm = lab.open(worktrees__durable=False)
        swarm.create(SESSION, ["developer"])
        tree = lab.tree("developer")
        lab.write({"closed.txt": "1", "shut/inner.txt": "2", "shut/deep/x": "3", "README": "changed"}, tree)
        (tree / "shut/inner.txt").chmod(0o600)
        (tree / "shut/deep").chmod(0o500)
        before = file_digests(tree, skip={".git"})
        closed = ("closed.txt", "README", "shut")
        bits = {name: (tree / name).stat().st_mode for name in closed}
        for name in closed:
            (tree / name).chmod(0)
        with pytest.raises(WorkAtRisk) as caught:
            swarm.cleanup([SESSION])
        risks = {risk.kind: risk.items for risk in caught.value.facts["agents"][0].risks}
        assert set(risks[RiskKind.UNREADABLE]) == set(closed)

        swarm.cleanup([SESSION], force=True)
        assert not tree.exists()
        swarm.restore(SESSION)
        assert [(tree / name).stat().st_mode & 0o777 for name in closed] == [0, 0, 0]
        for name in closed:
            (tree / name).chmod(bits[name])
        assert file_digests(tree, skip={".git"}) == before


def test_files_of_another_user_do_not_block_swarm(open_folder: Path) -> None:
    with another_user():
        lab = Lab(open_folder)
        swarm = lab.open(worktrees__durable=False)
        swarm.create(SESSION, ["developer"])
    foreign = lab.tree("developer") / "made by a container"
    foreign.mkdir()
    (foreign / "file").write_text("root's")
    with another_user():
        report = swarm.cleanup([SESSION], force=True)
        assert report.worktrees_removed == 1
        assert any("could not be deleted" in warning for warning in report.warnings)
        assert swarm.operations.unfinished() == ()
        swarm.create("next", ["developer"])
        assert [entry.session for entry in swarm.salvage()] == [SESSION]
