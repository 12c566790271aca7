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

import contextlib
import os
import random
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import ground
from swarm.git.errors import (
    BranchExists,
    GitBroken,
    GitBusy,
    GitFailed,
    GitMissing,
    GitTimeout,
    NotARepo,
    RepositoryOwner,
)
from swarm.kit.errors import NoPermission, NoSpace, SwarmError
from swarm.kit.postponed import postponed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

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
_GRACE = 5.0
#: git's words for a repository that it cannot read.
_DAMAGE = re.compile(
    r"bad (config|object|tree)|unable to read (tree|sha1 file)|not a tree object|commondir"
    r"|unexpected line in .*packed-refs|missing object|could not parse (HEAD|object)|unable to parse object"
    r"|object file .* is empty|(loose|packed) object .* is corrupt|appears to be broken|index file (corrupt|smaller)"
    r"|Could not read [0-9a-f]{40}|bad (index file|signature)|unknown repository extension|Expected git repo version"
)
#: Last words that say nothing about the cause.
_VERDICT = re.compile(r"^fatal: (Could not reset index file to revision|the remote end hung up)")
_NOT_WRITTEN = re.compile(r"unable to (write|create)|(could not|cannot) (write|create|mkdir)|copy-fd|write error")
#: A file that did not fit is taken away again, so that much may be free on a full disk.
_NEARLY_FULL = 32 << 20
_FEW_INODES = 16
_LOCK_TAKEN = re.compile(
    r"Unable to create '(?P<file>[^\n]*\.lock)': File exists|could not lock config file [^\n]*: File exists"
    # Its `gc` has just taken away the empty folder in which an object was to be made.
    r"|unable to create temporary file: No such file or directory"
)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return *environ* without what would point git at another repository."""
    kept = {k: v for k, v in environ.items() if not k.startswith("GIT_") or k in _KEPT}
    kept.update(LC_ALL="C", LANGUAGE="C", GIT_TERMINAL_PROMPT="0", GIT_LITERAL_PATHSPECS="1", GIT_EDITOR="true")
    return kept


def is_redirected(environ: Mapping[str, str]) -> bool:
    """Whether a git with just these variables might look elsewhere, or do other things, than what we run."""
    return any(name.startswith("GIT_") and name not in _KEPT and not name.startswith(_OF_COMMITS) for name in environ)


class GitRunner:
    """Runs git in one directory.

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
        """Return what tells the git that runs here from any other, without running it."""
        try:
            info = os.stat(self._git)
        except OSError:
            return (self._git,)
        return self._git, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns

    def bind_lock(self, fd: int | None) -> None:
        """From now on give this descriptor to every git; what another thread is starting has got the one before."""
        with self._guard:  # or the one before could be closed while it is being handed on
            self._lock_fd = fd
            self._stopped.discard(self.work())

    def work(self) -> int:
        """Return what tells the work of this thread from that of others which use the same runner."""
        found: int = getattr(self._mine, "work", None) or threading.get_ident()
        return found

    def help_with(self, work: int) -> None:
        """Let this thread do a part of another's work, and be stopped with it."""
        self._mine.work = work

    def run(
        self,
        *args: str,
        cwd: Path | None = None,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
        what: str = "",
        meanwhile: Callable[[], object] | None = None,
    ) -> bytes:
        """Run a git command that changes something and return what it printed.

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
            if not _LOCK_TAKEN.search(text) or tries >= self._retries:
                raise _or_full_disk(explain(what or f"git {_verb(args)} failed", code, text), cwd or self.cwd)
            # The user's git is at work. Its lock is never touched; wait a little and ask again.
            tries += 1
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
        """Run once and return (exit code, output, error text) whatever they are.

        Args:
            timeout: seconds that it may take, where that is less than what any command may take.

        Raises:
            GitTimeout: it did not end in time and was ended.
        """
        return self._start(args, cwd, stdin, env, what, timeout).outcome()

    def begin(self, *args: str, stdin: bytes = b"", cwd: Path | None = None) -> Started:
        """Begin a git command that only reads; its answer is asked for later, or it is ended."""
        return self._start(args, cwd, stdin, {"GIT_OPTIONAL_LOCKS": "0"}, "")

    def _start(
        self,
        args: Sequence[str],
        cwd: Path | None,
        stdin: bytes,
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
                _end(process)
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
        stdin: bytes,
    ) -> None:
        """Start git, and put it down in *started* before any signal can come in between."""
        with self._guard, _as_file(stdin) as given, postponed():
            if self.work() in self._stopped:
                raise GitFailed("git was not started: the operation is being stopped")
            try:
                with place.held() as start:
                    process = subprocess.Popen(  # argv, never a shell
                        ["git", *_QUIET, *args],
                        executable=self._git,
                        cwd=start,
                        env={**self._environ, **(env or {})},
                        stdin=given,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE,
                        start_new_session=True,
                        pass_fds=() if self._lock_fd is None else (self._lock_fd,),
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
            _kill(process)  # its own thread still listens to it, and closes the pipes

    def resume(self) -> None:
        """Allow git again after ``stop_all``, for the rollback."""
        with self._guard:
            self._stopped.discard(self.work())


class Started:
    """A git that runs.

    Args:
        what: the attempt in the user's words.
        ended: told when it does not run any more.
        place: where it runs.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        timeout: float,
        what: str,
        ended: Callable[[subprocess.Popen[bytes]], None],
        place: ground.Ground,
    ) -> None:
        self._process = process
        self._timeout = timeout
        self._what = what
        self._ended = ended
        self._place = place

    def outcome(self) -> tuple[int, bytes, bytes]:
        """Wait for the end, and return (exit code, output, error text) whatever they are.

        Raises:
            GitTimeout: it did not end in time and was ended.
        """
        try:
            out, err = _listen(self._process, self._timeout)
        except subprocess.TimeoutExpired:
            _end(self._process)
            raise GitTimeout(f"{self._what}: git did not end within {self._timeout:g} s") from None
        except BaseException:
            # A signal or Ctrl-C: git must not go on changing things while we roll back.
            _end(self._process)
            raise
        finally:
            self._ended(self._process)
        self._place.check()
        return self._process.returncode, out, err

    def use_the_time(self, act: Callable[[], object]) -> None:
        """Do something before the end is waited for; git does not live on if that fails."""
        try:
            act()
        except BaseException:
            self.end()
            raise

    def result(self) -> bytes:
        """Wait for the end, and return what it printed.

        Raises:
            GitFailed or one of its kind.
        """
        code, out, err = self.outcome()
        if code != 0:
            raise explain(self._what, code, err.decode("utf-8", "replace").strip())
        return out

    def end(self) -> None:
        """End it, if nobody waited for its end; whoever else has ended it does not hold its pipes."""
        _end(self._process)
        self._ended(self._process)


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[int]:
    """Give a descriptor to read *data* from; one that takes all of it at once, so that writing never has to wait."""
    if not data:
        yield subprocess.DEVNULL
        return
    if len(data) <= select.PIPE_BUF:
        reader, writer = os.pipe()
        try:
            os.write(writer, data)
            os.close(writer)
            yield reader
        finally:
            os.close(reader)
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file.fileno()


