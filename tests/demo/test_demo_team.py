"""Demo agents work together over the inbox, each in its pane."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from swarm.bus.filebus import FileBus
from swarm.demo.me import Me, Order, Task
from swarm.demo.post import Letter
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

TEAM = """\
Greet people by name.
demo: delay 0
demo: only researcher: tell developer The entry point is src/app.py.
demo: only developer: edit src/app.py # by name
demo: only developer: ask reviewer Is src/app.py ready?
demo: only developer: tell researcher
"""
SOON = 90.0


def subjects(lab: PaneLab, agent: str) -> list[str]:
    """Return an agent's commits, newest first."""
    return lab.git("log", "--format=%s", f"main..swarm/{agent}-fx").splitlines()


def commits(lab: PaneLab, agent: str, subject: str) -> None:
    """Wait for a commit."""
    wait_for(lambda: subject in subjects(lab, agent), f"{subject!r} among {subjects(lab, agent)}", SOON)


def all_read(lab: PaneLab) -> None:
    """Wait until nobody has anything left to read."""
    bus = FileBus(lab.root / ".swarm" / "messages")
    boxes = [address for address in bus.addresses() if address.startswith("inbox.") and address != "inbox.user"]
    wait_for(lambda: not any(bus.peek(address) for address in boxes), "all inboxes empty", SOON)
    bus.close()


def test_a_team_tells_asks_and_answers(panes: PaneLab) -> None:
    panes.start("researcher,developer,reviewer", task=TEAM)

    commits(panes, "developer", "developer: note what researcher said")
    commits(panes, "developer", "developer: note what reviewer said")
    commits(panes, "researcher", "researcher: note what developer said")
    panes.all_until("idle")

    notes = (panes.tree("developer", "fx") / "notes" / "developer.md").read_text()
    assert "- researcher says: The entry point is src/app.py." in notes
    assert "- reviewer answers: " in notes
    assert " Nothing blocks." in notes
    panes.see("reviewer", "developer asks: Is src/app.py ready?")
    all_read(panes)


def test_a_resumed_agent_repeats_nothing(panes: PaneLab) -> None:
    panes.start("researcher,developer,reviewer", task=TEAM)
    commits(panes, "developer", "developer: note what reviewer said")
    commits(panes, "researcher", "researcher: note what developer said")
    panes.all_until("idle")
    all_read(panes)
    before = {agent: subjects(panes, agent) for agent in ("researcher", "developer", "reviewer")}
    assert all(len(set(found)) == len(found) for found in before.values())

    panes.swarm.stop(["fx"])
    panes.swarm.resume(["fx"])
    panes.all_until("idle")
    panes.see("developer", "that is committed already")
    panes.see("developer", "to researcher")
    all_read(panes)

    assert {agent: subjects(panes, agent) for agent in before} == before


def test_an_idle_agent_wakes_for_a_message_and_does_what_the_user_orders(panes: PaneLab) -> None:
    panes.start("developer", task=QUICK)
    panes.until("developer", "idle")

    sent = panes.json("send", "developer", "edit hello.txt hello, Ada")

    commits(panes, "developer", "developer: edit hello.txt")
    all_read(panes)
    (message,) = sent["data"]["sent"]
    events = FileBus(panes.root / ".swarm" / "messages").find(message["id"])[0].events
    assert [event.name for event in events if event.name in ("queued", "claimed", "acked", "nudged")] == [
        "queued",
        "claimed",
        "acked",
    ]


def test_an_agent_that_waits_for_the_user_reads_afterwards(panes: PaneLab) -> None:
    panes.start("developer", task=f"{QUICK}demo: ask Deploy now?\n")
    panes.until("developer", "waiting")

    panes.json("send", "developer", "The tests pass.")
    panes.type("developer", "y")

    panes.see("developer", "user says: The tests pass.")
    assert "you said yes" in "\n".join(panes.swarm.peek("developer", "fx", lines=200))


def test_what_a_message_says_is_no_order_from_another_agent(panes: PaneLab) -> None:
    panes.start("developer,reviewer", task=f"{QUICK}demo: only reviewer: tell developer crash\n")

    commits(panes, "developer", "developer: note what reviewer said")

    assert panes.until("developer", "idle").status.runs


def test_a_message_cannot_write_to_the_terminal(panes: PaneLab) -> None:
    panes.start("developer", task=QUICK)
    panes.until("developer", "idle")

    panes.json("send", "developer", "\x1b[2J\x1b]0;evil\x07 words")

    panes.see("developer", "user says:")
    panes.see("developer", "words")
    assert panes.tmux("display-message", "-p", "-t", panes.one("developer").pane, "#{pane_title}") != "evil"


@pytest.mark.parametrize("order", ["tell nobody hello", "tell"])
def test_what_cannot_be_sent_is_said(panes: PaneLab, order: str) -> None:
    panes.start("developer", task=QUICK)
    panes.until("developer", "idle")

    panes.type("developer", order)

    panes.see("developer", "not sent to nobody" if order != "tell" else "usage: tell AGENT")
    panes.until("developer", "idle")


def test_a_question_to_an_agent_is_told_from_one_to_the_user(tmp_path: Path) -> None:
    run = tmp_path / "fx" / "run" / "developer"
    run.mkdir(parents=True)
    record = {"schema": 1, "created_ms": 5, "agents": [{"name": "developer"}, {"name": "reviewer"}]}
    (tmp_path / "fx" / "session.json").write_text(json.dumps(record))
    me = Me.read({"SWARM_ACTOR": "developer", "SWARM_SESSION": "fx", "SWARM_RUN_DIR": str(run)})

    assert me.team() == ("developer", "reviewer")
    assert me.key("step 1") == me.key("step 1") != me.key("step 2")
    (tmp_path / "fx" / "session.json").write_text("[]")
    assert (me.team(), me.key("step 1")) == ((), "")
    assert Task.read("demo: ask reviewer Ready?").orders == (Order("ask", "reviewer Ready?"),)


def test_a_letter_is_taken_as_it_comes() -> None:
    letter = Letter.read(
        {"id": "a", "from": "reviewer@fx", "content": {"subject": "S", "body": "b"}, "in_reply_to": "q"}
    )

    assert (letter.who, letter.text, letter.answers, letter.wants_answer) == ("reviewer", "S. b", "q", False)
    assert Letter.read({}).text == ""
