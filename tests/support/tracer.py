"""A ptrace and seccomp tracer: stop a whole process tree at its n-th change of the file system.

``trace`` runs a callable in a forked child.  A seccomp filter, inherited by everything the child
forks or executes (git and git's own children), makes the kernel stop a process just before each
system call that may change the file system.  The calls are numbered 1..N over the whole tree; at
one of them the tracer can kill processes, send a signal, or make the call fail unexecuted.

Pure Python and ctypes; Linux on x86_64 or aarch64.  Limits, all deliberate:

* changes through a shared memory map, io_uring or ``ioctl(FICLONE)`` are not seen;
* 32-bit programs run unobserved;
* files without a name (O_TMPFILE, memfd, unlinked) are not counted: none outlives a crash;
* writes to the tracer's own stdout and stderr files are not counted: a log must not shift points;
* paths are as the program wrote them, made absolute and normalised; symbolic links are not
  resolved, so give the program real paths when ``scope`` compares them;
* with several processes or threads at work at once, the order (not the count) of points may vary.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import gc
import os
import signal
import stat
import struct
import sys
import threading
import traceback
import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NoReturn

from .syscalls import FREES_SPACE, Kind, Spec, build_filter, this_arch

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SUPPORTED", "Action", "Outcome", "Point", "TracerError", "trace", "why_unsupported"]

SUPPORTED: bool  # computed on first use, by __getattr__ below: the probe forks

EXIT_EXCEPTION: Final = 97  # the target raised something else than SystemExit
_EXIT_SETUP: Final = 98


class TracerError(RuntimeError):
    """The tracer itself could not do its work; nothing is known about the target."""


@dataclass(frozen=True, slots=True)
class Point:
    """One counted system call, seen before it executes."""

    index: int
    pid: int  # of the process (thread group), not of the thread
    is_root: bool
    syscall: str
    path: str  # the new name for rename and link
    source: str = ""  # the old name for rename and link


class Action(StrEnum):
    """What to do at the chosen point."""

    KILL_TREE = "kill-tree"  # SIGKILL to every process; the call is not executed
    KILL_SELF = "kill-self"  # SIGKILL to the calling process only; the call is not executed
    KILL_ROOT = "kill-root"  # SIGKILL to the root only; orphans run on to their natural end
    TERM_ROOT = "term-root"  # SIGTERM to the root; the call is executed
    INT_ROOT = "int-root"  # SIGINT to the root; the call is executed
    ENOSPC = "enospc"  # the call is not executed and returns the error
    EIO = "eio"
    EACCES = "eacces"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was seen, and how the root ended (``exit_code`` or ``signal``, never both)."""

    points: tuple[Point, ...]
    fired: bool  # point ``at`` was reached
    exit_code: int | None
    signal: int | None
    timed_out: bool


_ERRORS: Final = {
    Action.ENOSPC: errno.ENOSPC,
    Action.EIO: errno.EIO,
    Action.EACCES: errno.EACCES,
}

# --- the kernel's numbers ------------------------------------------------------------------------

_PTRACE_POKEUSER, _PTRACE_CONT = 6, 7
_PTRACE_GETEVENTMSG = 0x4201
_PTRACE_GETREGSET, _PTRACE_SETREGSET = 0x4204, 0x4205
_PTRACE_SEIZE, _PTRACE_LISTEN = 0x4206, 0x4208
_PTRACE_GET_SYSCALL_INFO = 0x420E

_EVENT_FORK, _EVENT_VFORK, _EVENT_CLONE, _EVENT_EXEC = 1, 2, 3, 4
_EVENT_SECCOMP, _EVENT_STOP = 7, 128
_OPTIONS: Final = (
    sum(1 << event for event in (_EVENT_FORK, _EVENT_VFORK, _EVENT_CLONE, _EVENT_EXEC, _EVENT_SECCOMP))
    | 0x100000  # EXITKILL: no tracee outlives the tracer
)
_NT_PRSTATUS, _NT_ARM_SYSTEM_CALL = 1, 0x404
_X86_RAX, _X86_ORIG_RAX = 10 * 8, 15 * 8  # offsets in struct user

