"""Singular and plural."""

from __future__ import annotations


def count(number: int, noun: str, plural: str = "") -> str:
    """Return ``1 branch`` or ``3 branches``."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
