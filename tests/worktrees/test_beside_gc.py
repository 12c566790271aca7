"""A `git gc` or `git prune` of the user's at the worst moment: nothing that is being saved is lost by it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm, SwarmError
from swarm.git import gitdir
from swarm.git.running import others
from tests.support import odd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

SESSION = "feature-x"


def _prune_before_refs(lab: Lab, *, times: int) -> dict[str, str]:
    """Return an environment whose git removes unnamed objects just before it puts the first refs on them."""
    git, count = shutil.which("git"), lab.root.parent / "count"
    script = (
        f'case "$*" in *update-ref*)\n'
        f"  echo >> '{count}'\n"
        f"  [ $(wc -l < '{count}') -gt {times} ] || '{git}' prune --expire=now < /dev/null\n"
        f"esac\nexec '{git}' \"$@\""
    )
    odd.program(lab.root.parent / "bin", "git", script)
    return odd.first_on_path(lab, lab.root.parent / "bin")


def _with_work(lab: Lab) -> None:
    tree = lab.open(worktrees__durable=False).create(SESSION, ["developer"]).paths()["developer"]
    lab.write({"README": "edited\n", "new.txt": "new\n"}, tree)


def test_a_cleanup_saves_again_what_a_prune_took_away(lab: Lab) -> None:
    _with_work(lab)
    swarm = Swarm.open(lab.root, environ=_prune_before_refs(lab, times=1))

    swarm.cleanup([SESSION], force=True)

    assert not lab.tree("developer").exists()
    swarm.restore(SESSION)
    assert (lab.tree("developer") / "new.txt").read_text() == "new\n"
    assert (lab.tree("developer") / "README").read_text() == "edited\n"


def test_a_cleanup_that_a_prune_disturbs_again_removes_nothing_and_says_what_to_do(lab: Lab) -> None:
    _with_work(lab)
    swarm = Swarm.open(lab.root, environ=_prune_before_refs(lab, times=2))

    with pytest.raises(SwarmError) as caught:
        swarm.cleanup([SESSION], force=True)

    assert "`git gc` or `git prune`" in caught.value.hint
    assert (lab.tree("developer") / "new.txt").read_text() == "new\n"
    assert lab.git("for-each-ref", "refs/swarm/salvage") == ""
    swarm.cleanup([SESSION], force=True)
    assert not lab.tree("developer").exists()


def test_a_cleanup_waits_for_a_gc_that_runs(lab: Lab) -> None:
    _with_work(lab)
    # It reads until the other end is closed: a stand-in that ends when it is told to.
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as gc:
        (lab.root / ".git" / "gc.pid").write_text(f"{gc.pid} somewhere")
        seen: list[bool] = []

        def progress(text: str) -> None:
            if "git gc" in text and not seen:
                seen.append(lab.tree("developer").is_dir())
                gc.communicate()

        Swarm.open(lab.root, environ=lab.env, progress=progress).cleanup([SESSION], force=True)

    assert seen == [True]
    assert not lab.tree("developer").exists()


@pytest.mark.parametrize("note", ["", "no number", "99999999 somewhere", "-1 somewhere"])
def test_the_note_of_no_gc_that_runs_is_not_waited_for(lab: Lab, note: str) -> None:
    (lab.root / ".git" / "gc.pid").write_text(note)

    assert gitdir.collector(lab.root / ".git", lab.root) == 0


#: What a prune does: it lists what is named, and takes its time; then what is not in its list goes.
PRUNE = """\
find "$OBJECTS"/?? -type f | sort > "$LISTED"
echo listed
read go
find "$OBJECTS"/?? -type f | sort | comm -13 "$LISTED" - | tr '\\n' '\\0' | xargs -0 rm -f
"""


@contextlib.contextmanager
def _slow_prune(lab: Lab, *words: str, cwd: Path, **environ: str) -> Iterator[Callable[[str], None]]:
    """Start a ``git prune`` that has listed already; give what tells it to go on when swarm says that it waits."""
    program = lab.root.parent / "slow" / "git"
    program.parent.mkdir()
    program.symlink_to("/bin/sh")  # a shell that is called git, with a script where git takes a setting
    pipe = subprocess.PIPE
    argv = ["git", "-c", PRUNE, *words, "prune"]
    paths = {"OBJECTS": str(lab.root / ".git/objects"), "LISTED": str(program.with_name("listed"))}
    env = {**lab.env, **paths, **environ}
    with subprocess.Popen(argv, executable=program, cwd=cwd, stdin=pipe, stdout=pipe, env=env) as prune:
        assert prune.stdout is not None
        assert prune.stdout.readline() == b"listed\n"

        def progress(text: str) -> None:
            if f"process {prune.pid}" in text and prune.poll() is None:
                prune.communicate(b"go\n")

        yield progress
        if prune.poll() is None:
            prune.communicate(b"go\n")


needs_proc = pytest.mark.skipif(not Path("/proc/self/comm").exists(), reason="needs /proc")


@needs_proc
@pytest.mark.parametrize("where", ["in the repository", "another worktree", "--git-dir", "GIT_DIR"])
def test_a_cleanup_beside_a_prune_that_had_listed_before_loses_nothing(lab: Lab, where: str) -> None:
    _with_work(lab)
    git, elsewhere = lab.root / ".git", lab.root.parent
    lab.git("worktree", "add", "--quiet", "--detach", str(elsewhere / "theirs"))
    place = {"in the repository": git, "another worktree": elsewhere / "theirs"}.get(where, elsewhere)
    words = ["--git-dir", f"{lab.root.name}/.git"] if where == "--git-dir" else []
    variable = {"GIT_DIR": str(git)} if where == "GIT_DIR" else {}
    with _slow_prune(lab, *words, cwd=place, **variable) as progress:
        Swarm.open(lab.root, environ=lab.env, progress=progress).cleanup([SESSION], force=True)

    lab.swarm.restore(SESSION)
    assert (lab.tree("developer") / "new.txt").read_text() == "new\n"
    assert (lab.tree("developer") / "README").read_text() == "edited\n"


@needs_proc
def test_a_merge_beside_such_a_prune_loses_nothing(lab: Lab) -> None:
    tree = lab.open(worktrees__durable=False).create(SESSION, ["developer"]).paths()["developer"]
    lab.write({"theirs.txt": "theirs\n"}, tree)
    lab.commit("theirs", tree)
    lab.write({"ours.txt": "ours\n"})
    lab.commit("ours")
    with _slow_prune(lab, cwd=lab.root / ".git") as progress:
        Swarm.open(lab.root, environ=lab.env, progress=progress).merge(SESSION)

    assert (lab.root / "theirs.txt").read_text() == "theirs\n"
    assert lab.git("fsck", "--no-dangling") == ""
    assert lab.git("for-each-ref", "refs/swarm/op") == ""


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("git prune", "prune"),
        ("/usr/bin/git -C /x -c gc.auto=0 --git-dir /y prune -v", "prune"),
        ("git --no-pager log prune", "log"),
        ("git commit -m prune", "commit"),
        ("git", ""),
    ],
)
def test_what_a_git_was_told_to_do_is_its_first_word_that_is_no_option(words: str, found: str) -> None:
    assert others.subcommand([word.encode() for word in words.split()]) == found.encode()
