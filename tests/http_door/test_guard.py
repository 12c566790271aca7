"""Who may ask: every rule as requests that break it, by TCP and by the private socket. None is obeyed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
PROMPT = "a-prompt-that-nobody-may-see"
BODY = json.dumps({"prompt": PROMPT}).encode()
HERE = "127.0.0.1:{port}"
#: Texts that are no id: of other scripts, too long, with steps to other folders, with what a terminal obeys.
NO_IDS = (
    *(
        "..",
        "%2e%2e",
        "..%2f..%2fetc",
        "%00",
        "a%00b",
        "%0a",
        "%1b[31m",
        "%e2%80%ae",
        "%d9%a1%d9%a2",
        "%c3%a9",
        "a" * 65,
    ),
    *("-x", "_x", "a%20b", "a;b", "$(id)", "`id`", "a'b", "%22", "<b>", "task-1%2f..", "%ff", "a.b", "~", "*"),
)
HOSTS = (
    *(
        "evil.example",
        "localhost",
        "127.0.0.1",
        "127.0.0.1:1",
        "LOCALHOST:{port}",
        "localhost.:{port}",
        "0.0.0.0:{port}",
    ),
    *("[::1]:{port}", "user@127.0.0.1:{port}", "127.0.0.1:{port}@evil.example", "xlocalhost:{port}", "127.1:{port}"),
    *("2130706433:{port}", "127.0.0.1:0{port}", "localhost:{port}.evil.example", "127.0.0.1:{port}, x", "", "*"),
)
ORIGINS = (
    *("https://evil.example", "null", "http://localhost", "http://127.0.0.1", "https://127.0.0.1:{port}", "file://"),
    *("http://127.0.0.1:{port}.evil.example", "http://localhost:{port}/", "HTTP://LOCALHOST:{port}", "", "*"),
)
KINDS = (
    *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/json", "", "*/*"),
    *(
        "application/json; charset=utf-16",
        "application/jsonp",
        "application/json, text/plain",
        "application/vnd.x+json",
    ),
)
BODIES = (
    *(b"{", b"[]", b"null", b'"x"', b"1", b"{}", b'{"prompt": ""}', b'{"prompt": "  "}', b'{"prompt": null}'),
    *(b'{"prompt": 1}', b'{"prompt": ["x"]}', b'{"prompt": "x", "prompt": "y"}', b'{"prompt": "x", "extra": 1}'),
    *(b'{"prompt": "\\ud800"}', b'{"prompt": "x\\u0000y"}', b'{"prompt": "x", "timeout_seconds": NaN}', b"\xff\xfe{}"),
    *(b'{"prompt": "x", "timeout_seconds": %s}' % one for one in (b"0", b"-1", b"1e999", b"true", b'"5"', b"9" * 400)),
    *(
        b'{"prompt": "x", "session_id": "%s"}' % one.encode()
        for one in ("..", "../x", "a/b", "a" * 65, "-x", "\\u0661")
    ),
    *(b'{"prompt": "x", "model": %s}' % one for one in (b'""', b'"-x"', b'"a b"', b'"\\u001b[31m"', b"7", b'"../x"')),
    *(b'{"prompt": "x", "env": {"%s": "y"}}' % one for one in (b"MY_TOKEN", b"LD_PRELOAD", b"GIT_DIR", b"a=b", b"")),
    *(b'{"prompt": "x", "env": %s}' % one for one in (b'{"A": 1}', b'["A"]', b'{"A": "\\u0000"}', b'"A=B"')),
    *(b'{"prompt": "x", "workdir": %s}' % one for one in (b'"/"', b'"../.."', b"[]")),
    *(b'{"prompt": "x", "project": %s}' % one for one in (b'"x"', b'{"prompt": 1}', b'{"path": "/"}')),
    *(b"[" * 100_000, b'{"a":' * 5000, b'{"prompt": "x", "timeout": 1, "timeout_seconds": 2}'),
)


_READ_AT_ONCE = 1 << 15


class Probe(NamedTuple):
    """A hostile request; it is to be refused."""

    what: str
    method: str = "POST"
    path: str = "/task"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = BODY
    token: str = "right"
    host: str = HERE
    kind: str = "application/json"
    version: str = "HTTP/1.1"
    raw: bytes = b""

    def data(self, port: int, token: str) -> bytes:
        """Return the request as it is sent."""
        if self.raw:
            return self.raw.replace(b"{port}", str(port).encode()).replace(b"{token}", token.encode())
        lines = [f"{self.method} {self.path} {self.version}"]
        lines += [f"Host: {self.host}"] if self.host != "none" else []
        shown = {"right": token, "wrong": token[:-1] + ("a" if token[-1] != "a" else "b")}.get(self.token, self.token)
        lines += [f"Authorization: Bearer {shown}"] if self.token != "none" else []
        lines += [f"Content-Type: {self.kind}"] if self.body else []
        given = [name.lower() for name, _ in self.headers]
        if self.body and not {"content-length", "transfer-encoding"} & set(given):
            lines += [f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        head = "\r\n".join([*lines, "Connection: close", "", ""]).replace("{port}", str(port))
        return head.encode("latin-1") + self.body


def probes() -> Iterator[Probe]:
    yield from (Probe(f"host {host!r}", host=host) for host in (*HOSTS, "none"))
    yield Probe("two hosts", headers=(("Host", "evil.example"),))
    yield from (Probe(f"status by host {host!r}", "GET", "/status", body=b"", host=host) for host in HOSTS)
    yield from (Probe(f"origin {origin!r}", headers=(("Origin", origin),)) for origin in ORIGINS)
    yield from (Probe(f"site {one}", headers=(("Sec-Fetch-Site", one),)) for one in ("cross-site", "same-site", "x"))
    yield from (Probe(f"kind {kind!r}", kind=kind) for kind in KINDS)
    yield Probe("two kinds", headers=(("Content-Type", "text/plain"),))
    yield from (Probe(f"body {body[:40]!r}", body=body) for body in BODIES)
    yield from (Probe(f"packed {one}", headers=(("Content-Encoding", one),)) for one in ("gzip", "br", "identity"))
    yield Probe("too large", body=b'{"prompt": "' + b"x" * (1 << 20) + b'"}')
    yield Probe("too large, as it says", headers=(("Content-Length", "99999999999"),))
    yield Probe("too large, in pieces", headers=(("Transfer-Encoding", "chunked"),), body=_pieces(b"x" * (1 << 16), 20))
    yield Probe("a body of GET", "GET", "/history")
    yield from (Probe(f"upgrade {one}", headers=(("Upgrade", one),)) for one in ("websocket", "h2c"))
    methods = ("PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "PROPFIND", "get", "OPTIONS", "HEAD")
    yield from (Probe(f"method {one}", one, path, body=b"") for one in methods for path in ("/task", "/status"))
    paths = ("/task/{}", "/task/{}/debug", "/history/{}")
    yield from (Probe(f"id {one}", "GET", path.format(one), body=b"") for one in NO_IDS for path in paths[:2])
    yield from (Probe(f"change {one}", path=f"/task/{one}/cancel", body=b"") for one in NO_IDS)
    yield from (
        Probe(f"path {one}", "GET", one, body=b"")
        for one in (
            "/",
            "//status",
            "/.env",
            "/static/../.env",
            "/docs",
            "/redoc",
            "/TASK",
            "/status/",
            "/a.js.map",
            "*",
        )
    )
    yield from (
        Probe(f"query {one}", "GET", f"/history?{one}", body=b"")
        for one in (
            *("page=-1", "page=9223372036854775808", "page=0x1", "page=%d9%a1", "limit=1e9", "page=1&page=2", "x=1"),
            *("token={token}", "page=1%0a", "limit=", "page=" + "9" * 300, "&".join(f"a{n}=" for n in range(20))),
        )
    )
    yield Probe("form of another host", "GET", "http://evil.example/history", body=b"")
    yield Probe("form of this host", "GET", "http://127.0.0.1:{port}/history", body=b"")
    for one in ("a\tb", "\x1b[31m", "a b", "x" * 201, "é"):
        yield Probe(f"key {one!r}", headers=(("Idempotency-Key", one),))
    yield Probe("a length that lies", headers=(("Content-Length", "5"), ("Content-Length", "6")))
    yield Probe("a length and pieces", headers=(("Content-Length", "5"), ("Transfer-Encoding", "chunked")))
    for raw in (
        b"GET\r\n\r\n",
        b"GET /status\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
    ):
        yield Probe(f"raw {raw[:10]!r}", raw=raw)
    yield Probe("a long head", headers=(("X", "x" * 200_000),))
    yield Probe("many headers", headers=tuple((f"X-{number}", "x" * 100) for number in range(5000)))


def unknown() -> Iterator[Probe]:
    """Give requests without the right token: each path is refused alike."""
    paths = ("/history", "/openapi.json", "/task/task-x", "/task/task-x/debug", "/history/task-x", "/none", "/status/")
    yield from (Probe(f"no token {path}", "GET", path, body=b"", token="none") for path in paths)
    changes = ("/task", "/task/task-x/cancel", "/task/task-x/continue", "/task/task-x/end", "/shutdown", "/status")
    yield from (Probe(f"no token {path}", path=path, token="none") for path in changes)
    for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Api-Key", "Cookie", "X-Forwarded-Host"):
        yield Probe(f"only {name}", headers=((name, "127.0.0.1"),), token="none")
    yield from (Probe(f"token {one[:20]!r}", token=one) for one in ("wrong", "", "null", "x" * 5000, "é"))
    yield Probe("another scheme", headers=(("Authorization", "Basic e3Rva2VufQ=="),), token="none")


def _pieces(piece: bytes, count: int) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for _ in range(count)) + b"0\r\n\r\n"


def _is_refused(one: Probe, answer: bytes) -> bool:
    """Whether an answer refuses; what is no HTTP, or too much to be read, may get none."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    cut = bool(one.raw) or len(one.data(1, "x")) > _READ_AT_ONCE
    return (cut and answer == b"") or (found is not None and 400 <= int(found[1]) < 500)


