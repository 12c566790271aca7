"""The real programs do tasks in boxes: by the door, with their own tools, taken up again in the same box."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from swarm.machine.run_folder.decisions import FILE
from swarm.sandbox.check import check
from swarm.testing.api import call, say
from tests.programs.real.test_turns import OTHERS, does_a_held_task, done, prepared

if TYPE_CHECKING:
    from tests.support.agents import AgentLab, ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]


@pytest.fixture(autouse=True)
def _boxes() -> None:
    found = check(os.environ)
    if not found.available:
        (pytest.fail if os.environ.get("SWARM_REQUIRE_BOX") else pytest.skip)(found.cause)


@pytest.mark.parametrize("program", OTHERS)
def test_it_does_a_held_task_in_a_box_and_is_taken_up_after_a_kill(agents: AgentLab, program: str) -> None:
    # The settings of the user's program are not in the box, so the role names the model.
    model = {"model": "anthropic/claude-sonnet-4-5"} if program == "opencode" else {}
    does_a_held_task(agents, program, sandbox=True, **model)


@pytest.mark.story
def test_claude_code_does_a_held_task_in_a_box_and_is_taken_up_after_a_kill(claude: ClaudeLab) -> None:
    does_a_held_task(claude, "claude", sandbox=True)


@pytest.mark.story
def test_claude_code_uses_its_tools_in_the_box_of_a_task(claude: ClaudeLab) -> None:
    """Nobody is there to be asked, and the box holds; no key is in it, nor in anything that is kept."""
    key = claude.env["ANTHROPIC_API_KEY"]
    look = "env | grep -c -F '" + key + "'; id -u; ls /etc/passwd; echo roses > poem.txt"
    claude.api.script("write a poem", call("Bash", command=look), say("Written."))

    task = done(claude, claude.swarm.tasks.submit("write a poem", program="claude", sandbox=True))

    assert (task.state, task.output) == ("completed", "Written.")
    assert (claude.root / ".swarm/workspaces" / task.session_id / "work/poem.txt").read_text() == "roses\n"
    told = claude.api.requests()[-1].text
    assert "0\\n1000\\n" in told or "0\n1000\n" in told
    decided = claude.root / ".swarm/tasks" / task.id / "runs" / task.runs[0].operation / FILE
    lines = [json.loads(line) for line in decided.read_text().splitlines()]
    assert ("POST /v1/messages", True) in [(one["target"], one["allowed"]) for one in lines]
    assert [one["target"] for one in claude.swarm.boxes.explain(task.id).decisions if one["allowed"]]


@pytest.mark.story
def test_claude_code_commits_in_the_worktree_of_a_task_in_a_box(claude: ClaudeLab) -> None:
    prepared(claude, "claude")
    claude.write({".swarm/roles/poet.yaml": "name: poet\ninstructions: go\npermissions: {allow: [Bash]}\n"})
    commit = "echo roses > poem.txt && git add poem.txt && git commit -q -m poem"
    claude.api.script("write a poem", call("Bash", command=commit), say("Committed."))

    task = done(
        claude,
        claude.swarm.tasks.submit("write a poem", program="claude", role="poet", worktree=True, sandbox=True),
    )

    assert task.output == "Committed."
    assert claude.git("log", "-1", "--format=%s", f"swarm/poet-{task.session_id}") == "poem"
    assert claude.swarm.usage(task.session_id).total.tokens
    assert any("Committed." in entry.text for entry in claude.swarm.transcript("poet", task.session_id))
