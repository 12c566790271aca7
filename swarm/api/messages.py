"""Verbs on messages; they need no open repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.api.worktrees import Sets
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Unpack

    from swarm.bus.protocol import Stored, Trace
    from swarm.messages.office.post import Post, Sent, Taken
    from swarm.messages.send_options import SendOptions
    from swarm.sessions.waiting import Reached


class Messages(Sets):
    """Verbs about messages. Who calls is known from the machine: an agent's program is that agent, else the user."""

    @property
    def post(self) -> Post:
        """Everything about messages, as one object."""
        from swarm.messages.office.post import Post

        if self._post is None:
            self._post = Post(
                self._world.layout.state,
                environ=self._world.environ,
                lease=self._world.settings.messages.lease,
                settings=lambda: self._world.settings,
                prepare=lambda: self._ready_for("send"),
            )
        return self._post

    _post: Post | None = None

    def send(self, to: str | Iterable[str], body: str, **options: Unpack[SendOptions]) -> tuple[Sent, ...]:
        """Send a message; when this returns it is on the disk in every recipient's inbox.

        Args:
            to: ``agent``, ``agent@session``, ``all``, ``role:NAME``, ``parent``, ``user``, or several.
            options: ``subject``, ``type``, ``priority``, ``id``, ``reply_to``, ``expects_reply``, ``deadline_ms``,
                ``ttl_ms``, ``attach``, ``metadata``; see ``SendOptions``.

        Raises:
            AgentNotFound, Ambiguous, Refused: somebody is not known; nothing was sent.
            MessageProblem, IdTaken, QuotaReached, NoSpace: nobody got it; see ``Post.send``.
            SentInPart: some got it, and others did not.

        Example:
            >>> swarm.send("reviewer@feature-x", "please look at parser.py")  # doctest: +SKIP
        """
        with files.os_errors("cannot send"):
            return self.post.send(to, body, **options)

    def broadcast(self, body: str, session: str | None = None, **options: Unpack[SendOptions]) -> tuple[Sent, ...]:
        """Send to every agent of a session but the sender."""
        return self.send(f"all@{session}" if session else "all", body, **options)

    def reply(self, message_id: str, body: str, **options: Unpack[SendOptions]) -> tuple[Sent, ...]:
        """Answer a message: to its sender, in its thread."""
        options["reply_to"] = message_id
        return self.send((), body, **options)

    def take(
        self, inbox: str | None = None, *, wait: float = 0.0, limit: int = 100, lease: float | None = None
    ) -> Taken | None:
        """Take the next messages of one's own inbox; they come again unless they are acknowledged.

        Args:
            inbox: another one, as only the user may.
            wait: seconds to wait for the first.
            lease: seconds after which what is not acknowledged goes back; default: the setting.
        """
        with files.os_errors("cannot take messages"):
            return self.post.take(inbox, wait=wait, limit=limit, lease=lease)

    def ack(self, ids: Sequence[str] = (), inbox: str | None = None) -> tuple[str, ...]:
        """Acknowledge what is in hand, all or some; it never comes again."""
        with files.os_errors("cannot acknowledge"):
            return self.post.ack(ids, inbox)

    def nack(
        self, ids: Sequence[str] = (), inbox: str | None = None, *, delay: float = 0.0, reason: str = ""
    ) -> tuple[str, ...]:
        """Give back what is in hand, all or some."""
        with files.os_errors("cannot give back"):
            return self.post.nack(ids, inbox, delay=delay, reason=reason)

    def inbox(self, inbox: str | None = None, limit: int = 100) -> tuple[Stored, ...]:
        """Return what is not settled in an inbox, one's own by default; changes nothing."""
        with files.os_errors("cannot look into the inbox"):
            return self.post.inbox(inbox, limit)

    def thread(self, message_id: str) -> tuple[Stored, ...]:
        """Return the messages that belong together with one of them."""
        with files.os_errors("cannot read the messages"):
            return self.post.thread(message_id)

    def message(self, message_id: str) -> tuple[Trace, ...]:
        """Return what became of a message, for each recipient, each state with its evidence."""
        with files.os_errors("cannot read the messages"):
            return self.post.message(message_id)

    def wait_for(
        self, agents: Sequence[str], until: str = "idle", *, timeout: float | None = None, any_of: bool = False
    ) -> tuple[Reached, ...]:
        """Wait until agents are ``idle``, ``done``, ``stopped``, or a ``message`` waits for them.

        Args:
            any_of: until the first of them is.

        Raises:
            WaitOver: *timeout* seconds were over first.
            NotReached: it can no longer happen, for example because an agent failed.
        """
        from swarm.sessions import waiting

        with files.os_errors("cannot wait"):
            targets = waiting.targets(self.post, agents, until)
            return waiting.wait(self._world, self.post, targets, until, timeout=timeout, any_of=any_of)

    def _ready_for(self, command: str) -> None:
        """Make ``.swarm/`` in a repository that has none yet; that is a change as any other."""
        if not self._world.layout.state.is_dir():
            with self._changing(command):
                return
