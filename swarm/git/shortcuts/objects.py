"""Whether objects exist: from files where they are few, from git otherwise."""

from __future__ import annotations

import mmap
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from swarm.git.running.runner import GitRunner

#: From so many on, a git that looks beside us is quicker.
_FEW = 400
_NAME = 20
_MAGIC = b"\xfftOc\0\0\0\2"
#: A pack's index: the magic word, 256 counts of the names up to each first byte, then the names in order.
_COUNTS, _NAMES = len(_MAGIC), len(_MAGIC) + 4 * 256


class Presence:
    """Whether these objects exist, as a pending question.

    Args:
        folder: where the repository keeps its objects.
        names: SHA-1, binary.
    """

    def __init__(self, git: GitRunner, folder: Path, names: Sequence[bytes]) -> None:
        few = len(names) <= _FEW
        unseen = _not_in_files(folder, names) if few else names
        lines = b"".join(name.hex().encode() + b"\n" for name in unseen)
        # git has to read it to know its type; a power cut can leave empty files.
        facts = "%(objectname) %(objecttype)" if few else "%(objectname)"
        question = ("cat-file", f"--batch-check={facts}", "--buffer")
        self.asked = git.begin(*question, stdin=lines) if lines else None
        self._missing: tuple[str, ...] | None = None if lines else ()

    def missing(self) -> tuple[str, ...]:
        """Return those that are not."""
        if self._missing is None:
            out = self.asked.result() if self.asked is not None else b""
            lines = out.splitlines()
            self._missing = tuple(line.split(b" ")[0].decode() for line in lines if line.endswith(b" missing"))
        return self._missing


def _not_in_files(folder: Path, names: Sequence[bytes]) -> Sequence[bytes]:
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return names
    try:
        left = [name for name in names if not _is_loose(top, name.hex())]
    finally:
        os.close(top)
    for names_of in _packs(folder / "pack") if left else ():
        with names_of as packed:
            left = [name for name in left if not _is_packed(packed, name)]
    return left


def _is_loose(top: int, name: str) -> bool:
    try:
        return os.stat(f"{name[:2]}/{name[2:]}", dir_fd=top).st_size > 0
    except OSError:
        return False


def _packs(folder: Path) -> Iterator[mmap.mmap]:
    """Yield the index of every complete pack."""
    try:
        files = set(os.listdir(folder))
    except OSError:
        return
    for file in sorted(files):
        if not file.endswith(".idx") or f"{file.removesuffix('.idx')}.pack" not in files:
            continue
        try:
            with (folder / file).open("rb") as opened:
                index = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # gone, or empty
            continue
        if index[:_COUNTS] == _MAGIC and len(index) >= _NAMES:
            yield index
        else:
            index.close()


def _is_packed(index: mmap.mmap, name: bytes) -> bool:
    low = _count(index, name[0] - 1) if name[0] else 0
    high = _count(index, name[0])
    if _NAMES + high * _NAME > len(index):
        return False  # cut off
    while low < high:
        middle = (low + high) // 2
        found = index[_NAMES + middle * _NAME : _NAMES + (middle + 1) * _NAME]
        if found == name:
            return True
        low, high = (middle + 1, high) if found < name else (low, middle)
    return False


def _count(index: mmap.mmap, first: int) -> int:
    return int.from_bytes(index[_COUNTS + 4 * first : _COUNTS + 4 * first + 4], "big")
