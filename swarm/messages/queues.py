"""Task queues: work that several agents share, one message per task.

Who takes tasks is found out from the process, never from what it says: an agent by its program, and with
it the end of the program ends what it holds; a person holds a task for its time alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.bus.errors import ClaimLost, IdTaken, InboxNotFound, MessageNotFound
from swarm.bus.message import Message, encode, new_id
from swarm.bus.protocol import Holder
from swarm.callers.errors import NotForAgents
from swarm.kit.errors import UsageProblem
from swarm.project.errors import InvalidName

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from swarm.bus.protocol import Claim, Depth, PostBus, Receipt, Task
    from swarm.machine.identity import Identity

PERSON = "user"
LEASE = 600.0
MAX_LEASE = 7 * 86_400.0
MAX_RESULT = 64 << 10
_PREFIX = "queue."


class Worker(NamedTuple):
    """A worker: an address, and the process whose end returns its tasks."""

    address: str
    holder: Holder
    generation: str = ""
    run_dir: str = ""

    @property
    def is_person(self) -> bool:
        """Whether it is no agent."""
        return not self.holder.pid


def worker(environ: Mapping[str, str], acting: Identity | None = None) -> Worker:
    """Return the worker for which this process acts; *acting* is the agent that a server has seen."""
    from swarm.machine.identity import whoami
    from swarm.machine.processes import boot_id

    who = acting or whoami(environ)
    if who is None:
        return Worker(PERSON, Holder(boot_id(), 0, 0))
    return Worker(who.address, Holder(who.boot, who.program_pid, who.program_start), who.generation, who.run_dir)


class TaskOutcome(NamedTuple):
    """The outcome of finished tasks.

    Attributes:
        already: those that were done before.
    """

    ids: tuple[str, ...]
    already: tuple[str, ...] = ()


class Queue:
    """One queue, as seen by one worker.

    Args:
        prepare: makes the folder that holds all queues, before the first task.
    """

    def __init__(self, bus: PostBus, name: str, me: Worker, prepare: Callable[[], None]) -> None:
        self.name = _checked(name)
        self._address = _PREFIX + self.name
        self._bus = bus
        self._me = me
        self._prepare = prepare

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"

    def add(
        self, text: str, *, priority: str = "normal", after: Sequence[str] = (), task_id: str = "", ttl: float = 0.0
    ) -> Receipt:
        """Add a task; the first one makes the queue. The same twice under one id is one task.

        Args:
            text: what is to be done.
            priority: ``interrupt``, ``high``, ``normal`` or ``low``.
            after: ids of tasks of this queue that must be done first.
            ttl: how many seconds it means anything; 0: always.

        Raises:
            MessageNotFound: a task in *after* is not there, so nothing can wait in a circle.
            TooManyMessages, MessageProblem, QuotaReached, IdTaken: nothing was added.
        """
        if ttl and not round(ttl * 1000):
            raise UsageProblem("a task cannot be given up at once", hint="leave the time out, or name one, such as 2h")
        me = self._me
        message = Message(
            self._address,
            me.address,
            text,
            type="task",
            priority=priority,
            id=task_id or (new_id() if ttl else ""),
            ttl_ms=round(ttl * 1000),
            after=tuple(dict.fromkeys(after)),
            sender_generation=me.generation,
        )
        if me.run_dir:
            from swarm.messages import allowance  # people have as many as they like

            allowance.spend(me.run_dir)
        if message.ttl_ms:
            self._note_life(message)
        try:
            return self._bus.send(message)
        except IdTaken as error:
            raise IdTaken(error.message, hint=f"choose another id; see: swarm queue list {self.name} --all") from None
        except MessageNotFound as error:
            raise MessageNotFound(error.message, hint=f"add that first; see: swarm queue list {self.name}") from None
        except InboxNotFound:
            if message.after:
                raise MessageNotFound(
                    f"there is no queue {self.name}, and no task to wait for in it", hint="add that first"
                ) from None
        self._prepare()
        self._bus.declare(self._address)
        return self._bus.send(message)

    def _note_life(self, message: Message) -> None:
        """Schedule a check for the task's expiry, as no agent may take tasks again."""
        from swarm.messages import deadlines

        encode(message)  # is it a message?
        self._prepare()
        deadlines.note_life(self._bus.root, message, [self._address])

    def take(self, *, wait: float = 0.0, limit: int = 1, lease: float = LEASE) -> Claim | None:
        """Take the next tasks for *lease* seconds; None when there are none that can be taken.

        Raises:
            InboxNotFound: nobody has added a task yet.
        """
        check_lease(lease)
        with _Named(self.name):
            me = self._me
            return self._bus.receive(
                self._address, wait=wait, limit=limit, lease=lease, holder=me.holder, who=me.address
            )

    def done(self, ids: Sequence[str], result: str = "") -> TaskOutcome:
        """Finish tasks; swarm keeps *result* with each.

        Raises:
            ClaimLost, NotForAgents, MessageNotFound: nothing was settled.
        """
        if len(result.encode("utf-8", "surrogatepass")) > MAX_RESULT:
            raise UsageProblem(
                f"the result is longer than {MAX_RESULT >> 10} KiB", hint="write it to a file, name that"
            )
        return self._settle(ids, lambda claim, own: self._bus.ack(claim, own, note=result))

    def back(self, ids: Sequence[str], *, delay: float = 0.0, reason: str = "") -> TaskOutcome:
        """Return tasks to the queue, also tasks that were given up.

        Raises:
            ClaimLost, NotForAgents, MessageNotFound: nothing was given back.
        """
        dead = {one.message.id for one in self._dead()}
        held = [one for one in _once(ids) if one not in dead]

        def give_back(claim: Claim, own: tuple[str, ...]) -> None:
            self._bus.nack(claim, own, delay=delay, reason=reason)

        already = self._settle(held, give_back).already if held else ()
        for one in _once(ids):
            if one in dead:
                self._bus.requeue(self._address, one)
        return TaskOutcome(tuple(one for one in _once(ids) if one not in already), already)

    def fail(self, ids: Sequence[str], reason: str) -> TaskOutcome:
        """Give tasks up: swarm notifies their senders and blocks the tasks that depend on them.

        Raises:
            ClaimLost, NotForAgents, MessageNotFound: nothing was given up.
        """
        if not reason.strip():
            raise UsageProblem("a task is given up for a reason", hint="say why: --reason 'no such file'")
        return self._settle(ids, lambda claim, own: self._bus.fail(claim, own, reason=reason))

    def extend(self, ids: Sequence[str], lease: float = LEASE) -> TaskOutcome:
        """Extend the lease on tasks, and on those taken together with them, to *lease* seconds from now.

        Raises:
            ClaimLost, NotForAgents, MessageNotFound: nothing was extended.
        """
        check_lease(lease)
        return self._settle(ids, lambda claim, _: self._bus.extend(claim, lease))

    def tasks(self, limit: int = 1000, *, settled: bool = False) -> tuple[Task, ...]:
        """Return the open tasks, given up ones last; with *settled* also finished ones."""
        with _Named(self.name):
            return self._bus.tasks(self._address, limit, settled=settled)

    def _dead(self) -> tuple[Any, ...]:
        with _Named(self.name):
            return self._bus.dead(self._address)

    # --- settling -------------------------------------------------------------------------------

    def _settle(self, ids: Sequence[str], act: Callable[[Claim, tuple[str, ...]], None]) -> TaskOutcome:
        """Act on taken tasks, after a check that the caller may finish all of them."""
        with _Named(self.name):
            claims = self._bus.claims(self._address)
        found: dict[str, tuple[Claim, list[str]]] = {}
        already = []
        for one in _once(ids):
            claim = next((c for c in claims if any(m.id == one for m in c.messages)), None)
            if claim is None:
                already.append(self._done_before(one))
                continue
            if not self._me.is_person and claim.who != self._me.address:
                raise NotForAgents(
                    f"task {one} is not yours: {claim.who} took it",
                    hint="leave it to them; `swarm queue list` shows all",
                )
            found.setdefault(claim.id, (claim, []))[1].append(one)
        for claim, own in found.values():
            act(claim, tuple(own))
        settled = tuple(one for _, own in found.values() for one in own)
        return TaskOutcome(settled, tuple(already))

    def _done_before(self, task_id: str) -> str:
        """Return the id of a task without a holder if it is done.

        Raises:
            MessageNotFound: there is none.
            ClaimLost: it waits to be taken, or was given up.
        """
        trace = next((t for t in self._bus.find(task_id) if t.stored.address == self._address), None)
        if trace is None:
            raise MessageNotFound(
                f"there is no task {task_id[:60]!a} in queue {self.name}", hint=f"swarm queue list {self.name}"
            )
        if trace.stored.state == "acked":
            return task_id
        if trace.stored.state == "dead":
            raise ClaimLost(
                f"task {task_id} was given up: {trace.stored.reason}", hint=f"swarm queue back {self.name} {task_id}"
            )
        last = next((event for event in reversed(trace.events) if event.name == "returned"), None)
        why = f", it went back: {last.evidence}" if last is not None and last.evidence else ""
        raise ClaimLost(f"no agent has taken task {task_id}{why}", hint=f"swarm queue take {self.name}")


