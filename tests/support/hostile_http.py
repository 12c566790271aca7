"""Hostile requests by HTTP: every rule of the guard, as requests that break it. None is to be obeyed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    path: str = ""
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


class Paths(NamedTuple):
    """The paths of a server.

    Attributes:
        post: takes ``BODY``.
        looks, changes: want an id, at ``{}``.
        unknown, unknown_changes: want a token.
    """

    post: str
    looks: tuple[str, ...]
    changes: tuple[str, ...]
    unknown: tuple[str, ...]
    unknown_changes: tuple[str, ...]


AGENT = Paths(
    "/task",
    ("/task/{}", "/task/{}/debug"),
    ("/task/{}/cancel",),
    ("/history", "/openapi.json", "/task/task-x", "/task/task-x/debug", "/history/task-x", "/none", "/status/"),
    ("/task", "/task/task-x/cancel", "/task/task-x/continue", "/task/task-x/end", "/shutdown", "/status"),
)


def probes(paths: Paths) -> Iterator[Probe]:
    """Give requests with the right token that are wrong otherwise."""
    yield from (one if one.path else one._replace(path=paths.post) for one in _probes(paths))


def _probes(known: Paths) -> Iterator[Probe]:
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
    yield from (Probe(f"method {one}", one, path, body=b"") for one in methods for path in ("", "/status"))
    yield from (Probe(f"id {one}", "GET", path.format(one), body=b"") for one in NO_IDS for path in known.looks)
    yield from (Probe(f"change {one}", path=path.format(one), body=b"") for one in NO_IDS for path in known.changes)
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
            "/TASKS",
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


def unknown(known: Paths) -> Iterator[Probe]:
    """Give requests without the right token: each path is refused alike."""
    yield from (Probe(f"no token {path}", "GET", path, body=b"", token="none") for path in known.unknown)
    yield from (Probe(f"no token {path}", path=path, token="none") for path in known.unknown_changes)
    for name in ("X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Api-Key", "Cookie", "X-Forwarded-Host"):
        yield Probe(f"only {name}", path=known.post, headers=((name, "127.0.0.1"),), token="none")
    yield from (
        Probe(f"token {one[:20]!r}", path=known.post, token=one) for one in ("wrong", "", "null", "x" * 5000, "é")
    )
    yield Probe("another scheme", path=known.post, headers=(("Authorization", "Basic e3Rva2VufQ=="),), token="none")


def _pieces(piece: bytes, count: int) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for _ in range(count)) + b"0\r\n\r\n"


def is_refused(one: Probe, answer: bytes) -> bool:
    """Whether an answer refuses; what is no HTTP, or too much to be read, may get none."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    cut = bool(one.raw) or len(one.data(1, "x")) > _READ_AT_ONCE
    return (cut and answer == b"") or (found is not None and 400 <= int(found[1]) < 500)
