"""The agent that ships with swarm: ``python -P -m swarm.demo_agent``, in a worktree.

It needs no network, no account and no model, and truly works: it reads its role and its task,
writes and commits a few files on its branch, says how it is (state.json), and then takes orders at
a prompt; ``help`` lists them.  The task may hold orders too, a line each, so that a demonstration
or a test can be written down: ``demo: fail 3``, ``demo: only developer: ask Deploy now?``.

It is told who it is by SWARM_ACTOR, SWARM_ROLE, SWARM_SESSION, SWARM_ROLE_FILE, SWARM_TASK_FILE and
SWARM_RUN_DIR; each may be missing.
"""

from __future__ import annotations

import contextlib
import os
import sys


def main() -> int:
    """Run and return the exit status."""
    try:
        from swarm.demo.agent import DemoAgent
        from swarm.demo.me import Me

        return DemoAgent(Me.read(os.environ)).run()
    except KeyboardInterrupt:
        return 130
    except OSError as error:  # the terminal is gone, or the worktree
        with contextlib.suppress(OSError):
            sys.stderr.write(f"demo agent: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