def queues(bus: PostBus) -> tuple[tuple[str, Depth], ...]:
    """Return all queues with their counts."""
    names = [address for address in bus.addresses() if address.startswith(_PREFIX)]
    found = []
    for address in names:
        try:
            found.append((address.removeprefix(_PREFIX), bus.depth(address)))
        except InboxNotFound:  # removed meanwhile
            continue
    return tuple(found)


def check_lease(seconds: float, what: str = "a task") -> None:
    """Refuse a time for which nothing can be held."""
    if not 1 <= seconds <= MAX_LEASE:
        raise UsageProblem(f"{what} is taken for at least 1s and at most 7d", hint="for example: --lease 30m")


def _checked(name: str) -> str:
    from swarm.project.names import check_name

    try:
        return check_name("queue", name)
    except InvalidName as error:
        raise InvalidName(error.message, hint="letters, digits, - and _, for example: work") from None


def _once(ids: Sequence[str]) -> tuple[str, ...]:
    if not ids:
        raise UsageProblem("no task named", hint="`swarm queue list NAME` shows their ids")
    return tuple(dict.fromkeys(ids))


class _Named:
    """Name a missing queue in the user's words."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, value: object, traceback: object) -> None:
        if isinstance(value, InboxNotFound):
            raise InboxNotFound(
                f"there is no queue {self._name}",
                hint=f"the first task makes it: swarm queue add {self._name} 'what is to be done'",
            ) from None
