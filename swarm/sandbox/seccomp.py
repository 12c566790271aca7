"""The filter of system calls: its bytes, made by ordinary Python, for the two architectures that we know.

It denies what namespaces do not confine: typing into the terminal of the user (TIOCSTI), the keys of the kernel,
programs in the kernel, new namespaces, mounts.  A filter sees numbers, no memory: ``clone3``, whose flags are in
memory, is "not there", and the C library falls back to ``clone``.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

# How a filter ends: <linux/seccomp.h>.
ALLOW = 0x7FFF_0000
KILL = 0x8000_0000
_ERRNO = 0x0005_0000
NOT_PERMITTED = _ERRNO | 1
NOT_THERE = _ERRNO | 38

# Instructions: <linux/bpf_common.h>.
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# Where the number of the call, the architecture and the low halves of the first two arguments are.
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24

#: Requests to a terminal: type into it, select and paste on a console, change its discipline. Only 32 bits count.
_TERMINAL = (0x5412, 0x541C, 0x5423)
#: Every flag of ``clone`` and ``unshare`` for a new namespace.
_NEW_NAMESPACE = 0x7E02_0080
#: In ``clone`` the lowest byte is the signal at the end, so a new time namespace cannot be asked for there.
_NEW_BY_CLONE = _NEW_NAMESPACE & ~0xFF
#: From here on calls are of the x32 kind.
_X32 = 0x4000_0000


def _calls(table: str) -> dict[str, int]:
    """Read calls with their numbers."""
    return {name: int(number) for name, number in (one.split() for one in table.split(", "))}


#: Calls that are not permitted and have the same number everywhere, as all new ones have.
_NEW_CALLS = _calls(
    "io_uring_setup 425, io_uring_enter 426, io_uring_register 427, open_tree 428, move_mount 429, "
    "fsopen 430, fsconfig 431, fsmount 432, fspick 433, pidfd_getfd 438, mount_setattr 442, "
    "quotactl_fd 443, open_tree_attr 467"
)


class Architecture(NamedTuple):
    """What the filter must know of an architecture.

    Attributes:
        audit: its number in ``<linux/audit.h>``.
        denied: the calls that are not permitted, by name.
    """

    audit: int
    ioctl: int
    clone: int
    unshare: int
    denied: dict[str, int]
    clone3: int = 435
    has_x32: bool = False


ARCHITECTURES = {
    "x86_64": Architecture(
        audit=0xC000003E,
        ioctl=16,
        clone=56,
        unshare=272,
        has_x32=True,
        denied=_NEW_CALLS
        | _calls(
            "syslog 103, vhangup 153, pivot_root 155, adjtimex 159, chroot 161, acct 163, settimeofday 164, "
            "mount 165, umount2 166, swapon 167, swapoff 168, reboot 169, iopl 172, ioperm 173, init_module 175, "
            "delete_module 176, quotactl 179, lookup_dcookie 212, clock_settime 227, kexec_load 246, "
            "add_key 248, request_key 249, keyctl 250, perf_event_open 298, open_by_handle_at 304, "
            "clock_adjtime 305, setns 308, finit_module 313, kexec_file_load 320, bpf 321, userfaultfd 323"
        ),
    ),
    "aarch64": Architecture(
        audit=0xC00000B7,
        ioctl=29,
        clone=220,
        unshare=97,
        denied=_NEW_CALLS
        | _calls(
            "lookup_dcookie 18, umount2 39, mount 40, pivot_root 41, chroot 51, vhangup 58, quotactl 60, "
            "acct 89, kexec_load 104, init_module 105, delete_module 106, clock_settime 112, syslog 116, "
            "reboot 142, settimeofday 170, adjtimex 171, add_key 217, request_key 218, keyctl 219, swapon 224, "
            "swapoff 225, perf_event_open 241, open_by_handle_at 265, clock_adjtime 266, setns 268, "
            "finit_module 273, bpf 280, userfaultfd 282, kexec_file_load 294"
        ),
    ),
}


def filter_for(machine: str) -> bytes | None:
    """Return the filter for an architecture, as the kernel takes it; None for one that we do not know.

    Args:
        machine: as ``uname -m`` says it.
    """
    known = ARCHITECTURES.get(machine)
    return None if known is None else b"".join(_program(known))


def _program(arch: Architecture) -> list[bytes]:
    lines = [_line(LOAD, ARCHITECTURE), _line(EQUAL, arch.audit, 1, 0), _line(RETURN, KILL), _line(LOAD, NUMBER)]
    if arch.has_x32:
        lines += [_line(AT_LEAST, _X32, 0, 1), _line(RETURN, NOT_THERE)]
    lines += [_line(EQUAL, arch.clone3, 0, 1), _line(RETURN, NOT_THERE)]
    for number in sorted(arch.denied.values()):
        lines += [_line(EQUAL, number, 0, 1), _line(RETURN, NOT_PERMITTED)]
    lines += _with_argument(arch.ioctl, SECOND, [_line(EQUAL, request, 0, 1) for request in _TERMINAL])
    lines += _with_argument(arch.clone, FIRST, [_line(ANY_BIT, _NEW_BY_CLONE, 0, 1)])
    lines += _with_argument(arch.unshare, FIRST, [_line(ANY_BIT, _NEW_NAMESPACE, 0, 1)])
    return [*lines, _line(RETURN, ALLOW)]


def _with_argument(number: int, where: int, tests: list[bytes]) -> list[bytes]:
    """Return the part for one call: denied if an argument passes one of the tests, else allowed."""
    part = [_line(LOAD, where)]
    for test in tests:
        part += [test, _line(RETURN, NOT_PERMITTED)]
    part.append(_line(RETURN, ALLOW))
    return [_line(EQUAL, number, 0, len(part)), *part]


def _line(code: int, value: int, jump_if: int = 0, jump_else: int = 0) -> bytes:
    """Return one instruction: code, two jumps, operand."""
    return struct.pack("=HBBI", code, jump_if, jump_else, value)
