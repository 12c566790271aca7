"""What was typed wrong is said in words and as JSON, with the exit status of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration


def _name(value: object) -> str:
    return (" ".join(value) if isinstance(value, tuple) else str(value)) or "-"


WRONG = [
    ((), ""),
    (("bogus",), ""),
    (("--bogus",), ""),
    (("worktree",), "worktree"),
    (("worktree", "lst"), "worktree"),
    (("worktree", "create"), "worktree create"),
    (("worktree", "create", "feature-x"), "worktree create"),
    (("worktree", "create", "feature-x", "--roles"), "worktree create"),
    (("worktree", "create", "feature-x", "--role", "developer"), "worktree create"),
    (("worktree", "create", "feature-x", "--roles", "developer", "extra"), "worktree create"),
    (("worktree", "create", "feature-x", "--roles", ""), "worktree create"),
    (("worktree", "create", "feature-x", "--roles", "developer:0"), "worktree create"),
    (("worktree", "create", "../x", "--roles", "developer"), "worktree create"),
    (("worktree", "create", "feature-x", "--roles", "developer", "--base", "nowhere"), "worktree create"),
    (("worktree", "show", "developer@"), "worktree show"),
    (("worktree", "show"), "worktree show"),
    (("cleanup",), "cleanup"),
    (("cleanup", "feature-x", "--all"), "cleanup"),
    (("cleanup", "--older-than", "soon"), "cleanup"),
    (("cleanup", "--older-than", "24"), "cleanup"),
    (("salvage", "drop"), "salvage drop"),
    (("salvage", "drop", "x/y", "--all"), "salvage drop"),
    (("salvage", "drop", "--all"), "salvage drop"),
    (("role", "show"), "role show"),
    (("role", "show", "a b"), "role show"),
    (("config", "show", "no.such"), "config show"),
    (("-C", "/no/such/folder", "worktree", "list"), "worktree list"),
    (("recover", "now"), "recover"),
]


@pytest.mark.parametrize(("args", "command"), WRONG, ids=_name)
def test_wrong_use_is_exit_2(cli: Cli, args: tuple[str, ...], command: str) -> None:
    if args:
        said = cli(*args)
        assert said.code == 2, said
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert "\n\nhint: " in said.err
        assert "\ncode: " in said.err

    found = cli("--json", *args).json()
    assert found["exit_code"] == 2
    assert found["command"] == command
    assert found["data"] == {}


def test_a_slip_of_the_finger_is_answered_with_what_was_meant(cli: Cli) -> None:
    assert "'list'" in cli("worktree", "lst").err
    assert "swarm worktree --help" in cli("worktree", "lst").err


def test_commands_cannot_be_abbreviated(cli: Cli) -> None:
    assert cli("clean").code == 2
    assert cli("worktree", "li").code == 2
    assert cli("cleanup", "--al").code == 2


def test_cleanup_without_a_name_names_the_sessions(team: Cli) -> None:
    team.ok("worktree", "create", "bugs", "--roles", "developer")

    assert "bugs, feature-x" in team("cleanup").err


STATES = [
    (("cleanup", "nope"), 6, "SESSION_NOT_FOUND"),
    (("worktree", "list", "nope"), 6, "SESSION_NOT_FOUND"),
    (("worktree", "show", "nobody"), 6, "WORKTREE_NOT_FOUND"),
    (("why", "nobody"), 6, "AGENT_NOT_FOUND"),
    (("peek", "nobody@feature-x"), 6, "AGENT_NOT_FOUND"),
    (("type", "nobody", "x"), 6, "AGENT_NOT_FOUND"),
    (("diff", "nobody"), 6, "AGENT_NOT_FOUND"),
    (("restart", "nobody"), 6, "AGENT_NOT_FOUND"),
    (("transcript", "nobody"), 6, "AGENT_NOT_FOUND"),
    (("merge", "feature-x/nobody"), 6, "AGENT_NOT_FOUND"),
    (("send", "nobody", "x"), 6, "AGENT_NOT_FOUND"),
    (("wait", "nobody"), 6, "AGENT_NOT_FOUND"),
    (("worktree", "lock", "nobody"), 6, "WORKTREE_NOT_FOUND"),
    (("worktree", "remove", "nobody"), 6, "WORKTREE_NOT_FOUND"),
    (("worktree", "update-role", "nobody"), 6, "WORKTREE_NOT_FOUND"),
    (("worktree", "create", "feature-y", "--roles", "nobody"), 6, "ROLE_NOT_FOUND"),
    (("worktree", "create", "feature-x", "--roles", "developer"), 3, "WORKTREE_EXISTS"),
    (("restore", "nope"), 6, "SALVAGE_NOT_FOUND"),
    (("salvage", "show", "nope/nobody"), 6, "SALVAGE_NOT_FOUND"),
    (("role", "show", "nobody"), 6, "ROLE_NOT_FOUND"),
]


@pytest.mark.parametrize(("args", "code", "name"), STATES, ids=_name)
def test_what_is_not_there_is_exit_6_and_what_is_there_already_exit_3(
    team: Cli, args: tuple[str, ...], code: int, name: str
) -> None:
    said = team(*args)
    found = team(*args, "--json").json()

    assert said.code == code, said
    assert f"code: {name}\n" in said.err
    assert found["errors"][0]["code"] == name


def test_outside_of_a_repository_is_the_environments_fault(cli: Cli, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    for args in (("worktree", "list"), ("cleanup", "--all"), ("log",), ("recover",), ("salvage", "list"), ("restore",)):
        assert cli(*args, cwd=outside).code == 5
        assert cli(*args, "--json", cwd=outside).json()["errors"][0]["code"] == "NOT_A_REPO"
    assert cli("validate", cwd=outside).code == 0


def test_a_missing_git_is_the_environments_fault(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    said = cli("worktree", "list")

    assert (said.code, "GIT_MISSING" in said.err) == (5, True)


def test_a_wrong_configuration_names_each_problem(cli: Cli) -> None:
    cli.lab.write({".swarm/config.yaml": "git:\n  timeot: 1\nlock:\n  timeout: soon\n"})

    said = cli("worktree", "list")

    assert said.code == 2
    assert "2 problems" in said.err
    assert said.err.count("(CONFIG)") == 2
    assert len(cli("worktree", "list", "--json").json()["errors"]) == 2


def test_a_locked_repository_is_a_matter_of_time(team: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from swarm.project import lock

    monkeypatch.setenv("SWARM_LOCK_TIMEOUT", "0")
    with lock.hold(team.lab.root / ".swarm" / "lock", command="swarm of another", timeout=1):
        said = team.program("cleanup", "--all", SWARM_LOCK_TIMEOUT="0")

    assert (said.code, "swarm of another" in said.err) == (75, True)


# --- the global options ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("-C", "DIR", "worktree", "list", "--json"),
        ("worktree", "-C", "DIR", "list", "--json"),
        ("worktree", "list", "-C", "DIR", "--json"),
        ("--json", "-C", "DIR/src", "worktree", "-C", "..", "list", "-C", "src"),
        ("-C", "DIR", "-C", "src", "--json", "worktree", "list"),
        ("-C", "DIR/src", "-C", "", "worktree", "--json", "list"),
    ],
    ids=" ".join,
)
def test_c_is_taken_everywhere_and_counts_from_the_one_before(team: Cli, tmp_path: Path, args: tuple[str, ...]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()

    data = team.ok(*(word.replace("DIR", str(team.lab.root)) for word in args), cwd=outside).data()

    assert len(data["worktrees"]) == 2


def test_quiet_leaves_out_suggestions_but_no_warnings(cli: Cli) -> None:
    cli.lab.write({"README": "changed\n"})

    said = cli.ok("--quiet", "worktree", "create", "feature-x", "--roles", "developer")

    assert "next:" not in said.err
    assert said.err.startswith("warning: uncommitted changes")


def test_a_word_after_two_dashes_is_never_an_option(cli: Cli) -> None:
    said = cli("worktree", "show", "--", "--json")

    assert (said.code, said.out) == (2, "")
