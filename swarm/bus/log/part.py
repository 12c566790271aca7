"""The lines of one log file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.log import lines

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The first read is small; further reads are larger.
_FIRST, _CHUNK = 1 << 12, 1 << 16
_BLOCK = 1 << 20
_BEGINS = (b'{"schema":1,"id":', b'{"op":"')


class Line(NamedTuple):
    """A line of the log: its place, and its bytes without the newline; number -1: it does not verify."""

    at: int
    end: int
    number: int
    data: bytes


def parted(line: Line | None) -> Iterator[Line]:
    """Yield a damaged line, and the whole record at its end if it has one.

    A page of the file that never reached the disk can have taken the newline before that record.
    """
    if line is None or line.number >= 0:
        yield from (line,) if line else ()
        return
    for begin in _BEGINS:
        hit = line.data.find(begin, 1)
        while hit > 0:
            number = lines.verify(line.data[hit:])
            if number >= 0:
                yield Line(line.at, line.at + hit, -1, line.data[:hit])
                yield Line(line.at + hit, line.end, number, line.data[hit:])
                return
            hit = line.data.find(begin, hit + 1)
    yield line


def whole_lines(fd: int, base: int, offset: int) -> Iterator[Line]:
    """Give the whole lines of a file from an offset on."""
    rest = b""
    size = _FIRST
    while True:
        chunk = os.pread(fd, size, offset + len(rest))
        if not chunk:
            return
        data = rest + chunk
        begin = 0
        while (newline := data.find(b"\n", begin)) >= 0:
            line = data[begin:newline]
            yield Line(base + offset + begin, base + offset + newline + 1, lines.verify(line), line)
            begin = newline + 1
        rest = data[begin:]
        offset += begin
        size = min(max(min(2 * size, _CHUNK), len(rest)), 1 << 23)


def blocks(fd: int, base: int, offset: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Give the whole lines of a file between two offsets, many at a time, unverified: (place of the first, lines)."""
    rest = b""
    while chunk := os.pread(fd, max(0, min(_BLOCK, stop - offset - len(rest))), offset + len(rest)):
        data = rest + chunk
        whole = data.rfind(b"\n") + 1
        if whole:
            yield base + offset, data[:whole]
        rest = data[whole:]
        offset += whole


def matching(at: int, data: bytes, needle: bytes) -> Iterator[Line]:
    """Give the lines of a block that hold *needle*."""
    hit = data.find(needle)
    while hit >= 0:
        begin = data.rfind(b"\n", 0, hit) + 1
        newline = data.find(b"\n", hit)
        line = data[begin:newline]
        yield Line(at + begin, at + newline + 1, lines.verify(line), line)
        hit = data.find(needle, newline)
