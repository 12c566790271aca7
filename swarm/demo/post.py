"""The demo agent's mail: it runs the same commands that any agent with a shell would run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from swarm.demo.repo import Trouble
from swarm.machine import broker
from swarm.machine.inbox_watch import Inbox

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.demo.me import Me

_TIMEOUT = 60
_MOST = 20


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as it came.

    Attributes:
        sender: who it is from.
        kind: its type, such as ``message``.
        wants_answer: an answer is expected.
        answers: the id of the message to which this is the answer; empty when it is none.
    """

    id: str
    sender: str
    kind: str
    subject: str
    body: str
    wants_answer: bool
    answers: str

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Letter:
        """Read a message from the output of ``swarm inbox --json``."""
        content = record.get("content") or {}
        return cls(
            id=str(record.get("id", "")),
            sender=str(record.get("from", "")),
            kind=str(record.get("type", "message")),
            subject=str(content.get("subject", "")),
            body=str(content.get("body", "")),
            wants_answer=record.get("requires_response") is True,
            answers=str(record.get("in_reply_to") or ""),
        )

    @property
    def text(self) -> str:
        """The subject and body, in one line."""
        return self.body if not self.subject else f"{self.subject}. {self.body}"

    @property
    def who(self) -> str:
        """The sender without its session."""
        return self.sender.partition("@")[0]


class Post:
    """One agent's inbox and outgoing messages."""

    def __init__(self, me: Me, environ: Mapping[str, str]) -> None:
        state = environ.get("SWARM_STATE_DIR")
        self._me = me
        self._pulls = environ.get("SWARM_DEMO_INBOX") == "pull"
        self._there = bool((state or broker.path()) and me.session)
        self.inbox = Inbox(f"{state}/messages/inbox/{me.actor}-{me.session}" if state and me.session else "")
        mark = self.inbox.mark()  # before the look: what comes after it shall still be news
        self._seen: list[int] | None = mark if self.inbox.is_fresh() else None

    def has_news(self) -> bool:
        """Whether something came in that was not looked at; never for one that waits to be told."""
        return self._there and self._pulls and self.inbox.mark() != self._seen

    def take(self) -> list[Letter]:
        """Return the next messages; they are ours until ``done`` is said.

        Raises:
            Trouble: they cannot be read now.
        """
        if not self._there:
            raise Trouble("there is no swarm around me")
        seen = self.inbox.mark()
        try:
            data = self._swarm("inbox", "take", "--max", str(_MOST))
        finally:
            self._seen = seen  # also after an error: not again before something new comes
        letters = [Letter.read(one) for one in data.get("messages") or () if isinstance(one, dict)]
        if letters:
            self._seen = None  # there may be more
        return letters

    def done(self, letters: list[Letter]) -> None:
        """Say that these have been dealt with.

        Raises:
            Trouble: it could not be said; they will come again.
        """
        if letters:
            self._swarm("inbox", "ack", *(letter.id for letter in letters))

    def send(self, to: str, text: str, *, question: bool = False, answers: str = "", key: str = "") -> None:
        """Send a message.

        Args:
            question: an answer is wanted.
            answers: id of the message that this answers.
            key: what makes it the same message when it is sent again after a resume.

        Raises:
            Trouble: it was not sent.
        """
        extra = ["--expects-reply"] if question else []
        extra += ["--reply-to", answers] if answers else []
        if key:
            extra += ["--id", f"demo.{sha256(f'{key} {to}'.encode()).hexdigest()[:16]}"]
        self._swarm("send", *extra, "--", to, text)

    def _swarm(self, *words: str) -> dict[str, Any]:
        command = [sys.executable, "-P", "-m", "swarm", *words]
        at = command.index("--") if "--" in command else len(command)
        command.insert(at, "--json")
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_TIMEOUT, env=os.environ
            )
            answer = json.loads(done.stdout)
            data, errors = answer["data"], answer["errors"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
            raise Trouble(f"cannot run swarm {words[0]}: {error}") from error
        if done.returncode != 0:
            raise Trouble(str(errors[0]["message"]) if errors else f"swarm {words[0]} ended with {done.returncode}")
        return data if isinstance(data, dict) else {}
