"""What a role says beside its text holds for the agent that is started, and again when it is resumed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm import Swarm
from swarm.kit.errors import ConfigProblem, Refused, UsageProblem
from swarm.programs.errors import ProgramMissing
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

pytestmark = pytest.mark.integration


def role(lab: PaneLab, text: str, name: str = "qa") -> None:
    lab.write({f"roles/{name}.yaml": f"name: {name}\ninstructions: Test.\n{text}"})


def environment_in(lab: PaneLab, agent: str, out: Path) -> dict[str, str]:
    """Return the environment that a shell in an agent's pane has."""
    lab.until(agent, "idle")
    lab.type(agent, f"env -0 > {out}.part && mv {out}.part {out}")
    wait_for(out.exists, "the environment of the shell")
    rows = os.fsdecode(out.read_bytes()).split("\0")
    return dict(row.partition("=")[::2] for row in rows if row)


ENV = """\
agent_type: shell
env:
  pass: [KEEP_*, BOTH]
  drop: [KEEP_NOT, LC_ALL, BOTH]
  set: {COLOR: "a 'b' $c", KEEP_SET: own}
"""


def test_the_environment_is_narrowed_also_after_a_resume(panes: PaneLab, tmp_path: Path) -> None:
    role(panes, ENV)
    panes.env |= {"KEEP_ME": "1", "KEEP_NOT": "1", "BOTH": "1", "SECRET": "1", "KEEP_SET": "x", "LC_ALL": "C"}
    panes.env |= {"LC_TIME": "C", "SWARM_MERGE_TARGET": "", "GIT_DIR_X": "1"}
    del panes.env["SWARM_MERGE_TARGET"]
    panes.swarm.start("fx", "qa")

    first = environment_in(panes, "qa", tmp_path / "first")
    panes.swarm.stop(["fx"])
    panes.env |= {"KEEP_TOO": "2"}
    panes.swarm.resume(["fx"])
    second = environment_in(panes, "qa", tmp_path / "second")

    for found in (first, second):
        assert found["KEEP_ME"] == "1"
        assert (found["COLOR"], found["KEEP_SET"]) == ("a 'b' $c", "own")
        assert not {"SECRET", "KEEP_NOT", "BOTH", "LC_ALL", "GIT_DIR_X", "PYTHONDONTWRITEBYTECODE"} & set(found)
        assert {"PATH", "HOME", "TERM", "LC_TIME", "SWARM_TMUX_SOCKET", "SWARM_DIR"} <= set(found)
        assert found["SWARM_ROLE"] == "qa"
    assert "KEEP_TOO" not in first
    assert second["KEEP_TOO"] == "2"


def test_without_a_word_of_the_role_everything_goes_along(panes: PaneLab, tmp_path: Path) -> None:
    role(panes, "agent_type: shell\nenv: {drop: [SECRET]}\n")
    panes.env |= {"SECRET": "1", "OTHER": "1"}
    panes.swarm.start("fx", "qa")

    found = environment_in(panes, "qa", tmp_path / "env")

    assert found["OTHER"] == "1"
    assert "SECRET" not in found


def test_a_role_has_its_own_program_unless_the_user_names_one(panes: PaneLab) -> None:
    role(panes, "agent_type: shell\n")
    role(panes, "command: [sh, -c, 'echo I am $SWARM_ROLE; exec sleep 1000']\n", "own")
    swarm = Swarm.open(panes.root, environ=panes.env, flags={"agents.program": "demo"})

    swarm.start("fx", "qa,own,developer", task=QUICK)
    panes.see("own", "I am own")
    panes.swarm.start("fy", "qa", program="demo", task=QUICK)

    programs = {a.name: (a.program, a.command[:1]) for a in panes.swarm.sessions.get("fx").agents}
    assert programs == {"qa": ("shell", ()), "own": ("command", ("sh",)), "developer": ("demo", ())}
    assert [a.program for a in panes.swarm.sessions.get("fy").agents] == ["demo"]


def test_a_program_of_a_role_that_is_missing_is_told_before_anything_is_made(panes: PaneLab) -> None:
    role(panes, "command: not-a-program-at-all\n")
    before = panes.fingerprint()

    with pytest.raises(ProgramMissing, match="not-a-program-at-all"):
        panes.swarm.start("fx", "qa")

    assert panes.fingerprint() == before


