"""Watch an agent's inbox and heartbeat, and announce messages when it is ready.

The supervisor only notices: that the inbox has changed, and that the program seems to be idle. What waits there,
whether it may be typed, and what was typed before is decided by a short process of ``swarm/chores.py``; its answer
is nudge.json: when to look again.  So an inbox that is quiet costs a few ``stat`` in two seconds.
"""

from __future__ import annotations

import os
import time

from swarm.machine.inbox_watch import SCAN_EVERY, Inbox, up_ms
from swarm.machine.run_folder import runfiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.supervisor import gate
    from swarm.supervisor.chores import Chore, Chores

#: After a look that failed.
_ONCE_MORE_MS = 30_000
#: How often a pending matter is looked at whose time has not come: a shell's prompt is no file that changes.
_PENDING = 0.5
_CONDITION_SECONDS = 60.0
#: Seconds between looks at the screen of a program that must not be idle for too long.
_OFTEN, _SELDOM = 2.0, 30.0
#: How long a program may lack a waiting hook between two of its events.
_UNAWAITED = 6.0


class Quiet:
    """Whether the program could be spoken to now, as far as its supervisor can tell.

    Args:
        at_prompt: whether nothing but the program itself has the terminal.
        says: the program's own file, in which it says ``status`` and ``statusUpdatedAt``; empty: it has none.
    """

    def __init__(self, run_dir: str, at_prompt: Callable[[], bool], *, shell: bool, says: str = "") -> None:
        self._run_dir = run_dir
        self._at_prompt = at_prompt
        self._shell = shell
        self._says = says

    def _said(self) -> dict[str, object] | None:
        """Return the program's last report: its state, and since when."""
        if not self._says:
            return runfiles.read(self._run_dir, runfiles.STATE)
        own = runfiles.read_any(self._says)
        return None if own is None else {"state": own.get("status"), "at_ms": own.get("statusUpdatedAt")}

    def maybe(self) -> bool:
        """Whether it may be; for a program that tells nothing this is for others to decide."""
        said = self._said()
        return said.get("state") == "idle" if said is not None else self._at_prompt()

    def tells(self) -> bool:
        """Whether the notes tell the program's state; else its screen has to be read."""
        return self._shell or bool(self._says) or self._said() is not None

    def since(self) -> str:
        """Return a name of the time of idleness that lasts now; empty when it is not known to be idle."""
        said = self._said()
        if said is not None:
            return f"{said.get('at_ms')}" if said.get("state") == "idle" else ""
        return "prompt" if self._shell and self._at_prompt() else ""


class Mail:
    """Watches one agent's inbox."""

    def __init__(self, launch: gate.Launch, chores: Chores, quiet: Quiet) -> None:
        mail = launch.mail
        self.inbox = Inbox(mail.inbox, launch.run_dir)
        self._run_dir = launch.run_dir
        self._argv = mail.nudge if mail.inbox else []
        self._env = launch.label_env
        self._chores = chores
        self._quiet = quiet
        self._chore: Chore | None = None
        self._asked: list[int] = []
        self._seen: list[int] | None = None
        self._again = 0
        self._busy_until = 0
        self._patience_ms = int(2000 * mail.pause)
        self._awaited = mail.awaited
        self._unawaited = 0.0
        if self._argv:
            self._recall()

    def look(self) -> float:
        """Announce waiting messages, if any; return the seconds until the next check."""
        if not self._argv:
            return SCAN_EVERY
        if self._chore is not None and not self._take_answer(self._chore):
            return SCAN_EVERY
        mark = self.inbox.mark()
        if mark == self._seen and (not self._again or up_ms() < self._again):
            left = (self._again - up_ms()) / 1000 if self._again else SCAN_EVERY
            return max(0.05, min(SCAN_EVERY, left))
        if (not self._again and self._is_empty(mark)) or (self._awaited and self._is_awaited()):
            return SCAN_EVERY
        if not self._quiet.maybe():
            self._busy_until = self._busy_until or up_ms() + self._patience_ms
            if up_ms() < self._busy_until:
                return _PENDING
        self._busy_until = 0  # if it is not idle for this long, senders may need a notice
        self._chore = self._chores.start(self._argv, self._env)
        self._asked = mark
        if self._chore is None:
            self._seen, self._again = mark, up_ms() + _ONCE_MORE_MS
        return SCAN_EVERY

    def _is_empty(self, mark: list[int]) -> bool:
        """Whether the inbox is still being made, or was, and nothing was ever sent to it."""
        if not self.inbox.is_made():
            return True
        if not self.inbox.is_fresh():
            return False
        self._seen = mark
        return True

    def _is_awaited(self) -> bool:
        """Whether the program's own hooks deliver: one waits, or did a moment ago."""
        from swarm.machine import hook_events  # few programs have hooks

        if hook_events.is_awaited(self._run_dir):
            self._unawaited = 0.0
            return True
        self._unawaited = self._unawaited or time.monotonic()
        return time.monotonic() - self._unawaited < _UNAWAITED

    def _recall(self) -> None:
        """Go on where an earlier supervisor of this agent was."""
        answer = runfiles.read(self._run_dir, runfiles.NUDGE) or {}
        seen, again = answer.get("seen"), answer.get("again_ms")
        mark = self.inbox.mark()  # before the look: what comes after it shall still be news
        if isinstance(seen, list) and isinstance(again, int):
            self._seen = seen
            self._again = again and up_ms()  # it may have been another boot
        elif self.inbox.is_fresh():
            self._seen = mark

    def _take_answer(self, chore: Chore) -> bool:
        if chore.status is None:
            return False
        self._chore = None
        answer = runfiles.read(self._run_dir, runfiles.NUDGE) or {}
        seen, again = answer.get("seen"), answer.get("again_ms")
        if chore.status == 0 and isinstance(seen, list) and isinstance(again, int):
            self._seen, self._again = seen, again
        else:
            self._seen, self._again = self._asked, up_ms() + _ONCE_MORE_MS
        return True


