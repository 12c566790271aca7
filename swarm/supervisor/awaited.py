"""Check for overdue replies.

The file is made before the message is sent, and removed when its sender was told that nobody answered, or there was
nothing to tell.  Whoever sees that the time is over may do that, as often as it takes; see ``messages/deadlines.py``.
"""

from __future__ import annotations

import os
import time

from swarm.machine import processes
from swarm.machine.inbox_watch import SCAN_EVERY, up_ms
from swarm.machine.run_folder import runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swarm.supervisor import gate
    from swarm.supervisor.chores import Chores

FOLDER = "awaited"
_END = ".json"
#: The sender's supervisor is the first that looks; each of the others gives those before it so much time.
_TURN_MS = 5_000
#: After a look that did not help.
_ONCE_MORE_MS = 30_000


class Awaited:
    """One message that is to be answered.

    Attributes:
        people: the address of its sender, and of each recipient.
        left_ms: how long until the time is over; negative afterwards.
        about: what else was written down of it.
    """

    def __init__(self, message_id: str, people: list[str], left_ms: int, about: Mapping[str, object]) -> None:
        self.id = message_id
        self.people = people
        self.left_ms = left_ms
        self.about = about


def record(sender: str, to: list[str], within_ms: int, about: Mapping[str, object]) -> dict[str, object]:
    """Return the record of a message with a deadline before it is sent."""
    return {
        "people": [sender, *to],
        "about": about,
        "boot": processes.boot_id(),
        "due_up_ms": up_ms() + within_ms,  # within one boot no settable clock decides
        "due_ms": _now_ms() + within_ms,
    }


def name_of(message_id: str) -> str:
    """Return the name of the file of a message."""
    return message_id + _END


def read_all(folder: str) -> Iterator[Awaited]:
    """Yield the notes of a folder; unreadable files are skipped."""
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in sorted(names):
        found = runfiles.read(folder, name) if name.endswith(_END) and name[0] != "." else None
        if found is not None:
            people, left, about = found.get("people"), _left_ms(found), found.get("about")
            if isinstance(people, list) and left is not None and isinstance(about, dict):
                yield Awaited(name.removesuffix(_END), [str(one) for one in people], left, about)


def _left_ms(found: Mapping[str, object]) -> int | None:
    same = found.get("boot") == processes.boot_id()
    due = found.get("due_up_ms" if same else "due_ms")
    return due - (up_ms() if same else _now_ms()) if isinstance(due, int) else None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Reminder:
    """Start a check when an answer to, or from, one agent is overdue."""

    def __init__(self, launch: gate.Launch, chores: Chores) -> None:
        inbox = launch.mail.inbox
        self._folder = os.path.join(os.path.dirname(os.path.dirname(inbox)), FOLDER) if inbox else ""
        self._me = launch.mail.address
        self._launch = launch
        self._chores = chores
        self._seen = 0
        self._turn_ms: int | None = None
        self._again_ms = 0

    def look(self) -> float:
        """Start a check if it is due; return the seconds until the next one."""
        changed = self._changed()
        if changed == 0:
            return SCAN_EVERY
        if changed != self._seen or up_ms() >= self._again_ms:
            self._seen, self._again_ms = changed, up_ms() + _ONCE_MORE_MS  # its time may be too coarse to tell all
            self._turn_ms = self._turn()
        if self._turn_ms is not None and up_ms() >= self._turn_ms:
            self._turn_ms = None
            self._chores.start(self._launch.label, self._launch.label_env)
        left = SCAN_EVERY if self._turn_ms is None else (self._turn_ms - up_ms()) / 1000
        return max(0.05, min(SCAN_EVERY, left))

    def _changed(self) -> int:
        try:
            return os.stat(self._folder).st_mtime_ns if self._folder else 0
        except OSError:
            return 0

    def _turn(self) -> int | None:
        """Return when, in ms since boot, it is this agent's turn to have the next one looked at; None: never."""
        turns = [
            one.left_ms + one.people.index(self._me) * _TURN_MS
            for one in read_all(self._folder)
            if self._me in one.people
        ]
        return up_ms() + min(turns) if turns else None
