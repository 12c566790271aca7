"""The supervisor of a bridge: run its command, hand messages over, take its lines, start it again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import selectors
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

from swarm.approvals import decide
from swarm.approvals.values import Answer, Verdict
from swarm.bridges import lines, place
from swarm.bridges.errors import BridgeRuns
from swarm.bridges.ledger import Ledger
from swarm.bus.addressing import BRIDGE, USER
from swarm.bus.wire import ID, is_word
from swarm.kit import files
from swarm.kit.errors import Interrupted, SwarmError, UsageProblem
from swarm.machine.run_folder.program_facts import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from swarm.bridges.definition import Definition
    from swarm.bus.protocol import Stored
    from swarm.messages.office.post import Post

_LOOK_EVERY = 0.5
#: So many seconds pass before a command is started again: twice as many each time, and at most the second number.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
#: A command that ran so many seconds was well; one that runs so many seconds has started.
_WELL, _STARTED = 60.0, 1.0
_GRACE = 3.0
_MOST_LOOKED_AT = 10_000
#: So many bytes wait for a command that does not read; the rest stays in the inbox.
_FULL = 256 << 10
#: The types of lines that only swarm writes.
_OWN = frozenset({"acked", "answered", "approval", "error", "sent"})
#: How much of the end of a command's log is read for its last words, and how many characters of them are told.
_TAIL, _MOST_WORDS = 4096, 120
#: So many lines that mean nothing end a command.
_MOST_BAD = 1000


class Gateway:
    """One bridge at work for one repository.

    Args:
        state: the ``.swarm`` folder.
        environ: of which the command gets a part.
        answer: answers a request of an agent: its id, and how.
    """

    def __init__(
        self,
        definition: Definition,
        state: Path,
        post: Post,
        environ: Mapping[str, str],
        answer: Callable[[str, Answer], object],
    ) -> None:
        self._definition = definition
        self._state = state
        self._folder = place.folder_of(state, definition.name)
        self._post = post
        self._own = f"{BRIDGE}{definition.name}"
        self._environ = definition.environment(environ, state.parent)
        self._answer = answer
        self._stop = False
        self._started = 0.0
        self._status = place.BridgeStatus(definition.name, place.STARTING)
        self._handed: dict[str, Stored] = {}
        self._asked: set[str] = set()
        self._bad = 0

    def stop(self) -> None:
        """End at the next moment."""
        self._stop = True

    def run(self) -> None:
        """Serve until ``stop``; what comes meanwhile waits in the user's inbox.

        Raises:
            BridgeRuns: another process serves this bridge.
        """
        fd = place.take(self._folder)
        if fd < 0:
            raise BridgeRuns(f"bridge {self._definition.name} runs already")
        try:
            self._ledger = Ledger(self._folder / place.LEDGER)
            if self._ledger.is_new:
                self._ledger.begin(self._post.history(USER, _MOST_LOOKED_AT))
            self._serve()
        except Interrupted:
            raise
        except SwarmError as problem:
            self._note(place.STOPPED, problem.message)
            raise
        else:
            self._note(place.STOPPED, "stopped by the user")
        finally:
            os.close(fd)

    def _serve(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stop:
            begun = time.monotonic()
            why = self._attempt()
            if self._stop:
                return
            pause = _FIRST_PAUSE if time.monotonic() - begun > _WELL else pause
            self._note(place.DOWN, f"{why}; it is started again in {pause:g} s")
            until = time.monotonic() + pause
            while time.monotonic() < until and not self._stop:
                time.sleep(0.05)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self) -> str:
        """Run the command to its end, and return why it ended; a full disk ends it as a fault of its own does."""
        try:
            with files.os_errors("cannot serve"):
                return self._run_command()
        except Interrupted:
            raise
        except SwarmError as problem:
            return problem.message

    def _note(self, state: str, detail: str = "") -> None:
        if (state, detail) != (self._status.state, self._status.detail) or not self._status.pid:
            self._status = place.BridgeStatus(self._definition.name, state, one_line(detail), 0, os.getpid())
            with contextlib.suppress(OSError):  # on a full disk the messages matter
                place.write(self._folder, self._status)

    # --- the command ---------------------------------------------------------------------------------

    def _run_command(self) -> str:
        """Run the command to its end, and return why it ended."""
        self._ledger.forget_used_codes()
        self._note(place.STARTING, self._status.detail if self._status.state == place.DOWN else "")
        self._handed.clear()
        self._asked.clear()
        self._bad = 0
        log = os.open(self._folder / place.LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            child = subprocess.Popen(
                self._definition.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environ,
                cwd=self._state.parent,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return f"cannot start {self._definition.command[0]}: {getattr(error, 'strerror', '') or error}"
        finally:
            os.close(log)
        self._started = time.monotonic()
        try:
            return self._talk(child)
        finally:
            _end(child)

    def _talk(self, child: subprocess.Popen[bytes]) -> str:
        assert child.stdin is not None and child.stdout is not None  # noqa: S101, PT018  # both are pipes
        into, out = child.stdin.fileno(), child.stdout.fileno()
        os.set_blocking(into, False)
        os.set_blocking(out, False)
        waiting, heard = bytearray(), b""
        looked = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            while not self._stop:
                if time.monotonic() - looked >= _LOOK_EVERY:
                    looked = time.monotonic()
                    if len(waiting) < _FULL:
                        waiting += self._news()
                    if time.monotonic() - self._started > _STARTED:
                        self._note(place.UP)
                if waiting:
                    with contextlib.suppress(BlockingIOError, BrokenPipeError):
                        del waiting[: os.write(into, waiting)]
                if selector.select(0.05 if waiting else _LOOK_EVERY):
                    data = os.read(out, 1 << 16)
                    if not data:
                        return _how_ended(child) + self._last_words()
                    *whole, heard = (heard + data).split(b"\n")
                    waiting += b"".join(self._hear(one) for one in whole)
                    if len(heard) > lines.LONGEST or self._bad > _MOST_BAD:
                        return "it wrote lines that mean nothing, or are too long"
        return "stopped"

    def _last_words(self) -> str:
        """Return what the command wrote last to stderr, as the end of a sentence."""
        with contextlib.suppress(OSError), open(self._folder / place.LOG, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL))
            said = [one_line(line) for line in file.read().decode("utf-8", "replace").splitlines() if line.strip()]
            return f": {said[-1][:_MOST_WORDS]}" if said else ""
        return ""

    # --- out -----------------------------------------------------------------------------------------

    def _news(self) -> bytes:
        """Return the lines of messages and requests that the command was not told since it was started."""
        found = bytearray()
        for one in (*self._waiting(), *self._waiting_own()):
            if one.message.id not in self._handed and len(found) < _FULL:
                self._handed[one.message.id] = one
                found += lines.message(one.message)
        questions = [one.question for one in decide.look_in(self._state, problems=[]) if one.waits]
        self._ledger.keep_codes(one.id for one in questions)
        for question in questions:
            if question.id not in self._asked:
                self._asked.add(question.id)
                may = "approve" in self._definition.may
                found += lines.approval(question, self._ledger.code_of(question.id) if may else "")
        return bytes(found)

    def _waiting(self) -> list[Stored]:
        """Return the messages to the user that the command has not acknowledged, whoever else read them."""
        return [one for one in self._post.history(USER, _MOST_LOOKED_AT) if not self._ledger.is_acked(one)]

    def _waiting_own(self) -> tuple[Stored, ...]:
        """Return the messages to the bridge itself that are not finished: it is the reader of that box."""
        found = self._post.inbox(self._own, _MOST_LOOKED_AT)
        if any(one.message.ttl_ms for one in found):
            self._post.bus.expire(self._own)
            found = self._post.inbox(self._own, _MOST_LOOKED_AT)
        return found

    # --- in ------------------------------------------------------------------------------------------

    def _hear(self, data: bytes) -> bytes:
        """Do what a line says, and return the line that answers it."""
        if not data.strip():
            return b""
        found: dict[str, Any] = {}
        self._bad += 1
        try:
            found = lines.read(data)
            if found["type"] in _OWN or "sender" in found:  # it repeats what it hears; an answer would go on for ever
                return b""
            self._bad -= 1
            act = {"ack": self._ack, "message": self._take, "answer": self._decide}.get(found["type"], _unknown)
            with files.os_errors("cannot write it down"):
                return act(found)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return lines.line("error", id=_id_of(found), code="LINE", message=f"cannot read the line: {error}")
        except Interrupted:
            raise
        except SwarmError as problem:
            return lines.line("error", id=_id_of(found), code=problem.code, message=problem.message)

    def _ack(self, found: Mapping[str, Any]) -> bytes:
        one = self._handed.get(str(found["id"]))
        if one is None:
            raise UsageProblem(f"cannot acknowledge {str(found['id'])[:60]!a}: it was not handed over")
        if one.address == self._own:
            self._finish(one)
        elif not self._ledger.is_acked(one):
            self._ledger.ack(one, self._waiting())
        return lines.line("acked", id=one.message.id)

    def _finish(self, one: Stored) -> None:
        """Take a message to the bridge itself out of its box, for good."""
        bus, name = self._post.bus, one.message.id
        claim = bus.receive(self._own, who=USER, wanted=lambda other: other.id == name)
        if claim is None:  # somebody has it in hand: a person, or this process, which could not write the rest
            held = (other for other in bus.claims(self._own) if name in {message.id for message in other.messages})
            claim = next(held, None)
        if claim is not None:  # else it is finished already
            bus.ack(claim, (name,), note=f"acknowledged by bridge {self._definition.name}")

    def _take(self, found: Mapping[str, Any]) -> bytes:
        """Send a message of the bridge's; said again under the same id it is the same message."""
        own = str(found["id"])
        name = f"bridge.{self._definition.name}.{own}"
        if not is_word(ID, name):
            name = f"bridge.{self._definition.name}.{hashlib.sha256(own.encode()).hexdigest()[:32]}"
        answered = str(found.get("in_reply_to") or "")
        to = str(found.get("to") or "") or ("" if answered else self._definition.to)
        if not to and not answered:
            answered = self._last_handed()
        sent = self._post.send(
            to or (),
            str(found["body"]),
            subject=str(found.get("subject") or ""),
            id=name,
            reply_to=answered,
            metadata={"label": f"bridge {self._definition.name}"},
        )
        return lines.line("sent", id=own, to=[one.to for one in sent])

    def _last_handed(self) -> str:
        """Return the last message from an agent to the user, or to the bridge itself."""
        boxes = (self._post.history(USER, 100), self._post.history(self._own, 100))
        past = [one.message for box in boxes for one in box if "@" in one.message.sender]
        if not past:
            raise UsageProblem("no recipient is named", hint="name one as `to`, in the line or in the bridge's file")
        return max(past, key=lambda one: one.time_ms).id

    def _decide(self, found: Mapping[str, Any]) -> bytes:
        """Answer a request: with the right in the user's file, and the code of this request, once."""
        question = str(found["id"])
        if "approve" not in self._definition.may:
            raise UsageProblem(f"cannot answer {question[:40]!a}: the bridge's file has no `may: [approve]`")
        if type(found["allow"]) is not bool:
            raise ValueError("allow is neither true nor false")
        words = found.get("answers", [])
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("answers is no list of texts")
        if not self._ledger.use(question, found.get("code")):
            raise UsageProblem(
                f"cannot answer {question[:40]!a}: the code is wrong, was used, or is of another request"
            )
        verdict = Verdict.ALLOW if found["allow"] else Verdict.DENY
        by = f"bridge:{self._definition.name}"
        self._answer(question, Answer(verdict, by, str(found.get("reason") or ""), answers=tuple(words)))
        return lines.line("answered", id=question)


def _unknown(found: Mapping[str, Any]) -> bytes:
    raise ValueError(f"the type {str(found['type'])[:40]!a} is unknown: ack, message or answer")


def _id_of(found: Mapping[str, Any]) -> str:
    return str(found.get("id", ""))[:100]


def _how_ended(child: subprocess.Popen[bytes]) -> str:
    try:
        code = child.wait(_GRACE)
    except subprocess.TimeoutExpired:
        return "it closed its output"
    return f"it ended by signal {-code}" if code < 0 else f"it ended with exit status {code}"


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a command and what it started: close its input, ask, then kill."""
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)
