"""Browsers that a person has signed in to a server: a code that counts once and soon ends, then a token of their own.

The code goes into the fragment of an address, which a browser sends nowhere.  The server keeps a sum of each token, in
a private file; a browser keeps its token for itself.
"""

from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit import files
from swarm.machine import records
from swarm.services.errors import BrowserNotFound, CodeRefused

if TYPE_CHECKING:
    from pathlib import Path

#: So many seconds a code counts, and so many browsers may be signed in.
CODE_SECONDS, MOST = 60, 100
_LARGEST = 1 << 20


class Browser(NamedTuple):
    """A browser that is signed in.

    Attributes:
        id: names it; it is no secret.
        name: as it called itself.
        made_ms: when it was signed in.
        sum: of its token.
    """

    id: str
    name: str
    made_ms: int
    sum: str


class Browsers:
    """The browsers of one server, which alone writes the file. For any number of threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mutex = threading.Lock()
        self._codes: dict[str, float] = {}
        self._known = {one.sum: one for one in self._read()}

    def code(self) -> str:
        """Return a new code."""
        made = secrets.token_urlsafe(16)
        with self._mutex:
            now = time.monotonic()
            self._codes = {one: until for one, until in self._codes.items() if until > now}
            self._codes[_sum(made)] = now + CODE_SECONDS
        return made

    def sign_in(self, code: str, name: str) -> tuple[Browser, str]:
        """Return a browser that shows a code, and its token, which is kept nowhere else.

        Raises:
            CodeRefused: the code was used, is too old, or never was one; or there are too many browsers.
        """
        token = secrets.token_urlsafe(32)
        with self._mutex:
            until = self._codes.pop(_sum(code), 0.0)
            if until <= time.monotonic():
                raise CodeRefused("cannot sign in: this code does not count, or not any more")
            if len(self._known) >= MOST:
                raise CodeRefused(f"cannot sign in: {MOST} browsers are signed in", hint="revoke one of them")
            made = Browser(secrets.token_hex(8), name, time.time_ns() // 1_000_000, _sum(token))
            self._write({**self._known, made.sum: made})
        return made, token

    def id_of(self, token: bytes) -> str:
        """Return the id of the browser of which a token is; empty: of none."""
        found = self._known.get(sha256(token).hexdigest())
        return found.id if found is not None else ""

    def is_there(self, browser: str) -> bool:
        """Whether a browser is signed in still."""
        return any(hmac.compare_digest(one.id, browser) for one in self._known.values())

    def all(self) -> tuple[Browser, ...]:
        """Return the browsers, the oldest first."""
        return tuple(sorted(self._known.values(), key=lambda one: (one.made_ms, one.id)))

    def revoke(self, browser: str) -> None:
        """Sign a browser out.

        Raises:
            BrowserNotFound
        """
        with self._mutex:
            left = {key: one for key, one in self._known.items() if one.id != browser}
            if len(left) == len(self._known):
                raise BrowserNotFound(f"there is no browser {browser}")
            self._write(left)

    def _write(self, known: dict[str, Browser]) -> None:
        said = {"schema": 1, "browsers": [one._asdict() for one in known.values()]}
        with files.os_errors("cannot write down the browsers"):
            files.write_atomic(self._path, json.dumps(said).encode("ascii"), 0o600)
        self._known = known

    def _read(self) -> list[Browser]:
        """Return those that are written down; a file that cannot be read signs all of them out."""
        try:
            said = records.read_object(str(self._path), _LARGEST)["browsers"]
            return [Browser(str(one["id"]), str(one["name"]), int(one["made_ms"]), str(one["sum"])) for one in said]
        except (OSError, ValueError, KeyError, TypeError):
            return []


def _sum(text: str) -> str:
    return sha256(text.encode()).hexdigest()
