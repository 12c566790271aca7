"""One turn of the demo agent without a terminal: a conversation that can be taken up, and a result as the last line."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

from swarm.demo.record import FILE, Record
from swarm.demo.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

#: Says that it is a turn: the folder of the conversation; and that the conversation has the prompt already.
FOLDER, AGAIN = "SWARM_DEMO_TURN", "SWARM_DEMO_AGAIN"
_LIMIT = 16 << 20


class Lines(Screen):
    """Writes JSON, a line for each thing it says."""

    def __init__(self, record: Record) -> None:
        super().__init__(record)
        self._note = record
        self.last = ""

    def say(self, text: str, look: str = "", *, label: str = "", most: int = 0) -> None:  # noqa: ARG002  # as a screen
        """Write a line."""
        plain = " ".join("".join(c if c.isprintable() else " " for c in f"{label.lstrip()}{text}").split())
        if plain:
            self.last = plain
            self._note.note("agent", plain)
            write({"type": "text", "text": plain})


def write(line: dict[str, object]) -> None:
    """Write a line of JSON."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Turn:
    """What is to be done in this turn, and what of it was done before.

    Args:
        folder: of the conversation.
        given: the prompt.
        again: the conversation has it already.
    """

    def __init__(self, folder: Path, given: str, *, again: bool) -> None:
        self.record = Record(folder)
        said = _read(folder)
        prompts = [number for number, line in enumerate(said) if line.get("who") == "user"]
        if again and prompts:
            self.text = str(said[prompts[-1]].get("text", ""))
            self._done = sum(line.get("who") == "done" for line in said[prompts[-1] :])
        else:
            self.text, self._done = given, 0
            self.record.note("user", given)

    @property
    def done(self) -> int:
        """How many of its orders were done before."""
        return self._done

    def note_done(self, order: str) -> None:
        """Write down that the next order is done."""
        self.record.note("done", order)

    @classmethod
    def read(cls, environ: Mapping[str, str], given: str) -> Turn | None:
        """Return the turn that the environment speaks of; None: there is a terminal."""
        from pathlib import Path

        folder = environ.get(FOLDER)
        return cls(Path(folder), given, again=bool(environ.get(AGAIN))) if folder else None


def _read(folder: Path) -> list[dict[str, object]]:
    try:
        with open(os.path.join(folder, FILE), "rb") as file:
            data = file.read(_LIMIT)
    except OSError:
        return []
    found = []
    for line in data.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        found += [one] if isinstance(one, dict) else []
    return found
