"""The demo agent's lines on standard input and output, while its turn lasts."""

from __future__ import annotations

from swarm.programs import speech
from swarm.programs.speech import Leave, Sentence, table


class Speech:
    """Implements ``swarm.programs.speech.Speech``."""

    def say(self, text_id: str, text: str) -> bytes:
        """Return a text."""
        return speech.line({"type": "say", "id": text_id, "text": text})

    def answer(self, request: str, leave: Leave) -> bytes:
        """Return an answer."""
        return speech.line({"type": "answer", "id": request, "given": leave.given, "why": leave.why})

    def hear(self, line: bytes) -> list[Sentence]:
        """Return what one line says."""
        said = speech.parsed(line)
        kind, name = said.get("type"), str(said.get("id"))
        if kind == "heard":
            return [Sentence(speech.HEARD, name)]
        if kind == "asks":
            return [Sentence(speech.ASKS, name, str(said.get("tool")), table(said.get("input")))]
        return [Sentence(speech.OVER)] if kind == "result" else []
