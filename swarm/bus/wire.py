"""The wire format of a message, without costly imports."""

from __future__ import annotations

_SMALL = "abcdefghijklmnopqrstuvwxyz"
_PLAIN_CHARS = _SMALL + _SMALL.upper() + "0123456789"
#: First letters, letters and length of a word.  Not patterns: loading those takes longer
#: than sending a message.
ID = (_PLAIN_CHARS, _PLAIN_CHARS + "._:+-", 100)
TYPE = (_SMALL, _SMALL + "0123456789_.-", 40)
ADDRESS = (_PLAIN_CHARS, _PLAIN_CHARS + "_.@:-", 128)
BOX = (_PLAIN_CHARS, _PLAIN_CHARS + "_-", 81)
#: Most urgent first.
PRIORITIES = ("interrupt", "high", "normal", "low")
#: Words that mean several recipients, or one that is not an agent of this name.
GROUPS = ("all", "parent", "broadcast", "root")
MAX_TEXT = 1 << 20
#: A text of so many characters has no more bytes than are allowed.
SURELY_FITS = MAX_TEXT >> 2


def is_word(form: tuple[str, str, int], text: str) -> bool:
    """Whether a text is a word of this form."""
    begin, allowed, most = form
    return 0 < len(text) <= most and text[0] in begin and not text.strip(allowed)


def id_of(time_ms: int, number: int) -> str:
    """Return an id; those made later sort later, as far as the clock can be trusted."""
    return f"{time_ms:012x}{number:016x}"


def head(sender: str, to: str, kind: str, priority: str) -> str:
    """Return the part of a record between its id and its time; all values are words."""
    return f'","from":"{sender}","to":"{to}","type":"{kind}","priority":"{priority}","time":'


def record(message_id: str, head: str, time_ms: int, content: str, rest: str) -> bytes:
    """Return the JSON of a message.  The order of the keys is fixed: the bus finds id and sender without parsing.

    Args:
        content: subject and body as JSON texts, and what there is besides, as ``content`` puts it.
        rest: further members, each with the comma before it.
    """
    return f'{{"schema":1,"id":"{message_id}{head}{time_ms:d},"content":{{{content}}}{rest}}}'.encode()


def content(subject: str, body: str, extra: str = "") -> str:
    """Return the content of a record, with subject and body as JSON texts."""
    return f'"subject":{subject},"body":{body}{extra}'


def member(name: str, word: str) -> str:
    """Return a further member of a message whose value is a word; none when that is empty."""
    return f',"{name}":"{word}"' if word else ""
