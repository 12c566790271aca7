"""opencode's parts: texts and tool calls of the messages in its database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from swarm.machine.tail import mapping, number, text
from swarm.programs.reading.transcript import EntryKind, Speaker, TranscriptEntry
from swarm.programs.reading.transcript_reading import telling

if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTLED = ("completed", "error")


class Reader:
    """Gives a part once it is whole."""

    own = ""

    def entries(self, where: str, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of one part."""
        message, kind = mapping(line.get("message")), line.get("type")
        who = Speaker.USER if message.get("role") == "user" else Speaker.AGENT
        if kind in ("text", "reasoning") and not line.get("synthetic"):
            if who is Speaker.AGENT and "end" not in mapping(line.get("time")):
                return  # it is still being written
            what = EntryKind.TEXT if kind == "text" else EntryKind.THINKING
            yield _entry(where, line, who, what, text(line.get("text")))
        elif kind == "tool":
            yield from _call(where, line)


def _call(where: str, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
    state, tool = mapping(line.get("state")), text(line.get("tool"))
    if state.get("status") == "pending":
        return  # its arguments are not known yet
    given = mapping(state.get("input"))
    yield _entry(where, line, Speaker.AGENT, EntryKind.CALL, telling(given), tool=tool, given=given)
    if state.get("status") in _SETTLED:
        said = text(state.get("output")) or text(state.get("error"))
        end, failed = number(mapping(state.get("time")).get("end")), state.get("status") == "error"
        at_ms = end or number(line.get("at_ms"))
        yield _entry(where, {**line, "at_ms": at_ms}, Speaker.PROGRAM, EntryKind.RESULT, said, tool=tool, failed=failed)


def _entry(where: str, line: dict[str, Any], who: Speaker, kind: EntryKind, said: str, **more: Any) -> TranscriptEntry:
    message = mapping(line.get("message"))
    return TranscriptEntry(
        at_ms=number(line.get("at_ms")),
        who=who,
        kind=kind,
        text=said,
        model=text(message.get("modelID")) if who is Speaker.AGENT else "",
        conversation=where,
        id=text(line.get("id")),
        **more,
    )
