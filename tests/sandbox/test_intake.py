"""Taking in: what an agent commits in its box comes in like a push from a stranger; a refusal loses nothing."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm.kit import files
from swarm.kit.errors import NoSpace, SwarmError
from swarm.sandbox import intake, private
from swarm.sandbox.errors import IntakeRefused
from swarm.sandbox.inside import Inside, Said
from tests.sandbox.conftest import SESSION, Boxed, is_whole, packs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

#: A tree, then a commit of it, on the agent's branch; $1 is the line for `git mktree`.
ON_BRANCH = """
tree=$(printf "$1" | git mktree --missing)
commit=$(git commit-tree "$tree" -p HEAD -m "$2")
git update-ref HEAD "$commit"
"""
#: Any text as the agent's branch.
SET_TIP = """
file=$(git rev-parse --git-path "$(git symbolic-ref HEAD)")
mkdir -p "${file%/*}"
echo "$oid" > "$file"
"""


def refused(boxed: Boxed, **options: int) -> IntakeRefused:
    """Take in, which must be refused and leave everything as it was."""
    tip, before, files_before = boxed.tip(), boxed.lab.git("for-each-ref"), packs(boxed.lab)
    with pytest.raises(IntakeRefused) as caught:
        boxed.take_in(**options)
    assert (boxed.tip(), boxed.lab.git("for-each-ref"), packs(boxed.lab)) == (tip, before, files_before)
    assert boxed.world.journal.unfinished() == ()
    assert not list(boxed.world.layout.trash.glob("*"))
    assert is_whole(boxed.lab)
    return caught.value


def test_a_commit_comes_in_and_once_more_is_nothing_new(boxed: Boxed) -> None:
    old = boxed.tip()
    boxed.sh("echo new > file; git add file; git commit -qm work")

    done = boxed.take_in()
    again = boxed.take_in()

    assert (done.old, done.new, done.kept) == (old, boxed.tip(), "")
    assert boxed.lab.git("show", f"{boxed.branch}:file") == "new"
    assert (again.old, again.new) == (done.new, done.new)
    assert is_whole(boxed.lab)
    assert not [name for name in packs(boxed.lab) if name.endswith(".keep")]
    # The host's own index of the tree follows, so that it shows nothing as changed.
    assert boxed.lab.git("status", "--porcelain", cwd=boxed.tree) == ""


def test_several_commits_and_a_merge_of_the_users_branch(boxed: Boxed) -> None:
    boxed.sh("git commit -q --allow-empty -m one; git commit -q --allow-empty -m two")
    boxed.take_in()
    boxed.sh(
        "git checkout -q -b side HEAD~1; git commit -q --allow-empty -m side; git checkout -q -; git merge -q side"
    )

    boxed.take_in()

    assert set(boxed.lab.git("log", "--format=%s", boxed.branch).splitlines()) >= {"one", "two", "side"}
    assert is_whole(boxed.lab)


def test_a_rewritten_history_comes_in_and_the_old_one_is_kept(boxed: Boxed) -> None:
    boxed.sh("git commit -q --allow-empty -m first-try")
    first = boxed.take_in().new
    boxed.sh("git commit -q --amend --allow-empty -m second-try")

    done = boxed.take_in()

    assert boxed.lab.git("log", "-1", "--format=%s", boxed.branch) == "second-try"
    assert boxed.lab.git("rev-parse", done.kept) == first


def test_a_branch_that_moved_outside_is_not_overwritten(boxed: Boxed) -> None:
    boxed.sh("git commit -q --allow-empty -m inside")
    theirs = boxed.lab.git("commit-tree", f"{boxed.branch}^{{tree}}", "-p", boxed.branch, "-m", "outside")
    boxed.lab.git("update-ref", boxed.branch, theirs)

    problem = refused(boxed)

    assert "moved outside" in problem.message
    assert boxed.tip() == theirs
    assert boxed.sh("git log -1 --format=%s") == "inside"
    boxed.lab.git(*problem.hint.partition("git ")[2].split())
    assert boxed.take_in().new == boxed.tip()


def test_another_branch_in_the_box_is_not_the_agents_branch(boxed: Boxed) -> None:
    old = boxed.tip()
    boxed.sh("git checkout -q -b other; git commit -q --allow-empty -m elsewhere")

    assert boxed.take_in().new == old


@pytest.mark.parametrize(
    "line",
    [
        "100644 blob $(echo x | git hash-object -w --stdin)\t.git",
        "040000 tree $(git rev-parse HEAD^{tree})\t.GIT",
        "040000 tree $(git rev-parse HEAD^{tree})\t..",
        "100644 blob $(printf '[submodule \"x\"]\\npath=x\\nurl=-u./x\\n' | git hash-object -w --stdin)\t.gitmodules",
        "120000 blob $(echo x | git hash-object -w --stdin)\t.gitmodules",
    ],
    ids=["dot-git", "DOT-GIT", "dot-dot", "option-as-url", "modules-as-link"],
)
def test_a_tree_that_would_act_on_the_users_machine_is_refused(boxed: Boxed, line: str) -> None:
    if ".gitmodules" in line:
        script = f'line="{line}"\ntree=$(printf "%s\\n" "$line" | git mktree)\n'
    else:  # git itself makes no such tree
        kind, _, name = line.rpartition("\t")
        mode, _, oid = kind.split(" ", 2)
        script = (
            f'oid={oid}; raw=$(printf %s "$oid" | sed "s/../\\\\\\\\x&/g")\n'
            f'tree=$(env printf "{mode.lstrip("0")} {name}\\0$raw" | git hash-object -t tree --literally -w --stdin)\n'
        )
    boxed.sh(script + 'git update-ref HEAD "$(git commit-tree "$tree" -p HEAD -m bad)"')

    assert "git refuses it" in refused(boxed).message
    assert boxed.sh("git log -1 --format=%s") == "bad"  # it is all still there


def test_missing_objects_are_refused(boxed: Boxed) -> None:
    boxed.sh(ON_BRANCH, "100644 blob 1111111111111111111111111111111111111111\\tgone\\n", "bad")
    refused(boxed)


def test_a_missing_parent_is_refused(boxed: Boxed) -> None:
    parent = "2" * 40
    boxed.sh(
        'oid=$(printf "tree %s\\nparent %s\\nauthor a <a> 1 +0000\\ncommitter a <a> 1 +0000\\n\\nbad\\n" '
        '"$(git rev-parse HEAD^{tree})" "$1" | git hash-object -t commit --literally -w --stdin)\n' + SET_TIP,
        parent,
    )
    refused(boxed)


def test_a_malformed_commit_is_refused(boxed: Boxed) -> None:
    boxed.sh(
        'oid=$(printf "tree %s\\nnonsense\\n\\nbad\\n" "$(git rev-parse HEAD^{tree})" '
        "| git hash-object -t commit --literally -w --stdin)\n" + SET_TIP
    )
    refused(boxed)


@pytest.mark.parametrize(
    "tip",
    [
        "echo nonsense",
        "echo --all",
        "git rev-parse HEAD^{tree}",
        "echo blob | git hash-object -w --stdin",
        "git tag -a t -m t; git rev-parse t",
        "printf 'ref: refs/heads/main\\n../../etc'",
        "true",
    ],
)
def test_a_branch_that_names_no_commit_is_refused(boxed: Boxed, tip: str) -> None:
    boxed.sh(f"oid=$({tip})\n" + SET_TIP)
    refused(boxed)


def test_a_flood_is_refused_and_stays_in_the_box(boxed: Boxed) -> None:
    boxed.sh("head -c 3000000 /dev/urandom > big; git add big; git commit -qm big")

    assert "more than" in refused(boxed, limit=1 << 20).message
    assert boxed.take_in(limit=8 << 20).new == boxed.tip()


def test_a_git_in_the_box_that_lies_is_not_believed(boxed: Boxed) -> None:
    """Its configuration, its hooks and its packs are the agent's: only bytes come out."""
    canary = boxed.lab.root.parent / "canary"
    boxed.sh(
        "git commit -q --allow-empty -m work\n"
        f"git config core.fsmonitor 'touch \"{canary}\"'; git config core.pager 'touch \"{canary}\"'\n"
        f"git config pack.packSizeLimit 1m; git config alias.rev-parse '!touch \"{canary}\"'\n"
        "git config core.hooksPath /tmp; git config uploadpack.packObjectsHook false"
    )

    boxed.take_in()

    assert not canary.exists()
    assert is_whole(boxed.lab)


