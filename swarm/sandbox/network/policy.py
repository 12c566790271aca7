"""Decide which hosts an agent in a box may reach: by name and port, and by the addresses that the name has now.

An address that the agent names is never dialled: names only.  A name is looked up once, outside of the box, and only
when it is allowed; the proxy then dials the very address that was checked.  So a name server of the agent's cannot
answer twice (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import NamedTuple

from swarm.permissions.hosts import is_host
from swarm.project.config.hosts import ALL, NONE, HostRule, host_name, host_rule

#: Addresses that look public and answer to the machine itself.
_OF_CLOUDS = frozenset({ipaddress.ip_address("168.63.129.16")})
#: Networks whose addresses stand for one of another network.
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
#: All public addresses of IPv6 are in here: not those that stand for one of IPv4, nor the private ones of former times.
_PUBLIC_6 = ipaddress.ip_network("2000::/3")
#: Of what Python calls public: tunnels, their relays, what protocols have for themselves, and examples.
_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("2002::/16", "2001::/23", "3fff::/20", "192.0.0.0/24", "192.88.99.0/24"))
)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Verdict(NamedTuple):
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Policy:
    """The hosts that one agent may reach.

    Attributes:
        hosts: allowed ones.
        everything: every public host is allowed.
        private: networks whose addresses are allowed although they are not public.
        denied: patterns of hosts that its role denies, whatever else allows them.
    """

    hosts: tuple[HostRule, ...] = ()
    everything: bool = False
    private: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    denied: tuple[str, ...] = ()

    def decide(self, host: str, port: int) -> Verdict:
        """Return whether a host may be looked up and dialled."""
        try:
            name = host_name(host)
        except ValueError as problem:
            return Verdict(allowed=False, reason=str(problem))
        if name == "localhost" or name.endswith(".localhost"):
            return Verdict(allowed=False, reason="is the machine itself")
        if any(is_host(pattern, name, below=True) for pattern in self.denied):
            return Verdict(allowed=False, reason="is denied by a rule of its role")
        if self.everything:
            return Verdict(allowed=True, reason="every public host is allowed")
        if any(rule.matches(name, port) for rule in self.hosts):
            return Verdict(allowed=True, reason="allowed")
        other = next((rule.port for rule in self.hosts if rule.matches(name, rule.port)), 0)
        return Verdict(allowed=False, reason=f"is allowed at port {other} only" if other else "is not an allowed host")

    def may_dial(self, text: str) -> Verdict:
        """Return whether an address that a name has may be dialled."""
        found = _meant(ipaddress.ip_address(text.partition("%")[0]))
        if any(found in network for network in self.private if network.version == found.version):
            return Verdict(allowed=True, reason="a private network that the user allows")
        if not _is_public(found):
            return Verdict(allowed=False, reason=f"has the address {found}, which is not public")
        if _is_own(found):
            return Verdict(allowed=False, reason=f"has the address {found}, which is this machine's own")
        return Verdict(allowed=True, reason="public")


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast or address in _OF_CLOUDS:
        return False
    if any(address in network for network in _NOT_PUBLIC if network.version == address.version):
        return False
    return address.version == 4 or address in _PUBLIC_6


def _meant(address: Address) -> Address:
    """Return the address that is reached: some IPv6 addresses stand for one of IPv4."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_own(address: Address) -> bool:
    """Whether an address is one of this machine's: only such a one can be bound."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as made:
            made.bind((str(address), 0))
    except OSError:
        return False
    return True


def policy(network: str, hosts: tuple[str, ...], private: tuple[str, ...], denied: tuple[str, ...] = ()) -> Policy:
    """Return the policy of a preset with further hosts.

    Raises:
        ValueError: a host or a network is none.
    """
    return Policy(
        tuple(map(host_rule, hosts)) if network != NONE else (),
        network == ALL,
        tuple(map(ipaddress.ip_network, private)),
        denied,
    )
