"""The certificate of a server that other machines may reach: made by swarm, or the user's own.

    tls/<type>-<name>.crt, .key     made by swarm: RSA 2048, a year, for the names of this machine

A key that others can read is refused, as is a certificate whose time is over.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import os
import shlex
import socket
import ssl
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.kit import files
from swarm.kit.errors import ConfigProblem
from swarm.project.errors import ExtraMissing
from swarm.services.errors import LooseMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm.roles.agent_file import TlsFile

FOLDER = "tls"
_DAYS, _BITS = 365, 2048
_LARGEST = 1 << 17
#: An address that nobody has, by which the way to other networks is found.
_FAR = ("192.0.2.1", 9)


class Certificate(NamedTuple):
    """A certificate in use.

    Attributes:
        cert, key: the files.
        names: names and addresses that it is for.
        fingerprint: its SHA-256, in hexadecimal.
    """

    cert: Path
    key: Path
    names: tuple[str, ...]
    fingerprint: str

    @property
    def context(self) -> ssl.SSLContext:
        """Return what speaks TLS with it, 1.2 or newer.

        Raises:
            ConfigProblem: key and certificate do not belong together.
        """
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.load_cert_chain(self.cert, self.key, password="")
        except (ssl.SSLError, ValueError) as problem:
            raise ConfigProblem(f"cannot use {self.cert} with {self.key}: they do not fit") from problem
        return made

    @property
    def shown(self) -> str:
        """The fingerprint as browsers show it."""
        return ":".join(self.fingerprint[place : place + 2] for place in range(0, 64, 2)).upper()


def prepare(root: Path, who: str, wish: TlsFile, host: str) -> Certificate:
    """Return the certificate of a server; make it where that is wished and it is missing, or does not do any more.

    Args:
        who: the server, such as ``agent-reviewer``.
        host: the address at which it listens.

    Raises:
        ConfigProblem: the file is no certificate, or its time is over.
        LooseMode: others can read the key.
        ExtraMissing: the library for it is not installed.
    """
    x509 = _library()
    if wish.cert:
        return _checked(x509, Path(wish.cert), Path(wish.key), wish.names)
    folder = root / FOLDER
    files.make_private_dir(folder)
    cert, key = folder / f"{who}.crt", folder / f"{who}.key"
    names = tuple(dict.fromkeys((*_own_names(host), *wish.names)))
    if files.exists(cert) and files.exists(key):
        try:
            found = _checked(x509, cert, key, ())
            if set(names) <= set(found.names):
                return found
        except ConfigProblem:
            pass  # its time is over, or it is damaged: a new one takes its place
    _make(x509, cert, key, names)
    return _checked(x509, cert, key, ())


def _library() -> Any:
    try:
        from cryptography import x509
    except ImportError:
        raise ExtraMissing("TLS needs the library `cryptography`, which is not installed with swarm") from None
    return x509


def _own_names(host: str) -> Sequence[str]:
    """Return the names and addresses of this machine, as far as it knows them."""
    found = ["localhost", "127.0.0.1", socket.gethostname(), *addresses(host)]
    return [one.lower() for one in found if one.isascii()]


def addresses(host: str) -> list[str]:
    """Return the addresses at which a server is reached that listens at one, or at all of the machine's."""
    if not ipaddress.ip_address(host).is_unspecified:
        return [host]
    found = {"127.0.0.1"}
    with contextlib.suppress(OSError):
        by_name = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET, socket.SOCK_STREAM)
        found |= {str(one[4][0]) for one in by_name}
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(_FAR)  # only a way is looked up: nothing is sent
        found.add(str(one.getsockname()[0]))
    return sorted(found)


def _checked(x509: Any, cert: Path, key: Path, names: Sequence[str]) -> Certificate:
    mode = stat.S_IMODE(_stat(key).st_mode)
    if mode & 0o077:
        raise LooseMode(
            f"cannot use {key}: others can read it (mode {mode:04o})", hint=f"chmod 600 {shlex.quote(str(key))}"
        )
    _stat(cert)
    try:
        found = x509.load_pem_x509_certificate(files.read_small(cert, _LARGEST))
    except ValueError:
        raise ConfigProblem(f"cannot use {cert}: it is no certificate in PEM", hint="") from None
    now = dt.datetime.now(dt.UTC)
    if not found.not_valid_before_utc <= now <= found.not_valid_after_utc:
        until = found.not_valid_after_utc.date().isoformat()
        raise ConfigProblem(f"cannot use {cert}: its time is over, or has not begun (until {until})", hint="renew it")
    fingerprint = sha256(found.public_bytes(_encoding().DER)).hexdigest()
    return Certificate(cert, key, tuple(dict.fromkeys((*_names_of(x509, found), *names))), fingerprint)


def _stat(path: Path) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError as problem:
        raise ConfigProblem(f"cannot use {path}: {problem.strerror}", hint="") from problem


def _encoding() -> Any:
    from cryptography.hazmat.primitives.serialization import Encoding

    return Encoding


def _names_of(x509: Any, cert: Any) -> list[str]:
    try:
        found = cert.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    names = [one.lower() for one in found.get_values_for_type(x509.DNSName) if "*" not in one]
    return names + [str(one) for one in found.get_values_for_type(x509.IPAddress)]


def _make(x509: Any, cert: Path, key: Path, names: Sequence[str]) -> None:
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    made = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "swarm")])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(made.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([_general(x509, one) for one in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    signed = builder.sign(made, hashes.SHA256())
    private = made.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    files.write_atomic(key, private, 0o600)
    files.write_atomic(cert, signed.public_bytes(serialization.Encoding.PEM), 0o600)


def _general(x509: Any, name: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
