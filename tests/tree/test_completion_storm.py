"""The storm over completions in its short form; ``scripts/completions`` has a thousand tasks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from swarm.agents import completions
from tests.support.completion_storm import storm

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.crash, pytest.mark.timeout(300)]


def test_each_task_has_one_completion_whatever_is_killed(tmp_path: Path) -> None:
    """TREE-15: none lost, none doubled."""
    found = storm(tmp_path, 40, seed=7)
    assert found.good, found
    assert found.killed > 20
    assert 10 < found.answered <= 40


def test_a_planted_bug_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever notices makes an id of its own: the storm must see that."""
    monkeypatch.setattr(completions, "look", lambda *_: None)
    monkeypatch.setattr(completions, "id_of", lambda *_: f"event.complete.{os.urandom(8).hex()}")
    assert storm(tmp_path, 20, seed=7).doubled > 0
