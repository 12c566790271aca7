"""The commands that start, show and stop agents, as typed."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from swarm.callers.caller import user_name
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]
SESSION = {
    *("session", "base", "base_ref", "created_at", "state", "workflow", "parent", "agents", "pod", "template", "kind"),
    "swarm_dir",
}
AGENT = {
    *("name", "role", "session", "branch", "worktree", "program", "pane", "pid", "state", "detail", "since"),
    *("evidence", "head", "ahead", "dirty", "missing", "unread", "blocked", "socket", "stale", "ports"),
    *("box", "held", "limits", "outside"),
}


@pytest.fixture
def team(panes: PaneLab) -> PaneLab:
    """A researcher who is idle and a developer who waits for a permission."""
    panes.start(task=f"{QUICK}demo: only developer: permission Bash\n")
    panes.until("developer", "waiting")
    panes.until("researcher", "idle")
    return panes


# --- start ----------------------------------------------------------------------------------------


def test_start_says_what_was_made_and_what_to_type_next(panes: PaneLab) -> None:
    done = panes.cli("start", "feature-x", "--roles", "researcher,developer", "--agent", "demo", "--detach")

    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("started session feature-x with 2 agents from main (")
    assert done.stderr.splitlines() == [
        f"next: tmux -S {panes.tmux.socket} attach -t swarm",
        "look: swarm status feature-x",
    ]


def test_start_with_attach_refuses_before_anything_is_made_where_there_is_no_terminal(panes: PaneLab) -> None:
    before = panes.fingerprint()

    done = panes.cli("start", "fx", "--roles", "developer", "--agent", "demo", "--attach")

    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: cannot attach: this is not a terminal")
    assert (panes.fingerprint(), panes.swarm.sessions(), panes.panes()) == (before, (), [])
    assert not (panes.root / ".worktrees").exists()


def test_attach_without_a_terminal_leaves_the_panes_as_they_were_shown(panes: PaneLab) -> None:
    panes.start("developer,researcher")
    before = panes.tmux.rows("#{pane_id} #{pane_active}")

    done = [panes.cli("attach", f"{name}@fx") for name in ("developer", "researcher")]

    assert [(one.returncode, "not a terminal" in one.stderr) for one in done] == [(2, True), (2, True)]
    assert panes.tmux.rows("#{pane_id} #{pane_active}") == before


@pytest.mark.parametrize("how", ["--task", "--task-file", "-", "file -"])
def test_the_task_from_everywhere(panes: PaneLab, tmp_path: Path, how: str) -> None:
    text = f"The goal: ü {{x}} #(y)\n{QUICK}"
    (tmp_path / "goal").write_text(text)
    args = {"--task": ("--task", text), "-": ("--task", "-"), "file -": ("--task-file", "-")}
    given = args.get(how, ("--task-file", str(tmp_path / "goal")))

    done = panes.cli(
        "start", "fx", "--roles", "developer", "--agent", "demo", *given, stdin=text if "-" in how[-1] else ""
    )

    assert done.returncode == 0, done.stderr
    assert (panes.run("developer") / "task.md").read_text() == text


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("fx",), "--roles or --workflow"),
        (("fx", "--roles", "developer", "--workflow", "full"), "--roles or --workflow"),
        (("fx", "--roles", "developer", "--agent", "demo", "--agent-cmd", "x"), "exclude each other"),
        (("fx", "--roles", "developer", "--task-file", "/not/there"), "cannot read the task"),
        (("fx", "--roles", "developer", "--agent-cmd", "'"), "cannot read the agent command"),
        (("fx", "--roles", "developer", "--agent-cmd", " "), "agent command is empty"),
        (("../x", "--roles", "developer"), "../x"),
        (("fx", "--roles", ""), "role"),
    ],
)
def test_wrong_usage_is_said_and_nothing_is_made(panes: PaneLab, args: tuple[str, ...], words: str) -> None:
    before = panes.fingerprint()

    done = panes.cli("start", *args)

    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert panes.fingerprint() == before
    assert panes.tmux.pid() == 0


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b", b"x" * ((1 << 20) + 1)])
def test_a_task_that_is_no_text(panes: PaneLab, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "goal").write_bytes(data)

    done = panes.cli("start", "fx", "--roles", "developer", "--agent", "demo", "--task-file", str(tmp_path / "goal"))

    assert done.returncode == 2
    assert "cannot read the task" in done.stderr
    assert panes.swarm.sessions() == ()


def test_start_again_is_exit_3(team: PaneLab) -> None:
    found = team.json("start", "fx", "--roles", "reviewer", "--agent", "demo")

    assert (found["exit_code"], found["errors"][0]["code"]) == (3, "SESSION_EXISTS")


def test_all_problems_at_once_as_json(panes: PaneLab) -> None:
    panes.git("branch", "swarm/developer-fx")

    found = panes.json("start", "fx", "--roles", "developer,nobody")

    assert found["status"] == "error"
    assert {one["code"] for one in found["errors"]} >= {"BRANCH_EXISTS", "ROLE_NOT_FOUND", "AGENT_MISSING"}
    hints = " ".join(one["hint"] for one in found["errors"])
    assert "installed here: shell, demo" in hints


def test_a_dry_run_prints_the_plan(panes: PaneLab) -> None:
    done = panes.cli("start", "fx", "--roles", "developer:2", "--agent", "demo", "--dry-run")

    assert done.returncode == 0
    assert "would start session fx with 2 agents" in done.stdout
    assert "open 2 panes in tmux" in done.stdout
    assert "nothing was changed" in done.stderr
    assert not (panes.root / ".swarm").exists()


def test_any_command_with_quotes(panes: PaneLab) -> None:
    done = panes.cli(
        "start",
        "fx",
        "--roles",
        "developer",
        "--agent-cmd",
        f"{shlex.quote(sys.executable)} -c 'import time; print(\"hello you\"); time.sleep(600)'",
    )

    assert done.returncode == 0, done.stderr
    panes.see("developer", "hello you")


# --- list and status ------------------------------------------------------------------------------


def test_the_shape_of_list(team: PaneLab) -> None:
    found = team.json("list")

    assert (found["schema"], found["command"], found["status"]) == (1, "list", "ok")
    assert set(found["data"]) == {"sessions", "elsewhere", "grants", "bridges"}
    session = found["data"]["sessions"][0]
    assert set(session) == SESSION
    assert (session["session"], session["state"]) == ("fx", "waiting")
    assert session["base"] == team.git("rev-parse", "HEAD")
    datetime.fromisoformat(session["created_at"])
    agents = {one["name"]: one for one in session["agents"]}
    assert set(agents) == {"researcher", "developer"}
    one = agents["developer"]
    assert set(one) == AGENT
    assert (one["role"], one["session"], one["branch"]) == ("developer", "fx", "swarm/developer-fx")
    assert one["worktree"] == str(team.tree("developer", "fx"))
    assert (one["program"], one["state"], one["detail"]) == ("demo", "waiting", "permission: Bash")
    assert one["pane"].startswith("%")
    assert one["pid"] == team.note("developer", "process.json")["pid"]
    datetime.fromisoformat(one["since"])
    assert (one["head"], one["ahead"], one["dirty"], one["unread"]) == (session["base"], 0, False, 0)
    assert {e["source"] for e in one["evidence"]} == {"process", "program", "terminal", "pane", "socket"}
    assert [e["source"] for e in one["evidence"] if e["decides"]] == ["program"]
    assert all(set(e) == {"source", "text", "at", "decides"} for e in one["evidence"])


def test_list_has_a_line_for_each_session(team: PaneLab) -> None:
    title, line, bridges = team.cli("list").stdout.splitlines()

    assert title.split() == ["SESSION", "STATE", "AGENTS", "BASE", "AGE"]
    assert line.split()[:2] == ["fx", "waiting"]
    assert "1 waiting" in line
    assert bridges == "bridges: none"


def test_nothing_is_an_empty_list(panes: PaneLab) -> None:
    assert panes.json("list")["data"] == {"sessions": [], "elsewhere": [], "grants": [], "bridges": []}
    assert "swarm start SESSION" in panes.cli("status").stderr


def test_status_names_who_waits(team: PaneLab) -> None:
    done = team.cli("status")

    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["AGENT", "researcher", "developer"]
    assert done.stderr == "waits for you: swarm attach developer@fx\n"
    assert team.json("status", "nope")["exit_code"] == 6


def test_watch_is_a_stream_for_machines_and_needs_a_terminal_else(team: PaneLab) -> None:
    assert team.cli("status", "--watch").returncode == 2
    argv = [sys.executable, "-P", "-m", "swarm", "status", "--watch", "--json"]
    with subprocess.Popen(argv, cwd=team.root, env=team.env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = json.loads(process.stdout.readline())
        team.swarm.stop(["fx"])
        lines = iter(process.stdout.readline, "")
        last = next(found for found in map(json.loads, lines) if found["data"]["sessions"][0]["state"] == "stopped")
        process.terminate()
        process.stdout.read()
        assert process.wait() == 143
    assert first["data"]["sessions"][0]["state"] == "waiting"
    assert {one["state"] for one in last["data"]["sessions"][0]["agents"]} == {"stopped"}


def test_why_and_peek(team: PaneLab) -> None:
    team.see("developer", "y/n>")
    done = team.cli("why", "developer")

    assert "developer@fx" in done.stdout
    assert " * program: the program said: waiting: permission: Bash" in done.stdout
    found = team.json("why", "developer")["data"]
    assert set(found) == AGENT | {"setup", "parent", "hook_trouble"}
    assert found["session"] == "fx"
    assert "permission: Bash" in team.cli("peek", "developer", "-n", "5").stdout
    assert team.json("peek", "developer@fx")["data"]["agent"] == "developer"
    assert team.cli("peek", "developer", "-n", "0").returncode == 2
    assert team.cli("why", "nobody").returncode == 6
    assert team.cli("why", "developer@").returncode == 2


def test_an_agent_of_two_sessions_must_be_named_whole(team: PaneLab) -> None:
    team.start("developer", "gx")

    done = team.cli("why", "developer")

    assert done.returncode == 2
    assert "developer@gx" in done.stderr + done.stdout
    team.env["SWARM_SESSION"] = "gx"
    found = team.json("why", "developer")["data"]
    assert (found["session"], found["worktree"].rpartition("/")[2]) == ("gx", "developer-gx")
    del team.env["SWARM_SESSION"]
    assert "SESSION" in team.cli("status").stdout


# --- stop, resume, restart ------------------------------------------------------------------------


def test_stop_and_resume(team: PaneLab) -> None:
    stopped = team.json("stop", "fx")
    assert stopped["data"] == {
        "stopped": [{"session": "fx", "agent": "researcher"}, {"session": "fx", "agent": "developer"}],
        "survivors": [],
    }
    assert team.cli("stop", "--all").stderr == "nothing to stop: no agent runs\n"

    resumed = team.cli("resume", "developer@fx")

    assert resumed.stdout == "started developer@fx\n"
    assert f"tmux -S {team.tmux.socket} attach" in resumed.stderr
    team.until("developer", "waiting", "idle")
    assert team.json("resume", "--all")["data"]["started"] == [{"session": "fx", "agent": "researcher"}]
    assert "nothing to resume" in team.cli("resume", "fx").stderr


def test_restart(team: PaneLab) -> None:
    pid = team.one("developer").pid

    done = team.cli("restart", "developer@fx")

    assert (done.returncode, done.stdout) == (0, "started developer@fx\n")
    assert team.until("developer", "waiting").pid != pid


@pytest.mark.parametrize("verb", ["stop", "resume"])
@pytest.mark.parametrize(
    ("args", "code"),
    [((), 2), (("fx", "--all"), 2), (("nope",), 6), (("nobody@fx",), 6), (("developer@nope",), 6), (("a@",), 2)],
)
def test_what_to_stop_or_resume_must_be_said(team: PaneLab, verb: str, args: tuple[str, ...], code: int) -> None:
    assert team.cli(verb, *args).returncode == code
    assert team.one("researcher").status.runs


def test_resume_all_goes_on_past_one_that_cannot(panes: PaneLab) -> None:
    panes.start("developer", "one")
    panes.start("developer", "two")
    panes.all_until("idle")
    panes.swarm.stop(everything=True)
    panes.tree("developer", "one").rename(panes.root.parent / "elsewhere")

    found = panes.json("resume", "--all")

    assert (found["exit_code"], found["status"]) == (1, "partial")
    assert found["data"]["started"] == [{"session": "two", "agent": "developer"}]
    assert found["data"]["skipped"][0]["name"] == "one"


# --- cleanup, doctor, log -------------------------------------------------------------------------


def test_cleanup_of_what_runs_is_exit_4(team: PaneLab) -> None:
    assert team.json("cleanup", "fx")["exit_code"] == 4

    done = team.cli("cleanup", "--all", "--force")

    assert done.returncode == 0
    assert "removed 2 worktrees and 2 branches" in done.stdout
    assert team.panes() == []
    wait_for(lambda: team.agents_processes() == {}, "nothing that runs")


def test_doctor_as_json(team: PaneLab) -> None:
    found = team.json("doctor")["data"]["checks"]

    assert all(set(one) == {"name", "state", "text", "hint"} for one in found)
    assert {one["name"] for one in found} >= {"git", "tmux", "agent programs", "state", "operations", "panes"}
    assert "tmux 3" in next(one["text"] for one in found if one["name"] == "tmux")


def test_the_log_knows_who_asked(team: PaneLab) -> None:
    team.cli("stop", "fx")

    found: list[dict[str, Any]] = team.json("log", "fx")["data"]["operations"]

    assert {one["verb"] for one in found} == {"start", "stop"}
    assert next(one for one in found if one["verb"] == "stop")["actor"] == user_name()
