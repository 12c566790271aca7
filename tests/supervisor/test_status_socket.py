"""The socket on which a supervisor answers how its agent stands (SESS-14, POD-11, C-05)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.machine.sockets import heard as known
from swarm.machine.sockets import status_client
from swarm.machine.sockets.status_client import Asking
from swarm.testing.terminal import wait_for
from tests.supervisor.test_launcher import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.terminal import Pane

pytestmark = pytest.mark.integration

#: Runs until it is asked to end, or a file appears.
STAYS = "while not os.path.exists(os.environ['HERE'] + '/end'):\n    time.sleep(0.01)\n"
REQUEST = b'{"schema": 1, "type": "status"}\n'


class Asked(Site):
    """A launch with a socket in a folder of its own."""

    def __init__(self, folder: Path, sockets: Path) -> None:
        super().__init__(folder)
        self.path = sockets / "developer-s-0123456789ab.sock"

    def begin(self, code: str = STAYS, **fields: Any) -> Pane:
        """Launch, and wait until the socket answers."""
        fields = {"program": "demo", "role": "developer", "socket": str(self.path), **fields}
        pane = self.run(code, **fields)
        wait_for(lambda: self._is_of(pane) and self.noted() is not None, "the note about the socket")
        return pane

    def _is_of(self, pane: Pane) -> bool:
        return (runfiles.read(str(self.run_dir), runfiles.PROCESS) or {}).get("supervisor_pid") == pane.pid

    def noted(self) -> dict[str, object] | None:
        return runfiles.read(str(self.run_dir), runfiles.SOCKET)

    def ask(self, request: bytes = REQUEST) -> dict[str, Any]:
        """Send a request and return the answer."""
        with self.connected() as one:
            one.sendall(request)
            return json.loads(_all(one))  # type: ignore[no-any-return]  # it is what we look at

    def agent(self) -> dict[str, Any]:
        found = self.ask()
        assert (found["schema"], found["type"]) == (1, "status")
        return found["agent"]  # type: ignore[no-any-return]

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
            one.settimeout(30)
            one.connect(str(self.path))
            yield one

    def end(self, pane: Pane) -> None:
        (self.here / "end").touch()
        assert pane.ended() == 0

    def says(self, state: str, detail: str = "") -> None:
        """Let the program report a state, as its hooks would."""
        now = time.time_ns() // 1_000_000
        said = {"state": state, "detail": detail, "at_ms": now, "pid": self.process.pid}
        runfiles.write(str(self.run_dir), runfiles.STATE, dict(said))


def _all(one: socket.socket) -> bytes:
    data = b""
    while piece := one.recv(65536):
        data += piece
    return data


@pytest.fixture
def sockets() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="s"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def site(tmp_path: Path, sockets: Path) -> Iterator[Asked]:
    made = Asked(tmp_path, sockets)
    yield made
    for pane in made.panes:
        pane.close()


def test_the_answer_says_who_it_is_and_how_it_stands(site: Asked) -> None:
    pane = site.begin()
    found = site.agent()
    assert (found["name"], found["role"], found["session"], found["program"]) == ("developer", "developer", "s", "demo")
    assert (found["state"], found["unread"], found["pid"]) == ("unknown", 0, site.process.pid)
    assert "pod" not in found
    assert "blocked" not in found
    assert f"process {site.process.pid} lives" in [one["text"] for one in found["evidence"]]

    site.says("idle", "ready")
    found = site.agent()
    assert (found["state"], found["detail"]) == ("idle", "ready")
    assert [one["source"] for one in found["evidence"] if one["decides"]] == ["program"]
    site.end(pane)


def test_the_pod_is_told(site: Asked) -> None:
    site.begin(pod="backend")
    assert site.agent()["pod"] == "backend"


def test_the_socket_is_private_and_goes_with_the_agents_end(site: Asked) -> None:
    pane = site.begin()
    info = site.path.lstat()
    assert stat.S_ISSOCK(info.st_mode)
    assert stat.S_IMODE(info.st_mode) == 0o600
    assert site.noted() == {"schema": 1, "path": str(site.path), "boot_id": processes.boot_id()}
    site.end(pane)
    assert os.listdir(site.path.parent) == []
    assert site.noted() is None


def test_a_stopped_agent_takes_its_socket_along(site: Asked) -> None:
    pane = site.begin("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STAYS, grace=0.5)
    os.kill(pane.pid, signal.SIGTERM)
    assert site.agent()["name"] == "developer"  # also while it is being ended
    pane.ended()
    assert os.listdir(site.path.parent) == []


def test_what_a_killed_supervisor_left_is_stale_and_replaced_by_the_next(site: Asked) -> None:
    pane = site.begin()
    os.kill(pane.pid, signal.SIGKILL)
    pane.ended()
    heard = Asking({"it": str(site.path)}).answers()["it"]
    assert (heard.info, heard.stale) == (None, "nobody listens on its socket")
    (site.path.parent / (site.path.name + ".new")).touch()  # it was killed before it listened

    pane = site.begin()
    assert site.agent()["pid"] == site.process.pid
    assert os.listdir(site.path.parent) == [site.path.name]
    site.end(pane)


def test_an_ending_supervisor_leaves_the_socket_of_the_next_one_alone(site: Asked) -> None:
    pane = site.begin()
    site.path.unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        other.bind(str(site.path))
        site.end(pane)
        assert site.path.exists()


@pytest.mark.parametrize(
    "request_",
    [b"hello\n", b"{}\n", b"[1]\n", b'{"type": "stop"}\n', b"\xff\xfe\n", b"\n", b"x" * 5000, b'{"type": ' * 2000],
)
def test_a_request_that_is_none_is_refused_in_one_answer(site: Asked, request_: bytes) -> None:
    site.begin()
    found = site.ask(request_)
    assert (found["schema"], found["type"], found["error"]["code"]) == (1, "error", "BAD_REQUEST")
    assert site.agent()["name"] == "developer"


def test_a_request_may_come_in_pieces_and_end_without_a_newline(site: Asked) -> None:
    site.begin()
    with site.connected() as one:
        for byte in REQUEST.strip():
            one.sendall(bytes([byte]))
        one.shutdown(socket.SHUT_WR)
        assert json.loads(_all(one))["type"] == "status"


def test_clients_that_hang_hold_up_neither_others_nor_the_program(site: Asked) -> None:
    pane = site.begin()
    with contextlib.ExitStack() as stack:
        hanging = [stack.enter_context(site.connected()) for _ in range(20)]
        hanging[0].sendall(b'{"type"')
        hanging[1].close()
        before = _ticks(pane.pid)
        assert site.agent()["state"] == "unknown"  # when those before it have had their second
        assert [one.recv(1) for one in hanging[2:4]] == [b"", b""]
        assert _ticks(pane.pid) - before < os.sysconf("SC_CLK_TCK") / 2  # it waited three seconds, and slept
        site.end(pane)  # with connections open


def test_nobody_asks_and_it_costs_nothing(site: Asked) -> None:
    """The supervisor wakes as often with its socket as without."""
    pane = site.begin()
    assert site.agent()
    wait_for(lambda: _sleeps(pane.pid) < 3, "the supervisor to come to rest")


def _sleeps(pid: int) -> int:
    """Return how often a process went to sleep within half a second: each wait that ends makes one."""
    before = _switches(pid)
    time.sleep(0.5)
    return _switches(pid) - before


def _switches(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("voluntary"))


def test_no_descriptor_left_is_no_busy_loop(site: Asked) -> None:
    import resource

    pane = site.begin()
    few = 1 + max(map(int, os.listdir(f"/proc/{pane.pid}/fd")))
    _, hard = resource.prlimit(pane.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pane.pid, resource.RLIMIT_NOFILE, (few, hard))
    with site.connected() as one:
        one.sendall(REQUEST)
        before = _ticks(pane.pid)
        time.sleep(1.0)
        assert _ticks(pane.pid) - before < os.sysconf("SC_CLK_TCK") / 4
        resource.prlimit(pane.pid, resource.RLIMIT_NOFILE, (hard, hard))
        assert json.loads(_all(one))["type"] == "status"


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_socket_that_cannot_be_made_is_noted_and_the_program_runs(site: Asked) -> None:
    pane = site.begin(RAN + STAYS, socket=str(site.path.parent / "none" / "x.sock"))
    noted = site.noted()
    assert noted is not None
    assert (noted["path"], "No such file or directory" in str(noted["problem"])) == ("", True)
    site.wait("ran")
    site.end(pane)


def test_a_path_that_is_too_long_is_noted(site: Asked) -> None:
    site.begin(socket=str(site.path.parent / ("x" * 120)))
    assert "too long" in str((site.noted() or {})["problem"])


RAN = "open(os.environ['HERE'] + '/ran', 'w').close()\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_gets_no_answer(site: Asked) -> None:
    site.begin()
    site.path.parent.chmod(0o755)
    site.path.chmod(0o666)  # only the kernel's word about the other end is left
    asks = (
        "import os, socket, sys\nos.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\n"
        'try:\n    s.sendall(b\'{"type": "status"}\\n\')\n    print(s.recv(100))\n'
        "except (BrokenPipeError, ConnectionResetError):\n    print(b'')\n"
    )
    argv = [sys.executable, "-I", "-S", "-c", asks, str(site.path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "b''\n"
    assert site.agent()["name"] == "developer"


# --- blocked, unread ----------------------------------------------------------------------------------


def test_an_agent_that_waits_for_permission_tells_the_tool_and_the_request(site: Asked) -> None:
    site.begin()
    site.says("waiting", "for permission to use a tool")
    (site.run_dir / "events.jsonl").write_text(
        '{"at_ms": 5, "hook_event_name": "PreToolUse", "tool_name": "Bash"}\n'
        '{"at_ms": 6, "hook_event_name": "Notification"}\n'
    )
    assert site.agent()["blocked"] == {"tool": "Bash", "request": "", "since_ms": 5}

    folder = site.here / "state" / "approvals"
    folder.mkdir()
    mine = processes.start_of(os.getpid())
    question = {"session": "s", "agent": "developer", "boot": processes.boot_id(), "pid": os.getpid()}
    (folder / "bcdfgh.question.json").write_text(
        json.dumps({**question, "pid_start": mine, "tool": "Edit", "asked_ms": 7})
    )
    (folder / "zzzzzz.question.json").write_text("no record")
    assert site.agent()["blocked"] == {"tool": "Edit", "request": "bcdfgh", "since_ms": 7}

    (folder / "bcdfgh.answer.json").touch()
    assert site.agent()["blocked"]["tool"] == "Bash"
    with (site.run_dir / "events.jsonl").open("a") as file:
        file.write('{"at_ms": 8, "hook_event_name": "PostToolUse", "tool_name": "Bash"}\n')
    assert "blocked" not in site.agent()
    site.says("working")
    assert "blocked" not in site.agent()


def test_an_inbox_that_cannot_be_read_is_told_as_such(site: Asked, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    (inbox / "normal").mkdir(parents=True)
    (inbox / "reader.lock").touch()
    (inbox / "normal" / "active.log").write_text("x" * 200)
    site.begin(mail={"inbox": str(inbox), "address": "developer@s"})
    assert site.agent()["unread"] is None


# --- asking -------------------------------------------------------------------------------------------


class Odd:
    """A socket on which something else than a supervisor is."""

    def __init__(self, path: Path, answer: bytes | None) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen(5)
        self._answer = answer

    def serve(self) -> None:
        connection, _ = self._listener.accept()
        if self._answer is not None:
            with connection:
                connection.recv(100)
                with contextlib.suppress(OSError):
                    connection.sendall(self._answer)

    def close(self) -> None:
        self._listener.close()


GOOD = {"name": "a", "session": "s", "state": "idle"}


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"garbage\n", "its socket answers something else than a status"),
        (b"", "its socket was closed without an answer"),
        (b"\xff" * 100, "its socket answers something else than a status"),
        (b"[]\n", "its socket answers something else than a status"),
        (b'{"schema": 9, "type": "status", "agent": {}}\n', "its socket answers something else than a status"),
        (json.dumps({"schema": 1, "type": "status", "agent": {**GOOD, "unread": "2"}}).encode() + b"\n", "else"),
        (json.dumps({"schema": 1, "type": "status", "agent": {**GOOD, "state": ""}}).encode() + b"\n", "else"),
        (b"[" * 65_000 + b"\n", "else"),
        (b"x" * 200_000, "else"),
        (b'{"schema": 1, "type": "error", "error": {}}\n', "else"),
    ],
)
def test_anything_that_is_no_status_is_stale_and_told_why(sockets: Path, answer: bytes, why: str) -> None:
    import threading

    odd = Odd(sockets / "x.sock", answer)
    served = threading.Thread(target=odd.serve)
    served.start()
    heard = Asking({"x": str(odd.path)}, within=10).answers()["x"]
    served.join()
    odd.close()
    assert heard.info is None
    assert why in heard.stale


def test_all_sockets_together_cost_no_more_than_their_time(sockets: Path) -> None:
    """Nobody answers on thirty of them: that costs as much as one of them."""
    odd = [Odd(sockets / f"{n}.sock", None) for n in range(30)]
    (sockets / "gone.sock").touch()
    paths = {one.path.name: str(one.path) for one in odd} | {"gone": str(sockets / "none.sock")}
    began = time.monotonic()
    asking = Asking(paths)
    heard = asking.answers()
    took = time.monotonic() - began
    for one in odd:
        one.close()
    assert {one.stale for name, one in heard.items() if name != "gone"} == {"its supervisor does not answer"}
    assert heard["gone"].stale == "its socket is gone"
    assert took < status_client.WITHIN + 0.15  # of which the last is for a busy machine


def test_an_answer_that_came_while_the_caller_did_something_else_counts(site: Asked) -> None:
    site.begin()
    asking = Asking({"it": str(site.path)}, within=0.0)
    assert site.agent()  # it is answered after the first one
    heard = asking.answers()["it"]
    assert heard.info is not None
    assert (heard.info.name, heard.info.session, heard.stale) == ("developer", "s", "")


def test_only_a_socket_in_the_right_folder_is_asked(site: Asked, tmp_path: Path) -> None:
    """What a run folder says is not believed: an agent may write there."""
    site.begin()
    run_dir, folder = str(site.run_dir), str(site.path.parent)
    assert known.noted(run_dir, folder).path == str(site.path)
    assert known.noted(run_dir, str(tmp_path)).stale == "its socket is gone"
    for path in (str(tmp_path / "x.sock"), f"{folder}/docker", f"{folder}/../x.sock", 7):
        runfiles.write(run_dir, runfiles.SOCKET, {"path": path, "boot_id": processes.boot_id()})
        found = known.noted(run_dir, folder)
        assert found.stale or not found.path


def test_a_socket_of_before_the_machine_was_started_is_not_told_of(site: Asked) -> None:
    """Its agent is told to be stopped by that, and needs no word about a socket."""
    site.begin()
    run_dir, folder = str(site.run_dir), str(site.path.parent)
    assert known.noted(run_dir, folder).path
    runfiles.write(run_dir, runfiles.SOCKET, {"path": str(site.path), "boot_id": "another"})
    assert known.noted(run_dir, folder) == known.Heard()
