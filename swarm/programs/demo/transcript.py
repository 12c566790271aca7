"""The demo agent's own record: ``conversation.jsonl`` in its run folder, a line for each thing it said or was told."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swarm.demo.record import FILE
from swarm.machine.tail import END, Tail, number, text
from swarm.programs.reading.transcript import EntryKind, Speaker, TranscriptEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.usage.spending.use import Use


class Record:
    """One file. Implements ``Record`` of ``swarm.usage.spending.meter``; the demo agent uses no model."""

    def __init__(self, run_dir: str) -> None:
        self._tail = Tail(os.path.join(run_dir, FILE))

    def grown(self) -> bool:
        """Whether there may be something new."""
        return self._tail.grown()

    def uses(self) -> Iterator[Use]:
        """Give nothing."""
        return iter(())

    def lines(self, *words: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the new lines."""
        yield from (("", line) for line in self._tail.lines(*words))

    def latest(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give the end."""
        yield from (("", line) for line in self._tail.last(END))


class Reader:
    """Reads such lines."""

    own = ""

    def entries(self, _where: str, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of one line."""
        who = Speaker.USER if line.get("who") == "user" else Speaker.AGENT
        yield TranscriptEntry(number(line.get("at_ms")), who, EntryKind.TEXT, text(line.get("text")))
