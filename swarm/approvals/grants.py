"""Grants: leave for a program of the user's to answer agents as the user would, a file each in ``.swarm/grants``.

The program holds the token, swarm only a sum of it. Whoever can read the token acts by the grant.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.approvals.errors import GrantExists, GrantNotFound
from swarm.kit import files
from swarm.machine import records
from swarm.project.layout import GRANTS
from swarm.project.names import check_name
from swarm.project.proof import Proof

if TYPE_CHECKING:
    from pathlib import Path

#: Where a program has its token.
VARIABLE = "SWARM_GRANT"
_SCHEMA = 1
_SUFFIX = ".json"
_KIND = "grant"


class Grant(NamedTuple):
    """A grant that counts.

    Attributes:
        by: the user account of the person that made it.
    """

    name: str
    by: str
    made_ms: int


class Grants:
    """The grants of one repository. Looking at them never creates anything."""

    def __init__(self, state: Path) -> None:
        self._folder = state / GRANTS
        self._proof = Proof(state)

    def make(self, name: str, by: str, now_ms: int) -> str:
        """Make a grant and return its token, which is kept nowhere.

        Raises:
            GrantExists, InvalidName
        """
        name = check_name(_KIND, name).casefold()
        files.make_private_dir(self._folder.parent)
        files.make_private_dir(self._folder)
        import secrets

        token = f"{name}:{secrets.token_urlsafe(32)}"
        record: dict[str, Any] = {"schema": _SCHEMA, "name": name, "by": by, "made_ms": now_ms, "sha256": _sum(token)}
        data = json.dumps(record | {"mac": self._proof.of(_KIND, record)}).encode("ascii")
        try:
            files.write_atomic(self._path(name), data, replace=False)
        except FileExistsError:
            raise GrantExists(f"there is a grant {name} already") from None
        return token

    def revoke(self, name: str) -> None:
        """Let a grant count no longer.

        Raises:
            GrantNotFound, InvalidName
        """
        name = check_name(_KIND, name).casefold()
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            raise GrantNotFound(f"there is no grant {name}") from None
        files.sync_folder(self._folder)

    def all(self) -> tuple[Grant, ...]:
        """Return the grants that count, by name; a file that swarm did not write is none."""
        try:
            names = sorted(one.removesuffix(_SUFFIX) for one in os.listdir(self._folder) if one.endswith(_SUFFIX))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        found = (self._read(name) for name in names if not name.startswith("."))
        return tuple(Grant(one["name"], one["by"], one["made_ms"]) for one in found if one)

    def name_of(self, token: str) -> str:
        """Return the name of the grant that a token is of; empty when it is of none that counts."""
        name, colon, _ = token.partition(":")
        if not colon or not name.replace("-", "").replace("_", "").isalnum():
            return ""
        record = self._read(name)
        import hmac

        return name if record and hmac.compare_digest(str(record["sha256"]), _sum(token)) else ""

    def _path(self, name: str) -> Path:
        return self._folder / (name + _SUFFIX)

    def _read(self, name: str) -> dict[str, Any]:
        """Return a record; empty unless swarm wrote it under this name."""
        try:
            record = records.read_object(str(self._path(name)))
            code = record.pop("mac", None)
            good = record.get("name") == name and self._proof.holds(_KIND, record, code)
        except (OSError, ValueError):
            return {}
        return record if good else {}


def _sum(token: str) -> str:
    import hashlib

    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
