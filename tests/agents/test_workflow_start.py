"""``start_workflow``: one call from a kind of work and a goal to agents that were told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError
from swarm.testing.panes import QUICK, PaneLab

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def own(lab: PaneLab, name: str, text: str) -> None:
    path = lab.root / ".swarm" / "workflows" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    (lab.root / ".swarm").chmod(0o700)
    path.write_text(text)


@pytest.mark.parametrize(
    ("kind", "roles"),
    [
        ("research", {"researcher", "reviewer"}),
        ("implement", {"developer", "reviewer"}),
        ("review", {"reviewer", "architect"}),
        ("full", {"researcher", "architect", "developer", "reviewer"}),
        ("development", {"developer", "reviewer"}),
    ],
)
def test_the_ones_that_ship(panes: PaneLab, kind: str, roles: set[str]) -> None:
    goal = f"Make {{it}} {{goal}} 100%\n{QUICK}"

    report = panes.swarm.start_workflow(kind, goal, program="demo")

    assert {agent.role for agent in report.agents} == roles
    session = panes.swarm.sessions.get(report.session)
    assert session.workflow == panes.swarm.workflows.get(kind).name
    assert "Make {it} {goal} 100%" in session.task
    panes.all_until("idle")
    for agent in session.agents:
        assert (panes.run(agent.name, report.session) / "task.md").read_text() == session.task


def test_the_projects_own_with_its_own_role(panes: PaneLab) -> None:
    panes.write({"roles/tester/CLAUDE.md": "# Tester\n\nBreaks things.\n"})
    own(
        panes,
        "triage",
        f"roles: [tester:2, lead=architect]\naliases: [sort]\ntask: |\n  Sort: {{goal}}\n  {QUICK.splitlines()[0]}\n",
    )

    report = panes.swarm.start_workflow("sort", "the bugs", session="s1", program="demo")

    assert [(agent.name, agent.role) for agent in report.agents] == [
        *(("tester-1", "tester"), ("tester-2", "tester"), ("lead", "architect")),
    ]
    panes.until("lead", "idle")
    assert panes.swarm.sessions.get("s1").task.startswith("Sort: the bugs\n")
    assert "Breaks things." in (panes.run("tester-1", "s1") / "role.md").read_text()


def test_fresh_sessions_have_names_of_their_own(panes: PaneLab) -> None:
    first = panes.swarm.start_workflow("review", QUICK, program="demo")
    second = panes.swarm.start_workflow("review", QUICK, program="demo")

    assert first.session != second.session
    panes.swarm.cleanup([first.session], force=True)
    assert [session.name for session in panes.swarm.sessions()] == [second.session]
    assert not any(agent.path.exists() for agent in first.agents)
    assert not {agent.branch for agent in first.agents} & set(panes.git("branch", "--format=%(refname:short)").split())
    assert all(agent.path.is_dir() for agent in second.agents)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("roles: [nobody]\n", "ROLE_NOT_FOUND"),
        ("roles: [developer\n", "CONFIG"),
        ("roles: [developer, developer]\n", "CONFIG"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(panes: PaneLab, text: str, code: str) -> None:
    own(panes, "odd", text)
    before = panes.fingerprint()

    with pytest.raises(SwarmError) as raised:
        panes.swarm.start_workflow("odd", "x", program="demo")

    assert raised.value.code == code
    assert panes.fingerprint() == before
    assert panes.swarm.sessions() == ()
    assert panes.tmux.pid() == 0


def test_an_unknown_one_and_a_dry_run(panes: PaneLab) -> None:
    with pytest.raises(SwarmError) as raised:
        panes.swarm.start_workflow("nonsense", "x", program="demo")
    assert raised.value.code == "WORKFLOW_NOT_FOUND"

    report = panes.swarm.start_workflow("full", "x", program="demo", dry_run=True)

    assert (report.dry_run, len(report.agents)) == (True, 4)
    assert panes.tmux.pid() == 0


def test_on_the_command_line(panes: PaneLab, tmp_path: Path) -> None:
    (tmp_path / "goal.md").write_text(f"The goal\n{QUICK}")

    done = panes.cli(
        "start", "fx", "--workflow", "implement", "--agent", "demo", "--task-file", str(tmp_path / "goal.md")
    )

    assert done.returncode == 0, done.stderr
    assert panes.panes() == ["fx developer", "fx reviewer"]
    assert "The goal" in (panes.run("reviewer") / "task.md").read_text()
    listed = panes.json("workflow", "list")["data"]["workflows"]
    assert {one["name"] for one in listed} >= {"research", "implement", "review", "full"}
    shown = panes.cli("workflow", "show", "development").stdout
    assert "implement" in shown
    assert "{goal}" in shown
