"""``start``: a worktree, a pane and a program for each agent, or nothing at all."""

from __future__ import annotations

import os
import shlex
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import SwarmError
from swarm.git.errors import BranchExists
from swarm.kit.errors import Refused
from swarm.sessions.create import create_checks, create_request
from swarm.sessions.errors import SessionExists
from swarm.terminal.tmux import Tmux
from swarm.testing.panes import QUICK, PaneLab, states, topology
from swarm.testing.terminal import wait_for
from tests.support.procs import Crew

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]
WAITER = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)")
BOTH = ("researcher", "developer")
#: Writes down what it was given, into its worktree's git folder, where nothing counts as work.
TELL = (
    "import os, subprocess, sys, time;"
    "env = open('/proc/self/environ', 'rb').read();"
    "there = subprocess.check_output(['git', 'rev-parse', '--absolute-git-dir'], text=True).strip();"
    "open(there + '/env.new', 'wb').write(env); os.rename(there + '/env.new', there + '/env');"
    "time.sleep(600)"
)


def users(lab: PaneLab) -> dict[str, Any]:
    """Return what of the repository is the user's."""
    return {key: value for key, value in lab.fingerprint().items() if key != "exclude"}


def refused(lab: PaneLab, code: str, act: Callable[[], object]) -> SwarmError:
    """Expect a refusal that leaves no trace."""
    before, windows = lab.fingerprint(), lab.tmux.rows("#{pane_id} #{pane_pid} #{window_name}")
    with pytest.raises(SwarmError) as raised:
        act()
    assert raised.value.code == code, raised.value
    assert lab.fingerprint() == before
    assert lab.tmux.rows("#{pane_id} #{pane_pid} #{window_name}") == windows
    assert lab.swarm.sessions() == ()
    assert not list(lab.root.glob(".worktrees/*-*"))
    assert not list(lab.root.glob(".swarm/sessions/*"))
    assert not list(lab.root.glob(".swarm/messages/inbox/*"))
    return raised.value


# --- the card -------------------------------------------------------------------------------------


def test_the_card(panes: PaneLab) -> None:
    before = users(panes)
    swarm = panes.swarm

    report = swarm.start("feature-x", "researcher,developer", program="demo", task=f"Look around\n{QUICK}")

    assert [agent.branch for agent in report.agents] == ["swarm/researcher-feature-x", "swarm/developer-feature-x"]
    assert panes.panes() == ["feature-x developer", "feature-x researcher"]
    for name in BOTH:
        found = panes.until(name, "idle")
        tree = panes.tree(name, "feature-x")
        assert found.worktree == tree
        assert (tree / "CLAUDE.local.md").read_text()
        assert panes.git("symbolic-ref", "--short", "HEAD", cwd=tree) == f"swarm/{name}-feature-x"
        assert panes.tmux("display-message", "-p", "-t", found.pane, "#{pane_current_path}") == str(tree)
        assert os.readlink(f"/proc/{found.pid}/cwd") == str(tree)
        panes.see(name, "Look around")
    assert panes.tmux.rows("#{session_name}", what="list-sessions") == ["swarm"]

    removed = swarm.cleanup(everything=True, force=True)

    assert (removed.worktrees_removed, removed.branches_removed) == (2, 2)
    assert users(panes) == before
    assert panes.panes() == []
    panes.all_ended()


