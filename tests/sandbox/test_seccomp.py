"""The filter of system calls, run by an interpreter of its instructions: also for an architecture that is not ours."""

from __future__ import annotations

import struct

import pytest

from swarm.sandbox import seccomp
from swarm.sandbox.seccomp import ALLOW, ARCHITECTURES, KILL, NOT_PERMITTED, NOT_THERE

pytestmark = pytest.mark.unit

KNOWN = sorted(ARCHITECTURES)


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Run the filter as the kernel does."""
    program = seccomp.filter_for(machine)
    assert program is not None
    data = struct.pack(
        "=iIQ6Q",
        number,
        ARCHITECTURES[machine].audit if audit is None else audit,
        0,
        *(arguments + (0,) * (6 - len(arguments))),
    )
    lines = list(struct.iter_unpack("=HBBI", program))
    assert len(lines) < 4096
    at = accumulator = 0
    while True:
        code, jump_if, jump_else, value = lines[at]
        at += 1
        if code == seccomp.LOAD:
            (accumulator,) = struct.unpack_from("=I", data, value)
        elif code == seccomp.RETURN:
            return int(value)
        else:
            holds = {
                seccomp.EQUAL: accumulator == value,
                seccomp.AT_LEAST: accumulator >= value,
                seccomp.ANY_BIT: bool(accumulator & value),
            }[code]
            at += jump_if if holds else jump_else


@pytest.mark.parametrize("machine", KNOWN)
def test_what_is_denied_is_denied_and_all_else_is_allowed(machine: str) -> None:
    arch = ARCHITECTURES[machine]
    denied = set(arch.denied.values())
    assert len(denied) == len(arch.denied)  # no number was written twice

    found = {number: verdict(machine, number) for number in range(600)}

    assert {number for number, said in found.items() if said == NOT_PERMITTED} == denied
    assert {number for number, said in found.items() if said == NOT_THERE} == {arch.clone3}
    assert set(found.values()) == {ALLOW, NOT_PERMITTED, NOT_THERE}


@pytest.mark.parametrize("machine", KNOWN)
def test_nobody_types_into_a_terminal_also_not_with_high_bits_set(machine: str) -> None:
    ioctl = ARCHITECTURES[machine].ioctl

    for request in (0x5412, 0x541C, 0x5423):
        assert verdict(machine, ioctl, 0, request) == NOT_PERMITTED
        assert verdict(machine, ioctl, 0, request | 0xDEAD_0000_0000) == NOT_PERMITTED
    for harmless in (0x5401, 0x5413, 0x540F):  # settings, size, the group in front
        assert verdict(machine, ioctl, 0, harmless) == ALLOW


@pytest.mark.parametrize("machine", KNOWN)
def test_no_new_namespaces_but_processes_and_threads(machine: str) -> None:
    arch = ARCHITECTURES[machine]
    for flag in (0x1000_0000, 0x0002_0000, 0x4000_0000, 0x2000_0000, 0x0800_0000, 0x0400_0000, 0x0200_0000):
        assert verdict(machine, arch.clone, flag | 17) == NOT_PERMITTED
        assert verdict(machine, arch.unshare, flag) == NOT_PERMITTED
    assert verdict(machine, arch.unshare, 0x80) == NOT_PERMITTED
    assert verdict(machine, arch.clone, 17) == ALLOW  # fork
    assert verdict(machine, arch.clone, 0x003D_0F00) == ALLOW  # a thread
    assert verdict(machine, arch.unshare, 0x400) == ALLOW  # a table of files of its own


@pytest.mark.parametrize("machine", KNOWN)
def test_calls_of_another_architecture_end_the_program(machine: str) -> None:
    assert verdict(machine, 1, audit=0x4000_0003) == KILL  # i386


def test_the_second_door_of_x86_is_shut() -> None:
    assert verdict("x86_64", 0x4000_0000 | 16, 0, 0x5412) == NOT_THERE
    assert verdict("x86_64", 0x4000_0000) == NOT_THERE


def test_an_architecture_that_nobody_knows_has_none() -> None:
    assert seccomp.filter_for("riscv64") is None
