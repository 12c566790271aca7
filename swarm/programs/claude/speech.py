"""Claude Code's lines on standard input and output, with ``--input-format stream-json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.programs import speech
from swarm.programs.speech import Leave, Sentence, table

if TYPE_CHECKING:
    from typing import Any

#: The arguments by which it takes texts during its turn, repeats them under their ids, and asks for leave.
ARGUMENTS = ("--input-format", "stream-json", "--replay-user-messages", "--permission-prompt-tool", "stdio")
#: Lines without any of these words tell nothing that matters here.
_TELLING = (b"isReplay", b"control_request", b"control_cancel_request", b'"result"')


class Speech:
    """Implements ``swarm.programs.speech.Speech``."""

    def say(self, text_id: str, text: str) -> bytes:
        """Return a message of the user's; its id must be a UUID."""
        message = {"role": "user", "content": text}
        return speech.line({"type": "user", "message": message, "parent_tool_use_id": None, "uuid": text_id})

    def answer(self, request: str, leave: Leave) -> bytes:
        """Return the answer to ``can_use_tool``."""
        said: dict[str, Any] = {"behavior": "deny", "message": leave.why}
        if leave.given is not None:
            said = {"behavior": "allow", "updatedInput": leave.given}
        response = {"subtype": "success", "request_id": request, "response": said}
        return speech.line({"type": "control_response", "response": response})

    def hear(self, line: bytes) -> list[Sentence]:
        """Return what one line says."""
        if not any(word in line for word in _TELLING):
            return []
        said = speech.parsed(line)
        kind, request = said.get("type"), table(said.get("request"))
        if kind == "user" and said.get("isReplay") is True:
            return [Sentence(speech.HEARD, str(said.get("uuid")))]
        if kind == "result":
            return [Sentence(speech.OVER)]
        name = str(said.get("request_id"))
        if kind == "control_cancel_request":
            return [Sentence(speech.ASKS_NO_MORE, name)]
        if kind == "control_request" and request.get("subtype") == "can_use_tool":
            return [Sentence(speech.ASKS, name, str(request.get("tool_name")), table(request.get("input")))]
        return []
