"""The proxy reaches allowed hosts, and obeys no hostile request; none brings a traceback (issue 16, point 7)."""

# ruff: noqa: E501  # a request stands in one piece

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from swarm.sandbox.network import wire
from tests.sandbox.network.served import ANSWER, connect, hello, say, status
from tests.sandbox.network.test_hello import extended

if TYPE_CHECKING:
    from tests.sandbox.network.served import Served

pytestmark = [pytest.mark.component, pytest.mark.timeout(120)]


def test_an_allowed_host_is_reached_by_connect(served: Served) -> None:
    served.answer = b"anything"
    port = served.proxy(f"example.org:{served.upstream}")

    head, _ = connect(port, f"example.org:{served.upstream}", hello("example.org"))

    assert (status(head), served.heard) == (200, [hello_like(served.heard[0])])
    assert [(one["allowed"], one["target"]) for one in served.decisions()] == [
        (True, f"example.org:{served.upstream}"),
    ]


def hello_like(data: bytes) -> bytes:
    assert data[:1] == b"\x16"
    return data


def test_an_allowed_host_is_reached_by_plain_http(served: Served) -> None:
    port = served.proxy(f"http://example.org:{served.upstream}")

    said = say(port, f"GET http://example.org:{served.upstream}/a?b HTTP/1.1\r\nHost: other\r\n\r\n".encode())

    assert (status(said), said.endswith(b"hello"), b"set-cookie" in said) == (200, True, False)
    assert served.heard[0].startswith(f"GET /a?b HTTP/1.1\r\nhost: example.org:{served.upstream}\r\n".encode())


@pytest.mark.parametrize(
    "target",
    [
        *("127.0.0.1:443", "[::1]:443", "localhost:443", "2130706433:443", "0x7f.1:443", "evil.org:443"),
        *("example.org:22", "example.org:443:22", "example.org", "example.org:", "example.org:-1", "example.org:99999"),
        *("user@example.org:443", "https://example.org:443", "/", "*", "example.org.evil.org:443", "xexample.org:443"),
        *("example.org%00.evil.org:443", "example.org:\u0664\u0664\u0663", "169.254.169.254:80", ":443"),
    ],
)
def test_connect_to_anything_else_is_refused_before_any_look_up(served: Served, target: str) -> None:
    head, _ = connect(served.proxy("example.org"), target, hello("example.org"))

    assert (status(head) in (400, 403), served.looked_up, served.heard) == (True, [], [])
    assert not any(one["allowed"] for one in served.decisions())


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:127.0.0.1"])
def test_an_allowed_name_of_the_machine_or_a_private_network_is_refused(served: Served, address: str) -> None:
    served.addresses = [[address]]

    head, _ = connect(served.proxy(f"example.org:{served.upstream}", private=""), f"example.org:{served.upstream}")

    assert (status(head), served.heard) == (403, [])
    assert "not public" in served.reasons()


def test_a_name_that_answers_twice_is_looked_up_once(served: Served) -> None:
    """DNS rebinding: the second answer would be the machine."""
    served.addresses = [["127.0.0.1"], ["127.0.0.2"]]
    port = served.proxy(f"example.org:{served.upstream}", private="127.0.0.1/32")

    connect(port, f"example.org:{served.upstream}", hello("example.org"))

    assert (served.looked_up, len(served.heard)) == (["example.org"], 1)


def test_of_several_addresses_only_good_ones_are_dialled(served: Served) -> None:
    served.addresses = [["127.0.0.2", "127.0.0.1"]]
    port = served.proxy(f"example.org:{served.upstream}", private="127.0.0.1/32")

    head, _ = connect(port, f"example.org:{served.upstream}", hello("example.org"))

    assert status(head) == 200


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (hello("evil.org"), "TLS asks for another host: evil.org"),
        (b"GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n", "no TLS"),
        (b"SSH-2.0-OpenSSH\r\n", "no TLS"),
        (b"", "no TLS"),
        (hello("example.org")[:50], "no TLS"),
        (b"\x16\x03\x01\xff\xff" + b"x" * 70000, "no TLS"),
        (extended(b"\xfe\x0d\0\1x"), "encrypted"),
    ],
    ids=["another", "http", "ssh", "nothing", "a part", "a flood", "an encrypted name"],
)
def test_what_is_said_behind_connect_must_be_tls_to_that_host(served: Served, first: bytes, reason: str) -> None:
    _, rest = connect(served.proxy(f"example.org:{served.upstream}"), f"example.org:{served.upstream}", first)

    assert rest == b""
    assert reason in served.reasons()
    assert served.heard in ([], [b""])


