"""The proxy: `CONNECT` to allowed hosts for TLS, and plain HTTP to those that are allowed so.

    client ── CONNECT name:port ──► allowed? ── look up ──► address public? ── dial it ──► 200
    client ── TLS hello ──────────► names the same host? ── hand on, both ways, until one ends

What is not allowed is not looked up, so that no name carries a word out.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import h11

from swarm.project.config.hosts import HTTP
from swarm.sandbox.network import hello, wire

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from swarm.machine.run_folder.decisions import Decisions
    from swarm.sandbox.network.policy import Policy

    Lookup = Callable[[str, int], Awaitable[list[str]]]

_DIAL_SECONDS = 20.0
#: Seconds without a byte in either direction.
_QUIET_SECONDS = 900.0
_MOST = 1 << 30
_PATIENCE = 300.0


async def look_up(name: str, port: int) -> list[str]:
    """Return the addresses of a name."""
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


class Proxy:
    """Serves one agent's requests to hosts."""

    def __init__(self, policy: Policy, log: Decisions, lookup: Lookup = look_up) -> None:
        self._policy = policy
        self._log = log
        self._lookup = lookup

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: one request."""
        async with wire.one_request(reader, writer, self._log, "proxy", "the host") as client:
            await self._one(client)

    async def _one(self, client: wire.Peer) -> None:
        head = await wire.request(client)
        target = head.target.decode("ascii", "replace")
        if head.method == b"CONNECT":
            await self._connect(client, head, target)
        else:
            await self._plain(client, head, target)

    def _refuse(self, status: int, target: str, reason: str) -> wire.Refusal:
        self._log.note("proxy", target, reason, allowed=False)
        return wire.Refusal(status, f"swarm's sandbox does not allow {target or 'this'}: {reason}")

    # --- CONNECT --------------------------------------------------------------------------------

    async def _connect(self, client: wire.Peer, head: h11.Request, target: str) -> None:
        host, port = self._authority(target)
        if any(name in (b"content-length", b"transfer-encoding") for name, _ in head.headers):
            raise self._refuse(400, target, "a CONNECT has no body")
        await client.event(wire.HEAD_SECONDS)  # its end
        reader, writer = await self._dial(host, port, target)
        try:
            await client.send(h11.Response(status_code=200, headers=[], reason=b"OK"))
            first = await self._hello(client, host, target)
            self._log.note("proxy", target, "connected", allowed=True)
            writer.write(first)
            await _both_ways(client, reader, writer)
        finally:
            writer.close()

    def _authority(self, target: str) -> tuple[str, int]:
        host, colon, digits = target.rpartition(":")
        if not (colon and digits.isascii() and digits.isdigit() and len(digits) <= 5 and 0 < int(digits) < 1 << 16):
            raise self._refuse(400, target, "CONNECT wants a name and a port")
        return host, int(digits)

    async def _hello(self, client: wire.Peer, host: str, target: str) -> bytes:
        """Return the client's first words; they are no secret way to another host."""
        data = bytes(client.http.trailing_data[0])
        try:
            async with asyncio.timeout(wire.HEAD_SECONDS):
                while (found := hello.read(data)) is None:
                    data += await client.reader.read(wire.PIECE) or hello.nothing()
        except hello.NotTls as problem:
            raise self._cut(target, f"no TLS: {problem}") from None
        except TimeoutError:
            raise self._cut(target, "no TLS: nothing was said in time") from None
        if found.name != host.lower().removesuffix("."):
            raise self._cut(target, f"TLS asks for another host: {found.name or 'none'}")
        if found.hidden:
            raise self._cut(target, "TLS may ask for another host: its hello is encrypted (ECH)")
        return data

    def _cut(self, target: str, reason: str) -> EOFError:
        self._log.note("proxy", target, reason, allowed=False)
        return EOFError(reason)

    # --- plain HTTP -----------------------------------------------------------------------------

    async def _plain(self, client: wire.Peer, head: h11.Request, target: str) -> None:
        host, port, path = self._parts(target)
        where = f"http://{host}:{port}"
        reader, writer = await self._dial(host, port, where)
        try:
            self._log.note("proxy", where, head.method.decode("ascii", "replace"), allowed=True)
            name = host.encode("ascii") + (b"" if port == HTTP else b":%d" % port)
            headers = [(b"host", name), *wire.passed_on(head.headers, b"host"), *wire.framing(head.headers)]
            asked = h11.Request(method=head.method, target=path, headers=[*headers, (b"connection", b"close")])
            server = wire.Peer(reader, writer, asks=False)
            await wire.forward(client, server, asked, patience=_PATIENCE, most=_MOST)
        finally:
            writer.close()

    def _parts(self, target: str) -> tuple[str, int, str]:
        try:
            url = urlsplit(target)
            host, port = url.hostname or "", url.port or HTTP
        except ValueError:
            raise self._refuse(400, target, "is no address of a page") from None
        if url.scheme != "http" or not host:
            raise self._refuse(400, target, "the proxy wants http://HOST/… or CONNECT HOST:PORT")
        if "@" in url.netloc or "#" in target or "\\" in target:
            raise self._refuse(400, target, "could be read in two ways")
        return host, port, target[target.index("//") + 2 + len(url.netloc) :] or "/"

    # --- dialling -------------------------------------------------------------------------------

    async def _dial(self, host: str, port: int, target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to an allowed host by an address that was checked."""
        verdict = self._policy.decide(host, port)
        if not verdict.allowed:
            raise self._refuse(403, target, verdict.reason)
        try:
            async with asyncio.timeout(_DIAL_SECONDS):
                addresses = await self._lookup(host, port)
        except (OSError, UnicodeError, TimeoutError):
            raise self._refuse(502, target, "its name is not known") from None
        checked = [(address, self._policy.may_dial(address)) for address in addresses]
        reason = next((found.reason for _, found in checked if not found.allowed), "it has no address")
        for address in (address for address, found in checked if found.allowed):
            reason = "it does not answer"
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_DIAL_SECONDS):
                    return await asyncio.open_connection(address, port, flags=socket.AI_NUMERICHOST)
        raise self._refuse(502 if reason == "it does not answer" else 403, target, reason)


async def _both_ways(client: wire.Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand bytes on until both sides have ended, or nothing was said for long."""
    last = asyncio.get_running_loop().time()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        nonlocal last
        while piece := await source.read(wire.PIECE):
            last = asyncio.get_running_loop().time()
            sink.write(piece)
            await sink.drain()
        with contextlib.suppress(OSError):
            sink.write_eof()

    tasks = [asyncio.create_task(pump(client.reader, writer)), asyncio.create_task(pump(reader, client.writer))]
    try:
        waiting = set(tasks)
        while waiting:
            left = last + _QUIET_SECONDS - asyncio.get_running_loop().time()
            done, waiting = await asyncio.wait(waiting, timeout=max(left, 0), return_when=asyncio.FIRST_EXCEPTION)
            if left <= 0 or any(task.exception() for task in done):
                return
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
