"""The name in the first words of TLS, whole, in pieces, or broken (issue 16, point 7)."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm.sandbox.network import hello
from tests.sandbox.network import served

pytestmark = pytest.mark.unit
WHOLE = served.hello("example.org")


def records(message: bytes, size: int) -> bytes:
    """Return the same message in records of a size."""
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(one).to_bytes(2, "big") + one for one in pieces)


def test_the_name_is_read() -> None:
    assert hello.read(WHOLE) == hello.Hello("example.org", hidden=False)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_it_may_come_in_many_records(size: int) -> None:
    assert hello.read(records(WHOLE[5:], size)) == hello.Hello("example.org", hidden=False)


def test_each_beginning_of_it_wants_more() -> None:
    assert {hello.read(WHOLE[:end]) for end in range(len(WHOLE))} == {None}


def extended(extra: bytes) -> bytes:
    """Return a hello with a further extension."""
    head = b"\x03\x03" + bytes(32) + b"\0" + b"\0\2\x13\x01" + b"\1\0"
    name = b"\0\0" + (5 + 11).to_bytes(2, "big") + (3 + 11).to_bytes(2, "big") + b"\0\0\x0bexample.org"
    body = head + len(name + extra).to_bytes(2, "big") + name + extra
    return records(b"\1" + len(body).to_bytes(3, "big") + body, 1 << 14)


def test_an_encrypted_name_and_a_second_one_are_seen() -> None:
    assert hello.read(extended(b"")) == hello.Hello("example.org", hidden=False)
    assert hello.read(extended(b"\xfe\x0d\0\1x")) == hello.Hello("example.org", hidden=True)
    with pytest.raises(hello.NotTls):
        hello.read(extended(b"\0\0\0\x0c\0\x0a\0\0\7evil.no"))


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n", b"SSH-2.0-x\r\n", b"\x16\x02", b"\x16\x03\x01\0\0", b"\x80.\1\3\1"]
)
def test_anything_else_is_no_tls(data: bytes) -> None:
    with pytest.raises(hello.NotTls):
        hello.read(data)


@given(st.data())
def test_no_change_of_a_byte_brings_another_error(data: st.DataObject) -> None:
    changed = bytearray(WHOLE)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(WHOLE) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(hello.NotTls):
        hello.read(bytes(changed))
