"""The stand-in's answers and the requests it got, as data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

#: The one argument of a tool that takes a text instead of arguments.
FREEFORM = "freeform"


@dataclass(frozen=True)
class Turn:
    """One answer.

    Attributes:
        text: what the model says.
        calls: tools it wants to use: (name, input).
        status: another HTTP status than 200; *text* is then the error's message.
        delay: seconds before the answer begins.
        gate: wait until the test opens this gate.
        hang: never answer.
        tokens: (read, written), for the usage that is told.
        cached: tokens read from the cache, beside those.
    """

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    status: int = 200
    delay: float = 0.0
    gate: str = ""
    hang: bool = False
    tokens: tuple[int, int] = (100, 10)
    cached: int = 0


def say(text: str, *, delay: float = 0.0, tokens: tuple[int, int] = (100, 10), cached: int = 0) -> Turn:
    """Answer with a text; that ends a program's turn."""
    return Turn(text, delay=delay, tokens=tokens, cached=cached)


def call(tool: str, text: str = "", **arguments: Any) -> Turn:
    """Ask for a tool to be run; the next answer follows its result."""
    return Turn(text, calls=((tool, arguments),))


def code(tool: str, text: str) -> Turn:
    """Ask for a tool to be run that takes a text of its own kind: Codex has one that runs programs over the others."""
    return Turn(calls=((tool, {FREEFORM: text}),))


def fail(status: int, message: str = "scripted failure") -> Turn:
    """Answer with an error."""
    return Turn(message, status=status)


def hold(gate: str, turn: Turn) -> Turn:
    """Give an answer once the test opens the gate."""
    return replace(turn, gate=gate)


def hang() -> Turn:
    """Never answer."""
    return Turn(hang=True)


@dataclass(frozen=True, repr=False)
class Request:
    """One request as it came in.

    Attributes:
        api: ``anthropic``, ``openai``, ``google``, or empty for anything else.
        main: part of a conversation with tools; false for the programs' little questions in between, such as titles.
        system: what the model is told first.
        said: every text of the conversation, without what the model said; the newest last.
        tools: names.
        conversation: the script that answered it; empty when it was none.
    """

    method: str
    path: str
    api: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    main: bool = False
    system: str = ""
    said: tuple[str, ...] = ()
    model: str = ""
    tools: tuple[str, ...] = ()
    conversation: str = ""

    def __repr__(self) -> str:
        last = self.said[-1][:80] if self.said else ""
        return f"<{self.method} {self.path} script={self.conversation!r} {self.model} {last!r}>"

    @property
    def text(self) -> str:
        """Everything in it."""
        return json.dumps(self.body, ensure_ascii=False)


def texts_in(value: Any) -> list[str]:
    """Return the texts of a message's content, in any form."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    if isinstance(value, dict):
        inner = ("text", "content", "parts", "output", "functionResponse", "response", "input_text")
        return [text for key in inner if key in value for text in texts_in(value[key])]
    return []
