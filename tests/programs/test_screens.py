"""Rules that read a program's state from its screen."""
# ruff: noqa: RUF001  # screens as they are

from __future__ import annotations

from pathlib import Path

import pytest

from swarm.programs.reading.screen_rules import Rules
from swarm.programs.reading.screens import load
from swarm.programs.status import PaneFacts, ProgramFacts, State, conclude

pytestmark = pytest.mark.unit

FILES = sorted((Path(__file__).parents[2] / "swarm/data/screens").glob("*.toml"))
CODEX = [
    "  >_ OpenAI Codex",
    "› HELLO",
    "• done",
    "› Ask Codex to do anything",
    "  gpt-5 default · ~/proj",
    "  ? for shortcuts",
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_shipped_file_is_understood_and_an_empty_screen_says_nothing(path: Path) -> None:
    rules = load(path.stem)
    names = [rule.name for rule in rules.rules]
    assert len(names) == len(set(names)) > 0
    assert rules.read("", []) is None
    assert rules.read("a title", ["some other program", "$ "]) is None


@pytest.mark.parametrize(
    ("program", "title", "lines", "state"),
    [
        ("codex", "proj", CODEX, "idle"),
        ("codex", "⠸ proj", CODEX, "working"),
        ("codex", "[ ! ] Action Required | proj", CODEX, "waiting"),
        ("codex", "proj", ["Trust this folder? Codex can read", "› 1. Trust and continue"], "waiting"),
        ("codex", "proj", ["  Resuming session…", "› Ask Codex to do anything", "  ? for shortcuts"], None),
        ("gemini", "◇  Ready (proj)", ["✦ hello", " >   Type your message"], "idle"),
        ("gemini", "✦  Working… (proj)", ["✦ hello"], "working"),
        ("gemini", "✋  Action Required (proj)", ["✦ hello"], "waiting"),
        ("gemini", "✦  Working… (proj)", ["│ Allow execution of [Shell]?"], "waiting"),
        ("opencode", "OC", ["   ■■⬝⬝  esc interrupt      ctrl+p commands"], "working"),
        ("opencode", "OC", ["  ┃  Build", "     tab agents  ctrl+p commands"], "idle"),
        ("opencode", "OC", ["△ Permission required", "   esc interrupt"], "waiting"),
        ("claude", "", ["Detected a custom API key in your environment", "❯ 2. No (recommended)"], "waiting"),
        ("claude", "", ["❯ 1. Yes, I trust this folder"], "waiting"),
    ],
)
def test_known_screens(program: str, title: str, lines: list[str], state: str | None) -> None:
    found = load(program).read(title, lines)
    assert (found.state if found else None) == state


def codex_asks(*command: str) -> list[str]:
    reason = ["  Environment: local", "  Reason: to make it"]
    answers = ["› 1. Yes, proceed (y)", "  2. No, and tell Codex what to do differently (esc)"]
    return ["› go on", "  Would you like to run the following command?", *reason, *command, *answers]


def gemini_asks(heading: str, *box: str, asks: str) -> list[str]:
    inner = [f"│ │ {line}            │ │" for line in box]
    top, bottom = "│ ╭────────────────╮ │", "│ ╰────────────────╯ │"
    answers = ["│ ● 1. Allow once      │", "│   2. No (esc)        │", "╰────────────────────╯"]
    return [" > go on", "╭────────────────────╮", f"│ ? {heading}   │", top, *inner, bottom, f"│ {asks}   │", *answers]


def opencode_asks(*lines: str) -> list[str]:
    framed = [f"  ┃  {line}" for line in lines]
    beside = ["  ┃" + " " * 90 + "/work/my project", "  ┃" + " " * 90 + "• OpenCode 1.18.33"]
    long = f"{framed[-1]:<93}worktrees/builder-fx"
    return ["  ┃  △ Permission required", *framed[:-1], long, "  ┃   Allow once   Allow always   Reject", *beside]


CHOICE = [
    "╭───────────────╮",
    "│ Answer Questions │",
    "│              │",
    "│ Which colour?   │",
    "│      │",
    "│ ● 1.  Red  │",
]
FETCH = ["│ Action Required  │", "│   │", "│ ?  WebFetch http://x.org   │", "│   │", "│ Do you want to proceed?  │"]
ASKED = ["  Question 1/1 (1 unanswered)", "  Which colour shall", "  it be?", "  › 1. Red", "    2. Blue"]
ASKS = ["  ┃", "  ┃  Which colour?", "  ┃", "  ┃  1. Red", "  ┃  2. Blue", "  ┃  ↑↓ select  enter submit  esc dismiss"]


@pytest.mark.parametrize(
    ("program", "lines", "detail"),
    [
        ("codex", codex_asks("  $ touch made"), "for permission: touch made"),
        ("codex", codex_asks("  $ touch a && \x1b[2Jrm", "  -r b"), "for permission: touch a && [2Jrm -r b"),
        ("codex", codex_asks("  $ touch a", "  $ touch b"), "for permission"),
        ("codex", ["• Would you like to run the following command?", *codex_asks("  $ rm -r b")], "for permission"),
        (
            "codex",
            ["  Would you like to make the following edits?", "  a.py (+1 -0)", "› 1. Yes"],
            "for permission: make the following edits? a.py (+1 -0)",
        ),
        ("codex", ASKED, "for an answer: Which colour shall it be?"),
        (
            "gemini",
            gemini_asks("Shell  make", "rm -r b", "ls", asks="Allow execution of [Shell]?"),
            "for permission: rm -r b ls",
        ),
        ("gemini", gemini_asks("Shell  make", "echo ╭", asks="Allow execution of [Shell]?"), "for permission"),
        (
            "gemini",
            gemini_asks("WriteFile  Writing to a.txt", "1 x", asks="Apply this change?"),
            "for permission: WriteFile Writing to a.txt",
        ),
        ("gemini", FETCH, "for permission: WebFetch http://x.org"),
        ("gemini", CHOICE, "for an answer: Which colour?"),
        ("opencode", opencode_asks("  # Shell command", "", "$ touch a", "touch b"), "for permission: touch a touch b"),
        ("opencode", opencode_asks("  → Edit a.txt"), "for permission: → Edit a.txt"),
        ("opencode", ASKS, "for an answer: Which colour?"),
    ],
)
def test_what_a_dialog_asks_is_in_the_detail_where_it_is_plain(program: str, lines: list[str], detail: str) -> None:
    found = load(program).read("", lines)
    assert found is not None
    assert found.state == "waiting"
    assert found.detail == detail


def test_a_long_command_is_shortened() -> None:
    found = load("codex").read("", codex_asks("  $ echo " + "x" * 1000))
    assert found is not None
    assert found.detail.endswith("x...")
    assert len(found.detail) <= 300


def test_a_fresh_look_is_not_idle_while_the_first_prompt_is_on_its_way() -> None:
    fresh = ["› Ask Codex to do anything", "  ? for shortcuts"]
    rules = load("codex")
    idle, starting = rules.read("proj", fresh), rules.read("proj", fresh, asked=True)
    assert idle is not None
    assert starting is not None
    assert (idle.state, starting.state) == ("idle", "starting")
    assert "first prompt" in starting.why


def test_a_verdict_is_told_with_its_rule_and_gives_way_to_the_programs_own_words() -> None:
    rules = Rules.of("toy", {"rule": [{"name": "busy", "state": "working", "why": "it hums", "text": "hmm"}]})
    verdict = rules.read("", ["hmm"])
    facts = ProgramFacts(launched=True, pid=7, alive=True, started_ms=1)
    seen = conclude("toy", facts, PaneFacts("%1", screen=verdict))
    assert seen.state is State.WORKING
    assert [one.text for one in seen.evidence if one.decides] == ["it hums (rule toy/busy)"]
    assert conclude("toy", facts, PaneFacts("%1")).state is State.UNKNOWN


@pytest.mark.parametrize(
    "rule",
    [
        {"name": "x", "state": "bored", "why": "y", "text": "z"},
        {"name": "x", "state": "idle", "text": "z"},
        {"name": "x", "state": "idle", "why": "y"},
        {"name": "x", "state": "idle", "why": "y", "text": "z", "colour": "red"},
        {"name": "x", "state": "idle", "why": "y", "text": "z", "last": "6"},
        {"name": "x", "state": "waiting", "why": "y", "title": "z", "asks": "(z)"},
        {"name": "x", "state": "waiting", "why": "y", "text": "z", "asks": "z"},
    ],
)
def test_a_rule_that_means_nothing_is_refused(rule: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="rule 'x'"):
        Rules.of("toy", {"rule": [rule]})
