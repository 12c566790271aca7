"""Ask agents for their status on their sockets, all at once; ``supervisor/status_socket.py`` answers.

A request and an answer are a line of JSON each:

    {"schema": 1, "type": "status"}
    {"schema": 1, "type": "status", "agent": {"name": "developer", "state": "idle", …}}
    {"schema": 1, "type": "error", "error": {"code": "BAD_REQUEST", "message": "…"}}
"""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import time
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from swarm.machine import records
from swarm.machine.sockets import peer
from swarm.machine.sockets.heard import Heard

if TYPE_CHECKING:
    from collections.abc import Mapping

Key = TypeVar("Key")
#: All sockets together may take so long.
WITHIN = 0.2
#: An answer has at most so many bytes.
_LONGEST = 64 << 10
_REQUEST = records.line({"schema": records.SCHEMA, "type": "status"})
#: A peer that is gone is an error, not a signal.
_QUIET = getattr(socket, "MSG_NOSIGNAL", 0)


class AgentInfo(NamedTuple):
    """What an agent's supervisor answers.

    Attributes:
        pod: empty outside a pod.
        state, detail, since_ms: concluded from the files of the agent; ``unknown`` without evidence.
        evidence: each with ``source``, ``text``, ``at_ms`` (0: now) and ``decides``.
        blocked: while it waits for permission: the ``tool``, the ``request`` that answers it, ``since_ms``.
        unread: messages that wait for it; None: they could not be counted.
    """

    name: str
    role: str
    session: str
    state: str
    pod: str = ""
    detail: str = ""
    since_ms: int = 0
    evidence: tuple[Mapping[str, Any], ...] = ()
    blocked: Mapping[str, Any] | None = None
    unread: int | None = None
    program: str = ""
    pid: int = 0


class Asking(Generic[Key]):
    """Some sockets, asked at once: the request goes out now, the answers are read later.

    Args:
        paths: each with a name of the caller's.
        within: seconds in which all of them must have answered.
    """

    def __init__(self, paths: Mapping[Key, str], within: float = WITHIN) -> None:
        self._until = time.monotonic() + within
        self._heard: dict[Key, Heard] = {}
        self._data: dict[Key, bytes] = {}
        self._selector = selectors.DefaultSelector()
        for name, path in paths.items():
            self._ask(name, path)

    def _ask(self, name: Key, path: str) -> None:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.settimeout(0)
        try:
            one.connect(path)
            if not peer.is_ours(one):
                raise PermissionError  # it is one of them
            one.send(_REQUEST, _QUIET)
        except (OSError, ValueError) as error:
            one.close()
            self._heard[name] = Heard(stale=_why(error), path=path)
        else:
            self._data[name] = b""
            self._selector.register(one, selectors.EVENT_READ, (name, path, one))

    def answers(self) -> dict[Key, Heard]:
        """Return what each has answered; those that have not until now get the rest of the time."""
        while self._selector.get_map():
            left = self._until - time.monotonic()
            ready = self._selector.select(max(0.0, left))
            for key, _ in ready:
                self._read(key)
            if not ready and left <= 0:
                break
        for key in list(self._selector.get_map().values()):
            self._end(key, Heard(stale="its supervisor does not answer", path=key.data[1]))
        self._selector.close()
        return self._heard

    def _read(self, key: selectors.SelectorKey) -> None:
        name, path, one = key.data
        try:
            piece = one.recv(_LONGEST)
        except OSError:
            piece = b""
        self._data[name] += piece
        if not piece or piece.endswith(b"\n") or len(self._data[name]) > _LONGEST:
            self._end(key, _heard(self._data[name], path))

    def _end(self, key: selectors.SelectorKey, heard: Heard) -> None:
        self._selector.unregister(key.fileobj)
        with contextlib.suppress(OSError):
            key.data[2].close()
        self._heard[key.data[0]] = heard


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens on its socket"
    if isinstance(error, FileNotFoundError):
        return "its socket is gone"
    if isinstance(error, BlockingIOError):
        return "its supervisor does not answer"
    if isinstance(error, PermissionError):
        return "its socket is not ours to ask"
    return f"its socket cannot be asked: {getattr(error, 'strerror', None) or error}"


def _heard(data: bytes, path: str) -> Heard:
    """Return what an answer says; anything that is not one is told as such."""
    if not data:
        return Heard(stale="its socket was closed without an answer", path=path)
    try:
        record = json.loads(data) if len(data) <= _LONGEST else None
    except (ValueError, RecursionError):
        record = None
    said = record if isinstance(record, dict) else {}
    known = (said.get("schema"), said.get("type")) == (records.SCHEMA, "status")
    info = _info(said.get("agent")) if known else None
    return Heard(info, "" if info else "its socket answers something else than a status", path)


def _info(said: object) -> AgentInfo | None:
    """Return an answer's agent; None unless every field is what it must be."""
    if not isinstance(said, dict):
        return None
    texts = {key: said.get(key, "") for key in ("name", "role", "session", "state", "pod", "detail", "program")}
    numbers = {key: said.get(key, 0) for key in ("since_ms", "pid")}
    evidence, blocked, unread = said.get("evidence", []), said.get("blocked"), said.get("unread")
    good = (
        all(isinstance(one, str) for one in texts.values())
        and all(type(one) is int for one in numbers.values())
        and isinstance(evidence, list)
        and all(isinstance(one, dict) for one in evidence)
        and (blocked is None or isinstance(blocked, dict))
        and (unread is None or type(unread) is int)
        and bool(texts["name"] and texts["session"] and texts["state"])
    )
    return AgentInfo(**texts, **numbers, evidence=tuple(evidence), blocked=blocked, unread=unread) if good else None
