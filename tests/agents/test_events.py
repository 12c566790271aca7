"""The queue of events: in order, each once, whatever is killed; never endless, and nobody else's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents import endings, events
from swarm.agents.event_values import AGENT_WAITING, BUDGET_NEAR, BUDGET_REACHED, WORKER_COMPLETE
from swarm.bus.errors import ClaimLost, QuotaReached
from swarm.callers import parents
from swarm.kit.errors import UsageProblem
from swarm.machine.identity import Identity
from swarm.messages.inboxes import post_own
from swarm.messages.office import base
from swarm.project.errors import AgentNotFound
from swarm.project.model import Parent
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm import Swarm
    from swarm.project.model import Session
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

BEGIN = (
    "import sys; from swarm import Swarm; swarm = Swarm.open();"
    "event = swarm.wait_for_event(timeout=60, ack='ack' in sys.argv); print(event.id, flush=True); "
)


def put(swarm: Swarm, *names: str, kind: str = WORKER_COMPLETE, parent: Parent | None = None) -> None:
    for name in names:
        events.put(swarm._world, parent, events.event(kind, "dev", "fx", "success", "", name=name))


def names(swarm: Swarm, count: int = 99, *kinds: str) -> list[str]:
    """Take events and return which."""
    found: list[str] = []
    while len(found) < count and (event := swarm.wait_for_event(timeout=0, kinds=kinds)) is not None:
        found.append(event.id.removeprefix("event."))
    return found


def python(lab: Lab, code: str, *words: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-P", "-c", code, *words]
    return subprocess.Popen(argv, cwd=lab.root, env=lab.env, stdout=subprocess.PIPE, text=True)


def cli(lab: Lab, *words: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "swarm", *words]
    return subprocess.run(argv, cwd=lab.root, env=lab.env, text=True, check=False, timeout=120,
                          stdout=stdout, stderr=subprocess.PIPE)  # fmt: skip


# --- in order, each once ----------------------------------------------------------------------------------


def test_events_come_in_order_each_once_and_wait_for_the_next_process(lab: Lab) -> None:
    assert lab.swarm.wait_for_event(timeout=0) is None  # where there is nothing at all yet
    put(lab.swarm, "a", "b", "c", "d")
    put(lab.swarm, "b")  # told again
    assert names(lab.swarm, 1) == ["a"]
    for expected in ("b", "c"):
        with python(lab, BEGIN, "ack") as other:
            assert other.communicate()[0] == f"event.{expected}\n"
    assert names(lab.swarm) == ["d"]
    assert names(lab.swarm) == []


def test_an_event_in_hand_comes_again_when_its_process_ends_unless_it_was_done(lab: Lab) -> None:
    put(lab.swarm, "a", "b")
    with python(lab, BEGIN + "sys.stdin.read()") as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "event.a\n"
        assert names(lab.swarm, 1) == ["b"]  # one that is in hand holds up no other
        holder.send_signal(signal.SIGKILL)
    again = lab.swarm
    event = again.wait_for_event(timeout=60, ack=False)
    assert event is not None
    assert (event.id, event.kind, event.worker, event.status) == ("event.a", WORKER_COMPLETE, "dev@fx", "success")
    lab.swarm.events.done(event)
    assert names(lab.swarm) == []
    with pytest.raises(ClaimLost):
        lab.swarm.events.done(event.id)


def test_some_kinds_can_be_waited_for_and_the_others_stay(lab: Lab) -> None:
    for name, kind in (("a", AGENT_WAITING), ("b", WORKER_COMPLETE), ("c", BUDGET_NEAR), ("d", WORKER_COMPLETE)):
        put(lab.swarm, name, kind=kind)
    assert names(lab.swarm, 99, BUDGET_NEAR, WORKER_COMPLETE) == ["b", "c", "d"]
    assert names(lab.swarm) == ["a"]
    with pytest.raises(UsageProblem, match="no event kind 'Nothing'"):
        lab.swarm.wait_for_event(kinds=["Nothing"])


def test_events_of_one_session_or_of_some_agents_can_be_waited_for_and_the_others_stay(lab: Lab) -> None:
    for number, (agent, session) in enumerate((("dev", "fx"), ("dev", "other"), ("lead", "other"), ("lead", "fx"))):
        made = events.event(WORKER_COMPLETE, agent, session, "success", "", name=str(number))
        events.put(lab.swarm._world, None, made)

    def next_of(**which: Any) -> str:
        event = lab.swarm.wait_for_event(timeout=0, **which)
        return event.id.removeprefix("event.") if event else ""

    assert next_of(session="Other", agents=["lead"]) == "2"
    assert next_of(session="other", agents=["lead"]) == ""
    assert next_of(agents=["lead@fx", "nobody"]) == "3"
    assert next_of(kinds=[AGENT_WAITING], session="other") == ""
    assert next_of(session="other") == "1"
    assert next_of() == "0"


def test_a_waiting_reader_gets_what_happens_meanwhile(lab: Lab) -> None:
    lab.swarm.create("fx", "developer", instructions=False)
    with python(lab, BEGIN, "ack") as other:
        put(lab.swarm, "a")
        assert other.communicate(timeout=60)[0] == "event.a\n"


def test_two_who_wait_get_different_ones(lab: Lab) -> None:
    put(lab.swarm, *map(str, range(40)))
    got: list[list[str]] = [[], []]
    threads = [threading.Thread(target=lambda mine=mine: mine.extend(names(lab.swarm))) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(got[0] + got[1], key=int) == [str(number) for number in range(40)]
    assert all(mine == sorted(mine, key=int) for mine in got)


# --- nobody else's ----------------------------------------------------------------------------------------


def agent_in(lab: Lab, monkeypatch: pytest.MonkeyPatch, agent: str, session: str) -> Parent:
    """Let this process be an agent's."""
    who = Identity(f"{lab.root}/.swarm/sessions/{session}/run/{agent}", {})
    for module in (base, parents):
        monkeypatch.setattr(module, "whoami", lambda *_, **__: who)
    return Parent(agent, session, who.generation)