NESTED = "git init -q sub; git -C sub commit -q --allow-empty -m inner; git add sub 2>/dev/null; git commit -qm nested"


def test_a_nested_repository_is_held_back_until_a_person_says_so(boxed: Boxed) -> None:
    boxed.sh(NESTED)

    problem = refused(boxed)

    assert problem.facts["nested"] == ["sub"]
    assert boxed.take_in(with_nested=True).new == boxed.tip()


def test_a_nested_repository_in_the_history_is_held_back_too(boxed: Boxed) -> None:
    boxed.sh(NESTED + "; git rm -q --cached sub; git commit -qm 'not any more'")
    assert refused(boxed).facts["nested"] == ["sub"]


def test_a_setting_that_hides_submodules_hides_none(boxed: Boxed) -> None:
    boxed.lab.git("config", "diff.ignoreSubmodules", "all")
    boxed.sh(NESTED)
    assert refused(boxed).facts["nested"] == ["sub"]


def test_a_submodule_that_was_there_may_be_moved(lab: Lab, boxes: None) -> None:
    first = lab.git("rev-parse", "HEAD")
    lab.git("update-index", "--add", "--cacheinfo", f"160000,{first},lib")
    lab.git("commit", "-qm", "a submodule")
    second = lab.git("rev-parse", "HEAD")
    lab.swarm.create(SESSION, ["developer"])
    boxed = Boxed(lab)
    boxed.sh('git update-index --cacheinfo "160000,$1,lib"; git commit -qm moved', second)

    assert boxed.take_in().new == boxed.tip()


