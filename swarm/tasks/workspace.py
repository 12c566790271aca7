"""The folders in which tasks without a worktree work: each is a session, which a later task can name to go on there.

workspaces/<session id>/session.json    swarm's mark: the program, and its conversation
workspaces/<session id>/work/           where the program works; the rest of the repository is not its own
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import StateDirProblem, SwarmError
from swarm.project import codec

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.project.layout import Layout
    from swarm.tasks.values import AgentTask

_MARK, _WORK = "session.json", "work"
_LARGEST = 1 << 16


def folder_of(layout: Layout, session_id: str) -> Path:
    """Return where the program of a session works."""
    return layout.workspaces / session_id / _WORK


def home_of(layout: Layout, session_id: str) -> Path:
    """Return the private folder of a session, which stays between its runs."""
    return layout.workspaces / session_id


def conversation(layout: Layout, session_id: str, program: str) -> str:
    """Return the conversation that a program has in a session; empty without one."""
    known = _read(layout, session_id)
    return str(known.get("conversation", "")) if known.get("program") == program else ""


def _read(layout: Layout, session_id: str) -> dict[str, Any]:
    try:
        return codec.decode(files.read_small(layout.workspaces / session_id / _MARK, _LARGEST), session_id)
    except (OSError, SwarmError):
        return {}


def prepare(layout: Layout, task: AgentTask) -> Path:
    """Make the folder of a task's session, or take the one that is there; return where its program works.

    Raises:
        StateDirProblem: there is a folder without swarm's mark.
    """
    top = layout.workspaces / task.session_id
    files.make_private_dir(layout.workspaces)
    files.make_private_dir(top)
    if not files.exists(top / _MARK) and any(not files.is_temporary(one.name) for one in top.iterdir()):
        raise StateDirProblem(f"cannot use {top}: swarm did not make it", hint="move it away, or name another session")
    note(layout, task)
    files.make_private_dir(top / _WORK)
    return top / _WORK


def note(layout: Layout, task: AgentTask) -> None:
    """Write down which conversation goes on in a task's session, and that this is the last task that names it."""
    record = {"program": task.program, "conversation": task.conversation, "task": task.id}
    if _read(layout, task.session_id) != record:
        files.write_atomic(layout.workspaces / task.session_id / _MARK, codec.encode(record))


def claim(layout: Layout, task: AgentTask) -> None:
    """Keep a session that is there for a new task, so that it does not go with an older one."""
    if _read(layout, task.session_id):
        note(layout, task)


def remove_after(layout: Layout, task: AgentTask) -> None:
    """Remove the folder of a task's session, unless a later task named it."""
    if _read(layout, task.session_id).get("task") == task.id:
        files.remove_tree(layout.workspaces / task.session_id)
