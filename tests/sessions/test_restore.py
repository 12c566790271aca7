"""Bring back: whole sessions, one agent, an older entry; and what is in the way changes nothing."""

from __future__ import annotations

import os
import shutil
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

from swarm.kit.errors import Refused, SwarmError, UsageProblem
from swarm.project.errors import InvalidName
from swarm.testing.lab import file_digests
from swarm.worktrees.errors import SalvageNotFound
from tests.support.library import documents
from tests.support.work import kept_commits

if TYPE_CHECKING:
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

BRANCH = "swarm/developer-feature-x"


@pytest.fixture
def swarm(lab: Lab) -> Swarm:
    return lab.open(worktrees__durable=False)


def removed(lab: Lab, swarm: Swarm, text: str = "mine\n", roles: Any = ("researcher", "developer")) -> str:
    """Make a session with a commit and a change in it, clean it up, return the tip of the developer's branch."""
    swarm.create("feature-x", list(roles))
    lab.write({"work.txt": text}, lab.tree("developer"))
    tip = lab.commit(f"work {text}", cwd=lab.tree("developer"))
    lab.write({"notes.txt": text}, lab.tree("developer"))
    swarm.cleanup(["feature-x"], force=True)
    return tip


def snapshot(lab: Lab, swarm: Swarm) -> Any:
    return lab.fingerprint(), swarm.sessions(), swarm.salvage(), file_digests(lab.root / ".worktrees")


def test_a_session_comes_back_with_its_record(lab: Lab, swarm: Swarm) -> None:
    swarm.create("Feature-X", ["researcher", "developer:2", "lead=architect"], base="HEAD")
    before = swarm.sessions.get("Feature-X")
    swarm.cleanup(["feature-x"])
    report = swarm.restore("FEATURE-x")
    assert report.session == "Feature-X"
    after = swarm.sessions.get("Feature-X")
    assert after.agents == before.agents
    assert (after.name, after.created_ms, after.base, after.base_ref) == (
        *(before.name, before.created_ms),
        *(before.base, before.base_ref),
    )
    assert after.generation == before.generation
    assert [info.missing for info in swarm.worktrees("Feature-X")] == [False] * 4


def test_the_entry_stays_after_a_restore(lab: Lab, swarm: Swarm) -> None:
    removed(lab, swarm)
    entries = swarm.salvage()
    swarm.restore("feature-x")
    assert swarm.salvage() == entries


def test_a_dry_run_tells_and_changes_nothing(lab: Lab, swarm: Swarm) -> None:
    removed(lab, swarm)
    before = snapshot(lab, swarm)
    report = swarm.restore("feature-x", dry_run=True)
    assert [agent.name for agent in report.agents] == ["researcher", "developer"]
    assert report.dry_run
    assert snapshot(lab, swarm) == before


def test_one_agent_of_a_set_comes_back_alone_and_the_other_later(lab: Lab, swarm: Swarm) -> None:
    tip = removed(lab, swarm)
    swarm.restore("feature-x/developer")
    assert [agent.name for agent in swarm.sessions.get("feature-x").agents] == ["developer"]
    assert not lab.tree("researcher").exists()
    assert lab.git("rev-parse", BRANCH) == tip
    swarm.restore("feature-x/researcher")
    assert [agent.name for agent in swarm.sessions.get("feature-x").agents] == ["developer", "researcher"]


def test_one_agent_comes_back_into_a_session_that_goes_on(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["researcher", "developer"])
    lab.write({"notes.txt": "n"}, lab.tree("developer"))
    swarm.worktrees.remove("developer", force=True)
    assert [agent.name for agent in swarm.sessions.get("feature-x").agents] == ["researcher"]
    swarm.restore("feature-x/Developer")
    assert [agent.name for agent in swarm.sessions.get("feature-x").agents] == ["researcher", "developer"]
    assert (lab.tree("developer") / "notes.txt").read_text() == "n"


