"""Find servers: those of this directory and strangers, some of which would like to be taken for one of ours."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from swarm import ServiceProblem, Swarm
from swarm.project.swarm_dir.marker import make_swarm_dir
from swarm.services import announcing, candidates, proof
from swarm.services.candidates import LOOPBACK, Address
from swarm.testing.terminal import wait_for
from tests.http_door.conftest import Served
from tests.http_door.conftest import served as served  # noqa: PLC0414  # the fixture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from swarm import ComponentHealth

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
TOKEN = b"a-token-that-no-probe-may-carry-0123456789"
STATUS = {
    "type": "agent",
    "name": "rev",
    "interfaces": ["statusable", "taskable"],
    "version": "0.1.0",
    "state": "idle",
    "uptime_seconds": 1,
    "current_task": None,
    "config": {"port": 1, "model": None, "program": "claude"},
    "log": [],
}


class Stranger:
    """Somebody who listens on a port of this machine, and hears all that is said there."""

    def __init__(self, answer: Callable[[bytes], bytes | None]) -> None:
        self._listening = socket.create_server((LOOPBACK, 0), backlog=256)
        self._answer = answer
        self.port = self._listening.getsockname()[1]
        self.heard = b""
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def _serve(self) -> None:
        while True:
            one, _ = self._listening.accept()
            self._open.append(one)
            one.settimeout(10)
            with contextlib.suppress(OSError):
                said = one.recv(1 << 16)
                if said == b"end":
                    return
                self.heard += said
                answer = self._answer(said)
                if answer is not None:
                    one.sendall(answer)
                    one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with socket.create_connection((LOOPBACK, self.port)) as one:
            one.sendall(b"end")
            self._thread.join()
        for each in (self._listening, *self._open):
            each.close()


@contextlib.contextmanager
def stranger(answer: Callable[[bytes], bytes | None]) -> Iterator[Stranger]:
    made = Stranger(answer)
    try:
        yield made
    finally:
        made.close()


def as_http(said: object, status: str = "200 OK") -> bytes:
    body = json.dumps(said).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def nonce_of(request: bytes) -> str:
    (line,) = [one for one in request.decode().split("\r\n") if one.startswith(proof.HEADER)]
    return line.partition(": ")[2]


def test_hundreds_of_ports_are_asked_at_once_and_only_servers_are_noticed(served: Served) -> None:
    """DISC-01, DISC-08: the silent, the slow and the noisy cost no more time than one of them."""
    served.start()
    answers: list[Callable[[bytes], bytes | None]] = [
        *[lambda _asked: None] * 30,
        lambda _asked: b"SSH-2.0-OpenSSH_9.2\r\n",
        lambda _asked: b"\0" * 1000,
        lambda _asked: b"",
        lambda _asked: as_http({"error": "x"}, "404 Not Found"),
        lambda _asked: as_http([1]),
        lambda _asked: as_http({"state": "idle"}),
        lambda _asked: as_http({"type": "printer", "state": "idle"}),
        lambda _asked: as_http({"type": ["agent"], "state": "idle"}),
        lambda _asked: as_http({**STATUS, "state": 7}),
        lambda _asked: b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (1 << 20),
        lambda _asked: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" + b"[" * 100_000,
    ]
    with contextlib.ExitStack() as opened:
        there = [opened.enter_context(stranger(one)) for one in answers]
        places = [Address(LOOPBACK, one.port) for one in there]
        places += [Address(LOOPBACK, port) for port in range(1, 301)]
        began = time.monotonic()
        found = candidates.scan([*places, Address(LOOPBACK, served.port)], served.token.encode(), seconds=2)
        took = time.monotonic() - began
    assert [(one.name, one.is_ours, one.state) for one in found if one.url.endswith(str(served.port))] == [
        ("rev", True, "idle")
    ]
    assert not [one for one in found if one.url in {each.url for each in there}]
    assert took < 30  # one after the other it were a minute for the silent ones alone


def test_what_is_shown_of_a_stranger_is_cut_to_plain_words() -> None:
    """DISC-03: by type and interfaces, and by `roles` of older ones."""
    said = {**STATUS, "name": "\x1b[31m" + "x" * 1000, "state": "a\nb", "interfaces": ["taskable", "evil", 1]}
    with (
        stranger(lambda _asked: as_http(said)) as one,
        stranger(lambda _asked: as_http({"roles": ["director"], "state": "idle"})) as older,
    ):
        found = candidates.scan([Address(LOOPBACK, each.port) for each in (one, older)], TOKEN)
    assert [each.type for each in found] == ["agent", "director"]
    assert found[0].name.isprintable()
    assert len(found[0].name) <= 64
    assert (found[0].state, found[0].says) == ("ab", {"interfaces": ["taskable"]})
    assert not any(each.is_ours for each in found)
    assert (found[0].can("taskable"), found[1].can("taskable")) == (True, False)


def test_a_perfect_stranger_is_not_ours_and_gets_no_secret(served: Served) -> None:
    """S5: it answers as an agent does, and even passes the question on to one of ours."""
    served.start()
    real = served.port

    def relay(asked: bytes) -> bytes:
        with socket.create_connection((LOOPBACK, real)) as one:
            one.sendall(
                f"GET /status HTTP/1.1\r\nHost: {LOOPBACK}:{real}\r\n{proof.HEADER}: {nonce_of(asked)}\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            said = b""
            while piece := one.recv(1 << 16):
                said += piece
        assert b'"proof"' in said
        return said

    token = served.token
    answers: list[Callable[[bytes], bytes | None]] = [
        relay,
        lambda _asked: as_http(STATUS),
        lambda asked: as_http({**STATUS, "proof": proof.prove(b"x" * 40, nonce_of(asked), LOOPBACK, real)}),
        *[lambda _asked, given=given: as_http({**STATUS, "proof": given}) for given in ("", "0" * 64, None, 7, "é")],
    ]
    with contextlib.ExitStack() as opened:
        there = [opened.enter_context(stranger(one)) for one in answers]
        for one in there:
            ports = (one.port, one.port)
            seen = served.lab.swarm.services.discover(others=True, ports=ports)
            assert [(each.url, each.is_ours) for each in seen] == [
                (f"http://{LOOPBACK}:{real}", True),
                (one.url, False),
            ]
            shown = served.lab.cli("discover", "--ports", str(one.port))
            assert "not ours" in shown.stdout
            asked = served.lab.cli("task", "a secret task", "--agent-url", one.url, env={"SWARM_API_TOKEN": token})
            assert asked.returncode == 5
            assert "it was not sent" in asked.stderr
        heard = b"".join(one.heard for one in there)
    for secret in (token.encode(), b"Authorization", b"a secret task"):
        assert secret not in heard
    assert served.lab.swarm.tasks.list(finished=True) == ()


def test_a_server_with_our_token_is_ours_wherever_it_is_written_down(served: Served, tmp_path: Path) -> None:
    """Another directory with a copy of the token finds it by the port, and gives it a task; one without does not."""
    served.start()
    copy, other = tmp_path / "copy", tmp_path / "other"
    for one in (copy, other):
        make_swarm_dir(one, 0o755)
    (copy / "credentials").mkdir(mode=0o700)
    shutil.copy2(served.root / "credentials/api-token", copy / "credentials/api-token")
    ports = (served.port, served.port)
    for root, is_ours in ((copy, True), (other, False)):
        swarm = Swarm.open(served.lab.root, environ=served.lab.env | {"SWARM_ROOT": str(root)})
        assert [one.is_ours for one in swarm.services.discover(others=True, ports=ports)] == [is_ours]
        assert swarm.services.discover() == ()
    words = ("task", "hello", "--agent-url", f"http://127.0.0.1:{served.port}")
    env = {"SWARM_ROOT": str(other)}
    refused = served.lab.cli(*words, env=env)
    assert (refused.returncode, "there is no token for it" in refused.stderr) == (2, True), refused.stderr
    done = served.lab.cli(*words, env=env | {"SWARM_API_TOKEN": served.token})
    assert (done.returncode, done.stdout) == (0, "did: hello\n"), done.stderr


def test_a_proof_is_given_to_a_number_alone(served: Served) -> None:
    served.start()
    assert "proof" not in served.status()
    for bad in ("", "x", "0" * 31, "0" * 33, "g" * 32, "\u0661" * 32):
        sent = f"GET /status HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nSwarm-Nonce: {bad}\r\n\r\n"
        assert served.raw(sent.encode()).startswith(b"HTTP/1.1 400 "), bad
    said = served.ask("GET", "/status", token=None, Swarm_Nonce="0" * 32)[1]
    assert said["proof"] == proof.prove(served.token.encode(), "0" * 32, "127.0.0.1", served.port)


def test_watching_shows_how_one_goes_and_comes_back(served: Served) -> None:
    """DISC-02, 04, 05: of a server that is killed, and started again."""
    served.start()
    served.lab.env |= {"SWARM_DISCOVERY_REFRESH_INTERVAL": "0.1", "SWARM_DISCOVERY_KEEP": "600"}
    watching = Swarm.open(served.lab.root, environ=served.lab.env).services.watch(ports=(1, 1))
    seen: list[str] = []

    def until(colour: str) -> ComponentHealth:
        for found in watching:
            (one,) = found
            if [one.colour] != seen[-1:]:
                seen.append(one.colour)
            if one.colour == colour:
                return one
        raise AssertionError

    assert until("green").component.state == "idle"
    served.end(signal.SIGKILL)
    lost = until("red")
    assert (lost.word, lost.component.state, lost.component.name) == ("unreachable", "idle", "rev")
    assert lost.age > 0
    served.start("--port", str(served.port))
    assert until("green").component.name == "rev"
    assert seen == ["green", "yellow", "red", "green"]


def test_a_director_gives_a_task_to_whoever_is_idle(served: Served) -> None:
    """DISC-09: a busy agent is passed over; the task is followed to its end, and the result is there."""
    another = Served(served.lab, "tester")
    try:
        served.start()
        another.start()
        services = served.lab.swarm.services
        busy = {services.give({"prompt": "wait"})[0].name for _ in range(2)}
        assert busy == {"rev", "tester"}
        with pytest.raises(ServiceProblem, match="no served agent is free"):
            services.give({"prompt": "too much"})
        served.gate.touch()
        wait_for(lambda: any(one.state == "idle" for one in services.discover()), "an idle agent", 60)
        chosen, reply = services.give({"prompt": "hello"})
        assert reply.status == 201, reply
        client = served if chosen.name == "rev" else another
        assert client.until(reply.said["task_id"], "completed")["output"] == "did: hello"
        done = served.lab.cli("task", "again", "--any-agent")
        assert (done.returncode, done.stdout) == (0, "did: again\n"), done.stderr
    finally:
        if another.process is not None:
            another.end(signal.SIGKILL)


def test_announcements_lead_to_candidates_and_no_farther(served: Served) -> None:
    """DISC-06: on loopback; whoever is announced still has to prove that it is ours."""
    pytest.importorskip("zeroconf")
    served.start(env={"SWARM_DISCOVERY_METHOD": "mdns"})
    with (
        stranger(lambda _asked: as_http(STATUS)) as fake,
        announcing.announced("agent", f"fake{os.getpid()}", "1", [LOOPBACK], fake.port),
    ):
        environ = served.lab.env | {"SWARM_DISCOVERY_METHOD": "mdns"}
        copy = served.lab.root.parent / "copy"
        make_swarm_dir(copy, 0o755)
        (copy / "credentials").mkdir(mode=0o700)
        shutil.copy2(served.root / "credentials/api-token", copy / "credentials/api-token")
        swarm = Swarm.open(served.lab.root, environ=environ | {"SWARM_ROOT": str(copy)})
        seen: dict[str, bool] = {}

        def are_there() -> bool:
            found = swarm.services.discover(others=True, ports=(1, 1))
            seen.update({one.url: one.is_ours for one in found})
            return {fake.url, f"http://{LOOPBACK}:{served.port}"} <= seen.keys()

        wait_for(are_there, "both announcements", 100)
        assert (seen[fake.url], seen[f"http://{LOOPBACK}:{served.port}"]) == (False, True)
        assert b"Authorization" not in fake.heard


def test_only_addresses_of_home_are_asked() -> None:
    """An announcement of anybody sends nobody to the internet."""
    assert [announcing._is_near(one) for one in ("127.0.0.1", "192.168.1.2", "10.0.0.1")] == [True] * 3
    assert [announcing._is_near(one) for one in ("8.8.8.8", "224.0.0.251", "0.0.0.0")] == [False] * 3


def test_bad_options_are_refused_with_a_hint(served: Served) -> None:
    for bad in ("x", "9-1", "0-5", "1-70000", "1-2-3", "-1"):
        done = served.lab.cli("discover", f"--ports={bad}")
        assert done.returncode == 2, bad
        assert "9000-9199" in done.stderr
    done = served.lab.cli("discover", env={"SWARM_DISCOVERY_PORT_RANGE": "9,1"})
    assert done.returncode == 2
    assert "SWARM_DISCOVERY_PORT_RANGE" in done.stderr
