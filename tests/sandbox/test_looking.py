"""The host's git looks at the worktree of an agent in a box from inside of a box (point 5 of the design)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.git.running import runner
from swarm.kit.errors import SwarmError
from swarm.project.model import Boxed as Record
from tests.sandbox.conftest import SESSION, Boxed

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


@pytest.fixture
def trap(lab: Lab, boxes: None) -> Boxed:
    """Give a developer in a box over whose files a filter of the user's goes, which leaves a mark."""
    mark = lab.root.parent / "mark"
    lab.git("config", "filter.trap.clean", f"sh -c 'touch \"{mark}\" ./mark; cat'")
    lab.swarm.create(SESSION, ["developer"])
    session = lab.swarm.sessions.get(SESSION)
    boxed = Boxed(lab)
    boxed.world.sessions.write(session._replace(agents=(session.agents[0]._replace(box=Record()),)))
    boxed.sh("echo '* filter=trap' > .gitattributes; echo more >> README; echo new > new; echo x > src/x")
    (boxed.tree / "mark").unlink(missing_ok=True)
    return boxed


def _marks(boxed: Boxed) -> list[str]:
    return [str(path) for path in (boxed.lab.root.parent / "mark", boxed.tree / "mark") if path.exists()]


def test_no_look_at_the_worktree_of_a_boxed_agent_runs_anything_on_the_machine(trap: Boxed) -> None:
    swarm = trap.lab.swarm

    swarm.status(SESSION)
    swarm.why("developer", SESSION)
    swarm.worktrees.show("developer", SESSION)
    found = swarm.diff("developer", SESSION)
    swarm.conflicts(SESSION)
    for act in (lambda: swarm.merge(SESSION), lambda: swarm.cleanup([SESSION])):
        with pytest.raises(SwarmError):
            act()
    swarm.cleanup([SESSION], dry_run=True, force=True)
    swarm.cleanup([SESSION], force=True)

    assert _marks(trap) == []
    assert [change.path for change in found.uncommitted] == ["README"]
    assert set(found.untracked) == {".gitattributes", "new", "src/x"}


def test_without_its_box_the_look_is_seen_to_run_it(trap: Boxed, monkeypatch: pytest.MonkeyPatch) -> None:
    swarm = trap.lab.swarm
    monkeypatch.setattr("swarm.sandbox.looking.Looking.__call__", lambda *_: runner._nowhere(*_[1:]))

    swarm.diff("developer", SESSION)

    assert _marks(trap)


def test_a_look_sees_neither_home_nor_the_main_checkout(trap: Boxed) -> None:
    script = "ls -A . 2>&1; ls -d src; cat ../../README; ls -A ~ | grep -v ^gitconfig; echo end"

    seen = trap.world.git.runner.run("-c", f"alias.see=!{script}", "see", cwd=trap.tree)

    words = os.fsdecode(seen).split()
    assert words[-2:] == ["src", "end"]
    assert ".git" in words
    assert "hello" not in words


def test_a_look_takes_files_that_nobody_changed_for_unchanged(trap: Boxed) -> None:
    """Git compares the owner of each file, too; where that is another one inside, it reads all of them again."""
    seen = trap.world.git.runner.run("diff-files", "--name-only", cwd=trap.tree)

    assert seen.split() == [b"README"]


def test_the_lock_of_the_repository_is_not_handed_on(trap: Boxed) -> None:
    with trap.lab.swarm._changing("a test"):
        seen = trap.world.git.runner.run("-c", "alias.see=!ls -l /proc/self/fd", "see", cwd=trap.tree)

    assert b".swarm" not in seen
