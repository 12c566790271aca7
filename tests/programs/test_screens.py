"""Rules that read a program's state from its screen."""
# ruff: noqa: RUF001  # screens as they are

from __future__ import annotations

from pathlib import Path

import pytest

from swarm.programs.screen_rules import Rules
from swarm.programs.screens import load
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
    ],
)
def test_a_rule_that_means_nothing_is_refused(rule: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="rule 'x'"):
        Rules.of("toy", {"rule": [rule]})
