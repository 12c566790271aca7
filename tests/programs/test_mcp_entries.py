"""The door in each program's own configuration: what is written, under which name, and when nothing is."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents.launching import door as launch_door
from swarm.programs import door, registry
from swarm.programs.gemini.program import Gemini
from swarm.programs.gemini.spending import home_of
from swarm.programs.values import Launch

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.component
COMMAND = ("/usr/bin/python3", "-I", "-S", "/x/door.py", "/repo", "builder")


def launch_of(folder: Path, **changes: Any) -> Launch:
    """Return a launch in a folder, with a door."""
    run = folder / "run"
    tree = folder / "tree"
    for one in (run, tree):
        one.mkdir(exist_ok=True)
    (run / "role.md").write_text("You build.")
    given: dict[str, Any] = {
        "agent": "builder",
        "role": "builder",
        "session": "fx",
        "worktree": tree,
        "run_dir": run,
        "role_file": run / "role.md",
        "task_file": run / "task.md",
        "task": "go",
        "conversation": "5ee09bd2-0a36-4a62-8a0c-0d2f3a1b1c11",
        "resume": False,
        "executable": "/usr/bin/true",
        "main": folder,
        "environ": {"HOME": str(folder / "home")},
        "door": COMMAND,
        **changes,
    }
    return Launch(**given)


def test_claude_gets_a_private_file_and_its_tools_are_allowed(tmp_path: Path) -> None:
    made = registry.program("claude").launch(launch_of(tmp_path))
    entry = json.loads(made.files[".claude/mcp.json"])["mcpServers"]["swarm"]
    assert [entry["command"], *entry["args"]] == list(COMMAND)
    assert entry["alwaysLoad"] is True
    assert entry["timeout"] >= 1_800_000
    at = made.argv.index("--mcp-config")
    assert made.argv[at + 1] == str(tmp_path / "run/.claude/mcp.json")
    assert made.argv[at + 2].startswith("--"), "it takes all words up to the next option"
    assert "mcp__swarm" in json.loads(made.files[".claude/settings.json"])["permissions"]["allow"]
    assert made.env["CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"] == "0"


def test_the_users_own_limits_stay(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "MCP_TIMEOUT": "1234"}
    made = registry.program("claude").launch(launch_of(tmp_path, environ=environ))
    assert "MCP_TIMEOUT" not in made.env


def test_a_project_with_a_server_called_swarm_keeps_it(tmp_path: Path) -> None:
    """C-11: the project's file is untouched, and its server keeps its name and its approval."""
    launch = launch_of(tmp_path)
    theirs = json.dumps({"mcpServers": {"swarm": {"command": "theirs"}}})
    (launch.worktree / ".mcp.json").write_text(theirs)
    made = registry.program("claude").launch(launch)
    assert list(json.loads(made.files[".claude/mcp.json"])["mcpServers"]) == [door.OTHER]
    settings = json.loads(made.files[".claude/settings.json"])
    assert settings["disabledMcpjsonServers"] == ["swarm"], "nobody approved it yet"
    assert f"mcp__{door.OTHER}" in settings["permissions"]["allow"]
    assert "mcp__swarm" not in settings["permissions"]["allow"]
    assert (launch.worktree / ".mcp.json").read_text() == theirs


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "swarm"),
        ('model="x"\n[mcp_servers.other]\ncommand="y"\n', "swarm"),
        ('[mcp_servers.swarm]\nurl="http://x"\n', "swarm_team"),
        ('mcp_servers = {"swarm" = {command = "x"}}\n', "swarm_team"),
    ],
)
def test_codex_gets_it_on_the_command_line(tmp_path: Path, text: str, name: str) -> None:
    launch = launch_of(tmp_path)
    home = tmp_path / "home/.codex"
    home.mkdir(parents=True)
    (home / "config.toml").write_text(text)
    words = registry.program("codex").launch(launch).argv
    assert f'mcp_servers.{name}.command="{COMMAND[0]}"' in words
    assert f"mcp_servers.{name}.required=true" in words
    assert f'mcp_servers.{name}.default_tools_approval_mode="approve"' in words
    assert (home / "config.toml").read_text() == text


