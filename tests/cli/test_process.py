"""The program as a process: start-up, streams, signals, terminals, and bugs of our own."""

from __future__ import annotations

import gc
import os
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import at_terminal
from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.e2e

REQUEST = '{"tool_name": "Bash", "tool_input": {"command": "ls"}, "cwd": "/"}'
#: Loaded by no command of every day.
HEAVY = (
    *("libtmux", "git", "yaml", "filelock", "rich", "pydantic", "asyncio", "http", "email", "typer.rich_utils"),
    *("concurrent", "logging"),
)
#: What asks git and agents, and what only making, removing and saving need.
NEEDS_GIT = (
    "socket",
    "swarm.api.swarm",
    "swarm.git.running.runner",
    "swarm.project.config",
    "swarm.project.model",
    "swarm.roles",
    "swarm.sessions.listing",
)
CHANGES = (
    *(
        "swarm.worktrees.transaction",
        "swarm.worktrees.steps",
        "swarm.worktrees.saved.salvage",
        "swarm.worktrees.setup.setup",
    ),
    *(
        "swarm.sessions.create.create",
        "swarm.sessions.cleanup.cleanup",
        "swarm.agents.launching.launch",
        "swarm.merging",
        "swarm.roles.file",
    ),
)
#: What no word of the answer is about.
UNSEEN = ("swarm.bus.filebus", "swarm.worktrees.trees", "swarm.git.shortcuts", "swarm.roles.options", "swarm.kit.yaml")
#: What only agents that run need.
RUNNING = ("socket", "swarm.programs.values", "swarm.machine.sockets.status_client", "swarm.approvals.grants")
#: Each command with what it must not load, and how many modules (not rooms) of swarm it may: time follows.
STARTUP: dict[tuple[str, ...], tuple[tuple[str, ...], int]] = {
    ("version",): ((*NEEDS_GIT, *CHANGES, "swarm.kit.files"), 17),
    ("--json", "--version"): ((*NEEDS_GIT, *CHANGES, "swarm.kit.files"), 17),
    ("--help",): ((*NEEDS_GIT, *CHANGES, "swarm.kit.files"), 16),
    ("send", "--help"): ((*NEEDS_GIT, *CHANGES, "swarm.bus.filebus"), 22),
    ("send", "developer", "hello"): ((*NEEDS_GIT, *CHANGES), 68),
    ("inbox", "developer"): ((*NEEDS_GIT, *CHANGES), 67),
    ("approvals",): ((*NEEDS_GIT, *CHANGES, "swarm.bus.filebus"), 42),
    ("permission-request", "--agent", "developer", "--wait", "0"): ((*CHANGES, *UNSEEN), 93),
    ("status",): ((*CHANGES, *RUNNING, "swarm.worktrees.trees.trees"), 139),
    ("list",): ((*CHANGES, *RUNNING, *UNSEEN), 115),
    ("why", "developer"): ((*CHANGES, *RUNNING, *UNSEEN), 115),
    ("worktree", "list"): ((), 102),
    ("log",): (CHANGES, 73),
}


#: What each look starts beside itself, with two agents.
STARTED: dict[tuple[str, ...], list[str]] = {
    ("send", "developer", "hello"): [],
    ("inbox", "developer"): [],
    ("approvals",): [],
    ("permission-request", "--agent", "developer", "--wait", "0"): ["git rev-parse"],
    ("list",): ["git rev-parse", "tmux list-panes"],
    ("why", "developer"): ["git rev-parse", "tmux list-panes"],
    ("status",): ["git rev-parse", "tmux list-panes", "git status", "git status"],
}


#: How many files are read for one more agent of one more session, its record among them.
MOST_READ = {"list": 3.0, "status": 17.0}


