"""When a supervisor has somebody look whether an answer is overdue."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine import inbox_watch, records
from swarm.supervisor import awaited

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit


class Scene:
    """The messages of a repository, a clock, and the commands that were started."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder / awaited.FOLDER
        self.now = inbox_watch.up_ms()
        self.started: list[str] = []
        self._messages = folder
        monkeypatch.setattr(awaited, "up_ms", lambda: self.now)

    def supervisor(self, who: str) -> awaited.Reminder:
        mail = SimpleNamespace(inbox=str(self._messages / "inbox" / who), address=f"{who}@fx")
        launch: Any = SimpleNamespace(mail=mail, label=[b"label"], label_env={})
        chores: Any = SimpleNamespace(start=lambda *_: self.started.append(who))
        return awaited.Reminder(launch, chores)

    def note(self, name: str, sender: str, *to: str, within_ms: int = 10_000) -> None:
        self.folder.mkdir(exist_ok=True)
        record = awaited.record(sender, list(to), within_ms, {})
        (self.folder / awaited.name_of(name)).write_text(json.dumps({"schema": records.SCHEMA, **record}))


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(tmp_path, monkeypatch)


def test_the_sender_s_supervisor_looks_first_and_the_others_if_nobody_did(scene: Scene) -> None:
    sender, recipient, other = (scene.supervisor(who) for who in ("lead", "dev", "else"))
    everybody = (other, recipient, sender)
    assert [one.look() for one in everybody] == [inbox_watch.SCAN_EVERY] * 3
    scene.note("m1", "lead@fx", "dev@fx")
    for one in everybody:
        assert one.look() == inbox_watch.SCAN_EVERY
    assert scene.started == []

    scene.now += 10_001
    for one in everybody:
        one.look()
    assert scene.started == ["lead"]
    for one in everybody:
        one.look()
    assert scene.started == ["lead"], "not again at once"
    scene.now += 5_000
    for one in everybody:
        one.look()
    assert scene.started == ["lead", "dev"]


def test_one_that_did_not_help_is_tried_again(scene: Scene) -> None:
    sender = scene.supervisor("lead")
    scene.note("m1", "lead@fx", "dev@fx", within_ms=0)
    sender.look()
    sender.look()
    assert scene.started == ["lead"]
    scene.now += 40_000
    sender.look()
    sender.look()
    assert scene.started == ["lead", "lead"]


def test_it_comes_back_in_time_for_the_next_one(scene: Scene) -> None:
    sender = scene.supervisor("lead")
    scene.note("m1", "lead@fx", "dev@fx", within_ms=700)
    assert sender.look() == pytest.approx(0.7, abs=0.01)


def test_what_is_no_note_is_left_alone(scene: Scene) -> None:
    scene.folder.mkdir()
    (scene.folder / "x.json").write_text("{}")
    (scene.folder / "y.json").write_text('{"schema": 1, "people": 5, "boot": "b", "due_ms": "z"}')
    (scene.folder / ".m.json.tmp").write_text("")
    (scene.folder / "folder.json").mkdir()
    assert list(awaited.read_all(str(scene.folder))) == []
    assert scene.supervisor("lead").look() == inbox_watch.SCAN_EVERY
    assert scene.started == []
