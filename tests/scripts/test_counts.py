"""What the verbs cost, counted: the short form of ``scripts/bench`` that every run takes."""

from __future__ import annotations

import pytest

from benchmarks import counts

pytestmark = pytest.mark.e2e


def test_no_verb_costs_more_than_it_may() -> None:
    rows = counts.run(quick=True)

    assert counts.misses(rows) == []
    assert len(counts.table(rows)) == len(rows) + 1


def test_what_costs_more_is_told() -> None:
    row = {"what": "merge 16", "programs": 557, "opened": 1, "written": 1, "cpu_ms": 1, "most": {"programs": 20}}
    assert counts.misses([row]) == ["merge 16: 557 programs, at most 20"]
    assert counts.misses([{**row, "programs": 20}]) == []
