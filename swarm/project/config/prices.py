"""Prices of models as a user writes them: ``model-x-* = 5/25/0.5/6.25``, US dollars for a million tokens."""

from __future__ import annotations

import re

#: Read when there is one: few set any.
_LINE = r"\s*([\w.:@/*?\[\]-]{1,100})\s*=\s*([0-9./ ]{1,200})"
_PRICE = r"[0-9]{1,6}(?:\.[0-9]{1,6})?"


def parse(text: str) -> tuple[str, tuple[float, float, float, float, float]]:
    """Return the model's name and its prices: input, output, cache reads, cache writes, and writes for an hour.

    What is left out of the last three costs as much as reading.

    Raises:
        ValueError: it is not of that form.
    """
    found = re.fullmatch(_LINE, text)
    words = [word.strip() for word in found[2].split("/")] if found else []
    if found is None or not 2 <= len(words) <= 5 or not all(re.fullmatch(_PRICE, word) for word in words):
        form = "MODEL = INPUT/OUTPUT[/CACHE READ[/CACHE WRITE[/FOR AN HOUR]]], such as my-model = 3/15/0.3/3.75"
        raise ValueError(f"must be {form}, not {text[:60]!r}")
    numbers = [float(word) for word in words]
    numbers += [numbers[0]] * (4 - len(numbers))
    read, written, from_cache, to_cache, *more = numbers
    return found[1], (read, written, from_cache, to_cache, more[0] if more else to_cache)
