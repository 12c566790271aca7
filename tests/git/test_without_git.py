"""What swarm writes itself instead of git is what git writes, byte for byte; what is unusual goes to git."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm
from swarm.git import gitdir
from swarm.git.discover import discover
from swarm.git.errors import BranchExists, GitBroken
from swarm.git.repository import Git
from swarm.git.running.runner import GitRunner
from swarm.git.running.started import Started
from swarm.git.shortcuts import copying, objects, ordinary, register
from swarm.kit import files as fsio
from swarm.kit.errors import SwarmError
from swarm.project import lock
from swarm.project.errors import NameCollision
from swarm.project.layout import RECORD_COPY
from swarm.testing.lab import Lab
from swarm.worktrees import transaction
from tests.support.descriptors import open_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from swarm.git.running.started import Started

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.write({"ü ö.txt": "umlauts\n", "empty": "", "deep/er/still/file": b"\0\r\n\xff", "crlf.txt": "a\r\nb\r\n"})
    (lab.root / "link").symlink_to("README")
    (lab.root / "dangling").symlink_to("no/such")
    (lab.root / "deep/run").write_text("#!/bin/sh\n")
    (lab.root / "deep/run").chmod(0o755)
    lab.commit("second")
    return lab


def picture(lab: Lab, agent: str) -> dict[str, Any]:
    """Return all there is to see of a worktree: every file and mode, git's notes, the index."""
    tree = lab.tree(agent, "s")
    admin = gitdir.pointer_of(tree)
    assert admin is not None
    found: dict[str, Any] = {}
    for name, top in (("tree", tree), ("admin", admin)):
        for where, folders, files in os.walk(top):
            for entry in (*folders, *files):
                path = os.path.join(where, entry)
                info = os.lstat(path)
                content: object = None
                if stat.S_ISLNK(info.st_mode):
                    content = os.readlink(path)
                elif stat.S_ISREG(info.st_mode) and entry != "index":
                    with open(path, "rb") as file:
                        content = re.sub(rb"> \d+ [+-]\d{4}", b"> TIME", file.read())
                kept = stat.S_IFMT(info.st_mode) if stat.S_ISLNK(info.st_mode) else info.st_mode
                found[f"{name}/{os.path.relpath(path, top)}"] = (kept, content)
    del found[f"admin/{RECORD_COPY}"]  # swarm's own, with times in it
    found.pop("admin/refs", None)  # an empty folder, which git makes since 2.46, and else when it needs it
    found["index"] = lab.git("ls-files", "--stage", "-v", "-t", cwd=tree)
    found["status"] = lab.git("status", "--porcelain=v2", "--branch", "--ignored", cwd=tree)
    found["index tree"] = lab.git("write-tree", cwd=tree)
    return found


def made_by(lab: Lab, monkeypatch: pytest.MonkeyPatch, *, by_git: bool) -> dict[str, Any]:
    """Make a set, look, and remove it."""
    with monkeypatch.context() as patch:
        if by_git:
            patch.setattr(Git, "look_closely", lambda self, since=None: None)
        lab.swarm.create("s", ["developer", "reviewer"])
    found = picture(lab, "developer")
    lab.swarm.cleanup(["s"])
    return found


