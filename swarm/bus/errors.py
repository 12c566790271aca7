"""Errors about messages."""

from __future__ import annotations

from swarm.kit.errors import EXIT_EXISTS, EXIT_NOT_FOUND, EXIT_TRY_AGAIN, EXIT_USAGE, SwarmError


class BusProblem(SwarmError):
    """A message could not be sent, taken or settled."""

    code = "BUS"
    default_hint = "look at what the message names, then try again"


class MessageProblem(BusProblem):
    """The message itself is wrong: too long, not text, or addressed to nobody in particular."""

    code = "MESSAGE"
    exit_code = EXIT_USAGE
    default_hint = "mend what is named, and send it again"


class IdTaken(BusProblem):
    """Another message has this id: one of another sender, or one of the same that says something else."""

    code = "ID_TAKEN"
    exit_code = EXIT_EXISTS
    default_hint = "choose another id, or none; `swarm message ID` shows what has it"


class QuotaReached(BusProblem):
    """The inbox holds as much as it may; nothing was added."""

    code = "QUOTA"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "try again when its owner has taken some of them"


class InboxNotFound(BusProblem):
    """There is no such inbox or queue."""

    code = "INBOX_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "starting a session makes the inboxes of its agents"


class ClaimLost(BusProblem):
    """The claim is over: its time ran out or its holder ended, and the messages went back."""

    code = "CLAIM_LOST"
    exit_code = EXIT_NOT_FOUND
    default_hint = "take the messages again; claim them for longer, or extend the claim while you work"


class MessageNotFound(BusProblem):
    """No message of this id."""

    code = "MESSAGE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "look at the inbox for the ids of the messages in it"


class NothingToTake(BusProblem):
    """No task of the queue can be taken now: it is empty, or what it holds is taken, or waits for others."""

    code = "NOTHING_TO_TAKE"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "see what it holds with `swarm queue list`, or wait for a task: --wait 10m"


class AttachmentProblem(BusProblem):
    """An attachment is too large, gone, or not what was attached."""

    code = "ATTACHMENT"
    default_hint = "ask the sender to attach it again"
