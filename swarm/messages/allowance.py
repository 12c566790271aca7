"""The messages that an agent in a box may send: as many in an hour as its session's record says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.machine.run_folder import runfiles
from swarm.messages.errors import TooManyMessages

if TYPE_CHECKING:
    from collections.abc import Mapping


def spend(run_dir: str, recipients: int = 1) -> None:
    """Count messages of an agent, if it is in a box with a limit.

    Args:
        run_dir: of the agent that sends.

    Raises:
        TooManyMessages
    """
    held: Mapping[str, object] = runfiles.read(run_dir, runfiles.HELD) or {}
    most = held.get("messages")
    if not isinstance(most, int) or most <= 0:
        return
    from swarm.machine.run_folder import sent  # few are in boxes
    from swarm.machine.run_folder.decisions import Decisions

    seconds = sent.spend(run_dir, most, recipients)
    if seconds:
        Decisions(run_dir).note("swarm", "messages", f"more than {most} in an hour", allowed=False)
        raise TooManyMessages(
            f"cannot send: an agent in this box may send {most} messages an hour, and the next one in {seconds:.0f} s"
        )
