"""Report a message that only some recipients got, and how to send it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from swarm.kit.errors import EXIT_ENVIRONMENT, EXIT_TRY_AGAIN, Refused
from swarm.messages.errors import SentInPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.bus.message import Message
    from swarm.kit.errors import SwarmError
    from swarm.messages.office.post import Sent


def raise_refused(message: Message, sent: Sequence[Sent], refused: Sequence[SwarmError]) -> NoReturn:
    """Raise an error that names the recipients without the message.

    Args:
        refused: a problem for each, whose facts name whom it is about (``to``).

    Raises:
        SwarmError, Refused: nobody has it.
        SentInPart: some have it.
    """
    if not sent:
        for error in refused:
            name_id(error, message.id or str(error.facts.get("id", "")))
        if len(refused) == 1:
            raise refused[0]
        raise Refused(f"cannot send to anybody: {'; '.join(error.message for error in refused)}", refused)
    to = [str(error.facts["to"]) for error in refused]
    for name, error in zip(to, refused, strict=True):
        error.preface(name)
    raise SentInPart(
        f"could not send to {len(to)} of {len(to) + len(sent)}: {'; '.join(error.message for error in refused)}",
        hint=f"send the same again, to those alone: swarm send {','.join(to)} TEXT --id {message.id}",
        id=message.id,
        sender=message.sender,
        sent=tuple(sent),
        problems=tuple(refused),
    )


def name_id(error: SwarmError, message_id: str) -> None:
    """Let the hint name the id of a message that may be sent again: after an error it may have arrived all the same."""
    if message_id and error.exit_code in (EXIT_TRY_AGAIN, EXIT_ENVIRONMENT):
        error.hint = f"{error.hint}; sent again with --id {message_id} no recipient gets it twice"
