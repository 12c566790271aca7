"""Write many objects by one git, which unpacks them; large files another one reads.

What the others are called is known before they are written: an object's name is computed from its bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import time
import zlib
from typing import TYPE_CHECKING

from swarm.git.content.blobs import Folders
from swarm.kit import files
from swarm.kit.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from swarm.git.running.runner import GitRunner

#: Mode, object and path of a file.
_Line = tuple[str, str, str]
_KINDS = {"commit": 1, "tree": 2, "blob": 3}
#: A larger file is not held in memory, nor any more when the others come to so much.
_SMALL, _MOST = 1 << 20, 64 << 20
_NOBODY = "swarm <swarm@localhost>"


class Objects:
    """Objects that will be written together.

    Args:
        digits: of an object id.
    """

    def __init__(self, git: GitRunner, digits: int) -> None:
        self._git = git
        self._digits = digits
        self._hash = hashlib.sha256 if digits == 64 else hashlib.sha1
        self._files: dict[str, str] = {}
        self._packed: dict[str, tuple[str, bytes]] = {}
        self._held = 0
        self._now = int(time.time())

    def add_file(self, path: Path) -> None:
        """Let the bytes of a file be written; ``name_of`` knows them after ``write_files``."""
        name = ""
        if self._held < _MOST:
            with contextlib.suppress(EnvironmentProblem):  # too large to be held in memory, or no plain file
                data = files.read_small(path, _SMALL)
                self._held += len(data)
                name = self.add_bytes(data)
        self._files[os.fspath(path)] = name

    def add_bytes(self, data: bytes) -> str:
        """Let some bytes be written, and return their object, by which ``name_of`` knows them, too."""
        name = self._add("blob", data)
        self._files[name] = name
        return name

    def write_files(self) -> None:
        """Write the files that git does not hold yet; from now on ``name_of`` knows their object names."""
        paths = [path for path, name in self._files.items() if not name]
        if paths:
            lines = b"".join(_quoted(path) + b"\n" for path in paths)
            words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            said = self._git.run(*words, stdin=lines, what="cannot save the files").decode("ascii").split()
            self._files |= dict(zip(paths, said, strict=True))

    def name_of(self, path: str | os.PathLike[str]) -> str:
        """Return the object that a file became."""
        return self._files[os.fspath(path)]

    def tree(self, entries: Iterable[tuple[str, str, str]]) -> str:
        """Let the tree of these (mode, object, path) be written, with all its folders; return its name."""
        found = Folders(map(_as_entry, entries), self._digits)
        self._packed |= {name: ("tree", body) for name, body in found.bodies.items()}
        return found.name

    def changed_tree(self, there: Folders, gone: Iterable[str], added: Iterable[_Line]) -> str:
        """Do the same where all but a few files are in a tree that is written already."""
        name, bodies = there.changed(map(_as_entry, added), map(os.fsencode, gone))
        self._packed |= {one: ("tree", body) for one, body in bodies.items()}
        return name

    def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Have a commit with a neutral author written; return its name."""
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{who} {_NOBODY} {self._now} +0000" for who in ("author", "committer")]
        text = "\n".join([*lines, "", message, ""]).encode()
        return self._add("commit", text)

    def _add(self, kind: str, body: bytes) -> str:
        name = self._hash(b"%b %d\0%b" % (kind.encode("ascii"), len(body), body), usedforsecurity=False).hexdigest()
        self._packed[name] = kind, body
        return name

    def write(self) -> None:
        """Write all that is held: git unpacks them, and gives each the name that its bytes have.

        Raises:
            GitFailed or one of its kind, NoSpace
        """
        if not self._packed:
            return
        pack = bytearray(b"PACK" + struct.pack(">II", 2, len(self._packed)))
        for kind, body in self._packed.values():
            pack += _pack_head(_KINDS[kind], len(body)) + zlib.compress(body, 1)
        pack += self._hash(pack, usedforsecurity=False).digest()
        self._git.run("unpack-objects", "-q", stdin=bytes(pack), what="cannot save the work")


def _pack_head(kind: int, size: int) -> bytes:
    """Return kind and size as a pack has them: seven bits in a byte, the lowest first, four in the first one."""
    head = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head)


def _as_entry(line: _Line) -> tuple[bytes, bytes, bytes]:
    mode, oid, path = line
    return os.fsencode(path), mode.encode("ascii"), bytes.fromhex(oid)


def _quoted(path: str) -> bytes:
    """Write a path for ``--stdin-paths``: a line each, C-quoted where it must be."""
    raw = os.fsencode(path)
    if not raw.startswith(b'"') and b"\n" not in raw and not raw.endswith(b"\r"):
        return raw
    return b'"' + b"".join(b"\\%03o" % byte if byte < 32 or byte in b'"\\' else bytes([byte]) for byte in raw) + b'"'
