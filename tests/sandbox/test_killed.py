"""Killed at a change of the disk, or as it starts a program: preparing, taking in, removing and restoring a box.

Each test counts the changes of one run and is then killed before some of them, other ones for each turn of the tests.
In others it is not swarm that is killed, but one of the programs that it starts: git, or bubblewrap with git inside.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from swarm.kit.errors import SwarmError
from swarm.machine import person
from swarm.project.model import Boxed as Record
from swarm.testing.lab import Lab
from tests.sandbox.conftest import SESSION, Boxed, is_whole
from tests.support.share import FULL, TURN
from tests.support.tree import as_agent, quiet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm.testing.panes import PaneLab

    Killing = Callable[..., None]

pytestmark = [pytest.mark.crash, pytest.mark.timeout(7200 if FULL else 300)]

_CHANGES = ("rename", "replace", "mkdir", "unlink", "rmdir", "link", "symlink", "write")
_MOST = 10_000
#: How many points a normal run tries.
_FEW = 6


def with_killed_child(act: Callable[[], object], at: int, count: int = -1) -> None:
    """Do an act in a process of which the n-th program that it starts is killed at once; it may fail."""
    pid = os.fork()
    if pid == 0:
        started = 0
        begin = subprocess.Popen.__init__

        def instead(self: subprocess.Popen[bytes], *words: Any, **more: Any) -> None:
            nonlocal started
            started += 1
            begin(self, *words, **more)
            if started == at:
                os.kill(self.pid, signal.SIGKILL)

        subprocess.Popen.__init__ = instead  # type: ignore[assignment, method-assign]
        try:
            with contextlib.suppress(SwarmError):
                act()
        finally:
            if count >= 0:
                os.write(count, str(started).encode())
            os._exit(0)
    os.waitpid(pid, 0)


def points(act: Callable[[], object], reset: Callable[[], object], how: Killing | None = None) -> range:
    """Return before which changes an act is to be killed; *reset* takes back what the counting run did."""
    reached, count = os.pipe()
    (how or killed)(act, _MOST, count)
    os.close(count)
    with os.fdopen(reached) as said:
        number = int(said.read())
    reset()
    step = 1 if FULL else max(1, number // _FEW)
    return range(1 + TURN % step, number + 1, step)


def killed(act: Callable[[], object], at: int, count: int = -1) -> None:
    """Run an act in a process that is killed before its n-th change."""
    pid = os.fork()
    if pid == 0:
        made = 0

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def instead(*words: Any, **more: Any) -> Any:
                nonlocal made
                made += 1
                if made == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*words, **more)

            return instead

        for name in _CHANGES:
            setattr(os, name, counted(getattr(os, name)))
        subprocess.Popen.__init__ = counted(subprocess.Popen.__init__)  # type: ignore[method-assign]
        try:
            act()
        finally:
            if count >= 0:
                os.write(count, str(made).encode())
            os._exit(0)
    os.waitpid(pid, 0)


class Work:
    """A boxed developer with a commit, a stash, and files that are not committed."""

    def __init__(self, folder: Path) -> None:
        self.lab = Lab(folder)
        swarm = self.lab.open(worktrees__durable=False, cleanup__background=False)
        swarm.create(SESSION, ["developer"])
        self.boxed = Boxed(self.lab)
        session = swarm.sessions.get(SESSION)
        self.boxed.world.sessions.write(session._replace(agents=(session.agents[0]._replace(box=Record()),)))
        self.boxed.sh(
            "echo s > s; git add s; git stash -q; echo 1 > one; git add one; git commit -qm one; echo 2 > two"
        )
        self.swarm = self.lab.open(worktrees__durable=False, cleanup__background=False)

    def is_all_there(self) -> bool:
        """Whether the worktree and the box have everything."""
        said = self.boxed.sh("git stash list | wc -l; git log --format=%s -1; cat one two").split()
        return said == ["1", "one", "1", "2"]


def at_each(
    folder: Path, prepare: Callable[[Work], object], act: Callable[[Work], object], how: Killing | None = None
) -> list[Work]:
    """Return one killed try for each point."""
    counted = Work(folder / "counted")
    prepare(counted)
    found = []
    for at in points(lambda: act(counted), lambda: None, how):
        work = Work(folder / str(at))
        prepare(work)
        (how or killed)(lambda work=work: act(work), at)  # type: ignore[misc]
        work.swarm.recover()
        found.append(work)
    assert found
    return found


#: Swarm itself, and what it starts.
WHO = pytest.mark.parametrize("how", [None, with_killed_child], ids=["swarm", "what it starts"])


@WHO
def test_taking_in_happens_or_not_and_the_next_one_does_it(tmp_path: Path, boxes: None, how: Killing | None) -> None:
    act = lambda work: work.swarm.worktrees.take_in("developer", SESSION)  # noqa: E731
    for work in at_each(tmp_path, lambda _: None, act, how):
        assert work.swarm.worktrees.take_in("developer", SESSION) == ""

        assert work.lab.git("log", "-1", "--format=%s", work.boxed.branch) == "one"
        assert not list((work.lab.root / ".git/objects/pack").glob("*.keep"))
        assert not list((work.lab.root / ".swarm/journal").glob("*.json"))
        assert is_whole(work.lab)
        assert work.is_all_there()


@WHO
def test_removing_keeps_all_or_saves_all(tmp_path: Path, boxes: None, how: Killing | None) -> None:
    for work in at_each(tmp_path, lambda _: None, lambda work: work.swarm.cleanup([SESSION], force=True), how):
        if work.swarm.sessions():
            assert work.is_all_there()
            work.swarm.cleanup([SESSION], force=True)
        assert not work.boxed.base.exists()

        work.swarm.restore(SESSION)

        assert work.is_all_there()


def test_discarding_keeps_all_or_takes_all_away(tmp_path: Path, boxes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person, "doubt", lambda: "")  # what is killed must be this process, and that is no person's

    def discard(work: Work) -> None:
        work.swarm.cleanup([SESSION], force=True, discard=True)

    for work in at_each(tmp_path, lambda _: None, discard):
        if work.swarm.sessions():
            assert work.is_all_there()
            discard(work)
        work.swarm.recover()
        assert not work.boxed.base.exists()
        assert not work.boxed.tree.exists()
        assert is_whole(work.lab)


def test_restoring_brings_back_all_or_nothing(tmp_path: Path, boxes: None) -> None:
    removed = lambda work: work.swarm.cleanup([SESSION], force=True)  # noqa: E731
    for work in at_each(tmp_path, removed, lambda work: work.swarm.restore(SESSION)):
        if not work.swarm.sessions():
            assert not work.boxed.base.exists()
            work.swarm.restore(SESSION)

        assert work.is_all_there()


def test_preparing_makes_the_whole_box_or_nothing(panes: PaneLab, boxes: None) -> None:
    act = lambda: panes.swarm.start("s", ["developer"], command="sleep 1000", sandbox=True)  # noqa: E731

    def reset() -> None:
        panes.swarm.recover()
        if panes.swarm.sessions():
            panes.swarm.cleanup(["s"], force=True)
            panes.swarm.recover()

    for at in points(act, reset):
        killed(act, at)
        panes.swarm.recover()
        there = bool(panes.swarm.sessions())
        assert (panes.root / ".swarm/sessions/s").exists() == there
        assert bool(panes.git("branch", "--list", "swarm/*")) == there
        if there:
            assert (panes.root / ".swarm/sessions/s/box/developer/git/HEAD").exists()
        reset()


@pytest.mark.parametrize("kind", ["subtree", "worker"])
def test_a_child_of_a_lead_in_a_box_is_there_with_its_box_or_not_at_all(panes: PaneLab, boxes: None, kind: str) -> None:
    quiet(panes)
    panes.write({".swarm/roles/helper.yaml": "name: helper\ninstructions: help\ncommand: [sleep, '1000']\n"})
    panes.swarm.start("fx", ["developer"], command="sleep 1000", sandbox=True)
    boss = as_agent(panes, "developer", "fx")
    if kind == "subtree":
        name, act = "kid", lambda: boss.tree.spawn_subtree("x", "kid", role="helper")
    else:
        name, act = "fx-kid", lambda: boss.tree.spawn_worker("kid", "x", role="helper")
    box = panes.root / f".swarm/sessions/{name}/box"

    def reset() -> None:
        panes.swarm.recover()
        if any(one.name == name for one in panes.swarm.sessions()):
            panes.swarm.cleanup([name], force=True)
            panes.swarm.recover()

    for at in points(act, reset):
        killed(act, at)
        panes.swarm.recover()
        there = any(one.name == name for one in panes.swarm.sessions())
        assert box.exists() == there
        if there:
            assert panes.swarm.sessions.get(name).agents[0].is_boxed
            assert (next(box.iterdir()) / "git").exists() == (kind == "subtree")
        reset()
    assert is_whole(panes)
