"""Print mode: an agent does its task without a dialog, and ends; nothing is ever typed into its pane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.delivery.errors import PaneBusy
from swarm.kit.errors import Refused, UsageProblem
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.message import Message

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
#: A program that notes its arguments, and ends when a file is there.
CODEX = """#!/bin/sh
printf '%s\\n' "$@" >> "$HOME/codex.said"
printf -- '--end\\n' >> "$HOME/codex.said"
mkdir -p "$HOME/.codex/sessions/2026/01/01"
echo "{\\"type\\": \\"session_meta\\", \\"payload\\": {\\"id\\": \\"abc\\", \\"cwd\\": \\"$PWD\\"}}" \
  >"$HOME/.codex/sessions/2026/01/01/rollout-1.jsonl"
echo "codex is here"
while [ ! -e "$HOME/go" ]; do sleep 0.1; done
"""
#: The same, as Claude Code keeps its conversations.
CLAUDE = """#!/bin/sh
printf '%s\\n' "$@" >> "$HOME/claude.said"
printf -- '--end\\n' >> "$HOME/claude.said"
mkdir -p "$HOME/.claude/projects/here"
[ "$1" = --resume ] || echo '{"type":"user"}' >"$HOME/.claude/projects/here/$2.jsonl"
echo "claude is here"
while [ ! -e "$HOME/go" ]; do sleep 0.1; done
"""


def home(lab: PaneLab, name: str) -> Path:
    return lab.root.__class__(lab.env["HOME"], name)


def calls(lab: PaneLab, program: str) -> list[list[str]]:
    """Return the arguments of each start of a program so far."""
    file = home(lab, f"{program}.said")
    text = file.read_text() if file.exists() else ""
    return [call.splitlines() for call in text.split("--end\n")[:-1]]


def mail(lab: PaneLab, kind: str) -> list[Message]:
    return [one.message for one in lab.swarm.messages.inbox("user") if one.message.type == kind]


# --- the demo agent -------------------------------------------------------------------------------


def test_it_does_its_task_and_ends(panes: PaneLab) -> None:
    done = panes.json(
        *("start", "fx", "--roles", "developer", "--agent", "demo", "--print"),
        *("--task", "demo: steps 1\ndemo: delay 0\n"),
    )
    assert done["exit_code"] == 0

    found = panes.until("developer", "done")

    assert found.status.detail == "ended by itself"
    assert found.ahead == 1
    wait_for(lambda: len(mail(panes, "agent-ended")) == 1, "the notice of its end")
    assert mail(panes, "agent-ended")[0].subject == "developer@fx is done: ended by itself"


def test_a_role_can_say_so_and_the_plan_tells(panes: PaneLab) -> None:
    panes.write({"roles/qa.yaml": "name: qa\ninstructions: Test.\nagent_type: demo\nprint: true\n"})

    report = panes.swarm.start("fx", "qa,developer", task=QUICK, program="demo", dry_run=True)
    assert [step for step in report.steps if "print mode" in step] == [
        "write down what qa is told, to do its task and end (print mode)"
    ]
    panes.swarm.start("fx", "qa,developer", task=QUICK, program="demo")

    panes.until("qa", "done")
    panes.until("developer", "idle")


def test_it_asks_nobody(panes: PaneLab) -> None:
    panes.start("developer", task=f"{QUICK}demo: ask Deploy now?\n", print_mode=True)

    found = panes.until("developer", "failed")

    assert found.status.detail == "exit status 1"
    panes.see("developer", "Nobody is asked in print mode.")


def test_every_kind_of_work_can_be_done_so(panes: PaneLab) -> None:
    panes.swarm.start_workflow("research", f"Look\n{QUICK}", session="fx", program="demo", print_mode=True)

    panes.all_until("done")
    assert panes.swarm.sessions.get("fx").workflow == "research"


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"program": "demo", "task": " \n"}, "cannot start developer in print mode without a task"),
        ({"program": "shell", "task": "x"}, "cannot start shell in print mode: the program has no print mode"),
        (
            {"command": ["cat", "-"], "task": "x"},
            "cannot start the command cat in print mode: the program has no print mode",
        ),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_made(panes: PaneLab, how: dict[str, object], words: str) -> None:
    before = panes.fingerprint()

    with pytest.raises((UsageProblem, Refused), match=words) as caught:
        panes.swarm.start("fx", "developer", print_mode=True, **how)  # type: ignore[arg-type]

    assert "--task" in caught.value.hint or "--agent" in caught.value.hint
    assert panes.fingerprint() == before


def test_a_role_that_became_so_is_not_resumed_without_a_task(panes: PaneLab) -> None:
    text = "name: qa\ninstructions: Test.\nagent_type: demo\n"
    panes.write({"roles/qa.yaml": text})
    panes.swarm.start("fx", "qa")
    panes.swarm.stop(["fx"])
    panes.write({"roles/qa.yaml": f"{text}print: true\n"})

    with pytest.raises((UsageProblem, Refused), match="without a task") as caught:
        panes.swarm.resume(["fx"])

    assert "remove `print` from the role" in caught.value.hint


def test_of_a_role_it_has_no_effect_with_a_shell_and_that_is_said(panes: PaneLab) -> None:
    panes.write({"roles/qa.yaml": "name: qa\ninstructions: Test.\nagent_type: shell\nprint: true\n"})

    report = panes.swarm.start("fx", "qa")

    assert "print of role qa has no effect with shell" in report.warnings
    assert not any("print mode" in step for step in report.steps)
    panes.until("qa", "idle")


# --- stop, resume, restart ------------------------------------------------------------------------


def test_one_that_is_done_is_not_resumed_and_a_restart_does_it_anew(panes: PaneLab) -> None:
    panes.start("developer,reviewer", task=f"{QUICK}demo: only reviewer: fail 3\n", print_mode=True)
    panes.until("developer", "done")
    panes.until("reviewer", "failed")
    first = panes.note("developer", "process.json")

    done = panes.json("resume", "--all")

    assert done["exit_code"] == 0
    assert [one["agent"] for one in done["data"]["started"]] == ["reviewer"]
    assert [one["agent"] for one in done["data"]["done"]] == ["developer"]
    assert panes.note("developer", "process.json") == first
    told = panes.cli("resume", "developer@fx")
    assert told.returncode == 0
    assert "developer@fx finished its task in print mode; repeat it: swarm restart developer@fx" in told.stderr

    assert panes.swarm.restart("developer", "fx").started == (("fx", "developer"),)

    wait_for(lambda: panes.note("developer", "process.json")["pid"] != first["pid"], "another run")
    panes.until("developer", "done")


def test_claude_goes_on_when_it_was_stopped_and_begins_anew_when_it_is_restarted(panes: PaneLab) -> None:
    panes.program("claude", CLAUDE)
    panes.swarm.start("fx", "developer", task="-x; the goal", program="claude", print_mode=True)
    panes.see("developer", "claude is here")
    before = panes.swarm.sessions.get("fx").agents[0].conversation

    panes.swarm.stop(["fx"])
    panes.swarm.resume(["fx"])
    wait_for(lambda: len(calls(panes, "claude")) == 2, "the second call")
    panes.swarm.restart("developer", "fx")
    wait_for(lambda: len(calls(panes, "claude")) == 3, "the third call")

    after = panes.swarm.sessions.get("fx").agents[0].conversation
    first, second, third = calls(panes, "claude")
    assert (first[:2], first[-3:]) == (["--session-id", before], ["--print", "--", "-x; the goal"])
    assert second[:2] == ["--resume", before]
    assert second[-3:-1] == ["--print", "--"]
    assert "Go on with it" in second[-1]
    assert (third[:2], third[-3:]) == (["--session-id", after], ["--print", "--", "-x; the goal"])
    assert after != before
    for call in (first, second, third):
        assert "--settings" in call
        assert "--append-system-prompt-file" in call
    home(panes, "go").touch()
    panes.until("developer", "done")


# --- messages -------------------------------------------------------------------------------------


def test_nothing_is_typed_and_whoever_writes_to_it_is_told_the_truth(panes: PaneLab) -> None:
    panes.program("codex", CODEX)
    panes.swarm.start("fx", "developer", task="the goal", program="codex", print_mode=True)
    working = panes.until("developer", "working")
    assert [one.text for one in working.status.evidence if one.decides] == [
        f"process {working.pid} lives, in print mode"
    ]
    panes.see("developer", "codex is here")
    assert calls(panes, "codex")[0][0] == "exec"
    assert calls(panes, "codex")[0][-2:] == ["--", "the goal"]

    sent = panes.cli("send", "developer@fx", "paint it blue")

    assert "it is in print mode and gets no notice of messages: it waits in the inbox" in sent.stdout
    wait_for(lambda: len(mail(panes, "delivery")) == 1, "the notice")
    assert "was not typed: it is in print mode" in mail(panes, "delivery")[0].body
    with pytest.raises(PaneBusy, match="it is in print mode"):
        panes.person.panes.type("developer", "hello")
    shown = "\n".join(panes.swarm.peek("developer"))
    assert "[swarm]" not in shown
    assert "hello" not in shown
    home(panes, "go").touch()
    panes.until("developer", "done")
    assert len(panes.swarm.messages.inbox("developer@fx")) == 1


def test_a_demo_agent_reads_what_waits_for_it(panes: PaneLab) -> None:
    panes.start("developer", print_mode=True)
    panes.until("developer", "done")
    (sent,) = panes.swarm.send("developer@fx", "well done")

    panes.swarm.restart("developer", "fx")

    wait_for(lambda: panes.swarm.messages.get(sent.id)[0].stored.state == "acked", "the message to be read")
    panes.until("developer", "done")
