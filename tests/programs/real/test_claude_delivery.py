"""Messages to a real Claude Code when the usual way is disturbed; what is told of each message stays true."""

from __future__ import annotations

import json
import os
import shlex
import signal
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine import hook_events
from swarm.programs.claude import hooks
from swarm.testing.api import call, hold, say
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm import Swarm
    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]
LONG = 90.0


def state_of(swarm: Swarm, message_id: str) -> str:
    return swarm.messages.get(message_id)[0].stored.state


def until_acked(swarm: Swarm, message_id: str) -> None:
    wait_for(lambda: state_of(swarm, message_id) == "acked", "the message to be acknowledged", LONG)


def begun(claude: ClaudeLab, *turns: Any, **role: Any) -> Swarm:
    """Start an agent that has nothing to do; *turns* come after its first answer."""
    claude.role("builder", "You build.", **role)
    claude.api.script("begin with nothing", say("I wait."), *turns)
    swarm = claude.begin("claude", "builder", "begin with nothing")
    claude.shows("builder", "I wait.")
    claude.until("builder", "idle")
    return swarm


def test_after_clear_messages_state_and_resume_follow_the_new_conversation(claude: ClaudeLab) -> None:
    swarm = begun(claude)
    first = claude.note("builder", hook_events.CONVERSATION)
    claude.type("builder", "/clear")
    wait_for(lambda: claude.note("builder", hook_events.CONVERSATION)["id"] != first["id"], "a new conversation", LONG)
    claude.until("builder", "idle")
    claude.api.script("paint it blue", say("Painted blue."), say("Blue it was."))

    (sent,) = swarm.send("builder@fx", "please paint it blue")

    until_acked(swarm, sent.id)
    claude.shows("builder", "Painted blue.")
    assert "begin with nothing" not in claude.api.heard("paint it blue").text
    claude.until("builder", "idle")
    claude.written("Painted blue.")
    swarm.stop(["fx"])
    swarm.resume(["fx"])
    claude.until("builder", "idle")
    claude.say("builder", "which colour?")
    claude.shows("builder", "Blue it was.")
    asked = claude.api.heard("which colour?")
    assert "Painted blue." in asked.text
    assert "begin with nothing" not in asked.text


def test_a_message_comes_after_a_compaction_and_the_state_is_told_during_it(claude: ClaudeLab) -> None:
    swarm = begun(claude, hold("summary", say("<summary>We waited.</summary>")))
    claude.api.script("a word in between", say("Heard after all."))
    claude.type("builder", "/compact")
    claude.until("builder", "working")
    (sent,) = swarm.send("builder@fx", "a word in between")
    wait_for(lambda: state_of(swarm, sent.id) == "claimed", "the message to be claimed", LONG)
    claude.api.open("summary")

    claude.shows("builder", "Heard after all.")

    until_acked(swarm, sent.id)
    claude.until("builder", "idle")


def test_what_was_on_its_way_when_esc_was_pressed_still_comes_once(claude: ClaudeLab) -> None:
    swarm = begun(claude, hold("never", say("Not heard.")), say("Heard it."), say("And this."))
    claude.say("builder", "think hard")
    claude.until("builder", "working")
    (before,) = swarm.send("builder@fx", "sent before esc")
    wait_for(lambda: state_of(swarm, before.id) == "claimed", "the message to be claimed", LONG)

    claude.keys("builder", "Escape")

    until_acked(swarm, before.id)
    claude.shows("builder", "Heard it.")
    claude.until("builder", "idle")
    claude.keys("builder", *"half a thought")
    claude.shows("builder", "half a thought")
    (after,) = swarm.send("builder@fx", "sent after esc")
    until_acked(swarm, after.id)
    assert "half a thought" in claude.shows("builder", "And this.")  # it stands where it was typed
    last = "\n".join(claude.api.requests("sent after esc")[-1].said)
    assert "half a thought" not in last
    assert last.count("sent before esc") == last.count("sent after esc") == 1


