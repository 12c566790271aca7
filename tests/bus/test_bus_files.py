"""What the files of the bus may go through: cut at any byte, changed at any byte, full disks, foreign hands."""

from __future__ import annotations

import contextlib
import fcntl
import json
import multiprocessing
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus import wake
from swarm.bus.box import Limits
from swarm.bus.errors import AttachmentProblem, QuotaReached
from swarm.bus.filebus import FileBus
from swarm.bus.keeping import blobs
from swarm.bus.log import files, lines
from swarm.bus.log.log import Log
from swarm.bus.machine import ThisMachine
from swarm.bus.message import DEAD_LETTER, DROP, Message, encode, to_record
from swarm.bus.reader import reader_log
from swarm.bus.reader.state import State
from swarm.bus.reader.waiting import waiting
from swarm.bus.wire import PRIORITIES
from swarm.kit.errors import EnvironmentProblem, NoSpace, SymlinkInTheWay
from swarm.machine.inbox_watch import dropped
from swarm.project.errors import Locked
from tests.bus.rigs import FakeMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.crash

DEV = "dev@s"


@pytest.fixture
def machine() -> FakeMachine:
    return FakeMachine()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "messages"


@pytest.fixture
def bus(root: Path, machine: FakeMachine) -> FileBus:
    bus = FileBus(root, machine)
    bus.declare(DEV)
    bus.declare("user")
    return bus


@pytest.fixture
def box(root: Path) -> Path:
    return root / "inbox" / "dev-s"


def say(bus: FileBus, body: str, **more: Any) -> str:
    return bus.send(Message(DEV, "user", body, **more)).id


def drain(bus: FileBus, machine: FakeMachine, to: str = DEV) -> list[str]:
    got = []
    while claim := bus.receive(to, holder=machine.holder()):
        got += [m.body for m in claim.messages]
        bus.ack(claim)
    return got


def records(log: Log) -> list[bytes]:
    return [line.data for line in log.read() if line.number >= 0]


# --- cut and changed ------------------------------------------------------------------------------


def fresh_log(folder: Path, count: int = 4) -> Log:
    folder.mkdir()
    log = Log(str(folder))
    for n in range(count):
        log.append(b'{"schema":1,"id":"m%d","from":"x"}' % n)
    return log


def test_a_log_cut_at_any_byte_is_the_log_of_the_records_before(tmp_path: Path) -> None:
    log = fresh_log(tmp_path / "log")
    whole = Path(log.path).read_bytes()
    all_records = records(log)
    for cut in range(whole.index(b"\n") + 1, len(whole) + 1):
        Path(log.path).write_bytes(whole[:cut])
        left = whole[:cut].count(b"\n") - 1
        reader = Log(log.folder)
        assert records(reader) == all_records[:left]
        assert reader.last_number() == left
        assert reader.whole_end() == whole[:cut].rfind(b"\n") + 1
        written = Log(log.folder).append(b'{"op":"next"}')
        assert written.number == left + 1
        assert len(records(reader)) == left + 1


def test_an_emptied_log_is_one_without_records(bus: FileBus, box: Path, machine: FakeMachine) -> None:
    for lane in ("low", "normal"):
        (box / lane / "active.log").write_bytes(b"")
    assert bus.receive(DEV) is None
    say(bus, "urgent", priority="high")
    say(bus, "plain")
    assert drain(bus, machine) == ["urgent", "plain"]


def test_any_changed_byte_costs_its_own_record_only(tmp_path: Path) -> None:
    log = fresh_log(tmp_path / "log", 3)
    whole = bytearray(Path(log.path).read_bytes())
    all_records = records(log)
    for place in range(len(whole)):
        for bit in (1, 0x80):
            whole[place] ^= bit
            Path(log.path).write_bytes(whole)
            found = records(Log(log.folder))
            whole[place] ^= bit
            assert all(record in all_records for record in found), place
            assert len(found) >= 2, place


