"""The program in a pane that becomes bubblewrap: it hands over options and filter by descriptors, and no other.

Run by its path, by a Python that has nothing but the standard library: notes, then the command for inside.
Environment values stand in the options, and what stands in a command line can be read by everybody with ``ps``.

A box has a network of its own, in which nothing is.  Where notes name ports, a helper enters that network before the
program starts, listens there, and hands the listening descriptors to the supervisor, whose proxy serves them:

    enter ─ becomes ─► bubblewrap ──── waits ────► program
      └─ helper ── network of the box ── listens ──┘ └── descriptors by NETWORK_FD ──► supervisor
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

#: The variable with the descriptor of the supervisor's socket.
NETWORK_FD = "SWARM_NETWORK_FD"
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
#: Asks the network for the user namespace that it belongs to.
_OWNER = 0xB701
_SAID = 1 << 16


def descriptor(name: str, data: bytes) -> int:
    """Return a descriptor from which a started program can read *data*."""
    fd = os.memfd_create(name, 0)  # without the flag that closes it: the program inherits it
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def with_network(ports: list[int], to: int) -> list[str]:
    """Start the helper, and return bubblewrap's options for it. Without its word the box starts with no network."""
    told, tell = os.pipe()
    go, let_go = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(tell)
        os.close(go)
        if os.fork() == 0:  # the supervisor adopts it: bubblewrap's children are the box's alone
            _help(told, let_go, to, ports)
        os._exit(0)
    os.waitpid(pid, 0)
    for fd in (told, let_go, to):
        os.close(fd)
    for fd in (tell, go):
        os.set_inheritable(fd, True)  # noqa: FBT003
    return ["--info-fd", str(tell), "--block-fd", str(go)]


def _help(told: int, let_go: int, to: int, ports: list[int]) -> None:
    """Listen in the box's network and hand on what listens. Never returns."""
    import socket

    with contextlib.suppress(BaseException), socket.socket(fileno=to) as supervisor:
        try:
            said = b""
            while piece := os.read(told, _SAID):
                said += piece
                if b"}" in piece:
                    break
            made = _listen(int(json.loads(said)["child-pid"]), ports)
            socket.send_fds(supervisor, [b"listening"], [one.fileno() for one in made])
            os.write(let_go, b"1")
        except (OSError, ValueError, KeyError) as error:
            supervisor.send(f"{type(error).__name__}: {error}".encode()[:200])
    os._exit(0)


def _listen(pid: int, ports: list[int]) -> list[socket.socket]:
    """Listen on the loopback of a process' network."""
    import ctypes
    import fcntl
    import socket

    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    owner = fcntl.ioctl(network, _OWNER)
    library = ctypes.CDLL(None, use_errno=True)
    for fd, kind in ((owner, _NEW_USER), (network, _NEW_NET)):
        if library.setns(fd, kind):
            raise OSError(ctypes.get_errno(), "setns")
    return [socket.create_server(("127.0.0.1", port), backlog=128) for port in ports]


def main(argv: list[str]) -> None:
    """Read the notes and become bubblewrap."""
    with open(argv[1], encoding="utf-8") as file:
        notes = json.load(file)
    # An open folder would be a way out of the box, and bubblewrap closes nothing.
    ports = notes.get("ports") or []
    to = int(os.environ.get(NETWORK_FD) or -1) if ports else -1
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != to:
            with contextlib.suppress(OSError):  # one is that by which the list was read
                os.close(int(name))
    given = list(notes["options"])
    for name in notes["passes"]:
        if name in os.environ:
            given += ["--setenv", name, os.environ[name]]
    if to >= 0:
        given += with_network(ports, to)
    given += ["--seccomp", str(descriptor("filter", bytes.fromhex(notes["filter"])))]
    options = descriptor("options", os.fsencode("\0".join(given)))
    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    # Without an environment: bubblewrap stays in the box as its first process, and there `/proc/1/environ` shows it.
    os.execve(notes["program"], ["bwrap", "--args", str(options), "--", *argv[2:]], {})  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(sys.argv)
