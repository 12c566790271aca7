"""Kill writers and readers of messages all the time; the ledger must find nothing, and each planted bug.

``scripts/storm`` does the same with 64 writers and a million messages.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support import storm_shards
from tests.support.ledger import Judge, judge
from tests.support.storm import BUGS, Plan, storm

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]
full = pytest.mark.skipif(
    os.environ.get("SWARM_CRASH") != "full", reason="a storm finds by chance, and takes its time: scripts/crash"
)

#: Together 60,000 messages; each shard on one processor.
SHARDS = 4
MESSAGES = int(os.environ.get("SWARM_STORM", "60000"))


def test_64_writers_lose_nothing_however_often_they_are_killed(tmp_path: Path) -> None:
    """The storm of every day, small enough to run with all other tests."""
    plan = Plan(writers=64, readers=8, inboxes=4, messages=20_000, seed=1)
    storm(plan, tmp_path)
    verdict = judge(tmp_path / "ledger")

    assert not verdict.wrong, f"{verdict}\n" + "\n".join(verdict.examples)
    assert verdict.counts["X"] > 20
    assert verdict.counts["A"] >= plan.each * plan.writers


@full
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_is_lost_repeated_reordered_or_torn(shard: int, tmp_path: Path) -> None:
    plan = Plan(writers=6, readers=3, inboxes=2, messages=MESSAGES // SHARDS, seed=shard)
    storm(plan, tmp_path)
    verdict = judge(tmp_path / "ledger")

    assert not verdict.wrong, f"{verdict}\n" + "\n".join(verdict.examples)
    assert verdict.counts["X"] > 10
    assert verdict.counts["A"] >= plan.each * plan.writers
    assert not [name for folder in tmp_path.glob("messages/*/*/bad") for name in os.listdir(folder)]


EXPECTED = {
    "acks are forgotten": "repeated",
    "torn tails are merged": "lost",
    "ids are not compared": "repeated",
    "leases are ignored": "repeated",
    "the urgent overtake": "order",
}


@full
@pytest.mark.parametrize("bug", list(BUGS))
def test_the_judge_finds_a_planted_bug(bug: str, tmp_path: Path) -> None:
    for seed in range(20):
        plan = Plan(writers=4, readers=3, inboxes=1, messages=2000, seed=seed, bug=bug)
        plan.patience = 8
        plan.kill_every = 0.03
        folder = tmp_path / str(seed)
        folder.mkdir()
        storm(plan, folder)
        if judge(folder / "ledger").wrong[EXPECTED[bug]]:
            return

    pytest.fail(f"{bug}: not found in 20 storms")


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("R 1 i w:0 w:1|B 1 w:0 w:1|K 1 w:0 w:1", ""),
        ("R 1 i w:1|R 1 i w:0", "w:1 before 0"),
        ("R 1 i w:0 w:1|X 1|R 2 i w:1", "w:1 before w:0, which came again"),
        ("R 1 i w:0 w:1|X 1|R 2 i w:0 w:1", ""),
        ("R 1 i w:0|N 1 w:0|R 1 i w:1|D w:0", ""),
    ],
)
def test_the_judge_knows_the_order_also_of_what_comes_again(said: str, wrong: str) -> None:
    judge = Judge()
    for line in said.split("|"):
        judge.hear(line)
    assert judge.close().examples == [f"order: {wrong}"] * bool(wrong)


def test_a_storm_in_shards_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--messages=60", "--shard=30", "--writers=2", "--readers=1", "--inboxes=1", f"--folder={tmp_path}"]
    assert storm_shards.main(small) == 0
    first = capsys.readouterr().out
    notes = next(tmp_path.glob("*/results.jsonl"))
    notes.write_text(notes.read_text()[:-20])  # killed while it noted the second
    assert storm_shards.main(small) == 0
    second = capsys.readouterr().out

    assert first.endswith("0 of 2 shards went wrong\nevery promise held\n")
    assert second.count(", noted before") == 1
    assert second.endswith("every promise held\n")
    assert storm_shards.main(small) == 0
    assert capsys.readouterr().out.count(", noted before") == 2