def test_private_files_and_a_locked_worktree(panes: PaneLab) -> None:
    panes.start("developer", task=f"a secret goal\n{QUICK}")
    panes.until("developer", "idle")
    run = panes.run("developer")

    assert (run / "role.md").read_text() == panes.swarm.roles.get("developer").instructions
    assert (run / "task.md").read_text() == f"a secret goal\n{QUICK}"
    assert not (run / "launch.json").exists()
    for path in (run, *run.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    listed = panes.git("worktree", "list", "--porcelain")
    assert "locked swarm: agent developer of fx runs here" in listed
    tree = str(panes.tree("developer", "fx"))
    assert (
        "locked"
        in panes.git("worktree", "remove", "--force", tree, check=False)
        + panes.git(*("worktree", "remove", tree), check=False)
        or Path(tree).is_dir()
    )

    panes.swarm.stop(["fx"])

    assert "locked" not in panes.git("worktree", "list", "--porcelain")


def test_an_agents_environment_is_the_callers_and_swarms_words(panes: PaneLab) -> None:
    secret = "hunter2 with #{pid} and a\nline"
    panes.env |= {"API_KEY": secret, "ODD": "ü \udcff", "TERM": "xterm-strange", "COLUMNS": "33", "LINES": "7"}
    mine = {"GIT_AUTHOR_NAME": "Me", "GIT_SSH_COMMAND": "ssh -v"}
    redirects = {
        "GIT_DIR": "/x",
        "GIT_WORK_TREE": "/x",
        "GIT_INDEX_FILE": "/x",
        "GIT_PREFIX": "x",
        "GIT_NAMESPACE": "x",
        "GIT_OBJECT_DIRECTORY": "/x",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": "/x",
        "GIT_CONFIG_PARAMETERS": "'a.b'='c'",
        "TMUX": "/x,1,0",
        "TMUX_PANE": "%0",
        "SWARM_ACTOR": "me",
        "SWARM_SESSION": "outer",
        "SWARM_AGENT_ID": "outer",
        "SWARM_RUN_DIR": "/x",
    }
    panes.env |= mine
    swarm = type(panes.swarm).open(panes.root, environ={**panes.env, **redirects})

    swarm.start("fx", "developer", command=[sys.executable, "-I", "-S", "-c", TELL], task="the goal")

    file = panes.root / ".git/worktrees/developer-fx/env"
    wait_for(file.exists, "what the program was given")
    found = dict(os.fsdecode(item).split("=", 1) for item in file.read_bytes().removesuffix(b"\0").split(b"\0"))
    run, state = panes.run("developer"), panes.root / ".swarm"
    expected = {key: value for key, value in panes.env.items() if key not in {"TERM", "COLUMNS", "LINES"}}
    expected |= {
        "SWARM_DIR": str(state),
        "SWARM_STATE_DIR": str(state),
        "SWARM_SESSION": "fx",
        "SWARM_SESSION_ID": panes.one("developer").agent.branch,
        "SWARM_SESSION_DIR": str(run),
    }
    expected |= {"SWARM_ACTOR": "developer", "SWARM_ROLE": "developer", "SWARM_RUN_DIR": str(run)}
    expected |= {"SWARM_ROLE_FILE": str(run / "role.md"), "SWARM_TASK_FILE": str(run / "task.md")}
    stamp = found.pop("SWARM_AGENT_ID")
    terminal = {key: found.pop(key, "") for key in ("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")}
    assert found == expected
    assert stamp.endswith("/fx/developer")
    assert terminal["TERM"].startswith(("screen", "tmux"))
    assert terminal["TERM_PROGRAM"] == "tmux"


def test_no_secret_in_arguments_or_in_tmux(panes: PaneLab) -> None:
    panes.env |= {"API_KEY": "hunter2"}
    panes.start("researcher,developer", task=f"the word is hunter2\n{QUICK}")
    panes.all_until("idle")

    known = panes.tmux("show-environment", "-g") + panes.tmux("show-environment", "-t", "=swarm:")
    everything = panes.tmux("list-panes", "-a", "-F", "#{pane_start_command} #{pane_title}") + known
    assert "hunter2" not in everything
    lines = panes.processes().values()
    assert lines
    assert not [line for line in lines if "hunter2" in line]
    server = Path(f"/proc/{panes.tmux.pid()}/environ").read_bytes()
    assert b"hunter2" not in server
    panes.only(*panes.programs(), *(panes.note(name, "process.json")["supervisor_pid"] for name in BOTH))
    left = [path for path in (panes.root / ".swarm").rglob("*") if path.is_file() and b"API_KEY" in path.read_bytes()]
    assert left == []


def test_the_record_knows_what_was_asked_for(panes: PaneLab) -> None:
    panes.start("lead=architect,developer:2", task=f"The goal\n{QUICK}")

    session = panes.swarm.sessions.get("fx")

    assert session.task == f"The goal\n{QUICK}"
    assert [(a.name, a.role, a.program) for a in session.agents] == [
        *(("lead", "architect", "demo"), ("developer-1", "developer", "demo"), ("developer-2", "developer", "demo")),
    ]
    assert len({agent.conversation for agent in session.agents}) == 3


def test_a_base_and_a_dry_run(panes: PaneLab) -> None:
    panes.git("branch", "old")
    panes.write({"later.txt": "x\n"})
    panes.commit("later")
    before = panes.fingerprint()

    report = panes.swarm.start("fx", "developer:2", base="old", program="demo", dry_run=True)

    assert report.dry_run
    assert any("pane" in step for step in report.steps)
    assert panes.fingerprint() == before
    assert not (panes.root / ".swarm").exists()
    assert panes.tmux.pid() == 0

    panes.start("developer:2", base="old")

    assert not (panes.tree("developer-1", "fx") / "later.txt").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("sh -c 'echo \"said $0 $1\"; sleep 600' one 'two  three'", "said one two  three"),
        (["sh", "-c", "echo '#(touch x)' '#{pid}'; sleep 600"], "#(touch x) #{pid}"),
    ],
)
def test_any_command(panes: PaneLab, command: Any, words: str) -> None:
    panes.start("developer", command=command)

    panes.see("developer", words)
    assert panes.state("developer") == "unknown"
    assert not list(panes.root.rglob("x"))


