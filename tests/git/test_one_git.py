"""Asked once for many, git says what it says when it is asked one by one."""

from __future__ import annotations

import functools
import os
import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from swarm.git.changes import Checkout
from swarm.git.content.blobs import Folders
from swarm.git.errors import GitFailed
from swarm.git.graph import Graph
from swarm.git.history import landed
from swarm.git.merge_trees import Merger, merge_trees
from swarm.git.running.runner import GitRunner
from swarm.kit.errors import SwarmError
from swarm.merging.committing import Committer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


@pytest.fixture
def git(lab: Lab) -> GitRunner:
    return GitRunner(lab.root, environ=lab.env)


def commit(lab: Lab, *parents: str, **files: str) -> str:
    """Make a commit of these files alone, and let no branch know."""
    index, text = lab.root / ".git" / "drawn-index", lab.root / ".git" / "text"
    index.unlink(missing_ok=True)
    for name, content in files.items():
        text.write_text(content)
        oid = lab.git("hash-object", "-w", str(text))
        lab.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{name}", env={"GIT_INDEX_FILE": str(index)})
    tree = lab.git("write-tree", env={"GIT_INDEX_FILE": str(index)})
    return lab.git("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)), "-m", "drawn")


@pytest.mark.parametrize("seed", range(3))
def test_a_walk_knows_ancestors_and_forks_as_git_does(lab: Lab, git: GitRunner, seed: int) -> None:
    rng = random.Random(seed)
    drawn = [commit(lab, a=str(seed)), *([commit(lab, a="another root")] if seed == 2 else [])]
    for number in range(14):
        parents = rng.sample(drawn[-5:], k=min(len(drawn[-5:]), rng.choice((1, 1, 2))))
        drawn.append(commit(lab, *parents, a=str(number)))
    tips = rng.sample(drawn, k=5)

    graph = Graph(git, tips)

    for one in tips:
        assert graph.tree_of(one) == lab.git("rev-parse", f"{one}^{{tree}}")
        for other in tips:
            bases = lab.git("merge-base", "--all", one, other, check=False).split()
            assert graph.has(one, other) == (other in bases)
            assert graph.fork(one, other) == lab.git("merge-base", one, other, check=False)
            since = lab.git("rev-list", one, f"^{other}").split()
            assert sorted(graph.since(one, other)) == sorted(since)


def test_a_commit_that_is_gone_is_in_no_history(lab: Lab, git: GitRunner) -> None:
    gone, tip = "1" * 40, lab.git("rev-parse", "HEAD")

    graph = Graph(git, (tip, gone))

    assert not graph.has(tip, gone)
    with pytest.raises(GitFailed, match=gone):
        graph.tree_of(gone)
    assert landed(git, [(tip, gone), (tip, tip)], lab.commit("on")) == (("fresh", 1), ("fresh", 0))


def test_a_pair_that_cannot_be_merged_does_not_stop_the_others(lab: Lab, git: GitRunner) -> None:
    base = commit(lab, a="1", b="1")
    one, other, foreign = commit(lab, base, a="2", b="1"), commit(lab, base, a="1", b="2"), commit(lab, c="1")
    clash = commit(lab, base, a="3", b="1")

    found = merge_trees(git, [(one, other), (one, foreign), (one, clash), (foreign, one), (other, one)])

    kinds = [isinstance(item, SwarmError) or item.clean for item in found]
    assert kinds == [True, True, False, True, True]
    assert [isinstance(item, SwarmError) for item in found] == [False, True, False, True, False]
    assert not isinstance(found[0], SwarmError)
    assert found[0] == found[4]
    assert "unrelated histories" in str(found[1])


def test_a_merger_that_listens_says_the_same_as_one_for_all(lab: Lab, git: GitRunner) -> None:
    base = commit(lab, a="1", b="1")
    one, other, clash = commit(lab, base, a="2", b="1"), commit(lab, base, a="1", b="2"), commit(lab, base, a="3")
    pairs = [(base, base), (one, other), (one, one), (one, clash), (base, one), (base, base)]
    merger = Merger(git.listening, (base, lab.git("rev-parse", f"{base}^{{tree}}")))

    said = [merger.merge(*pair) for pair in pairs]

    assert said == merge_trees(git, pairs)
    with pytest.raises(GitFailed, match="unrelated histories"):
        merger.merge(one, commit(lab, c="1"))
    merger.end()


@pytest.mark.parametrize("encoding", ["utf-8", "ISO-8859-1"])
def test_a_commit_is_the_one_that_commit_tree_makes(lab: Lab, git: GitRunner, tmp_path: Path, encoding: str) -> None:
    head, tree = lab.git("rev-parse", "HEAD"), lab.git("rev-parse", "HEAD^{tree}")
    other = commit(lab, head)
    user = {"GIT_AUTHOR_NAME": "Anne <B.>", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "Cé"}
    message = tmp_path / "message"
    message.write_bytes("says é\n\nand more\n".encode(encoding))
    committer = Committer(git, {}, user, tmp_path)
    make = functools.partial(committer.commit, tree, [head, other], message.read_bytes(), encoding=encoding.encode())

    made = {
        make(): {},
        make("Öther <o@o> 1700000000 +0230".encode()): {"GIT_AUTHOR_NAME": "Öther", "GIT_AUTHOR_EMAIL": "o@o"},
    }
    committer.end()

    for oid, author in made.items():
        dates = lab.git("log", "-1", "--format=@%ad,@%cd", "--date=raw", oid).split(",")
        env = {**user, **author, **dict(zip(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), dates, strict=True))}
        words = ("commit-tree", tree, "-p", head, "-p", other, "-F", str(message))
        assert lab.git("-c", f"i18n.commitEncoding={encoding}", *words, env=env) == oid
    assert lab.git("fsck", "--strict", *made) == ""