def test_an_older_entry_is_restored_by_its_id(lab: Lab, swarm: Swarm) -> None:
    first = removed(lab, swarm, "first\n")
    second = removed(lab, swarm, "second\n")
    newest, oldest = (entry for entry in swarm.salvage("feature-x") if entry.agent == "developer")
    assert (oldest.head, newest.head) == (first, second)
    swarm.restore(oldest.name)
    assert lab.git("rev-parse", BRANCH) == first
    assert (lab.tree("developer") / "notes.txt").read_text() == "first\n"
    swarm.cleanup(["feature-x"], force=True)
    swarm.restore("feature-x/developer@" + newest.id)
    assert (lab.tree("developer") / "notes.txt").read_text() == "second\n"


def test_without_an_id_the_last_generation_of_a_name_is_meant(lab: Lab, swarm: Swarm) -> None:
    removed(lab, swarm, "first\n", roles=["developer", "reviewer"])
    removed(lab, swarm, "second\n", roles=["developer"])
    report = swarm.restore("feature-x")
    assert [agent.name for agent in report.agents] == ["developer"]
    assert (lab.tree("developer") / "notes.txt").read_text() == "second\n"


def test_cleanup_and_restore_go_round_and_round(lab: Lab, swarm: Swarm) -> None:
    removed(lab, swarm)
    for turn in range(3):
        swarm.restore("feature-x")
        assert (lab.tree("developer") / "notes.txt").read_text() == "mine\n"
        swarm.cleanup(["feature-x"], force=True)
        assert len(swarm.salvage("feature-x")) == 2 * (turn + 2)


