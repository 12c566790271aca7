"""The door to a model: the few requests that an agent program needs, with the credential added outside of the box.

An API that is reached through the proxy is a way out: with a key of somebody else's an agent can put files there.  The
door drops what the agent says of keys, lets a short list of requests through, and adds the user's credential itself.
So the credential is never in the box.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import h11

from swarm.machine import records
from swarm.sandbox.network import wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.machine.run_folder.decisions import Decisions
    from swarm.programs.model_access import Service, TokenFile

_DIAL_SECONDS = 30.0
#: A model may think for long before it says the first word.
_PATIENCE = 900.0
_MOST = 64 << 20
#: What of the agent's headers the model gets: nothing of keys, accounts and cookies.
_PASSED = re.compile(
    rb"accept|accept-encoding|accept-language|content-type|content-encoding|content-length|user-agent|x-app"
    rb"|anthropic-(?:version|beta|dangerous-direct-browser-access)|x-stainless-[a-z-]+|openai-beta|originator"
    rb"|session[-_]id|conversation[-_]id|x-client-request-id|x-goog-api-client"
)
_PATH = re.compile(r"/[A-Za-z0-9._:/-]*")
_QUERY = re.compile(r"(?:(?:beta|alt|pageSize|pageToken|limit|after_id|before_id|client_version)=[A-Za-z0-9._-]*&?)*")
_LARGEST_FILE = 1 << 20


class Door:
    """Serves one agent's requests to its models."""

    def __init__(self, services: Sequence[Service], log: Decisions) -> None:
        self._services = {one.name: one for one in services}
        self._log = log

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: one request."""
        async with wire.one_request(reader, writer, self._log, "door", "the model's API") as client:
            await self._one(client)

    async def _one(self, client: wire.Peer) -> None:
        head = await wire.request(client)
        method, target = head.method.decode("ascii"), head.target.decode("ascii", "replace")
        service, path, query = self._allowed(method, target)
        added = self._credential(service, f"{method} {target}")
        url = urlsplit(service.upstream)
        whole = url.path.rstrip("/") + path + (f"?{query}" if query else "")
        taken = wire.passed_on(head.headers, *(name.encode() for name in added))
        headers = [(name, value) for name, value in taken if _PASSED.fullmatch(name)]
        _merge_beta(head.headers, added)
        asked = h11.Request(
            method=head.method,
            target=whole,
            headers=[
                (b"host", url.netloc.rpartition("@")[2].encode("ascii")),
                *headers,
                *wire.framing(head.headers),
                *((name.encode("ascii"), value.encode("latin-1")) for name, value in added.items()),
                (b"connection", b"close"),
            ],
        )
        reader, writer = await self._dial(service)
        try:
            server = wire.Peer(reader, writer, asks=False)
            status = await wire.forward(client, server, asked, patience=_PATIENCE, most=_MOST)
            self._log.note(service.name, f"{method} {path}", f"answered {status}", allowed=True)
        finally:
            writer.close()

    def _allowed(self, method: str, target: str) -> tuple[Service, str, str]:
        """Return what a request asks for: service, path and query."""
        path, _, query = target.partition("?")
        _, name, *_ = (*path.split("/", 2), "")
        service, rest = self._services.get(name), path.removeprefix(f"/{name}")
        said = f"{method} {target}"
        if service is None:
            raise self._refuse(said, "there is no such model")
        if not _PATH.fullmatch(rest) or "//" in rest or "/." in rest or not service.lets(method, rest):
            raise self._refuse(said, "the door to the model lets only the model's own requests through")
        if not _QUERY.fullmatch(query):
            raise self._refuse(said, "its query says more than is allowed")
        return service, rest, query

    def _refuse(self, said: str, reason: str) -> wire.Refusal:
        self._log.note("door", said, reason, allowed=False)
        return wire.Refusal(403, f"swarm's sandbox does not allow {said[:200]}: {reason}")

    def _credential(self, service: Service, said: str) -> dict[str, str]:
        """Return the headers that are added; the token is read anew for each request."""
        token = ""
        if service.token is not None:
            token = _token(service.token)
            if not token:
                reason = f"the login outside of the box has ended; renew it there: {service.token.login}"
                self._log.note(service.name, said, reason, allowed=False)
                raise wire.Refusal(401, reason)
        return {name: value.replace("{token}", token) for name, value in service.headers.items()}

    @staticmethod
    async def _dial(service: Service) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        url = urlsplit(service.upstream)
        safe = url.scheme == "https"
        async with asyncio.timeout(_DIAL_SECONDS):
            context = ssl.create_default_context() if safe else None
            return await asyncio.open_connection(url.hostname, url.port or (443 if safe else 80), ssl=context)


def _merge_beta(headers: Sequence[tuple[bytes, bytes]], added: dict[str, str]) -> None:
    """Keep the agent's own beta features beside the one that the credential needs."""
    own = next((value.decode("latin-1") for name, value in headers if name == b"anthropic-beta"), "")
    if own and "anthropic-beta" in added:
        words = [word.strip() for word in (*own.split(","), *added["anthropic-beta"].split(","))]
        added["anthropic-beta"] = ",".join(dict.fromkeys(word for word in words if word))


def _token(file: TokenFile) -> str:
    """Return the token in a file; empty: there is none, or its time is over."""
    try:
        found = records.read_object(file.path, _LARGEST_FILE, follow=True)
    except (OSError, ValueError):
        return ""
    ends = _at(found, file.expires)
    if file.expires and isinstance(ends, (int, float)) and ends <= time.time() * 1000:
        return ""
    token = _at(found, file.keys)
    return token if isinstance(token, str) and token.isprintable() else ""


def _at(found: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found
