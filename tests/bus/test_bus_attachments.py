"""Attachments stay for as long as some message refers to them, and no longer."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus.errors import AttachmentProblem
from swarm.bus.filebus import FileBus
from swarm.bus.message import Message
from swarm.bus.protocol import Keep
from swarm.kit import files
from swarm.project.errors import Locked
from tests.bus.rigs import FakeMachine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.contract

DEV, WORK = "dev@s", "queue.work"
HOUR, DAY = 3_600_000, 86_400_000
#: Every message that is settled; of the attachments those that are older than an hour.
SETTLED = Keep(0)


class Post:
    """A bus with attachments, and a place where boxes are saved."""

    def __init__(self, folder: Path, patience: float = 60.0) -> None:
        self.root = folder / "messages"
        self.saved = folder / "saved"
        self.saved.mkdir()
        self.machine = FakeMachine(now=time.time_ns() // 1_000_000)
        self.bus = FileBus(
            self.root, self.machine, keep=lambda: Keep(DAY), patience=lambda: patience, saved=self.saved_boxes
        )
        for address in (DEV, WORK, "user"):
            self.bus.declare(address)

    def saved_boxes(self) -> list[str]:
        return [str(one) for one in self.saved.iterdir()]

    def attach(self, text: str = "content") -> dict[str, Any]:
        return self.bus.attach(text.encode(), "name")

    def send(self, *artifacts: dict[str, Any], to: str = DEV, **more: Any) -> str:
        return self.bus.send(Message(to, "user", "see there", artifacts=artifacts, **more)).id

    def take(self, to: str = DEV) -> Any:
        claim = self.bus.receive(to, holder=self.machine.holder())
        assert claim is not None
        return claim

    def age(self) -> None:
        """Two hours pass, also for the files."""
        self.machine.pass_time(7200)

    def prune(self, **more: Any) -> int:
        for address in self.bus.addresses() if not more else ():
            self.bus.prune(address, SETTLED)
        return self.bus.prune_attachments(SETTLED, **more).files

    def there(self) -> set[str]:
        folder = self.root / "blobs"
        return {path.read_text() for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.fixture
def post(tmp_path: Path) -> Post:
    return Post(tmp_path)


def _waiting(post: Post) -> None:
    post.send(post.attach())


def _taken(post: Post) -> None:
    _waiting(post)
    post.take()


def _put_off(post: Post) -> None:
    _waiting(post)
    post.bus.nack(post.take(), delay=1e6)


def _task(post: Post) -> None:
    first = post.send(to=WORK)
    post.send(post.attach(), to=WORK, after=(first,))


def _dead_with_one_that_waits(post: Post) -> None:
    _waiting(post)
    post.bus.fail(post.take(), reason="no")
    post.send()


def _done_with_one_that_waits(post: Post) -> None:
    _waiting(post)
    post.bus.ack(post.take())
    post.send()


def _for_the_user(post: Post) -> None:
    post.send(post.attach(), to="user", priority="low")


def _saved_with_its_agent(post: Post) -> None:
    _waiting(post)
    (post.root / "inbox/dev-s").rename(post.saved / "inbox")


def _dropped(post: Post) -> None:
    sha = post.attach()["sha256"]
    drop = post.root / "inbox/dev-s/drop/it.json"
    drop.write_text(f'{{"content": {{"artifacts": [{{"sha256" : "{sha}"}}]}}}}')


SETTLED_ONES = (_dead_with_one_that_waits, _done_with_one_that_waits)
ELSEWHERE = (_task, _for_the_user, _saved_with_its_agent, _dropped)


@pytest.mark.parametrize("before", [_waiting, _taken, _put_off, *SETTLED_ONES, *ELSEWHERE])
def test_what_a_message_refers_to_stays(before: Callable[[Post], None], post: Post) -> None:
    before(post)
    post.attach("of a send that never came about")
    post.age()

    assert post.prune() == 1
    assert post.there() == {"content"}


@pytest.mark.parametrize("settle", ["ack", "fail"])
def test_it_goes_with_the_last_message_that_refers_to_it(settle: str, post: Post) -> None:
    kept = post.attach()
    post.send(kept)
    post.send(kept, to="user")
    os.utime(post.root / "blobs" / post.attach("young")["sha256"], (time.time() + 7200,) * 2)
    getattr(post.bus, settle)(post.take(), **({"reason": "no"} if settle == "fail" else {}))
    post.bus.receive(DEV)
    post.age()
    assert post.prune() == 0

    post.bus.ack(post.bus.receive("user", limit=5, holder=post.machine.holder()))  # type: ignore[arg-type]  # there is
    planned = post.bus.prune_attachments(SETTLED, dry_run=True, after=("user", DEV))
    assert planned == (1, len("content"))
    assert post.bus.prune_attachments(SETTLED, dry_run=True) == (0, 0), "as things are all are referred to"
    assert (post.prune(), post.there()) == (1, {"young"})
    with pytest.raises(AttachmentProblem):
        post.bus.attachment(kept)


def test_what_was_just_attached_stays_and_attaching_it_again_makes_it_young(post: Post) -> None:
    for path in (post.root / "blobs" / post.attach(one)["sha256"] for one in ("a", "b")):
        os.utime(path, (time.time() - 7200,) * 2)
    post.attach("a")

    assert (post.prune(), post.there()) == (1, {"a"})


@pytest.mark.parametrize("hours", [-50, 50])
def test_a_clock_that_jumps_takes_nothing_that_is_referred_to(hours: int, post: Post) -> None:
    kept = post.attach()
    unsent = post.attach("unsent")
    post.send(kept)
    post.machine.now += hours * HOUR
    post.prune()

    assert post.bus.attachment(kept).read_text() == "content"
    if hours > 0:
        with pytest.raises(AttachmentProblem, match="is not kept any longer"):
            post.send(unsent)
        assert post.bus.depth(DEV).waiting == 1
    post.send(post.attach("unsent"))


def test_what_a_sender_says_of_a_file_of_its_own_is_not_looked_for(post: Post) -> None:
    own = {"sha256": "0" * 64, "size": 1, "name": "x", "url": "file:///x"}
    assert post.send(own, {"path": "a.txt"})
    with pytest.raises(AttachmentProblem):
        post.send({"sha256": "0" * 64, "size": 1, "name": "x"})


def test_a_half_copied_file_goes_unless_somebody_is_at_it(post: Post) -> None:
    post.attach()
    left, at_work = (post.root / "blobs" / f".copy.{number * 8}.tmp" for number in "12")
    for path in (left, at_work):
        path.write_text("half")
    with at_work.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        post.age()
        post.prune()

    assert (left.exists(), at_work.exists()) == (False, True)


def test_what_is_sent_or_attached_while_somebody_looks_stays(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """All boxes have been read, nothing is deleted yet."""
    sent, again, unused = (post.attach(one) for one in ("sent", "again", "unused"))
    post.machine.pass_time(7200)
    for one in (sent, again, unused):
        os.utime(post.root / "blobs" / one["sha256"], (post.machine.now / 1000 - 7200,) * 2)

    def meanwhile(_: Path) -> None:
        post.send(sent, to=WORK)
        os.utime(post.root / "blobs" / post.attach("again")["sha256"], (post.machine.now / 1000,) * 2)

    monkeypatch.setattr(files, "sync_filesystem", meanwhile)

    assert (post.prune(), post.there()) == (1, {"sent", "again"})


def test_who_sends_attachments_waits_for_who_removes_some_and_the_other_way_round(tmp_path: Path) -> None:
    post = Post(tmp_path, patience=0.1)
    kept = post.attach()
    fd = os.open(post.root / "blobs", os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    with pytest.raises(Locked):
        post.send(kept)
    post.send()
    fcntl.flock(fd, fcntl.LOCK_SH)
    post.send(kept)
    post.attach("unused")
    post.age()
    with pytest.raises(Locked):
        post.prune()
    os.close(fd)

    assert (post.prune(), post.there()) == (1, {"content"})


def test_nothing_goes_when_a_box_cannot_be_read(post: Post) -> None:
    _waiting(post)
    post.attach("unused")
    lane = post.root / "inbox/user/normal/active.log"
    lane.unlink()
    lane.mkdir()
    post.age()
    with pytest.raises(Exception, match=r"active\.log"):
        post.bus.prune_attachments(SETTLED)

    assert post.there() == {"content", "unused"}


def test_without_a_word_where_boxes_are_saved_none_is_removed(post: Post) -> None:
    post.attach()
    post.age()

    assert FileBus(post.root, post.machine).prune_attachments(SETTLED) == (0, 0)
    assert post.there() == {"content"}


def test_takers_remove_them_now_and_then(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm.bus import filebus
    from swarm.bus.reader import reader_log

    monkeypatch.setattr(reader_log, "_SNAPSHOT_EVERY", 1)
    monkeypatch.setattr(filebus, "_TIDY_EVERY", 0.0)
    post.attach("unused")
    post.age()
    post.send()
    post.bus.ack(post.take())
    assert post.there() == set()

    post.attach("unused")
    post.send()
    post.bus.ack(post.take())
    assert post.there() == {"unused"}, "once a day"
