"""Start one agent program, watch it, end everything it started, and record the end.

        tmux ── pane ── supervisor ── program ── its children ─┐
                            ▲                                  │
                            └── orphans of theirs come here ◄──┘

The supervisor is the session's leader and the pane's process. The program has a process group of
its own, in the foreground, so that Ctrl-C reaches it alone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time

from swarm.machine import own, person, processes
from swarm.machine.inbox_watch import SCAN_EVERY
from swarm.machine.run_folder import runfiles
from swarm.machine.run_folder.runtime import ran_before
from swarm.supervisor import gate
from swarm.supervisor import signals as sig
from swarm.supervisor.awaited import Reminder
from swarm.supervisor.chores import Chores
from swarm.supervisor.label import Label, own_terminal
from swarm.supervisor.mail import Heartbeat, Mail, Quiet
from swarm.supervisor.status_socket import StatusSocket
from swarm.supervisor.terminal import Terminal, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm.supervisor.boxed.box import Box, Made
    from swarm.supervisor.boxed.network import Network
    from swarm.supervisor.budget import Budget
    from swarm.supervisor.turn import Turn

_CANNOT_START = 126
_NOT_FOUND = 127
_LAST_WAIT = 5.0  # for the kernel to release killed processes
_LOOK_AGAIN = 0.05
_BOX_PATIENCE, _BOX_LOOK = 2.0, 0.005
_HANG_UP_AFTER = 0.5  # an interactive shell ignores SIGTERM, and ends when its terminal goes
_KEPT_OPEN = 3
_MOST_DESCRIPTORS = 1024


def main(args: list[str]) -> int:
    """Do everything and return the exit status: the program's own, or 128 + signal."""
    os.closerange(_KEPT_OPEN, _MOST_DESCRIPTORS)  # no lock of a swarm command may live on here
    if len(args) != 1:
        tell("usage: launcher.py LAUNCH_FILE")
        return 2
    own.trust_state_of(os.path.dirname(args[0]))
    signals = sig.Signals()
    try:
        launch = gate.read(args[0])
        gate.wait(launch, signals)
        gate.claim(args[0])
    except gate.Closed as closed:
        runfiles.remove("", args[0])  # it holds an environment
        tell(str(closed))
        return closed.code
    return Supervisor(launch, signals).run()


