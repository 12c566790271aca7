"""The paths below ``.swarm/`` and ``.worktrees/``.

<root>/.worktrees/<agent>-<session>/        an agent's working tree      (layout: session)
<root>/.worktrees/<agent>/                  the same                     (layout: role)
<root>/.swarm/worktrees/<slug>/             the worktree of a lead that was spawned (tree.worktree_base)
<root>/.swarm/lock                          the repository lock; never deleted
<root>/.swarm/journal/<operation>.json      an operation that is not finished
<root>/.swarm/journal/history.jsonl         what was done, a line each
<root>/.swarm/sessions/<session>/session.json
<root>/.swarm/sessions/<session>/run/<agent>/   what its program was told, and how it ended
<root>/.swarm/sessions/<session>/box/<agent>/   its private git folder and home, if it works in a box
<root>/.swarm/tasks/<task>/                 a task: task.json, events.jsonl, runs/<operation>/
<root>/.swarm/workspaces/<session id>/      where tasks work that have no worktree
<root>/.swarm/usage.jsonl                   what removed agents had used up, a line each
<root>/.swarm/approvals/                    what agents asked to be allowed, and the answers
<root>/.swarm/salvage/<session>/<agent>/<id>/   what git objects cannot hold
<root>/.swarm/trash/<operation>/            moved aside, about to be deleted
<root>/.swarm/pool/<operation>/             a worktree without work, for the next start
<root>/.worktrees/.swarm-trash/<operation>/ the same, where .worktrees is on another file system
refs/swarm/op/<operation>                   proof that the branches of an operation are ours
refs/swarm/salvage/<session>/<agent>/<id>/  the saved work
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

from swarm.machine import session_record
from swarm.project import names

STATE_DIR = ".swarm"
SUBTREES = f"{STATE_DIR}/worktrees"
#: Beside the worktrees; no agent can have this name.
TRASH_BESIDE = ".swarm-trash"
MARKER = ".swarm-dir.txt"
OP_REFS = "refs/swarm/op/"
SALVAGE_REFS = "refs/swarm/salvage/"
HEADS = "refs/heads/"
#: In an agent's box folder: the path of its worktree.
BOXED_TREE = "tree"
#: Of programs of the user's, a file each.
GRANTS = "grants"
#: In git's folder for a worktree: a copy of the session's record.
RECORD_COPY = "swarm-session.json"


class Layout:
    """The paths of one repository's swarm state.

    Attributes:
        root: the main checkout, absolute.
        base_path: the folder of the worktrees, relative to *root*.
        by_role: True for the user's original ``.worktrees/<role>``.
        subtrees: the folder of the worktrees of spawned leads; default: below *state*.
        state: swarm's own folder; default: ``.swarm`` in *root*.
    """

    def __init__(
        self,
        root: Path,
        base_path: str = names.WORKTREE_BASE,
        *,
        by_role: bool = False,
        state: Path | None = None,
        subtrees: str = SUBTREES,
    ) -> None:
        self.root = root
        self.state = state or root / STATE_DIR
        self.base_path = base_path
        self.by_role = by_role
        self.subtrees = self.state / "worktrees" if subtrees == SUBTREES else root / subtrees

    @cached_property
    def base(self) -> Path:
        """The folder that holds the worktrees."""
        return self.root / self.base_path

    @property
    def tops(self) -> tuple[Path, ...]:
        """The folders below which all is swarm's to write and remove, and no link is followed."""
        return self.state, self._top(self.base), self._top(self.subtrees)

    def _top(self, folder: Path) -> Path:
        inside = folder.is_relative_to(self.root) and folder != self.root
        return self.root / folder.relative_to(self.root).parts[0] if inside else folder

    @cached_property
    def lock(self) -> Path:
        """The file whose kernel lock serialises every change."""
        return self.state / "lock"

    @cached_property
    def dropped(self) -> Path:
        """The file that says which saved work was dropped, and when; until it is deleted it can be restored."""
        return self.state / "dropped.json"

    @cached_property
    def journal(self) -> Path:
        """The folder of unfinished operations and of the history."""
        return self.state / "journal"

    @cached_property
    def history(self) -> Path:
        """One line per finished operation."""
        return self.journal / "history.jsonl"

    @cached_property
    def sessions(self) -> Path:
        """The folder of the session records."""
        return self.state / "sessions"

    def session_file(self, session: str) -> Path:
        """The record of one session."""
        return self.sessions / session / session_record.FILE

    def run_folder(self, session: str, agent: str) -> Path:
        """Private notes about an agent's program: its input, its process, its end."""
        return self.sessions / session / "run" / agent

    def box_folder(self, session: str, agent: str) -> Path:
        """The private git folder and the home of an agent that works in a box."""
        return self.sessions / session / "box" / agent

    @cached_property
    def salvage(self) -> Path:
        """The saved work outside git's objects."""
        return self.state / "salvage"

    def salvage_folder(self, session: str, agent: str, salvage_id: str) -> Path:
        """The files of one salvage entry."""
        return self.salvage / session / agent / salvage_id

    @cached_property
    def tasks(self) -> Path:
        """The folder of the tasks."""
        return self.state / "tasks"

    @cached_property
    def workspaces(self) -> Path:
        """The folders in which tasks without a worktree work."""
        return self.state / "workspaces"

    @property
    def grants(self) -> Path:
        """The grants for programs of the user's."""
        return self.state / GRANTS

    @property
    def approvals(self) -> Path:
        """The agents' requests and their answers."""
        return self.state / "approvals"

    @property
    def usage(self) -> Path:
        """The usage of removed agents, a line each."""
        return self.state / "usage.jsonl"

    @cached_property
    def trash(self) -> Path:
        """Where things go by rename before they are deleted."""
        return self.state / "trash"

    @cached_property
    def pool(self) -> Path:
        """The worktrees that wait for the next start."""
        return self.state / "pool"

    def trash_folder(self, operation: str) -> Path:
        """The trash of one operation."""
        return self.trash / operation

    @cached_property
    def trash_beside(self) -> Path:
        """Where worktrees go before they are deleted, if they are on another file system than the trash."""
        return self.base / TRASH_BESIDE

    def worktree(self, agent: str, session: str) -> Path:
        """The working tree of an agent."""
        return self.base / (agent if self.by_role else names.tail(agent, session))


def is_place_of_run(tree: Path, swarm_dir: str) -> bool:
    """Whether ``swarm run`` makes its worktrees there: directly below ``worktrees`` in a swarm directory."""
    return bool(swarm_dir) and os.path.realpath(tree.parent) == os.path.realpath(Path(swarm_dir, "worktrees"))


def op_ref(operation: str) -> str:
    """The ref whose existence proves that an operation made its branches."""
    return OP_REFS + operation


def salvage_ref(session: str, agent: str, salvage_id: str, part: str) -> str:
    """The ref of one part (``head``, ``index``, ``work``, …) of a salvage entry."""
    return f"{SALVAGE_REFS}{session}/{agent}/{salvage_id}/{part}"


def root_dir(wanted: str, *, cwd: Path, swarm_dir: Path, home: str = "") -> Path:
    """Return the folder that a role's ``root_dir`` means.

    Args:
        wanted: absolute, from ``~/``, or relative; ``.`` is *cwd*.
        cwd: where the command was run.
        swarm_dir: from where relative paths count.
        home: of the user.
    """
    if wanted == ".":
        return cwd
    if wanted.startswith("~/") and home:
        wanted = home + wanted[1:]
    return Path(os.path.normpath(swarm_dir / wanted))
