"""Old messages go by a command, and whoever asks for one of them is told so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.approvals.grants import VARIABLE
from tests.cli.test_inbox_cli import Shell

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


@pytest.fixture
def at(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path.resolve())
    shell.env[VARIABLE] = shell.person.approvals.grant("pruner")
    return shell


def test_what_is_done_is_removed_and_said_to_be_gone(at: Shell) -> None:
    asked = at.swarm.send("user", "one", expects_reply=True, deadline_ms=3_600_000)[0].id
    at.swarm.messages.take()
    at.swarm.messages.ack()
    answer = at.swarm.send("researcher", "two", reply_to=asked)[0].id
    at.swarm.send("user", "three")
    assert "reply expected by " in at.said("message", asked)
    assert at.swarm.messages.answer_to(at.swarm.messages.get(asked)[0]).overdue is False  # type: ignore[union-attr]  # or it fails

    with_one_that_waits = at.cli("inbox", "prune", "--older-than", "0s")
    assert with_one_that_waits.stderr.strip() == b"nothing is old enough to be removed"
    at.swarm.messages.take()
    at.swarm.messages.ack()
    planned = at.json("inbox", "prune", "--older-than", "0s", "--dry-run")["data"]
    assert at.swarm.messages.removed("user") == 0
    done = at.json("inbox", "prune", "user", "--older-than", "0s")["data"]
    assert done == {**planned, "dry_run": False}
    assert [(one["box"], one["messages"]) for one in done["removed"]] == [("inbox.user", 2)]

    assert at.cli("inbox", "history").stderr.splitlines()[-1].endswith(b"2 earlier messages no longer kept")
    gone = at.cli("message", asked)
    assert (gone.returncode, b"is no longer kept" in gone.stderr, b"messages.keep" in gone.stderr) == (6, True, True)
    assert b"or it is no longer kept" in at.cli("thread", "neverseen").stderr
    thread = at.json("thread", answer)["data"]
    assert ([one["id"] for one in thread["messages"]], thread["not_kept"]) == ([answer], [asked])


@pytest.mark.parametrize("words", [["--older-than", "5"], ["nobody"]])
def test_what_cannot_be_meant_is_refused(at: Shell, words: list[str]) -> None:
    assert at.cli("inbox", "prune", *words).returncode in (2, 6)


def test_attachments_go_when_no_message_refers_to_them_any_longer(at: Shell) -> None:
    """One of a message of the user's, one of an agent that is cleaned up, and one of no message at all."""
    for to, text in (("user", "to the user"), ("researcher", "to an agent")):
        at.write({"file.log": text})
        at.said("send", to, "see there", "--attach", "file.log")
    at.swarm.messages._post.bus.attach(b"no message")
    blobs = at.root / ".swarm/messages/blobs"

    def there() -> set[str]:
        for path in blobs.iterdir():
            os.utime(path, (5, 5))
        return {path.read_text() for path in blobs.iterdir()}

    at.swarm.messages.take()
    at.swarm.messages.ack()
    at.swarm.cleanup(["fx"], force=True)
    at.swarm.messages.take()  # that the researcher never read its message
    at.swarm.messages.ack()
    assert there() == {"to the user", "to an agent", "no message"}
    planned = at.json("inbox", "prune", "--older-than", "0s", "--dry-run")["data"]
    done = at.json("inbox", "prune", "--older-than", "0s")["data"]
    assert done == {**planned, "dry_run": False}
    assert done["attachments"] == {"files": 2, "bytes": len("to the user") + len("no message")}
    assert there() == {"to an agent"}, "a restore brings its message back"

    at.swarm.salvage.drop(everything=True, now=True)
    assert at.said("inbox", "prune") == "1 attachment removed (11 bytes)\n"
    assert there() == set()
