"""Authentication codes over records that swarm wrote.

The key is a file in ``.swarm``, private to the account. What runs under the same account can read it, an agent without
a sandbox as well: then the code shows only that nobody wrote the record by hand or by mistake.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

from swarm.kit import files

if TYPE_CHECKING:
    from pathlib import Path

_KEY = "key"
_LENGTH = 32


class Proof:
    """Makes and checks the codes of one ``.swarm`` folder."""

    def __init__(self, state: Path) -> None:
        self._path = state / _KEY
        self._known = b""

    def of(self, kind: str, record: dict[str, Any]) -> str:
        """Return the code of a record; the first one makes the key.

        Args:
            kind: what the record is, so that none stands for one of another kind.
        """
        while not (key := self._key()):
            self._make()
        return _code(key, kind, record)

    def holds(self, kind: str, record: dict[str, Any], code: object) -> bool:
        """Whether a code is that of a record; never makes anything."""
        import hmac

        key = self._key()
        return bool(key) and isinstance(code, str) and hmac.compare_digest(_code(key, kind, record), code)

    def _key(self) -> bytes:
        if not self._known:
            try:
                found = files.read_small(self._path, _LENGTH)
            except FileNotFoundError:
                return b""
            self._known = found if len(found) == _LENGTH else b""
            if not self._known:
                raise _unusable(self._path)
        return self._known

    def _make(self) -> None:
        with contextlib.suppress(FileExistsError):  # another process was first
            files.write_atomic(self._path, os.urandom(_LENGTH), replace=False)


def _unusable(path: Path) -> Exception:
    from swarm.project.errors import RecordProblem

    return RecordProblem(
        f"cannot use {path}: it is not a key of swarm",
        hint="remove it; swarm then asks again instead of using standing answers, and grants must be made again",
    )


def _code(key: bytes, kind: str, record: dict[str, Any]) -> str:
    import hmac

    words = json.dumps([kind, record], ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, words.encode("ascii"), "sha256").hexdigest()
