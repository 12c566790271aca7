"""Plots of what was measured: an SVG of bars for each table, with its goals."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_LEFT, _WIDTH, _ROW = 260, 420, 22
_BAR, _OVER, _MARK, _TEXT = "#4a7ebb", "#c0504d", "#222222", "#333333"
#: Of each table: what a row is called, its number, and the title.
_TABLES = {
    "startup": ("command", "ratio", "CPU of a command, as a ratio to python -I -S -c pass"),
    "looks": ("command", "ratio", "CPU of a look, as a ratio to the same with one session of one agent"),
}


def write(found: dict[str, object], folder: Path) -> list[Path]:
    """Write a plot for each table that can be drawn; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, (label, number, title) in _TABLES.items():
        rows = found.get(name)
        if isinstance(rows, list):
            made.append(folder / f"{name}.svg")
            made[-1].write_text(bars(title, [(str(r[label]), float(r[number]), r["goal"]) for r in rows]), "utf-8")
    return made


def bars(title: str, rows: Sequence[tuple[str, float, float | None]]) -> str:
    """Return the picture: a bar for each row, red over its goal, which is a line."""
    most = max([value for _, value, _ in rows] + [goal for _, _, goal in rows if goal is not None])
    height = _ROW * (len(rows) + 2)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}" height="{height}" '
            f'font-family="sans-serif" font-size="12" fill="{_TEXT}">'
        ),
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="8" y="16" font-weight="bold">{escape(title)}</text>',
    ]
    for at, (label, value, goal) in enumerate(rows, start=1):
        y = _ROW * at + 4
        long = value / most * _WIDTH
        color = _OVER if goal is not None and value > goal else _BAR
        lines += [
            f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{long:.1f}" height="16" fill="{color}"/>',
            f'<text x="{_LEFT + long + 6:.1f}" y="{y + 13}">{value:g}</text>',
        ]
        if goal is not None:
            x = _LEFT + goal / most * _WIDTH
            lines.append(f'<path d="M{x:.1f} {y - 2}v20" stroke="{_MARK}" stroke-dasharray="3 2"/>')
    return "\n".join([*lines, "</svg>", ""])
