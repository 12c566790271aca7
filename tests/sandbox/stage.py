"""A stage for probes: a machine with secrets, listeners and victims, and a judge who looks from outside.

A probe runs in a box as `wrap` makes it, or without one, as root or as an ordinary user.  It has escaped when a secret
is in what it printed, a listener heard it, a victim or a file outside has changed, a canary was made, or it says so
itself (of what can only be seen from inside, such as a call that was not refused).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pty
import secrets
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import tty
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.programs.values import LaunchSpec
from swarm.sandbox import command, private
from swarm.supervisor.boxed import enter
from swarm.testing.lab import Lab
from tests.sandbox.conftest import SESSION, Boxed
from tests.sandbox.supervised import PORTS, Network

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from swarm.sandbox.values import Box

#: An account without rights, as most machines have it.
NOBODY = 65534
_AS_USER = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")
#: Makes its input the terminal of its session, as in a pane.
_IN_PANE = "import fcntl,os,sys,termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_TIMEOUT = 60
_LINES = ("root:x:0:", "root:*:0:")


class Probe(NamedTuple):
    """One attempt.

    Attributes:
        script: for a shell; ``@NAME@`` stands for what the stage has, ``PY`` at its head says that it is Python.
        only: ``root`` or ``user`` where it can only succeed as such.
        may_miss: the machine may refuse it to everybody; then it shows nothing.
    """

    script: str
    only: str = ""
    may_miss: bool = False


class Outcome(NamedTuple):
    """What came of a run: how it got out (nothing: it did not), its status, and all that it printed."""

    escapes: tuple[str, ...]
    code: int
    said: str


class Stage:
    """The machine around a box.

    Attributes:
        who: ``root`` or ``user``.
        token: a part of every secret.
        names: what stands for ``@NAME@`` in probes.
    """

    def __init__(self, *, as_user: bool) -> None:
        self._stack = contextlib.ExitStack()
        self.who = "user" if as_user else "root"
        self.token = f"S3CRET{secrets.token_hex(8)}"
        self._drop: tuple[str, ...] = _AS_USER if as_user and os.geteuid() == 0 else ()
        self.top = self._folder()
        self._notes = str(self.top / "notes")
        self._enter = Path(enter.__file__)
        lab = Lab(self.top / "lab", "project")
        self.boxed = self._team(lab)
        self.other = self._other_tree(lab)
        self._fill(lab)
        self._bin()
        self._hand_over()
        self.names: dict[str, Path] = {
            "TOP": self.top,
            "ROOT": lab.root,
            "TREE": self.boxed.tree,
            "OTHER": self.other,
            "USER": self.top / "user",
            "BASE": self.boxed.base,
            "CANARY": self.top / "canary",
            "TOKEN": Path(self.token),
            "ADMIN": lab.root / ".git/worktrees" / self.boxed.tree.name,
        }
        self._listen()
        self.clean = self._fingerprint()

    def _folder(self) -> Path:
        import tempfile

        top = Path(tempfile.mkdtemp(prefix="swarm-stage-")).resolve()
        self._stack.callback(shutil.rmtree, top, ignore_errors=True)
        top.chmod(0o755)
        return top

    def _team(self, lab: Lab) -> Boxed:
        lab.git("config", "http.extraheader", f"Authorization: {self.token}")
        lab.git("branch", "precious")
        lab.swarm.create(SESSION, ["developer", "reviewer"])
        self.neighbour = Boxed(lab, "reviewer")
        (self.neighbour.base / "home/secret").write_text(self.token)
        return Boxed(lab)

    def _other_tree(self, lab: Lab) -> Path:
        """Return where somebody else works."""
        return lab.tree("reviewer")

    def _fill(self, lab: Lab) -> None:
        """Put secrets where an agent could look for them."""
        secret = f"{self.token}\n"
        lab.write({".env": secret, "untracked": secret})
        lab.write({"secret.txt": secret}, cwd=self.other)
        lab.write({"note": secret}, cwd=lab.root / ".swarm/messages")
        run = lab.root / f".swarm/sessions/{SESSION}/run/developer"
        lab.write({"launch.json": secret}, cwd=run)
        places = (".ssh/id_rsa", ".netrc", ".claude/settings.json", ".bashrc", ".config/gh/hosts.yml", ".npmrc")
        lab.write(dict.fromkeys(places, secret), cwd=self.top / "user")
        lab.write({".gitconfig": f"# {secret}[user]\n\tname = U\n\temail = u@localhost\n"}, cwd=self.top / "user")
        (self.top / "run").mkdir()

    def _bin(self) -> None:
        """Make bubblewrap start as the ordinary user, where it is not us."""
        real = shutil.which("bwrap") or ""
        (self.top / "bin").mkdir()
        script = self.top / "bin/bwrap"
        script.write_text(f'#!/bin/sh\nexec {shlex.join((*self._drop, real))} "$@"\n')
        script.chmod(0o755)
        self.program = str(script)

    def _hand_over(self) -> None:
        if self._drop:
            for where, folders, files in os.walk(self.top):
                for name in (*folders, *files):
                    os.chown(os.path.join(where, name), NOBODY, NOBODY, follow_symlinks=False)
            os.chown(self.top, NOBODY, NOBODY)

    # --- what listens and what can be hurt --------------------------------------------------------

    def _listen(self) -> None:
        self._sockets: dict[str, socket.socket] = {}
        self.names["PATHSOCK"] = self.top / "run/socket"
        abstract = f"swarm-{self.token}"
        self.names["ABSTRACT"] = Path(abstract)
        for name, family, kind, address in (
            ("tcp", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            ("any", socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0)),
            ("udp", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            ("path", socket.AF_UNIX, socket.SOCK_STREAM, str(self.names["PATHSOCK"])),
            ("abstract", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}"),
        ):
            made = self._stack.enter_context(socket.socket(family, kind))
            made.bind(address)
            if kind == socket.SOCK_STREAM:
                made.listen(64)
            made.setblocking(False)
            self._sockets[name] = made
            if family == socket.AF_INET:
                self.names[name.upper()] = Path(str(made.getsockname()[1]))
        os.chmod(self.names["PATHSOCK"], 0o777)
        self._tmux()
        self.victim = self._victim()

    def _tmux(self) -> None:
        path = self.top / "run/tmux"
        self.names["TMUX"] = path
        start = (*self._drop, "tmux", "-S", str(path), "-f", "/dev/null", "new-session", "-d", "sleep 600")
        subprocess.run(start, check=True, env={"PATH": _PATH, "TERM": "xterm", "SHELL": "/bin/sh"}, cwd="/")
        kill = (*self._drop, "tmux", "-S", str(path), "kill-server")
        self._stack.callback(subprocess.run, kill, check=False, env={"PATH": _PATH}, capture_output=True)

    def _victim(self) -> subprocess.Popen[bytes]:
        env = {"PATH": _PATH, "SECRET": self.token}
        victim = subprocess.Popen([*self._drop, "sleep", "600"], env=env, cwd="/", stdout=subprocess.DEVNULL)
        self.names["VICTIM"] = Path(str(victim.pid))
        self._stack.callback(victim.wait)
        self._stack.callback(victim.kill)
        return victim

    def _heard(self) -> Iterator[str]:
        for name, sock in self._sockets.items():
            with contextlib.suppress(BlockingIOError):
                while True:
                    if name == "udp":
                        sock.recv(100)
                    else:
                        sock.accept()[0].close()
                    yield f"listener {name}"

    def _fingerprint(self) -> dict[str, str]:
        """Return everything outside of what the agent may write, with its content."""
        mine = (self._notes, str(self.boxed.tree), str(self.boxed.base / "git"), str(self.boxed.base / "home"))
        found: dict[str, str] = {}
        for where, folders, files in os.walk(self.top):
            folders[:] = [name for name in folders if os.path.join(where, name) not in mine]
            for name in (*folders, *files):
                path = os.path.join(where, name)
                if path == self._notes:
                    continue
                info = os.lstat(path)
                text = b""
                if stat.S_ISREG(info.st_mode):
                    text = Path(path).read_bytes()
                elif stat.S_ISLNK(info.st_mode):
                    text = os.fsencode(os.readlink(path))
                found[path] = f"{info.st_mode:o} {hashlib.sha1(text, usedforsecurity=False).hexdigest()}"
        found["the tree's .git"] = (
            (self.boxed.tree / ".git").read_text() if os.path.isfile(self.boxed.tree / ".git") else ""
        )
        return found

    # --- running ----------------------------------------------------------------------------------

    def boxed_run(
        self,
        probe: Probe,
        change: Callable[[Box], Box] | None = None,
        edit: Callable[[list[str]], list[str]] | None = None,
    ) -> Outcome:
        """Run a probe in the box that `wrap` makes, and judge.

        Args:
            change, edit: bugs to plant, in the box or in bubblewrap's options.
        """
        box = private.box_of(self.boxed.tree, self.boxed.world.git.common, self.boxed.base)
        box = replace(box if change is None else change(box), ports=PORTS)
        spec = LaunchSpec(self._words(probe), {"PATH": _PATH, "TERM": "xterm"}, {})
        run = Path(self._notes)
        if edit is not None:
            real = command.options
            command.options = lambda one: tuple(edit(list(real(one))))  # type: ignore[assignment]
            try:
                made = command.wrap(spec, box, str(run), self.program)
            finally:
                command.options = real
        else:
            made = command.wrap(spec, box, str(run), self.program)
        run.mkdir()
        for name, text in made.files.items():
            (run / name).write_text(text)
        try:
            words = tuple(str(self._enter) if word == enter.__file__ else word for word in made.argv)
            with Network(run) as network:
                return self._run(words, network.env)
        finally:
            shutil.rmtree(run)

    def plant_in_enter(self, old: str, new: str) -> None:
        """From now on start by a changed `enter.py`."""
        text = Path(enter.__file__).read_text(encoding="utf-8")
        assert old in text
        self._enter = self.top / "enter.py"
        self._enter.write_text(text.replace(old, new))
        self.clean = self._fingerprint()

    def bare_run(self, probe: Probe) -> Outcome:
        """Run a probe without a box, and judge."""
        return self._run((*self._drop, *self._words(probe)))

    def _words(self, probe: Probe) -> tuple[str, ...]:
        script = probe.script.strip()
        for name, value in self.names.items():
            script = script.replace(f"@{name}@", str(value))
        if script.startswith("PY\n"):
            return ("/usr/bin/python3", "-c", script.removeprefix("PY\n"))
        return ("sh", "-c", script)

    def _run(self, argv: tuple[str, ...], more: Mapping[str, str] | None = None) -> Outcome:
        """Run in a pane, with secrets in the environment and a folder open, and judge from outside."""
        master, slave = pty.openpty()
        folder = os.open(self.top / "user", os.O_RDONLY)
        os.set_inheritable(folder, True)
        env = {"PATH": _PATH, "HOME": str(self.top / "user"), "API_KEY": self.token, "OPEN_FOLDER": str(folder)}
        env |= {"GIT_CONFIG_NOSYSTEM": "1", "TERM": "xterm", **(more or {})}
        tty.setraw(slave)
        full = (
            sys.executable,
            "-c",
            _IN_PANE,
            shutil.which(argv[0], path=f"{_PATH}:{os.environ['PATH']}") or argv[0],
            *argv[1:],
        )
        process = subprocess.Popen(
            full,
            cwd=self.boxed.tree,
            env=env,
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            close_fds=False,
        )
        try:
            out, _ = process.communicate(timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            out, _ = process.communicate()
        finally:
            typed = _typed(slave)
            for fd in (master, slave, folder):
                os.close(fd)
        return Outcome(
            tuple(self._judge(out.decode("utf-8", "replace"), typed)),
            process.returncode,
            out.decode("utf-8", "replace"),
        )

    def _judge(self, said: str, typed: bytes) -> Iterator[str]:
        if self.token in said or any(line in said for line in _LINES):
            yield "read a secret"
        if "ESCAPED" in said:
            yield "says so"
        if typed:
            yield f"typed {typed!r} into the terminal"
        yield from dict.fromkeys(self._heard())
        if self.victim.poll() is not None:
            yield "ended a process outside"
            self.victim = self._victim()
        now = self._fingerprint()
        for path in sorted({*now, *self.clean}):
            if now.get(path) != self.clean.get(path):
                yield f"changed {path}"
                break

    def restored(self) -> Stage:
        """Return a stage on which nothing has happened yet: this one, or a new one."""
        if self._fingerprint() == self.clean:
            return self
        as_user = bool(self._drop)
        self.close()
        return Stage(as_user=as_user)

    def close(self) -> None:
        """Take the stage down."""
        self._stack.close()

    # --- afterwards -------------------------------------------------------------------------------

    def host_git(self, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run git as the owner of the repository would."""
        env = {**self.boxed.lab.env, "PATH": _PATH, "HOME": str(self.top / "user")}
        return subprocess.run(
            [*self._drop, "git", *args], cwd=cwd or self.boxed.lab.root, env=env, capture_output=True, check=False
        )


def _typed(slave: int) -> bytes:
    """Return what was typed into a terminal that nobody types into."""
    waiting = bytearray(4)
    fcntl.ioctl(slave, termios.FIONREAD, waiting)
    count = int.from_bytes(waiting, sys.byteorder)
    return os.read(slave, count) if count else b""


def without_option(*words: str) -> Callable[[list[str]], list[str]]:
    """Return a bug: these words, where they stand together, are left out of bubblewrap's options."""

    def edit(options: list[str]) -> list[str]:
        for at in range(len(options)):
            if tuple(options[at : at + len(words)]) == words:
                return options[:at] + options[at + len(words) :]
        raise AssertionError(f"not an option: {words}")

    return edit


def showing(path: Path) -> Callable[[Box], Box]:
    """Return a bug: a folder that the box must not show can be written."""
    return lambda box: replace(box, read_write=(*box.read_write, str(path)))
