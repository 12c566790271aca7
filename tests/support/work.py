"""Kinds of work that an agent can leave in its worktree, and how to tell whether it is all there.

Each kind says what a cleanup must list as a risk, and what a restore may not bring back and why.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from swarm.testing.lab import file_digests
from swarm.worktrees.reports import RiskKind as R

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from swarm.testing.lab import Lab

BRANCH = "swarm/developer-feature-x"


@dataclass(frozen=True)
class Kind:
    """One kind of work.

    Attributes:
        make: does it; gets the lab and the agent's worktree.
        risks: what plain cleanup must list; with none it succeeds.
        flags: settings for this kind.
        prepare: something to do to the repository before the set is made.
        lost: files that do not come back, and are announced.
        unlike: parts of the state (see ``state_of``) that are not as before, with the reason.
        after: tried on the restored tree: what was in progress can go on.
        damage: done to the worktree itself after the work; a restore mends it.
    """

    name: str
    make: Callable[[Lab, Path], object]
    risks: frozenset[R] = frozenset()
    flags: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Lab], object] | None = None
    lost: tuple[str, ...] = ()
    unlike: Mapping[str, str] = field(default_factory=dict)
    after: Callable[[Lab, Path], object] | None = None
    damage: Callable[[Path], object] | None = None


KINDS: list[Kind] = []


def kind(
    *risks: R, name: str = "", **more: Any
) -> Callable[[Callable[[Lab, Path], object]], Callable[[Lab, Path], object]]:
    """Register a function as a kind of work; its name is the kind's."""

    def register(make: Callable[[Lab, Path], object]) -> Callable[[Lab, Path], object]:
        KINDS.append(Kind(name or make.__name__, make, frozenset(risks), **more))
        return make

    return register


# --- existing parts --------------------------------------------------------------------------------


def state_of(lab: Lab, tree: Path) -> dict[str, Any]:
    """Return everything about a worktree that a restore must bring back. Changes nothing."""
    quiet = {"GIT_OPTIONAL_LOCKS": "0"}

    def git(*args: str) -> str:
        return lab.git(*args, cwd=tree, check=False, env=quiet)

    admin = lab.root / ".git" / "worktrees" / tree.name
    return {
        "files": file_digests(tree, skip={".git"}),
        "index": git("ls-files", "--stage", "-v", "-z").split("\0"),
        "status": git("status", "--porcelain=v2", "--branch", "--ignored", "--untracked-files=all", "-z").split("\0"),
        "head": (admin / "HEAD").read_text(),
        "commit": git("rev-parse", "--verify", "--quiet", "HEAD"),
        "log of HEAD": _text(admin / "logs" / "HEAD"),
        "branch": lab.git("for-each-ref", f"refs/heads/{BRANCH}"),
        "log of the branch": _text(lab.root / ".git/logs/refs/heads" / BRANCH),
        "own refs": git("for-each-ref", "refs/worktree", "refs/bisect", "refs/rewritten"),
        "branch settings": lab.git("config", "--local", "--get-regexp", r"^branch\.swarm/", check=False),
        "own settings": _text(admin / "config.worktree"),
        "lock": _text(admin / "locked"),
        "notes": sorted(
            str(path.relative_to(admin)) for path in admin.rglob("*") if path.is_file() and not _passing(path)
        ),
    }


def _passing(path: Path) -> bool:
    """Whether a file of an admin folder says nothing about the work: git makes it as it goes."""
    return path.name.endswith(".lock") or path.name in {"AUTO_MERGE", "FETCH_HEAD"} or "modules" in path.parts


def _text(path: Path) -> str:
    return path.read_text(errors="surrogateescape") if path.is_file() else ""


def commits_of(lab: Lab) -> set[str]:
    """Return every commit that anything in the repository knows, logs and half-done operations included."""
    return set(lab.git("rev-list", "--all", "--reflog").split())


def kept_commits(lab: Lab) -> set[str]:
    """Return every commit that a ref keeps."""
    return set(lab.git("rev-list", "--all").split())


# --- plain changes ----------------------------------------------------------------------------------


@kind()
def nothing(lab: Lab, tree: Path) -> None:
    pass


@kind(R.MODIFIED)
def modified(lab: Lab, tree: Path) -> None:
    lab.write({"README": "changed\n"}, tree)


@kind()
def touched(lab: Lab, tree: Path) -> None:
    (tree / "README").touch()


@kind(R.MODIFIED)
def made_executable(lab: Lab, tree: Path) -> None:
    (tree / "README").chmod(0o755)


