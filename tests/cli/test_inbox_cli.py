"""The commands of the inbox, typed by a person."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from swarm.bus.message import POSTMASTER, Message
from swarm.delivery import framing
from swarm.programs.team_prompt import with_team
from swarm.testing.lab import Lab
from swarm.testing.terminal import wait_for

pytestmark = pytest.mark.integration


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


def test_the_hint_about_another_inbox_can_be_pasted(at: Shell) -> None:
    at.said("send", "researcher", "please look")
    hint = at.cli("inbox", "take", "researcher").stderr.decode()
    found = re.search(r"when done: swarm (inbox ack --of \S+)", hint)

    assert found is not None, hint
    assert "done: 1 message" in at.said(*found[1].split())


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


def test_a_notice_of_swarm_itself_cannot_be_answered(at: Shell) -> None:
    post = at.swarm.messages
    notice = Message("user", POSTMASTER, "it has ended", type="agent-ended")
    post._post.declare(None)
    post._post.bus.send(notice)
    assert b"to answer" not in at.cli("inbox", "take").stderr
    at.said("inbox", "ack")
    post._post.bus.send(notice)
    asked = at.json("send", "user", "may I?")["data"]["id"]

    hints = at.cli("inbox", "take").stderr.decode()

    assert f"swarm reply {asked} TEXT" in hints


def test_what_was_sent_and_what_was_taken_is_told_for_machines_too(at: Shell) -> None:
    sent = json.loads(at.cli("send", "user,researcher", "x", "--subject", "su", "--json").stdout)
    assert [one["to"] for one in sent["data"]["sent"]] == ["user", "researcher@fx"]
    assert sorted(sent["data"]["sent"][0]) == ["duplicate", "durable", "id", "note", "number", "priority", "to"]
    shown = at.said("send", "researcher", "y")
    assert shown.endswith("to researcher@fx (it has no program: it waits in the inbox)\n")
    wrong = at.cli("send", "nobody", "y")
    assert (wrong.returncode, b"AGENT_NOT_FOUND" in wrong.stderr) == (6, True)
    wrong_json = json.loads(at.cli("send", "nobody", "y", "--json").stdout)
    assert (wrong_json["status"], wrong_json["command"]) == ("error", "send")
    taken = json.loads(at.cli("inbox", "take", "--json").stdout)
    assert taken["command"] == "inbox take"
    assert [m["content"]["subject"] for m in taken["data"]["messages"]] == ["su"]
    assert at.cli("inbox", "take", "--ack").returncode == 0
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
        (("send", "researcher", "x", "--deadline", "0s"), b"", 2, "must be longer than 0"),
        (("send", "researcher", "x", "--ttl", "0s"), b"", 2, "must be longer than 0"),
        (("send", "researcher", "x", "--ttl", "999999999d"), b"", 2, "too long"),
        (("send", "researcher", "x", "--id", "overdue.1"), b"", 2, "are reserved for swarm"),
        (("send", "researcher", "x", "--attach", os.fsdecode(b"r\xe9d.log")), b"", 1, "rename it"),
        (("send", "researcher", "x", "--priority", "urgent"), b"", 2, "no priority"),
        (("send", "researcher", "x", "--id", "a b"), b"", 2, "such as job-17"),
        (("send", "researcher", "x", "--type", "A B"), b"", 2, "one small word"),
        (("send", "researcher", "x", "--attach", "/dev/null"), b"", 1, "not a regular file"),
        (("send", "researcher", "x", "--attach", "none.txt"), b"", 1, "no such file"),
        (("send", "researcher,nobody", "x"), b"", 6, "no agent 'nobody'"),
        (("inbox", "nobody"), b"", 6, "no agent 'nobody'"),
        (("inbox", "ack"), b"", 6, "nothing of user is in hand"),
        (("inbox", "requeue", "0123"), b"", 6, "swarm inbox dead user"),
        (("inbox", "take", "--lease", "0s"), b"", 2, "at least 1s"),
        (("inbox", "extend", "--lease", "1ms"), b"", 2, "at least 1s"),
        (("inbox", "take", "--max", "0"), b"", 2, "from 1 to 10000"),
        (("message", "0123"), b"", 6, "no message"),
        (("thread", "0123"), b"", 6, "no message"),
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
    metadata = message["content"]["metadata"]
    assert (message["from"], metadata["label"], metadata["via"]) == ("user", "ci", "script")
    assert "user (ci, via script)" in at.said("inbox", "researcher")


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
    taken = at.json("inbox", "take", "--ack")["data"]["messages"]  # may hold the notice about the dead letter already
    assert sent not in [one["id"] for one in taken]
    assert sent in at.said("inbox", "dead")
    at.said("inbox", "take", "--ack")
    at.said("send", "user", "y")
    at.said("inbox", "take")
    assert "given back: 1 message" in at.said("inbox", "nack", "--reason", "later")
    assert "kept: 1 message" in (at.said("inbox", "take"), at.said("inbox", "extend", "--lease", "1h"))[1]


def test_what_came_too_late_and_is_requeued_can_be_taken(at: Shell) -> None:
    sent = at.json("send", "user", "x", "--ttl", "1ms")["data"]["id"]
    at.said("inbox", "take", "--ack")
    at.said("inbox", "requeue", sent)

    assert [one["id"] for one in at.json("inbox", "take", "--max", "1")["data"]["messages"]] == [sent]


def test_another_message_under_the_same_id_is_refused(at: Shell) -> None:
    at.said("send", "researcher", "x", "--id", "job-1")
    done = at.cli("send", "researcher", "y", "--id", "job-1")

    assert (done.returncode, b"ID_TAKEN" in done.stderr) == (3, True)
    assert "sent before" in at.said("send", "researcher", "x", "--id", "job-1")
    assert at.bodies() == ["x"]


def test_who_got_a_message_and_who_did_not_is_told(at: Shell) -> None:
    bus = at.swarm.messages._post.bus
    bus.declare("developer@fx")
    for _ in range(10_000):
        bus.send(Message("developer@fx", "user", "x"), durable=False)
    said = at.cli("send", "user,developer,researcher", "hello")
    lines, words = said.stdout.decode().splitlines(), said.stderr.decode()
    it = lines[0].split()[1]

    assert said.returncode == 75
    assert [line.split()[3] for line in lines] == ["user", "researcher@fx"]
    assert "could not send to 1 of 3: developer@fx: inbox.developer-fx is full" in words
    assert f"swarm send developer@fx TEXT --id {it}" in words
    assert "code: SENT_IN_PART" in words
    told = json.loads(at.cli("broadcast", "hello", "--id", it, "--json").stdout)
    assert (told["status"], told["exit_code"], told["data"]["id"]) == ("partial", 75, it)
    assert [(one["to"], one["duplicate"]) for one in told["data"]["sent"]] == [("researcher@fx", True)]
    assert told["data"]["refused"] == [{"to": "developer@fx", "code": "QUOTA"}]
    assert [(one["code"], one["details"]["to"]) for one in told["errors"]] == [("QUOTA", "developer@fx")]
    assert at.bodies() == ["hello"]


def test_what_is_attached_can_be_had_as_files(at: Shell, tmp_path: Path) -> None:
    (at.root / "ci.log").write_bytes(b"\0red" * 100_000)
    (at.root / "sub").mkdir()
    (at.root / "sub" / "ci.log").write_text("the other one")
    both = ("--attach", "ci.log", "--attach", "sub/ci.log")
    sent = at.json("send", "user", "see the logs", *both)["data"]["id"]
    taken = at.cli("inbox", "take")
    assert b"attached: ci.log (400,000 bytes)" in taken.stdout
    assert f"save the attachments: swarm message {sent} --save DIR" in taken.stderr.decode()

    saved = at.json("message", sent, "--save", "had/of-it")["data"]["saved"]

    folder = at.root / "had" / "of-it"
    assert saved == [str(folder / "ci.log"), str(folder / "2-ci.log")]
    assert (folder / "ci.log").read_bytes() == b"\0red" * 100_000
    assert (folder / "2-ci.log").read_text() == "the other one"
    again = at.cli("message", sent, "--save", str(folder))
    assert (again.returncode, b"is there already" in again.stderr) == (3, True)
    plain = at.json("send", "user", "nothing with it")["data"]["id"]
    assert b"nothing is attached" in at.cli("message", plain, "--save", ".").stderr


def test_what_agents_are_told_to_run_can_be_run(at: Shell) -> None:
    """What stands in every agent's instructions, and below a message that is put into its turn."""
    (at.root / "ci.log").write_text("red")
    asked = at.json("send", "user", "which?", "--attach", "ci.log", "--expects-reply", "--subject", "x")["data"]["id"]
    (stored,) = at.swarm.messages.inbox()
    launch: Any = SimpleNamespace(agent="researcher", session="fx", role="researcher", shared=False)
    told = re.findall("`(swarm [^`]*)`", with_team(launch, ""))
    framed = re.findall(r": (swarm [^)\n]*)", framing.batch([stored.message], "researcher@fx"))
    assert (len(told), len(framed)) == (7, 2)
    for number, command in enumerate([*told, *framed]):
        words = shlex.split(command)
        places = {"NAME": "researcher", "TEXT": "hello", "ID": asked, "DIR": f"had-{number}"}
        done = at.cli(*(places.get(word, word) for word in words[1:]))
        assert done.returncode == 0, (command, done.stderr)


