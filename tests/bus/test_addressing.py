"""Whom an address means."""

from __future__ import annotations

import pytest

from swarm.bus.addressing import Member, one, resolve, split
from swarm.kit.errors import Ambiguous, Refused, SwarmError, UsageProblem
from swarm.project.errors import AgentNotFound, SessionNotFound

pytestmark = pytest.mark.unit

DEV = Member("developer", "fx", "developer")
REV = Member("reviewer", "fx", "reviewer")
REV2 = Member("second", "fx", "reviewer")
OTHER = Member("developer", "bugs", "developer")
ALONE = Member("architect", "bugs", "architect")
PHONE = Member("phone", "")
BELL = Member("reviewer", "")
ALL = (DEV, REV, REV2, OTHER, ALONE)
LEAD = Member("lead", "top", "architect", "op-1")
WORKER = Member("worker", "sub", "developer", parent="lead@top", parent_generation="op-1")


@pytest.mark.parametrize(
    ("to", "sender", "expected"),
    [
        ("reviewer", DEV, [REV]),
        ("REVIEWER", DEV, [REV]),
        ("reviewer@fx", None, [REV]),
        ("Developer@BUGS", DEV, [OTHER]),
        ("developer", OTHER, [OTHER]),
        ("architect", None, [ALONE]),
        ("all", DEV, [REV, REV2]),
        ("broadcast", DEV, [REV, REV2]),
        ("all@bugs", DEV, [OTHER, ALONE]),
        ("all@fx", None, [DEV, REV, REV2]),
        ("role:reviewer", DEV, [REV, REV2]),
        ("role:Reviewer", REV, [REV2]),
        ("role:developer@bugs", DEV, [OTHER]),
        ("role:architect", None, [ALONE]),  # of the only session that has one
        ("parent", DEV, [None]),
        ("user", None, [None]),
        ("reviewer,reviewer@fx,role:reviewer", DEV, [REV, REV2]),
        ("user, reviewer ,parent", DEV, [None, REV]),
        ("developer", DEV, [DEV]),
    ],
)
def test_an_address_means_these(to: str, sender: Member | None, expected: list[Member | None]) -> None:
    assert list(resolve(split(to), ALL, sender)) == expected


@pytest.mark.parametrize(
    ("to", "sender", "expected"),
    [
        ("phone", DEV, PHONE),
        ("PHONE", None, PHONE),
        ("bridge.Phone", None, PHONE),
        ("bridge.reviewer", DEV, BELL),
        ("reviewer", DEV, REV),
        ("reviewer", OTHER, BELL),  # its own session has no such agent
    ],
)
def test_a_bridge_has_an_address_and_agents_come_first(to: str, sender: Member | None, expected: Member) -> None:
    assert resolve((to,), ALL, sender, bridges=(PHONE, BELL)) == (expected,)
    assert one(to, ALL, sender, (PHONE, BELL)) == expected
    assert (PHONE.address, BELL.address) == ("bridge.phone", "bridge.reviewer")


@pytest.mark.parametrize("to", ["bridge.none", "phone@fx", "bridge."])
def test_a_bridge_that_never_ran_and_one_of_a_session_are_none(to: str) -> None:
    with pytest.raises(AgentNotFound):
        resolve((to,), ALL, DEV, bridges=(PHONE,))


@pytest.mark.parametrize(
    ("to", "sender", "error", "words"),
    [
        ("nobody", DEV, AgentNotFound, "your session fx has no agent 'nobody'"),
        ("architect", DEV, AgentNotFound, "your session fx has no agent 'architect'"),
        ("developer", None, Ambiguous, "developer@fx, developer@bugs"),
        ("nobody@fx", None, AgentNotFound, "session fx has no agent 'nobody'"),
        ("developer@none", None, SessionNotFound, "no session 'none'"),
        ("developer@", DEV, UsageProblem, "no session is named after the @"),
        ("all", None, Ambiguous, "fx, bugs"),
        ("role:tester", DEV, AgentNotFound, "means no agent"),
        ("role:developer", DEV, AgentNotFound, "means no agent but the sender"),
        ("user@fx", DEV, UsageProblem, "one user for all sessions"),
        ("\x1b[31mred", DEV, AgentNotFound, "\\x1b[31mred"),
    ],
)
def test_what_means_nobody_or_several_is_refused(
    to: str, sender: Member | None, error: type[SwarmError], words: str
) -> None:
    with pytest.raises(error) as caught:
        resolve(split(to), ALL, sender)
    assert words in caught.value.message


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(Refused) as caught:
        resolve(split("nobody,reviewer,developer@none"), ALL, DEV)
    assert [type(p) for p in caught.value.problems] == [AgentNotFound, SessionNotFound]


@pytest.mark.parametrize("to", ["", ",", "a,,b", " "])
def test_an_empty_name_is_refused(to: str) -> None:
    with pytest.raises(UsageProblem):
        split(to)


def test_an_agent_of_another_session_is_named_in_the_hint() -> None:
    with pytest.raises(AgentNotFound) as caught:
        resolve(split("architect"), ALL, DEV)
    assert "architect@bugs" in caught.value.hint


@pytest.mark.parametrize("word", ["all", "role:reviewer", "role:architect@bugs"])
def test_a_box_is_not_named_by_a_word_for_several(word: str) -> None:
    with pytest.raises(UsageProblem):
        one(word, ALL, DEV)


def test_without_any_session_a_person_is_told_so() -> None:
    with pytest.raises(AgentNotFound, match="no session exists"):
        resolve(("developer",), (), None)


@pytest.mark.parametrize(
    ("members", "sender", "expected"),
    [
        ((*ALL, LEAD, WORKER), WORKER, LEAD),
        ((*ALL, WORKER), WORKER, None),
        ((*ALL, LEAD._replace(generation="op-2"), WORKER), WORKER, None),
        ((*ALL, LEAD._replace(session="other"), WORKER), WORKER, None),
        ((*ALL, LEAD, WORKER), LEAD, None),
        ((*ALL, LEAD, WORKER), None, None),
    ],
    ids=["there", "removed", "another of its name", "of another session", "started by a person", "a person"],
)
def test_the_parent_is_the_agent_that_started_the_senders_session_while_that_run_is_there(
    members: tuple[Member, ...], sender: Member | None, expected: Member | None
) -> None:
    assert resolve(["Parent"], members, sender) == (expected,)
    assert one("parent", members, sender) == expected


def test_nobody_names_the_parent_of_another_session() -> None:
    with pytest.raises(UsageProblem) as caught:
        one("parent@sub", (LEAD, WORKER), WORKER)
    assert (caught.value.message, caught.value.hint) == (
        "cannot send to 'parent@sub': everybody has one parent",
        "write parent",
    )