def _listen(process: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    """Return what a program prints until it ends, as ``communicate`` does.

    ``communicate`` with a timeout sleeps for a millisecond before it looks whether the program has
    ended; that is as long as most git commands take.

    Raises:
        subprocess.TimeoutExpired
    """
    deadline = time.monotonic() + timeout
    assert process.stdout is not None  # noqa: S101  # they are pipes
    assert process.stderr is not None  # noqa: S101
    with process.stdout as out, process.stderr as err:
        heard: dict[int, list[bytes]] = {out.fileno(): [], err.fileno(): []}
        said = tuple(heard.values())
        poll = select.poll()
        for fd in heard:
            poll.register(fd, select.POLLIN)
        while heard:
            ready = poll.poll(_left(process, deadline, timeout) * 1000)
            for fd, _ in ready:
                chunk = os.read(fd, 1 << 16)
                if chunk:
                    heard[fd].append(chunk)
                else:
                    poll.unregister(fd)
                    del heard[fd]
    _await_end(process, deadline)
    process.wait(max(0.0, deadline - time.monotonic()))
    return b"".join(said[0]), b"".join(said[1])


def _left(process: subprocess.Popen[bytes], deadline: float, timeout: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise subprocess.TimeoutExpired(process.args, timeout)
    return left


def _await_end(process: subprocess.Popen[bytes], deadline: float) -> None:
    """Wait for the end without a sleep, where the system offers a descriptor for it."""
    with contextlib.suppress(OSError, AttributeError):
        fd = os.pidfd_open(process.pid)
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(fd)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started, and stop listening to it."""
    _kill(process)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End git and what it started: first politely, so that it removes its own lock files."""
    if process.returncode is not None:
        return  # its number may be somebody else's by now
    for signum, patience in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, _GRACE)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signum)
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
        break
    # git has ended, but a filter that ignores the first signal has not; nothing may write on.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _verb(args: Sequence[str]) -> str:
    words = [a for a in args if not a.startswith("-")]
    return " ".join(words[:2]) if words[:1] == ["worktree"] else (words[0] if words else "")


def explain(what: str, code: int, text: str) -> SwarmError:
    """Turn git's exit code and words into one of our errors."""
    message = f"{what}: {cause_of(code, text)}"
    kind: type[SwarmError] = GitFailed
    if "No space left on device" in text or "Disk quota exceeded" in text:
        kind = NoSpace
    elif "dubious ownership" in text:
        kind = RepositoryOwner
    elif _LOCK_TAKEN.search(text):
        kind = GitBusy
    elif "Permission denied" in text or "Read-only file system" in text:
        kind = NoPermission
    elif "not a git repository" in text and "worktrees" not in text:
        kind = NotARepo
    elif "reference already exists" in text or ("already exists" in text and "branch named" in text):
        kind = BranchExists
    elif _DAMAGE.search(text):
        kind = GitBroken
    return kind(message, details=text or None)


def _or_full_disk(error: SwarmError, folder: Path) -> SwarmError:
    """Say that the disk is full where git only says that it could not write: a checkout hides the reason."""
    if type(error) is not GitFailed or not _NOT_WRITTEN.search(error.details or ""):
        return error
    try:
        info = os.statvfs(folder)
    except OSError:
        return error
    left = info.f_bavail * info.f_frsize
    if left < _NEARLY_FULL:
        return NoSpace(f"{error.message} (the disk is full: {left >> 10} KiB are free)", details=error.details)
    if info.f_files and info.f_favail < _FEW_INODES:
        return NoSpace(f"{error.message} (the disk is full: {info.f_favail} inodes are free)", details=error.details)
    return error


def cause_of(code: int, text: str) -> str:
    """Pick the line of git's words that says most: it prints what it noticed first and its verdict last."""
    if code < 0:
        return f"git was ended by signal {-code}"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _VERDICT.search(line)]
    missing = next((line for line in lines if line.endswith(": not found")), "")
    if missing:  # the shell's word about a filter program; all that git says is that it hung up
        return missing
    for prefix in ("fatal: ", "error: ", ""):
        found = next((line for line in lines if line.startswith(prefix)), "")
        if found:
            return found.removeprefix(prefix)
    return f"exit code {code}"
