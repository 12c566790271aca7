"""Turn files that a foreign program put into ``drop/`` into messages.

A file whose name begins with a dot or ends in ``.tmp`` or ``.part``, that is empty, or that somebody
still has open for writing is not finished and waits.  What cannot become a message goes to ``bad/``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
from typing import TYPE_CHECKING
from zlib import crc32

from swarm.bus.errors import MessageProblem, QuotaReached
from swarm.bus.message import DROP, MAX_EXTRA, Message, decode
from swarm.bus.wire import MAX_TEXT
from swarm.kit.errors import EnvironmentProblem, SwarmError
from swarm.machine import own
from swarm.machine.atomic import sync_folder
from swarm.machine.inbox_watch import dropped
from swarm.project.errors import Locked

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.bus.box import Box
    from swarm.bus.protocol import Receipt

_MOST = 6 * MAX_TEXT + MAX_EXTRA
#: Bytes of the name under which a file is kept that was refused; ``.why`` comes behind it.
_NAME = 200


def take_in(box: Box, send: Callable[[Message], Receipt]) -> None:
    """Send each file of the drop folder once; if the box is full, the rest stays there."""
    folder = box.folder + "/drop"
    for name in dropped(box.folder):
        path = f"{folder}/{name}"
        try:
            message = _read(path, box.address)
        except FileNotFoundError:
            continue  # another reader was faster
        except (OSError, MessageProblem) as error:
            _refuse(box, name, str(error))
            continue
        if message is None:
            continue
        try:
            send(message)
        except QuotaReached:
            return
        except (EnvironmentProblem, Locked):  # nothing is wrong with the file
            raise
        except SwarmError as error:
            _refuse(box, name, str(error))
            continue
        try:
            own.unlink(path)
        except FileNotFoundError:
            continue
        sync_folder(folder)


def _read(path: str, address: str) -> Message | None:
    """Return the message in a file; None while it is being written."""
    fd = own.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise MessageProblem("it is not a regular file")
        if info.st_size == 0 or _is_being_written(fd):
            return None
        data = os.pread(fd, _MOST + 1, 0)
    finally:
        os.close(fd)
    if len(data) > _MOST:
        raise MessageProblem(f"it is larger than {MAX_TEXT} bytes")
    # The same file taken in twice, after a kill half way, is the same message.
    own_id = f"drop-{info.st_ino:x}-{info.st_mtime_ns:x}-{crc32(data):08x}"
    if data.lstrip()[:1] == b"{":
        message = decode(data)
        claimed = {**message.metadata, "claimed_from": message.sender}
        # The right to write here does not prove the sender's name in the file.
        return message._replace(to=address, sender=DROP, id=message.id or own_id, metadata=claimed)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise MessageProblem(f"it is not UTF-8 text: {error}") from error
    return Message(to=address, sender=DROP, body=text, id=own_id)


def _is_being_written(fd: int) -> bool:
    """Whether a process has the file open for writing; False where the system cannot tell."""
    if not hasattr(fcntl, "F_SETLEASE"):
        return False
    try:
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)  # a signal that does nothing, should one open it just now
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)  # refused while there is a writer
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _refuse(box: Box, name: str, why: str) -> None:
    """Put a file into ``bad/``, with the reason; one that cannot be moved stays, and keeps no other from its turn.

    Raises:
        OSError: the disk fails, which has nothing to do with the file.
    """
    try:
        _set_aside(box, name, why)
    except OSError as error:
        if error.errno == errno.EIO:
            raise


def _set_aside(box: Box, name: str, why: str) -> None:
    path = f"{box.folder}/drop/{name}"
    try:
        info = os.lstat(path)
    except FileNotFoundError:
        return
    kept = os.fsencode(f"drop-{info.st_ino:x}-{info.st_mtime_ns:x}-{name}")[:_NAME].decode(errors="ignore")
    box.keep_bad(kept, f"{name}: {why}\n")
    try:
        own.rename(path, f"{box.folder}/bad/{kept}")
    except FileNotFoundError:
        return
    sync_folder(f"{box.folder}/bad")
    sync_folder(f"{box.folder}/drop")
