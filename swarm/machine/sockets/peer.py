"""Which user is at the other end of a unix socket, as the kernel tells."""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

#: The numbers of macOS, which Python does not name: the level of local sockets, and the option.
_LOCAL, _PEERCRED = 0, 1


def is_ours(one: socket.socket) -> bool:
    """Whether the other end is this user, or root."""
    return uid(one) in (os.geteuid(), 0)


def uid(one: socket.socket) -> int:
    """Return the user; -1 where the system does not tell."""
    import socket  # whoever has a socket has it loaded

    option = getattr(socket, "SO_PEERCRED", None)
    try:
        if option is not None:
            return int(struct.unpack("iii", one.getsockopt(socket.SOL_SOCKET, option, 12))[1])
        return int(struct.unpack("II", one.getsockopt(_LOCAL, _PEERCRED, 8))[1])
    except (OSError, struct.error):
        return -1
