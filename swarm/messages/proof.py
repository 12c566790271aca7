"""The proof that a message is the user's: a code that the sending process makes and readers check."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from swarm.bus.addressing import USER
from swarm.bus.message import encode
from swarm.kit.errors import SwarmError
from swarm.project.proof import Proof

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from swarm.bus.message import Message
    from swarm.bus.protocol import Stored
    from swarm.callers.caller import Caller

_KIND = "message"
#: In the metadata: by what the user sent it, if not by hand; the code; that it has none that is right.
VIA, CODE, UNPROVEN = "via", "mac", "unproven"
SCRIPT = "script"
OWN = frozenset({VIA, CODE, UNPROVEN})


def way_of(state: str, environ: Mapping[str, str], calling: Caller | None = None) -> dict[str, Any]:
    """Return the mark of the caller for a message of the user's: empty for a person.

    Args:
        calling: who calls; default: this process.
    """
    from swarm.callers import caller

    found = calling or caller.caller_of(state, environ)
    if found.kind == caller.PERSON:
        return {}
    return {VIA: f"grant:{found.grant}" if found.grant else SCRIPT}


def sealed(state: str, message: Message) -> Message:
    """Return a message of the user's, with its id and its recipient, with the code that shows it."""
    code = Proof(Path(state)).of(_KIND, _said(message))
    return message._replace(metadata={**message.metadata, CODE: code})


def checked(state: str, message: Message) -> Message:
    """Return a message as it is to be shown: one that says it is the user's without a right code is marked."""
    if message.sender != USER:
        return message
    try:
        good = Proof(Path(state)).holds(_KIND, _said(message), message.metadata.get(CODE))
    except (SwarmError, OSError):
        good = False
    return message if good else message._replace(metadata={**message.metadata, UNPROVEN: True})


def checked_stored(state: str, stored: Stored) -> Stored:
    """Do the same with a message and where it is."""
    return stored._replace(message=checked(state, stored.message))


def _said(message: Message) -> dict[str, Any]:
    """Return the text under the code: without the time, and without the run of the recipient."""
    metadata = {key: value for key, value in message.metadata.items() if key not in (CODE, UNPROVEN)}
    return {"message": encode(message._replace(metadata=metadata, time_ms=1, generation="")).decode()}
