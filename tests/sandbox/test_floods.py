"""An agent in a box that sends without end, or asks without end, holds up nobody but itself."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from swarm.kit.errors import SwarmError
from swarm.machine.run_folder import runfiles, sent
from swarm.messages import allowance
from swarm.supervisor.boxed import forward
from tests.sandbox.test_forwarding import start

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab


@pytest.mark.unit
def test_an_hours_messages_come_back_evenly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)
    place = str(tmp_path)

    assert [sent.spend(place, 4) for _ in range(4)] == [0.0] * 4
    assert sent.spend(place, 4) == pytest.approx(900)
    now += 900
    assert sent.spend(place, 4) == 0.0
    assert sent.spend(place, 4, 2) == pytest.approx(1800)
    now -= 500_000  # a clock that is set back gives nothing and takes nothing
    assert sent.spend(place, 4) > 0


@pytest.mark.unit
def test_a_message_to_more_than_an_hour_allows_waits_for_the_whole_hour(tmp_path: Path) -> None:
    assert sent.spend(str(tmp_path), 3, 10) == 0.0
    assert sent.spend(str(tmp_path), 3) > 3600


@pytest.mark.unit
@pytest.mark.parametrize("noted", [{}, {"messages": 0}, {"messages": "many"}])
def test_who_has_no_limit_is_not_counted(tmp_path: Path, noted: dict[str, Any]) -> None:
    runfiles.write(str(tmp_path), runfiles.HELD, noted)

    for _ in range(5):
        allowance.spend(str(tmp_path))

    assert not (tmp_path / sent.FILE).exists()


@pytest.mark.integration
def test_an_agent_is_told_when_it_has_sent_too_much_and_why_shows_it(panes: PaneLab, boxes: None) -> None:
    panes.env["SWARM_SANDBOX_MESSAGES"] = "3"
    tree = start(
        panes,
        """
        if [ $SWARM_ACTOR != developer ]; then exec sleep 1000; fi
        for n in 1 2 3 4; do swarm send reviewer "number $n" 2> said.error; echo $? >> said.code; done
        swarm queue add tests one 2> said.queue; echo $? >> said.code
        swarm inbox > said.inbox; echo $? >> said.code
        """,
    )

    assert (tree / "said.code").read_text().split() == ["0", "0", "0", "75", "75", "0"]
    for said in ("said.error", "said.queue"):
        assert "may send 3 messages an hour" in (tree / said).read_text()
        assert "TOO_MANY_MESSAGES" in (tree / said).read_text()
    assert len(panes.swarm.messages.inbox("reviewer@s")) == 3
    found = [one for one in panes.swarm.boxes.explain("developer", "s").decisions if one["by"] == "swarm"]
    assert [(one["target"], one["reason"], one["times"]) for one in found] == [
        ("messages", "more than 3 in an hour", 2)
    ]
    assert "more than 3 in an hour" in panes.cli("why", "developer@s").stdout
    panes.swarm.send("reviewer@s", "of the user's, who has no limit")
    assert json.loads((panes.root / ".swarm/sessions/s/session.json").read_bytes())["agents"][0]["box"]["messages"] == 3


@pytest.mark.unit
def test_requests_wait_when_there_were_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    launch: Any = SimpleNamespace(forward_folder=str(tmp_path), forward=[b"x"], label_env={}, run_dir=str(tmp_path))
    chores: Any = None
    looked = forward.Forward(launch, chores)

    looked._left = 1.0
    assert looked._may_serve()
    looked._left -= 1
    assert not looked._may_serve()
    now += 1
    assert looked._may_serve()
    now += 10_000
    assert looked._may_serve()
    assert looked._left == forward._BURST


@pytest.mark.unit
def test_the_error_is_one_to_try_again(tmp_path: Path) -> None:
    runfiles.write(str(tmp_path), runfiles.HELD, {"messages": 1})
    allowance.spend(str(tmp_path))

    with pytest.raises(SwarmError) as caught:
        allowance.spend(str(tmp_path))

    assert caught.value.exit_code == 75
