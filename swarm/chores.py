"""A supervisor's short tasks: ``python -m swarm.chores ROOT TASK [WORD…]``; the exit status is all that it says.

No command line: swarm itself writes these words into an agent's launch file.  So nothing is loaded that reads, helps or
prints, and a message is typed in half the time that a command would take.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from swarm import Swarm, SwarmError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BUG = 70


def nudge(swarm: Swarm, agent: str, session: str) -> int:
    """Notify an agent of its messages."""
    swarm.delivery.nudge(agent, session)
    return 0


def heartbeat(swarm: Swarm, agent: str, session: str, period: str) -> int:
    """Send an agent the heartbeat of its role for a time of idleness."""
    swarm.delivery.heartbeat(agent, session, period)
    return 0


def idle(swarm: Swarm, agent: str, session: str) -> int:
    """Say by the exit status whether an agent is idle."""
    return 0 if swarm.why(agent, session, look=False, unread=False, ask=False).status.state == "idle" else 1


def label(swarm: Swarm) -> int:
    """Show the states in the pane borders and the status line of tmux, notify the user, and log what changed."""
    found = swarm.status(look=False, unread=False, ask=False)
    swarm.delivery.announce(found)
    swarm.events.record(found)
    return 0


def budget(swarm: Swarm, agent: str, session: str) -> int:
    """Notify the user about an agent's limits."""
    swarm.usage.notify(agent, session)
    return 0


def take_in(swarm: Swarm, agent: str, session: str) -> int:
    """Take in what an agent committed in its box."""
    swarm.worktrees.take_in(agent, session)
    return 0


def settle(swarm: Swarm, _task: str) -> int:
    """Write down that a task is over; whoever has the user's environment starts the next one."""
    swarm.tasks.advance(dispatch=False)
    return 0


def ask(swarm: Swarm, task: str, file: str) -> int:
    """Have a request of a task's program answered."""
    swarm.tasks.ask(task, file)
    return 0


_TASKS = (nudge, heartbeat, idle, label, budget, take_in, settle, ask)
TASKS: dict[str, Callable[..., int]] = {task.__name__: task for task in _TASKS}


def main(words: Sequence[str]) -> int:
    """Do one task in the repository at a root; return the exit status."""
    root, task, *rest = words
    try:
        return TASKS[task](Swarm.open(root), *rest)
    except SwarmError as problem:
        return problem.exit_code
    except Exception as error:  # noqa: BLE001  # nobody sees a traceback here
        from pathlib import Path

        from swarm.api.problems import bug_report, write_bug_report

        write_bug_report(bug_report(error, words), Path(root))
        return _BUG


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
