"""Text on the terminal: safe, aligned, of the right width, and in colour only where that is wanted."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from swarm.cli import text
from swarm.cli.output import Output, jsonable
from swarm.cli.table import Column, table
from swarm.worktrees.reports import AgentRisks, Risk, RiskKind

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.component

EVIL = "a\x1b[31m\x07\r\nb\u202ec\udcff"


def test_control_characters_are_shown_not_obeyed() -> None:
    assert text.plain(EVIL) == "a\\x1b[31m\\x07\\r\\nb\\u202ec\\xff"
    assert text.plain("grün, 日本\u3000語 e\u0301") == "grün, 日本\u3000語 e\u0301"
    assert text.lines_of("a\r\n\tb\x1b\n") == ["a", "    b\\x1b"]


@pytest.mark.parametrize(("shown", "columns"), [("grün", 4), ("e\u0301", 1), ("日本", 4), ("❤\ufe0f", 1), ("हिं", 2)])
def test_letters_that_are_wide_or_stand_on_others(shown: str, columns: int) -> None:
    assert text.width(shown) == columns


@pytest.mark.parametrize("keep", ["start", "end"])
@pytest.mark.parametrize("room", range(12))
def test_a_shortened_text_never_takes_more_room(keep: str, room: int) -> None:
    for whole in ("short", "a rather long text", "日本語日本語日本語"):
        assert text.width(text.shorten(whole, room, keep)) <= room


@pytest.mark.parametrize("room", [1, 8, 20, 80])
def test_a_wrapped_text_fits_and_loses_nothing(room: int) -> None:
    whole = "create the branches swarm/developer-fx, 日本語 日本語, and /a/path/that/is/longer/than/a/line on main"

    lines = text.wrapped(whole, room)

    assert " ".join(lines) == whole
    assert all(text.width(line) <= room or " " not in line for line in lines)
    assert (len(lines) == 1) == (room >= text.width(whole))


@pytest.mark.parametrize(
    ("whole", "last", "lines"),
    [
        ("use `swarm cleanup fx --force` then", False, ["use", "`swarm cleanup fx --force`", "then"]),
        ("an odd ` quote in a text", False, ["an odd ` quote in", "a text"]),
        ("see here: swarm start fx --roles a", True, ["see here:", "swarm start fx --roles a"]),
        ("see here: swarm start fx --roles a", False, ["see here: swarm", "start fx --roles a"]),
        ("swarm start fx --roles a,b", True, ["swarm start fx --roles a,b"]),
    ],
)
def test_a_command_is_not_broken(whole: str, last: bool, lines: list[str]) -> None:
    assert text.wrapped(whole, 18, command_last=last) == lines


def test_a_longer_text_keeps_its_shape(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "26")
    whole = "# Head\ntext of\ntwo lines\n\n- one two three four five\n  six\n- \x1b[31m\n```\na\nb\n```\nend"
    Output().prose(whole, "  ")
    narrow = capsys.readouterr().out.splitlines()
    monkeypatch.setenv("COLUMNS", "80")
    Output().prose(whole, "  ")

    assert narrow == [
        *("  # Head", "  text of two lines", "", "  - one two three four", "    five six", "  - \\x1b[31m"),
        *("  ```", "  a", "  b", "  ```", "  end"),
    ]
    assert "  text of\n  two lines\n" in capsys.readouterr().out


def test_labels_and_sentences_are_broken_at_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    output = Output()
    output.label("error", "cannot do what was asked for here", "bad")
    output.label("next", "swarm start feature-x --roles developer", "hint")
    output.pairs([("name", "x"), ("about", "a long sentence of many words"), ("path", "/a b/" + "c" * 30)], ("about",))

    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "error: cannot do what was",
        "       asked for here",
        "next: swarm start feature-x --roles developer",
    ]
    assert shown.out.splitlines() == [
        "name:  x",
        "about: a long sentence of many",
        "       words",
        f"path:  /a b/{'c' * 30}",
    ]


def test_a_time_of_a_record_is_shown_in_the_users_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC-2")
    time.tzset()
    try:
        assert text.local_time_of("2026-11-18T23:44:35Z") == "2026-11-19 01:44"
        assert text.local_time_of("-") == "-"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("err", [False, True])
def test_an_item_hangs_under_its_first_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], err: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    Output().item("  - ", "one two three four five six\x1b[31m seven eight", err=err)
    monkeypatch.setenv("COLUMNS", "")
    Output().item("  - ", "one two three four five six seven eight", err=err)

    lines = capsys.readouterr()[err].splitlines()
    assert lines == [
        "  - one two three four five",
        "    six\\x1b[31m seven eight",
        "  - one two three four five six seven eight",
    ]


def test_shortening_keeps_the_end_that_matters() -> None:
    assert text.shorten("abcdefgh", 5) == "abcd…"
    assert text.shorten("abcdefgh", 5, "end") == "…efgh"


def test_paths_are_as_short_as_the_user_would_type_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home" / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "home" / "work")

    assert text.place(tmp_path / "home" / "work" / "a b") == "a b"
    assert text.place(tmp_path / "home" / "work" / "a b", quoted=True) == "'a b'"
    assert text.place(tmp_path / "home" / "other one", quoted=True) == "~/'other one'"
    assert text.place("/etc/x") == "/etc/x"
    assert text.place(tmp_path / "home" / "work") == "."
    assert text.place(tmp_path / "home" / "work" / "-x") == "./-x"


def test_times_that_cannot_be_are_unknown() -> None:
    assert text.iso(0) is None
    assert text.iso(10**18) is None
    assert text.iso(1_500) == "1970-01-01T00:00:01.500Z"
    assert text.local_time(10**30) == "unknown"
    assert text.age(0) == "?"
    now = time.time()
    ages = [text.age(int((now - seconds) * 1000), now) for seconds in (-5, 5, 300, 7200, 200_000)]
    assert ages == ["0s", "5s", "5m", "2h", "2d"]


COLUMNS = (Column("NAME"), Column("N", keep="all", right=True), Column("MORE", 1), Column("PATH", keep="end"))
ROWS = [("short", "1", "extra", "a/b"), ("a-very-long-name-of-an-agent", "200", "extra", "here/there/everywhere/tail")]


def _plain(words: str, _style: str) -> str:
    return words


def test_a_table_without_a_limit_cuts_nothing() -> None:
    lines = table(COLUMNS, ROWS, None, _plain)

    assert lines[1].split() == ["short", "1", "extra", "a/b"]
    assert lines[2].endswith("here/there/everywhere/tail")
    assert len({line.index(word) for line, word in zip(lines, ("MORE", "extra", "extra"), strict=True)}) == 1


@pytest.mark.parametrize("room", range(30, 90))
def test_a_table_fits_the_terminal(room: int) -> None:
    lines = table(COLUMNS, ROWS, room, _plain)

    assert max(text.width(line) for line in lines) <= room
    assert lines[2].endswith("tail")


def test_everything_becomes_json() -> None:
    class Color(StrEnum):
        RED = "red"

    @dataclass(frozen=True)
    class Thing:
        path: Path
        color: Color

    risks = AgentRisks("s", "a", Path("/x"), (Risk(RiskKind.MODIFIED, "text", ("i",)),))
    value = {"b": b"\xff", "t": Thing(Path("/p"), Color.RED), "m": MappingProxyType({"k": (1, None)}), "r": risks}

    assert json.loads(json.dumps(jsonable(value))) == {
        "b": "\udcff",
        "t": {"path": "/p", "color": "red"},
        "m": {"k": [1, None]},
        "r": {
            "session": "s",
            "agent": "a",
            "path": "/x",
            "risks": [{"kind": "modified", "text": "text", "items": ["i"]}],
        },
    }


# --- what comes from elsewhere ---------------------------------------------------------------------


def test_nothing_foreign_reaches_the_terminal_raw(team: Cli) -> None:
    tree = team.lab.tree("developer")
    (tree / "subject.txt").write_text("x")
    team.lab.commit("evil \x1b[31m subject", cwd=tree)
    (tree / os.fsdecode(b"bad\xff\x1b[2J\n.txt")).write_text("x")
    team.lab.write({"roles/tester/CLAUDE.md": "# Tester\n\nIs \x1b[31m red.\n\n\x07bell\n"})
    team.ok("worktree", "lock", "developer", "--reason", "a\x1b[31mb")

    said = [
        team("worktree", "list"),
        team("worktree", "show", "developer"),
        team("cleanup", "feature-x"),
        team("role", "list"),
        team("role", "show", "tester"),
        team("worktree", "create", "\x1b[31m", "--roles", "developer"),
        team("worktree", "create", "x", "--roles", "developer", "--base", "\x1b[31m"),
        team("\x1b[31m"),
        team("--\x1b[31m"),
        team("-C", "/\x1b[31m", "worktree", "list"),
        team("config", "show", "\x1b[31m"),
        team("cleanup", "feature-x", "--older-than", "\x1b[31m"),
        team("restore", "\x1b[31m"),
    ]

    for one in said:
        assert "\x1b" not in one.out + one.err
        assert "\x07" not in one.out + one.err
        assert one.code in {0, 2, 4}
    assert "evil \\x1b[31m subject" in said[1].out


def test_paths_that_are_no_text_survive_json(team: Cli) -> None:
    name = os.fsdecode(b"bad\xff.txt")
    (team.lab.tree("developer") / name).write_text("x")

    found = team("cleanup", "feature-x", "--json").json()

    items = found["errors"][0]["details"]["agents"][0]["risks"][0]["items"]
    assert [os.fsencode(item) for item in items] == [b"bad\xff.txt"]


# --- colour and width ------------------------------------------------------------------------------


class Tty:
    """A stream that says it is a terminal."""

    def __init__(self) -> None:
        self.words = ""
        self.encoding = "utf-8"

    def write(self, words: str) -> int:
        self.words += words
        return len(words)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


def _on_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch, *args: str) -> tuple[str, str]:
    out, err = Tty(), Tty()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", out)
        patch.setattr("sys.stderr", err)
        cli(*args)
    return out.words, err.words


def test_colour_only_on_a_terminal_that_wants_it(team: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in team("worktree", "show", "nobody").err
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1;31merror:\x1b[0m" in _on_terminal(team, monkeypatch, "worktree", "show", "nobody")[1]
    assert "\x1b[1mAGENT" in _on_terminal(team, monkeypatch, "worktree", "list")[0]

    assert "\x1b" not in _on_terminal(team, monkeypatch, "worktree", "show", "nobody", "--no-color")[1]
    assert "\x1b[31" not in _on_terminal(team, monkeypatch, "worktree", "list", "--json")[0]
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b[1;31m" in _on_terminal(team, monkeypatch, "worktree", "show", "nobody")[1]
    monkeypatch.setenv("NO_COLOR", "0")
    assert "\x1b[1;31m" not in _on_terminal(team, monkeypatch, "worktree", "show", "nobody")[1]
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in _on_terminal(team, monkeypatch, "worktree", "show", "nobody")[1]


def test_progress_is_shown_on_a_terminal_and_cleared(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    create = ("worktree", "create", "feature-x", "--roles", "developer")

    err = _on_terminal(cli, monkeypatch, *create)[1]
    assert "\r\x1b[K" in err
    assert err.rindex("\r\x1b[K") < err.index("next:")

    assert "\r" not in _on_terminal(cli, monkeypatch, "cleanup", "feature-x", "--quiet")[1]
    assert "\r" not in _on_terminal(cli, monkeypatch, *create, "--json")[1]


@pytest.mark.parametrize("columns", [80, 200])
def test_every_table_fits_the_terminal(team: Cli, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    longest = "a" * 40
    team.ok("worktree", "create", longest, "--roles", f"{'b' * 40}=developer")

    for args in (("worktree", "list"), ("role", "list"), ("config", "show"), ("log",)):
        assert max(len(line) for line in team.ok(*args).out.splitlines()) <= columns
