"""The live model: one thread that looks at a project whenever something happens in it, for any number of readers.

    folders change ─► what may be different is marked ─► 30 ms later it is looked at ─► readers get what changed

Nothing is looked at twice at the same time, and a look that comes late is dropped: the next one covers it.  The
kernel tells of changes in files; what no file tells is looked at from time to time, as `schedule.py` says.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from swarm.kit.errors import SwarmError
from swarm.live import look as looking
from swarm.live.feed import RING, Feed
from swarm.live.folders import Folders
from swarm.live.look import Look, pairs_of
from swarm.live.model import Model, is_few
from swarm.live.schedule import Schedule
from swarm.live.screens import Screens
from swarm.live.telling import Looked, Telling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from swarm.live.screens import Shown
    from swarm.live.telling import Tell
    from swarm.live.values import Change, Snapshot
    from swarm.project.world import World

    Pair = tuple[str, str]

#: Changes within this time are told together. Supervisors take a look for later than a change only after 20 ms.
_TOGETHER = 0.03
#: After a look there is a pause as long as the look was, up to this: a storm costs half a core at most.
_LONGEST_BREATH = 0.2


class Live:
    """The live model of one repository. Close it, or use it in a ``with`` statement; readers may use any thread.

    Example:
        >>> with swarm.live() as live:                                          # doctest: +SKIP
        ...     for change in live.changes(after=live.snapshot().revision):
        ...         print(change.kind, change.subject, change.after)
    """

    def __init__(
        self,
        world: World,
        *,
        git: float | None = 10.0,
        tell: Tell | None = None,
        ring: int = RING,
    ) -> None:
        """Look at everything once, and begin to watch.

        Args:
            world: used by nobody else.
            git: how often git is asked about the worktree of an agent that works, in seconds; None: never.
            tell: called after each look, and closed at the end, in a thread of its own.
        """
        self._look = Look(world)
        self._git = git is not None
        self._telling = None if tell is None else Telling(tell)
        self._model = Model(self._look, git=self._git)
        self._feed = Feed(os.urandom(6).hex(), ring)
        self._folders = Folders()
        self._schedule = Schedule(git or 0.0)
        self._screens = Screens(self._folders.wake)
        self._dirty: set[tuple[str, ...]] = set()
        self._answered = threading.Condition()
        self._asked = False  # somebody waits for a look at everything
        self._begun = self._done = 0  # how many such looks there were
        self._thread = threading.Thread(target=self._run, name="swarm-live", daemon=True)
        try:
            self._begin()
        except BaseException:
            self._end()
            raise
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Live {self._feed.snapshot().id}>"

    def close(self) -> None:
        """Watch no more; readers come to their end."""
        self._feed.close()
        self._folders.wake()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join()

    # --- for readers --------------------------------------------------------------------------------

    @property
    def epoch(self) -> str:
        """Which model this is; revisions of different ones have nothing to do with each other."""
        return self._feed.epoch

    @property
    def is_closed(self) -> bool:
        """Whether nothing comes any more."""
        return self._feed.is_closed

    def snapshot(self) -> Snapshot:
        """Return all that is known now. It never changes."""
        return self._feed.snapshot()

    def changes(self, after: int | str, timeout: float | None = None) -> Iterator[Change]:
        """Yield each change behind a revision, in order and without a hole, as it happens.

        The last one may be ``lost``: this reader was too slow, or the revision is of another model. It then takes a new
        snapshot.

        Args:
            after: a revision, or the ``id`` of a snapshot or a change.
            timeout: it ends when nothing came for so many seconds; None: when the model is closed.
        """
        return self._feed.changes(after, timeout)

    def wait(self, after: int | str, timeout: float | None = None) -> tuple[Change, ...]:
        """Return the changes behind a revision as soon as there is one; none when the time is over. See ``changes``."""
        return self._feed.wait(after, timeout)

    def since(self, after: int | str) -> tuple[Change, ...]:
        """Return the changes behind a revision, without waiting. See ``changes``."""
        return self._feed.since(after)

    def call(self, back: Callable[[], None]) -> Callable[[], None]:
        """Have a function called at each change, in the model's thread: it must be quick. Return what ends that."""
        return self._feed.call(back)

    def show(self, agent: str, *, lines: int = 40, rate: float = 5.0) -> Shown:
        """Also look at an agent's pane until what this returns is closed: changes of the kind ``screen`` tell of it.

        Args:
            agent: as ``name@session``.
            rate: how many times a second at most.
        """
        return self._screens.show(agent, lines, 1 / max(rate, 0.1))

    def refresh(self, timeout: float = 30.0) -> Snapshot:
        """Look at everything now, git included, and return what is known then.

        Raises:
            TimeoutError: that took too long.
        """
        with self._answered:
            self._asked, wanted = True, self._begun + 1
            self._folders.wake()
            if not self._answered.wait_for(lambda: self._done >= wanted or self._feed.is_closed, timeout):
                raise TimeoutError(f"the live model did not look within {timeout:g} s")
        return self.snapshot()

    # --- the thread -----------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Look at everything for the first time."""
        self._model.look_at_records()
        self._watch()
        self._dirty.clear()  # all of it is looked at now
        began = time.time_ns()
        self._look_at_all()
        happened, state = self._model.tell()
        self._feed.publish([], **state)
        self._after_look(began, frozenset(self._model.sessions), changed=bool(happened))
        self._schedule.looked_at_all(self._model.agents)

    def _run(self) -> None:
        try:
            while not self._feed.is_closed:
                self._wait()
                try:
                    if self._has_work():
                        self._step()
                except (SwarmError, OSError) as problem:
                    self._complain(problem)
        except Exception as bug:  # noqa: BLE001  # whoever reads gets it
            self._feed.close(bug)
        finally:
            self._feed.close()
            with self._answered:
                self._answered.notify_all()
            self._end()

    def _end(self) -> None:
        self._folders.close()
        if self._telling is not None:
            self._telling.close()

    def _wait(self) -> None:
        """Return when something may be different; what comes soon after it is taken along."""
        left = min(self._schedule.left(), self._screens.left())
        self._mark(self._folders.wait(0 if self._asked else left))
        until = max(time.monotonic() + _TOGETHER, self._schedule.not_before)
        while self._dirty and not self._is_urgent() and (rest := until - time.monotonic()) > 0:
            self._mark(self._folders.wait(rest))

    def _has_work(self) -> bool:
        due = min(self._schedule.left(), self._screens.left()) <= 0
        return not self._feed.is_closed and (bool(self._dirty) or self._asked or due)

    def _is_urgent(self) -> bool:
        return self._asked or self._feed.is_closed

    def _mark(self, hits: set[tuple[tuple[str, ...], str]]) -> None:
        for mark, name in hits:
            if looking.is_news(mark, name):
                self._dirty.add((*mark, name) if mark[0] == looking.PROGRAM else mark)

    def _step(self) -> None:
        """Look at what is marked or due, and tell what is different."""
        began, clock = time.time_ns(), time.monotonic()
        dirty, self._dirty = self._dirty, set()
        asked = self._take_request()
        if asked or self._schedule.is_whole_due():
            self._model.look_at_records()
            self._watch()
            looked = self._look_at_all(git=bool(asked))
            self._schedule.looked_at_all(self._model.agents)
        else:
            looked = self._look_at(dirty)
        changed = self._publish()
        if looked:
            self._after_look(began, frozenset(session for session, _ in looked), changed=changed)
        for screen in self._screens.look(self._look, self._model.agents):
            self._feed.publish([screen])
        if asked:
            with self._answered:
                self._done = asked
                self._answered.notify_all()
        self._schedule.pause(min(_LONGEST_BREATH, time.monotonic() - clock))

    def _take_request(self) -> int:
        """Return the number of the look at everything that somebody waits for; 0 if nobody does."""
        with self._answered:
            if not self._asked:
                return 0
            self._asked = False
            self._begun += 1
            return self._begun

    def _look_at_all(self, *, git: bool = True) -> set[Pair]:
        model = self._model
        pairs = set(pairs_of(model.sessions.values()))
        new = pairs - model.agents.keys()
        model.look_at_approvals()
        model.look_at_operations()
        rest = model.look_at_states(pairs)
        if self._git:
            model.look_at_trees(pairs if git else rest | new)
        model.look_at_inboxes(pairs)
        return pairs

    def _look_at(self, dirty: set[tuple[str, ...]]) -> set[Pair]:
        """Look at what is marked, and at what is due; return the agents whose state was looked at."""
        model = self._model
        states = _pairs(dirty, looking.STATE)
        trees = (_pairs(dirty, looking.TREE) | self._schedule.due_trees(model.agents)) if self._git else set()
        inboxes = _pairs(dirty, looking.INBOX)
        if any(mark[0] == looking.SESSIONS for mark in dirty):
            new = model.look_at_records()
            self._watch()
            states, inboxes = states | new, inboxes | new
        if (looking.APPROVALS,) in dirty:
            states |= model.look_at_approvals()
        if (looking.OPERATIONS,) in dirty:
            model.look_at_operations()
        states |= {pair for mark in dirty if mark[0] == looking.PROGRAM for pair in self._of_program(*mark[1:])}
        if states:
            states |= {pair for pair, one in model.agents.items() if one.agent.after}  # they wait for others
            self._schedule.happened(states)
        states |= self._schedule.due_states(model.agents)
        if states:
            trees |= model.look_at_states(states)
        if inboxes:
            model.look_at_inboxes(inboxes)
        if trees and not is_few(trees):
            self._publish()
        if trees:
            model.look_at_trees(trees)
        return states

    def _of_program(self, config: str, name: str = "") -> set[Pair]:
        """Return the agents about which a program has written something in its own folder."""
        pid = name.partition(".")[0]
        known = {pair: one for pair, one in self._model.agents.items() if one.status.runs}
        exact = {pair for pair, one in known.items() if str(one.pid) == pid}
        return exact or {pair for pair in known if self._look.config_of(pair) == config}  # in a box pids are others

    def _publish(self) -> bool:
        happened, state = self._model.tell()
        if happened or state["problems"] != self._feed.snapshot().problems:
            self._feed.publish(happened, **state)
        return bool(happened)

    def _after_look(self, began: int, sessions: frozenset[str], *, changed: bool) -> None:
        if self._telling is not None:
            self._telling.tell(Looked(self._feed.snapshot(), self._model.table, began, sessions, changed))

    def _complain(self, problem: SwarmError | OSError) -> None:
        """Say in the snapshot what could not be looked at; all of it is looked at again soon."""
        text = problem.message if isinstance(problem, SwarmError) else str(problem)
        self._feed.publish([], problems=(text,))
        self._schedule.look_at_all_soon()

    def _watch(self) -> None:
        """Watch the folders of all agents that there are now."""
        self._dirty |= self._folders.watch(self._look.folders(self._model.sessions, git=self._git))


def _pairs(dirty: set[tuple[str, ...]], what: str) -> set[Pair]:
    return {(mark[1], mark[2]) for mark in dirty if mark[0] == what}
