"""Agents that run: what they are said to do, and how they are stopped, resumed and cleaned up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError
from swarm.machine import processes
from swarm.machine.run_folder import program_facts as facts
from swarm.roles.errors import RoleNotFound
from swarm.testing.panes import QUICK, PaneLab, states, topology
from swarm.testing.terminal import wait_for
from tests.support.audit import audited

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from swarm import Swarm
    from swarm.sessions.values import AgentStatus
    from swarm.testing.lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
#: Ignores every polite word, and has a child of the same kind in a session of its own.
STUBBORN = (
    "import os, signal, subprocess, sys, time;"
    "[signal.signal(s, signal.SIG_IGN) for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)];"
    "child = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);'"
    "' signal.signal(signal.SIGHUP, signal.SIG_IGN); time.sleep(600)';"
    "subprocess.Popen([sys.executable, '-I', '-S', '-c', child], start_new_session=True);"
    "print('ready', flush=True); time.sleep(600)"
)
CLAUDE = """#!/bin/sh
printf '%s\\n' "$@" >> "$HOME/claude.$SWARM_ACTOR"
printf -- '--end\\n' >> "$HOME/claude.$SWARM_ACTOR"
mkdir -p "$HOME/.claude/projects/here"
[ "$1" = --resume ] || echo '{"type":"user"}' >"$HOME/.claude/projects/here/$2.jsonl"
echo "claude is here"
sleep 600
"""


# --- status ---------------------------------------------------------------------------------------


def test_status_reads_each_fact_once(panes: PaneLab) -> None:
    panes.start(task=QUICK)
    panes.until("developer", "idle")
    panes.until("researcher", "idle")

    with audited() as seen:
        panes.swarm.status(problems=[])

    facts = [path for path in seen.files if "/.swarm/sessions/" in path and path.endswith(".json")]
    assert any(path.endswith("/run/developer/state.json") for path in facts)
    assert sorted(facts) == sorted(set(facts))
    assert sorted(seen.programs) == sorted(set(seen.programs))


def test_why_looks_at_one_agent_alone(lab: Lab) -> None:
    lab.swarm.create("one", ["developer"])
    with audited() as alone:
        lab.swarm.why("developer", "one")
    lab.swarm.create("many", ["developer", "reviewer:5"])

    with audited() as seen:
        found = lab.swarm.why("developer", "many")

    assert (found.agent.name, found.dirty, found.ahead) == ("developer", False, 0)
    assert len(seen.programs) == len(alone.programs)
    assert not [path for path in seen.files if "/run/reviewer" in path]


@pytest.mark.parametrize(
    ("orders", "state", "detail"),
    [
        ("", "idle", "ready"),
        ("demo: sleep 600", "working", "busy for 600 s"),
        ("demo: ask Which way?", "waiting", "Which way?"),
        ("demo: permission Bash", "waiting", "permission: Bash"),
        ("demo: hang", "working", "hanging"),
        ("demo: exit", "done", "ended by itself"),
        ("demo: fail 3", "failed", "exit status 3"),
        ("demo: crash", "failed", "killed by signal 9"),
    ],
)
def test_what_the_demo_agent_is_told_to_be(panes: PaneLab, orders: str, state: str, detail: str) -> None:
    panes.start("developer", task=f"{QUICK}{orders}\n")

    wait_for(lambda: panes.one("developer").status.detail == detail, f"{detail}")
    found = panes.one("developer").status

    assert found.state == state
    assert [item.source for item in found.evidence if item.decides] == [
        "exit" if state in {"done", "failed"} else "program"
    ]
    assert 0 < found.since_ms <= facts.now_ms()
    assert (panes.one("developer").pid > 0) == (state not in {"done", "failed"})


def test_an_answer_lets_it_go_on(panes: PaneLab) -> None:
    panes.start("developer", task=f"{QUICK}demo: permission Bash\n")
    panes.until("developer", "waiting")
    assert panes.swarm.status()[0].state == "waiting"

    panes.type("developer", "y")

    panes.until("developer", "idle")
    panes.see("developer", "may use Bash")


def test_its_work_is_seen(panes: PaneLab) -> None:
    panes.start("developer", task="Make it better\ndemo: delay 0\n")
    found = panes.until("developer", "idle")

    assert (found.ahead, found.dirty, found.missing) == (3, False, False)
    assert found.head == panes.git("rev-parse", "swarm/developer-fx")
    panes.write({"more.txt": "x\n"}, panes.tree("developer", "fx"))
    assert panes.one("developer").dirty


def test_the_program_is_killed(panes: PaneLab) -> None:
    panes.start("developer")
    pid = panes.until("developer", "idle").pid

    os.kill(pid, signal.SIGKILL)

    assert panes.until("developer", "failed").status.detail == "killed by signal 9"
    panes.see("developer", "SIGKILL")


def test_the_supervisor_is_killed(panes: PaneLab) -> None:
    """The program has lost its terminal, nobody writes its end down; swarm still ends what is left of it."""
    panes.start("developer", command=[sys.executable, "-I", "-S", "-c", STUBBORN])
    panes.see("developer", "ready")
    supervisor = panes.note("developer", "process.json")["supervisor_pid"]

    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: panes.tmux.rows("#{pane_dead}") == ["1"], "the dead pane")
    assert panes.one("developer").status.state == "unknown"
    assert len(panes.programs()) == 2

    began = time.monotonic()
    report = panes.swarm.stop(["fx"])
    took = time.monotonic() - began

    assert report.stopped == (("fx", "developer"),)
    assert report.survivors == ()
    panes.all_ended()
    assert took < 30
    assert panes.one("developer").status.detail == "stopped by swarm"


def test_both_are_killed(panes: PaneLab) -> None:
    panes.start("developer")
    pid = panes.until("developer", "idle").pid

    os.kill(panes.note("developer", "process.json")["supervisor_pid"], signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # the lost terminal was quicker
        os.kill(pid, signal.SIGKILL)

    found = panes.until("developer", "failed").status
    assert found.detail == "its process ended without a record"
    panes.swarm.stop(["fx"])
    assert panes.state("developer") == "failed", "a later stop is no excuse"


def test_the_server_is_killed(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")

    panes.tmux.kill()

    panes.all_until("stopped")
    found = panes.one("developer")
    assert (found.status.detail, found.pane) == ("its terminal was closed", "")
    assert any("no tmux server" in item.text for item in found.status.evidence)
    wait_for(lambda: panes.agents_processes() == {}, "the end of all agents")
    assert panes.tree("developer", "fx").is_dir()


def test_the_pane_is_closed_by_hand(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")

    panes.tmux("kill-pane", "-t", panes.one("developer").pane)

    assert panes.until("developer", "stopped").status.detail == "its terminal was closed"
    assert panes.state("researcher") == "idle"


def test_a_reboot(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")
    before = topology(panes)
    _reboot(panes)

    assert set(states(panes.swarm).values()) == {"stopped"}
    assert panes.one("developer").status.detail == "the machine was restarted"
    assert panes.tmux.pid() == 0, "looking starts nothing"

    report = panes.swarm.resume(everything=True)

    assert report.started == (("fx", "researcher"), ("fx", "developer"))
    panes.all_until("idle")
    assert topology(panes) == before


def _reboot(lab: PaneLab) -> None:
    """End everything without a word, and make what is written down be of an earlier boot."""
    everyone = [pid for pid, words in lab.processes().items() if not words.startswith("tmux")]
    for pid in everyone:
        with contextlib.suppress(ProcessLookupError):  # it went with another
            os.kill(pid, signal.SIGKILL)
    lab.tmux.kill()
    wait_for(lambda: lab.processes() == {}, "the end of everything")
    for file in (lab.root / ".swarm").rglob("process.json"):
        record = json.loads(file.read_text())
        file.write_text(json.dumps({**record, "boot_id": "an earlier one"}))
        (file.parent / "exit.json").unlink(missing_ok=True)


def test_a_worktree_without_a_program_is_listed_too(panes: PaneLab) -> None:
    panes.swarm.create("fx", "developer")

    found = panes.one("developer")

    assert (found.status.state, found.pane, found.pid) == ("stopped", "", 0)
    assert panes.swarm.stop(["fx"]).stopped == ()
    assert panes.swarm.resume(["fx"]).started == ()
    assert panes.tmux.pid() == 0


# --- peek and labels ------------------------------------------------------------------------------


def test_peek_shows_words_and_history_and_touches_nothing(panes: PaneLab) -> None:
    panes.start("developer", program="shell")
    panes.until("developer", "idle")
    panes.type("developer", "i=0; while [ $i -lt 150 ]; do echo line $i; i=$((i+1)); done")
    panes.see("developer", "line 149")
    panes.tmux("copy-mode", "-t", panes.one("developer").pane)

    shown = panes.swarm.peek("developer", lines=120)

    assert len(shown) == 120
    assert "line 60" in shown
    assert panes.tmux.rows("#{pane_in_mode}") == ["1"]
    panes.tmux("kill-server")
    with pytest.raises(SwarmError) as raised:
        panes.swarm.peek("developer")
    assert (raised.value.code, raised.value.exit_code) == ("AGENT_NOT_RUNNING", 6)


def test_labels_follow_the_state_by_themselves(panes: PaneLab) -> None:
    panes.start("researcher,developer", task=f"{QUICK}demo: only developer: permission #(touch spot)\n")

    def border(agent: str) -> str:
        return panes.tmux("display-message", "-p", "-t", panes.one(agent).pane, "#{E:pane-border-format}")

    wait_for(lambda: "researcher · idle" in border("researcher"), "the label of the researcher")
    wait_for(lambda: "developer · waiting: permission:" in border("developer"), "the label of the developer")
    wait_for(
        lambda: (
            "waiting for you: developer" in panes.tmux("display-message", "-p", "-t", "=swarm:", "#{E:status-right}")
        ),
        "the status line",
    )
    panes.type("developer", "y")
    wait_for(lambda: "developer · idle" in border("developer"), "the changed label")
    panes.type("researcher", "exit")
    wait_for(lambda: "researcher · done" in border("researcher"), "the last label")
    assert not list(panes.root.rglob("spot"))


# --- stop -----------------------------------------------------------------------------------------


def test_stop_ends_the_whole_tree_and_keeps_everything_else(panes: PaneLab) -> None:
    panes.start("developer", command=[sys.executable, "-I", "-S", "-c", STUBBORN])
    panes.see("developer", "ready")
    wait_for(lambda: len(panes.programs()) == 2, "the program and its child")
    panes.write({"work.txt": "uncommitted\n"}, panes.tree("developer", "fx"))

    report = panes.swarm.stop([], agent="developer")

    assert (report.stopped, report.survivors) == ((("fx", "developer"),), ())
    panes.all_ended()
    assert panes.state("developer") == "stopped"
    assert (panes.tree("developer", "fx") / "work.txt").exists()
    wait_for(lambda: panes.tmux.rows("#{pane_dead}") == ["1"], "the dead pane")
    assert "ready" in "\n".join(panes.swarm.peek("developer"))
    assert panes.swarm.stop(["fx"]).stopped == ()


def test_sixteen_stubborn_agents_end_at_once(panes: PaneLab) -> None:
    panes.start("developer:16", command=[sys.executable, "-I", "-S", "-c", STUBBORN])
    wait_for(lambda: len(panes.programs()) == 32, "all of them", 90)

    began = time.monotonic()
    report = panes.swarm.stop(everything=True)
    took = time.monotonic() - began

    assert (len(report.stopped), report.survivors) == (16, ())
    panes.all_ended()
    assert took < 24, f"{took:.1f} s with a grace of 2 s, which would be 32 s one after the other"


def test_stop_right_after_start(panes: PaneLab) -> None:
    """The launchers may still be at their gates: what starts afterwards would run on."""
    for _ in range(2):
        swarm = panes.start("developer:4", command=["sleep", "600"])

        assert swarm.stop(["fx"]).survivors == ()

        panes.all_ended()
        assert set(states(panes.swarm).values()) == {"stopped"}
        swarm.cleanup(["fx"])


def test_stop_one_of_two(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")

    panes.swarm.stop(["fx"], agent="developer")

    assert states(panes.swarm) == {"researcher": "idle", "developer": "stopped"}
    listed = panes.git("worktree", "list", "--porcelain")
    assert listed.count("locked swarm: agent researcher") == listed.count("locked") == 1


# --- resume and restart ---------------------------------------------------------------------------


def test_restart_uses_the_same_pane(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")
    before = panes.one("developer")
    for _ in range(3):
        report = panes.swarm.restart("developer")

        assert report.started == (("fx", "developer"),)
        after = panes.until("developer", "idle")
        assert after.pane == before.pane
        assert after.pid != before.pid
        assert len(panes.panes()) == 2
    assert panes.one("researcher").status.state == "idle"
    assert "locked swarm: agent developer" in panes.git("worktree", "list", "--porcelain")


def test_what_cannot_be_started_again_is_not_stopped(panes: PaneLab) -> None:
    panes.write({"roles/tester.yaml": "name: tester\ninstructions: Test.\n"})
    panes.start("tester")
    panes.all_until("idle")
    pid = panes.one("tester").pid
    (panes.root / "roles/tester.yaml").unlink()

    with pytest.raises(RoleNotFound):
        panes.swarm.restart("tester")

    assert panes.one("tester").pid == pid


def _waiting(panes: PaneLab, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> Swarm:
    """Return a library for which something else is done just before it gets the lock."""
    waiting = panes.open()
    true_changing = waiting._changing

    def late(command: str) -> AbstractContextManager[None]:
        meanwhile()
        return true_changing(command)

    monkeypatch.setattr(waiting, "_changing", late)
    return waiting


def test_a_resume_that_waited_brings_no_old_record_back(panes: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    panes.start("developer,reviewer")
    panes.all_until("idle")
    panes.swarm.stop(["fx"])

    def meanwhile() -> None:
        panes.swarm.worktrees.remove("reviewer", "fx")
        panes.swarm.create("fx", "researcher")

    report = _waiting(panes, monkeypatch, meanwhile).resume(["fx"])

    assert report.started == (("fx", "developer"),)
    assert [agent.name for agent in panes.swarm.sessions.get("fx").agents] == ["developer", "researcher"]


def test_a_stop_that_waited_ends_what_was_started_meanwhile(panes: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    panes.start("developer")
    panes.all_until("idle")

    def meanwhile() -> None:
        panes.start("reviewer", session="later")
        panes.until("reviewer", "idle", session="later")

    report = _waiting(panes, monkeypatch, meanwhile).stop(everything=True)

    assert set(report.stopped) == {("fx", "developer"), ("later", "reviewer")}


def test_resume_brings_back_only_what_does_not_run(panes: PaneLab) -> None:
    panes.start("developer:3", task=f"{QUICK}demo: only developer-2: fail 1\n")
    panes.until("developer-2", "failed")
    panes.until("developer-1", "idle")
    pid = panes.one("developer-1").pid

    report = panes.swarm.resume(["fx"])

    assert report.started == (("fx", "developer-2"),)
    assert set(report.running) == {("fx", "developer-1"), ("fx", "developer-3")}
    assert panes.one("developer-1").pid == pid
    assert len(panes.panes()) == 3


def test_resume_after_the_server_is_gone(panes: PaneLab) -> None:
    panes.start("developer:3", "one")
    panes.start("researcher,reviewer", "two")
    panes.start("developer:18", "many", command=["sleep", "600"])
    panes.all_until("idle", "unknown")
    before = topology(panes)
    panes.tmux.kill()
    panes.all_until("stopped")

    report = panes.swarm.resume(everything=True)

    assert len(report.started) == 23
    assert report.skipped == ()
    panes.all_until("idle", "unknown")
    after = topology(panes)
    # Sessions come back by name; windows have the same panes, sizes and names.
    assert sorted(row.partition(" ")[2] for row in after) == sorted(row.partition(" ")[2] for row in before)
    assert panes.swarm.resume(everything=True).started == ()


def test_resume_right_after_the_server_is_gone_awaits_what_is_still_ending(panes: PaneLab) -> None:
    panes.start("developer", command=["/bin/sh", "-c", "trap '' TERM HUP; echo deaf; while :; do sleep 1; done"])
    panes.see("developer", "deaf")
    pid = panes.one("developer").pid
    panes.tmux.kill()

    report = panes.swarm.resume(everything=True)

    assert (report.started, report.running) == ((("fx", "developer"),), ())
    panes.see("developer", "deaf")
    assert panes.one("developer").pid != pid


def test_resume_when_a_worktree_is_gone(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")
    panes.swarm.stop(["fx"])
    wait_for(lambda: panes.tmux.rows("#{pane_dead}") == ["1", "1"], "two dead panes")
    panes.tree("developer", "fx").rename(panes.root.parent / "elsewhere")
    before = panes.tmux.rows("#{pane_id} #{pane_dead}")

    with pytest.raises(SwarmError) as raised:
        panes.swarm.resume(["fx"])

    assert (raised.value.code, raised.value.exit_code) == ("WORKTREE_NOT_FOUND", 6)
    assert "developer" in str(raised.value)
    assert "swarm worktree remove developer@fx" in raised.value.hint
    assert panes.tmux.rows("#{pane_id} #{pane_dead}") == before
    panes.swarm.resume(["fx"], agent="researcher")
    panes.until("researcher", "idle")


def test_a_resume_that_fails_changes_nothing(panes: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    panes.start("developer,reviewer", task=f"{QUICK}demo: only developer: fail 7\n")
    panes.until("developer", "failed")
    panes.until("reviewer", "idle")
    panes.swarm.stop(["fx"], agent="reviewer")
    before = {name: panes.one(name).status for name in ("developer", "reviewer")}
    record = (panes.root / ".swarm/sessions/fx/session.json").read_bytes()
    swarm = panes.swarm
    monkeypatch.setattr("swarm.worktrees.steps.file_steps.WriteRecord.do", _full_disk)

    with pytest.raises(SwarmError):
        swarm.resume(["fx"])

    monkeypatch.undo()
    wait_for(lambda: panes.agents_processes() == {}, "the end of the launchers")
    after = {name: panes.one(name).status for name in ("developer", "reviewer")}
    assert {name: (s.state, s.detail, s.since_ms) for name, s in after.items()} == {
        name: (s.state, s.detail, s.since_ms) for name, s in before.items()
    }
    assert (panes.root / ".swarm/sessions/fx/session.json").read_bytes() == record
    assert panes.swarm.operations.unfinished() == ()
    assert "locked" not in panes.git("worktree", "list", "--porcelain")
    assert len(panes.swarm.resume(["fx"]).started) == 2


def _full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def _claude_calls(lab: PaneLab, agent: str) -> list[list[str]]:
    file = Path(lab.env["HOME"], f"claude.{agent}")
    text = file.read_text() if file.exists() else ""
    return [call.splitlines() for call in text.split("--end\n")[:-1]]


@pytest.mark.parametrize("how", ["on PATH", "CLAUDE_BIN"])
def test_claude_takes_its_own_conversation_up_again(panes: PaneLab, how: str) -> None:
    if how == "on PATH":
        panes.program("claude", CLAUDE)
    else:
        panes.env["CLAUDE_BIN"] = str(panes.program("my-claude", CLAUDE))
    panes.swarm.start("fx", "researcher,developer", task="-x; the goal")
    for agent in ("researcher", "developer"):
        panes.see(agent, "claude is here")  # and has left something to take up again
    ids = {agent.name: agent.conversation for agent in panes.swarm.sessions.get("fx").agents}

    panes.swarm.stop(["fx"])
    panes.swarm.resume(["fx"])

    wait_for(lambda: len(_claude_calls(panes, "developer")) == 2, "the second call")
    first, second = _claude_calls(panes, "developer")
    role = ["--append-system-prompt-file", str(panes.run("developer") / "system.md")]
    assert first[:4] == ["--session-id", ids["developer"], "--permission-mode", "default"]
    assert first[-4:] == [*role, "--", "-x; the goal"]
    assert second[:4] == ["--resume", ids["developer"], "--permission-mode", "default"]
    assert second[-2:] == role
    assert ids["developer"] != ids["researcher"]
    assert panes.state("developer") == "starting", "silence is not idleness"


def test_resume_when_the_program_is_gone(panes: PaneLab) -> None:
    path = panes.program("helper", "#!/bin/sh\nsleep 600\n")
    panes.start("developer", command="helper")
    panes.until("developer", "unknown")
    panes.swarm.stop(["fx"])
    path.unlink()

    with pytest.raises(SwarmError) as raised:
        panes.swarm.resume(["fx"])

    assert raised.value.code == "AGENT_MISSING"
    assert panes.state("developer") == "stopped"


# --- cleanup --------------------------------------------------------------------------------------


def test_cleanup_of_living_agents_is_refused(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")
    pids = {name: panes.one(name).pid for name in ("researcher", "developer")}

    with pytest.raises(SwarmError) as raised:
        panes.swarm.cleanup(["fx"])

    assert (raised.value.code, raised.value.exit_code) == ("WORK_AT_RISK", 4)
    assert {name: panes.one(name).pid for name in pids} == pids


def test_forced_it_ends_them_and_closes_only_their_panes(panes: PaneLab) -> None:
    panes.start("developer:2", "one")
    panes.start("developer", "two", command=[sys.executable, "-I", "-S", "-c", STUBBORN])
    mine = panes.tmux("split-window", "-t", "=swarm:two", "-P", "-F", "#{pane_id}", "sleep", "600")
    panes.tmux("new-session", "-d", "-s", "mine", "sleep", "600")
    panes.see("developer", "ready", "two")

    report = panes.swarm.cleanup(["two"], force=True)

    assert report.worktrees_removed == 1
    assert panes.panes() == ["one developer-1", "one developer-2"]
    assert mine in panes.tmux.rows("#{pane_id}")
    assert not (panes.root / ".swarm/sessions/two").exists()
    assert not [words for words in panes.programs().values() if "SIG_IGN" in words]
    panes.swarm.cleanup(everything=True, force=True)
    assert panes.panes() == []
    assert len(panes.tmux.rows("#{pane_id}")) == 2
    assert not list((panes.root / ".swarm/sessions").glob("*"))


def test_an_agent_that_ended_by_itself_is_simply_cleaned_up(panes: PaneLab) -> None:
    panes.start("developer:2", task="Do it\ndemo: delay 0\ndemo: exit\n")
    wait_for(lambda: all(one.status.state == "done" and not one.status.runs for one in _all(panes)), "both done")

    report = panes.swarm.cleanup(["fx"])

    assert (report.worktrees_removed, report.branches_removed) == (2, 2)
    assert panes.panes() == []
    assert panes.git("worktree", "list", "--porcelain").count("worktree ") == 1
    panes.swarm.restore("fx")
    assert panes.git("log", "--format=%s", "swarm/developer-1-fx").count("developer-1: ") == 3


def test_one_that_says_it_is_done_still_runs(panes: PaneLab) -> None:
    """Its own words do not make a second one start beside it, or let it be forgotten."""
    code = (
        "import json, os, time\n"
        "now = time.time_ns() // 10**6\n"
        "record = {'schema': 1, 'state': 'done', 'detail': 'all', 'at_ms': now, 'pid': os.getpid()}\n"
        "open(os.environ['SWARM_RUN_DIR'] + '/state.json', 'w').write(json.dumps(record))\n"
        "time.sleep(600)\n"
    )
    panes.start("developer", command=[sys.executable, "-I", "-S", "-c", code])
    pid = panes.until("developer", "done").pid

    assert panes.swarm.resume(["fx"]).started == ()
    assert panes.one("developer").pid == pid
    assert panes.swarm.stop(["fx"]).stopped == (("fx", "developer"),)
    panes.all_ended()


def _all(lab: PaneLab) -> list[AgentStatus]:
    return [one for found in lab.swarm.status(look=False) for one in found.agents]


def test_what_an_agent_writes_while_it_is_ended_is_saved(panes: PaneLab) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        "    open('late.txt', 'w').write('written at the very end')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    panes.start("developer", command=[sys.executable, "-I", "-S", "-c", code])
    panes.see("developer", "ready")

    panes.swarm.cleanup(["fx"], force=True)
    panes.swarm.restore("fx")

    assert (panes.tree("developer", "fx") / "late.txt").read_text() == "written at the very end"
    assert panes.state("developer") == "stopped"
    assert panes.swarm.resume(["fx"]).started == (("fx", "developer"),)
    panes.see("developer", "ready")


def test_one_agent_is_removed_the_others_go_on(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")

    panes.swarm.worktrees.remove("developer", "fx", force=True)

    assert panes.panes() == ["fx researcher"]
    assert panes.state("researcher") == "idle"
    panes.type("researcher", "work more")
    wait_for(lambda: panes.one("researcher").ahead == 1, "its next commit")


def test_stopped_agents_do_not_hold_up_a_cleanup_with_the_server_gone(panes: PaneLab) -> None:
    panes.start()
    panes.all_until("idle")
    panes.tmux.kill()
    panes.all_until("stopped")

    assert panes.swarm.cleanup(["fx"]).worktrees_removed == 2
    assert panes.tmux.pid() == 0


def test_the_history_tells_it_all(panes: PaneLab) -> None:
    panes.start("developer")
    panes.until("developer", "idle")
    panes.swarm.stop(["fx"])
    panes.swarm.resume(["fx"])
    panes.until("developer", "idle")
    panes.swarm.cleanup(["fx"], force=True)

    told: list[Mapping[str, object]] = list(panes.swarm.operations())

    assert [(one["verb"], one["session"], one["outcome"]) for one in told] == [
        *(("start", "fx", "done"), ("stop", "fx", "done"), ("resume", "fx", "done")),
        *(("stop", "fx", "done"), ("cleanup", "fx", "done")),
    ]


def test_nothing_is_left_of_a_process_that_became_somebody_elses(panes: PaneLab) -> None:
    """A pid that the machine has given away again is not ended."""
    panes.start("developer")
    panes.until("developer", "idle")
    panes.swarm.stop(["fx"])
    file = panes.run("developer") / "process.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "pid": os.getpid(), "supervisor_pid": os.getpid()}))
    (panes.run("developer") / "exit.json").unlink()

    assert panes.swarm.stop(["fx"]).survivors == ()
    assert processes.start_of(os.getpid()) is not None
    assert panes.state("developer") in {"failed", "stopped"}
