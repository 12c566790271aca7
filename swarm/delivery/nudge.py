"""Announce waiting messages in an agent's pane.

The message is in the inbox; what is typed is one line of swarm's own that says so.  It is typed when, and only
when, the program is idle and nothing stands at its prompt:

    something waits ─► nobody has it ─► due ─► idle ─► a free prompt ─► note the try ─► paste ─► it is seen
      ─► still idle ─► Enter ─► event ``nudged``

A line without an answer is typed again after ever longer pauses, a few times; then the sender is told.  What
was tried is remembered in ``nudge.json``, which also tells the supervisor when to look again.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

from swarm.agents import orphans
from swarm.agents.errors import AgentNotRunning
from swarm.agents.view import View, state_of
from swarm.bus.errors import ClaimLost, InboxNotFound, MessageNotFound
from swarm.bus.message import DROP, POSTMASTER, Message
from swarm.delivery import retries, turns, typed
from swarm.delivery.errors import PaneBusy
from swarm.kit.errors import SwarmError, UsageProblem
from swarm.machine import locks, own
from swarm.machine.inbox_watch import Inbox, dropped, up_ms
from swarm.machine.processes import boot_id
from swarm.machine.run_folder import runfiles
from swarm.messages.inboxes import bus_of, inbox_folder, post_own
from swarm.programs import processes, registry
from swarm.programs.status import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from swarm.bus.protocol import Stored, Tasks
    from swarm.programs.reading.screen_rules import Prompt
    from swarm.project.model import Agent, Session
    from swarm.project.ports import Typist
    from swarm.project.world import World
    from swarm.terminal.values import Screen

NOTICE = "delivery"
#: Waiting messages that are counted.
_MOST = 200
#: Messages that a notice names.
_NAMED = 10
#: While a reader holds messages, and is expected to take the next ones itself.
_IN_HAND_MS = 30_000
_PRINTS = "it is in print mode and gets no notice of messages"
_SEEN_WITHIN, _LOOK_EVERY = 1.0, 0.03
#: How often Enter is pressed while the line still stands there, and for how long it may.
_ENTERS, _TAKEN_WITHIN = 3, 1.0


def nudge(world: World, typist: Typist, session: Session, agent: Agent) -> str:
    """Announce an agent's waiting messages, if due and possible; return the outcome in words."""
    run = world.layout.run_folder(session.name, agent.name)
    with _alone(run):
        return _Nudge(world, typist, session, agent, run).do()


