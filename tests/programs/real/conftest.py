"""The real agent programs, in panes, against a scripted model API on loopback."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.support.agents import AgentLab, ClaudeLab, lacking

if TYPE_CHECKING:
    from collections.abc import Iterator

# These programs are not ours, and each start of one takes seconds: a test that fails is run once more, in a
# laboratory of its own. The summary counts it as rerun and names it; one that fails twice has failed.
_SECOND_CHANCE = pytest.mark.flaky(reruns=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this kind their second chance; the hook is called with all there are."""
    for item in items:
        if item.get_closest_marker("agents"):
            item.add_marker(_SECOND_CHANCE)


_Lab = TypeVar("_Lab", AgentLab, ClaudeLab)


def lab_in(kind: type[_Lab], folder: Path) -> Iterator[_Lab]:
    """Give a lab in a folder; skip where the programs are not installed."""
    if lacking():
        if os.environ.get("SWARM_REQUIRE_AGENTS"):
            pytest.fail(lacking())
        pytest.skip(lacking())
    made = kind(folder.resolve())
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Give a folder on the disk: Codex' own sandbox hides ``/dev/shm`` where the machine has bubblewrap."""
    with tempfile.TemporaryDirectory(prefix="real-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        yield Path(folder).resolve()


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[AgentLab]:
    """Give a scratch repository in which the real programs can be started; skip where they are not installed."""
    yield from lab_in(AgentLab, tmp_path)


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[ClaudeLab]:
    """Give one for Claude Code, with an API key in the environment and a fresh home."""
    yield from lab_in(ClaudeLab, tmp_path)
