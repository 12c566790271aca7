"""HTTP/1.1 over a connection, by h11: every message is parsed, and written anew; none is handed on as bytes."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

import h11

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from swarm.machine.run_folder.decisions import Decisions

Headers = list[tuple[bytes, bytes]]
#: The most bytes before a message's body.
HEAD_LIMIT = 64 << 10
PIECE = 1 << 16
#: Seconds for the head of a request, and for each further piece of a message.
HEAD_SECONDS, PIECE_SECONDS = 20.0, 60.0
_LAST_SECONDS, _LAST_PIECES = 1.0, 64
#: Headers about one connection; they are not handed on.
_OF_CONNECTION = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization", b"te"),
        *(b"trailer", b"transfer-encoding", b"upgrade", b"http2-settings", b"expect", b"alt-svc"),
    }
)
_FRAMING = (b"content-length", b"transfer-encoding")


class Refusal(Exception):
    """A request that is not obeyed: the status of the answer, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Peer:
    """One end of a connection.

    Args:
        asks: it sends requests; else it answers them.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, asks: bool) -> None:
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(h11.SERVER if asks else h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)

    async def event(self, seconds: float) -> h11.Event:
        """Return the next event.

        Raises:
            TimeoutError: it did not come in time.
            h11.RemoteProtocolError: the other end does not speak HTTP.
        """
        async with asyncio.timeout(seconds):
            while True:
                found = self.http.next_event()
                if found is h11.NEED_DATA:
                    self.http.receive_data(await self.reader.read(PIECE))
                elif found is h11.PAUSED:
                    return h11.EndOfMessage()
                else:
                    assert isinstance(found, h11.Event)  # noqa: S101  # nothing else is left
                    return found

    async def send(self, *events: h11.Event) -> None:
        """Send events; a peer that does not take them in time loses its connection."""
        data = b"".join(self.http.send(event) or b"" for event in events)
        self.writer.write(data)
        async with asyncio.timeout(PIECE_SECONDS):
            await self.writer.drain()

    async def pieces(self, seconds: float) -> AsyncIterator[bytes]:
        """Give the body of the message whose head was read.

        Raises:
            TimeoutError, h11.RemoteProtocolError
        """
        while True:
            found = await self.event(seconds)
            if isinstance(found, h11.Data):
                yield bytes(found.data)
            elif isinstance(found, h11.EndOfMessage):
                return
            else:
                raise h11.RemoteProtocolError("the message is cut short")

    async def answer(self, status: int, reason: str) -> None:
        """Answer a request in words; nothing is read from this peer afterwards."""
        if self.http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = json.dumps({"type": "error", "error": {"type": "swarm_sandbox", "message": reason}}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        with contextlib.suppress(h11.LocalProtocolError, OSError, TimeoutError):
            await self.send(h11.Response(status_code=status, headers=headers, reason=b""), h11.Data(data=body))

    async def close(self) -> None:
        """End the connection; what the other end still says is taken, or it would not hear the answer."""
        try:
            self.writer.write_eof()
            async with asyncio.timeout(_LAST_SECONDS):
                for _ in range(_LAST_PIECES):
                    if not await self.reader.read(PIECE):
                        break
        except (OSError, RuntimeError):  # it is gone
            pass
        finally:
            self.writer.close()


@contextlib.asynccontextmanager
async def one_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, log: Decisions, by: str, other: str
) -> AsyncIterator[Peer]:
    """Give the client of a connection, and answer it when something goes wrong.

    Args:
        other: what is on the other side, in words.
    """
    client = Peer(reader, writer, asks=True)
    try:
        yield client
    except Refusal as refusal:
        await client.answer(refusal.status, refusal.reason)
    except h11.RemoteProtocolError as error:
        if client.http.their_state is h11.ERROR:
            log.note(by, "", f"no HTTP: {error}", allowed=False)
            await client.answer(400, "this is no request")
        else:
            await client.answer(502, f"{other} does not speak HTTP")
    except TimeoutError:
        await client.answer(504, f"{other} did not answer in time, or the request took too long")
    except (OSError, EOFError, h11.LocalProtocolError):
        await client.answer(502, f"{other} cannot be reached")
    finally:
        await client.close()


async def request(peer: Peer) -> h11.Request:
    """Return a client's request, if it is one of a kind that has one meaning only.

    Raises:
        Refusal: it could be read in two ways.
        TimeoutError, h11.RemoteProtocolError
    """
    found = await peer.event(HEAD_SECONDS)
    if not isinstance(found, h11.Request):
        raise EOFError  # noqa: TRY004  # it went without a word
    if len(found.target) + sum(len(name) + len(value) for name, value in found.headers) > HEAD_LIMIT:
        raise Refusal(431, "the request's headers are too long")
    names = [name for name, _ in found.headers]
    if sum(names.count(name) for name in _FRAMING) > 1:
        raise Refusal(400, "the request says its length in two ways")
    if names.count(b"host") > 1:
        raise Refusal(400, "the request names two hosts")
    return found


def passed_on(headers: Iterable[tuple[bytes, bytes]], *without: bytes) -> Headers:
    """Return the headers that go to the other side."""
    found = list(headers)
    lists = [value.lower().split(b",") for name, value in found if name == b"connection"]
    named = {word.strip() for words in lists for word in words} - {b"content-length", b"host"}
    dropped = {*_OF_CONNECTION, *named, *without}
    return [(bytes(name), bytes(value)) for name, value in found if name not in dropped]


def framing(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return how a message's length is said when it is sent on: in pieces, where it was not said before."""
    return [(b"transfer-encoding", b"chunked")] if any(name == b"transfer-encoding" for name, _ in headers) else []


async def forward(client: Peer, server: Peer, head: h11.Request, *, patience: float, most: int) -> int:
    """Send a request to a server and its answer back; return the answer's status.

    Args:
        patience: seconds for the answer to begin, and for each piece of it.
        most: bytes of the request's body.

    Raises:
        Refusal: the request is too large.
        TimeoutError, h11.RemoteProtocolError, OSError: of either side.
    """
    await server.send(head)
    if client.http.they_are_waiting_for_100_continue:
        await client.send(h11.InformationalResponse(status_code=100, headers=[]))
    size = 0
    async for piece in client.pieces(PIECE_SECONDS):
        size += len(piece)
        if size > most:
            raise Refusal(413, f"the request has more than {most} bytes")
        await server.send(h11.Data(data=piece))
    await server.send(h11.EndOfMessage())
    found = await server.event(patience)
    while isinstance(found, h11.InformationalResponse):
        if found.status_code == 101:
            raise h11.RemoteProtocolError("the server changed the protocol")
        found = await server.event(patience)
    if not isinstance(found, h11.Response):
        raise h11.RemoteProtocolError("the server gave no answer")
    headers = [*passed_on(found.headers, b"set-cookie"), *framing(found.headers), (b"connection", b"close")]
    await client.send(h11.Response(status_code=found.status_code, headers=headers, reason=found.reason))
    async for piece in server.pieces(patience):
        await client.send(h11.Data(data=piece))
    await client.send(h11.EndOfMessage())
    return found.status_code
