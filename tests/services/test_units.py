"""Files by which systemd and launchd start servers: what these have started outlives them, and doctor checks them."""

from __future__ import annotations

import plistlib
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import Swarm
from swarm.kit.errors import UsageProblem
from swarm.services import units
from swarm.testing.terminal import wait_for
from tests.http_door.conftest import served as served  # noqa: PLC0414  # the fixture

if TYPE_CHECKING:
    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
HARD = ("/opt/my python/bin/python3", "-C", '/a "b" $HOME %h \\x', "--name", "rev")


def env_of(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/usr/bin:/my %bin", "SECRET_TOKEN": "not to be written down"}


def test_the_file_of_systemd_is_one_and_keeps_what_it_started(tmp_path: Path) -> None:
    """KillMode=process: the default would end tasks and agents with their server."""
    unit = units.write("agent-rev", [sys.executable, *HARD[1:]], tmp_path, env_of(tmp_path), "linux")
    text = unit.path.read_text()
    assert unit.path.parent == tmp_path / ".config/systemd/user"
    assert stat.S_IMODE(unit.path.stat().st_mode) == 0o600
    assert "\nKillMode=process\n" in text
    assert f'ExecStart="{sys.executable}" "-C" "/a \\"b\\" $$HOME %%h \\\\x" "--name" "rev"\n' in text
    assert "not to be written down" not in text
    assert "enable-linger" in unit.commands[-1]
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", "--user", "--man=no", str(unit.path)],
            env=env_of(tmp_path) | {"XDG_RUNTIME_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert str(unit.path.name) not in done.stderr, done.stderr


def test_the_file_of_launchd_is_one_and_keeps_what_it_started(tmp_path: Path) -> None:
    unit = units.write("agent-rev", HARD, tmp_path, env_of(tmp_path), "darwin")
    assert unit.path.parent == tmp_path / "Library/LaunchAgents"
    said = plistlib.loads(unit.path.read_bytes())
    assert (said["ProgramArguments"], said["AbandonProcessGroup"], said["RunAtLoad"]) == (list(HARD), True, True)
    assert said["EnvironmentVariables"] == {"PATH": "/usr/bin:/my %bin"}
    assert units.is_ours(unit.path)


def test_a_file_of_somebody_else_stays_and_bad_characters_are_refused(tmp_path: Path) -> None:
    unit = units.write("agent-rev", HARD, tmp_path, env_of(tmp_path), "linux")
    units.write("agent-rev", HARD, tmp_path, env_of(tmp_path), "linux")
    unit.path.write_text("[Service]\n")
    with pytest.raises(UsageProblem, match="none of swarm's"):
        units.write("agent-rev", HARD, tmp_path, env_of(tmp_path), "linux")
    assert unit.path.read_text() == "[Service]\n"
    with pytest.raises(UsageProblem, match="cannot stand there"):
        units.write("agent-x", ["python", "a\nExecStart=evil"], tmp_path, env_of(tmp_path), "linux")
    assert [one.name for one in unit.path.parent.iterdir()] == [unit.path.name]


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_doctor_says_what_is_wrong_with_a_file(platform: str, tmp_path: Path) -> None:
    unit = units.write("agent-rev", [sys.executable, "-C", "x"], tmp_path, env_of(tmp_path), platform)
    assert units.all_of(env_of(tmp_path)) == (unit.path,)
    user = "no-such-user-lingers"
    expected = ["loginctl enable-linger"] if platform == "linux" and sys.platform == "linux" else []
    assert [mend for _, mend in units.troubles(unit.path, user)] == expected
    text = unit.path.read_text()
    unit.path.write_text(
        text.replace("KillMode=process", "KillMode=control-group")
        .replace("<key>AbandonProcessGroup</key>\n\t<true/>", "")
        .replace(sys.executable, "/no/such/python")
    )
    found = [words for words, _ in units.troubles(unit.path, user)]
    assert "ends tasks and agents with the server" in found[0]
    assert "/no/such/python" in found[-1]


def test_unit_of_the_command_line_writes_what_starts_the_agent(served: Served) -> None:
    """What the file says is run as it stands there: the agent takes tasks."""
    lab, folder = served.lab, served.root / "agents/rev"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"port: 9000\ncommand: {served.command}\n")
    assert lab.cli("agent", "serve", "--name", "none", "--unit").returncode == 6
    assert lab.cli("agent", "serve", "--name", "rev", "--unit", "--port", "9000").returncode == 2
    path = Swarm.open(lab.root, environ=lab.env).services.write_unit("rev", platform="darwin").path
    argv = plistlib.loads(path.read_bytes())["ProgramArguments"]
    done = lab.cli("agent", "serve", "--name", "rev", "--unit")
    assert done.returncode == 0, done.stderr
    wrote = Path(done.stdout.removeprefix("wrote ").strip())
    assert wrote.is_file()
    assert "rev" in wrote.name
    project = lab.cli("serve", "--unit")
    assert (project.returncode, "swarm-project-" in project.stdout) == (0, True), project.stderr
    assert lab.cli("--json", "doctor").stdout.count('"units"') >= 1
    served.process = subprocess.Popen(argv, cwd=lab.root, env=lab.env | {"SWARM_PORT": "0"}, stderr=subprocess.PIPE)
    wait_for(lambda: served.record is not None, "the server", 60)
    assert served.record is not None
    served.port = served.record.port
    wait_for(lambda: served.status()["state"] == "idle", "the server's readiness", 60)
