"""What is settled and old is removed, and nothing else; what is left behaves as if all of it were there."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus.box import Limits
from swarm.bus.errors import MessageNotFound
from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from swarm.bus.protocol import Keep
from swarm.bus.reader import reader_log
from swarm.bus.reader.waiting import waiting
from tests.bus.rigs import FakeMachine

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.contract

DEV, WORK = "dev@s", "queue.work"
DAY = 86_400_000
KEEP = Keep(DAY)


class Post:
    """A bus whose parts are so small that each holds few messages."""

    def __init__(self, root: Path, keep: Keep | None = None) -> None:
        self.root = root
        self.machine = FakeMachine(now=time.time_ns() // 1_000_000)
        self.keep = keep
        self.bus = self.open()
        for address in (DEV, WORK, "user"):
            self.bus.declare(address)

    def open(self) -> FileBus:
        keep = self.keep
        self.bus = FileBus(self.root, self.machine, Limits(), (lambda: keep) if keep else None)
        for address in ("inbox.dev-s", WORK):
            box = self.bus._box(address)
            for log in (*box.lanes, box.reader_log.log):
                log._roll_at = 900
        return self.bus

    def say(self, names: Iterable[str], to: str = DEV, **more: Any) -> None:
        for name in names:
            self.bus.send(Message(to, "user", name, id=name, time_ms=self.machine.now, **more), durable=False)

    def do(self, count: int, what: str = "ack", to: str = DEV, **more: Any) -> list[str]:
        """Take so many messages one by one, and settle each."""
        done = []
        for _ in range(count):
            claim = self.bus.receive(to, holder=self.machine.holder())
            assert claim is not None
            getattr(self.bus, what)(claim, **more)
            done.append(claim.messages[0].body)
        return done

    def prune(self, to: str = DEV, keep: Keep = KEEP, **more: Any) -> int:
        return self.bus.prune(to, keep, **more).messages

    def kept(self, to: str = DEV) -> list[str]:
        return [one.message.body for one in self.bus.history(to, 1000)]

    def parts(self, lane: str = "normal", box: str = "inbox/dev-s") -> list[str]:
        return sorted(name for name in os.listdir(self.root / box / lane) if name != "active.log")

    def age(self, days: float) -> None:
        self.machine.pass_time(days * 86_400)


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path)


def names(count: int, begin: int = 0) -> list[str]:
    return [f"m{number:03}" for number in range(begin, begin + count)]


def test_what_is_settled_and_old_goes_and_what_waits_stays(post: Post) -> None:
    post.say(names(20))
    post.do(12)
    assert post.prune() == 0, "it is not old"
    post.age(2)
    before = post.bus.depth(DEV)[:3]

    planned = post.prune(dry_run=True)
    assert post.kept() == names(20)
    removed = post.prune()

    assert removed == planned > 6
    assert post.kept() == names(20)[removed:]
    assert post.bus.depth(DEV)[:3] == before
    assert post.prune() == 0
    assert post.do(8) == names(8, 12)
    assert post.bus.receive(DEV) is None


@pytest.mark.parametrize("forget", [False, True])
def test_another_process_and_one_without_snapshot_see_the_same(post: Post, forget: bool) -> None:
    idle = FileBus(post.root, post.machine)
    assert idle.depth(DEV).waiting == 0  # it knows the books as they are now
    post.say(names(30))
    post.do(25)
    post.age(2)
    assert post.prune() > 15
    assert len(post.parts("reader")) <= 3, "the readers' log grows without end"
    if forget:
        (post.root / "inbox/dev-s/reader.state").unlink(missing_ok=True)

    for bus in (idle, post.open()):
        assert [one.message.body for one in bus.peek(DEV)] == names(5, 25)
        assert bus.depth(DEV)[:2] == (5, 0)
        assert waiting(str(post.root / "inbox/dev-s"), post.machine) == 5
        assert [one.message.body for one in bus.history(DEV)] == post.kept()
    assert post.do(5) == names(5, 25)


def test_numbers_and_places_go_on_after_everything_was_removed(post: Post) -> None:
    post.say(names(10))
    post.do(10)
    post.age(2)

    assert post.prune() == 10
    assert post.kept() == []
    assert post.parts() == ["removed.head"]
    (post.root / "inbox/dev-s/normal/active.log").unlink()  # as if killed before it was made anew

    post.open()
    assert post.bus.send(Message(DEV, "user", "next")).number == 11
    assert post.do(1) == ["next"]


def test_closing_a_part_does_not_make_it_young(tmp_path: Path) -> None:
    post = Post(tmp_path)
    post.say(["old"])
    post.do(1)
    active = tmp_path / "inbox/dev-s/normal/active.log"
    os.utime(active, ns=(0, 0))
    post.machine.now = time.time_ns() // 1_000_000

    assert post.prune() == 1


def test_a_part_behind_one_that_waits_goes_too(post: Post) -> None:
    post.say(["stuck"], generation="")
    claim = post.bus.receive(DEV, holder=post.machine.holder())
    assert claim is not None
    post.bus.nack(claim, delay=10 * 86_400)
    post.bus.send(Message(DEV, "user", "x", id="x"))  # held back, being of the same sender
    for name in names(20):
        post.bus.send(Message(DEV, "rev@s", name, id=name))
    post.do(20)
    post.age(2)

    assert post.prune() > 10
    assert {"stuck", "x"} <= set(post.kept())
    post.age(9)
    assert post.do(2) == ["stuck", "x"]


def test_dead_letters_stay_until_they_are_old_and_their_senders_know(post: Post) -> None:
    post.say(names(10))
    post.age(2)
    assert post.do(10, "fail", reason="no way") == names(10)
    assert post.prune() == 0, "they died just now"
    post.bus.requeue(DEV, "m000")
    post.age(2)

    assert 0 < post.prune() < 9
    assert [one.message.body for one in post.bus.dead(DEV)] == [one for one in post.kept() if one != "m000"]
    with pytest.raises(MessageNotFound):
        post.bus.requeue(DEV, next(one for one in names(10) if one not in post.kept()))
    assert post.do(1) == ["m000"]


def test_a_dead_letter_that_a_task_waits_for_stays(post: Post) -> None:
    post.say(["first"], WORK)
    post.say(names(8), WORK)
    post.say(["second"], WORK, after=("first",))
    post.do(1, "fail", WORK, reason="no way")
    post.do(8, to=WORK)
    post.age(2)
    post.prune(WORK)

    assert post.bus.receive(WORK) is None, "what comes after it must not begin"
    assert "first was given up" in post.bus.tasks(WORK)[0].blocked
    post.bus.requeue(WORK, "first")
    assert post.do(2, to=WORK) == ["first", "second"]


def test_an_id_is_known_as_long_as_its_message_is_kept(post: Post) -> None:
    post.say(names(10))
    post.do(10)
    post.say(["m000"])
    assert post.bus.receive(DEV) is None
    assert post.bus.removed(DEV) == 0
    post.age(2)
    post.prune()

    assert post.bus.find("m000") == ()
    assert post.bus.removed(DEV) == 10
    post.say(["m000"])
    assert post.do(1) == ["m000"]


def test_too_many_bytes_go_earlier_but_not_within_the_hour(post: Post) -> None:
    post.say(names(30))
    post.do(30)
    few = Keep(DAY, 9000)
    assert post.prune(keep=few) == 0
    post.age(0.1)

    assert 0 < post.prune(keep=few) < 30
    left = sum(p.stat().st_size for p in (post.root / "inbox/dev-s").glob("*/*.log"))
    assert 4000 < left <= 11_000  # with the sum of what the readers did, which nothing would come near in large parts


def test_order_between_lanes_holds_over_a_gap(post: Post) -> None:
    """An urgent message must not overtake its sender's earlier one, also if what lay between is gone."""
    for name in names(20):
        post.bus.send(Message(DEV, "rev@s", name, id=name))
    post.do(20)
    post.age(2)
    post.say(["early"])
    post.say(["urgent"], priority="high")
    assert post.prune() > 10

    post.open()
    assert post.do(2) == ["early", "urgent"]


