"""The stand-in itself: one HTTP server on loopback for all the APIs, with a token of its own.

A script belongs to every conversation that holds its word (in the role's text, in the task); scripts are
looked through in the order they were given.  Without a script, and for the programs' little questions in
between, the answer is a plain text.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import select
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, cast

from swarm.testing.api import anthropic, google, openai
from swarm.testing.api.script import Request, Turn, say
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

_LOOK = 0.1


class Api:
    """A server that answers by scripts and remembers the requests. A context manager.

    Attributes:
        token: what every request must carry as its key.
        url: where it is, without a slash at the end.
        otherwise: the answer where no script has one.
    """

    def __init__(self) -> None:
        self.token = f"sk-script-{secrets.token_hex(24)}"
        self.otherwise = say("All done.")
        self._scripts: dict[str, list[Turn]] = {}
        self._requests: list[Request] = []
        self._answers: list[tuple[Request, Turn]] = []
        self._gates: set[str] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the server; hanging requests are released."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    # --- for the test ------------------------------------------------------------------------------

    def script(self, word: str, *turns: Turn) -> None:
        """Answer conversations that hold this word with these turns, one after the other."""
        with self._changed:
            self._scripts.setdefault(word, []).extend(turns)

    def open(self, gate: str) -> None:
        """Let an answer go that is held."""
        with self._changed:
            self._gates.add(gate)
            self._changed.notify_all()

    def requests(self, word: str = "", *, main: bool = True) -> list[Request]:
        """Return the requests so far.

        Args:
            word: only conversations that hold it.
            main: without the programs' little questions.
        """
        with self._changed:
            return [r for r in self._requests if (r.main or not main) and word in r.text]

    def heard(self, word: str, deadline: float = 180) -> Request:
        """Wait for a request whose newest text holds a word."""
        found: list[Request] = []

        def there() -> bool:
            found[:] = [r for r in self.requests() if any(word in text for text in r.said)]
            return bool(found)

        try:
            wait_for(there, f"a request with {word!r}", deadline)
        except AssertionError as error:
            raise AssertionError(f"{error}; asked so far: {[r.path for r in self.requests(main=False)]}") from None
        return found[0]

    def hears(self, word: str, deadline: float) -> bool:
        """Wait for such a request; False: there was none in time."""
        try:
            self.heard(word, deadline)
        except AssertionError:
            return False
        return True

    def counted(self) -> tuple[int, int, int, int]:
        """Return the usage reported in all conversations: answers, tokens read, from the cache, written."""
        with self._changed:
            told = [turn for request, turn in self._answers if request.main and turn.status == 200]
        read, written = (sum(turn.tokens[one] for turn in told) for one in (0, 1))
        return len(told), read, sum(turn.cached for turn in told), written

    def left(self, word: str) -> int:
        """Return how many turns of a script were not used."""
        with self._changed:
            return len(self._scripts.get(word, []))

    # --- for the server ----------------------------------------------------------------------------

    def answer_for(self, request: Request) -> Turn:
        """Record a request and return its answer."""
        with self._changed:
            word = next((w for w in self._scripts if request.main and w in request.text), "")
            self._requests.append(replace(request, conversation=word))
            turns = self._scripts.get(word)
            turn = turns.pop(0) if turns else self.otherwise
            self._answers.append((request, turn))
            return turn

    def waits(self, turn: Turn, connection: Any) -> bool:
        """Wait as a turn says; False once the client is gone."""
        until = time.monotonic() + turn.delay
        while not self._closed and _is_open(connection):
            if not turn.hang and time.monotonic() >= until and (not turn.gate or turn.gate in self._gates):
                return True
            with self._changed:
                self._changed.wait(_LOOK)
        return False


def _is_open(connection: Any) -> bool:
    readable, _, _ = select.select([connection], [], [], 0)
    return not readable or bool(connection.recv(1, 2))  # 2: look only (MSG_PEEK)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    api: Api


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._json(200, {})

    def do_GET(self) -> None:
        self._other()

    def do_POST(self) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self._post()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    @property
    def _api(self) -> Api:
        return cast("_Server", self.server).api

    def _other(self) -> None:
        self._api.answer_for(Request(self.command, self.path))
        self._json(404, {"error": {"message": "not scripted", "type": "not_found"}})

    def _post(self) -> None:
        body = self._body()
        protocol = _protocol(self.path)
        if protocol is None:
            return self._other()
        if not self._knows_token():
            return self._json(401, protocol.error(Turn("the token is wrong", status=401)))
        request = protocol.read(self.command, self.path, body)
        turn = self._api.answer_for(request)
        if not self._api.waits(turn, self.connection):
            self.close_connection = True
            return None
        if turn.status != 200:
            return self._json(turn.status, protocol.error(turn))
        if body.get("stream") or "streamGenerateContent" in self.path:
            return self._events(protocol.stream(request, turn))
        return self._json(200, protocol.whole(request, turn))

    def _body(self) -> dict[str, Any]:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            found = json.loads(data)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _knows_token(self) -> bool:
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        given = (bearer, self.headers.get("x-api-key"), self.headers.get("x-goog-api-key"))
        return self._api.token in given

    def _json(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def _events(self, events: Iterator[tuple[str, dict[str, Any]]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number, (name, data) in enumerate(events):
            head = f"event: {name}\n" if name else ""
            body = {"type": name, "sequence_number": number, **data} if name else data
            self.wfile.write(f"{head}data: {json.dumps(body)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True


def _protocol(path: str) -> ModuleType | None:
    if "/messages" in path:
        return anthropic
    if path.partition("?")[0].endswith("/responses"):
        return openai
    return google if "/models/" in path and ":" in path else None
