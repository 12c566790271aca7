"""Whoever wanted an answer within a time is told once that none came, whoever looks and whatever was killed."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents import endings
from swarm.bus.errors import MessageProblem
from swarm.machine import inbox_watch, processes
from swarm.messages import deadlines
from swarm.supervisor import awaited
from swarm.testing.lab import Lab
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for
from tests.support.posts import post_of

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.message import Message

pytestmark = pytest.mark.integration

SOON = 60_000


class Clock:
    """What the machine counts since its boot, as far as answers are concerned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.later = 0
        true = inbox_watch.up_ms
        monkeypatch.setattr(awaited, "up_ms", lambda: true() + self.later)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path.resolve())
    made.swarm.create("fx", "researcher,developer", instructions=False)
    return made


def ask(lab: Lab, to: str = "researcher,developer", **more: Any) -> str:
    return post_of(lab).send(to, "which database?", expects_reply=True, deadline_ms=SOON, subject="db", **more)[0].id


def notices(lab: Lab) -> list[Message]:
    return [one.message for one in post_of(lab).history("user") if one.message.type == deadlines.NOTICE]


def noted(lab: Lab) -> list[str]:
    folder = lab.root / ".swarm/messages/awaited"
    return sorted(os.listdir(folder)) if folder.is_dir() else []


def answer(lab: Lab, message_id: str, who: str) -> str:
    """Answer as an agent."""
    question = post_of(lab).message(message_id)[0].stored.message
    reply = question._replace(
        to="user", sender=who, body="sqlite", id="", time_ms=0, in_reply_to=message_id, requires_response=False,
        deadline_ms=0, generation="",
    )  # fmt: skip
    bus = post_of(lab).bus
    bus.declare("user")
    return bus.send(reply).id


def test_who_did_not_answer_is_named_once(lab: Lab, clock: Clock) -> None:
    asked = ask(lab)
    answer(lab, asked, "researcher@fx")
    assert post_of(lab).take() is not None, "only the answer: it is not overdue yet"
    post_of(lab).ack()
    assert notices(lab) == []

    clock.later = SOON
    taken = post_of(lab).take()
    assert taken is not None
    (notice,) = taken.messages

    assert (notice.type, notice.sender, notice.in_reply_to, notice.thread_id) == ("notice", "swarm", asked, asked)
    assert notice.body == f"developer@fx did not answer your message {asked} (db) within 60s."
    assert notice.metadata["silent"] == ["developer@fx"]
    assert noted(lab) == []
    post_of(lab).ack()
    assert post_of(lab).take() is None
    ask(lab, id=asked)  # the same message again
    clock.later *= 3
    assert post_of(lab).take() is None
    assert len(notices(lab)) == 1


def test_what_nobody_takes_in_its_time_is_given_up_and_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    post_of(lab).send("researcher", "soon", id="s1", ttl_ms=1)
    lab.swarm.queues.get("work").add("soon", task_id="t1", ttl=0.001)
    post_of(lab).send("researcher", "later", id="s2", ttl_ms=SOON)
    assert noted(lab) == ["s1~life.json", "s2~life.json", "t1~life.json"]

    def told() -> set[str]:
        deadlines.tell_all(lab.swarm._world)
        return {one.message.in_reply_to for one in post_of(lab).history("user")}

    wait_for(lambda: told() == {"s1", "t1"}, "the notices")
    assert post_of(lab).message("s1")[0].stored.state == "dead"
    assert "it was not taken within 1 ms" in post_of(lab).history("user")[0].message.body
    assert post_of(lab).message("s2")[0].stored.state == "queued"
    assert noted(lab) == ["s2~life.json"]


def test_an_agent_is_not_told_of_what_has_expired(panes: PaneLab) -> None:
    panes.env["SHELL"] = "/bin/bash"
    panes.start("developer", program="shell", task="")
    panes.until("developer", "idle")
    panes.type("developer", "read busy")
    panes.until("developer", "working")
    panes.swarm.send("developer", "soon", id="s1", ttl_ms=1)

    wait_for(lambda: panes.swarm.messages.get("s1")[0].stored.state == "dead", "its end")

    wait_for(
        lambda: [m.in_reply_to for m in (o.message for o in panes.swarm.messages.inbox("user"))] == ["s1"], "the notice"
    )
    panes.type("developer", "")
    panes.until("developer", "idle")
    assert panes.swarm.delivery.nudge("developer", "fx") == "nothing waits"


def test_a_note_that_is_none_is_not_tried_for_ever(lab: Lab, clock: Clock) -> None:
    asked = ask(lab)
    path = lab.root / f".swarm/messages/awaited/{asked}.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "about": {}}))

    clock.later = SOON
    deadlines.tell_all(lab.swarm._world)

    assert noted(lab) == []
    assert notices(lab) == []


