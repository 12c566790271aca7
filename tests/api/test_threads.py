"""One ``Swarm`` in the hands of several threads: each sees what is there, and tells only of itself."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for
from tests.support.library import documents, namespaces

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


def test_a_message_reaches_an_agent_that_came_after_the_first_one(lab: Lab) -> None:
    swarm = lab.swarm
    swarm.create("early", "developer")
    swarm.send("developer@early", "hello")

    lab.swarm.create("late", "reviewer")  # another object, as another thread or process would

    assert [sent.to for sent in swarm.send("reviewer@late", "hello")] == ["reviewer@late"]
    assert [sent.to for sent in swarm.send("reviewer", "hello")] == ["reviewer@late"]


def test_threads_with_one_object_live_their_lives_side_by_side(lab: Lab) -> None:
    swarm = lab.open(worktrees__durable=False, lock__timeout=60)
    swarm.create("shared", "developer")
    gate = threading.Barrier(4)

    def life(name: str) -> list[str]:
        gate.wait(30)
        swarm.create(name, "developer,reviewer")
        assert swarm.sessions.get(name).name == name
        assert documents(swarm).worktree_exists("developer", name)
        (swarm.root / ".worktrees" / f"developer-{name}" / "new.txt").write_text(name)
        assert documents(swarm).has_uncommitted_changes("developer", name)
        sent = swarm.send(f"developer@{name}", name)
        assert [one.message.body for one in swarm.messages.inbox(f"developer@{name}")] == [name]
        swarm.cleanup([name], force=True)
        swarm.restore(f"{name}/developer")
        assert (swarm.root / ".worktrees" / f"developer-{name}" / "new.txt").read_text() == name
        return [one.to for one in sent]

    def look() -> list[str]:
        gate.wait(30)
        found = []
        for _ in range(5):
            assert swarm.sessions.get("shared").agent("developer") is not None
            assert any(info.session == "shared" for info in swarm.worktrees())
            found += [one.to for one in swarm.send("developer@shared", "hello")]
        return found

    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(life, "one"), pool.submit(life, "two"), pool.submit(look), pool.submit(look)]
        results = [one.result(100) for one in made]

    assert results == [["developer@one"], ["developer@two"], *[["developer@shared"] * 5] * 2]
    assert len(swarm.messages.inbox("developer@shared", limit=50)) == 10


def test_a_thread_that_waits_for_the_lock_writes_nothing_into_the_note_of_the_one_that_has_it(lab: Lab) -> None:
    told: list[str] = []
    swarm = type(lab.swarm).open(lab.root, environ=lab.env, progress=told.append)
    swarm.create("first", "developer")

    with ThreadPoolExecutor(1) as pool:
        with swarm._changing("sleep"):
            waiting = pool.submit(swarm.create, "second", "developer")
            wait_for(lambda: any(text.startswith("waiting for the lock") for text in told), "it waits for the lock")
            note = json.loads((lab.root / ".swarm/lock").read_bytes().rstrip(b"\0 "))
        waiting.result(60)

    assert (note["command"], note["doing"]) == ("swarm sleep", "")


def test_what_a_program_holds_shows_itself_in_words(lab: Lab) -> None:
    held = [lab.swarm, lab.swarm.queues.get("work"), *(getattr(lab.swarm, name) for name in namespaces())]

    assert [repr(one) for one in held if " at 0x" in repr(one)] == []
    assert repr(lab.swarm.worktrees) == f"<Worktrees of {lab.root}>"
