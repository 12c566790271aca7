"""The message bus beside what else could carry messages, in one run and in turns.

    python -m benchmarks.bus [--quick] [--json] [--folder DIR]

Run it on a disk: in memory a sync costs nothing.  A row is the median of its turns.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import mmap
import os
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from swarm.bus.box import Limits
from swarm.bus.filebus import FileBus
from swarm.bus.log import lines
from swarm.bus.log.log import Log
from swarm.bus.message import Message, encode
from swarm.bus.wake import Wake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BODY = "x" * 200
LIMITS = Limits(messages=10**8, octets=1 << 50)
#: So long after one message the next one is sent to a reader that waits.
_BETWEEN = 0.02
_STAMP = struct.Struct("q")


# --- the contestants: each makes, in the writer's process, a function that stores one message -----------


def _raw(folder: Path, me: int) -> Callable[[], object]:
    """What no log can do without: open, lock, write, close; the record is ready."""
    line = lines.seal(encode(Message("inbox.b", f"w{me}", BODY, id="0" * 28, time_ms=1)), 1)
    path = f"{folder}/raw.log"

    def act() -> None:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, line)
        os.close(fd)

    return act


def _raw_synced(folder: Path, me: int) -> Callable[[], object]:
    """The same, synced when the lock is free again, as the bus does."""
    line = lines.seal(encode(Message("inbox.b", f"w{me}", BODY, id="0" * 28, time_ms=1)), 1)
    path = f"{folder}/raw.log"

    def act() -> None:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, line)
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.fdatasync(fd)
        os.close(fd)

    return act


def _bus(folder: Path, me: int, *, durable: bool = False, opened: bool = True) -> Callable[[], object]:
    bus = FileBus(folder, limits=LIMITS)
    bus.declare("inbox.b")
    message = Message("inbox.b", f"w{me}", BODY)
    if opened:
        return lambda: bus.send(message, durable=durable)

    def act() -> None:
        bus.send(message, durable=durable)
        bus.close()

    return act


def _log(folder: Path, me: int) -> Callable[[], object]:
    """What ``raw`` does, the bus's way: numbered, summed, and never behind a torn record."""
    (folder / "log").mkdir(exist_ok=True)
    log = Log(str(folder / "log"))
    record = encode(Message("inbox.b", f"w{me}", BODY, id="0" * 28, time_ms=1))
    return lambda: log.append(record)


def _sqlite(folder: Path, me: int, *, full: bool) -> Callable[[], object]:
    base = sqlite3.connect(folder / "base.db", timeout=60, isolation_level=None)
    base.execute("pragma journal_mode=wal")
    base.execute(f"pragma synchronous={'full' if full else 'normal'}")
    base.execute("create table if not exists m (n integer primary key, box text, sender text, body text, done int)")
    base.execute("create index if not exists i on m (box, done, n)")
    return lambda: base.execute("insert into m (box, sender, body, done) values ('b', ?, ?, 0)", (str(me), BODY))


def _maildir(folder: Path, me: int) -> Callable[[], object]:
    for name in ("tmp", "new"):
        (folder / name).mkdir(exist_ok=True)
    data = encode(Message("inbox.b", f"w{me}", BODY, id="0" * 28, time_ms=1))
    new = os.open(folder / "new", os.O_RDONLY)
    count = iter(range(1 << 60))

    def act() -> None:
        name = f"{me}.{next(count)}"
        fd = os.open(folder / "tmp" / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, data)
        os.fsync(fd)
        os.close(fd)
        (folder / "tmp" / name).rename(folder / "new" / name)
        os.fsync(new)

    return act


def _redis(folder: Path, me: int, *, tcp: bool = False) -> Callable[[], object]:
    if tcp:
        connection = socket.create_connection(("127.0.0.1", int((folder / "port").read_text())))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    else:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(f"{folder}/redis.sock")
    parts = ["XADD", "b", "*", "from", str(me), "body", BODY]
    data = (f"*{len(parts)}\r\n" + "".join(f"${len(p)}\r\n{p}\r\n" for p in parts)).encode()

    def act() -> None:
        connection.sendall(data)
        while not connection.recv(4096).endswith(b"\r\n"):
            pass

    return act


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


