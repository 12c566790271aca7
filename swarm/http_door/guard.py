"""Who may ask, and what a request may look like; everything is refused that is not shown to be right.

The order is that of what an attacker can do: names of other hosts, web pages, tokens, then the request itself.  Nothing
of a request is read before its sender is known, and nothing of it is printed.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import re
import socket
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

from swarm.api import agent_server
from swarm.http_door.failures import Failure
from swarm.http_door.throttle import Rate, Throttle
from swarm.listening import answers, places

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping, MutableMapping

    from swarm.api.agent_server import Log

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

_REPORTS = "/otlp/"
#: Reports of programs in a minute: one sends a few.
_MOST_REPORTS = 600
_LARGEST_BODY = 1 << 20
_BODY_SECONDS = 10.0
_LONGEST_GRANT = 200
_LONGEST_QUERY, _LARGEST_HEAD = 400, 1 << 15
NUMBER = re.compile(r"[0-9]{1,9}")
#: On each answer: it is for programs, and no page may show, keep or read it.
_HEADERS = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)


class Served(Protocol):
    """What the guard needs of a server.

    Attributes:
        token: what requests by TCP have to name.
        otlp_token: what reports of programs have to name; empty: it takes none.
        certificate: with which it speaks TLS; None: it does not.
        log: where it says what failed.
    """

    token: bytes
    otlp_token: bytes
    certificate: Any
    log: Log


class Rules(NamedTuple):
    """What a server lets through.

    Attributes:
        parameters: what may stand in a query, and of what form each is.
        methods: all that are known.
        open: requests that need no token.
        browser_of: the id of the browser of which a token is; empty: of none.
    """

    parameters: Mapping[str, re.Pattern[str]]
    methods: tuple[str, ...] = ("GET", "POST")
    open: frozenset[tuple[str, str]] = frozenset({("GET", "/status")})
    browser_of: Callable[[bytes], str] = lambda _token: ""


#: Of a served agent.
AGENT = Rules(dict.fromkeys(("page", "limit", "detail", "wait"), NUMBER), ("GET", "POST", "PUT"))


class Caller:
    """Who makes a request: from the private socket, or by TCP.

    Attributes:
        is_private: it came by the socket that only this user can reach.
        has_token: it is known by that socket, or by its token.
        reached_at: the address of ours at which it came.
        nonce: the number that it sent, for the proof of whose server this is; empty: none.
        browser: the browser of which that token is; empty: it is the token of the server.
        grant: the token of a grant that the request shows; empty: it shows none.
    """

    def __init__(self, transport: Any) -> None:
        self._socket = transport.get_extra_info("socket")
        self.is_private = self._socket.family == socket.AF_UNIX
        self.has_token = False
        self.browser = self.grant = ""
        peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._ports = (0, 0) if self.is_private else (peer[1], here[1])
        self._hosts = ("", "") if self.is_private else (peer[0], here[0])
        self.reached_at: tuple[str, int] = ("", 0) if self.is_private else here[:2]
        self.nonce = ""

    def pids(self) -> list[int] | None:
        """Return the processes at the other end; None where this machine cannot tell. It takes a moment."""
        if not self.is_private:
            return (
                agent_server.connected(self._ports[0], self._ports[1], self._hosts)
                if places.is_here(self._hosts[0])
                else None
            )
        pid = places.peer(self._socket)
        return [pid] if pid else []

    def is_ours(self) -> bool:
        """Whether a program of this user is at the other end, as far as that is seen."""
        if self.is_private:
            return places.peer(self._socket) != 0
        return places.is_here(self._hosts[0]) and agent_server.is_ours(self._ports[0], self._ports[1], self._hosts)

    @property
    def is_near(self) -> bool:
        """Whether it is on this machine."""
        return self.is_private or places.is_here(self._hosts[0])

    def source(self) -> Hashable:
        """Return what wrong tokens are counted by: the session of processes at the other end. It takes a moment.

        Of another machine it is that machine.
        """
        for pid in self.pids() or ():
            try:
                return os.getsid(pid)
            except OSError:
                continue
        return "unseen" if self.is_private or places.is_loopback(self._hosts[0]) else self._hosts[0]


class Guard:
    """Lets a request through to the application when its sender may make it."""

    def __init__(self, app: Callable[..., Awaitable[None]], server: Served, port: int, rules: Rules = AGENT) -> None:
        self._rules = rules
        self._report_token = server.otlp_token
        self._app = app
        self._server = server
        self._throttle = Throttle()
        self._reports = Rate(_MOST_REPORTS)
        self._callers: WeakKeyDictionary[Any, Caller] = WeakKeyDictionary()
        certificate = server.certificate
        names = ("127.0.0.1", "localhost") if certificate is None else certificate.names
        self._hosts = {f"{name}:{port}".encode() for name in names}
        self._origins = {(b"https://" if certificate is not None else b"http://") + host for host in self._hosts}
        self._local = {b"localhost", f"localhost:{port}".encode(), f"127.0.0.1:{port}".encode()}

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        begun = False

        async def sealed(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            caller = await self._admit(scope)
            body = await _body(scope, receive)
            scope["state"]["caller"] = caller
            await self._app(scope, _again(body, receive), sealed)
        except Failure as failure:
            await _answer(scope, sealed, failure)
        except Exception as problem:  # noqa: BLE001  # nothing leaves as a traceback
            self._server.log.say("error", f"a request failed: {type(problem).__name__}")
            if not begun:
                await _answer(scope, sealed, Failure("internal_error", "swarm could not do it"))

    async def _admit(self, scope: Any) -> Caller:
        """Return who makes a request that may be looked at.

        Raises:
            Failure
        """
        transport = scope["state"]["connection"]
        caller = self._callers.get(transport) or self._callers.setdefault(transport, Caller(transport))
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _LARGEST_HEAD:
            raise Failure("too_large", f"a head may have {_LARGEST_HEAD} bytes")
        self._check_origin(caller, headers)
        methods = self._rules.methods
        if scope["method"] not in methods:
            raise Failure("method_not_allowed", f"only {', '.join(methods)} are known")
        is_report = bool(self._report_token) and str(scope["path"]).startswith(_REPORTS)
        caller.browser = ""
        caller.has_token = await self._has_token(caller, headers, self._report_token if is_report else b"")
        if is_report and not self._reports.allows():
            raise Failure("rate_limited", "too many reports came within a minute")
        if not caller.has_token and (scope["method"], scope["path"]) not in self._rules.open:
            raise Failure("unauthorized", "name the token: Authorization: Bearer …")
        nonces = headers.get(b"swarm-nonce", [])
        if len(nonces) > 1 or not all(agent_server.is_nonce(one) for one in nonces):
            raise Failure("validation_error", "Swarm-Nonce: 32 hexadecimal digits")
        caller.nonce = nonces[0].decode("ascii") if nonces else ""
        caller.grant = _grant(headers)
        _check_form(scope, headers, self._rules.parameters)
        return caller

    def _check_origin(self, caller: Caller, headers: dict[bytes, list[bytes]]) -> None:
        """Refuse a request to another host, and one of a web page."""
        hosts = headers.get(b"host", [])
        known = self._local if caller.is_private else self._hosts
        if len(hosts) != 1 or hosts[0] not in known:
            raise Failure("misdirected", "this server has another name")
        if any(origin not in self._origins for origin in headers.get(b"origin", [])):
            raise Failure("forbidden", "no web page may call this server")
        if any(site not in (b"same-origin", b"none") for site in headers.get(b"sec-fetch-site", [])):
            raise Failure("forbidden", "no web page may call this server")
        if b"upgrade" in headers or b"http2-settings" in headers:
            raise Failure("validation_error", "this server speaks HTTP/1.1 alone")

    async def _has_token(self, caller: Caller, headers: dict[bytes, list[bytes]], only: bytes) -> bool:
        """Whether a request names the token: that of the server, a browser's, or *only* this one where one is given."""
        given = headers.get(b"authorization", [])
        if caller.is_private:
            if places.peer(caller._socket) == 0:  # noqa: SLF001  # the caller of this file
                raise Failure("forbidden", "this socket is another user's")
            return True
        if not given:
            return False
        if not self._throttle.is_calm and self._throttle.refuses(await asyncio.to_thread(caller.source)):
            raise Failure("rate_limited", "too many wrong tokens came from you; wait a minute")
        kind, _, token = given[0].partition(b" ")
        if len(given) == 1 and kind.lower() == b"bearer":
            if hmac.compare_digest(token.strip(), only or self._server.token):
                return True
            caller.browser = "" if only else self._rules.browser_of(token.strip())
            if caller.browser:
                return True
        self._throttle.note(await asyncio.to_thread(caller.source))
        raise Failure("unauthorized", "this is not the token of this server")


