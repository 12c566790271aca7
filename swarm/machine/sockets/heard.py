"""What is known of an agent's socket: what its supervisor noted in the run folder, and what came of asking."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.machine.run_folder.program_facts import one_line

if TYPE_CHECKING:
    from swarm.machine.sockets.status_client import AgentInfo


class Heard(NamedTuple):
    """What came of asking one socket.

    Attributes:
        info: the answer; None without one.
        stale: why there is none; empty with an answer, and where the agent has no socket.
        path: the socket; empty: the agent has none.
        problem: why its supervisor could make none.
    """

    info: AgentInfo | None = None
    stale: str = ""
    path: str = ""
    problem: str = ""


def noted(run_dir: str, folder: str) -> Heard:
    """Return what a supervisor noted about its socket: the path, or the problem; nothing once it has ended.

    What was noted before the machine was started says nothing: no supervisor of then can answer.

    Args:
        folder: the folder of sockets that it must be in, by whatever path.
    """
    said = runfiles.read(run_dir, runfiles.SOCKET) or {}
    if said.get("boot_id") != processes.boot_id():
        return Heard()
    path, problem = (one if isinstance(one := said.get(key), str) else "" for key in ("path", "problem"))
    if not path:
        return Heard(problem=one_line(problem))
    with contextlib.suppress(OSError):  # the folder is gone, or the short link to it
        if path.endswith(".sock") and os.path.samefile(os.path.dirname(path), folder):
            return Heard(path=path)
    return Heard(stale="its socket is gone", path=path)