@kind()
def private_mode(lab: Lab, tree: Path) -> None:
    (tree / "README").chmod(0o600)
    (tree / "src").chmod(0o700)


@kind(R.MODIFIED)
def deleted(lab: Lab, tree: Path) -> None:
    (tree / "src/app.py").unlink()


@kind(R.STAGED)
def renamed_with_git(lab: Lab, tree: Path) -> None:
    lab.git("mv", "README", "READ ME", cwd=tree)


@kind(R.MODIFIED, R.UNTRACKED)
def renamed_by_hand(lab: Lab, tree: Path) -> None:
    (tree / "README").rename(tree / "docs.txt")


@kind(R.STAGED)
def staged(lab: Lab, tree: Path) -> None:
    lab.write({"README": "staged\n", "new.txt": "new\n"}, tree)
    lab.git("add", "README", "new.txt", cwd=tree)


@kind(R.STAGED, R.MODIFIED)
def staged_then_changed(lab: Lab, tree: Path) -> None:
    staged(lab, tree)
    lab.write({"README": "changed again\n"}, tree)


@kind(R.STAGED, R.MODIFIED)
def staged_then_deleted(lab: Lab, tree: Path) -> None:
    staged(lab, tree)
    (tree / "new.txt").unlink()


@kind(R.MODIFIED)
def intent_to_add(lab: Lab, tree: Path) -> None:
    lab.write({"planned.txt": "soon\n"}, tree)
    lab.git("add", "--intent-to-add", "planned.txt", cwd=tree)


@kind(R.STAGED, R.UNTRACKED)
def removed_from_the_index_only(lab: Lab, tree: Path) -> None:
    lab.git("rm", "--quiet", "--cached", "README", cwd=tree)


@kind(R.STAGED)
def only_in_the_index(lab: Lab, tree: Path) -> None:
    oid = lab.git("hash-object", "-w", "--stdin", cwd=tree, env={})
    lab.git("update-index", "--add", "--cacheinfo", f"100644,{oid},ghost.txt", cwd=tree)
    lab.git("update-index", "--skip-worktree", "ghost.txt", cwd=tree)


@kind(R.MODIFIED, R.UNTRACKED)
def file_became_folder(lab: Lab, tree: Path) -> None:
    (tree / "README").unlink()
    lab.write({"README/part one": "1\n", "README/part two": "2\n"}, tree)


@kind(R.MODIFIED, R.UNTRACKED)
def folder_became_file(lab: Lab, tree: Path) -> None:
    (tree / "src/app.py").unlink()
    (tree / "src").rmdir()
    lab.write({"src": "a file now\n"}, tree)


@kind()
def file_became_folder_and_back(lab: Lab, tree: Path) -> None:
    text = (tree / "README").read_text()
    file_became_folder(lab, tree)
    for part in (tree / "README").iterdir():
        part.unlink()
    (tree / "README").rmdir()
    lab.write({"README": text}, tree)


@kind(R.MODIFIED)
def file_became_link(lab: Lab, tree: Path) -> None:
    (tree / "README").unlink()
    (tree / "README").symlink_to("run.sh")


@kind(R.MODIFIED, R.UNTRACKED)
def folder_became_link_to_outside(lab: Lab, tree: Path) -> None:
    outside = lab.root.parent / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("not the agent's\n")
    (tree / "src/app.py").unlink()
    (tree / "src").rmdir()
    (tree / "src").symlink_to(outside)


