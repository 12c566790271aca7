"""Any order of commands, kills and the user's own git, against a model that is a few dictionaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from swarm import SwarmError
from swarm.testing.lab import file_digests
from tests.support import crash
from tests.support.share import FULL
from tests.support.tracer import Action, trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from swarm import Swarm
    from swarm.testing.lab import Lab

pytestmark = [pytest.mark.crash, pytest.mark.timeout(3600 if FULL else 240)]

SESSIONS = ("one", "two")
ROLES = ("researcher", "developer")
KILLS = (Action.KILL_TREE, Action.KILL_SELF, Action.KILL_ROOT)


@dataclass
class Known:
    """What must be in one agent's worktree."""

    files: dict[str, str]
    tip: str


@dataclass
class Model:
    """What must be there."""

    sessions: dict[str, dict[str, Known]] = field(default_factory=dict)
    saved: dict[str, dict[str, Known]] = field(default_factory=dict)
    commits: set[str] = field(default_factory=set)


class Machine(RuleBasedStateMachine):
    """swarm in one repository, together with its user."""

    bench: crash.Bench

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.number = 0

    @initialize()
    def begin(self) -> None:
        """Start from a fresh repository."""
        if not (self.bench.images / "machine").exists():
            crash._remove(self.bench.site)
            crash.build_user(self.bench.site)
            self.bench.save("machine")
        self.lab: Lab = self.bench.load("machine")
        self.users = self._users()

    # --- commands ----------------------------------------------------------------------------------

    def _swarm(self) -> Swarm:
        return self.lab.open(worktrees__durable=False, worktrees__pool=2)

    def _tree(self, session: str, agent: str) -> Path:
        return self.lab.tree(agent, session)

    def _look(self, session: str) -> dict[str, Known]:
        return {
            role: Known(
                file_digests(self._tree(session, role), skip={".git"}),
                self.lab.git("rev-parse", f"swarm/{role}-{session}"),
            )
            for role in ROLES
        }

    def _made(self, session: str) -> None:
        self.model.sessions[session] = self._look(session)

    def _cleaned(self, session: str) -> None:
        self.model.saved[session] = self.model.sessions.pop(session)

    def _restored(self, session: str) -> None:
        self.model.sessions[session] = self.model.saved[session]

    @rule(session=st.sampled_from(SESSIONS))
    def create(self, session: str) -> None:
        """A session can be made exactly when there is none of its name."""
        try:
            self._swarm().create(session, ROLES)
        except SwarmError:
            assert session in self.model.sessions
        else:
            assert session not in self.model.sessions
            self._made(session)

    @rule(session=st.sampled_from(SESSIONS), force=st.booleans())
    def cleanup(self, session: str, force: bool) -> None:
        """It goes when it is clean, or by force."""
        try:
            self._swarm().cleanup([session], force=force)
        except SwarmError as error:
            refused = error.code == "WORK_AT_RISK" and not force
            assert refused or session not in self.model.sessions  # a model, not one expectation
        else:
            self._cleaned(session)

    @precondition(lambda self: self.model.saved.keys() - self.model.sessions.keys())
    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        """What was removed comes back."""
        session = data.draw(st.sampled_from(sorted(self.model.saved.keys() - self.model.sessions.keys())))
        self._swarm().restore(session)
        self._restored(session)

    # --- kills -------------------------------------------------------------------------------------

    def _killed(self, act: Callable[[], object], where: int, how: Action) -> None:
        child = crash.Child(act)
        outcome = trace(child, at=1 + where, action=how, record=False)
        words = child.words()
        assert outcome.exit_code in {None, 0, 3}, words
        self._swarm().recover()

    @rule(session=st.sampled_from(SESSIONS), where=st.integers(0, 250), how=st.sampled_from(KILLS))
    def killed_create(self, session: str, where: int, how: Action) -> None:
        """After the recovery the session is there as a whole, or not at all."""
        self._killed(lambda: self._swarm().create(session, ROLES), where, how)
        if session not in self.model.sessions and self._exists(session):
            self._made(session)

    @rule(session=st.sampled_from(SESSIONS), where=st.integers(0, 500), how=st.sampled_from(KILLS))
    def killed_cleanup(self, session: str, where: int, how: Action) -> None:
        """After the recovery it is there untouched, or gone and saved."""
        self._killed(lambda: self._swarm().cleanup([session], force=True), where, how)
        if session in self.model.sessions and not self._exists(session):
            self._cleaned(session)

    @precondition(lambda self: self.model.saved.keys() - self.model.sessions.keys())
    @rule(data=st.data(), where=st.integers(0, 300), how=st.sampled_from(KILLS))
    def killed_restore(self, data: st.DataObject, where: int, how: Action) -> None:
        """After the recovery it is back, or still saved."""
        session = data.draw(st.sampled_from(sorted(self.model.saved.keys() - self.model.sessions.keys())))
        self._killed(lambda: self._swarm().restore(session), where, how)
        if self._exists(session):
            self._restored(session)

    def _exists(self, session: str) -> bool:
        return session in {found.name for found in self.lab.swarm.sessions()}

    # --- agents and the user -------------------------------------------------------------------------

    @precondition(lambda self: self.model.sessions)
    @rule(data=st.data(), what=st.sampled_from(["commit", "dirty", "stage", "amend"]))
    def work(self, data: st.DataObject, what: str) -> None:
        """An agent works."""
        session = data.draw(st.sampled_from(sorted(self.model.sessions)))
        role = data.draw(st.sampled_from(ROLES))
        tree = self._tree(session, role)
        self.number += 1
        self.lab.write({f"file{self.number % 4}.txt": f"{self.number}\n"}, tree)
        if what in {"commit", "amend"}:
            self.lab.commit(f"work {self.number}", cwd=tree)
            self.model.commits.add(self.lab.git("rev-parse", "HEAD", cwd=tree))
        if what == "amend":
            self.lab.git("commit", "--quiet", "--amend", "--allow-empty", "-m", f"amended {self.number}", cwd=tree)
            self.model.commits.add(self.lab.git("rev-parse", "HEAD", cwd=tree))
        if what == "stage":
            self.lab.git("add", "--all", cwd=tree)
        self.model.sessions[session] = self._look(session)

    @rule(what=st.sampled_from(["branch", "gc", "pack-refs"]))
    def user(self, what: str) -> None:
        """The user works."""
        self.number += 1
        if what == "branch":
            self.lab.git("branch", f"users/{self.number}")
        elif what == "gc":
            self.lab.git("gc", "--quiet")
        else:
            self.lab.git("pack-refs", "--all")
        self.users = self._users()

    # --- what must always be true ----------------------------------------------------------------------

    def _users(self) -> dict[str, object]:
        refs = self.lab.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
        ours = {f"refs/heads/swarm/{role}-{session}" for role in ROLES for session in SESSIONS}
        return {
            "files": file_digests(self.lab.root, skip={".git", ".swarm", ".worktrees"}),
            "elsewhere": file_digests(self.bench.site / "elsewhere"),
            "refs": [ref for ref in refs if not ref.startswith("refs/swarm/") and ref.split()[0] not in ours],
            "index": (self.lab.root / ".git/index").read_bytes(),
            "config": (self.lab.root / ".git/config").read_text(),
            "exclude": (self.lab.root / ".git/info/exclude").read_text().partition("\n# >>> swarm")[0],
        }

    @invariant()
    def as_the_model_says(self) -> None:
        """Sessions, their files and tips; the user's things; no commit lost; nothing half."""
        if not hasattr(self, "lab"):
            return
        assert {session.name for session in self.lab.swarm.sessions()} == self.model.sessions.keys()
        for session, agents in self.model.sessions.items():
            assert self._look(session) == agents
        assert self._users() == self.users
        branches = self.lab.git("for-each-ref", "--format=%(refname:short)", "refs/heads/swarm/").split()
        wanted = {f"swarm/{role}-{session}" for role in ROLES for session in self.model.sessions}
        assert set(branches) == {"swarm/of-the-user"} | wanted
        assert self.model.commits <= crash.kept_commits(self.lab)
        git_dir = self.lab.root / ".git"
        assert [str(path) for path in git_dir.rglob("*.lock")] == []
        assert self.lab.swarm.operations.unfinished() == ()


def test_any_order_of_commands_and_kills(bench: crash.Bench) -> None:
    class Bound(Machine):
        pass

    Bound.bench = bench
    case = Bound.TestCase
    case.settings = settings(
        max_examples=300 if FULL else 12,
        stateful_step_count=40 if FULL else 14,
        deadline=None,
        derandomize=not FULL,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    case("runTest").runTest()
