"""When to tell an agent again, and when to tell the sender that it does not read.

Times are milliseconds since boot; the bookkeeping of another boot starts anew, but for what was told.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Pauses after each time that a message was announced, as multiples of the setting: 30 s, 2 and 10 minutes, 30 s.
_PAUSES = (1, 4, 20, 1)
TRIES = len(_PAUSES)
#: For so long a message may wait for a chance to be announced.
_PATIENCE = sum(_PAUSES)
#: Pauses between looks at a pane that takes no keys.
_FIRST_LOOK_MS, _LAST_LOOK_MS = 1_000, 30_000


@dataclass(slots=True)
class Note:
    """The memory of one message.

    Attributes:
        first: when it was first seen waiting.
        tries: how often it was announced.
        due: when it may be announced again, or its sender be told.
        told: its sender knows.
    """

    first: int
    tries: int = 0
    due: int = 0
    told: bool = False

    def is_hopeless(self, now: int, pause_ms: int) -> bool:
        """Whether it was announced for the last time without an answer, or waits for long for a first time."""
        if self.tries:
            return self.tries >= TRIES and self.due <= now
        return now - self.first >= pause_ms * _PATIENCE


@dataclass(slots=True)
class Memory:
    """The memory of one agent's messages.

    Attributes:
        line: what was typed last.
        looks: how often its pane took no keys, in a row.
    """

    notes: dict[str, Note] = field(default_factory=dict)
    line: str = ""
    looks: int = 0

    def update(self, waiting: Iterable[str], now: int) -> None:
        """Forget messages that no longer wait, and add new ones."""
        self.notes = {one: self.notes.get(one) or Note(now, due=now) for one in waiting}
        for note in self.notes.values():
            note.first = note.first or now

    def due(self, now: int) -> tuple[str, ...]:
        """Return the messages to announce now."""
        return tuple(one for one, note in self.notes.items() if note.tries < TRIES and note.due <= now)

    def announced(self, which: Iterable[str], now: int, pause_ms: int) -> None:
        """Count one announcement."""
        self.looks = 0
        for one in which:
            note = self.notes[one]
            note.due = now + pause_ms * _PAUSES[note.tries]
            note.tries += 1

    def held(self, now: int) -> int:
        """Count a look at a pane that took no keys; return when to look again."""
        self.looks += 1
        return int(now + min(_LAST_LOOK_MS, _FIRST_LOOK_MS << min(self.looks - 1, 10)))

    def hopeless(self, now: int, pause_ms: int) -> tuple[str, ...]:
        """Return the messages that did not reach the agent and whose senders need a notice."""
        return tuple(one for one, note in self.notes.items() if not note.told and note.is_hopeless(now, pause_ms))

    def next(self) -> int:
        """Return the time of the next act; 0 if only a new message can cause one."""
        times = [note.due for note in self.notes.values() if note.tries < TRIES or not note.told]
        return max(1, min(times)) if times else 0


def to_record(memory: Memory, boot: str) -> dict[str, Any]:
    """Return the JSON shape."""
    notes = {one: [note.first, note.tries, note.due, note.told] for one, note in memory.notes.items()}
    return {"boot": boot, "line": memory.line, "looks": memory.looks, "messages": notes}


def from_record(record: dict[str, Any] | None, boot: str) -> Memory:
    """Read it back; ignore other forms."""
    try:
        found = record or {}
        notes = {str(one): Note(int(a), int(b), int(c), bool(d)) for one, (a, b, c, d) in found["messages"].items()}
        memory = Memory(notes, str(found["line"]), int(found["looks"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return Memory()
    if found.get("boot") != boot:
        for note in memory.notes.values():
            note.first = note.due = 0
    return memory
