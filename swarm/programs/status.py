"""Conclude an agent's state from evidence.

Facts are stored, status is not.  Each fact has a source and an age; a state without evidence for it is
``unknown``, and silence is never taken for idleness.  Standard library only: supervisors conclude, too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """The states of an agent."""

    STARTING = "starting"
    WORKING = "working"
    IDLE = "idle"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    UNKNOWN = "unknown"


class Evidence(NamedTuple):
    """One fact.

    Attributes:
        source: ``process``, ``program`` (its own words), ``screen`` (the content of its pane), ``elsewhere``, ``exit``,
            ``pane``, ``terminal``, ``budget``, ``swarm``, ``socket``.
        text: the fact, for people.
        at_ms: when it was true; 0 means now.
        decides: it settled the state.
    """

    source: str
    text: str
    at_ms: int = 0
    decides: bool = False


#: So begins why an agent was stopped that had used up too much.
OVER_BUDGET = "over its budget"
STOPPED_BY_SWARM = "stopped by swarm"
OUT_OF_TIME = "stopped by swarm, its time was up"


class OwnWords(NamedTuple):
    """A program's report in its own format.

    Attributes:
        source: where it says so, for people.
        state: one of ``State``.
        since_ms: since when; 0 when it does not tell.
    """

    source: str
    state: str
    detail: str
    since_ms: int


class ProgramFacts(NamedTuple):
    """Facts about an agent's program from its run folder and the process table.

    Attributes:
        launched: it was ever told to start.
        pid: of the program; 0 when unknown.
        supervisor: pid of swarm's launcher around it; 0 when unknown.
        alive: exactly that process lives, in this boot.
        supervised: so does the launcher around it.
        started_ms: when it was started.
        same_boot: the facts are of the running boot.
        exit_code, exit_signal, exit_cause, ended_ms: how it ended, when it has.
        said_state, said_detail, said_ms: what the program last said of itself.
        said_prompt: what stands before its cursor while nothing is typed; empty when it does not tell.
        foreground: for a shell: whether it is at its prompt; None when it cannot be told.
        stopped_ms: when swarm stopped it on request; 0 when not.
        asked: it was started a moment ago with a first prompt.
        own: what the living program says in its own way; it wins over what hooks of it wrote down.
        budget: how near it is to its limits, or which one it reached; empty when there is nothing to say.
        ran_ms: for how long programs of the agent ran before this one.
        prints: it is in print mode: it does its task, asks nobody, and ends.
        deaf: messages cannot reach it meanwhile.
        operation: the operation that launched it.
        elsewhere: where its conversation goes on, when that is not in its pane; empty when it is.
    """

    launched: bool = False
    pid: int = 0
    supervisor: int = 0
    alive: bool = False
    supervised: bool = False
    started_ms: int = 0
    same_boot: bool = True
    exit_code: int | None = None
    exit_signal: int | None = None
    exit_cause: str = ""
    ended_ms: int = 0
    said_state: str = ""
    said_detail: str = ""
    said_ms: int = 0
    said_prompt: str = ""
    foreground: bool | None = None
    stopped_ms: int = 0
    own: OwnWords | None = None
    asked: bool = False
    budget: str = ""
    ran_ms: int = 0
    prints: bool = False
    deaf: bool = False
    operation: str = ""
    elsewhere: str = ""


class Verdict(NamedTuple):
    """The reading of a screen.

    Attributes:
        rule: the rule that decided, as ``program/name``; empty where *why* tells it.
        why: what it saw, for people.
        at_ms: when that was; 0 means now.
    """

    state: str
    detail: str
    rule: str
    why: str
    at_ms: int = 0


class PaneFacts(NamedTuple):
    """Facts about an agent's pane from tmux.

    Attributes:
        id: empty when it has none.
        server: the tmux server is up.
        screen: what the program's screen rules make of what it shows; None when they do not know it.
        begins: its process is a launcher that has claimed a later launch than the one that the run folder tells of.
    """

    id: str = ""
    dead: bool = False
    server: bool = True
    screen: Verdict | None = None
    begins: bool = False


class Status(NamedTuple):
    """A state, and its evidence.

    Attributes:
        since_ms: since when, as far as known; 0 when not.
        runs: the program is there, or about to be; one that says it is done may still run.
    """

    state: State
    detail: str
    since_ms: int
    evidence: tuple[Evidence, ...]
    runs: bool = False

    @property
    def is_over_budget(self) -> bool:
        """Whether the program was stopped because it had used up too much."""
        return self.state is State.STOPPED and self.detail.startswith(OVER_BUDGET)


def conclude(program: str, facts: ProgramFacts, pane: PaneFacts) -> Status:
    """Conclude an agent's state."""
    found = _conclude(program, facts, pane)
    if facts.budget and facts.alive:
        found = found._replace(detail=f"{found.detail}; {facts.budget}" if found.detail else facts.budget)
    runs = facts.alive or facts.supervised or bool(facts.elsewhere) or found.state is State.STARTING
    return found._replace(runs=runs)


