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


@pytest.mark.parametrize("args", [("status",), ("stop",), ("resume",), ("merge",), ("conflicts",), ("cleanup",)])
def test_an_agent_where_a_session_is_wanted(team: Cli, args: tuple[str, ...]) -> None:
    said = team(*args, "developer")

    assert (said.code, "there is no session developer" in said.err) == (6, True)
    assert "developer is no session but an agent: developer@feature-x" in said.err


@pytest.mark.parametrize("args", [("status",), ("conflicts",), ("cleanup",)])
def test_an_address_where_a_session_is_wanted(team: Cli, args: tuple[str, ...]) -> None:
    said = team(*args, "developer@feature-x")

    assert (said.code, "name the session alone: feature-x" in said.err) == (2, True), said.err


@pytest.mark.parametrize("name", ["developer@feature-x", "feature-x/developer"])
def test_an_agent_is_named_in_either_way(team: Cli, name: str) -> None:
    for args in (("merge", name, "--dry-run"), ("stop", name), ("why", name), ("worktree", "show", name)):
        team.ok(*args)
    team.ok("worktree", "remove", name)
    team.ok("restore", name, "--dry-run")


@pytest.mark.parametrize("args", [("why",), ("diff",), ("peek",), ("worktree", "show")])
def test_a_session_where_an_agent_is_wanted(team: Cli, args: tuple[str, ...]) -> None:
    said = team(*args, "feature-x")

    assert said.code == 6
    assert "feature-x is a session; in it are: researcher@feature-x, developer@feature-x" in said.err


def test_a_session_is_written_to_as_all_of_it(team: Cli) -> None:
    assert "feature-x is a session; for all its agents write all@feature-x" in team("send", "feature-x", "hi").err
    team.ok("send", "all@feature-x", "hi")


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
