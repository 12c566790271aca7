"""``run``: one agent or any command, in a worktree of its own or in a folder that stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm, SwarmError
from swarm.kit.errors import ConfigProblem
from swarm.testing.lab import file_digests
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
#: Writes its environment, arguments and folder where it is told, and stays.
TELL = (
    "import json, os, sys, time;"
    "out = os.environ['TELL']; new = out + '.new';"
    "open(new, 'w').write(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)])); os.rename(new, out);"
    "time.sleep(600)"
)
WAIT = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
MADE = {".git", ".swarm", ".worktrees"}


def told(lab: PaneLab, *, act: Callable[[Swarm, tuple[str, ...]], object]) -> list[Any]:
    """Run something that starts a program, and return the program's arguments, folder and environment."""
    out = Path(lab.env["HOME"], f"told-{os.urandom(4).hex()}")
    lab.env["TELL"] = str(out)
    act(lab.open(), (sys.executable, "-I", "-S", "-c", TELL))
    wait_for(out.exists, "the program to tell its environment")
    found: list[Any] = json.loads(out.read_text())
    return found


def code_of(act: Callable[[], object]) -> str:
    """Expect a refusal, and return its code."""
    with pytest.raises(SwarmError) as raised:
        act()
    return raised.value.code


def role(lab: PaneLab, name: str, text: str) -> None:
    """Write a role of the project's own."""
    folder = lab.root / ".swarm" / "roles"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lab.root.joinpath(".swarm").chmod(0o700)
    (folder / f"{name}.yaml").write_text(f"name: {name}\ninstructions: do it\n{text}")


# --- a command, and an agent without a worktree ------------------------------------------------------


def test_a_command_runs_where_it_was_given_and_is_an_agent_as_any_other(panes: PaneLab) -> None:
    (panes.root / "src").mkdir(exist_ok=True)

    argv, cwd, env = told(
        panes, act=lambda swarm, tell: swarm.run(name="foo", command=(*tell, "--x", "y"), directory=panes.root / "src")
    )

    assert (argv, cwd) == (["--x", "y"], str(panes.root / "src"))
    assert (env["SWARM_ACTOR"], env["SWARM_SESSION"]) == ("foo", "foo")
    assert env["SWARM_STATE_DIR"] == str(panes.root / ".swarm")
    assert not {"SWARM_ROLE", "SWARM_ROLE_FILE", "SWARM_POD", "SWARM_SESSION_ID"} & env.keys()
    found = panes.one("foo", "foo")
    assert (found.agent.role, found.agent.branch, found.agent.tree, found.missing) == ("", "", "shared", False)
    assert found.status.runs  # it has told its environment
    panes.swarm.send("foo@foo", "hello")
    assert panes.one("foo", "foo").unread == 1
    assert panes.swarm.worktrees() == ()


def test_what_stands_behind_a_role_is_given_to_its_program(panes: PaneLab) -> None:
    argv, _, env = told(
        panes,
        act=lambda swarm, tell: swarm.run(
            "reviewer", name="rex", command=tell, args=("--verbose", "--", "-x"), pod="team-1", directory=panes.root
        ),
    )

    assert argv == ["--verbose", "--", "-x"]
    assert (env["SWARM_ROLE"], env["SWARM_ACTOR"], env["SWARM_POD"]) == ("reviewer", "rex", "team-1")
    assert panes.swarm.sessions()[0].name == "team-1"
    panes.swarm.run("developer", command=WAIT, pod="team-1", directory=panes.root)
    assert [one.name for one in panes.swarm.sessions()[0].agents] == ["rex", "developer"]


@pytest.mark.parametrize("how", ["option", "environment"])
def test_whoever_joins_a_pod_finds_the_roles_of_pods_first(panes: PaneLab, how: str) -> None:
    """POD-04: with a pod ``pods/roles`` comes first, without one it is not looked at; a resume finds the same."""
    role(panes, "tester", "description: everybody's\n")
    folder = panes.root / ".swarm/pods/roles"
    folder.mkdir(parents=True)
    for name in ("tester", "only"):
        (folder / f"{name}.yaml").write_text(f"name: {name}\ninstructions: of pods\n")
    assert code_of(lambda: panes.swarm.run("only", command=WAIT)) == "ROLE_NOT_FOUND"
    assert panes.cli("role", "show", "only").returncode == 6
    assert panes.swarm.roles.get("tester").description == "everybody's"

    panes.swarm.run("tester", name="alone", command=WAIT, directory=panes.root)
    if how == "environment":
        panes.env["SWARM_POD"] = "team"
    pod = "team" if how == "option" else ""
    argv, _, env = told(panes, act=lambda swarm, tell: swarm.run("only", command=tell, directory=panes.root, pod=pod))

    assert (argv, env["SWARM_ROLE"], env["SWARM_POD"]) == ([], "only", "team")
    assert panes.one("only", "team").agent.role == "only"
    assert panes.swarm.roles.of_pods.get("tester").instructions == "of pods"
    assert panes.cli("role", "show", "only", *(["--pod"] if how == "option" else [])).returncode == 0
    panes.swarm.stop(["team"])
    panes.env.pop("SWARM_POD", None)
    assert panes.open().resume(["team"]).started