class _Nudge:
    """One look at one agent's inbox."""

    def __init__(self, world: World, typist: Typist, session: Session, agent: Agent, run: Path) -> None:
        self._world = world
        self._typist = typist
        self._session = session
        self._agent = agent
        self._run = run
        self._bus = bus_of(world)
        self._address = f"{agent.name}@{session.name}"
        self._inbox = str(inbox_folder(world, session.name, agent.name))
        self._pause_ms = int(world.settings.agents.nudge_pause * 1000)
        self._boot = boot_id()
        self._memory = retries.from_record(runfiles.read(str(run), runfiles.NUDGE), self._boot)
        self._seen = Inbox(self._inbox).mark()
        self._kept = 0  # messages that the agent took itself, and has not acknowledged

    def do(self) -> str:
        waiting = self._waiting()
        self._memory.update(waiting, up_ms())
        if self._is_in_hand(waiting):
            self._remember(up_ms() + _IN_HAND_MS)
            return "it has messages in hand"
        if orphans.is_paused(self._world, self._session):
            self._remember(up_ms() + _IN_HAND_MS)
            return "its parent has ended, and it is left in peace"
        facts = processes.facts(self._run)
        if facts.alive and facts.prints:
            return self._leave_alone(waiting, deaf=facts.deaf)
        again, words = self._announce(waiting)
        hopeless = self._memory.hopeless(up_ms(), self._pause_ms)
        self._tell_senders(waiting, {one: self._why(one, words) for one in hopeless})
        later = self._memory.next()
        self._remember(max(again, later) if again and later else again or later)
        return words

    def _waiting(self) -> dict[str, Stored | None]:
        """Return the waiting messages by id, with the files of the drop folder."""
        try:
            stored = self._bus.peek(self._address, _MOST)
        except InboxNotFound:
            return {}
        claimed = {one.message.id for one in stored if one.state == "claimed"}
        if claimed:  # an ended claim has no holder; checked twice, because it may just have been finished
            claimed -= {message.id for claim in self._bus.claims(self._address) for message in claim.messages}
            stored = self._bus.peek(self._address, _MOST)
        found: dict[str, Stored | None] = {
            one.message.id: one for one in stored if one.state == "queued" or one.message.id in claimed
        }
        found.update((f"file {name}", None) for name in dropped(self._inbox)[: _MOST - len(found)])
        return found

    def _is_in_hand(self, waiting: dict[str, Stored | None]) -> bool:
        """Whether a reader holds messages of the agent: then others wait, and delivered ones are watched.

        Nobody waits for messages when this is asked, so nobody else sees that the program dropped what it was given.
        An idle program that took some in an earlier turn, and forgot to acknowledge them, takes no more by itself.
        """
        claims = self._bus.claims(self._address)
        given = turns.given_in_hand(str(self._run), claims)
        if given is None:
            self._kept = sum(len(one.messages) for one in claims if one.who == self._address)
            return bool(waiting and claims and not (self._kept and self._is_idle()))
        ids = [message.id for message in given.messages]
        if not turns.is_lost(str(self._run), ids, "", self._idle_since):
            return True
        with suppress(ClaimLost):
            self._bus.nack(given, reason="it did not appear in the program's turn")
        waiting.update(self._waiting())
        self._memory.update(waiting, up_ms())
        return False

    def _is_idle(self) -> bool:
        return state_of(self._world, self._session, self._agent).state is State.IDLE

    def _idle_since(self) -> int:
        """Return since when the program is idle by its own words; 0 when it is not, or does not tell."""
        own = processes.facts(self._run).own
        return own.since_ms if own is not None and own.state == State.IDLE else 0

    def _leave_alone(self, waiting: dict[str, Stored | None], *, deaf: bool) -> str:
        """Type nothing into a program in print mode; without a delivering hook, notify the senders now."""
        which = [one for one, note in self._memory.notes.items() if deaf and not note.told]
        self._tell_senders(waiting, dict.fromkeys(which, f"not typed: {_PRINTS}"))
        told = all(self._memory.notes[one].told for one in which)
        self._remember(0 if told else up_ms() + _IN_HAND_MS)
        return _PRINTS

    # --- announce -------------------------------------------------------------------------------

    def _announce(self, waiting: dict[str, Stored | None]) -> tuple[int, str]:
        """Type the line if it is due; return the time of the next look (0: as remembered) and the outcome."""
        due = self._memory.due(up_ms())
        if not due:
            return 0, "nothing waits" if not waiting else "it was told"
        try:
            view = self._ready()
            pane = "" if self._has_way() else self._free_prompt(view)
        except PaneBusy as obstacle:
            return self._memory.held(up_ms()), obstacle.message
        shell = self._agent.program == "shell"
        senders = (stored.message.sender for stored in waiting.values() if stored)
        line = typed.nudge_line(len(waiting), senders, shell=shell, more=len(waiting) >= _MOST, kept=self._kept)
        old, self._memory.line = self._memory.line, line
        self._memory.announced(due, up_ms(), self._pause_ms)
        self._remember(self._memory.next())  # first: after a kill here nothing is typed twice
        try:
            how = self._hand_over(line) if not pane else ""
            if not how:
                pane = pane or self._free_prompt(view)
                self._type(pane, line, old)
                how = f"pasted into {pane} at its prompt"
        except SwarmError as problem:
            return 0, f"typed, not submitted: {problem.message}"
        for one in due:
            if waiting[one] is not None:
                with suppress(MessageNotFound):
                    self._bus.record_event(self._address, one, "nudged", how)
        return 0, how

    def _has_way(self) -> bool:
        """Whether the program can be given a text past its pane; agents that share a folder share its conversations.

        For that swarm runs the program once more: not with the conversation that an agent in a box says is its own.
        """
        program = registry.program(self._agent.program, self._agent.command)
        return program.takes_texts and not self._agent.shared and not self._agent.is_boxed

    def _hand_over(self, line: str) -> str:
        """Give the program the line; return how, and nothing where it did not take it."""
        facts = processes.facts(self._run)
        program = registry.program(self._agent.program, self._agent.command)
        return program.hand_over(self._run, facts.pid, line) if facts.alive else ""

    def _ready(self) -> View:
        """Look at the agent, which is to be idle.

        Raises:
            PaneBusy: it is not, or nothing may be said.
        """
        view = View(self._world, {(self._session.name, self._agent.name)})
        status = view.status(self._session, self._agent)
        allowed = {State.IDLE} | ({State.UNKNOWN} if self._world.settings.agents.nudge == "unknown" else set())
        if self._world.settings.agents.nudge == "never":
            raise PaneBusy("the setting agents.nudge forbids typing into panes")
        if status.state not in allowed:
            raise PaneBusy(f"it is {status.state}, not idle" + (f": {status.detail}" if status.detail else ""))
        return view

    def _free_prompt(self, view: View) -> str:
        """Return the pane whose prompt is free.

        Raises:
            PaneBusy: it is not; says why.
        """
        pane = view.pane(self._session, self._agent)
        if pane is None:
            raise PaneBusy("it has no pane")
        screen = _takes_keys(self._typist, pane.id)
        if not self._is_free(screen) and not typed.holds(screen, self._memory.line):
            raise PaneBusy("its prompt holds text, or swarm does not recognize the prompt")
        return pane.id

    def _prompt(self) -> Prompt | None:
        """Return how the program's free prompt looks, where that is written down."""
        rules = registry.program(self._agent.program, self._agent.command).screens()
        return rules.prompt if rules is not None else None

    def _is_free(self, screen: Screen) -> bool:
        prompt = self._prompt()
        if prompt is not None:
            return prompt.is_free(screen.before, screen.after, faint=screen.faint)
        facts = processes.facts(self._run)
        return typed.is_prompt(screen, facts.said_prompt, shell=self._agent.program == "shell")

    def _type(self, pane: str, line: str, old: str) -> None:
        """Paste the line, and press Enter when it is to be seen and the program still idle.

        Raises:
            SwarmError: Enter was not pressed.
        """
        screen = _takes_keys(self._typist, pane)
        if not typed.holds(screen, old):  # one that was left there by an earlier try is sent now
            self._typist.paste(pane, line)
            old = line
        deadline = time.monotonic() + _SEEN_WITHIN
        while not typed.shows(screen := _takes_keys(self._typist, pane), old):
            if time.monotonic() > deadline:
                raise PaneBusy("it did not show the typed text")
            time.sleep(_LOOK_EVERY)
        prompt = self._prompt()
        for _ in range(_ENTERS):
            time.sleep(prompt.settle if prompt else 0.0)
            state = state_of(self._world, self._session, self._agent).state
            if state not in (State.IDLE, State.UNKNOWN):
                raise PaneBusy(f"it is {state} now")
            self._typist.enter(pane)
            if self._is_taken(pane, old):
                return
        raise PaneBusy("it did not take Enter")

    def _is_taken(self, pane: str, line: str) -> bool:
        """Wait until the program has taken a line; some take an Enter right after a paste for a part of it."""
        deadline = time.monotonic() + _TAKEN_WITHIN
        while time.monotonic() < deadline:
            screen = _takes_keys(self._typist, pane)
            if not typed.holds(screen, line) and (self._prompt() is None or self._is_free(screen)):
                return True
            if state_of(self._world, self._session, self._agent).state is not State.IDLE:
                return True
            time.sleep(_LOOK_EVERY)
        return False

    # --- tell and remember ------------------------------------------------------------------------

    def _tell_senders(self, waiting: dict[str, Stored | None], reasons: dict[str, str]) -> None:
        """Notify the senders why the agent does not read their messages; *reasons* are by id."""
        several: dict[tuple[str, str, str], list[str]] = {}
        for one, why in reasons.items():
            stored = waiting[one]
            sender, run = (stored.message.sender, stored.message.sender_generation) if stored else (DROP, "")
            several.setdefault((sender, run, why), []).append(one)
        for (*_, why), ids in several.items():
            messages = [stored.message for one in ids if (stored := waiting[one])]
            if not messages or tell_sender(self._bus, messages, self._address, why):
                for one in ids:
                    self._memory.notes[one].told = True

    def _why(self, one: str, words: str) -> str:
        tries = self._memory.notes[one].tries
        times = f"{tries} time{'s' if tries != 1 else ''}"
        return (
            f"typed, not submitted or not heeded: it was announced {times} in the pane, and not taken"
            if tries
            else f"not typed: {words}"
        )

    def _remember(self, again: int) -> None:
        record = retries.to_record(self._memory, self._boot)
        runfiles.write(str(self._run), runfiles.NUDGE, {**record, "seen": self._seen, "again_ms": again})


