"""``swarm task --agent-url``: the same by HTTP, for an agent that is served."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from swarm import ServiceProblem, UsageProblem
from swarm.cli.output import Answer, Output
from swarm.cli.text import lines_of, plain

if TYPE_CHECKING:
    from swarm import ServiceReply, Services
    from swarm.cli.verb import Run

_OVER = ("completed", "failed", "cancelled")
_WAITS = "idle"
_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
#: Refusals that say that the request itself is wrong.
_WRONG = range(400, 404)


def submit(run: Run, url: str | None, asked: dict[str, Any], *, detach: bool) -> Answer:
    """Give a served agent a task, wait for its end, and print its result.

    Args:
        url: which agent; None: any that is idle.
    """
    services = run.open().services
    body = {key: value for key, value in asked.items() if value not in (None, "", False)}
    if url is None:
        chosen, reply = services.give(body)
        url = chosen.url
        run.output.err(f"agent {plain(chosen.name)} is idle")
    else:
        reply = services.ask(url, "POST", "/task", body)
    task_id = str(_good(reply)["task_id"])
    if detach:
        return Answer({"task": {"task_id": task_id}}, lambda output: output.out(f"{task_id} is queued"))
    run.output.err(f"accepted {task_id}; Ctrl-C leaves it at work")
    task = _await(services, url, task_id)
    why = (task.get("error") or {}).get("message", "")
    state = str(task["state"])
    return Answer(
        {"task": task},
        lambda output: _show(output, task),
        warnings=()
        if state in ("completed", _WAITS)
        else (f"{task_id} {plain(state)}{f': {plain(why)}' if why else ''}",),
        exit_code=0 if state in ("completed", _WAITS) else 1,
    )


def _await(services: Services, url: str, task_id: str) -> dict[str, Any]:
    pause = _PAUSE
    while True:
        task = _good(services.ask(url, "GET", f"/task/{task_id}"))
        if task.get("state") in (*_OVER, _WAITS):
            return task
        time.sleep(pause)
        pause = min(_LONGEST_PAUSE, pause * 1.3)


def _show(output: Output, task: dict[str, Any]) -> None:
    for line in lines_of(str(task.get("output") or "")) if task.get("output") else ():
        output.out(line)


def _good(answer: ServiceReply) -> dict[str, Any]:
    """Return what an agent answered, if it did what was asked."""
    if answer.is_good:
        return answer.said
    words = f"the agent refused: {plain(answer.words)}"
    if answer.status in _WRONG:
        hint = "set SWARM_API_TOKEN to the token of its swarm directory" if answer.status == 401 else None
        raise UsageProblem(words, hint=hint)
    raise ServiceProblem(words)
