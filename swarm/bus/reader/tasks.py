"""Tasks in a queue: holder, dependencies and outcome."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from swarm.bus import view
from swarm.bus.protocol import Task
from swarm.bus.reader.choose import is_done, needs_of, place_of, unsettled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from swarm.bus.box import Box
    from swarm.bus.log.part import Line
    from swarm.bus.protocol import Place
    from swarm.bus.reader.state import State


def look(box: Box, limit: int, over: set[str], *, settled: bool) -> tuple[Task, ...]:
    """Return the tasks of a box.

    Args:
        over: claims that have ended although nobody wrote it down yet: what they hold waits again.
        settled: those that are done, too; then the last of each lane.
    """
    state = box.reader_log.look()
    claimed = {place: claim for place, claim in state.claimed().items() if claim not in over}
    found = []
    for place, line in _records(box, state, limit, settled=settled):
        one = view.stored(box, state, place, line, claimed)
        held = state.claims.get(claimed.get((place.lane, place.at), ""))
        if held is not None:
            found.append(Task(one, who=held.who, since_ms=held.since_ms))
        elif one.state == "queued":
            found.append(_waiting(state, Task(one), line))
        else:
            found.append(Task(one, since_ms=state.dead[place.id].time_ms if one.state == "dead" else 0))
    _spread(found)
    done = {task.stored.message.id for task in found if task.stored.state == "acked"}
    ends = _ends(box, done) if done else {}
    return tuple(_with_end(task, ends.get(task.stored.message.id)) for task in found)


def _records(box: Box, state: State, limit: int, *, settled: bool) -> Iterator[tuple[Place, Line]]:
    left = limit
    for lane, log in enumerate(box.lanes):
        lines: Iterable[Line] = log.tail(limit) if settled else unsettled(log, state.lanes[lane])
        for line in lines if left > 0 else ():
            place = place_of(lane, line)
            if place is not None and not view.is_gone(state, place):
                yield place, line
                left -= 1
            if left <= 0:
                return
    for grave in () if settled else list(state.dead.values())[:left]:
        place = grave.place
        yield place, box.lanes[place.lane].one(place.at, place.size)


def _waiting(state: State, task: Task, line: Line) -> Task:
    """Return a task with its dependencies, and whether one of them is blocked."""
    if b'"needs":' not in line.data:
        return task
    why = ""
    needs = [(lane, at, name) for lane, at, name in needs_of(line) if not is_done(state, lane, at, name)]
    for lane, at, name in needs:
        if name in state.dead:
            why = f"{name} was given up: {state.dead[name].reason}"
        elif state.lanes[lane].damaged.skip(at) > at:
            why = f"{name} was damaged on the disk"
    return task._replace(needs=tuple(name for _, _, name in needs), blocked=why)


def _spread(tasks: list[Task]) -> None:
    """Block the tasks that depend on a blocked task."""
    blocked = {task.stored.message.id for task in tasks if task.blocked}
    fresh = bool(blocked)
    while fresh:
        fresh = False
        for number, task in enumerate(tasks):
            behind = next((name for name in task.needs if name in blocked), "")
            if behind and not task.blocked:
                tasks[number] = task._replace(blocked=f"{behind} is blocked")
                blocked.add(task.stored.message.id)
                fresh = True


def _ends(box: Box, wanted: set[str]) -> dict[str, dict[str, Any]]:
    """Return the readers' note of each that was acknowledged."""
    found = {}
    for line in box.reader_log.log.search(b'"op":"ack"', 0, box.reader_log.log.end()):
        if line.number >= 0:
            entry = json.loads(line.data)
            for place in entry["m"]:
                if place[3] in wanted:
                    found[place[3]] = entry
    return found


def _with_end(task: Task, entry: dict[str, Any] | None) -> Task:
    if entry is None:
        return task
    return task._replace(who=entry.get("who", ""), since_ms=entry["t"], note=entry.get("why", ""))
