"""Worktrees without work wait in a pool, and the next start takes them: what comes out is as a new one."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarm.git.repository import Git
from swarm.project.layout import Layout
from swarm.testing.lab import Lab
from swarm.worktrees import deletion
from tests.git.test_without_git import picture
from tests.support.work import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from swarm import Swarm

pytestmark = pytest.mark.integration

S = "s"
#: Drawn paths and contents: a file may become a folder, a link or a program, and go.
_PATHS = ("a", "a/b", "c.txt", "d/e/f", "d/g", "ü ö")
_STATES = st.sampled_from(["", "one\n", "two\r\n", "\0\xff", "run", "link"])
_DRAWN = st.dictionaries(st.sampled_from(_PATHS), _STATES, max_size=5)


@pytest.fixture(autouse=True)
def _held(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that parks does not start by itself: `parks` does what it does."""
    monkeypatch.setattr(deletion, "start", lambda _layout: None)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.write({".gitignore": "*.log\nnode_modules/\n__pycache__/\ncache/\n.env\n", "deep/er/file": b"\0\r\n\xff"})
    (lab.root / "link").symlink_to("README")
    (lab.root / "deep/run").write_text("#!/bin/sh\n")
    (lab.root / "deep/run").chmod(0o755)
    lab.commit("second")
    return lab


def opened(lab: Lab, **flags: Any) -> Swarm:
    usual: dict[str, Any] = {"worktrees__pool": 8, "cleanup__background": True}
    return lab.open(**{**usual, **flags})


def parks(lab: Lab) -> None:
    deletion.run(Layout(lab.root))


def parked_by(lab: Lab, work: Callable[[Path], object] = lambda tree: None, **flags: Any) -> Swarm:
    """Make a session of one, let something happen in its worktree, and clean it up."""
    swarm = opened(lab, **flags)
    swarm.create(S, ["developer"])
    work(lab.tree("developer", S))
    swarm.cleanup([S], force=True)
    parks(lab)
    return swarm


def inode(lab: Lab) -> int:
    return lab.tree("developer", S).stat().st_ino