def test_it_survives_a_thorough_gc(lab: Lab, swarm: Swarm) -> None:
    tip = removed(lab, swarm)
    lab.git("reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    lab.git("gc", "--quiet", "--prune=now")
    assert tip in kept_commits(lab)
    swarm.restore("feature-x")
    assert lab.git("rev-parse", BRANCH) == tip
    assert (lab.tree("developer") / "notes.txt").read_text() == "mine\n"
    lab.git("fsck", "--strict")


def test_it_survives_packed_refs(lab: Lab, swarm: Swarm) -> None:
    tip = removed(lab, swarm)
    lab.git("pack-refs", "--all", "--prune")
    swarm.restore("feature-x")
    assert lab.git("rev-parse", BRANCH) == tip


def test_branches_that_were_kept_are_used_again(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    lab.write({"notes.txt": "n"}, lab.tree("developer"))
    report = swarm.cleanup(["feature-x"], force=True, keep_branches=True)
    assert report.branches_removed == 0
    assert documents(swarm).branch_exists(BRANCH)
    swarm.restore("feature-x")
    assert lab.git("symbolic-ref", "HEAD", cwd=lab.tree("developer")) == f"refs/heads/{BRANCH}"
    assert (lab.tree("developer") / "notes.txt").read_text() == "n"


def test_it_works_from_a_folder_below_and_from_another_worktree(lab: Lab, swarm: Swarm) -> None:
    removed(lab, swarm)
    swarm.create("other", ["reviewer"])
    lab.open(lab.tree("reviewer", "other") / "src").restore("feature-x/developer")
    lab.open(lab.root / "src").restore("feature-x/researcher")
    assert lab.tree("developer").is_dir()
    assert lab.tree("researcher").is_dir()


# --- in the way ---------------------------------------------------------------------------------------


def _tree_there(lab: Lab, swarm: Swarm) -> None:
    lab.write({".worktrees/developer-feature-x/mine.txt": "mine"})


def _branch_elsewhere(lab: Lab, swarm: Swarm) -> None:
    lab.git("branch", BRANCH, "HEAD")


def _branch_checked_out(lab: Lab, swarm: Swarm) -> None:
    lab.git("branch", BRANCH, swarm.salvage.get("feature-x/developer").branch_tip)
    lab.git("worktree", "add", "--quiet", str(lab.root.parent / "mine"), BRANCH)


def _session_again(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["researcher", "developer"])


def _registered(lab: Lab, swarm: Swarm) -> None:
    tree = lab.tree("developer")
    lab.git("worktree", "add", "--quiet", "--detach", str(tree))
    tree.rename(lab.root.parent / "moved by hand")


@pytest.mark.parametrize(
    ("obstacle", "code"),
    [
        (_tree_there, "WORKTREE_EXISTS"),
        (_branch_elsewhere, "BRANCH_EXISTS"),
        (_branch_checked_out, "RESTORE_CONFLICT"),
        (_registered, "WORKTREE_EXISTS"),
        (_session_again, "BRANCH_EXISTS"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_what_is_in_the_way_is_named_and_nothing_changes(lab: Lab, swarm: Swarm, obstacle: Any, code: str) -> None:
    removed(lab, swarm)
    obstacle(lab, swarm)
    before = snapshot(lab, swarm)
    with pytest.raises(SwarmError) as caught:
        swarm.restore("feature-x")
    problems = caught.value.problems if isinstance(caught.value, Refused) else (caught.value,)
    assert code in {problem.code for problem in problems}
    assert caught.value.exit_code == 3
    assert snapshot(lab, swarm) == before
    assert swarm.operations.unfinished() == ()


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ("nothing", SalvageNotFound),
        ("feature-x/reviewer", SalvageNotFound),
        ("feature-x/developer@2001", SalvageNotFound),
        ("feature-x@2001", SalvageNotFound),
        ("../x", InvalidName),
        ("", InvalidName),
        ("feature-x/", InvalidName),
        ("feature-x/developer@", UsageProblem),
    ],
)
def test_what_names_no_entry_is_refused(lab: Lab, swarm: Swarm, target: str, error: type[SwarmError]) -> None:
    removed(lab, swarm)
    with pytest.raises(error):
        swarm.restore(target)
    assert swarm.sessions() == ()


def test_a_restore_that_fails_half_way_leaves_nothing(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["researcher", "developer"])
    nested = lab.tree("developer") / "inner"
    lab.write({"a": "a"}, nested)
    lab.git("init", "--quiet", cwd=nested)
    lab.write({"notes.txt": "nowhere else\n"}, lab.tree("developer"))
    swarm.cleanup(["feature-x"], force=True)
    refs = lab.git("for-each-ref", "--format=%(refname)", "refs/swarm/salvage").splitlines()
    (work,) = (ref for ref in refs if "/developer/" in ref and ref.endswith("/work"))
    blob = lab.git("rev-parse", f"{work}:notes.txt")
    kept = lab.root / ".git" / "objects" / blob[:2] / blob[2:]
    kept.rename(lab.root.parent / "blob")
    before = lab.fingerprint()
    with pytest.raises(SwarmError, match="missing"):
        swarm.restore("feature-x")
    assert lab.fingerprint() == before
    assert swarm.sessions() == ()
    (lab.root.parent / "blob").rename(kept)
    swarm.restore("feature-x")
    assert (nested / "a").read_text() == "a"


def test_a_worktree_without_index_comes_back_as_git_saw_it(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    (lab.root / ".git" / "worktrees" / tree.name / "index").unlink()
    before = lab.git("status", "--porcelain", "-uall", cwd=tree), file_digests(tree)

    swarm.cleanup(["feature-x"], force=True)
    swarm.restore("feature-x")

    assert (lab.git("status", "--porcelain", "-uall", cwd=tree), file_digests(tree)) == before
    assert "D  README" in before[0]


def test_a_worktree_that_git_has_forgotten_comes_back_with_the_files_of_its_branch(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    lab.write({"work.txt": "mine\n"}, tree)
    lab.commit("work", cwd=tree)
    before = {name: said for name, said in file_digests(tree).items() if name not in (".git", "CLAUDE.local.md")}
    lab.git("worktree", "remove", "--force", str(tree))

    swarm.cleanup(["feature-x"])
    swarm.restore("feature-x")

    assert {name: said for name, said in file_digests(tree).items() if name != ".git"} == before
    assert lab.git("status", "--porcelain", cwd=tree) == ""


@pytest.fixture
def with_submodules(lab: Lab, swarm: Swarm) -> Path:
    """Give an agent's worktree with a submodule that holds another one; both have commits that no remote has."""
    for name, inner in (("inner", ""), ("outer", "inner"), ("", "outer")):
        place = lab.root.parent / name if name else lab.root
        place.mkdir(exist_ok=True)
        lab.git("init", "--quiet", cwd=place)
        if inner:
            lab.git("submodule", "--quiet", "add", str(lab.root.parent / inner), inner, cwd=place)
        lab.commit("made", cwd=place)
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    lab.git("submodule", "--quiet", "update", "--init", "--recursive", cwd=tree)
    for place in (tree / "outer" / "inner", tree / "outer"):
        lab.commit("of the agent", cwd=place)
    return tree


def submodules_of(lab: Lab, tree: Path) -> list[str]:
    places = (tree, tree / "outer", tree / "outer" / "inner")
    said = [lab.git(*words, cwd=place) for place in places for words in (("status", "-sb"), ("log", "--format=%H %s"))]
    return [lab.git("submodule", "status", "--recursive", cwd=tree), *said]


@pytest.mark.parametrize("whole", [False, True])
def test_submodules_work_also_when_the_admin_folder_has_another_name(
    lab: Lab, swarm: Swarm, with_submodules: Path, *, whole: bool
) -> None:
    tree = with_submodules
    before = submodules_of(lab, tree)
    if whole:
        (lab.root / ".git" / "worktrees" / tree.name / "index").write_text("trash\n")
    swarm.cleanup(["feature-x"], force=True)
    lab.git("worktree", "add", "--quiet", str(lab.root.parent / "elsewhere" / tree.name), "-b", "foo")

    swarm.restore("feature-x")

    assert submodules_of(lab, tree) == before
    pointer = (tree / "outer" / ".git").read_text()
    assert f"/{swarm.sessions.get('feature-x').agents[0].admin}/modules/outer" in pointer
    assert swarm.sessions.get("feature-x").agents[0].admin != tree.name


def test_commits_of_a_submodule_outlive_the_folder(lab: Lab, swarm: Swarm, with_submodules: Path) -> None:
    tree = with_submodules
    tip = lab.git("rev-parse", "HEAD", cwd=tree / "outer")
    shutil.rmtree(tree)

    swarm.cleanup(["feature-x"])
    swarm.restore("feature-x")

    lab.git("submodule", "--quiet", "update", "--init", cwd=tree)
    assert lab.git("cat-file", "-t", tip, cwd=tree / "outer") == "commit"


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("mode", [0o2770, 0o700, 0o755])
def test_the_worktree_itself_has_the_mode_it_had(lab: Lab, swarm: Swarm, mode: int, *, whole: bool) -> None:
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    tree.chmod(mode)
    if whole:
        (lab.root / ".git" / "worktrees" / tree.name / "index").write_text("trash\n")
    swarm.cleanup(["feature-x"], force=True)

    before = os.umask(0o077 if mode == 0o755 else 0o022)
    try:
        swarm.restore("feature-x")
    finally:
        os.umask(before)

    assert tree.stat().st_mode & 0o7777 == mode


def test_a_branch_without_a_commit_that_has_one_now_is_not_checked_out(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    lab.git("checkout", "--quiet", "--orphan", "pages", cwd=tree)
    swarm.cleanup(["feature-x"], force=True)
    lab.git("branch", "pages")

    (warning,) = swarm.restore("feature-x").warnings

    assert warning == "developer: branch pages is not free as it was, so HEAD is detached at its commit"


def test_pipes_come_back_and_sockets_are_named(lab: Lab, swarm: Swarm) -> None:
    swarm.create("feature-x", ["researcher", "developer"])
    nested = lab.tree("developer") / "inner"
    lab.git("init", "--quiet", str(nested))
    _make_special(nested, "pipe", "watch.ipc")
    spoiled = lab.tree("researcher")
    _make_special(spoiled, "pipe", "talk")
    admin = lab.root / ".git" / "worktrees" / spoiled.name
    _make_special(admin, "pipe", "fsmonitor--daemon.ipc")
    (admin / "index").write_text("trash\n")
    swarm.cleanup(["feature-x"], force=True)

    warnings = swarm.restore("feature-x").warnings

    assert [stat.S_IFMT((top / "pipe").stat().st_mode) for top in (nested, spoiled)] == [stat.S_IFIFO] * 2
    assert (nested / "pipe").stat().st_mode & 0o777 == 0o640
    assert set(warnings) == {
        "developer: inner/watch.ipc: cannot be brought back",
        "researcher: talk: cannot be brought back",
    }


def _make_special(folder: Path, pipe: str, name: str) -> None:
    """Make a pipe and a socket; a socket's path may not be long."""
    os.mkfifo(folder / pipe)
    (folder / pipe).chmod(0o640)
    here = os.open(folder, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"/proc/self/fd/{here}/{name}")
    finally:
        os.close(here)
