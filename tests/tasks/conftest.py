"""A lab whose tasks try again at once, and what tests of tasks look at."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import TaskOver
from swarm.kit import kill
from swarm.sandbox.check import check
from swarm.testing.lab import Lab
from swarm.testing.panes import PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm import AgentTask, TaskRun

#: A busy machine takes its time.
LONG = 90.0


class TaskLab(Lab):
    """A lab with a ledger, into which programs write what they do."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.env["SWARM_TASKS_RETRY_PAUSE"] = "0"
        self.file = folder / "ledger"

    def demo(self, *orders: str, **options: object) -> AgentTask:
        """Submit a task for the demo agent: an order a line."""
        prompt = "".join(f"demo: {order}\n" for order in orders)
        return self.swarm.tasks.submit(prompt, program="demo", **options)  # type: ignore[arg-type]  # by name

    def shell(self, script: str, **options: object) -> AgentTask:
        """Submit a script."""
        return self.swarm.tasks.submit(script, program="shell", **options)  # type: ignore[arg-type]  # by name

    def write_down(self, what: str) -> str:
        """Return the order that writes into the ledger."""
        return f"append {self.file} {what}"

    def ledger(self) -> list[str]:
        """Return what was written into the ledger."""
        return self.file.read_text().splitlines() if self.file.exists() else []

    def over(self, task: AgentTask) -> AgentTask:
        """Wait for the end of a task, or of its turn."""
        return self.swarm.tasks.wait(task.id, LONG)

    def running(self, task: AgentTask) -> TaskRun:
        """Wait until a task's program has begun, by its own word in the ledger; return its run."""
        wait_for(lambda: bool(self.ledger()), "the program's first word", LONG)
        found = self.swarm.tasks.get(task.id).run
        assert found is not None
        return found

    def started(self) -> list[tuple[int, int]]:
        """Return the living processes that tasks have started."""
        tasks = self.root / ".swarm" / "tasks"
        mark = os.fsencode(f"SWARM_STATE_DIR={tasks.parent}")
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                environ = Path("/proc", name, "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in environ and any(word.startswith(b"SWARM_AGENT_ID=") for word in environ):
                found += kill.tree(int(name))[:1]
        return found


class PanesLab(TaskLab, PaneLab):
    """The same with panes, and a role for work in worktrees."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.write({"roles/dev.yaml": "name: dev\ninstructions: Do it.\n"})
        self.commit("a role")

    def held(self, task_id: str, *orders: str) -> AgentTask:
        """Have a held task in a worktree, after its first turn."""
        how = {"hold": True, "role": "dev", "worktree": True, "task_id": task_id}
        return self.over(self.demo("steps 0", "delay 0", *orders, **how))

    def in_pane(self, session: str) -> list[int]:
        """Return the programs that agents of a session have in panes."""
        groups = [one for one in self.swarm.status() if one.session.name == session]
        return [one.pid for group in groups for one in group.agents if one.pane and one.status.runs]


@pytest.fixture
def panes(tmp_path: Path) -> Iterator[PanesLab]:
    """Give a lab with panes; what its tasks left running is ended."""
    made = PanesLab(tmp_path.resolve())
    try:
        yield made
    finally:
        end_tasks(made)
        made.close()


def end_tasks(lab: TaskLab) -> None:
    """End all tasks of a lab."""
    for task in lab.swarm.tasks():
        with contextlib.suppress(TaskOver):  # it may end meanwhile
            lab.swarm.tasks.cancel(task.id)


@pytest.fixture
def boxes() -> None:
    """Leave a test out where no box can be made; with ``SWARM_REQUIRE_BOX`` it fails."""
    found = check(os.environ)
    if not found.available:
        (pytest.fail if os.environ.get("SWARM_REQUIRE_BOX") else pytest.skip)(found.cause)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[TaskLab]:
    """Give a lab; what its tasks left running is ended."""
    made = TaskLab(tmp_path.resolve())
    try:
        yield made
    finally:
        end_tasks(made)
