"""Write files so that readers and crashes see all of them or nothing: the only ``fsync``, with one name for the moment.

A write is: private temporary file beside the target, sync, rename, sync of the folder.  A reader sees the old content
or the new, and after the call has returned a power cut does not undo it.  What a kill leaves behind is known by its
name, and swept.  `own.py` renames, below swarm's own folders through no link.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os

from swarm.machine import own

#: What becomes another file: private, and never one that is there already.
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_END, _DIGITS = ".tmp", 8
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def write_atomic(
    path: str | os.PathLike[str],
    data: bytes,
    mode: int = 0o600,
    *,
    durable: bool = True,
    name_too: bool = True,
    replace: bool = True,
) -> None:
    """Put *data* at *path* in one step: a reader, or a crash, sees all of it or the old content.

    Args:
        durable: sync it.
        name_too: sync the folder as well; else the caller does, or names it again.
        replace: an existing file; else it stays.

    Raises:
        FileExistsError: there is a file, which is not to be replaced.
        OSError: nothing changed; a temporary file may be left only by a kill.
    """
    whole = os.fspath(path)
    temporary = temporary_of(whole)
    fd = own.open(temporary, NEW, 0o600)
    try:
        try:
            os.fchmod(fd, mode)
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        (own.replace if replace else own.link)(temporary, whole)
    except BaseException:
        with contextlib.suppress(OSError):
            own.unlink(temporary)
        raise
    if not replace:
        own.unlink(temporary)
    if durable and name_too:
        sync_folder(os.path.dirname(whole))


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write every byte: the kernel may take fewer than asked."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_file(fd: int) -> None:
    """Make a file durable."""
    os.fsync(fd)


def sync_data(fd: int) -> None:
    """Make the content of a file durable.

    Raises:
        OSError: it may not be.  Trying again proves nothing: the kernel reports a failed write only once.
    """
    if _FULL_SYNC is None:
        os.fdatasync(fd)
    else:
        fcntl.fcntl(fd, _FULL_SYNC)  # macOS, where a plain sync leaves it in the disk's memory


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Make the names in a folder survive a power cut."""
    fd = own.folder(os.fspath(path))
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def temporary_of(path: str) -> str:
    """Return a name for the moment in which a file is written."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name}.{os.urandom(_DIGITS // 2).hex()}{_END}")


def is_temporary(entry: str, name: str = "") -> bool:
    """Whether a file's name is one that ``temporary_of`` gives.

    Args:
        name: that of the file which is written; else of any.
    """
    before, _, digits = entry.removesuffix(_END).rpartition(".")
    ours = entry.endswith(_END) and len(digits) == _DIGITS and not digits.strip("0123456789abcdef")
    return ours and (before == f".{name}" if name else len(before) > 1 and before[0] == ".")


def sweep_temporaries(path: str | os.PathLike[str], name: str = "") -> None:
    """Remove temporary files that kills in ``write_atomic`` left in a folder: those of the file *name*, else all."""
    folder = os.fspath(path)
    try:
        found = own.listdir(folder)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):  # behind a link is nothing of ours
            raise
        return
    for entry in found:
        if is_temporary(entry, name):
            with contextlib.suppress(FileNotFoundError):
                own.unlink(os.path.join(folder, entry))
