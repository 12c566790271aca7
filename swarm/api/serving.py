"""Serve agents: find out which agent is at the other end, and call verbs as that agent.

An agent is seen, never believed: by the processes above the one that called (``machine/identity.py``).  Two kinds of
process serve: one that runs below the agent's program, which is that agent, and the server of a repository, which is
nobody and acts for the agents whose processes it sees.
"""

from __future__ import annotations

import hmac
import os
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from swarm.agents.launching import door as launch_door
from swarm.agents.launching.door import token_of
from swarm.api.swarm import Swarm
from swarm.callers.errors import IdentityRefused, NotForAgents
from swarm.kit import files
from swarm.machine import identity, person, processes, records
from swarm.machine.mcp import forward
from swarm.machine.mcp.wait import OPENED
from swarm.programs import processes as agent_processes
from swarm.project import server
from swarm.project.errors import ExtraMissing
from swarm.project.model import Parent
from swarm.project.names import check_name, check_session
from swarm.project.server import ServerStatus as ServerStatus  # noqa: PLC0414  # offered here
from swarm.project.server import status as server_status
from swarm.project.statedir import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import NoReturn, Self

    from swarm.kit.errors import SwarmError
    from swarm.machine.identity import Identity

T = TypeVar("T")
#: So many seconds an opened repository is used again: settings and roles may change.
_FRESH = 10.0
#: Which run of which agent, and of its program.
_Key = tuple[str, str, int, int]


class Place:
    """The server of one repository, while this process is it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = _state(root)
        self._fd = -1

    @classmethod
    def of(cls, swarm: Swarm) -> Self:
        """Return that of an opened repository; nothing is taken yet.

        Raises:
            NotForAgents: an agent asks; who serves all agents is none of them.
        """
        world = swarm._opened.world  # noqa: SLF001  # the same library
        who = identity.whoami(world.environ)
        if who is not None or person.descends_from_agent():
            raise NotForAgents(f"cannot serve this repository: this is for people, and you are {_words_of(who)}")
        with files.os_errors("cannot serve this repository"):
            prepare(world)
        return cls(swarm.root)

    @property
    def sockets(self) -> tuple[Path, str, str]:
        """The folder of the sockets, and the names of that for agents' doors and of that for HTTP."""
        return server.folder_of(self.state), forward.SOCKET, server.HTTP

    @property
    def has_mcp(self) -> bool:
        """Whether it can serve agents' doors: the extra is installed."""
        return launch_door.is_installed()

    @property
    def has_project(self) -> bool:
        """Whether it can serve the project to programs: the extra is installed."""
        return all(find_spec(name) is not None for name in ("fastapi", "uvicorn"))

    def check_installed(self) -> None:
        """Refuse where there is nothing to serve with.

        Raises:
            ExtraMissing
        """
        if not (self.has_mcp or self.has_project):
            what = "a server needs the libraries `fastapi` and `uvicorn`, or `mcp` for agents' doors: none is there"
            raise ExtraMissing(what, hint="install them: pip install 'tmux-swarm[serve,mcp]'")

    def __enter__(self) -> Self:
        self._fd = server.take(self.state)
        return self

    def __exit__(self, *_problem: object) -> None:
        server.leave(self.state)
        os.close(self._fd)

    def write(self, port: int) -> None:
        """Write down that this process serves, and on which port."""
        server.write(self.state, ServerStatus(os.getpid(), port))


def _words_of(who: Identity | None) -> str:
    return f"agent {who.address}" if who is not None else "started by an agent"


def become_door(swarm: Swarm, agent: str) -> NoReturn:
    """Become the door of the agent to which this process belongs: it takes the place of this process.

    Raises:
        IdentityRefused: this process is not that agent's.
        ExtraMissing: no server runs, and there is nothing to serve with.
    """
    root = swarm.root
    check_door(root, agent)
    sys.stdout.flush()
    command = door_command(root, agent)
    os.execv(command[0], command)  # noqa: S606  # no shell


