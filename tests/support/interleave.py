"""Run several acts in one process and decide, before each of their file operations, whose turn it is.

Each act has a thread; one runs at a time.  The interpreter tells a profile function of every call of
a C function before it is made, so the real code stops at each of its system calls without a change
to it, and a plan (which act goes on at which step, which one is killed there) gives the same run
every time.  ``explore`` makes every plan with at most so many switches and kills: what goes wrong
between processes nearly always does so with very few (the rest of a run is one act after the other).

A kill is an exception that no code of ours catches: locks and files are let go, as the kernel does.  At
a write it may leave any part of the line behind.  What is not shown: a single read or write that is
not whole in itself, and what a power cut takes.

The garbage collector rests during a run: Python before 3.11.3 may crash when it collects in one thread while
another is in a profile function (https://github.com/python/cpython/issues/101975); Debian 12 has 3.11.2.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from contextlib import contextmanager
from fcntl import flock
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.bus.log.parts import Parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import FrameType

_OPERATIONS = {
    function: function.__name__
    for function in (
        *(os.open, os.lseek, os.pread, os.write, os.pwrite, os.ftruncate, os.rename, os.replace, os.unlink, os.stat),
        *(os.lstat, os.scandir),
    )
} | {flock: "flock"}  # fmt: skip
CHANGES = frozenset(("write", "pwrite", "ftruncate", "rename", "replace", "unlink"))
_PATIENCE = 60.0


class Killed(BaseException):
    """The end of an act, in the middle of it."""


class Turn(NamedTuple):
    """What a plan wants at a step: that another act goes on, or that this one is killed.

    Attributes:
        act: who goes on; the one whose step it is: it is killed.
        cut: not 0: killed; of a write so many tenths are left behind; 9 means all but the last byte.
    """

    act: int
    cut: int = 0


class Step(NamedTuple):
    """A point where an act could be stopped, before the operation; ``end``: the act is over."""

    act: int
    operation: str
    where: str
    others: tuple[int, ...]


class Run:
    """One run of some acts by a plan; afterwards ``steps`` tells where it could have gone otherwise.

    Args:
        acts: each is called with the number of times it was killed before; a killed one begins again.
        stops: whether an act may be stopped before an operation at a place (the folder of a log, or "").
    """

    def __init__(
        self,
        acts: Sequence[Callable[[int], None]],
        plan: Mapping[int, Turn],
        stops: Callable[[int, str, str], bool] = lambda *_: True,
    ) -> None:
        self.steps: list[Step] = []
        self._acts = acts
        self._plan = plan
        self._stops = stops
        self._left = list(range(len(acts)))
        self._turns = [threading.Semaphore(0) for _ in acts]
        self._done = threading.Event()
        self._problem: BaseException | None = None

    def go(self) -> None:
        """Run all acts to their ends; what one of them raised is raised here."""
        threads = [threading.Thread(target=self._body, args=(n,), daemon=True) for n in self._left]
        with _no_collection():
            for thread in threads:
                thread.start()
            first = self._step(-1, "begin", "")
            self._turns[first].release()
            if not self._done.wait(_PATIENCE):
                raise TimeoutError(f"it hangs: {dict(self._plan)}, {self.steps[-3:]}")
            for thread in threads:
                thread.join()
        if self._problem is not None:
            raise self._problem

    def _body(self, me: int) -> None:
        self._turns[me].acquire()
        lives = 0
        try:
            while True:
                sys.setprofile(lambda frame, event, called: self._called(me, frame, event, called))
                try:
                    self._acts[me](lives)
                    break
                except Killed:
                    lives += 1
                finally:
                    sys.setprofile(None)
        except BaseException as error:  # noqa: BLE001  # raised again by ``go``
            self._problem = self._problem or error
        self._left.remove(me)
        if self._left:
            self._turns[self._step(me, "end", "")].release()
        else:
            self._done.set()

    def _called(self, me: int, frame: FrameType, event: str, called: Any) -> None:
        if event != "c_call":
            return
        if called is time.sleep:  # it waits for a lock
            self._give(me, self._next(me))
        elif called in _OPERATIONS:
            where = _where(frame)
            if self._stops(me, _OPERATIONS[called], where):
                cut = self._plan.get(len(self.steps), Turn(-1)).cut
                to = self._step(me, _OPERATIONS[called], where)
                if cut:
                    self._kill(frame, called, cut)
                self._give(me, to)

    def _step(self, me: int, operation: str, where: str) -> int:
        """Note a step; return who goes on."""
        turn = self._plan.get(len(self.steps))
        self.steps.append(Step(me, operation, where, tuple(n for n in self._left if n != me)))
        if turn is not None and turn.act in self._left:
            return turn.act
        return me if me in self._left else self._left[0]

    def _next(self, me: int) -> int:
        return self._left[(self._left.index(me) + 1) % len(self._left)]

    def _give(self, me: int, to: int) -> None:
        if to != me:
            self._turns[to].release()
            self._turns[me].acquire()

    def _kill(self, frame: FrameType, called: Any, cut: int) -> None:
        line = frame.f_locals.get("line", frame.f_locals.get("data"))
        if called is os.write and isinstance(line, bytes):
            os.write(frame.f_locals["fd"], line[: len(line) - 1 if cut == 9 else len(line) * cut // 10])
        raise Killed


@contextmanager
def _no_collection() -> Iterator[None]:
    """Keep the garbage collector from running; reference counts free nearly all."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _where(frame: FrameType | None) -> str:
    """Return the name of the log that an operation is about."""
    for _ in range(4):
        if frame is None:
            break
        found = frame.f_locals.get("self")
        if isinstance(found, Parts):
            return os.path.basename(found.folder)
        frame = frame.f_back
    return ""


def explore(
    make: Callable[[Mapping[int, Turn]], Run], switches: int, kills: Mapping[int, Sequence[int]] | None = None
) -> Iterator[tuple[dict[int, Turn], Run]]:
    """Run every plan with at most so many switches, and at most one kill.

    Who goes first, and who goes on after an end, is no switch, and every choice is tried.

    Args:
        make: gives a run, not yet begun, of a fresh stage.
        kills: which acts are killed at their changes, and what these leave behind (``Turn.cut``).
    """
    plans: list[tuple[dict[int, Turn], int, bool]] = [({}, switches, bool(kills))]
    while plans:
        plan, left, may_kill = plans.pop()
        run = make(plan)
        run.go()
        yield plan, run
        for number in range(max(plan, default=-1) + 1, len(run.steps)):
            step = run.steps[number]
            free = step.operation in ("begin", "end")
            if free or left:
                others = step.others[1:] if free else step.others
                plans += [(plan | {number: Turn(other)}, left - (not free), may_kill) for other in others]
            if may_kill and step.operation in CHANGES:
                cuts = (kills or {}).get(step.act, ())
                cuts = cuts if step.operation == "write" else cuts[:1]
                plans += [(plan | {number: Turn(step.act, cut)}, left, False) for cut in cuts]
