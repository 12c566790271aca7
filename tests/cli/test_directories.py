"""Two swarm directories for one repository: what was started with one is not listed with the other, and stays known."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.lab import file_digests
from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from swarm.testing.lab import Lab
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration

CREATE = ("worktree", "create")


@pytest.fixture
def team(cli: Cli, tmp_path: Path) -> Path:
    """Make a second swarm directory; session `mine` is made without it, `theirs` with it."""
    folder = tmp_path / "team"
    cli.ok("init", str(folder))
    cli.ok(*CREATE, "mine", "--roles", "developer")
    made = cli.program(*CREATE, "theirs", "--roles", "developer", SWARM_DIR=str(folder))
    assert made.code == 0, made
    return folder


def listed(cli: Cli, verb: str, *args: str, **env: Any) -> tuple[list[str], list[str]]:
    """Return the listed sessions, and those that are named as of another directory."""
    data = cli.program(verb, *args, "--json", **env).data()
    return [one["session"] for one in data["sessions"]], data["elsewhere"]


@pytest.mark.parametrize("verb", ["list", "status"])
def test_each_terminal_lists_its_own(cli: Cli, team: Path, verb: str) -> None:
    assert listed(cli, verb) == (["mine"], ["theirs"])
    assert listed(cli, verb, SWARM_DIR=str(team)) == (["theirs"], ["mine"])

    said = cli.ok(verb)
    assert "theirs" not in said.out + said.err
    assert "1 session of another swarm directory: swarm list --all" in said.err
    assert listed(cli, verb, "--all") == (["mine", "theirs"], [])
    shown = cli.program(verb, "--all", "--json").data()["sessions"]
    assert [one["swarm_dir"] for one in shown] == [str(cli.lab.root / ".swarm"), str(team)]


def test_a_directory_of_the_users_that_comes_later_hides_no_session(cli: Cli, team: Path) -> None:
    """The repository's own folder stood in for ``~/.swarm``; a bridge's file or ``init --global`` makes that."""
    cli.ok("bridge", "init", "phone")
    assert Path(cli.lab.env["HOME"], ".swarm/.swarm-dir.txt").exists()

    assert listed(cli, "list") == (["mine"], ["theirs"])
    cli.ok(*CREATE, "later", "--roles", "developer")
    assert listed(cli, "list") == (["later", "mine"], ["theirs"])
    assert listed(cli, "list", SWARM_DIR=str(team)) == (["theirs"], ["later", "mine"])


@pytest.mark.parametrize("extra", [(), ("--all",)], ids=["own", "all"])
def test_a_watched_status_lists_the_same(cli: Cli, team: Path, extra: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "swarm", "status", "--watch", "--json", *extra]
    environ = {**cli.lab.env, "PYTHONPATH": str(PROJECT)}
    with subprocess.Popen(command, cwd=cli.lab.root, env=environ, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        data = json.loads(watching.stdout.readline())["data"]
        watching.terminate()
        watching.stdout.read()

    assert [one["session"] for one in data["sessions"]] == (["mine", "theirs"] if extra else ["mine"])
    assert data["elsewhere"] == ([] if extra else ["theirs"])


def test_by_its_name_a_session_is_reached_from_anywhere(cli: Cli, team: Path) -> None:
    assert listed(cli, "status", "theirs") == (["theirs"], [])
    assert cli.ok("why", "developer@theirs", "--json").data()["session"] == "theirs"
    cli.ok("cleanup", "theirs")
    assert listed(cli, "list", SWARM_DIR=str(team)) == ([], ["mine"])


def test_cleanup_of_all_keeps_the_others_and_says_so(cli: Cli, team: Path) -> None:
    tree = cli.lab.tree("developer", "theirs")
    for extra in (("--all", "--dry-run"), ("--older-than", "0s", "--dry-run"), ("--all",)):
        said = cli.ok("cleanup", *extra)
        assert f"kept theirs: made with another swarm directory, {team}; to remove it, name it" in said.out

    assert tree.is_dir()
    assert cli.lab.git("branch", "--list", "*theirs*").strip()
    assert listed(cli, "list") == ([], ["theirs"])
    assert "kept theirs" in cli.ok("session", "prune", "--older-than", "0s").out
    cli.lab.swarm.cleanup(everything=True)
    assert not tree.exists()


@pytest.mark.parametrize("verb", ["stop", "resume"])
def test_stop_and_resume_of_all_leave_the_others_alone(cli: Cli, team: Path, verb: str) -> None:
    assert "1 session of another swarm directory: swarm list --all" in cli.ok(verb, "--all").err
    cli.ok("cleanup", "theirs")
    assert "another swarm directory" not in cli.ok(verb, "--all").err


def test_a_session_whose_directory_is_gone_is_listed_where_its_agents_would_work(cli: Cli, team: Path) -> None:
    team.rename(team.with_name("moved"))

    assert listed(cli, "list") == (["mine", "theirs"], [])


def test_other_ways_to_the_same_directory(cli: Cli, team: Path, tmp_path: Path) -> None:
    """A link, a path with dots, a home that is a link."""
    link = tmp_path / "link"
    link.symlink_to(team)
    for way in (link, team / ".." / team.name):
        assert listed(cli, "list", SWARM_DIR=str(way)) == (["theirs"], ["mine"])

    home = tmp_path / "home-link"
    home.symlink_to(cli.lab.env["HOME"])
    cli.ok("init", "--global")
    assert cli.program(*CREATE, "third", "--roles", "developer", HOME=str(home)).code == 0
    assert listed(cli, "list") == (["mine", "third"], ["theirs"])
    assert listed(cli, "list", HOME=str(home)) == (["mine", "third"], ["theirs"])


def test_nested_projects(cli: Cli, lab: Lab) -> None:
    """A folder of the repository that is a swarm directory has its own sessions; an outer one holds around it."""
    inner = lab.root / "apps" / "shop"
    inner.mkdir(parents=True)
    cli.ok("init", str(lab.root.parent / ".swarm"))
    cli.ok(*CREATE, "outer", "--roles", "developer")
    cli.ok("init", str(inner))
    cli.ok(*CREATE, "inner", "--roles", "developer", cwd=inner)

    def names(cwd: Path) -> list[str]:
        return [one["session"] for one in cli.ok("list", "--json", cwd=cwd).data()["sessions"]]

    assert names(lab.root) == names(inner.parent) == ["outer"]
    assert names(inner) == ["inner"]
    assert names(lab.tree("developer", "outer")) == ["outer"]


@pytest.mark.parametrize("home", ["", "/nowhere/at/all", "relative", "/proc"])
def test_without_a_usable_home_the_repository_is_enough(cli: Cli, home: str) -> None:
    """Nobody, not even root, can write into /proc."""
    assert cli.program(*CREATE, "fx", "--roles", "developer", HOME=home).code == 0
    assert listed(cli, "list", HOME=home) == (["fx"], [])
    assert cli.program("cleanup", "fx", HOME=home).code == 0


@pytest.mark.parametrize(
    ("home", "code", "word"), [("relative", 6, "set HOME or SWARM_DIR"), ("/proc", 5, "/proc/.swarm")]
)
def test_init_in_a_home_that_cannot_be_used(cli: Cli, home: str, code: int, word: str) -> None:
    if not Path("/proc/self").exists():
        pytest.skip("needs /proc")
    said = cli.program("init", "--global", HOME=home)

    assert (said.code, said.out) == (code, "")
    assert word in said.err
    assert not (cli.lab.root / "relative").exists()


def read_only(cli: Cli, folder: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run swarm where a folder is mounted read-only, which holds for root, too."""
    mount = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
    space = ["unshare", "-rm", "sh", "-c", mount, "sh", str(folder)]
    if shutil.which("unshare") is None or subprocess.run([*space, "true"], capture_output=True, check=False).returncode:
        pytest.skip("cannot mount a folder read-only")
    environ = {**cli.lab.env, "PYTHONPATH": str(PROJECT), **env}
    command = [*space, sys.executable, "-m", "swarm", *args]
    return subprocess.run(command, cwd=cli.lab.root, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("named", [True, False], ids=["SWARM_DIR", "home"])
def test_a_directory_that_is_read_only_serves_its_roles(cli: Cli, team: Path, named: bool) -> None:
    """No verb on worktrees writes into it; what has to be there is refused, and leaves nothing."""
    if not named:
        team = team.rename(Path(cli.lab.env["HOME"], ".swarm"))
    env = {"SWARM_DIR": str(team)} if named else {}
    (team / "roles/fixer.yaml").write_text(
        "name: fixer\nagent_type: shell\ninstructions: Fix it.\nworktree: {enabled: true}\n"
    )
    before = file_digests(team)

    for args in ((*CREATE, "fx", "--roles", "fixer"), ("list",), ("cleanup", "fx"), ("restore", "fx")):
        done = read_only(cli, team, *args, **env)
        assert done.returncode == 0, done
    server = cli.lab.root.parent / "tmux"
    env["SWARM_TMUX_SOCKET"] = str(server)
    refused = read_only(cli, team, "run", "--role", "fixer", "--name", "foo", "--detach", "--json", **env)

    told = json.loads(refused.stdout)
    assert told["status"] == "error", refused
    assert "Read-only file system" in told["errors"][0]["message"], refused
    assert "foo" not in [one.name for one in cli.lab.swarm.sessions()]
    assert cli.lab.git("branch", "--list", "foo") == ""
    assert not server.exists()
    assert file_digests(team) == before


def test_a_directory_with_a_long_path(cli: Cli, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120) / ("y" * 120)
    said = cli.ok("init", str(long))
    assert str(long) in said.out
    assert cli.program(*CREATE, "fx", "--roles", "developer", SWARM_DIR=str(long)).code == 0
    assert listed(cli, "list", SWARM_DIR=str(long)) == (["fx"], [])
    assert listed(cli, "list") == ([], ["fx"])
