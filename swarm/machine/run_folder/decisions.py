"""The log of what an agent in a box asked of the network, and what came of it: a line of JSON each."""

from __future__ import annotations

import contextlib
import os
import time

from swarm.machine import own, records

#: In the agent's run folder, which its box does not show.
FILE, OLD = "network.jsonl", "network.old.jsonl"
_ROLL_AT = 1 << 20
_LONGEST = 300


def last(run_dir: str, most: int = 20) -> list[dict[str, object]]:
    """Return the last decisions of an agent, each target once, newest first; with how often it was asked for."""
    found: dict[tuple[object, ...], dict[str, object]] = {}
    for name in (OLD, FILE):
        try:
            lines = records.read_bytes(os.path.join(run_dir, name), 2 * _ROLL_AT).splitlines()
        except (OSError, ValueError):
            continue
        for line in lines:
            try:
                one = records.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(one, dict):
                key = tuple(one.get(word) for word in ("by", "target", "allowed", "reason"))
                times = found.pop(key, {}).get("times", 0)
                found[key] = {**one, "times": times + 1 if isinstance(times, int) else 1}
    return list(reversed(found.values()))[:most]


class Decisions:
    """The log of one agent.

    Args:
        run_dir: its run folder; empty: nothing is kept.
    """

    def __init__(self, run_dir: str) -> None:
        self._run_dir = run_dir

    def note(self, by: str, target: str, reason: str, *, allowed: bool) -> None:
        """Add a decision.

        Args:
            by: ``proxy`` or the name of a door.
        """
        if not self._run_dir:
            return
        record = {
            "at_ms": time.time_ns() // 1_000_000,
            "by": by,
            "target": target[:_LONGEST],
            "allowed": allowed,
            "reason": reason[:_LONGEST],
        }
        path = os.path.join(self._run_dir, FILE)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(
            OSError
        ):  # the disk is full, or the folder is gone: what is decided holds all the same
            fd = os.open(path, flags, 0o600)
            try:
                os.write(fd, records.line(record))
                if os.fstat(fd).st_size > _ROLL_AT:
                    own.replace(path, os.path.join(self._run_dir, OLD))
            finally:
                os.close(fd)
