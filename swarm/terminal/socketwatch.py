"""Check that a tmux server still owns its socket, and restore it.

A server whose socket was taken away lives on with all its panes, and nobody can talk to it: somebody cleaned
up the folder, or another server took the place while this one was being started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
import time

#: How often a server is asked for a new socket, and how many seconds it has for each.
_TRIES, _PAUSE = 50, 0.02
#: macOS: whom the other end of a socket belongs to.
_SOL_LOCAL, _LOCAL_PEERPID = 0, 2


def listener(path: str) -> int:
    """Return the pid of the server that listens on a socket; 0 when none does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        try:
            client.connect(path)
        except OSError:
            return 0
        if sys.platform == "darwin":
            return client.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
        found: int = struct.unpack("3i", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
        return found


def hold(path: str, server: int) -> bool:
    """Make sure that a server is the one on its socket; false when it has ended, or another has taken the place.

    tmux makes its socket again when it gets SIGUSR1.
    """
    for _ in range(_TRIES):
        holder = listener(path)
        if holder:
            return holder == server
        if not os.path.isdir(os.path.dirname(path)):
            with contextlib.suppress(OSError):
                os.mkdir(os.path.dirname(path), 0o700)
        try:
            os.kill(server, signal.SIGUSR1)
        except OSError:
            return False
        time.sleep(_PAUSE)
    return False
