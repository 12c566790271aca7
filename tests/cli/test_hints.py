"""What a message proposes helps as it stands, and a small slip is answered with what was meant."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.testing.panes import QUICK
from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration


def test_an_argument_left_out_is_not_called_none(cli: Cli, tmp_path_factory: pytest.TempPathFactory) -> None:
    said = cli("restore", cwd=tmp_path_factory.mktemp("outside"))

    assert (said.code, said.err.startswith("error: cannot restore: not a git repository")) == (5, True), said.err


AGENT = ("developer", "developer@feature-x", "feature-x/developer")
#: The verbs about one agent, then those about sessions, which take one agent as well.
OF_AGENTS = "why", "diff", "path", "inbox", "outbox", "worktree show", "worktree lock", "worktree unlock"
OF_SESSIONS = "status", "usage", "conflicts", "worktree list", "merge --dry-run", "stop", "resume"


@pytest.mark.parametrize("name", AGENT)
def test_every_verb_takes_an_agent_in_each_spelling(team: Cli, name: str) -> None:
    for verb in (*OF_AGENTS, *OF_SESSIONS):
        said = team.ok(*verb.split(), name)
        assert "researcher" not in said.out, verb
    assert "researcher" not in team.ok("send", name, "hi").out
    assert "1 worktree" in team.ok("cleanup", name).out
    assert "developer" in team.ok("salvage", "list", name).out
    assert "developer" in team.ok("restore", name, "--dry-run").out
    assert [one["agent"] for one in team.ok("worktree", "list", "--json").data()["worktrees"]] == ["researcher"]


def test_every_verb_takes_a_session_with_one_agent(cli: Cli) -> None:
    cli.ok("worktree", "create", "alone", "--roles", "developer")
    for verb in (*OF_AGENTS, *OF_SESSIONS):
        cli.ok(*verb.split(), "alone")
    assert "to developer@alone" in cli.ok("send", "alone", "hi").out


def test_a_session_comes_before_an_agent_of_its_name_where_sessions_are_meant(team: Cli) -> None:
    team.ok("worktree", "create", "developer", "--roles", "reviewer")

    assert "reviewer" in team.ok("status", "developer").out
    assert "reviewer" not in team.ok("why", "developer@feature-x").out
    assert "developer@feature-x" in team.ok("why", "developer").out
    assert "1 worktree" in team.ok("cleanup", "developer").out
    assert team.ok("status", "feature-x").out.count("swarm/developer") == 1


def test_several_sessions_and_agents_are_cleaned_up_at_once(team: Cli) -> None:
    team.ok("worktree", "create", "other", "--roles", "reviewer,developer")

    assert "2 worktrees" in team.ok("cleanup", "feature-x/developer", "other/reviewer").out
    left = team.ok("worktree", "list", "--json").data()["worktrees"]
    assert [(one["agent"], one["session"]) for one in left] == [("researcher", "feature-x"), ("developer", "other")]


def test_an_agent_of_several_sessions_is_not_guessed(team: Cli) -> None:
    team.ok("worktree", "create", "other", "--roles", "developer")

    for verb in ("why", "status", "cleanup", "merge", "stop"):
        said = team(verb, "developer")
        assert (said.code, "developer could be developer@feature-x, developer@other" in said.err) == (2, True), verb


@pytest.mark.parametrize("args", [("why",), ("diff",), ("peek",), ("worktree", "show")])
def test_a_session_of_several_where_one_agent_is_wanted(team: Cli, args: tuple[str, ...]) -> None:
    said = team(*args, "feature-x")

    assert said.code == 6
    assert "feature-x is a session; in it are: researcher@feature-x, developer@feature-x" in said.err


def test_a_session_is_written_to_as_all_of_it(team: Cli) -> None:
    for name in ("feature-x", "all@feature-x"):
        said = team.ok("send", name, "hi").out
        assert ("to researcher@feature-x" in said, "to developer@feature-x" in said) == (True, True)


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("why developr", "developer"),
        ("why developr@feature-x", "developer"),
        ("send developr hi", "developer"),
        ("status feature", "feature-x"),
        ("why developer@featur-x", "feature-x"),
        ("send developer@featur-x hi", "feature-x"),
        ("cleanup featurex", "feature-x"),
        ("role show reviewr", "reviewer"),
        ("workflow show reserch", "research"),
        ("start y --roles developer --agent claud", "claude"),
        ("worktree creat", "create"),
    ],
)
def test_a_slip_is_answered_with_the_name_that_was_meant(team: Cli, command: str, meant: str) -> None:
    said = team(*command.split())

    assert said.code in (2, 6)
    assert f"did you mean {meant}?" in said.err or f"Did you mean '{meant}'" in said.err


def test_names_in_a_hint_come_once(team: Cli) -> None:
    team.ok("worktree", "create", "other", "--roles", "developer")

    assert "there are: researcher, developer\n" in team("send", "nobody", "hi").err


def test_who_is_to_be_stopped_is_named_so_that_it_works(panes: PaneLab) -> None:
    for session in ("one", "two"):
        panes.start("developer", session)
    refused = panes.cli("cleanup", "--all").stderr
    line = refused.replace("\n      ", " ").partition("stop them with `")[2].partition("`")[0]

    assert line == "swarm stop one && swarm stop two"
    for part in line.split(" && "):
        assert panes.cli(*part.split()[1:]).returncode == 0
    assert panes.cli("cleanup", "--all").returncode == 0


def test_a_running_agent_is_called_that_and_what_swarm_runs_beside_it_is_not_work(panes: PaneLab) -> None:
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer,reviewer", program="shell", task="")
    panes.until("developer", "idle")
    said = panes.cli("worktree", "remove", "developer").stderr

    assert "the agent is running: fx/developer" in said
    assert "stop it with `swarm stop developer@fx`" in said
    assert "pid" not in said
    panes.write({"notes.txt": "mine"}, cwd=panes.tree("developer", "fx"))
    said = panes.cli("cleanup", "fx").stderr
    assert "there is work at risk in fx/developer, fx/reviewer" in said
    assert "stop what runs with `swarm stop fx`, then commit" in " ".join(said.split())
    assert "pid" not in said


def test_the_lock_of_a_running_agent_is_taken_away_by_nobody(panes: PaneLab) -> None:
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer", program="shell", task="")
    panes.until("developer", "idle")
    tree = panes.tree("developer", "fx")
    reason = "locked swarm: agent developer of fx runs here"

    done = panes.cli("worktree", "unlock", "developer")
    assert done.returncode == 4
    assert "swarm stop developer@fx" in done.stderr
    assert panes.cli("worktree", "lock", "developer", "--reason", "mine").returncode == 0
    assert panes.cli("worktree", "unlock", "developer").returncode == 0
    assert reason in panes.git("worktree", "list", "--porcelain").splitlines()
    panes.git("worktree", "remove", "--force", str(tree), check=False)
    assert tree.is_dir()
    panes.swarm.stop(["fx"])
    assert reason not in panes.git("worktree", "list", "--porcelain")


def test_one_waits_for_everybody_at_once(panes: PaneLab) -> None:
    panes.start(task=QUICK)
    done = panes.cli("wait", "all@fx", "--timeout", "60")

    assert sorted(done.stdout.splitlines()) == ["developer@fx: idle (ready)", "researcher@fx: idle (ready)"], done


def test_an_empty_command_is_not_the_default_program(panes: PaneLab) -> None:
    done = panes.cli("start", "fx", "--roles", "developer", "--agent-cmd", "")

    assert (done.returncode, "the agent command is empty" in done.stderr) == (2, True), done.stderr


def test_a_time_to_wait_may_be_seconds_everywhere(cli: Cli) -> None:
    cli.ok("queue", "add", "work", "one")

    cli.ok("queue", "take", "work", "--wait", "5")
    cli.ok("inbox", "take", "--wait", "0")


def test_in_a_narrow_terminal_what_matters_stays(team: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("researcher", "developer"):
        team.lab.write({"README": name, "a/rather/long/path/to/some/file.py": name}, team.lab.tree(name))
    monkeypatch.setenv("COLUMNS", "80")

    forecast, log = team.ok("conflicts").out, team.ok("log").out

    assert "README (content)" in forecast.split("files that several")[0]
    assert "SESSION" in log.splitlines()[0]
    assert max(map(len, (*forecast.splitlines(), *log.splitlines()))) <= 80


def test_a_section_of_the_settings_is_shown_whole(cli: Cli) -> None:
    shown = [line.split()[0] for line in cli.ok("config", "show", "git").out.splitlines()]

    assert shown == ["KEY", "git.timeout", "git.retries", "git.jobs"]
    assert [one["key"] for one in cli.ok("config", "show", "git", "--json").data()["settings"]] == shown[1:]
    assert cli("config", "show", "gi").code == 2


def test_a_permission_request_outside_of_a_pane_leaves_nothing_behind(cli: Cli) -> None:
    before = sorted(one.name for one in cli.lab.root.iterdir())
    said = cli.program("permission-request")

    assert (said.code, said.out) == (0, "")
    assert "permission-request: " in said.err
    assert "standard input holds no request as JSON" in said.err
    assert sorted(one.name for one in cli.lab.root.iterdir()) == before


@pytest.mark.parametrize("args", ["status", "send developer@fx hi", "version"])
@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
def test_a_closed_output_is_nothing_wrong(panes: PaneLab, args: str, closed: str) -> None:
    panes.start("developer")
    command = f'"{sys.executable}" -m swarm {args} {closed}'
    env = {**panes.env, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(["sh", "-c", command], cwd=panes.root, env=env, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