def _grant(headers: dict[bytes, list[bytes]]) -> str:
    """Return the token of the grant that a request shows."""
    given = headers.get(b"swarm-grant", [])
    if len(given) > 1 or any(not one.isascii() or len(one) > _LONGEST_GRANT for one in given):
        raise Failure("validation_error", "Swarm-Grant holds the token of one grant")
    return given[0].decode("ascii").strip() if given else ""


def _check_form(scope: Any, headers: dict[bytes, list[bytes]], parameters: Mapping[str, re.Pattern[str]]) -> None:
    """Refuse a request whose form is not that of this API, before its body is read."""
    query = scope.get("query_string", b"")
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=10)
    except (ValueError, UnicodeDecodeError):
        raise Failure("validation_error", "the query cannot be read") from None
    good = all(name in parameters and parameters[name].fullmatch(value) for name, value in pairs)
    if len(query) > _LONGEST_QUERY or len({name for name, _ in pairs}) != len(pairs) or not good:
        raise Failure("validation_error", f"the query may have {', '.join(parameters)}, each once, each of its form")
    lengths = headers.get(b"content-length", [])
    length = lengths[0] if lengths else b"0"
    if not length.isdigit() or len(length) > 9 or int(length) > _LARGEST_BODY:
        raise Failure("too_large", f"a body may have {_LARGEST_BODY} bytes")
    has_body = int(length) > 0 or b"transfer-encoding" in headers
    if scope["method"] == "GET" and has_body:
        raise Failure("validation_error", "GET takes no body")
    if b"content-encoding" in headers:
        raise Failure("unsupported_media_type", "a body may not be packed")
    kinds = headers.get(b"content-type", [])
    if has_body and (len(kinds) != 1 or not _is_json(kinds[0])):
        raise Failure("unsupported_media_type", "a body is JSON: Content-Type: application/json")