def _loaded(cli: Cli, *args: str) -> set[str]:
    script = (
        "import sys\n"
        "from swarm.cli.main import main\n"
        f"code = main({list(args)!r})\n"
        "rooms = {one for one in sys.modules if one[:5] == 'swarm' and hasattr(sys.modules[one], '__path__')}\n"
        "print(*sys.modules.keys() - rooms, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=cli.lab.root,
        env={**cli.lab.env, "PYTHONPATH": str(PROJECT)},
        input=REQUEST,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def test_a_command_loads_what_it_uses_and_no_more(cli: Cli) -> None:
    """`scripts/bench startup` shows the time of the same commands."""
    cli.lab.swarm.create("fx", ["developer", "reviewer"], instructions=False)
    wrong: dict[str, object] = {}
    for args, (unused, most) in STARTUP.items():
        loaded = _loaded(cli, *args)
        names = {one for one in loaded for bad in (*HEAVY, *unused) if one == bad or one.startswith(f"{bad}.")}
        ours = [one for one in loaded if one.startswith("swarm")]
        if names or len(ours) > most:
            wrong[" ".join(args)] = (sorted(names), len(ours))

    assert wrong == {}


def test_a_look_starts_no_more_programs_than_it_needs(cli: Cli, tmp_path: Path) -> None:
    cli.lab.swarm.create("fx", ["developer", "reviewer"])
    socket, log, shims = tmp_path / "s", tmp_path / "log", tmp_path / "bin"
    shims.mkdir()
    for name in ("git", "tmux"):
        real = shutil.which(name, path=cli.lab.env["PATH"])
        (shims / name).write_text(
            f'#!/bin/sh\nprintf "%s " {name} "$@" >> "{log}"; echo >> "{log}"\nexec "{real}" "$@"\n'
        )
        (shims / name).chmod(0o755)
    server = ["tmux", "-S", str(socket), "-f", "/dev/null"]
    subprocess.run([*server, "new-session", "-d", "cat"], env=cli.lab.env, check=True)
    env = {**cli.lab.env, "PYTHONPATH": str(PROJECT), "SWARM_TMUX_SOCKET": str(socket)}
    env["PATH"] = f"{shims}{os.pathsep}{env['PATH']}"
    started: dict[tuple[str, ...], list[str]] = {}
    try:
        for args in STARTED:
            log.write_text("")
            swarm = [sys.executable, "-m", "swarm", *args]
            subprocess.run(swarm, cwd=cli.lab.root, env=env, input=REQUEST, capture_output=True, text=True, check=True)
            verbs = [
                re.search(r" (rev-parse|status|list-panes|[a-z]+-[a-z]+|version|worktree|config) ", line)
                for line in log.read_text().splitlines()
            ]
            started[args] = sorted(f"{one.string.split()[0]}{one[0].rstrip()}" for one in verbs if one)
            assert len(started[args]) == len(verbs), log.read_text()
    finally:
        subprocess.run([*server, "kill-server"], env=cli.lab.env, check=True)

    assert started == {args: sorted(wanted) for args, wanted in STARTED.items()}


def _opened(cli: Cli, *args: str) -> int:
    """Return how many files and folders a command opens beside modules."""
    script = (
        "import sys\n"
        "from swarm.cli.main import main\n"
        "seen = []\n"
        "sys.addaudithook(lambda name, args: name in ('open', 'os.listdir', 'os.scandir') and seen.append(args[0]))\n"
        f"main({list(args)!r})\n"
        "print(sum('/.git/' in str(one) or '/.swarm/' in str(one) for one in seen), file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script]
    env = {**cli.lab.env, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, cwd=cli.lab.root, env=env, capture_output=True, text=True, check=True)
    return int(done.stderr.splitlines()[-1])


def test_a_look_reads_few_files_for_each_agent_and_why_those_of_one(cli: Cli) -> None:
    cli.lab.swarm.create("fx", "developer:2")
    before = {args: _opened(cli, *args) for args in (("status",), ("list",), ("why", "developer-1@fx"))}
    cli.lab.swarm.create("gx", "developer:6")
    more = {args[0]: (_opened(cli, *args) - opened) / 6 for args, opened in before.items()}

    assert more["why"] == 0
    assert more["list"] <= MOST_READ["list"]
    assert more["status"] <= MOST_READ["status"]


def test_a_caller_of_main_keeps_its_garbage_collector(cli: Cli) -> None:
    before = gc.get_threshold(), gc.get_freeze_count()
    cli.ok("version")

    assert (gc.get_threshold(), gc.get_freeze_count()) == before


# --- streams ---------------------------------------------------------------------------------------


def _start(cli: Cli, *args: str, stdout: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "swarm", *args],
        cwd=cli.lab.root,
        env={**cli.lab.env, "PYTHONPATH": str(PROJECT)},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    "args", [("version",), ("worktree", "list"), ("config", "show"), ("config", "show", "--json")], ids=" ".join
)
def test_a_reader_that_has_gone_is_no_error(team: Cli, args: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = _start(team, *args, stdout=writer)
    os.close(writer)

    assert process.communicate()[1] == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("args", [("version",), ("worktree", "list"), ("worktree", "list", "--json")], ids=" ".join)
def test_a_full_disk_at_the_other_end_is_told(team: Cli, args: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        process = _start(team, *args, stdout=full.fileno())
        err = process.communicate()[1].decode()

    assert (process.returncode, "cannot write the output: " in err) == (5, True)
    assert "Traceback" not in err


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&-"])
def test_closed_streams_do_no_harm(team: Cli, closed: str) -> None:
    command = f'"{sys.executable}" -m swarm worktree list {closed}'
    env = {**team.lab.env, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(["sh", "-c", command], cwd=team.lab.root, env=env, capture_output=True, check=False)

    assert done.returncode == 0
    assert done.stderr == b""


def test_a_terminal_that_knows_only_ascii_gets_ascii(team: Cli) -> None:
    team.lab.write({"roles/tester/CLAUDE.md": "Prüft …\n"})

    said = team.program("role", "show", "tester", PYTHONIOENCODING="ascii")

    assert (said.code, "Pr\\xfcft" in said.out) == (0, True)


def _in_terminal(cli: Cli, args: list[str], typed: bytes = b"") -> tuple[int, str]:
    """Run the program on a terminal of its own and return what it showed."""
    main, side = pty.openpty()
    env = {**cli.lab.env, "PYTHONPATH": str(PROJECT), "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "swarm", *args], cwd=cli.lab.root, env=env, stdin=side, stdout=side, stderr=side
    )
    os.close(side)
    os.write(main, typed)
    shown = b""
    while True:
        try:
            chunk = os.read(main, 65536)
        except OSError:  # Linux: the other side is closed
            break
        if not chunk:
            break
        shown += chunk
    os.close(main)
    return process.wait(), shown.decode()


def test_on_a_terminal_there_is_colour_and_no_leftover_progress(team: Cli) -> None:
    code, shown = _in_terminal(team, ["cleanup", "--all"])

    assert code == 0
    assert "\x1b[32mremoved 2 worktrees" in shown
    assert "\r\x1b[K" in shown


@pytest.mark.parametrize(("typed", "left"), [(b"n\n", 2), (b"\n", 2), (b"\x04", 2), (b"y\n", 0)])
def test_dropping_saved_work_asks_first(team: Cli, typed: bytes, left: int) -> None:
    team.ok("cleanup", "--all")

    code, shown = at_terminal(lambda: _in_terminal(team, ["salvage", "drop", "--all"], typed))

    assert (code, "Drop everything that was saved? [y/N]" in shown) == (0, True)
    assert len(team.ok("salvage", "list", "--json").data()["entries"]) == left


# --- bugs of our own -------------------------------------------------------------------------------


def test_a_bug_is_admitted_and_its_traceback_kept_private(team: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm import Operations

    def broken(self: Operations) -> None:
        raise ZeroDivisionError("secret \x1b[31m")

    monkeypatch.setattr(Operations, "__call__", broken)
    said = team("log")
    found = team("log", "--json").json()

    assert said.code == 70
    assert "this is a bug in swarm: ZeroDivisionError: secret \\x1b[31m" in said.err
    assert "Traceback" not in said.err
    assert found["errors"][0]["code"] == "BUG"
    file = Path(found["errors"][0]["details"]["file"])
    assert file.parent == team.lab.root / ".swarm"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "ZeroDivisionError" in file.read_text()


def test_a_bug_outside_of_swarms_folders_is_kept_in_the_temporary_one(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from swarm import Operations

    def broken(self: Operations) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Operations, "__call__", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    assert Path(cli("log", "--json").json()["errors"][0]["details"]["file"]).parent == tmp_path


def test_an_error_of_the_system_is_no_bug(team: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm import Operations

    def denied(self: Operations) -> None:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr(Operations, "__call__", denied)
    said = team("log")

    assert said.code == 5
    assert said.err.startswith("error: cannot show the log: Permission denied '/x'")


# --- signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_in_order(team: Cli, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    from swarm import Operations

    def interrupted(self: Operations) -> tuple[()]:
        os.kill(os.getpid(), number)
        time.sleep(10)
        return ()

    before = signal.getsignal(number)
    monkeypatch.setattr(Operations, "__call__", interrupted)
    said = team("log")
    found = team("log", "--json").json()

    assert said.code == 128 + number
    assert f"cannot show the log: interrupted by {number.name}" in said.err
    assert found["errors"][0]["code"] == "INTERRUPTED"
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("library", [False, True], ids=["by a class", "by a library"])
def test_a_signal_that_comes_out_wrapped_is_no_bug(team: Cli, monkeypatch: pytest.MonkeyPatch, library: bool) -> None:
    """Until Python 3.11 a class that is just being made, say a dataclass, wraps what a handler raises."""
    from swarm import Operations

    class Part:
        def __set_name__(self, _owner: type, _name: str) -> None:
            signal.raise_signal(signal.SIGTERM)

    def interrupted(self: Operations) -> tuple[()]:
        try:
            type("Made", (), {"part": Part()})
        except BaseException as error:
            if library:
                raise RuntimeError("cannot make it") from error
            raise
        return ()

    monkeypatch.setattr(Operations, "__call__", interrupted)
    said = team("log")

    assert (said.code, said.err.splitlines()[0]) == (143, "error: cannot show the log: interrupted by SIGTERM")
    assert not list((team.lab.root / ".swarm").glob("swarm-crash-*"))


def test_what_is_taken_back_then_is_told_too(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm.kit.errors import Interrupted
    from swarm.worktrees.steps import tree_steps

    def wrapped(*_: object) -> None:
        raise RuntimeError("a class cannot be made") from Interrupted("interrupted by SIGTERM", signum=15)

    monkeypatch.setattr(tree_steps.Verify, "do", wrapped)
    said = cli("worktree", "create", "fx", "--roles", "developer")

    assert said.code == 143
    assert "interrupted by SIGTERM; swarm undid everything it had begun" in said.err


class Stuck:
    """A program that stops while Python loads something, until it is ended."""

    def __init__(self, folder: Path) -> None:
        self._begun = folder / "begun"
        os.mkfifo(self._begun)
        self.code = f"with open({str(self._begun)!r}, 'w') as file: file.write('x')\nimport time\ntime.sleep(600)\n"

    def interrupted(self, cli: Cli, env: dict[str, str], *words: str | Path) -> tuple[int, bytes]:
        """Send Ctrl-C when it has come there; return the exit status and all that was printed."""
        process = subprocess.Popen(
            words, cwd=cli.lab.root, env={**cli.lab.env, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        with open(self._begun, encoding="utf-8") as file:
            assert file.read() == "x"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        return process.returncode, out


def test_ctrl_c_while_libraries_load_ends_it_without_a_word(cli: Cli, tmp_path: Path) -> None:
    stuck = Stuck(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/typer.py").write_text(stuck.code)
    path = f"{tmp_path / 'lib'}{os.pathsep}{PROJECT}"
    words = (sys.executable, "-m", "swarm", "cleanup", "--all", "--dry-run")

    assert stuck.interrupted(cli, {"PYTHONPATH": path}, *words) == (130, b"")


def test_what_was_ignored_stays_ignored(cli: Cli) -> None:
    script = (
        "import os, signal, sys\n"
        "from swarm.cli import signals\n"
        "with signals.watched():\n"
        "    os.kill(os.getpid(), signal.SIGHUP)\n"
        "print('still here')\n"
    )
    command = f'trap \'\' HUP; exec "{sys.executable}" -c "$SCRIPT"'
    env = {**cli.lab.env, "PYTHONPATH": str(PROJECT), "SCRIPT": script}
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=True)

    assert done.stdout == "still here\n"
