"""The handles of a team: every verb about one agent, without naming it each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm import AgentNotFound, CreateReport, SessionNotFound, Swarm, Team, WaitOver

if TYPE_CHECKING:
    from swarm.testing.lab import Lab
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration


def test_what_start_returns_is_the_report_and_has_a_handle_for_each_agent(panes: PaneLab) -> None:
    swarm = Swarm.open(panes.root, environ=panes.env)
    team = swarm.start("fx", "developer,lead=architect", program="demo", task="Add a greeting")

    assert isinstance(team, CreateReport)
    assert [agent.address for agent in team] == ["developer@fx", "lead@fx"]
    result = team["Developer"].result(timeout=60)
    assert (result.address, result.state, result.dirty) == ("developer@fx", "idle", False)
    assert result.ahead
    assert result.text
    assert result.text == [entry.text for entry in team["developer"].transcript() if entry.who == "agent"][-1]
    assert "demo agent: developer" in team["developer"].peek()[0]
    assert team["developer"].diff(patch=False).files
    sent = team["lead"].send("please look", subject="review")
    assert sent.to == "lead@fx"
    assert swarm.messages.get(sent.id)[0].stored.message.subject == "review"
    assert team["developer"].stop().stopped == (("fx", "developer"),)
    assert team["developer"].status().status.state == "stopped"
    assert team["developer"].result(timeout=0).state == "stopped"
    assert team["developer"].resume().started == (("fx", "developer"),)


def test_a_team_that_is_there_already_is_found_by_its_session(lab: Lab) -> None:
    made = lab.swarm.create("fx", "researcher,developer", instructions=False)
    team = lab.swarm.team("fx")

    assert team.paths() == made.paths()
    assert len(team) == 2
    with pytest.raises(AgentNotFound, match="session fx has no agent 'nobody'") as refused:
        team["nobody"]
    assert refused.value.hint == "it has: researcher, developer"
    with pytest.raises(SessionNotFound):
        lab.swarm.team("other")


def test_what_is_returned_says_in_a_few_words_what_it_is(lab: Lab) -> None:
    lab.swarm.create("fx", "researcher,developer", instructions=False)
    team = lab.swarm.team("fx")

    assert repr(lab.swarm) == f"<Swarm {lab.root}>"
    assert repr(team) == "<Team fx: researcher, developer>"
    assert repr(team["developer"]) == "<AgentHandle developer@fx>"


def test_a_team_of_a_dry_run_starts_nothing(lab: Lab) -> None:
    team = lab.swarm.start("fx", "developer", program="demo", dry_run=True)

    assert isinstance(team, Team)
    assert team.dry_run
    assert team.steps
    assert lab.swarm.sessions() == ()


def test_a_result_that_does_not_come_in_time_is_told(panes: PaneLab) -> None:
    swarm = Swarm.open(panes.root, environ=panes.env)
    team = swarm.start("fx", "developer", command="sleep 1000")

    with pytest.raises(WaitOver, match="developer@fx: not idle within 0 s"):
        team["developer"].result(timeout=0)
