"""The door to the model adds the credential, and lets nothing but the model's requests through (issue 16, point 7)."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from swarm.programs.model_access import Service, TokenFile
from swarm.testing.terminal import wait_for
from tests.sandbox.network.served import hello, say, status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.network.served import Served

pytestmark = [pytest.mark.component, pytest.mark.timeout(120)]

ALLOWED = ("POST /v1/messages", "POST /v1/messages/count_tokens", "GET /v1/models(?:/[A-Za-z0-9._-]+)?")
BODY = b'{"model":"x"}'


def service(served: Served, **more: object) -> Service:
    made = Service("anthropic", f"http://127.0.0.1:{served.upstream}/base", ALLOWED, {"x-api-key": "REAL"})
    return made._replace(**more)  # type: ignore[arg-type]  # as they are named


def asked(target: str, method: str = "POST", headers: str = "", body: bytes = BODY) -> bytes:
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}{length}\r\n".encode() + body


def test_the_key_is_added_and_the_agents_own_is_dropped(served: Served) -> None:
    headers = (
        "X-Api-Key: MINE\r\nAuthorization: Bearer MINE\r\nCookie: MINE\r\nX-Goog-Api-Key: MINE\r\n"
        "X-Forwarded-Host: MINE\r\nProxy-Authorization: MINE\r\nOpenAI-Organization: MINE\r\n"
        "Anthropic-Version: 2023-06-01\r\nConnection: x-api-key\r\n"
    )

    said = say(served.door(service(served)), asked("/anthropic/v1/messages?beta=true", headers=headers))

    heard = served.heard[0]
    assert (status(said), said.endswith(b"hello")) == (200, True)
    assert heard.startswith(b"POST /base/v1/messages?beta=true HTTP/1.1\r\n")
    assert (b"MINE" in heard, heard.count(b"REAL"), b"x-api-key: REAL" in heard) == (False, 1, True)
    assert b"anthropic-version: 2023-06-01" in heard
    assert heard.endswith(BODY)
    wait_for(served.decisions, "the note of the answer")
    assert served.decisions()[0]["reason"] == "answered 200"
    assert "REAL" not in json.dumps(served.decisions())


@pytest.mark.parametrize(
    ("method", "target"),
    [
        *(("POST", "/anthropic/v1/files"), ("GET", "/anthropic/v1/messages"), ("DELETE", "/anthropic/v1/models/x")),
        *(("POST", "/v1/messages"), ("POST", "/openai/v1/messages"), ("POST", "/anthropic"), ("POST", "/")),
        *(("POST", "/anthropic/v1/messages/../files"), ("POST", "/anthropic/v1/messages/%2e%2e/files")),
        *(
            ("POST", "//anthropic/v1/messages"),
            ("POST", "/anthropic//v1/messages"),
            ("POST", "/anthropic/v1/messages/"),
        ),
        *(
            ("POST", "/anthropic/v1/messages%3fx"),
            ("POST", "/anthropic/v1/messages#x"),
            ("POST", "/anthropic/v1/messages;x"),
        ),
        *(("POST", "/anthropic/v1/messages?key=MINE"), ("POST", "/anthropic/v1/messages?beta=true&key=MINE")),
        *(("POST", "/anthropic/v1/messages?beta=http://evil.org/"), ("POST", "http://evil.org/anthropic/v1/messages")),
        *(
            ("CONNECT", "evil.org:443"),
            ("OPTIONS", "*"),
            ("POST", "/anthropic/v1/batches"),
            ("PUT", "/anthropic/v1/messages"),
        ),
        *(
            ("POST", "/anthropic\\v1\\messages"),
            ("GET", "/anthropic/v1/models/../../x"),
            ("post", "/anthropic/v1/messages"),
        ),
    ],
)
def test_any_other_request_is_refused(served: Served, method: str, target: str) -> None:
    said = say(served.door(service(served)), asked(target, method, body=b"" if method == "CONNECT" else BODY))

    assert (status(said), served.heard) == (403, [])
    assert [one["allowed"] for one in served.decisions()] == [False]


@pytest.mark.parametrize(
    "framing",
    [
        *("Content-Length: 13\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 13\r\nContent-Length: 0\r\n"),
        *("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: identity\r\n"),
        *("Content-Length: +13\r\n", "Content-Length: 13,14\r\n", "Content-Length: 0x0d\r\n"),
    ],
)
def test_a_length_that_can_be_read_in_two_ways_is_refused(served: Served, framing: str) -> None:
    smuggled = asked("/anthropic/v1/files", headers="X-Api-Key: MINE\r\n")
    first = f"POST /anthropic/v1/messages HTTP/1.1\r\nHost: a\r\n{framing}\r\n0\r\n\r\n".encode()

    said = say(served.door(service(served)), first + smuggled)

    assert status(said) in (400, 501)
    assert not any(b"files" in one or b"MINE" in one for one in served.heard)


def test_a_second_request_on_a_connection_is_not_read(served: Served) -> None:
    """The way out that a proxy written by hand has: the second one with another key and path."""
    second = asked("/anthropic/v1/files", headers="X-Api-Key: MINE\r\n")

    said = say(served.door(service(served)), asked("/anthropic/v1/messages") + second)

    assert said.count(b"HTTP/1.1 200") == 1
    assert not any(b"files" in one or b"MINE" in one for one in served.heard)


@pytest.mark.parametrize(
    "words",
    [
        *(
            b"\0" * 100,
            hello("127.0.0.1"),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50_000,
        ),
        asked("/anthropic/v1/messages", headers="X: " + "x" * 100_000 + "\r\n"),
    ],
    ids=["binary", "tls", "http 2", "many headers", "a long header"],
)
def test_what_is_no_request_is_answered_once(served: Served, words: bytes) -> None:
    said = say(served.door(service(served)), words)

    assert (status(said) in (0, 400, 403, 431), served.heard) == (True, [])


def test_an_upgrade_is_not_passed_on(served: Served) -> None:
    headers = "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"

    said = say(served.door(service(served)), asked("/anthropic/v1/messages", headers=headers))

    assert status(said) == 200
    assert b"pgrade" not in served.heard[0]


def test_a_login_is_read_anew_for_each_request_and_its_token_is_not_in_the_box(served: Served, tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    token = TokenFile(str(file), ("oauth", "token"), ("oauth", "ends"), "claude")
    added = {"authorization": "Bearer {token}", "anthropic-beta": "oauth-2025-04-20"}
    port = served.door(service(served, token=token, headers=added))

    def use(name: str, ends: float) -> int:
        file.write_text(json.dumps({"oauth": {"token": name, "ends": ends * 1000}}))
        return status(say(port, asked("/anthropic/v1/messages", headers="Anthropic-Beta: mine-1\r\n")))

    assert [use("ONE", time.time() + 60), use("TWO", time.time() + 60), use("OLD", time.time() - 1)] == [200, 200, 401]
    assert [b"Bearer ONE" in served.heard[0], b"Bearer TWO" in served.heard[1], len(served.heard)] == [True, True, 2]
    assert b"anthropic-beta: mine-1,oauth-2025-04-20\r\n" in served.heard[0]
    file.unlink()
    assert b"claude" in say(port, asked("/anthropic/v1/messages"))


def test_an_answer_that_comes_in_pieces_is_handed_on_at_once(served: Served) -> None:
    served.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"

    said = say(served.door(service(served)), asked("/anthropic/v1/messages"))

    assert said.endswith(b"\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n")


def test_a_request_that_is_too_large_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarm.sandbox.network.door._MOST", 1000)

    assert status(say(served.door(service(served)), asked("/anthropic/v1/messages", body=b"x" * 2000))) == 413


def test_an_api_that_cannot_be_reached_is_told(served: Served) -> None:
    said = say(served.door(service(served, upstream="http://127.0.0.1:1")), asked("/anthropic/v1/messages"))

    assert status(said) == 502
