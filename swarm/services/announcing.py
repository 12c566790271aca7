"""Announce servers on the network, and find those that others announced (mDNS).

An announcement is a hint where to look: anybody can make one. Who is ours is shown by `proof.py` alone.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import time
from typing import TYPE_CHECKING, Any

from swarm.project.errors import ExtraMissing
from swarm.services.candidates import LOOPBACK, Address

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SERVICE = "_swarm._tcp.local."
#: So long the network is listened to: others answer at once.
SECONDS = 2.0
_MOST = 200
_LEAST_PORT = 1024


def _zeroconf() -> Any:
    try:
        import zeroconf
    except ImportError:
        raise ExtraMissing("mDNS needs the library `zeroconf`, which is not installed with swarm") from None
    return zeroconf


@contextlib.contextmanager
def announced(kind: str, name: str, version: str, addresses: Sequence[str], port: int) -> Iterator[None]:
    """Announce a server as long as this lasts.

    Args:
        addresses: at which it listens, as numbers.

    Raises:
        ExtraMissing: the library for it is not installed.
        OSError: there is no network to do it on.
    """
    lib = _zeroconf()
    info = lib.ServiceInfo(
        SERVICE,
        f"{kind}-{name}-{port}.{SERVICE}",
        addresses=[socket.inet_aton(one) for one in addresses],
        port=port,
        properties={"roles": kind, "version": version},
        server=f"swarm-{kind}-{name}.local.",
    )
    with contextlib.closing(lib.Zeroconf(interfaces=list(addresses))) as made:
        made.register_service(info, allow_name_change=True)
        try:
            yield
        finally:
            made.unregister_service(info)


def browse(seconds: float = SECONDS) -> tuple[Address, ...]:
    """Return the addresses that are announced on this machine and its networks.

    Raises:
        ExtraMissing: the library for it is not installed.
    """
    lib = _zeroconf()
    found: dict[Address, None] = {}
    # An answer to this socket alone may reach another program's, as all listen on one port: all are to hear it.
    asked = lib.DNSQuestionType.QM

    class Listener:
        def add_service(self, there: Any, kind: str, name: str) -> None:
            info = there.get_service_info(kind, name, timeout=1000, question_type=asked)
            for one in info.parsed_addresses(lib.IPVersion.V4Only) if info is not None else ():
                if len(found) < _MOST and _is_near(one) and info.port >= _LEAST_PORT:
                    found[Address(one, info.port)] = None

        update_service = add_service

        def remove_service(self, _there: Any, _kind: str, _name: str) -> None:
            pass

    for interfaces in ([LOOPBACK], lib.InterfaceChoice.Default):
        with contextlib.suppress(OSError), contextlib.ExitStack() as open_:
            made = open_.enter_context(contextlib.closing(lib.Zeroconf(interfaces=interfaces)))
            lib.ServiceBrowser(made, SERVICE, Listener(), question_type=asked)
            time.sleep(seconds / 2)
    return tuple(sorted(found))


def _is_near(address: str) -> bool:
    """Whether an address is of this machine or of a network at home: an announcement sends nobody farther."""
    found = ipaddress.ip_address(address)
    return found.is_private and not found.is_multicast and not found.is_unspecified
