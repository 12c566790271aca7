"""`swarm role …`: list, show, init, check."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration

BROKEN = "name: qa\ninstructions: x\nmodel: []\npermissions:\n  deny: [Baash]\n"


def test_list_says_where_from_and_what_is_hidden(cli: Cli) -> None:
    cli.lab.write({"roles/developer/CLAUDE.md": "Ours.\n", "roles/qa.yaml": "name: qa\ninstructions: Tests.\n"})

    rows = {line.split()[0]: line.split() for line in cli.ok("role", "list").out.splitlines()}
    data = {one["name"]: one for one in cli.ok("role", "list", "--json").data()["roles"]}

    assert rows["developer"] == ["developer", "Ours.", "repository", "builtin"]
    assert rows["qa"] == ["qa", "Tests.", "repository", "-"]
    assert rows["reviewer"][-2:] == ["builtin", "-"]
    assert len(data["developer"]["overrides"]) == 1
    assert data["developer"]["overrides"][0].endswith("developer/CLAUDE.md")
    assert data["qa"]["overrides"] == []


def test_a_broken_role_does_not_hide_the_others(cli: Cli) -> None:
    cli.lab.write({"roles/qa.yaml": BROKEN})

    said = cli.ok("role", "list")
    data = cli.ok("role", "list", "--json").data()

    assert "developer" in said.out
    assert "qa.yaml:3:8: model: must be text" in said.err
    assert [one["code"] for one in data["problems"]] == ["CONFIG"]
    assert "qa" not in {one["name"] for one in data["roles"]}


def test_show_tells_everything(cli: Cli) -> None:
    text = (
        "name: qa\ninstructions: Test.\nmodel: opus\npermissions: {allow: [Read], deny: ['Bash(rm *)']}\n"
        "env: {pass: [A_*], set: {TOKEN: hidden}}\nheartbeat: {idle_timeout: 10m, message: Go on.}\nagent_type: shell\n"
    )
    cli.lab.write({"roles/qa.yaml": text})

    said = cli.ok("role", "show", "qa")
    data = cli.ok("role", "show", "qa", "--json").data()

    for words in ("opus", "Bash(rm *)", "only A_*", "TOKEN", "after 10m: Go on.", "roles/qa.yaml (repository)"):
        assert words in said.out
    assert "hidden" not in said.out
    assert "model has no effect with shell" in said.err
    assert data["options"]["permissions"]["deny"] == ["Bash(rm *)"]
    assert data["options"]["heartbeat"] == {"idle_timeout": 600, "message": "Go on.", "condition": ""}
    assert data["options"]["setup"]["policy"] == "abort"
    assert {one["key"] for one in data["notes"]} == {"model", "permissions.allow", "permissions.deny"}


@pytest.mark.parametrize("source", [(), ("--from", "reviewer"), ("--from", "mine"), ("--from", "flow")])
def test_init_writes_a_role_that_can_be_used(cli: Cli, source: tuple[str, ...]) -> None:
    cli.lab.write({"roles/mine.yaml": "# ours\nname: 'mine' # me\nmodel: opus\ninstructions: |\n  Test.\n"})
    cli.lab.write({"roles/flow.yaml": "{name: flow, instructions: Test.}\n"})

    said = cli.ok("role", "init", "tester", *source)
    path = Path(cli.ok("role", "show", "tester", "--json").data()["source"])

    assert path.is_relative_to(cli.lab.root / "roles")
    assert str(path.relative_to(cli.lab.root)) in said.out
    assert "swarm role check tester" in said.err
    assert cli.ok("role", "check", "tester").out
    if source[1:] == ("reviewer",):
        assert path.read_bytes() == Path(cli.ok("role", "show", "reviewer", "--json").data()["source"]).read_bytes()
    if source[1:] == ("mine",):
        assert path.read_text() == "# ours\nname: tester # me\nmodel: opus\ninstructions: |\n  Test.\n"


def test_init_takes_the_text_file_of_a_role_along(cli: Cli) -> None:
    cli.lab.write({"roles/mine.yaml": "name: mine\ninstructions_file: texts/a.md\n", "roles/texts/a.md": "Test.\n"})

    cli.ok("role", "init", "tester", "--from", "mine")
    cli.ok("role", "init", "tester2", "--from", "mine")

    assert cli.ok("role", "show", "tester2", "--json").data()["instructions"] == "Test.\n"


@pytest.mark.parametrize("there", ["roles/tester.yaml", "roles/Tester/CLAUDE.md", "roles/tester/notes"])
def test_init_overwrites_nothing(cli: Cli, there: str) -> None:
    cli.lab.write({there: "x"})

    assert cli("role", "init", "tester").code == 3
    assert cli("role", "init", "tester", "--json").json()["errors"][0]["code"] == "ROLE_EXISTS"
    assert [str(p.relative_to(cli.lab.root)) for p in (cli.lab.root / "roles").rglob("*") if p.is_file()] == [there]


@pytest.mark.parametrize(
    ("args", "code", "error"),
    [
        (("../x",), 2, "INVALID_NAME"),
        (("all",), 2, "NAME_RESERVED"),
        (("x", "--from", "nobody"), 6, "ROLE_NOT_FOUND"),
    ],
)
def test_a_refused_init_writes_nothing(cli: Cli, args: tuple[str, ...], code: int, error: str) -> None:
    found = cli("role", "init", *args, "--json").json()

    assert (found["exit_code"], found["errors"][0]["code"]) == (code, error)
    assert not (cli.lab.root / "roles").exists()


def test_init_of_a_copy_that_cannot_be_used_leaves_nothing(cli: Cli) -> None:
    cli.lab.write({"roles/mine.yaml": "name: &n mine\ndescription: *n\ninstructions: x\n"})

    assert cli("role", "init", "tester", "--from", "mine").code == 2
    assert [path.name for path in (cli.lab.root / "roles").iterdir()] == ["mine.yaml"]


def test_init_does_not_write_through_a_link(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (cli.lab.root / "roles").symlink_to(tmp_path / "elsewhere")

    assert cli("role", "init", "tester").code == 2
    assert not list((tmp_path / "elsewhere").iterdir())


def test_init_for_the_user(cli: Cli) -> None:
    cli.ok("init", str(cli.lab.root.parent / "home/.swarm"))

    cli.ok("role", "init", "tester", "--user")

    assert (cli.lab.root.parent / "home/.swarm/roles/tester.yaml").is_file()
    assert cli.ok("role", "show", "tester", "--json").data()["kind"] == "swarm-dir"


def test_check_names_every_mistake_and_fails(cli: Cli) -> None:
    cli.lab.write({"roles/qa.yaml": BROKEN})

    said = cli("role", "check")
    found = cli("role", "check", "qa", "--json").json()

    assert said.code == 2
    assert "developer" in said.out
    assert "roles/qa.yaml:3:8: model: must be text" in said.out
    assert "roles/qa.yaml:5:10: permissions.deny 'Baash': names no tool; did you mean Bash?" in said.out
    assert found["status"] == "error"
    assert len(found["errors"]) == 2
    assert len(found["data"]["roles"][0]["problems"]) == 2


def test_check_of_files_and_folders_anywhere(cli: Cli) -> None:
    cli.lab.write({"other/qa.yaml": BROKEN, "other/dev/CLAUDE.md": "Do it.", "other/x.txt": "x"})

    assert "other/dev" in cli.ok("role", "check", "other/dev").out
    assert "no problems found in 1 role" in cli.ok("role", "check", "./other/dev/CLAUDE.md").err
    assert "qa.yaml:3:8" in cli("role", "check", "other/qa.yaml").out
    assert "is no role" in cli("role", "check", "other/x.txt").out
    assert cli("role", "check", "other/gone.yaml").code == 2
    whole = cli("role", "check", "other/")
    assert (whole.code, "qa.yaml:3:8" in whole.out, "other/dev" in whole.out) == (2, True, True)
    assert cli("role", "check", "nobody").code == 2


def test_check_says_what_a_program_does_not_enforce(cli: Cli) -> None:
    text = "name: qa\ninstructions: x\npermissions: {deny: [Read]}\nworktree: {branch_from: main}\n"
    cli.lab.write({"roles/qa.yaml": text})

    said = cli.ok("role", "check", "qa")
    notes = cli.ok("role", "check", "qa", "--json").data()["roles"][0]["notes"]

    assert "permissions.deny is not enforced by shell, demo" in said.out
    assert "permissions.deny is held by codex for Read only by its image viewer" in said.out
    assert "worktree.branch_from counts with `swarm run` alone" in said.out
    found = [(one["key"], "codex" in one["programs"]) for one in notes]
    assert found == [("permissions.deny", False), ("worktree.branch_from", False), ("permissions.deny", True)]


def test_outside_of_a_repository(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    assert "developer" in cli.ok("role", "check", cwd=tmp_path / "empty").out
    assert "builtin" in cli.ok("role", "list", cwd=tmp_path / "empty").out


def test_check_asks_claude_code_about_its_settings(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    program = cli.lab.root.parent / "claude"
    program.write_text(
        "#!/bin/sh\nsed -n 's/.*\\(SwarmAsks[A-Za-z]*\\).*/- swarm-asks.json \u203a hooks.\\1: was ignored/p' \"$2\"\n"
        "grep -q '\"a\": 1.5' \"$2\" || echo '- swarm-asks.json \u203a a: Expected number'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("CLAUDE_BIN", str(program))
    cli.lab.write({"roles/qa.yaml": "name: qa\ninstructions: x\nsettings: {a: 1.5}\n"})
    assert "no problems" in cli.ok("role", "check", "qa").err

    cli.lab.write({"roles/qa.yaml": "name: qa\ninstructions: x\nsettings: {a: '1.5'}\n"})
    said = cli("role", "check", "qa")
    assert said.code == 2
    assert "settings.a: Expected number" in said.out
    cli.lab.write({"roles/qa.yaml": "name: qa\ninstructions: x\nagent_type: codex\nsettings: {a: '1.5'}\n"})
    assert "settings.a" not in cli.ok("role", "check", "qa").out


def test_a_new_role_names_a_schema_that_is_there(cli: Cli) -> None:
    cli.ok("role", "init", "tester")

    file = cli.lab.root / "roles" / "tester.yaml"
    head, _, path = file.read_text().splitlines()[0].partition("$schema=")
    assert head == "# yaml-language-server: "
    assert json.loads((file.parent / path).read_text()) == json.loads(cli.ok("config", "schema", "role").out)
    assert cli.ok("config", "schema", "role", "--json").data()["schema"]["title"] == "Role of swarm"
    assert cli.lab.git("status", "--porcelain").strip() == "?? roles/"


def test_a_new_swarm_directory_has_the_schemas(cli: Cli) -> None:
    cli.ok("init")

    config = cli.lab.root / ".swarm" / "config.yaml"
    path = config.read_text().splitlines()[0].partition("$schema=")[2]
    assert "worktrees" in json.loads((config.parent / path).read_text())["properties"]
    cli.ok("validate")


def test_a_schema_that_there_is_not(cli: Cli) -> None:
    said = cli("config", "schema", "rolle")

    assert said.code == 2
    assert "cannot print the schema rolle: there is no schema 'rolle'" in said.err
    assert "config, pod, role" in said.err


def test_validate_looks_at_pod_templates_too(cli: Cli) -> None:
    cli.lab.write({".swarm/pods/templates/odd.yaml": "agents: [{name: a}]\n"})

    found = json.loads(cli("validate", "--json").out)

    assert "pods" in found["data"]["checked"]
    assert [(one["area"], one["code"]) for one in found["data"]["problems"]] == [("pods", "CONFIG")]
    assert "odd.yaml:1:10: agents.role: is missing" in found["data"]["problems"][0]["message"]
