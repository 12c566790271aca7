"""``swarm queue``: what it says, and what it gives to programs."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration


def test_a_task_goes_from_hand_to_hand(cli: Cli) -> None:
    cli.ok("queue", "add", "work", "port parser.py", "--id", "port")
    cli.ok("queue", "add", "work", "test it", "--id", "test", "--after", "port")
    taken = cli.ok("queue", "take", "work")
    shown = cli.ok("queue", "list", "work").out

    assert "port from user:\n  port parser.py\n" in taken.out
    assert "swarm queue done work port --result" in taken.err
    assert [line.split()[:2] for line in shown.splitlines()[1:]] == [["port", "taken"], ["test", "waiting"]]
    assert "after port" in shown
    assert "port: done" in cli.ok("queue", "done", "work", "port", "--result", "commit abc").out
    assert "port: was already done" in cli.ok("queue", "done", "work", "port").out
    assert "commit abc" in cli.ok("queue", "list", "work", "--all").out
    assert "work" in cli.ok("queue", "names").out


def test_programs_get_all_of_it(cli: Cli) -> None:
    added = cli.ok("queue", "add", "work", "one\ntwo \x1b[31m", "--id", "a", "--priority", "high", "--json").data()
    cli.ok("queue", "add", "work", "b", "--id", "b", "--after", "a")
    (taken,) = cli.ok("queue", "take", "work", "--max", "5", "--json").data()["tasks"]
    cli.ok("queue", "done", "work", "a", "--result", "r")
    tasks = cli.ok("queue", "list", "work", "--all", "--json").data()["tasks"]

    assert added == {"queue": "work", "id": "a", "priority": "high", "duplicate": False}
    assert (taken["text"], taken["attempts"], taken["from"]) == ("one\ntwo \x1b[31m", 1, "user")
    assert [(t["id"], t["state"], t["who"], t["result"]) for t in tasks] == [
        ("a", "done", "user", "r"),
        ("b", "ready", "", ""),
    ]
    assert tasks[1]["after"] == ["a"]
    assert tasks[1]["waits_for"] == []
    assert cli.ok("queue", "names", "--json").data() == {
        "queues": [{"queue": "work", "waiting": 1, "taken": 0, "given_up": 0}]
    }


def test_text_of_others_is_cleaned_before_it_is_shown(cli: Cli) -> None:
    cli.ok("queue", "add", "work", "red \x1b[31m\x07 text\nnext\x9b1m", "--id", "a")

    for said in (cli.ok("queue", "list", "work"), cli.ok("queue", "take", "work")):
        assert not {"\x1b", "\x07", "\x9b"} & set(said.out)


def test_given_up_and_back_again(cli: Cli) -> None:
    cli.ok("queue", "add", "work", "a", "--id", "a")
    cli.ok("queue", "add", "work", "b", "--id", "b", "--after", "a")
    cli.ok("queue", "take", "work")
    assert "a: given up" in cli.ok("queue", "fail", "work", "a", "--reason", "no compiler").out
    states = {t["id"]: (t["state"], t["reason"]) for t in cli.ok("queue", "list", "work", "--json").data()["tasks"]}
    assert states == {"a": ("given up", "no compiler"), "b": ("blocked", "a was given up: no compiler")}
    said = cli("queue", "done", "work", "a")
    assert (said.code, "swarm queue back work a" in said.err) == (6, True)

    assert "a: back in the queue" in cli.ok("queue", "back", "work", "a").out
    assert "a from user" in cli.ok("queue", "take", "work", "--lease", "1h").out
    assert "a: yours for 30m" in cli.ok("queue", "extend", "work", "a", "--lease", "30m").out
    cli.ok("queue", "done", "work", "a")
    assert cli.ok("queue", "back", "work", "a").out == "a: was already done\n"


@pytest.mark.parametrize(
    ("args", "code", "name"),
    [
        (("take", "work"), 6, "INBOX_NOT_FOUND"),
        (("take", "full", "--max", "3"), 0, ""),
        (("take", "full", "--max", "0"), 2, "USAGE"),
        (("take", "full", "--max", "x"), 2, "USAGE"),
        (("take", "full", "--lease", "5"), 2, "USAGE"),
        (("take", "full", "--lease", "30d"), 2, "USAGE"),
        (("add", "full", " "), 2, "USAGE"),
        (("add", "../x", "x"), 2, "INVALID_NAME"),
        (("add", "full", "x", "--after", "nope"), 6, "MESSAGE_NOT_FOUND"),
        (("add", "full", "x", "--id", "x", "--after", "x"), 2, "MESSAGE"),
        (("add", "full", "x", "--priority", "now"), 2, "MESSAGE"),
        (("add", "full", "x", "--ttl", "0s"), 2, "USAGE"),
        (("add", "full", "x", "--ttl", "0.0001s"), 2, "USAGE"),
        (("add", "full", "x", "--ttl", "999999999d"), 2, "USAGE"),
        (("add", "full", "other", "--id", "a"), 3, "ID_TAKEN"),
        (("add", "full", "x", "--id", "dead.1"), 2, "MESSAGE"),
        (("add", "full", "x\0"), 2, "MESSAGE"),
        (("done", "full", "nope"), 6, "MESSAGE_NOT_FOUND"),
        (("done", "full", "a"), 6, "CLAIM_LOST"),
        (("fail", "full", "a", "--reason", ""), 2, "USAGE"),
        (("list", "nope"), 6, "INBOX_NOT_FOUND"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_way(cli: Cli, args: tuple[str, ...], code: int, name: str) -> None:
    cli.ok("queue", "add", "full", "a", "--id", "a")
    said = cli("queue", *args, "--json")

    assert said.code == code, said
    assert [error["code"] for error in said.json()["errors"]] == ([name] if name else [])


@pytest.mark.parametrize(
    ("args", "hint"),
    [
        (("--id", "x", "--after", "x"), "name other tasks of the queue"),
        (("--ttl", "999999999d"), "leave it out to wait without end"),
        (("--ttl", "0s"), "leave it out"),
        (("--id", "a"), "swarm queue list full --all"),
    ],
)
def test_the_hint_is_about_what_is_wrong(cli: Cli, args: tuple[str, ...], hint: str) -> None:
    cli.ok("queue", "add", "full", "a", "--id", "a")

    assert hint in cli("queue", "add", "full", "x", *args, "--json").json()["errors"][0]["hint"]


def test_a_task_that_came_too_late_can_be_given_back(cli: Cli) -> None:
    cli.ok("queue", "add", "work", "a", "--id", "a", "--ttl", "1ms")
    assert cli("queue", "take", "work").code == 75
    assert "a: back in the queue" in cli.ok("queue", "back", "work", "a").out

    assert "a from user" in cli.ok("queue", "take", "work").out


def test_an_empty_queue_says_try_again(cli: Cli) -> None:
    cli.ok("queue", "add", "work", "a")
    cli.ok("queue", "take", "work")
    said = cli("queue", "take", "work")

    assert said.code == 75
    assert "no task of queue work can be taken now" in said.err
    assert "swarm queue list work" in said.err
    cli.ok("queue", "list", "work")
    assert cli("queue", "take", "work", "--wait", "200ms", "--json").json()["errors"][0]["code"] == "NOTHING_TO_TAKE"


def test_a_task_may_come_from_stdin_whole(cli: Cli) -> None:
    text = "ünï\n" * 20_000
    done = subprocess.run(
        [sys.executable, "-m", "swarm", "queue", "add", "work", "-"],
        cwd=cli.lab.root,
        env={**cli.lab.env, "PYTHONPATH": str(PROJECT)},
        input=text.encode(),
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done

    assert cli.ok("queue", "take", "work", "--json").data()["tasks"][0]["text"] == text


def test_a_text_that_is_too_long_is_not_called_wrongly_encoded(cli: Cli) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "swarm", "queue", "add", "work", "-"],
        cwd=cli.lab.root,
        env={**cli.lab.env, "PYTHONPATH": str(PROJECT)},
        input=b"x" * (1 << 20) + "ü".encode(),
        check=False,
        capture_output=True,
    )
    assert (done.returncode, b"longer than 1 MiB" in done.stderr) == (2, True), done


def test_names_of_queues_are_completed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("work", "wash", "other"):
        cli.ok("queue", "add", name, "x")
    said = cli.program("x", _SWARM_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="swarm queue take w")

    assert "work" in said.out
    assert "wash" in said.out
    assert "other" not in said.out