def test_the_name_of_an_attachment_is_no_path(at: Shell) -> None:
    post = at.swarm.messages
    for name in ("../../out", "..", "", "a\nb", "/etc/evil"):
        at.swarm.send("user", "x", id=f"n-{len(name)}", attach=[])
        artifact = post._post.bus.attach(b"content", name or "x") | {"name": name}
        sent = post._post.bus.send(Message("user", "user", "x", artifacts=(artifact,))).id
        (saved,) = at.json("message", sent, "--save", f"into-{sent}")["data"]["saved"]
        assert Path(saved).parent == at.root / f"into-{sent}"
        assert Path(saved).name in ("out", "attachment-1", "evil")


def test_two_that_take_at_once_do_not_get_the_same(at: Shell) -> None:
    """What an agent has in hand is not given to a person as well, and the other way round."""
    at.said("send", "researcher", "x")
    post = at.swarm.messages
    held = post._post.bus.receive("researcher@fx", who="researcher@fx", lease=600)
    assert held is not None

    taken = at.cli("inbox", "take", "researcher")
    assert (taken.returncode, taken.stdout) == (0, b"")
    assert b"nothing can be taken: researcher@fx has messages in hand" in taken.stderr
    waited = at.cli("inbox", "take", "researcher", "--wait", "0.05")
    assert (waited.returncode, b"researcher@fx had messages in hand" in waited.stderr) == (75, True)
    assert "done: 1 message" in at.said("inbox", "ack", "--of", "researcher")  # but may be settled by a person


