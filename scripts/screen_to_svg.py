"""Draw a terminal's screen as SVG: tmux capture-pane -e -p | screen_to_svg.py --size 120x36 --title TEXT

Commit ids are drawn as ones that depend only on the rest of their line, so that the picture changes when the
screen does and not each time it is made.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
import unicodedata
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterator

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 8.4, 18, 14
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
PADDING, BAR = 14, 32
PAPER, INK, FRAME, QUIET = "#14171c", "#d5d9e0", "#2b313b", "#8b94a3"
COLOURS = (
    *("#14171c", "#e06c75", "#7fc37e", "#d9b263", "#6ca7ea", "#c586d8", "#56b6c2", "#d5d9e0"),
    *("#6b7483", "#f08a92", "#9ddb9c", "#eccb85", "#8fc1f7", "#d9a6e8", "#7fd3dd", "#ffffff"),
)
#: Lines drawn as lines, since glyphs of different fonts leave gaps: left, right, up, down.
STROKES = {
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu",
    "├": "rud", "┤": "lud", "┬": "lrd", "┴": "lru", "┼": "lrud",
}  # fmt: skip
ESCAPE = re.compile(r"\x1b\[([0-9;:]*)m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()].|[\x0e\x0f]")
COMMIT = re.compile(r"(?<=committed )[0-9a-f]{7,12}(?= )")


@dataclass(frozen=True)
class Pen:
    """How a character is drawn; a colour is what SVG takes, or empty for the default."""

    ink: str = ""
    paper: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False

    def colours(self) -> tuple[str, str]:
        """Return ink and paper as they are seen; no paper is that of the screen."""
        return (self.paper or PAPER, self.ink or INK) if self.reverse else (self.ink or INK, self.paper)


SWITCHES = {
    1: {"bold": True}, 2: {"dim": True}, 3: {"italic": True}, 4: {"underline": True}, 7: {"reverse": True},
    22: {"bold": False, "dim": False}, 23: {"italic": False}, 24: {"underline": False}, 27: {"reverse": False},
    39: {"ink": ""}, 49: {"paper": ""},
}  # fmt: skip


def of_256(number: int) -> str:
    """Return a colour of the palette of 256."""
    if number < 16:
        return COLOURS[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    steps = (0, 95, 135, 175, 215, 255)
    number -= 16
    return f"#{steps[number // 36]:02x}{steps[number // 6 % 6]:02x}{steps[number % 6]:02x}"


def dip(pen: Pen, words: str) -> Pen:
    """Return the pen after an SGR sequence."""
    codes = [int(word) if word else 0 for word in re.split("[;:]", words)] or [0]
    while codes:
        code = codes.pop(0)
        side = "paper" if 40 <= code < 50 or code >= 100 else "ink"
        if code == 0:
            pen = Pen()
        elif code in SWITCHES:
            pen = replace(pen, **SWITCHES[code])
        elif code in (38, 48) and codes[:1] == [5] and len(codes) >= 2:
            pen = replace(pen, **{side: of_256(codes[1])})
            del codes[:2]
        elif code in (38, 48) and codes[:1] == [2] and len(codes) >= 4:
            pen = replace(pen, **{side: "#{:02x}{:02x}{:02x}".format(*codes[1:4])})
            del codes[:4]
        elif code % 10 < 8 and code // 10 in (3, 4, 9, 10):
            pen = replace(pen, **{side: COLOURS[code % 10 + (8 if code >= 90 else 0)]})
    return pen


def width(char: str) -> int:
    """Return how many cells a character takes."""
    if unicodedata.combining(char) or not char.isprintable():
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cells(screen: str, columns: int, rows: int) -> list[list[tuple[int, str, Pen]]]:
    """Return each line as (column, character, pen); what the escape sequences switch stays on over the lines' ends."""
    lines = []
    pen = Pen()
    for line in screen.splitlines()[:rows]:
        row: list[tuple[int, str, Pen]] = []
        column = at = 0
        while at < len(line):
            found = ESCAPE.match(line, at)
            if found:
                pen = dip(pen, found[1]) if found[1] is not None else pen
                at = found.end()
                continue
            if column + width(line[at]) <= columns and width(line[at]):
                row.append((column, line[at], pen))
            column += width(line[at])
            at += 1
        # tmux leaves out the blanks at a line's end; their paper goes on to the border.
        row += [(rest, " ", pen) for rest in range(column, columns) if pen.colours()[1]]
        lines.append(row)
    return lines


def runs(row: list[tuple[int, str, Pen]]) -> Iterator[tuple[int, str, Pen]]:
    """Join neighbours that look alike; wide characters and lines stand alone."""
    start, text, pen = 0, "", Pen()
    for column, char, its in row:
        alone = width(char) != 1 or char in STROKES
        if text and (alone or its != pen or column != start + len(text) or text[-1] in STROKES or width(text[-1]) != 1):
            yield start, text, pen
            text = ""
        if not text:
            start, pen = column, its
        text += char
    if text:
        yield start, text, pen


def number(value: float) -> str:
    """Return a number without needless digits."""
    return f"{value:.1f}".removesuffix(".0")


