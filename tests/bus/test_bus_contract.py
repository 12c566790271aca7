"""What every engine of the message bus promises; each promise a test, tried on each engine."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus.box import Limits
from swarm.bus.errors import ClaimLost, IdTaken, InboxNotFound, MessageNotFound, MessageProblem, QuotaReached
from swarm.bus.message import DEAD_LETTER, MAX_DEPTH, OWN_IDS, POSTMASTER, Message
from tests.bus.rigs import RIGS

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.protocol import Claim, Tasks
    from tests.bus.rigs import Rig

pytestmark = pytest.mark.contract

DEV = "dev@s"
WORK = "queue.work"


@pytest.fixture(params=list(RIGS))
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    made: Rig = RIGS[request.param](tmp_path / "messages")
    return made


@pytest.fixture
def bus(rig: Rig) -> Tasks:
    bus = rig.open()
    for address in (DEV, WORK, "user", "rev@s"):
        bus.declare(address)
    return bus


def say(bus: Tasks, body: str, *, to: str = DEV, sender: str = "user", **more: object) -> str:
    return bus.send(Message(to=to, sender=sender, body=body, **more)).id  # type: ignore[arg-type]  # passed on as given


def take(rig: Rig, bus: Tasks, to: str = DEV, limit: int = 1, pid: int = 100, lease: float = 60.0) -> Claim | None:
    return bus.receive(to, limit=limit, lease=lease, holder=rig.machine.holder(pid))


def must_take(rig: Rig, bus: Tasks, to: str = DEV, limit: int = 1, pid: int = 100, lease: float = 60.0) -> Claim:
    claim = take(rig, bus, to, limit, pid, lease)
    assert claim is not None
    return claim


def bodies(claim: Claim | None) -> list[str]:
    return [] if claim is None else [message.body for message in claim.messages]


def drain(rig: Rig, bus: Tasks, to: str = DEV) -> list[str]:
    got = []
    while claim := take(rig, bus, to):
        got += bodies(claim)
        bus.ack(claim)
    return got


# --- whole and once --------------------------------------------------------------------------------


def test_a_message_arrives_whole(rig: Rig, bus: Tasks) -> None:
    message = Message(
        to=DEV,
        sender="rev@s",
        body='lines\nand "quotes" \\ \t and \u2028 and 🐝',
        subject="s",
        type="review.request",
        priority="high",
        id="my-id",
        time_ms=5,
        artifacts=({"path": "a.txt"},),
        metadata={"n": 1.5, "list": [None, True, "x"]},
        thread_id="t1",
        in_reply_to="m0",
        requires_response=True,
        deadline_ms=9,
        ttl_ms=10_000,
        sender_generation="g2",
    )
    bus.send(message)

    assert must_take(rig, bus).messages == (message,)


@pytest.mark.parametrize("to", [DEV, WORK])
@pytest.mark.parametrize("character", ["\n", "\x01"])
def test_a_body_of_a_mebibyte_arrives_whole(rig: Rig, bus: Tasks, to: str, character: str) -> None:
    """Written down it may take six times as much."""
    body = character * (1 << 20)
    say(bus, body, to=to, subject=body)
    say(bus, "next", to=to)

    assert drain(rig, bus, to) == [body, "next"]


def nested(depth: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for _ in range(depth - 1):
        found = {"in": found}
    return found


def test_metadata_may_be_nested_so_deep(rig: Rig, bus: Tasks) -> None:
    say(bus, "x", metadata=nested(MAX_DEPTH))

    assert must_take(rig, bus).messages[0].metadata == nested(MAX_DEPTH)


@pytest.mark.parametrize(
    "wrong",
    [
        Message(DEV, "user", "\0"),
        Message(DEV, "user", "\ud800"),
        Message(DEV, "user", "x" * ((1 << 20) + 1)),
        Message(DEV, "user", "é" * ((1 << 19) + 1)),
        Message("all", "user", "x"),
        Message("role:dev", "user", "x"),
        Message("../x", "user", "x"),
        Message("inbox...", "user", "x"),
        Message("dev@", "user", "x"),
        Message(DEV, "a\nb", "x"),
        Message(DEV, "user", "x", priority="urgent"),
        Message(DEV, "user", "x", type="No Type"),
        Message(DEV, "user", "x", id='a"b'),
        Message(DEV, "user", "x", metadata={"a": float("nan")}),
        Message(DEV, "user", "x", metadata={"a": "\0"}),
        Message(DEV, "user", "x", metadata={1: 2}),  # type: ignore[dict-item]  # what is to be refused
        Message(DEV, "user", "x", metadata={"a": "x" * (1 << 17)}),
        Message(DEV, "user", "x", metadata=nested(MAX_DEPTH + 1)),
        Message(DEV, "user", "x", artifacts=(nested(900),)),
        Message(DEV, "user", "x", time_ms=10**400),
        Message(DEV, "user", "x", time_ms=1 << 53),
        Message(DEV, "user", "x", time_ms=-1),
        Message(DEV, "user", "x", time_ms=True),
        Message(DEV, "user", "x", ttl_ms=1 << 53),
        Message(DEV, "user", "x", ttl_ms=-1),
        Message(DEV, "user", 5),  # type: ignore[arg-type]  # what is to be refused
    ],
)
def test_what_is_no_message_is_refused_and_nothing_added(rig: Rig, bus: Tasks, wrong: Message) -> None:
    with pytest.raises(MessageProblem) as caught:
        bus.send(wrong)

    assert caught.value.exit_code == 2
    assert bus.depth(DEV).waiting == 0


def test_there_is_no_sending_to_an_inbox_that_is_not_there(bus: Tasks) -> None:
    with pytest.raises(InboxNotFound):
        say(bus, "x", to="nobody@s")
    with pytest.raises(InboxNotFound):
        bus.receive("nobody@s")
    with pytest.raises(InboxNotFound):
        bus.depth("nobody@s")


def test_the_same_id_twice_is_one_message(rig: Rig, bus: Tasks) -> None:
    one = Message(DEV, "user", "one", id="x1", metadata={"n": (1, 2)}, time_ms=7)
    first = bus.send(one)
    second = bus.send(one)
    later = bus.send(one._replace(to="inbox.dev-s", time_ms=9, generation="g2", sender_generation="g3"))

    assert (second.duplicate, second.number, second.lane) == (True, first.number, first.lane)
    assert later == second
    assert drain(rig, bus) == ["one"]


@pytest.mark.parametrize("done", [False, True], ids=["waiting", "done"])
@pytest.mark.parametrize(
    "other",
    [
        {"sender": "rev@s"},
        {"sender": POSTMASTER},
        {"body": "one again"},
        {"subject": "s"},
        {"type": "task"},
        {"priority": "low"},
        {"artifacts": ({"path": "a.txt"},)},
        {"metadata": {"a": 1}},
        {"thread_id": "t1"},
        {"in_reply_to": "m0"},
        {"requires_response": True},
        {"deadline_ms": 5},
        {"ttl_ms": 5},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_message_under_the_same_id_is_refused(rig: Rig, bus: Tasks, other: dict[str, Any], done: bool) -> None:
    one = Message(DEV, "user", "one", id="x1")
    bus.send(one)
    if done:
        drain(rig, bus)
    with pytest.raises(IdTaken) as caught:
        bus.send(one._replace(**other))

    assert (caught.value.code, caught.value.exit_code) == ("ID_TAKEN", 3)
    assert bus.send(one).duplicate
    assert drain(rig, bus) == ([] if done else ["one"])


@pytest.mark.parametrize("word", OWN_IDS)
def test_the_ids_of_swarms_own_notices_are_kept_for_it(rig: Rig, bus: Tasks, word: str) -> None:
    for to in (DEV, WORK):
        with pytest.raises(MessageProblem) as caught:
            say(bus, "first", to=to, id=f"{word}.0123")
        assert caught.value.exit_code == 2
    say(bus, "the word alone", id=word)
    say(bus, "like it", id=f"{word}-0123")
    say(bus, "notice", sender=POSTMASTER, id=f"{word}.0123")

    assert drain(rig, bus) == ["the word alone", "like it", "notice"]


def test_of_a_notice_the_id_alone_says_what_it_is_about(rig: Rig, bus: Tasks) -> None:
    """Two that notice the same may not have the same words for it."""
    say(bus, "nobody has read it", sender=POSTMASTER, id="delivery.1")

    assert bus.send(Message(DEV, POSTMASTER, "still nobody", id="delivery.1")).duplicate
    assert drain(rig, bus) == ["nobody has read it"]


def test_each_dead_letter_of_one_id_is_told(rig: Rig, bus: Tasks) -> None:
    for to in (DEV, "rev@s"):
        say(bus, "x", to=to, id="x1", ttl_ms=1)
    rig.machine.pass_time(1)
    assert drain(rig, bus) + drain(rig, bus, "rev@s") == []

    assert ["inbox.dev-s" in body for body in drain(rig, bus, "user")] == [True, False]


def test_an_id_stays_known_when_its_message_is_done(rig: Rig, bus: Tasks) -> None:
    say(bus, "one", id="x1")
    drain(rig, bus)
    for n in range(20):
        say(bus, f"{n}", id=f"y{n}")

    assert bus.send(Message(DEV, "user", "one", id="x1")).duplicate
    assert drain(rig, bus) == [str(n) for n in range(20)]


def test_the_same_id_to_another_recipient_is_another_message(rig: Rig, bus: Tasks) -> None:
    say(bus, "one", id="x1")
    say(bus, "one", id="x1", to="rev@s")

    assert [trace.stored.address for trace in bus.find("x1")] == ["inbox.dev-s", "inbox.rev-s"]


def test_numbers_count_without_gaps(bus: Tasks) -> None:
    receipts = [bus.send(Message(DEV, "user", "x")) for _ in range(5)]

    assert [receipt.number for receipt in receipts] == [1, 2, 3, 4, 5]


# --- acknowledging ---------------------------------------------------------------------------------


def test_what_was_acknowledged_never_comes_again(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    bus.ack(must_take(rig, bus))
    rig.machine.pass_time(1000)
    rig.machine.reboot()

    assert take(rig, rig.open()) is None
    assert bus.depth(DEV)[:3] == (0, 0, 0)


def test_what_was_not_acknowledged_comes_again_with_one_more_attempt(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    assert must_take(rig, bus, lease=10).attempts == (1,)
    rig.machine.pass_time(11)

    assert must_take(rig, bus).attempts == (2,)


def test_an_inbox_has_one_claim_in_flight(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    say(bus, "two", sender="rev@s")
    claim = must_take(rig, bus)

    assert take(rig, bus, pid=200) is None
    bus.ack(claim)
    assert bodies(take(rig, bus, pid=200)) == ["two"]


def test_a_queue_has_many(rig: Rig, bus: Tasks) -> None:
    for n in "abc":
        say(bus, n, to=WORK)
    claims = [must_take(rig, bus, WORK, pid=pid) for pid in (100, 200, 100)]

    assert [bodies(claim) for claim in claims] == [["a"], ["b"], ["c"]]
    bus.ack(claims[1])
    rig.machine.pass_time(100)
    assert bodies(take(rig, bus, WORK, limit=9)) == ["a", "c"]


def test_a_claim_takes_several_in_order_and_may_be_acknowledged_in_part(rig: Rig, bus: Tasks) -> None:
    ids = [say(bus, n) for n in "abcd"]
    claim = must_take(rig, bus, limit=3)
    assert bodies(claim) == ["a", "b", "c"]
    bus.ack(claim, (ids[0],))
    assert bus.depth(DEV)[:2] == (1, 2)
    bus.ack(claim)

    assert drain(rig, bus) == ["d"]


def test_acknowledging_again_changes_nothing(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    claim = must_take(rig, bus)
    bus.ack(claim)
    bus.ack(claim)

    assert bus.depth(DEV)[:3] == (0, 0, 0)


@pytest.mark.parametrize("act", ["ack", "nack", "extend"])
def test_a_claim_that_is_over_cannot_be_settled(rig: Rig, bus: Tasks, act: str) -> None:
    say(bus, "one")
    old = must_take(rig, bus, lease=10)
    rig.machine.pass_time(11)
    new = must_take(rig, bus)

    with pytest.raises(ClaimLost):
        bus.extend(old, 5) if act == "extend" else getattr(bus, act)(old)
    bus.ack(new)


def test_only_what_was_claimed_can_be_settled(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    other = say(bus, "two")
    claim = must_take(rig, bus)

    with pytest.raises(ClaimLost):
        bus.ack(claim, (other,))


def test_a_claim_can_be_settled_by_another_process_that_finds_it(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    made = must_take(rig, bus)
    other = rig.open()
    (found,) = other.claims(DEV)
    assert (found.id, found.messages, found.attempts) == (made.id, made.messages, (1,))
    other.ack(found)

    assert take(rig, bus) is None
    assert bus.claims(DEV) == ()


def test_a_claim_of_nobodys_life_is_taken_over_as_it_was_seen_or_not_at_all(rig: Rig, bus: Tasks) -> None:
    for text in ("one", "two"):
        say(bus, text)
    nobody = rig.machine.holder()._replace(pid=0, start=0)
    made = bus.receive(DEV, limit=2, holder=nobody)
    assert made is not None
    (seen,) = rig.open().claims(DEV)
    assert made.taker == seen.taker
    assert seen.taker is not None
    bus.take_over(seen)
    bus.ack(seen, (seen.messages[0].id,))

    with pytest.raises(ClaimLost):
        bus.take_over(seen)  # of what is done nothing is handed out again
    (left,) = bus.claims(DEV)
    bus.take_over(left)
    assert bodies(left) == ["two"]
    bus.ack(left)
    with pytest.raises(ClaimLost):
        bus.take_over(left)


def test_a_claim_that_depends_on_a_life_is_not_taken_over(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    claim = must_take(rig, bus)

    assert claim.taker == rig.machine.holder(100)
    with pytest.raises(ClaimLost):
        bus.take_over(claim)


# --- leases ----------------------------------------------------------------------------------------


def test_a_claim_can_be_held_longer(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    claim = must_take(rig, bus, lease=10)
    for _ in range(5):
        rig.machine.pass_time(8)
        bus.extend(claim, 10)
        assert take(rig, bus, pid=200) is None
    bus.ack(claim)


def test_a_claim_can_be_put_into_the_hands_of_another(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    claim = must_take(rig, bus, pid=200)
    bus.extend(claim, 10)
    bus.extend(claim, 10, rig.machine.holder(100))
    del rig.machine.alive[200]

    assert [one.id for one in rig.open().claims(DEV)] == [claim.id]
    del rig.machine.alive[100]
    assert bus.claims(DEV) == ()


def test_a_dead_holder_gives_back(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    must_take(rig, bus, pid=200)
    assert take(rig, bus) is None
    del rig.machine.alive[200]

    assert must_take(rig, bus).attempts == (2,)


@pytest.mark.parametrize("how", ["killed", "too long", "restart"])
def test_what_was_in_the_hands_of_one_that_is_gone_waits_although_nobody_took_it_back(
    rig: Rig, bus: Tasks, how: str
) -> None:
    it = say(bus, "one")
    must_take(rig, bus, pid=200, lease=60)
    bus.record_event(DEV, it, "seen")
    if how == "killed":
        del rig.machine.alive[200]
    elif how == "restart":
        rig.machine.reboot()
    else:
        rig.machine.pass_time(60)

    assert [one.state for one in bus.peek(DEV)] == ["queued"]
    assert [one.state for one in bus.history(DEV)] == ["queued"]
    assert [one.stored.state for one in bus.find(it)] == ["queued"]
    bus.record_event(DEV, it, "nudged")
    assert [one.stored.state for one in bus.find(it)] == ["nudged"]


def test_another_process_of_the_same_pid_is_not_the_holder(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    must_take(rig, bus, pid=200)
    rig.machine.alive[200] = 77

    assert bodies(take(rig, bus)) == ["one"]


def test_a_restart_of_the_machine_gives_back(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    must_take(rig, bus, lease=1e6)
    rig.machine.reboot()

    assert must_take(rig, bus).attempts == (2,)


def test_a_claim_without_a_process_is_held_by_its_time_alone(rig: Rig, bus: Tasks) -> None:
    say(bus, "one")
    bus.receive(DEV, lease=10, holder=rig.machine.holder(0))
    assert take(rig, bus) is None
    rig.machine.pass_time(10)

    assert bodies(take(rig, bus)) == ["one"]


@pytest.mark.parametrize("jump", [-(10**10), 10**10])
def test_the_time_of_day_decides_nothing(rig: Rig, bus: Tasks, jump: int) -> None:
    say(bus, "one", ttl_ms=60_000)
    say(bus, "two")
    claim = must_take(rig, bus, lease=10)
    rig.machine.now += jump
    say(bus, "three")
    assert take(rig, bus, pid=200) is None
    bus.nack(claim)

    assert drain(rig, bus) == ["one", "two", "three"]


# --- order -----------------------------------------------------------------------------------------


def test_urgent_lanes_go_first(rig: Rig, bus: Tasks) -> None:
    for priority in ("low", "normal", "high", "interrupt"):
        say(bus, priority, sender=f"{priority}@s", priority=priority)

    assert drain(rig, bus) == ["interrupt", "high", "normal", "low"]


def test_urgency_never_overtakes_the_same_sender(rig: Rig, bus: Tasks) -> None:
    for n, priority in enumerate(("normal", "low", "normal", "interrupt", "high", "low", "interrupt")):
        say(bus, str(n), priority=priority)

    assert drain(rig, bus) == ["0", "1", "2", "3", "4", "5", "6"]


def test_what_an_urgent_message_waits_for_is_urgent_too(rig: Rig, bus: Tasks) -> None:
    say(bus, "other", sender="rev@s")
    say(bus, "do this")
    say(bus, "other again", sender="rev@s")
    say(bus, "stop", priority="interrupt")

    assert drain(rig, bus) == ["do this", "stop", "other", "other again"]


def test_what_is_given_back_keeps_its_place(rig: Rig, bus: Tasks) -> None:
    for n in "abc":
        say(bus, n)
    claim = must_take(rig, bus, limit=2)
    say(bus, "urgent", priority="interrupt")
    bus.nack(claim)

    assert drain(rig, bus) == ["a", "b", "c", "urgent"]


def test_later_ones_of_the_same_sender_go_back_too(rig: Rig, bus: Tasks) -> None:
    ids = {n: say(bus, n) for n in "abc"}
    other = say(bus, "x", sender="rev@s")
    claim = must_take(rig, bus, limit=4)
    bus.nack(claim, (ids["b"],), delay=5)
    bus.ack(claim, (ids["a"], other))
    with pytest.raises(ClaimLost):
        bus.ack(claim, (ids["c"],))
    assert take(rig, bus) is None
    rig.machine.pass_time(5)

    claim = must_take(rig, bus, limit=4)
    assert (bodies(claim), claim.attempts) == (["b", "c"], (2, 1))


def test_a_delayed_message_holds_back_its_sender_only(rig: Rig, bus: Tasks) -> None:
    say(bus, "a1")
    say(bus, "b1", sender="rev@s")
    bus.nack(must_take(rig, bus), delay=10)
    say(bus, "a2", priority="interrupt")
    assert drain(rig, bus) == ["b1"]
    rig.machine.pass_time(10)

    assert drain(rig, bus) == ["a1", "a2"]


def test_in_a_queue_a_delayed_message_holds_back_nothing(rig: Rig, bus: Tasks) -> None:
    say(bus, "a", to=WORK)
    say(bus, "b", to=WORK)
    bus.nack(must_take(rig, bus, WORK), delay=10)
    assert drain(rig, bus, WORK) == ["b"]
    rig.machine.pass_time(10)

    assert drain(rig, bus, WORK) == ["a"]


def test_a_restart_ends_a_delay(rig: Rig, bus: Tasks) -> None:
    say(bus, "a")
    bus.nack(must_take(rig, bus), delay=1e6)
    rig.machine.reboot()

    assert drain(rig, bus) == ["a"]


# --- dead letters ----------------------------------------------------------------------------------


def test_after_five_attempts_a_message_is_dead_and_its_sender_told(rig: Rig, bus: Tasks) -> None:
    poison = say(bus, "poison")
    say(bus, "fine")
    for attempt in range(1, 6):
        claim = must_take(rig, bus)
        assert (bodies(claim), claim.attempts) == (["poison"], (attempt,))
        bus.nack(claim)

    assert drain(rig, bus) == ["fine"]
    (dead,) = bus.dead(DEV)
    assert (dead.message.id, dead.state, "never acknowledged" in dead.reason) == (poison, "dead", True)
    (notice,) = must_take(rig, bus, "user").messages
    assert (notice.sender, notice.type, notice.in_reply_to) == (POSTMASTER, DEAD_LETTER, poison)
    assert dead.reason in notice.body


def test_only_the_run_that_sent_a_dead_letter_is_told(rig: Rig, bus: Tasks) -> None:
    bus.declare("rev@s", generation="g2")
    for run in ("g1", "g2"):
        say(bus, run, sender="rev@s", sender_generation=run, ttl_ms=1)
    rig.machine.pass_time(5)
    assert drain(rig, bus) == []

    (notice,) = must_take(rig, bus, "rev@s").messages
    assert notice.in_reply_to == bus.dead(DEV)[1].message.id


def test_a_message_that_kills_its_readers_takes_no_other_with_it(rig: Rig, bus: Tasks) -> None:
    for n in ("poison", "a", "b"):
        say(bus, n, sender=f"{n}@s")
    done = []
    for pid in range(1000, 1020):
        rig.machine.alive[pid] = pid
        claim = take(rig, bus, limit=3, pid=pid)
        if claim is None:
            break
        if "poison" not in bodies(claim):
            done += bodies(claim)
            bus.ack(claim)
        del rig.machine.alive[pid]

    assert done == ["a", "b"]
    assert [dead.message.body for dead in bus.dead(DEV)] == ["poison"]


def test_what_nobody_took_in_time_is_dead(rig: Rig, bus: Tasks) -> None:
    say(bus, "old", ttl_ms=5000)
    say(bus, "new")
    rig.machine.pass_time(5)

    assert drain(rig, bus) == ["new"]
    assert [dead.message.body for dead in bus.dead(DEV)] == ["old"]


def test_what_lives_only_a_short_time_does_not_outlive_a_restart(rig: Rig, bus: Tasks) -> None:
    say(bus, "old", ttl_ms=3000)
    rig.machine.reboot()  # it is up for longer than that
    rig.machine.now -= 10**9

    assert drain(rig, bus) == []


def test_a_message_for_an_earlier_run_never_reaches_the_next(rig: Rig, bus: Tasks) -> None:
    bus.declare(DEV, generation="g1")
    say(bus, "for g1", generation="g1")
    say(bus, "for any")
    bus.declare(DEV, generation="g2")
    say(bus, "for g2", generation="g2")

    assert drain(rig, bus) == ["for any", "for g2"]
    assert [dead.message.body for dead in bus.dead(DEV)] == ["for g1"]


def test_a_dead_letter_can_wait_again_at_its_old_place(rig: Rig, bus: Tasks) -> None:
    bus.declare(DEV, generation="g2")
    first = say(bus, "first", generation="g1")
    say(bus, "second")
    claim = must_take(rig, bus)
    assert bodies(claim) == ["second"]
    bus.nack(claim)
    bus.declare(DEV, generation="g1")
    bus.requeue(DEV, first)

    assert bus.dead(DEV) == ()
    assert bus.depth(DEV)[:3] == (2, 0, 0)
    assert drain(rig, bus) == ["first", "second"]
    with pytest.raises(MessageNotFound):
        bus.requeue(DEV, first)


@pytest.mark.parametrize("to", [DEV, WORK])
def test_what_waits_again_is_not_too_late_any_more(rig: Rig, bus: Tasks, to: str) -> None:
    late = say(bus, "late", to=to, ttl_ms=5000)
    rig.machine.pass_time(6)
    assert drain(rig, bus, to) == []
    bus.requeue(to, late)
    rig.machine.pass_time(6)
    claim = must_take(rig, rig.open(), to)
    assert bodies(claim) == ["late"]
    bus.nack(claim)

    assert drain(rig, bus, to) == ["late"]
    assert bus.dead(to) == ()


def test_a_task_that_waits_again_for_others_is_not_too_late_either(rig: Rig, bus: Tasks) -> None:
    one = say(bus, "one", to=WORK)
    late = say(bus, "late", to=WORK, after=(one,), ttl_ms=5000)
    rig.machine.pass_time(6)
    claim = must_take(rig, bus, WORK, limit=2)
    bus.requeue(WORK, late)
    assert take(rig, bus, WORK) is None
    bus.ack(claim)

    assert drain(rig, bus, WORK) == ["late"]


def test_a_requeued_message_may_die_again_and_the_sender_is_told_again(rig: Rig, bus: Tasks) -> None:
    bus.declare(DEV, generation="g2")
    first = say(bus, "first", generation="g1")
    drain(rig, bus)
    rig.machine.pass_time(1)
    bus.requeue(DEV, first)
    drain(rig, bus)

    assert len(bus.dead(DEV)) == 1
    assert bus.depth("user").waiting == 2


def test_notices_make_no_notices(rig: Rig, bus: Tasks) -> None:
    bus.send(Message(DEV, POSTMASTER, "x", ttl_ms=1))
    say(bus, "y", sender="gone@s", ttl_ms=1)
    rig.machine.pass_time(1)

    assert drain(rig, bus) == []
    assert len(bus.dead(DEV)) == 2


# --- tasks -----------------------------------------------------------------------------------------


def states(bus: Tasks) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(task.stored.message.body, task.stored.state, task.needs) for task in bus.tasks(WORK)]


def test_a_task_comes_when_all_it_waits_for_are_done(rig: Rig, bus: Tasks) -> None:
    one, two = say(bus, "one", to=WORK), say(bus, "two", to=WORK)
    say(bus, "both", to=WORK, after=(one, two), priority="interrupt")
    assert ("both", "queued", (one, two)) in states(bus)
    first, second = must_take(rig, bus, WORK), must_take(rig, bus, WORK)
    assert (bodies(first), bodies(second)) == (["one"], ["two"])
    bus.ack(first)
    assert take(rig, rig.open(), WORK) is None
    assert ("both", "queued", (two,)) in states(bus)
    bus.ack(second)

    assert drain(rig, bus, WORK) == ["both"]


def test_what_was_done_long_ago_holds_back_nothing(rig: Rig, bus: Tasks) -> None:
    one = say(bus, "one", to=WORK)
    drain(rig, bus, WORK)
    say(bus, "next", to=WORK, after=(one,))

    assert drain(rig, bus, WORK) == ["next"]


def test_giving_back_is_not_doing(rig: Rig, bus: Tasks) -> None:
    one = say(bus, "one", to=WORK)
    say(bus, "next", to=WORK, after=(one,))
    bus.nack(must_take(rig, bus, WORK, limit=9))

    assert bodies(take(rig, bus, WORK, limit=9)) == ["one"]


def test_of_a_box_without_an_order_messages_of_some_types_can_be_taken(rig: Rig, bus: Tasks) -> None:
    events = "events.dev-s"
    bus.declare(events)
    kinds = ("task", "done", "late", "done")
    for number, kind in enumerate(kinds):
        say(bus, str(number), to=events, type=kind)
    first = bus.receive(events, holder=rig.machine.holder(), types=("done", "late"))
    other = bus.receive(events, holder=rig.machine.holder(), limit=5, types=("done",))
    assert (bodies(first), bodies(other)) == (["1"], ["3"])
    assert bus.receive(events, holder=rig.machine.holder(), types=("other",)) is None
    assert first is not None
    bus.nack(first)
    assert drain(rig, bus, events) == ["0", "1", "2"]
    with pytest.raises(MessageProblem):
        bus.receive(DEV, holder=rig.machine.holder(), types=("done",))


def test_of_a_box_without_an_order_messages_can_be_taken_by_what_they_say(rig: Rig, bus: Tasks) -> None:
    events = "events.dev-s"
    bus.declare(events)
    for number, kind in enumerate(("task", "done", "task", "done")):
        say(bus, str(number), to=events, type=kind)
    wanted = bus.receive(events, holder=rig.machine.holder(), limit=5, wanted=lambda one: one.body > "1")
    assert bodies(wanted) == ["2", "3"]
    assert wanted is not None
    bus.nack(wanted)
    both = bus.receive(events, holder=rig.machine.holder(), types=("done",), wanted=lambda one: one.body > "1")
    assert bodies(both) == ["3"]
    assert drain(rig, bus, events) == ["0", "1", "2"]
    with pytest.raises(MessageProblem):
        bus.receive(DEV, holder=rig.machine.holder(), wanted=lambda _: True)


def test_a_task_cannot_wait_for_what_is_not_there(rig: Rig, bus: Tasks) -> None:
    elsewhere = say(bus, "in an inbox")
    for after in (("nothing",), (elsewhere,)):
        with pytest.raises(MessageNotFound):
            say(bus, "x", to=WORK, after=after)
    with pytest.raises(MessageProblem):
        say(bus, "x", to=WORK, id="me", after=("me",))
    with pytest.raises(MessageProblem):
        say(bus, "x", after=(elsewhere,))
    with pytest.raises(MessageProblem):
        say(bus, "x", to=WORK, after=tuple(f"m{n}" for n in range(101)))

    assert bus.depth(WORK).waiting == 0


def test_a_task_sent_again_keeps_what_it_waits_for(rig: Rig, bus: Tasks) -> None:
    one = say(bus, "one", to=WORK)
    say(bus, "next", to=WORK, id="next", after=(one,))

    assert bus.send(Message(WORK, "user", "next", id="next", after=(one,))).duplicate
    with pytest.raises(IdTaken):
        say(bus, "next", to=WORK, id="next")
    assert bodies(take(rig, bus, WORK, limit=9)) == ["one"]


def test_a_task_given_up_is_dead_at_once_and_its_sender_told(rig: Rig, bus: Tasks) -> None:
    one, other = say(bus, "one", to=WORK), say(bus, "other", to=WORK)
    claim = must_take(rig, bus, WORK, limit=2)
    bus.fail(claim, (one,), reason="no such file")

    assert [(dead.message.id, dead.reason) for dead in bus.dead(WORK)] == [(one, "no such file")]
    assert bus.depth(WORK)[:3] == (0, 1, 1)
    assert "no such file" in must_take(rig, bus, "user").messages[0].body
    with pytest.raises(ClaimLost):
        bus.fail(claim, (one,), reason="again")
    bus.ack(claim, (other,))


def test_what_waits_for_a_dead_letter_is_blocked_until_that_is_done(rig: Rig, bus: Tasks) -> None:
    one = say(bus, "one", to=WORK)
    two = say(bus, "two", to=WORK, after=(one,), priority="low")
    say(bus, "three", to=WORK, after=(two,))
    bus.fail(must_take(rig, bus, WORK), reason="broken")
    blocked = {task.stored.message.body: task.blocked for task in bus.tasks(WORK)}

    assert all(blocked[name] for name in ("two", "three"))
    assert not blocked["one"]
    assert take(rig, bus, WORK) is None
    bus.requeue(WORK, one)
    assert not any(task.blocked for task in bus.tasks(WORK))
    assert drain(rig, bus, WORK) == ["one", "two", "three"]


def test_the_time_of_a_task_runs_out_while_it_waits(rig: Rig, bus: Tasks) -> None:
    one = say(bus, "one", to=WORK)
    say(bus, "next", to=WORK, after=(one,), ttl_ms=5000)
    claim = must_take(rig, bus, WORK)
    rig.machine.pass_time(6)
    assert take(rig, bus, WORK) is None
    bus.ack(claim)

    assert [dead.message.body for dead in bus.dead(WORK)] == ["next"]


def test_a_task_for_another_run_is_judged_when_its_turn_comes(rig: Rig, bus: Tasks) -> None:
    bus.declare(WORK, generation="g2")
    one = say(bus, "one", to=WORK)
    say(bus, "next", to=WORK, after=(one,), ttl_ms=5000, generation="g1")
    claim = must_take(rig, bus, WORK)
    assert take(rig, bus, WORK) is None
    assert bus.dead(WORK) == ()
    bus.declare(WORK, generation="g1")
    bus.ack(claim)

    assert drain(rig, bus, WORK) == ["next"]


def test_who_has_a_task_and_what_came_of_it_is_known(rig: Rig, bus: Tasks) -> None:
    one, two, three = (say(bus, name, to=WORK) for name in ("one", "two", "three"))
    claim = bus.receive(WORK, limit=2, holder=rig.machine.holder(), who="dev@s")
    assert claim is not None
    began = rig.machine.now
    assert (claim.who, claim.since_ms) == ("dev@s", began)
    assert [(c.who, c.since_ms) for c in rig.open().claims(WORK)] == [("dev@s", began)]
    rig.machine.pass_time(10)
    bus.ack(claim, (one,), note="see commit abc")
    found = {task.stored.message.id: task for task in rig.open().tasks(WORK, settled=True)}

    assert (found[one].stored.state, found[one].who, found[one].note) == ("acked", "dev@s", "see commit abc")
    assert found[one].since_ms == rig.machine.now
    assert (found[two].stored.state, found[two].who, found[two].since_ms) == ("claimed", "dev@s", began)
    assert (found[three].stored.state, found[three].who) == ("queued", "")
    assert [t.stored.message.id for t in bus.tasks(WORK)] == [two, three]
    assert bus.find(one)[0].events[-1][::2] == ("acked", "see commit abc")
    rig.machine.pass_time(100)
    assert [(t.stored.state, t.who) for t in bus.tasks(WORK)] == [("queued", "")] * 2


# --- limits ----------------------------------------------------------------------------------------


def test_a_full_inbox_takes_no_more_until_it_is_read(rig: Rig) -> None:
    bus = rig.open(Limits(messages=10))
    bus.declare(DEV)
    for n in range(10):
        say(bus, str(n), priority=("low", "high")[n % 2])
    with pytest.raises(QuotaReached) as caught:
        say(bus, "more", id="more")
    assert caught.value.exit_code == 75
    bus.ack(must_take(rig, bus))
    say(bus, "more", id="more")

    assert drain(rig, bus)[-1] == "more"


def test_a_full_inbox_is_one_with_many_bytes_too(rig: Rig) -> None:
    bus = rig.open(Limits(octets=10_000))
    bus.declare(DEV)
    for _ in range(4):
        say(bus, "x" * 2000)
    with pytest.raises(QuotaReached):
        say(bus, "x" * 2000)
    drain(rig, bus)

    say(bus, "x" * 2000)


# --- looking ---------------------------------------------------------------------------------------


def test_looking_changes_nothing(rig: Rig, bus: Tasks) -> None:
    for n in "abc":
        say(bus, n, priority="low" if n == "a" else "normal", sender=f"{n}@s")
    for _ in range(7):
        assert [one.message.body for one in bus.peek(DEV)] == ["b", "c", "a"]
        assert [one.message.body for one in bus.peek(DEV, limit=1)] == ["b"]

    assert must_take(rig, bus).attempts == (1,)
    assert [one.state for one in bus.peek(DEV)] == ["claimed", "queued", "queued"]


def test_history_tells_what_became_of_all(rig: Rig, bus: Tasks) -> None:
    for n in "abcd":
        say(bus, n)
        rig.machine.pass_time(1)
    bus.ack(must_take(rig, bus))
    must_take(rig, bus)

    assert [(s.message.body, s.state) for s in bus.history(DEV)] == [
        ("a", "acked"),
        ("b", "claimed"),
        ("c", "queued"),
        ("d", "queued"),
    ]
    assert [s.message.body for s in bus.history(DEV, 2)] == ["c", "d"]


def test_where_a_message_is_can_be_asked_at_any_time(rig: Rig, bus: Tasks) -> None:
    it = say(bus, "x")
    seen = []

    def look() -> None:
        (trace,) = bus.find(it)
        seen.append(trace.stored.state)

    look()
    bus.record_event(DEV, it, "nudged", "pane 3")
    look()
    claim = must_take(rig, bus)
    look()
    bus.record_event(DEV, it, "seen", "transcript line 5")
    look()
    bus.nack(claim, reason="busy")
    look()
    bus.ack(must_take(rig, bus))
    look()

    assert seen == ["queued", "nudged", "claimed", "seen", "queued", "acked"]
    (trace,) = bus.find(it)
    assert [e.name for e in trace.events] == ["queued", "nudged", "claimed", "seen", "returned", "claimed", "acked"]
    assert trace.events[1].evidence == "pane 3"
    assert bus.find("nobody-knows") == ()
    with pytest.raises(MessageNotFound):
        bus.record_event(DEV, "nobody-knows", "seen")


@pytest.mark.parametrize("word", ["claim", "ack", "user", "m", "id", "nudged", "who"])
def test_an_id_that_is_a_word_of_the_readers_notes_is_an_id_as_any(rig: Rig, bus: Tasks, word: str) -> None:
    other = say(bus, "other", sender="rev@s")
    say(bus, "x", id=word)
    bus.record_event(DEV, other, "nudged")
    claim = bus.receive(DEV, holder=rig.machine.holder(), who="user")
    assert bodies(claim) == ["other"]
    assert claim is not None
    bus.ack(claim)
    (trace,) = bus.find(word)

    assert (trace.stored.state, [event.name for event in trace.events]) == ("queued", ["queued"])


def test_an_answer_shows_that_a_message_was_seen_though_nobody_took_it(rig: Rig, bus: Tasks) -> None:
    states = []
    it = say(bus, "x")

    def note(event: str) -> None:
        bus.record_event(DEV, it, event)
        states.append(bus.find(it)[0].stored.state)

    note("nudged")
    note("seen")
    note("nudged")
    claim = must_take(rig, bus)
    states.append(bus.find(it)[0].stored.state)
    bus.nack(claim)
    states.append(bus.find(it)[0].stored.state)
    note("seen")

    assert states == ["nudged", "seen", "seen", "claimed", "queued", "seen"]


def test_what_waits_again_is_neither_seen_nor_nudged(rig: Rig, bus: Tasks) -> None:
    it = say(bus, "x", ttl_ms=1)
    bus.record_event(DEV, it, "nudged")
    bus.record_event(DEV, it, "seen")
    rig.machine.pass_time(1)
    assert drain(rig, bus) == []
    bus.requeue(DEV, it)

    assert bus.find(it)[0].stored.state == "queued"


@pytest.mark.parametrize("jump", [-(10**7), 10**7])
def test_history_keeps_the_order_of_a_lane_whatever_the_clock_says(rig: Rig, bus: Tasks, jump: int) -> None:
    for n in "ab":
        say(bus, n)
    rig.machine.now += jump
    for n in "cd":
        say(bus, n)
    rig.machine.now -= jump
    say(bus, "e")

    assert [s.message.body for s in bus.history(DEV)] == ["a", "b", "c", "d", "e"]
    assert [s.message.body for s in bus.history(DEV, 2)] == ["d", "e"]


def test_a_box_can_be_removed_and_made_anew(rig: Rig, bus: Tasks) -> None:
    other = rig.open()
    say(other, "old")
    drain(rig, other)
    bus.remove(DEV)
    with pytest.raises(InboxNotFound):
        say(other, "x")
    with pytest.raises(InboxNotFound):
        bus.remove(DEV)
    bus.declare(DEV)
    say(other, "new")

    assert drain(rig, other) == ["new"]


def test_a_box_made_anew_knows_nothing_of_the_one_before(rig: Rig, bus: Tasks) -> None:
    other = rig.open()
    for number in range(8):
        say(other, "old", id=f"m{number}", priority=("low", "normal")[number % 2])
    say(other, "urgent", priority="interrupt")
    drain(rig, other)
    bus.remove(DEV)
    bus.declare(DEV)
    say(bus, "first", id="m8", priority="low")

    assert not other.send(Message(DEV, "user", "second", id="m1")).duplicate
    assert other.send(Message(DEV, "user", "first", id="m8", priority="low")).duplicate
    say(other, "third", priority="interrupt")
    assert drain(rig, other) == ["first", "second", "third"]


def test_declaring_again_keeps_what_is_there(rig: Rig, bus: Tasks) -> None:
    say(bus, "x")
    rig.open().declare(DEV)

    assert drain(rig, bus) == ["x"]


def test_all_of_it_is_there_for_the_next_process(rig: Rig, bus: Tasks) -> None:
    for n in "abcd":
        say(bus, n)
    bus.ack(must_take(rig, bus))
    bus.nack(must_take(rig, bus), delay=10)
    after = rig.open()
    assert take(rig, after) is None
    rig.machine.pass_time(10)

    assert drain(rig, after) == ["b", "c", "d"]


def test_a_waiting_reader_gets_what_is_sent_meanwhile(rig: Rig, bus: Tasks, tmp_path: Path) -> None:
    if not hasattr(rig, "root"):
        pytest.skip("the reference does not wait")
    sender = threading.Timer(0.2, lambda: say(rig.open(), "hello"))
    sender.start()
    claim = bus.receive(DEV, wait=20, holder=rig.machine.holder())
    sender.join()

    assert bodies(claim) == ["hello"]