def tell_sender(bus: Tasks, messages: Sequence[Message], address: str, why: str) -> bool:
    """Notify the senders of unread messages, once, however many processes do it.

    False: try again later.
    """
    message = messages[0]
    if message.sender in (POSTMASTER, DROP) or all(one.type == NOTICE for one in messages):
        return True
    from hashlib import sha256

    from swarm.bus.notices import send_notice

    notice = Message(
        to=message.sender,
        sender=POSTMASTER,
        type=NOTICE,
        id=f"delivery.{sha256(f'{address} {message.id}'.encode()).hexdigest()[:16]}",
        subject="not read yet",
        body=_notice(messages, address, why),
        thread_id=message.thread_id,
        in_reply_to=message.id,
        generation=message.sender_generation,
    )
    try:
        send_notice(bus, notice)
    except SwarmError:
        return False
    return True


def _notice(messages: Sequence[Message], address: str, why: str) -> str:
    if len(messages) == 1:
        return f"Your message {messages[0].id} to {address} was {why}. It waits in the inbox."
    shown = ", ".join(one.id for one in messages[:_NAMED]) + (", …" if len(messages) > _NAMED else "")
    return f"{len(messages)} messages of yours to {address} were {why}. They wait in the inbox: {shown}"


def heartbeat(world: World, session: Session, agent: Agent, period: str) -> bool:
    """Send an agent the heartbeat of its role, once in each idle period; False without one."""
    from hashlib import sha256

    record = runfiles.read(str(world.layout.run_folder(session.name, agent.name)), runfiles.HEARTBEAT) or {}
    text = record.get("message")
    if not isinstance(text, str) or not text:
        return False
    address = f"{agent.name}@{session.name}"
    run = processes.facts(world.layout.run_folder(session.name, agent.name)).started_ms
    once = sha256(f"{address} {run} {period}".encode()).hexdigest()[:16]
    message = Message(to=address, sender=POSTMASTER, type="heartbeat", id=f"heartbeat.{once}", body=text)
    with closing(bus_of(world)) as bus:
        post_own(bus, message._replace(generation=session.generation_of(agent)))
    return True


