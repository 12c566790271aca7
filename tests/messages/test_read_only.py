"""A state folder that cannot be written to, or of which a part cannot be read: one can look all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from swarm.approvals.grants import VARIABLE
from swarm.bus.errors import MessageNotFound
from swarm.bus.log.log import Log
from swarm.kit.errors import EnvironmentProblem, Interrupted, NoPermission
from swarm.messages import deadlines
from swarm.testing.lab import Lab
from swarm.testing.terminal import at_terminal, wait_for
from tests.support.odd import read_only
from tests.support.posts import post_of

pytestmark = pytest.mark.integration


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    made = Lab(tmp_path.resolve())
    made.swarm.create("fx", "researcher,developer", instructions=False)
    return made


def test_messages_can_be_looked_at_where_nothing_can_be_written(lab: Lab) -> None:
    post = post_of(lab)
    first = post.send("researcher", "one", id="m1")[0].id
    post.send("researcher", "two", id="m2", reply_to=first)
    with read_only(lab.root / ".swarm"):
        looks = post_of(lab)
        assert [one.message.body for one in looks.inbox("researcher")] == ["one", "two"]
        assert [one.message.body for one in looks.history("researcher")] == ["one", "two"]
        assert looks.dead("researcher") == ()
        assert looks.depth("researcher").waiting == 2
        assert [one.stored.state for one in looks.message("m2")] == ["queued"]
        assert [one.message.id for one in looks.thread("m1")] == ["m1", "m2"]
        assert looks.unread(["researcher@fx", "developer@fx"]) == {"researcher@fx": 2, "developer@fx": 0}
        assert looks.unreadable() == ()


def test_what_would_write_says_that_it_cannot_and_goes_on_when_it_can_again(lab: Lab) -> None:
    post_of(lab).send("researcher", "one")
    post = post_of(lab)
    with read_only(lab.root / ".swarm"):
        assert len(post.inbox("researcher")) == 1  # the files are open now, only to be read
        with pytest.raises(NoPermission):
            post.send("researcher", "two")
        with pytest.raises(NoPermission):
            post.take("user")
        (state,) = (check for check in lab.swarm.doctor() if check.name == "state")
        assert (state.state, "is not writable" in state.text) == ("bad", True)
    post.send("researcher", "three")

    assert [one.message.body for one in post.inbox("researcher")] == ["one", "three"]


@pytest.fixture
def broken(lab: Lab) -> Path:
    """Return a file of an inbox in whose place there is a folder."""
    post = post_of(lab)
    post.send("developer", "one", id="m1")
    post.send("user", "two", id="m2", reply_to="m1")
    file = lab.root / ".swarm" / "messages" / "inbox" / "developer-fx" / "normal" / "active.log"
    file.unlink()
    file.mkdir()
    return file


def test_an_inbox_that_cannot_be_read_keeps_nobody_from_the_others(lab: Lab, broken: Path) -> None:
    post = post_of(lab)
    assert [one.message.body for one in post.thread("m2")] == ["two"]
    assert [one.stored.message.id for one in post.message("m2")] == ["m2"]
    assert post.send((), "three", id="m3", reply_to="m2")[0].to == "user"
    (problem,) = post.unreadable()
    assert "inbox.developer-fx" in problem
    (check,) = (check for check in lab.swarm.doctor() if check.name == "messages")
    assert (check.state, check.text) == ("bad", problem)


def test_what_may_be_in_an_inbox_that_cannot_be_read_is_not_said_to_be_nowhere(lab: Lab, broken: Path) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        post_of(lab).message("m1")
    assert "inbox.developer-fx" in caught.value.message


def test_whether_somebody_answered_is_not_decided_without_the_inbox_that_cannot_be_read(lab: Lab) -> None:
    post = post_of(lab)
    post.send("researcher,developer", "well?", id="m1", expects_reply=True, deadline_ms=1)
    messages = lab.root / ".swarm" / "messages"
    file = messages / "inbox" / "developer-fx" / "normal" / "active.log"
    kept = file.rename(file.with_name("kept"))
    file.mkdir()
    wait_for(lambda: (deadlines.left_ms(str(messages), "user") or 0) <= 0, "the deadline")
    deadlines.notify_senders(post.bus, str(messages))
    file.rmdir()
    kept.rename(file)

    deadlines.notify_senders(post_of(lab).bus, str(messages))
    (notice,) = (one.message for one in post_of(lab).inbox("user"))
    assert notice.body.startswith("researcher@fx and developer@fx did not answer")


def test_status_shows_an_inbox_that_cannot_be_read(lab: Lab, broken: Path) -> None:
    unread = {a.agent.name: a.unread for s in lab.swarm.status(look=False) for a in s.agents}
    assert unread == {"researcher": 0, "developer": None}


@pytest.mark.parametrize("where", ["inbox", "inbox/developer-fx", "inbox/developer-fx/bad"])
def test_a_folder_that_nobody_may_look_into_is_named(lab: Lab, where: str) -> None:
    post = post_of(lab)
    post.send("developer", "one", id="m1")
    folder = lab.root / ".swarm" / "messages" / where
    if os.geteuid() == 0:  # whom no mode keeps out: no folder at all is as unreadable
        folder.rename(folder.with_name("kept"))
        folder.symlink_to(folder.name)
    else:
        folder.chmod(0)
    try:
        (problem,) = post_of(lab).unreadable("m2")
    finally:
        if os.geteuid() != 0:
            folder.chmod(0o700)
    assert "cannot read" in problem


def test_a_signal_ends_a_look_into_all_inboxes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.env[VARIABLE] = lab.person.approvals.grant("pruner")
    post = post_of(lab)
    post.send("researcher,developer", "hello")
    seen = []

    def interrupted(*_: object) -> None:
        seen.append(1)
        raise Interrupted("interrupted by SIGINT")

    monkeypatch.setattr(Log, "end", interrupted)  # which all of them ask for
    for act in (lambda: post.message("m1"), lambda: post.thread("m1"), post.unreadable, post.prune):
        with pytest.raises(Interrupted):
            act()
        assert len(seen) == 1
        seen.clear()


def test_an_inbox_that_cannot_be_read_is_named_after_the_others_were_pruned(lab: Lab, broken: Path) -> None:
    post = post_of(lab)
    post.take("user")
    post.ack(name="user")
    with pytest.raises(EnvironmentProblem) as caught:
        at_terminal(lambda: post.prune(older_than_ms=0))
    assert "inbox.developer-fx" in caught.value.message
    assert post.removed("user") == 1


def test_a_damaged_copy_of_a_message_is_named_where_the_others_are_shown(lab: Lab) -> None:
    post = post_of(lab)
    post.send("researcher,developer", "hello", id="m1")
    file = lab.root / ".swarm" / "messages" / "inbox" / "developer-fx" / "normal" / "active.log"
    file.write_bytes(file.read_bytes().replace(b"hello", b"hellX"))
    assert post.take("developer") is None

    assert [one.stored.address for one in post.message("m1")] == ["inbox.researcher-fx"]
    (words,) = post.unreadable("m1")
    assert "bad" in words
    assert "hellX" in Path(words.rpartition(": ")[2]).read_text(encoding="utf-8")


def test_damaged_messages_that_wait_are_not_said_to_be_too_many_to_show(lab: Lab) -> None:
    post_of(lab).send("developer", "hello", id="m1")
    file = lab.root / ".swarm" / "messages" / "inbox" / "developer-fx" / "normal" / "active.log"
    file.write_bytes(file.read_bytes().replace(b"hello", b"hellX"))
    words = [sys.executable, "-m", "swarm", "inbox", "developer"]
    done = subprocess.run(words, cwd=lab.root, env=lab.env, capture_output=True, text=True, check=True)

    assert "1 more message not shown; damaged on the disk" in done.stderr
    assert post_of(lab).take("developer") is None
    notice = post_of(lab).inbox("user")[0].message
    assert notice.in_reply_to == "m1"
    with pytest.raises(MessageNotFound, match="'m1' was damaged on the disk"):
        post_of(lab).message("m1")
