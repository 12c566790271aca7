"""A served agent that other machines may reach: with a certificate and a token, or not at all."""

from __future__ import annotations

import datetime as dt
import hashlib
import http.client
import json
import os
import socket
import ssl
import stat
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from swarm import Swarm
from swarm.project.swarm_dir.marker import make_swarm_dir
from swarm.services import candidates, proof
from swarm.services.candidates import Address
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def own_address() -> str | None:
    """Return an address of this machine that others reach; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        try:
            one.connect(("192.0.2.1", 9))
        except OSError:
            return None
        found = str(one.getsockname()[0])
    return None if found.startswith("127.") else found


def start(served: Served, *words: str) -> Path:
    """Serve with TLS; return the certificate."""
    served.begin("--tls", *words)
    process = served.process
    assert process is not None
    wait_for(lambda: served.record is not None or process.poll() is not None, "the server", 60)
    record = served.record
    assert record is not None, process.communicate()[1]
    assert record.is_secured
    served.port = record.port
    cert = served.root / "tls/agent-rev.crt"
    wait_for(lambda: ask(served, cert)[1]["state"] == "idle", "the server's readiness", 60)
    return cert


def ask(served: Served, cert: Path, method: str = "GET", path: str = "/status", body: object = None, **how: Any) -> Any:
    """Make a request by TLS; return status and answer."""
    host = how.pop("host", "127.0.0.1")
    context = ssl.create_default_context(cafile=cert)
    one = http.client.HTTPSConnection(host, served.port, timeout=60, context=context)
    headers = {"Authorization": f"Bearer {served.token}"} if how.pop("token", True) else {}
    headers |= {"Content-Type": "application/json"} if body is not None else {}
    try:
        one.request(method, path, None if body is None else json.dumps(body), headers | how)
        answer = one.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        one.close()


def test_an_address_of_others_needs_a_certificate(served: Served) -> None:
    """API-31, C-35: refused before anything listens, by the address that a name leads to."""
    address = own_address()
    for bind in ("0.0.0.0", *([address] if address else [])):
        process = served.begin("--bind", bind)
        assert process.wait(60) == 2
        served.ended()
        assert b"there is no certificate" in served.said
        assert b"--tls" in served.said
    for bad in ("not a name", "-x", "::1"):
        served.said = b""
        assert served.begin(f"--bind={bad}").wait(60) == 2
        served.ended()
        assert b"Traceback" not in served.said
    served.start("--bind", "localhost")
    assert served.status()["state"] == "idle"


def test_with_a_certificate_it_speaks_tls_alone_and_tells_its_fingerprint(served: Served) -> None:
    """The certificate is for the names of this machine, and the key for its owner alone."""
    before = os.umask(0)
    try:
        cert = start(served, "--bind", "0.0.0.0")
    finally:
        os.umask(before)
    made = x509.load_pem_x509_certificate(cert.read_bytes())
    key = cert.with_suffix(".key")
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "localhost" in names.get_values_for_type(x509.DNSName)
    assert not made.extensions.get_extension_for_class(x509.BasicConstraints).value.ca

    assert ask(served, cert, path="/history", token=False)[0] == 401
    code, said = ask(served, cert, "POST", "/task", {"prompt": "by tls"})
    assert code == 201
    assert ask(served, cert, path="/history", Host=f"evil.example:{served.port}")[0] == 421
    assert ask(served, cert, path="/history", Origin=f"http://127.0.0.1:{served.port}")[0] == 403
    assert ask(served, cert, path="/history", Origin=f"https://127.0.0.1:{served.port}")[0] == 200
    assert served.raw(f"GET /status HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n\r\n".encode()) == b""
    old = ssl.create_default_context(cafile=cert)
    with warnings.catch_warnings(action="ignore"):  # Python does not like them either
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("DEFAULT@SECLEVEL=0")  # the server is to refuse, not this client
    with pytest.raises((ssl.SSLError, ConnectionError)), socket.create_connection(("127.0.0.1", served.port)) as one:
        old.wrap_socket(one, server_hostname="127.0.0.1")
    private = served.raw(b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", private=True)
    assert private.startswith(b"HTTP/1.1 200 ")
    assert f"https://127.0.0.1:{served.port}" in served.lab.cli("services").stdout

    address = own_address()
    if address:
        assert ask(served, cert, host=address)[1]["state"] in ("idle", "working")
    served.lab.swarm.tasks.wait(said["task_id"], 60)
    served.end()
    digest = hashlib.sha256(made.public_bytes(serialization.Encoding.DER)).hexdigest().upper()
    shown = ":".join(digest[place : place + 2] for place in range(0, 64, 2))
    assert shown.encode() in served.said
    assert b"from other machines" in served.said


def test_a_certificate_is_kept_and_one_whose_time_is_over_is_made_anew(served: Served) -> None:
    cert = start(served)
    first = cert.read_bytes()
    served.end()
    start(served)
    assert cert.read_bytes() == first
    served.end()
    write_pair(cert, cert.with_suffix(".key"), days=-1)
    start(served)
    assert cert.read_bytes() != first
    assert ask(served, cert)[0] == 200


def write_pair(cert: Path, key: Path, days: int = 10) -> None:
    """Write a certificate of somebody's own."""
    made = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mine")])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(made.public_key())
    builder = builder.serial_number(1).not_valid_before(now - dt.timedelta(days=20))
    builder = builder.not_valid_after(now + dt.timedelta(days=days))
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
    cert.write_bytes(builder.sign(made, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    kind = serialization.PrivateFormat.PKCS8
    key.write_bytes(made.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption()))
    key.chmod(0o600)


def test_a_certificate_of_the_users_own_is_checked_before_it_is_used(served: Served) -> None:
    """S9: a key that others can read, a time that is over, no certificate at all, two that do not fit."""
    folder = served.root / "agents/rev"
    folder.mkdir(parents=True)
    cert, key, other = (folder / name for name in ("mine.crt", "mine.key", "other.key"))
    (folder / "config.yaml").write_text("port: 9000\ntls: {cert: mine.crt, key: mine.key}\n")

    def refused() -> bytes:
        served.said = b""
        served.begin()
        status = served.ended()
        assert status in (2, 5), served.said
        assert b"Traceback" not in served.said
        return served.said

    assert b"mine.key" in refused()
    write_pair(cert, key)
    key.chmod(0o644)
    assert b"chmod 600" in refused()
    write_pair(cert, key, days=-1)
    assert b"its time is over" in refused()
    cert.write_text("x")
    assert b"no certificate" in refused()
    write_pair(cert, other)
    assert b"do not fit" in refused()
    write_pair(cert, key)
    served.begin()
    wait_for(lambda: served.record is not None, "the server", 60)
    assert served.record is not None
    served.port = served.record.port
    wait_for(lambda: ask(served, cert, host="localhost")[1]["state"] == "idle", "the server's readiness", 60)
    assert ask(served, cert, host="localhost", Host=f"127.0.0.1:{served.port}")[0] == 421


def test_the_proof_names_the_certificate(served: Served, tmp_path: Path) -> None:
    """Whoever stands between has another certificate, and cannot pass the proof on."""
    cert = start(served)
    der = x509.load_pem_x509_certificate(cert.read_bytes()).public_bytes(serialization.Encoding.DER)
    nonce = "0" * 32
    given = ask(served, cert, token=False, **{"Swarm-Nonce": nonce})[1]["proof"]
    token = served.token.encode()
    assert given == proof.prove(token, nonce, "127.0.0.1", served.port, hashlib.sha256(der).hexdigest())
    assert not proof.fits(given, token, nonce, "127.0.0.1", served.port)
    (found,) = candidates.scan([Address("127.0.0.1", served.port)], token, seconds=20)
    assert (found.url, found.is_ours) == (f"https://127.0.0.1:{served.port}", True)

    elsewhere = tmp_path / "elsewhere"
    make_swarm_dir(elsewhere, 0o755)
    environ = served.lab.env | {"SWARM_ROOT": str(elsewhere)}
    url = f"https://127.0.0.1:{served.port}"
    swarm = Swarm.open(served.lab.root, environ=environ | {"SWARM_API_TOKEN": served.token})
    assert swarm.services.ask(url, "POST", "/task", {"prompt": "x"}).status == 201
    wrong = served.lab.cli("task", "x", "--agent-url", url, env={"SWARM_ROOT": str(elsewhere), "SWARM_API_TOKEN": "y"})
    assert (wrong.returncode, "it was not sent" in wrong.stderr) == (5, True), wrong.stderr


def test_a_silent_peer_does_not_hold_up_tls(served: Served) -> None:
    """S3: whoever does not begin to speak TLS is let go, and others are served meanwhile."""
    cert = start(served)
    with socket.create_connection(("127.0.0.1", served.port), timeout=100) as silent:
        assert ask(served, cert)[0] == 200
        assert silent.recv(1) == b""
    assert ask(served, cert)[0] == 200