def strokes(rows: list[list[tuple[int, str, Pen]]]) -> Iterator[str]:
    """Draw the lines, those of one colour as one path."""
    paths: dict[str, list[str]] = {}
    half_width, half_height = CELL_WIDTH / 2, CELL_HEIGHT / 2
    for y, row in enumerate(rows):
        across: tuple[str, float, float] | None = None  # colour, from, to: neighbours become one line
        middle = PADDING + BAR + y * CELL_HEIGHT + half_height
        for column, char, pen in [*row, (-9, " ", Pen())]:
            sides = STROKES.get(char, "")
            ink = pen.colours()[0]
            left = PADDING + column * CELL_WIDTH
            begin = left if "l" in sides else left + half_width
            end = left + CELL_WIDTH if "r" in sides else left + half_width
            if across and (across[0] != ink or not begin < end or abs(across[2] - begin) > 0.01):
                paths.setdefault(across[0], []).append(f"M{number(across[1])} {number(middle)}H{number(across[2])}")
                across = None
            if begin < end:
                across = (ink, across[1] if across else begin, end)
            if "u" in sides or "d" in sides:
                top = middle - half_height if "u" in sides else middle
                bottom = middle + half_height if "d" in sides else middle
                paths.setdefault(ink, []).append(f"M{number(left + half_width)} {number(top)}V{number(bottom)}")
    for ink, parts in paths.items():
        yield f'<path stroke="{ink}" d="{"".join(parts)}"/>'


def papers(rows: list[list[tuple[int, str, Pen]]]) -> Iterator[str]:
    """Draw the coloured paper below the text."""
    for y, row in enumerate(rows):
        for start, text, pen in runs(row):
            paper = pen.colours()[1]
            if paper:
                wide = sum(map(width, text)) * CELL_WIDTH
                x, top = PADDING + start * CELL_WIDTH, PADDING + BAR + y * CELL_HEIGHT
                yield f'<rect x="{number(x)}" y="{top}" width="{number(wide)}" height="{CELL_HEIGHT}" fill="{paper}"/>'


def texts(rows: list[list[tuple[int, str, Pen]]]) -> Iterator[str]:
    """Draw the text; its length is given, so that columns stay columns in any font."""
    for y, row in enumerate(rows):
        for start, text, pen in runs(row):
            if text in STROKES:
                continue
            look = "".join(
                (
                    f' fill="{pen.colours()[0]}"' if pen.colours()[0] != INK else "",
                    ' font-weight="bold"' if pen.bold else "",
                    ' opacity=".6"' if pen.dim else "",
                    ' font-style="italic"' if pen.italic else "",
                    ' text-decoration="underline"' if pen.underline else "",
                )
            )
            for said in re.finditer(r"[^ ]+(?: [^ ]+)*", text):  # SVG makes several blanks one
                x, base = PADDING + (start + said.start()) * CELL_WIDTH, PADDING + BAR + y * CELL_HEIGHT + 13
                long = sum(map(width, said[0])) * CELL_WIDTH
                place = f'x="{number(x)}" y="{base}" textLength="{number(long)}"'
                yield f"<text {place}{look}>{escape(said[0])}</text>"


def draw(screen: str, columns: int, rows: int, title: str) -> str:
    """Return the picture."""
    lines = cells(COMMIT.sub(_steady, screen), columns, rows)
    wide, high = number(2 * PADDING + columns * CELL_WIDTH), 2 * PADDING + BAR + rows * CELL_HEIGHT
    lights = "".join(
        f'<circle cx="{22 + 20 * n}" cy="20" r="6" fill="{COLOURS[colour]}"/>' for n, colour in enumerate((1, 3, 2))
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" role="img"'
        f' aria-label={quoteattr(title)} font-family="{FONTS}" font-size="{FONT_SIZE}">'
    )
    return "\n".join(
        (
            head,
            f"<title>{escape(title)}</title>",
            f'<rect width="{wide}" height="{high}" rx="10" fill="{PAPER}"/>',
            f'<path d="M0 {BAR + 6}H{wide}" stroke="{FRAME}"/>',
            lights,
            f'<text x="50%" y="25" fill="{QUIET}" text-anchor="middle">{escape(title)}</text>',
            f'<g fill="{INK}">',
            *papers(lines),
            *strokes(lines),
            *texts(lines),
            "</g>",
            "</svg>\n",
        )
    )


def _steady(found: re.Match[str]) -> str:
    line = found.string[found.end() : found.string.find("\n", found.end())]
    words = ESCAPE.split(line)[0].strip()
    return hashlib.sha256(words.encode()).hexdigest()[: len(found[0])]


def main() -> None:
    """Read the screen, print the picture."""
    parser = argparse.ArgumentParser(description="Draw a terminal's screen (tmux capture-pane -e -p) as SVG.")
    parser.add_argument("--size", default="80x24", metavar="COLUMNSxROWS")
    parser.add_argument("--title", default="")
    chosen = parser.parse_args()
    columns, rows = (int(word) for word in chosen.size.split("x"))
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(draw(sys.stdin.read(), columns, rows, chosen.title))


if __name__ == "__main__":
    main()