def test_a_program_gets_all_that_its_launch_names(panes: PaneLab) -> None:
    """SESS-04: the program gets its name, session, arguments, role, folders, environment and pod."""
    beat = "heartbeat: {idle_timeout: 1h, message: go on}\n"
    role(panes, "coder", f"claude_config_dir: ~/of/the/role\nenv: {{set: {{MINE: 'yes'}}}}\n{beat}")
    argv, cwd, env = told(
        panes,
        act=lambda swarm, tell: swarm.run(
            "coder", name="kim", command=(*tell, "a", "b c"), directory=panes.root / "src", pod="team"
        ),
    )

    assert (argv, cwd, env["MINE"]) == (["a", "b c"], str(panes.root / "src"), "yes")
    told_of = (env["SWARM_RUN_DIR"], env["SWARM_ROLE"], env["SWARM_POD"])
    assert told_of == (str(panes.run("kim", "team")), "coder", "team")
    process = panes.note("kim", "process.json", "team")
    assert process["operation"] == panes.swarm.sessions()[0].operations[-1]


def test_two_agents_share_the_main_checkout_and_cleaning_up_changes_no_file_there(panes: PaneLab) -> None:
    (panes.root / "draft.txt").write_text("mine")
    (panes.root / "CLAUDE.md").write_text("the project's")
    before, refs = file_digests(panes.root, MADE), panes.git("for-each-ref")

    panes.swarm.run("reviewer", command=WAIT, directory=panes.root)
    panes.swarm.run("developer", command=WAIT, directory=panes.root)
    assert file_digests(panes.root, MADE) == before
    assert code_of(lambda: panes.swarm.cleanup(["developer"])) == "WORK_AT_RISK"  # it runs

    panes.swarm.send("reviewer@reviewer", "read me")
    told = panes.cli("cleanup", "--all", "--force", "--dry-run")
    report = panes.swarm.cleanup(everything=True, force=True)

    assert told.stdout.startswith("would remove 2 agents without a worktree\n")
    assert (report.worktrees_removed, report.branches_removed) == (0, 0)
    assert {one.agent for one in report.removed} == {"reviewer", "developer"}
    assert file_digests(panes.root, MADE) == before
    assert panes.git("for-each-ref") == refs
    assert panes.swarm.sessions() == ()
    assert list(panes.root.glob(".swarm/salvage/reviewer/reviewer/*/inbox"))  # the message it had not read


def test_an_agent_in_the_worktree_of_another_leaves_it_as_it_is(panes: PaneLab) -> None:
    panes.swarm.start("fx", "developer", command=WAIT)
    tree = panes.tree("developer", "fx")
    (tree / "work.txt").write_text("half done")
    panes.swarm.run(name="guest", command=WAIT, directory=tree)
    before, admin = file_digests(tree), panes.git("worktree", "list", "--porcelain")

    panes.swarm.stop(["guest"])
    assert panes.git("worktree", "list", "--porcelain") == admin  # still locked by the agent whose it is
    panes.swarm.cleanup(["guest"])

    assert file_digests(tree) == before
    wait_for(lambda: panes.one("developer", "fx").status.runs, "the other one at work")
    assert panes.git("worktree", "list", "--porcelain") == admin