def test_whoever_acknowledges_removes_what_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_log, "_SNAPSHOT_EVERY", 4)
    post = Post(tmp_path, KEEP)
    post.say(names(20))
    post.do(20)
    post.age(2)
    assert len(post.parts()) > 3
    post.open()
    post.say(["new"])
    post.do(1)
    post.say(["newer", "newest"])
    post.do(2)

    assert post.parts() == ["removed.head"] or len(post.parts()) <= 2
    assert post.kept()[-3:] == ["new", "newer", "newest"]
    assert post.bus.removed(DEV) > 10


def test_what_a_killed_one_noted_as_gone_is_not_shown_and_its_files_follow(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    from swarm.bus.log.oldparts import OldParts

    post.say(names(20))
    post.do(20)
    post.age(2)
    with monkeypatch.context() as patch:
        patch.setattr(OldParts, "remove", lambda *_: None)
        post.prune()
    assert len(post.parts()) > 3
    assert post.kept() == []
    assert post.bus.find("m003") == ()

    post.open()
    assert post.prune() == 0
    assert post.parts() == ["removed.head"]


def test_a_message_that_was_removed_just_now_is_not_written_again(post: Post) -> None:
    post.say(names(20))
    post.do(20)
    box = post.bus._box("inbox.dev-s")
    known = box.find("m001")
    assert known is not None
    assert box.lanes[known[0].lane].rewrite(known[1])
    post.age(2)
    other = FileBus(post.root, post.machine)
    other.prune(DEV, KEEP)
    before = {path: path.read_bytes() for path in (post.root / "inbox/dev-s/normal").iterdir()}

    assert not box.lanes[known[0].lane].rewrite(known[1])
    assert {path: path.read_bytes() for path in before} == before


def test_what_came_since_one_looked_is_found_behind_the_ends_of_then(post: Post) -> None:
    box = post.bus._box("inbox.dev-s")
    post.say(["a"])
    before = box.ends()
    other = FileBus(post.root, post.machine)
    other.send(Message(DEV, "user", "b", id="b", priority="high"))

    assert box.find("a", before) is None
    assert box.find("b", before) is not None
    other.remove(DEV)
    other.declare(DEV)
    other.send(Message(DEV, "user", "c", id="c"))
    assert box.find("c", before) is not None, "these were the ends of another box"
