"""Whatever an agent left in its box: saved and removed at cleanup, and brought back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from swarm.project.model import Boxed as Record
from swarm.testing.lab import Lab, file_digests
from tests.sandbox.conftest import SESSION, Boxed
from tests.support.work import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from swarm import Swarm

pytestmark = pytest.mark.integration

#: They are about what the host has done to a worktree, which no agent in a box can do.
_OF_HOST = {kind.name for kind in KINDS if kind.damage is not None}
#: A box does not show the git folders of submodules; and these make worktrees or settings outside of the box.
_NOT_IN_BOX = {kind.name for kind in KINDS if "submodule" in kind.name} | {
    *("am_stopped", "rebase_with_autostash", "rebase_with_conflicts", "cherry_pick_with_conflicts", "own_settings"),
    *("merge_not_committed", "merge_with_conflicts"),
}
#: A third of the others: each takes as long as ten without a box.
_KINDS = [kind for kind in KINDS if kind.name not in _OF_HOST | _NOT_IN_BOX][::3]
#: What takes a side branch, or settings, that an agent has made itself.
_SIDE = """
git checkout -qb side HEAD~1; echo side > README; echo s > side.txt; git add -A; git commit -qm side
git checkout -q - ; echo here > README; git commit -qam here
"""
_OWN = {
    "merge with conflicts": f"{_SIDE} git merge side || true",
    "merge not committed": f"{_SIDE} git merge --no-commit -X ours side",
    "rebase with conflicts": f"{_SIDE} git rebase side || true",
    "cherry-pick with conflicts": f"{_SIDE} git cherry-pick side || true",
    "am stopped": f"{_SIDE} git format-patch -1 --stdout side > p; git am p || true",
    "own settings": "git config extensions.worktreeConfig true; git config --worktree user.name Me",
    "amended and reset": "echo 1 > a; git add a; git commit -qm a; git commit -qm b --amend; git reset -q HEAD~1",
    "detached with a stash": "echo 1 > a; git add a; git stash -q; git checkout -q --detach",
}


class InBox(Lab):
    """A lab in which git runs in the agent's box when it is to run in its worktree."""

    boxed: Boxed | None = None

    def git(self, *args: str, cwd: Path | None = None, check: bool = True, env: Mapping[str, str] | None = None) -> str:
        if self.boxed is None or cwd is None or not cwd.is_relative_to(self.boxed.tree):
            return super().git(*args, cwd=cwd, check=check, env=env)
        dates = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
        words = ("git", "-C", str(cwd), *args)
        code, out, err = self.boxed.run(*words, env={**dates, **(env or {})})
        assert code == 0 or not check, (args, os.fsdecode(err))
        return os.fsdecode(out).removesuffix("\n")


def state(boxed: Boxed) -> dict[str, Any]:
    """Return what git in the box says of the work, and the files."""
    asked = (
        ("ls-files", "--stage", "-v", "-z"),
        ("status", "--porcelain=v2", "--branch", "--ignored", "--untracked-files=all", "-z"),
        ("for-each-ref",),
        ("stash", "list"),
        ("log", "--walk-reflogs", "--format=%H %gs", "HEAD", "--"),
    )
    found: dict[str, Any] = {" ".join(words): boxed.run("git", *words)[:2] for words in asked}
    admin = boxed.base / "git" / "worktrees" / boxed.tree.name
    notes = sorted(p.name for p in admin.iterdir() if not p.name.endswith(".lock"))
    return {**found, "files": file_digests(boxed.tree, skip={".git"}), "notes": notes}


@pytest.mark.parametrize("kind", _KINDS, ids=lambda kind: kind.name)
def test_work_in_a_box_is_saved_removed_and_brought_back(tmp_path: Path, boxes: None, kind: Kind) -> None:
    lab = InBox(tmp_path)
    if kind.prepare is not None:
        kind.prepare(lab)
    swarm = lab.open(worktrees__durable=False, **kind.flags)
    swarm.create(SESSION, ["developer"])
    boxed = Boxed(lab)
    session = swarm.sessions.get(SESSION)
    record = session.agents[0]._replace(box=Record())
    boxed.world.sessions.write(session._replace(agents=(record,)))
    lab.boxed = boxed
    kind.make(lab, boxed.tree)

    assert_comes_back(swarm, boxed, kind.lost, unlike=bool(kind.unlike))


@pytest.mark.parametrize("name", _OWN)
def test_half_done_work_of_git_in_a_box_goes_on_after_a_restore(boxed: Boxed, name: str) -> None:
    lab = boxed.lab
    session = lab.swarm.sessions.get(SESSION)
    record = session.agents[0]._replace(box=Record())
    boxed.world.sessions.write(session._replace(agents=(record,)))
    boxed.sh("echo first > more; git add more; git commit -qm more")
    boxed.sh(_OWN[name])

    assert_comes_back(lab.swarm, boxed, ())


def assert_comes_back(swarm: Swarm, boxed: Boxed, lost: tuple[str, ...], *, unlike: bool = False) -> None:
    """Clean up by force and restore: git in the box says the same, and all files are there but for those announced."""
    boxed.run("git", "status")  # git writes the index anew
    before = state(boxed)

    swarm.cleanup([SESSION], force=True)

    assert not boxed.tree.exists()
    assert not boxed.base.exists()
    swarm.restore(SESSION)
    after = state(boxed)
    gone = [name for name in before["files"] if name not in after["files"]]
    assert all(any(name == one or name.startswith(f"{one}/") for one in lost) for name in gone)
    assert after["files"] == {name: digest for name, digest in before["files"].items() if name not in gone}
    ignored = "status --porcelain=v2 --branch --ignored --untracked-files=all -z" if gone or unlike else ""
    assert {k: v for k, v in after.items() if k not in ("files", ignored)} == {
        k: v for k, v in before.items() if k not in ("files", ignored)
    }
