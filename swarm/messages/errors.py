"""Errors of the post office."""

from __future__ import annotations

from swarm.bus.errors import AttachmentProblem, BusProblem
from swarm.kit.errors import EXIT_EXISTS, EXIT_TRY_AGAIN


class SentInPart(BusProblem):
    """Some recipients got the message, others did not.

    ``facts`` tell the ``id``, the ``sender``, who has it (``sent``), and the ``problems``: an error for each other one,
    whose ``facts["to"]`` names it.
    """

    code = "SENT_IN_PART"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "send it again under the same id to the recipients without it"


class TooManyMessages(BusProblem):
    """An agent in a box has sent as many messages within an hour as it may; nothing was sent."""

    code = "TOO_MANY_MESSAGES"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait, and say more in fewer messages; the limit is the setting sandbox.messages"


class AttachmentExists(AttachmentProblem):
    """A file already exists at the destination of an attachment."""

    code = "ATTACHMENT_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "choose another folder"