def test_everybody_has_a_queue_of_their_own(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.swarm.create("fx", "developer", instructions=False)
    put(lab.swarm, "for-the-user")
    lead = agent_in(lab, monkeypatch, "developer", "fx")
    put(lab.swarm, "for-the-lead", parent=lead)
    put(lab.swarm, "for-an-earlier-run", parent=lead._replace(generation="earlier"))
    assert names(lab.swarm) == ["for-the-lead"]
    with pytest.raises(AgentNotFound):
        lab.swarm.send("events.user", "a forged one")
    assert lab.swarm.messages.inbox() == ()
    monkeypatch.undo()
    assert names(lab.swarm) == ["for-the-user"]


def test_what_others_put_there_is_no_event(lab: Lab) -> None:
    put(lab.swarm, "a")
    told = dict.fromkeys(("worker", "session", "agent", "status", "cause"), "x") | {"kind": WORKER_COMPLETE}
    message = {"schema": 1, "from": "swarm", "to": "user", "content": {"body": "x", "metadata": told}}
    (lab.root / ".swarm/messages/events/user/drop/one").write_text(json.dumps(message))
    (lab.root / ".swarm/messages/events/user/drop/two").write_text("hello")
    assert names(lab.swarm) == ["a"]
    assert names(lab.swarm) == []


def test_events_are_no_mail_and_no_tasks(lab: Lab) -> None:
    put(lab.swarm, "a")
    assert lab.swarm.queues() == ()
    assert lab.swarm.messages._post.unread(["user"]) == {"user": 0}


def test_of_too_many_the_oldest_are_let_go(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST", 3)
    put(lab.swarm, *"abcdef")
    assert lab.swarm.messages._post.bus.depth("events.user").waiting == 3
    assert names(lab.swarm) == ["d", "e", "f"]


def test_the_events_of_an_agent_go_with_it_and_come_back(lab: Lab) -> None:
    lab.swarm.create("fx", "developer", instructions=False)
    session = lab.swarm.sessions.get("fx")
    lead = Parent("developer", "fx", session.generation_of(session.agents[0]))
    put(lab.swarm, "a", parent=lead)
    folder = lab.root / ".swarm/messages/events/developer-fx"
    lab.swarm.cleanup(["fx"])
    assert not folder.exists()
    lab.swarm.restore("fx")
    assert [one.message.body for one in lab.swarm.messages._post.bus.peek("events.developer-fx")] == ["dev@fx: success"]
    assert parents.living(lab.swarm._world, session._replace(parent=lead)) == lead
    lab.person.cleanup(["fx"], discard=True)
    assert not folder.exists()


# --- what becomes an event --------------------------------------------------------------------------------


def ended(lab: Lab, agent: str, cause: str, code: int, parent: Parent | None = None) -> None:
    """Write down that the program of an agent of session fx has ended, as its supervisor does."""
    store = lab.swarm._world.sessions
    session = store.get("fx")
    assert session is not None
    programs = tuple(one._replace(program="demo") if one.name == agent else one for one in session.agents)
    store.write(session._replace(agents=programs, parent=parent))
    run = lab.root / ".swarm/sessions/fx/run" / agent
    run.mkdir(parents=True)
    process = {"schema": 1, "pid": 1 << 30, "pid_start": 7, "boot_id": "b", "operation": "o"}
    more = {"supervisor_pid": 1 << 30, "supervisor_start": 7, "started_ms": 1000, "argv0": "demo"}
    how = {"code": code, "signal": None, "cause": cause, "ended_ms": 2000}
    (run / "process.json").write_text(json.dumps({**process, **more}))
    (run / "exit.json").write_text(json.dumps({**process, **how}))


@pytest.mark.parametrize(
    ("cause", "code", "kinds", "status", "words"),
    [
        ("exited", 0, [WORKER_COMPLETE], "success", "ended by itself"),
        ("exited", 3, [WORKER_COMPLETE], "failure", "exit status 3"),
        ("stopped", 0, [WORKER_COMPLETE], "stopped", "stopped by swarm"),
        ("budget", 0, [BUDGET_REACHED, WORKER_COMPLETE], "stopped", "over its budget"),
    ],
)
def test_an_end_is_an_event_with_its_cause(
    lab: Lab, cause: str, code: int, kinds: list[str], status: str, words: str
) -> None:
    lab.swarm.create("fx", "developer", instructions=False)
    ended(lab, "developer", cause, code)
    found = [lab.swarm.wait_for_event(timeout=0) for _ in kinds]  # who waits looks by itself
    assert [one.kind for one in found if one] == kinds
    last = found[-1]
    assert last is not None
    assert (last.worker, last.agent, last.session) == ("developer@fx", "developer", "fx")
    assert (last.status, last.cause, last.time_ms) == (status, words, 2000)
    assert last.message == f"developer@fx: {status} ({words})"
    lab.swarm.delivery.report_endings()
    assert names(lab.swarm) == []


def test_killed_at_any_place_in_between_everybody_is_told_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.swarm.create("top", "lead=architect", instructions=False)
    lab.swarm.create("fx", "developer", instructions=False)
    top: Session = lab.swarm.sessions.get("top")
    lead = Parent("lead", "top", top.generation_of(top.agents[0]))
    ended(lab, "developer", "exited", 3, lead)
    asked = [0]

    def killed(number: int) -> None:
        def step(*_: object) -> None:
            asked[0] += 1
            if asked[0] == number:
                raise QuotaReached("the end of this process")

        def own(*args: object) -> None:
            step()
            post_own(*args)  # type: ignore[arg-type]  # passed on as given
            step()

        asked[0] = 0
        monkeypatch.setattr(endings, "post_own", own)
        assert lab.swarm.delivery.report_endings() == 0

    for number in (1, 2, 3, 4):
        killed(number)
    monkeypatch.setattr(endings, "post_own", post_own)
    assert lab.swarm.delivery.report_endings() == 1
    subject = "developer@fx is failed: exit status 3"
    for address in ("user", "lead@top"):
        assert [one.message.subject for one in lab.swarm.messages._post.bus.history(address)] == [subject]
    assert len(lab.swarm.messages._post.bus.history("events.lead-top")) == 1
    assert "events.user" not in lab.swarm.messages._post.bus.addresses()


def test_one_that_cannot_be_told_keeps_no_other_from_being_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.swarm.create("fx", "developer,reviewer", instructions=False)
    ended(lab, "developer", "exited", 3)
    ended(lab, "reviewer", "exited", 3)
    whole = endings._message

    def message(session: Session, agent: object, *rest: object) -> object:
        if getattr(agent, "name", "") == "developer":
            raise QuotaReached("its parent's inbox is full")
        return whole(session, agent, *rest)  # type: ignore[arg-type]  # passed on as given

    monkeypatch.setattr(endings, "_message", message)
    assert lab.swarm.delivery.report_endings() == 1
    assert [one.message.metadata["agent"] for one in lab.swarm.messages.inbox()] == ["reviewer"]


def test_coming_near_a_budget_is_an_event(lab: Lab) -> None:
    lab.swarm.create("fx", "developer", instructions=False)
    run = lab.root / ".swarm/sessions/fx/run/developer"
    run.mkdir(parents=True)
    note = {"kind": "tokens", "level": "near", "limit": 1000, "words": "85 % of its budget of 1,000 tokens used"}
    odd = {"kind": "cost", "level": "unpriced", "limit": 1, "words": "cannot be enforced"}
    (run / "budget.json").write_text(json.dumps({"schema": 1, "at_ms": 1, "notes": [note, odd], "told": []}))
    for _ in range(2):
        lab.swarm.usage.notify("developer", "fx")
    event = lab.swarm.wait_for_event(timeout=0)
    assert event is not None
    assert event[1:8] == (
        *(BUDGET_NEAR, "developer@fx", "fx", "developer", "near"),
        *("developer@fx: 85 % of its budget of 1,000 tokens used", "tokens"),
    )
    assert names(lab.swarm) == []
    assert len(lab.swarm.messages.inbox()) == 2


# --- the command ------------------------------------------------------------------------------------------


def test_the_command_prints_each_once_and_says_when_time_is_over(lab: Lab) -> None:
    put(lab.swarm, "a", "b", "c")
    assert cli(lab, "wait-event").stdout == "WorkerComplete dev@fx: success\n"
    envelope = json.loads(cli(lab, "wait-event", "--timeout", "1m", "--kind", WORKER_COMPLETE, "--json").stdout)
    event = envelope["data"]["event"]
    assert event.pop("at").endswith("Z")
    who = {"worker": "dev@fx", "session": "fx", "agent": "dev"}
    what = {"id": "event.b", "kind": WORKER_COMPLETE, "status": "success", "message": "dev@fx: success", "cause": ""}
    empty = dict.fromkeys(("text", "approval", "by", "head", "about"), "")
    assert event == who | what | empty | {"ahead": None, "dirty": None}
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        assert cli(lab, "wait-event", stdout=full).returncode != 0
    finally:
        os.close(full)
    wait_for(lambda: names(lab.swarm, 1) == ["c"], "what was not printed")
    put(lab.swarm, "d")
    for filters in (["--session", "gx"], ["--agent", "other"], ["--agent", "gx/dev"]):
        assert cli(lab, "wait-event", "--timeout", "0", *filters).returncode == 75
    assert cli(lab, "wait-event", "--session", "fx", "--agent", "other", "--agent", "fx/dev").returncode == 0
    over = cli(lab, "wait-event", "--timeout", "0.1", "--json")
    assert (over.returncode, json.loads(over.stdout)["errors"][0]["code"]) == (75, "TIMEOUT")
    assert cli(lab, "wait-event", "--kind", "Nothing").returncode == 2
