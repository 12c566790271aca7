"""The folders in which tasks without a worktree work: each is a session, which a later task can name to go on there.

<session id>/session.json   swarm's mark: the program and its conversation, the folder, the box
<session id>/work/          where the program works, unless the task names a folder; nothing else is its own
<session id>/.swarm-box/    the private home of a program in a box

They lie in ``workspaces/`` of the state folder, or where the caller wants them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit import files
from swarm.kit.errors import StateDirProblem, SwarmError
from swarm.machine import own
from swarm.project import codec
from swarm.sandbox import private

if TYPE_CHECKING:
    from swarm.git.running.runner import GitRunner
    from swarm.project.layout import Layout
    from swarm.project.model import Boxed
    from swarm.tasks.values import AgentTask

_MARK, _WORK = "session.json", "work"
#: A box that is being made.
_BEGUN = f"{own.TASK_BOX}.new"
_LARGEST = 1 << 16


class Where(NamedTuple):
    """Where the tasks of one session work.

    Attributes:
        top: the folder of the session.
        work: where the program works.
    """

    top: Path
    work: Path

    @property
    def box(self) -> Path:
        """The folder of its box."""
        return self.top / own.TASK_BOX

    def known(self) -> dict[str, Any]:
        """Return what swarm's mark says; empty: there is none."""
        try:
            return codec.decode(files.read_small(self.top / _MARK, _LARGEST), str(self.top))
        except (OSError, SwarmError):
            return {}

    def conversation(self, program: str) -> str:
        """Return the conversation that a program has here; empty without one."""
        known = self.known()
        return str(known.get("conversation", "")) if known.get("program") == program else ""

    def boxed(self) -> Boxed | None:
        """Return how its box was decided when the session began; None: it has none.

        Raises:
            RecordProblem: nobody knows what it may show.
        """
        return codec.boxed_of(self.known().get("box"))


def where(layout: Layout, session_id: str, session_dir: str = "", workdir: str = "") -> Where:
    """Return where the tasks of a session work.

    Args:
        session_dir: the folder of all sessions of the caller's; empty: swarm's own.
        workdir: the folder in which the program is to work; empty: one that swarm makes.
    """
    if session_dir:
        own.trust(session_dir)  # from here on no link is followed there
    top = Path(session_dir or layout.workspaces) / session_id
    return Where(top, Path(workdir) if workdir else top / _WORK)


def of(layout: Layout, task: AgentTask) -> Where:
    """Return where a task works."""
    return where(layout, task.session_id, task.session_dir, task.workdir)


def prepare(git: GitRunner, layout: Layout, task: AgentTask) -> Path:
    """Make the folder of a task's session, or take the one that is there; return where its program works.

    Raises:
        StateDirProblem: there is a folder without swarm's mark.
    """
    found = of(layout, task)
    files.make_private_dir(found.top.parent)
    files.make_private_dir(found.top)
    if not files.exists(found.top / _MARK) and any(not files.is_temporary(one.name) for one in found.top.iterdir()):
        words = f"cannot use {found.top}: swarm did not make it"
        raise StateDirProblem(words, hint="move it away, or name another session")
    note(layout, task)
    if not task.workdir:
        files.make_private_dir(found.work)
    if task.is_boxed and not files.exists(found.box):
        begun = found.top / _BEGUN
        files.remove_tree(begun)
        files.make_private_dir(begun)
        private.make_home(git, begun)
        files.rename_within(begun, found.box)
    return found.work


def note(layout: Layout, task: AgentTask) -> None:
    """Write down which conversation goes on in a task's session, and that this is the last task that names it."""
    found = of(layout, task)
    record: dict[str, Any] = {
        "program": task.program,
        "conversation": task.conversation,
        "task": task.id,
        "workdir": task.workdir,
        "box": codec.boxed_to_dict(task.box),
    }
    if found.known() != record:
        files.write_atomic(found.top / _MARK, codec.encode(record))


def claim(layout: Layout, task: AgentTask) -> None:
    """Keep a session that is there for a new task, so that it does not go with an older one."""
    if of(layout, task).known():
        note(layout, task)


def remove_after(layout: Layout, task: AgentTask) -> None:
    """Remove the folder of a task's session, unless a later task named it; a folder that the task named stays."""
    found = of(layout, task)
    if found.known().get("task") == task.id:
        files.remove_tree(found.top)
