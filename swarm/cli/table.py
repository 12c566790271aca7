"""Aligned columns that fit the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from swarm.cli.text import plain, shorten, width

_GAP = 2
_NARROWEST = 8


class Column(NamedTuple):
    """One column.

    Attributes:
        drop: left out when there is too little room, the highest number first; 0 never.
        keep: which end of a shortened cell stays; ``all`` is never shortened.
        right: aligned to the right.
    """

    title: str
    drop: int = 0
    keep: Literal["start", "end", "all"] = "start"
    right: bool = False


class Cell(NamedTuple):
    """A text with a style; the text alone says it all."""

    text: str
    style: str = ""


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Cell]],
    room: int | None,
    paint: Callable[[str, str], str],
) -> list[str]:
    """Return the lines of a table.

    Args:
        columns: from left to right.
        rows: a cell for each column.
        room: columns of the terminal; None for no limit.
        paint: gives a text the style of that name.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    used = list(range(len(columns)))
    natural = [max(width(c.title), *(width(row[n].text) for row in cells), 0) for n, c in enumerate(columns)]
    if room is not None:
        used = _dropped(columns, natural, used, room)
        natural = _squeezed(columns, natural, used, room)
    titles = [Cell(column.title, "heading") for column in columns]
    return [_line(columns, natural, used, row, paint) for row in (titles, *cells)]


def _cell(cell: str | Cell) -> Cell:
    return Cell(plain(cell.text), cell.style) if isinstance(cell, Cell) else Cell(plain(cell))


def _total(natural: Sequence[int], used: Sequence[int]) -> int:
    return sum(natural[n] for n in used) + _GAP * (len(used) - 1)


def _dropped(columns: Sequence[Column], natural: Sequence[int], used: list[int], room: int) -> list[int]:
    for n in sorted((n for n in used if columns[n].drop), key=lambda n: -columns[n].drop):
        if _total(natural, used) <= room:
            break
        used = [one for one in used if one != n]
    return used


def _squeezed(columns: Sequence[Column], natural: Sequence[int], used: list[int], room: int) -> list[int]:
    result = list(natural)
    soft = [n for n in used if columns[n].keep != "all"]
    while soft and _total(result, used) > room:
        widest = max(soft, key=lambda n: result[n])
        if result[widest] <= _NARROWEST:
            break
        result[widest] -= 1
    return result


def _line(
    columns: Sequence[Column],
    widths: Sequence[int],
    used: Sequence[int],
    row: Sequence[Cell],
    paint: Callable[[str, str], str],
) -> str:
    parts = []
    for position, n in enumerate(used):
        keep = columns[n].keep
        text = row[n].text if keep == "all" else shorten(row[n].text, widths[n], keep)
        pad = " " * (widths[n] - width(text))
        is_last = position == len(used) - 1
        painted = paint(text, row[n].style)
        parts.append(pad + painted if columns[n].right else painted if is_last else painted + pad)
    return (" " * _GAP).join(parts).rstrip()
