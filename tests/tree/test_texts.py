"""The shipped roles and the skill for leads name commands that there are, and the tools behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from swarm.cli.command_table import COMMANDS
from swarm.mcp_door.tools import TOOLS
from tests.support.procs import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

TEXTS = [PROJECT / "roles/lead/CLAUDE.md", PROJECT / "roles/worker/CLAUDE.md", PROJECT / "skills/swarm-lead/SKILL.md"]


#: What a worker has no use for.
LEADS_ONLY = {"spawn_subtree", "spawn_worker", "wait_for_event", "list_agents", "send_message"}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_a_text_names_only_commands_that_there_are(path: Path) -> None:
    named = set(re.findall(r"`swarm ([a-z][a-z-]*)", path.read_text()))
    assert named
    assert named <= COMMANDS.keys()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_a_text_names_each_tool_with_its_command_and_no_other_tool(path: Path) -> None:
    text = path.read_text()
    wanted = TOOLS.keys() - (LEADS_ONLY if path.parent.name == "worker" else set())
    called = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)\(", text))
    words = set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) - _arguments()
    assert called | words <= TOOLS.keys()
    for name in wanted:
        assert f"`{name}" in text, name
        fixed = re.match(r"swarm [a-z-]+( parent| subtree| worker| take| ack)?", TOOLS[name].command)
        assert fixed, name
        assert f"`{fixed[0]}" in text, fixed[0]


def _arguments() -> set[str]:
    return {field for tool in TOOLS.values() for field in tool.arguments.model_fields}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_a_text_names_only_arguments_that_a_tool_takes(path: Path) -> None:
    for name, given in re.findall(r"`([a-z_]+)\(([a-z_, ]*)\)`", path.read_text()):
        assert set(filter(None, given.split(", "))) <= TOOLS[name].arguments.model_fields.keys(), name


def test_the_lead_has_each_tool_in_a_row_with_its_command() -> None:
    rows = [line for line in TEXTS[0].read_text().splitlines() if line.startswith("| `")]
    named = {re.split(r"[`(]", row)[1] for row in rows}
    assert named == TOOLS.keys()
    assert all(row.count("`swarm ") == 1 for row in rows)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.parent.name)
def test_a_command_in_a_text_has_only_options_that_it_knows(path: Path) -> None:
    known = (PROJECT / "docs/commands.md").read_text().split("\n## swarm ")
    for line in re.findall(r"`swarm ([^`]+)`", path.read_text()):
        words = line.split()
        (about,) = [one for one in known if one.startswith(f"{words[0]}\n")]
        for option in (word for word in words if word.startswith("--")):
            assert f"- `{option}" in about, line


def test_the_skill_has_the_head_that_programs_read() -> None:
    head = TEXTS[2].read_text().split("---\n")[1]
    keys = dict(line.split(": ", 1) for line in head.splitlines())
    assert keys["name"] == "swarm-lead"
    assert 0 < len(keys["description"]) <= 1024
