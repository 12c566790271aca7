"""Attachments: stored once per content hash, kept while a message refers to them.

The lock of their folder is held alone by who removes some (``unused.py``), shared by all for whom one must stay.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.bus.errors import AttachmentProblem
from swarm.bus.log.files import locked_folder
from swarm.kit import files
from swarm.machine import atomic, locks, own

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO

    from swarm.bus.log.files import Patience

_CHUNK = 1 << 20
_SUM = re.compile("[0-9a-f]{64}")
MOST = 1 << 30


def keep(folder: Path, source: Path | bytes, name: str, most: int = MOST) -> dict[str, Any]:
    """Copy a file or bytes; durable when this returns.

    Raises:
        AttachmentProblem: no regular file, or larger than *most*.
        OSError: it cannot be read, or not be written.
    """
    import io

    if isinstance(source, bytes):
        return _keep(folder, io.BytesIO(source), name, most)
    fd = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise AttachmentProblem(f"cannot attach {source}: it is not a regular file")
        return _keep(folder, file, name or source.name, most)


def _keep(folder: Path, file: BinaryIO | Any, name: str, most: int) -> dict[str, Any]:
    import hashlib

    _make(folder)
    temporary = Path(atomic.temporary_of(os.fspath(folder / "copy")))
    digest = hashlib.sha256()
    size = 0
    fd = own.open(os.fspath(temporary), atomic.NEW, 0o600)
    try:
        try:
            locks.lock(fd)  # until it has its name: so that no process takes it for a leftover
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                if size > most:
                    raise AttachmentProblem(f"cannot attach {name}: it is larger than {most} bytes")
                digest.update(chunk)
                files.write_all(fd, chunk)
            atomic.sync_file(fd)
            with locked_folder(os.fspath(folder), shared=True):
                own.replace(os.fspath(temporary), os.fspath(folder / digest.hexdigest()))
        finally:
            os.close(fd)
    except BaseException:
        files.unlink_if_there(temporary)
        raise
    files.sync_folder(folder)
    return {"sha256": digest.hexdigest(), "size": size, "name": name}


@contextlib.contextmanager
def staying(folder: str, patience: Patience = None) -> Iterator[None]:
    """Prevent the removal of attachments during a block."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(FileNotFoundError):  # there are none
            stack.enter_context(locked_folder(folder, patience, shared=True))
        yield


@contextlib.contextmanager
def in_use(folder: str, artifacts: Iterable[dict[str, Any]], patience: Patience = None) -> Iterator[None]:
    """Make sure that the attachments of a message exist and stay until the message is in its box.

    Raises:
        AttachmentProblem: one is missing.
    """
    with staying(folder, patience):
        for one in artifacts:
            if _is_copy(one) and not os.path.lexists(f"{folder}/{one['sha256']}"):
                name = str(one["name"])[:60]
                raise AttachmentProblem(f"the attachment {name!a} is not kept any longer", hint="attach it again")
        yield


def _is_copy(artifact: Any) -> bool:
    """Whether an artifact is a copy made by ``keep``. Any other form is the sender's own, and may be anywhere."""
    ours = isinstance(artifact, dict) and artifact.keys() == {"sha256", "size", "name"}
    return ours and _SUM.fullmatch(str(artifact["sha256"])) is not None


def get(folder: Path, artifact: dict[str, Any]) -> Path:
    """Return where the copy is, after reading all of it.

    Raises:
        AttachmentProblem: there is none, or it is not what was attached.
    """
    import hashlib

    wanted = str(artifact.get("sha256", ""))
    if _SUM.fullmatch(wanted) is None:
        raise AttachmentProblem(f"not an attachment: {str(artifact)[:80]!a}")
    path = folder / wanted
    try:
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise AttachmentProblem(f"the attachment {wanted} is missing") from None
    if found != wanted:
        raise AttachmentProblem(f"the attachment {wanted} is damaged")
    return path


def _make(folder: Path) -> None:
    try:
        own.mkdir(os.fspath(folder), 0o700)
    except FileExistsError:
        return
    files.sync_folder(folder.parent)