def test_nobody_is_told_of_what_was_answered(lab: Lab, clock: Clock) -> None:
    asked = ask(lab, "researcher")
    answer(lab, asked, "researcher@fx")
    clock.later = SOON
    endings.report(lab.swarm._world)

    assert notices(lab) == []
    assert noted(lab) == []


def test_who_was_cleaned_up_is_named_and_who_never_got_it_is_not(lab: Lab, clock: Clock) -> None:
    ask(lab)
    lab.swarm.worktrees.remove("developer", "fx")
    clock.later = SOON
    endings.report(lab.swarm._world)
    assert [one.metadata["silent"] for one in notices(lab)] == [["researcher@fx", "developer@fx"]]


def test_many_who_look_at_once_and_some_that_were_killed_make_one(
    lab: Lab, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(lab)
    clock.later = SOON
    with monkeypatch.context() as patch:
        patch.setattr(deadlines, "forget", lambda *_: None)  # killed before it took the note away

        def look(_: int) -> int:
            post = post_of(lab)
            try:
                return deadlines.notify_senders(post.bus, str(lab.root / ".swarm/messages"))
            finally:
                post.bus.close()

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(look, range(8))) == 1
    assert len(noted(lab)) == 1
    endings.report(lab.swarm._world)

    assert [one.metadata["silent"] for one in notices(lab)] == [["researcher@fx", "developer@fx"]]
    assert noted(lab) == []


def test_a_taker_that_waits_wakes_when_the_time_is_over(lab: Lab) -> None:
    asked = post_of(lab).send("researcher", "quick?", expects_reply=True, deadline_ms=300)[0].id

    taken = post_of(lab).take(wait=60)

    assert taken is not None
    assert taken.messages[0].in_reply_to == asked


def test_a_message_that_was_not_sent_is_not_awaited(lab: Lab, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MessageProblem):
        ask(lab, "researcher", id="../../escape")
    with pytest.raises(MessageProblem):
        ask(lab, "researcher", type="NO TYPE")
    assert noted(lab) == []

    post = post_of(lab)
    children: list[int] = []

    def end_before_it_is_sent(*_: object) -> None:
        pid = os.fork()
        if not pid:
            os._exit(0)
        children.append(pid)

    monkeypatch.setattr(post, "_send_all", end_before_it_is_sent)
    post.send("researcher", "x", expects_reply=True, deadline_ms=SOON)
    os.waitpid(children[0], 0)
    assert len(noted(lab)) == 1
    clock.later = SOON
    assert post_of(lab).take() is None
    assert noted(lab) == []


def test_the_message_shows_what_became_of_the_answer(lab: Lab) -> None:
    asked = ask(lab)
    late = answer(lab, asked, "researcher@fx")
    post = post_of(lab)
    replies = [post.reply(trace) for trace in post.message(asked)]
    by = {trace.stored.message.to: reply for trace, reply in zip(post.message(asked), replies, strict=True)}
    one, other = by["researcher@fx"], by["developer@fx"]
    assert one is not None
    assert other is not None
    assert (one.answer, one.overdue, other.answer, other.overdue) == (late, False, "", False)
    assert other.due_ms == post.message(asked)[0].stored.message.time_ms + SOON
    plain = post.send("developer", "no hurry")[0].id
    assert post.reply(post.message(plain)[0]) is None
    soon = post.send("developer", "now!", expects_reply=True, deadline_ms=1)[0].id
    wait_for(lambda: (found := post.reply(post.message(soon)[0])) is not None and found.overdue, "overdue")
    late = answer(lab, soon, "developer@fx")
    sent = post.message(soon)[0].stored.message.time_ms
    assert post.reply(post.message(soon)[0]) == (sent + 1, False, late, True)


def test_another_boot_goes_by_the_time_of_day(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(lab, "researcher")
    folder = str(lab.root / ".swarm/messages/awaited")
    monkeypatch.setattr(processes, "boot_id", lambda: "another")
    monkeypatch.setattr(awaited, "up_ms", lambda: 5)
    (one,) = awaited.read_all(folder)
    assert SOON - 30_000 < one.left_ms <= SOON
    true = awaited._now_ms
    monkeypatch.setattr(awaited, "_now_ms", lambda: true() + SOON)
    assert post_of(lab).bus is not None
    deadlines.notify_senders(post_of(lab).bus, str(lab.root / ".swarm/messages"))
    assert len(notices(lab)) == 1


def test_the_supervisor_of_a_recipient_looks(panes: PaneLab) -> None:
    """The user takes nothing and types nothing; an agent that is written to does not answer."""
    panes.start("developer", task=QUICK)
    panes.all_until("idle")

    post = post_of(panes)
    asked = post.send("developer", "which database?", expects_reply=True, deadline_ms=1)[0].id

    wait_for(lambda: notices(panes), "the notice", 60)
    (notice,) = notices(panes)
    assert (notice.in_reply_to, notice.metadata["silent"]) == (asked, ["developer@fx"])
    wait_for(lambda: not noted(panes), "that it is forgotten", 60)
