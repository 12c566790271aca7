"""Run the git program: clean environment, own process group, time limit, bounded retry, clear errors.

What is settled here once:

* ``GIT_*`` variables that redirect git (a hook sets such) are dropped, so that git looks at the
  repository that was asked for and no other.
* The repository's hooks, its file monitor and automatic maintenance do not run for swarm's own
  commands.  Filters do run: LFS must work.
* git gets the descriptor of the repository lock.  If swarm dies, an orphaned git keeps the lock
  until it ends, and nobody repairs under its hands.
* git runs in a process group of its own: Ctrl-C reaches swarm, which ends git in an orderly way.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.git.errors import GitFailed, GitMissing
from swarm.git.running import ground
from swarm.git.running.explain import LOCK_TAKEN, explain, or_full_disk
from swarm.git.running.started import Started, as_file, end_process, kill_process
from swarm.kit.postponed import postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

#: Variables with which a user chooses git's configuration; everything else named GIT_* redirects it.
_KEPT = frozenset(
    {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CEILING_DIRECTORIES",
        "GIT_EXEC_PATH",
        "GIT_TEMPLATE_DIR",
        "GIT_SSL_CAINFO",
    }
)
#: They say what a new commit gets, and nothing else.
_OF_COMMITS = ("GIT_AUTHOR_", "GIT_COMMITTER_")
_QUIET = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.trustctime=true"),
    *("-c", "core.checkStat=default"),
    *("-c", "core.quotePath=false"),
    *("-c", "core.preferSymlinkRefs=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "advice.detachedHead=false"),
)
#: Options of ``git status`` with which it tells of everything that is work, whatever the user has set it to leave out.
STATUS = ("--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=none")
#: The same without a look into submodules: git would run what their own configuration names.
OUTSIDE = (*STATUS[:-1], "--ignore-submodules=dirty")


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return *environ* without variables that point git at another repository."""
    kept = {k: v for k, v in environ.items() if not k.startswith("GIT_") or k in _KEPT}
    kept.update(LC_ALL="C", LANGUAGE="C", GIT_TERMINAL_PROMPT="0", GIT_LITERAL_PATHSPECS="1", GIT_EDITOR="true")
    return kept


def is_redirected(environ: Mapping[str, str]) -> bool:
    """Whether these variables might make git use another repository, or act otherwise, than ours."""
    return any(name.startswith("GIT_") and name not in _KEPT and not name.startswith(_OF_COMMITS) for name in environ)


class Confined(NamedTuple):
    """How a git is started that must not touch the machine.

    Attributes:
        program: the path of what runs instead of git.
        words: its words, before git's own.
        descriptors: what it inherits.
    """

    program: str
    words: tuple[str, ...]
    descriptors: tuple[int, ...]


def _nowhere(_cwd: Path, _env: Mapping[str, str]) -> AbstractContextManager[Confined | None]:
    return nullcontext()