class Stranger(Inside):
    """A box whose git says what the stranger likes: everything outside must hold by itself."""

    tip = b""
    pack = b""

    def run(self, *argv: str, **_options: object) -> Said:
        return Said(0, self.tip, b"")

    def save(self, sink: Callable[[bytes], object], *argv: str, **_options: object) -> tuple[int, bytes]:
        sink(self.pack)
        return 0, b""


@pytest.fixture
def other(lab: Lab) -> Callable[..., str]:
    """Give git in a repository that ours knows nothing of."""
    root = lab.root.parent / "other"
    lab.git("init", "-q", str(root))
    lab.write({"file": "theirs\n"}, cwd=root)
    lab.commit("theirs", cwd=root)
    return lambda *words: lab.git(*words, cwd=root)


@pytest.mark.parametrize("lacks", ["blob", "tree", "commit", "all", "garbage", "nothing-but-a-head"])
def test_a_pack_that_does_not_hold_what_it_must_is_refused(
    boxed: Boxed, other: Callable[..., str], lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = {
        "commit": other("rev-parse", "HEAD"),
        "tree": other("rev-parse", "HEAD^{tree}"),
        "blob": other("rev-parse", "HEAD:file"),
    }
    wanted = "\n".join(oid for kind, oid in has.items() if kind != lacks) + "\n"
    pack = subprocess.run(
        ["git", "pack-objects", "--stdout", "-q"],
        input=b"" if lacks == "all" else wanted.encode("ascii"),
        cwd=boxed.lab.root.parent / "other",
        capture_output=True,
        check=True,
    ).stdout
    pack = {"garbage": b"x" * 5000, "nothing-but-a-head": pack[:12]}.get(lacks, pack)
    monkeypatch.setattr(Stranger, "pack", pack)
    monkeypatch.setattr(Stranger, "tip", has["commit"].encode("ascii"))
    monkeypatch.setattr(intake, "Inside", Stranger)

    assert "git refuses it" in refused(boxed).message or lacks in {"commit", "all"}


def test_a_whole_pack_of_a_stranger_is_no_history_of_ours_and_the_old_tip_is_kept(
    boxed: Boxed, other: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tip, old = other("rev-parse", "HEAD"), boxed.tip()
    pack = subprocess.run(
        ["git", "pack-objects", "--stdout", "-q", "--revs", "--all"],
        stdin=subprocess.DEVNULL,
        cwd=boxed.lab.root.parent / "other",
        capture_output=True,
        check=True,
    ).stdout
    monkeypatch.setattr(Stranger, "pack", pack)
    monkeypatch.setattr(Stranger, "tip", tip.encode("ascii"))
    monkeypatch.setattr(intake, "Inside", Stranger)

    done = boxed.take_in()

    assert boxed.lab.git("rev-parse", done.kept) == old
    assert is_whole(boxed.lab)


# --- what is not on the branch -----------------------------------------------------------------


def test_all_that_is_not_on_the_branch_is_saved(boxed: Boxed) -> None:
    boxed.sh(
        "echo one >> README; git stash -q; echo two >> README; git stash -q\n"
        "git branch side; git checkout -q side; git commit -q --allow-empty -m aside; git checkout -q --detach\n"
        "git commit -q --allow-empty -m detached; echo staged > staged; git add staged; echo more >> run.sh\n"
        "echo untracked > new; git init -q sub; echo ignored > x.log"
    )
    found = {
        ref.partition("/saved/")[2].partition("/")[2]: tip
        for ref, tip in intake.capture(boxed.world, boxed.source).items()
    }

    assert set(found) == {"head", "index", "work", "stash/0", "stash/1", "branch/side"}
    git = boxed.lab.git
    assert git("log", "-1", "--format=%s", found["head"]) == "detached"
    assert git("log", "-1", "--format=%s", found["branch/side"]) == "aside"
    assert git("show", f"{found['stash/0']}:README") == "hello\ntwo"
    assert git("show", f"{found['stash/1']}:README") == "hello\none"
    assert git("show", f"{found['index']}:staged") == "staged"
    assert git("show", f"{found['work']}:new") == "untracked"
    assert git("show", f"{found['work']}:run.sh") == "#!/bin/sh\nmore"
    assert "sub" not in git("ls-tree", "--name-only", found["work"]).split()
    assert is_whole(boxed.lab)
    assert boxed.sh("git status --porcelain").splitlines() == ["M run.sh", "A  staged", "?? new", "?? sub/"]


def test_an_untouched_box_has_nothing_to_bring(boxed: Boxed) -> None:
    before = packs(boxed.lab)
    found = intake.capture(boxed.world, boxed.source)

    assert {ref.rpartition("/")[2] for ref in found} == {"head", "index", "work"}
    assert {boxed.lab.git("rev-parse", f"{tip}^{{tree}}") for tip in found.values()} == {
        boxed.lab.git("rev-parse", "HEAD^{tree}")
    }
    assert len(packs(boxed.lab) - before) <= 3


# --- crashes ------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is gone: nothing of ours runs any more."""


def moments(
    boxed: Boxed, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], stop_at: int, what: BaseException
) -> int:
    """Let the n-th change on the host fail, or end the process; return how many were made."""
    made = 0

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*args: object, **options: object) -> object:
            nonlocal made
            made += 1
            if made == stop_at:
                raise what
            return call(*args, **options)

        return wrapped

    with monkeypatch.context() as patch:
        for name in ("write_atomic", "make_folders", "rename_if_there", "unlink_if_there", "sync_folder"):
            patch.setattr(files, name, counted(getattr(files, name)))
        runner = boxed.world.git.runner
        patch.setattr(runner, "run", counted(runner.run))
        act()
    return made