def test_no_hostile_request_is_obeyed_and_none_learns_anything(served: Served) -> None:
    """S1, figure 6: at least 150 by TCP, and those about form by the socket too."""
    served.start()
    token = served.token
    asked = [*probes(), *unknown()]
    assert len({one.what + one.method for one in asked}) >= 150
    wrong: list[str] = []
    heard = b""
    for private in (False, True):
        for one in probes() if private else asked:
            if private and one.host == "localhost":
                continue  # the socket has no other name
            answer = served.raw(one.data(served.port, token), private=private)
            heard += answer
            if not _is_refused(one, answer):
                wrong.append(f"{one.what} ({'socket' if private else 'tcp'}): {answer[:200]!r}")
    assert not wrong, "\n".join(wrong)

    assert served.lab.swarm.tasks.list(finished=True) == ()
    assert served.begun() == []
    assert served.status()["state"] == "idle"
    log = (served.root / "agents/rev/agent.log").read_bytes()
    served.end()
    for place, text in (("answers", heard), ("log", log), ("stderr", served.said)):
        for secret in (b"Traceback", token.encode(), PROMPT.encode()):
            assert secret not in text, (place, secret)


def test_every_answer_says_that_no_page_may_have_it(served: Served) -> None:
    served.start()
    for path, token in (("/status", "none"), ("/history", "right"), ("/none", "none")):
        answer = served.raw(Probe("", "GET", path, body=b"", token=token).data(served.port, served.token)).lower()
        head = answer.partition(b"\r\n\r\n")[0]
        for line in (b"cache-control: no-store", b"x-content-type-options: nosniff", b"x-frame-options: deny"):
            assert line in head, path
        assert b"server:" not in head
        assert b"access-control" not in head
    silent = served.raw(Probe("", "HEAD", "/status", body=b"").data(served.port, served.token))
    assert silent.partition(b"\r\n\r\n")[2] == b""


def test_wrong_tokens_are_counted_by_who_names_them(served: Served) -> None:
    """S4: after some, even the right one is not heard from there; by the socket it is, and so is /status."""
    served.start()
    codes = [served.ask("GET", "/history", token="wrong" * 10)[0] for _ in range(60)]
    assert codes[0] == 401
    assert codes[-1] == 429
    assert set(codes) == {401, 429}
    assert served.ask("GET", "/history")[0] == 429
    assert served.status()["state"] == "idle"
    whole = Probe("", "GET", "/history", body=b"", token="none").data(served.port, served.token)
    assert served.raw(whole, private=True).startswith(b"HTTP/1.1 200 ")


def test_what_a_task_is_about_is_in_no_log(served: Served) -> None:
    served.start()
    task_id = served.submit(f"{PROMPT}\n\x1b[31m\u202e", env={"HARMLESS": "a-value-that-nobody-may-see"})
    served.until(task_id, "completed")
    wait_for(lambda: served.status()["state"] == "idle", "the agent idle again")
    log = (served.root / "agents/rev/agent.log").read_text()
    assert task_id in log
    served.end()
    for text in (log, served.said.decode()):
        assert PROMPT not in text
        assert "a-value-that" not in text
