"""The configuration of a served agent by HTTP: looked at, changed for tasks to come, and not by agents."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.http_door.test_agents import CLIENT, asked
from tests.support.puppet import Puppets

if TYPE_CHECKING:
    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_a_change_holds_for_tasks_to_come_and_the_file_stays(served: Served) -> None:
    """API-16."""
    folder = served.root / "agents/rev"
    folder.mkdir(parents=True)
    text = f"port: 9000\ntimeout: 5m  # enough\ncommand: {served.command}\n"
    (folder / "config.yaml").write_text(text)
    served.start()
    code, before = served.ask("GET", "/config")
    assert (code, before["timeout"], before["hold"], before["log_level"]) == (200, 300, False, "info")
    code, after = served.ask("PUT", "/config", {"hold": True, "timeout": 60.5, "log_level": "warning"})
    assert code == 200
    assert after == {**before, "hold": True, "timeout": 60.5, "log_level": "warning"}
    assert served.ask("GET", "/config")[1] == after
    task_id = served.submit("x")
    served.until(task_id, "idle")
    assert served.lab.swarm.tasks.get(task_id).timeout == 60.5
    served.ask("POST", f"/task/{task_id}/end")
    assert (folder / "config.yaml").read_text() == text
    served.end()
    served.start()
    assert served.ask("GET", "/config")[1]["hold"] is False


def test_a_change_that_cannot_be_changes_nothing(served: Served) -> None:
    served.start()
    before = served.ask("GET", "/config")[1]
    wrong: tuple[Any, ...] = (
        {},
        {"port": 1},
        {"command": "evil"},
        {"timeout": 0},
        {"timeout": "5m"},
        {"timeout": None},
        {"tries": 0},
        {"tries": 21},
        {"hold": 1},
        {"log_level": "loud"},
        {"hold": True, "model": "-x"},
        {"hold": True, "model": ""},
        [],
    )
    for bad in wrong:
        code, said = served.ask("PUT", "/config", bad)
        assert (code, said["error"]) == (400, "validation_error"), bad
    code, said = served.ask("PUT", "/config", {"hold": True}, If_Match='"of yesterday"')
    assert (code, said["error"]) == (412, "precondition_failed")
    assert served.ask("GET", "/config", token=None)[0] == 401
    assert served.ask("PUT", "/config", {"hold": True}, token=None)[0] == 401
    assert served.ask("GET", "/config")[1] == before


def test_agents_neither_configure_nor_shut_down(served: Served) -> None:
    """By whoever is at the other end: an agent has the token before its eyes."""
    puppets = Puppets(served.lab)
    puppets.start("fx", "developer")
    served.start()
    made = puppets.run("developer@fx", [sys.executable, "-c", CLIENT])
    requests = [("PUT", "/config", {"hold": True}), ("POST", "/shutdown", {"force": True})]
    made.stdin.write(asked(served, *requests).encode())
    made.stdin.close()
    out, err = made.stdout.read().decode(), made.stderr.read().decode()
    assert made.wait() == 0, err
    made.close()
    assert [json.loads(line)[0] for line in out.splitlines()] == [403] * 4
    assert served.status()["state"] == "idle"
    assert served.ask("GET", "/config")[1]["hold"] is False
