"""Codex's lines: ``response_item`` holds the conversation; the rest is for its screen."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from swarm.machine.tail import mapping, text
from swarm.programs.reading.transcript import EntryKind, Speaker, TranscriptEntry
from swarm.programs.reading.transcript_reading import arguments, milliseconds, telling, words

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Its own texts before the first prompt.
_INNER = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_aborted>", "<skills_")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
_RESULTS = ("function_call_output", "custom_tool_call_output")


class Reader:
    """Remembers the model, and the names of tools."""

    own = ""

    def __init__(self) -> None:
        self._models: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def entries(self, where: str, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of one line."""
        payload = mapping(line.get("payload"))
        if line.get("type") == "turn_context":
            self._models[where] = text(payload.get("model"))
        elif line.get("type") == "response_item":
            yield from self._item(where, line, payload)
        elif line.get("type") == "compacted":
            yield self._entry(where, line, Speaker.PROGRAM, EntryKind.NOTE, "the conversation was compacted")
        elif payload.get("type") in ("error", "stream_error"):
            yield self._entry(where, line, Speaker.PROGRAM, EntryKind.NOTE, text(payload.get("message")))

    def _item(self, where: str, line: dict[str, Any], item: dict[str, Any]) -> Iterator[TranscriptEntry]:
        kind, call = text(item.get("type")), text(item.get("call_id"))
        if kind == "message" and item.get("role") in ("user", "assistant"):
            who = Speaker.USER if item["role"] == "user" else Speaker.AGENT
            said = words(item.get("content"))
            if not said.startswith(_INNER):
                yield self._entry(where, line, who, EntryKind.TEXT, said)
        elif kind == "reasoning" and words(item.get("summary")):
            yield self._entry(where, line, Speaker.AGENT, EntryKind.THINKING, words(item.get("summary")))
        elif kind in _CALLS:
            given = arguments(item.get(_CALLS[kind]))
            tool = self._tools[call] = text(item.get("name")) or "shell"
            yield self._entry(where, line, Speaker.AGENT, EntryKind.CALL, telling(given), tool=tool, given=given)
        elif kind in _RESULTS:
            said, tool = words(item.get("output")), self._tools.get(call, "")
            yield self._entry(where, line, Speaker.PROGRAM, EntryKind.RESULT, said, tool=tool)

    def _entry(
        self, where: str, line: dict[str, Any], who: Speaker, kind: EntryKind, said: str, **more: Any
    ) -> TranscriptEntry:
        return TranscriptEntry(
            at_ms=milliseconds(line.get("timestamp")),
            who=who,
            kind=kind,
            text=said,
            model=self._models.get(where, "") if who is Speaker.AGENT else "",
            conversation=PurePath(where).stem[-36:],
            id=text(mapping(line.get("payload")).get("id")),
            **more,
        )
