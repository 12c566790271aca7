"""Copy a message's attachments into files of the reader."""

from __future__ import annotations

import os
import shutil
from itertools import chain, count
from typing import TYPE_CHECKING

from swarm.bus.errors import AttachmentProblem
from swarm.kit import files
from swarm.messages.errors import AttachmentExists

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from swarm.bus.message import Message
    from swarm.bus.protocol import PostBus


def save(bus: PostBus, message: Message, folder: Path) -> tuple[Path, ...]:
    """Copy a message's attachments into a folder under their names; replace no file.

    Raises:
        AttachmentExists: a file of that name is there.
        AttachmentProblem: nothing is attached, or something is damaged or not kept any longer.
    """
    wanted = _named([one for one in message.artifacts if "sha256" in one])
    if not wanted:
        raise AttachmentProblem(f"nothing is attached to message {message.id}", hint="")
    for name in wanted:
        if files.exists(folder / name):
            raise AttachmentExists(f"{folder / name} is there already")
    with bus.attachments_stay():
        kept = {name: bus.attachment(artifact) for name, artifact in wanted.items()}
        folder.mkdir(parents=True, exist_ok=True)
        return tuple(_copy(path, folder / name) for name, path in kept.items())


def _named(artifacts: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return attachments by their file names; a sender's name for one is no path."""
    found: dict[str, dict[str, Any]] = {}
    for number, artifact in enumerate(artifacts, 1):
        name = os.path.basename(str(artifact.get("name", "")))
        if not name.strip(".") or not name.isprintable() or len(os.fsencode(name)) > 200:
            name = f"attachment-{number}"
        free = (one for one in chain([name], (f"{again}-{name}" for again in count(number))) if one not in found)
        found[next(free)] = artifact
    return found


def _copy(source: Path, target: Path) -> Path:
    with source.open("rb") as file, target.open("xb") as copy:
        try:
            shutil.copyfileobj(file, copy)
        except BaseException:
            files.unlink_if_there(target)
            raise
    return target