@kind(R.MODIFIED, unlike={"status": "git took it for unchanged; afterwards it sees the change"})
def same_size_and_time(lab: Lab, tree: Path) -> None:
    path = tree / "README"
    before = path.stat()
    path.write_text("hallo\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def _no_file_mode(lab: Lab) -> None:
    lab.git("config", "core.fileMode", "false")


@kind(prepare=_no_file_mode)
def executable_bit_that_git_ignores(lab: Lab, tree: Path) -> None:
    (tree / "README").chmod(0o755)
    (tree / "run.sh").chmod(0o644)


# --- line ends and filters ------------------------------------------------------------------------


def _crlf(lab: Lab) -> None:
    lab.write({"dos.txt": "one\ntwo\n"})
    lab.commit("a text")
    lab.git("config", "core.autocrlf", "true")


@kind(prepare=_crlf)
def line_ends_as_checked_out(lab: Lab, tree: Path) -> None:
    assert (tree / "dos.txt").read_bytes() == b"one\r\ntwo\r\n"


@kind(R.MODIFIED, prepare=_crlf)  # git status says so too
def line_ends_changed(lab: Lab, tree: Path) -> None:
    (tree / "dos.txt").write_bytes(b"one\ntwo\r\n")


@kind(R.MODIFIED, prepare=_crlf)
def line_ends_and_text_changed(lab: Lab, tree: Path) -> None:
    (tree / "dos.txt").write_bytes(b"one\ntwo\r\nthree\n")


def _filter(lab: Lab) -> None:
    lab.git("config", "filter.upper.clean", "tr A-Z a-z")
    lab.git("config", "filter.upper.smudge", "tr a-z A-Z")
    lab.write({".gitattributes": "*.up filter=upper\n", "text.up": "some text\n"})
    lab.commit("a filter")


@kind(R.MODIFIED, prepare=_filter)
def filtered_file(lab: Lab, tree: Path) -> None:
    assert lab.git("cat-file", "blob", "HEAD:text.up") == "some text"
    assert (tree / "text.up").read_text() == "SOME TEXT\n"
    (tree / "text.up").write_text("Other Text\n")


@kind(prepare=_filter)
def filtered_file_that_git_takes_for_unchanged(lab: Lab, tree: Path) -> None:
    (tree / "text.up").write_text("Some Text\n")


# --- untracked --------------------------------------------------------------------------------------


def _takes_returns(lab: Lab) -> None:
    lab.git("config", "core.autocrlf", "input")


def _attributes(lab: Lab) -> None:
    rules = "*.txt text eol=crlf\n*.id ident\n*.utf working-tree-encoding=UTF-16LE\n*.py text=auto\n*.old crlf\n"
    lab.write({".gitattributes": rules, "as git writes it.txt": "one\ntwo\n"})
    lab.commit("attributes")


def _long_ago(lab: Lab, tree: Path) -> None:
    """Let the index be so much younger than the files that nobody has a reason to look at them again."""
    index = lab.root / ".git/worktrees" / tree.name / "index"
    when = index.stat().st_mtime_ns + 2 * 10**9
    os.utime(index, ns=(when, when))


@kind(prepare=_takes_returns)
def carriage_returns_that_git_took(lab: Lab, tree: Path) -> None:
    lab.write({"a.py": "x\r\n", "sub/b": "y\r\nz\n", "c": "plain\n"}, tree)
    lab.commit("three files", cwd=tree)
    _long_ago(lab, tree)


@kind(prepare=_attributes)
def files_that_attributes_make_the_same(lab: Lab, tree: Path) -> None:
    lab.write({"n.txt": "lf\n", "r.txt": "crlf\r\n", "a.py": "x\r\n", "o.old": "x\r\n", "new\nline.txt": "x\n"}, tree)
    lab.write({"v.id": "$Id$\n", "w.id": "$Id: something else $\n", "u.utf": "\N{SNOWMAN}\n".encode("utf-16-le")}, tree)
    lab.commit("all kinds", cwd=tree)
    lab.write({"a.py": "staged\r\n"}, tree)
    lab.commit("and one more", cwd=tree)
    _long_ago(lab, tree)


@kind(R.UNTRACKED)
def untracked_file(lab: Lab, tree: Path) -> None:
    lab.write({"notes.txt": "mine\n"}, tree)


@kind(R.UNTRACKED)
def untracked_folder(lab: Lab, tree: Path) -> None:
    lab.write({"ideas/one.txt": "1\n", "ideas/deep/two.bin": bytes(range(256)), "ideas/empty": ""}, tree)
    (tree / "ideas/deep/two.bin").chmod(0o640)


@kind()
def empty_folder(lab: Lab, tree: Path) -> None:
    (tree / "later/much later").mkdir(parents=True)
    (tree / "later").chmod(0o750)


@kind(R.UNTRACKED)
def links(lab: Lab, tree: Path) -> None:
    (tree / "to a file").symlink_to("README")
    (tree / "to nothing").symlink_to("no such file")
    (tree / "to outside").symlink_to(lab.root.parent)
    (tree / "to itself").symlink_to("to itself")


@kind(R.UNTRACKED)
def strange_names(lab: Lab, tree: Path) -> None:
    names = [b"new\nline", b'quo"te', b"ta\tb", b"-dash", b"back\\slash", b"caf\xe9", b"\xff\xfe", b" space ", b"*?[x]"]
    for name in (*names, b"ends\r", b'"', "\N{SNOWMAN}".encode()):
        with open(os.path.join(os.fsencode(tree), name), "wb") as file:
            file.write(b"in " + name)
    os.symlink(b"caf\xe9", os.path.join(os.fsencode(tree), b"li\nnk\xe9"))


@kind(R.STAGED)
def strange_names_staged(lab: Lab, tree: Path) -> None:
    strange_names(lab, tree)
    lab.git("add", "--all", cwd=tree)


@kind(R.UNTRACKED)
def names_that_git_refuses(lab: Lab, tree: Path) -> None:
    lab.write({".GIT/file": "1", "git~1": "2", ".git\u200c": "3", "deep/.Git ": "4", ".git.": "5"}, tree)


@kind(R.UNTRACKED, flags={"cleanup__large_file": 1000})
def big_untracked_file(lab: Lab, tree: Path) -> None:
    lab.write({"data/big.bin": os.urandom(5000), "data/small.bin": b"x"}, tree)
    (tree / "data/big.bin").chmod(0o600)


@kind(R.UNTRACKED, prepare=lambda lab: lab.git("config", "core.bigFileThreshold", "100"))
def untracked_file_that_git_streams(lab: Lab, tree: Path) -> None:
    lab.write({"big.txt": "line\r\n" * 100}, tree)


# --- ignored ----------------------------------------------------------------------------------------


@kind(R.PRECIOUS)
def ignored_and_precious(lab: Lab, tree: Path) -> None:
    lab.write({".env": "TOKEN=1\n", "secret/credentials.json": "{}"}, tree)
    (tree / ".env").chmod(0o600)


@kind()
def ignored_small(lab: Lab, tree: Path) -> None:
    lab.write({"debug.log": "line\n", "secret/of/mine": "x"}, tree)


@kind(flags={"cleanup__ignored_file_limit": 1000})
def ignored_big(lab: Lab, tree: Path) -> None:
    lab.write({"trace.log": os.urandom(5000), "secret/dump": os.urandom(2000)}, tree)


@kind(lost=("node_modules",))
def ignored_bulk(lab: Lab, tree: Path) -> None:
    lab.write({"node_modules/a/index.js": "1", "node_modules/.env": "x", "debug.log": "stays"}, tree)


@kind(lost=("build", "dist"))
def names_of_precious_files_among_installed_ones(lab: Lab, tree: Path) -> None:
    lab.write({".gitignore": "build/\ndist/\n*.pyc\n"}, tree)
    lab.commit("ignored", cwd=tree)
    lab.write({"build/_deps/ssl/test.pem": "key", "build/secrets.pyc": "code", "dist/node_modules/a/.env": "x"}, tree)


# --- hidden from git ----------------------------------------------------------------------------------


@kind(R.HIDDEN)
def assume_unchanged(lab: Lab, tree: Path) -> None:
    lab.git("update-index", "--assume-unchanged", "README", cwd=tree)
    lab.write({"README": "hidden edit\n"}, tree)


@kind(R.HIDDEN)
def assume_unchanged_and_deleted(lab: Lab, tree: Path) -> None:
    lab.git("update-index", "--assume-unchanged", "README", cwd=tree)
    (tree / "README").unlink()


@kind(R.HIDDEN)
def skip_worktree(lab: Lab, tree: Path) -> None:
    lab.git("update-index", "--skip-worktree", "src/app.py", cwd=tree)
    lab.write({"src/app.py": "hidden edit\n"}, tree)


@kind()
def flags_without_edits(lab: Lab, tree: Path) -> None:
    lab.git("update-index", "--assume-unchanged", "README", cwd=tree)
    lab.git("update-index", "--skip-worktree", "src/app.py", cwd=tree)


@kind()
def sparse_checkout(lab: Lab, tree: Path) -> None:
    lab.git("sparse-checkout", "set", "--no-cone", "/README", cwd=tree)
    assert not (tree / "src").exists()


@kind(R.MODIFIED, R.UNTRACKED)
def sparse_checkout_with_edits(lab: Lab, tree: Path) -> None:
    sparse_checkout(lab, tree)
    lab.write({"README": "edit\n", "src/new.py": "new\n"}, tree)


@kind(R.MODIFIED)  # git itself forgets the mark then
def file_put_where_sparse_checkout_left_one_out(lab: Lab, tree: Path) -> None:
    sparse_checkout(lab, tree)
    lab.write({"src/app.py": "my own app\n"}, tree)


@kind()
def split_index(lab: Lab, tree: Path) -> None:
    lab.git("update-index", "--split-index", cwd=tree)
    lab.git("update-index", "--assume-unchanged", "README", cwd=tree)


# --- operations in progress ---------------------------------------------------------------------------


def _two_sides(lab: Lab, tree: Path) -> None:
    """The agent's branch and ``side`` both change README; ``side`` adds a file as well."""
    base = lab.git("rev-parse", "HEAD", cwd=tree)
    lab.git("branch", "side", base, cwd=tree)
    lab.git("worktree", "add", "--quiet", str(lab.root.parent / "side"), "side")
    lab.write({"README": "from the side\n", "side.txt": "side\n"}, lab.root.parent / "side")
    lab.commit("side", cwd=lab.root.parent / "side")
    lab.git("worktree", "remove", str(lab.root.parent / "side"))
    lab.write({"README": "from the agent\n"}, tree)
    lab.commit("agent", cwd=tree)


def _resolve(lab: Lab, tree: Path) -> None:
    lab.write({"README": "both\n"}, tree)
    lab.git("add", "README", cwd=tree)


def _continue_merge(lab: Lab, tree: Path) -> None:
    _resolve(lab, tree)
    lab.git("-c", "core.editor=true", "merge", "--continue", cwd=tree)
    assert len(lab.git("rev-list", "--parents", "-1", "HEAD", cwd=tree).split()) == 3


@kind(R.OPERATION, R.STAGED, after=_continue_merge)
def merge_with_conflicts(lab: Lab, tree: Path) -> None:
    _two_sides(lab, tree)
    lab.git("merge", "side", cwd=tree, check=False)
    assert "UU README" in lab.git("status", "--porcelain", cwd=tree)


def _abort_merge(lab: Lab, tree: Path) -> None:
    lab.git("merge", "--abort", cwd=tree)
    assert (tree / "README").read_text() == "from the agent\n"
    assert lab.git("status", "--porcelain", cwd=tree) == ""


@kind(R.OPERATION, R.STAGED, after=_abort_merge)
def merge_not_committed(lab: Lab, tree: Path) -> None:
    _two_sides(lab, tree)
    lab.git("merge", "--no-commit", "-X", "ours", "side", cwd=tree)


def _abort_rebase(lab: Lab, tree: Path) -> None:
    lab.git("rebase", "--abort", cwd=tree)
    assert lab.git("symbolic-ref", "HEAD", cwd=tree) == f"refs/heads/{BRANCH}"
    assert (tree / "README").read_text() == "from the agent\n"


@kind(R.OPERATION, R.STAGED, after=_abort_rebase)
def rebase_with_conflicts(lab: Lab, tree: Path) -> None:
    _two_sides(lab, tree)
    lab.git("rebase", "side", cwd=tree, check=False)
    assert "UU README" in lab.git("status", "--porcelain", cwd=tree)


def _continue_rebase(lab: Lab, tree: Path) -> None:
    lab.git("rebase", "--continue", cwd=tree, env={"GIT_EDITOR": "true"})
    assert lab.git("symbolic-ref", "HEAD", cwd=tree) == f"refs/heads/{BRANCH}"


@kind(R.OPERATION, after=_continue_rebase)
def rebase_stopped_to_edit(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("rebase", "-i", "HEAD~2", cwd=tree, env={"GIT_SEQUENCE_EDITOR": "sed -i 1s/^pick/edit/"})


@kind(R.OPERATION, after=_abort_rebase, name="rebase_with_autostash")
def rebase_with_autostash(lab: Lab, tree: Path) -> None:
    _two_sides(lab, tree)
    lab.write({"src/app.py": "stashed by itself\n"}, tree)
    todo = {"GIT_SEQUENCE_EDITOR": "sed -i 1ibreak"}
    lab.git("rebase", "-i", "--autostash", "HEAD~1", cwd=tree, env=todo)
    assert (tree / "src/app.py").read_text() == "print('app')\n"


def _finish_pick(lab: Lab, tree: Path) -> None:
    _resolve(lab, tree)
    lab.git("-c", "core.editor=true", "cherry-pick", "--continue", cwd=tree)


@kind(R.OPERATION, R.STAGED, after=_finish_pick)
def cherry_pick_with_conflicts(lab: Lab, tree: Path) -> None:
    _two_sides(lab, tree)
    lab.git("cherry-pick", "side", cwd=tree, check=False)
    assert "UU README" in lab.git("status", "--porcelain", cwd=tree)


def _abort_revert(lab: Lab, tree: Path) -> None:
    lab.git("revert", "--abort", cwd=tree)
    assert (tree / "README").read_text() == "later\n"


@kind(R.OPERATION, R.STAGED, after=_abort_revert)
def revert_with_conflicts(lab: Lab, tree: Path) -> None:
    lab.write({"README": "first\n"}, tree)
    lab.commit("one", cwd=tree)
    lab.write({"README": "later\n"}, tree)
    lab.commit("two", cwd=tree)
    lab.git("revert", "HEAD~1", cwd=tree, check=False)


def _end_bisect(lab: Lab, tree: Path) -> None:
    lab.git("bisect", "reset", cwd=tree)
    assert lab.git("symbolic-ref", "HEAD", cwd=tree) == f"refs/heads/{BRANCH}"


@kind(R.OPERATION, after=_end_bisect)
def bisect(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("bisect", "start", "HEAD", "HEAD~3", cwd=tree)


def _abort_am(lab: Lab, tree: Path) -> None:
    lab.git("am", "--abort", cwd=tree)
    assert (tree / "README").read_text() == "from the agent\n"


@kind(R.OPERATION, after=_abort_am)
def am_stopped(lab: Lab, tree: Path) -> None:
    _two_sides(lab, tree)
    patch = lab.root.parent / "a.patch"
    patch.write_text(lab.git("format-patch", "-1", "--stdout", "side") + "\n")
    lab.git("am", str(patch), cwd=tree, check=False)


# --- commits ------------------------------------------------------------------------------------------


@kind()
def commits(lab: Lab, tree: Path) -> None:
    for number in "123":
        lab.write({f"part-{number}.txt": number}, tree)
        lab.commit(f"part {number}", cwd=tree)


@kind()
def amended(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("commit", "--quiet", "--amend", "-m", "another message", cwd=tree)


@kind()
def reset_away(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("reset", "--quiet", "--hard", "HEAD~2", cwd=tree)


@kind()
def detached_with_commits(lab: Lab, tree: Path) -> None:
    lab.git("switch", "--quiet", "--detach", cwd=tree)
    commits(lab, tree)


@kind(R.MODIFIED)
def detached_with_changes(lab: Lab, tree: Path) -> None:
    detached_with_commits(lab, tree)
    lab.write({"part-1.txt": "more"}, tree)


@kind()
def other_branch(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("switch", "--quiet", "-c", "other", cwd=tree)
    lab.commit("on the other branch", cwd=tree)


@kind()
def branch_renamed(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("branch", "-m", BRANCH, "my-name", cwd=tree)


@kind(R.STAGED)
def orphan_branch(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("checkout", "--quiet", "--orphan", "pages", cwd=tree)


@kind(R.STAGED)
def head_at_a_missing_branch(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("symbolic-ref", "HEAD", "refs/heads/no-such-branch", cwd=tree)


@kind()
def stash(lab: Lab, tree: Path) -> None:
    lab.write({"README": "stashed\n"}, tree)
    lab.git("stash", "--quiet", cwd=tree)


@kind()
def own_refs(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.git("update-ref", "refs/worktree/mark", "HEAD", cwd=tree)
    lab.git("update-ref", "refs/bisect/odd", "HEAD~1", cwd=tree)
    lab.git("reset", "--quiet", "--hard", "HEAD~3", cwd=tree)


@kind()
def own_refs_to_other_objects(lab: Lab, tree: Path) -> None:
    (tree / "x.log").write_text("only a ref knows me\n")
    blob = lab.git("hash-object", "-w", "x.log", cwd=tree)
    lab.git("update-ref", "refs/worktree/blob", blob, cwd=tree)
    lab.git("-c", "user.name=x", "tag", "-a", "-m", "annotated", "v0", cwd=tree)
    lab.git("update-ref", "refs/worktree/tag", "refs/tags/v0", cwd=tree)
    lab.git("tag", "-d", "v0", cwd=tree)


# --- repositories within ------------------------------------------------------------------------------


def _init(lab: Lab, folder: Path) -> None:
    folder.mkdir(parents=True)
    lab.git("init", "--quiet", cwd=folder)


@kind(R.NESTED)
def nested_repository(lab: Lab, tree: Path) -> None:
    _init(lab, tree / "inner")
    lab.write({"a.txt": "a"}, tree / "inner")
    lab.commit("inner", cwd=tree / "inner")


@kind(R.NESTED)
def nested_repository_with_changes(lab: Lab, tree: Path) -> None:
    nested_repository(lab, tree)
    lab.write({"a.txt": "changed", "b.txt": "new"}, tree / "inner")


@kind(R.NESTED)
def nested_repository_without_commit(lab: Lab, tree: Path) -> None:
    _init(lab, tree / "deep/inner")
    lab.write({"a.txt": "a"}, tree / "deep/inner")


@kind(R.NESTED)
def nested_repository_in_ignored_folder(lab: Lab, tree: Path) -> None:
    _init(lab, tree / "secret/inner")
    lab.write({"a.txt": "a"}, tree / "secret/inner")


@kind(R.NESTED, R.MODIFIED)
def repository_made_in_a_tracked_folder(lab: Lab, tree: Path) -> None:
    lab.git("init", "--quiet", cwd=tree / "src")
    lab.write({"src/app.py": "changed\n", "src/new.py": "new\n"}, tree)


def _with_bare_fixture(lab: Lab) -> None:
    lab.git("init", "--quiet", "--bare", "fixtures/x.git")
    lab.write({"fixtures/x.git/objects/.keep": "", "fixtures/x.git/refs/.keep": ""})
    lab.commit("a fixture")


@kind(prepare=_with_bare_fixture)
def tracked_bare_repository(lab: Lab, tree: Path) -> None:
    assert (tree / "fixtures/x.git/HEAD").is_file()


@kind(R.UNTRACKED, R.MODIFIED, prepare=_with_bare_fixture)
def tracked_bare_repository_with_new_commits(lab: Lab, tree: Path) -> None:
    lab.git("push", "--quiet", "fixtures/x.git", "HEAD:refs/heads/pushed", cwd=tree)
    lab.git("config", "--file", "fixtures/x.git/config", "core.logAllRefUpdates", "true", cwd=tree)


@kind(R.NESTED)
def nested_bare_repository(lab: Lab, tree: Path) -> None:
    lab.git("init", "--quiet", "--bare", "store.git", cwd=tree)


def _with_submodule(lab: Lab) -> None:
    library = lab.root.parent / "library"
    _init(lab, library)
    lab.write({"lib.txt": "lib"}, library)
    lab.commit("lib", cwd=library)
    lab.git("submodule", "--quiet", "add", str(library), "lib")
    lab.commit("with a library")


@kind(prepare=_with_submodule)
def submodule_not_there(lab: Lab, tree: Path) -> None:
    assert (tree / "lib").is_dir()
    assert not any((tree / "lib").iterdir())


@kind(prepare=_with_submodule)
def submodule(lab: Lab, tree: Path) -> None:
    lab.git("submodule", "--quiet", "update", "--init", cwd=tree)


@kind(R.SUBMODULE, prepare=_with_submodule)
def submodule_with_changes(lab: Lab, tree: Path) -> None:
    submodule(lab, tree)
    lab.write({"lib.txt": "changed", "new.txt": "new"}, tree / "lib")


@kind(R.SUBMODULE, prepare=_with_submodule)
def submodule_with_hidden_changes(lab: Lab, tree: Path) -> None:
    submodule(lab, tree)
    tracked = lab.git("ls-files", cwd=tree / "lib").splitlines()[0]
    lab.git("update-index", "--assume-unchanged", tracked, cwd=tree / "lib")
    (tree / "lib" / tracked).write_text("hidden\n")


@kind(R.SUBMODULE, prepare=_with_submodule)
def submodule_with_new_files_that_status_does_not_show(lab: Lab, tree: Path) -> None:
    submodule(lab, tree)
    lab.git("config", "--global", "status.showUntrackedFiles", "no")
    lab.write({"lib/new.txt": "new\n"}, tree)


@kind(R.PRECIOUS, prepare=_with_submodule)
def submodule_with_precious_files(lab: Lab, tree: Path) -> None:
    submodule(lab, tree)
    exclude = lab.git("rev-parse", "--git-path", "info/exclude", cwd=tree / "lib")
    lab.write({exclude: ".env\n", ".env": "TOKEN=1\n"}, tree / "lib")


@kind(R.SUBMODULE, prepare=_with_submodule)
def submodule_with_commits(lab: Lab, tree: Path) -> None:
    submodule(lab, tree)
    lab.write({"lib.txt": "changed"}, tree / "lib")
    lab.commit("only here", cwd=tree / "lib")


@kind(R.SUBMODULE, prepare=_with_submodule)
def submodule_at_another_commit(lab: Lab, tree: Path) -> None:
    library = lab.root.parent / "library"
    lab.commit("newer", cwd=library)
    submodule(lab, tree)
    lab.git("fetch", "--quiet", cwd=tree / "lib")
    lab.git("checkout", "--quiet", "origin/main", cwd=tree / "lib")


# --- locks, processes, things that are no files ---------------------------------------------------------


@kind(R.LOCKED)
def locked(lab: Lab, tree: Path) -> None:
    lab.git("worktree", "lock", str(tree))


@kind(R.LOCKED)
def locked_with_reason(lab: Lab, tree: Path) -> None:
    lab.git("worktree", "lock", "--reason", "on a USB stick", str(tree))


@kind(R.UNREADABLE, lost=("pipe", "sock"))
def pipe_and_socket(lab: Lab, tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    here = os.open(".", os.O_RDONLY)
    os.chdir(tree)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("sock")
    finally:
        os.fchdir(here)
        os.close(here)


@kind(R.BUSY)
def git_at_work(lab: Lab, tree: Path) -> None:
    (lab.root / ".git/worktrees" / tree.name / "index.lock").write_text("")


@contextlib.contextmanager
def process(*, cwd: Path | None = None, opened: Path | None = None) -> Any:
    """A process that lives in a folder, or has a file open, until the block ends."""
    code = "import sys; f = open(sys.argv[1]) if sys.argv[1] else None; print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(opened or "")],
        cwd=cwd or "/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == b"up\n"
        yield child
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait(30)


# --- swarm's own file ---------------------------------------------------------------------------------


@kind(R.PRECIOUS)
def instructions_edited(lab: Lab, tree: Path) -> None:
    with (tree / "CLAUDE.local.md").open("a") as file:
        file.write("and be kind\n")


@kind()
def instructions_deleted(lab: Lab, tree: Path) -> None:
    (tree / "CLAUDE.local.md").unlink()


@kind(R.STAGED)
def instructions_forced_into_the_index(lab: Lab, tree: Path) -> None:
    lab.git("add", "--force", "CLAUDE.local.md", cwd=tree)


# --- settings -----------------------------------------------------------------------------------------


@kind()
def own_settings(lab: Lab, tree: Path) -> None:
    lab.git("config", "extensions.worktreeConfig", "true")
    lab.git("config", "--worktree", "user.name", "Agent", cwd=tree)


@kind()
def branch_settings(lab: Lab, tree: Path) -> None:
    lab.git("config", f"branch.{BRANCH}.remote", "origin", cwd=tree)
    lab.git("config", f"branch.{BRANCH}.merge", "refs/heads/x", cwd=tree)
    lab.git("config", f"branch.{BRANCH}.pushRemote", "elsewhere", cwd=tree)
    lab.git("config", f"branch.{BRANCH}.description", "several\nlines", cwd=tree)
    lab.git("config", f"branch.{BRANCH}.vscode-merge-base", "origin/main", cwd=tree)


def _make_hooks(lab: Lab) -> None:
    for name in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change"):
        hook = lab.root / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho {name} >> '{lab.root.parent / 'hook ran'}'\n")
        hook.chmod(0o755)


@kind(R.UNTRACKED, prepare=_make_hooks)
def hooks_of_the_repository_and_of_the_tree(lab: Lab, tree: Path) -> None:
    lab.write({".githooks/pre-push": "#!/bin/sh\n"}, tree)
    (tree / ".githooks/pre-push").chmod(0o755)


# --- the worktree itself is damaged ---------------------------------------------------------------------


@kind(R.IDENTITY, R.STAGED, R.MODIFIED, damage=lambda tree: (tree / ".git").unlink())
def pointer_deleted(lab: Lab, tree: Path) -> None:
    staged_then_changed(lab, tree)


@kind(R.IDENTITY, R.STAGED, damage=lambda tree: (tree / ".git").write_text("gitdir: /nowhere\n"))
def pointer_overwritten(lab: Lab, tree: Path) -> None:
    staged(lab, tree)


def _replace(tree: Path) -> None:
    tree.rename(tree.parent.parent.parent / "old tree")
    tree.mkdir()
    (tree / "README").write_text("hello\n")
    (tree / "mine.txt").write_text("mine\n")


@kind(
    R.IDENTITY,
    R.MODIFIED,
    R.UNTRACKED,
    damage=_replace,
    unlike={"status": "the files are those of the folder"},
)
def replaced_by_a_plain_folder(lab: Lab, tree: Path) -> None:
    pass


def _delete_branch(lab: Lab, tree: Path) -> None:
    lab.git("update-ref", "-d", f"refs/heads/{BRANCH}")


@kind(
    R.STAGED,
    R.UNTRACKED,
    unlike={
        "head": "the last commit is checked out, without the branch that was deleted by hand",
        "commit": "the same",
        "status": "compared with that commit",
    },
)
def branch_deleted_by_hand(lab: Lab, tree: Path) -> None:
    commits(lab, tree)
    lab.write({"new.txt": "new\n"}, tree)
    _delete_branch(lab, tree)
