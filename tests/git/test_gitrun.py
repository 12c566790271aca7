"""The runner of git: its environment, its time limit, its patience, its end, and its words."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from swarm.git.repository import parse_worktrees
from swarm.git.running import started
from swarm.git.running.explain import explain
from swarm.git.running.runner import GitRunner, clean_environment
from swarm.kit.errors import NoPermission, NoSpace, SwarmError
from tests.support.descriptors import open_descriptors
from tests.support.library import documents
from tests.support.odd import is_running, program, reads_well

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration


def runner(lab: Lab, **how: float) -> GitRunner:
    return GitRunner(lab.root, environ=lab.env, timeout=how.get("timeout", 20), retries=int(how.get("retries", 2)))


# --- environment -----------------------------------------------------------------------------------

REDIRECTIONS = [
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"),
    *("GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"),
    *("GIT_CONFIG_KEY_0", "GIT_QUARANTINE_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_TRACE", "GIT_TRACE2_EVENT"),
    *(
        "GIT_ASKPASS",
        "GIT_SSH_COMMAND",
        "GIT_DEFAULT_HASH",
        "GIT_GRAFT_FILE",
        "GIT_SHALLOW_FILE",
        "GIT_REPLACE_REF_BASE",
    ),
    *("GIT_NO_REPLACE_OBJECTS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_INTERNAL_SUPER_PREFIX"),
]


@pytest.mark.parametrize("name", REDIRECTIONS)
def test_a_variable_that_redirects_git_is_dropped(name: str) -> None:
    assert name not in clean_environment({name: "elsewhere", "PATH": "/bin"})


def test_what_chooses_configuration_and_all_else_is_kept() -> None:
    kept = {"HOME": "/h", "PATH": "/bin", "SSH_AUTH_SOCK": "s", "GIT_CONFIG_GLOBAL": "/dev/null", "http_proxy": "p"}

    cleaned = clean_environment(kept)

    assert cleaned.items() >= kept.items()
    assert cleaned["LC_ALL"] == "C"
    assert cleaned["GIT_TERMINAL_PROMPT"] == "0"


def test_git_looks_at_the_repository_that_was_asked_for(lab: Lab) -> None:
    other = lab.root.parent / "other"
    lab.git("init", "--quiet", str(other))
    env = {**lab.env, "GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": "/dev/null"}

    out = GitRunner(lab.root, environ=env).ask("rev-parse", "--absolute-git-dir")

    assert Path(os.fsdecode(out.strip())) == lab.root / ".git"


def test_git_speaks_plain_english_whatever_the_user_speaks(lab: Lab) -> None:
    env = {**lab.env, "LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8", "LANGUAGE": "de:fr"}

    code, _, err = GitRunner(lab.root, environ=env).attempt("rev-parse", "--verify", "nowhere")

    assert code != 0
    assert b"fatal: Needed a single revision" in err


def test_input_and_output_of_any_size_pass(lab: Lab) -> None:
    data = os.urandom(3 << 20)
    oid = runner(lab).run("hash-object", "-w", "--stdin", stdin=data).decode().strip()

    assert runner(lab).ask("cat-file", "blob", oid) == data


def test_git_that_reads_nothing_of_its_input_is_no_problem(lab: Lab) -> None:
    assert runner(lab).run("version", stdin=b"x" * (1 << 20)).startswith(b"git version")


def test_git_never_waits_for_a_terminal(lab: Lab) -> None:
    assert runner(lab).run("hash-object", "--stdin") == b"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\n"


# --- the end ---------------------------------------------------------------------------------------

HANG = 'echo $$ > "{pids}.new"; sleep 300 & echo $! >> "{pids}.new"; mv "{pids}.new" "{pids}"; wait; wait'
STUBBORN = "trap '' TERM INT; " + HANG


def _hanging(lab: Lab, script: str) -> tuple[list[str], Path]:
    pids = lab.root.parent / "pids"
    path = program(lab.root.parent / "bin", "hang", script.format(pids=pids))
    return ["-c", f"alias.hang=!{path}", "hang"], pids


def _ended(pids: Path) -> bool:
    """Whether all are dead; a signal that is on its way may take a moment."""
    deadline = time.monotonic() + 20
    while any(is_running(int(pid)) for pid in pids.read_text().split()):
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.005)
    return True


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started, "_GRACE", 0.3)


def _out_of_time(lab: Lab, pids: Path, *argv: str, what: str = "") -> tuple[GitTimeout, int]:
    """Run git with one limit after the other, until it came as far as its children; a busy machine needs a long one."""
    for limit in (3, 15, 60):
        with pytest.raises(GitTimeout) as caught:
            runner(lab, timeout=limit).run(*argv, what=what)
        if pids.exists():
            return caught.value, limit
    raise AssertionError("git has not come as far as its children")


@pytest.mark.parametrize("script", [HANG, STUBBORN], ids=["polite", "stubborn"])
def test_the_time_limit_ends_git_and_all_that_it_started(lab: Lab, script: str, short_grace: None) -> None:
    argv, pids = _hanging(lab, script)

    error, limit = _out_of_time(lab, pids, *argv, what="cannot do it")

    assert f"cannot do it: git did not end within {limit} s" in str(error)
    assert error.code == "GIT_TIMEOUT"
    reads_well(error)
    assert _ended(pids)


def test_the_child_of_a_filter_that_ignores_signals_is_ended_too(lab: Lab, short_grace: None) -> None:
    pids = lab.root.parent / "pids"
    smudge = program(lab.root.parent / "bin", "smudge", STUBBORN.format(pids=pids))
    lab.git("config", "filter.odd.smudge", f"'{smudge}'")
    lab.write({".gitattributes": "*.bin filter=odd\n", "a.bin": "content\n"})
    lab.commit("filtered")
    (lab.root / "a.bin").unlink()

    error, limit = _out_of_time(lab, pids, "checkout", "--", "a.bin")

    assert f"git checkout failed: git did not end within {limit} s" in str(error)
    assert _ended(pids)


def test_a_filter_s_child_that_keeps_the_pipe_open_does_not_hang_for_ever(lab: Lab, short_grace: None) -> None:
    """git has ended, but its output is still open: the time limit counts for that as well."""
    argv, pids = _hanging(lab, HANG.replace("wait; wait", "exit 0"))

    _out_of_time(lab, pids, *argv)

    assert _ended(pids)


class _Stop(BaseException):
    pass


@pytest.mark.parametrize("script", [HANG, STUBBORN], ids=["polite", "stubborn"])
def test_an_interrupt_in_the_middle_ends_git(lab: Lab, script: str, short_grace: None) -> None:
    argv, pids = _hanging(lab, script)
    os.mkfifo(lab.root.parent / "started")
    argv[1] = argv[1].replace("alias.hang=!", f'alias.hang=!echo go > "{lab.root.parent}/started"; ')
    me = threading.get_ident()

    def interrupt() -> None:
        (lab.root.parent / "started").read_text()
        deadline = time.monotonic() + 20
        while not pids.exists() and time.monotonic() < deadline:
            threading.Event().wait(0.01)
        signal.pthread_kill(me, signal.SIGTERM)

    def stop(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt

    old = signal.signal(signal.SIGTERM, stop)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            runner(lab, timeout=60).run(*argv)
    finally:
        thread.join()
        signal.signal(signal.SIGTERM, old)
    assert _ended(pids)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_while_git_is_being_started_ends_it_too(
    lab: Lab, short_grace: None, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    argv, pids = _hanging(lab, HANG)
    real = subprocess.Popen

    def popen(*args: Any, **how: Any) -> subprocess.Popen[bytes]:
        process = real(*args, **how)
        while not pids.exists():  # git is at work, and the call that started it has not returned yet
            threading.Event().wait(0.01)
        signal.raise_signal(number)
        return process

    def stop(_signum: int, _frame: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", popen)
    old = signal.signal(number, stop)
    try:
        with pytest.raises(KeyboardInterrupt):
            runner(lab, timeout=60).run(*argv)
        assert signal.getsignal(number) is stop
    finally:
        signal.signal(number, old)
    assert _ended(pids)


def test_another_thread_can_stop_everything_and_allow_it_again(lab: Lab) -> None:
    argv, pids = _hanging(lab, HANG)
    git = runner(lab, timeout=60)
    raised: list[BaseException] = []
    mine = git.work()

    def work() -> None:
        git.help_with(mine)
        try:
            git.run(*argv, what="cannot wait")
        except SwarmError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    deadline = time.monotonic() + 20
    while not pids.exists() and time.monotonic() < deadline:
        threading.Event().wait(0.01)
    git.stop_all()
    thread.join(20)

    assert not thread.is_alive()
    assert _ended(pids)
    assert [str(error) for error in raised] == ["cannot wait: git was ended by signal 15"]
    with pytest.raises(GitFailed, match="not started: the operation is being stopped"):
        git.run("version")
    git.resume()
    assert git.run("version")


def test_what_one_thread_stops_is_its_own_work(lab: Lab) -> None:
    """A set that fails in one thread is no reason to end what another does with the same ``Swarm``."""
    git = runner(lab, timeout=60)
    asked = git.begin("cat-file", "--batch-check", stdin=b"HEAD\n" * 5000)  # more than a pipe holds: it still runs
    stopped = threading.Event()

    def fail() -> None:
        git.stop_all()
        stopped.set()
        with pytest.raises(GitFailed, match="not started"):
            git.run("version")

    with ThreadPoolExecutor(1) as pool:
        pool.submit(fail).result(20)
    assert stopped.is_set()
    assert asked.result().count(b" commit ") == 5000
    assert git.run("version")


def test_git_runs_in_a_process_group_of_its_own(lab: Lab) -> None:
    argv = ["-c", "alias.group=!ps -o pgid= -p $$", "group"]

    assert int(runner(lab).run(*argv)) != os.getpgid(0)


def test_no_descriptor_is_left_open(lab: Lab) -> None:
    git = runner(lab)
    git.run("version", stdin=b"x")
    before = open_descriptors()

    for _ in range(5):
        git.run("version", stdin=b"x")
        git.attempt("no-such-command")

    assert open_descriptors() == before


# --- locks of others -------------------------------------------------------------------------------


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the waits instead of waiting."""
    found: list[float] = []
    monkeypatch.setattr("swarm.git.running.runner.time.sleep", found.append)
    return found


