"""Calls without a door: progress notices, and what a bug becomes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from swarm.mcp_door import calls
from swarm.mcp_door.calls import Calls
from swarm.mcp_door.tools import TOOLS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


class Nothing:
    """A repository in which nothing waits."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.messages = SimpleNamespace(take=lambda wait, limit: None)

    def act(self, do: Any) -> Any:
        """Do something with it."""
        return do(self)


def test_a_waiting_client_is_told_now_and_then_that_the_wait_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "_TELL_EVERY", 0.05)
    monkeypatch.setitem(TOOLS, "inbox_take", TOOLS["inbox_take"]._replace(look=0.02))
    told: list[tuple[float, float, str]] = []

    async def progress(done: float, total: float, words: str) -> None:
        told.append((done, total, words))

    client: Any = Nothing(tmp_path)
    found = anyio.run(lambda: Calls().call(client, "inbox_take", {"wait_seconds": 0.5}, progress))
    assert found.structured_content["messages"] == []
    assert not found.is_error
    assert len(told) >= 2
    assert told == sorted(told)
    assert all(0 < done <= total == 0.5 for done, total, _ in told)


def test_a_bug_is_a_result_without_a_traceback_and_a_report_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".swarm").mkdir()
    client: Any = Nothing(tmp_path)
    client.messages = None
    found = anyio.run(lambda: Calls().call(client, "inbox_take", {}, None))  # type: ignore[arg-type]
    assert found.is_error
    error = found.structured_content["error"]
    assert error["code"] == "BUG"
    assert "Traceback" not in str(found)
    assert "NoneType" not in str(found)
