"""Serve one request of an agent in a box: ``python -P -m swarm.cli.forwarded ROOT PID``, the connection on stdin.

A supervisor starts this below itself, so that to every check it is the agent.  What is asked is done in a child, which
ends when the one who asks has gone.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from swarm import SwarmError
from swarm.api import forwarding

if TYPE_CHECKING:
    from swarm.machine.identity import Identity

_PATIENCE = 10.0
_BUG = 70


def main(words: Sequence[str]) -> int:
    """Serve and return the exit status."""
    root, peer = words
    with socket.socket(fileno=os.dup(0)) as connection:
        connection.settimeout(_PATIENCE)
        try:
            request = forwarding.receive(connection)
            answer = _answer(connection, request, root, int(peer))
            if answer is not None:
                forwarding.send(connection, answer)
        except OSError:
            return 1
    return 0


def _answer(connection: socket.socket, request: dict[str, Any], root: str, peer: int) -> dict[str, object] | None:
    """Do what is asked; None: the one who asked has gone."""
    try:
        me = forwarding.served(peer)
        os.environ.update(forwarding.words_of(me))
        if request.get("kind") == "mcp":
            _become_door(connection, Path(root), str(request["agent"]))
        if request.get("kind") == "state":
            forwarding.note_state(request, me)
            return {"code": 0}
        given, act = _asked(request, root, me)
        return _done(connection, given, act)
    except SwarmError as problem:
        return {"code": problem.exit_code, "err": forwarding.as_text(forwarding.told(problem))}
    except (KeyError, TypeError, ValueError) as error:
        return {"code": _BUG, "err": f"error: cannot read what was asked: {type(error).__name__}\n"}


def _asked(request: dict[str, Any], root: str, me: Identity) -> tuple[bytes, Callable[[], int]]:
    """Return what is to be done, and its input.

    Raises:
        NotInBox, KeyError, TypeError, ValueError
    """
    kind = request.get("kind")
    if kind == "door":
        return b"", lambda: forwarding.wait_for_door(me)
    if kind == "event":
        event, wait, env = forwarding.event_of(request, me)
        swarm = [sys.executable, "-P", "-m", "swarm", "-C", root, "hook", "deliver"] if wait else []
        words = [sys.executable, "-I", "-S", forwarding.HOOK, me.run_dir, *wait, *swarm]
        return event, lambda: os.execve(words[0], words, {**os.environ, **env})  # noqa: S606
    argv = os.fsdecode(forwarding.as_bytes(request["argv"])).split("\0")
    command = forwarding.command_of(argv, me)
    return forwarding.as_bytes(request.get("stdin", "")), lambda: _run(["-C", root, *command])


def _become_door(connection: socket.socket, root: Path, agent: str) -> NoReturn:
    """Be the agent's MCP door from now on, with the one who asked at its other end."""
    from swarm.api import serving

    serving.check_door(root, agent)
    command = serving.door_command(root, agent)
    forwarding.send(connection, {"code": 0})
    connection.setblocking(True)
    for fd in (0, 1):
        os.dup2(connection.fileno(), fd)
    os.execv(command[0], command)  # noqa: S606  # no shell


def _run(argv: list[str]) -> int:
    from swarm.cli.main import main as command

    return command(argv)


def _done(connection: socket.socket, given: bytes, act: Callable[[], int]) -> dict[str, object] | None:
    """Do something in a child with *given* as its input; return its end and what it printed."""
    fds = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("in", "out", "err")]
    os.write(fds[0], given)
    os.lseek(fds[0], 0, os.SEEK_SET)
    pid = os.fork()
    if pid == 0:
        _become(fds, act)
    gone = _wait(connection, pid)
    if gone:
        return None
    _, status = os.waitpid(pid, 0)
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
    out, err = (os.pread(fd, forwarding.LONGEST, 0) for fd in fds[1:])
    return {"code": code, "out": forwarding.as_text(out), "err": forwarding.as_text(err)}


def _become(fds: Sequence[int], act: Callable[[], int]) -> NoReturn:
    code = _BUG
    try:
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        code = act()
        sys.stdout.flush()
        sys.stderr.flush()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def _wait(connection: socket.socket, pid: int) -> bool:
    """Return when the child has ended; True: the one who asked went first, and the child was ended."""
    ended = os.pidfd_open(pid)
    try:
        ready, _, _ = select.select([ended, connection.fileno()], [], [])
        if ended in ready:
            return False
        os.kill(pid, signal.SIGTERM)
        if not select.select([ended], [], [], 2.0)[0]:
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return True
    finally:
        os.close(ended)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