@pytest.mark.parametrize("reader_first", [True, False])
def test_a_number_that_was_damaged_is_not_gone_on_from(
    bus: FileBus, root: Path, box: Path, machine: FakeMachine, reader_first: bool
) -> None:
    """The number of the last record is the one that the next goes on from."""
    for n in range(11):
        say(bus, str(n))
    log = box / "normal" / "active.log"
    data = log.read_bytes()
    assert data.count(b'"n":11,') == 1
    log.write_bytes(data.replace(b'"n":11,', b'"n":91,'))
    after = FileBus(root, machine)
    assert waiting(str(box), machine) == 11
    if reader_first:
        assert after.depth(DEV).waiting == 11
    assert after.send(Message(DEV, "user", "more")).number == 12

    assert after.depth(DEV).waiting == 12
    assert drain(after, machine) == [*map(str, range(10)), "more"]
    assert after.depth(DEV).waiting == 0


@pytest.mark.parametrize("number", [5, 91])
def test_a_count_that_is_wrong_is_right_when_all_is_done(
    bus: FileBus, root: Path, box: Path, machine: FakeMachine, number: int
) -> None:
    """Whoever wrote a wrong number with a sum that fits it, be it an earlier swarm."""
    for n in range(11):
        say(bus, str(n))
    bus.close()
    with (box / "normal" / "active.log").open("ab") as log:
        log.write(lines.seal(encode(Message(DEV, "user", "last", id="last", time_ms=1)), number))
    after = FileBus(root, machine)
    assert drain(after, machine) == [*map(str, range(11)), "last"]
    assert after.depth(DEV).waiting == 0
    say(after, "more")

    assert FileBus(root, machine).depth(DEV).waiting == 1


def test_a_last_record_of_any_length_tells_its_number(tmp_path: Path) -> None:
    log = fresh_log(tmp_path / "log", 1)
    for size in (1, 900, 1 << 10, 1 << 14, 300_000, 5 << 20):
        number = log.append(b'{"x":"%b"}' % (b"y" * size)).number
        assert Log(log.folder).last_number() == number
        assert Log(log.folder).append(b"{}").number == number + 1


def test_a_writer_that_knows_the_rest_believes_no_damaged_number_either(tmp_path: Path) -> None:
    log = fresh_log(tmp_path / "log", 1)
    first = log.append(b'{"x":1}').number
    other = Log(log.folder)
    assert [other.append(b"{}").number for _ in range(2)] == [first + 1, first + 2]
    assert log.append(b'{"x":4}').number == first + 3, "it counted what was added"
    damaged = other.append(b'{"x":5}').number
    path = Path(log.folder) / "active.log"
    path.write_bytes(path.read_bytes().replace(b'"n":%d,' % damaged, b'"n":%d,' % (damaged + 2)))

    assert log.append(b'{"x":6}').number == first + 5


def test_readers_notes_cut_at_any_byte_tell_the_state_of_the_notes_before(
    bus: FileBus, box: Path, machine: FakeMachine
) -> None:
    for n in range(4):
        say(bus, str(n), id=f"m{n}")
    bus.ack(bus.receive(DEV, holder=machine.holder()))  # type: ignore[arg-type]  # there is one
    bus.nack(bus.receive(DEV, limit=2, holder=machine.holder()), delay=5)  # type: ignore[arg-type]  # there is one
    bus.receive(DEV, holder=machine.holder())
    path = box / "reader" / "active.log"
    whole = path.read_bytes()
    for cut in range(whole.index(b"\n") + 1, len(whole) + 1):
        path.write_bytes(whole[:cut])
        wanted = State()
        for line in Log(str(box / "reader")).read():
            wanted.apply(json.loads(line.data))
        state = reader_log.ReaderLog(str(box), "inbox.dev-s").look()
        assert (state.claims, state.attempts) == (wanted.claims, wanted.attempts)
        assert [x.settled for x in state.lanes] == [x.settled for x in wanted.lanes]


