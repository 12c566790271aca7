"""What the children of an agent draw on its budget: a small file for each of them in its run folder.

A file is there before the child starts.  It holds the child's whole budget while the child runs, and what the child
and all below it used up once it has ended.  Standard library only: the agent's supervisor reads them, too.
"""

from __future__ import annotations

import os

from swarm.machine import hook_events, records
from swarm.machine.run_folder import runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterator

#: What can be drawn; time passes for parent and child alike.
KINDS = ("tokens", "cost")
LOCK = "drawn.lock"
_PREFIX, _SUFFIX = "drawn-", ".json"


def name_of(session: str, agent: str) -> str:
    """Return the name of a child's file."""
    return f"{_PREFIX}{agent}@{session}{_SUFFIX}"


def total(run_dir: str, but: Container[str] = ()) -> dict[str, float]:
    """Return how much the children of an agent draw on its budget.

    Args:
        but: names of files that do not count.
    """
    found = dict.fromkeys(KINDS, 0.0)
    for name, draw in _all(run_dir):
        if name not in but:
            for kind in KINDS:
                found[kind] += amount(draw, kind)
    return found


def amount(draw: dict[str, object], kind: str) -> float:
    """Return what one child draws."""
    value = draw.get(kind)
    return float(value) if isinstance(value, int | float) and value > 0 else 0.0


def conversations(run_dir: str) -> set[str]:
    """Return the conversations that children have in the agent's own folder, by their ids: those are not its own."""
    found: set[str] = set()
    for _, draw in _all(run_dir):
        folder, known = draw.get("folder"), draw.get("conversations")
        if isinstance(folder, str) and folder:
            found |= {str(one) for one in known} if isinstance(known, list) else set()
            found |= current(folder)
    return found


def current(run_dir: str) -> set[str]:
    """Return the conversation that an agent's program has now, as its hooks tell; empty when they do not."""
    now = (records.read(os.path.join(run_dir, hook_events.CONVERSATION)) or {}).get("id")
    return {now} if isinstance(now, str) and now else set()


def _all(run_dir: str) -> Iterator[tuple[str, dict[str, object]]]:
    try:
        names = os.listdir(run_dir)
    except OSError:
        return
    for name in names:
        if name.startswith(_PREFIX) and name.endswith(_SUFFIX):
            draw = runfiles.read(run_dir, name)
            if draw is not None:
                yield name, draw