_WALL, _WNOTHREAD = 0x40000000, 0x20000000
# WNOTHREAD: only what this very thread forked or traces, never a child of another thread.
_WAIT_FLAGS: Final = _WALL | _WNOTHREAD
_STOP_SIGNALS: Final = frozenset({signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU})

_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_SECCOMP_MODE_FILTER = 2

_AT_FDCWD = -100
_PAGE: Final = 4096
_PATH_MAX: Final = 4096


class _SockFprog(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("len", ctypes.c_size_t))


_libc: Final = ctypes.CDLL(None, use_errno=True)
_ptrace_c = getattr(_libc, "ptrace", None)
_prctl_c = getattr(_libc, "prctl", None)
if _ptrace_c is not None and _prctl_c is not None:
    _ptrace_c.restype = ctypes.c_long
    _ptrace_c.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    _prctl_c.restype = ctypes.c_int
    _prctl_c.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)


def _ptrace(request: int, tid: int, addr: int = 0, data: int = 0) -> int:
    """ptrace(2), with OSError for an error (ProcessLookupError: the tracee is dead or dying)."""
    assert _ptrace_c is not None
    result: int = _ptrace_c(request, tid, addr, data)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace({request:#x}, {tid}): {os.strerror(code)}")
    return result


def _prctl(option: int, arg2: int = 0, arg3: int = 0) -> None:
    assert _prctl_c is not None
    if _prctl_c(option, arg2, arg3, 0, 0) == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


# --- the child -----------------------------------------------------------------------------------


def _install_filter(program: bytes) -> None:
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = _SockFprog(len(program) // 8, ctypes.addressof(buffer))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)  # lets an unprivileged process install a filter
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.addressof(fprog))


def _settle() -> None:
    """Undo what the child inherited from a test runner and what would make runs differ."""
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner may ignore it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The runner's garbage must not be finalised here, and files written, at a random point.
    gc.freeze()
    sys.dont_write_bytecode = True  # else the first run has more points than the next


def _call(target: Callable[[], int | None]) -> int:
    try:
        code = target() or 0
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            code = stop.code or 0
        else:
            os.write(2, f"{stop.code}\n".encode(errors="backslashreplace"))
            code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # _exit will not
    return code & 0xFF


def _child(target: Callable[[], int | None], program: bytes) -> NoReturn:
    code = _EXIT_SETUP
    try:
        _settle()
        _install_filter(program)
        os.kill(os.getpid(), signal.SIGSTOP)  # the parent attaches now
        code = EXIT_EXCEPTION
        code = _call(target)
    except BaseException:  # noqa: BLE001 - this process ends here whatever happens
        # Not sys.stderr: under a capturing test runner it may be an object in memory, lost with us.
        os.write(2, traceback.format_exc().encode(errors="backslashreplace"))
    finally:
        os._exit(code)


# --- the tracer ----------------------------------------------------------------------------------


def _thread_group(tid: int) -> int:
    with (
        contextlib.suppress(OSError),
        open(f"/proc/{tid}/status", encoding="utf-8", errors="replace") as file,
    ):
        for line in file:
            if line.startswith("Tgid:"):
                return int(line[5:])
    return tid


def _is_pseudo(path: str) -> bool:
    """A device or a kernel file; /dev/shm is neither, and a test may keep its scratch there."""
    return path.startswith(("/dev/", "/proc/", "/sys/")) and not path.startswith("/dev/shm/")


def _own_outputs() -> frozenset[tuple[int, int]]:
    """Identities of the regular files which are our stdout and stderr."""
    found = set()
    for fd in (1, 2):
        with contextlib.suppress(OSError):
            info = os.fstat(fd)
            if stat.S_ISREG(info.st_mode):
                found.add((info.st_dev, info.st_ino))
    return frozenset(found)


def _thread_has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT | _WAIT_FLAGS)
    except ChildProcessError:
        return False
    return True


class _Run:
    """One traced execution; all but ``kill_all`` belongs to a single thread (a rule of ptrace)."""

    def __init__(
        self,
        target: Callable[[], int | None],
        *,
        at: int | None,
        action: Action | None,
        sticky: bool,
        scope: Callable[[Point], bool] | None,
        record: bool,
        timeout: float,
    ) -> None:
        arch = this_arch()
        if arch is None or _ptrace_c is None:
            msg = "the tracer does not know this machine"
            raise TracerError(msg)
        self._target = target
        self._at = at
        self._action = action
        self._errno = _ERRORS.get(action) if action else None
        self._sticky = sticky
        self._scope = scope
        self._record = record
        self._timeout = timeout
        self._table = arch.table()
        self._program = build_filter(arch)
        self._is_x86 = arch.name == "x86_64"

        self._root = 0
        self._live: dict[int, None] = {}  # thread ids not yet reaped; a dict for an atomic snapshot
        self._gone: set[int] = set()  # thread ids reaped
        self._groups: dict[int, int] = {}  # thread id -> process id
        self._memory: dict[int, int] = {}  # process id -> descriptor of its /proc/PID/mem
        self._outputs = _own_outputs()
        self._killing = False  # from now on nothing is resumed
        self._timed_out = False
        self._count = 0
        self._points: list[Point] = []
        self._fired = False
        self._exit_code: int | None = None
        self._signal: int | None = None
        self._info = ctypes.create_string_buffer(88)  # struct ptrace_syscall_info
        self._info_address = ctypes.addressof(self._info)
        self._message = ctypes.c_ulong()

    # -- life cycle

    def execute(self) -> Outcome:
        """Run to the end of the last traced process."""
        # Orphans come to us instead of pid 1, which in a container may never reap them.
        before = ctypes.c_int()
        _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.addressof(before))
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        done = threading.Event()
        watchdog = threading.Thread(target=self._watch, args=(done,), name="tracer-watchdog", daemon=True)
        try:
            self._start()
            watchdog.start()
            self._loop()
        except BaseException:  # of scope, or KeyboardInterrupt, or our own
            self.kill_all()
            self._loop()
            raise
        finally:
            done.set()
            if watchdog.ident is not None:
                watchdog.join()
            self._reap_orphans()
            for fd in self._memory.values():
                os.close(fd)
            _prctl(_PR_SET_CHILD_SUBREAPER, before.value)
        return Outcome(tuple(self._points), self._fired, self._exit_code, self._signal, self._timed_out)

    def kill_all(self) -> None:
        """SIGKILL every process known and, as their stops are reported, every one not yet known."""
        # Set first: a process registered after the snapshot meets the flag instead of the signal.
        self._killing = True
        for tid in list(self._live):
            _kill(tid, signal.SIGKILL)

    def _watch(self, done: threading.Event) -> None:
        if not done.wait(self._timeout):
            self._timed_out = True
            self.kill_all()

    def _start(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # else what is buffered comes out twice
        with warnings.catch_warnings():
            # Python 3.12 warns when the forking process has threads; the child needs none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            _child(self._target, self._program)
        self._root = pid
        self._groups[pid] = pid
        self._live[pid] = None
        _, status = os.waitpid(pid, os.WUNTRACED | _WALL)
        if not os.WIFSTOPPED(status):
            self._live.clear()
            msg = f"the child failed to install its seccomp filter (wait status {status:#x})"
            raise TracerError(msg)
        try:
            # SEIZE rather than TRACEME: true group stops, and a child's first stop is not a signal.
            _ptrace(_PTRACE_SEIZE, pid, 0, _OPTIONS)
        except OSError as error:
            msg = f"ptrace refused: {error}"
            raise TracerError(msg) from error
        os.kill(pid, signal.SIGCONT)

    def _loop(self) -> None:
        while True:
            try:
                tid, status = os.waitpid(-1, _WAIT_FLAGS)
            except ChildProcessError:
                self._live.clear()
                return
            if os.WIFSTOPPED(status):
                self._gone.discard(tid)  # the number is in use again
                self._live[tid] = None
                if self._killing:
                    _kill(tid, signal.SIGKILL)
                    continue
                # ESRCH: the tracee was killed while stopped; its end will be reported.
                with contextlib.suppress(ProcessLookupError):
                    self._stopped(tid, status)
            else:
                self._ended(tid, status)

    def _ended(self, tid: int, status: int) -> None:
        if tid not in self._live:
            return  # an orphan, reported a second time because we are now its parent too
        del self._live[tid]
        self._gone.add(tid)
        if self._groups.pop(tid, tid) == tid:
            self._forget_memory(tid)
        if tid == self._root:
            if os.WIFSIGNALED(status):
                self._signal = os.WTERMSIG(status)
            else:
                self._exit_code = os.WEXITSTATUS(status)

    def _reap_orphans(self) -> None:
        """Reap what was given to another thread of ours: the kernel prefers the main one."""
        if threading.get_native_id() == os.getpid():
            return  # WNOTHREAD covered them
        for tid in self._gone:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(tid, os.WNOHANG | _WALL)

    # -- stops

    def _stopped(self, tid: int, status: int) -> None:
        event = status >> 16
        number = (status >> 8) & 0xFF
        deliver = 0
        if event == _EVENT_SECCOMP:
            if not self._at_syscall(tid):
                return
        elif event == 0:
            deliver = number  # a signal on its way: pass it on
        elif event == _EVENT_STOP:
            if number in _STOP_SIGNALS:
                _ptrace(_PTRACE_LISTEN, tid)  # stay stopped until SIGCONT, as without a tracer
                return
        else:
            self._family_event(tid, event)
        _ptrace(_PTRACE_CONT, tid, 0, deliver)

    def _family_event(self, tid: int, event: int) -> None:
        """Keep account of new tasks and of what an exec changes."""
        _ptrace(_PTRACE_GETEVENTMSG, tid, 0, ctypes.addressof(self._message))
        other = self._message.value
        if event == _EVENT_EXEC:
            if other != tid:  # a thread executed: it took over the number of the group, in silence
                self._live.pop(other, None)
                self._groups.pop(other, None)
            self._groups[tid] = tid
            self._forget_memory(tid)
        elif other not in self._gone:  # else its end overtook this event
            self._live[other] = None
            if event != _EVENT_CLONE:  # a clone may be a thread: looked up when first needed
                self._groups[other] = other

    def _at_syscall(self, tid: int) -> bool:
        """Handle a stop before an interesting call; False when the tracee must not be resumed."""
        _ptrace(_PTRACE_GET_SYSCALL_INFO, tid, 88, self._info_address)
        number, *arguments = struct.unpack_from("=7Q", self._info, 24)
        spec = self._table.get(number)
        if spec is None:
            return True
        where = self._where(tid, spec, arguments)
        if where is None:
            return True
        pid = self._group(tid)
        path, source = where
        point = Point(self._count + 1, pid, pid == self._root, spec.name, path, source)
        if self._scope is not None and not self._scope(point):
            return True
        self._count += 1
        if self._record:
            self._points.append(point)
        if self._at is None or self._count < self._at:
            return True
        if self._count > self._at and not self._sticky:
            return True
        self._fired = True
        return self._act(tid, point)

    def _act(self, tid: int, point: Point) -> bool:
        if self._errno is not None:
            if not (self._sticky and point.syscall in FREES_SPACE):
                self._fail(tid, self._errno)
            return True
        # A process killed in this stop dies without executing the call (the kernel looks for it).
        if self._action is Action.KILL_TREE:
            self.kill_all()
            return False
        if self._action is Action.KILL_SELF:
            _kill(point.pid, signal.SIGKILL)
            return False
        if self._root in self._live:  # it may be over, and its number free for others
            deadly = {Action.TERM_ROOT: signal.SIGTERM, Action.INT_ROOT: signal.SIGINT}
            _kill(self._root, deadly.get(self._action or Action.KILL_ROOT, signal.SIGKILL))
        return not (self._action is Action.KILL_ROOT and point.is_root)

    def _fail(self, tid: int, code: int) -> None:
        """Make the call return an error; number -1 tells the kernel not to execute anything."""
        if self._is_x86:
            _ptrace(_PTRACE_POKEUSER, tid, _X86_ORIG_RAX, (1 << 64) - 1)
            _ptrace(_PTRACE_POKEUSER, tid, _X86_RAX, (1 << 64) - code)
            return
        nothing = ctypes.c_int(-1)
        vector = _Iovec(ctypes.addressof(nothing), ctypes.sizeof(nothing))
        _ptrace(_PTRACE_SETREGSET, tid, _NT_ARM_SYSTEM_CALL, ctypes.addressof(vector))
        registers = (ctypes.c_uint64 * 34)()  # x0..x30, sp, pc, pstate
        vector = _Iovec(ctypes.addressof(registers), ctypes.sizeof(registers))
        _ptrace(_PTRACE_GETREGSET, tid, _NT_PRSTATUS, ctypes.addressof(vector))
        registers[0] = (1 << 64) - code
        _ptrace(_PTRACE_SETREGSET, tid, _NT_PRSTATUS, ctypes.addressof(vector))

    # -- what a call touches

    def _where(self, tid: int, spec: Spec, arguments: list[int]) -> tuple[str, str] | None:
        """(path, source) of a call that may change the file system; None when it cannot."""
        kind = spec.kind
        if kind is Kind.DATA or kind is Kind.NODE:
            named = self._descriptor(tid, arguments[spec.arg], directories=kind is Kind.NODE)
            return None if named is None else (named, "")
        if kind is Kind.GLOBAL:
            return "", ""
        path = self._path(tid, spec.dirfd, spec.arg, arguments)
        if kind is Kind.NAME:
            source = "" if spec.source is None else self._path(tid, *spec.source, arguments)
            return path, source
        if spec.flags is None:
            flags = os.O_CREAT | os.O_TRUNC  # creat
        elif kind is Kind.OPEN:
            flags = arguments[spec.flags]
        else:
            how = self._read(tid, arguments[spec.flags], 8)
            flags = int.from_bytes(how, "little")
        return (path, "") if _open_changes(path, flags) else None

    def _descriptor(self, tid: int, value: int, *, directories: bool) -> str | None:
        link = f"/proc/{tid}/fd/{value & 0xFFFFFFFF}"
        try:
            info = os.stat(link)
            regular = stat.S_ISREG(info.st_mode)
            if not regular and not (directories and stat.S_ISDIR(info.st_mode)):
                return None
            if info.st_nlink == 0 or (info.st_dev, info.st_ino) in self._outputs:
                return None
            path = os.readlink(link)
        except OSError:
            return None
        return None if _is_pseudo(path) else path

    def _path(self, tid: int, dirfd: int | None, position: int, arguments: list[int]) -> str:
        text = os.fsdecode(self._string(tid, arguments[position]))
        if text.startswith("/"):
            return os.path.normpath(text)
        at = _AT_FDCWD if dirfd is None else ctypes.c_int(arguments[dirfd] & 0xFFFFFFFF).value
        try:
            base = os.readlink(f"/proc/{tid}/cwd" if at == _AT_FDCWD else f"/proc/{tid}/fd/{at}")
        except OSError:
            return text
        # No text: the call means the descriptor itself (utimensat with NULL, AT_EMPTY_PATH).
        return os.path.normpath(os.path.join(base, text)) if text else base

    def _group(self, tid: int) -> int:
        pid = self._groups.get(tid)
        if pid is None:
            pid = self._groups[tid] = _thread_group(tid)
        return pid

    # -- memory of a tracee

    def _forget_memory(self, pid: int) -> None:
        fd = self._memory.pop(pid, None)
        if fd is not None:
            os.close(fd)

    def _read(self, tid: int, address: int, size: int) -> bytes:
        """At most ``size`` bytes; fewer, or none, where memory is not mapped."""
        pid = self._group(tid)
        try:
            fd = self._memory.get(pid)
            if fd is None:
                fd = self._memory[pid] = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            return os.pread(fd, size, address)
        except (OSError, OverflowError):
            return b""

    def _string(self, tid: int, address: int) -> bytes:
        if address == 0:
            return b""
        text = b""
        while len(text) < _PATH_MAX:
            # Not beyond the page: the next one may not exist.
            chunk = self._read(tid, address, min(256, _PAGE - address % _PAGE))
            end = chunk.find(b"\0")
            if end >= 0 or not chunk:
                return text + chunk[: max(end, 0)]
            text += chunk
            address += len(chunk)
        return text


def _open_changes(path: str, flags: int) -> bool:
    """Whether an open creates or empties a file."""
    if not flags & (os.O_CREAT | os.O_TRUNC) or _is_pseudo(path):
        return False
    try:
        info = os.stat(path)  # following links, as open does
    except OSError:
        return bool(flags & os.O_CREAT)
    return stat.S_ISREG(info.st_mode) and bool(flags & (os.O_TRUNC | os.O_EXCL))


def trace(
    target: Callable[[], int | None],
    *,
    at: int | None = None,
    action: Action | None = None,
    sticky: bool = False,
    scope: Callable[[Point], bool] | None = None,
    record: bool = True,
    timeout: float = 60.0,
) -> Outcome:
    """Run ``target`` in a traced child; return when it and all its descendants have ended.

    The child's exit code is the target's result (0 for None), that of its SystemExit, or 97 after
    any other exception, whose traceback goes to stderr.  Without ``at`` the run is only counted;
    with it, ``action`` is done at point ``at``.

    ``scope`` is called with each candidate point, carrying the index it would get; False leaves it
    out.  ``sticky``, for the error actions only, fails every counted call from ``at`` on, except
    unlink, rmdir and rename, which work on a full disk.  ``record=False`` keeps no points.  After
    ``timeout`` seconds everything is killed.
    """
    if (at is None) != (action is None) or (at is not None and at < 1):
        msg = "at (from 1) and action go together"
        raise ValueError(msg)
    if sticky and action not in _ERRORS:
        msg = "sticky is for the error actions"
        raise ValueError(msg)
    run = _Run(target, at=at, action=action, sticky=sticky, scope=scope, record=record, timeout=timeout)
    if not _thread_has_children():
        return run.execute()
    return _execute_apart(run)


def _execute_apart(run: _Run) -> Outcome:
    """Trace from a new thread: this one has children, which waiting for any child would steal."""
    outcomes: list[Outcome] = []
    failures: list[BaseException] = []

    def body() -> None:
        try:
            outcomes.append(run.execute())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            failures.append(error)

    thread = threading.Thread(target=body, name="tracer")
    thread.start()
    try:
        thread.join()
    except BaseException:
        run.kill_all()
        thread.join()
        raise
    if failures:
        raise failures[0]
    return outcomes[0]


# --- support -------------------------------------------------------------------------------------


@functools.cache
def why_unsupported() -> str | None:
    """The reason why ``trace`` cannot work here; None when it can. Found by trying, once."""
    if sys.platform != "linux":
        return f"the tracer needs Linux, not {sys.platform}"
    if this_arch() is None:
        return f"the tracer does not know the machine {os.uname().machine}"
    if _ptrace_c is None or _prctl_c is None:
        return "the C library has no ptrace or no prctl"

    def probe() -> int:
        try:
            os.mkdir("/")  # harmless should the tracer fail: EEXIST
        except OSError as error:
            return 0 if error.errno == errno.EACCES else 1
        return 1

    try:
        outcome = trace(probe, at=1, action=Action.EACCES, timeout=10.0)
    except (TracerError, OSError) as error:
        return str(error)
    if outcome.exit_code != 0:
        return f"a trial run did not see its system call fail: {outcome}"
    return None


def __getattr__(name: str) -> bool:
    if name == "SUPPORTED":
        globals()[name] = supported = why_unsupported() is None
        return supported
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