def check_door(root: Path, name: str) -> None:
    """Refuse the door of an agent to a process that is not its own, or where there is nothing to serve with.

    Raises:
        IdentityRefused, ExtraMissing
    """
    _fitting(root, _seen(root, os.getpid()), name)
    if status(root) is None:
        check_installed()


def door_command(root: Path, agent: str) -> tuple[str, ...]:
    """Return the command of an agent's door."""
    return launch_door.command_of(root, agent)


def check_installed() -> None:
    """Refuse where the extra is not installed.

    Raises:
        ExtraMissing
    """
    if not launch_door.is_installed():
        raise ExtraMissing("the MCP door needs the library `mcp`, which is not installed with swarm")


def status(root: Path) -> ServerStatus | None:
    """Return the living server of a repository."""
    return server_status(_state(root))


class Pool:
    """Repositories as agents use them, each kept for the next call of the same agent."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._free: dict[_Key, list[tuple[float, Swarm]]] = {}
        self._mutex = threading.Lock()

    @contextmanager
    def lend(self, who: Identity, pid: int) -> Iterator[Swarm]:
        """Give one that nobody else uses.

        Args:
            pid: of the process in which the agent was seen; 0: a token showed it.
        """
        key = _key(who)
        began, swarm = self._fresh(key) or (time.monotonic(), self._opened(who, pid))
        try:
            yield swarm
        finally:
            with self._mutex:
                self._free.setdefault(key, []).append((began, swarm))

    def _opened(self, who: Identity, pid: int) -> Swarm:
        tree = Swarm.open(self._root).tree
        swarm = tree.acting_for(pid) if pid else tree.acting_as(Parent(who.agent, who.session, who.generation))
        acting = swarm._opened.world.acting  # noqa: SLF001  # the same library
        if acting is None or _key(acting) != _key(who):
            raise IdentityRefused(f"cannot act as agent {who.address}: process {pid} is another one's by now")
        return swarm

    def _fresh(self, key: _Key) -> tuple[float, Swarm] | None:
        """Return one that is kept; those that are too old go."""
        now = time.monotonic()
        with self._mutex:
            kept = {one: [pair for pair in free if now - pair[0] < _FRESH] for one, free in self._free.items()}
            self._free = {one: free for one, free in kept.items() if free}
            free = self._free.get(key)
            return free.pop() if free else None


def _key(who: Identity) -> _Key:
    return who.run_dir, who.generation, who.program_pid, who.program_start


class Client:
    """An agent that calls through a connection; each act is done as that agent, while it is seen.

    Args:
        pid: the process at the other end, or this one; 0: its token shows the agent, as long as that runs.
    """

    def __init__(self, pool: Pool, root: Path, who: Identity, pid: int) -> None:
        self.root = root
        self.address = who.address
        self._run = (who.run_dir, who.generation)
        self._pool = pool
        self._pid = pid
        self._start = processes.start_of(pid) if pid else None

    def act(self, do: Callable[[Swarm], T]) -> T:
        """Do something as the agent, in this thread.

        Raises:
            IdentityRefused: the agent is gone, or is another one by now.
        """
        who = self._who()
        if who is None or (who.run_dir, who.generation) != self._run:
            raise IdentityRefused(f"cannot act as agent {self.address}: its process is gone, or another one's by now")
        with self._pool.lend(who, self._pid) as swarm:
            return do(swarm)

    @property
    def prints(self) -> bool:
        """Whether its program does its task and ends: it is never idle, and nothing wakes it."""
        return agent_processes.facts(Path(self._run[0])).prints

    def note_opened(self) -> None:
        """Write down that the agent's program has its tools, for what waits for that; a full disk changes nothing."""
        with suppress(OSError):
            files.write_atomic(Path(self._run[0], OPENED), b"", durable=False)

    def _who(self) -> Identity | None:
        if not self._pid:
            return identity.of_run_folder(self._run[0])
        lives = self._start is not None and processes.start_of(self._pid) == self._start
        return _seen(self.root, self._pid) if lives else None