LOCKED = {
    "a-branch": ("refs/heads/main.lock", ["update-ref", "refs/heads/main", "HEAD~0", "HEAD"]),
    "the-index": ("index.lock", ["add", "README"]),
    "the-config": ("config.lock", ["config", "--local", "a.b", "c"]),
    "packed-refs": ("packed-refs.lock", ["pack-refs", "--all"]),
}


@pytest.mark.parametrize(("lock", "argv"), LOCKED.values(), ids=LOCKED.keys())
def test_a_lock_of_another_git_is_waited_for_a_little_and_never_removed(
    lab: Lab, lock: str, argv: list[str], waits: list[float]
) -> None:
    path = lab.root / ".git" / lock
    path.write_text("another git's\n")
    before = path.stat()
    lab.git("update-ref", "refs/heads/other", "HEAD", check=False)
    if lock.startswith("refs"):
        lab.git("-c", "core.logAllRefUpdates=false", "symbolic-ref", "refs/heads/x", "refs/heads/main")

    with pytest.raises(GitBusy, match=r"cannot change it: .*File exists") as caught:
        runner(lab, retries=3).run("-c", "core.packedRefsTimeout=10", *argv, what="cannot change it")

    reads_well(caught.value)
    assert caught.value.exit_code == 75
    assert len(waits) == 3
    assert all(0 < wait <= 2 for wait in waits)
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, path.read_text()) == (before.st_ino, before.st_mtime_ns, "another git's\n")


