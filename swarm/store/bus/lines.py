"""One record, one line, closed by its number and a checksum of all that stands before it.

    {"schema":1,…,"n":17,"crc":"0f3a99c1"}

A line that is torn, merged with another, or changed by a single bit does not verify.
"""

from __future__ import annotations

from zlib import crc32

_TAIL = len(',"crc":"00000000"}')
#: How much of the end of a file tells the number of its last line, and whether it is the last for ever.
END_IN = 64
#: Nothing is added behind this line: the file was rolled, or its box removed.
CLOSED = b'{"log":1,"end":true}'
#: How the first line of a part begins; at which offset of the whole log follows.
HEAD = b'{"log":1,"base":'


def seal(record: bytes, number: int) -> bytes:
    """Return the line for a JSON object (with its closing brace)."""
    head = b'%b,"n":%d' % (record[:-1], number)
    return b'%b,"crc":"%08x"}\n' % (head, crc32(head))


def number_of(line: bytes) -> int:
    """Return the number at the end of a line (without the newline), -1 when there is none; verifies nothing else."""
    if line[-2:] != b'"}' or line[-_TAIL:-10] != b',"crc":"':
        return -1
    digits = line[line.rfind(b',"n":', 0, -_TAIL) + 5 : -_TAIL]
    return int(digits) if digits.isdigit() and len(digits) < 20 else -1


def verify(line: bytes) -> int:
    """Return the number of a line (without the newline), -1 when it does not verify."""
    number = number_of(line)
    if number < 0 or b"%08x" % crc32(line[:-_TAIL]) != line[-10:-2]:
        return -1
    return number


def is_closed(end: bytes) -> bool:
    """Whether the end of a file says that nothing is added to it any more."""
    return CLOSED[:-1] + b',"n":' in end


#: A log to which nothing was ever added.
EMPTY = seal(HEAD + b"0}", 0)
