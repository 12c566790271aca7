"""Names of any spelling, drawn and as git judges them."""

from __future__ import annotations

import pickle
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm import SwarmError
from swarm.project import names
from swarm.project.errors import InvalidName
from tests.project.test_names import HOSTILE, LETTERS, VALID
from tests.support.odd import reads_well

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.component

ANY_TEXT = st.text(st.characters(exclude_categories=[])) | st.text(LETTERS + "-_./:=,@~ \n", max_size=45)
ENTRY = st.from_regex(r"([A-Ca-c]{1,2}(-[1-3])?=)?[A-Ca-c]{1,2}(-[1-3])?(:[0-4])?", fullmatch=True)


@given(st.lists(ENTRY | ANY_TEXT, max_size=8))
def test_agents_of_one_set_never_share_a_name_in_any_case(entries: list[str]) -> None:
    try:
        specs = names.expand_roles(entries)
    except SwarmError as error:
        reads_well(error)
        return
    assert len({spec.name.casefold() for spec in specs}) == len(specs) >= len(entries)
    for spec in specs:
        assert names.check_name("agent", spec.name) == spec.name
        assert names.check_name("role", spec.role) == spec.role


@given(st.lists(ENTRY, min_size=1, max_size=5))
def test_text_and_list_mean_the_same(entries: list[str]) -> None:
    def outcome(asked: object) -> object:
        try:
            return names.expand_roles(asked)
        except SwarmError as error:
            return type(error), error.code

    assert outcome(",".join(entries)) == outcome(entries)


@given(ANY_TEXT | st.integers() | st.binary() | st.none())
def test_a_name_passes_or_the_error_reads_well(name: object) -> None:
    try:
        checked = names.check_name("role", name)
    except SwarmError as error:
        reads_well(error)
        reads_well(pickle.loads(pickle.dumps(error)))
        return
    assert checked == name
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", checked)
    assert checked.casefold() not in names.RESERVED


def _good_ref(lab: Lab, branch: str) -> bool:
    done = subprocess.run(
        ["git", "check-ref-format", "--branch", branch], env=lab.env, capture_output=True, check=False
    )
    return done.returncode == 0


def test_git_agrees_that_every_accepted_name_makes_a_branch(lab: Lab) -> None:
    @settings(max_examples=60, deadline=None)
    @given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", fullmatch=True), st.sampled_from(VALID))
    def law(agent: str, session: str) -> None:
        if agent.casefold() not in names.RESERVED:
            branch = names.branch_name(names.check_name("agent", agent), session)
            assert _good_ref(lab, branch), branch
            assert branch == f"swarm/{agent}-{session}"

    law()


def test_everything_that_git_refuses_is_refused_here(lab: Lab) -> None:
    """``git check-ref-format`` as the judge: what it does not take as a component, no name may be."""
    for name in HOSTILE:
        if "\0" in name or len(name) > 1000 or not name:
            continue
        try:
            judged = _good_ref(lab, f"swarm/{name}")
        except UnicodeEncodeError:
            judged = False
        if not judged:
            with pytest.raises(InvalidName):
                names.check_name("role", name)