def test_a_tree_with_other_files_is_the_tree_of_those_files() -> None:
    rng = random.Random(1)
    for _ in range(300):
        old = _drawn_files(rng, {})
        new = _drawn_files(rng, {path: entry for path, entry in old.items() if rng.random() < 0.6})
        before, after = (Folders([(path, *entry) for path, entry in sorted(side.items())], 40) for side in (old, new))

        name, bodies = before.changed(
            [(path, *entry) for path, entry in new.items() if old.get(path) != entry],
            [path for path, entry in old.items() if new.get(path) != entry],
        )

        assert name == after.name, (old, new)
        assert before.bodies | bodies | after.bodies == before.bodies | bodies


def _drawn_files(rng: random.Random, files: dict[bytes, tuple[bytes, bytes]]) -> dict[bytes, tuple[bytes, bytes]]:
    found = dict(files)
    for _ in range(rng.randint(0, 8)):
        path = "/".join(rng.choice(("a", "b", "a.b", "a-", "c0")) for _ in range(rng.randint(1, 4))).encode()
        if not any(other.startswith(path + b"/") or path.startswith(other + b"/") for other in found):
            found[path] = (b"100644", rng.randbytes(20))
    return found


def test_a_computed_tree_is_the_one_that_git_writes(lab: Lab) -> None:
    lab.write({"a/b/c": "1", "a.b": "2", "a-": "3", "a/b.c": "4", "deep/er/and/deeper": "5"})
    (lab.root / "a" / "link").symlink_to("b")
    lab.commit("more")
    listed = (line.split("\t") for line in lab.git("ls-tree", "-r", "HEAD").splitlines())

    entries = [(name.encode(), facts[:6].encode(), bytes.fromhex(facts[-40:])) for facts, name in listed]

    assert Folders(entries, 40).name == lab.git("rev-parse", "HEAD^{tree}")


# --- worktrees at rest ---------------------------------------------------------------------------------


def _edit_unseen(lab: Lab, tree: Path) -> None:
    info = (tree / "README").stat()
    (tree / "README").write_text("HELLO\n")
    os.utime(tree / "README", ns=(info.st_atime_ns, info.st_mtime_ns))


def _commit_some(lab: Lab, tree: Path) -> None:
    lab.write({"deep/er/new": "1\n", "deep.er": "2\n", "README": "more\n"}, tree)
    (tree / "deep" / "link").symlink_to("er/new")
    (tree / "run.sh").chmod(0o644)
    lab.commit("work", cwd=tree)


def _stage_and_take_back(lab: Lab, tree: Path) -> None:
    lab.write({"README": "staged\n"}, tree)
    lab.git("add", "README", cwd=tree)
    lab.write({"README": "hello\n"}, tree)


def _replace_by_link(lab: Lab, tree: Path) -> None:
    (tree / "README").unlink()
    (tree / "README").symlink_to("src/app.py")