def test_what_stood_in_the_queue_of_the_killed_program_waits_and_is_heard_after_the_resume(claude: ClaudeLab) -> None:
    """The program wrote down that it has it; nobody has heard it, and a resumed conversation knows nothing of it."""
    swarm = begun(claude, hold("never", say("Not heard.")), say("Heard it."))
    claude.say("builder", "think hard")
    claude.until("builder", "working")
    (sent,) = swarm.send("builder@fx", "sent before the end")
    claude.written("sent before the end")
    assert state_of(swarm, sent.id) == "claimed"

    os.kill(claude.one("builder").pid, signal.SIGKILL)

    claude.until("builder", "failed")
    assert state_of(swarm, sent.id) == "queued"
    swarm.resume(["fx"])
    claude.shows("builder", "Heard it.")
    until_acked(swarm, sent.id)
    assert "\n".join(claude.api.requests()[-1].said).count("sent before the end") == 1
    claude.until("builder", "idle")


def test_when_the_one_that_waits_has_died_a_line_is_pasted_at_the_free_prompt(claude: ClaudeLab) -> None:
    swarm = begun(claude, say("Heard it."), say("Done."))
    run = claude.run("builder")
    wait_for(lambda: hook_events.is_awaited(str(run)), "somebody who waits for messages", LONG)
    os.kill(int((run / hook_events.LOCK).read_text().split()[0]), signal.SIGKILL)
    wait_for(lambda: not hook_events.is_awaited(str(run)), "the end of the one that waits", LONG)

    (sent,) = swarm.send("builder@fx", "are you there?")

    until_acked(swarm, sent.id)
    names = [event.name for event in swarm.messages.get(sent.id)[0].events]
    assert names.index("nudged") < names.index("claimed") < names.index("seen")


def test_without_hooks_it_is_told_in_the_pane_but_never_into_a_dialog_or_a_typed_line(
    claude: ClaudeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody who manages the machine has switched hooks off."""
    monkeypatch.setattr(hooks, "standard", lambda *_args, **_named: {})
    ask = call("Bash", command="touch made.txt", description="x")
    take = call("Bash", command="swarm inbox take", description="x")
    swarm = begun(claude, ask, take, say("Read it."), permissions={"allow": ["Bash(swarm *)"]})
    claude.say("builder", "make a file")
    claude.until("builder", "waiting")

    (sent,) = swarm.send("builder@fx", "the news")

    assert swarm.delivery.nudge("builder", "fx").startswith("it is waiting")
    claude.keys("builder", "h", "a", "l", "f")  # the dialog takes no letters
    assert claude.state("builder") == "waiting"
    claude.keys("builder", "Escape")
    claude.until("builder", "idle")
    assert not (claude.one("builder").worktree / "made.txt").exists()
    claude.keys("builder", *"a half line")
    claude.shows("builder", "a half line")
    assert swarm.delivery.nudge("builder", "fx").startswith("its prompt holds text")
    assert state_of(swarm, sent.id) == "queued"
    claude.keys("builder", "C-u")

    claude.shows("builder", "Read it.")
    assert "the news" in claude.api.heard("the news").text
    assert state_of(swarm, sent.id) == "seen"
    assert [event.name for event in swarm.messages.get(sent.id)[0].events][:3] == ["queued", "nudged", "claimed"]


def test_an_idle_agent_hears_its_heartbeat_once_in_each_time_of_idleness(claude: ClaudeLab) -> None:
    """It is at its prompt by its own words, which no hook tells of; the condition runs where it works."""
    beat = {"idle_timeout": 1, "message": "What is left to do?", "condition": "test -e src/app.py"}
    begun(claude, say("Nothing."), hold("enough", say("Still nothing.")), heartbeat=beat)

    claude.shows("builder", "Nothing.")
    wait_for(lambda: len(claude.api.requests("What is left")) == 2, "the second heartbeat", LONG)

    assert "\n".join(claude.api.requests("What is left")[1].said).count("What is left to do?") == 2
    claude.until("builder", "working")


def test_in_print_mode_what_waits_is_delivered_before_it_ends(claude: ClaudeLab) -> None:
    """A shell agent runs the program in print mode with swarm's hooks."""
    claude.role("builder", "You build.")
    swarm = claude.begin("shell", "builder", "")
    claude.until("builder", "idle")
    run = claude.run("builder")
    (run / "hooks.json").write_text(json.dumps({"hooks": hooks.standard(run, claude.root, guarded=False)}))
    claude.api.script("work once", say("Worked."), say("Heard it, too."))
    (sent,) = swarm.send("builder@fx", "one thing more")

    claude.type("builder", f"claude --print --settings {shlex.quote(str(run / 'hooks.json'))} 'work once'")

    claude.shows("builder", "Heard it, too.")
    until_acked(swarm, sent.id)
    claude.until("builder", "idle")  # it has ended: nobody waits on behind it
