"""The namespace ``swarm.messages``: send, take and look at messages; it needs no git."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Unpack

    from swarm.bus.protocol import Depth, Pruned, PrunedAttachments, Stored, Trace
    from swarm.messages.deadlines import Reply
    from swarm.messages.office.post import Post, Sender, Sent, Taken
    from swarm.messages.send_options import SendOptions


class Messages:
    """Messages and inboxes. An agent's program calls as that agent, any other process as the user.

    An inbox is named as a recipient is: ``developer``, ``developer@feature-x``, ``user``; by default it is one's own.
    """

    def __init__(self, post: Post) -> None:
        self._post = post

    def __repr__(self) -> str:
        return f"<Messages below {self._post.state}>"

    @classmethod
    def near(cls, directory: str | None = None, environ: Mapping[str, str] | None = None) -> Messages | None:
        """Return the messages of the repository that this process works for; None where only git can find it.

        Args:
            directory: a folder that the caller named; without it an agent's own repository comes first.
        """
        from swarm.machine.records import names_good_dir
        from swarm.messages.office.post import Post

        env = os.environ if environ is None else environ
        found = Post.find(directory, environ=env) if names_good_dir(env) else None
        return None if found is None else cls(found)

    def me(self) -> Sender:
        """Return the identity of this process in this repository."""
        return self._post.me()

    def address(self, inbox: str | None = None) -> str:
        """Return the whole address of an inbox, such as ``developer@feature-x``.

        Raises:
            AgentNotFound, SessionNotFound, Ambiguous: there is none, or several.
        """
        with files.os_errors("cannot find the inbox"):
            return self._post.address(inbox)

    # --- send ----------------------------------------------------------------------------------------

    def send(self, to: str | Iterable[str], body: str, **options: Unpack[SendOptions]) -> tuple[Sent, ...]:
        """Send a message; when this returns it is on the disk in every recipient's inbox.

        Args:
            to: ``agent``, ``agent@session``, ``all``, ``role:NAME``, ``parent``, ``user``, a bridge's
                name, or several.
            options: ``subject``, ``type``, ``priority``, ``id``, ``reply_to``, ``expects_reply``, ``deadline_ms``,
                ``ttl_ms``, ``attach``, ``metadata``; see ``SendOptions``.

        Raises:
            AgentNotFound, Ambiguous, Refused: swarm does not know one of the addresses; nothing was sent.
            MessageProblem, IdTaken, QuotaReached, NoSpace: nobody got it.
            SentInPart: some got it, and others did not.
        """
        with files.os_errors("cannot send"):
            return self._post.send(to, body, **options)

    def broadcast(self, body: str, session: str | None = None, **options: Unpack[SendOptions]) -> tuple[Sent, ...]:
        """Send to every agent of a session but the sender."""
        return self.send(f"all@{session}" if session else "all", body, **options)

    def reply(self, message_id: str, body: str, **options: Unpack[SendOptions]) -> tuple[Sent, ...]:
        """Answer a message: to its sender, in its thread."""
        options["reply_to"] = message_id
        return self.send((), body, **options)

    # --- take and settle -----------------------------------------------------------------------------

    def take(
        self, inbox: str | None = None, *, wait: float = 0.0, limit: int = 100, lease: float | None = None
    ) -> Taken | None:
        """Take the next messages of the caller's inbox; unacknowledged messages are delivered again.

        Args:
            inbox: another one, as only the user may.
            wait: seconds to wait for the first.
            lease: seconds after which unacknowledged messages return; default: the setting ``messages.lease``.
        """
        with files.os_errors("cannot take messages"):
            return self._post.take(inbox, wait=wait, limit=limit, lease=self._lease(lease))

    def held_by(self, inbox: str | None = None) -> str:
        """Return the other reader that holds messages of an inbox; empty without one."""
        with files.os_errors("cannot read the inbox"):
            return self._post.held_by(inbox)

    def seen(self, taken: Taken, evidence: str) -> None:
        """Record that taken messages entered their reader's turn, with the evidence."""
        with files.os_errors("cannot record the last look"):
            self._post.seen(taken, evidence)

    def done(self, taken: Taken) -> None:
        """Acknowledge all taken messages; they are never delivered again."""
        with files.os_errors("cannot acknowledge"):
            self._post.done(taken)

    def ack(self, ids: Sequence[str] = (), inbox: str | None = None) -> tuple[str, ...]:
        """Acknowledge taken messages, all or some; they are never delivered again. Return the ids.

        Raises:
            ClaimLost: it is not in hand (any more).
        """
        with files.os_errors("cannot acknowledge"):
            return self._post.ack(ids, inbox)

    def nack(
        self, ids: Sequence[str] = (), inbox: str | None = None, *, delay: float = 0.0, reason: str = ""
    ) -> tuple[str, ...]:
        """Return taken messages for redelivery, all or some; return their ids."""
        with files.os_errors("cannot give back"):
            return self._post.nack(ids, inbox, delay=delay, reason=reason)

    def extend(self, lease: float | None = None, inbox: str | None = None) -> tuple[str, ...]:
        """Extend the lease on taken messages by seconds from now; return the ids."""
        with files.os_errors("cannot extend"):
            return self._post.extend(self._lease(lease), inbox)

    def requeue(self, message_id: str, inbox: str | None = None) -> None:
        """Let an undeliverable message wait again."""
        with files.os_errors("cannot requeue"):
            self._post.requeue(message_id, inbox)

    def _lease(self, seconds: float | None) -> float:
        """Return the lease of taken messages in seconds; refuse a senseless one."""
        if seconds is None:
            return self._post.settings().messages.lease
        from swarm.messages.queues import check_lease

        check_lease(seconds, "a message")
        return seconds

    # --- look ----------------------------------------------------------------------------------------

    def inbox(self, inbox: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return the unfinished messages of an inbox, most urgent first; changes nothing."""
        with files.os_errors("cannot read the inbox"):
            return self._post.inbox(inbox, limit)

    def history(self, inbox: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages of an inbox, in any state."""
        with files.os_errors("cannot read the inbox"):
            return self._post.history(inbox, limit)

    def outbox(self, agent: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return the last messages that an agent or the user has sent: one for each recipient, oldest first.

        A message is in its recipients' inboxes and nowhere else: after a prune or a cleanup it is not found.

        Args:
            agent: default: the caller.
        """
        with files.os_errors("cannot read the messages"):
            return self._post.outbox(agent, limit)

    def dead(self, inbox: str | None = None) -> tuple[Stored, ...]:
        """Return the undeliverable messages of an inbox, each with the reason."""
        with files.os_errors("cannot read the inbox"):
            return self._post.dead(inbox)

    def depth(self, inbox: str | None = None) -> Depth:
        """Count the messages in an inbox."""
        with files.os_errors("cannot read the inbox"):
            return self._post.depth(inbox)

    def removed(self, inbox: str | None = None) -> int:
        """Return how many messages of an inbox are not kept any longer."""
        with files.os_errors("cannot read the inbox"):
            return self._post.removed(inbox)

    def get(self, message_id: str) -> tuple[Trace, ...]:
        """Return the history of a message for each recipient, each state with its evidence.

        Raises:
            MessageNotFound
        """
        with files.os_errors("cannot read the messages"):
            return self._post.message(message_id)

    def answer_to(self, trace: Trace) -> Reply | None:
        """Return the state of the answer that a message expects; None if it expects none."""
        with files.os_errors("cannot read the messages"):
            return self._post.reply(trace)

    def thread(self, message_id: str) -> tuple[Stored, ...]:
        """Return the messages that belong together with one of them, oldest first, one for each recipient."""
        with files.os_errors("cannot read the messages"):
            return self._post.thread(message_id)

    @staticmethod
    def missing_from(thread: Iterable[Stored]) -> tuple[str, ...]:
        """Return the ids that messages of a thread answer, and that are not there any more."""
        from swarm.messages.office.pruned import missing_from

        return missing_from(thread)

    def unreadable(self, message_id: str = "") -> tuple[str, ...]:
        """Return the gaps of ``get`` and ``thread``: unreadable inboxes, a damaged copy."""
        with files.os_errors("cannot read the messages"):
            return self._post.unreadable(message_id)

    def save_files(self, message_id: str, folder: str | os.PathLike[str]) -> tuple[Path, ...]:
        """Copy a message's attachments into a folder and return the copies; replace no file.

        Raises:
            MessageNotFound
            AttachmentProblem: nothing is attached, or it cannot be copied.
        """
        with files.os_errors("cannot save the attachments"):
            return self._post.save_files(message_id, Path(folder))

    # --- remove --------------------------------------------------------------------------------------

    def prune(
        self, inbox: str | None = None, *, older_than_ms: int | None = None, dry_run: bool = False
    ) -> tuple[Pruned, ...]:
        """Prune finished old messages of one inbox; without a name of all.

        Args:
            older_than_ms: how old; default: as the settings say.

        Raises:
            NotForAgents, NotAPerson: only people remove messages.
        """
        with files.os_errors("cannot remove messages"):
            return self._post.prune(inbox, older_than_ms=older_than_ms, dry_run=dry_run)

    def prune_attachments(
        self, inbox: str | None = None, *, older_than_ms: int | None = None, dry_run: bool = False
    ) -> PrunedAttachments:
        """Remove the attachments that no message refers to any longer; to be called after ``prune``.

        Args:
            inbox, older_than_ms, dry_run: as for ``prune``; they tell which it would have removed.
        """
        with files.os_errors("cannot remove attachments"):
            return self._post.prune_attachments(inbox, older_than_ms=older_than_ms, dry_run=dry_run)
