"""Look who listens on ports, and which of them are servers of this swarm directory.

A request says nothing but a number, for `proof.py`.  Whoever does not answer as a server of agents does is passed over,
and what strangers say is cut to size.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.services import proof
from swarm.services.values import AGENT, KINDS, SILENT, Component

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: So long one port may take in all, and so many are asked at once.
SECONDS, AT_ONCE = 1.0, 200
_LARGEST = 1 << 18
_LONGEST_WORD = 64
LOOPBACK = "127.0.0.1"


class Address(NamedTuple):
    """Where a server may be: an address as numbers, and a port."""

    host: str
    port: int


def scan(addresses: Iterable[Address], token: bytes, *, seconds: float = SECONDS) -> tuple[Component, ...]:
    """Ask all addresses at once; return the servers among them.

    Args:
        token: of this swarm directory; it is not sent. Empty: none of them can be ours.
        seconds: for one address.
    """
    return asyncio.run(_scan(list(addresses), token, seconds))


async def _scan(addresses: Sequence[Address], token: bytes, seconds: float) -> tuple[Component, ...]:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(address: Address) -> Component | None:
        async with room:
            for secured in (False, True):
                try:
                    async with asyncio.timeout(seconds):
                        return await _look(address, token, secured=secured)
                except (OSError, http.client.HTTPException, ValueError, RecursionError, EOFError) as problem:
                    if isinstance(problem, TimeoutError | ConnectionRefusedError):
                        return None
            return None

    found = await asyncio.gather(*(one(address) for address in addresses))
    return tuple(component for component in found if component is not None)


async def _look(address: Address, token: bytes, *, secured: bool) -> Component | None:
    """Ask one address.

    Raises:
        OSError, http.client.HTTPException, ValueError: it does not answer as a server does.
    """
    nonce = proof.new_nonce()
    asked = (
        f"GET /status HTTP/1.1\r\nHost: {address.host}:{address.port}\r\nAccept: application/json\r\n"
        f"{proof.HEADER}: {nonce}\r\nConnection: close\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection(
        address.host, address.port, ssl=proof.unchecked() if secured else None
    )
    try:
        writer.write(asked.encode("ascii"))
        answer = await reader.read(_LARGEST)
        while piece := await reader.read(_LARGEST):
            answer += piece
            if len(answer) > _LARGEST:
                return None
        fingerprint = proof.fingerprint_of(writer.get_extra_info("ssl_object"))
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            writer.transport.abort()
    said = _json_of(answer)
    here = proof.fits(said.get("proof"), token, nonce, *address, fingerprint)
    return component_of(said, f"http{'s' if secured else ''}://{address.host}:{address.port}", is_ours=here)


class _Given:
    """Bytes that were read already, for the standard library's reader of answers."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self._data)


def _json_of(answer: bytes) -> dict[str, Any]:
    response = http.client.HTTPResponse(_Given(answer))  # type: ignore[arg-type]  # all that it takes of a socket
    response.begin()
    said = json.loads(response.read())
    if not 200 <= response.status < 300 or not isinstance(said, dict):
        raise ValueError("no status")
    return said


def component_of(said: dict[str, Any], url: str, *, is_ours: bool) -> Component | None:
    """Return what a server says it is; None: it is no component. Of a stranger only plain words are kept."""
    roles = said.get("roles")  # of older ones; agents of other makers say no type
    kind = said.get("type") or (roles[0] if isinstance(roles, list) and roles else "")
    if kind not in KINDS or not isinstance(said.get("state"), str):
        return None
    name = said.get("name")
    return Component(
        kind,
        _word(name) if isinstance(name, str) else "",
        _word(said["state"]) or SILENT,
        url=url,
        says=said if is_ours else {"interfaces": _interfaces(said, kind)},
        is_ours=is_ours,
    )


def _interfaces(said: dict[str, Any], kind: str) -> list[str]:
    given = said.get("interfaces")
    if isinstance(given, list):
        return [one for one in given[:10] if one in ("statusable", "taskable", "observable", "configurable")]
    return ["statusable", "taskable"] if kind == AGENT else ["statusable"]


def _word(text: str) -> str:
    return "".join(one for one in text[:_LONGEST_WORD] if one.isprintable())