HOSTILE = {
    "origin form": b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "asterisk": b"OPTIONS * HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "other scheme": b"GET https://example.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "file": b"GET file:///etc/passwd HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "user": b"GET http://example.org@evil.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "user of the host": b"GET http://evil.org:80@example.org:UP/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "backslash": b"GET http://evil.org\\@example.org:UP/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "fragment": b"GET http://example.org:UP#@evil.org/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "an address": b"GET http://127.0.0.1:UP/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "an address of six": b"GET http://[::1]:UP/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "a broken address": b"GET http://[::1/ HTTP/1.1\r\nHost: example.org\r\n\r\n",
    "two lengths": b"POST http://example.org:UP/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two content lengths": b"POST http://example.org:UP/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "two hosts": b"GET http://example.org:UP/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "no host": b"GET http://example.org:UP/ HTTP/1.1\r\n\r\n",
    "odd coding": b"POST http://example.org:UP/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "bad chunk": b"POST http://example.org:UP/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nx\r\n\r\n",
    "space before colon": b"GET http://example.org:UP/ HTTP/1.1\r\nHost : a\r\n\r\n",
    "a NUL": b"GET http://example.org:UP/ HTTP/1.1\r\nHost: a\0b\r\n\r\n",
    "a huge header": b"GET http://example.org:UP/ HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
    "many headers": b"GET http://example.org:UP/ HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 60_000 + b"\r\n",
    "no end": b"GET " + b"http://example.org/" * 20_000,
    "binary": bytes(range(256)) * 40,
    "http 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "tls": hello("example.org"),
    "socks": b"\5\1\0",
    "connect with a body": b"CONNECT example.org:UP HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "http 0.9": b"GET /\r\n\r\n",
    "nothing": b"\r\n\r\n\r\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_not_obeyed(served: Served, name: str) -> None:
    port = served.proxy(f"http://example.org:{served.upstream}", "evil.org")
    words = HOSTILE[name].replace(b":UP", b":%d" % served.upstream)

    with socket.create_connection(("127.0.0.1", port), 15) as made:
        made.sendall(words)
        made.shutdown(socket.SHUT_WR)
        said = b""
        try:
            while piece := made.recv(65536):
                said += piece
        except ConnectionResetError:
            pass

    assert status(said) in (0, 400, 403, 502)
    assert not any(b"evil" in one or one.endswith(b"xx") for one in served.heard)
    assert [one for one in served.heard if one.startswith((b"GET", b"CONNECT"))] == []


def test_a_second_request_behind_the_first_is_not_read(served: Served) -> None:
    """Smuggling: whatever a length says, one connection is one request."""
    first = f"GET http://example.org:{served.upstream}/1 HTTP/1.1\r\nHost: a\r\nConnection: content-length\r\n\r\n"
    second = f"GET http://example.org:{served.upstream}/2 HTTP/1.1\r\nHost: a\r\n\r\n"

    said = say(served.proxy(f"http://example.org:{served.upstream}"), (first + second).encode())

    assert said.count(b"HTTP/1.1 200") == 1
    assert [b"/2" in one for one in served.heard] == [False]


@pytest.mark.parametrize(
    "header",
    [
        *("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",),
        *(
            "Upgrade: websocket\r\nConnection: Upgrade",
            "Proxy-Authorization: Basic eDp5",
            "Connection: x-mine\r\nX-Mine: 1",
        ),
        *("TE: trailers", "Keep-Alive: 5", "Expect: 100-continue"),
    ],
)
def test_headers_about_the_connection_stay_here(served: Served, header: str) -> None:
    port = served.proxy(f"http://example.org:{served.upstream}")

    said = say(port, f"GET http://example.org:{served.upstream}/ HTTP/1.1\r\nHost: a\r\n{header}\r\n\r\n".encode())

    assert b" 200 " in said.split(b"\r\n\r\n")[-2]
    for line in header.split("\r\n"):
        name = line.partition(":")[0].lower().encode()
        assert name == b"connection" or name not in served.heard[0].lower()


def test_an_answer_that_changes_the_protocol_is_not_obeyed(served: Served) -> None:
    served.answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"

    said = say(
        served.proxy(f"http://example.org:{served.upstream}"),
        f"GET http://example.org:{served.upstream}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
    )

    assert status(said) == 502


def test_a_slow_peer_loses_its_connection(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "HEAD_SECONDS", 0.5)
    port = served.proxy("example.org")
    began = time.monotonic()

    with socket.create_connection(("127.0.0.1", port), 15) as made:
        try:
            while time.monotonic() < began + 10:
                made.sendall(b"G")  # a byte at a time
                made.settimeout(0.1)
                try:
                    if not made.recv(4096):
                        break
                except TimeoutError:
                    continue
        except OSError:
            pass

    assert time.monotonic() - began < 8


def test_a_host_that_ends_in_the_middle_is_told(served: Served) -> None:
    served.answer = ANSWER[:20]

    said = say(
        served.proxy(f"http://example.org:{served.upstream}"),
        f"GET http://example.org:{served.upstream}/ HTTP/1.1\r\nHost: a\r\n\r\n".encode(),
    )

    assert status(said) == 502


def test_a_host_that_does_not_answer_is_told(served: Served) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        head, _ = connect(served.proxy(f"example.org:{port}"), f"example.org:{port}")

    assert status(head) == 502
    assert "does not answer" in served.reasons()