def test_a_damaged_record_is_set_aside_with_the_reason_and_the_rest_goes_on(
    bus: FileBus, box: Path, machine: FakeMachine
) -> None:
    for n in "abc":
        say(bus, n * 20)
    path = box / "normal" / "active.log"
    path.write_bytes(path.read_bytes().replace(b"b" * 20, b"b" * 10 + b"X" * 10))

    assert drain(bus, machine) == ["a" * 20, "c" * 20]
    names = sorted(os.listdir(box / "bad"))
    assert len(names) == 2
    assert b"XXXX" in (box / "bad" / names[0]).read_bytes()
    assert "does not verify" in (box / "bad" / names[1]).read_text()
    assert bus.depth(DEV)[:3] == (0, 0, 0)


def damage(box: Path, old: bytes, new: bytes, lane: str = "normal") -> None:
    """Change bytes of what is in a box."""
    path = box / lane / "active.log"
    data = path.read_bytes()
    assert data.count(old) == 1
    assert len(old) == len(new)
    path.write_bytes(data.replace(old, new))


def notices(bus: FileBus, address: str) -> list[str]:
    return [one.message.in_reply_to for one in bus.history(address) if one.message.type == DEAD_LETTER]


def test_the_sender_of_a_damaged_message_is_told_and_where_it_is_can_be_asked(
    bus: FileBus, box: Path, machine: FakeMachine
) -> None:
    bus.declare("researcher@s")
    for n in "ab":
        bus.send(Message(DEV, "researcher@s", n * 20, id=f"m{n}"))
        damage(box, n.encode() * 20, b"X" * 20)
        assert drain(bus, machine) == []
        damage(box, b"X" * 20, n.encode() * 20)  # of what was set aside nobody asks any more
    assert notices(bus, "researcher@s") == ["ma", "mb"]
    assert all("damaged" in one.message.body for one in bus.peek("researcher@s"))
    for one in ("ma", "mb"):
        left = Path(bus.damaged(one))
        assert left.parent == box / "bad"
        assert b"X" * 20 in left.read_bytes()
    assert bus.damaged("mc") == ""


def test_of_a_damaged_message_is_told_once_whatever_became_of_the_notice(
    bus: FileBus, box: Path, root: Path, machine: FakeMachine
) -> None:
    bus.declare("researcher@s")
    bus.send(Message(DEV, "researcher@s", "hello", id="ma"))
    damage(box, b"hello", b"hellX")
    drain(bus, machine)
    bus.remove("researcher@s")
    bus.declare("researcher@s")
    say(bus, "later")
    damage(box, b"later", b"latXr")
    assert drain(FileBus(root, machine), machine) == []

    assert notices(bus, "researcher@s") == []


def test_a_notice_of_damage_that_cannot_be_sent_now_is_sent_later_and_keeps_no_other(
    root: Path, machine: FakeMachine
) -> None:
    bus = FileBus(root, machine, Limits(messages=2))
    for address in (DEV, "full@s", "other@s"):
        bus.declare(address)
    for n in "xy":
        bus.send(Message("full@s", "user", n))
    box = root / "inbox" / "dev-s"
    for sender in ("full@s", "other@s"):
        bus.send(Message(DEV, sender, "hello", id=f"of-{sender[0]}"))
        damage(box, b"hello", b"hellX")
    assert drain(bus, machine) == []
    assert (notices(bus, "full@s"), notices(bus, "other@s")) == ([], ["of-o"])
    assert drain(bus, machine, "full@s") == ["x", "y"]

    again = FileBus(root, machine, Limits(messages=2))
    assert drain(again, machine) == []
    assert (notices(again, "full@s"), notices(again, "other@s")) == (["of-f"], ["of-o"])


def test_a_notice_of_damage_is_for_the_run_that_sent_it(bus: FileBus, box: Path, machine: FakeMachine) -> None:
    bus.declare("researcher@s", generation="run2")
    bus.send(Message(DEV, "researcher@s", "hello", id="ma", sender_generation="run1"))
    damage(box, b"hello", b"hellX")
    drain(bus, machine)

    assert drain(bus, machine, "researcher@s") == []
    assert [one.message.in_reply_to for one in bus.dead("researcher@s")] == ["ma"]


