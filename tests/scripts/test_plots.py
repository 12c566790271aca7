"""The plots of ``scripts/bench``."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from benchmarks import plots

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

ROWS = [
    {"command": "swarm <one>", "cpu_ms": 1.0, "ratio": 1.0, "goal": None},
    {"command": "swarm two", "cpu_ms": 20.0, "ratio": 20.0, "goal": 12.0},
]


def test_a_table_becomes_a_picture_with_a_bar_for_each_row(tmp_path: Path) -> None:
    made = plots.write({"startup": ROWS, "where": {}}, tmp_path)

    assert made == [tmp_path / "startup.svg"]
    picture = ET.fromstring(made[0].read_text())
    bars = [one for one in picture.iter("{http://www.w3.org/2000/svg}rect") if one.get("x")]
    assert [(one.get("width"), one.get("fill")) for one in bars] == [("21.0", "#4a7ebb"), ("420.0", "#c0504d")]


def test_a_bar_is_red_only_over_its_goal() -> None:
    assert "#c0504d" not in plots.bars("t", [("a", 12.0, 12.0)])
