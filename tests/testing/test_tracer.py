"""The tracer must itself be trusted before any crash test built on it says something."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import tracer
from tests.support.descriptors import open_descriptors
from tests.support.tracer import Action, Outcome, Point, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.crash, pytest.mark.skipif(not tracer.SUPPORTED, reason=tracer.why_unsupported() or "")]

PYTHON = (sys.executable, "-S", "-E", "-c")
# Of the environment only PATH: no configuration of the machine's git may change the points.
GIT_ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def _family() -> dict[str, str]:
    """Children of this process, dead or alive, and processes traced by it."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            text = (entry / "status").read_text() if entry.name.isdigit() else ""
        except OSError:
            continue
        fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        if str(os.getpid()) in (fields.get("PPid"), fields.get("TracerPid")):
            found[entry.name] = f"{fields['Name']} {fields['State']}"
    return found


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """No zombie, no traced process, no thread and no descriptor survives any of these tests."""
    family, threads, fds = _family(), threading.active_count(), open_descriptors()
    yield
    assert {pid: words for pid, words in _family().items() if pid not in family} == {}
    assert threading.active_count() == threads
    assert open_descriptors() == fds


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A real-path scratch directory, which is also the current one."""
    real = tmp_path.resolve()
    monkeypatch.chdir(real)
    return real


def _calls(outcome: Outcome, box: Path) -> list[tuple[str, str]]:
    return [(point.syscall, os.path.relpath(point.path, box)) for point in outcome.points]


def _six() -> None:
    for n in range(1, 7):
        os.mkdir(f"d{n}")


def _left(box: Path) -> list[str]:
    return sorted(os.listdir(box))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, env=GIT_ENV, stdin=subprocess.DEVNULL)


# --- enumeration


def test_enumerates_exactly(box: Path) -> None:
    (box / "old").write_text("x")

    def target() -> None:
        os.mkdir("a")
        fd = os.open("a/f", os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"1")
        os.fsync(fd)
        os.close(fd)
        os.rename("a/f", "b")
        os.unlink("b")
        os.symlink("anything", "s")
        os.link("old", "old2")
        os.truncate("old", 0)
        os.chmod("old", 0o600)
        os.utime("old", (1, 1))
        fd = os.open("a", os.O_RDONLY)
        os.mkdir("in", dir_fd=fd)
        os.fsync(fd)
        os.rmdir("in", dir_fd=fd)

    outcome = trace(target)
    assert _calls(outcome, box) == [
        ("mkdir", "a"),
        ("openat", "a/f"),
        ("write", "a/f"),
        ("fsync", "a/f"),
        ("rename", "b"),
        ("unlink", "b"),
        ("symlink", "s"),
        ("link", "old2"),
        ("truncate", "old"),
        ("chmod", "old"),
        ("utimensat", "old"),
        ("mkdirat", "a/in"),
        ("fsync", "a"),
        ("unlinkat", "a/in"),
    ]
    assert [point.index for point in outcome.points] == list(range(1, 15))
    assert all(point.is_root for point in outcome.points)
    assert outcome.points[4].source == str(box / "a/f")
    assert (outcome.exit_code, outcome.signal) == (0, None)
    assert not outcome.fired
    assert not outcome.timed_out


def test_does_not_count_what_changes_nothing(box: Path) -> None:
    (box / "old").write_text("x")

    def target() -> None:
        os.open("old", os.O_RDONLY)
        os.open("old", os.O_CREAT | os.O_WRONLY)
        os.open("/dev/null", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        reader, writer = os.pipe()
        os.write(writer, b"x")
        os.read(reader, 1)
        os.write(os.memfd_create("m"), b"x")
        with open("/dev/null", "w") as null:
            null.write("x")
        with open("/proc/self/comm", "w") as comm:
            comm.write("x")
        os.write(1, b"")

    assert trace(target).points == ()


def test_counts_truncating_and_exclusive_opens_of_existing_files(box: Path) -> None:
    (box / "old").write_text("x")

    def target() -> None:
        os.open("old", os.O_WRONLY | os.O_TRUNC)
        with pytest.raises(FileExistsError):
            os.open("old", os.O_CREAT | os.O_EXCL)

    assert _calls(trace(target), box) == [("openat", "old"), ("openat", "old")]


def test_long_paths_are_read_across_pages(box: Path) -> None:
    deep = "/".join(["d" * 200] * 10)

    def target() -> None:
        for _ in range(20):  # at different places of the heap
            try:
                os.mkdir(deep)
            except FileNotFoundError:
                continue

    assert {point.path for point in trace(target).points} == {str(box / deep)}


def test_counts_children(box: Path) -> None:
    def target() -> None:
        _run("git", "init", "-q", "r")
        _run("git", "-C", "r", "commit", "-q", "--allow-empty", "-m", "x")

    outcome = trace(target)
    assert outcome.exit_code == 0
    assert any(p.path == str(box / "r/.git/HEAD.lock") and not p.is_root for p in outcome.points)
    assert not any(p.is_root for p in outcome.points)
    assert len({p.pid for p in outcome.points}) >= 2
    assert len(outcome.points) > 50


def test_two_runs_have_the_same_points(box: Path) -> None:
    def target() -> None:
        _six()
        _run(*PYTHON, "import os; [os.rmdir(f'd{n}') for n in range(1, 7)]")

    first, second = trace(target), trace(target)
    assert len(first.points) == 12
    assert _calls(first, box) == _calls(second, box)


def test_scope_and_record(box: Path) -> None:
    def scope(point: Point) -> bool:
        return point.path.endswith(("2", "4", "6"))

    assert [path for _, path in _calls(trace(_six, scope=scope), box)] == ["d2", "d4", "d6"]
    for n in range(1, 7):
        os.rmdir(f"d{n}")
    outcome = trace(_six, scope=scope, at=2, action=Action.KILL_TREE, record=False)
    assert outcome.fired
    assert outcome.points == ()
    assert _left(box) == ["d1", "d2", "d3"]


def test_threads_belong_to_the_root(box: Path) -> None:
    def target() -> None:
        threads = [threading.Thread(target=os.mkdir, args=(f"d{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    outcome = trace(target)
    assert len(outcome.points) == 8
    assert all(point.is_root for point in outcome.points)
    assert len(_left(box)) == 8


def test_exec_from_a_thread(box: Path) -> None:
    def target() -> None:
        argv = [*PYTHON, "import os; os.mkdir('x'); raise SystemExit(5)"]
        threading.Thread(target=os.execv, args=(argv[0], argv)).start()
        signal.pause()

    outcome = trace(target)
    assert _calls(outcome, box) == [("mkdir", "x")]
    assert outcome.points[0].is_root
    assert outcome.exit_code == 5


# --- how the root ends


def _raise(error: BaseException) -> Callable[[], None]:
    def target() -> None:
        raise error

    return target


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (lambda: None, 0),
        (lambda: 3, 3),
        (_raise(SystemExit(4)), 4),
        (_raise(SystemExit()), 0),
        (_raise(SystemExit("bye")), 1),
        (_raise(ValueError("boom")), 97),
    ],
)
def test_exit_codes(target: Callable[[], int | None], code: int, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = trace(target)
    assert (outcome.exit_code, outcome.signal) == (code, None)
    printed = capfd.readouterr().err
    assert ("ValueError: boom" in printed) == (code == 97)
    assert ("bye" in printed) == (code == 1)


def test_signals_of_the_target_are_its_own() -> None:
    outcome = trace(lambda: os.kill(os.getpid(), signal.SIGUSR1))
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGUSR1)


def test_stopping_and_continuing_a_child(box: Path) -> None:
    """A group stop is a true stop: the parent sees it, and SIGCONT ends it."""

    def target() -> int:
        pid = os.fork()
        if pid == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
            os.mkdir("after")
            os._exit(0)
        _, status = os.waitpid(pid, os.WUNTRACED)
        stopped = os.WIFSTOPPED(status) and not os.path.exists("after")
        os.kill(pid, signal.SIGCONT)
        os.waitpid(pid, 0)
        return 0 if stopped and os.path.exists("after") else 1

    assert trace(target, timeout=20).exit_code == 0


# --- actions


@pytest.mark.parametrize("action", [Action.KILL_TREE, Action.KILL_SELF, Action.KILL_ROOT])
@pytest.mark.parametrize("n", range(1, 7))
def test_killing_at_n_leaves_the_effects_before_it(box: Path, n: int, action: Action) -> None:
    outcome = trace(_six, at=n, action=action)
    assert outcome.fired
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGKILL)
    assert len(outcome.points) == n
    assert _left(box) == [f"d{k}" for k in range(1, n)]


def test_not_fired_when_the_run_is_shorter(box: Path) -> None:
    outcome = trace(_six, at=7, action=Action.KILL_TREE)
    assert (outcome.fired, outcome.exit_code, len(_left(box))) == (False, 0, 6)


def test_kill_tree_reaches_other_sessions(box: Path) -> None:
    def target() -> None:
        reader, writer = os.pipe()
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(writer, b"x")
                signal.pause()
            signal.pause()
        os.read(reader, 1)
        os.mkdir("d")

    outcome = trace(target, at=1, action=Action.KILL_TREE, timeout=20)
    assert outcome.signal == signal.SIGKILL
    assert not outcome.timed_out
    assert _left(box) == []


CHILD_FOUR = "import os; [os.mkdir(f'c{n}') for n in range(1, 5)]"


def test_kill_self_kills_the_child_only(box: Path) -> None:
    def target() -> None:
        done = subprocess.run([*PYTHON, CHILD_FOUR], check=False)
        os.mkdir(f"status{done.returncode}")

    outcome = trace(target, at=3, action=Action.KILL_SELF)
    assert outcome.exit_code == 0
    assert _left(box) == ["c1", "c2", "status-9"]


def test_kill_root_lets_the_orphan_finish(box: Path) -> None:
    def target() -> None:
        subprocess.run([*PYTHON, CHILD_FOUR], check=False)
        os.mkdir("root")

    outcome = trace(target, at=2, action=Action.KILL_ROOT)
    assert outcome.signal == signal.SIGKILL
    assert _left(box) == ["c1", "c2", "c3", "c4"]
    assert len(outcome.points) == 4


@pytest.mark.parametrize(("action", "number"), [(Action.TERM_ROOT, signal.SIGTERM), (Action.INT_ROOT, signal.SIGINT)])
def test_signals_to_the_root_run_its_handler(box: Path, action: Action, number: int) -> None:
    def target() -> None:
        def handler(received: int, _frame: object) -> None:
            os.mkdir(f"handler{received}")
            raise SystemExit(42)

        signal.signal(number, handler)
        _six()

    outcome = trace(target, at=3, action=action)
    assert outcome.exit_code == 42
    assert _left(box) == ["d1", "d2", "d3", f"handler{int(number)}"]


def test_term_root_while_a_child_works(box: Path) -> None:
    def target() -> None:
        child = subprocess.Popen([*PYTHON, CHILD_FOUR])

        def handler(_number: int, _frame: object) -> None:
            child.wait()
            os.mkdir("handler")
            raise SystemExit(7)

        signal.signal(signal.SIGTERM, handler)
        signal.pause()

    assert trace(target, at=4, action=Action.TERM_ROOT, timeout=20).exit_code == 7
    assert _left(box) == ["c1", "c2", "c3", "c4", "handler"]


@pytest.mark.parametrize("action", [Action.ENOSPC, Action.EIO, Action.EACCES])
def test_errors_are_returned_without_executing(box: Path, action: Action) -> None:
    def target() -> int:
        os.mkdir("a")
        try:
            os.mkdir("b")
        except OSError as error:
            os.mkdir("c")
            return error.errno or 0
        return 0

    outcome = trace(target, at=2, action=action)
    assert outcome.exit_code == getattr(errno, action.name)
    assert _left(box) == ["a", "c"]


def test_eio_on_fsync(box: Path) -> None:
    def target() -> int:
        with open("f", "w") as file:
            file.write("x")
            file.flush()
            try:
                os.fsync(file.fileno())
            except OSError as error:
                return error.errno or 0
        return 0

    points = trace(target).points
    at = next(point.index for point in points if point.syscall == "fsync")
    os.unlink("f")
    assert trace(target, at=at, action=Action.EIO).exit_code == errno.EIO
    assert (box / "f").read_text() == "x"


def test_error_in_a_child(box: Path) -> None:
    def target() -> int:
        argv = ["git", "init", "-q", "r"]
        done = subprocess.run(argv, env=GIT_ENV, check=False, capture_output=True)
        return 0 if done.returncode > 0 and b"No space left on device" in done.stderr else 1

    assert trace(target, at=2, action=Action.ENOSPC).exit_code == 0
    assert _left(box) == ["r"]


def test_sticky_lets_pass_what_frees_space(box: Path) -> None:
    def target() -> None:
        os.mkdir("a")
        os.mkdir("b")
        for name in ("c", "d"):
            with pytest.raises(OSError, match="No space left"):
                os.mkdir(name)
        os.rename("a", "moved")
        os.rmdir("b")
        with pytest.raises(OSError, match="No space left"):
            os.open("e", os.O_CREAT)

    outcome = trace(target, at=3, action=Action.ENOSPC, sticky=True)
    assert outcome.exit_code == 0
    assert _left(box) == ["moved"]


# --- the tracer and its caller


def test_timeout_kills_the_whole_tree() -> None:
    def target() -> None:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
        threading.Thread(target=signal.pause).start()
        signal.pause()

    outcome = trace(target, timeout=0.2)
    assert outcome.timed_out
    assert outcome.signal == signal.SIGKILL


def test_timeout_while_stopped_or_busy() -> None:
    def target() -> None:
        if os.fork() == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        while True:
            os.getpid()

    assert trace(target, timeout=0.2).timed_out


def test_timeout_during_a_storm_of_forks() -> None:
    def target() -> None:
        while True:
            if os.fork() == 0:
                os._exit(0)
            os.wait()

    assert trace(target, timeout=0.2).timed_out


def test_children_of_the_caller_are_not_stolen(box: Path) -> None:
    mine = subprocess.Popen(["sh", "-c", "exit 9"])
    os.waitid(os.P_PID, mine.pid, os.WEXITED | os.WNOWAIT)  # dead already, not reaped
    assert trace(_six, at=3, action=Action.KILL_TREE).fired
    assert _left(box) == ["d1", "d2"]
    assert mine.wait() == 9


def test_traces_from_another_thread(box: Path) -> None:
    outcomes: list[Outcome] = []

    def target() -> None:
        if os.fork() == 0:
            os.mkdir("child")
            signal.pause()
        signal.pause()

    def body() -> None:
        outcomes.append(trace(target, at=1, action=Action.KILL_TREE, timeout=20))

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    assert outcomes[0].signal == signal.SIGKILL
    assert not outcomes[0].timed_out
    assert _left(box) == []


def test_an_exception_of_scope_ends_the_run(box: Path) -> None:
    def scope(point: Point) -> bool:
        if point.index == 3:
            raise LookupError(point.path)
        return True

    with pytest.raises(LookupError):
        trace(_six, scope=scope)
    assert _left(box) == ["d1", "d2"]


def test_wrong_arguments() -> None:
    for arguments in ({"at": 1}, {"action": Action.EIO}, {"at": 0, "action": Action.EIO}):
        with pytest.raises(ValueError, match="go together"):
            trace(_six, **arguments)
    with pytest.raises(ValueError, match="sticky"):
        trace(_six, at=1, action=Action.KILL_TREE, sticky=True)
