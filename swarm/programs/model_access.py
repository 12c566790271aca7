"""How an agent program in a box reaches its model: by a door outside of the box, which adds the user's credential."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The program in a box gets this for a key; whatever it says of keys, the door does not pass on.
PLACEHOLDER = "the-door-has-the-key"


class TokenFile(NamedTuple):
    """A file of the user's in which the program outside keeps a token fresh.

    Attributes:
        keys: where in it the token is.
        expires: where in it the time of its end is, in milliseconds; empty: nowhere.
        login: the command that renews it.
    """

    path: str
    keys: Sequence[str]
    expires: Sequence[str] = ()
    login: str = ""


class Service(NamedTuple):
    """One model's API behind the door.

    Attributes:
        name: the first part of the path by which the agent reaches it.
        upstream: its address.
        allowed: requests, as ``METHOD PATTERN``; the pattern is of the path behind *name*.
        headers: added to each request. ``{token}`` in a value is the token of *token*.
    """

    name: str
    upstream: str
    allowed: Sequence[str]
    headers: Mapping[str, str]
    token: TokenFile | None = None

    def lets(self, method: str, path: str) -> bool:
        """Whether a request is allowed."""
        for one in self.allowed:
            verb, _, pattern = one.partition(" ")
            if verb == method and re.fullmatch(pattern, path):
                return True
        return False

    def plain(self) -> dict[str, object]:
        """Return it as JSON knows it."""
        return {**self._asdict(), "token": self.token._asdict() if self.token is not None else None}


def anthropic(upstream: str, headers: Mapping[str, str], token: TokenFile | None = None) -> Service:
    """Return Anthropic's API: messages, and the list of models."""
    allowed = ("POST /v1/messages", "POST /v1/messages/count_tokens", r"GET /v1/models(?:/[A-Za-z0-9._-]+)?")
    return Service("anthropic", upstream or "https://api.anthropic.com", allowed, headers, token)


def openai(upstream: str, headers: Mapping[str, str], token: TokenFile | None = None) -> Service:
    """Return OpenAI's API, whose address ends in its version: answers, and the list of models."""
    allowed = ("POST /responses", "POST /responses/compact", "POST /chat/completions", "GET /models")
    return Service("openai", upstream or "https://api.openai.com/v1", allowed, headers, token)


def google(upstream: str, headers: Mapping[str, str], token: TokenFile | None = None) -> Service:
    """Return Google's API: contents, and the list of models."""
    verbs = "generateContent|streamGenerateContent|countTokens|embedContent|batchEmbedContents"
    allowed = (
        rf"POST /v1(?:beta|alpha)?/models/[A-Za-z0-9._-]+:(?:{verbs})",
        r"GET /v1(?:beta|alpha)?/models(?:/[A-Za-z0-9._-]+)?",
    )
    return Service("google", upstream or "https://generativelanguage.googleapis.com", allowed, headers, token)


def bearer(key: str) -> dict[str, str]:
    """Return the header that carries a key or a token."""
    return {"authorization": f"Bearer {key}"}