def _conclude(program: str, facts: ProgramFacts, pane: PaneFacts) -> Status:
    seen = _evidence(facts, pane)
    if not program:
        return Status(State.STOPPED, "no agent program, a worktree only", 0, seen)
    if facts.elsewhere:
        return Status(State.UNKNOWN, f"its conversation goes on in {facts.elsewhere}", 0, _decided(seen, "elsewhere"))
    if facts.alive:
        return _in_print_mode(facts, seen) if facts.prints else _while_alive(program, facts, pane, seen)
    begins = pane.begins and not facts.supervised  # what the run folder tells is of an earlier run
    if facts.exit_cause and not begins:
        return _after_end(facts, seen)
    if not facts.launched or facts.pid == 0 or begins:
        return _before_start(facts, pane, seen)
    return _without_word(facts, seen)


def _in_print_mode(facts: ProgramFacts, seen: tuple[Evidence, ...]) -> Status:
    """The state in print mode: such a program never waits for an answer, and ends when idle."""
    detail = facts.said_detail if facts.said_state == State.WORKING and facts.said_ms >= facts.started_ms else ""
    return Status(State.WORKING, detail or "at its task, then it ends", facts.started_ms, _decided(seen, "process"))


def _while_alive(program: str, facts: ProgramFacts, pane: PaneFacts, seen: tuple[Evidence, ...]) -> Status:
    own, screen = facts.own, pane.screen
    if own is not None and own.state != State.STARTING:
        return Status(State(own.state), own.detail, own.since_ms, _decided(seen, "program"))
    if facts.said_state and facts.said_ms >= facts.started_ms:
        known = facts.said_state in {"working", "idle", "waiting", "done"}
        state = State(facts.said_state) if known else State.UNKNOWN
        return Status(state, facts.said_detail, facts.said_ms, _decided(seen, "program"))
    if screen is not None:
        return Status(State(screen.state), screen.detail, 0, _decided(seen, "screen"))
    if own is not None:  # of no weight beside a screen with a question on it
        return Status(State.STARTING, own.detail, own.since_ms, _decided(seen, "program"))
    if facts.foreground is not None and program == "shell":
        state = State.IDLE if facts.foreground else State.WORKING
        detail = "at its prompt" if facts.foreground else "running a command"
        return Status(state, detail, 0, _decided(seen, "terminal"))
    return Status(State.UNKNOWN, "it runs; its program does not report its state", facts.started_ms, seen)


def _after_end(facts: ProgramFacts, seen: tuple[Evidence, ...]) -> Status:
    decided = _decided(seen, "exit")
    if facts.exit_cause == "budget":
        return Status(State.STOPPED, facts.budget or OVER_BUDGET, facts.ended_ms, decided)
    if facts.exit_cause in {"stopped", "timeout"} or 0 < facts.stopped_ms <= facts.ended_ms:
        late = facts.exit_cause == "timeout"
        return Status(State.STOPPED, OUT_OF_TIME if late else STOPPED_BY_SWARM, facts.ended_ms, decided)
    if facts.exit_cause == "hangup":
        return Status(State.STOPPED, "its terminal was closed", facts.ended_ms, decided)
    if facts.exit_code == 0:
        return Status(State.DONE, "ended by itself", facts.ended_ms, decided)
    if facts.exit_signal:
        return Status(State.FAILED, f"killed by signal {facts.exit_signal}", facts.ended_ms, decided)
    return Status(State.FAILED, f"exit status {facts.exit_code}", facts.ended_ms, decided)


