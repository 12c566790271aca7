"""Whether this machine can make a box, and if not, why, and how to get there: it makes one and looks."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from swarm.kit.errors import SwarmError
from swarm.machine import records
from swarm.machine.run_folder import runfiles
from swarm.sandbox import command, machine
from swarm.sandbox.errors import SandboxUnavailable
from swarm.sandbox.inside import Inside
from swarm.sandbox.values import Box, PrivateGit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: What is asked in the trial: the filter works (a new user namespace is refused), nobody can be seen, no network.
_TRIAL = (
    "grep -q '^Seccomp:.*2$' /proc/self/status || { echo no filter; exit 9; }\n"
    "test ! -e /etc/passwd || { echo /etc/passwd; exit 9; }\n"
    'test "$(grep -c : /proc/net/dev)" = 1 || { echo network; exit 9; }\n'
    "echo made"
)
_APPARMOR = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
_CLONE = "/proc/sys/kernel/unprivileged_userns_clone"
_MOST = "/proc/sys/user/max_user_namespaces"
_PROFILE = "bwrap-userns-restrict"
#: In swarm's state folder: that a box was made here, on which machine and when.
MADE = "box-made.json"
_KEPT_SECONDS = 3600.0
#: What an answer depends on beside the kernel's settings: the program's file, the boot, rules and rights of the caller.
_OF_PROGRAM = ("dev", "ino", "size", "mtime_ns", "ctime_ns", "mode", "uid")
_OF_MACHINE = (
    "/proc/sys/kernel/random/boot_id",
    "/proc/self/attr/current",
    "/sys/kernel/security/apparmor/revision",
    "/sys/fs/selinux/enforce",
)
_OF_CALLER = ("NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "CapEff:", "CapBnd:")
#: Words of bubblewrap or of the trial, what they mean, the way out.
_BY_WORDS = (
    (
        ("namespace", "uid map"),
        "user namespaces are refused here",
        "in a container: allow user namespaces, as podman does, or a seccomp profile that has unshare and mount",
    ),
    (
        ("seccomp", "SECCOMP", "no filter"),
        "the kernel takes no filter of system calls",
        "use a kernel with CONFIG_SECCOMP_FILTER",
    ),
    (("Unknown option",), f"this {command.PROGRAM} is too old", f"install {command.PROGRAM} 0.8 or newer"),
)


@dataclass(frozen=True, slots=True)
class BoxCheck:
    """What a machine can do for boxes.

    Attributes:
        available: it has just made a box with every option that is used later.
        by: the program that makes it, with its version; empty without one.
        cause: why it cannot.
        hint: how to get there.
        notes: what else is to be known: what does not hold here.
    """

    available: bool
    by: str
    cause: str
    hint: str
    notes: tuple[str, ...]


def check(environ: Mapping[str, str]) -> BoxCheck:
    """Make a box and look at it. Changes nothing, asks nobody."""
    notes = ("swarm runs as root: the limit on processes does not hold for root",) if os.geteuid() == 0 else ()
    program = command.find(environ)
    cause, hint = trouble(environ)
    on_linux = os.uname().sysname == "Linux"
    by = _version(program) if program and on_linux else ""
    return BoxCheck(not cause, by, cause, hint, notes if on_linux else ())


def trouble(environ: Mapping[str, str]) -> tuple[str, str]:
    """Make a box and look at it; return why that cannot be done and the way out, both empty where it can."""
    if os.uname().sysname != "Linux":
        return "boxes are made on Linux only", "run swarm on Linux, or in a container of it"
    if not command.find(environ):
        return f"{command.PROGRAM} is not installed", "install it, for example: sudo apt-get install bubblewrap"
    try:
        words = _trial(environ)
    except SwarmError as problem:
        words = problem.message
    if not words:
        return "", ""
    return explain(words, {path: _setting(path) for path in (_APPARMOR, _CLONE, _MOST)})


def mark(environ: Mapping[str, str]) -> str:
    """Return a text that changes with whatever decides whether a box can be made, as far as that can be read."""
    program = command.find(environ)
    found = os.stat(program) if program else None
    by = [program, *(getattr(found, f"st_{name}") for name in _OF_PROGRAM)] if found is not None else []
    kernel = [os.uname(), *(_setting(path) for path in (_APPARMOR, _CLONE, _MOST, *_OF_MACHINE))]
    status = [line for line in _setting("/proc/self/status").splitlines() if line.startswith(_OF_CALLER)]
    spaces = [_link(f"/proc/self/ns/{name}") for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")]
    asked = [*command.options(_box("/", "")), command.call_filter().hex()]
    text = json.dumps([by, kernel, os.geteuid(), os.getegid(), status, spaces, asked, _TRIAL])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_known(state: Path, environ: Mapping[str, str]) -> bool:
    """Whether a box was made here within the last hour, and nothing has changed since on which that depends."""
    noted = runfiles.read(str(state), MADE) or {}
    at = noted.get("at")
    fresh = isinstance(at, float) and 0 <= time.clock_gettime(time.CLOCK_BOOTTIME) - at < _KEPT_SECONDS
    return fresh and bool(command.find(environ)) and noted.get("mark") == mark(environ)


def note(state: Path, environ: Mapping[str, str]) -> None:
    """Write down that a box was just made here."""
    if not is_known(state, environ):
        at = time.clock_gettime(time.CLOCK_BOOTTIME)
        runfiles.write(str(state), MADE, {"schema": records.SCHEMA, "mark": mark(environ), "at": at})


def require(environ: Mapping[str, str]) -> None:
    """Refuse to go on where no box can be made.

    Raises:
        SandboxUnavailable
    """
    cause, hint = trouble(environ)
    if cause:
        raise SandboxUnavailable(f"cannot make a box: {cause}", hint=hint)


def problems(state: Path, environ: Mapping[str, str]) -> Iterator[SwarmError]:
    """Yield the error where no box can be made."""
    if is_known(state, environ):
        return
    try:
        require(environ)
    except SwarmError as problem:
        yield problem


def _trial(environ: Mapping[str, str]) -> str:
    """Make a box as agents get it; return what went wrong, empty if nothing."""
    with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
        for name in ("home", "tree", "git", "private", "store/info"):
            os.makedirs(f"{scratch}/{name}")
        for name in ("tree/.git", "store/info/alternates", "empty"):
            with open(f"{scratch}/{name}", "xb"):
                pass
        box = _box(scratch, f"{scratch}/store/info/alternates")
        code, out, err = Inside(box, environ, timeout=20).run("sh", "-c", _TRIAL, limit=1 << 16)
    if code == 0 and out.strip() == b"made":
        return ""
    said = (err.strip() or out.strip() or b"exit code %d" % code).decode("utf-8", "replace")
    return said.splitlines()[-1]


def _box(scratch: str, hidden: str) -> Box:
    git = PrivateGit(f"{scratch}/git", f"{scratch}/private", (f"{scratch}/store",), (hidden,), f"{scratch}/empty")
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    return Box(f"{scratch}/tree", f"{scratch}/home", machine.system(), git, env=path)


def explain(words: str, settings: Mapping[str, str]) -> tuple[str, str]:
    """Return the cause and the way out for what bubblewrap said.

    Args:
        settings: the kernel's, by path; empty for one that it does not have.
    """
    if settings.get(_MOST) == "0":
        return f"user namespaces are switched off here ({_MOST} is 0)", "sudo sysctl user.max_user_namespaces=15000"
    if settings.get(_CLONE) == "0":
        hint = "sudo sysctl kernel.unprivileged_userns_clone=1"
        return f"only root may make user namespaces here ({_CLONE} is 0)", hint
    if settings.get(_APPARMOR) == "1" and ("Permission denied" in words or "Operation not permitted" in words):
        shipped = f"/usr/share/apparmor/extra-profiles/{_PROFILE}"
        hint = (
            f"sudo apt-get install apparmor-profiles && sudo cp {shipped} /etc/apparmor.d/ "
            f"&& sudo apparmor_parser -r /etc/apparmor.d/{_PROFILE}"
        )
        return f"AppArmor refuses user namespaces to {command.PROGRAM} ({words})", hint
    for words_of, cause, hint in _BY_WORDS:
        if any(one in words for one in words_of):
            return f"{cause} ({words})", hint
    return f"a box could not be made ({words})", "read what bubblewrap said, and `dmesg` beside it"


def _setting(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _version(program: str) -> str:
    import subprocess

    try:
        said = subprocess.run([program, "--version"], capture_output=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return program
    return said.decode("utf-8", "replace").strip() or program
