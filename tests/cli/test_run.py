"""``swarm run`` as it is typed: the rows of the requirements about one agent, each with its test."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
#: Tells its arguments and its folder, and stays.
TELL = (
    "import json, os, sys, time; out = os.environ['HOME'] + '/told'; "
    "open(out + '.new', 'w').write(json.dumps([sys.argv[1:], os.getcwd()])); os.rename(out + '.new', out); "
    "time.sleep(600)"
)
WAIT = ("sleep", "600")


def role(panes: PaneLab, name: str, text: str = "") -> None:
    folder = panes.root / ".swarm/roles"
    folder.mkdir(parents=True, exist_ok=True)
    panes.root.joinpath(".swarm").chmod(0o700)
    (folder / f"{name}.yaml").write_text(f"name: {name}\ninstructions: do it\n{text}")


def record(panes: PaneLab, session: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((panes.root / f".swarm/sessions/{session}/session.json").read_text())
    return found


def told(panes: PaneLab) -> list[Any]:
    out = Path(panes.env["HOME"], "told")
    wait_for(out.exists, "the program to tell its arguments")
    found: list[Any] = json.loads(out.read_text())
    out.unlink()
    return found


def test_detached_it_returns_at_once_and_says_how_to_attach(panes: PaneLab) -> None:
    """PANE-09, CLI-05, SESS-02."""
    done = panes.cli("run", "--name", "watch", "--detach", "--", *WAIT)

    assert (done.returncode, done.stdout) == (0, "runs watch@watch in .\n")
    assert "attach: swarm attach watch@watch\n" in done.stderr
    assert panes.one("watch").status.runs
    run = panes.run("watch", "watch")
    assert (run / "role.md").read_text() == ""
    assert not (run / ".claude").exists()  # nothing is configured for a command
    assert record(panes, "watch")["agents"][0]["role"] == ""


def test_attached_it_shows_the_pane_and_says_how_to_come_back(panes: PaneLab) -> None:
    """SESS-03, CLI-03."""
    argv = (sys.executable, "-c", "import time; print('here I ' + 'am', flush=True); time.sleep(600)")
    terminal = panes.terminal("run", "--name", "watch", "--", *argv, columns=100, rows=30)
    try:
        terminal.see("here I am")
        panes.tmux("detach-client", "-s", "swarm")
        assert terminal.ended() == 0
    finally:
        terminal.close()
    assert "come back: swarm attach watch@watch" in terminal.text
    assert panes.one("watch").status.runs


def test_without_a_terminal_it_does_not_attach_and_starts_nothing(panes: PaneLab) -> None:
    done = panes.cli("run", "--name", "watch", "--", *WAIT)

    assert (done.returncode, panes.swarm.sessions()) == (2, ()), done.stderr
    assert "hint: add --detach" in done.stderr


def test_a_role_gives_name_and_program_and_the_rest_is_its_arguments(panes: PaneLab) -> None:
    """SESS-01: the name is that of the role; without a word of the user's the program is ``claude``."""
    missing = panes.cli("run", "--role", "reviewer", "--detach")
    assert (missing.returncode, missing.stdout) == (5, "")
    assert "error: cannot run reviewer: the agent program claude is not installed" in missing.stderr

    done = panes.cli("run", "--role", "reviewer", "--agent", "shell", "--detach", "--json", "--", "-x", "--", "y z")
    assert done.returncode == 0, done.stderr
    (agent,) = record(panes, "reviewer")["agents"]
    assert (agent["name"], agent["role"], agent["args"]) == ("reviewer", "reviewer", ["-x", "--", "y z"])


@pytest.mark.parametrize("typed", [("--role",), ()])
def test_pod_and_overrides_are_recorded_and_left_out_where_there_are_none(
    panes: PaneLab, typed: tuple[str, ...]
) -> None:
    """SESS-09, ENV-03, POD-02."""
    role(panes, "coder")
    how = ("--override", "model=opus", "--override", "coder:root_dir=.", "--agent", "shell", "--detach")
    if not typed:  # the variable of whoever calls
        done = panes.cli("run", "--role", "coder", *how, env={"SWARM_POD": "blue"})
    else:
        done = panes.cli("run", *typed, "coder", "--pod", "blue", *how, env={"SWARM_POD": "red"})
    assert done.returncode == 0, done.stderr
    found = record(panes, "blue")
    assert (found["pod"], found["agents"][0]["overrides"]) == ("blue", {"model": "opus", "root_dir": "."})

    assert panes.cli("run", "--name", "plain", "--detach", "--", *WAIT).returncode == 0
    found = record(panes, "plain")
    assert "pod" not in found
    assert "overrides" not in found["agents"][0]