def _replace_by_folder(lab: Lab, tree: Path) -> None:
    (tree / "README").unlink()
    lab.write({"README/inside": "x\n"}, tree)


def _edit_hidden(lab: Lab, tree: Path) -> None:
    lab.git("update-index", "--assume-unchanged", "README", cwd=tree)
    _edit_unseen(lab, tree)


def _announce(lab: Lab, tree: Path) -> None:
    lab.write({"soon": "x\n"}, tree)
    lab.git("add", "-N", "soon", cwd=tree)


def _write(path: str, text: str = "x\n") -> Callable[[Lab, Path], object]:
    return lambda lab, tree: lab.write({path: text}, tree)


def _git(*words: str) -> Callable[[Lab, Path], object]:
    return lambda lab, tree: lab.git(*words, cwd=tree)


RESTFUL: dict[str, Callable[[Lab, Path], object]] = {
    "nothing": lambda lab, tree: None,
    "committed": _commit_some,
    "an empty commit": _git("commit", "--quiet", "--allow-empty", "-m", "nothing"),
    "detached": _git("checkout", "--quiet", "--detach"),
    "untracked": _write("notes/new"),
    "ignored": _write("run.log"),
}
CHANGED: dict[str, Callable[[Lab, Path], object]] = {
    "edited": _write("README"),
    "edited, size and time as before": _edit_unseen,
    "mode": lambda lab, tree: (tree / "README").chmod(0o755),
    "deleted": lambda lab, tree: (tree / "README").unlink(),
    "closed": lambda lab, tree: (tree / "README").chmod(0),
    "a link": _replace_by_link,
    "a folder": _replace_by_folder,
}
UNUSUAL: dict[str, Callable[[Lab, Path], object]] = {
    "moved away by git": _git("rm", "--quiet", "--cached", "README"),
    "staged and taken back": _stage_and_take_back,
    "hidden": _edit_hidden,
    "left out": _git("update-index", "--skip-worktree", "README"),
    "announced": _announce,
    "a repository inside": _git("init", "--quiet", "inner"),
    "attributes": _write(".gitattributes", "* text\n"),
    "no plain index": _git("update-index", "--index-version", "4"),
    "no commit": _git("checkout", "--quiet", "--orphan", "fresh"),
}


def test_what_is_seen_without_git_is_what_git_says(lab: Lab) -> None:
    doings = {**RESTFUL, **CHANGED, **UNUSUAL}
    lab.swarm.create("feature-x", [f"developer:{len(doings)}"])
    session = lab.swarm.sessions.get("feature-x")
    checkouts = []
    for act, agent in zip(doings.values(), session.agents, strict=True):
        tree = lab.root / agent.worktree
        act(lab, tree)
        checkouts.append(Checkout(tree, lab.root / ".git" / "worktrees" / agent.admin))
    trees = lab.swarm._world.trees

    seen = dict(zip(doings, trees.at_rest(checkouts), strict=True))
    found = trees.look_all(checkouts, [frozenset()] * len(checkouts))

    assert {name for name, rest in seen.items() if rest is None} == set(UNUSUAL)
    # Root may read a closed file, and then nothing of it has changed that git keeps.
    changed = {name for name, rest in seen.items() if rest is not None and rest.changed}
    assert changed == set(CHANGED) - ({"closed"} if os.access(checkouts[10].tree / "README", os.R_OK) else set())
    for one, checkout in zip(found, checkouts, strict=True):
        asked = trees.look(checkout.tree, checkout.gitdir)
        assert not isinstance(one, SwarmError)
        assert one == replace(asked, rewritten=one.rewritten)
        assert set(one.rewritten) <= set(asked.rewritten)
    rest = seen["committed"]
    assert rest is not None
    assert rest.head == lab.git("rev-parse", "HEAD", cwd=checkouts[1].tree)
    assert rest.tracked == set(lab.git("ls-files", cwd=checkouts[1].tree).splitlines())


@pytest.mark.parametrize("key", ["core.autocrlf=input", "core.eol=crlf", "core.attributesFile=/nowhere"])
def test_where_git_may_convert_files_git_is_asked(lab: Lab, key: str) -> None:
    lab.swarm.create("feature-x", ["developer"])
    lab.git("config", *key.split("="))

    admin = lab.root / ".git" / "worktrees" / lab.tree("developer").name
    assert lab.swarm._world.trees.at_rest([Checkout(lab.tree("developer"), admin)]) == [None]
