from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm.merging.values import OrderStep, suggest_order

pytestmark = pytest.mark.component


def pairs(*given_: tuple[str, str, int]) -> dict[frozenset[str], int]:
    return {frozenset((one, other)): number for one, other, number in given_}


def names(steps: tuple[OrderStep, ...]) -> list[str]:
    return [step.agent for step in steps]


def test_nobody_gives_nothing() -> None:
    assert suggest_order([], {}) == ()


def test_without_conflicts_the_order_stays() -> None:
    assert suggest_order(["c", "a", "b"], {}) == (OrderStep("c"), OrderStep("a"), OrderStep("b"))


def test_the_one_in_everybody_s_way_comes_last() -> None:
    steps = suggest_order(["hub", "a", "b", "c"], pairs(("hub", "a", 1), ("hub", "b", 1), ("hub", "c", 9)))

    assert steps == (OrderStep("a"), OrderStep("b"), OrderStep("c"), OrderStep("hub", ("a", "b", "c")))


def test_of_equals_the_one_with_fewer_files_goes_first() -> None:
    steps = suggest_order(["a", "b", "c", "d"], pairs(("a", "b", 5), ("c", "d", 1)))

    assert names(steps) == ["c", "a", "d", "b"]


def test_what_conflicts_with_the_target_is_last_in_any_case() -> None:
    steps = suggest_order(["a", "b"], pairs(("a", "b", 1)), stuck={"a"})

    assert steps == (OrderStep("b"), OrderStep("a", ("b",)))


AGENTS = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(AGENTS, st.dictionaries(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("abcdefgh")), st.integers(1, 9)))
def test_everybody_is_there_once_and_the_clean_ones_come_first(
    agents: list[str], given_: dict[tuple[str, str], int]
) -> None:
    conflicts = {frozenset(pair): number for pair, number in given_.items() if pair[0] != pair[1]}

    steps = suggest_order(agents, conflicts)

    assert sorted(names(steps)) == sorted(agents)
    clean = [not step.conflicts_with for step in steps]
    assert clean == sorted(clean, reverse=True)
