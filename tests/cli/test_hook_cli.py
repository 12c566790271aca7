"""``swarm hook collect``: an event is noted where the agent's other notes are; whatever is wrong disturbs nobody."""

from __future__ import annotations

import io
import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli, Said

pytestmark = pytest.mark.integration

EVENT = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "secret"}}


@pytest.fixture
def run_dir(cli: Cli) -> Path:
    """Give the run folder of an agent."""
    cli.ok("worktree", "create", "fx", "--roles", "developer")
    folder = cli.lab.root / ".swarm" / "sessions" / "fx" / "run" / "developer"
    folder.mkdir(parents=True)
    return folder


def collect(cli: Cli, monkeypatch: pytest.MonkeyPatch, event: object, *args: str) -> Said:
    text = event if isinstance(event, str) else json.dumps(event)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogateescape"))))
    return cli("hook", "collect", *args, "--json")


def noted(run_dir: Path) -> list[str]:
    file = run_dir / "events.jsonl"
    return [json.loads(line)["hook_event_name"] for line in file.read_text().splitlines()] if file.exists() else []


def test_an_event_is_noted_for_a_named_agent_and_for_the_one_that_runs_it(
    cli: Cli, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert collect(cli, monkeypatch, EVENT, "--agent", "developer@fx").data() == {"noted": True}
    monkeypatch.setenv("SWARM_RUN_DIR", str(run_dir))
    assert collect(cli, monkeypatch, EVENT).data() == {"noted": True}
    assert noted(run_dir) == ["PostToolUse", "PostToolUse"]
    assert "secret" not in (run_dir / "events.jsonl").read_text()


@pytest.mark.parametrize("event", ["", "{", "[]", "\udcff"])
def test_what_is_no_event_is_no_trouble(
    cli: Cli, run_dir: Path, monkeypatch: pytest.MonkeyPatch, event: object
) -> None:
    assert collect(cli, monkeypatch, event, "--agent", "developer@fx").data() == {"noted": False}
    assert noted(run_dir) == []


@pytest.mark.parametrize("agent", ["nobody@fx", "../../x", "developer@none"])
def test_an_agent_that_is_not_there_is_no_trouble(
    cli: Cli, run_dir: Path, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    assert collect(cli, monkeypatch, EVENT, "--agent", agent).data() == {"noted": False}
    assert collect(cli, monkeypatch, EVENT).data() == {"noted": False}  # nobody runs it
    assert noted(run_dir) == []
