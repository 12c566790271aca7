"""The command line of bubblewrap for a box. Nothing here looks at the disk or runs anything, but `machine.py`."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.sandbox import machine, seccomp
from swarm.sandbox.errors import SandboxUnavailable
from swarm.sandbox.values import HOME, IO, STORES, Box, Mount
from swarm.supervisor.boxed import enter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from swarm.programs.values import LaunchSpec

PROGRAM = "bwrap"
#: The file in an agent's run folder that says how its box is made.
NOTES = "box.notes"
#: The own user and process numbers and network of a box, and what else it does not share with the machine.
_APART = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--unshare-net"),
    *("--uid", "1000", "--gid", "1000", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "box", "--clearenv"),
)
#: bubblewrap itself must not end by Ctrl-C, so its maker ignores these; what runs inside does not.
_HEARD = "--default-signal=INT,QUIT,TSTP"
_TERMINAL = ("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLORTERM")
_NO_NUL = "a NUL character cannot be passed to a program"


def options(box: Box) -> tuple[str, ...]:
    """Return bubblewrap's options, the filter excepted. The order counts: a later mount hides an earlier one."""
    made = [*_APART, "--setenv", "HOME", HOME]
    for name, value in box.env.items():
        made += ["--setenv", name, value]
    made += _mounts(box.system)
    made += ["--dev", "/dev", "--proc", "/proc", *_mounts(machine.kernel())]
    made += ["--perms", "1777", "--size", str(box.tmp), "--tmpfs", "/tmp"]  # noqa: S108  # the box's own
    made += ["--perms", "1777", "--size", str(box.shm), "--tmpfs", "/dev/shm"]  # noqa: S108
    made += _mounts(Mount("--ro-bind", path, path) for path in box.read_only)
    made += _mounts(Mount("--bind", path, path) for path in box.read_write)
    made += ["--bind", box.home, HOME, "--bind", box.tree, box.tree]
    if box.git is not None:
        # No mount lies below a folder that the agent can write, but this one and the tree's `.git`, whose folders
        # it cannot exchange: bubblewrap follows links in a target, and would make folders on the machine by them.
        made += ["--ro-bind", f"{box.tree}/.git", f"{box.tree}/.git", "--bind", box.git.folder, box.git.common]
        for number, store in enumerate(box.git.stores):
            made += ["--ro-bind", store, f"{STORES}/{number}"]
            if f"{store}/info/alternates" in box.git.hidden:
                made += ["--ro-bind", box.git.empty, f"{STORES}/{number}/info/alternates"]
    if box.io:
        made += ["--ro-bind", box.io, IO]  # a socket can be used in there, and nothing be put
    made += box.covers
    made += ["--chdir", box.cwd or box.tree, "--remount-ro", "/"]
    if any("\0" in word for word in made):
        raise SandboxUnavailable(f"cannot make a box: {_NO_NUL}")
    return tuple(made)


def look_options(
    tree: str, where: str, read_only: Iterable[str], read_write: Iterable[str], env: Mapping[str, str]
) -> tuple[str, ...]:
    """Return bubblewrap's options for a git that looks at an agent's worktree, which it cannot change.

    It may outlive the thread that started it, so it ends with its process group, and not with its parent.  It has the
    number of the user who looks, which git's index has for each file: else git would read all files again.

    Args:
        where: the folder to begin in.
        read_only: what git needs of the repository, and of the user's settings.
        read_write: folders of swarm's own, in which git writes for it.
    """
    made = [word for word in _APART if word != "--die-with-parent"]
    made[made.index("--uid") : made.index("--gid") + 2] = ["--uid", str(os.geteuid()), "--gid", str(os.getegid())]
    for name, value in env.items():
        made += ["--setenv", name, value]
    made += [*_mounts(machine.for_git()), "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    made += ["--perms", "1777", "--tmpfs", "/tmp"]  # noqa: S108
    for path in (*read_only, tree):
        made += ["--ro-bind", path, path]
    for path in read_write:
        made += ["--bind", path, path]
    made += ["--chdir", where, "--remount-ro", "/"]
    return tuple(made)


def _mounts(mounts: Iterable[Mount]) -> list[str]:
    return [word for mount in mounts for word in mount]


def inner(box: Box, argv: Sequence[str]) -> tuple[str, ...]:
    """Return what bubblewrap starts in a box: limits, the signals as they were, then the program."""
    memory = (f"--as={box.memory}",) if box.memory else ()
    file = (f"--fsize={box.file}",) if box.file else ()
    return ("prlimit", f"--nproc={box.processes}", *memory, *file, "--core=0", "env", _HEARD, "--", *argv)


def call_filter() -> bytes:
    """Return the filter of system calls for this machine.

    Raises:
        SandboxUnavailable: there is none for its architecture.
    """
    name = os.uname().machine
    found = seccomp.filter_for(name)
    if found is None:
        known = ", ".join(seccomp.ARCHITECTURES)
        raise SandboxUnavailable(f"cannot make a box: there is no filter of system calls for {name}, only for {known}")
    return found


def find(environ: Mapping[str, str]) -> str:
    """Return the path of bubblewrap; empty where it is not installed."""
    return shutil.which(PROGRAM, path=environ.get("PATH")) or ""


def wrap(spec: LaunchSpec, box: Box, run_dir: str, program: str) -> LaunchSpec:
    """Return a launch specification whose program runs in a box.

    Its environment is the box's and what the specification adds: nothing else of the caller's is seen inside.

    Args:
        run_dir: the agent's private folder, in which the specification's files are written; the box does not show it.
        program: the path of bubblewrap.
    """
    whole = replace(box, env={**box.env, **spec.env}, passes=(*box.passes, *_TERMINAL))
    notes = enter.notes(program, options(whole), call_filter(), whole.passes, whole.ports)
    start = (sys.executable, "-I", "-S", enter.__file__, f"{run_dir}/{NOTES}", *inner(whole, spec.argv))
    return replace(spec, argv=start, env={}, files={**spec.files, NOTES: notes})
