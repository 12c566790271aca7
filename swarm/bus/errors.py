"""Errors about messages."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_TRY_AGAIN, EXIT_USAGE, SwarmError


class BusProblem(SwarmError):
    """swarm could not send, take or finish a message."""

    code = "BUS"
    default_hint = "fix the problem in the message, then try again"


class MessageProblem(BusProblem):
    """The message is not valid: too long, not text, or without a recipient."""

    code = "MESSAGE"
    exit_code = EXIT_USAGE
    default_hint = "fix the named part, and send it again"


class IdTaken(BusProblem):
    """Another message, with another sender or text, has this id."""

    code = "ID_TAKEN"
    exit_code = EXIT_EXISTS
    default_hint = "choose another id, or none; `swarm message ID` shows the other message"


class QuotaReached(BusProblem):
    """The inbox is full; swarm added nothing."""

    code = "QUOTA"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "try again after its reader has finished some messages"


class InboxNotFound(BusProblem):
    """No inbox or queue of this name."""

    code = "INBOX_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "starting a session makes the inboxes of its agents"


class ClaimLost(BusProblem):
    """The claim ended: its lease expired or its holder ended, and swarm returned the messages."""

    code = "CLAIM_LOST"
    exit_code = EXIT_NOT_FOUND
    default_hint = "take the messages again; claim them for longer, or extend the claim while you work"


class MessageNotFound(BusProblem):
    """No message of this id."""

    code = "MESSAGE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm inbox` shows the ids of its messages"


class NothingToTake(BusProblem):
    """The queue has no ready task: it is empty, or its tasks are taken or depend on others."""

    code = "NOTHING_TO_TAKE"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "`swarm queue list` shows the tasks; wait for one with --wait 10m"


class AttachmentProblem(BusProblem):
    """An attachment is too large, missing or changed."""

    code = "ATTACHMENT"
    default_hint = "ask the sender to attach it again"
