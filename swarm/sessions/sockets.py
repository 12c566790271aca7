"""Ask the supervisors of agents on their sockets how the agents stand.

A listing does not depend on the answers: it reads the same files, and the screens, too. What it learns here is whether
somebody still watches over an agent; where nobody answers the socket is shown as stale.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from swarm.machine.sockets import heard as known
from swarm.programs import facts
from swarm.programs.status import Evidence
from swarm.project.swarm_dir import socket_dir
from swarm.project.world import in_session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.machine.sockets.heard import Heard
    from swarm.machine.sockets.status_client import Asking
    from swarm.programs.status import Status
    from swarm.project.model import Session
    from swarm.project.world import World


#: How long an agent that begins may take to answer, and the pause between two looks, in seconds.
_BEGINS, _AGAIN = 2.0, 0.01


class Sockets:
    """The sockets of the agents of some sessions: all are asked at once, by ``answers`` they have had their time."""

    def __init__(self, world: World, sessions: Sequence[Session]) -> None:
        self._places: dict[tuple[str, str], tuple[str, str]] = {}
        for session in sessions:
            folder = os.fspath(socket_dir.folder_of(in_session(world, session).swarm_dir))
            for agent in session.agents:
                run_dir = os.fspath(world.layout.run_folder(session.name, agent.name))
                self._places[session.name, agent.name] = (run_dir, folder)
        self._noted = {one: known.noted(*place) for one, place in self._places.items()}
        paths = {one: heard.path for one, heard in self._noted.items() if heard.path and not heard.stale}
        self._asking = _ask(paths) if paths else None

    def answers(self) -> dict[tuple[str, str], Heard]:
        """Return what was heard of each; an agent that has ended meanwhile is not stale."""
        heard = {**self._noted, **(self._asking.answers() if self._asking is not None else {})}
        return {
            one: known.noted(*self._places[one]) if found.stale and not self._is_still(one, found) else found
            for one, found in heard.items()
        }

    def _is_still(self, one: tuple[str, str], found: Heard) -> bool:
        return known.noted(*self._places[one]).path == found.path


def _ask(paths: dict[tuple[str, str], str]) -> Asking[tuple[str, str]]:
    from swarm.machine.sockets.status_client import Asking  # agents that do not run have no sockets

    return Asking(paths)


def wait_for_answer(world: World, session: Session, agent: str, seconds: float = _BEGINS) -> Heard:
    """Return what an agent that was just started answers; without an answer when it has none to give.

    That is so when it could make no socket, has ended by then, or takes longer than all agents do.
    """
    alone = session._replace(agents=tuple(one for one in session.agents if one.name == agent))
    until = time.monotonic() + seconds
    while True:
        (heard,) = Sockets(world, (alone,)).answers().values()
        ended = facts.facts(world.layout.run_folder(session.name, agent)).exit_cause
        if heard.info is not None or heard.problem or ended or time.monotonic() >= until:
            return heard
        time.sleep(_AGAIN)


def with_socket(status: Status, heard: Heard) -> Status:
    """Return a state with what its socket adds to the evidence."""
    if heard.info is not None:
        text = f"its supervisor answers: {heard.info.state}"
    elif heard.stale:
        text = f"stale: {heard.stale}"
    elif heard.problem:
        text = heard.problem
    else:
        return status
    return status._replace(evidence=(*status.evidence, Evidence("socket", text)))