def _state(root: Path) -> Path:
    """Return where the state of a repository, or of a swarm directory outside of one, is kept."""
    return Path(records.state_of(str(root)))


# --- who calls ------------------------------------------------------------------------------------------


def itself(root: Path, name: str) -> Client:
    """Return the agent to which this process belongs.

    Args:
        name: what it is said to be; empty: nothing is said.

    Raises:
        IdentityRefused: it is not the named one, or none at all.
    """
    return peer(Pool(root), root, os.getpid(), name)


def peer(pool: Pool, root: Path, pid: int, name: str) -> Client:
    """Return the agent whose process is at the other end.

    Args:
        name: as for ``itself``.

    Raises:
        IdentityRefused
    """
    return Client(pool, root, _fitting(root, _seen(root, pid), name), pid)


def bearer(pool: Pool, root: Path, name: str, token: str, pids: Sequence[int] | None) -> Client:
    """Return the agent that shows its token, from a process of its own.

    Args:
        pids: the processes at the other end; None where the machine cannot tell, and the token decides.

    Raises:
        IdentityRefused
    """
    agent, session = _names(name)
    given = token.encode()
    known = (one for one in _living(root, agent, session) if hmac.compare_digest(token_of(one.run_dir), given))
    who = next(known, None) if given else None
    if who is None:
        raise _refusal(root, f"cannot act as agent {name}: the token is not that of a running agent of this name")
    for pid in pids or ():
        seen = _seen(root, pid)
        if seen is None or seen.run_dir != who.run_dir:
            whose = "no agent" if seen is None else f"agent {seen.address}"
            raise _refusal(root, f"cannot act as agent {who.address}: its token came from a process of {whose}")
    if pids == []:
        raise _refusal(root, f"cannot act as agent {who.address}: its token came from a process that cannot be seen")
    return Client(pool, root, who, pids[0] if pids else 0)


def _seen(root: Path, pid: int) -> Identity | None:
    """Return the agent to which a process belongs."""
    return identity.whoami(None if pid == os.getpid() else {}, pid, str(_state(root)))


def connected(port: int, server_port: int) -> list[int] | None:
    """Return the processes that hold the client's end of a connection on this machine; None where that is not seen."""
    from swarm.machine.sockets import connections

    return connections.holders(port, server_port) if processes.HAS_PROC else None


def _fitting(root: Path, who: Identity | None, name: str) -> Identity:
    """Return the agent that a process belongs to, if it is the one that is named, and of this repository."""
    agent, session = _names(name) if name else ("", "")
    if who is None:
        called = f"agent {name}" if name else "an agent"
        raise _refusal(root, f"cannot act as {called}: this process belongs to no agent")
    same = agent.casefold() in ("", who.agent.casefold()) and session.casefold() in ("", who.session.casefold())
    if not same or not _is_here(root, who):
        raise _refusal(root, f"cannot act as agent {name}: this process belongs to agent {who.address}")
    return who


def _is_here(root: Path, who: Identity) -> bool:
    try:
        return os.path.samefile(who.state, _state(root))
    except OSError:
        return False


def _names(name: str) -> tuple[str, str]:
    agent, at, session = name.partition("@")
    return check_name("agent", agent), check_session(session) if at else ""


def _living(root: Path, agent: str, session: str) -> Iterator[Identity]:
    """Give the running agents of a name."""
    sessions = _state(root) / "sessions"
    for folder in [session] if session else sorted(os.listdir(sessions) if sessions.is_dir() else ()):
        who = identity.of_run_folder(f"{sessions}/{folder}/run/{agent}")
        if who is not None:
            yield who


def _refusal(root: Path, text: str) -> SwarmError:
    """Write down a refusal, and return its error."""
    server.note_refusal(_state(root), text)
    return IdentityRefused(text)
