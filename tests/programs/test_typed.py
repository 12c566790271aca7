"""What may be typed into a pane, and when its prompt is free."""

from __future__ import annotations

import pytest

from swarm.delivery import typed
from swarm.programs.reading.screens import load
from swarm.terminal.values import Screen

pytestmark = pytest.mark.unit


def screen(before: str, after: str = "", text: str = "") -> Screen:
    return Screen(1, dead=False, in_mode=False, closed=False, before=before, after=after, text=text or before)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, \u00e4\u00f6\u00fc \u6f22\u5b57 \U0001f600", "plain, \u00e4\u00f6\u00fc \u6f22\u5b57 \U0001f600"),
        ("a\x1b[201~; rm -rf /\n", "a[201~; rm -rf /\n"),
        ("a\x00b\x07c\x7fd\x9b31me", "abcd31me"),
        ("a\rb", "ab"),
        ("one\u2028two\u2029three", "onetwothree"),
        ("\u202euser\u2066\u2069", "user"),
        ("two\tlines\nof text", "two\tlines\nof text"),
        ("\udcff", ""),
    ],
)
def test_what_a_terminal_would_obey_is_taken_out(text: str, expected: str) -> None:
    assert typed.clean(text) == expected


def test_the_line_names_senders_but_never_their_words() -> None:
    line = typed.nudge_line(2, ["reviewer@fx", "x'; rm -rf ~; '", "\x1b[201~", "reviewer@fx"], shell=False)

    assert line == "[swarm] 2 new messages from reviewer@fx: run `swarm inbox take`"


def test_many_senders_make_no_long_line() -> None:
    line = typed.nudge_line(200, [f"agent{n}@fx" for n in range(50)], shell=False, more=True)

    assert line == ("[swarm] 200+ new messages from agent0@fx, agent1@fx, agent2@fx and others: run `swarm inbox take`")


def test_at_a_shell_it_is_a_command_that_does_nothing() -> None:
    line = typed.nudge_line(1, ["user"], shell=True)

    assert line == " : '[swarm] 1 new message from user; to read: swarm inbox take'"


def test_it_says_what_was_taken_and_not_acknowledged() -> None:
    """Until then a reader is given that, and not what is new."""
    line = typed.nudge_line(1, ["user"], shell=False, kept=2)

    assert line == (
        "[swarm] 1 new message from user, behind 2 that you took and did not acknowledge:"
        " run `swarm inbox ack`, then `swarm inbox take`"
    )


FREE = [
    "$ ",
    "# ",
    "me@host:~/my project$ ",
    "[12:30] me@host src % ",
    "\u276f ",
    "demo> ",
    "\u279c  ~ ",
    "(venv) $ ",
    "\u2502 > ",
    "C:>",
]
TAKEN = [
    "$ ls",
    "$ ls ",
    "$ echo a >",
    "$ echo > ",
    "me@host:~$ git commit -m '#",
    "\u276f rm ~",
    "Password: x",
    "",
    "1",
]


@pytest.mark.parametrize("row", FREE)
def test_a_prompt_is_free(row: str) -> None:
    assert typed.is_prompt(screen(row))


@pytest.mark.parametrize("row", TAKEN)
def test_a_line_that_was_begun_is_no_free_prompt(row: str) -> None:
    assert not typed.is_prompt(screen(row))


def test_what_stands_right_of_the_cursor_counts_unless_it_is_far_away() -> None:
    assert not typed.is_prompt(screen("$ ", "ls -l"))
    assert typed.is_prompt(screen("$ ", "                12:30"))
    assert typed.is_prompt(screen("\u2502 > ", "      \u2502"))


@pytest.mark.parametrize("row", ["> ", "quote> ", "dquote> ", "cmdand quote> "])
def test_a_shell_that_wants_the_rest_is_not_at_its_prompt(row: str) -> None:
    assert not typed.is_prompt(screen(row), shell=True)


def test_a_program_that_tells_its_prompt_is_believed() -> None:
    assert typed.is_prompt(screen("say something "), "say something")
    assert not typed.is_prompt(screen("say something x"), "say something")
    assert not typed.is_prompt(screen("$ "), "say something")


def test_its_own_line_is_known_again_also_when_it_is_wrapped() -> None:
    line = "[swarm] 1 new message from user: run `swarm inbox take`"

    assert typed.holds(screen(f"demo> {line}"), line)
    assert typed.holds(screen("run `swarm inbox take`"), line)
    assert not typed.holds(screen("demo> "), line)
    assert not typed.holds(screen("demo> "), "")
    assert not typed.holds(screen("$ rm -rf /tmp/swarminboxtake"), line)


@pytest.mark.parametrize(
    ("row", "column", "expected"),
    [
        ("abc", 1, ("a", "bc")),
        ("\u6f22\u5b57> x", 6, ("\u6f22\u5b57> ", "x")),
        ("e\u0301> ", 3, ("e\u0301> ", "")),
        ("$", 2, ("$ ", "")),
    ],
)
def test_a_row_is_cut_by_columns(row: str, column: int, expected: tuple[str, str]) -> None:
    assert typed.cut(row, column) == expected


@pytest.mark.parametrize(
    ("row", "column", "faint"),
    [
        ("\x1b[1m\u203a\x1b[0m\x1b[39m \x1b[2mAsk Codex to do anything", 2, True),
        ("\x1b[1m\u203a\x1b[0m\x1b[39m hello there", 2, False),
        ("\u203a \x1b[2mAsk\x1b[0m and typed", 2, False),
        ("\u203a \x1b[2;3mAsk\x1b[22m  ", 2, True),
        ("\u203a ", 2, False),
        ("\x1b[2mall of it", 4, True),
        ("", 0, False),
        ("\u6f22\u5b57 \x1b[2mwide", 5, True),
        ("\u6f22\u5b57 \x1b[2mwide", 2, False),
    ],
)
def test_what_a_program_suggests_faintly_is_not_typed(row: str, column: int, faint: bool) -> None:
    assert typed.is_faint(row, column) is faint


@pytest.mark.parametrize(
    ("program", "before", "after", "faint", "free"),
    [
        ("codex", "\u203a ", "Ask Codex to do anything", True, True),
        ("codex", "\u203a ", "hello there", False, False),
        ("codex", "\u203a hello there", "", False, False),
        ("codex", "\u203a ", "", False, True),
        ("gemini", " * ", "  Type your message or @path/to/file", False, True),
        ("gemini", " > ", "  Type your message or @path/to/file", False, True),
        ("gemini", " * ", "hello there", False, False),
        ("gemini", " * hello there", " ", False, False),
        ("opencode", "  ┃  ", " " * 90 + "worktrees/builder-fx", False, True),
        ("opencode", "  ┃  hello", " " * 90 + "worktrees/builder-fx", False, False),
        ("opencode", "  ┃  ", "hello" + " " * 90 + "worktrees/builder-fx", False, False),
    ],
)
def test_a_free_prompt_of_each_program(program: str, before: str, after: str, faint: bool, free: bool) -> None:
    prompt = load(program).prompt
    assert prompt is not None
    assert prompt.is_free(before, after, faint=faint) is free