def test_ctrl_c_while_waiting_takes_nothing(at: Shell) -> None:
    at.said("send", "user", "makes the box")
    at.said("inbox", "take", "--ack")
    for args in (("inbox", "take", "--wait", "600"), ("inbox", "take", "--wait", "600", "--json")):
        waiting = subprocess.Popen(
            [sys.executable, "-P", "-m", "swarm", *args],
            cwd=at.root,
            env=at.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_for(partial(_has_opened, waiting.pid, at.root / ".swarm/messages/inbox/user"), "its wait")
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=60)
        assert (waiting.returncode, b"INTERRUPTED" in out + err) == (130, True)
    at.said("send", "user", "for the next one")
    (message,) = at.json("inbox", "take")["data"]["messages"]
    assert (message["content"]["body"], message["attempts"]) == ("for the next one", 1)


def _has_opened(pid: int, folder: Path) -> bool:
    """Whether a process has files of a folder open: it reads there. Whether inotify helps it to wait is no matter."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed just now
            if os.readlink(link).startswith(f"{folder}/"):
                return True
    return False


def test_the_first_message_to_oneself_needs_no_session(tmp_path: Path) -> None:
    fresh = Lab(tmp_path.resolve())
    for args, status in ((("send", "nobody", "x"), 6), (("inbox", "take"), 0), (("send", "user", "hi"), 0)):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "swarm", *args],
            cwd=fresh.root,
            env=fresh.env,
            capture_output=True,
            check=False,
            timeout=90,
        )
        assert done.returncode == status, done.stderr
        if status:
            assert not (fresh.root / ".swarm").exists()
    assert [one.message.body for one in fresh.swarm.messages.inbox()] == ["hi"]


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


# --- closed streams -----------------------------------------------------------------------------------------


def closed(at: Shell, command: str, which: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with one of its streams closed."""
    line = f"exec {shlex.quote(sys.executable)} -P -m swarm {command} {which}"
    return subprocess.run(["sh", "-c", line], cwd=at.root, env=at.env, capture_output=True, timeout=90, check=False)


@pytest.mark.parametrize("command", ["inbox take --ack", "inbox take --ack --wait 1 --json", "queue take work"])
def test_nothing_is_taken_that_nobody_would_see(at: Shell, command: str) -> None:
    at.said("send", "user", "precious", "--id", "pr1")
    at.said("queue", "add", "work", "do it", "--id", "t1")

    assert closed(at, command, ">&-").returncode == 5

    assert at.json("message", "pr1")["data"]["messages"][0]["state"] == "queued"
    assert at.json("queue", "list", "work")["data"]["tasks"][0]["state"] == "ready"


@pytest.mark.parametrize("command", ["send user", "send user -", "queue add work -", "broadcast"])
def test_a_text_that_cannot_come_is_said_to_be_missing(at: Shell, command: str) -> None:
    done = closed(at, command, "<&-")

    assert done.returncode == 2
    assert b"standard input is closed" in done.stderr