def test_the_next_start_takes_the_worktree(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []
    swarm = parked_by(lab, lambda tree: numbers.append(tree.stat().st_ino))
    assert not (lab.root / ".worktrees").exists()
    assert not list((lab.root / ".swarm/trash").glob("*"))
    (one,) = swarm.worktrees.pool()
    assert (one.session, one.agent) == (S, "developer")
    assert one.size > 0
    assert any("take 1 worktree of the pool" in step for step in swarm.create(S, ["developer"], dry_run=True).steps)

    swarm.create(S, ["developer"])
    recycled = picture(lab, "developer")
    assert inode(lab) == numbers[0]
    assert swarm.worktrees.pool() == ()
    swarm.cleanup(everything=True)
    monkeypatch.setattr(Git, "look_closely", lambda self, since=None: None)
    lab.swarm.create(S, ["developer"])
    assert recycled == picture(lab, "developer")


def _put(folder: Path, drawn: dict[str, str]) -> None:
    """Make files as drawn; what is in their way goes."""
    for path, state in drawn.items():
        file = folder / path
        above = [one for one in reversed(file.parents) if one != folder and one.is_relative_to(folder)]
        for part in (*above, file):
            if part.is_symlink() or part.is_file():
                part.unlink()
            elif part == file and part.is_dir():
                shutil.rmtree(part)
        if not state:
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if state == "link":
            file.symlink_to("README")
        else:
            file.write_bytes(state.encode("latin-1"))
            file.chmod(0o755 if state == "run" else 0o644)


@given(theirs=_DRAWN, ours=_DRAWN, dropped=st.booleans())
@settings(
    max_examples=6,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_worktree_of_the_pool_is_as_git_makes_one(
    tmp_path_factory: pytest.TempPathFactory, theirs: dict[str, str], ours: dict[str, str], dropped: bool
) -> None:
    """An agent has committed anything, and so has the user meanwhile."""
    lab = Lab(tmp_path_factory.mktemp("pool"))
    lab.write({".gitignore": "__pycache__/\n"})
    lab.commit("second")

    def work(tree: Path) -> None:
        _put(tree, theirs)
        lab.git("add", "--all", cwd=tree)
        lab.git("commit", "--quiet", "--allow-empty", "-m", "theirs", cwd=tree)
        if dropped:
            lab.write({"__pycache__/x.pyc": "old\n"}, tree)

    swarm = parked_by(lab, work)
    assert len(swarm.worktrees.pool()) == 1
    _put(lab.root, ours)
    lab.git("add", "--all")
    lab.git("commit", "--quiet", "--allow-empty", "-m", "ours")
    swarm.create(S, ["developer"])
    assert swarm.worktrees.pool() == ()
    recycled = picture(lab, "developer")
    swarm.cleanup(everything=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Git, "look_closely", lambda self, since=None: None)
        lab.swarm.create(S, ["developer"])
    assert recycled == picture(lab, "developer")
    shutil.rmtree(lab.root)


def _link(tree: Path) -> None:
    os.link(tree / "README", tree.parent / "other name")


@pytest.mark.parametrize(
    "work",
    [
        lambda tree: (tree / "README").write_text("changed\n"),
        lambda tree: (tree / "new.txt").write_text("new\n"),
        lambda tree: (tree / "some.log").write_text("a log is work\n"),
        lambda tree: (tree / ".env").write_text("TOKEN=1\n"),
        lambda tree: (tree / "README").chmod(0o600),
        lambda tree: (tree / "empty").mkdir(),
        lambda tree: (tree / "deep").chmod(0o700),
        _link,
    ],
    ids=["changed", "untracked", "ignored work", "a secret", "mode", "empty folder", "folder mode", "second name"],
)
def test_a_worktree_that_is_not_as_new_is_not_parked(lab: Lab, work: Callable[[Path], object]) -> None:
    swarm = parked_by(lab, work)
    assert swarm.worktrees.pool() == ()
    assert not list((lab.root / ".swarm/trash").glob("*"))


def test_files_that_a_setting_converts_are_not_parked(lab: Lab) -> None:
    lab.git("config", "core.autocrlf", "true")
    assert parked_by(lab).worktrees.pool() == ()


def test_bytes_that_are_not_those_of_the_commit_are_not_parked(lab: Lab) -> None:
    """They were written while a setting converted them, and git does not see it."""
    lab.git("config", "core.autocrlf", "true")
    swarm = opened(lab)
    swarm.create(S, ["developer"])
    assert b"\r\n" in (lab.tree("developer", S) / "README").read_bytes()
    lab.git("config", "--unset", "core.autocrlf")
    swarm.cleanup([S], force=True)
    parks(lab)
    assert swarm.worktrees.pool() == ()


def test_only_named_ignored_files_stay_and_never_a_secret(lab: Lab) -> None:
    def work(tree: Path) -> None:
        lab.write({"node_modules/m/index.js": "m\n", "__pycache__/x.pyc": "x\n", "cache/c": "c\n"}, tree)

    swarm = parked_by(lab, work, worktrees__keep_ignored=["node_modules", "cache"])
    swarm.create(S, ["developer"])
    tree = lab.tree("developer", S)
    assert (tree / "node_modules/m/index.js").is_file()
    assert (tree / "cache/c").is_file()
    assert not (tree / "__pycache__").exists()
    lab.write({"cache/.env": "TOKEN=1\n"}, tree)
    swarm.cleanup([S], force=True)
    parks(lab)
    assert swarm.worktrees.pool() == ()


@pytest.mark.parametrize("how", ["changed", "new"])
@pytest.mark.parametrize("then", ["start", "drain"])
def test_what_is_written_in_the_pool_is_kept_whole(lab: Lab, how: str, then: str) -> None:
    swarm = parked_by(lab)
    (tree,) = (lab.root / ".swarm/pool").glob("*/*.tree")
    (tree / ("README" if how == "changed" else "late.txt")).write_text("late\n")
    if then == "start":
        swarm.create(S, ["developer"])
        assert lab.git("status", "--porcelain", cwd=lab.tree("developer", S)) == ""
        assert (lab.tree("developer", S) / "README").read_text() != "late\n"
    else:
        assert swarm.worktrees.drain_pool() == 1
    (kept,) = (lab.root / ".swarm/salvage").glob("s/developer/*/late")
    assert (kept / ("README" if how == "changed" else "late.txt")).read_text() == "late\n"
    assert any("kept whole" in str(line["outcome"]) for line in swarm.operations())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_whatever_an_agent_left_nothing_of_it_comes_out_of_the_pool(tmp_path: Path, kind: Kind) -> None:
    lab = Lab(tmp_path)
    if kind.prepare is not None:
        kind.prepare(lab)
    swarm = opened(lab, worktrees__durable=False, **kind.flags)
    swarm.create("feature-x", ["developer"])
    tree = lab.tree("developer")
    kind.make(lab, tree)
    if kind.damage is not None:
        kind.damage(tree)
    swarm.cleanup(["feature-x"], force=True)
    parks(lab)

    new = swarm.create("other", ["developer"]).agents[0].path
    assert lab.git("status", "--porcelain", "--ignored", "--untracked-files=all", cwd=new).split("\n") in (
        ["!! CLAUDE.local.md"],
        [""],  # the project has one of its own
    )
    assert lab.git("rev-parse", "HEAD", cwd=new) == lab.git("rev-parse", "HEAD")
    assert lab.git("diff-files", "--name-only", cwd=new) == ""
    assert not any("changed" in str(line["outcome"]) for line in swarm.operations())


def test_the_pool_is_bounded_by_number_size_and_age(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = opened(lab, worktrees__pool=2)
    swarm.create(S, ["developer:3"])
    swarm.cleanup([S])
    parks(lab)
    assert len(swarm.worktrees.pool()) == 2
    small = opened(lab, worktrees__pool=2, worktrees__pool_size=max(one.size for one in swarm.worktrees.pool()))
    small.recover()
    assert len(swarm.worktrees.pool()) == 1
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now + 8 * 86_400 * 10**9)
    swarm.recover()
    assert swarm.worktrees.pool() == ()
    assert not (lab.root / ".swarm/pool").exists()
    assert not list((lab.root / ".swarm/trash").glob("*"))


def test_without_the_setting_there_is_no_pool(lab: Lab) -> None:
    assert parked_by(lab, worktrees__pool=0).worktrees.pool() == ()
    assert not (lab.root / ".swarm/pool").exists()


def test_cleanup_all_empties_the_pool_and_nothing_is_left(lab: Lab) -> None:
    swarm = parked_by(lab)
    swarm.create("two", ["reviewer:2"])
    assert swarm.worktrees.pool() == ()
    swarm.cleanup(["two"])
    parks(lab)
    assert len(swarm.worktrees.pool()) == 2
    swarm.create("three", ["reviewer"])
    swarm.cleanup(everything=True)
    parks(lab)

    assert swarm.worktrees.pool() == ()
    assert not (lab.root / ".worktrees").exists()
    assert not (lab.root / ".swarm/pool").exists()
    assert not list((lab.root / ".swarm/trash").glob("*"))


def test_another_umask_takes_new_worktrees(lab: Lab) -> None:
    swarm = parked_by(lab)
    before = os.umask(0o077)
    try:
        swarm.create(S, ["developer"])
    finally:
        os.umask(before)
    assert (lab.tree("developer", S) / "README").stat().st_mode & 0o777 == 0o600


def test_doctor_and_the_command_line_show_the_pool(lab: Lab) -> None:
    swarm = parked_by(lab)
    (check,) = (one for one in swarm.doctor() if one.name == "pool")
    assert (check.state, "1 worktree of at most 8" in check.text) == ("ok", True)
    found: Any = swarm.worktrees.pool()
    assert found[0].parked_ms <= time.time_ns() // 1_000_000


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)
