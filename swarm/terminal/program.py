"""The program tmux: where it is, its socket, and one call of it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from swarm.terminal.errors import TmuxMissing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from libtmux import Server

#: Else tmux prints ``_`` for tabs and non-ASCII letters where the caller's locale is not UTF-8.
UTF8 = "-u"


class Program:
    """The tmux program and the socket of one server.

    Args:
        socket: path or name of the server; empty is the user's default one.
        session: name of the session that holds the windows.
        environ: the caller's environment.
    """

    def __init__(self, socket: str, session: str, environ: Mapping[str, str]) -> None:
        self._socket = socket
        self._session = session
        self._environ = environ
        self._server: Server | None = None
        self._binary: str | None = None

    def program(self) -> str:
        """Return the path of tmux.

        Raises:
            TmuxMissing
        """
        if self._binary is None:
            self._binary = shutil.which("tmux", path=self._environ.get("PATH"))
        if self._binary is None:
            raise TmuxMissing("cannot open panes: tmux is not installed")
        return self._binary

    def version(self) -> str:
        """Return tmux's version line."""
        return subprocess.run([self.program(), "-V"], capture_output=True, check=False, text=True).stdout.strip()

    def attach_argv(self) -> tuple[str, ...]:
        """Return the command with which a person attaches."""
        return (self.program(), *self._socket_flags(), "attach-session", "-t", f"={self._session}")

    def switch_argv(self) -> tuple[str, ...]:
        """Return the command that shows swarm's session in the client one is in."""
        return (self.program(), *self._socket_flags(), "switch-client", "-t", f"={self._session}")

    def is_inside(self) -> bool:
        """Whether the caller sits in a pane of this very server."""
        current = self._environ.get("TMUX", "").rpartition(",")[0].rpartition(",")[0]
        return bool(current) and os.path.realpath(current) == os.path.realpath(self.socket_path())

    def say(self, *words: str) -> str:
        """Return a command as one would type it for this server."""
        return shlex.join(("tmux", *self._socket_flags(), *words))

    def socket_path(self) -> str:
        """Return the path of the server's socket; an inherited TMUX means another server, maybe."""
        if "/" in self._socket:
            return self._socket
        base = os.path.realpath(self._environ.get("TMUX_TMPDIR") or "/tmp")  # noqa: S108  # tmux's own place
        if not os.path.isdir(base):  # tmux leaves it then, too
            base = "/tmp"  # noqa: S108
        return os.path.join(base, f"tmux-{os.geteuid()}", self._socket or "default")

    def _socket_flags(self) -> tuple[str, ...]:
        if "/" in self._socket:
            return ("-S", self._socket)
        if not self._socket and not self._environ.get("TMUX"):
            return ()
        return ("-L", self._socket or "default")

    def _libtmux(self) -> Server:
        if self._server is None:
            from libtmux import Server

            self._server = Server(socket_path=self.socket_path(), tmux_bin=self.program())
        return self._server

    def _run(self, *args: str) -> tuple[int, list[str], str]:
        done = self._libtmux().cmd(UTF8, *args)
        return done.returncode or 0, list(done.stdout), " ".join(done.stderr)

    def command(self, *args: str, given: bytes | None = None) -> tuple[int, list[str], str]:
        """Run tmux once and return exit status, lines and complaint, without libtmux's objects.

        Looking and typing happen all day, and loading libtmux takes longer than a dozen answers of tmux.

        Args:
            given: its standard input; None: that of this process.
        """
        argv = [self.program(), "-S", self.socket_path(), UTF8, *args]
        done = subprocess.run(argv, input=given, capture_output=True, check=False)
        out, err = (text.decode("utf-8", "backslashreplace") for text in (done.stdout, done.stderr))
        lines = out.rstrip("\n").split("\n") if out.strip("\n") else []
        return done.returncode, lines, " ".join(filter(None, err.split("\n")))