@pytest.mark.parametrize("wanted", ["", "root_dir: .\n", "root_dir: src\n", "root_dir: {there}\n"])
def test_root_dir_is_where_it_was_typed_or_below_the_swarm_directory_or_as_it_is(
    panes: PaneLab, wanted: str, tmp_path: Path
) -> None:
    """SESS-07, DIR-16."""
    there = tmp_path / "there"
    for folder in (there, panes.root / ".swarm/src", panes.root / "src"):
        folder.mkdir(parents=True, exist_ok=True)
    role(panes, "coder", wanted.format(there=there))
    panes.swarm.run("coder", command=(sys.executable, "-I", "-S", "-c", TELL), directory=panes.root / "src")

    expected = {"root_dir: src\n": panes.root / ".swarm/src", "root_dir: {there}\n": there}
    assert told(panes) == [[], str(expected.get(wanted, panes.root / "src"))]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--name", "foo", "--detach"), 2, "neither a role nor a command is given"),
        (("--detach", "--", "sleep", "1"), 2, "name"),
        (("--name", "../up", "--detach", "--", "sleep", "1"), 2, "name"),
        (("--role", "nobody", "--detach"), 6, "nobody"),
        (("--role", "reviewer", "--agent", "shell", "--override", "model", "--detach"), 2, "model"),
        (("--role", "reviewer", "--agent", "shell", "--override", "name=x", "--detach"), 2, "name"),
        (("--role", "reviewer", "--agent", "shell", "--pod", "UP!", "--detach"), 2, "UP!"),
        (("--name", "foo", "--detach", "--", "not-there-at-all"), 5, "not-there-at-all"),
    ],
)
def test_bad_input_is_one_refusal_and_leaves_nothing(
    panes: PaneLab, words: tuple[str, ...], code: int, says: str
) -> None:
    before = panes.fingerprint()

    done = panes.cli("run", *words)

    assert done.returncode == code, done.stderr
    assert done.stderr.count("error: ") == 1
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert (panes.fingerprint(), panes.swarm.sessions(), panes.panes()) == (before, (), [])


@pytest.mark.parametrize("kind", ["a folder in it", "a linked worktree"])
def test_root_dir_may_be_any_folder_of_a_repository(panes: PaneLab, kind: str, tmp_path: Path) -> None:
    """WT-54, WT-57: there ``.git`` is nowhere, or a file."""
    there = panes.root / "src"
    if kind == "a linked worktree":
        there = tmp_path / "linked"
        panes.git("worktree", "add", "--quiet", "--detach", str(there))
    role(panes, "coder", f"root_dir: {there}\nworktree: {{enabled: true}}\n")

    handle = panes.swarm.run("coder", command=WAIT)

    tree = panes.root / ".swarm/worktrees/coder"
    assert handle.status().worktree == tree
    assert panes.git("rev-parse", "HEAD", cwd=tree) == panes.git("rev-parse", "main")
    assert panes.git("branch", "--show-current", cwd=tree) == "coder"


def test_root_dir_outside_of_any_repository_has_no_worktree(panes: PaneLab, tmp_path: Path) -> None:
    """WT-57."""
    there = tmp_path / "plain"
    there.mkdir()
    role(panes, "coder", f"root_dir: {there}\nworktree: {{enabled: true}}\n")
    before = panes.fingerprint()

    done = panes.cli("run", "--role", "coder", "--agent", "shell", "--detach", "--json")

    (problem,) = json.loads(done.stdout)["errors"]
    assert (done.returncode, problem["code"]) == (5, "NOT_A_REPO"), problem
    assert str(there) in problem["message"]
    assert (panes.fingerprint(), os.listdir(there)) == (before, [])


def test_keys_that_count_with_run_are_no_reason_to_warn(panes: PaneLab) -> None:
    role(panes, "coder", "worktree: {enabled: true, branch_from: main}\n")
    done = panes.cli("run", "--role", "coder", "--agent", "shell", "--detach")
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr
    done = panes.cli("start", "fx", "--roles", "coder", "--agent", "shell")
    assert "worktree.branch_from of role coder counts with `swarm run` alone" in done.stderr
    assert "worktree.enabled" not in done.stderr  # each has one
