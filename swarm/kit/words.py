"""Singular and plural, and the known word that a typing error was meant to be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


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
