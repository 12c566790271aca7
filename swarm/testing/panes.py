"""A scratch repository with a tmux server of its own, both gone without a trace at the end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.machine import processes as proc
from swarm.testing import guardian
from swarm.testing.lab import Lab
from swarm.testing.terminal import Pane, at_terminal, wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from swarm import Swarm
    from swarm.programs.status import State
    from swarm.sessions.values import AgentStatus

BARE = ("starting", "working", "idle", "waiting")
#: No work, no thinking: straight to the prompt.
QUICK = "demo: steps 0\ndemo: delay 0\n"


class TmuxServer:
    """One tmux server on a socket in a short private folder."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="swtm-", dir="/tmp"))
        self.socket = str(self.folder / "s")
        assert len(self.socket) < 90
        guardian.watch(env["HOME"], str(self.folder))
        self.env = dict(env)

    def __call__(self, *args: str, check: bool = True) -> str:
        """Run tmux on this server and return its output, in any locale."""
        done = subprocess.run(
            ["tmux", "-u", "-S", self.socket, *args], env=self.env, capture_output=True, text=True, check=False
        )
        assert not check or done.returncode == 0, (args, done.stderr)
        return done.stdout.removesuffix("\n")

    def rows(self, form: str, *target: str, what: str = "list-panes") -> list[str]:
        """Return a line per pane of the whole server, or of *target*; none without a server."""
        which = target or (() if what == "list-sessions" else ("-a",))
        return self(what, *which, "-F", form, check=False).splitlines()

    def pid(self) -> int:
        """Return the server's pid; 0 when it is not there."""
        return int(self("display-message", "-p", "#{pid}", check=False) or 0)

    def kill(self) -> None:
        """End this server, never another."""
        pid = self.pid()
        self("kill-server", check=False)
        wait_for(lambda: not pid or proc.start_of(pid) is None, "the end of the tmux server")

    def remove(self) -> None:
        """Delete its folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


class PaneLab(Lab):
    """A lab whose agents run in panes.

    Attributes:
        tmux: the lab's own server.
    """

    def __init__(self, folder: Path, name: str = "my project", share: PaneLab | None = None) -> None:
        super().__init__(folder, name)
        self.tmux: TmuxServer = share.tmux if share else TmuxServer(self.env)
        self.env |= {
            "SWARM_TMUX_SOCKET": self.tmux.socket,
            "SWARM_AGENTS_STOP_GRACE": "2",
            "SWARM_WORKTREES_DURABLE": "false",
            "SHELL": "/bin/sh",
            "PS1": "$ ",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{self.env['PATH']}",
        }
        self.tmux.env |= {"SWARM_TMUX_SOCKET": self.tmux.socket}  # never the user's own server

    # --- start and look --------------------------------------------------------------------------

    def start(
        self, roles: str = "researcher,developer", session: str = "fx", *, task: str = QUICK, **how: Any
    ) -> Swarm:
        """Start a session of demo agents."""
        how = how if "program" in how or "command" in how else {"program": "demo", **how}
        swarm = self.swarm
        swarm.start(session, roles, task=task, **how)
        return swarm

    def one(self, agent: str, session: str | None = None) -> AgentStatus:
        """Return an agent with its state."""
        return self.swarm.why(agent, session)

    def state(self, agent: str, session: str | None = None) -> str:
        """Return an agent's state."""
        return self.one(agent, session).status.state

    def until(self, agent: str, *states: str, session: str | None = None, deadline: float = 60) -> AgentStatus:
        """Wait until an agent is in one of these states."""
        found: list[AgentStatus] = []

        def there() -> bool:
            found[:] = [self.one(agent, session)]
            return found[0].status.state in states

        try:
            wait_for(there, f"{agent} in {states}", deadline)
        except AssertionError as error:
            raise AssertionError(f"{error}: {found} {self.swarm.peek(agent, session)}") from None
        return found[0]

    def all_until(self, *states: str, deadline: float = 90) -> None:
        """Wait until every agent is in one of these states."""

        def there() -> bool:
            return all(a.status.state in states for s in self.swarm.status(look=False) for a in s.agents)

        wait_for(there, f"all in {states}", deadline)

    def run(self, agent: str, session: str = "fx") -> Path:
        """Return an agent's run folder."""
        return self.root / ".swarm" / "sessions" / session / "run" / agent

    def note(self, agent: str, name: str, session: str = "fx") -> dict[str, Any]:
        """Return one of the records in an agent's run folder."""
        found: dict[str, Any] = json.loads((self.run(agent, session) / name).read_text())
        return found

    def type(self, agent: str, line: str, session: str | None = None) -> None:
        """Type a line into an agent's pane."""
        pane = self.one(agent, session).pane
        self.tmux("send-keys", "-t", pane, "-l", "--", line)
        self.tmux("send-keys", "-t", pane, "Enter")

    def see(self, agent: str, words: str, session: str | None = None) -> None:
        """Wait until an agent's pane shows words."""
        wait_for(lambda: words in "\n".join(self.swarm.peek(agent, session, lines=200)), f"{words!r} of {agent}")

    def panes(self) -> list[str]:
        """Return ``session agent`` of every pane that is swarm's."""
        rows = self.tmux.rows("#{s/.* //:@swarm_mark} #{@swarm_agent}")
        return sorted(row for row in rows if row.strip())

    # --- processes -------------------------------------------------------------------------------

    def processes(self) -> dict[int, str]:
        """Return every living process of this lab: they all inherit its home."""
        return self._with(f"HOME={self.env['HOME']}")

    def programs(self) -> dict[int, str]:
        """Return the agents' programs and all that these have started: the launcher stamps them."""
        stamped = self._with("SWARM_AGENT_ID=", whole=False)
        return {pid: words for pid, words in self.processes().items() if pid in stamped}

    def agents_processes(self) -> dict[int, str]:
        """Return the launchers and the processes below one, without tmux and the painters of states."""
        return {
            pid: words
            for pid, words in self.processes().items()
            if not words.startswith("tmux") and not words.endswith(" label") and "-S " + self.tmux.socket not in words
        }

    def all_ended(self) -> None:
        """Check that no program is left now, and wait for the reports of their ends.

        A launcher that has to wait for its turn to have the end shown leaves a process behind that does it, and
        the one that shows it asks git: both are gone in a moment, and neither is an agent's.
        """
        assert self.programs() == {}
        wait_for(lambda: self.agents_processes() == {}, "the end of the launchers")

    def only(self, *pids: int) -> None:
        """Wait until only tmux and these run: every state is shown, every report sent."""
        known = {self.tmux.pid(), *pids}
        wait_for(lambda: self.processes().keys() <= known, "the end of those who show and tell states")

    def _with(self, variable: str, *, whole: bool = True) -> dict[int, str]:
        """Return the processes in whose environment this is, or begins a variable; this one left out."""
        wanted = os.fsencode(variable)
        found = {}
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if not name.isdigit() or int(name) == os.getpid():
                    continue
                environ = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
                if wanted in environ or (not whole and any(one.startswith(wanted) for one in environ)):
                    words = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(name)] = os.fsdecode(words).strip()
        return {pid: words for pid, words in found.items() if proc.start_of(pid) is not None}

    def gone(self, pid: int) -> bool:
        """Whether a process has ended."""
        return proc.start_of(pid) is None

    # --- the command line ------------------------------------------------------------------------

    def cli(
        self, *args: str, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run the program."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "swarm", *args],
            cwd=self.root,
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
            input=stdin,
            timeout=90,
        )

    def typed(self, *args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run the program as a person at a terminal does."""
        done: subprocess.CompletedProcess[str] = at_terminal(lambda: self.cli(*args, stdin=stdin))
        return done

    def json(self, *args: str) -> dict[str, Any]:
        """Run the program for machines; return the envelope."""
        done = self.cli(*args, "--json")
        found: dict[str, Any] = json.loads(done.stdout)
        assert found["exit_code"] == done.returncode
        return found

    def terminal(self, *args: str, columns: int = 80, rows: int = 24, env: Mapping[str, str] | None = None) -> Pane:
        """Run the program in a terminal."""
        return Pane(
            [sys.executable, "-P", "-m", "swarm", *args],
            env={**self.env, "TERM": "xterm-256color", **(env or {})},
            cwd=self.root,
            columns=columns,
            rows=rows,
        )

    def program(self, name: str, text: str) -> Path:
        """Put a script first on PATH."""
        folder = self.root.parent / "bin"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(text)
        path.chmod(0o755)
        if not self.env["PATH"].startswith(f"{folder}{os.pathsep}"):
            self.env["PATH"] = f"{folder}{os.pathsep}{self.env['PATH']}"
        return path

    # --- the end -----------------------------------------------------------------------------------

    def close(self) -> None:
        """End the server, and make sure that nothing is left of anything."""
        self.tmux.kill()
        try:
            wait_for(lambda: not self.processes(), "the end of all processes")
        except AssertionError:
            left = self.processes()
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"processes live on: {left}") from None
        finally:
            self.tmux.remove()


def states(swarm: Swarm, session: str | None = None) -> dict[str, State]:
    """Return agent → state."""
    return {a.agent.name: a.status.state for s in swarm.status(session) for a in s.agents}


def topology(lab: PaneLab) -> list[str]:
    """Return the layout of windows and panes, without ids."""
    form = (
        "#{window_index} #{window_name} #{pane_index} #{pane_width}x#{pane_height}"
        " #{s/.* //:@swarm_mark} #{@swarm_agent}"
    )
    return lab.tmux.rows(form)


def words(rows: Sequence[str]) -> str:
    """Return lines as one text."""
    return "\n".join(rows)