def test_opencode_gets_it_beside_what_the_user_gave(tmp_path: Path) -> None:
    given: dict[str, Any] = {"mcp": {"other": {"type": "local", "command": ["y"]}}, "model": "x"}
    environ = {"HOME": str(tmp_path), "OPENCODE_CONFIG_CONTENT": json.dumps(given)}
    made = registry.program("opencode").launch(launch_of(tmp_path, environ=environ))
    config = json.loads(made.env["OPENCODE_CONFIG_CONTENT"])
    assert config["model"] == "x"
    assert config["mcp"]["other"] == given["mcp"]["other"]
    assert config["mcp"]["swarm"]["command"] == list(COMMAND)
    (tmp_path / "opencode.json").write_text('{"mcp": {"swarm": {}}}')
    made = registry.program("opencode").launch(launch_of(tmp_path, environ=environ))
    assert "swarm_team" in json.loads(made.env["OPENCODE_CONFIG_CONTENT"])["mcp"]


def test_gemini_gets_the_machines_settings_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ENV-07, TREE-08: the variable replaces the machine's file, so that is merged in."""
    machine = tmp_path / "etc"
    machine.mkdir()
    (machine / "settings.json").write_text('{"telemetry": {"enabled": false}, "mcpServers": {"a": {"command": "b"}}}')
    monkeypatch.setattr("swarm.programs.gemini.program._is_administrators", lambda folder: True)
    made = Gemini(machine).launch(launch_of(tmp_path))
    assert made.env["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] == str(tmp_path / "run/gemini-settings.json")
    settings = json.loads(made.files["gemini-settings.json"])
    assert settings["telemetry"] == {"enabled": False}
    assert settings["mcpServers"]["a"] == {"command": "b"}
    assert settings["mcpServers"]["swarm"]["trust"] is True
    (machine / "settings.json").write_text("{ // a comment, which swarm cannot take over\n}")
    made = Gemini(machine).launch(launch_of(tmp_path))
    assert "GEMINI_CLI_SYSTEM_SETTINGS_PATH" not in made.env, "better no door than the machine's settings lost"


def test_gemini_of_a_user_who_is_not_root_has_a_home_of_links_with_it(tmp_path: Path) -> None:
    """It would leave an administrator's settings aside that root does not own; the user's home stays as it is."""
    tmp_path.chmod(0o777)
    users = tmp_path / "home/.gemini"
    (users / "policies").mkdir(parents=True)
    (users / "oauth_creds.json").write_text("login")
    (users / "settings.json").write_text('{"ui": {"theme": "x"}, "mcpServers": {"a": {"command": "b"}}}')
    launch = launch_of(tmp_path, environ={"HOME": str(tmp_path / "home")})
    launch.run_dir.mkdir(exist_ok=True)

    made = Gemini(tmp_path / "none").launch(replace(launch, executable="env"))

    assert "GEMINI_CLI_SYSTEM_SETTINGS_PATH" not in made.env
    (launch.run_dir / "gemini-settings.json").write_text(made.files["gemini-settings.json"])
    argv = [*made.argv[: made.argv.index("env")], "env"]
    for _ in range(2):  # also when it is started again
        done = subprocess.run(argv, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True)
        assert f"GEMINI_CLI_HOME={launch.run_dir / 'gemini'}" in done.stdout.splitlines()
    home = launch.run_dir / "gemini"
    settings = json.loads((home / ".gemini/settings.json").read_text())
    assert (settings["ui"], sorted(settings["mcpServers"])) == ({"theme": "x"}, ["a", "swarm"])
    assert settings["mcpServers"]["swarm"]["trust"] is True
    for name in ("oauth_creds.json", "policies", "tmp"):
        assert (home / ".gemini" / name).readlink() == users / name
    assert "swarm" not in (users / "settings.json").read_text()
    assert home_of({"GEMINI_CLI_HOME": str(home)}, "/none") == str(users), "what it starts knows the user's own home"


@pytest.mark.parametrize("program", ["claude", "codex", "gemini", "opencode"])
def test_without_a_door_nothing_is_written(tmp_path: Path, program: str) -> None:
    made = registry.program(program).launch(launch_of(tmp_path, door=()))
    said = json.dumps([made.argv, dict(made.env), dict(made.files)])
    assert "mcp_servers" not in said
    assert "mcpServers" not in said
    assert "door.py" not in said
    assert "MCP_TIMEOUT" not in said


def test_a_setting_switches_it_off_and_without_the_extra_there_is_none(
    panes: PaneLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = panes.swarm._world
    assert launch_door.command(world, "developer")[-1] == "developer"
    with monkeypatch.context() as patch:
        patch.setattr(launch_door, "is_installed", lambda: False)
        assert launch_door.command(world, "developer") == ()
    panes.env["SWARM_MCP_ENABLED"] = "false"
    assert launch_door.command(panes.swarm._world, "developer") == ()
    panes.start("developer", session="off")
    assert not (panes.run("developer", "off") / "mcp.token").exists()