class Supervisor:
    """One program, from its start to the end of all that it started."""

    def __init__(self, launch: gate.Launch, signals: sig.Signals) -> None:
        self._launch = launch
        self._signals = signals
        self._terminal = Terminal()
        self._boot_id = processes.boot_id()
        self._me = (os.getpid(), processes.start_of(os.getpid()) or 0)
        shown = own_terminal() if launch.screen else ""
        self._label = Label(launch.run_dir, launch.label, launch.label_env, terminal=shown)
        self._chores = Chores()
        self._socket = StatusSocket(launch)
        self._turn = _turn_of(launch, self._chores)
        self._pid = 0
        self._start = 0
        self._status: int | None = None
        self._ended_ms = 0
        self._ran_ms = 0
        self._over = ""
        self._box: Box | None = None
        self._made: Made | None = None
        self._network = self._network_of_box()

    def run(self) -> int:
        """Return the exit status for the pane."""
        processes.adopt_orphans()
        person.mark_descendants()
        try:
            trouble = self._begin()
        except OSError as error:
            tell(f"{self._launch.agent} was not started: {error.strerror}: {error.filename or self._launch.run_dir}")
            return _CANNOT_START
        self._wait_for_box()
        self._socket.open()
        self._watch()
        cause = self._cause()
        if self._box is not None:
            self._box.close()
        if self._turn is not None:
            self._turn.interrupt(self._named(), self._is_running, self._wait)
        self._end_all()
        self._socket.close()
        self._terminal.take_back()
        if trouble:
            tell(trouble)
        with contextlib.suppress(OSError):
            os.chdir("/")  # a process that reads the end may remove the folder at once
        self._write_exit(cause)
        self._label.last_look()
        tell(f"{self._launch.agent} {self._words(cause)}", after_program=True)
        if self._turn is not None:
            self._turn.tell_end()
        return _shell_status(self._status)

    # --- begin ----------------------------------------------------------------------------------

    def _begin(self) -> str:
        """Start the program; it runs only once process.json names it. Return why it could not be run.

        Raises:
            OSError: there is no process.
        """
        launch = self._launch
        if launch.boxed:
            from swarm.supervisor.boxed.box import Made  # few have one

            self._made = Made()
        go_read, go_write = os.pipe()
        trouble_read, trouble_write = os.pipe()
        sig.block()
        try:
            self._pid = os.fork()
            if self._pid == 0:
                self._become(go_read, go_write, trouble_write)
        finally:
            sig.unblock()
            os.close(go_read)
            os.close(trouble_write)
        try:
            self._start = processes.start_of(self._pid) or 0
            if launch.boxed:
                from swarm.supervisor.boxed.box import Box  # few have one

                self._box = Box(launch, self._chores, self._pid)
            if self._network is not None:
                self._network.begun()
            self._write_process()
            os.write(go_write, b"go")
        finally:
            os.close(go_write)  # without a word the child ends
        code = _read_all(trouble_read)
        os.close(trouble_read)
        return _trouble(launch, code) if code else ""

    def _become(self, go_read: int, go_write: int, trouble_write: int) -> None:
        """In the child: wait for the word, then turn into the program. Never returns."""
        code = _CANNOT_START
        stage = b"cwd"
        try:
            os.setpgid(0, 0)
            if self._launch.boxed:
                from swarm.supervisor.boxed import enter  # few have one

                enter.end_with(self._me[0])
            os.close(go_write)
            if os.read(go_read, 1):
                os.chdir(self._launch.cwd)
                stage = b"run"
                self._terminal.give(os.getpid())
                sig.restore_defaults()
                sig.unblock()
                if self._turn is not None:
                    self._turn.open_streams()
                handed = self._network.hand_over() if self._network is not None else {}
                handed |= self._made.hand_over() if self._made is not None else {}
                env = {**self._launch.program_env(), **handed}
                if self._launch.boxed:
                    from swarm.supervisor.boxed import enter

                    enter.instead_of(self._launch.argv, env, trouble_write)
                os.execvpe(self._launch.argv[0], self._launch.argv, env)  # noqa: S606
        except OSError as error:
            if stage == b"run" and error.errno in (errno.ENOENT, errno.ENOTDIR):
                code = _NOT_FOUND
            os.write(trouble_write, b"%s %d" % (stage, error.errno or 0))
        finally:
            os._exit(code)

    def _write_process(self) -> None:
        self._ran_ms = ran_before(self._launch.run_dir)
        for old in (runfiles.EXIT, runfiles.STATE, runfiles.SCREEN, runfiles.SOCKET):
            runfiles.remove(self._launch.run_dir, old)
        record: dict[str, object] = {
            "supervisor_pid": self._me[0],
            "supervisor_start": self._me[1],
            "pid": self._pid,
            "pid_start": self._start,
            "boot_id": self._boot_id,
            "started_ms": _now_ms(),
            "ran_ms": self._ran_ms,
            **({"prints": True, "deaf": self._launch.deaf} if self._launch.prints else {}),
            **({"boxed": True} if self._launch.boxed else {}),
            "argv0": os.fsdecode(self._launch.argv[0]),
            "operation": self._launch.operation,
        }
        runfiles.write(self._launch.run_dir, runfiles.PROCESS, record)

    # --- watch ----------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Return when the program has ended or is to be ended."""
        words = self._launch.mail
        number = self._pid if self._box is None else processes.NUMBER_IN_BOX
        said = words.says.replace("{pid}", str(number))
        self._label.also(said)
        at_prompt = lambda: self._terminal.group() == self._program()  # noqa: E731
        quiet = Quiet(self._launch.run_dir, at_prompt, shell=words.shell, says=said)
        mail = Mail(self._launch, self._chores, quiet)
        heartbeat = Heartbeat(self._launch, self._chores, quiet)
        reminder = Reminder(self._launch, self._chores)
        budget = self._budget()
        while self._reap() and self._status is None and not (self._signals.stops or self._over):
            watched = mail.inbox.watch()  # before the look, so that nothing comes in between unnoticed
            mail.inbox.drain()
            self._chores.look()
            waits = [
                SCAN_EVERY,
                self._look_into_box(),
                self._label.look(),
                mail.look(),
                heartbeat.look(),
                reminder.look(),
            ]
            if self._box is not None:
                watched += self._box.watch()
            if self._network is not None:
                waits.append(self._network.look())
                watched += self._network.watch()
            if budget is not None:
                waits.append(budget.look())
                self._over = budget.over
            if self._turn is not None:
                waits.append(self._turn.look())
                watched += self._turn.watch()
                self._over = self._over or self._turn.over
            self._wait(min(waits), watched)

    def _wait_for_box(self) -> None:
        """Let the box have the processors until the program begins there: what we do meanwhile holds it up."""
        until = time.monotonic() + _BOX_PATIENCE
        while self._box is not None and not self._box.has_begun() and time.monotonic() < until:
            if not self._is_running() or self._signals.stops:
                return
            self._wait(_BOX_LOOK)

    def _wait(self, seconds: float, watched: tuple[int, ...] = ()) -> None:
        """Wait for a signal, or what is watched, and answer those who ask meanwhile."""
        asked = self._socket.descriptors()
        self._socket.serve(self._signals.wait(min(seconds, self._socket.left()), (*watched, *asked)))

    def _program(self) -> int:
        """Return the process that is the program itself."""
        return self._pid if self._box is None else self._box.program()

    def _named(self) -> tuple[int, int]:
        """Return the process that is the program itself, with its start."""
        pid = self._program()
        return pid, self._start if pid == self._pid else processes.start_of(pid) or 0

    def _look_into_box(self) -> float:
        """Return after how many seconds to look again."""
        return SCAN_EVERY if self._box is None else self._box.look()

    def _network_of_box(self) -> Network | None:
        """Return what sees to the network of the program's box; None when it has none."""
        if not self._launch.network_argv:
            return None
        from swarm.supervisor.boxed.network import Network  # few need it

        return Network(self._launch, self._chores)

    def _budget(self) -> Budget | None:
        """Return what watches the agent's limits; None when it has none."""
        if not self._launch.budget:
            return None
        from swarm.supervisor.budget import Budget  # few need it

        return Budget(self._launch, self._chores, self._ran_ms)

    def _reap(self) -> bool:
        """Take note of every child that ended; False when none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if os.WIFSTOPPED(status):
                if pid == self._pid:
                    self._go_on(os.WSTOPSIG(status))
            elif pid == self._pid:
                self._status = status
                self._ended_ms = _now_ms()
            else:
                self._chores.reaped(pid, status)

    def _is_running(self) -> bool:
        return self._reap() and self._status is None

    def _go_on(self, stopped_by: int) -> None:
        """Let a program go on that was stopped from the keyboard: a pane has no shell to bring it back."""
        if stopped_by not in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU) or self._signals.stops:
            return
        self._terminal.give(self._pid)
        with contextlib.suppress(OSError):  # it ended meanwhile, or changed its group
            os.killpg(self._pid, signal.SIGCONT)

    # --- end ------------------------------------------------------------------------------------

    def _cause(self) -> str:
        stops = self._signals.stops
        if self._status is None and stops:
            return "stopped" if stops[0] == signal.SIGTERM else "hangup"
        if self._status is None and self._over:
            return "timeout" if self._turn is not None and self._turn.over else "budget"
        if signal.SIGHUP in stops:
            return "hangup"  # we get the signal first; the program then ended because its terminal was gone
        return "signal" if self._status is not None and os.WIFSIGNALED(self._status) else "exited"

    def _end_all(self) -> None:
        """End every process below: ask, wait for the grace, kill. Another signal to us cuts the grace short.

        What a program still starts in order to end well is left alone until the time is up; what lost
        its parent is asked as well. It is over when there is no child left: orphans become ours, so
        whatever lives below us has a child of ours above it. What serves more than this agent lives on.
        """
        from swarm.machine.run_folder import serving  # not needed at the start

        heard = len(self._signals.stops)
        deadline = time.monotonic() + self._launch.grace
        hang_up = time.monotonic() + min(_HANG_UP_AFTER, self._launch.grace / 2)
        program = self._program()
        deaf = processes.ignores(program, signal.SIGTERM)
        asked: set[tuple[int, int]] = set()
        told: set[tuple[int, int]] = set()
        first = True
        while self._reap():
            now = time.monotonic()
            if len(self._signals.stops) > heard:
                deadline = min(deadline, now)
            if now >= deadline + _LAST_WAIT:
                return
            below = {(seen.pid, seen.start): seen for seen in processes.below(self._me[0])}
            others = serving.left_alone(self._launch.run_dir, self._pid, below)
            mine = [seen for one, seen in below.items() if one not in others]
            if others and not mine and self._status is not None:
                return
            for seen in mine:
                if now >= deadline:
                    _send(seen, signal.SIGKILL)
                elif self._box is not None and self._box.holds(seen):
                    continue  # it would take the program with it at once
                elif (seen.pid, seen.start) not in asked and (first or seen.ppid == self._me[0]):
                    asked.add((seen.pid, seen.start))
                    _send(seen, signal.SIGTERM)
                    _send(seen, signal.SIGCONT)  # one that is stopped would not hear it
                elif deaf and now >= hang_up and (seen.pid, seen.start) not in told and seen.pid == program:
                    told.add((seen.pid, seen.start))
                    _send(seen, signal.SIGHUP)
            first = False
            self._wait(min(_LOOK_AGAIN, max(0.0, deadline - now) or _LOOK_AGAIN))

    def _write_exit(self, cause: str) -> None:
        owner = runfiles.read(self._launch.run_dir, runfiles.PROCESS) or {}
        if (owner.get("supervisor_pid"), owner.get("supervisor_start")) != self._me:
            return  # the folder tells of a later run by now
        status = self._status
        record: dict[str, object] = {
            "pid": self._pid,
            "pid_start": self._start,
            "boot_id": self._boot_id,
            "code": os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
            "signal": os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
            "cause": cause,
            "ended_ms": self._ended_ms or _now_ms(),
            "operation": self._launch.operation,
        }
        if cause == "exited" and self._made is not None and not self._made.has_begun():
            record["began"] = False
        try:
            runfiles.write(self._launch.run_dir, runfiles.EXIT, record)
        except OSError as error:
            tell(f"cannot write {runfiles.EXIT}: {error.strerror}")

    def _words(self, cause: str) -> str:
        verb = "ended" if cause in ("exited", "signal") else "was stopped"
        if cause in ("budget", "timeout"):
            verb = f"was stopped, {self._over}"
        if self._status is None:
            return f"{verb}, but will not go away"
        if os.WIFSIGNALED(self._status):
            return f"{verb}: {sig.name(os.WTERMSIG(self._status))}"
        return f"{verb}: exit status {os.WEXITSTATUS(self._status)}"


def _turn_of(launch: gate.Launch, chores: Chores) -> Turn | None:
    """Return what sees to a program without a terminal; None where it has one."""
    if not any(launch.streams):
        return None
    from swarm.supervisor.turn import Turn  # few have none

    return Turn(launch, chores)


def _send(seen: processes.Seen, signum: int) -> None:
    with contextlib.suppress(PermissionError):  # it runs as another user
        processes.send(seen.pid, seen.start, signum)


def _trouble(launch: gate.Launch, told: bytes) -> str:
    stage, _, number = told.partition(b" ")
    reason = os.strerror(int(number))
    if stage == b"cwd":
        return f"cannot start {launch.agent}: {reason}: {os.fsdecode(launch.cwd)}"
    return f"cannot start {launch.agent}: {reason}: {os.fsdecode(launch.argv[0])}"


def _shell_status(status: int | None) -> int:
    if status is None:
        return 1
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _read_all(fd: int) -> bytes:
    return b"".join(iter(lambda: os.read(fd, 256), b""))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