def test_when_the_other_git_is_done_the_command_succeeds(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = lab.root / ".git" / "index.lock"
    lock.touch()
    waits: list[float] = []

    def other_git_ends(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            lock.unlink()

    monkeypatch.setattr("swarm.git.running.runner.time.sleep", other_git_ends)
    lab.write({"new": "new\n"})

    runner(lab, retries=5).run("add", "new")

    assert len(waits) == 2
    assert lab.git("diff", "--cached", "--name-only") == "new"


def test_the_waits_grow_and_stay_bounded(lab: Lab, waits: list[float]) -> None:
    (lab.root / ".git" / "index.lock").touch()

    with pytest.raises(GitBusy):
        runner(lab, retries=12).run("add", "README")

    assert len(waits) == 12
    assert max(waits) <= 2
    assert sum(waits[:3]) < sum(waits[-3:])


def test_no_retries_means_one_try(lab: Lab, waits: list[float]) -> None:
    (lab.root / ".git" / "index.lock").touch()

    with pytest.raises(GitBusy):
        runner(lab, retries=0).run("add", "README")

    assert waits == []


# --- words -----------------------------------------------------------------------------------------

RESET = "fatal: Could not reset index file to revision 'HEAD'."
WORDS: list[tuple[int, str, type[SwarmError], str]] = [
    (128, "fatal: not a git repository (or any of the parent directories): .git", NotARepo, "not a git repository"),
    (128, "fatal: detected dubious ownership in repository at '/x'\nTo add ...", RepositoryOwner, "dubious"),
    (128, "error: copy-fd: write returned: No space left on device\nfatal: cannot", NoSpace, "cannot"),
    (128, "fatal: unable to write new index file: Disk quota exceeded", NoSpace, "quota"),
    (128, "fatal: Unable to create '/r/.git/index.lock': File exists.\n\nAnother git", GitBusy, "index.lock"),
    (255, "error: could not lock config file .git/config: File exists", GitBusy, "could not lock config"),
    (128, "error: cannot open '.git/x': Permission denied", NoPermission, "Permission denied"),
    (128, "fatal: cannot mkdir x: Read-only file system", NoPermission, "Read-only"),
    (128, "fatal: cannot lock ref 'refs/heads/a': reference already exists", BranchExists, "already exists"),
    (128, "fatal: a branch named 'x' already exists", BranchExists, "already exists"),
    (128, "fatal: bad config line 3 in file .git/config", GitBroken, "bad config line 3"),
    (128, "fatal: failed to read .git/worktrees/x/commondir: Success", GitBroken, "commondir"),
    (128, "fatal: unable to read tree 123", GitBroken, "unable to read tree"),
    (128, "fatal: bad object HEAD", GitBroken, "bad object HEAD"),
    (128, "fatal: unexpected line in .git/packed-refs: garbage", GitBroken, "unexpected line"),
    (128, "fatal: loose object abc (stored in .git/objects/a) is corrupt", GitBroken, "corrupt"),
    (1, f"error: unable to read sha1 file of a (1)\n{RESET}", GitBroken, ": unable to read sha1 file of a"),
    (128, "error: external filter 'x' failed 1\nfatal: a.bin: smudge filter lfs failed", GitFailed, ": a.bin: smudge"),
    (128, "git-lfs x: 1: git-lfs: not found\nfatal: the remote end hung up", GitFailed, "git-lfs: not found"),
    (128, "warning: something\nfatal: the cause\nhint: more", GitFailed, ": the cause"),
    (1, "", GitFailed, ": exit code 1"),
    (1, "\n\n", GitFailed, ": exit code 1"),
    (1, "just words\nmore", GitFailed, ": just words"),
    (-9, "fatal: whatever", GitFailed, "git was ended by signal 9"),
    (-15, "", GitFailed, "git was ended by signal 15"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text", "kind", "says"), WORDS)
def test_git_s_words_become_one_of_our_errors(code: int, text: str, kind: type[SwarmError], says: str) -> None:
    error = explain("cannot do it", code, text)

    assert type(error) is kind
    assert error.message.startswith("cannot do it: ")
    assert says in error.message
    assert (error.details or "") == text
    reads_well(error)


@given(st.integers(-64, 255), st.text(st.characters(exclude_categories=["Cs"])))
def test_any_words_become_an_error_that_reads_well(code: int, text: str) -> None:
    reads_well(explain("cannot do it", code, text))


def test_git_that_is_not_there_is_said_so(lab: Lab) -> None:
    with pytest.raises(GitMissing, match="the program is not installed") as caught:
        GitRunner(lab.root, environ={**lab.env, "PATH": str(lab.root.parent / "nothing")}).run("version")
    reads_well(caught.value)


def test_a_folder_that_is_gone_is_not_a_missing_git(lab: Lab) -> None:
    with pytest.raises(GitFailed, match="is gone"):
        GitRunner(lab.root / "nowhere", environ=lab.env).run("version")


# --- git worktree list -------------------------------------------------------------------------------

MAIN = ["worktree /r", "HEAD " + "a" * 40, "branch refs/heads/main"]
LOCKED_TREE = ["worktree /r/x y", "HEAD " + "b" * 40, "detached", "locked being made\\nnow", "prunable gitdir is gone"]
PLAIN_LOCK = ["worktree /r/z", "HEAD " + "c" * 64, "branch refs/heads/swarm/developer-x", "locked"]
BARE = ["worktree /bare.git", "bare"]


@pytest.mark.parametrize("end", [b"\n", b"\0"], ids=["lines", "z"])
@pytest.mark.parametrize("tail", [0, 1, 2], ids=["no-end", "one-end", "two-ends"])
def test_every_entry_of_the_list_is_read(end: bytes, tail: int) -> None:
    entries = [MAIN, LOCKED_TREE, PLAIN_LOCK, BARE]
    printed = (end * 2).join(end.join(line.encode() for line in entry) for entry in entries) + end * tail

    main, locked, plain, bare = parse_worktrees(printed, end)

    assert (main.path, main.head, main.branch, main.locked) == (Path("/r"), "a" * 40, "main", False)
    assert (locked.path, locked.detached, locked.branch) == (Path("/r/x y"), True, "")
    assert (locked.locked, locked.lock_reason, locked.prunable) == (True, "being made\\nnow", True)
    assert (plain.head, plain.branch, plain.locked, plain.lock_reason) == ("c" * 64, "swarm/developer-x", True, "")
    assert (bare.path, bare.bare, bare.head, bare.branch) == (Path("/bare.git"), True, "", "")


@pytest.mark.parametrize("printed", [b"", b"\n", b"\n\n\n", b"HEAD abc\n\n", b"garbage"])
def test_a_list_without_an_entry_is_empty(printed: bytes) -> None:
    assert parse_worktrees(printed) == ()


def test_paths_of_any_bytes_are_read_with_z() -> None:
    (entry,) = parse_worktrees(b"worktree /r/two\nlines \xff \0HEAD abc\0detached\0locked why\nnot\0\0", b"\0")

    assert os.fsencode(entry.path) == b"/r/two\nlines \xff "
    assert entry.lock_reason == "why\nnot"


@given(st.binary())
def test_nothing_that_git_could_print_is_too_much(printed: bytes) -> None:
    for end in (b"\n", b"\0"):
        parse_worktrees(printed, end)


def test_the_real_list_is_read(lab: Lab) -> None:
    lab.git("worktree", "add", "--quiet", "--lock", "--reason", "two\nlines", "-b", "x", str(lab.root.parent / "a\nb"))
    lab.git("worktree", "add", "--quiet", "--detach", str(lab.root.parent / "gone"))
    os.rename(lab.root.parent / "gone", lab.root.parent / "elsewhere")

    found = documents(lab.swarm).list_all_worktrees()

    assert [(e.path.name, e.branch, e.detached, e.locked, e.prunable) for e in found] == [
        ("my project", "main", False, False, False),
        ("a\nb", "x", False, True, False),
        ("gone", "", True, False, True),
    ]
    assert found[1].lock_reason == "two\nlines"


# --- endless words ---------------------------------------------------------------------------------


def test_of_endless_complaints_the_beginning_is_kept(lab: Lab) -> None:
    """A filter that an agent has written may say them, and swarm holds them in memory."""
    script = "!echo first >&2; head -c 5000000 /dev/zero >&2; echo done"

    code, out, err = runner(lab).attempt("-c", f"alias.say={script}", "say")

    assert (code, out) == (0, b"done\n")
    assert err.startswith(b"first\n")
    assert len(err) <= started.LONGEST_COMPLAINT


def test_a_git_that_says_too_much_is_ended(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(started, "LONGEST_OUTPUT", 1 << 20)

    with pytest.raises(GitFailed) as caught:
        runner(lab, timeout=120).run("-c", "alias.say=!yes", "say")

    assert "git said more than 1048576 bytes" in caught.value.message
