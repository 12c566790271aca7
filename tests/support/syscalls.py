"""What the tracer knows of system calls: numbers, where their paths are, the seccomp filter.

Everything here is data or pure functions: no process is touched.  ``tracer.py`` does the work.
"""

from __future__ import annotations

import os
import platform
import struct
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final


class Kind(Enum):
    """How the tracer decides whether a call changes the file system, and finds its path."""

    NAME = auto()  # acts on a name: (directory descriptor argument, path argument)
    DATA = auto()  # writes into a descriptor: counts for regular files only
    NODE = auto()  # acts on a descriptor's inode: counts for regular files and directories
    OPEN = auto()  # flags in an argument
    OPEN_HOW = auto()  # openat2: flags in a structure in memory
    GLOBAL = auto()  # sync: no path


@dataclass(frozen=True, slots=True)
class Spec:
    """One interesting system call; numbers are argument positions, a None dirfd is the cwd."""

    name: str
    kind: Kind
    arg: int = 0  # path pointer (NAME, OPEN*) or descriptor (DATA, NODE)
    dirfd: int | None = None
    flags: int | None = None  # OPEN: the flags; OPEN_HOW: pointer to struct open_how
    source: tuple[int | None, int] | None = None  # rename/link: (dirfd, path) of the old name


def _name(name: str, arg: int, dirfd: int | None = None, source: tuple[int | None, int] | None = None) -> Spec:
    return Spec(name, Kind.NAME, arg, dirfd, None, source)


SPECS: Final[dict[str, Spec]] = {
    spec.name: spec
    for spec in (
        Spec("open", Kind.OPEN, 0, None, 1),
        Spec("openat", Kind.OPEN, 1, 0, 2),
        Spec("openat2", Kind.OPEN_HOW, 1, 0, 2),
        Spec("creat", Kind.OPEN, 0),
        *(Spec(n, Kind.DATA) for n in ("write", "pwrite64", "writev", "pwritev", "pwritev2")),
        *(Spec(n, Kind.DATA) for n in ("ftruncate", "fallocate", "sendfile")),
        *(Spec(n, Kind.DATA, 2) for n in ("copy_file_range", "splice")),
        *(Spec(n, Kind.NODE) for n in ("fchmod", "fchown", "fsync", "fdatasync", "syncfs")),
        *(Spec(n, Kind.NODE) for n in ("fsetxattr", "fremovexattr")),
        Spec("sync", Kind.GLOBAL),
        _name("rename", 1, None, (None, 0)),
        _name("renameat", 3, 2, (0, 1)),
        _name("renameat2", 3, 2, (0, 1)),
        _name("link", 1, None, (None, 0)),
        _name("linkat", 3, 2, (0, 1)),
        _name("symlink", 1),  # its first argument is a text, not a place
        _name("symlinkat", 2, 1),
        *(_name(n, 0) for n in ("truncate", "unlink", "mkdir", "rmdir", "chmod", "mknod", "chown", "lchown")),
        *(_name(n, 0) for n in ("utime", "utimes")),
        *(_name(n, 0) for n in ("setxattr", "lsetxattr", "removexattr", "lremovexattr")),
        *(_name(n, 1, 0) for n in ("unlinkat", "mkdirat", "mknodat", "fchmodat", "fchmodat2", "fchownat")),
        *(_name(n, 1, 0) for n in ("utimensat", "futimesat")),
    )
}

# fmt: off
_X86_64: Final[dict[str, int]] = {
    "write": 1, "open": 2, "pwrite64": 18, "writev": 20, "sendfile": 40, "fsync": 74,
    "fdatasync": 75, "truncate": 76, "ftruncate": 77, "rename": 82, "mkdir": 83, "rmdir": 84,
    "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92,
    "fchown": 93, "lchown": 94,
    "utime": 132, "mknod": 133, "sync": 162, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "utimes": 235, "openat": 257,
    "mkdirat": 258, "mknodat": 259, "fchownat": 260, "futimesat": 261, "unlinkat": 263,
    "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268, "splice": 275,
    "utimensat": 280, "fallocate": 285,
    "pwritev": 296, "syncfs": 306, "renameat2": 316, "copy_file_range": 326, "pwritev2": 328,
    "openat2": 437, "fchmodat2": 452,
}
_AARCH64: Final[dict[str, int]] = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "mknodat": 33, "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37,
    "renameat": 38, "truncate": 45, "ftruncate": 46, "fallocate": 47, "fchmod": 52, "fchmodat": 53,
    "fchownat": 54, "fchown": 55, "openat": 56, "write": 64, "writev": 66, "pwrite64": 68,
    "pwritev": 70,
    "sendfile": 71, "splice": 76, "sync": 81, "fsync": 82, "fdatasync": 83, "utimensat": 88,
    "syncfs": 267, "renameat2": 276, "copy_file_range": 285, "pwritev2": 287, "openat2": 437,
    "fchmodat2": 452,
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Arch:
    """A machine: its AUDIT_ARCH_* value and its system call numbers."""

    name: str
    audit: int
    numbers: dict[str, int]

    def table(self) -> dict[int, Spec]:
        """Specs by system call number."""
        return {number: SPECS[name] for name, number in self.numbers.items()}


_ARCHES: Final = {
    "x86_64": Arch("x86_64", 0xC000003E, _X86_64),
    "aarch64": Arch("aarch64", 0xC00000B7, _AARCH64),
}


def this_arch() -> Arch | None:
    """The machine we run on; None when the tracer does not know it, or Python is 32 bit."""
    return _ARCHES.get(platform.machine()) if struct.calcsize("P") == 8 else None


# On a full disk these still work, so a sticky error must let them pass.
FREES_SPACE: Final = frozenset({"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2"})

_LD_W_ABS, _JEQ_K, _JSET_K, _RET_K = 0x20, 0x15, 0x45, 0x06
_RET_ALLOW, _RET_TRACE = 0x7FFF0000, 0x7FF00000
_OFFSET_NR, _OFFSET_ARCH, _OFFSET_ARGS = 0, 4, 16  # struct seccomp_data


def build_filter(arch: Arch) -> bytes:
    """The BPF program: RET_TRACE for the interesting calls, RET_ALLOW for the rest.

    Returns are placed beside each test, so that no jump is long.  The kernel caches per call number
    which calls are always allowed, hence a long chain costs the uninteresting calls nothing.
    """

    def op(code: int, k: int, jt: int = 0, jf: int = 0) -> bytes:
        return struct.pack("=HBBI", code, jt, jf, k)

    program = [
        op(_LD_W_ABS, _OFFSET_ARCH),
        op(_JEQ_K, arch.audit, 1, 0),
        op(_RET_K, _RET_ALLOW),  # a 32-bit program: its numbers mean other calls
        op(_LD_W_ABS, _OFFSET_NR),
    ]
    for number, spec in arch.table().items():
        if spec.kind is Kind.OPEN and spec.flags is not None:
            # Most opens only read: the kernel sorts them out, by the low half of the argument
            # (first in memory, both machines being little endian).
            program += [
                op(_JEQ_K, number, 0, 4),
                op(_LD_W_ABS, _OFFSET_ARGS + 8 * spec.flags),
                op(_JSET_K, os.O_CREAT | os.O_TRUNC, 0, 1),
                op(_RET_K, _RET_TRACE),
                op(_RET_K, _RET_ALLOW),
            ]
        else:
            program += [op(_JEQ_K, number, 0, 1), op(_RET_K, _RET_TRACE)]
    program.append(op(_RET_K, _RET_ALLOW))
    return b"".join(program)