class GitRunner:
    """Runs git in one directory.

    Attributes:
        confine: gives how git is started for a folder and variables, where somebody else wrote what it reads there.

    Args:
        cwd: where git runs; it finds its repository from there.
        environ: the caller's environment; cleaned here.
        timeout: seconds that one command may take.
        retries: how often a command that met a lock file of another git is tried again.
        lock_fd: the descriptor of the repository lock, inherited by git.
    """

    def __init__(
        self,
        cwd: Path,
        *,
        environ: Mapping[str, str],
        timeout: float = 120.0,
        retries: int = 5,
        lock_fd: int | None = None,
    ) -> None:
        self.cwd = cwd
        self.confine: Callable[[Path, Mapping[str, str]], AbstractContextManager[Confined | None]] = _nowhere
        self._environ = clean_environment(environ)
        self._timeout = timeout
        self._retries = retries
        self._lock_fd = lock_fd
        # Found once: the system would try every folder of PATH again for each git.
        self._git = shutil.which("git", path=self._environ.get("PATH")) or "git"
        # Each running git, and every stopped work, by the thread that began the work.
        self._running: dict[subprocess.Popen[bytes], int] = {}
        self._guard = threading.Lock()
        self._stopped: set[int] = set()
        self._mine = threading.local()

    def default_excludes(self) -> Path:
        """Return where git looks for the user's ignore file when no setting names one."""
        home = self._environ.get("XDG_CONFIG_HOME") or os.path.join(self._environ.get("HOME", "/"), ".config")
        return Path(home, "git", "ignore")

    def program(self) -> tuple[object, ...]:
        """Return a mark of the git program in use, without running it."""
        try:
            info = os.stat(self._git)
        except OSError:
            return (self._git,)
        return self._git, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns

    def bind_lock(self, fd: int | None) -> None:
        """Give this descriptor to every git from now on; a start by another thread may still use the one before."""
        with self._guard:  # or the one before could be closed while it is being handed on
            self._lock_fd = fd
            self._stopped.discard(self.work())

    def work(self) -> int:
        """Return the mark of this thread's work, apart from other threads on the same runner."""
        found: int = getattr(self._mine, "work", None) or threading.get_ident()
        return found

    def help_with(self, work: int) -> None:
        """Let this thread do a part of another's work, and be stopped with it."""
        self._mine.work = work

    def run(
        self,
        *args: str,
        cwd: Path | None = None,
        stdin: bytes | int = b"",
        env: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
        what: str = "",
        meanwhile: Callable[[], object] | None = None,
    ) -> bytes:
        """Run a git command that changes something and return its output.

        Args:
            args: the command after ``git``.
            ok: exit codes that are no failure.
            what: the attempt in the user's words, for the error message.
            meanwhile: done while git runs for the first time.

        Raises:
            GitFailed or one of its kind, NoSpace, NoPermission, GitMissing.
        """
        tries = 0
        while True:
            started = self._start(args, cwd, stdin, env, what)
            if meanwhile is not None and tries == 0:
                started.use_the_time(meanwhile)
            code, out, err = started.outcome()
            if code in ok:
                return out
            text = err.decode("utf-8", "replace").strip()
            if not re.search(LOCK_TAKEN, text) or tries >= self._retries:
                raise or_full_disk(explain(what or f"git {_verb(args)} failed", code, text), cwd or self.cwd)
            # The user's git is at work. Its lock is never touched; wait a little and ask again.
            tries += 1
            import random

            time.sleep(random.uniform(0.5, 1.0) * min(2.0, 0.05 * 2**tries))  # noqa: S311  # no secret

    def ask(
        self,
        *args: str,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        what: str = "",
    ) -> bytes:
        """Run a git command that only reads; it takes no optional locks."""
        return self.run(*args, cwd=cwd, stdin=stdin, env={"GIT_OPTIONAL_LOCKS": "0", **(env or {})}, what=what)

    def attempt(
        self,
        *args: str,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        what: str = "",
        timeout: float | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Run once and return (exit code, output, error text), also after a failure.

        Args:
            timeout: seconds that it may take, where that is less than what any command may take.

        Raises:
            GitTimeout: it did not end in time and was ended.
        """
        return self._start(args, cwd, stdin, env, what, timeout).outcome()

    def begin(
        self, *args: str, stdin: bytes = b"", cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Started:
        """Begin a git command that only reads; its answer is asked for later, or it is ended."""
        return self._start(args, cwd, stdin, {"GIT_OPTIONAL_LOCKS": "0", **(env or {})}, "")

    def listening(self, *args: str, env: Mapping[str, str] | None = None, what: str = "") -> Started:
        """Start a git that is asked one thing after the other, and ended when all is said."""
        return self._start(args, None, None, env, what)

    def _start(
        self,
        args: Sequence[str],
        cwd: Path | None,
        stdin: bytes | int | None,
        env: Mapping[str, str] | None,
        what: str,
        timeout: float | None = None,
    ) -> Started:
        started: list[subprocess.Popen[bytes]] = []
        place = ground.Ground(cwd or self.cwd)
        if (env or {}).get("GIT_OPTIONAL_LOCKS") != "0":
            ground.refuse_links(cwd or self.cwd, env or {})
        try:
            self._spawn(started, args, cwd or self.cwd, place, env, stdin)
        except BaseException:
            # A signal or Ctrl-C: git must not go on changing things while we roll back.
            for process in started:
                end_process(process)
                self._forget(process)
            raise
        limit = self._timeout if timeout is None else min(timeout, self._timeout)
        return Started(started[0], limit, what or f"git {_verb(args)} failed", self._forget, place)

    def _forget(self, process: subprocess.Popen[bytes]) -> None:
        with self._guard:
            self._running.pop(process, None)

    def _spawn(
        self,
        started: list[subprocess.Popen[bytes]],
        args: Sequence[str],
        cwd: Path,
        place: ground.Ground,
        env: Mapping[str, str] | None,
        stdin: bytes | int | None,
    ) -> None:
        """Start git, and put it down in *started* before any signal can come in between."""
        with self._guard, as_file(stdin) as given, postponed():
            if self.work() in self._stopped:
                raise GitFailed("git was not started: the operation is being stopped")
            variables = {**self._environ, **(env or {})}
            lock = () if self._lock_fd is None else (self._lock_fd,)
            try:
                with place.held() as start, self.confine(cwd, variables) as box:
                    process = subprocess.Popen(  # argv, never a shell
                        [*(box.words if box else ()), "git", *_QUIET, *args],
                        executable=box.program if box else self._git,
                        cwd="/" if box else start,
                        env={} if box else variables,
                        stdin=given,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        start_new_session=True,
                        pass_fds=box.descriptors if box else lock,
                    )
            except FileNotFoundError as error:
                if not cwd.is_dir():
                    raise GitFailed(f"git {_verb(args)} failed: {cwd} is gone") from error
                raise GitMissing("cannot run git: the program is not installed") from error
            started.append(process)
            self._running[process] = self.work()

    def stop_all(self) -> None:
        """End every git that runs for this work in any thread, and start no more until the next operation."""
        mine = self.work()
        with self._guard:
            self._stopped.add(mine)
            running = tuple(process for process, work in self._running.items() if work == mine)
        for process in running:
            kill_process(process)  # its own thread still listens to it, and closes the pipes

    def resume(self) -> None:
        """Allow git again after ``stop_all``, for the rollback."""
        with self._guard:
            self._stopped.discard(self.work())


def _verb(args: Sequence[str]) -> str:
    words = [a for a in args if not a.startswith("-")]
    return " ".join(words[:2]) if words[:1] == ["worktree"] else (words[0] if words else "")