def test_an_agent_works_where_its_role_says(panes: PaneLab, tmp_path: Path) -> None:
    role(panes, "agent_type: shell\nroot_dir: .\nworktree: {subdir: src}\n")
    panes.swarm.start("fx", "qa")

    assert environment_in(panes, "qa", tmp_path / "env")["PWD"] == str(panes.tree("qa", "fx") / "src")


@pytest.mark.parametrize("folder", ["not/there", "README", "out"])
def test_a_folder_that_is_none_of_the_worktree_takes_the_start_back(panes: PaneLab, folder: str) -> None:
    (panes.root / "out").symlink_to("/")
    panes.commit("a link out")
    role(panes, f"agent_type: shell\nworktree: {{subdir: {folder}}}\n")
    before = panes.fingerprint()

    with pytest.raises((ConfigProblem, Refused), match=r"worktree\.subdir"):
        panes.swarm.start("fx", "qa:2")

    assert panes.fingerprint() == before
    assert panes.panes() == []
    assert not panes.swarm.sessions()


@pytest.mark.parametrize("spelled", ["absolute", "home", "relative", "worktree"])
def test_a_role_for_this_repository_is_started_and_one_for_another_is_not(panes: PaneLab, spelled: str) -> None:
    home = Path(panes.env["HOME"])
    (home / ".swarm/projects").mkdir(parents=True)
    (home / ".swarm/.swarm-dir.txt").write_text("v0.1.0\n")
    other = home / ".swarm/projects/other"
    panes.git("clone", "--quiet", str(panes.root), str(other))
    (home / ".swarm/projects/this").symlink_to(panes.root)
    panes.git("worktree", "add", "--quiet", "--detach", str(home / ".swarm/projects/linked"))
    ways = {
        "absolute": (str(panes.root / "src"), str(other)),
        "home": ("~/.swarm/projects/this", "~/.swarm/projects/other/src"),
        "relative": ("projects/this", "projects/other"),
        "worktree": ("projects/linked/src", "../.swarm/projects/other"),
    }
    here, there = ways[spelled]

    role(panes, f"agent_type: shell\nroot_dir: {there}\n")
    before = panes.fingerprint()
    with pytest.raises(UsageProblem, match="another repository") as caught:
        panes.swarm.start("fx", "qa")
    assert caught.value.hint == f"swarm -C {other} start …"
    with pytest.raises(UsageProblem, match="another repository") as caught:
        panes.swarm.create("fx", "qa:2")
    assert caught.value.hint == f"swarm -C {other} worktree create …"
    assert panes.fingerprint() == before

    role(panes, f"agent_type: shell\nroot_dir: {here}\n")
    assert panes.swarm.start("fx", "qa", dry_run=True).agents[0].path == panes.tree("qa", "fx")
    assert panes.swarm.create("fx", "qa", dry_run=True).agents[0].path == panes.tree("qa", "fx")


@pytest.mark.parametrize("text", ["projects/none", "/", "/no such folder"])
def test_a_root_dir_that_is_no_repository_is_refused(panes: PaneLab, text: str) -> None:
    role(panes, f"agent_type: shell\nroot_dir: {text}\n")

    with pytest.raises(ConfigProblem, match="is not a folder in a git repository") as caught:
        panes.swarm.start("fx", "qa")
    with pytest.raises(ConfigProblem, match="is not a folder in a git repository"):
        panes.swarm.create("fx", "qa")

    assert "subdir" in caught.value.hint
    assert not panes.swarm.sessions()


def test_the_heartbeat_reaches_the_supervisor(panes: PaneLab) -> None:
    role(panes, "agent_type: shell\nheartbeat: {idle_timeout: 1h, message: Go on.}\n")
    panes.swarm.start("fx", "qa")

    wait_for((panes.run("qa") / "heartbeat.json").exists, "the supervisor's note")
    assert panes.note("qa", "heartbeat.json")["message"] == "Go on."


def test_what_has_no_effect_is_a_warning_of_the_start(panes: PaneLab) -> None:
    role(panes, "agent_type: shell\nmodel: opus\nlimits: {tokens: 5}\n")

    report = panes.swarm.start("fx", "qa:2", dry_run=True)

    assert sum("model of role qa has no effect with shell" in one for one in report.warnings) == 1
    assert sum("limits.tokens of role qa has no effect with shell" in one for one in report.warnings) == 1
