"""What the screen of an agent's program showed when it was last read.

A supervisor cannot read the screen.  The process that shows the states in tmux reads it whenever the program has
written something new, and leaves this note: a fact with its age.  Standard library only.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from swarm.machine.run_folder import runfiles
from swarm.machine.run_folder.program_facts import now_ms
from swarm.programs.status import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.programs.status import ProgramFacts, Status

#: The screen is read some seconds after the program has written; a note that is older than that tells of before.
_BEHIND_MS = 30_000
_TEXTS = ("state", "detail", "why")


def note(run_dir: Path, status: Status) -> None:
    """Leave a note of a state that the screen decided; of any other there is none to leave."""
    decided = next((one for one in status.evidence if one.decides and one.source == "screen"), None)
    if decided is not None:
        said = {"state": str(status.state), "detail": status.detail, "why": decided.text, "at_ms": now_ms()}
        with contextlib.suppress(OSError):  # the disk is full, or the agent is gone
            runfiles.write(str(run_dir), runfiles.SCREEN, said)


def read(run_dir: str | Path, facts: ProgramFacts, written_ms: int) -> Verdict | None:
    """Return what the screen showed; None where nobody has read it since the program wrote to it.

    Args:
        written_ms: when the program last wrote to its terminal.
    """
    said = runfiles.read(str(run_dir), runfiles.SCREEN) or {}
    at_ms, texts = said.get("at_ms"), [said.get(key) for key in _TEXTS]
    if not isinstance(at_ms, int) or not all(isinstance(one, str) for one in texts):
        return None
    if at_ms < facts.started_ms or at_ms + _BEHIND_MS < written_ms:
        return None
    state, detail, why = map(str, texts)
    return Verdict(state, detail, "", why, at_ms)