@contextlib.contextmanager
def _redis_server(folder: Path, fsync: str) -> Any:
    program = shutil.which("redis-server")
    assert program is not None
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "port").write_text(str(port))
    words = [
        "--bind",
        "127.0.0.1",
        "--port",
        f"{port}",
        "--unixsocket",
        f"{folder}/redis.sock",
        "--appendonly",
        "yes",
        "--appendfsync",
        fsync,
    ]
    server = subprocess.Popen([program, *words, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 10
        while not _answers(f"{folder}/redis.sock") and time.monotonic() < deadline:
            time.sleep(0.01)
        yield
    finally:
        server.terminate()
        server.wait()


#: A killed program loses nothing that was stored; a power cut may.
KEPT: dict[str, Callable[[Path, int], Callable[[], object]]] = {
    "raw: open, lock, write, close": _raw,
    "bus: its log alone": _log,
    "bus: send": _bus,
    "bus: send, opened each time": lambda f, me: _bus(f, me, opened=False),
    "SQLite WAL NORMAL": lambda f, me: _sqlite(f, me, full=False),
    "Redis stream, TCP, everysec": lambda f, me: _redis(f, me, tcp=True),
    "Redis stream, everysec": _redis,
}
#: Each message is on the disk when it is stored.
SYNCED: dict[str, Callable[[Path, int], Callable[[], object]]] = {
    "raw: the same, then fdatasync": _raw_synced,
    "bus: send, durable": lambda f, me: _bus(f, me, durable=True),
    "SQLite WAL FULL": lambda f, me: _sqlite(f, me, full=True),
    "Redis stream, always": _redis,
    "a synced file per message": _maildir,
}
ROWS = {**KEPT, **SYNCED}


def rates(top: Path, writers: int, seconds: float, turns: int) -> dict[str, dict[str, float]]:
    """Return messages a second, and the times of single ones, of each row."""
    found: dict[str, list[list[int]]] = {}
    for turn in range(turns):
        for name, make in ROWS.items():
            folder = top / f"{writers}-{turn}-{len(found)}-{abs(hash(name))}"
            folder.mkdir()
            with contextlib.ExitStack() as stack:
                if name.startswith("Redis"):
                    if shutil.which("redis-server") is None:
                        continue
                    stack.enter_context(_redis_server(folder, name.rpartition(" ")[2]))
                make(folder, 0)()
                found.setdefault(name, []).append(_run(folder, make, writers, seconds))
            shutil.rmtree(folder)
    return {name: _figures(runs, seconds) for name, runs in found.items()}


def _figures(runs: list[list[int]], seconds: float) -> dict[str, float]:
    times = sorted(t for run in runs for t in run)
    return {
        "rate": round(median(len(run) for run in runs) / seconds),
        "p50_us": round(times[len(times) // 2] / 1000, 1),
        "p99_us": round(times[len(times) * 99 // 100] / 1000, 1),
    }


def _run(folder: Path, make: Callable[[Path, int], Callable[[], object]], writers: int, seconds: float) -> list[int]:
    """Let processes store messages for a time; return how long each took."""
    begin = time.monotonic() + 0.1
    pipes = []
    for me in range(writers):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(read)
            with os.fdopen(write, "wb") as file:
                file.write(json.dumps(_write(make(folder, me), begin, seconds)).encode())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    times: list[int] = []
    for read in pipes:
        with os.fdopen(read, "rb") as file:
            times += json.loads(file.read())
    for _ in pipes:
        os.wait()
    return times


def _write(act: Callable[[], object], begin: float, seconds: float) -> list[int]:
    act()
    while time.monotonic() < begin:
        time.sleep(0.001)
    end = time.perf_counter_ns() + int(seconds * 1e9)
    times = []
    before = time.perf_counter_ns()
    while before < end:
        act()
        now = time.perf_counter_ns()
        times.append(now - before)
        before = now
    return times


# --- a long queue, and waking up --------------------------------------------------------------------


def depths(top: Path, sizes: tuple[int, ...]) -> list[dict[str, float]]:
    """Return what one send, one take and one ack cost with so many messages waiting."""
    rows = []
    message = Message("inbox.b", "w", BODY)
    bus = FileBus(top / "deep", limits=LIMITS)
    bus.declare("inbox.b")
    there = 0
    for size in sizes:
        while there < size:
            bus.send(message, durable=False)
            there += 1
        row: dict[str, list[int]] = {"send": [], "take": [], "ack": [], "first take": []}
        for n in range(400):
            _timed(row["send"], lambda: bus.send(message, durable=False))
            claim = _timed(row["take"], partial(bus.receive, "inbox.b"))
            _timed(row["ack"], partial(bus.ack, claim))
            if n % 20 == 0:  # as a new process does
                fresh = FileBus(top / "deep", limits=LIMITS)
                bus.send(message, durable=False)
                claim = _timed(row["first take"], partial(fresh.receive, "inbox.b"))
                fresh.ack(claim)
                fresh.close()
        rows.append({"waiting": size, **{f"{k}_us": round(median(v) / 1000, 1) for k, v in row.items()}})
    return rows


def _timed(times: list[int], act: Callable[[], Any]) -> Any:
    before = time.perf_counter_ns()
    result = act()
    times.append(time.perf_counter_ns() - before)
    return result


def wakes(top: Path, count: int) -> dict[str, dict[str, float]]:
    """Return how long a blocked reader takes to be awake, and to have the message in its hands."""
    bus = FileBus(top / "wake", limits=LIMITS)
    bus.declare("inbox.b")
    found: dict[str, list[int]] = {"awake": [], "after the write": [], "in hand": []}
    rose: list[int] = []
    written = mmap.mmap(-1, _STAMP.size)
    with _sender(partial(_send_times, top / "wake", count, written)), _watched(rose):
        while len(found["in hand"]) < count:
            claim = bus.receive("inbox.b", wait=10)
            now = time.perf_counter_ns()
            assert claim is not None
            sent = int(claim.messages[0].body)
            found["in hand"].append(now - sent)
            # it may rise once more for the end of what it did itself; the first time after the sending counts
            first = [one for one in rose if one > sent][:1]
            found["awake"] += [one - sent for one in first]
            found["after the write"] += [one - _STAMP.unpack(written)[0] for one in first]
            rose.clear()
            bus.ack(claim)
    return {
        "bare inotify: awake": _pair(_bare_wakes(top, count)),
        "receive: awake after the write": _pair(found["after the write"]),
        "receive: awake after the call": _pair(found["awake"]),
        "receive: has the message": _pair(found["in hand"]),
        "poll every 100 ms": {"p50_us": 50_000, "p99_us": 99_000},
    }


@contextlib.contextmanager
def _sender(act: Callable[[], None]) -> Iterator[None]:
    """Run something in another process meanwhile."""
    if (pid := os.fork()) == 0:
        act()
        os._exit(0)
    yield
    os.waitpid(pid, 0)


@contextlib.contextmanager
def _watched(rose: list[int]) -> Iterator[None]:
    """Note when a reader awakes."""
    true_wait = Wake.wait

    def wait(self: Wake, seconds: float) -> None:
        true_wait(self, seconds)
        rose.append(time.perf_counter_ns())

    Wake.wait = wait  # type: ignore[method-assign]
    try:
        yield
    finally:
        Wake.wait = true_wait  # type: ignore[method-assign]


def _send_times(folder: Path, count: int, written: mmap.mmap) -> None:
    """Send the time of each call, and leave that of its write, which is what the bare watch is measured from."""
    true_write = os.write

    def write(fd: int, data: bytes) -> int:
        _STAMP.pack_into(written, 0, time.perf_counter_ns())
        return true_write(fd, data)

    os.write = write  # type: ignore[assignment]
    bus = FileBus(folder, limits=LIMITS)
    for _ in range(count):
        time.sleep(_BETWEEN)
        stamp = str(time.perf_counter_ns())
        bus.send(Message("inbox.b", "w", stamp), durable=False)


def _bare_wakes(top: Path, count: int) -> list[int]:
    """The same with nothing but a file, a write, and a watch."""
    folder = top / "bare"
    folder.mkdir()
    path = folder / "file"
    path.touch()
    watch = Wake([str(folder)])

    def write() -> None:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND)
        for _ in range(count):
            time.sleep(_BETWEEN)
            os.write(fd, b"%d\n" % time.perf_counter_ns())

    times: list[int] = []
    with _sender(write), path.open("rb") as file:
        while len(times) < count:
            watch.wait(2)
            now = time.perf_counter_ns()
            times += [now - int(stamp) for stamp in file.read().split()]
    watch.close()
    return times


def _pair(some: list[int]) -> dict[str, float]:
    times = sorted(some)
    return {
        "p50_us": round(times[len(times) // 2] / 1000, 1),
        "p99_us": round(times[len(times) * 99 // 100] / 1000, 1),
    }


def run(top: Path, *, quick: bool) -> dict[str, Any]:
    """Measure everything."""
    seconds, turns = (0.2, 1) if quick else (1.0, 3)
    return {
        "load": round(os.getloadavg()[0], 2),
        "one_writer": rates(top, 1, seconds, turns),
        "eight_writers": rates(top, 8, seconds, turns),
        "depth": depths(top, (0, 10_000) if quick else (0, 100_000, 1_000_000)),
        "wake": wakes(top, 30 if quick else 300),
    }


def table(found: dict[str, Any]) -> list[str]:
    """Return it for people."""
    out = [f"load {found['load']}; 200-byte bodies; messages/s (p50 / p99 in us)", ""]
    out.append(f"{'':<32}{'1 writer':>28}{'8 writers':>28}")
    for what, rows in (("a power cut may lose the last", KEPT), ("on the disk, each message", SYNCED)):
        out.append(f"-- {what}")
        for name in rows:
            cells = [found[key].get(name) for key in ("one_writer", "eight_writers")]
            shown = [f"{c['rate']:,} ({c['p50_us']:g} / {c['p99_us']:g})" if c else "not installed" for c in cells]
            out.append(f"{name:<32}{shown[0]:>28}{shown[1]:>28}")
    out += ["", *_ratios(found)]
    out += ["", f"{'waiting':>10}{'send':>10}{'take':>10}{'ack':>10}{'first take of a process':>26}  (us)"]
    for row in found["depth"]:
        left = f"{row['waiting']:>10,}{row['send_us']:>10g}{row['take_us']:>10g}{row['ack_us']:>10g}"
        out.append(f"{left}{row['first take_us']:>26g}")
    out += ["", f"{'until a reader is awake (us)':<32}{'p50':>9}{'p99':>10}"]
    out += [f"{name:<32}{row['p50_us']:>9g}{row['p99_us']:>10g}" for name, row in found["wake"].items()]
    return out


def _ratios(found: dict[str, Any]) -> list[str]:
    """Return what was wanted, as ratios within this run."""
    one, eight = found["one_writer"], found["eight_writers"]

    def ratio(rows: dict[str, Any], name: str, other: str) -> str:
        if name not in rows or other not in rows:
            return f"{'?':>7}  ({other} is not installed: redis-server)"
        return f"{rows[name]['rate'] / rows[other]['rate']:>7.2f}"

    raw, log = "raw: open, lock, write, close", "bus: its log alone"
    durable, file = "bus: send, durable", "a synced file per message"
    first, last = found["depth"][0], found["depth"][-1]
    deep = [f"{k} {last[f'{k}_us'] / first[f'{k}_us']:.2f}" for k in ("send", "take", "ack", "first take")]
    bare, awake, called, has = [times["p99_us"] for times in found["wake"].values()][:4]
    return [
        "ratios of this run (goal)",
        f"  9: log alone / raw, 1 writer (0.9)           {ratio(one, log, raw)}",
        f"     send / raw, 1 writer                      {ratio(one, 'bus: send', raw)}",
        f"     log alone / SQLite NORMAL, 8 writers (3)  {ratio(eight, log, 'SQLite WAL NORMAL')}",
        f"     send / SQLite NORMAL, 8 writers (3)       {ratio(eight, 'bus: send', 'SQLite WAL NORMAL')}",
        f"     log alone / Redis by TCP, 8 writers (2)   {ratio(eight, log, 'Redis stream, TCP, everysec')}",
        f"     log alone / Redis by a socket file (2)    {ratio(eight, log, 'Redis stream, everysec')}",
        f"     send / Redis everysec, 8 writers (2)      {ratio(eight, 'bus: send', 'Redis stream, everysec')}",
        f"     durable / raw synced, 8 writers           {ratio(eight, durable, 'raw: the same, then fdatasync')}",
        f"     durable / SQLite FULL, 8 writers          {ratio(eight, durable, 'SQLite WAL FULL')}",
        f"     durable / Redis always, 8 writers         {ratio(eight, durable, 'Redis stream, always')}",
        f"     durable / a synced file, 8 writers        {ratio(eight, durable, file)}",
        f" 10: {last['waiting']:,} waiting / none (1.1)           {', '.join(deep)}",
        f" 11: blocked reader awake, p99 us (200)        {awake:>7g}  (a bare watch {bare:g};",
        f"     from the call on {called:g}, until it has the message {has:g})",
        f" 12: durable, 8 writers / 1 writer (2)         {eight[durable]['rate'] / one[durable]['rate']:>7.2f}",
    ]


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="scripts/bench bus", description="Measure the message bus beside others.")
    parser.add_argument("--quick", action="store_true", help="few and small: does it work at all")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--folder", default=".", help="where to measure: on a disk (default: here)")
    wish = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix=".bench-bus-", dir=wish.folder) as name:
        found = run(Path(name).resolve(), quick=wish.quick)
    print(json.dumps(found, indent=2) if wish.json else "\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
