"""``swarm fork``: another agent from an agent's worktree as it is; and the ways into a worktree."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import SwarmError
from swarm.testing.panes import QUICK
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]


def git(tree: Path, *args: str) -> str:
    return subprocess.run(["git", "-C", str(tree), *args], capture_output=True, text=True, check=True).stdout


def picture(tree: Path) -> dict[str, tuple[int, bytes]]:
    """Every file of a worktree and of git's folder for it, with its time."""
    admin = Path(git(tree, "rev-parse", "--absolute-git-dir").strip())
    return {
        str(path): (path.lstat().st_mtime_ns, path.read_bytes())
        for top in (tree, admin)
        for path in top.rglob("*")
        if path.is_file() and not path.is_symlink() and path.name != "swarm-session.json"
    }


@pytest.fixture
def team(panes: PaneLab) -> PaneLab:
    """A developer that is done with its first turn, and a worktree with all kinds of work in it."""
    panes.start("developer,reviewer", task=f"The goal\n{QUICK}")
    panes.all_until("idle")
    panes.swarm.stop(everything=True)
    panes.swarm.resume(["fx"])
    panes.all_until("idle")
    return panes


def fill(tree: Path) -> None:
    (tree / "kept").write_text("1\n")
    (tree / "gone").mkdir()
    (tree / "gone/file").write_text("x\n")
    (tree / "tool").write_text("#!/bin/sh\n")
    git(tree, "add", "kept", "gone", "tool")
    git(tree, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "work of mine")
    (tree / "kept").write_text("2\n")  # changed
    (tree / "staged").write_text("s\n")
    git(tree, "add", "staged")
    (tree / "new").mkdir()
    (tree / "new/ä file").write_text("n\n")
    (tree / "gone/file").unlink()
    (tree / "gone").rmdir()
    (tree / "gone").symlink_to("kept")
    (tree / "tool").chmod(0o755)
    (tree / ".gitignore").write_text("ignored\n")
    (tree / "ignored").write_text("i\n")


def test_a_fork_has_everything_and_the_source_is_as_it_was(team: PaneLab) -> None:
    swarm, source = team.swarm, team.swarm.worktrees.path("developer")
    fill(source)
    before = picture(source)

    forked = swarm.fork("developer", task=QUICK + "Try another way")

    assert picture(source) == before
    made = forked.agents[0]
    assert (forked.session, [one.name for one in forked.agents], made.role) == ("fx", ["developer-2"], "developer")
    assert made.branch == "swarm/developer-2-fx"
    tree = made.path
    assert git(tree, "rev-parse", "HEAD") == git(source, "rev-parse", "HEAD")
    assert (tree / "kept").read_text() == "2\n"
    assert (tree / "staged").read_text() == "s\n"
    assert (tree / "new/ä file").read_text() == "n\n"
    assert os.readlink(tree / "gone") == "kept"
    assert os.access(tree / "tool", os.X_OK)
    assert not (tree / "ignored").exists()
    there = git(source, "status", "--porcelain", "-uall").replace("A  staged", "?? staged").splitlines()
    assert sorted(git(tree, "status", "--porcelain", "-uall").splitlines()) == sorted(there)
    team.until("developer-2", "idle")
    assert (team.run("developer-2") / "task.md").read_text().endswith("Try another way")
    assert (team.run("developer-2") / "task.md").read_text().startswith("The goal")
    session = swarm.sessions.get("fx")
    assert [one.name for one in session.agents] == ["developer", "reviewer", "developer-2"]
    assert session.agents[2].base == session.agents[0].base
    assert session.task == f"The goal\n{QUICK}"
    assert "fx developer-2" in team.panes()


def test_the_commits_of_the_source_are_the_forks_work_too(team: PaneLab) -> None:
    fill(team.swarm.worktrees.path("developer"))
    team.swarm.fork("developer", "bold")
    team.until("bold", "idle")

    assert team.swarm.why("bold").ahead == team.swarm.why("developer").ahead
    team.swarm.stop(everything=True)
    assert team.swarm.resume(["fx"]).started
    team.all_until("idle")
    team.swarm.stop(everything=True)
    team.swarm.cleanup(["fx"], force=True)
    team.swarm.restore("fx/bold")
    assert (team.swarm.worktrees.path("bold") / "new/ä file").read_text() == "n\n"


def test_forks_of_forks_and_of_an_agent_that_is_at_work(team: PaneLab) -> None:
    names = [team.swarm.fork("developer").agents[0].name, team.swarm.fork("developer-2").agents[0].name]

    assert names == ["developer-2", "developer-3"]
    assert team.swarm.fork("developer", "x", dry_run=True).dry_run
    assert team.swarm.sessions.get("fx").agent("x") is None


