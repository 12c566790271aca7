"""The requirements on worktrees and roles, row by row; the number of the row is in the test's name."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm, SwarmError
from swarm import worktrees as wt
from swarm.git.errors import BranchExists, GitFailed, GitTooOld, NotARepo
from swarm.git.repository import parse_worktrees
from swarm.kit.errors import Refused, UsageProblem, WorktreeError
from swarm.project import names
from swarm.project.errors import InvalidName
from swarm.roles.errors import RoleNotFound
from swarm.sessions.errors import CleanupFailed
from swarm.testing.lab import Lab, file_digests
from swarm.worktrees.errors import WorkAtRisk, WorktreeExists, WorktreeNotFound
from tests.support.library import documents
from tests.support.work import process

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).parents[2]
SESSION = "feature-x"


@pytest.fixture(autouse=True)
def isolated(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain functions read the process's environment; give them the lab's. Stand in the lab too."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "SWARM_"))]:
        monkeypatch.delenv(name)
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SWARM_WORKTREES_DURABLE", "false")
    monkeypatch.chdir(lab.root)


@pytest.fixture
def swarm(lab: Lab) -> Swarm:
    return lab.open(worktrees__durable=False)


def bare(lab: Lab) -> Path:
    path = lab.root.parent / "bare.git"
    lab.git("clone", "--quiet", "--bare", str(lab.root), str(path))
    return path


def empty(lab: Lab) -> Path:
    path = lab.root.parent / "empty"
    path.mkdir()
    lab.git("init", "--quiet", cwd=path)
    return path


# --- the card -------------------------------------------------------------------------------------------


def test_card01_the_core_needs_these_five_packages() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    packages = {re.split(r"[<>=~ ]", line)[0].lower() for line in project["dependencies"]}
    assert packages == {"libtmux", "pyyaml", "gitpython", "filelock", "typer"}
    assert project["requires-python"] == ">=3.11"


def test_card02_the_top_level_holds_what_the_card_lists() -> None:
    for name in ("pyproject.toml", "swarm", "roles", "tests", "scripts", ".worktrees.gitignore", "README.md"):
        assert (PROJECT / name).exists(), name


def test_card03_there_is_a_console_script_and_the_roles_travel_along() -> None:
    config = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    assert config["project"]["scripts"] == {"swarm": "swarm.cli.main:main"}
    included = config["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included["roles"] == "swarm/builtin_roles"
    assert included[".worktrees.gitignore"] == "swarm/worktrees.gitignore"
    done = subprocess.run([sys.executable, "-m", "swarm", "--version"], capture_output=True, text=True, check=True)
    from swarm import __version__

    assert __version__ in done.stdout


def test_card07_the_library_does_the_whole_life_in_silence(
    lab: Lab, swarm: Swarm, capfd: pytest.CaptureFixture[str]
) -> None:
    swarm.create(SESSION, ["developer"])
    lab.write({"x": "x"}, lab.tree("developer"))
    swarm.worktrees.show("developer")
    with pytest.raises(WorkAtRisk):
        swarm.cleanup([SESSION])
    swarm.cleanup([SESSION], force=True)
    swarm.restore(SESSION)
    documents(swarm).full_cleanup()
    assert capfd.readouterr() == ("", "")


def test_card08_a_set_that_fails_leaves_what_was_there(lab: Lab, swarm: Swarm) -> None:
    lab.git("branch", "swarm/mine")
    swarm.create("other", ["developer"])
    before = (lab.fingerprint(), file_digests(lab.root / ".worktrees"), swarm.sessions())

    def fail(text: str) -> None:
        if text.startswith("worktree reviewer"):
            raise OSError(28, "No space left on device")

    doomed = Swarm.open(lab.root, environ=lab.env, progress=fail)
    with pytest.raises(SwarmError) as caught:
        doomed.create(SESSION, ["researcher", "developer", "reviewer", "architect"])
    assert caught.value.code == "NO_SPACE"
    assert (lab.fingerprint(), file_digests(lab.root / ".worktrees"), swarm.sessions()) == before
    assert swarm.operations.unfinished() == ()


def test_card10_git_sees_neither_folder_and_no_tracked_file_was_touched(lab: Lab, swarm: Swarm) -> None:
    template = (PROJECT / ".worktrees.gitignore").read_bytes()
    before = lab.fingerprint()
    swarm.create(SESSION, ["developer"])
    after = lab.fingerprint()
    assert after["status"] == before["status"] == ""
    assert after["files"] == before["files"]
    for folder in (".worktrees", ".swarm"):
        assert (lab.root / folder / ".gitignore").read_bytes() == template
        assert lab.git("check-ignore", "-q", folder + "/x") == ""


# --- the repository -------------------------------------------------------------------------------------


def test_wt01_the_constants_of_the_design_are_importable() -> None:
    assert (wt.WORKTREE_BASE, wt.ROLES_DIR, wt.BRANCH_PREFIX) == (".worktrees", "roles", "swarm")
    assert list(wt.VALID_ROLES) == ["researcher", "developer", "reviewer", "architect"]


def test_wt02_a_work_tree_is_a_repository_and_nothing_else_is(lab: Lab) -> None:
    assert wt.is_git_repository()
    assert wt.is_git_repository(repo=lab.root / "src")
    for place in (lab.root.parent, bare(lab), lab.root / ".git", lab.root / "no such folder"):
        assert not wt.is_git_repository(repo=place)


def test_wt03_the_root_is_the_main_checkout_also_from_a_worktree(lab: Lab, swarm: Swarm) -> None:
    tree = wt.create_worktree("developer", SESSION)
    assert wt.get_git_root(repo=tree / "src") == lab.root == wt.get_git_root()
    assert wt.get_git_root(repo=lab.root.parent) is None
    second = wt.create_worktree("reviewer", SESSION, repo=tree)
    assert second == lab.root / ".worktrees/reviewer-feature-x"


def test_wt04_an_empty_repository_has_no_commits(lab: Lab) -> None:
    assert wt.has_commits()
    assert not wt.has_commits(repo=empty(lab))
    assert not wt.has_commits(repo=lab.root.parent)


def test_wt05_the_current_branch(lab: Lab) -> None:
    assert wt.get_current_branch() == "main"
    lab.git("switch", "--quiet", "--detach")
    assert wt.get_current_branch() == "HEAD"
    assert wt.get_current_branch(repo=empty(lab)) is None
    assert wt.get_current_branch(repo=lab.root.parent) is None


def test_wt06_only_a_branch_is_a_branch(lab: Lab) -> None:
    lab.git("tag", "v1")
    assert wt.branch_exists("main")
    for other in ("v1", "HEAD", lab.git("rev-parse", "HEAD"), "refs/heads/main", "mai", "", "-x", "main^{commit}"):
        assert not wt.branch_exists(other)
    lab.git("branch", "main2/sub")
    assert not wt.branch_exists("main2")


def test_wt07_no_repository_and_no_commit_are_told_apart(lab: Lab) -> None:
    wt.validate_repository()
    with pytest.raises(NotARepo, match="not a git repository") as no_repository:
        wt.validate_repository(repo=lab.root.parent)
    with pytest.raises(NotARepo, match="no commit yet") as no_commit:
        wt.validate_repository(repo=empty(lab))
    assert no_repository.value.code == no_commit.value.code == "NOT_A_REPO"


# --- names ----------------------------------------------------------------------------------------------


def test_wt08_a_branch_is_prefix_role_and_session(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wt.generate_branch_name("developer", SESSION) == "swarm/developer-feature-x"
    lab.write({".swarm/config.yaml": "worktrees:\n  branchPrefix: team\n"})
    assert wt.generate_branch_name("developer", SESSION, repo=lab.root) == "team/developer-feature-x"
    assert wt.generate_branch_name("developer", SESSION, repo=lab.root / "src") == "team/developer-feature-x"
    monkeypatch.chdir("/")  # a name needs no repository
    assert wt.generate_branch_name("developer", SESSION) == "swarm/developer-feature-x"
    with pytest.raises(NotARepo):
        wt.generate_branch_name("developer", SESSION, repo="/")


@pytest.mark.parametrize("missing", [None, ""])
def test_wt09_a_session_is_required(missing: str | None) -> None:
    calls: list[Callable[[], object]] = [
        lambda: wt.generate_branch_name("developer", missing),
        lambda: wt.create_worktree("developer", missing),
        lambda: wt.create_worktrees(["developer"], missing),
    ]
    for call in calls:
        with pytest.raises(InvalidName, match=r"^session_id is required$"):
            call()


def test_wt10_session_names(lab: Lab) -> None:
    for good in ("1703849234567", "test-session-123", "feature-x", "A_b", "x" * 40):
        assert names.check_session(good) == good
    for bad in ("-x", "_x", "a b", "a/b", "..", "x" * 41, "é", "a\n", "all", ".", "a.lock"):
        with pytest.raises(UsageProblem):
            wt.create_worktree("developer", bad)
    assert wt.new_session_id().isdigit()
    assert not (lab.root / ".worktrees").exists()


def test_wt11_the_path_of_a_role(lab: Lab) -> None:
    assert wt.get_worktree_path("developer") == lab.root / ".worktrees" / "developer"
    assert wt.get_worktree_path("developer", SESSION) == lab.root / ".worktrees" / "developer-feature-x"
    made = wt.create_worktree("developer", SESSION)
    assert wt.get_worktree_path("developer") == made
    flat = lab.open(worktrees__layout="role", worktrees__durable=False)
    assert documents(flat).create_worktree("reviewer", "other") == lab.root / ".worktrees" / "reviewer"


# --- create ---------------------------------------------------------------------------------------------


def test_wt12_one_worktree_with_its_branch_and_instructions(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    assert path.is_absolute()
    assert path == lab.tree("developer")
    assert lab.git("symbolic-ref", "HEAD", cwd=path) == "refs/heads/swarm/developer-feature-x"
    assert lab.git("rev-parse", "HEAD", cwd=path) == lab.git("rev-parse", "main")
    instructions = PROJECT / "roles/developer/CLAUDE.md"
    assert (path / "CLAUDE.local.md").read_bytes() == instructions.read_bytes()
    assert lab.git("status", "--porcelain", cwd=path) == ""


def test_wt12_the_arguments_stand_in_the_order_of_the_design(lab: Lab, swarm: Swarm) -> None:
    assert not (wt.create_worktree("developer", SESSION, None, False) / "CLAUDE.local.md").exists()
    assert not (wt.create_worktrees(["reviewer"], SESSION, None, False)["reviewer"] / "CLAUDE.local.md").exists()
    assert (documents(swarm).create_worktree("architect", SESSION, None, True) / "CLAUDE.local.md").exists()


def test_wt13_the_base_is_the_current_branch_or_head(lab: Lab) -> None:
    lab.git("switch", "--quiet", "-c", "develop")
    on_develop = lab.commit("on develop")
    wt.create_worktree("developer", "one")
    assert lab.swarm.sessions.get("one").base_ref == "develop"
    lab.git("switch", "--quiet", "--detach", "main")
    detached = lab.commit("detached")
    wt.create_worktree("developer", "two")
    assert lab.swarm.sessions.get("two").base_ref == "HEAD"
    wt.create_worktree("developer", "three", "main")
    bases = [lab.git("rev-parse", f"swarm/developer-{session}") for session in ("one", "two", "three")]
    assert bases == [on_develop, detached, lab.git("rev-parse", "main")]


def test_wt14_an_unknown_role_is_refused(lab: Lab) -> None:
    before = lab.fingerprint()
    with pytest.raises(RoleNotFound) as caught:
        wt.create_worktree("plumber", SESSION)
    assert caught.value.code == "ROLE_NOT_FOUND"
    assert lab.fingerprint() == before


def test_wt15_a_path_that_is_taken_is_refused_and_named(lab: Lab) -> None:
    lab.write({".worktrees/developer-feature-x/mine": "mine"})
    with pytest.raises(WorktreeExists, match=re.escape(str(lab.tree("developer")))):
        wt.create_worktree("developer", SESSION)
    assert (lab.tree("developer") / "mine").read_text() == "mine"
    shutil.rmtree(lab.root / ".worktrees")
    first = wt.create_worktree("developer", SESSION)
    with pytest.raises(WorktreeExists) as caught:  # alone: that its branch is there goes without saying
        wt.create_worktree("developer", SESSION)
    assert (caught.value.code, caught.value.details) == ("WORKTREE_EXISTS", str(first))
    assert wt.create_worktree("developer", SESSION, reuse=True) == first


def test_wt15_of_several_problems_the_first_has_code_and_details(lab: Lab) -> None:
    lab.write({".worktrees/developer-feature-x/mine": "mine"})
    lab.git("branch", "swarm/developer-feature-x")
    with pytest.raises(Refused) as caught:
        wt.create_worktree("developer", SESSION)
    assert [problem.code for problem in caught.value.problems] == ["WORKTREE_EXISTS", "BRANCH_EXISTS"]
    assert (caught.value.code, caught.value.details) == ("WORKTREE_EXISTS", str(lab.tree("developer")))


def test_wt16_the_folder_of_worktrees_is_made(lab: Lab) -> None:
    assert not (lab.root / ".worktrees").exists()
    wt.create_worktree("developer", SESSION)
    assert (lab.root / ".worktrees").is_dir()


def test_wt17_without_instructions_nothing_is_made(lab: Lab) -> None:
    before = lab.fingerprint()
    with pytest.raises(RoleNotFound):
        wt.create_worktrees(["developer", "plumber"], SESSION)
    assert lab.fingerprint() == before
    assert not (lab.root / ".worktrees").exists()


def test_wt18_instructions_can_be_left_out(lab: Lab) -> None:
    before = lab.fingerprint()
    path = wt.create_worktree("developer", SESSION, copy_role_config=False)
    assert sorted(p.name for p in path.iterdir()) == [".git", ".gitignore", "README", "run.sh", "src"]
    assert lab.fingerprint()["exclude"] == before["exclude"]


def test_wt19_a_branch_that_is_taken_is_refused_and_stays(lab: Lab) -> None:
    lab.git("branch", "swarm/developer-feature-x", "HEAD")
    before = lab.fingerprint()
    with pytest.raises(BranchExists) as caught:
        wt.create_worktree("developer", SESSION)
    assert isinstance(caught.value, GitFailed)
    assert caught.value.code == "BRANCH_EXISTS"
    in_git = subprocess.run(["git", "branch", "swarm/developer-feature-x"], capture_output=True, text=True, check=False)
    assert caught.value.details == in_git.stderr.strip()
    assert lab.fingerprint() == before


def test_wt20_other_failures_of_git_carry_its_words(lab: Lab) -> None:
    lab.git("config", "filter.bad.smudge", "false")
    lab.git("config", "filter.bad.required", "true")
    lab.write({".gitattributes": "*.bad filter=bad\n", "x.bad": "x"})
    lab.git("config", "filter.bad.clean", "cat")
    lab.git("add", "--all")
    lab.git("commit", "--quiet", "-m", "bad")
    before = lab.fingerprint()
    with pytest.raises(GitFailed) as caught:
        wt.create_worktree("developer", SESSION)
    assert caught.value.code == "GIT_FAILED"
    assert "smudge filter bad failed" in (caught.value.details or "")
    assert lab.fingerprint() == before


def test_wt21_changes_of_the_main_checkout_stay_there(lab: Lab, swarm: Swarm) -> None:
    lab.write({"README": "changed\n", "new.txt": "new"})
    lab.git("add", "new.txt")
    report = swarm.create(SESSION, ["developer"])
    assert any("uncommitted changes" in warning for warning in report.warnings)
    assert lab.git("status", "--porcelain").splitlines() == [" M README", "A  new.txt"]
    tree = lab.tree("developer")
    assert (tree / "README").read_text() == "hello\n"
    assert not (tree / "new.txt").exists()


@pytest.mark.parametrize("name", ["two words", "größe ☃", "qu'ote\"s", "-dash"])
def test_wt22_any_path_will_do(tmp_path: Path, name: str) -> None:
    odd = Lab(tmp_path.resolve() / "odd", name)
    path = wt.create_worktree("developer", SESSION, repo=odd.root)
    odd.write({"new.txt": "new"}, path)
    assert [info.path for info in wt.list_worktrees(repo=odd.root)] == [path]
    assert wt.full_cleanup(repo=odd.root) == {"worktrees": 1, "branches": 1}


def test_wt23_an_error_has_message_code_details_and_hint(lab: Lab) -> None:
    with pytest.raises(WorktreeError) as caught:
        wt.create_worktree("plumber", SESSION)
    shape = caught.value.as_dict()
    assert shape["code"] == "ROLE_NOT_FOUND"
    assert "plumber" in shape["message"]
    assert shape["hint"]
    assert isinstance(shape["details"], dict)


#: For each function that takes something: its first arguments, and what is wrong with one of them.
_WRONG: dict[str, tuple[dict[str, object], dict[str, list[object]]]] = {
    "branch_exists": ({"branch": "main"}, {}),
    "copy_role_config": ({"role": "developer", "worktree_path": "x"}, {"worktree_path": ["no", "", "/etc/passwd"]}),
    "create_worktree": (
        {"role": "developer", "session_id": "two"},
        {
            "role": ["no", "a\0b", "", None, 3],
            "session_id": [None, "", "a\0b", 3],
            "base_branch": ["no", "a\0b", "-x", ""],
        },
    ),
    "create_worktrees": ({"roles": ["developer"], "session_id": "two"}, {"roles": [[], None, [None], ["a\0b"], 3]}),
    "get_role_config_path": ({"role": "developer"}, {"role": ["a\0b", None]}),
    "get_worktree_info": ({"role": "developer"}, {"role": ["", "a\0b", None], "session_id": ["", "a\0b", 3]}),
    "lock_worktree": ({"role": "developer"}, {"role": ["no", "a\0b"], "reason": ["a\0b", "a\nb", "x" * 70_000]}),
    "remove_worktree": ({"role": "developer"}, {"role": ["", None], "session_id": ["a\0b"]}),
    "update_role_config": ({"role": "developer"}, {"role": ["no"], "session_id": ["no"]}),
    "cleanup_orphaned_worktrees": ({}, {"max_age_ms": [-1]}),
    "full_cleanup": ({}, {}),
}


def test_wt23_one_class_catches_whatever_is_wrong_and_a_bare_repository_is_none(lab: Lab) -> None:
    made = wt.create_worktree("developer", SESSION)
    nowhere = [lab.root.parent, "/no such folder", bare(lab)]
    for name, (first, wrong) in _WRONG.items():
        for argument, values in {**wrong, "repo": nowhere}.items():
            for value in values:
                with pytest.raises(wt.WorktreeError) as caught:
                    getattr(wt, name)(**{**first, argument: value})
                if argument == "repo":
                    assert caught.value.code == "NOT_A_REPO", (name, value)
    assert not wt.branch_exists("a\0b")
    assert [info.path for info in wt.list_worktrees(strict=True)] == [made]


def test_wt24_first_failure_removes_all(lab: Lab) -> None:
    before = lab.fingerprint()
    lab.git("branch", "swarm/reviewer-feature-x")
    with_branch = lab.fingerprint()
    with pytest.raises(BranchExists):
        wt.create_worktrees(["researcher", "developer", "reviewer"], SESSION)
    assert lab.fingerprint() == with_branch
    assert not (lab.root / ".worktrees").exists()
    lab.git("branch", "-D", "swarm/reviewer-feature-x")
    made = wt.create_worktrees(["reviewer", "researcher", "developer"], SESSION)
    assert list(made) == ["reviewer", "researcher", "developer"]  # in the order given
    assert all(path.is_dir() for path in made.values())
    wt.full_cleanup()
    assert lab.fingerprint() == before
    for wrong in ([], ["developer", "developer"], ["developer", "DEVELOPER"]):
        with pytest.raises(UsageProblem):
            wt.create_worktrees(wrong, SESSION)


@pytest.mark.parametrize("obstacle", ["folder", "file", "dangling link", "empty folder"])
def test_wt25_a_taken_path_of_the_fourth_role_leaves_nothing_of_the_others(lab: Lab, obstacle: str) -> None:
    tree = lab.tree("architect")
    tree.parent.mkdir()
    if obstacle == "file":
        tree.write_text("mine")
    elif obstacle == "dangling link":
        tree.symlink_to("nowhere")
    else:
        tree.mkdir()
        if obstacle == "folder":
            (tree / "mine").write_text("mine")
    before = (lab.fingerprint(), file_digests(tree.parent))
    with pytest.raises(WorktreeExists):
        wt.create_worktrees(["researcher", "developer", "reviewer", "architect"], SESSION)
    assert (lab.fingerprint(), file_digests(tree.parent)) == before


def test_wt26_a_failed_set_deletes_only_its_own_branches(lab: Lab) -> None:
    tip = lab.commit("later")
    lab.git("branch", "swarm/developer-feature-x", "HEAD~1")
    lab.git("branch", "swarm/researcher-other", tip)
    before = lab.fingerprint()
    with pytest.raises(BranchExists):
        wt.create_worktrees(["researcher", "developer"], SESSION)
    assert lab.fingerprint() == before


# --- remove ---------------------------------------------------------------------------------------------


def test_wt27_removing_what_is_not_there_is_success(lab: Lab) -> None:
    wt.remove_worktree("developer")
    wt.create_worktrees(["developer", "reviewer"], SESSION)
    wt.remove_worktree("developer")
    wt.remove_worktree("developer")
    wt.remove_worktree("reviewer", delete_branch=False)
    assert not lab.tree("developer").exists()
    assert not wt.branch_exists("swarm/developer-feature-x")
    assert wt.branch_exists("swarm/reviewer-feature-x")
    with pytest.raises(InvalidName):
        wt.remove_worktree("../../etc")


@pytest.mark.parametrize("name", ["README", "new.txt", ".env"])
def test_wt28_uncommitted_work_is_not_removed_without_force(lab: Lab, name: str) -> None:
    wt.create_worktree("developer", SESSION)
    lab.write({name: "work"}, lab.tree("developer"))
    with pytest.raises(WorkAtRisk):
        wt.remove_worktree("developer")
    assert (lab.tree("developer") / name).read_text() == "work"
    wt.remove_worktree("developer", force=True)
    assert not lab.tree("developer").exists()


def test_wt28_what_swarm_put_in_is_no_work(lab: Lab) -> None:
    wt.create_worktree("developer", SESSION)
    assert (lab.tree("developer") / "CLAUDE.local.md").is_file()
    wt.remove_worktree("developer")


def test_wt29_a_locked_worktree_is_not_removed_without_force(lab: Lab) -> None:
    wt.create_worktree("developer", SESSION)
    lab.git("worktree", "lock", str(lab.tree("developer")))
    with pytest.raises(WorkAtRisk):
        wt.remove_worktree("developer")
    wt.remove_worktree("developer", force=True)
    assert not lab.tree("developer").exists()


def test_wt30_a_folder_that_is_no_worktree_is_removed_only_where_it_is_safe(lab: Lab) -> None:
    wt.create_worktrees(["developer", "reviewer"], SESSION)
    for agent in ("developer", "reviewer"):
        lab.git("worktree", "remove", "--force", str(lab.tree(agent)))
        lab.tree(agent).mkdir()
    wt.remove_worktree("developer")  # empty: nothing is in it
    assert not lab.tree("developer").exists()
    lab.write({"mine": "mine"}, lab.tree("reviewer"))
    with pytest.raises(WorkAtRisk):
        wt.remove_worktree("reviewer")
    wt.remove_worktree("reviewer", force=True)
    (kept,) = (lab.root / ".swarm/salvage").rglob("mine")  # moved, not deleted
    assert kept.read_text() == "mine"


def test_wt31_the_branch_goes_after_the_worktree_and_a_missing_one_is_no_error(lab: Lab) -> None:
    wt.create_worktrees(["developer", "reviewer"], SESSION)
    wt.remove_worktree("developer")
    assert not wt.branch_exists("swarm/developer-feature-x")
    lab.git("switch", "--quiet", "--detach", cwd=lab.tree("reviewer"))
    lab.git("branch", "-D", "swarm/reviewer-feature-x")
    wt.remove_worktree("reviewer")
    assert not lab.tree("reviewer").exists()


def test_wt30_a_folder_that_is_in_no_session_goes_and_what_is_in_it_is_moved_aside(lab: Lab) -> None:
    tree = lab.tree("developer")
    for _ in range(2):
        tree.mkdir(parents=True)
        wt.remove_worktree("developer", session_id=SESSION)  # an empty one, without a word
        assert not tree.exists()
    lab.write({"notes.txt": "mine\n"}, cwd=tree)

    with pytest.raises(WorktreeExists) as taken:
        wt.create_worktree("developer", SESSION)
    assert f"swarm worktree remove developer@{SESSION} --force" in taken.value.hint
    with pytest.raises(WorkAtRisk, match=re.escape(str(tree))):
        wt.remove_worktree("developer", session_id=SESSION)
    report = lab.swarm.worktrees.remove("developer", SESSION, force=True)

    (aside,) = (lab.root / ".swarm/salvage/stray").glob("*/*")
    assert str(aside) in report.warnings[0]
    assert file_digests(aside).keys() == {"notes.txt"}
    wt.create_worktree("developer", SESSION)


@pytest.mark.parametrize("what", ["a repository", "a worktree of the user's", "a link", "a file"])
def test_wt30_what_is_not_swarms_to_remove_stays(lab: Lab, what: str) -> None:
    tree = lab.tree("developer")
    tree.parent.mkdir()
    if what == "a repository":
        lab.git("init", "--quiet", str(tree))
    elif what == "a worktree of the user's":
        lab.git("worktree", "add", "--quiet", str(tree))
    elif what == "a link":
        tree.symlink_to(lab.root / "src")
    else:
        tree.write_text("x")

    for remove in (
        lambda: wt.remove_worktree("developer", force=True, session_id=SESSION),
        lambda: lab.swarm.worktrees.remove("developer", SESSION, force=True),
    ):
        with pytest.raises(WorkAtRisk, match="and in no session") as refused:
            remove()
        assert str(tree) in str(refused.value)
        assert refused.value.hint
    kept = lab.swarm.cleanup(everything=True, force=True).warnings

    assert [line for line in kept if f"{tree} is in no session and stays" in line]
    assert os.path.lexists(tree)
    assert not (lab.root / ".swarm/salvage").exists()


def test_wt30_a_worktree_of_another_tool_is_not_said_to_be_removed(lab: Lab) -> None:
    """It stands where the design has it, is found by its role, and has no record."""
    tree = lab.root / ".worktrees" / "developer"
    lab.git("worktree", "add", "--quiet", "-b", "swarm/developer-1703849234567", str(tree))
    assert wt.worktree_exists("developer")

    with pytest.raises(WorkAtRisk, match="a worktree of git without a record") as refused:
        wt.remove_worktree("developer", force=True)

    assert f"git worktree remove {shlex.quote(str(tree))}" in str(refused.value.hint)
    assert tree.is_dir()


def test_wt46_full_cleanup_moves_folders_of_no_session_aside(lab: Lab) -> None:
    wt.create_worktree("developer", SESSION)
    base = lab.root / ".worktrees"
    lab.write({"old/notes.txt": "mine\n"}, cwd=base)
    (base / "empty").mkdir()

    said = lab.swarm.cleanup([SESSION], force=True).warnings
    assert not said
    assert [
        line
        for line in lab.swarm.cleanup(everything=True).warnings
        if "old is in no session and stays (--force" in line
    ]
    planned = lab.swarm.cleanup(everything=True, force=True, dry_run=True).warnings
    assert len([line for line in planned if "would be removed" in line]) == 2
    assert wt.full_cleanup() == {"worktrees": 0, "branches": 0}

    assert not base.exists()
    (aside,) = (lab.root / ".swarm/salvage/stray").glob("*/*")
    assert (aside / "notes.txt").read_text() == "mine\n"


def test_wt46_a_folder_of_the_users_own_is_left_as_it_is(lab: Lab) -> None:
    """The worktrees were set to stand among tracked files."""
    lab.write({"work/kept.txt": "x\n"})
    lab.commit("kept")
    lab.write({"work/drafts/a.txt": "mine\n"})

    said = lab.open(worktrees__base_path="work").cleanup(everything=True, force=True).warnings

    assert [line for line in said if "drafts is in no session and stays" in line]
    assert (lab.root / "work/drafts/a.txt").read_text() == "mine\n"


def test_wt32_a_link_at_the_path_goes_with_force_and_is_never_followed(lab: Lab) -> None:
    wt.create_worktree("developer", SESSION)
    real = lab.root.parent / "real"
    lab.tree("developer").rename(real)
    lab.tree("developer").symlink_to(real)
    before = file_digests(real)
    with pytest.raises(WorkAtRisk):
        wt.remove_worktree("developer")
    assert lab.tree("developer").is_symlink()

    assert wt.full_cleanup() == {"worktrees": 1, "branches": 1}

    assert file_digests(real) == before
    assert not (lab.root / ".worktrees").exists()


def test_wt33_removing_all_tells_how_many_and_what_failed(lab: Lab) -> None:
    wt.create_worktrees(["researcher", "developer"], "one")
    wt.create_worktrees(["developer"], "two")
    assert wt.remove_all_worktrees() == 3
    assert wt.remove_all_worktrees() == 0
    wt.create_worktrees(["researcher", "developer", "reviewer"], "one")
    tree = lab.tree("developer", "one")

    def swap(text: str) -> None:
        if text == "removing one/researcher":
            tree.rename(lab.root.parent / "aside")
            tree.mkdir()

    with pytest.raises(CleanupFailed) as caught:
        documents(Swarm.open(lab.root, environ=lab.env, progress=swap)).remove_all_worktrees(force=True)
    assert caught.value.code == "CLEANUP_FAILED"
    assert [one.name for one in caught.value.facts["failed"]] == ["one/developer"]
    assert not lab.tree("reviewer", "one").exists()  # the rest was tried


def test_wt34_prune_forgets_only_swarms_own(lab: Lab) -> None:
    wt.create_worktree("developer", SESSION)
    mine = lab.root.parent / "mine"
    lab.git("worktree", "add", "--quiet", str(mine))
    shutil.rmtree(lab.tree("developer"))
    shutil.rmtree(mine)
    wt.prune_worktrees()
    assert [entry.path for entry in wt.list_all_worktrees()] == [lab.root, mine]
    assert wt.branch_exists("swarm/developer-feature-x")


# --- list -----------------------------------------------------------------------------------------------


def test_wt35_every_worktree_is_listed_with_the_main_one(lab: Lab) -> None:
    tree = wt.create_worktree("developer", SESSION)
    head = lab.git("rev-parse", "HEAD")
    entries = wt.list_all_worktrees()
    assert [(e.path, e.branch, e.head) for e in entries] == [
        (lab.root, "main", head),
        (tree, "swarm/developer-feature-x", head),
    ]


def test_wt36_what_git_lists_is_read_in_every_form() -> None:
    sha, sha256 = "a" * 40, "b" * 64
    text = (
        f"worktree /main\nHEAD {sha}\nbranch refs/heads/main\n\n"
        f"worktree /a b\nHEAD {sha256}\ndetached\nlocked\n\n"
        f"worktree /c\nHEAD {sha}\nbranch refs/heads/x/y\nlocked on a stick\nprunable gone\n\n"
        f"worktree /bare\nbare\n\nworktree /last\nHEAD {sha}\nbranch refs/heads/z"
    )
    for printed, end in ((text.encode(), b"\n"), (text.encode().replace(b"\n", b"\0"), b"\0")):
        main, second, third, bare_one, last = parse_worktrees(printed, end)
        assert (main.branch, main.detached, main.locked) == ("main", False, False)
        assert (second.path, second.head, second.branch) == (Path("/a b"), sha256, "")
        assert second.detached
        assert second.locked
        assert (third.branch, third.lock_reason, third.prunable) == ("x/y", "on a stick", True)
        assert bare_one.bare
        assert (last.path, last.branch) == (Path("/last"), "z")
    assert parse_worktrees(b"") == ()


def test_wt37_only_swarms_worktrees_are_listed(lab: Lab) -> None:
    assert wt.list_worktrees() == []
    wt.create_worktrees(["developer", "reviewer"], SESSION)
    lab.git("worktree", "add", "--quiet", ".worktrees/plumber-x")
    lab.git("worktree", "add", "--quiet", ".worktrees/architect-by-hand")
    lab.git("worktree", "add", "--quiet", "../elsewhere")
    lab.git("switch", "--quiet", "--detach", cwd=lab.tree("reviewer"))
    found = {info.path.name: (info.role, info.branch) for info in wt.list_worktrees()}
    assert found == {
        "developer-feature-x": ("developer", "swarm/developer-feature-x"),
        "reviewer-feature-x": ("reviewer", ""),
        "architect-by-hand": ("architect", "architect-by-hand"),
    }


def test_wt37_a_git_that_fails_gives_an_empty_list_or_with_strict_the_error(lab: Lab, swarm: Swarm) -> None:
    swarm.create(SESSION, ["developer"])
    head = lab.root / ".git/HEAD"
    head.rename(head.with_name("HEAD.aside"))
    assert documents(swarm).list_worktrees() == []
    with pytest.raises(SwarmError):
        documents(swarm).list_worktrees(strict=True)


def test_wt37_where_there_is_no_repository_there_are_no_worktrees() -> None:
    assert wt.list_worktrees(repo="/") == []
    with pytest.raises(NotARepo):
        wt.list_worktrees(repo="/", strict=True)


def test_wt38_what_is_told_of_a_worktree(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    lab.commit("one", cwd=path)
    lab.write({"x": "x"}, path)
    lab.git("worktree", "lock", "--reason", "why", str(path))
    info = wt.get_worktree_info("developer")
    assert info is not None
    assert (info.path, info.branch, info.role) == (path, "swarm/developer-feature-x", "developer")
    assert info.head == lab.git("rev-parse", "HEAD", cwd=path)
    assert (info.is_locked, info.lock_reason) == (True, "why")
    assert abs(info.created_at - time.time_ns() // 1_000_000) < 600_000
    assert (info.session, info.agent, info.dirty, info.ahead) == (SESSION, "developer", True, 1)


@pytest.mark.parametrize(
    ("branch", "created"),
    [
        ("swarm/researcher-1703849234567", 1703849234567),
        ("swarm/researcher-abc", 0),
        ("swarm/researcher-", 0),
        ("other/researcher-1703849234567", 0),
        ("swarm/researcher-123abc", 123),
        ("swarm/code-reviewer-123", 0),
        ("", 0),
    ],
)
def test_wt39_the_age_in_a_branch_name(branch: str, created: int) -> None:
    assert names.parse_created_at(branch) == created


def test_wt40_one_worktree_or_none_or_several(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert wt.get_worktree_info("developer") is None
    assert not wt.worktree_exists("developer")
    wt.create_worktree("developer", "one")
    assert wt.worktree_exists("developer")
    assert wt.worktree_exists("DEVELOPER", "ONE")
    assert not wt.worktree_exists("developer", "two")
    wt.create_worktree("developer", "two")
    with pytest.raises(UsageProblem) as caught:
        wt.get_worktree_info("developer")
    assert caught.value.code == "AMBIGUOUS"
    monkeypatch.setenv("SWARM_SESSION", "two")  # an agent means its own session
    info = wt.get_worktree_info("developer")
    assert info is not None
    assert info.session == "two"


def test_wt10_a_fresh_session_is_none_that_the_repository_has(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    first = int(wt.new_session_id())
    lab.swarm.create(str(first + 60_000), "developer")  # as of a process whose clock is ahead
    monkeypatch.setattr("time.time_ns", lambda: (first + 60_000) * 1_000_000)
    assert wt.new_session_id(repo=lab.root / "src") == str(first + 60_001)
    monkeypatch.chdir("/")  # a name needs no repository
    assert wt.new_session_id() == str(first + 60_002)


def test_wt40_a_worktree_in_the_designs_own_layout_is_found(lab: Lab) -> None:
    tree = lab.root / ".worktrees/developer"
    lab.git("worktree", "add", "--quiet", str(tree), "-b", "swarm/developer-1703849234567")
    assert [info.path for info in wt.list_worktrees()] == [tree]

    info = wt.get_worktree_info("developer")
    assert info is not None
    assert (info.path, info.branch, info.created_at) == (tree, "swarm/developer-1703849234567", 1703849234567)
    assert wt.get_worktree_info("developer", "1703849234567") == info
    assert wt.get_worktree_info("developer", "other") is None
    assert wt.get_worktree_path("developer") == tree
    assert wt.worktree_exists("Developer")
    assert not wt.worktree_exists("reviewer")
    assert wt.get_worktree_head("developer") == lab.git("rev-parse", "HEAD")
    assert not wt.has_uncommitted_changes("developer")
    lab.write({"new.txt": "new"}, tree)
    assert wt.has_uncommitted_changes("developer")


def test_wt40_of_several_without_a_record_one_has_to_be_named(lab: Lab) -> None:
    for session in ("one", "two"):
        lab.git("worktree", "add", "--quiet", str(lab.tree("developer", session)), "-b", f"swarm/developer-{session}")
    with pytest.raises(UsageProblem, match="developer-one, developer-two"):
        wt.get_worktree_info("developer")
    assert wt.get_worktree_path("developer", "two") == lab.tree("developer", "two")
    assert wt.worktree_exists("developer", "two")
    recorded = wt.create_worktree("developer", "three")  # a recorded one is meant before those
    assert wt.get_worktree_path("developer") == recorded


def test_wt41_lock_and_unlock(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    wt.lock_worktree("developer", "long job")
    listed = lab.git("worktree", "list", "--porcelain")
    assert "locked long job" in listed.splitlines()
    assert "locked" in lab.git("worktree", "remove", str(path), check=False) or path.is_dir()
    wt.unlock_worktree("developer")
    wt.unlock_worktree("developer")
    info = wt.get_worktree_info("developer")
    assert info is not None
    assert not info.is_locked
    for call in (wt.lock_worktree, wt.unlock_worktree):
        with pytest.raises(WorktreeNotFound):
            call("reviewer")
    with pytest.raises(UsageProblem):
        wt.lock_worktree("developer", "two\nlines")


def test_wt42_a_worktree_in_use_is_not_taken_away(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    with process(cwd=path):
        with pytest.raises(WorkAtRisk) as caught:
            wt.remove_all_worktrees()
        assert [risk.kind for risk in caught.value.facts["agents"][0].risks] == ["live-process"]
    assert wt.remove_all_worktrees() == 1


def test_wt43_head_and_uncommitted_changes(lab: Lab) -> None:
    assert wt.get_worktree_head("developer") is None
    with pytest.raises(WorktreeNotFound):
        wt.has_uncommitted_changes("developer")
    path = wt.create_worktree("developer", SESSION)
    tip = lab.commit("one", cwd=path)
    assert wt.get_worktree_head("developer") == tip
    assert not wt.has_uncommitted_changes("developer")
    lab.write({"new.txt": "new"}, path)
    assert wt.has_uncommitted_changes("developer")


def test_wt43_files_that_git_is_set_not_to_show_are_uncommitted_work(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    lab.git("config", "status.showUntrackedFiles", "no")
    lab.git("config", "diff.ignoreSubmodules", "all")
    assert not wt.has_uncommitted_changes("developer")
    (path / "notes.txt").write_text("new\n")

    assert wt.has_uncommitted_changes("developer")
    assert lab.swarm.worktrees.show("developer").changes == ("?? notes.txt",)


def test_wt44_old_sessions_are_cleaned_up(lab: Lab, swarm: Swarm) -> None:
    assert wt.DEFAULT_MAX_AGE_MS == 24 * 3600 * 1000 == swarm.config.settings.worktrees.auto_cleanup_age
    for session in ("old", "unknown", "busy", "young"):
        wt.create_worktree("developer", session)
    lab.git("worktree", "lock", str(lab.tree("developer", "busy")))
    for session, made in (("old", 1), ("unknown", 0), ("busy", 1)):
        swarm._world.sessions.write(swarm.sessions.get(session)._replace(created_ms=made))
    assert wt.cleanup_orphaned_worktrees() == 1
    assert [session.name for session in swarm.sessions()] == ["busy", "unknown", "young"]
    assert wt.cleanup_orphaned_worktrees(max_age_ms=0) == 1  # not the locked one, not the one of unknown age


@pytest.mark.parametrize("age", [-1, -86_400_000])
def test_wt44_an_age_is_not_negative(lab: Lab, swarm: Swarm, age: int) -> None:
    path = wt.create_worktree("developer", SESSION)
    with pytest.raises(UsageProblem):
        wt.cleanup_orphaned_worktrees(age)
    with pytest.raises(UsageProblem):
        swarm.sessions.prune(older_than_ms=age)
    with pytest.raises(UsageProblem):
        lab.person.salvage.drop(everything=True, older_than_ms=age)
    assert path.is_dir()


def test_wt45_leftover_branches_are_deleted_and_foreign_ones_stay(lab: Lab) -> None:
    lab.git("branch", "swarm/mine")
    wt.create_worktrees(["developer", "reviewer"], SESSION)
    wt.remove_worktree("developer", delete_branch=False)
    assert wt.cleanup_swarm_branches() == 1
    assert wt.cleanup_swarm_branches() == 0
    left = lab.git("for-each-ref", "--format=%(refname:short)", "refs/heads/swarm")
    assert left.splitlines() == ["swarm/mine", "swarm/reviewer-feature-x"]


def test_wt46_full_cleanup_leaves_nothing_and_counts(lab: Lab) -> None:
    before = lab.fingerprint()
    wt.create_worktrees(["developer", "reviewer"], "one")
    wt.create_worktrees(["developer"], "two")
    wt.remove_worktree("reviewer", delete_branch=False)
    lab.write({"new.txt": "new"}, lab.tree("developer", "two"))
    assert wt.full_cleanup() == {"worktrees": 2, "branches": 3}
    assert lab.fingerprint() == before
    assert not (lab.root / ".worktrees").exists()
    assert wt.full_cleanup() == {"worktrees": 0, "branches": 0}


def test_wt47_of_two_that_want_the_same_one_wins(lab: Lab) -> None:
    code = "import sys; from swarm.worktrees import create_worktrees as c; c(['developer', 'reviewer'], sys.argv[1])"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code, SESSION],
            stderr=subprocess.PIPE,
            env={**lab.env, "PYTHONPATH": str(PROJECT), "SWARM_LOCK_TIMEOUT": "50"},
        )
        for _ in range(3)
    ]
    said = [run.communicate(timeout=60)[1].decode() for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 1, 1]
    assert all("already exists" in text for text, run in zip(said, runs, strict=True) if run.returncode)
    assert len(wt.list_worktrees(strict=True)) == 2
    assert lab.swarm.operations.unfinished() == ()


def test_wt48_a_worktree_that_vanishes_while_being_looked_at_is_gone(lab: Lab, swarm: Swarm) -> None:
    wt.create_worktrees(["developer", "reviewer", "architect"], SESSION)
    stop = threading.Event()
    errors: list[BaseException] = []

    def look() -> None:
        while not stop.is_set():
            try:
                lab.swarm.worktrees()
                wt.list_worktrees(strict=True)
            except BaseException as error:  # noqa: BLE001  # whatever it is, the test shows it
                errors.append(error)
                return

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for agent in ("developer", "reviewer", "architect"):
            shutil.rmtree(lab.tree(agent))
        swarm.worktrees.prune()
        wt.create_worktrees(["developer"], "other")
        documents(swarm).full_cleanup()
    finally:
        stop.set()
        watcher.join(60)
    assert errors == []


def test_wt49_an_old_git_is_refused_in_plain_words(lab: Lab, tmp_path: Path) -> None:
    real = shutil.which("git")
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\nfor a in "$@"; do [ "$a" = version ] && echo git version 2.17.1 && exit; done\nexec {real} "$@"\n'
    )
    fake.chmod(0o755)
    before = lab.fingerprint()
    with pytest.raises(GitTooOld, match=r"git 2\.20 or newer is needed, this is 2\.17"):
        Swarm.open(lab.root, environ={**lab.env, "PATH": f"{fake.parent}:{lab.env['PATH']}"}).create(
            SESSION, ["developer"]
        )
    assert lab.fingerprint() == before


def test_wt50_variables_that_redirect_git_are_not_followed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Lab(lab.root.parent / "other")
    before = other.fingerprint()
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.root / ".git/index"))
    path = wt.create_worktree("developer", SESSION)
    assert path == lab.tree("developer")
    wt.full_cleanup()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name)
    assert other.fingerprint() == before


def test_wt51_a_worktree_holds_the_whole_project(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    assert (path / ".git").is_file()
    ours = {".git", "CLAUDE.local.md"}
    assert file_digests(path, skip=ours) == file_digests(lab.root, skip={".git", ".swarm", ".worktrees"})


@pytest.mark.parametrize("spelling", ["snake", "camel"])
def test_wt52_the_configuration_has_the_keys_of_the_design(lab: Lab, spelling: str) -> None:
    key = {"snake": ("base_path", "branch_prefix", "auto_cleanup_age")}.get(
        spelling, ("basePath", "branchPrefix", "autoCleanupAge")
    )
    (lab.root / ".swarm").mkdir(mode=0o700)
    lines = ["worktrees:", f"  {key[0]}: trees/of agents", f"  {key[1]}: bots", f"  {key[2]}: 1000"]
    (lab.root / ".swarm/config.yaml").write_text("\n".join(lines) + "\n")
    path = wt.create_worktree("developer", SESSION)
    assert path == lab.root / "trees/of agents/developer-feature-x"
    assert wt.branch_exists("bots/developer-feature-x")
    assert lab.swarm.config.settings.worktrees.auto_cleanup_age == 1000
    assert wt.full_cleanup() == {"worktrees": 1, "branches": 1}
    assert not (lab.root / "trees").exists()


def test_wt53_the_facts_of_a_session_are_recorded(lab: Lab) -> None:
    wt.create_worktrees(["developer", "reviewer"], SESSION)
    path = lab.root / ".swarm/sessions/feature-x/session.json"
    record = json.loads(path.read_text())
    assert record["schema"] == 1
    assert record["session"] == SESSION
    assert [agent["role"] for agent in record["agents"]] == ["developer", "reviewer"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert (lab.root / ".swarm").stat().st_mode & 0o777 == 0o700


def test_wt57_what_is_no_repository_is_told_and_subfolders_and_linked_trees_are_one(lab: Lab) -> None:
    with pytest.raises(NotARepo, match="no such folder"):
        wt.create_worktree("developer", SESSION, repo=lab.root / "missing")
    with pytest.raises(NotARepo, match="not a git repository"):
        wt.create_worktree("developer", SESSION, repo=lab.root.parent)
    with pytest.raises(GitFailed, match="no-such-base") as caught:
        wt.create_worktree("developer", SESSION, "no-such-base")
    assert caught.value.code == "BASE_NOT_FOUND"
    linked = lab.root.parent / "linked"
    lab.git("worktree", "add", "--quiet", str(linked))
    assert wt.create_worktree("developer", SESSION, repo=linked / "src") == lab.tree("developer")


def test_wt58_only_an_explicit_call_removes_a_worktree(lab: Lab, swarm: Swarm) -> None:
    path = wt.create_worktree("developer", SESSION)
    with process(cwd=path):
        pass  # the agent ends
    swarm.recover()
    swarm.worktrees.prune()
    assert path.is_dir()


def test_wt59_a_worktree_can_be_used_with_plain_git(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    lab.write({"feature.txt": "done"}, path)
    lab.git("add", "--all", cwd=path)
    lab.git("commit", "--quiet", "-m", "feature", cwd=path)
    assert lab.git("show", "--name-only", "--format=", "HEAD", cwd=path) == "feature.txt"  # not the instructions
    lab.git("stash", "list", cwd=path)
    lab.git("merge", "--quiet", "swarm/developer-feature-x")
    assert (lab.root / "feature.txt").read_text() == "done"
    lab.git("worktree", "remove", str(path))  # the user may also take it away by hand
    assert wt.full_cleanup() == {"worktrees": 1, "branches": 1}


def test_wt60_uncommitted_work_is_refused_or_saved_and_comes_back(lab: Lab, swarm: Swarm) -> None:
    wt.create_worktree("developer", SESSION)
    lab.write({"new.txt": "new"}, lab.tree("developer"))
    with pytest.raises(WorkAtRisk):
        swarm.cleanup([SESSION])
    wt.full_cleanup()
    swarm.restore(SESSION)
    assert (lab.tree("developer") / "new.txt").read_text() == "new"


def test_wt61_every_function_of_the_design_is_importable_and_takes_a_repository() -> None:
    import inspect

    listed = [
        "is_git_repository",
        "get_git_root",
        "has_commits",
        "get_current_branch",
        "branch_exists",
        "validate_repository",
        "generate_branch_name",
        "get_worktree_path",
        "create_worktree",
        "create_worktrees",
        "get_role_config_path",
        "role_config_exists",
        "copy_role_config",
        "update_role_config",
        "remove_worktree",
        "remove_all_worktrees",
        "prune_worktrees",
        "list_all_worktrees",
        "list_worktrees",
        "get_worktree_info",
        "worktree_exists",
        "lock_worktree",
        "unlock_worktree",
        "get_worktree_head",
        "has_uncommitted_changes",
        "cleanup_orphaned_worktrees",
        "cleanup_swarm_branches",
        "full_cleanup",
    ]
    assert set(listed) <= set(wt.__all__)
    for name in listed:
        assert "repo" in inspect.signature(getattr(wt, name)).parameters, name


# --- roles ----------------------------------------------------------------------------------------------


def test_role12_the_four_roles_are_shipped(swarm: Swarm) -> None:
    for role in ("researcher", "developer", "reviewer", "architect"):
        assert (PROJECT / "roles" / role / "CLAUDE.md").is_file()
        assert swarm.roles.get(role).instructions.strip()


def test_role13_a_new_role_is_a_new_folder(lab: Lab, swarm: Swarm) -> None:
    lab.write({"roles/plumber/CLAUDE.md": "# You mend pipes\n"})
    path = wt.create_worktree("plumber", SESSION)
    assert (path / "CLAUDE.local.md").read_text() == "# You mend pipes\n"
    assert "plumber" in swarm.roles.names()
    assert [info.role for info in wt.list_worktrees()] == ["plumber"]


def test_role14_where_a_roles_text_is(lab: Lab) -> None:
    assert wt.role_config_exists("developer")
    assert not wt.role_config_exists("plumber")
    assert wt.get_role_config_path("plumber") == lab.root / "roles/plumber/CLAUDE.md"
    lab.write({"roles/developer/CLAUDE.md": "ours\n"})
    assert wt.get_role_config_path("developer") == lab.root / "roles/developer/CLAUDE.md"


def test_role15_a_roles_text_is_put_into_a_worktree(lab: Lab) -> None:
    tree = lab.root.parent / "mine"
    lab.git("worktree", "add", "--quiet", str(tree))
    with pytest.raises(RoleNotFound):
        wt.copy_role_config("plumber", tree)
    placed = wt.copy_role_config("developer", tree)
    assert placed == tree / "CLAUDE.local.md"
    assert placed.read_bytes() == (PROJECT / "roles/developer/CLAUDE.md").read_bytes()
    assert lab.git("status", "--porcelain", cwd=tree) == ""
    placed.write_text("mine now\n")
    with pytest.raises(WorktreeExists):
        wt.copy_role_config("developer", tree)
    assert placed.read_text() == "mine now\n"


@pytest.mark.parametrize("file", ["CLAUDE.local.md", "CLAUDE.md"])
def test_role15_what_was_put_into_a_worktree_of_swarms_is_swarms_own(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.setenv("SWARM_WORKTREES_INSTRUCTIONS_FILE", file)
    lab.write({"roles/developer/CLAUDE.md": "first\n"})
    tree = wt.create_worktree("developer", SESSION, copy_role_config=False)
    assert wt.copy_role_config("developer", tree / "../developer-feature-x") == tree / "../developer-feature-x" / file
    assert (tree / file).read_text() == "first\n"
    assert not wt.has_uncommitted_changes("developer")
    with pytest.raises(WorktreeExists):
        wt.copy_role_config("developer", tree)

    lab.write({"roles/developer/CLAUDE.md": "second\n"})
    wt.update_role_config("developer")
    assert (tree / file).read_text() == "second\n"

    (tree / file).unlink()
    wt.copy_role_config("developer", tree, repo=lab.root)  # again, after it was deleted
    wt.remove_worktree("developer")  # unforced: it is as swarm wrote it
    assert not tree.exists()


def test_role15_what_the_agent_made_of_it_is_work(lab: Lab) -> None:
    tree = wt.create_worktree("developer", SESSION, copy_role_config=False)
    wt.copy_role_config("developer", tree).write_text("mine\n")
    with pytest.raises(WorkAtRisk):
        wt.update_role_config("developer")
    with pytest.raises(WorkAtRisk):
        wt.remove_worktree("developer")
    assert (tree / "CLAUDE.local.md").read_text() == "mine\n"


def test_role16_a_changed_role_is_brought_into_its_worktree_only_when_asked(lab: Lab) -> None:
    lab.write({"roles/developer/CLAUDE.md": "first\n"})
    file = wt.create_worktree("developer", SESSION) / "CLAUDE.local.md"
    lab.write({"roles/developer/CLAUDE.md": "second\n"})
    assert file.read_text() == "first\n"
    wt.update_role_config("developer")
    assert file.read_text() == "second\n"
    assert wt.list_worktrees()[0].agent == "developer"
    file.write_text("edited by the agent\n")
    with pytest.raises(WorkAtRisk):
        wt.update_role_config("developer")
    assert file.read_text() == "edited by the agent\n"
    wt.update_role_config("developer", force=True)
    assert file.read_text() == "second\n"
    wt.remove_worktree("developer")  # no work: it is as swarm wrote it


def test_a_huge_lock_reason_of_another_tool_is_read_as_far_as_it_matters(lab: Lab) -> None:
    path = wt.create_worktree("developer", SESSION)
    wt.create_worktree("reviewer", SESSION)
    reason = "held by a tool " + "x" * 100_000
    lab.git("worktree", "lock", "--reason", reason, str(path))

    (found,) = [one for one in lab.swarm.worktrees() if one.agent == "developer"]
    assert found.is_locked
    with pytest.raises(WorkAtRisk) as refused:
        lab.swarm.cleanup([SESSION])
    (risk,) = refused.value.facts["agents"][0].risks
    assert risk.text.startswith("it is locked: held by a tool x")
    assert len(risk.text) < 5000
    lab.swarm.cleanup([SESSION], force=True)
    lab.swarm.restore(SESSION)
    assert path.is_dir()
