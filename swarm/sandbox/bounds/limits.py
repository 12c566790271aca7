"""What holds the limits of a box that bubblewrap does not hold: memory of all its processes together, and the disk."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.machine import records
from swarm.machine.run_folder import runfiles
from swarm.sandbox import command, machine
from swarm.sandbox.values import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from swarm.programs.values import LaunchSpec
    from swarm.project.model import Boxed
    from swarm.sandbox.bounds.denied import Held

#: Who holds the limit of memory: the kernel for all processes together, or for each process alone.
TOGETHER, EACH = "cgroup", "process"
_PROGRAM = "systemd-run"
#: By these the user's manager is found.
_WAYS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
_TRIAL_BYTES = 1 << 30
#: Says the limit that the kernel holds for the cgroup it runs in.
_TRIAL = 'IFS= read -r line </proc/self/cgroup && cat "/sys/fs/cgroup${line#0::}/memory.max"'
_PATIENCE = 5.0


def scope(program: str, memory: int, processes: int) -> tuple[str, ...]:
    """Return the beginning of a command that runs in a cgroup of its own; the process stays the same one."""
    whose = () if os.geteuid() == 0 else ("--user",)
    most = (f"--property=MemoryMax={memory}", f"--property=TasksMax={processes}")
    return (program, *whose, "--scope", "--quiet", "--collect", *most, "--")


def manager(environ: Mapping[str, str]) -> str:
    """Return the program that makes cgroups, where a limit of memory holds in one that it makes; else nothing."""
    program = shutil.which(_PROGRAM, path=environ.get("PATH"))
    return _tried(program, ways(environ)) if program else ""


def ways(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the variables by which the user's manager is found."""
    return tuple((name, environ[name]) for name in _WAYS if name in environ)


@functools.cache
def _tried(program: str, found: tuple[tuple[str, str], ...]) -> str:
    """Make one, and look at its limit: a manager may be there and have been given no memory to limit."""
    trial = (*scope(program, _TRIAL_BYTES, 64), "sh", "-c", _TRIAL)
    env = {"PATH": os.defpath, "LC_ALL": "C", **dict(found)}
    try:
        done = subprocess.run(
            trial, env=env, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return program if done.stdout.strip() == b"%d" % _TRIAL_BYTES else ""


def held(spec: LaunchSpec, boxed: Boxed, program: str, environ: Mapping[str, str], rules: Sequence[Held]) -> LaunchSpec:
    """Return the launch of a box in a cgroup, where it has a limit of memory and there is somebody who makes cgroups.

    The agent's run folder tells whether that is so, and which rules the box holds.

    Args:
        program: what `manager` found; without it each process of the box has the limit for itself (`command.inner`).
    """
    by = "" if not boxed.memory else TOGETHER if program else EACH
    told = {"schema": records.SCHEMA, "memory_by": by, "messages": boxed.messages, "rules": rules}
    spec = replace(spec, files={**spec.files, runfiles.HELD: json.dumps(told)})
    if not program:
        return spec
    argv = (*scope(program, boxed.memory, boxed.processes or PROCESSES), *spec.argv)
    return replace(spec, argv=argv, env=dict(ways(environ)))


def measuring(program: str, folders: Sequence[str]) -> list[str]:
    """Return the command that says how many KiB folders take, a line for each.

    An agent can make folders that nobody may list.  So this runs in a box in which it may read everything, and sees
    nothing but these.
    """
    apart = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--uid", "0", "--gid", "0")
    may = ("--cap-drop", "ALL", "--cap-add", "CAP_DAC_READ_SEARCH", "--die-with-parent", "--clearenv")
    seen = [word for mount in machine.system() for word in mount]
    for folder in folders:
        seen += ["--ro-bind", folder, folder]
    return [program, *apart, *may, *seen, "--chdir", "/", "--", "du", "-skx", "--", *folders]


def disk(environ: Mapping[str, str], boxed: Boxed, base: Path, *written: Path) -> dict[str, Any]:
    """Return what a supervisor needs to hold an agent to its limit of disk; empty without one.

    Args:
        base: the folder of its box.
        written: where else it can write.
    """
    if not boxed.disk:
        return {}
    folders = [
        str(one) for one in (*written, base / "git", base / "home") if files.exists(one)
    ]  # a worker has no git of its own
    return {"limit": boxed.disk, "argv": measuring(command.find(environ), folders), "at": str(base)}


def used(run_dir: Path) -> dict[str, int | str]:
    """Return what is known of an agent's use of its limits: bytes on the disk, and who holds its memory."""
    held = runfiles.read(str(run_dir), runfiles.HELD) or {}
    taken = (runfiles.read(str(run_dir), runfiles.DISK) or {}).get("bytes")
    by = held.get("memory_by")
    return {
        "memory_by": by if by in (TOGETHER, EACH) else "",
        "disk_used": taken if isinstance(taken, int) and taken >= 0 else 0,
    }


def rules_of(run_dir: Path) -> tuple[tuple[str, bool, str], ...]:
    """Return the deny rules of an agent in a box, whether the box holds each, and what is to be said of it."""
    rules = (runfiles.read(str(run_dir), runfiles.HELD) or {}).get("rules")
    found = rules if isinstance(rules, list) else []
    return tuple((str(one[0]), one[1] is True, str(one[2])) for one in found if isinstance(one, list) and len(one) == 3)


def limits_of(boxed: Boxed, run_dir: Path) -> dict[str, int | str]:
    """Return the limits of an agent's box by name, and what it uses of them; 0 is no limit."""
    limits = {name: getattr(boxed, name) for name in ("processes", "memory", "tmp", "disk", "messages")}
    return {**limits, **used(run_dir)}
