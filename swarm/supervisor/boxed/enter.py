"""Become bubblewrap: options and filter are handed over by descriptors, and no other descriptor is.

A supervisor's child does it in place of its program.  In a cgroup of its own (`systemd-run`) this file is run by its
path, by a Python that has nothing but the standard library: notes, then the command for inside.
A start waits for this, so it loads little, and what the helper loads is loaded while bubblewrap begins.
Environment values stand in the options, and what stands in a command line can be read by everybody with ``ps``.

A box has a network of its own, in which nothing is.  Where notes name ports, a helper enters that network before the
program starts, listens there, and hands the listening descriptors to the supervisor, whose proxy serves them:

    enter ─ becomes ─► bubblewrap ──── waits ────► program
      └─ helper ── network of the box ── listens ──┘ └── descriptors by NETWORK_FD ──► supervisor
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes
    import socket
    from collections.abc import Iterable, Mapping, Sequence

#: The variable with the descriptor of the supervisor's socket.
NETWORK_FD = "SWARM_NETWORK_FD"
#: That with the descriptor into which bubblewrap says that it made the box, and how the program ended.
MADE_FD = "SWARM_MADE_FD"
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
#: Asks the network for the user namespace that it belongs to.
_OWNER = 0xB701
_SAID = 1 << 16
_STAMP = b"SWARM_AGENT_ID"
_DEATH_SIGNAL = 1
#: Ends with what bubblewrap says of the box.
_CHILD = b'"child-pid":'
_END = "\0"


def notes(program: str, options: Iterable[str], calls: bytes, passes: Iterable[str], ports: Iterable[int]) -> str:
    """Return what `become` reads. No word of it has a NUL.

    Args:
        options: of bubblewrap.
        calls: the filter of system calls.
        passes: variables of the pane.
        ports: at which the box's proxy is to be served; none: the box has no network.
    """
    return _END.join((program, calls.hex(), " ".join(map(str, ports)), " ".join(passes), *options))


def descriptor(name: str, data: bytes) -> int:
    """Return a descriptor from which a started program can read *data*."""
    fd = os.memfd_create(name, 0)  # without the flag that closes it: the program inherits it
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def with_network(ports: list[int], to: int, kept: int) -> list[str]:
    """Start the helper, and return bubblewrap's options for it. Without its word the box starts with no network."""
    told, tell = os.pipe()
    go, let_go = os.pipe()
    pid = os.fork()
    if pid == 0:
        for fd in (tell, go, *([kept] if kept >= 0 else [])):
            os.close(fd)
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
    try:
        import ctypes
        import fcntl  # noqa: F401  # as long as bubblewrap begins
        import socket

        library = ctypes.CDLL(None, use_errno=True)
        with socket.socket(fileno=to) as supervisor:
            try:
                said = b""
                while piece := os.read(told, _SAID):
                    said += piece
                    if b"}" in piece:
                        break
                pid = int(said.partition(_CHILD)[2].split(b",")[0].strip(b" }\n"))
                made = _listen(pid, ports, library)
                socket.send_fds(supervisor, [b"listening"], [one.fileno() for one in made])
                os.write(let_go, b"1")
            except (OSError, ValueError) as error:
                supervisor.send(f"{type(error).__name__}: {error}".encode()[:200])
    finally:
        os._exit(0)


def _listen(pid: int, ports: list[int], library: ctypes.CDLL) -> list[socket.socket]:
    """Listen on the loopback of a process' network."""
    import ctypes
    import fcntl
    import socket

    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    owner = fcntl.ioctl(network, _OWNER)
    for fd, kind in ((owner, _NEW_USER), (network, _NEW_NET)):
        if library.setns(fd, kind):
            raise OSError(ctypes.get_errno(), "setns")
    return [socket.create_server(("127.0.0.1", port), backlog=128) for port in ports]


def end_with(parent: int) -> None:
    """Let this process, which becomes bubblewrap, end with its supervisor: bubblewrap's own way begins late."""
    import ctypes
    import signal

    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it ended before


def instead_of(argv: Sequence[bytes], environ: Mapping[bytes, bytes], kept: int) -> None:
    """Become bubblewrap where a command runs this file: what another Python would do, without its beginning.

    Raises:
        OSError
    """
    if list(argv[1:4]) == [b"-I", b"-S", os.fsencode(__file__)]:
        become(argv[4], argv[5:], environ, kept)


def become(file: str | bytes, words: Sequence[str | bytes], environ: Mapping[bytes, bytes], kept: int = -1) -> None:
    """Read the notes and become bubblewrap.

    Args:
        words: the command for inside.
        environ: what a box takes from its pane, and the number of the supervisor's socket.
        kept: a descriptor that closes by itself when this process becomes bubblewrap.

    Raises:
        OSError
    """
    with open(file, encoding="utf-8", errors="surrogateescape", newline="") as opened:
        program, calls, listening, passes, *given = opened.read().split(_END)
    # An open folder would be a way out of the box, and bubblewrap closes nothing.
    ports = [int(port) for port in listening.split()]
    to = int(environ.get(NETWORK_FD.encode(), -1)) if ports else -1
    made = int(environ.get(MADE_FD.encode(), -1))
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in (to, made, kept):
            try:
                os.close(int(name))
            except OSError:
                continue  # one is that by which the list was read
    for name in passes.split():
        if os.fsencode(name) in environ:
            given += ["--setenv", name, os.fsdecode(environ[os.fsencode(name)])]
    if to >= 0:
        given += with_network(ports, to, kept)
    if made >= 0:
        given += ["--json-status-fd", str(made)]  # which bubblewrap keeps outside of the box
    given += ["--seccomp", str(descriptor("filter", bytes.fromhex(calls)))]
    options = descriptor("options", os.fsencode("\0".join(given)))
    import signal  # with what it loads it takes longer than all else here: the helper is at work by now

    for signum in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(signum, signal.SIG_IGN)
    # Almost without an environment: bubblewrap stays in the box as its first process, and there `/proc/1/environ`
    # shows it. By the stamp `swarm stop` finds one that was killed halfway, which waits for its other half for ever.
    kept_env = {name: value for name, value in environ.items() if name == _STAMP}
    os.execve(program, ["bwrap", "--args", str(options), "--", *words], kept_env)  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    become(sys.argv[1], sys.argv[2:], os.environb)
