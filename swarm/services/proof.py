"""Show that a server belongs to a swarm directory, before anybody tells it a secret.

Whoever looks sends a number of its own; the answer is made of it with the key that only servers of that directory have.
The answer also names the address at which the server was reached, and its certificate: a stranger who passes the number
on to one of ours gets an answer that fits neither the stranger's address nor its certificate.
"""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

#: The header of a request to ``/status`` that carries the number.
HEADER = "Swarm-Nonce"
_NONCE = re.compile(r"[0-9a-f]{32}", re.ASCII)


def new_nonce() -> str:
    """Return a number that nobody has sent before."""
    return secrets.token_hex(16)


def is_nonce(text: str) -> bool:
    """Whether a text may be such a number."""
    return _NONCE.fullmatch(text) is not None


def prove(token: bytes, nonce: str, host: str, port: int, fingerprint: str = "") -> str:
    """Return the answer of a server.

    Args:
        token: of its swarm directory; the answer does not give it away.
        host: the address at which it was reached, as numbers.
        fingerprint: of its certificate; empty without TLS.
    """
    said = f"swarm status\0{nonce}\0{host}\0{port}\0{fingerprint}"
    return hmac.new(token, said.encode("ascii", "replace"), "sha256").hexdigest()


def fits(given: object, token: bytes, nonce: str, host: str, port: int, fingerprint: str = "") -> bool:
    """Whether an answer is that of a server with this token, reached there."""
    if not token or not isinstance(given, str):
        return False
    return hmac.compare_digest(given.encode("utf-8", "replace"), prove(token, nonce, host, port, fingerprint).encode())


def unchecked() -> ssl.SSLContext:
    """Return what speaks TLS with anybody: the proof names the certificate, so that is checked by it."""
    import ssl

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def fingerprint_of(connection: Any) -> str:
    """Return the SHA-256 of the certificate at the other end, in hexadecimal; empty without TLS."""
    tell = getattr(connection, "getpeercert", None)
    return sha256(tell(binary_form=True)).hexdigest() if tell is not None else ""
