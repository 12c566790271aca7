"""Messages between a person and agents whose programs do not run: no tmux is needed for that."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.bus.box import Limits
from swarm.bus.errors import ClaimLost, IdTaken, MessageNotFound, MessageProblem, QuotaReached
from swarm.bus.filebus import FileBus
from swarm.bus.log import syncing
from swarm.bus.message import Message
from swarm.kit.errors import Refused, SwarmError
from swarm.messages.errors import SentInPart
from swarm.messages.office.post import Post
from swarm.project.errors import AgentNotFound
from swarm.project.sessions import Sessions
from swarm.sessions.errors import WaitOver
from swarm.testing.lab import Lab
from swarm.testing.terminal import wait_for
from tests.support.posts import post_of

if TYPE_CHECKING:
    from swarm import SendOptions, Swarm

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path.resolve())
    made.swarm.create("fx", "researcher,developer:2", instructions=False)
    return made


def boxes(lab: Lab) -> list[str]:
    """Return the inboxes of agents; the user's stays."""
    folder = lab.root / ".swarm" / "messages" / "inbox"
    return sorted({*os.listdir(folder)} - {"user"}) if folder.is_dir() else []


def everything(lab: Lab, address: str) -> list[str]:
    return [one.message.body for one in post_of(lab).history(address)]


# --- send -------------------------------------------------------------------------------------------


def test_a_message_arrives_whole_and_stays(lab: Lab) -> None:
    swarm = lab.swarm
    (sent,) = swarm.send("researcher", "look\n\tat this: ünïcode ;$(x)", subject="su", type="task", priority="high")
    (stored,) = lab.swarm.messages.inbox("researcher")
    message = stored.message
    assert (message.id, message.sender, message.to) == (sent.id, "user", "researcher@fx")
    assert message.body == "look\n\tat this: ünïcode ;$(x)"
    assert (message.subject, message.type, message.priority, stored.state) == ("su", "task", "high", "queued")


def test_nothing_is_sent_when_one_of_them_is_unknown(lab: Lab) -> None:
    with pytest.raises(Refused) as caught:
        lab.swarm.send("researcher,nobody,nowhere@fx", "x")
    assert [p.code for p in caught.value.problems] == ["AGENT_NOT_FOUND", "AGENT_NOT_FOUND"]
    assert boxes(lab) == []


def test_a_bad_message_leaves_nothing_behind(lab: Lab) -> None:
    wrong: tuple[SendOptions, ...] = ({"priority": "urgent"}, {"type": "Bad Type"}, {"id": "no id"})
    for bad in wrong:
        with pytest.raises(MessageProblem):
            lab.swarm.send("researcher", "x", **bad)
    with pytest.raises(MessageProblem):
        lab.swarm.send("researcher", "a\0b")
    assert everything(lab, "researcher") == []


def test_all_but_the_sender_get_one_message_under_one_id(lab: Lab) -> None:
    sent = lab.swarm.messages.broadcast("main has moved")
    assert [one.to for one in sent] == ["researcher@fx", "developer-1@fx", "developer-2@fx"]
    assert len({one.id for one in sent}) == 1
    assert len(lab.swarm.messages.get(sent[0].id)) == 3


def test_the_sender_is_told_of_a_recipient_that_does_not_run(lab: Lab) -> None:
    (sent,) = lab.swarm.send("researcher", "x")
    assert sent.note == "it has no program"


def test_the_same_id_is_the_same_message(lab: Lab) -> None:
    first = lab.swarm.send("researcher", "x", id="job-1")[0]
    again = lab.swarm.send("researcher", "x", id="job-1")[0]
    assert (first.receipt.duplicate, again.receipt.duplicate) == (False, True)
    assert everything(lab, "researcher") == ["x"]


