"""The picture of the screen: how it is drawn, and that the README has one that can be read."""

from __future__ import annotations

import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from tests.support.pages import PROJECT

pytestmark = pytest.mark.component

PICTURE = PROJECT / "docs" / "images" / "swarm.svg"
SVG = "{http://www.w3.org/2000/svg}"


def draw(screen: str, size: str = "20x3") -> ET.Element:
    done = subprocess.run(
        [sys.executable, str(PROJECT / "scripts" / "screen_to_svg.py"), "--size", size, "--title", "a & b"],
        input=screen.encode(),
        capture_output=True,
        check=True,
    )
    return ET.fromstring(done.stdout)


def texts(picture: ET.Element) -> list[tuple[str, str]]:
    return [(text.text or "", text.get("fill", "")) for text in picture.iter(f"{SVG}text")][1:]


def test_the_picture_of_the_readme_shows_all_panes() -> None:
    shown = " ".join(text for text, _ in texts(ET.parse(PICTURE).getroot()))

    for agent in ("researcher · waiting", "developer · working", "architect · idle", "reviewer · idle"):
        assert agent in shown
    assert "[swarm] 0:feature-x*" in shown
    assert "docs/images/swarm.svg" in (PROJECT / "README.md").read_text(encoding="utf-8")


def test_the_picture_tells_nothing_of_the_machine_it_was_made_on() -> None:
    shown = "\n".join(text for text, _ in texts(ET.parse(PICTURE).getroot()))

    assert not re.search(r"(?<!\w)/\w|\d\d:\d\d|\d{4}-\d\d", shown)  # paths, times, dates


@pytest.mark.parametrize(
    ("screen", "shown"),
    [
        ("plain", [("plain", "")]),
        ("<a & b>", [("<a & b>", "")]),
        ("\x1b[31mred\x1b[39m not", [("red", "#e06c75"), ("not", "")]),
        ("\x1b[91mbright\x1b[0m", [("bright", "#f08a92")]),
        ("\x1b[38;5;196mof 256", [("of 256", "#ff0000")]),
        ("\x1b[38;5;240mgrey", [("grey", "#585858")]),
        ("\x1b[38;2;1;2;3mtrue", [("true", "#010203")]),
        ("\x1b[7mreverse", [("reverse", "#14171c")]),
        ("\x1b[32mstays\non", [("stays", "#7fc37e"), ("on", "#7fc37e")]),
        ("two  words", [("two", ""), ("words", "")]),
        ("link \x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", [("link text", "")]),
        ("wide 日本", [("wide", ""), ("日", ""), ("本", "")]),
        ("x" * 30, [("x" * 20, "")]),
    ],
)
def test_a_screen_is_drawn_as_it_looks(screen: str, shown: list[tuple[str, str]]) -> None:
    assert texts(draw(screen)) == shown


def test_lines_are_drawn_as_lines() -> None:
    picture = draw("─┬─\n │")

    assert texts(picture) == []
    assert [path.get("stroke") for path in picture.iter(f"{SVG}path")][1:] == ["#d5d9e0"]


def test_coloured_paper_goes_on_to_the_border() -> None:
    papers = list(draw("\x1b[42mstatus").iter(f"{SVG}rect"))[1:]

    assert sum(float(rect.get("width", 0)) for rect in papers) == pytest.approx(20 * 8.4)


def test_commit_ids_depend_on_nothing_but_their_line() -> None:
    one, other = (texts(draw(f"committed {commit} dev: edit", "40x1")) for commit in ("abcdef1", "1234567"))

    assert one == other
