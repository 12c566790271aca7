"""Names, numbers and times as swarm writes and reads them, for the doors that show its results."""

from __future__ import annotations

from swarm.kit.words import count as count  # noqa: PLC0414  # offered here
from swarm.kit.words import iso as iso  # noqa: PLC0414  # offered here
from swarm.project.targets import split_agent as split_agent  # noqa: PLC0414  # offered here


def milliseconds_from(text: str) -> int:
    """Read a time with a unit, such as ``24h``.

    Raises:
        ValueError: it is none.
    """
    from swarm.kit import scalars

    return scalars.milliseconds_from(text)


def show_bytes(size: int) -> str:
    """Return a size in its shortest spelling, such as ``1GiB``."""
    from swarm.kit import scalars

    return scalars.show_bytes(size)


def show_seconds(seconds: float) -> str:
    """Return a time in its shortest spelling, such as ``120s`` or ``24h``."""
    from swarm.kit import scalars

    return scalars.show_seconds(seconds)