@pytest.mark.parametrize("what", [Killed(), NoSpace("full")], ids=["killed", "disk-full"])
def test_stopped_anywhere_it_is_all_or_nothing_and_the_next_one_brings_it(
    boxed: Boxed, monkeypatch: pytest.MonkeyPatch, what: BaseException
) -> None:
    stops = 0
    for at in range(1, 100):
        boxed.sh(f"git commit -q --allow-empty -m work-{at}")
        old, new = boxed.tip(), boxed.sh("git rev-parse HEAD")
        try:
            moments(boxed, monkeypatch, boxed.take_in, at, what)
        except (Killed, SwarmError):
            stops += 1
            assert boxed.tip() in (old, new)
            boxed.lab.swarm.recover()
            assert boxed.world.journal.unfinished() == ()
            assert not [name for name in packs(boxed.lab) if name.endswith(".keep")]
            boxed.world = boxed.lab.swarm._opened.world
            assert boxed.take_in().new == new == boxed.tip()
        else:
            break
    assert stops > 10
    assert is_whole(boxed.lab)
    assert boxed.lab.git("status", "--porcelain", cwd=boxed.tree) == ""


def test_what_is_taken_in_needs_nothing_of_the_box(boxed: Boxed, tmp_path: Path) -> None:
    boxed.sh("echo x > file; git add file; git commit -qm work; git gc -q")
    boxed.take_in()

    files.remove_tree(boxed.base)

    assert is_whole(boxed.lab)
    boxed.lab.git(
        "clone", "-q", "--branch", boxed.branch.removeprefix("refs/heads/"), str(boxed.lab.root), str(tmp_path / "c")
    )
    assert (tmp_path / "c/file").read_text() == "x\n"


def test_a_repository_with_long_names_for_objects(tmp_path: Path, lab: Lab, boxes: None) -> None:
    root = tmp_path / "sha256"
    subprocess.run(["git", "init", "-q", "--object-format=sha256", str(root)], env=lab.env, check=True)
    lab.root = root
    lab.write({"README": "hello\n"})
    lab.commit("first")
    lab.swarm.create(SESSION, ["developer"])
    boxed = Boxed(lab)
    boxed.sh("git commit -q --allow-empty -m work")

    assert boxed.take_in().new == boxed.tip()
    assert len(boxed.tip()) == 64
    assert private.branch_of(boxed.tree, boxed.world.git.common) == boxed.branch
    assert os.path.exists(boxed.base / "taken")
