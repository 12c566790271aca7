"""The commands of the inbox, typed by a person."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.domain.message import POSTMASTER, Message
from swarm.testing.lab import Lab

if TYPE_CHECKING:
    from pathlib import Path


class Shell(Lab):
    """A repository with a session of two worktrees, at a command line."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.swarm.create("fx", "researcher,developer", instructions=False)

    def cli(self, *args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Any:
        return subprocess.run(
            [sys.executable, "-P", "-m", "swarm", *args],
            cwd=self.root,
            env={**self.env, **(env or {})},
            input=stdin,
            capture_output=True,
            check=False,
            timeout=90,
        )

    def said(self, *args: str, stdin: bytes = b"") -> str:
        done = self.cli(*args, stdin=stdin)
        assert done.returncode == 0, done.stderr
        out: str = done.stdout.decode()
        return out

    def json(self, *args: str) -> dict[str, Any]:
        done = self.cli(*args, "--json")
        found: dict[str, Any] = json.loads(done.stdout)
        assert (found["schema"], found["exit_code"]) == (1, done.returncode)
        return found

    def bodies(self, agent: str = "researcher") -> list[str]:
        return [one["content"]["body"] for one in self.json("inbox", agent)["data"]["messages"]]


@pytest.fixture
def at(tmp_path: Path) -> Shell:
    return Shell(tmp_path.resolve())


@pytest.mark.parametrize("words", [("",), ("-",), ()])
def test_a_message_without_a_word_is_not_sent(at: Shell, words: tuple[str, ...]) -> None:
    done = at.cli("send", "researcher", *words)

    assert (done.returncode, b"there is no text" in done.stderr) == (2, True)
    assert at.bodies() == []
    assert at.said("send", "researcher", "", "--subject", "red tests").startswith("sent ")


def test_send_look_take_ack(at: Shell) -> None:
    assert at.said("send", "user", "please look").startswith("sent ")
    listed = at.said("inbox")
    assert "please look" in listed
    assert "queued" in listed
    taken = at.cli("inbox", "take")
    assert b"please look" in taken.stdout
    assert b"when done: swarm inbox ack" in taken.stderr
    assert "done: 1 message" in at.said("inbox", "ack")
    again = at.cli("inbox", "take")
    assert (again.stdout, again.stderr.strip()) == (b"", b"no messages")
    assert "acked" in at.said("inbox", "history")


@pytest.mark.parametrize("more", [(), ("--max", "5")], ids=["quick", "full"])
def test_a_notice_of_swarm_itself_cannot_be_answered(at: Shell, more: tuple[str, ...]) -> None:
    post = at.swarm.post
    notice = Message("user", POSTMASTER, "it has ended", type="agent-ended")
    post.declare(None)
    post.bus.send(notice)
    assert b"to answer" not in at.cli("inbox", "take", *more).stderr
    at.said("inbox", "ack")
    post.bus.send(notice)
    asked = at.json("send", "user", "may I?")["data"]["id"]

    hints = at.cli("inbox", "take", *more).stderr.decode()

    assert f"swarm reply {asked} TEXT" in hints


@pytest.mark.parametrize("quick", [True, False])
def test_the_quick_way_and_the_full_one_do_the_same(at: Shell, quick: bool) -> None:
    """Only what is unusual goes through the whole program; nobody must notice."""
    more = () if quick else ("--quiet",)
    sent = json.loads(at.cli("send", "user,researcher", "x", "--subject", "su", "--json", *more).stdout)
    assert [one["to"] for one in sent["data"]["sent"]] == ["user", "researcher@fx"]
    assert sorted(sent["data"]["sent"][0]) == ["duplicate", "durable", "id", "note", "number", "priority", "to"]
    shown = at.said("send", "researcher", "y", *more)
    assert shown.endswith("to researcher@fx (it has no program: it waits in the inbox)\n")
    wrong = at.cli("send", "nobody", "y", *more)
    assert (wrong.returncode, b"AGENT_NOT_FOUND" in wrong.stderr) == (3, True)
    wrong_json = json.loads(at.cli("send", "nobody", "y", "--json", *more).stdout)
    assert (wrong_json["status"], wrong_json["command"]) == ("error", "send")
    taken = json.loads(at.cli("inbox", "take", "--json", *more).stdout)
    assert taken["command"] == "inbox take"
    assert [m["content"]["subject"] for m in taken["data"]["messages"]] == ["su"]
    assert at.cli("inbox", "take", "--ack", *more).returncode == 0
    assert [m["state"] for m in at.json("inbox", "history")["data"]["messages"]] == ["acked"]


def test_text_comes_from_arguments_files_and_pipes(at: Shell) -> None:
    (at.root / "note.txt").write_text("from a file\n")
    at.said("send", "researcher", "-", stdin=b"from a pipe\n")
    at.said("send", "researcher", stdin=b"from a pipe, too\n")
    at.said("send", "researcher", "--file", "note.txt")
    at.said("send", "researcher", "--", "-n")
    assert at.bodies() == ["from a pipe\n", "from a pipe, too\n", "from a file\n", "-n"]


@pytest.mark.parametrize(
    ("args", "stdin", "status", "words"),
    [
        (("send", "researcher", "x", "--file", "y"), b"", 2, "exclude each other"),
        (("send", "researcher", "--file", "none.txt"), b"", 2, "none.txt"),
        (("send", "researcher", "-"), b"\xff\xfe", 2, "not UTF-8"),
        (("send", "researcher", "-"), b"a\0b", 2, "NUL"),
        (("send", "researcher", "-"), b"x" * ((1 << 20) + 1), 2, "1 MiB"),
        (("send", "researcher", "x", "--deadline", "10"), b"", 2, "unit is missing"),
        (("send", "researcher", "x", "--priority", "urgent"), b"", 2, "no priority"),
        (("send", "researcher", "x", "--attach", "none.txt"), b"", 3, "no such file"),
        (("send", "researcher,nobody", "x"), b"", 3, "no agent 'nobody'"),
        (("inbox", "nobody"), b"", 3, "no agent 'nobody'"),
        (("inbox", "ack"), b"", 3, "nothing of user is in hand"),
        (("inbox", "requeue", "0123"), b"", 3, "inbox"),
        (("inbox", "take", "--max", "0"), b"", 2, "from 1 to 10000"),
        (("message", "0123"), b"", 3, "no message"),
        (("thread", "0123"), b"", 3, "no message"),
        (("wait", "researcher", "--until", "asleep"), b"", 2, "cannot wait for"),
        (("inbox", "take", "--wait", "0.05"), b"", 75, "no message came"),
        (("wait", "--until", "message", "--timeout", "0.05"), b"", 75, "not message within"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    at: Shell, args: tuple[str, ...], stdin: bytes, status: int, words: str
) -> None:
    done = at.cli(*args, stdin=stdin)
    assert done.returncode == status, done.stderr
    assert words in done.stderr.decode()
    assert at.bodies() == []


def test_a_label_is_shown_and_the_sender_stays_the_user(at: Shell) -> None:
    at.said("send", "researcher", "build is red", "--from", "ci")
    (message,) = at.json("inbox", "researcher")["data"]["messages"]
    assert (message["from"], message["content"]["metadata"]) == ("user", {"label": "ci"})
    assert "user (ci)" in at.said("inbox", "researcher")


def test_control_characters_are_shown_and_json_has_them(at: Shell) -> None:
    evil = "\x1b[2J\x1b]0;title\x07safe\u202e"
    at.said("send", "user", evil)
    for shown in (at.said("inbox"), at.said("inbox", "take")):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "safe" in shown
    assert at.json("inbox", "history")["data"]["messages"][0]["content"]["body"] == evil


def test_a_message_tells_its_way(at: Shell) -> None:
    sent = at.json("send", "user", "x", "--expects-reply", "--deadline", "10m")["data"]["id"]
    assert "answer wanted within 10m" in at.said("inbox", "take")
    answer = at.json("reply", sent, "yes")["data"]["id"]
    at.said("inbox", "ack", sent)
    (data,) = at.json("message", sent)["data"]["messages"]
    assert [event["event"] for event in data["events"]] == ["queued", "claimed", "seen", "seen", "acked"]
    assert data["events"][3]["evidence"] == f"answered by {answer}"
    assert "to user: acked" in at.said("message", sent)
    assert at.said("thread", answer).count("from user") == 2


def test_given_back_and_dead_and_requeued(at: Shell) -> None:
    sent = at.json("send", "user", "x", "--ttl", "1ms")["data"]["id"]
    assert at.json("inbox", "take")["data"]["messages"] == []
    assert sent in at.said("inbox", "dead")
    at.said("send", "user", "y")
    at.said("inbox", "take")
    assert "given back: 2 messages" in at.said("inbox", "nack", "--reason", "later")  # one tells of the dead letter
    assert "kept: 2 messages" in (at.said("inbox", "take"), at.said("inbox", "extend", "--lease", "1h"))[1]


def test_a_person_may_take_from_any_inbox(at: Shell) -> None:
    at.said("send", "researcher", "x")
    assert "x" in at.said("inbox", "take", "researcher")
    at.said("inbox", "ack", "--of", "researcher@fx")
    assert at.bodies() == []


def test_the_lease_is_a_setting(at: Shell) -> None:
    (at.root / ".swarm" / "config.yaml").write_text("messages:\n  lease: 90\n")
    at.said("send", "user", "x")
    assert at.json("inbox", "take")["data"]["lease"] == 90


def test_messages_of_another_folder_by_c(at: Shell, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "swarm", "-C", str(at.root), "send", "researcher", "from afar"],
        cwd=tmp_path,
        env=at.env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert at.bodies() == ["from afar"]


def test_outside_of_any_repository_it_says_so(at: Shell, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "swarm", "send", "researcher", "x"],
        cwd=tmp_path,
        env=at.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "NOT_A_REPO" in done.stderr) == (5, True)