class Looks:
    """Has the screen of a program looked at time and again, for how long it is idle already."""

    def __init__(self, launch: gate.Launch, chores: Chores) -> None:
        self._argv = launch.mail.idle
        self._env = launch.label_env
        self._every = max(_OFTEN, min(_SELDOM, launch.heartbeat.idle_timeout / 4))
        self._chores = chores
        self._chore: Chore | None = None
        self._next = 0.0
        self._number = 0
        self._period = ""

    def since(self) -> str:
        """Return an id of the current idle period; empty without one."""
        if self._chore is not None:
            if self._chore.status is None:
                return self._period
            idle, self._chore = self._chore.status == 0, None
            if idle and not self._period:
                self._number += 1
            self._period = f"look {self._number}" if idle else ""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._every
            self._chore = self._chores.start(self._argv, self._env)
        return self._period


class Heartbeat:
    """Sends an agent the message of its role when it has been idle for long, once in each time of idleness."""

    def __init__(self, launch: gate.Launch, chores: Chores, quiet: Quiet) -> None:
        self._launch = launch
        self._chores = chores
        self._quiet = quiet
        self._period = ""
        self._began = 0.0
        self._number = 0
        self._done = False
        self._condition: Chore | None = None
        beat = launch.heartbeat
        self._wanted = bool(beat.idle_timeout and beat.message and launch.mail.send)
        self._looks = Looks(launch, chores)
        if self._wanted:
            runfiles.write(launch.run_dir, runfiles.HEARTBEAT, {"message": beat.message})

    def look(self) -> float:
        """Return after how many seconds to look again."""
        if not self._wanted:
            return SCAN_EVERY
        period = self._quiet.since() if self._quiet.tells() else self._looks.since()
        if period != self._period:
            self._period, self._began, self._done, self._condition = period, time.monotonic(), False, None
            self._number += 1
        if not period or self._done:
            return SCAN_EVERY
        if self._condition is not None:
            return self._judge(self._condition)
        left = self._began + self._launch.heartbeat.idle_timeout - time.monotonic()
        if left > 0:
            return max(0.05, min(SCAN_EVERY, left))
        if self._launch.heartbeat.condition:
            self._ask()
        else:
            self._send()
        return SCAN_EVERY

    def _ask(self) -> None:
        """Run the user's own shell command, where the agent works and with its environment."""
        launch = self._launch
        argv = [b"/bin/sh", b"-c", os.fsencode(launch.heartbeat.condition)]
        self._condition = self._chores.start(argv, launch.program_env(), launch.cwd, _CONDITION_SECONDS)
        self._done = self._condition is None

    def _judge(self, condition: Chore) -> float:
        if condition.status == 0:
            self._send()
        elif condition.status is not None:
            self._condition, self._began = None, time.monotonic()  # not yet; once more after the same time
        return SCAN_EVERY

    def _send(self) -> None:
        self._done = True
        self._chores.start([*self._launch.mail.send, b"%d-%d" % (os.getpid(), self._number)], self._launch.label_env)
