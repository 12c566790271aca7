"""Read the server's name in the first words of TLS, before they are handed on.

Behind a `CONNECT` the proxy sees nothing but this name in clear.  It must be the name that was asked for: many servers
serve more than one name, and the agent would reach any of them by asking for another.
"""

from __future__ import annotations

from typing import NamedTuple

#: More than any program says; it may come in many pieces.
LIMIT = 64 << 10
_HANDSHAKE, _CLIENT_HELLO = 22, 1
_SERVER_NAME, _HOST_NAME = 0, 0
_ENCRYPTED_HELLO = 0xFE0D


class Hello(NamedTuple):
    """The part of a client's first message that counts.

    Attributes:
        name: the server's; empty: it names none.
        hidden: another name may be in it, encrypted.
    """

    name: str
    hidden: bool


class NotTls(ValueError):
    """It is no TLS."""


def nothing() -> bytes:
    """Tell of a client that ends before it has said enough."""
    raise NotTls("it ends too soon")


class _Reader:
    """A piece of bytes that is read from its front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            raise NotTls("it is cut short")
        self._at += count
        return found

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def piece(self, count: int) -> bytes:
        """Take a piece whose length stands before it, in *count* bytes."""
        return self.take(self.number(count))

    def left(self) -> bool:
        return self._at < len(self._data)


def read(data: bytes) -> Hello | None:
    """Return what a client says first; None: there is more to come.

    Raises:
        NotTls: it says something else.
    """
    message = _message(data)
    if message is None:
        return None
    body = _Reader(message)
    body.take(2 + 32)  # version, random
    body.piece(1)  # the session
    body.piece(2)  # ciphers
    body.piece(1)  # compression
    names: list[str] = []
    hidden = False
    extensions = _Reader(body.piece(2) if body.left() else b"")
    while extensions.left():
        kind, content = extensions.number(2), extensions.piece(2)
        hidden = hidden or kind == _ENCRYPTED_HELLO
        if kind == _SERVER_NAME:
            names += _names(content)
    if len(names) > 1:
        raise NotTls("it names more than one server")
    return Hello(names[0] if names else "", hidden)


def _message(data: bytes) -> bytes | None:
    """Return the handshake message, which may lie in several records."""
    message, at = b"", 0
    while True:
        if data[at : at + 1] not in (b"", bytes([_HANDSHAKE])) or data[at + 1 : at + 2] not in (b"", b"\x03"):
            raise NotTls("it is no handshake")
        if len(data) < at + 5:
            return None
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        if not 0 < length <= 1 << 14:
            raise NotTls("a record has a wrong length")
        message += data[at + 5 : at + 5 + length]
        if message[:1] != bytes([_CLIENT_HELLO])[: len(message)]:
            raise NotTls("it is no client's hello")
        if len(message) >= 4:
            whole = 4 + int.from_bytes(message[1:4], "big")
            if whole > LIMIT:
                raise NotTls("it is too long")
            if len(message) >= whole:
                return message[4:whole]
        at += 5 + length
        if len(data) < at:
            return None


def _names(content: bytes) -> list[str]:
    found = []
    names = _Reader(_Reader(content).piece(2))
    while names.left():
        kind, name = names.number(1), names.piece(2)
        if kind == _HOST_NAME:
            found.append(name.decode("ascii", "replace").lower())
    return found
