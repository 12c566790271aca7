"""One turn of the demo agent without a terminal: a conversation that can be taken up, and a result as the last line."""

from __future__ import annotations

import json
import os
import select
import sys
from typing import TYPE_CHECKING

from swarm.demo.record import FILE, Record
from swarm.demo.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: Says that it is a turn: the folder of the conversation; that the conversation has the prompt already; and that texts
#: and answers come on standard input.
FOLDER, AGAIN, TALKS = "SWARM_DEMO_TURN", "SWARM_DEMO_AGAIN", "SWARM_DEMO_TALKS"
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


class Voice:
    """Whoever speaks on standard input, a line of JSON for each thing."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: list[bytes] = []
        self._ended = False

    def next(self, *, wait: bool) -> dict[str, object] | None:
        """Return what is said next; None: nothing yet, or nothing any more."""
        while not self._lines and not self._ended and (wait or select.select([0], [], [], 0)[0]):
            data = os.read(0, 1 << 16)
            self._ended = not data
            *whole, self._rest = (self._rest + data).split(b"\n")
            self._lines += whole
        return json.loads(self._lines.pop(0)) if self._lines else None

    def put_back(self, said: list[dict[str, object]]) -> None:
        """Say some things again, before all others."""
        self._lines[:0] = [json.dumps(one).encode("ascii") for one in said]


class Turn:
    """What is to be done in this turn, and what of it was done before.

    Args:
        folder: of the conversation.
        given: the prompt.
        again: the conversation has it already.
        voice: gives more texts, and answers; without one the prompt is all.
    """

    def __init__(self, folder: Path, given: str, *, again: bool, voice: Voice | None = None) -> None:
        self.record = Record(folder)
        self._voice = voice
        self._asked = 0
        said = _read(folder)
        prompts = [n for n, line in enumerate(said) if line.get("who") == "user" and not line.get("later")]
        first = voice.next(wait=True) if voice else None
        if again and prompts:
            since = said[prompts[-1] :]
            self.text = "\n".join(str(line.get("text", "")) for line in since if line.get("who") == "user")
            self._done = sum(line.get("who") == "done" for line in since)
        else:
            self.text, self._done = str(first["text"]) if first else given, 0
            self.record.note("user", self.text, id=str(first["id"]) if first else "")
        if first:
            write({"type": "heard", "id": first["id"]})

    @property
    def done(self) -> int:
        """How many of its orders were done before."""
        return self._done

    def note_done(self, order: str) -> None:
        """Write down that the next order is done."""
        self.record.note("done", order)

    def more(self) -> Iterator[str]:
        """Give the texts that came meanwhile."""
        while self._voice is not None and (said := self._voice.next(wait=False)) is not None:
            yield self._hear(said)

    def wait(self) -> str | None:
        """Wait for another text; None: there will be none."""
        said = self._voice.next(wait=True) if self._voice is not None else None
        return None if said is None else self._hear(said)

    def _hear(self, said: dict[str, object]) -> str:
        text = str(said.get("text", ""))
        self.record.note("user", text, id=str(said.get("id")), later=True)
        write({"type": "heard", "id": said.get("id")})
        return text

    def ask(self, tool: str, given: dict[str, object]) -> dict[str, object] | None:
        """Ask for leave to use a tool and wait for the answer; None: there is nobody to ask."""
        if self._voice is None:
            return None
        self._asked += 1
        name = str(self._asked)
        kept: list[dict[str, object]] = []
        write({"type": "asks", "id": name, "tool": tool, "input": given})
        while (said := self._voice.next(wait=True)) is not None:
            if said.get("type") == "answer" and said.get("id") == name:
                self._voice.put_back(kept)
                return said
            kept.append(said)
        return None

    @classmethod
    def read(cls, environ: Mapping[str, str], given: str) -> Turn | None:
        """Return the turn that the environment speaks of; None: there is a terminal."""
        from pathlib import Path

        folder = environ.get(FOLDER)
        if not folder:
            return None
        place, voice = Path(folder).expanduser(), Voice() if environ.get(TALKS) else None
        return cls(place, given, again=bool(environ.get(AGAIN)), voice=voice)


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