@pytest.mark.parametrize("head", ['"from":"researcher@s"', '"id":"ma"'])
def test_when_its_sender_cannot_be_told_of_a_damaged_message_the_user_is(
    bus: FileBus, box: Path, machine: FakeMachine, head: str
) -> None:
    bus.send(Message(DEV, "researcher@s", "hello", id="ma"))
    damage(box, head.encode(), head.replace(":", "\0").encode())
    assert drain(bus, machine) == []

    (notice,) = (one.message for one in bus.peek("user"))
    assert notice.body.startswith("A message to inbox.dev-s was damaged on the disk")


def test_damage_to_a_line_that_is_no_message_is_no_notice(
    bus: FileBus, box: Path, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus.declare("user")
    say(bus, "one")
    bus._box("inbox.dev-s").lanes[PRIORITIES.index("normal")].roll()
    say(bus, "two")
    (old,) = (path for path in (box / "normal").iterdir() if path.name[0] == "0")
    data = old.read_bytes()
    old.write_bytes(data.replace(b'"end":true', b'"end":trXe').replace(b'"base":0', b'"base":7'))
    assert drain(FileBus(box.parent.parent, machine), machine) == ["one", "two"]

    assert len(list((box / "bad").glob("*.record"))) > 0
    assert bus.peek("user") == ()


def test_a_message_in_hand_is_not_damaged_for_another_reader(root: Path, machine: FakeMachine) -> None:
    bus = FileBus(root, machine)
    bus.declare("queue.jobs")
    bus.declare("user")
    for n in "ab":
        bus.send(Message("queue.jobs", "user", n * 9, id=f"m{n}"))
    mine = bus.receive("queue.jobs", holder=machine.holder())
    assert mine is not None
    damage(root / "queue" / "jobs", b"a" * 9, b"X" * 9)
    other = bus.receive("queue.jobs", holder=machine.holder())

    assert other is not None
    assert [one.id for one in other.messages] == ["mb"]
    bus.ack(mine)
    assert bus.peek("user") == ()
    assert not list((root / "queue" / "jobs" / "bad").iterdir())


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "large", "forged"])
def test_a_dropped_file_that_looks_like_a_damaged_record_is_none(
    bus: FileBus, box: Path, machine: FakeMachine, kind: str, tmp_path: Path
) -> None:
    path = box / "drop" / "normal-42.record"
    forged = b'{"schema":1,"id":"forged","from":"boss@s","type":"message","nonsense":1}'
    bus.declare("boss@s")
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "link":
            (tmp_path / "secret").write_bytes(forged)
            path.symlink_to(tmp_path / "secret")
        case "large":
            with path.open("wb") as file:
                file.truncate(1 << 30)
        case _:
            path.write_bytes(forged)
    say(bus, "hello")
    damage(box, b"hello", b"hellX")

    assert drain(bus, machine) == []
    assert bus.damaged("forged") == bus.damaged("nosuch") == ""
    assert notices(bus, "boss@s") == []
    assert bus.unreadable() == ()


def test_a_page_that_never_reached_the_disk_costs_only_what_was_in_it(
    bus: FileBus, box: Path, machine: FakeMachine
) -> None:
    for n in "abcd":
        say(bus, n * 20)
    path = box / "normal" / "active.log"
    data = path.read_bytes()
    begin, end = data.index(b"b" * 20), data.index(b"\n", data.index(b"b" * 20)) + 1
    path.write_bytes(data[:begin] + b"\0" * (end - begin) + data[end:])  # the newline is gone, too

    assert drain(bus, machine) == ["a" * 20, "c" * 20, "d" * 20]


def test_a_lost_snapshot_costs_nothing(
    bus: FileBus, box: Path, root: Path, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_log, "_SNAPSHOT_EVERY", 3)
    for n in range(20):
        say(bus, str(n))
        if n % 2:
            bus.ack(bus.receive(DEV, holder=machine.holder()))  # type: ignore[arg-type]  # there is one
    snapshot = box / "reader.state"
    wanted = [one.message.body for one in FileBus(root, machine).peek(DEV)]
    for content in (snapshot.read_bytes()[:-9], b"", snapshot.read_bytes().replace(b"1", b"2"), None):
        if content is None:
            snapshot.unlink()
        else:
            snapshot.write_bytes(content)
        assert [one.message.body for one in FileBus(root, machine).peek(DEV)] == wanted

    assert len(wanted) == 10


