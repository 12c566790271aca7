"""Stop the quick way of `swarm send` at every change it makes, or let it fail: the message is there, or not."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from swarm.cli import swift
from swarm.domain.message import Message, encode
from swarm.store.bus import FileBus, book  # noqa: F401  # loaded before the fork
from tests.support import tracer
from tests.support.tracer import Action

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.crash, pytest.mark.timeout(120)]

TO = "dev@s"
ADDED, NOTHING, NOT_SYNCED = 0, 3, 4


def act(root: Path) -> int:
    """Add a message as `swarm send` does."""
    try:
        record = encode(Message(TO, "user", "new", id="new"), time_ms=1)
        return ADDED if swift.add(f"{root}/inbox/dev-s", record) else NOTHING
    except swift.NotSynced:
        return NOT_SYNCED
    except OSError:
        return NOTHING


def bodies(root: Path) -> list[str]:
    """Return what arrives, after one more message by the engine."""
    bus = FileBus(root)
    bus.send(Message(TO, "user", "last"))
    claim = bus.receive(TO, limit=9)
    bus.close()
    return [message.body for message in claim.messages] if claim else []


@pytest.fixture
def original(tmp_path: Path) -> Path:
    reason = tracer.why_unsupported()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"the crash suite must run in CI: {reason}")
        pytest.skip(reason)
    root = tmp_path.resolve() / "original"
    bus = FileBus(root)
    bus.declare(TO)
    bus.send(Message(TO, "user", "first"))
    bus.close()
    return root


@pytest.mark.parametrize("action", [Action.KILL_TREE, Action.ENOSPC, Action.EIO])
def test_a_message_is_there_once_or_not_at_all(original: Path, action: Action) -> None:
    root = original.parent / "trial"

    def run(at: int | None) -> tracer.Outcome:
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(original, root)
        return tracer.trace(
            lambda: act(root),
            at=at,
            action=action if at else None,
            scope=lambda point: point.path.startswith(str(root)),
        )

    points = run(None).points
    assert [point.syscall for point in points] == ["write", "fdatasync"]
    assert bodies(root) == ["first", "new", "last"]
    ends = []
    for at in range(1, len(points) + 1):
        outcome = run(at)
        arrived = bodies(root)
        assert [body for body in arrived if body != "new"] == ["first", "last"]
        ends.append((outcome.exit_code, arrived == ["first", "new", "last"]))
    expected = (None, None) if action is Action.KILL_TREE else (NOTHING, NOT_SYNCED)
    assert ends == [(expected[0], False), (expected[1], True)]


def test_what_a_killed_writer_left_behind_is_for_the_engine(original: Path) -> None:
    log = original / "inbox/dev-s/normal/active.log"
    with log.open("ab") as file:
        file.write(b'{"schema":1,"id":"torn","from":"us')
    before = log.read_bytes()
    assert act(original) == NOTHING
    assert log.read_bytes() == before
    assert bodies(original) == ["first", "last"]
