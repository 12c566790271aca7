"""How long an agent's programs have run, over all starts."""

from __future__ import annotations

import os

from swarm.machine.run_folder import runfiles

_WHOSE = ("pid", "pid_start", "boot_id")


def ran_before(run_dir: str) -> int:
    """Return for how many milliseconds the program that process.json tells of ran, and all before it."""
    process, ended = runfiles.read(run_dir, runfiles.PROCESS) or {}, runfiles.read(run_dir, runfiles.EXIT) or {}
    started, end = _whole(process.get("started_ms")), _whole(ended.get("ended_ms"))
    if [process.get(key) for key in _WHOSE] != [ended.get(key) for key in _WHOSE]:
        end = last_sign(run_dir)  # its supervisor was killed, too
    return _whole(process.get("ran_ms")) + (max(0, end - started) if started else 0)


def last_sign(run_dir: str) -> int:
    """Return when the program last gave a sign of life, as far as the run folder tells; 0 when it does not."""
    try:
        return os.stat(os.path.join(run_dir, runfiles.STATE)).st_mtime_ns // 1_000_000
    except OSError:
        return 0


def _whole(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0
