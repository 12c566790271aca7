"""The shipped roles and the skill for leads name commands that there are, and the tools behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from swarm.cli.command_table import COMMANDS
from tests.support.procs import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

TEXTS = [PROJECT / "roles/lead/CLAUDE.md", PROJECT / "roles/worker/CLAUDE.md", PROJECT / "skills/swarm-lead/SKILL.md"]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_a_text_names_only_commands_that_there_are(path: Path) -> None:
    named = set(re.findall(r"`swarm ([a-z][a-z-]*)", path.read_text()))
    assert named
    assert named <= COMMANDS.keys()


def test_the_lead_is_told_of_each_tool_and_of_its_command() -> None:
    text = TEXTS[0].read_text()
    for tool in ("spawn_subtree", "spawn_worker", "wait_for_event", "list_agents", "send_message", "report"):
        row = next(line for line in text.splitlines() if line.startswith(f"| `{tool}("))
        assert "`swarm " in row
    assert "notify_parent" in text


def test_the_skill_has_the_head_that_programs_read() -> None:
    head = TEXTS[2].read_text().split("---\n")[1]
    keys = dict(line.split(": ", 1) for line in head.splitlines())
    assert keys["name"] == "swarm-lead"
    assert 0 < len(keys["description"]) <= 1024
