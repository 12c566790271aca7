"""One record, one line, closed by its number and a checksum of all that stands before it.

    {"schema":1,…,"n":17,"crc":"0f3a99c1"}

A line that is torn, merged with another, or changed by a single bit does not verify.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Callable

_TAIL = len(',"crc":"00000000"}')
#: How much of the end of a file tells the number of its last line, and whether it is the last for ever.
END_IN = 64
#: So much of the end of a file is read first for its last line; most are shorter.
_LAST_IN = 1 << 9
#: Nothing is added behind this line: the file was rolled, or its box removed.
CLOSED = b'{"log":1,"end":true}'
_CLOSED_BEGIN = CLOSED[:-1] + b',"n":'
#: How the first line of a part begins; at which offset of the whole log follows.
HEAD = b'{"log":1,"base":'


def seal(record: bytes, number: int) -> bytes:
    """Return the line for a JSON object (with its closing brace)."""
    head = b'%b,"n":%d' % (record[:-1], number)
    return b'%b,"crc":"%08x"}\n' % (head, crc32(head))


def verify(line: bytes) -> int:
    """Return the number of a line (without the newline), -1 when it does not verify."""
    head = line[:-_TAIL]
    if line[-_TAIL:] != b',"crc":"%08x"}' % crc32(head):
        return -1
    digits = head[head.rfind(b',"n":') + 5 :]
    return int(digits) if digits.isdigit() and len(digits) < 20 else -1


def last_number(pread: Callable[[int, int, int], bytes], fd: int, size: int) -> int:
    """Return the number of the last line of a file of this size, -1 when that is torn or does not verify."""
    return last_line(pread, fd, size)[0]


def last_line(pread: Callable[[int, int, int], bytes], fd: int, size: int) -> tuple[int, bytes]:
    """Return the number of the last line of a file, -1 when that is torn or does not verify, and how the file ends.

    What is added next goes on from the number, so one changed bit in it must not count.
    """
    back = _LAST_IN
    while True:
        tail = pread(fd, back, size - back if size > back else 0)
        if tail[-3:] != b'"}\n':
            return -1, tail
        begin = tail.rfind(b"\n", 0, -1) + 1
        if begin or back >= size:
            return verify(tail[begin:-1]), tail
        back <<= 4


def is_closed(end: bytes) -> bool:
    """Whether the end of a file says that nothing is added to it any more."""
    return _CLOSED_BEGIN in end


#: A log to which nothing was ever added.
EMPTY = seal(HEAD + b"0}", 0)
