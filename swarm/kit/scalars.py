"""Read one word of a configuration: bool, number, duration, size or text.

YAML files, environment variables and ``--set key=value`` all read a word by these rules, so a value
means the same wherever it stands.  Far fewer words are special than in YAML 1.1: ``no``, ``on``,
``010``, ``1:20`` and ``2001-01-01`` stay the text that was written.
"""

from __future__ import annotations

import math
import re

# 18 digits: more is a name or a mistake, and Python itself refuses to read thousands of them.
_INTEGER = r"0|-?[1-9][0-9]{0,17}"
_DECIMAL = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
_WITH_UNIT = r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z]+)"
#: As JSON writes a number that is not whole.
_FRACTION = r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,18}(?:[eE][+-]?[0-9]{1,3})?|[eE][+-]?[0-9]{1,3})"
#: What YAML takes for numbers, and JSON cannot say.
_NO_NUMBERS = r"[+-]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
_BOOLEANS = {"true": True, "false": False}

_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_BYTES = {
    "b": 1,
    "kb": 1000,
    "mb": 1000**2,
    "gb": 1000**3,
    "kib": 1024,
    "mib": 1024**2,
    "gib": 1024**3,
}


class Bare(str):
    """A text that stood without quotes: a program of others may take it for a number."""

    __slots__ = ()


def plain_scalar(text: str) -> str | int | bool:
    """Return the value of an unquoted word; ``str()`` of an integer gives the word back."""
    if text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    return int(text) if re.fullmatch(_INTEGER, text) else text


def fraction_from(text: str) -> float | None:
    """Read an unquoted word as a number with a fraction, where a program of others is to get one; None if it is none.

    Raises:
        ValueError: YAML knows it as a number, and nobody else does.
    """
    if re.fullmatch(_NO_NUMBERS, text):
        raise ValueError("must be a finite number; quote it to make it text")
    found = float(text) if re.fullmatch(_FRACTION, text) else None
    if found is not None and math.isinf(found):
        raise ValueError("is too large a number; quote it to make it text")
    return found


def seconds_from(value: object) -> float:
    """Read a time in seconds from ``90``, ``"1.5"``, ``"90s"``, ``"30m"``, ``"24h"`` or ``"7d"``.

    Raises:
        ValueError: it is not a time; the text says what one looks like.
    """
    number, unit = _number_and_unit(value)
    factor = 1 if unit is None else _SECONDS.get(unit)
    if number is None or factor is None:
        raise ValueError("must be a number of seconds, or a time such as 500ms, 90s, 30m, 24h, 7d")
    return number * factor


def milliseconds_from(value: object) -> int:
    """Read a time as milliseconds: a bare number counts them, else it has a unit (``24h``).

    Raises:
        ValueError: it is not a time; the text says what one looks like.
    """
    number, unit = _number_and_unit(value)
    factor = 0.001 if unit is None else _SECONDS.get(unit)
    if number is None or factor is None:
        raise ValueError("must be a number of milliseconds, or a time such as 500ms, 90s, 30m, 24h, 7d")
    return round(number * factor * 1000)


def bytes_from(value: object) -> int:
    """Read a size in bytes from ``4096``, ``"64KiB"``, ``"1MiB"``, ``"1.5GB"``.

    Raises:
        ValueError: it is not a size; the text says what one looks like.
    """
    number, unit = _number_and_unit(value)
    factor = 1 if unit is None else _BYTES.get(unit.lower())
    if number is None or factor is None:
        raise ValueError("must be a number of bytes, or a size such as 64KiB, 1MiB, 2GB")
    return round(number * factor)


def _number_and_unit(value: object) -> tuple[float | None, str | None]:
    if isinstance(value, bool):
        return None, None
    if isinstance(value, (int, float)):
        return float(value), None
    if not isinstance(value, str):
        return None, None
    if re.fullmatch(_DECIMAL, value):
        return float(value), None
    match = re.fullmatch(_WITH_UNIT, value)
    return (float(match[1]), match[2]) if match else (None, None)


def show_seconds(seconds: float) -> str:
    """Return the shortest spelling that `seconds_from` reads back: ``120s``, ``24h``."""
    return _show_time(round(seconds * 1000))


def show_milliseconds(milliseconds: int) -> str:
    """Return the shortest spelling that `milliseconds_from` reads back."""
    return _show_time(milliseconds)


def _show_time(milliseconds: int) -> str:
    for unit, fewest in (("d", 3), ("h", 3), ("m", 3), ("s", 0)):
        # 24h says more than 1d, and 120s more than 2m: keep the smaller unit for few of the bigger.
        each = round(_SECONDS[unit] * 1000)
        if milliseconds % each == 0 and milliseconds // each >= fewest:
            return f"{milliseconds // each}{unit}"
    return f"{milliseconds}ms"


def show_bytes(size: int) -> str:
    """Return the shortest spelling that `bytes_from` reads back: ``1MiB``."""
    for unit in ("GiB", "MiB", "KiB"):
        factor = _BYTES[unit.lower()]
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)
