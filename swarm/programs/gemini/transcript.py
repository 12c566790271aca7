"""Gemini CLI's messages: an answer is written again, with the same id, when its tools have run."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from swarm.machine.tail import mapping, text
from swarm.programs.reading.transcript import EntryKind, Speaker, TranscriptEntry
from swarm.programs.reading.transcript_reading import milliseconds, telling, words

if TYPE_CHECKING:
    from collections.abc import Iterator

_INNER = "<session_context>"


class Reader:
    """Gives the parts of a message; those that were given before are left out by their ids."""

    own = ""

    def entries(self, where: str, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of one message."""
        said, kind = words(line.get("content")), line.get("type")
        if kind == "gemini":
            yield from self._answer(where, line, said)
        elif kind == "user" and said and not said.startswith(_INNER):
            yield _entry(where, line, Speaker.USER, EntryKind.TEXT, said)
        elif kind in ("info", "error", "warning") and said:
            yield _entry(where, line, Speaker.PROGRAM, EntryKind.NOTE, said)

    def _answer(self, where: str, line: dict[str, Any], said: str) -> Iterator[TranscriptEntry]:
        for number, thought in enumerate(_objects(line.get("thoughts"))):
            about = " ".join(filter(None, (text(thought.get("subject")), text(thought.get("description")))))
            yield _entry(where, line, Speaker.AGENT, EntryKind.THINKING, about, part=f"thought {number}")
        if said:
            yield _entry(where, line, Speaker.AGENT, EntryKind.TEXT, said)
        for call in _objects(line.get("toolCalls")):
            tool, given, name = text(call.get("name")), mapping(call.get("args")), text(call.get("id"))
            yield _entry(where, line, Speaker.AGENT, EntryKind.CALL, telling(given), tool=tool, given=given, part=name)
            result = _result(call)
            if result:
                failed = call.get("status") in ("error", "cancelled")
                yield _entry(
                    where, call, Speaker.PROGRAM, EntryKind.RESULT, result, tool=tool, failed=failed, part=name
                )


def _result(call: dict[str, Any]) -> str:
    responses = (mapping(one.get("functionResponse")) for one in _objects(call.get("result")))
    said = "\n".join(filter(None, (words(mapping(one.get("response"))) for one in responses)))
    return said.removeprefix("<untrusted_context>\n").removesuffix("\n</untrusted_context>")


def _entry(
    where: str, line: dict[str, Any], who: Speaker, kind: EntryKind, said: str, *, part: str = "", **more: Any
) -> TranscriptEntry:
    name = text(line.get("id"))
    return TranscriptEntry(
        at_ms=milliseconds(line.get("timestamp")),
        who=who,
        kind=kind,
        text=said,
        model=text(line.get("model")),
        conversation=PurePath(where).stem.rpartition("-")[2],
        id=f"{name}/{part}" if name else "",
        **more,
    )


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