def test_a_fork_has_what_the_start_changed_of_the_role(panes: PaneLab) -> None:
    panes.swarm.start("fx", "developer", program="demo", task=QUICK, overrides={"model": "opus"})

    panes.swarm.fork("developer", "bold")

    developer, bold = panes.swarm.sessions.get("fx").agents
    assert bold.overrides == developer.overrides != ()
    panes.until("bold", "idle")


def test_a_worktree_without_an_agent(panes: PaneLab) -> None:
    panes.swarm.create("fx", "developer")
    (panes.swarm.worktrees.path("developer") / "new").write_text("1")

    made = panes.swarm.fork("developer").agents[0]

    assert (made.path / "new").read_text() == "1"
    assert panes.tmux.pid() == 0


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("nobody",), 6),
        (("developer", "reviewer"), 2),
        (("developer", "../x"), 2),
        (("developer", "all"), 2),
        (("developer", "--task", ""), 2),
    ],
)
def test_what_is_refused_leaves_nothing(team: PaneLab, args: tuple[str, ...], code: int) -> None:
    before = team.fingerprint()

    done = team.cli("fork", *args)

    assert (done.returncode, done.stderr.startswith("error: ")) == (code, True), done.stderr
    assert team.fingerprint() == before


def test_a_worktree_that_is_gone(team: PaneLab) -> None:
    team.swarm.stop(everything=True)
    tree = team.swarm.worktrees.path("developer")
    tree.rename(tree.with_name("elsewhere"))

    with pytest.raises(SwarmError, match="its worktree is gone"):
        team.swarm.fork("developer")
    assert team.cli("path", "developer").returncode == 6
    assert team.cli("shell", "developer").returncode == 6


def test_an_agent_forks_itself_and_no_stranger(panes: PaneLab) -> None:
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer,reviewer", program="shell", task="")
    swarm = f"{shlex.quote(sys.executable)} -P -m swarm"
    panes.type("reviewer", f"{swarm} fork developer; echo $? > refused")
    refused = panes.swarm.worktrees.path("reviewer") / "refused"
    wait_for(lambda: refused.exists() and refused.read_text().strip() == "4", "the refusal", 60)

    panes.type("developer", f"{swarm} fork developer twin")

    wait_for(lambda: panes.swarm.sessions.get("fx").agent("twin"), "the fork", 60)


def test_on_the_command_line(team: PaneLab) -> None:
    done = team.cli("fork", "developer@fx", "bold", "--task", f"all=this\n{QUICK}")

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("forked developer@fx: bold@fx in ")
    assert (team.run("bold") / "task.md").read_text().endswith(f"all=this\n{QUICK}")
    data = json.loads(team.cli("fork", "developer", "--dry-run", "--json").stdout)["data"]
    assert (data["dry_run"], data["agents"][0]["name"]) == (True, "developer-2")


# --- path, shell, open ------------------------------------------------------------------------------


def test_the_path(team: PaneLab) -> None:
    done = team.cli("path", "developer")

    assert (done.stdout, done.stderr) == (f"{team.swarm.worktrees.path('developer')}\n", "")


def test_a_shell_is_in_the_worktree_has_the_agents_environment_and_is_the_users(team: PaneLab) -> None:
    team.env["SHELL"] = "/bin/sh"
    said = "pwd; echo $SWARM_ACTOR $SWARM_SESSION $SWARM_ROLE; echo [$SWARM_RUN_DIR]; "
    said += f"{shlex.quote(sys.executable)} -P -m swarm send reviewer hello >/dev/null"

    done = team.cli("shell", "developer", stdin=said)

    assert done.stdout.splitlines() == [str(team.swarm.worktrees.path("developer")), "developer fx developer", "[]"]
    assert [one.message.sender for one in team.swarm.messages.outbox("user")] == ["user"]
    team.env["SHELL"] = "/nowhere/sh"
    done = team.cli("shell", "developer")
    assert (done.returncode, "no program" in done.stderr) == (5, True), done.stderr


@pytest.mark.parametrize("how", ["VISUAL", "EDITOR", "SWARM_EDITOR_COMMAND"])
def test_the_editor_gets_the_worktree_and_no_shell(team: PaneLab, tmp_path: Path, how: str) -> None:
    editor = tmp_path / "my editor"
    editor.write_text('#!/bin/sh\nprintf "%s\\n" "$PWD" "$@"\n')
    editor.chmod(0o755)
    for name in ("VISUAL", "EDITOR"):
        team.env.pop(name, None)
    tree = str(team.swarm.worktrees.path("developer"))
    missing = team.cli("open", "developer")
    assert (missing.returncode, "no editor is named" in missing.stderr) == (5, True), missing.stderr

    team.env[how] = f"'{editor}' --wait '$(touch {tmp_path}/no)'"
    done = team.cli("open", "developer")

    assert done.stdout.splitlines() == [tree, "--wait", f"$(touch {tmp_path}/no)", tree], done.stderr
    assert not (tmp_path / "no").exists()
