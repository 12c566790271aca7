"""diff, conflicts and merge say what they found, in words and as JSON."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration

ONE, TWO = "researcher", "developer"


def work(cli: Cli, name: str, files: dict[str, str | bytes]) -> None:
    cli.lab.write(files, cli.lab.tree(name))
    cli.lab.commit(f"work of {name}", cwd=cli.lab.tree(name))


# --- diff ------------------------------------------------------------------------------------------------


def test_diff_shows_what_is_committed_and_what_is_not(team: Cli) -> None:
    work(team, TWO, {"new.py": "1\n2\n", "bin": b"\0\1"})
    team.lab.git("mv", "README", "READ ME", cwd=team.lab.tree(TWO))
    team.lab.write({"src/app.py": "print('x')\n", "notes.txt": "n\n"}, team.lab.tree(TWO))

    said = team.ok("diff", TWO)
    data = team.ok("diff", TWO, "--json").data()

    assert "developer@feature-x: 1 commit on swarm/developer-feature-x" in said.out
    assert "not committed, 2 of it staged:" in said.out
    assert "READ ME (was README)" in said.out
    assert "notes.txt" in said.out
    assert [(f["path"], f["status"], f["added"]) for f in data["files"]] == [
        ("bin", "added", None),
        ("new.py", "added", 2),
    ]
    assert [(f["path"], f["status"], f["old_path"]) for f in data["uncommitted"]] == [
        ("READ ME", "renamed", "README"),
        ("src/app.py", "modified", ""),
    ]
    assert data["untracked"] == ["notes.txt"]
    assert data["staged"] == ["READ ME", "README"]
    assert "+2\n" in data["patch"]
    assert "rename from README" in data["uncommitted_patch"]


def test_a_patch_goes_byte_for_byte_into_a_pipe_and_can_be_applied(team: Cli) -> None:
    odd = b"tab\there\r\nlatin \xe4\x1b[31m\nno end"
    work(team, TWO, {"odd": odd, "bin": bytes(range(256)), "run.sh": "#!/bin/sh\necho\n"})
    team.lab.write({"odd": odd + b" more"}, team.lab.tree(TWO))

    said = subprocess.run(
        [sys.executable, "-m", "swarm", "diff", TWO, "--patch"],
        cwd=team.lab.root,
        env={**team.lab.env, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        check=True,
    )
    subprocess.run(["git", "apply", "--binary"], cwd=team.lab.root, env=team.lab.env, input=said.stdout, check=True)

    assert (team.lab.root / "odd").read_bytes() == odd + b" more"
    assert (team.lab.root / "bin").read_bytes() == bytes(range(256))


def test_a_patch_on_a_terminal_obeys_no_control_character(team: Cli) -> None:
    work(team, TWO, {"odd": "\x1b]0;title\x07\x1b[31mred\n"})

    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "swarm", "diff", TWO, "--patch"],
        cwd=team.lab.root,
        env={**team.lab.env, "PYTHONPATH": str(PROJECT)},
        stdout=slave,
        stderr=slave,
        stdin=subprocess.DEVNULL,
    )
    os.close(slave)
    shown = b""
    try:
        while chunk := os.read(master, 4096):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    os.close(master)

    assert process.wait() == 0
    assert b"\\x1b[31mred" in shown
    assert b"\x1b" not in shown
    assert b"\x07" not in shown


def test_diff_without_a_name_means_where_you_are(team: Cli) -> None:
    assert "researcher@feature-x" in team.ok("diff", cwd=team.lab.tree(ONE) / "src").out
    said = team("diff")
    assert said.code == 2
    assert "researcher@feature-x, developer@feature-x" in said.err


def test_diff_names_files_that_act_on_the_users_machine(team: Cli) -> None:
    work(team, TWO, {".exrc": "!touch x\n", "new.py": "1\n"})

    said, patch = team.ok("diff", TWO), team.ok("diff", TWO, "--patch")

    assert "act on your machine by themselves; read them before you merge" in said.out
    assert "  .exrc: an editor runs commands from it" in said.out
    assert ".exrc" in patch.err
    assert team.ok("diff", TWO, "--json").data()["acting"][0]["path"] == ".exrc"


def test_diff_of_a_missing_worktree_shows_its_branch(team: Cli) -> None:
    work(team, TWO, {"new": "1\n"})
    team.lab.tree(TWO).rename(team.lab.root.parent / "gone")

    assert "its worktree is gone" in team.ok("diff", TWO).out
    assert team.ok("diff", TWO, "--json").data()["missing"] is True


# --- conflicts ---------------------------------------------------------------------------------------------


def test_conflicts_names_pairs_files_and_an_order(team: Cli) -> None:
    for name in (ONE, TWO):
        team.lab.write({"README": name}, team.lab.tree(name))

    said = team.ok("conflicts")
    data = team.ok("conflicts", "feature-x", "--json").data()

    assert "README (content)" in said.out
    assert "2. developer@feature-x, conflicts with researcher@feature-x" in said.out
    assert data["conflicting"] is True
    assert data["pairs"] == [
        {
            "one": "researcher@feature-x",
            "other": "developer@feature-x",
            "status": "conflict",
            "overlap": ["README"],
            "conflicts": [{"path": "README", "kinds": ["content"]}],
            "reason": "",
        }
    ]
    assert data["hot"] == [{"path": "README", "agents": ["researcher@feature-x", "developer@feature-x"]}]
    assert [step["agent"] for step in data["order"]] == ["researcher@feature-x", "developer@feature-x"]


def test_what_is_unknown_is_said_and_is_no_success(team: Cli) -> None:
    team.lab.write({"README": "x"}, team.lab.tree(TWO))
    (team.lab.root / ".git" / "worktrees" / "researcher-feature-x" / "index").write_bytes(b"broken")

    said = team("conflicts")
    found = team("conflicts", "--json").json()

    assert said.code == 1
    assert "unknown" in said.out
    assert found["status"] == "partial"
    assert len(found["errors"]) == 2
    assert found["data"]["agents"][0]["status"] == "unknown"


def test_nobody_is_in_nobody_s_way(cli: Cli) -> None:
    assert "there are no agents" in cli.ok("conflicts").err
    assert cli.ok("conflicts", "--json").data()["agents"] == []
    assert cli("conflicts", "nothing").code == 6


# --- merge -------------------------------------------------------------------------------------------------


def test_the_merge_of_one_agent_proposes_to_remove_that_one(team: Cli) -> None:
    for name in (ONE, TWO):
        work(team, name, {name: "1\n"})

    said = team.ok("merge", f"feature-x/{ONE}")

    assert f"next: swarm worktree remove {ONE}@feature-x" in said.err.splitlines()
    assert "swarm cleanup" not in said.err
    assert f"restore with: swarm restore feature-x/{ONE}" in team.ok("worktree", "remove", ONE).err.splitlines()
    assert team.lab.tree(TWO).is_dir()


def test_merge_says_what_went_in_and_what_to_type_next(team: Cli) -> None:
    old = team.lab.git("rev-parse", "main")
    for name in (ONE, TWO):
        work(team, name, {name: "1\n"})

    dry = team.ok("merge", "feature-x", "--dry-run")
    said = team.ok("merge", "feature-x")

    assert "would merge 2 agents into main" in dry.out
    assert "nothing was changed" in dry.err
    assert "merged 2 agents into main" in said.out
    assert "next: swarm cleanup feature-x" in said.err
    undo = next(line for line in said.err.splitlines() if line.startswith("undo with: git "))
    team.lab.git(*undo.removeprefix("undo with: git ").split())
    assert team.lab.git("rev-parse", "main") == old
    assert team.lab.git("status", "--porcelain") == ""


def test_merge_gives_machines_all_they_need(team: Cli) -> None:
    work(team, TWO, {"new": "1\n"})
    old = team.lab.git("rev-parse", "main")

    data = team.ok("merge", "feature-x/developer", "--squash", "--json").data()

    assert (data["into"], data["how"], data["old"]) == ("main", "squash", old)
    assert data["new"] == team.lab.git("rev-parse", "main")
    assert data["checkout"] == str(team.lab.root)
    assert data["agents"][0]["commits"] == 1
    assert data["agents"][0]["result"] == data["new"]
    assert [file["path"] for file in data["files"]] == ["new"]


def test_nothing_to_merge_is_no_error(team: Cli) -> None:
    said = team.ok("merge", "feature-x")

    assert "nothing to merge into main" in said.out
    assert said.err == ""


def test_conflicts_are_listed_and_nothing_is_merged(team: Cli) -> None:
    for name in (ONE, TWO):
        work(team, name, {"README": name})

    said = team("merge", "feature-x")
    found = team("merge", "feature-x", "--json").json()

    assert said.code == 4
    assert "nothing was merged into main" in said.err
    assert "developer@feature-x conflicts with researcher@feature-x:" in said.err
    assert "README (content)" in said.err
    assert "code: MERGE_CONFLICT" in said.err
    assert found["errors"][0]["details"]["conflicts"] == [
        {
            "agent": "developer@feature-x",
            "against": ["researcher@feature-x"],
            "files": [{"path": "README", "kinds": ["content"]}],
        }
    ]


def test_uncommitted_work_is_listed(team: Cli) -> None:
    work(team, TWO, {"new": "1\n"})
    team.lab.write({"notes.txt": "x"}, team.lab.tree(TWO))

    said = team("merge", "feature-x")
    assert said.code == 4
    assert "notes.txt" in said.err
    assert "--committed-only" in said.err

    assert "is merged without: 1 untracked file" in team.ok("merge", "feature-x", "--committed-only").err


def test_wrong_use(team: Cli) -> None:
    assert team("merge", "feature-x", "--squash", "--rebase").code == 2
    assert team("merge", "feature-x", "--into", "nowhere").code == 6
    assert team("merge", "nothing").code == 6
    assert team("merge", "feature-x/nobody").code == 6
    assert team("merge", "feature x").code == 2


def test_names_are_completed(team: Cli) -> None:
    said = team.program(_SWARM_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="swarm merge feature-x/d")

    assert "feature-x/developer" in said.out
