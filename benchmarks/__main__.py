"""Measure: ``python -m benchmarks --help`` lists what; ``scripts/bench`` runs it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

from benchmarks import (
    boxes,
    counts,
    looks,
    panes,
    plots,
    pods,
    running,
    scratch,
    serving,
    spawning,
    startup,
    teams,
    worktrees,
)

#: Those that make a place of their own.
_PLAIN = {
    one.__name__.removeprefix("benchmarks."): one
    for one in (counts, startup, looks, pods, spawning, running, serving, panes, boxes)
}


def main() -> int:
    """Measure and print."""
    if sys.argv[1:2] == ["bus"]:  # has options of its own, and measures on a disk
        from benchmarks import bus

        return bus.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure swarm against plain git.")
    parser.add_argument(
        "what",
        nargs="?",
        choices=("worktrees", "teams", *_PLAIN, "bus", "all"),
        default="all",
    )
    parser.add_argument("--quick", action="store_true", help="few and small: does it work at all")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--plots", metavar="DIR", type=Path, help="also write an SVG of each table that has goals")
    wish = parser.parse_args()
    found: dict[str, object] = {}
    with scratch.folder() as top:
        found["where"] = _where(top)
        if wish.what in ("worktrees", "all"):
            found["worktrees"] = worktrees.run(top, quick=wish.quick)
    if wish.what in ("teams", "all"):
        with scratch.disk() as (place, kind):
            found["teams on"] = kind
            found["teams"] = teams.run(place, quick=wish.quick)
    for name, one in _PLAIN.items():
        if wish.what in (name, "all"):
            found[name] = one.run(quick=wish.quick)
    if wish.plots is not None:
        plots.write(found, wish.plots)
    print(json.dumps(found, indent=2) if wish.json else "\n".join(_text(found)))
    return 0


def _where(top: Path) -> dict[str, object]:
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", str(top)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "folder": str(top.parent),
        "file_system": kind or "unknown",
        "git": subprocess.run(["git", "version"], capture_output=True, text=True, check=True).stdout.split()[2],
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def _text(found: dict[str, object]) -> list[str]:
    where = found["where"]
    assert isinstance(where, dict)  # made above
    machine = f"{where['processors']} processors, load {where['load']}, git {where['git']}, Python {where['python']}"
    lines = [
        f"in {where['folder']} ({where['file_system']}), {machine}",
        "in turns within this run, medians where nothing else is said; a ratio below 1 is faster than plain git",
    ]
    for name, how in (
        ("worktrees", worktrees.table),
        ("teams", teams.table),
        ("counts", counts.table),
        ("startup", startup.table),
        ("looks", looks.table),
        ("pods", pods.table),
        ("spawning", spawning.table),
        ("running", running.table),
        ("serving", serving.table),
        ("serving", serving.table),
        ("panes", panes.table),
        ("boxes", boxes.table),
    ):
        rows = found.get(name)
        if isinstance(rows, list):
            lines += ["", *([str(found["teams on"])] if name == "teams" else []), *how(rows)]
    return lines


if __name__ == "__main__":
    sys.exit(main())