def test_a_shell_is_idle_at_its_prompt_and_works_otherwise(panes: PaneLab) -> None:
    panes.start("developer", program="shell")
    panes.until("developer", "idle")

    panes.type("developer", "sleep 600; echo over")
    panes.until("developer", "working")
    panes.tmux("send-keys", "-t", panes.one("developer").pane, "C-c")
    panes.until("developer", "idle")
    panes.type("developer", "pwd; echo $SWARM_ACTOR; exit 3")
    panes.see("developer", str(panes.tree("developer", "fx"))[-30:])

    assert panes.until("developer", "failed").status.detail == "exit status 3"


# --- refusals, before anything exists -------------------------------------------------------------


def test_tmux_is_missing(panes: PaneLab, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("git", "sh", "env"):
        real = next(Path(folder, tool) for folder in panes.env["PATH"].split(":") if Path(folder, tool).exists())
        (tools / tool).symlink_to(real)
    panes.env["PATH"] = str(tools)

    problem = refused(panes, "TMUX_MISSING", panes.start)

    assert problem.exit_code == 5
    assert panes.swarm.status() == ()


def test_tmux_is_too_old(panes: PaneLab) -> None:
    panes.program("tmux", '#!/bin/sh\n[ "$1" = -V ] && echo "tmux 3.1c" && exit\nexit 1\n')

    problem = refused(panes, "TMUX_TOO_OLD", panes.start)

    assert "3.1c" in str(problem)


def test_somebody_elses_session_is_called_swarm(panes: PaneLab) -> None:
    panes.tmux("new-session", "-d", "-s", "swarm", *WAITER)

    problem = refused(panes, "TMUX_SESSION_TAKEN", panes.start)

    assert "tmux.session" in problem.hint
    panes.env["SWARM_TMUX_SESSION"] = "agents"
    panes.start()
    assert set(panes.tmux.rows("#{session_name}", what="list-sessions")) == {"swarm", "agents"}
    assert len(panes.tmux.rows("#{pane_id}", "-s", "-t", "=swarm:")) == 1


def test_the_program_is_missing(panes: PaneLab) -> None:
    panes.program("codex", "#!/bin/sh\nexit 0\n")

    problem = refused(panes, "AGENT_MISSING", lambda: panes.swarm.start("fx", "developer"))

    assert "claude" in str(problem)
    assert "codex, shell, demo" in problem.hint
    assert "--agent demo" in problem.hint
    refused(panes, "USAGE", lambda: panes.swarm.start("fx", "developer", program="nonsense"))
    refused(panes, "AGENT_MISSING", lambda: panes.swarm.start("fx", "developer", command="not-there --x"))


def test_the_sockets_folder_is_missing(panes: PaneLab) -> None:
    panes.env["SWARM_TMUX_SOCKET"] = f"{panes.tmux.folder}/no/such/socket"

    refused(panes, "TMUX_FAILED", panes.start)


def test_everything_that_is_wrong_at_once(panes: PaneLab, tmp_path: Path) -> None:
    panes.tmux("new-session", "-d", "-s", "swarm", *WAITER)
    panes.git("branch", "swarm/developer-fx")

    problem = refused(panes, "ROLE_NOT_FOUND", lambda: panes.swarm.start("fx", "developer,nobody", base="nowhere"))

    assert isinstance(problem, Refused)
    codes = {one.code for one in problem.problems}
    assert codes == {"ROLE_NOT_FOUND", "BASE_NOT_FOUND", "TMUX_SESSION_TAKEN", "AGENT_MISSING", "BRANCH_EXISTS"}


def test_a_session_that_is_there_already(panes: PaneLab) -> None:
    panes.start("developer")
    before = topology(panes)

    with pytest.raises(SwarmError) as raised:
        panes.start("reviewer")

    assert (raised.value.code, raised.value.exit_code) == ("SESSION_EXISTS", 3)
    assert "swarm resume fx" in raised.value.hint
    assert topology(panes) == before


@pytest.mark.parametrize("task", ["", "#(touch {0}/spot) `touch {0}/spot` $(touch {0}/spot)", "-x --help", "ü" * 5000])
def test_a_task_is_only_text(panes: PaneLab, tmp_path: Path, task: str) -> None:
    panes.start("developer", task=f"{task.format(tmp_path)}\n{QUICK}")

    panes.until("developer", "idle")

    assert (panes.run("developer") / "task.md").read_text() == f"{task.format(tmp_path)}\n{QUICK}"
    assert not (tmp_path / "spot").exists()


# --- taken back ----------------------------------------------------------------------------------


class NoRoom(Tmux):
    """tmux in a window that only half of them fit in."""

    def _session_options(self) -> list[list[str]]:
        return [*super()._session_options(), ["resize-window", "-t", f"={self._session}:", "-x", "10", "-y", "5"]]


def test_a_pane_that_cannot_be_opened_takes_everything_back(panes: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swarm.terminal.tmux.Tmux", NoRoom)

    problem = refused(panes, "TMUX_FAILED", lambda: panes.start("developer:12"))

    assert "no space for new pane" in str(problem)
    assert problem.exit_code in {1, 5}
    assert panes.swarm.operations.unfinished() == ()
    wait_for(lambda: panes.agents_processes() == {}, "the end of the launchers")
    monkeypatch.undo()
    panes.start("developer:12")


def test_an_unknown_program_does_not_hide_the_other_problems(panes: PaneLab) -> None:
    with pytest.raises(Refused) as raised:
        panes.start("nobody,developer", program="nothing")

    assert {problem.code for problem in raised.value.problems} == {"ROLE_NOT_FOUND", "USAGE"}
    assert not (panes.root / ".swarm").exists()


def test_a_server_that_will_not_stay_takes_everything_back(panes: PaneLab) -> None:
    Path(panes.env["HOME"], ".tmux.conf").write_text("set -s exit-unattached on\n")

    refused(panes, "TMUX_FAILED", panes.start)

    wait_for(lambda: panes.processes() == {}, "the end of everything")


def test_a_failing_start_leaves_other_panes_alone(panes: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    panes.start("developer", "one")
    panes.tmux("new-window", "-t", "=swarm:", *WAITER)
    panes.tmux("new-session", "-d", "-s", "mine", *WAITER)
    panes.until("developer", "idle")
    before = panes.tmux.rows("#{pane_id} #{pane_pid} #{window_id} #{session_name} #{@swarm_mark}")
    panes.tmux("set-option", "-t", "=swarm:", "default-size", "20x6")

    with pytest.raises(SwarmError):
        panes.start("developer:16", "two")

    assert panes.tmux.rows("#{pane_id} #{pane_pid} #{window_id} #{session_name} #{@swarm_mark}") == before
    assert [session.name for session in panes.swarm.sessions()] == ["one"]
    assert panes.state("developer") == "idle"


# --- several --------------------------------------------------------------------------------------


def test_sixty_four_agents(panes: PaneLab) -> None:
    panes.start("developer:64", command=[*WAITER])
    panes.all_until("unknown", deadline=90)

    rows = [row.split() for row in panes.tmux.rows("#{window_id} #{pane_width} #{pane_height} #{@swarm_agent}")]
    assert len({row[3] for row in rows}) == 64
    assert len({row[0] for row in rows}) == 4
    assert min(int(row[1]) for row in rows) >= 55
    assert min(int(row[2]) for row in rows) >= 14

    report = panes.swarm.stop(["fx"])

    assert (len(report.stopped), report.survivors) == (64, ())


def test_the_same_session_twice_at_the_same_moment(panes: PaneLab) -> None:
    crew = Crew(panes)
    for _ in range(4):
        crew.add("attempt(lambda: Swarm.open(root).start('fx', 'researcher,developer', program='demo'))")

    said = sorted(word for words in crew.go() for word in words)

    assert said.count("DONE") == 1
    assert set(said) == {"DONE", "SESSION_EXISTS"}  # whoever looked while it was half made has looked again
    assert panes.panes() == ["fx developer", "fx researcher"]


def test_what_another_had_half_made_is_looked_at_again(panes: PaneLab, monkeypatch: pytest.MonkeyPatch) -> None:
    real = create_checks.check

    def early(*_args: object, **_how: object) -> create_request.Start:
        monkeypatch.setattr(create_checks, "check", real)
        panes.start("developer")
        raise BranchExists("branch swarm/developer-fx already exists")  # as seen before the record was there

    monkeypatch.setattr(create_checks, "check", early)

    with pytest.raises(SessionExists):
        panes.start("developer")


def test_several_sessions_at_the_same_moment(panes: PaneLab) -> None:
    crew = Crew(panes)
    for _ in range(3):
        crew.add("attempt(lambda: Swarm.open(root).start(f's{number}', 'developer:2', program='demo'))")

    assert crew.go() == [["DONE"]] * 3
    assert panes.panes() == sorted(f"s{n} developer-{m}" for n in range(3) for m in (1, 2))
    assert panes.tmux.rows("#{session_name}", what="list-sessions") == ["swarm"]


def test_two_repositories_at_the_same_moment_in_one_tmux_session(panes: PaneLab, tmp_path: Path) -> None:
    """Both make the session, both are called alike; nobody's pane gets the other's marks."""
    other = PaneLab(tmp_path / "other", share=panes)
    other.env["HOME"] = panes.env["HOME"]
    crews = []
    for lab in (panes, other):
        crew = Crew(lab)
        # Too many for one message to tmux, so the first window and the rest are opened one after the other.
        crew.add("attempt(lambda: Swarm.open(root).start('fx', 'developer:20', command=['sleep', '600']))")
        crews.append(crew)
    said = _at_once(crews)

    assert said == [["DONE"], ["DONE"]]
    assert panes.tmux.rows("#{session_name}", what="list-sessions") == ["swarm"]
    for lab in (panes, other):
        found = lab.swarm.status("fx", look=False)[0].agents
        homes = {a.agent.name: panes.tmux("display-message", "-p", "-t", a.pane, "#{pane_current_path}") for a in found}
        assert homes == {a.agent.name: str(a.worktree) for a in found}
    panes.swarm.cleanup(["fx"], force=True)
    assert len(panes.panes()) == 20
    assert len({a.pane for a in other.swarm.status("fx", look=False)[0].agents}) == 20
    assert set(states(other.swarm)) == {f"developer-{n}" for n in range(1, 21)}
    other.swarm.cleanup(["fx"], force=True)
    assert panes.panes() == []


def _at_once(crews: list[Crew]) -> list[Any]:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(len(crews)) as pool:
        return [said for found in pool.map(lambda crew: crew.go(), crews) for said in found]


# --- odd surroundings -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["#(touch spot)", "#{pid} a;b", 'quo\'te "x" $HOME', "ü ~"])
def test_a_repository_with_an_odd_path(tmp_path: Path, name: str) -> None:
    lab = PaneLab(tmp_path.resolve(), name)
    try:
        lab.start("developer:2")
        lab.all_until("idle")
        assert set(lab.tmux.rows("#{pane_current_path}")) == {str(lab.tree(f"developer-{n}", "fx")) for n in (1, 2)}
        assert not list(tmp_path.rglob("spot"))
        assert not Path("spot").exists()
        lab.swarm.cleanup(everything=True, force=True)
        assert lab.panes() == []
    finally:
        lab.close()


@pytest.mark.parametrize(
    "config",
    [
        "set -g base-index 1\nsetw -g pane-base-index 1\nset -g renumber-windows on\n",
        "set -g remain-on-exit off\nset -g default-command false\nset -g default-shell /bin/false\n",
        "set -g destroy-unattached on\nset -g exit-empty on\n",
    ],
)
def test_the_users_settings_do_not_matter(panes: PaneLab, config: str) -> None:
    Path(panes.env["HOME"], ".tmux.conf").write_text(config)

    panes.start("developer:3", task=f"{QUICK}demo: only developer-2: fail 4\n")

    panes.until("developer-1", "idle")
    assert panes.until("developer-2", "failed").pane
    panes.see("developer-2", "ended: exit status 4")
    panes.swarm.stop(["fx"])
    wait_for(lambda: panes.tmux.rows("#{pane_dead}") == ["1"] * 3, "three dead panes that stay")
    panes.swarm.resume(["fx"])
    panes.until("developer-3", "idle")
    assert len(panes.panes()) == 3


def test_a_foreign_session_with_a_dangerous_name(panes: PaneLab, tmp_path: Path) -> None:
    panes.tmux("new-session", "-d", "-s", "theirs", *WAITER)
    odd = f"#(touch {tmp_path}/spot)".replace("#", "##")  # once is expanded here
    panes.tmux("rename-session", "-t", "=theirs", odd)
    panes.tmux("rename-window", "-t", "%0", odd)
    panes.tmux("new-session", "-d", "-s", "swarm-other", *WAITER)

    panes.start()
    panes.all_until("idle")
    panes.swarm.stop(["fx"])
    panes.swarm.cleanup(["fx"])

    assert not list(tmp_path.glob("spot*"))
    assert len(panes.tmux.rows("#{session_name}", what="list-sessions")) == 2


def test_an_agent_asks_swarm_in_its_own_pane(panes: PaneLab) -> None:
    panes.start("developer", program="shell")
    panes.until("developer", "idle")

    swarm = f"{shlex.quote(sys.executable)} -P -m swarm"
    panes.type("developer", f"{swarm} status --json > ../out.json; {swarm} list")
    panes.see("developer", "AGENT")
    panes.type("developer", f"{swarm} start inner --roles reviewer --agent demo")
    panes.see("developer", "started session inner")

    out = (panes.root / ".worktrees" / "out.json").read_text()
    assert '"name": "developer"' in out
    assert panes.panes() == ["fx developer", "inner reviewer"]
    assert panes.swarm.operations()[-1]["actor"] == "developer@fx"
