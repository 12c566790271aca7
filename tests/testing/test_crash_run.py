"""The run of all crash trials: it goes on where it was, and tells what it found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import crash_run
from tests.support.scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.crash import Bench

pytestmark = pytest.mark.component

PIECES = {"b-1": ("cleanup", 1), "a-0": ("create", 0), "a-1": ("create", 1), "b-0": ("cleanup", 0)}


def note(piece: str, outcome: str = "passed", violations: int = 0) -> dict[str, Any]:
    counts = {**dict.fromkeys(crash_run.COUNTS, 0), "trials": 5, "kills": 5, "violations": violations}
    return {"piece": piece, "outcome": outcome, "commit": "abc", "crash": counts, "text": "E what was wrong"}


def test_the_first_pieces_of_all_scenarios_come_first_and_none_that_is_noted(tmp_path: Path) -> None:
    results = tmp_path / "results.jsonl"
    assert crash_run.to_run(crash_run.noted(results), PIECES, again=False) == ["a-0", "b-0", "b-1", "a-1"]

    cut_short = json.dumps(note("b-1"))[:-9]
    results.write_text(f"{json.dumps(note('a-0'))}\n{json.dumps(note('b-0', 'failed', 1))}\n{cut_short}")

    assert crash_run.to_run(crash_run.noted(results), PIECES, again=False) == ["b-1", "a-1"]
    assert crash_run.to_run(crash_run.noted(results), PIECES, again=True) == ["b-0", "b-1", "a-1"]


def test_the_summary_counts_each_scenario_and_names_what_failed() -> None:
    found = {one["piece"]: one for one in (note("a-0"), note("a-1"), note("b-0", "failed", 2))}

    lines = list(crash_run.summary(found, PIECES))

    assert [line.split() for line in lines[1:4]] == [
        ["cleanup", "1/2", "5", "5", "0", "0", "2", "1"],
        ["create", "2/2", "10", "10", "0", "0", "0", "0"],
        ["all", "3/4", "15", "15", "0", "0", "2", "1"],
    ]
    assert lines[4:] == ["of commit abc", "failed: b-0\nE what was wrong"]


@pytest.mark.timeout(120)
def test_every_crash_test_there_is_has_its_turn(tmp_path: Path) -> None:
    pieces = crash_run._pieces(tmp_path)

    assert {"create", "cleanup", "panes-start", "bus_points"} <= {scenario for scenario, _ in pieces.values()}


def test_a_state_that_was_tried_is_known_again_and_any_other_is_not(bench: Bench) -> None:
    setup = bench.setup(SCENARIOS["lock"])
    lab = bench.load(setup.image)
    state = setup.state()
    bench.load(setup.image)
    assert setup.state() == state

    lab.git(
        "hash-object", "-w", "notes"
    )  # one more of those that are there: gits at work together make them in any order
    assert setup.state() == state
    (lab.root / ".git/objects/tmp_obj_left").write_text("half")
    half = setup.state()
    (lab.root / ".swarm/journal/left.json").write_text("{}")

    assert len({state, half, setup.state()}) == 3
