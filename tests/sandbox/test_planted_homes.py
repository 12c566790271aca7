"""What an agent may plant in the home of its box, where swarm reads and writes for the next start."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.programs.claude import first_run, launch
from swarm.programs.codex import queue
from swarm.programs.gemini import spending

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.lab import Lab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(20)]  # a pipe that is waited at is a failure


@pytest.fixture
def home(lab: Lab) -> Path:
    """Return the home of a box, below a state folder that swarm has opened."""
    lab.swarm.create("fx", ["developer"])
    folder = lab.root / ".swarm/sessions/fx/box/developer/home"
    folder.mkdir(0o700, parents=True)
    return folder


def test_no_link_leads_to_the_configuration_of_the_user(home: Path, lab: Lab, tmp_path: Path) -> None:
    users = tmp_path / ".claude.json"
    users.write_text(json.dumps({"oauthAccount": {"emailAddress": "user@example.org"}}))
    (home / ".claude.json").symlink_to(users)
    before = users.read_bytes()

    with pytest.raises(SwarmError):
        first_run.preapprove(home / ".claude.json", lab.root, [lab.root], {"ANTHROPIC_API_KEY": "x" * 30})

    assert users.read_bytes() == before
    assert (home / ".claude.json").is_symlink()


def test_a_link_of_the_users_own_is_followed(tmp_path: Path, lab: Lab) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / ".claude.json").symlink_to(tmp_path / "dotfiles/claude.json")
    first_run.preapprove(tmp_path / ".claude.json", lab.root, [lab.root], {"ANTHROPIC_API_KEY": "x" * 30})
    assert json.loads((tmp_path / "dotfiles/claude.json").read_text())["hasCompletedOnboarding"]


def test_nobody_waits_at_a_pipe_in_the_place_of_a_conversation(home: Path) -> None:
    claude, codex = home / ".claude/projects/x", home / ".codex/sessions/2026/01/01"
    for folder in (claude, codex):
        folder.mkdir(parents=True)
    os.mkfifo(claude / "talk.jsonl")
    os.mkfifo(codex / "rollout-1.jsonl")

    assert not launch.can_resume(home / ".claude", "talk")
    assert queue.newest(home / ".codex", "/anywhere") == ""
    assert spending._first_line(str(codex / "rollout-1.jsonl")) == ""