def spied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note what swarm does itself."""
    done: list[str] = []

    def note(module: Any, name: str) -> None:
        real: Callable[..., Any] = getattr(module, name)

        def noting(*args: Any, **words: Any) -> Any:
            result = real(*args, **words)
            if result is not False:
                done.append(name)
            return result

        monkeypatch.setattr(module, name, noting)

    note(register, "register")
    note(copying, "copy")
    return done


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_worktree_is_as_git_makes_it(lab: Lab, monkeypatch: pytest.MonkeyPatch, umask: int) -> None:
    before = os.umask(umask)
    try:
        theirs = made_by(lab, monkeypatch, by_git=True)
        done = spied(monkeypatch)
        ours = made_by(lab, monkeypatch, by_git=False)
    finally:
        os.umask(before)
    assert done == ["register", "register", "copy"]
    assert {k: v for k, v in ours.items() if theirs.get(k) != v} == {
        k: v for k, v in theirs.items() if ours.get(k) != v
    }


def test_without_logs_there_are_none(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.git("config", "core.logAllRefUpdates", "false")
    theirs = made_by(lab, monkeypatch, by_git=True)
    ours = made_by(lab, monkeypatch, by_git=False)
    assert ours == theirs
    assert not any("logs" in path for path in ours)


def test_git_believes_the_new_index_and_finds_the_repository_sound(lab: Lab) -> None:
    made = lab.swarm.create("s", ["developer"])
    tree = made.agents[0].path
    assert lab.git("diff-files", "--name-only", cwd=tree) == ""  # without a refresh: every entry fits its file
    assert lab.git("fsck", "--strict", cwd=tree) == ""
    assert lab.git("worktree", "prune", "-v", "--dry-run") == ""
    assert lab.git("worktree", "repair") == ""
    lab.write({"README": "changed\n"}, tree)
    lab.commit("work", cwd=tree)
    assert lab.git("status", "--porcelain", cwd=tree) == ""


@pytest.mark.parametrize(
    "setting",
    [
        "core.autocrlf=true",
        "core.eol=crlf",
        "core.symlinks=false",
        "core.sharedRepository=group",
        "core.sparseCheckout=true",
        "feature.manyFiles=true",
        "index.version=4",
        "extensions.worktreeConfig=true",
        "worktree.useRelativePaths=true",
        "includeIf.onbranch:swarm/**.path=/dev/null",
    ],
)
def test_unusual_settings_are_left_to_git(lab: Lab, monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    key, _, value = setting.partition("=")
    lab.git("config", key, value)
    done = spied(monkeypatch)
    lab.swarm.create("s", ["developer"])
    assert done == []


@pytest.mark.parametrize(
    ("line", "copies"),
    [
        ("* text=auto\n", True),
        ("*.png binary\n", True),
        ("*.py diff=python linguist-language=Python export-ignore\n", True),
        ("*.txt eol=lf\n", True),
        ("*.txt eol=crlf\n", False),
        ("*.txt ident\n", False),
        ("*.txt filter=lfs\n", False),
        ("*.wide working-tree-encoding=UTF-16\n", False),
        ("[attr]odd eol=crlf\n*.txt odd\n", False),
    ],
)
@pytest.mark.parametrize("where", [".gitattributes", "deep/.gitattributes", ".git/info/attributes", "home"])
def test_files_that_attributes_change_are_left_to_git(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, line: str, copies: bool, where: str
) -> None:
    if where == "deep/.gitattributes":
        lab.write({"deep/some.txt": "x\n", "deep/some.wide": "x\n".encode("utf-16")})
        line = line if "[attr]" not in line else "*.txt eol=crlf\n"  # git takes those at the top only
    path = lab.root.parent / "home/.config/git/attributes" if where == "home" else lab.root / where
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(line)
    lab.write({"some.wide": "x\n".encode("utf-16")})
    lab.write({"some.txt": "x $Id$\n"})
    lab.git("config", "filter.lfs.smudge", "sed s/x/smudged/")
    lab.git("config", "filter.lfs.clean", "sed s/smudged/x/")
    lab.commit("attributes")
    done = spied(monkeypatch)
    left: list[Path] = []
    by_git = Git._fill_by_git

    def fill_by_git(self: Git, trees: Sequence[Path], when_ns: int) -> None:
        left.extend(trees)
        by_git(self, trees, when_ns)

    monkeypatch.setattr(Git, "_fill_by_git", fill_by_git)
    tree = lab.swarm.create("s", ["developer"]).agents[0].path
    assert done == ["register", "copy"]
    assert left or copies  # git writes also what the main checkout does not have as committed
    assert lab.git("diff-files", "--name-only", cwd=tree) == ""
    ours = picture(lab, "developer")
    lab.swarm.cleanup(["s"])
    assert ours == made_by(lab, monkeypatch, by_git=True)


def test_what_main_does_not_have_as_committed_comes_from_git(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = made_by(lab, monkeypatch, by_git=True)
    lab.write({"README": "the user's edit\n"})
    (lab.root / "empty").unlink()
    (lab.root / "run.sh").unlink()
    os.mkfifo(lab.root / "run.sh")
    (lab.root / "link").unlink()
    (lab.root / "link").write_text("a file now\n")
    done = spied(monkeypatch)
    ours = made_by(lab, monkeypatch, by_git=False)
    assert "copy" in done
    assert ours == theirs


def test_an_edit_that_git_cannot_see_does_not_spread(lab: Lab) -> None:
    path = lab.root / "README"
    info = path.stat()
    lab.git("update-index", "--assume-unchanged", "README")
    path.write_text("HELLO\n")
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    tree = lab.swarm.create("s", ["developer"]).agents[0].path
    assert (tree / "README").read_text() == "hello\n"
    assert lab.git("ls-files", "-v", "README", cwd=tree) == "H README"  # the mark is for the user's tree


@pytest.mark.parametrize("what", ["staged", "removed", "intent", "conflict", "other base", "no index"])
def test_an_index_that_is_not_the_commit_is_not_used(lab: Lab, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    base = None
    if what == "staged":
        lab.write({"README": "staged\n"})
        lab.git("add", "README")
    elif what == "removed":
        lab.git("rm", "--quiet", "--cached", "README")
    elif what == "intent":
        lab.write({"new": "x\n"})
        lab.git("add", "--intent-to-add", "new")
    elif what == "other base":
        base = "HEAD~1"
    elif what == "no index":
        (lab.root / ".git/index").unlink()
    else:
        lab.write({"README": "mine\n"})
        lab.commit("mine")
        lab.git("switch", "--quiet", "-c", "side", "HEAD~1")
        lab.write({"README": "other\n"})
        lab.commit("other")
        lab.git("merge", "main", check=False)
    done = spied(monkeypatch)
    tree = lab.swarm.create("s", ["developer"], base=base).agents[0].path
    assert done == ["register"]
    assert lab.git("status", "--porcelain", cwd=tree) == ""


def test_a_name_that_is_taken_is_left_to_git(lab: Lab, tmp_path: Path) -> None:
    other = tmp_path / "developer-s"
    lab.git("worktree", "add", "--quiet", "--detach", str(other))
    tree = lab.swarm.create("s", ["developer"]).agents[0].path
    assert lab.git("status", "--porcelain", cwd=tree) == lab.git("status", "--porcelain", cwd=other) == ""
    assert {path.name for path in (lab.root / ".git/worktrees").iterdir()} == {"developer-s", "developer-s1"}


def test_a_folder_that_git_has_just_begun_is_not_replaced(tmp_path: Path) -> None:
    fresh, taken = tmp_path / "fresh", tmp_path / "taken"
    fresh.mkdir()
    taken.mkdir()
    with pytest.raises(FileExistsError):
        fsio.rename_new(fresh, taken)
    fsio.rename_new(fresh, tmp_path / "free")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["free", "taken"]


def test_a_git_that_removes_the_last_other_worktree_meanwhile_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "aside").mkdir()
    rename, gone = fsio.rename_new, [True]

    def without_the_folder(source: Path, target: Path) -> None:
        if gone and gone.pop():
            target.parent.rmdir()  # as git does
        rename(source, target)

    monkeypatch.setattr(fsio, "rename_new", without_the_folder)
    tree = tmp_path / "tree"
    assert register.register(
        tmp_path / "common", tree, branch="b", commit="0" * 40, reason="", aside=tmp_path / "aside"
    )
    assert (tmp_path / "common/worktrees/tree/gitdir").read_text() == f"{tree}/.git\n"
    assert not gone


def test_packed_marks_are_deleted_by_git(lab: Lab) -> None:
    common, tip = lab.root / ".git", lab.git("rev-parse", "HEAD")
    lab.git("update-ref", "refs/swarm/op/x", tip)
    assert not gitdir.drop_ref(common, "refs/swarm/op/x", "1" * 40)  # it says something else
    (common / "packed-refs.lock").touch()
    assert not gitdir.drop_ref(common, "refs/swarm/op/x", tip)
    (common / "packed-refs.lock").unlink()
    lab.git("pack-refs", "--all")
    assert not gitdir.drop_ref(common, "refs/swarm/op/x", tip)
    lab.git("update-ref", "refs/swarm/op/x", lab.git("rev-parse", "HEAD~1"))  # a file, and packed
    assert not gitdir.drop_ref(common, "refs/swarm/op/x", lab.git("rev-parse", "HEAD~1"))
    lab.git("update-ref", "-d", "refs/swarm/op/x")
    lab.git("update-ref", "refs/swarm/op/x", tip)
    assert gitdir.drop_ref(common, "refs/swarm/op/x", tip)
    assert lab.git("for-each-ref", "refs/swarm/op") == ""
    assert list(common.rglob("*.lock")) == []


def test_an_index_of_another_kind_is_left_to_git(lab: Lab) -> None:
    sha256 = lab.root.parent / "other"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(sha256)], env=lab.env, check=True)
    (sha256 / "f").write_text("x\n")
    lab.commit("one", cwd=sha256)
    assert copying.read(sha256 / ".git/index") is None


def git_commands(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the git commands that swarm runs from now on."""
    ran: list[str] = []
    real = GitRunner._start

    def noting(self: GitRunner, args: Sequence[str], *how: Any) -> Started:
        ran.append(args[0])
        return real(self, args, *how)

    monkeypatch.setattr(GitRunner, "_start", noting)
    return ran


