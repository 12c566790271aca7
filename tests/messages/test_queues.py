"""Task queues as the library and the agents in their panes use them."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus.errors import ClaimLost, InboxNotFound, MessageNotFound, MessageProblem
from swarm.bus.filebus import FileBus
from swarm.bus.protocol import Holder
from swarm.callers.errors import NotForAgents
from swarm.kit.errors import UsageProblem
from swarm.machine import processes
from swarm.messages.queues import Queue, Worker
from swarm.project.errors import InvalidName
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.protocol import Claim
    from swarm.testing.lab import Lab
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration


def ids(claim: Claim | None) -> list[str]:
    return [] if claim is None else [message.id for message in claim.messages]


def worker(root: Path, name: str, pid: int) -> Queue:
    """Return the queue as an agent sees it whose program is that process."""
    me = Worker(f"{name}@fx", Holder(processes.boot_id(), pid, processes.start_of(pid) or 0))
    return Queue(FileBus(root / ".swarm" / "messages"), "work", me, lambda: None)


def test_work_is_added_taken_and_done_in_the_order_of_what_needs_what(lab: Lab) -> None:
    queue = lab.swarm.queues.get("work")
    queue.add("write it", task_id="write")
    queue.add("test it", task_id="test", after=["write"])
    queue.add("look up", task_id="look", priority="high")
    assert ids(queue.take()) == ["look"]
    assert ids(queue.take()) == ["write"]
    assert queue.take() is None
    queue.done(["write"], "in commit abc")

    assert ids(lab.swarm.queues.get("work").take()) == ["test"]
    found = {task.stored.message.id: task for task in queue.tasks(settled=True)}
    assert (found["write"].note, found["write"].who) == ("in commit abc", "user")
    assert [task.stored.message.id for task in queue.tasks()] == ["look", "test"]
    assert [(name, depth[:3]) for name, depth in lab.swarm.queues()] == [("work", (0, 2, 0))]


@pytest.mark.parametrize("word", ["claim", "nack", "who"])
def test_a_task_whose_id_is_a_word_of_the_notes_is_a_task_as_any(lab: Lab, word: str) -> None:
    queue = lab.swarm.queues.get("work")
    queue.add("other", task_id="other")
    queue.add("it", task_id=word)
    queue.take()
    queue.back(["other"], reason="busy")
    with pytest.raises(ClaimLost) as caught:
        queue.done([word])

    assert "busy" not in caught.value.message


def test_a_task_cannot_be_given_up_at_once(lab: Lab) -> None:
    with pytest.raises(UsageProblem):
        lab.swarm.queues.get("work").add("x", ttl=0.0001)


def test_looking_makes_nothing(lab: Lab) -> None:
    before = lab.fingerprint()
    assert lab.swarm.queues() == ()
    queue = lab.swarm.queues.get("work")
    for act in (queue.take, queue.tasks, partial(queue.done, ["x"]), partial(queue.back, ["x"])):
        with pytest.raises(InboxNotFound, match="there is no queue work"):
            act()

    assert not (lab.root / ".swarm").exists()
    assert lab.fingerprint() == before


def test_bad_tasks_leave_nothing(lab: Lab) -> None:
    queue = lab.swarm.queues.get("work")
    with pytest.raises(MessageNotFound):
        queue.add("x", after=["nothing"])
    assert not (lab.root / ".swarm").exists()
    queue.add("x", task_id="x")
    several: list[dict[str, Any]] = [
        {"after": ["nothing"]},
        {"task_id": "y", "after": ["y"]},
        {"priority": "now"},
        {"task_id": "no id"},
    ]
    for wrong in several:
        with pytest.raises((MessageNotFound, MessageProblem)):
            queue.add("y", **wrong)
    with pytest.raises(UsageProblem):
        queue.take(lease=0)
    for name in ("", "../x", "a b", "-x"):
        with pytest.raises(InvalidName):
            lab.swarm.queues.get(name)

    assert [task.stored.message.id for task in queue.tasks()] == ["x"]


def test_the_same_task_twice_is_one(lab: Lab) -> None:
    queue = lab.swarm.queues.get("work")
    queue.add("x", task_id="x")

    assert queue.add("x", task_id="x").duplicate
    assert len(queue.tasks()) == 1


def test_several_are_settled_together_or_not_at_all(lab: Lab) -> None:
    queue = lab.swarm.queues.get("work")
    for name in "abc":
        queue.add(name, task_id=name)
    queue.take(limit=2)
    with pytest.raises(ClaimLost, match="no agent has taken task c"):
        queue.done(["a", "b", "c"])
    with pytest.raises(MessageNotFound):
        queue.done(["a", "unknown"])
    assert [task.stored.state for task in queue.tasks()] == ["claimed", "claimed", "queued"]
    assert queue.done(["a", "b"]).ids == ("a", "b")

    again = queue.done(["a"])
    assert (again.ids, again.already) == ((), ("a",))


def test_a_task_that_is_given_up_blocks_and_can_be_given_back(lab: Lab) -> None:
    queue = lab.swarm.queues.get("work")
    queue.add("a", task_id="a")
    queue.add("b", task_id="b", after=["a"])
    queue.take()
    with pytest.raises(UsageProblem):
        queue.fail(["a"], " ")
    queue.fail(["a"], "no compiler")
    blocked = {task.stored.message.id: task.blocked for task in queue.tasks()}
    assert blocked["b"] == "a was given up: no compiler"
    with pytest.raises(ClaimLost, match="was given up: no compiler"):
        queue.done(["a"])
    queue.back(["a"])

    assert ids(queue.take()) == ["a"]
    queue.done(["a"])
    assert ids(queue.take()) == ["b"]
    assert queue.back(["a", "b"]) == (("b",), ("a",))  # what is done is not said to wait again
    assert ids(queue.take()) == ["b"]


def test_what_is_given_back_comes_again_after_the_delay(lab: Lab) -> None:
    queue = lab.swarm.queues.get("work")
    for name in "ab":
        queue.add(name, task_id=name)
    queue.take(limit=2)
    queue.back(["a"], delay=3600, reason="busy")
    assert queue.take() is None
    queue.back(["b"], delay=0.3, reason="busy")

    claim = queue.take(wait=30)
    assert ids(claim) == ["b"]
    assert claim is not None
    assert claim.attempts == (2,)
    assert queue.take() is None


def test_only_who_took_a_task_settles_it_but_a_person_may(lab: Lab) -> None:
    lab.swarm.queues.get("work").add("a", task_id="a")
    one, other = worker(lab.root, "dev", os.getpid()), worker(lab.root, "rev", os.getpid())
    one.take()
    for act in (other.done, other.back, other.extend):
        with pytest.raises(NotForAgents, match="dev@fx took it"):
            act(["a"])
    one.extend(["a"], 1000)
    (task,) = other.tasks()
    assert task.who == "dev@fx"

    assert lab.swarm.queues.get("work").done(["a"]).ids == ("a",)


def test_workers_at_the_same_time_get_each_task_once(lab: Lab) -> None:
    queue = lab.swarm.queues.get("work")
    for number in range(40):
        queue.add("x", task_id=f"t{number}", after=[f"t{number - 8}"] if number >= 8 else [])
    got: list[str] = []

    def work(name: str) -> None:
        mine = worker(lab.root, name, os.getpid())
        while claim := mine.take(wait=0.5):
            got.extend(ids(claim))
            mine.done(ids(claim))

    threads = [threading.Thread(target=work, args=(f"w{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(got) == sorted(f"t{number}" for number in range(40))
    assert all(got.index(f"t{n}") > got.index(f"t{n - 8}") for n in range(8, 40))


@pytest.mark.timeout(180)
def test_an_agent_takes_in_its_own_name_and_what_it_held_comes_back_with_its_end(panes: PaneLab) -> None:
    """Whatever it says about itself in its environment."""
    panes.start("developer", program="shell")
    panes.until("developer", "idle")
    queue = panes.swarm.queues.get("work")
    queue.add("a", task_id="a")
    swarm = "env SWARM_AGENT_ID=reviewer SWARM_ACTOR=reviewer@fx swarm"
    panes.type("developer", f"{swarm} queue take work --lease 1h")
    wait_for(lambda: queue.tasks()[0].stored.state == "claimed", "the claim", 60)
    assert queue.tasks()[0].who == "developer@fx"
    panes.swarm.stop(["fx"])

    assert ids(queue.take(wait=30)) == ["a"]
