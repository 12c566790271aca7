"""The servers of a swarm directory: list them, start them, end them, check their files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm.services import place
from swarm.services.values import AGENT, Record
from swarm.testing.terminal import wait_for
from tests.http_door.conftest import Served
from tests.http_door.conftest import served as served  # noqa: PLC0414  # the fixture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
def another(served: Served) -> Iterator[Served]:
    made = Served(served.lab, "tester")
    yield made
    if made.process is not None:
        made.end(signal.SIGKILL)


def test_discover_shows_what_runs_and_services_what_could(served: Served, another: Served) -> None:
    folder = served.root / "agents/waits"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("port: 9555\ncommand: cat\nwrong: 1\n")
    served.start()
    another.start()
    task_id = served.submit("wait")
    wait_for(lambda: served.status()["state"] == "working", "the agent at work")
    found = {one.name: one for one in served.lab.swarm.services.discover()}
    assert {name: one.state for name, one in found.items()} == {"rev": "working", "tester": "idle"}
    assert found["rev"].url == f"http://127.0.0.1:{served.port}"
    shown = served.lab.cli("services")
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["NAME", "rev", "tester", "waits"]
    assert "stopped" in shown.stdout
    assert "unknown key" in shown.stderr
    assert task_id in served.lab.cli("discover").stdout
    another.end(signal.SIGKILL)
    assert [one.name for one in served.lab.swarm.services.discover()] == ["rev"]


def test_shutdown_asks_and_kill_signals_exactly_those(served: Served, another: Served) -> None:
    """FLEET-01, FLEET-02."""
    served.start()
    another.start()
    task_id = served.submit("wait")
    wait_for(served.begun, "the program")
    lab = served.lab
    one = lab.cli("shutdown", "--port", str(another.port))
    assert (one.returncode, one.stdout) == (0, "agent tester: ended\n"), one.stderr
    assert another.ended() == 0
    killed = lab.cli("--json", "kill", "--all")
    assert killed.returncode == 0, killed.stderr
    assert [(one["name"], one["done"]) for one in json.loads(killed.stdout)["data"]["components"]] == [("rev", True)]
    served.ended()
    assert lab.swarm.tasks.get(task_id).shown == "working"
    served.start()
    assert served.status()["current_task"]["id"] == task_id
    forced = lab.cli("shutdown", "--agents", "--force")
    assert (forced.returncode, forced.stdout) == (0, "agent rev: ended\n"), forced.stderr
    served.ended()
    assert lab.swarm.tasks.get(task_id).state == "cancelled"
    assert lab.cli("shutdown", "--all").stderr == "no such component runs\n"
    assert lab.cli("shutdown", "--port", "9").returncode == 6
    assert [lab.cli(*words).returncode for words in (("kill",), ("shutdown",), ("shutdown", "--all", "--agents"))] == [
        2
    ] * 3


def test_a_record_without_its_server_ends_nobody(served: Served) -> None:
    """The pid of a record may be another process by now."""
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        folder = place.folder_of(served.root, AGENT, "rev")
        folder.mkdir(parents=True, mode=0o700)
        (folder / "lock").touch(mode=0o600)
        record = Record(AGENT, "rev", bystander.pid, 1, "another boot", 9000)
        (folder / "state.json").write_text(json.dumps(record._asdict()))
        assert served.lab.swarm.services.kill() == ()
        with (folder / "lock").open("r+") as held:
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX)
            assert served.lab.swarm.services.kill() == ()
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_start_starts_what_is_configured_and_says_why_it_cannot(served: Served) -> None:
    """FLEET-07."""
    folder = served.root / "agents/rev"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"port: 1\ncommand: {served.command}\n")
    try:
        done = served.lab.cli("services", "start", env={"SWARM_PORT": "0"})
        assert done.returncode == 0, done.stderr
        assert "idle" in done.stdout
        assert served.lab.cli("services", "start", "rev").returncode == 3
        assert served.lab.cli("services", "start", "none").returncode == 6
    finally:
        served.lab.swarm.services.shutdown()
    assert served.record is None
    (folder / "config.yaml").write_text("port: 9000\ncommand: /no/such/program\n")
    failed = served.lab.cli("services", "start", "rev", env={"SWARM_PORT": "0"})
    assert failed.returncode == 5
    assert "/no/such/program" in failed.stderr
    assert "Traceback" not in failed.stderr


def test_two_roots_share_nothing(panes: PaneLab, tmp_path: Path) -> None:
    """CONF-08, CONF-09: the same name, side by side."""
    dev, prod = (Served(panes) for _ in range(2))
    roots = (tmp_path / "dev", tmp_path / "prod")
    try:
        for one, root in zip((dev, prod), roots, strict=True):
            one.root = root
            one.start(env={"SWARM_ROOT": str(root)})
        task_id = dev.submit("x")
        dev.until(task_id, "completed")
        assert prod.ask("GET", f"/task/{task_id}")[0] == 404
        assert dev.token != prod.token
        assert dev.ask("GET", "/history", token=prod.token)[0] == 401
        seen = panes.cli("discover", env={"SWARM_ROOT": str(roots[0])}).stdout
        assert f":{dev.port}" in seen
        assert f":{prod.port}" not in seen
        assert (roots[0] / "agents/rev/agent.log").exists()
        assert not (panes.root / ".swarm/services").exists()
    finally:
        for one in (dev, prod):
            if one.process is not None:
                one.end()


def test_validate_checks_one_file_or_all(served: Served) -> None:
    """FLEET-03."""
    lab, folder = served.lab, served.root / "agents/rev"
    folder.mkdir(parents=True)
    good, bad = folder / "config.yaml", lab.root / "bad.yaml"
    good.write_text("port: 9000\nprogram: demo\n")
    bad.write_text("port: 9000\ntype: github\n")
    assert lab.cli("validate", str(good)).returncode == 0
    wrong = lab.cli("validate", "bad.yaml")
    assert (wrong.returncode, "bad.yaml:2:7: type" in wrong.stdout) == (2, True), wrong.stdout
    assert lab.cli("validate", "--all").returncode == 0
    good.write_text("port: none\n")
    assert "config.yaml:1:7" in lab.cli("validate", "--all").stdout
    assert "agents" not in lab.cli("validate").stderr


def test_a_server_refuses_secrets_that_others_can_read(served: Served) -> None:
    (served.root / "credentials").mkdir(parents=True, mode=0o700)
    (served.root / "credentials/claude-token").write_text("x")
    os.chmod(served.root / "credentials/claude-token", 0o644)
    assert served.begin().wait(60) == 5
    assert served.ended() == 5
    assert b"chmod 600" in served.said
