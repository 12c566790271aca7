"""A command in a box: what it says is taken, and it holds up nobody."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.sandbox import machine
from swarm.sandbox.inside import Inside
from swarm.sandbox.values import Box

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("boxes")]


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    for name in ("tree", "home"):
        (tmp_path / name).mkdir()
    box = Box(str(tmp_path / "tree"), str(tmp_path / "home"), machine.system(), env={"PATH": "/usr/bin:/bin"})
    return Inside(box, os.environ, timeout=20)


def hurried(inside: Inside) -> Inside:
    return Inside(inside.box, os.environ, timeout=1)


def test_status_output_and_errors_come_back(inside: Inside) -> None:
    said = inside.run("sh", "-c", "cat; echo wrong >&2; exit 7", stdin=b"x" * 100_000)

    assert said == (7, b"x" * 100_000, b"wrong\n")


def test_variables_and_folder_are_the_boxes(inside: Inside) -> None:
    code, out, _ = inside.run("sh", "-c", "pwd; env", env={"NAME": "value"})

    lines = os.fsdecode(out).splitlines()
    assert (code, lines[0]) == (0, inside.box.tree)
    assert sorted(line.partition("=")[0] for line in lines[1:]) == ["HOME", "NAME", "PATH", "PWD"]


@pytest.mark.parametrize(
    "script",
    [
        "sleep 600",
        "exec >&- 2>&-; sleep 600",  # nothing to listen to any more
        "while :; do echo x; sleep 0.01; done",  # always something to hear
        "trap '' TERM INT HUP; sleep 600",
    ],
)
def test_one_that_does_not_end_is_ended(inside: Inside, script: str) -> None:
    began = time.monotonic()

    with pytest.raises(SwarmError, match="did not end within 1 s"):
        hurried(inside).run("sh", "-c", script)

    assert time.monotonic() - began < 15


def test_what_it_leaves_behind_ends_with_it(inside: Inside) -> None:
    said = inside.run("sh", "-c", "(setsid sleep 600 &) ; echo done")

    assert said.out == b"done\n"


def test_a_flood_is_cut(inside: Inside) -> None:
    with pytest.raises(SwarmError, match="more than 1000 bytes"):
        inside.run("sh", "-c", "yes", limit=1000)
    assert len(inside.run("sh", "-c", "yes >&2 | head -c 1 & sleep 0.2; kill $!; true").err) <= 1 << 16


def test_the_users_of_a_box_are_none_of_the_machines(inside: Inside) -> None:
    assert inside.run("id", "-u").out == b"1000\n"
    assert inside.run("hostname").out == b"box\n"
