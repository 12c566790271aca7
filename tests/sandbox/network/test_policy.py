"""Which hosts are allowed, and which of their addresses (issue 16, point 7)."""

from __future__ import annotations

import socket

import pytest

from swarm.project.config.hosts import host_rule
from swarm.sandbox.network.policy import policy

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("rule", "host", "port", "allowed"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "EXAMPLE.org.", 443, True),
        ("example.org", "example.org", 80, False),
        ("example.org", "www.example.org", 443, False),
        ("example.org", "evilexample.org", 443, False),
        ("example.org", "example.org.evil.net", 443, False),
        ("*.example.org", "www.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("example.org:8443", "example.org", 8443, True),
        ("http://example.org", "example.org", 80, True),
    ],
)
def test_a_rule_allows_a_name_and_a_port(rule: str, host: str, port: int, allowed: bool) -> None:
    assert policy("model", (rule,), ()).decide(host, port).allowed is allowed


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "[::1]", "::1", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "0x7f.1", "1.2.3.4."),
        *("fe80::1%lo", "localhost", "a.localhost", "LOCALHOST.", "", ".", "..", "exa mple.org", "ex\x00ample.org"),
        *("exämple.org", "-a.org", "a" * 64 + ".org", "a." * 130 + "org", "user@example.org", "a/b.org", "0", "*"),
    ],
)
def test_addresses_and_names_of_the_machine_are_never_allowed(host: str) -> None:
    assert not policy("all", (), ()).decide(host, 443).allowed


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "168.63.129.16", "198.18.0.1", "192.0.2.1", "240.0.0.1"),
        *("::", "::1", "fe80::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:a00:1", "64:ff9b::7f00:1"),
        *(
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2001:0:1::1",
            "fe80::1%eth0",
            "64:ff9b:1::7f00:1",
            "64:ff9b:1::a00:1",
        ),
        *(
            "::127.0.0.1",
            "::a00:1",
            "::ffff:0:127.0.0.1",
            "::ffff:0:a00:1",
            "fec0::1",
            "3fff::1",
            "5f00::1",
            "2001:db8::1",
        ),
        *("192.0.0.8", "192.88.99.1", "2001:20::1"),
    ],
)
def test_only_public_addresses_are_dialled(address: str) -> None:
    assert not policy("all", (), ()).may_dial(address).allowed


def test_public_addresses_are_dialled_and_private_ones_that_the_user_allows() -> None:
    rules = policy("model", (), ("10.1.0.0/16",))

    assert [rules.may_dial(one).allowed for one in ("1.1.1.1", "2606:4700::1", "10.1.2.3", "10.2.0.1")] == [
        *(True, True, True, False)
    ]


def test_the_machines_own_address_is_not_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(socket.socket):
        def bind(self, address: object) -> None:
            assert address == ("1.1.1.1", 0)

    monkeypatch.setattr("swarm.sandbox.network.policy.socket.socket", Own)

    assert "this machine's own" in policy("all", (), ()).may_dial("1.1.1.1").reason


def test_presets() -> None:
    assert policy("packages", ("example.org",), ()).decide("example.org", 443).allowed
    assert not policy("none", ("example.org",), ()).decide("example.org", 443).allowed
    assert policy("all", (), ()).decide("example.org", 8080).allowed


@pytest.mark.parametrize(
    "text", ["127.0.0.1", "*.org", "*", "example.org:0", "example.org:x", "a b", "", "https://", "example.org/path"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        host_rule(text)