def test_a_file_is_sent_along_as_it_was(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "trace.log"
    file.write_bytes(b"\0\xff" * 1000)
    lab.swarm.send("researcher", "see the log", attach=[file])
    file.write_bytes(b"changed")
    (stored,) = lab.swarm.messages.inbox("researcher")
    kept = post_of(lab).bus.attachment(stored.message.artifacts[0])
    assert kept.read_bytes() == b"\0\xff" * 1000


def test_an_answer_belongs_to_its_question(lab: Lab) -> None:
    question = lab.swarm.send("user", "which one?", expects_reply=True)[0]
    answer = lab.swarm.messages.reply(question.id, "the second")[0]
    more = lab.swarm.messages.reply(answer.id, "sure?")[0]
    assert answer.to == "user"
    thread = lab.swarm.messages.thread(more.id)
    assert [one.message.id for one in thread] == [question.id, answer.id, more.id]
    assert {one.message.thread_id for one in thread[1:]} == {question.id}
    events = {event.name: event.evidence for event in lab.swarm.messages.get(question.id)[0].events}
    assert events["seen"] == f"answered by {answer.id}"


def test_an_answer_to_nothing_is_refused(lab: Lab) -> None:
    with pytest.raises(MessageNotFound):
        lab.swarm.messages.reply("0123", "yes")
    with pytest.raises(MessageNotFound):
        lab.swarm.messages.get("0123")
    with pytest.raises(MessageNotFound):
        lab.swarm.messages.thread("0123")


def fill(lab: Lab, *addresses: str) -> None:
    """Let inboxes be as full as they may be."""
    bus = post_of(lab).bus
    for address in addresses:
        bus.declare(address)
        for _ in range(10_000):
            bus.send(Message(address, "user", "x"), durable=False)


def test_a_full_inbox_keeps_a_message_from_nobody_else(lab: Lab) -> None:
    fill(lab, "developer-1@fx")
    with pytest.raises(SentInPart) as caught:
        lab.swarm.messages.broadcast("main has moved")
    error = caught.value
    it = error.facts["id"]

    assert [one.to for one in error.facts["sent"]] == ["researcher@fx", "developer-2@fx"]
    assert [(one.code, one.facts["to"]) for one in error.facts["problems"]] == [("QUOTA", "developer-1@fx")]
    assert (error.exit_code, f"swarm send developer-1@fx TEXT --id {it}" in str(error.hint)) == (75, True)
    assert len(lab.swarm.messages.get(it)) == 2
    post_of(lab).bus.remove("developer-1@fx")
    lab.swarm.send("developer-1", "main has moved", id=it)
    assert [one.receipt.duplicate for one in lab.swarm.messages.broadcast("main has moved", id=it)] == [True] * 3


def test_who_is_refused_by_everybody_is_told_the_id(lab: Lab) -> None:
    fill(lab, "developer-1@fx", "developer-2@fx")
    with pytest.raises(QuotaReached) as one:
        lab.swarm.send("developer-1", "x", id="job-1")
    with pytest.raises(Refused) as both:
        lab.swarm.send("role:developer", "x")

    assert "--id job-1" in one.value.hint
    assert [problem.code for problem in both.value.problems] == ["QUOTA", "QUOTA"]
    assert "--id 0" in both.value.hint


def test_a_sync_that_fails_names_the_id_to_send_again(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.swarm.send("researcher", "first")
    with monkeypatch.context() as broken:

        def fail(_: int) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        broken.setattr(syncing, "sync_data", fail)
        with pytest.raises(SwarmError) as caught:
            post_of(lab).send("researcher", "x")
    it = caught.value.hint.partition("--id ")[2].partition(" ")[0]

    assert post_of(lab).send("researcher", "x", id=it)[0].receipt.duplicate
    assert everything(lab, "researcher") == ["first", "x"]


def test_another_message_under_an_id_leaves_nothing_to_wait_for(lab: Lab) -> None:
    awaited = lab.root / ".swarm" / "messages" / "awaited"
    lab.swarm.send("researcher", "x", id="job-1")
    with pytest.raises(IdTaken):
        lab.swarm.send("researcher", "y", id="job-1", expects_reply=True, deadline_ms=60_000)
    assert list(awaited.iterdir()) == []
    lab.swarm.send("researcher", "y", id="job-2", expects_reply=True, deadline_ms=60_000)
    with pytest.raises(IdTaken):
        lab.swarm.send("researcher", "z", id="job-2", expects_reply=True, deadline_ms=60_000)

    assert [one.name for one in awaited.iterdir()] == ["job-2.json"]


def test_an_id_under_which_somebody_else_awaits_answers_is_taken(lab: Lab) -> None:
    lab.swarm.send("researcher", "x", id="job-1", expects_reply=True, deadline_ms=60_000)
    note = lab.root / ".swarm" / "messages" / "awaited" / "job-1.json"
    note.write_text(note.read_text().replace('"user"', '"researcher@fx"', 1))
    before = note.read_bytes()
    with pytest.raises(IdTaken):
        lab.swarm.send("developer-1", "y", id="job-1", expects_reply=True, deadline_ms=60_000)

    assert note.read_bytes() == before
    assert everything(lab, "developer-1") == []


def test_an_answer_is_noted_with_ones_own_copy(lab: Lab) -> None:
    question = lab.swarm.send("researcher,user", "which one?")[0]
    answer = lab.swarm.messages.reply(question.id, "the second")[0]
    states = {one.stored.message.to: one.stored.state for one in lab.swarm.messages.get(question.id)}

    assert states == {"researcher@fx": "queued", "user": "seen"}
    (own,) = (one for one in lab.swarm.messages.get(question.id) if one.stored.message.to == "user")
    assert own.events[-1].evidence == f"answered by {answer.id}"


def test_a_thread_goes_back_as_far_as_messages_are_kept(lab: Lab) -> None:
    first = lab.swarm.send("researcher", "which one?")[0]
    answer = lab.swarm.send("researcher", "well?", reply_to=first.id)[0]
    bus = FileBus(lab.root / ".swarm" / "messages", limits=Limits(messages=20_000))
    for _ in range(10_001):
        bus.send(Message("researcher@fx", "user", "x"), durable=False)
    bus.close()

    assert [one.message.id for one in lab.swarm.messages.thread(answer.id)] == [first.id, answer.id]


def test_no_attachment_takes_the_place_of_another(lab: Lab, tmp_path: Path) -> None:
    bus = post_of(lab).bus
    lab.swarm.send("user", "x")
    named = ("3-a", "a", "a", "4-a", "a")
    files = tuple(bus.attach(str(number).encode(), name) for number, name in enumerate(named))
    it = bus.send(Message("user", "user", "x", artifacts=files)).id
    saved = post_of(lab).save_files(it, tmp_path / "saved")

    assert [path.name for path in saved] == ["3-a", "a", "4-a", "4-4-a", "5-a"]
    assert [path.read_text() for path in saved] == ["0", "1", "2", "3", "4"]


def test_a_file_that_is_empty_is_not_unread(lab: Lab) -> None:
    post = post_of(lab)
    post.declare(None)
    drop = Path(post.folder("user")) / "drop"
    (drop / "empty").touch()
    assert post.unread(["user"]) == {"user": 0}
    (drop / "it").write_text("x")

    assert post.unread(["user"]) == {"user": 1}


# --- take and settle --------------------------------------------------------------------------------


def test_what_is_taken_is_given_again_until_it_is_done(lab: Lab) -> None:
    swarm = lab.swarm
    for text in ("one", "two"):
        swarm.send("user", text)
    taken = swarm.messages.take()
    assert taken is not None
    assert [m.body for m in taken.messages] == ["one", "two"]
    again = lab.swarm.messages.take()
    assert again is not None
    assert again.again
    assert [m.body for m in again.messages] == ["one", "two"]
    assert swarm.messages.ack([taken.messages[0].id]) == (taken.messages[0].id,)
    assert swarm.messages.ack() == (taken.messages[1].id,)
    assert lab.swarm.messages.take() is None
    with pytest.raises(ClaimLost):
        swarm.messages.ack()


#: Takes until nothing is left, and prints the ids of what it got; "once": takes once, and ends with it in hand.
_READER = """
import sys
from swarm.messages.office.post import Post

post = Post(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
left = True
while left:
    taken = post.take(wait=0.2, limit=20)
    if taken is not None:
        print(*(message.id for message in taken.messages))
        if sys.argv[2] != "once":
            post.done(taken)
    depth = post.depth("user")
    left = sys.argv[2] != "once" and depth.waiting + depth.claimed > 0
if sys.argv[2] == "once":
    print("done", flush=True)
    sys.stdin.readline()  # it lives, and has them in hand
"""


def _reader(lab: Lab, how: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-c", _READER, str(lab.root / ".swarm"), how]
    made = subprocess.Popen(command, env=lab.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    assert made.stdout.readline() == "ready\n"
    return made


def _go(reader: subprocess.Popen[str]) -> None:
    assert reader.stdin is not None
    reader.stdin.write("\n")
    reader.stdin.flush()


def test_processes_that_take_from_the_users_inbox_at_once_get_each_message_once(lab: Lab) -> None:
    lab.swarm.send("user", "makes the box", id="m0")
    bus = post_of(lab).bus
    for number in range(1, 1000):
        bus.send(Message("user", "developer-1@fx", "x", id=f"m{number}"), durable=False)
    readers = [_reader(lab, "all") for _ in range(4)]
    for one in readers:
        _go(one)

    got = [one.communicate(timeout=120)[0].split() for one in readers]

    assert [one.returncode for one in readers] == [0, 0, 0, 0]
    assert sorted(id_ for ids in got for id_ in ids) == sorted(f"m{number}" for number in range(1000))


def test_what_a_process_of_the_users_left_in_hand_is_given_to_one_other(lab: Lab) -> None:
    lab.swarm.send("user", "x", id="m1")
    first = _reader(lab, "once")
    _go(first)
    wait_for(lambda: post_of(lab).depth().claimed == 1, "the first reader")
    assert lab.swarm.messages.take() is None, "it lives"
    assert post_of(lab).held_by() == f"user {first.pid}"
    with pytest.raises(ClaimLost, match="nothing of user is in hand"):
        lab.swarm.messages.ack()  # not what another one has
    first.communicate("\n", timeout=60)
    others = [_reader(lab, "once") for _ in range(3)]
    for one in others:
        _go(one)

    said: list[str] = []
    for one in others:
        assert one.stdout is not None
        said += iter(one.stdout.readline, "done\n")
    for one in others:
        one.communicate("\n", timeout=60)

    assert said == ["m1\n"]
    (again,) = [lab.swarm.messages.take()]
    assert again is not None
    assert (again.again, again.claim.attempts) == (True, (1,))
    assert lab.swarm.messages.ack(["m1"]) == ("m1",)


def test_what_is_given_back_comes_again(lab: Lab) -> None:
    lab.swarm.send("user", "later")
    first = lab.swarm.messages.take()
    assert first is not None
    lab.swarm.messages.nack(reason="busy")
    second = lab.swarm.messages.take()
    assert second is not None
    assert (second.claim.attempts, second.again) == ((2,), False)
    returned = [e for e in lab.swarm.messages.get(first.messages[0].id)[0].events if e.name == "returned"]
    assert returned[0].evidence == "busy"


def test_a_claim_ends_with_its_time(lab: Lab) -> None:
    lab.swarm.send("user", "x")
    assert lab.swarm.messages._post.take(lease=0.05) is not None
    wait_for(lambda: post_of(lab).depth().claimed == 0, "the end of the claim")
    again = lab.swarm.messages.take()
    assert again is not None
    assert (again.again, again.claim.attempts) == (False, (2,))


def test_ids_that_are_not_in_hand_are_refused(lab: Lab) -> None:
    lab.swarm.send("user", "x")
    taken = lab.swarm.messages.take()
    assert taken is not None
    with pytest.raises(ClaimLost, match="other"):
        lab.swarm.messages.ack([taken.messages[0].id, "other"])
    assert lab.swarm.messages.inbox("user")[0].state == "claimed"


def test_a_waiting_reader_wakes_when_a_message_comes(lab: Lab) -> None:
    lab.swarm.send("user", "makes the box")
    lab.swarm.messages.take()
    lab.swarm.messages.ack()
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.append(post_of(lab).take(wait=30)))
    reader.start()
    lab.swarm.send("user", "now")
    reader.join(30)
    assert [m.body for m in found[0].messages] == ["now"]


def test_waiting_for_a_message_takes_nothing(lab: Lab) -> None:
    swarm = lab.swarm
    with pytest.raises(WaitOver):
        swarm.wait_for(["researcher"], "message", timeout=0.05)
    swarm.send("researcher", "x")
    (reached,) = swarm.wait_for(["researcher"], "message", timeout=30)
    assert (reached.address, reached.state) == ("researcher@fx", "message")
    assert lab.swarm.messages.inbox("researcher")[0].state == "queued"


def test_unread_counts_what_waits(lab: Lab) -> None:
    lab.swarm.send("researcher", "one")
    lab.swarm.send("researcher", "two")
    post = post_of(lab)
    assert post.unread(["researcher@fx", "developer-1@fx"]) == {"researcher@fx": 2, "developer-1@fx": 0}
    post.take("researcher", limit=1)
    assert post.unread(["researcher@fx"]) == {"researcher@fx": 1}
    unread = {a.agent.name: a.unread for s in lab.swarm.status(look=False) for a in s.agents}
    assert unread == {"researcher": 1, "developer-1": 0, "developer-2": 0}


# --- agents that come and go --------------------------------------------------------------------------


def salvaged_inboxes(lab: Lab) -> list[Path]:
    return sorted((lab.root / ".swarm" / "salvage").glob("*/*/*/inbox"))


def test_a_cleanup_saves_the_messages_and_a_restore_brings_them_back(lab: Lab) -> None:
    lab.swarm.send("researcher", "still to do")
    lab.swarm.cleanup(["fx"])
    assert boxes(lab) == []
    assert [path.parts[-3] for path in salvaged_inboxes(lab)] == ["researcher"]
    lab.swarm.restore("fx")
    assert salvaged_inboxes(lab) == []
    taken = post_of(lab).take("researcher")
    assert taken is not None
    assert [m.body for m in taken.messages] == ["still to do"]


def test_senders_hear_of_what_was_never_read_and_where_it_is(lab: Lab) -> None:
    read = lab.swarm.send("researcher", "read")[0].id
    post = post_of(lab)
    post.take("researcher")
    post.ack(name="researcher")
    left = [lab.swarm.send("researcher", "unread", id=name)[0].id for name in ("one", "two")]

    lab.swarm.cleanup(["fx"])

    (notice,) = [one.message for one in post_of(lab).history("user")]
    assert (notice.type, notice.sender) == ("delivery", "swarm")
    assert (
        notice.body == "2 messages of yours to researcher@fx (one, two) are saved with it: swarm restore fx/researcher."
    )
    with pytest.raises(MessageNotFound, match="saved with fx/researcher") as caught:
        post_of(lab).message(left[0])
    assert caught.value.hint == "swarm restore fx/researcher"
    with pytest.raises(MessageNotFound, match="there is no message"):
        post_of(lab).message(read)


def test_an_inbox_without_a_message_is_not_kept(lab: Lab) -> None:
    post = post_of(lab)
    for member in post.members():
        post.declare(member)
    lab.swarm.cleanup(["fx"])
    assert (boxes(lab), salvaged_inboxes(lab)) == ([], [])


def test_discard_discards_messages_too(lab: Lab) -> None:
    lab.swarm.send("researcher", "x")
    lab.person.cleanup(["fx"], discard=True)
    assert (boxes(lab), salvaged_inboxes(lab)) == ([], [])
    assert "gone with it (--discard)" in post_of(lab).history("user")[0].message.body


def test_a_message_to_an_earlier_agent_never_reaches_the_next_of_its_name(lab: Lab) -> None:
    old = next(m for m in post_of(lab).members() if m.agent == "researcher")
    lab.swarm.cleanup(["fx"])
    lab.swarm.create("fx", "researcher", instructions=False)
    post = post_of(lab)
    new = next(m for m in post.members())
    assert new.generation != old.generation
    post.declare(new)
    post.bus.send(Message(to=new.address, sender="user", body="for the old one", generation=old.generation))
    post.send("researcher", "for the new one")
    taken = post.take("researcher")
    assert taken is not None
    assert [m.body for m in taken.messages] == ["for the new one"]
    assert "earlier run" in post.dead("researcher")[0].reason


def test_an_answer_to_an_earlier_agent_never_reaches_the_next_of_its_name(lab: Lab) -> None:
    old = next(m for m in post_of(lab).members() if m.agent == "researcher")
    lab.swarm.send("user", "makes the box")
    asked = Message(to="user", sender=old.address, body="which one?", sender_generation=old.generation)
    question = post_of(lab).bus.send(asked).id
    assert lab.swarm.messages.reply(question, "the first")[0].to == old.address
    lab.swarm.cleanup(["fx"])
    lab.swarm.create("fx", "researcher", instructions=False)

    with pytest.raises(AgentNotFound, match="its sender is gone"):
        lab.swarm.messages.reply(question, "the second")
    assert everything(lab, "researcher") == []


def test_a_restored_agent_is_the_same_agent(lab: Lab) -> None:
    before = {m.agent: m.generation for m in post_of(lab).members()}
    lab.swarm.cleanup(["fx"])
    lab.swarm.restore("fx")
    assert {m.agent: m.generation for m in post_of(lab).members()} == before


def test_one_agent_that_is_removed_leaves_the_others_their_messages(lab: Lab) -> None:
    lab.swarm.messages.broadcast("hello")
    lab.swarm.worktrees.remove("developer-1", "fx")
    assert boxes(lab) == ["developer-2-fx", "researcher-fx"]
    with pytest.raises(AgentNotFound):
        lab.swarm.send("developer-1", "x")


# --- where ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [".", "src", ".worktrees/researcher-fx", ".worktrees/researcher-fx/src"])
def test_the_messages_are_found_without_git(lab: Lab, where: str) -> None:
    found = Post.find(str(lab.root / where), environ={})
    assert found is not None
    assert found.state == str(lab.root / ".swarm")


def test_swarm_dir_is_used_outside_of_a_repository(lab: Lab, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    assert Post.find(str(outside), environ={}) is None
    found = Post.find(str(outside), environ={"SWARM_STATE_DIR": str(lab.root / ".swarm")})
    assert found is not None
    assert found.state == str(lab.root / ".swarm")


def test_another_repository_is_not_taken_for_this_one(lab: Lab, tmp_path: Path) -> None:
    other = Lab(tmp_path.resolve() / "more", "other")
    assert Post.find(str(other.root), environ={"SWARM_STATE_DIR": str(lab.root / ".swarm")}) is None


def test_a_state_folder_that_others_can_write_to_is_not_used(lab: Lab) -> None:
    (lab.root / ".swarm").chmod(0o777)
    assert Post.find(str(lab.root), environ={}) is None


def test_the_user_can_be_written_to_before_there_is_any_session(tmp_path: Path) -> None:
    fresh = Lab(tmp_path.resolve())
    swarm: Swarm = fresh.swarm
    assert swarm.messages.inbox() == ()
    swarm.send("user", "note to myself")
    assert [one.message.body for one in fresh.swarm.messages.inbox()] == ["note to myself"]


@pytest.mark.parametrize("what", ["write", "forget"])
def test_a_cleanup_that_breaks_off_saves_every_message_once(
    lab: Lab, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inbox is moved, and then the record cannot be written: the next command goes on from there."""
    lab.swarm.messages.broadcast("hello")
    with monkeypatch.context() as broken:

        def fail(*_args: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        broken.setattr(Sessions, what, fail)
        with pytest.raises(SwarmError):
            lab.swarm.worktrees.remove("researcher", "fx") if what == "write" else lab.swarm.cleanup(["fx"])
    lab.swarm.recover()
    if what == "write":  # of the others the record was written
        lab.swarm.cleanup(["fx"])
    assert lab.swarm.sessions() == ()
    saved = [path.parts[-3] for path in salvaged_inboxes(lab)]
    assert saved == ["developer-1", "developer-2", "researcher"]
    assert boxes(lab) == []


def test_a_restore_brings_back_as_well_what_came_between_two_tries_of_a_cleanup(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first try moves the inbox away and breaks off; what is sent then makes another one."""
    lab.swarm.send("researcher", "first", id="m-1")
    for time in ("second", "third"):
        with monkeypatch.context() as broken:

            def fail(*_args: object) -> None:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

            broken.setattr(Sessions, "write", fail)
            broken.setattr(Sessions, "forget", fail)
            with pytest.raises(SwarmError):
                lab.swarm.cleanup(["fx"]) if time == "second" else lab.swarm.recover()
        lab.swarm.send("researcher", time, priority="low")
        lab.swarm.send("researcher", f"{time}, urgently", priority="high")
        lab.swarm.send("researcher", "first", id="m-1")
        (Path(post_of(lab).folder("researcher@fx")) / "drop" / "note").write_text(f"{time} note")
    lab.swarm.recover()
    assert (lab.swarm.sessions(), boxes(lab)) == ((), [])

    lab.swarm.restore("fx")

    taken = post_of(lab).take("researcher", limit=20)
    assert taken is not None
    bodies = [message.body for message in taken.messages]
    sent, dropped = bodies[:5], bodies[5:]
    assert sent == ["first", "second", "second, urgently", "third", "third, urgently"]
    assert sorted(dropped) == ["second note", "third note"]
    post_of(lab).done(taken)
    again = lab.swarm.cleanup(["fx"])
    assert [one.agent for one in again.removed] == ["researcher", "developer-1", "developer-2"]
    lab.swarm.restore("fx")
    assert post_of(lab).take("researcher") is None


def test_a_restore_loses_nothing_where_an_id_was_used_again(lab: Lab) -> None:
    old = next(m for m in post_of(lab).members() if m.agent == "researcher")
    lab.swarm.send("researcher", "before", id="m-1")
    lab.swarm.cleanup(["fx"])
    late = post_of(lab)
    late.declare(old)
    for body in ("after", "and after that"):
        late.bus.send(
            Message(old.address, "user", body, id="m-1" if body == "after" else "", generation=old.generation)
        )

    lab.swarm.restore("fx")

    taken = post_of(lab).take("researcher")
    assert taken is not None
    assert [message.body for message in taken.messages] == ["before", "after", "and after that"]


def test_a_restore_brings_back_as_well_what_came_right_after_the_cleanup(lab: Lab) -> None:
    """Who knew the agent a moment before its end may make it an inbox a moment after."""
    old = next(m for m in post_of(lab).members() if m.agent == "researcher")
    lab.swarm.send("researcher", "before")
    lab.swarm.cleanup(["fx"])
    late = post_of(lab)
    late.declare(old)
    late.bus.send(Message(to=old.address, sender="user", body="after", generation=old.generation))

    lab.swarm.restore("fx")

    taken = post_of(lab).take("researcher")
    assert taken is not None
    assert [message.body for message in taken.messages] == ["before", "after"]


def test_a_restore_that_is_taken_back_leaves_the_messages_saved(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.swarm.messages.broadcast("hello")
    lab.swarm.cleanup(["fx"])
    with monkeypatch.context() as broken:

        def fail(*_args: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        broken.setattr(Sessions, "write", fail)
        with pytest.raises(SwarmError):
            lab.swarm.restore("fx")
    assert boxes(lab) == []
    assert len(salvaged_inboxes(lab)) == 3
    lab.swarm.restore("fx")
    assert everything(lab, "developer-2") == ["hello"]
