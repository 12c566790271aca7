"""Names of hosts that agents in boxes may reach, as settings and roles say them."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

#: The presets: the model alone; registries of packages as well; no network at all; every public host.
MODEL, PACKAGED, NONE, ALL = "model", "packages", "none", "all"
PRESETS = (MODEL, PACKAGED, NONE, ALL)
HTTPS, HTTP = 443, 80

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"  # compiled when there is a host to check
_NUMBER = r"[0-9]+|0x[0-9a-f]*"
_LONGEST = 253


class HostRule(NamedTuple):
    """One allowed host.

    Attributes:
        name: in small letters; below `subdomains` the part that they end in.
        port: the only one.
        subdomains: every name below *name* instead of the name itself.
    """

    name: str
    port: int = HTTPS
    subdomains: bool = False

    def matches(self, name: str, port: int) -> bool:
        """Whether it allows a host."""
        return port == self.port and (name.endswith(f".{self.name}") if self.subdomains else name == self.name)


def host_rule(text: str) -> HostRule:
    """Read an allowed host: ``example.org``, ``*.example.org``, ``example.org:8443``, ``http://example.org``.

    Raises:
        ValueError: it is none.
    """
    plain = text.startswith("http://")
    rest = text.removeprefix("http://").removeprefix("https://").lower()
    subdomains, rest = rest.startswith("*."), rest.removeprefix("*.")
    host, colon, digits = rest.partition(":")
    if colon and not (digits.isascii() and digits.isdigit() and len(digits) <= 5 and 0 < int(digits) < 1 << 16):
        raise ValueError("must be a host name, with a port from 1 to 65535 behind a colon if it is not 443")
    name = host_name(host)
    if subdomains and "." not in name:
        raise ValueError("would allow a whole top-level domain")
    return HostRule(name, int(digits) if colon else HTTP if plain else HTTPS, subdomains)


def host_name(text: str) -> str:
    """Return a host name as it is compared.

    Raises:
        ValueError: it is an address, in whatever notation, or no host name.
    """
    name = text.lower().removesuffix(".")
    labels = name.split(".")
    if _is_address(name) or re.fullmatch(_NUMBER, labels[-1]):
        raise ValueError("is an address; hosts are allowed by name only")
    if len(name) > _LONGEST or not all(re.fullmatch(_LABEL, label) for label in labels):
        raise ValueError("is no host name")
    return name


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


def host(text: str) -> str:
    """Check an allowed host."""
    host_rule(text)
    return text


def network(text: str) -> str:
    """Check a network such as ``10.1.0.0/16``."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise ValueError("must be a network such as 10.1.0.0/16") from None
    return text
