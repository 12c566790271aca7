"""What a look costs does not grow with the sessions that do not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.sessions import status
from tests.cli.conftest import Cli

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


@pytest.fixture
def three(lab: Lab) -> Lab:
    for name in ("first", "second", "third"):
        lab.swarm.create(name, "developer:3")
    return lab


def test_of_many_agents_that_do_not_run_git_looks_at_those_of_the_newest_session(three: Lab) -> None:
    some = three.swarm.status(look=None)
    every = three.swarm.status()

    assert [{one.dirty for one in found.agents} for found in some] == [{None}, {None}, {False}]
    assert [{one.ahead for one in found.agents} for found in every] == [{0}, {0}, {0}]
    assert [one.head for found in some for one in found.agents] == [one.head for found in every for one in found.agents]


def test_of_few_git_looks_at_all(lab: Lab) -> None:
    lab.swarm.create("first", "developer:4")
    lab.swarm.create("second", "developer:4")

    assert {one.dirty for found in lab.swarm.status(look=None) for one in found.agents} == {False}


def test_the_command_says_where_it_did_not_look(
    three: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = Cli(three, monkeypatch, capsys)

    whole, one = cli("status"), cli("status", "first")

    said = "changes were not looked for in 6 worktrees; to see them: swarm status SESSION"
    assert (said in whole.err, said in one.err) == (True, False)
    assert one.out.count(" clean ") == 3


def test_without_a_look_nothing_is_said_of_worktrees(lab: Lab) -> None:
    lab.swarm.create("first", "developer")
    ((one,),) = (found.agents for found in lab.swarm.status(look=False))

    assert (one.head, one.ahead, one.dirty, one.missing) == ("", None, None, False)
    assert lab.swarm.why("developer", look=False).head


def test_a_newer_session_that_runs_takes_no_look_from_the_newest_that_rests(three: Lab) -> None:
    three.swarm.create("fourth", "developer")
    found = three.swarm.status(look=False)
    states = {(one.session, one.agent.name): one.status for whole in found for one in whole.agents}
    states["fourth", "developer"] = states["fourth", "developer"]._replace(runs=True)

    looked = status._worth_a_look(three.swarm.sessions(), states)

    assert {session for session, agent in states if (session, agent) in looked} == {"third", "fourth"}
