"""The user is called when an agent needs them: once for each time, by bell, line and command."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
NOTE = (
    "import json, os, sys; told = {k: v for k, v in os.environ.items() if k.startswith('SWARM_')};"
    "open(sys.argv[1], 'a').write(json.dumps([sys.argv[2], told]) + '\\n')"
)

GEMINI = """#!/bin/sh
printf '\\033]2;◇  Ready (x)\\007'
read go
printf '\\033]2;✋  Action Required (x)\\007'
read go
"""

#: Draws a dialog in two steps, then the next one.
ASKING = """#!/bin/sh
ask() {
  printf '╭────────╮\\n│ ? Shell  it │\\n│ ╭────────╮ │\\n│ │ %s │ │\\n' "$1"
  printf '│ ╰────────╯ │\\n│ Allow execution of [Shell]? │\\n'
}
printf '\\033]2;✋  Action Required (x)\\007'
read go
ask 'rm one'
read go
printf '\\033[H\\033[2J'
ask 'rm two'
read go
"""

#: Says in the file of Claude Code what it is doing, and never writes a letter to its terminal.
CLAUDE = """#!/bin/sh
mkdir -p "$HOME/.claude/sessions"
mkfifo "$HOME/go"
say() { printf '{"pid": %d, %s}' $$ "$1" > "$HOME/.claude/sessions/$$.json"; }
say '"status": "idle"'
read go < "$HOME/go"
say '"status": "waiting", "waitingFor": "permission prompt"'
exec sleep 600  # the pipe may still be open at the other end, and would end then
"""


def configure(panes: PaneLab, *lines: str) -> None:
    panes.write({".swarm/config.yaml": "notify:\n" + "".join(f"  {line}\n" for line in lines)})


def calls(file: Path) -> list[tuple[str, dict[str, str]]]:
    text = file.read_text() if file.exists() else ""
    return [tuple(json.loads(line)) for line in text.splitlines() if line]


def test_bell_line_and_command_once_for_each_time(panes: PaneLab, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    panes.cli("init")
    configure(panes, f"command: {json.dumps(shlex.join([sys.executable, '-c', NOTE, str(log)]))}")
    panes.start("developer", task=QUICK)
    panes.until("developer", "idle")
    looker = panes.terminal("attach", "developer@fx")
    try:
        looker.see("developer · idle")
        looker.forget()
        panes.type("developer", "permission rm #(touch spot) %H")
        panes.until("developer", "waiting")
        wait_for(lambda: calls(log), "the first call")
        looker.see("\a")
        looker.see("developer@fx is waiting: permission: rm #(touch spot) %H")
        line, told = calls(log)[0]
        assert line == "developer@fx is waiting: permission: rm #(touch spot) %H"
        assert (told["SWARM_AGENT"], told["SWARM_SESSION"]) == ("developer", "fx")
        assert (told["SWARM_STATE"], told["SWARM_DETAIL"]) == ("waiting", "permission: rm #(touch spot) %H")
        assert told["SWARM_REPOSITORY"] == str(panes.root)

        assert panes.swarm.delivery.notify_user(panes.swarm.status()) == 0  # it was told already
        panes.type("developer", "y")
        panes.until("developer", "idle")
        panes.type("developer", "permission rm #(touch spot) %H")
        wait_for(lambda: len(calls(log)) == 2, "the same question, asked again")
        panes.type("developer", "n")
        panes.type("developer", "fail 3")
        wait_for(lambda: len(calls(log)) == 3, "the end")
        assert calls(log)[2][1]["SWARM_STATE"] == "failed"
        assert not (panes.tree("developer", "fx") / "spot").exists()
    finally:
        looker.close()


def test_only_states_that_were_asked_for(panes: PaneLab) -> None:
    panes.cli("init")
    configure(panes, "states: [failed]", "command: /no/such/program")
    panes.start("developer", task=f"{QUICK}demo: permission Bash\n")
    panes.until("developer", "waiting")
    assert panes.swarm.delivery.notify_user(panes.swarm.status()) == 0
    panes.type("developer", "y")
    panes.type("developer", "fail 3")
    panes.until("developer", "failed")
    called = panes.run("developer") / "called.json"
    wait_for(lambda: called.exists() and json.loads(called.read_text())["state"] == "failed", "the note of the end")
    assert panes.swarm.delivery.notify_user(panes.swarm.status()) == 0


def test_a_program_that_is_judged_by_its_screen_is_seen_to_wait(panes: PaneLab) -> None:
    """Nothing that it writes down changes; what it shows does, and nobody asks for the state."""
    panes.program("gemini", GEMINI)
    panes.start("developer", program="gemini", task="")
    panes.until("developer", "starting")

    def border() -> str:
        return panes.tmux("list-panes", "-a", "-F", "#{@swarm_agent}: #{@swarm_state}")

    wait_for(lambda: "developer: starting" in border(), "the first state in the border")
    panes.tmux("send-keys", "-t", panes.one("developer").pane, "go", "Enter")
    wait_for(lambda: "developer: waiting" in border(), "the label of one that waits")


def test_a_dialog_is_told_once_though_it_is_drawn_bit_by_bit(panes: PaneLab, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    panes.cli("init")
    configure(panes, f"command: {json.dumps(shlex.join([sys.executable, '-c', NOTE, str(log)]))}")
    panes.program("gemini", ASKING)
    panes.start("developer", program="gemini", task="")
    pane = panes.one("developer").pane

    def told(words: str) -> None:
        def same() -> bool:
            panes.swarm.delivery.notify_user(panes.swarm.status())
            return panes.one("developer").status.detail == words

        wait_for(same, words)

    told("for permission")
    wait_for(lambda: calls(log), "the first call")
    panes.tmux("send-keys", "-t", pane, "Enter")
    told("for permission: rm one")
    panes.tmux("send-keys", "-t", pane, "Enter")
    told("for permission: rm two")
    wait_for(lambda: len(calls(log)) == 2, "the call about the next one")
    assert [line for line, _ in calls(log)] == [
        "developer@fx is waiting: for permission",
        "developer@fx is waiting: for permission: rm two",
    ]


def test_a_program_that_says_in_a_file_of_its_own_that_it_waits_is_seen_though_it_shows_nothing(panes: PaneLab) -> None:
    panes.program("claude", CLAUDE)
    panes.start("developer", program="claude", task="")

    def shown() -> str:
        return panes.tmux("list-panes", "-a", "-F", "#{@swarm_agent}: #{@swarm_state}; #{@swarm_summary}")

    wait_for(lambda: "developer: idle" in shown(), "the first state in the border")
    (Path(panes.env["HOME"]) / "go").write_text("on\n")

    both = "developer: waiting: for permission to use a tool; waiting for you: developer"
    wait_for(lambda: both in shown(), "border and status line of one that waits")


def test_the_end_of_each_turn_is_an_event_with_the_last_text(panes: PaneLab) -> None:
    panes.start("developer", task=QUICK)

    first = panes.swarm.wait_for_event(timeout=60, kinds=["AgentIdle"])
    assert first is not None
    assert (first.worker, first.status, first.approval) == ("developer@fx", "idle", "")
    panes.type("developer", "work on the parser")
    second = panes.swarm.wait_for_event(timeout=60, kinds=["AgentIdle"])
    assert second is not None
    said = [entry.text for entry in panes.swarm.transcript("developer") if entry.who == "agent"]
    assert second.text == said[-1] != first.text
    for _ in range(2):
        panes.swarm.delivery.notify_user(panes.swarm.status())
    assert panes.swarm.wait_for_event(timeout=0) is None


def test_a_program_that_has_only_started_had_no_turn(panes: PaneLab) -> None:
    panes.start("developer", program="shell", task="")
    panes.until("developer", "idle")
    note = panes.run("developer") / "called.json"

    panes.swarm.delivery.notify_user(panes.swarm.status())

    assert json.loads(note.read_text())["state"] == "idle"
    assert panes.swarm.wait_for_event(timeout=0) is None


def test_who_waits_for_permission_is_an_event_that_says_how_to_answer(panes: PaneLab) -> None:
    panes.start("developer", task=QUICK)
    panes.until("developer", "idle")
    asked = json.dumps({"tool_name": "Bash", "tool_input": {"command": "make"}})
    hook = [sys.executable, "-P", "-m", "swarm", "permission-request", "--agent", "developer@fx"]
    with subprocess.Popen(
        hook, cwd=panes.root, env=panes.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as asking:
        try:
            assert asking.stdin is not None
            asking.stdin.write(asked)
            asking.stdin.close()
            wait_for(panes.swarm.approvals, "the question")
            panes.type("developer", "permission Bash")
            event = panes.swarm.wait_for_event(timeout=60, kinds=["AgentWaiting"])
            assert event is not None
            assert event.approval == panes.swarm.approvals()[0].question.id
            assert event.approval in event.cause
        finally:
            asking.terminate()
