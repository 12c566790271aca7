"""Panes: one by one through libtmux, one process a command, one list of commands by hand, and swarm's driver.

Every run has a tmux server of its own, which is started within the time measured.  The panes run `cat`,
as they do with swarm in this measurement: what tmux does is measured, not what runs in the panes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from libtmux import Server

from swarm.terminal.tmux import HEIGHT, WIDTH, Tmux
from swarm.terminal.values import PanePlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SIZES = (4, 16, 64)
PER_WINDOW = 16
_FIELDS = "#{pane_id}\t#{@swarm_agent}\t#{pane_dead}\t#{pane_pid}"
_WAYS = ("libtmux", "processes", "chained", "swarm")


@contextlib.contextmanager
def _socket() -> Iterator[str]:
    """Give the path of a private server; it is ended in the end."""
    folder = Path(tempfile.mkdtemp(prefix="swbench-", dir="/tmp"))
    socket = str(folder / "s")
    try:
        yield socket
    finally:
        _tmux(socket, "kill-server", check=False)
        shutil.rmtree(folder, ignore_errors=True)


def _tmux(socket: str, *args: str, check: bool = True) -> str:
    done = subprocess.run(["tmux", "-S", socket, "-f", "/dev/null", *args], capture_output=True, text=True, check=check)
    return done.stdout


def _commands(number: int) -> list[list[str]]:
    """Return what a careful script would do: windows, panes, an even layout after each, and a mark on each."""
    commands: list[list[str]] = []
    for at in range(number):
        if at == 0:
            commands.append(["new-session", "-d", "-s", "bench", "-x", str(WIDTH), "-y", str(HEIGHT), "cat"])
        elif at % PER_WINDOW == 0:
            commands.append(["new-window", "-t", "bench:", "cat"])
        else:
            commands += [["split-window", "-t", "bench:", "cat"], ["select-layout", "-t", "bench:", "tiled"]]
        commands.append(["set-option", "-p", "-t", "bench:", "@swarm_agent", f"agent-{at}"])
    return commands


def _by_libtmux(socket: str, number: int) -> None:
    server = Server(socket_path=socket, config_file="/dev/null")
    session = server.new_session("bench", x=WIDTH, y=HEIGHT, window_command="cat")
    window = session.active_window
    for at in range(number):
        pane = window.active_pane
        if at and at % PER_WINDOW == 0:
            window = session.new_window(window_shell="cat")
            pane = window.active_pane
        elif at:
            pane = window.split(shell="cat")
            window.select_layout("tiled")
        assert pane is not None
        pane.cmd("set-option", "-p", "@swarm_agent", f"agent-{at}")


def _by_processes(socket: str, number: int) -> None:
    for command in _commands(number):
        _tmux(socket, *command)


def _by_chain(socket: str, number: int) -> None:
    file = Path(socket).parent / "commands"
    first, *rest = _commands(number)
    file.write_text("".join(" ".join(f'"{word}"' for word in command) + "\n" for command in rest), encoding="utf-8")
    _tmux(socket, *first, ";", "source-file", str(file))


def _by_swarm(socket: str, number: int) -> None:
    plans = [PanePlan(f"agent-{at}", Path("/"), ("cat",)) for at in range(number)]
    tmux = Tmux(socket, "bench", {"PATH": os.environ["PATH"], "HOME": str(Path(socket).parent)})
    made = tmux.open("0123456789abcdef", "operation", "bench", plans, PER_WINDOW)
    assert len(made) == number


_OPEN: dict[str, Callable[[str, int], None]] = {
    "libtmux": _by_libtmux,
    "processes": _by_processes,
    "chained": _by_chain,
    "swarm": _by_swarm,
}


def _look_libtmux(socket: str) -> int:
    server = Server(socket_path=socket)
    return len(
        [(pane.pane_id, pane.pane_pid, pane.cmd("show-options", "-p", "-v", "@swarm_agent")) for pane in server.panes]
    )


def _look_processes(socket: str) -> int:
    ids = _tmux(socket, "list-panes", "-a", "-F", "#{pane_id}").split()
    return len([_tmux(socket, "display-message", "-p", "-t", pane, _FIELDS) for pane in ids])


def _look_chain(socket: str) -> int:
    return len(_tmux(socket, "list-panes", "-a", "-F", _FIELDS).splitlines())


def _look_swarm(socket: str) -> int:
    return len(Tmux(socket, "bench", {"PATH": os.environ["PATH"]}).panes())


_LOOK: dict[str, Callable[[str], int]] = {
    "libtmux": _look_libtmux,
    "processes": _look_processes,
    "chained": _look_chain,
    "swarm": _look_swarm,
}


def _timed(act: Callable[[], object]) -> float:
    began = time.perf_counter_ns()
    act()
    return (time.perf_counter_ns() - began) / 1e6


def measure(number: int, turns: int) -> dict[str, object]:
    """Return one row: opening *number* panes, and one look at all of them, in each way; medians."""
    opened: dict[str, list[float]] = {way: [] for way in _WAYS}
    looked: dict[str, list[float]] = {way: [] for way in _WAYS}
    for turn in range(turns + 1):
        for way in _WAYS if turn % 2 else _WAYS[::-1]:
            with _socket() as socket:
                took = _timed(lambda way=way, socket=socket: _OPEN[way](socket, number))  # type: ignore[misc]
                assert len(_tmux(socket, "list-panes", "-a").splitlines()) == number
                if turn:  # the first is to warm up
                    opened[way].append(took)
                if way != "swarm":
                    continue
                for other in _WAYS:
                    assert _LOOK[other](socket) == number
                    looked[other].append(_timed(lambda other=other, socket=socket: _LOOK[other](socket)))  # type: ignore[misc]
    return {"panes": number, "open_ms": _medians(opened), "status_ms": _medians(looked)}


def _medians(times: dict[str, list[float]]) -> dict[str, float]:
    return {way: round(median(found), 1) for way, found in times.items()}


def run(*, quick: bool) -> list[dict[str, object]]:
    """Measure every row."""
    turns = 1 if quick else 5
    return [measure(number, turns) for number in (SIZES[:2] if quick else SIZES)]


def table(rows: Sequence[dict[str, object]]) -> list[str]:
    """Return the lines of a table."""
    head = " ".join(f"{way:>10}" for way in _WAYS)
    lines = [f"{'panes':>5} {'':8} {head} {'swarm/libtmux':>14} {'swarm/chained':>14}"]
    for row in rows:
        for what in ("open_ms", "status_ms"):
            times = row[what]
            assert isinstance(times, dict)  # made above
            cells = " ".join(f"{times[way]:10.1f}" for way in _WAYS)
            ratios = " ".join(f"{times['swarm'] / times[way]:14.3f}" for way in ("libtmux", "chained"))
            lines.append(f"{row['panes']:>5} {what.removesuffix('_ms'):8} {cells} {ratios}")
    return [*lines, "milliseconds; open includes starting the server; status is one look at all panes"]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="panes", description="Measure how panes are opened and looked at.")
    parser.add_argument("--quick", action="store_true", help="few and small: does it work at all")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    wish = parser.parse_args(argv)
    rows = run(quick=wish.quick)
    print(json.dumps({"panes": rows}, indent=2) if wish.json else "\n".join(table(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
