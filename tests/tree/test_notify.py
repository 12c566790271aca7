"""Completions: one for each task, whoever notices; the agent's own word counts, and corrects (TREE-10 to 15)."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import pytest

from swarm.agents import completions, endings, events
from swarm.testing.terminal import wait_for
from tests.support.tree import as_agent, code_of, end, mail, process, quiet, subtree, told, worker

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture
def lab(panes: PaneLab) -> PaneLab:
    return quiet(panes)


def completed(lab: PaneLab, owner: str) -> list[tuple[str, str, str]]:
    return [one for one in told(lab, owner) if one[0] == "WorkerComplete"]


def test_the_agents_word_is_the_completion_with_the_proof_of_git(lab: PaneLab) -> None:
    """TREE-11, 12, 14: no recipient can be named; the parent is told in its queue and in its inbox."""
    made = subtree(lab, "auth")
    lab.write({"login.py": "x"}, made.agent.path)
    tip = lab.commit("login", cwd=made.agent.path)
    lab.write({"rest.py": "not committed"}, made.agent.path)

    said = as_agent(lab, "lead", "auth").tree.notify_parent("success", "done\nsee login.py")

    assert (said.ack, said.parent, said.corrects) == (True, "user", "")
    assert (said.head, said.ahead, said.dirty) == (tip, 1, True)
    (event,) = [one for one in mail(lab, "events.user") if one.type == "worker-complete"]
    assert event.id == said.event
    facts = {key: event.metadata[key] for key in ("worker", "status", "text", "by", "head", "ahead", "dirty")}
    assert facts == {"worker": "lead@auth", "status": "success", "text": "done\nsee login.py", "by": "word",
                     "head": tip, "ahead": 1, "dirty": True}  # fmt: skip
    assert "1 commit, uncommitted changes" in event.body
    (message,) = [one for one in mail(lab, "user") if one.type == "completion"]
    assert (message.sender, message.body) == ("lead@auth", "done\nsee login.py")


def test_a_workers_completion_reaches_its_lead_and_nobody_else(lab: PaneLab) -> None:
    subtree(lab, "auth")
    subtree(lab, "docs")
    worker(lab, "tests", by=as_agent(lab, "lead", "auth"))

    said = as_agent(lab, "tests", "auth-tests").tree.notify_parent("failure", "2 red")

    assert said.parent == "lead@auth"
    assert told(lab, "lead-auth") == [("WorkerComplete", "tests@auth-tests", "failure")]
    assert told(lab, "lead-docs") == told(lab, "user") == []


def test_the_same_word_twice_is_one_and_another_one_corrects(lab: PaneLab) -> None:
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth").tree

    first = lead.notify_parent("success", "done")
    again = lead.notify_parent("success", "done")
    other = lead.notify_parent("failure", "a test was red after all")

    assert again.event == first.event
    assert (other.corrects, other.event) == (first.event, f"{first.event}.2")
    assert told(lab, "user") == [
        ("WorkerComplete", "lead@auth", "success"),
        ("CompletionCorrected", "lead@auth", "failure"),
    ]
    (one,) = lab.swarm.tree()
    assert one.completion is not None
    assert (one.completion.status, one.completion.corrected) == ("failure", True)


def test_an_end_after_the_word_is_no_completion(lab: PaneLab) -> None:
    """TREE-15: exactly one, also when the exit is noticed by several."""
    subtree(lab, "auth")
    as_agent(lab, "lead", "auth").tree.notify_parent("success", "done")
    end(lab, "lead", "auth")

    wait_for(lambda: len(told(lab, "user")) == 2, "the end to be told")
    for _ in range(2):
        endings.report(lab.swarm._world)

    assert told(lab, "user") == [("WorkerComplete", "lead@auth", "success"), ("AgentEnded", "lead@auth", "failure")]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_crash_is_a_completion_and_a_late_word_corrects_it(lab: PaneLab, how: int) -> None:
    subtree(lab, "auth")
    late = as_agent(lab, "lead", "auth").tree
    end(lab, "lead", "auth", how)
    wait_for(lambda: completed(lab, "user"), "the completion")

    said = late.notify_parent("success", "it was done before")

    assert told(lab, "user") == [
        ("WorkerComplete", "lead@auth", "failure"),
        ("CompletionCorrected", "lead@auth", "success"),
    ]
    assert said.corrects == completions.id_of(lab.swarm.sessions.get("auth"), lab.swarm.sessions.get("auth").agents[0])


def test_a_lost_pane_and_a_stop_are_completions(lab: PaneLab) -> None:
    subtree(lab, "auth")
    subtree(lab, "docs")
    pane = lab.one("lead", "auth").pane
    lab.tmux("kill-pane", "-t", pane)
    lab.swarm.stop(["docs"])
    wait_for(lambda: len(completed(lab, "user")) == 2, "both completions")
    assert sorted(completed(lab, "user")) == [
        ("WorkerComplete", "lead@auth", "stopped"),
        ("WorkerComplete", "lead@docs", "stopped"),
    ]
    by = {one.metadata["worker"]: one.metadata["by"] for one in mail(lab, "events.user")}
    assert by == {"lead@auth": "lost", "lead@docs": "stop"}


def test_a_supervisor_that_is_killed_too_is_noticed_by_the_next_command(lab: PaneLab) -> None:
    subtree(lab, "auth")
    facts = process(lab, "lead", "auth")
    for name in ("supervisor_pid", "pid"):
        end_pid(int(facts[name]))
    wait_for(lambda: lab.gone(int(facts["pid"])), "the end of the program")

    lab.cli("stop", "--all")

    assert completed(lab, "user") == [("WorkerComplete", "lead@auth", "failure")]


def end_pid(pid: int) -> None:
    import os

    os.kill(pid, signal.SIGKILL)


def test_a_restart_does_not_make_a_second_completion(lab: PaneLab) -> None:
    subtree(lab, "auth")
    end(lab, "lead", "auth")
    wait_for(lambda: completed(lab, "user"), "the completion")
    before = process(lab, "lead", "auth")["pid"]
    lab.swarm.restart("lead", "auth")
    wait_for(lambda: process(lab, "lead", "auth")["pid"] != before, "the program to begin again")
    lab.swarm.stop(["auth"])
    assert [one[0] for one in told(lab, "user")] == ["WorkerComplete", "AgentRestarted", "AgentEnded"]


def test_what_is_kept_and_not_told_is_told_by_whoever_looks_next(lab: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result is durable before anybody is told: a process that dies between the two loses nothing."""
    subtree(lab, "auth")
    lead = as_agent(lab, "lead", "auth").tree
    with monkeypatch.context() as patch:
        patch.setattr(events, "publish", _die)
        with pytest.raises(KeyboardInterrupt):
            lead.notify_parent("success", "done")
    assert told(lab, "user") == []

    endings.report(lab.swarm._world)
    said = lead.notify_parent("success", "done")

    assert told(lab, "user") == [("WorkerComplete", "lead@auth", "success")]
    assert said.corrects == ""


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_all_who_notice_at_once_make_one_completion(lab: PaneLab) -> None:
    subtree(lab, "auth")
    swarms = [as_agent(lab, "lead", "auth") for _ in range(6)]
    ready = threading.Barrier(len(swarms) + 1)

    def say(number: int) -> None:
        ready.wait()
        swarms[number].tree.notify_parent("success", f"done {number % 2}")

    threads = [threading.Thread(target=say, args=(number,)) for number in range(len(swarms))]
    for one in threads:
        one.start()
    ready.wait()
    end(lab, "lead", "auth")
    for one in threads:
        one.join()
    wait_for(lambda: not lab.one("lead", "auth").status.runs, "the end")
    endings.report(lab.swarm._world)
    assert len(completed(lab, "user")) == 1


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [("done", "x", "USAGE"), ("success", " \n", "USAGE"), ("", "", "USAGE"), ("success", "x" * 20_001, "USAGE")],
)
def test_a_wrong_status_and_an_empty_message_are_refused(lab: PaneLab, status: str, message: str, code: str) -> None:
    subtree(lab, "auth")
    assert code_of(lambda: as_agent(lab, "lead", "auth").tree.notify_parent(status, message)) == code
    assert told(lab, "user") == []


