"""Everything a verb may touch, as one value."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit import files
from swarm.project.layout import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from swarm.api.parts import Parts
    from swarm.callers.caller import Caller
    from swarm.git.repository import Git
    from swarm.machine.identity import Identity
    from swarm.merging.checkout import Merging
    from swarm.project.config.settings import Settings
    from swarm.project.journal import Journal
    from swarm.project.layout import Layout
    from swarm.project.model import Session
    from swarm.project.ports import Terminal
    from swarm.project.sessions import Sessions
    from swarm.worktrees.setup.preparing import Preparing
    from swarm.worktrees.trees.trees import Trees
    from swarm.worktrees.trees.uncommitted import Uncommitted


class World(NamedTuple):
    """One repository and swarm's files in it.

    Attributes:
        parts: what only some verbs need, made when it is first used.
        environ: the caller's environment, for what is started.
        swarm_dir: the swarm directory in use, for the user's roles; the repository's own where there is no other.
        progress: told, in a few words, what is being done; never decides anything.
        acting: the agent for which a server acts, as it saw it; None: none.
        calling: for whom else a server acts; None without ``acting``: the caller is this process.
    """

    git: Git
    layout: Layout
    settings: Settings
    journal: Journal
    sessions: Sessions
    parts: Parts
    environ: Mapping[str, str]
    swarm_dir: Path
    progress: Callable[[str], None] = lambda _text: None
    acting: Identity | None = None
    calling: Caller | None = None

    @property
    def trees(self) -> Trees:
        """Working trees as git objects."""
        return self.parts.trees

    @property
    def uncommitted(self) -> Uncommitted:
        """The reader of uncommitted changes in worktrees."""
        return self.parts.uncommitted

    @property
    def merging(self) -> Merging:
        """Merges and diffs."""
        return self.parts.merging

    @property
    def terminal(self) -> Terminal:
        """The tmux server."""
        return self.parts.terminal

    @property
    def preparing(self) -> Preparing:
        """The driver that prepares worktrees."""
        return self.parts.preparing

    @property
    def ignore_text(self) -> bytes:
        """The text of ``.gitignore`` in swarm's folders."""
        return self.parts.ignore_text


def in_session(world: World, session: Session | None) -> World:
    """Return the world as a session has it: its agents keep the swarm directory with which they were started."""
    if session is None or not session.swarm_dir or not files.exists(Path(session.swarm_dir, MARKER)):
        return world
    return world._replace(swarm_dir=Path(session.swarm_dir))


def is_elsewhere(world: World, session: Session) -> bool:
    """Whether a session was made with another swarm directory than the one in use, which does not list it.

    The repository's own folder stands in while the user has no ``~/.swarm``: one made later takes its place.
    """
    from swarm.project.swarm_dir import dirs

    made, now = (os.path.realpath(one) for one in (in_session(world, session).swarm_dir, world.swarm_dir))
    users = dirs.user_dir(world.environ)
    took_its_place = (
        users is not None and now == os.path.realpath(users) and made == os.path.realpath(world.layout.state)
    )
    return made != now and not took_its_place


def new_operation_id() -> str:
    """Return an id for an operation; ids sort by time."""
    return (
        time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        + f"-{time.time_ns() // 1_000_000 % 1000:03d}{os.urandom(4).hex()}"
    )
