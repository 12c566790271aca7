"""Read agents' conversations from their programs' own records."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from swarm.programs.reading.transcript import last_said
from swarm.usage.spending.meter import open_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from swarm.programs.reading.transcript import TranscriptEntry
    from swarm.usage.spending.meter import Record


class Reader(Protocol):
    """The protocol of a program's reader: entries of one line or message of its record.

    Attributes:
        own: the id that swarm gave the conversation of an agent in print mode; else empty.
    """

    own: str

    def entries(self, where: str, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of one line."""


class Transcript:
    """One agent's conversation as it grows."""

    def __init__(self, record: Record, reader: Reader) -> None:
        self._record = record
        self._reader = reader
        self._seen: set[str] = set()

    def more(self) -> list[TranscriptEntry]:
        """Return the new entries since the last call, in the order of time."""
        if not self._record.grown():
            return []
        found = []
        for where, line in self._record.lines():
            for entry in self._reader.entries(where, line):
                mark = f"{entry.id} {entry.kind}" if entry.id else ""
                if not mark or mark not in self._seen:
                    self._seen.add(mark)
                    found.append(entry)
        return sorted(found, key=lambda entry: entry.at_ms)


def open_transcript(source: Mapping[str, Any]) -> Transcript | None:
    """Return the conversation of a source; None when its program has no record that is known."""
    found = _open(source)
    return Transcript(*found) if found else None


def last_words(source: Mapping[str, Any]) -> str:
    """Return an agent's last words, from the end of its newest conversation; empty if they are not there."""
    found = _open(source)
    if found is None:
        return ""
    record, reader = found
    return last_said(entry for where, line in record.latest() for entry in reader.entries(where, line))


def _open(source: Mapping[str, Any]) -> tuple[Record, Reader] | None:
    name = source.get("program")
    if name == "demo":
        from swarm.programs.demo import transcript

        # The last one is removed with the agent.
        folder = source.get("box_home") or source.get("kept") or source.get("run_dir")
        return (transcript.Record(str(folder)), transcript.Reader()) if folder else None
    record = open_record(source)
    if record is None:
        return None
    reader: Reader = import_module(f"swarm.programs.{name}.transcript").Reader()
    reader.own = str(source.get("conversation") or "")
    return record, reader
