"""A `git gc` or `git prune` of the user's at the worst moment: nothing that is being saved is lost by it."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm, SwarmError
from swarm.git import gitdir
from tests.support import odd

if TYPE_CHECKING:
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

    assert gitdir.collector(lab.root / ".git") == 0