def _is_json(kind: bytes) -> bool:
    plain = kind.lower().replace(b" ", b"").replace(b'"', b"")
    return plain in (b"application/json", b"application/json;charset=utf-8")


async def _body(scope: Any, receive: Receive) -> bytes:
    """Return the whole body of a request, in time, and JSON that means one thing alone."""
    if scope["method"] == "GET":
        return b""
    data: bytes = b""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while True:
                piece = await receive()
                if piece["type"] != "http.request":
                    raise Failure("validation_error", "the connection ended within the body")
                data += piece.get("body", b"")
                if len(data) > _LARGEST_BODY:
                    raise Failure("too_large", f"a body may have {_LARGEST_BODY} bytes")
                if not piece.get("more_body", False):
                    break
    except TimeoutError:
        raise Failure("request_timeout", "the body did not come in time") from None
    if data:
        _check_json(data)
    return data


def _check_json(data: bytes) -> None:
    try:
        said = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number)
        json.dumps(said, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        raise Failure("validation_error", "the body is no JSON, or says one thing twice") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _no_number(_word: str) -> NoReturn:
    raise ValueError


def _again(body: bytes, receive: Receive) -> Receive:
    """Give the body that was read; after it only the end of the connection comes."""
    given = False

    async def next_piece() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_piece


async def _answer(scope: Any, send: Send, failure: Failure) -> None:
    silent = scope["method"] == "HEAD"
    headers = [(name.encode(), value.encode()) for name, value in failure.headers.items()]
    await answers.close_with(send, failure.status, failure.said, headers, silent=silent)
