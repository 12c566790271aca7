"""The verb ``live``: the live model, and what is told by whoever has one."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from swarm.api.door import Door, again

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.eventlog.recorder import Recorder
    from swarm.live.live import Live
    from swarm.live.telling import Looked


class Following(Door):
    """The verb that follows a project."""

    def live(self, *, git: float | None = 10.0, tell: bool = False) -> Live:
        """Follow the project: a snapshot of all sessions, agents and requests, and each change as it happens.

        It looks from a thread of its own, mostly when the kernel tells of a change, and runs until it is closed. It may
        have any number of readers. Also looks at what agents work on, but not at their screens: see ``Live.show``.

        Args:
            git: how often git is asked about the worktree of an agent that works, in seconds; None: never.
            tell: do at once what the agents' supervisors would start a process for: show the states in tmux, notify the
                user and those who wait for events; and write all changes into the log of events. An agent's own process
                tells nothing.

        Example:
            >>> with swarm.live() as live:                                      # doctest: +SKIP
            ...     snapshot = live.snapshot()
            ...     for change in live.changes(after=snapshot.revision, timeout=60):
            ...         print(change.kind, change.subject, change.after)
        """
        from swarm.callers import caller
        from swarm.live.live import Live

        tells = tell and caller.caller(self._world).kind != caller.AGENT
        return Live(again(self._opened).world, git=git, tell=Teller(again(self._opened)) if tells else None)


class Teller(Door):
    """Tells what a live model has seen: in tmux, to the user, in the queues of events, in the log of events.

    Supervisors start a short process for that (`chores.label`) when they see that an agent's state is newer than the
    last look at its session. The time of that look is the time of a file, so none is started while this is faster;
    and when this process is stopped or killed, they go on by themselves.
    """

    _recorder: Recorder | None = None
    _owed: frozenset[str] = frozenset()

    def __call__(self, looked: Looked) -> None:
        """Tell what one look has seen."""
        from swarm.api.delivery import Delivery

        if not self._world.layout.sessions.is_dir():
            return
        if looked.changed:
            self._owed |= looked.sessions
        with contextlib.ExitStack() as stack:
            mine = {one for one in looked.sessions if stack.enter_context(self._turn(one, looked.began_ns))}
            due = self._owed & mine
            if due:
                Delivery(self._opened).announce(looked.snapshot.sessions, only=sorted(due))
                self._owed -= due
        self._record(looked)

    def close(self) -> None:
        """Watch no more."""
        if self._recorder is not None:
            self._recorder.close()

    def _record(self, looked: Looked) -> None:
        from swarm.eventlog.recorder import Recorder

        if self._recorder is None:
            recorder = Recorder(self._world.layout.state)
            recorder.begin()
            self._recorder = recorder
        self._recorder.go_on()
        self._recorder.record(looked.table)

    @contextlib.contextmanager
    def _turn(self, session: str, began_ns: int) -> Iterator[bool]:
        """Give whether it is ours to tell of a session; then a look that began at that time is noted."""
        from swarm.machine import locks, own
        from swarm.supervisor import label

        path = os.fspath(self._world.layout.sessions / session / "run" / label.LOCK)
        try:
            fd = own.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:  # it has no agents that run, or is just being removed
            yield False
            return
        try:
            is_ours = locks.try_lock(fd)
            if is_ours and label.looked_at(path) < began_ns:
                label.note_look(fd, began_ns)
            yield is_ours
        finally:
            os.close(fd)