def test_the_root_has_no_parent(lab: PaneLab) -> None:
    """TREE-13: the user, and the lead of a team that the user started."""
    assert code_of(lambda: lab.swarm.tree.notify_parent("success", "x")) == "NO_PARENT"
    lab.start("boss=architect", "fx", program="shell", task="")
    lab.until("boss", "idle")
    boss = as_agent(lab, "boss", "fx")
    assert code_of(lambda: boss.tree.notify_parent("success", "x")) == "NO_PARENT"
    assert code_of(lambda: boss.tree.report("x")) == "NO_PARENT"


def test_reports_are_messages_and_no_completion(lab: PaneLab) -> None:
    subtree(lab, "auth")
    worker(lab, "tests", by=as_agent(lab, "lead", "auth"))
    sent = as_agent(lab, "tests", "auth-tests").tree.report("half way")
    assert sent.to == "lead@auth"
    assert told(lab, "lead-auth") == []


def test_an_agent_writes_to_its_parent_and_to_those_below_it(lab: PaneLab) -> None:
    """TREE-12: and to the user; to nobody else."""
    subtree(lab, "auth")
    subtree(lab, "docs")
    lead = as_agent(lab, "lead", "auth")
    worker(lab, "tests", by=lead)
    lead.send("tests@auth-tests", "hello")
    lead.send("user", "hello")
    helper = as_agent(lab, "tests", "auth-tests")
    helper.send("parent", "hello")
    for to in ("lead@docs", "all@docs"):
        assert code_of(lambda to=to: helper.send(to, "hello")) == "NOT_IN_TREE"  # type: ignore[misc]
    assert code_of(lambda: lead.send("lead@docs", "hello")) == "NOT_IN_TREE"


def test_the_events_of_an_orphan_go_to_the_nearest_ancestor(lab: PaneLab) -> None:
    subtree(lab, "auth")
    deep = as_agent(lab, "lead", "auth", tree__max_depth=3)
    subtree(lab, "deep", by=deep)
    worker(lab, "tests", by=as_agent(lab, "lead", "deep"))
    lab.swarm.stop(["deep"])
    lab.swarm.cleanup(["deep"], force=True)

    said = as_agent(lab, "tests", "deep-tests").tree.notify_parent("success", "done")

    assert said.parent == "lead@auth"
    assert ("WorkerComplete", "tests@deep-tests", "success") in told(lab, "lead-auth")
    (one,) = [one for one in lab.swarm.tree() if one.name == "tests"]
    assert (one.parent, one.orphan) == ("lead@deep", "lead@deep")
