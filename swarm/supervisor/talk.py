"""Talk with a program while its turn lasts: give it texts, note what it heard, and have its requests answered.

    messages/<id>.json ─► standard input ─► program ─► out ─► messages/<id>.heard
                                                        └──► ask/<n>.json ─► command ─► ask/<n>.answer

Whoever sends a message, or answers a request, writes a file and may go.  A text is given once: those that the program
has in its conversation from before are named in the launch file.
"""

from __future__ import annotations

import contextlib
import os
import time
from importlib import import_module

from swarm.machine import own, records
from swarm.machine.inbox_watch import SCAN_EVERY, Inbox
from swarm.machine.run_folder import runfiles
from swarm.programs.speech import ASKS, ASKS_NO_MORE, HEARD, OVER, Leave

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from swarm.programs.speech import Sentence, Speech
    from swarm.supervisor.chores import Chore, Chores
    from swarm.supervisor.gate import Launch, Spoken

#: Of messages: the text, and the note that the program has heard it. Of requests: what is asked, and the answer.
TEXT, NOTE = ".json", ".heard"
ASKED, ANSWER = "ask-%d.json", "ask-%d.answer"
_AT_ONCE, _LONGEST_LINE, _LARGEST = 1 << 20, 32 << 20, 4 << 20
_SOON, _WITHOUT_NOTICE, _LATE = 0.02, 0.1, 30.0
_NOBODY = "nobody answered; go on without it"


class Talk:
    """The talk of one turn.

    Attributes:
        hears: the descriptor that is the program's standard input.
    """

    def __init__(self, launch: Launch, spoken: Spoken, chores: Chores) -> None:
        self._speech: Speech = import_module(spoken.speech).Speech()
        self._spoken = spoken
        self._given = set(spoken.known)
        self._launch = launch
        self._chores = chores
        self._out, self._at, self._rest = launch.streams[1], _size(launch.streams[1]), b""
        self._folder = os.path.dirname(self._out)
        self._waits: dict[str, str] = {}  # given, and not heard yet: the program's id → the file of its text
        self._asked: dict[str, tuple[int, Chore]] = {}
        self._over = False
        self._count = 0
        self._watch = Inbox("", self._folder, spoken.messages)
        self.hears, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._unsaid = self._speech.say(spoken.id, spoken.text)

    def watch(self) -> tuple[int, ...]:
        """Return the descriptors that tell of something new."""
        return self._watch.watch() if self._write >= 0 else ()

    def look(self) -> float:
        """Do what is to be done; return after how many seconds to look again."""
        if self._write < 0:
            return SCAN_EVERY
        if self.hears >= 0:  # the program has it by now
            os.close(self.hears)
            self.hears = -1
        watched = self._watch.watch()
        self._watch.drain()
        more = self._listen()
        self._bring_answers()
        fresh = self._give_texts()
        if self._over and not (more or fresh or self._waits or self._asked or self._unsaid):
            self._close()
        self._say()
        if more:
            return 0.0
        if self._unsaid:
            return _SOON
        return SCAN_EVERY if watched else _WITHOUT_NOTICE

    # --- what it says -------------------------------------------------------------------------------

    def _listen(self) -> bool:
        """Read what the program wrote since; return whether there is more."""
        try:
            fd = own.open(self._out, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            data = os.pread(fd, _AT_ONCE, self._at)
        finally:
            os.close(fd)
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest = b""  # it cannot be one that matters; the end of it is no JSON
        for line in whole:
            for one in self._speech.hear(line):
                self._heed(one)
        return len(data) == _AT_ONCE

    def _heed(self, said: Sentence) -> None:
        if said.what == HEARD:
            self._over = False
            name = self._waits.pop(said.id, "")
            if name:
                self._note(name)
        elif said.what == ASKS:
            self._over = False
            self._have_answered(said)
        elif said.what == ASKS_NO_MORE and said.id in self._asked:
            self._asked.pop(said.id)[1].kill()
        elif said.what == OVER:
            self._over = True

    def _note(self, name: str) -> None:
        record = {"operation": self._launch.operation, "at_ms": time.time_ns() // 1_000_000}
        with contextlib.suppress(OSError):  # then the program's own record is asked at the end
            runfiles.write(self._spoken.messages, name.removesuffix(TEXT) + NOTE, record)

    # --- what it is told ----------------------------------------------------------------------------

    def _give_texts(self) -> bool:
        """Give it the texts that came since; return whether there were any."""
        fresh = [one for one in _texts(self._spoken.messages) if one["id"] not in self._given]
        for one in fresh:
            self._given.add(one["id"])
            self._waits[one["uuid"]] = one["id"] + TEXT
            self._unsaid += self._speech.say(one["uuid"], one["text"])
        return bool(fresh)

    def _say(self) -> None:
        while self._unsaid and self._write >= 0:
            try:
                self._unsaid = self._unsaid[os.write(self._write, self._unsaid) :]
            except BlockingIOError:
                return
            except OSError:  # it has closed its input, or is gone
                self._close()

    def _close(self) -> None:
        """Let the program end: nothing more will be said."""
        if self._write >= 0:
            os.close(self._write)
            self._write, self._unsaid = -1, b""

    # --- requests -----------------------------------------------------------------------------------

    def _have_answered(self, said: Sentence) -> None:
        self._count += 1
        number = self._count
        file = os.path.join(self._folder, ASKED % number)
        try:
            runfiles.write(self._folder, ASKED % number, {"tool": said.tool, "given": said.given or {}})
            argv, env = [*self._spoken.ask, os.fsencode(file)], self._launch.label_env
            chore = self._chores.start(argv, env, seconds=self._spoken.within + _LATE)
        except OSError:
            chore = None
        if chore is None:
            self._unsaid += self._speech.answer(said.id, Leave(None, "swarm cannot ask anybody"))
        else:
            self._asked[said.id] = (number, chore)

    def _bring_answers(self) -> None:
        for request, (number, chore) in list(self._asked.items()):
            if chore.status is not None:
                del self._asked[request]
                found = records.read(os.path.join(self._folder, ANSWER % number), _LARGEST) or {}
                given = found.get("given")
                leave = Leave(given if isinstance(given, dict) else None, str(found.get("why") or _NOBODY))
                self._unsaid += self._speech.answer(request, leave)


def _texts(folder: str) -> list[dict[str, Any]]:
    """Return the messages, in order."""
    found = []
    for name in _names(folder):
        if name.endswith(TEXT) and name[0] != ".":
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                one = records.read_object(os.path.join(folder, name), _LARGEST)
                said = {key: str(one[key]) for key in ("id", "uuid", "text")}
                found.append({**said, "number": int(one["number"])})
    return sorted(found, key=lambda one: one["number"])


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