def test_cleaning_up_never_touches_a_folder_outside_of_any_repository(panes: PaneLab, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("a")
    (outside / ".git-like").mkdir()
    role(panes, "keeper", f"root_dir: {outside}\n")
    before = file_digests(outside)

    handle = panes.swarm.run("keeper", command=WAIT, directory=panes.root)
    assert handle.status().worktree == outside
    panes.swarm.cleanup(["keeper"], force=True, discard=False)

    assert file_digests(outside) == before


def test_an_agent_whose_folder_is_removed_is_told_of_and_can_be_cleaned_up(panes: PaneLab, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    handle = panes.swarm.run(name="foo", command=WAIT, directory=outside)
    handle.stop()
    shutil.rmtree(outside)

    assert panes.one("foo", "foo").missing
    assert code_of(handle.resume) == "WORKTREE_NOT_FOUND"
    assert any("folder of foo@foo is gone" in check.text for check in panes.swarm.doctor())
    panes.swarm.cleanup(["foo"])
    assert panes.swarm.sessions() == ()


def test_verbs_about_worktrees_say_that_it_has_none(panes: PaneLab) -> None:
    panes.swarm.start("fx", "developer", command=WAIT)
    panes.swarm.run(name="foo", command=WAIT, pod="fx", directory=panes.root)

    for act in (
        lambda: panes.swarm.diff("foo"),
        lambda: panes.swarm.merge("fx/foo"),
        lambda: panes.swarm.worktrees.lock("foo"),
        lambda: panes.swarm.fork("foo"),
        lambda: panes.swarm.worktrees.update_role("foo", force=True),
    ):
        assert code_of(act) == "WORKTREE_NOT_FOUND"
    assert [one.agent for one in panes.swarm.merge("fx").agents] == ["developer"]
    assert [one.agent for one in panes.swarm.conflicts("fx").agents] == ["developer"]
    assert [one.agent for one in panes.swarm.worktrees()] == ["developer"]
    # What is restored is the worktree; who shared a folder has lost nothing.
    panes.swarm.cleanup(["fx"], force=True)
    assert [one.name for one in panes.swarm.restore("fx").agents] == ["developer"]


# --- again ------------------------------------------------------------------------------------------


def test_a_name_that_runs_is_refused_and_one_that_ended_runs_again_with_what_is_said_now(panes: PaneLab) -> None:
    handle = panes.swarm.run(name="foo", command=WAIT, directory=panes.root)
    assert code_of(lambda: panes.swarm.run(name="foo", command=WAIT, directory=panes.root)) == "AGENT_EXISTS"
    handle.stop()
    panes.swarm.send("foo@foo", "later")

    argv, _, _ = told(panes, act=lambda swarm, tell: swarm.run(name="foo", command=(*tell, "z"), directory=panes.root))

    assert argv == ["z"]
    assert panes.one("foo", "foo").unread == 1  # the same agent
    assert len(panes.swarm.sessions()[0].operations) == 2
    handle.stop()
    elsewhere = panes.root / "src"
    assert code_of(lambda: panes.swarm.run(name="foo", command=WAIT, directory=elsewhere)) == "AGENT_EXISTS"


def test_notes_of_the_run_before_do_not_hide_that_a_launcher_has_begun(panes: PaneLab) -> None:
    """A launcher claims its launch before it writes notes of its own; they are put back to look at that moment."""
    handle = panes.swarm.run(name="foo", command=WAIT, directory=panes.root)
    wait_for(lambda: panes.run("foo", "foo").joinpath("process.json").exists(), "it to begin")
    handle.stop()
    notes = [panes.run("foo", "foo") / name for name in ("process.json", "exit.json")]
    wait_for(lambda: all(note.exists() for note in notes), "its end to be noted")
    before = [note.read_bytes() for note in notes]
    assert handle.resume().started
    wait_for(lambda: panes.note("foo", "process.json", "foo") != json.loads(before[0]), "it to begin again")
    for note, content in zip(notes, before, strict=True):
        note.write_bytes(content)

    found = handle.status().status
    assert (found.state, found.runs) == ("starting", True)
    assert handle.resume().running == (("foo", "foo"),)


# --- in a worktree of its own -------------------------------------------------------------------------


def test_a_role_with_a_worktree_gets_one_by_name_and_uses_it_again(panes: PaneLab) -> None:
    role(panes, "coder", "worktree: {enabled: true, branch_from: main}\n")
    handle = panes.swarm.run("coder", command=WAIT)
    tree = panes.root / ".swarm" / "worktrees" / "coder"

    assert handle.status().worktree == tree
    assert panes.git("branch", "--show-current", cwd=tree) == "coder"
    assert handle.report is not None
    assert (tree / handle.report.agents[0].instructions).read_text() == "do it"
    (tree / "new.txt").write_text("work")
    handle.stop()
    panes.swarm.run("coder", command=WAIT)
    assert (tree / "new.txt").read_text() == "work"
    wait_for(lambda: handle.status().status.runs, "it to run again")

    handle.stop()
    assert code_of(lambda: panes.swarm.cleanup(["coder"])) == "WORK_AT_RISK"
    panes.swarm.cleanup(["coder"], force=True)
    assert not tree.exists()
    assert "coder" not in panes.git("branch", "--list")
    panes.swarm.restore("coder")
    assert (tree / "new.txt").read_text() == "work"


def test_a_worktree_on_another_file_system_comes_and_goes(panes: PaneLab) -> None:
    from swarm.project.swarm_dir import dirs

    other = Path(
        tempfile.mkdtemp(prefix="swarm-other-", dir="/tmp" if panes.root.is_relative_to("/dev/shm") else "/dev/shm")
    )
    try:
        dirs.init_dir(other / "team")
        panes.env["SWARM_DIR"] = str(other / "team")
        (other / "team/roles/coder.yaml").write_text("name: coder\ninstructions: x\nworktree: {enabled: true}\n")
        handle = panes.open().run("coder", command=WAIT)
        tree = other / "team/worktrees/coder"
        assert handle.status().worktree == tree
        (tree / "new.txt").write_text("work")
        handle.stop()
        assert code_of(lambda: panes.open().cleanup(["coder"])) == "WORK_AT_RISK"
        panes.open().cleanup(["coder"], force=True)
        assert sorted(os.listdir(other / "team/worktrees")) in ([], [".gitignore"])
        panes.open().restore("coder")
        assert (tree / "new.txt").read_text() == "work"
        assert panes.one("coder", "coder").agent.tree == "own"
    finally:
        shutil.rmtree(other)


def test_a_worktree_that_is_none_any_more_is_refused_with_what_to_do(panes: PaneLab) -> None:
    role(panes, "coder", "worktree: {enabled: true}\n")
    handle = panes.swarm.run("coder", command=WAIT)
    handle.stop()
    tree = handle.status().worktree
    (tree / ".git").unlink()

    with pytest.raises(SwarmError) as raised:
        panes.swarm.run("coder", command=WAIT)

    assert raised.value.code == "WORKTREE_EXISTS"
    assert "swarm worktree remove" in raised.value.hint


def test_a_detached_worktree_has_no_branch_and_its_work_is_saved_all_the_same(panes: PaneLab) -> None:
    role(panes, "coder", "worktree: {enabled: true, use_detached_head: true}\n")
    before = panes.git("for-each-ref", "refs/heads")
    handle = panes.swarm.run("coder", command=WAIT)
    tree = handle.status().worktree

    assert panes.git("branch", "--show-current", cwd=tree) == ""
    assert panes.git("for-each-ref", "refs/heads") == before
    (tree / "new.txt").write_text("work")
    panes.git("add", "new.txt", cwd=tree)
    panes.git("commit", "-qm", "mine", cwd=tree)
    head = panes.git("rev-parse", "HEAD", cwd=tree)
    handle.stop()
    panes.swarm.cleanup(["coder"], force=True)
    assert not tree.exists()
    panes.swarm.restore("coder")
    assert panes.git("rev-parse", "HEAD", cwd=tree) == head


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("worktree: {enabled: true, branch_from: nowhere}\n", "BASE_NOT_FOUND"),
        ("root_dir: /does/not/exist\n", "CONFIG"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(panes: PaneLab, text: str, code: str) -> None:
    role(panes, "coder", text)
    before = panes.fingerprint()

    assert code_of(lambda: panes.swarm.run("coder", command=WAIT)) == code
    assert panes.fingerprint() == before
    assert panes.swarm.sessions() == ()


def test_git_says_why_a_commit_to_start_from_is_none(panes: PaneLab) -> None:
    """WT-57."""
    role(panes, "coder", "worktree: {enabled: true, branch_from: nowhere}\n")
    with pytest.raises(SwarmError) as raised:
        panes.swarm.run("coder", command=WAIT)
    assert raised.value.details == "fatal: bad revision 'nowhere'"


def test_a_missing_main_that_nobody_asked_for_names_the_branch_there_is(panes: PaneLab) -> None:
    """C-15: the default of ``run`` is main."""
    panes.git("branch", "-m", "trunk")
    role(panes, "coder", "worktree: {enabled: true}\n")

    with pytest.raises(SwarmError) as raised:
        panes.swarm.run("coder", command=WAIT)

    assert raised.value.code == "BASE_NOT_FOUND"
    assert raised.value.message.endswith("the role names no branch, and the main checkout is on trunk")
    assert raised.value.hint == "swarm run --role coder --override worktree.branch_from=trunk"
    handle = panes.swarm.run("coder", command=WAIT, overrides={"worktree.branch_from": "trunk"})
    assert handle.status().worktree.is_dir()


def test_overrides_count_before_the_place_is_chosen_and_need_a_role(panes: PaneLab) -> None:
    role(panes, "coder", "worktree: {branch_from: main}\n")
    handle = panes.swarm.run("coder", command=WAIT, overrides={"worktree.enabled": "true"})

    assert handle.status().worktree == panes.root / ".swarm/worktrees/coder"
    assert dict(handle.status().agent.overrides) == {"worktree.enabled": "true"}
    assert code_of(lambda: panes.swarm.run(name="x", command=WAIT, overrides={"model": "y"})) == "USAGE"
    assert [one.name for one in panes.swarm.sessions()] == ["coder"]


@pytest.mark.parametrize("words", [["--name", "x"], []])
def test_overrides_without_a_role_are_refused(panes: PaneLab, words: list[str]) -> None:
    """OVR-08: a command has no role whose keys could be changed; nothing is started, nothing left."""
    before = panes.fingerprint()

    done = panes.cli("run", *words, "--detach", "--override", "model=opus", "--", *WAIT)

    assert (done.returncode, "code: USAGE" in done.stderr, "swarm run --role ROLE" in done.stderr) == (2, True, True)
    assert done.stderr.startswith(f"error: cannot run{' x' if words else ''}: ")
    assert (panes.fingerprint(), panes.panes(), panes.swarm.sessions()) == (before, [], ())
    assert not (panes.root / ".swarm/sessions").exists()


# --- outside of a repository --------------------------------------------------------------------------


@pytest.fixture
def home(panes: PaneLab, tmp_path: Path) -> Swarm:
    """A swarm directory outside of any repository, opened from a folder outside as well."""
    from swarm.project.swarm_dir import dirs

    made = tmp_path / "team"
    dirs.init_dir(made)
    panes.env["SWARM_DIR"] = str(made)
    (tmp_path / "work").mkdir()
    return panes.open(tmp_path / "work")


def test_outside_of_a_repository_the_swarm_directory_is_the_home(home: Swarm, panes: PaneLab, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "a").write_text("a")
    before = file_digests(work)
    handle = home.run(name="foo", command=WAIT, directory=work)

    assert handle.status().worktree == work
    assert (tmp_path / "team/sessions/foo/session.json").exists()
    assert [one.session.name for one in panes.open(tmp_path / "team").status()] == ["foo"]
    assert home.send("foo@foo", "hello")[0].to == "foo@foo"
    handle.stop()
    handle.resume()
    wait_for(lambda: handle.status().status.runs, "it to run again")
    assert handle.restart().started
    assert panes.swarm.sessions() == ()  # the repository beside knows nothing of it
    home.cleanup(["foo"], force=True)
    assert home.sessions() == ()
    assert file_digests(work) == before
    assert all(check.state != "bad" for check in home.doctor())


def test_outside_of_a_repository_verbs_that_need_git_say_so(home: Swarm, tmp_path: Path) -> None:
    before = file_digests(tmp_path / "team")
    roles = tmp_path / "team/roles"
    (roles / "coder.yaml").write_text("name: coder\ninstructions: x\nworktree: {enabled: true}\n")

    assert code_of(lambda: home.start("fx", "developer", command=WAIT)) == "NOT_A_REPO"
    assert code_of(lambda: home.create("fx", "developer")) == "NOT_A_REPO"
    assert code_of(lambda: home.run("coder", command=WAIT)) == "NOT_A_REPO"
    (roles / "coder.yaml").unlink()
    assert home.sessions() == ()
    assert file_digests(tmp_path / "team") == before


def test_a_relative_root_dir_is_below_the_swarm_directory_and_in_the_repository_there(
    home: Swarm, panes: PaneLab, tmp_path: Path
) -> None:
    project = tmp_path / "team/projects/app"
    project.mkdir()
    panes.git("init", "-q", cwd=project)
    (tmp_path / "team/roles/dev.yaml").write_text("name: dev\ninstructions: x\nroot_dir: projects/app\n")

    handle = home.run("dev", command=WAIT)

    assert handle.status().worktree == project
    assert [one.name for one in panes.open(project).sessions()] == ["dev"]


def test_a_missing_root_dir_is_named(home: Swarm, tmp_path: Path) -> None:
    (tmp_path / "team/roles/dev.yaml").write_text("name: dev\ninstructions: x\nroot_dir: projects/none\n")

    with pytest.raises(ConfigProblem, match="projects/none is not a folder"):
        home.run("dev", command=WAIT)
