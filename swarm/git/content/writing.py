"""Write many objects by a git for each kind of them: files, then trees, then commits.

What trees and commits are called is known before they are written; git must say the same.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING

from swarm.git.content.blobs import Folders
from swarm.git.errors import GitFailed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from swarm.git.running.runner import GitRunner

#: Mode, object and path of a file.
_Line = tuple[str, str, str]
_NOBODY = "swarm <swarm@localhost>"


class Objects:
    """Objects that will be written together.

    Args:
        scratch: a folder for what git is to read.
        digits: of an object id.
    """

    def __init__(self, git: GitRunner, scratch: Path, digits: int) -> None:
        self._git = git
        self._scratch = scratch
        self._digits = digits
        self._hash = hashlib.sha256 if digits == 64 else hashlib.sha1
        self._files: dict[str, str] = {}
        self._rest: dict[str, dict[str, bytes]] = {"tree": {}, "commit": {}}
        self._now = int(time.time())

    def add_file(self, path: str | os.PathLike[str]) -> None:
        """Let the bytes of a file be written; ``write_files`` does it."""
        self._files[os.fspath(path)] = ""

    def add_bytes(self, data: bytes) -> Path:
        """Let some bytes be written, and return the file by which to ask for their object."""
        path = self._scratch / f"{len(self._files)}.file"
        path.write_bytes(data)
        self.add_file(path)
        return path

    def write_files(self) -> None:
        """Write them; from now on ``name_of`` knows what they are called."""
        if self._files:
            lines = b"".join(_quoted(path) + b"\n" for path in self._files)
            words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
            said = self._git.run(*words, stdin=lines, what="cannot save the files").decode("ascii").split()
            self._files = dict(zip(self._files, said, strict=True))

    def name_of(self, path: str | os.PathLike[str]) -> str:
        """Return the object that a file became."""
        return self._files[os.fspath(path)]

    def tree(self, entries: Iterable[tuple[str, str, str]]) -> str:
        """Let the tree of these (mode, object, path) be written, with all its folders; return its name."""
        found = Folders(map(_as_entry, entries), self._digits)
        self._rest["tree"] |= found.bodies
        return found.name

    def changed_tree(self, there: Folders, old: Collection[_Line], new: Collection[_Line]) -> str:
        """Do the same where all but a few files, *old* and *new*, are in a tree that is written already."""
        before, after = set(old), set(new)
        gone = (os.fsencode(path) for _, _, path in before - after)
        name, bodies = there.changed(map(_as_entry, after - before), gone)
        self._rest["tree"] |= bodies
        return name

    def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Let a commit of nobody's be written; return its name."""
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{who} {_NOBODY} {self._now} +0000" for who in ("author", "committer")]
        text = "\n".join([*lines, "", message, ""]).encode()
        name = self._hash(b"commit %d\0%b" % (len(text), text), usedforsecurity=False).hexdigest()
        self._rest["commit"][name] = text
        return name

    def write(self) -> None:
        """Write the trees and the commits.

        Raises:
            GitFailed or one of its kind, NoSpace
        """
        for kind, bodies in self._rest.items():
            self._write(kind, bodies)

    def _write(self, kind: str, bodies: Mapping[str, bytes]) -> None:
        paths = [self._scratch / f"{name}.{kind}" for name in bodies]
        for path, body in zip(paths, bodies.values(), strict=True):
            path.write_bytes(body)
        if paths:
            lines = b"".join(_quoted(os.fspath(path)) + b"\n" for path in paths)
            out = self._git.run(
                *("hash-object", "-t", kind, "-w", "--stdin-paths"), stdin=lines, what="cannot save the work"
            )
            if out.decode("ascii").split() != list(bodies):
                raise GitFailed(f"cannot save the work: git gave a {kind} another name")


def _as_entry(line: _Line) -> tuple[bytes, bytes, bytes]:
    mode, oid, path = line
    return os.fsencode(path), mode.encode("ascii"), bytes.fromhex(oid)


def _quoted(path: str) -> bytes:
    """Write a path for ``--stdin-paths``: a line each, C-quoted where it must be."""
    raw = os.fsencode(path)
    if not raw.startswith(b'"') and b"\n" not in raw and not raw.endswith(b"\r"):
        return raw
    return b'"' + b"".join(b"\\%03o" % byte if byte < 32 or byte in b'"\\' else bytes([byte]) for byte in raw) + b'"'
