"""A task for each agent, and a session named after its task."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm, SwarmError, UsageProblem
from swarm.agents.tasks import assign, read_sections, session_name
from swarm.project.names import expand_roles
from swarm.testing.panes import QUICK

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def told(panes: PaneLab, agent: str, session: str = "fx") -> str:
    return (panes.run(agent, session) / "task.md").read_text()


def test_each_agent_is_told_the_task_of_all_and_its_own(panes: PaneLab) -> None:
    panes.swarm.start(
        "fx",
        "developer:2,lead=architect,researcher",
        task=f"For all\n{QUICK}",
        tasks={"developer": "All developers", "developer-2": "Only the second", "lead": "You lead"},
        program="demo",
    )

    panes.all_until("idle")
    common = f"For all\n{QUICK}".rstrip()
    assert told(panes, "researcher") == f"For all\n{QUICK}"
    assert told(panes, "lead") == f"{common}\n\nYou lead"
    assert told(panes, "developer-1") == f"{common}\n\nAll developers"
    assert told(panes, "developer-2") == f"{common}\n\nOnly the second"


def test_a_resumed_and_a_restored_agent_are_told_the_same(panes: PaneLab) -> None:
    panes.swarm.start("fx", "developer,reviewer", task=QUICK, tasks={"reviewer": "Look twice"}, program="demo")
    panes.all_until("idle")
    before = told(panes, "reviewer")

    panes.swarm.stop(everything=True)
    panes.swarm.resume(everything=True)
    panes.all_until("idle")
    assert told(panes, "reviewer") == before

    panes.swarm.stop(everything=True)
    panes.swarm.cleanup(["fx"], force=True)
    panes.swarm.restore("fx")
    panes.swarm.resume(["fx"])
    panes.all_until("idle")
    assert told(panes, "reviewer") == before
    assert "Look twice" not in told(panes, "developer")


def test_a_workflow_takes_them_too_and_its_session_is_named_after_the_goal(panes: PaneLab) -> None:
    team = panes.swarm.start_workflow(
        "implement", f"Greet the people\n{QUICK}", tasks={"reviewer": "Be kind"}, program="demo"
    )

    assert team.session == "greet-people"
    panes.all_until("idle")
    assert told(panes, "reviewer", "greet-people").endswith("\n\nBe kind")


def test_print_mode_needs_a_task_for_every_agent(panes: PaneLab) -> None:
    with pytest.raises(SwarmError, match="without a task"):
        panes.swarm.start(
            "fx", "developer,reviewer", tasks={"reviewer": "Look"}, program="demo", print_mode=True, dry_run=True
        )
    tasks = {"reviewer": "Look", "developer": "Build"}
    assert panes.swarm.start("fx", "developer,reviewer", tasks=tasks, program="demo", print_mode=True, dry_run=True)


def test_an_unknown_name_is_told_with_all_other_problems(panes: PaneLab) -> None:
    before = panes.fingerprint()

    with pytest.raises(SwarmError) as raised:
        panes.swarm.start("fx", "developer,nobody", tasks={"reveiwer": "x"}, program="demo")

    told_all = str(raised.value) + str(raised.value.details)
    assert "'reveiwer' a task" in told_all
    assert "nobody" in told_all
    assert panes.fingerprint() == before


def test_from_the_command_line(panes: PaneLab, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("From a file")
    (tmp_path / "goal").write_text(f"Tidy the dates\n{QUICK}\n=== developer ===\n\nFrom a section\n# with a heading\n")

    done = panes.cli(
        *("start", "--roles", "developer,reviewer,researcher", "--agent", "demo", "--json"),
        *("--task-file", str(tmp_path / "goal"), "--task", f"reviewer=@{tmp_path / 'own'}", "--task", "researcher=a=b"),
    )

    assert done.returncode == 0, done.stderr
    name = json.loads(done.stdout)["data"]["session"]
    assert name == "tidy-dates"
    assert told(panes, "developer", name).endswith("\n\nFrom a section\n# with a heading\n")
    assert told(panes, "reviewer", name).endswith("\n\nFrom a file")
    assert told(panes, "researcher", name).endswith("\n\na=b")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--task", "x", "--task", "y"), "the task for all agents is given twice"),
        (("--task", "developer=x", "--task", "developer=y"), "the task of developer is given twice"),
        (("--task", "developer="), "it is empty"),
        (("--task", "developer=@"), "no file is named"),
        (("--task", "developer=@nowhere"), "nowhere: No such file"),
        (("--task", "-", "--task", "developer=-"), "two tasks from standard input"),
        (("--task", "what=x"), "--task all=TEXT"),
        ((), "it has no task"),
    ],
)
def test_what_is_wrong_on_the_command_line(panes: PaneLab, args: tuple[str, ...], words: str) -> None:
    before = panes.fingerprint()
    session = () if not args else ("fx",)

    done = panes.cli("start", *session, "--roles", "developer", "--agent", "demo", *args)

    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert panes.fingerprint() == before


def test_a_text_that_begins_like_a_name(panes: PaneLab) -> None:
    done = panes.cli("start", "fx", "--roles", "developer", "--agent", "demo", "--task", f"all=X=1 holds\n{QUICK}")

    assert done.returncode == 0, done.stderr
    assert told(panes, "developer") == f"X=1 holds\n{QUICK}"


def test_sections() -> None:
    assert read_sections("# Goal\n=== no\nall") == ("# Goal\n=== no\nall", {})
    assert read_sections("=== a ===\nfor a\n\n===  b === \r\nfor b") == ("", {"a": "for a\n", "b": "for b\n"})
    assert read_sections("all\n\n=== a ===\nx") == ("all\n", {"a": "x\n"})
    for wrong in ("=== a ===\nx\n=== a ===\ny", "=== a ===\n\n=== b ===\nx", "=== a ==="):
        with pytest.raises(UsageProblem):
            read_sections(wrong)


def test_an_agents_name_comes_before_a_role_of_that_name() -> None:
    specs = expand_roles("developer,lead=developer,tester=reviewer")

    assert assign(specs, {"developer": "x", "reviewer": "y"}) == {"developer": "x", "tester": "y"}


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("Fix the parser of dates, please", "fix-parser-dates"),
        ("\n\n# Größere Übersicht!\nmore", "groere-ubersicht"),
        ("don't stop", "dont-stop"),
        ("x" * 60, "x" * 28),
        ("fix it", "fix-it-3"),
    ],
)
def test_names_of_sessions(task: str, name: str) -> None:
    assert session_name(task, ["fix-it", "Fix-It-2"]) == name


@pytest.mark.parametrize("task", ["修复", "all"])
def test_a_task_that_gives_no_name_gives_the_time(task: str) -> None:
    assert session_name(task, ()).isdigit()


def test_two_sessions_of_one_task(panes: PaneLab) -> None:
    swarm = Swarm.open(panes.root, environ=panes.env)
    names = [swarm.start(None, "developer", task="Tidy up", program="demo").session for _ in range(2)]

    assert names == ["tidy-up", "tidy-up-2"]
