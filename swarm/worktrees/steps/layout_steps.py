"""The step that writes down, for people and other tools, who works in a folder; swarm itself reads the records.

<worktree of a lead>/.swarm/config.local         role = "tl"
<folder of a parent>/.swarm/agents/<worker>/     agent.json
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from swarm.project.world import World

STATE, AGENTS = ".swarm", "agents"
#: What the documents call a lead.
LEAD = 'role = "tl"\n'
CONFIG, AGENT = "config.local", "agent.json"
_IGNORE = "*\n"


@dataclass(frozen=True, slots=True)
class WriteLayout(Step):
    """Write who works in a folder, below its ``.swarm``, which git does not see.

    Attributes:
        tree: the folder.
        worker: whose folder is written; empty: the folder is that of a lead.
        text: what stands in the file.
    """

    tree: str
    worker: str
    text: str

    def do(self, world: World) -> None:
        top = Path(self.tree, STATE)
        files.make_private_dir(top)
        if not files.exists(top / ".gitignore"):
            files.write_atomic(top / ".gitignore", _IGNORE.encode(), durable=False)
        where = top
        if self.worker:
            files.make_private_dir(top / AGENTS)
            where = top / AGENTS / self.worker
            files.make_private_dir(where)
        files.write_atomic(where / (AGENT if self.worker else CONFIG), self.text.encode(), durable=False)

    def undo_files(self, world: World) -> None:
        if self.worker:
            remove(Path(self.tree), self.worker)
        # That of a lead goes with its worktree.

    def say(self) -> str:
        name = f"{AGENTS}/{self.worker}/{AGENT}" if self.worker else CONFIG
        return f"write {STATE}/{name} for people"


def remove(tree: Path, worker: str) -> None:
    """Take away what was written of a worker; the folder of its parent stays."""
    agents = tree / STATE / AGENTS
    with suppress(SwarmError, OSError):  # it may be gone with the worktree, and is nobody's work
        if os.path.islink(agents) or os.path.islink(tree / STATE):
            return
        files.remove_tree(agents / worker)
        files.remove_empty(agents)
