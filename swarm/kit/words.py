"""Singular and plural, times for machines, and the known word that a typing error was meant to be."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

#: The last moment of the year 9999: no record tells of a later one.
_LATEST = 253_402_300_799_999


def count(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 branch`` or ``3 branches``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known word that is most like *word*, if need be compared without case; empty when none is near.

    Args:
        cutoff: how alike they must be, from 0 to 1.
    """
    from difflib import get_close_matches

    words = list(known)
    if near := get_close_matches(word, words, n=1, cutoff=cutoff):
        return near[0]
    folded = {one.casefold(): one for one in words}
    return next((folded[one] for one in get_close_matches(word.casefold(), folded, n=1, cutoff=cutoff)), "")


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """Return a hint: the known word that is most like *word*, else *otherwise*."""
    close = closest(word, known)
    return f"did you mean {close}?" if close else otherwise


def iso(milliseconds: int) -> str | None:
    """Return a time in UTC for machines; None when it is not known."""
    if not 0 < milliseconds <= _LATEST:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest:03d}Z"