@pytest.mark.parametrize("agents", [1, 5])
def test_an_ordinary_set_takes_four_gits_however_many_agents(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, agents: int
) -> None:
    swarm = lab.swarm
    swarm.create("first", ["reviewer"])  # git's version is known by now
    aged(lab)
    ran = git_commands(monkeypatch)
    lab.swarm.create("s", [f"developer:{agents}"])
    assert sorted(ran) == ["check-attr", "config", "rev-parse", "update-ref"]
    (lab.root / "new").touch()
    ran.clear()
    lab.swarm.create("t", [f"developer:{agents}"])
    assert sorted(ran) == ["check-attr", "config", "rev-parse", "status", "update-ref"]


def test_head_is_told_by_files_only_where_they_are_sure(lab: Lab) -> None:
    def glance() -> Any:
        git: Any = lab.swarm._world.git
        return git.glance(("deep", "deep/er", "dee", "README", ".swarm"))

    tip, tree = lab.git("rev-parse", "HEAD"), lab.git("rev-parse", "HEAD^{tree}")
    assert glance() == (tip, tree, {"deep", "deep/er", "README"})
    opened: Any = lab.swarm._world.git
    lab.commit("meanwhile")
    assert opened.glance(()) is None  # what was known at the opening is another commit
    lab.git("pack-refs", "--all")
    assert glance() is None
    lab.git("switch", "--quiet", "--detach")
    assert glance() is None


