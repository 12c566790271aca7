"""What a program without a terminal says and is told while its turn lasts. A program's own lines are in its folder.

Supervisors load this, and the ``speech.py`` of a program: standard library only.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from typing import Any

#: It has a text in its conversation; it asks for leave to use a tool; it asks no more; its turn is over.
HEARD, ASKS, ASKS_NO_MORE, OVER = "heard", "asks", "asks no more", "over"


class Sentence(NamedTuple):
    """One thing that a program says.

    Attributes:
        what: see above.
        id: of the text that it heard, or of its request.
        tool, given: what it asks to use, and the input of that.
    """

    what: str
    id: str = ""
    tool: str = ""
    given: dict[str, Any] | None = None


class Leave(NamedTuple):
    """The answer to a request.

    Attributes:
        given: the input with which the tool may be used; None: it may not.
        why: the reason for a refusal.
    """

    given: dict[str, Any] | None
    why: str = ""


class Speech(Protocol):
    """What the module of a program has under this name."""

    def say(self, text_id: str, text: str) -> bytes:
        """Return what gives the program a text."""

    def answer(self, request: str, leave: Leave) -> bytes:
        """Return what answers a request."""

    def hear(self, line: bytes) -> list[Sentence]:
        """Return what one line of the program says."""


def line(record: dict[str, Any]) -> bytes:
    """Return a record as a line of JSON."""
    return json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n"


def parsed(data: bytes) -> dict[str, Any]:
    """Return the object in a line; empty where there is none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def table(value: object) -> dict[str, Any]:
    """Return a foreign value that should be an object; empty where it is none."""
    return value if isinstance(value, dict) else {}
