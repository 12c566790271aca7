"""Waits on asyncio: what is cancelled ends, and loses nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from swarm import AsyncSwarm, Swarm, WaitOver
from swarm.agents import events
from swarm.agents.event_values import WORKER_COMPLETE
from swarm.api import asynchronous

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


def put(swarm: Swarm, name: str, session: str = "fx") -> None:
    events.put(swarm._world, None, events.event(WORKER_COMPLETE, "dev", session, "success", "", name=name))


async def cancelled(wait: Coroutine[Any, Any, object]) -> None:
    """Cancel what waits, and see it end."""
    task = asyncio.ensure_future(wait)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)


def test_a_step_is_shorter_than_the_second_within_which_a_cancelled_wait_ends() -> None:
    assert asynchronous.STEP <= 0.5


def test_a_wait_without_end_ends_when_it_is_cancelled(lab: Lab) -> None:
    lab.swarm.create("fx", "developer", instructions=False)
    swarm = AsyncSwarm(lab.swarm)

    async def main() -> None:
        await cancelled(swarm.wait_for_event())
        await cancelled(swarm.wait_for(["user"], "message"))
        await cancelled(swarm.messages.take(wait=None))
        lab.swarm.queues.get("work").add("a task")
        assert await swarm.queues.take("work", lease=60) is not None
        await cancelled(swarm.queues.take("work", wait=None))

    asyncio.run(main())


def test_what_a_cancelled_wait_had_taken_waits_again(lab: Lab) -> None:
    put(lab.swarm, "a")
    lab.swarm.send("user", "hello")
    lab.swarm.queues.get("work").add("a task")
    swarm = AsyncSwarm(lab.swarm)

    async def main() -> None:
        await cancelled(swarm.wait_for_event())
        await cancelled(swarm.messages.take(wait=None))
        await cancelled(swarm.queues.take("work", wait=None))
        event = await swarm.wait_for_event(timeout=0)
        taken = await swarm.messages.take()
        claim = await swarm.queues.take("work")
        assert event is not None
        assert taken is not None
        assert claim is not None
        assert [message.body for message in claim.messages] == ["a task"]
        assert (event.id, [message.body for message in taken.messages]) == ("event.a", ["hello"])
        assert await swarm.wait_for_event(timeout=0) is None

    asyncio.run(main())


def test_events_come_in_order_and_any_verb_can_be_awaited(lab: Lab) -> None:
    swarm = AsyncSwarm(lab.swarm)
    for number in range(3):
        put(lab.swarm, str(number), "fx" if number else "other")

    async def main() -> None:
        found = []
        async for event in swarm.events(session="fx"):
            found.append(event.id)
            if len(found) == 2:
                break
        assert found == ["event.1", "event.2"]
        made = await swarm.run(swarm.swarm.create, "fx", "developer", instructions=False)
        assert made.session == "fx"
        with pytest.raises(WaitOver):
            await swarm.wait_for(["user"], "message", timeout=0)

    asyncio.run(main())
    assert repr(swarm) == f"<AsyncSwarm {lab.root}>"


def test_a_task_is_waited_for_and_a_cancelled_wait_leaves_it_at_work(lab: Lab) -> None:
    async def story() -> tuple[str, str]:
        swarm = AsyncSwarm(lab.swarm)
        task = await swarm.tasks.submit("while [ ! -e go ]; do sleep 0.05; done; echo done", program="shell")
        await cancelled(swarm.tasks.wait(task.id))
        with pytest.raises(WaitOver):
            await swarm.tasks.wait(task.id, 0.1)
        state = (await swarm.tasks.get(task.id)).state
        (lab.root / ".swarm/workspaces" / task.session_id / "work/go").touch()
        return state, (await swarm.tasks.wait(task.id, 90)).output

    assert asyncio.run(story()) == ("working", "done\n")