def test_order_holds_over_many_parts(root: Path, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = FileBus(root, machine, Limits(messages=10**6))
    bus.declare(DEV)
    for log in bus._box("inbox.dev-s").lanes:
        log._roll_at = 2000
    sent = [say(bus, str(n), priority=("normal", "high")[n % 5 == 0], id=f"m{n}") for n in range(300)]
    parts = list((root / "inbox" / "dev-s" / "normal").iterdir())
    assert len(parts) > 20
    assert say(bus, "7", id="m7") == "m7"
    other = FileBus(root, machine)
    assert [one.message.id for one in other.peek(DEV, 1000)[-3:]] == ["m297", "m298", "m299"]
    claim = other.receive(DEV, limit=100, holder=machine.holder())
    assert claim is not None
    other.ack(claim)

    assert [m.id for m in claim.messages] + [f"m{b}" for b in drain(other, machine)] == sent
    assert len(other.history(DEV, 150)) == 150
    assert other.find("m3")[0].stored.state == "acked"


def test_writers_of_many_processes_share_a_rolling_log(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()

    def write(me: int) -> None:
        log = Log(str(tmp_path / "log"), roll_at=3000)
        for n in range(300):
            log.append(b'{"schema":1,"id":"%d-%d","from":"x"}' % (me, n))

    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=write, args=(n,)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = list(Log(str(tmp_path / "log")).read())

    assert [line.number for line in found] == list(range(1, 1201))
    for me in range(4):
        mine = [line.data for line in found if b'"id":"%d-' % me in line.data]
        assert len(mine) == 300
        assert [int(d.split(b"-")[1].split(b'"')[0]) for d in mine] == list(range(300))


def test_threads_share_a_bus(bus: FileBus, machine: FakeMachine) -> None:
    threads = [
        threading.Thread(target=lambda me=me: [say(bus, f"{me}-{n}", id=f"{me}-{n}") for n in range(40)])
        for me in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(drain(bus, machine)) == sorted(f"{me}-{n}" for me in range(4) for n in range(40))


def test_a_fork_does_not_share_the_locks_of_its_parent(bus: FileBus, machine: FakeMachine) -> None:
    say(bus, "before")
    pid = os.fork()
    if pid == 0:
        try:
            for n in range(200):
                bus.send(Message(DEV, "child", str(n)), durable=False)
        finally:
            os._exit(0)
    for n in range(200):
        bus.send(Message(DEV, "parent", str(n)), durable=False)
    os.waitpid(pid, 0)

    assert bus.depth(DEV).waiting == 401
    assert len(drain(bus, machine)) == 401


# --- full and failing disks -----------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can make a small disk")
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("cannot mount a small disk here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_refuses_and_keeps_what_was_sent(small_disk: Path, machine: FakeMachine) -> None:
    bus = FileBus(small_disk / "m", machine)
    bus.declare(DEV)
    sent: list[int] = []

    def fill() -> None:
        for n in range(10_000):
            say(bus, f"{n}:" + "x" * 3000)
            sent.append(n)

    with pytest.raises(NoSpace):
        fill()
    with pytest.raises(NoSpace):
        say(bus, "x" * 3000)
    assert len(sent) > 50
    assert [int(one.message.body.split(":")[0]) for one in bus.peek(DEV, 10_000)] == sent
    (small_disk / "m" / "inbox" / "dev-s" / "bad").rmdir()  # make a little room
    path = small_disk / "m" / "inbox" / "dev-s" / "normal" / "active.log"
    assert path.read_bytes().endswith(b'"}\n')


def test_a_short_write_is_cut_back(
    bus: FileBus, box: Path, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    say(bus, "one")
    before = (box / "normal" / "active.log").read_bytes()

    true_write = os.write
    calls: list[int] = []

    def half(fd: int, data: bytes) -> int:
        calls.append(fd)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return true_write(fd, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(NoSpace):
        say(bus, "two")
    assert (box / "normal" / "active.log").read_bytes() == before
    monkeypatch.undo()
    say(bus, "three")

    assert drain(bus, machine) == ["one", "three"]


def test_a_failed_sync_is_a_failed_send_and_sending_again_really_writes(
    bus: FileBus, box: Path, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    true_sync, true_write = os.fdatasync, os.pwrite
    written: list[bytes] = []

    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(EnvironmentProblem):
        say(bus, "one", id="x")
    monkeypatch.setattr(os, "fdatasync", true_sync)

    def write(fd: int, data: bytes, place: int) -> int:
        written.append(data)
        return true_write(fd, data, place)

    monkeypatch.setattr(os, "pwrite", write)
    assert bus.send(Message(DEV, "user", "one", id="x")).duplicate
    # The kernel reports a failed write-back once; only dirtying the page again makes the next sync mean anything.
    assert b'"id":"x"' in written[0]

    assert drain(bus, machine) == ["one"]


def test_whoever_stops_while_holding_a_lock_is_named(bus: FileBus, box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    say(bus, "one")
    monkeypatch.setattr(files, "PATIENCE", 0.2)
    with (box / "normal" / "active.log").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Locked) as caught:
            say(bus, "two")

    assert caught.value.exit_code == 75
    assert str(os.getpid()) in caught.value.message


# --- foreign hands --------------------------------------------------------------------------------


def test_what_is_dropped_becomes_a_message_once(bus: FileBus, box: Path, machine: FakeMachine) -> None:
    (box / "drop" / "a.txt").write_text("plain ä text\n")
    message = Message(DEV, "dev@s", "forged?", id="env-1", priority="high", metadata={"k": 1})
    (box / "drop" / "b.json").write_text(json.dumps(to_record(message)))
    (box / "drop" / ".hidden").write_text("x")
    (box / "drop" / "c.tmp").write_text("x")
    (box / "drop" / "empty").write_text("")
    claim = bus.receive(DEV, limit=5, holder=machine.holder())
    assert claim is not None

    assert [m.body for m in claim.messages] == ["plain ä text\n", "forged?"]
    assert [m.sender for m in claim.messages] == [DROP, DROP]
    assert claim.messages[1].metadata == {"k": 1, "claimed_from": "dev@s"}
    assert sorted(os.listdir(box / "drop")) == [".hidden", "c.tmp", "empty"]


def test_what_is_still_being_written_waits(bus: FileBus, box: Path, machine: FakeMachine) -> None:
    with (box / "drop" / "slow").open("w") as file:
        file.write("half")
        file.flush()
        assert bus.receive(DEV, holder=machine.holder()) is None
        file.write(" and half")

    assert drain(bus, machine) == ["half and half"]


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b"a\0b",
        b"x" * ((1 << 20) + 1),
        b'{"content": 1}',
        b'{"schema": 9, "from": "a", "to": "b", "content": {"body": ""}}',
        encode(Message("dev@s", "a", "b")).replace(b'"time":0', b'"time":0,"checksum":"crc32:00000000"'),
        encode(Message("dev@s", "a", "b")).replace(b'"time":0', b'"color":0'),
    ],
)
def test_what_cannot_be_a_message_is_set_aside_with_the_reason(
    bus: FileBus, box: Path, machine: FakeMachine, content: bytes
) -> None:
    (box / "drop" / "it").write_bytes(content)
    say(bus, "good")

    assert drain(bus, machine) == ["good"]
    kept, why = sorted(os.listdir(box / "bad"))
    assert (box / "bad" / kept).read_bytes() == content
    assert why == kept + ".why"
    assert (box / "bad" / why).read_text().startswith("it: ")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("after", {"after": ["nope"]}),
        ("own", {"id": "overdue.0123"}),
        ("taken", {"id": "t1"}),
        ("time", {"time": 10**400}),
        ("deep", {"content": {"body": "x", "metadata": json.loads('{"a":' * 900 + "1" + "}" * 900)}}),
        ("gone", {"content": {"body": "x", "artifacts": [{"sha256": "0" * 64, "size": 1, "name": "a"}]}}),
    ],
)
def test_a_dropped_file_that_is_refused_stops_no_other(
    bus: FileBus, root: Path, machine: FakeMachine, name: str, content: dict[str, Any]
) -> None:
    work = "queue.work"
    bus.declare(work)
    bus.send(Message(work, "user", "sent", id="t1"))
    box = root / "queue" / "work"
    record = {"schema": 1, "from": "a", "to": work, "content": {"body": "x"}, **content}
    (box / "drop" / name).write_text(json.dumps(record))
    (box / "drop" / "z").write_text("good")

    assert drain(bus, machine, work) == ["sent", "good"]
    assert os.listdir(box / "drop") == []
    assert sorted(one.rpartition("-")[2] for one in os.listdir(box / "bad")) == [name, f"{name}.why"]


@pytest.mark.parametrize("name", ["é" * 120, "x" * 255, os.fsdecode(b"\xff" * 255)])
def test_a_dropped_file_of_any_name_can_be_set_aside(bus: FileBus, box: Path, machine: FakeMachine, name: str) -> None:
    (box / "drop" / name).write_bytes(b"\xff\xfe")
    (box / "drop" / "z").write_text("good")

    assert drain(bus, machine) == ["good"]
    kept, why = sorted(os.listdir(box / "bad"))
    assert why == kept + ".why"
    assert (box / "bad" / kept).read_bytes() == b"\xff\xfe"


def test_a_dropped_file_that_cannot_be_set_aside_stops_no_other(bus: FileBus, box: Path, machine: FakeMachine) -> None:
    (box / "drop" / "it").write_bytes(b"\xff\xfe")
    (box / "drop" / "z").write_text("good")
    (box / "bad").rmdir()
    (box / "bad").write_text("somebody made a file of it")

    assert drain(bus, machine) == ["good"]
    assert os.listdir(box / "drop") == ["it"]


def test_a_file_without_content_is_not_unread(bus: FileBus, box: Path, machine: FakeMachine) -> None:
    """What is never taken in must not count as waiting, or whoever waits for it would wake for ever."""
    for name in ("empty", ".hidden", "a.tmp"):
        (box / "drop" / name).write_text("")
    (box / "drop" / "a").write_text("x")
    assert dropped(str(box)) == ["a"]

    assert drain(bus, machine) == ["x"]
    assert dropped(str(box)) == []


@pytest.mark.parametrize("what", ["dropped", "queue"])
def test_a_mebibyte_that_takes_six_when_written_down(bus: FileBus, root: Path, machine: FakeMachine, what: str) -> None:
    to = DEV if what == "dropped" else "queue.work"
    bus.declare(to)
    text = "\x01" * (1 << 20)
    folder = root / "inbox" / "dev-s" if what == "dropped" else root / "queue" / "work"
    (folder / "drop" / "a.txt").write_text(text)
    (folder / "drop" / "b.json").write_text(json.dumps(to_record(Message(to, "a", text))))

    assert drain(bus, machine, to) == [text, text]


def test_links_folders_and_pipes_in_the_drop_folder_are_set_aside(
    bus: FileBus, box: Path, machine: FakeMachine, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (box / "drop" / "link").symlink_to(tmp_path / "secret")
    (box / "drop" / "folder").mkdir()
    os.mkfifo(box / "drop" / "pipe")

    assert drain(bus, machine) == []
    assert os.listdir(box / "drop") == []
    assert len(os.listdir(box / "bad")) == 6


def test_a_full_inbox_leaves_dropped_files_where_they_are(root: Path, machine: FakeMachine) -> None:
    bus = FileBus(root, machine, Limits(messages=2))
    bus.declare(DEV)
    for n in "ab":
        say(bus, n)
    with pytest.raises(QuotaReached):
        say(bus, "c")
    (root / "inbox" / "dev-s" / "drop" / "f").write_text("dropped")

    assert drain(bus, machine) == ["a", "b", "dropped"]


@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_a_log_that_is_something_else_is_not_followed(bus: FileBus, box: Path, tmp_path: Path, what: str) -> None:
    path = box / "normal" / "active.log"
    bus.close()
    path.unlink()
    target = tmp_path / "other"
    target.write_text("untouched")
    if what == "link":
        path.symlink_to(target)
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises((EnvironmentProblem, SymlinkInTheWay)):
        say(bus, "x")

    assert target.read_text() == "untouched"


def test_nothing_is_readable_by_others(bus: FileBus, root: Path, machine: FakeMachine) -> None:
    say(bus, "x")
    drain(bus, machine)
    bus.attach(b"x")

    assert {oct(p.stat().st_mode & 0o077) for p in [root, *root.rglob("*")]} == {"0o0"}


# --- attachments ----------------------------------------------------------------------------------


def test_64_mebibytes_go_by_reference(bus: FileBus, root: Path, machine: FakeMachine, tmp_path: Path) -> None:
    source = tmp_path / "big"
    with source.open("wb") as file:
        for n in range(64):
            file.write(bytes([n]) * (1 << 20))
    kept = bus.attach(source)
    assert bus.attach(source) == kept
    say(bus, "see there", artifacts=(kept,))
    source.unlink()
    claim = bus.receive(DEV, holder=machine.holder())
    assert claim is not None
    (artifact,) = claim.messages[0].artifacts

    path = bus.attachment(artifact)
    assert (path.stat().st_size, artifact["name"]) == (64 << 20, "big")
    assert [p.name for p in (root / "blobs").iterdir()] == [kept["sha256"]]
    with path.open("r+b") as file:
        file.write(b"changed")
    with pytest.raises(AttachmentProblem):
        bus.attachment(artifact)


def test_what_cannot_be_attached_leaves_nothing(root: Path, bus: FileBus, tmp_path: Path) -> None:
    with pytest.raises(AttachmentProblem):
        blobs.keep(root / "blobs", b"12345", "x", most=4)
    for wrong in ({"sha256": "../../etc/passwd"}, {"sha256": "0" * 64}, {}):
        with pytest.raises(AttachmentProblem):
            bus.attachment(wrong)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(AttachmentProblem):
        bus.attach(tmp_path / "pipe")

    assert list((root / "blobs").iterdir()) == []


# --- waiting --------------------------------------------------------------------------------------


def test_an_overflow_of_the_watch_costs_nothing(bus: FileBus, box: Path, machine: FakeMachine) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    watch = wake.Wake([str(box / "drop")])
    for n in range(limit // 2 + 10):  # each makes at least two events
        with contextlib.suppress(FileExistsError):
            os.close(os.open(box / "drop" / f".{n % 2}{n}", os.O_CREAT | os.O_WRONLY))
            os.unlink(box / "drop" / f".{n % 2}{n}")
    watch.wait(1)
    began = time.monotonic()
    watch.wait(0.05)
    assert time.monotonic() - began > 0.04, "all of it was taken in at once"
    watch.close()
    say(bus, "x")

    assert drain(bus, machine) == ["x"]


def test_without_a_watch_the_reader_looks_often(
    bus: FileBus, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake, "_inotify", lambda _: -1)
    sender = threading.Timer(0.2, lambda: say(bus, "x"))
    sender.start()
    claim = bus.receive(DEV, wait=20, holder=machine.holder())
    sender.join()

    assert claim is not None


def test_a_waiting_reader_takes_over_when_the_holder_settles(
    bus: FileBus, machine: FakeMachine, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake, "SCAN_EVERY", 60.0)  # to look again by itself would take it that long
    say(bus, "one")
    say(bus, "two")
    claim = bus.receive(DEV, holder=machine.holder())
    assert claim is not None
    other = FileBus(root, machine)
    settle = threading.Timer(0.2, lambda: bus.ack(claim))
    settle.start()
    began = time.monotonic()
    second = other.receive(DEV, wait=60, holder=machine.holder(200))
    settle.join()

    assert second is not None
    assert time.monotonic() - began < 30


def test_this_machine_tells_its_processes_apart() -> None:
    machine = ThisMachine()
    child = subprocess.Popen(["sleep", "100"])
    try:
        start = machine.start_of(child.pid)
        assert start
        assert machine.start_of(child.pid) == start
    finally:
        child.kill()
        child.wait()

    assert machine.start_of(child.pid) is None
    assert machine.start_of(os.getpid())
    assert machine.boot_id()
    assert machine.up_ms() > 0
