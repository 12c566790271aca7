"""Peers that say nothing, say it slowly, or never read what they asked for."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
HEAD = b"POST /task HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
BODY = b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
#: A byte every so many seconds.
DRIP = 0.2


def _says(what: bytes) -> Callable[[socket.socket, threading.Event], None]:
    return lambda one, _over: one.sendall(what)


def _drips(first: bytes, then: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def drip(one: socket.socket, over: threading.Event) -> None:
        one.sendall(first)
        while not over.wait(DRIP):
            one.sendall(then)

    return drip


def test_slow_peers_are_let_go_and_others_are_served_meanwhile(served: Served) -> None:
    """S3: silent, half a head, a dripping head, half a body, a dripping body, and what is no HTTP."""
    served.start()
    head = HEAD % (served.port, served.token.encode())
    peers = {
        "silent": _says(b""),
        "half a head": _says(head),
        "a dripping head": _drips(head + b"X: ", b"x"),
        "half a body": _says(head + BODY + b'{"prompt": '),
        "a dripping body": _drips(head + BODY, b" "),
        "another protocol": _says(b"\x16\x03\x01\x02\x00\x01"),
        "nothing but zeros": _says(b"\0" * 100),
    }
    let_go: dict[str, float] = {}

    def be(name: str) -> None:
        over, began = threading.Event(), time.monotonic()
        with socket.create_connection(("127.0.0.1", served.port), timeout=100) as one:

            def act() -> None:
                with contextlib.suppress(OSError):
                    peers[name](one, over)

            acting = threading.Thread(target=act)
            acting.start()
            with contextlib.suppress(ConnectionError):
                while one.recv(1 << 16):
                    pass
            let_go[name] = time.monotonic() - began
            over.set()
            acting.join()

    threads = [threading.Thread(target=be, args=(name,)) for name in peers]
    for one in threads:
        one.start()
    answered = 0
    while any(one.is_alive() for one in threads):
        assert served.status()["state"] == "idle"
        answered += 1
    assert sorted(let_go) == sorted(peers)
    assert answered > 2
    assert served.lab.swarm.tasks.list(finished=True) == ()


def test_hundreds_of_silent_peers_keep_nobody_out(served: Served) -> None:
    """The ones that wait longest make room."""
    served.start()
    silent: list[socket.socket] = []
    try:
        for _ in range(700):  # a test process may have a thousand files
            silent.append(socket.create_connection(("127.0.0.1", served.port), timeout=100))
            if len(silent) % 100 == 0:
                assert served.status()["state"] == "idle"
        assert served.ask("GET", "/history")[0] == 200
    finally:
        for one in silent:
            one.close()


def test_a_peer_that_does_not_read_its_answer_is_let_go(served: Served) -> None:
    big = served.lab.program("big", "#!/bin/sh\ncat >/dev/null\nhead -c 9000000 /dev/zero | tr '\\0' x\n")
    served.start("--agent-cmd", str(big))
    task_id = served.submit("x")
    served.until(task_id, "completed", "failed")
    asked = (
        f"GET /task/{task_id}/debug HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAuthorization: Bearer {served.token}"
    )
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(100)
        one.connect(("127.0.0.1", served.port))
        one.sendall(asked.encode() + b"\r\n\r\n")
        one.recv(10)  # it answers; the rest is never read

        def is_reset() -> bool:
            try:
                one.send(b"x")
            except OSError:
                return True
            return False

        wait_for(is_reset, "the end of the connection", 60)
    assert served.status()["state"] == "idle"