# --- typing anything ------------------------------------------------------------------------------


def type_into(world: World, typist: Typist, session: Session, agent: Agent, text: str, *, enter: bool) -> str:
    """Type a text into an agent's pane, literally and whole; return the pane.

    Raises:
        UsageProblem: there is nothing to type.
        AgentNotRunning, PaneBusy: nothing was typed.
    """
    from swarm.agents import running

    facts = processes.facts(world.layout.run_folder(session.name, agent.name))
    if facts.alive and facts.prints:
        raise PaneBusy(
            f"cannot type into {agent.name} of {session.name}: it is in print mode and reads nothing from its pane",
            hint=f"wait for its end: swarm status {session.name}",
        )
    plain = typed.clean(text.replace("\r\n", "\n")).rstrip("\n")
    if not plain and not enter:
        raise UsageProblem(f"cannot type into {agent.name}: the text is empty")
    pane = running.pane_of(world, session, agent)
    screen = typist.look(pane)
    if screen is None or screen.dead:
        raise AgentNotRunning(f"cannot type into {agent.name} of {session.name}: its program has ended")
    try:
        _takes_keys(typist, pane)
    except PaneBusy as problem:
        raise PaneBusy(f"cannot type into {agent.name} of {session.name}: {problem.message}") from None
    if plain:
        typist.paste(pane, plain)
    if enter:
        _wait_until_shown(typist, pane, plain)
        typist.enter(pane)
    return pane


def _wait_until_shown(typist: Typist, pane: str, text: str) -> None:
    """Give the program a moment to show a paste, with a short time limit."""
    last = text.rpartition("\n")[2]
    deadline = time.monotonic() + _SEEN_WITHIN
    while time.monotonic() < deadline:
        screen = typist.look(pane)
        if screen is None or typed.shows(screen, last):
            return
        time.sleep(_LOOK_EVERY)


def _takes_keys(typist: Typist, pane: str) -> Screen:
    """Look at a pane.

    Raises:
        PaneBusy: what is typed would not reach its program.
    """
    screen = typist.look(pane)
    if screen is None or screen.dead:
        raise PaneBusy("its pane is dead" if screen else "its pane is gone", hint="bring it back with `swarm resume`")
    if screen.in_mode:
        raise PaneBusy("a user scrolls in its pane (copy mode)")
    if screen.closed:
        raise PaneBusy("its pane takes no keys, or shares them with others (synchronize-panes)")
    return screen


@contextmanager
def _alone(run: Path) -> Iterator[None]:
    """Let one at a time speak to an agent."""
    fd = own.open(os.fspath(run / "nudge.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        locks.lock(fd)
        yield
    finally:
        os.close(fd)
