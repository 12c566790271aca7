"""What an agent's supervisor answers: concluded at that moment, from the files that are there.

The same facts and the same conclusion as in a listing.  What a supervisor does not see is the screen; it goes by the
note of the process that looked at it last, which says when that was.
"""

from __future__ import annotations

import json
import os

from swarm.bus.reader.waiting import unread
from swarm.machine import records
from swarm.programs import blocking, facts
from swarm.programs.reading import seen
from swarm.programs.status import PaneFacts, State, conclude

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm.supervisor.gate import Launch


def refusal(code: str, message: str) -> bytes:
    """Return the answer to what cannot be answered."""
    return _line({"type": "error", "error": {"code": code, "message": message}})


def answer(launch: Launch) -> bytes:
    """Return the answer to a request for the status."""
    return _line({"type": "status", "agent": _agent(launch)})


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps({"schema": records.SCHEMA, **record}).encode("ascii") + b"\n"


def _agent(launch: Launch) -> dict[str, Any]:
    known = facts.facts(launch.run_dir)
    screen = seen.read(launch.run_dir, known, _written_ms())
    found = conclude(launch.program, known, PaneFacts(os.environ.get("TMUX_PANE", ""), screen=screen))
    waits = found.state is State.WAITING
    blocked = blocking.blocked(_state(launch), launch.run_dir, launch.session, launch.agent) if waits else None
    return {
        "name": launch.agent,
        "role": launch.role,
        "session": launch.session,
        **({"pod": launch.pod} if launch.pod else {}),
        "program": launch.program,
        "pid": known.pid if known.alive else 0,
        "state": found.state,
        "detail": found.detail,
        "since_ms": found.since_ms,
        "evidence": [one._asdict() for one in found.evidence],
        **({"blocked": blocked} if blocked else {}),
        "unread": unread(launch.mail.inbox),
    }


def _state(launch: Launch) -> str:
    """Return the ``.swarm`` folder: the run folder is ``sessions/<session>/run/<agent>`` in it."""
    return launch.run_dir.rsplit("/", 4)[0]


def _written_ms() -> int:
    """Return when the program last wrote to its terminal, as far as the system tells; 0 without one."""
    try:
        return os.stat(os.ttyname(0)).st_mtime_ns // 1_000_000
    except OSError:
        return 0