def _without_word(facts: ProgramFacts, seen: tuple[Evidence, ...]) -> Status:
    """The state of a vanished process without a record of its end: not written yet, or never."""
    if facts.supervised:
        return Status(State.UNKNOWN, "it has ended; its processes are being ended", 0, _decided(seen, "process"))
    if not facts.same_boot:
        return Status(State.STOPPED, "the machine was restarted", 0, _decided(seen, "process"))
    if facts.stopped_ms:
        return Status(State.STOPPED, STOPPED_BY_SWARM, facts.stopped_ms, _decided(seen, "swarm"))
    return Status(State.FAILED, "its process ended without a record", 0, _decided(seen, "process"))


def _before_start(facts: ProgramFacts, pane: PaneFacts, seen: tuple[Evidence, ...]) -> Status:
    if facts.stopped_ms and not pane.begins:
        return Status(State.STOPPED, STOPPED_BY_SWARM, facts.stopped_ms, _decided(seen, "swarm"))
    if pane.id and not pane.dead:
        return Status(State.STARTING, "its pane is open, the program has not reported yet", 0, _decided(seen, "pane"))
    if pane.id:
        return Status(State.FAILED, "its pane ended before the program was started", 0, _decided(seen, "pane"))
    return Status(State.STOPPED, "it has no pane", 0, _decided(seen, "pane"))


def _evidence(facts: ProgramFacts, pane: PaneFacts) -> tuple[Evidence, ...]:
    found = []
    if facts.pid:
        life = "lives" if facts.alive else "is gone" if facts.same_boot else "is of an earlier boot"
        mode = ", in print mode" if facts.prints and facts.alive else ""
        found.append(Evidence("process", f"process {facts.pid} {life}{mode}", facts.started_ms))
    if facts.own is not None:
        words = facts.own.state + (f": {facts.own.detail}" if facts.own.detail else "")
        found.append(Evidence("program", f"{facts.own.source} says {words}", facts.own.since_ms))
    elif facts.said_state:
        words = facts.said_state + (f": {facts.said_detail}" if facts.said_detail else "")
        found.append(Evidence("program", f"the program said: {words}", facts.said_ms))
    if facts.elsewhere:
        found.append(Evidence("elsewhere", f"{facts.elsewhere} has taken up its conversation"))
    if facts.exit_cause:
        how = f"signal {facts.exit_signal}" if facts.exit_signal else f"status {facts.exit_code}"
        found.append(Evidence("exit", f"its supervisor saw it end: {facts.exit_cause}, {how}", facts.ended_ms))
    if facts.foreground is not None and facts.alive:
        who = "the program itself" if facts.foreground else "something it runs"
        found.append(Evidence("terminal", f"{who} holds the terminal"))
    if facts.stopped_ms:
        found.append(Evidence("swarm", "swarm stopped it on request", facts.stopped_ms))
    if facts.budget:
        found.append(Evidence("budget", facts.budget))
    if pane.screen is not None and facts.alive:
        rule = f" (rule {pane.screen.rule})" if pane.screen.rule else ""
        found.append(Evidence("screen", pane.screen.why + rule, pane.screen.at_ms))
    return (*found, _pane_evidence(pane))


def _pane_evidence(pane: PaneFacts) -> Evidence:
    if not pane.server:
        return Evidence("pane", "no tmux server is running")
    return Evidence("pane", f"pane {pane.id} is {'dead' if pane.dead else 'open'}" if pane.id else "it has no pane")


def _decided(seen: tuple[Evidence, ...], source: str) -> tuple[Evidence, ...]:
    return tuple(item._replace(decides=item.source == source) for item in seen)