def test_refs_are_read_again_when_another_swarm_was_at_work(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    late = lab.swarm
    real = transaction.recover

    def recover(world: Any, known: Any, *, wait: bool) -> Any:  # below the lock, after the first look
        monkeypatch.setattr(transaction, "recover", real)
        lab.git("branch", "swarm/Developer-s")
        world.journal.log(operation="another")
        return real(world, known, wait=wait)

    monkeypatch.setattr(transaction, "recover", recover)
    with pytest.raises(NameCollision, match="differs from the existing"):
        late.create("s", ["developer"])


# --- what is seen in files instead of asked of git ----------------------------------------------------


def opened(lab: Lab) -> Git:
    git = Git(discover(lab.root, lab.env), GitRunner(lab.root, environ=lab.env))
    git.version()
    return git


def is_untouched(lab: Lab) -> bool:
    """Return what files tell; it must never contradict git."""
    seen, status = opened(lab).is_untouched(), lab.git("status", "--porcelain")
    assert not (seen and status), status
    return seen


def aged_files(lab: Lab) -> None:
    for path in (lab.root, *lab.root.rglob("*")):
        if ".git" not in path.parts:
            os.utime(path, ns=(10**18, 10**18), follow_symlinks=False)


def aged(lab: Lab) -> None:
    """Make the checkout old enough that times tell something."""
    aged_files(lab)
    lab.git("read-tree", "HEAD")  # forget all times: git alone would not note those of the same second again
    lab.git("update-index", "-q", "--refresh")


def test_a_checkout_is_untouched_only_if_git_says_so(lab: Lab) -> None:
    aged(lab)
    assert is_untouched(lab)
    lab.swarm.create("s", ["developer"])
    assert is_untouched(lab)  # swarm's own folders hide themselves

    (lab.root / "deep/new").touch()
    assert not is_untouched(lab)
    (lab.root / "deep/new").unlink()
    (lab.root / "empty folder").mkdir()
    assert not is_untouched(lab)  # git would not mind: it is asked
    (lab.root / "empty folder").rmdir()
    (lab.root / "deep/run").chmod(0o644)
    assert not is_untouched(lab)
    (lab.root / "deep/run").chmod(0o755)
    aged(lab)
    assert is_untouched(lab)

    (lab.root / "README").write_bytes((lab.root / "README").read_bytes().swapcase())
    os.utime(lab.root / "README", ns=(10**18, 10**18))
    assert not is_untouched(lab)
    lab.git("checkout", "-q", "README")
    (lab.root / "link").unlink()
    assert not is_untouched(lab)
    lab.git("checkout", "-q", "link")
    lab.git("rm", "-q", "--cached", "empty")
    assert not is_untouched(lab)
    lab.git("reset", "-q", "--hard")
    aged(lab)
    lab.git("update-index", "--assume-unchanged", "README")
    assert not is_untouched(lab)


def test_a_file_of_the_moment_of_its_index_is_not_believed(lab: Lab) -> None:
    aged(lab)
    index = lab.root / ".git/index"
    os.utime(index, ns=(10**18, 10**18))
    assert not is_untouched(lab)


def test_refs_are_seen_in_files_as_git_lists_them(lab: Lab) -> None:
    for name in ("swarm/a-s", "swarm/b/c", "other", "swarm-not"):
        lab.git("branch", name)
    lab.git("pack-refs", "--all")
    lab.git("tag", "-a", "-m", "peeled", "v1")
    lab.git("pack-refs", "--all")
    lab.git("branch", "swarm/loose")
    lab.git("branch", "-D", "swarm/b/c")
    lab.git("update-ref", "refs/swarm/op", "HEAD")
    names = ["refs/heads/swarm", "refs/swarm", "refs/swarm/op", "refs/heads/other"]

    seen = gitdir.refs_around(lab.root / ".git", names, "refs/heads/swarm")

    assert seen is not None
    assert set(seen) == {"refs/heads/swarm/a-s", "refs/heads/swarm/loose", "refs/swarm/op", "refs/heads/other"}
    (lab.root / ".git/refs/heads/swarm/odd").symlink_to("loose")
    assert gitdir.refs_around(lab.root / ".git", names, "refs/heads/swarm") is None
    assert opened(lab).refs_around(names, "refs/heads/swarm") == {*seen, "refs/heads/swarm/odd"}
    lab.git("symbolic-ref", "refs/heads/swarm/odd", "refs/heads/swarm/loose")
    assert gitdir.refs_around(lab.root / ".git", names, "refs/heads/swarm") is None


def test_objects_are_seen_in_files_and_packs_and_missed_where_they_are_not(lab: Lab) -> None:
    git = opened(lab)
    folder = lab.root / ".git/objects"
    names = [bytes.fromhex(oid) for oid in lab.git("ls-files", "--format=%(objectname)").split()]
    loose = objects.Presence(git.runner, folder, names)
    assert (loose.asked, loose.missing()) == (None, ())
    lab.git("gc", "-q")
    packed = objects.Presence(git.runner, folder, names)
    assert (packed.asked, packed.missing()) == (None, ())

    gone = objects.Presence(git.runner, folder, [*names, b"\x11" * 20])
    assert gone.missing() == ("11" * 20,)
    for pack in folder.glob("pack/*.pack"):
        pack.unlink()
    assert set(objects.Presence(git.runner, folder, names).missing()) == {name.hex() for name in names}


def test_a_checkout_is_compared_with_what_is_checked_out_now(lab: Lab) -> None:
    lab.write({"README": "second\n"})
    lab.commit("again")
    aged(lab)
    git = opened(lab)
    assert git.is_untouched()
    lab.git("reset", "--quiet", "--soft", "HEAD~1")  # the index is still the tree that was known at the opening
    assert lab.git("status", "--porcelain") == "M  README"
    assert not git.is_untouched()


def test_what_another_worktree_has_is_no_measure_for_the_main_checkout(lab: Lab, tmp_path: Path) -> None:
    other = tmp_path / "other"
    lab.git("worktree", "add", "--quiet", "-b", "side", str(other))
    lab.write({"README": "second\n"}, other)
    lab.commit("side", cwd=other)
    lab.git("checkout", "--quiet", "side", "--", ".")  # staged in main: exactly what the side has
    lab.git("read-tree", "side")
    lab.git("update-index", "-q", "--refresh")
    aged_files(lab)
    lab.git("update-index", "-q", "--refresh")
    git = Git(discover(other, lab.env), GitRunner(lab.root, environ=lab.env))
    assert git.place.tree == lab.git("write-tree")
    assert lab.git("status", "--porcelain") == "M  README"
    assert not git.is_untouched()
    assert git.glance(()) is None
    report = Swarm.open(other, environ=lab.env).create("s", ["developer"])
    assert report.base == lab.git("rev-parse", "main")
    assert any("uncommitted" in warning for warning in report.warnings)
    assert (report.agents[0].path / "README").read_text() == "hello\n"


@pytest.mark.parametrize(
    ("lines", "hides"),
    [("*\n", True), ("# why\n*", True), ("foo\n", False), ("*\n!bar\n", False), ("*\r\n", False), ("", False)],
)
def test_a_folder_hides_itself_only_with_a_line_that_hides_all(lab: Lab, lines: str, hides: bool) -> None:
    aged(lab)
    lab.write({".worktrees/.gitignore": lines, ".worktrees/bar": "of the user's\n"})
    assert is_untouched(lab) is hides
    if hides:
        file = lab.root / ".worktrees/.gitignore"
        file.rename(lab.root.parent / "elsewhere")
        file.symlink_to(lab.root.parent / "elsewhere")
        assert not is_untouched(lab)


def test_an_object_that_is_read_in_place_of_another_is_left_to_git(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    for pack in (False, True):
        lab.git("replace", "-f", lab.git("rev-parse", "HEAD:README"), lab.git("rev-parse", "HEAD:src/app.py"))
        if pack:
            lab.git("pack-refs", "--all")
        done = spied(monkeypatch)
        tree = lab.swarm.create("s", ["developer"]).agents[0].path
        assert done == []
        assert (tree / "README").read_text() == "print('app')\n"  # as git itself writes it
        lab.swarm.cleanup(["s"], force=True)


@pytest.mark.parametrize(
    "packed",
    [b"garbage\n", b"# pack-refs with: sorted \nzz\n", b"%040d refs/heads/unfinished" % 1, b"\0", b"%040d\n" % 1],
)
def test_packed_refs_that_git_cannot_read_tell_nothing(lab: Lab, packed: bytes) -> None:
    common = lab.root / ".git"
    (common / "packed-refs").write_bytes(packed)
    assert gitdir.refs_around(common, ("refs/swarm",), "refs/heads/swarm") is None
    before = sorted(os.listdir(common))
    with pytest.raises(GitBroken):
        lab.swarm.create("s", ["developer"])
    assert sorted(os.listdir(common)) == before
    assert not (lab.root / ".swarm").exists()


def test_a_ref_that_is_packed_while_one_looks_is_not_missed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.git("branch", "swarm/a")
    real = os.scandir

    def scandir(path: Any) -> Any:  # the first look below refs/heads/swarm; git packs at that moment
        monkeypatch.setattr(os, "scandir", real)
        entries = real(path)
        lab.git("pack-refs", "--all", "--prune")
        return entries

    monkeypatch.setattr(os, "scandir", scandir)
    seen = gitdir.refs_around(lab.root / ".git", (), "refs/heads/swarm")
    assert seen is not None
    assert set(seen) == {"refs/heads/swarm/a"}


def test_with_logs_of_all_refs_nothing_stays_of_the_mark(lab: Lab) -> None:
    lab.git("config", "core.logAllRefUpdates", "always")
    lab.swarm.create("s", ["developer"])
    assert not (lab.root / ".git/logs/refs/swarm/op").exists()


@pytest.mark.parametrize("kind", ["intent", "skip", "split", "sparse", "conflict", "version 4", "cut", "pipe"])
def test_an_index_that_says_less_than_all_is_not_read(lab: Lab, kind: str) -> None:
    index = lab.root / ".git/index"
    assert copying.read(index) is not None
    if kind == "intent":
        lab.write({"new": "x\n"})
        lab.git("add", "--intent-to-add", "new")
    elif kind == "skip":
        lab.git("update-index", "--skip-worktree", "README")
    elif kind == "split":
        lab.git("update-index", "--split-index")
    elif kind == "sparse":
        lab.git("sparse-checkout", "set", "--cone", "--sparse-index", "src")
    elif kind == "conflict":
        oid = lab.git("rev-parse", "HEAD:README")
        lab.git("rm", "--quiet", "--cached", "README")
        entries = "".join(f"100644 {oid} {stage}\tREADME\n" for stage in (1, 2, 3))
        subprocess.run(
            ["git", "update-index", "--index-info"], cwd=lab.root, env=lab.env, input=entries.encode(), check=True
        )
    elif kind == "version 4":
        lab.git("update-index", "--index-version", "4")
    elif kind == "cut":
        index.write_bytes(index.read_bytes()[:-1])
    else:
        index.unlink()
        os.mkfifo(index)
    assert copying.read(index) is None
    assert not opened(lab).is_untouched() if kind != "pipe" else True


def test_a_question_that_nobody_listens_to_does_not_keep_the_lock(lab: Lab, tmp_path: Path) -> None:
    """One thread asks while another works below the lock; the answer is read after that one has let go."""
    runner = GitRunner(lab.root, environ=lab.env)
    with lock.hold(tmp_path / "lock", command="first", timeout=0) as fd:
        runner.bind_lock(fd)
        asked = runner.begin("cat-file", "--batch-check", stdin=b"HEAD\n" * 5000)  # more than a pipe holds
        runner.bind_lock(None)
    with lock.hold(tmp_path / "lock", command="second", timeout=0):
        assert asked.result().count(b" commit ") == 5000


def test_the_lock_is_not_closed_while_it_is_handed_on(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = GitRunner(lab.root, environ=lab.env)
    held = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    closed = threading.Event()
    real = subprocess.Popen

    def let_go() -> None:
        runner.bind_lock(None)
        os.close(held)
        closed.set()

    other = threading.Thread(target=let_go)

    def starting(*args: Any, **words: Any) -> Any:
        monkeypatch.setattr(subprocess, "Popen", real)
        other.start()
        assert not closed.wait(0.2)
        return real(*args, **words)

    runner.bind_lock(held)
    monkeypatch.setattr(subprocess, "Popen", starting)
    assert runner.ask("rev-parse", "HEAD").strip().decode() == lab.git("rev-parse", "HEAD")
    other.join()
    assert closed.is_set()


@pytest.mark.parametrize("what", ["HEAD:README", "HEAD:deep", "HEAD:deep/er/still", "HEAD:empty"])
@pytest.mark.parametrize("damage", ["gone", "emptied"])
def test_an_object_that_a_damaged_repository_lacks_is_noticed_as_git_would(lab: Lab, what: str, damage: str) -> None:
    oid = lab.git("rev-parse", what)
    path = lab.root / ".git/objects" / oid[:2] / oid[2:]
    path.unlink()
    if damage == "emptied":
        path.touch()
    before = lab.git("for-each-ref")
    with pytest.raises(SwarmError) as caught:
        lab.swarm.create("s", ["developer"])
    assert caught.value.code in {"GIT_BROKEN", "GIT_FAILED"}
    assert oid in f"{caught.value} {caught.value.details}"
    assert lab.git("for-each-ref") == before
    assert not (lab.root / ".worktrees").exists()


def test_in_a_damaged_repository_a_half_made_tree_is_taken_back_and_every_file_in_it_kept(lab: Lab) -> None:
    trees, commit, half = lab.swarm._world.trees, lab.git("rev-parse", "HEAD"), lab.root.parent / "half"
    half.mkdir()
    (half / "CLAUDE.local.md").write_text("placed\n")
    (half / "README").write_text("hel")  # git was writing it
    (half / "src").mkdir()
    (half / "src/app.py").write_text("print('app')\n")
    assert trees.foreign(half, commit, ("CLAUDE.local.md",)) == ()
    for what, told in (("HEAD:README", ("README",)), ("HEAD:src", ("README", "src/app.py"))):
        oid = lab.git("rev-parse", what)
        (lab.root / ".git/objects" / oid[:2] / oid[2:]).unlink()
        assert trees.foreign(half, commit, ("CLAUDE.local.md",)) == told


def test_an_answer_is_asked_for_again(lab: Lab) -> None:
    presence = objects.Presence(opened(lab).runner, lab.root / ".git/objects", [b"\x11" * 20])
    assert presence.missing() == presence.missing() == ("11" * 20,)


@pytest.mark.parametrize("changed", ["config", "info/attributes", "index", "nothing"])
def test_a_look_is_used_again_only_while_nothing_it_saw_changed(lab: Lab, changed: str) -> None:
    git: Any = opened(lab)
    git.look_closely("now")
    first = git._look
    if changed != "nothing":
        path = lab.root / ".git" / changed
        path.write_bytes(path.read_bytes() + b"\n" if path.exists() else b"* -text\n")
    git.look_closely("now")
    assert (git._look is first) == (changed == "nothing")
    git.look_closely("later")  # another swarm was at work
    assert git._look is not first
    git.stop_looking()
    assert git._look is None
    assert git.runner._running == {}


def test_a_signal_between_two_questions_leaves_neither_running(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, after the first was begun and before the second."""
    swarm = lab.swarm
    git: Any = swarm._world.git

    def interrupted(*_args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(ordinary, "ask_attributes", interrupted)
    descriptors = open_descriptors()
    with pytest.raises(KeyboardInterrupt):
        swarm.create("s", ["developer"])
    assert git.runner._running == {}
    assert open_descriptors() == descriptors
    assert not (lab.root / ".swarm").exists()


def test_a_refusal_ends_the_questions_that_were_begun(lab: Lab) -> None:
    lab.git("branch", "swarm/developer-s")
    swarm = lab.swarm
    git: Any = swarm._world.git
    descriptors = open_descriptors()
    for _ in range(3):
        with pytest.raises(BranchExists):
            swarm.create("s", ["developer"])
        assert git.runner._running == {}
    assert open_descriptors() == descriptors
