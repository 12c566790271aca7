"""Find servers: those of this swarm directory by what they wrote down, others by looking for them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from swarm.services.calling import ServiceReply
    from swarm.services.candidates import Address
    from swarm.services.values import Component, ComponentHealth, Record

_ANSWER = 5.0
#: Between two searches for servers that are not known yet, while somebody watches.
_SEARCH = 30.0
_BUSY = ("agent_busy", "not_ready")


class Finding(Door):
    """Look for servers, and choose one."""

    def discover(self, *, others: bool = False, ports: tuple[int, int] | None = None) -> tuple[Component, ...]:
        """Return the components that run, each with what it says of itself.

        Args:
            others: also look for servers that are not written down in this swarm directory, as the setting
                ``discovery.method`` says. Only what proves that it belongs to this directory is ``is_ours``; no probe
                carries a secret.
            ports: the first and the last port to ask; default: the setting ``discovery.port_range``.

        Raises:
            ExtraMissing: the setting asks for mDNS, which is not installed.
        """
        found = self._own()
        with files.os_errors("cannot look for components"):
            return (*found, *(self._others([one.url for one in found], ports) if others else ()))

    def watch(self, *, ports: tuple[int, int] | None = None) -> Iterator[tuple[ComponentHealth, ...]]:
        """Give how all components do, own and others, again and again; each look waits for the next one.

        One at work is asked every second, an idle one every five. One that does not answer is shown with its last
        state, yellow and then red, until it answers or the time of ``discovery.keep`` is over.
        """
        from swarm.services import place
        from swarm.services.health import Watch

        wish = self._world.settings.discovery
        watch, searched = Watch(wish.keep), -_SEARCH
        while True:
            now = time.monotonic()
            with files.os_errors("cannot look for components"):
                records = {one.url: one for one in place.everything(self._services_root())}
                due = watch.due(now) | (records.keys() - watch.known)
                found = [self._component(records[url]) for url in due & records.keys()]
                found += self._ask([_address(url) for url in due - records.keys()])
                watch.heard(due, found, now)
                if now - searched >= _SEARCH:
                    searched = now
                    watch.heard((), self._others(watch.known, ports), now)
            yield watch.seen(time.monotonic())
            time.sleep(wish.refresh_interval)

    def give(self, task: dict[str, Any]) -> tuple[Component, ServiceReply]:
        """Give a task to a served agent of this swarm directory that is idle; a busy one is passed over.

        Args:
            task: the body of ``POST /task``, such as ``{"prompt": "…"}``.

        Returns:
            The agent, and what it answered.

        Raises:
            ServiceProblem: none is free, or one took the task and gave no answer.
        """
        from swarm.services import calling, place
        from swarm.services.errors import ServiceProblem

        root = self._services_root()
        for one in self._own():
            if one.state != "idle" or not one.can("taskable"):
                continue
            with files.os_errors(f"cannot give the task to {one.name}"):
                folder = place.folder_of(root, one.type, one.name)
                reply = calling.ask(calling.Private(folder, _ANSWER), "POST", "/task", task)
            if reply.said.get("error") not in _BUSY:
                return one, reply
        raise ServiceProblem("no served agent is free", hint="`swarm services` shows which there are, and what they do")

    # --- what these share -----------------------------------------------------------------------

    def _own(self) -> tuple[Component, ...]:
        from swarm.services import place

        with files.os_errors("cannot look for components"):
            return tuple(self._component(record) for record in place.everything(self._services_root()))

    def _component(self, record: Record) -> Component:
        """Return what the server of a record says of itself."""
        from swarm.services import calling, place
        from swarm.services.errors import ServiceProblem
        from swarm.services.values import SILENT, Component

        here = Component(record.type, record.name, SILENT, record.pid, record.url)
        folder = place.folder_of(self._services_root(), record.type, record.name)
        try:
            said = calling.ask(calling.Private(folder, _ANSWER), "GET", "/status").said
        except ServiceProblem:
            return here
        return here._replace(state=str(said.get("state", SILENT)), says=said)

    def _others(self, known: Iterable[str], ports: tuple[int, int] | None) -> tuple[Component, ...]:
        from swarm.services import announcing
        from swarm.services.candidates import LOOPBACK, Address

        wish = self._world.settings.discovery
        first, last = ports or wish.port_range
        places = {Address(LOOPBACK, port) for port in range(first, last + 1)}
        if wish.method == "mdns":
            places |= set(announcing.browse())
        return self._ask(sorted(places - {_address(url) for url in known}))

    def _ask(self, places: Sequence[Address]) -> tuple[Component, ...]:
        from swarm.services import candidates, credentials

        return candidates.scan(places, credentials.known_token(self._services_root())) if places else ()

    def _services_root(self) -> Path:
        from swarm.services.roots import root_of

        return root_of(self._world)


def _address(url: str) -> Address:
    from urllib.parse import urlsplit

    from swarm.services.candidates import Address

    parts = urlsplit(url)
    return Address(parts.hostname or "", parts.port or 0)
