"""tmux: the only door to it. libtmux opens and ends panes; looking and typing take one plain call each.

tmux expands formats in its *arguments*: a folder called ``#(reboot)`` runs a command when it is given to
``-c``.  So every text that is not a checked name passes ``literal``.  Panes are addressed by their id, and the session
exactly (``=swarm:``).  The label of a pane is an option that tmux draws without expanding it.

Many panes are opened by one tmux invocation, as a list of commands; a process a command would cost fifteen
times as much.  What came of it is looked up afterwards: a pane counts when it is there and carries our mark.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import time
from typing import TYPE_CHECKING

from swarm.machine import processes
from swarm.terminal.errors import TerminalProblem, TmuxMissing, TmuxSessionTaken, TmuxTooOld
from swarm.terminal.program import UTF8, Program
from swarm.terminal.words import (
    LIST,
    SEPARATOR,
    length,
    literal,
    packed,
    pane_options,
    read_panes,
    read_rows,
    strip,
    window_options,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from swarm.terminal.values import Pane, PanePlan

MINIMUM = (3, 2)
#: A detached window is this large; 64 tiled panes still fit.
WIDTH, HEIGHT = 240, 67
_HOOKS = ("after-new-window", "after-split-window", "after-select-layout", "after-set-option")
#: Prints ``on`` or ``off``: whether the server ends when no client is attached; only after it has answered.
_STAYS = ("show-options", "-s", "-v", "exit-unattached")
#: Prints which server it was that opened the panes.
_SERVER, _SAID = ("display-message", "-p", "server #{pid}"), r"server (\d+)"
#: How often, and after how many seconds, panes are opened again when a server was just ending.
_TRIES, _PAUSE = 10, 0.1
_PASSING = (
    *("duplicate session", "server exited", "no server running", "lost server"),
    *("Connection refused", "Connection reset", "No such file or directory"),
)
_HINT_ON_END = (
    "tmux itself crashes; look for the cause in your tmux.conf: `window-size manual` makes tmux 3.3 crash, use latest"
)
#: How long a call for the user stays in the status line.
_SHOWN_MS = 5000
#: tmux takes this much in one message.
_LONGEST = 12_000
#: Variables of the caller's environment for a server that swarm starts: no secrets.
_SERVER_ENV = (
    r"HOME|PATH|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TERM|COLORTERM|TMPDIR|TZ|EDITOR|VISUAL|DISPLAY|WAYLAND_DISPLAY"
    r"|XDG_\w+|SSH_AUTH_SOCK|TMUX_TMPDIR"
)


class Tmux(Program):
    """One tmux server, and swarm's session in it.

    Args:
        socket: path or name of the server; empty is the user's default one.
        session: name of the session that holds the windows.
        environ: the caller's environment.
    """

    # --- the program -----------------------------------------------------------------------------

    def check(self) -> None:
        """Make sure that panes can be opened: tmux there, new enough, and the session's name free or ours.

        Raises:
            TmuxMissing, TmuxTooOld, TmuxSessionTaken
            TerminalProblem: its folder or one of the user's options stands against it.
        """
        self.program()
        text = self.version()
        match = re.search(r"(\d+)\.(\d+)", text)
        if match and (int(match[1]), int(match[2])) < MINIMUM:
            raise TmuxTooOld(f"cannot open panes: tmux 3.2 or newer is needed, this is {text}")
        folder = os.path.dirname(self.socket_path())
        if "/" in self._socket and not os.access(folder, os.W_OK | os.X_OK):
            raise TerminalProblem(
                f"cannot open panes: the folder of tmux's socket cannot be used: {folder}",
                hint="make that folder, or choose another tmux.socket",
            )
        if self._owner() == "foreign":
            raise TmuxSessionTaken(f"a tmux session called {self._session} is there already and is not swarm's")

    # --- existing parts ------------------------------------------------------------------------------

    def panes(self) -> tuple[Pane, ...]:
        """Return every pane that carries swarm's marks, of all repositories, by one query.

        No server is no pane.
        """
        return self.look_around()[1]

    def running(self) -> bool:
        """Whether the server is up; False without tmux."""
        return self.look_around()[0]

    def look_around(self) -> tuple[bool, tuple[Pane, ...]]:
        """Return whether the server is up, and its panes as ``panes`` does; no program runs where it has no socket."""
        try:
            self.program()
        except TmuxMissing:
            return False, ()
        if not os.path.exists(self.socket_path()):
            return False, ()
        code, lines, _ = self.command(*LIST)
        return code == 0, read_panes(lines) if code == 0 else ()

    def lost_server(self, pane_pid: int) -> tuple[int, bool]:
        """Return the pid of the server in which a process has its pane, and whether another one has its socket.

        It is 0 when the server is the one that can be reached, or there is none.
        """
        seen = processes.look(pane_pid) if pane_pid else None
        if seen is None or not processes.read(f"/proc/{seen.ppid}/comm").startswith(b"tmux"):
            return 0, False
        from swarm.terminal import socketwatch

        holder = socketwatch.listener(self.socket_path())
        return (0, False) if holder == seen.ppid else (seen.ppid, holder != 0)

    def _owner(self) -> str:
        """Return the owner of the session with our name: ``nobody``, ``swarm`` or ``foreign``."""
        if not os.path.exists(self.socket_path()):  # no server
            return "nobody"
        form = f"#{{session_name}}{SEPARATOR}#{{@swarm}}"
        code, lines, _ = self._run("list-sessions", "-F", form, ";", *_STAYS)
        self._check_stays(lines)
        found = dict(line.split(SEPARATOR, 1) for line in lines if SEPARATOR in line) if code == 0 else {}
        if self._session not in found:
            return "nobody"
        return "swarm" if found[self._session] else "foreign"

    def _check_stays(self, lines: Sequence[str]) -> None:
        """Refuse a server that ends when no terminal is attached; *lines* hold the output of ``_STAYS``."""
        if "on" in lines:
            now = self.say("set-option", "-s", "exit-unattached", "off")
            raise TerminalProblem(
                "cannot open panes: tmux's option exit-unattached is on, which ends all panes without a terminal",
                hint=f"remove exit-unattached from your tmux.conf; where tmux runs already: {now}",
            )

    def capture(self, pane: str, lines: int) -> list[str]:
        """Return the last lines a pane shows, older ones from its history included."""
        code, out, text = self.command("capture-pane", "-p", "-J", "-t", pane, "-S", f"-{max(0, lines)}")
        if code != 0:
            raise TerminalProblem(f"cannot look at pane {pane}: {text}")
        strip(out)
        if out and out[-1].startswith("Pane is dead"):  # tmux writes it on the last row, far below the last words
            dead = out.pop()
            strip(out)
            out.append(dead)
        return out[-lines:] if lines else out

    def shows(self, panes: Iterable[str]) -> dict[str, tuple[str, list[str]]]:
        """Return the present content of some panes, by one call: pane → (title, lines). Closed panes are left out."""
        import secrets

        wanted = list(panes)
        mark = f"swarm-{secrets.token_hex(8)}"  # no program can print it beforehand
        words: list[str] = []
        for pane in wanted:
            # Not the id itself: tmux fills in the time, and takes `%5` for a part of it.
            words += [";", "display-message", "-p", "-t", pane, f"{mark} #{{pane_id}} #{{pane_title}}"]
            words += [";", "capture-pane", "-p", "-t", pane]
        if not wanted:
            return {}
        code, out, _ = self.command(*words[1:])
        if code != 0 and len(wanted) > 1:  # the first one that is gone ends the call
            return {pane: shown for one in wanted for pane, shown in self.shows([one]).items()}
        found: dict[str, tuple[str, list[str]]] = {}
        lines: list[str] = []
        for line in out:
            if line.startswith(mark):
                _, pane, title = f"{line} ".split(" ", 2)
                lines = []
                found[pane] = (title.rstrip(), lines)
            else:
                lines.append(line)
        return found if code == 0 else {}

    # --- open ------------------------------------------------------------------------------------------

    def open(
        self,
        repository: str,
        operation: str,
        session: str,
        panes: Sequence[PanePlan],
        per_window: int,
        beside: Pane | None = None,
    ) -> dict[str, str]:
        """Open one pane per agent in windows named after the session; return agent → pane id.

        Args:
            beside: in the window of this one instead, if there is room.

        Raises:
            TerminalProblem: not all of them could be opened; those that were carry the operation's mark.
        """
        groups = [panes[start : start + per_window] for start in range(0, len(panes), per_window)]
        mark = f"{repository} {operation} {session}"
        found: tuple[Pane, ...] = ()
        text = ""
        for _ in range(_TRIES):
            found, text, again = self._try_to_open(session, groups, mark, operation, beside)
            if beside is not None and sum(pane.operation == operation for pane in found) < len(panes):
                beside, again = None, True  # its window is full, or it is gone
            if not again:
                break
            self.kill(pane.id for pane in found if pane.operation == operation)
            time.sleep(_PAUSE)  # another swarm made the session meanwhile, or a server is just dying
        else:
            found = ()
        mine = {pane.agent: pane.id for pane in found if pane.operation == operation}
        missing = [plan.agent for plan in panes if plan.agent not in mine]
        if missing:
            hint = _HINT_ON_END if "server exited" in text else None
            what = f"cannot open a pane for {', '.join(missing)}: {text or 'tmux did not say why'}"
            raise TerminalProblem(what, hint=hint)
        return mine

    def _try_to_open(
        self,
        session: str,
        groups: Sequence[Sequence[PanePlan]],
        mark: str,
        operation: str,
        beside: Pane | None,
    ) -> tuple[tuple[Pane, ...], str, bool]:
        """Return the panes afterwards, tmux's complaint, and whether another try may help."""
        owner = self._owner()
        if owner == "foreign":
            raise TmuxSessionTaken(f"a tmux session called {self._session} is there already and is not swarm's")
        if beside is not None and owner == "swarm":
            words = words_of(self._splitting(beside, [plan for group in groups for plan in group], mark))
            code, lines, text = self._run(*words, ";", *_STAYS, ";", *_SERVER, ";", *LIST)
        else:
            code, lines, text = self._send_opening(session, groups, mark, operation, fresh=owner == "nobody")
        self._check_stays(lines)  # a server that has just been started has read the user's tmux.conf only now
        if code != 0:
            return self.panes(), text, _may_pass(text)
        found = read_panes(lines)
        if self._holds_socket(lines, operation):
            return found, "", False
        return (), "the tmux server lost its socket to another one", True

    def _holds_socket(self, lines: Sequence[str], operation: str) -> bool:
        """Whether the server that has just opened the panes can be reached; one that cannot is ended, if it is ours.

        Args:
            lines: what that server printed.
        """
        from swarm.terminal import socketwatch

        said = [match for match in (re.fullmatch(_SAID, line) for line in lines) if match]
        server = int(said[0][1]) if said else 0
        if not server or socketwatch.hold(self.socket_path(), server):
            return True
        others = [pane for pane in read_rows(lines) if pane[2].split(" ")[1:2] != [operation]]
        if others:
            raise TerminalProblem(
                f"cannot open panes: another tmux server has taken the socket {self.socket_path()} from the one"
                f" with swarm's panes (pid {server})",
                hint=f"end the other one with `{self.say('kill-server')}`, then `kill -USR1 {server}`",
            )
        with contextlib.suppress(OSError):  # it has ended
            os.kill(server, signal.SIGTERM)
        return False

    def _send_opening(
        self, session: str, groups: Sequence[Sequence[PanePlan]], mark: str, operation: str, *, fresh: bool
    ) -> tuple[int, list[str], str]:
        """Let one tmux process open everything and list the result.

        Until the end the first window has a name that nobody else's has: while tmux reads a file of
        commands, another program may open windows of its own.
        """
        name = f"{session}-{operation}"
        begin, more = self._opening(session, groups, mark, name, fresh=fresh)
        more.append(["rename-window", "-t", f"={self._session}:={name}", session])
        with packed(more, _LONGEST - length(begin)) as words:
            return (self._start if fresh else self._run)(
                *words_of(begin), ";", *words, ";", *_STAYS, ";", *_SERVER, ";", *LIST
            )

    def _opening(
        self, session: str, groups: Sequence[Sequence[PanePlan]], mark: str, name: str, *, fresh: bool
    ) -> tuple[list[list[str]], list[list[str]]]:
        """Return the commands that open the first pane, and those for the rest.

        Args:
            name: of the first window for the time being.
        """
        end = f"={self._session}:{{end}}"
        begin: list[list[str]] = []
        more: list[list[str]] = []
        for number, group in enumerate(groups):
            target = end if number else f"={self._session}:={name}"
            where = ["-n", f"{session}-{number + 1}" if number else name]
            where += ["-c", literal(str(group[0].cwd)), "--", *group[0].argv]
            opening = more if number else begin
            if fresh and number == 0:
                size = ["-x", str(WIDTH), "-y", str(HEIGHT)]
                opening.append(["new-session", "-d", "-s", self._session, *size, *where])
                opening += self._session_options()
            else:
                opening.append(["new-window", "-d", "-a", "-t", end, *where])
            opening += window_options(target)
            # Not the active one: a hook on new sessions may have split it.
            opening += pane_options(f"{target}.{{top-left}}", mark, group[0].agent)
            for plan in group[1:]:
                more.append(["split-window", "-t", target, "-c", literal(str(plan.cwd)), "--", *plan.argv])
                more += pane_options(target, mark, plan.agent)
                more.append(["select-layout", "-t", target, "tiled"])
            more.append(["select-pane", "-t", f"{target}.{{top-left}}"])
        return begin, more

    def _splitting(self, beside: Pane, panes: Sequence[PanePlan], mark: str) -> list[list[str]]:
        """Return the commands that open panes in the window of another; the one in use there stays so."""
        commands: list[list[str]] = []
        for plan in panes:
            commands.append(["split-window", "-t", beside.id, "-c", literal(str(plan.cwd)), "--", *plan.argv])
            commands += pane_options(beside.window, mark, plan.agent)
            commands += [["select-layout", "-t", beside.window, "tiled"], ["last-pane", "-t", beside.window]]
        return commands

    def _session_options(self) -> list[list[str]]:
        target = f"={self._session}:"
        return [
            ["set-option", "-t", target, "@swarm", "1"],
            ["set-option", "-t", target, "destroy-unattached", "off"],
            ["set-option", "-t", target, "default-size", f"{WIDTH}x{HEIGHT}"],
            ["set-option", "-t", target, "status-right", " #{@swarm_summary} "],
            ["set-option", "-t", target, "status-right-length", "80"],
            # A hook of the user's that selects or moves panes would come between opening one and marking it.
            *(["set-hook", "-t", target, hook, ""] for hook in _HOOKS),
        ]

    def _start(self, *words: str) -> tuple[int, list[str], str]:
        """Run a command that may have to start the server, which then keeps the environment it is given."""
        from libtmux.common import tmux_cmd

        env = shutil.which("env", path=self._environ.get("PATH")) or "/usr/bin/env"
        kept = [f"{k}={v}" for k, v in self._environ.items() if re.fullmatch(_SERVER_ENV, k)]
        done = tmux_cmd("-i", *kept, self.program(), UTF8, *self._socket_flags(), *words, tmux_bin=env)
        return done.returncode or 0, list(done.stdout), " ".join(done.stderr)

    # --- change ------------------------------------------------------------------------------------------

    def kill(self, panes: Iterable[str]) -> None:
        """Close panes by their ids; one that is gone already is fine."""
        for pane in dict.fromkeys(panes):
            self._run("kill-pane", "-t", pane)

    def respawn(self, pane: str, plan: PanePlan) -> None:
        """Start a program in the pane of an agent whose program has ended."""
        start = ["respawn-pane", "-k", "-t", pane, "-c", literal(str(plan.cwd)), "--", *plan.argv]
        code, _, text = self._run(*start)
        if code != 0:
            raise TerminalProblem(f"cannot start {plan.agent} again in pane {pane}: {text}")

    def select(self, pane: str) -> None:
        """Make a pane the one that an attached client shows."""
        self._run("select-window", "-t", pane, ";", "select-pane", "-t", pane)

    def label(self, states: Mapping[str, str], summary: str) -> None:
        """Show each agent's state in its pane's border, and a summary in the status line of the panes' windows."""
        windows = {pane.id: pane.window for pane in self.panes()}  # one that is gone would stop the whole list
        there = {pane: text for pane, text in states.items() if pane in windows}
        commands = [["set-option", "-p", "-t", pane, "@swarm_state", text] for pane, text in there.items()]
        shown = dict.fromkeys(windows[pane] for pane in there)
        commands += [["set-option", "-w", "-t", window, "@swarm_summary", summary] for window in shown]
        if commands:
            with packed(commands, _LONGEST) as words:
                self._run(*words)

    def ring(self, text: str) -> None:
        """Show a line for a moment in every terminal attached to swarm's session, and ring its bell."""
        code, lines, _ = self._run("list-clients", "-t", f"={self._session}", "-F", "#{client_tty}")
        clients = [line for line in lines if line.startswith("/dev/")] if code == 0 else []
        for tty in clients:
            # `-l` is too new, and even a text without formats is expanded as a time
            shown = literal(text).replace("%", "%%")
            self._run("display-message", "-c", tty, "-d", str(_SHOWN_MS), shown)
            with contextlib.suppress(OSError):
                fd = os.open(tty, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    os.write(fd, b"\a")
                finally:
                    os.close(fd)


def _may_pass(text: str) -> bool:
    """Whether another try may help: the server was just ending, or another swarm was first."""
    return any(words in text for words in _PASSING)
