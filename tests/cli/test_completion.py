"""The Tab key completes names, quickly, silently, and from swarm's own files only."""

from __future__ import annotations

import os
import pty
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration


def complete(cli: Cli, monkeypatch: pytest.MonkeyPatch, line: str, cwd: Path | None = None) -> list[str]:
    """Ask as bash does: words split at blanks and, by bash, around @ : and =."""
    for mark in "@:=":
        line = line.replace(mark, f" {mark} ")
    words = line.split(" ") if line.endswith(" ") else line.split()
    words = [word for position, word in enumerate(words) if word or position == len(words) - 1]
    if len(words) > 1 and not words[-1] and words[-2] in "@:=":
        words.pop()  # the mark itself is the word under the cursor
    monkeypatch.setenv("_SWARM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    said = cli(cwd=cwd)
    assert (said.code, said.err) == (0, "")
    return said.out.splitlines()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("swarm clea", ["cleanup"]),
        ("swarm worktree lo", ["lock"]),
        ("swarm cleanup ", ["bugs", "feature-x"]),
        ("swarm cleanup f", ["feature-x"]),
        ("swarm worktree list b", ["bugs"]),
        ("swarm cleanup feature-x/d", ["feature-x/developer"]),
        ("swarm worktree show dev", ["developer@bugs", "developer@feature-x"]),
        ("swarm worktree show developer@", ["@bugs", "@feature-x"]),
        ("swarm worktree show developer@fe", ["@feature-x"]),
        ("swarm worktree remove res", ["researcher@feature-x"]),
        ("swarm role show rev", ["reviewer"]),
        ("swarm worktree create x --roles re", ["researcher", "reviewer"]),
        ("swarm worktree create x --roles researcher,dev", ["researcher,developer"]),
        ("swarm worktree create x --roles=dev", ["developer"]),
        ("swarm config show git.t", ["git.timeout"]),
        ("swarm restore old", ["old", "old/architect"]),
        ("swarm restore old/", ["old/architect"]),
    ],
)
def test_names_are_completed(team: Cli, monkeypatch: pytest.MonkeyPatch, line: str, found: list[str]) -> None:
    team.ok("worktree", "create", "bugs", "--roles", "developer")
    team.ok("worktree", "create", "old", "--roles", "architect")
    team.ok("cleanup", "old")

    assert complete(team, monkeypatch, line) == found


def test_salvage_is_completed_with_its_ids_also_from_packed_refs(team: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    team.ok("cleanup", "--all")
    name = team.ok("salvage", "show", "feature-x/developer", "--json").data()["name"]
    assert complete(team, monkeypatch, "swarm restore feature-x/developer@") == ["@" + name.partition("@")[2]]

    team.lab.git("pack-refs", "--all")
    monkeypatch.delenv("_SWARM_COMPLETE", raising=False)

    assert complete(team, monkeypatch, "swarm salvage drop feature-x/d") == ["feature-x/developer"]


def test_names_come_from_where_c_points_and_from_inside_a_worktree(
    team: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(team.lab.root)

    assert complete(team, monkeypatch, "swarm cleanup ", cwd=team.lab.tree("developer") / "src") == ["feature-x"]
    assert complete(team, monkeypatch, f"swarm -C {tmp_path}/link cleanup ", cwd=outside) == ["feature-x"]


def test_whatever_is_wrong_completions_stay_silent(team: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    assert complete(team, monkeypatch, "swarm cleanup ", cwd=outside) == []

    (team.lab.root / ".swarm" / "sessions" / "feature-x" / "session.json").write_text("{")
    assert complete(team, monkeypatch, "swarm worktree show ") == []
    (team.lab.root / ".swarm" / "sessions").rename(team.lab.root / "gone")
    (team.lab.root / ".swarm" / "sessions").write_text("no folder")
    assert complete(team, monkeypatch, "swarm worktree show ") == []


def test_completions_start_no_git_and_load_no_heavy_library(team: Cli) -> None:
    script = (
        "import sys, os, subprocess\n"
        "from swarm.cli.main import main\n"
        "code = main([])\n"
        "assert 'git' not in sys.modules and 'swarm.git.repository' not in sys.modules\n"
        "assert not {'libtmux', 'filelock', 'rich', 'pydantic'} & set(sys.modules)\n"
        "sys.exit(code)\n"
    )
    env = {"_SWARM_COMPLETE": "complete_bash", "COMP_WORDS": "swarm\ncleanup\n", "COMP_CWORD": "2"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=team.lab.root,
        env={**team.lab.env, **env, "PATH": "/nonexistent", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "feature-x\n", "")


def test_the_script_for_the_shell_can_be_shown(team: Cli) -> None:
    said = team.program(_SWARM_COMPLETE="source_bash")

    assert (said.code, "complete -o default" in said.out) == (0, True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_puts_the_whole_name_there(team: Cli, tmp_path: Path) -> None:
    """What bash replaces at the cursor depends on the mark; only bash itself knows."""
    start = tmp_path / "start.sh"
    command = f'"{sys.executable}" -m swarm "$@"'
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "swarm"
    program.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(PROJECT))} exec {command}\n")
    program.chmod(0o755)
    start.write_text('PS1=; eval "$(_SWARM_COMPLETE=source_bash swarm)"; bind "set enable-bracketed-paste off"\n')
    env = {**team.lab.env, "PATH": f"{tmp_path}/bin:{team.lab.env['PATH']}", "TERM": "dumb"}
    main, side = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--rcfile", str(start), "-i"],
        cwd=team.lab.root,
        env=env,
        stdin=side,
        stdout=subprocess.PIPE,
        stderr=side,
        start_new_session=True,
    )
    os.close(side)
    lines = ["developer", "developer@", "developer@fea", "researcher@feature-"]
    os.write(
        main, "".join(f"swarm worktree lock {word}\t\nswarm worktree unlock {word}\t\n" for word in lines).encode()
    )
    os.write(main, b"exit\n")
    said = shell.communicate(timeout=60)[0].decode()
    os.close(main)

    names = [line.split(":")[0].split()[-1] for line in said.splitlines() if line.startswith(("locked", "unlocked"))]
    assert names == [name for word in lines for name in [f"{word.partition('@')[0]}@feature-x"] * 2], said
