"""Claude Code's lines: one for each block of an answer, one for each prompt and result."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.machine.tail import mapping, text
from swarm.programs import reviewer
from swarm.programs.reading.transcript import EntryKind, Speaker, TranscriptEntry
from swarm.programs.reading.transcript_reading import milliseconds, telling, words

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
#: Its own notes about its commands.
_INNER = ("<local-command-", "<bash-stdout>", "<task-notification>")
#: What swarm's hook has put before it, with what the program writes around that.
_DELIVERED = re.compile(r"\[swarm\] .*?(?=\s*</system-reminder>|\Z)", re.DOTALL)
_PRINT = "print"


class Reader:
    """Remembers the names of tools, which a result does not tell."""

    own = ""

    def __init__(self) -> None:
        self._tools: dict[str, str] = {}

    def entries(self, _where: str, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        """Yield the entries of one line."""
        is_own = text(line.get("sessionId")) == self.own  # of an agent in print mode
        for entry in self._entries(line):
            yield replace(entry, subagent="") if is_own and entry.subagent == _PRINT else entry

    def _entries(self, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        kind = line.get("type")
        if kind == "assistant":
            yield from self._answer(line)
        elif kind == "user":
            yield from self._said(line)
        elif kind == "attachment":
            given = mapping(line.get("attachment"))
            if given.get("type") == "queued_command":
                said = words(given.get("prompt"))
                yield _entry(line, Speaker.USER, EntryKind.TEXT, _delivered(said) or said)
        elif kind == "system" and line.get("subtype") in ("compact_boundary", "api_error", "local_command"):
            said = text(line.get("content")) or text(line.get("subtype")).replace("_", " ")
            yield _entry(line, Speaker.PROGRAM, EntryKind.NOTE, _COMMAND.sub(r"\1", said))

    def _answer(self, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        message = mapping(line.get("message"))
        for number, block in enumerate(_blocks(message.get("content"))):
            if block.get("type") == "text":
                yield _entry(line, Speaker.AGENT, EntryKind.TEXT, text(block.get("text")), number=number)
            elif block.get("type") == "thinking" and text(block.get("thinking")):
                yield _entry(line, Speaker.AGENT, EntryKind.THINKING, text(block.get("thinking")), number=number)
            elif block.get("type") == "tool_use":
                tool, given = text(block.get("name")), mapping(block.get("input"))
                self._tools[text(block.get("id"))] = tool
                yield _entry(line, Speaker.AGENT, EntryKind.CALL, telling(given), tool=tool, given=given, number=number)

    def _said(self, line: dict[str, Any]) -> Iterator[TranscriptEntry]:
        content = mapping(line.get("message")).get("content")
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for number, block in enumerate(_blocks(content)):
            if block.get("type") == "tool_result":
                tool, failed = self._tools.get(text(block.get("tool_use_id")), ""), block.get("is_error") is True
                said = words(block.get("content"))
                yield _entry(line, Speaker.PROGRAM, EntryKind.RESULT, said, tool=tool, failed=failed, number=number)
            elif block.get("type") == "text" and not line.get("isMeta"):
                yield _prompt(line, text(block.get("text")), number)


def _prompt(line: dict[str, Any], said: str, number: int) -> TranscriptEntry:
    command = _COMMAND.search(said)
    if command is not None:
        more = _ARGUMENTS.search(said)
        said = " ".join(filter(None, (command[1], more[1] if more else "")))
        return _entry(line, Speaker.USER, EntryKind.NOTE, said, number=number)
    if delivered := _delivered(said):
        return _entry(line, Speaker.USER, EntryKind.TEXT, delivered, number=number)
    if line.get("isCompactSummary") or said.startswith(_INNER):
        return _entry(line, Speaker.PROGRAM, EntryKind.NOTE, said, number=number)
    return _entry(line, Speaker.USER, EntryKind.TEXT, said, number=number)


def _delivered(said: str) -> str:
    """Return the messages that swarm's hook has put before it; empty when there are none."""
    found = _DELIVERED.search(said) if said.startswith(("<task-notification>", "[SYSTEM NOTIFICATION")) else None
    return found[0] if found else ""


def _entry(
    line: dict[str, Any], who: Speaker, kind: EntryKind, said: str, *, number: int = 0, **more: Any
) -> TranscriptEntry:
    name = text(line.get("uuid"))
    if _is_reviewer(line):
        who = Speaker.REVIEWER if who is Speaker.AGENT else Speaker.PROGRAM
    return TranscriptEntry(
        at_ms=milliseconds(line.get("timestamp")),
        who=who,
        kind=kind,
        text=said,
        model=text(mapping(line.get("message")).get("model")),
        subagent=_subagent(line),
        conversation=text(line.get("sessionId")),
        id=f"{name}/{number}" if name else "",
        **more,
    )


def _is_reviewer(line: dict[str, Any]) -> bool:
    return text(line.get("sessionId")).startswith(reviewer.CONVERSATIONS)


def _subagent(line: dict[str, Any]) -> str:
    """Return a speaker other than the agent: a subagent, its reviewer, or a run without a terminal."""
    if _is_reviewer(line):
        return "reviewer"
    if line.get("isSidechain"):
        return text(line.get("agentId"))
    return _PRINT if line.get("entrypoint") == "sdk-cli" else ""


def _blocks(content: object) -> list[dict[str, Any]]:
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
