"""Values of an agent's conversation."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Speaker(StrEnum):
    """The speaker of an entry."""

    USER = "user"
    AGENT = "agent"
    PROGRAM = "program"
    REVIEWER = "reviewer"


class EntryKind(StrEnum):
    """The kind of an entry."""

    TEXT = "text"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One text, tool call or result of a conversation.

    Attributes:
        at_ms: when, in milliseconds since 1970; 0 when it is not known.
        who: ``user`` is any sender to the agent, other agents too; ``reviewer`` is what the reviewer of its
            role answers, and what that is asked is the ``program``'s.
        kind: ``call`` is a tool that the agent uses, ``result`` its result, ``note`` a word of the program.
        text: the text; of a call its most telling argument. Untrusted: it may hold anything.
        tool: of a call or a result.
        given: of a call, all arguments.
        failed: of a result.
        model: the model that said it, where the program tells.
        subagent: which one spoke; ``reviewer`` for that of the role; ``print`` for another run of the program without
            a terminal; empty for the agent itself.
        conversation: which one; a cleared one goes on as another.
        id: the program's own; empty when it has none.
    """

    at_ms: int
    who: Speaker
    kind: EntryKind
    text: str
    tool: str = ""
    given: Mapping[str, Any] = field(default_factory=dict, hash=False)
    failed: bool = False
    model: str = ""
    subagent: str = ""
    conversation: str = ""
    id: str = ""


def last_said(entries: Iterable[TranscriptEntry]) -> str:
    """Return the last text of the agent itself; empty without one."""
    said = [one.text for one in entries if one.who is Speaker.AGENT and one.kind is EntryKind.TEXT and not one.subagent]
    return next((text for text in reversed(said) if text.strip()), "")
