"""The demo agent: true work in a real worktree, and a prompt that behaves like an agent's."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.demo.me import Order, Task
from swarm.machine import processes
from swarm.machine.run_folder import program_facts
from swarm.testing.terminal import Pane, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

PROJECT = Path(__file__).resolve().parents[2]
PROMPT = "demo> "
QUICK = "demo: delay 0\n"


class Desk:
    """An agent's worktree in the lab, its run folder and its task."""

    def __init__(self, lab: Lab, folder: Path, actor: str) -> None:
        self.lab = lab
        self.actor = actor
        self.tree = lab.root / ".worktrees" / f"{actor}-s"
        self.run_dir = folder / "state" / "sessions" / "s" / "run" / actor
        self.run_dir.mkdir(parents=True)
        self.task = folder / f"{actor}.task"
        self.panes: list[Pane] = []
        lab.git("worktree", "add", "--quiet", "-b", f"swarm/{actor}-s", str(self.tree), "main")

    def start(self, task: str, *, role: str = "", columns: int = 80, rows: int = 24, **env: str) -> Pane:
        """Start it in a terminal."""
        self.task.write_text(QUICK + task)
        role = role or self.actor
        environ = {
            **self.lab.env,
            "PYTHONPATH": str(PROJECT),
            "SWARM_ACTOR": self.actor,
            "SWARM_ROLE": role,
            "SWARM_SESSION": "s",
            "SWARM_TASK_FILE": str(self.task),
            "SWARM_ROLE_FILE": str(PROJECT / "roles" / role / "CLAUDE.md"),
            "SWARM_RUN_DIR": str(self.run_dir),
            **env,
        }
        argv = [sys.executable, "-P", "-m", "swarm.demo_agent"]
        pane = Pane(argv, env=environ, cwd=self.tree, columns=columns, rows=rows)
        self.panes.append(pane)
        return pane

    @property
    def state(self) -> tuple[str, str]:
        """What it says of itself."""
        said = program_facts.read_state(self.run_dir)
        return ("", "") if said is None else (said.state, said.detail)

    def is_now(self, state: str, detail: str) -> None:
        """Wait until it says so."""
        wait_for(lambda: self.state == (state, detail), f"state {state}, {detail!r}; it is {self.state}")

    def subjects(self) -> list[str]:
        """Return its commits, newest first."""
        return self.lab.git("log", "--format=%s", "main..", cwd=self.tree).splitlines()

    def changed(self) -> list[str]:
        """Return the files that its commits touch."""
        return self.lab.git("diff", "--name-only", "main...", cwd=self.tree).splitlines()

    def notes(self) -> str:
        """Return what it wrote."""
        return (self.tree / "notes" / f"{self.actor}.md").read_text()


@pytest.fixture
def desks(lab: Lab, tmp_path: Path) -> Iterator[dict[str, Desk]]:
    found: dict[str, Desk] = {}

    class Desks(dict[str, Desk]):
        def __missing__(self, actor: str) -> Desk:
            found[actor] = self[actor] = Desk(lab, tmp_path, actor)
            return found[actor]

    yield Desks()
    for desk in found.values():
        for pane in desk.panes:
            pane.close()


@pytest.fixture
def desk(desks: dict[str, Desk]) -> Desk:
    return desks["developer"]


# --- the work ---------------------------------------------------------------------------------------


def test_a_developer_plans_writes_and_runs_a_program(desk: Desk) -> None:
    pane = desk.start("Add a login page\nwith two fields\ndemo: exit\n")

    assert pane.ended() == 0

    assert "demo agent: developer" in pane.text
    assert "Turns an agreed task into working, tested, committed code" in pane.text
    assert "Add a login page with two fields" in pane.text
    assert desk.subjects() == ["developer: run it", "developer: write the code", "developer: write down the plan"]
    assert desk.changed() == ["demo/developer.py", "notes/developer.md"]
    assert "Exit status 0; it said: Add a login page: done" in desk.notes()
    assert desk.lab.git("status", "--porcelain", cwd=desk.tree) == ""
    assert desk.state == ("done", "ended well")


def test_a_researcher_writes_down_what_is_true(desks: dict[str, Desk]) -> None:
    desk = desks["researcher"]

    assert desk.start("demo: exit").ended() == 0

    assert "4 tracked files, by kind:" in desk.notes()
    assert "- `.py`: 1" in desk.notes()
    assert "- `.gitignore`: 4" in desk.notes()
    assert f"- {desk.lab.git('rev-parse', '--short', 'main')} first" in desk.notes()


def test_a_reviewer_reads_the_branches_of_its_session_by_the_record(desks: dict[str, Desk]) -> None:
    for name in ("one", "two", "stranger"):
        text = f"demo: steps 0\ndemo: edit both.txt from {name}\ndemo: edit {name}.txt x\ndemo: exit"
        assert desks[name].start(text, role="developer").ended() == 0
    desk = desks["reviewer"]
    branches = [{"name": name, "branch": f"swarm/{name}-s"} for name in ("one", "two", "reviewer")]
    (desk.run_dir.parents[1] / "session.json").write_text(json.dumps({"schema": 1, "agents": branches}))

    assert desk.start("demo: exit").ended() == 0

    assert "- `swarm/one-s`: 2 commits, last " in desk.notes()
    assert "two.txt" in desk.notes()
    assert "stranger" not in desk.notes()
    assert desk.notes().rstrip().endswith("Changed by more than one agent:\n\n- `both.txt`")
    assert desk.changed() == ["notes/reviewer.md"]


def test_an_architect_and_a_role_of_the_users_own_work_too(desks: dict[str, Desk]) -> None:
    for role in ("architect", "translator"):
        assert desks[role].start("Split the billing module\ndemo: exit").ended() == 0
        assert len(desks[role].subjects()) == 3
    assert "- **billing**" in desks["architect"].notes()


def test_only_its_own_files_are_committed(desk: Desk) -> None:
    desk.lab.write({"mine.txt": "staged by a human", "other.txt": "lying about"}, cwd=desk.tree)
    desk.lab.git("add", "mine.txt", cwd=desk.tree)

    assert desk.start("demo: exit").ended() == 0

    assert desk.changed() == ["demo/developer.py", "notes/developer.md"]
    assert desk.lab.git("status", "--porcelain", cwd=desk.tree) == "A  mine.txt\n?? other.txt"


@pytest.mark.parametrize(
    ("config", "author"),
    [
        ("[user]\n\tuseConfigOnly = true\n", "developer (swarm demo) <developer@demo.invalid>"),
        ("[user]\n\temail = me@x\n\tuseConfigOnly = true\n", "developer (swarm demo) <me@x>"),
        ("[user]\n\tname = Me\n\temail = me@x\n", "Me <me@x>"),
    ],
)
def test_commits_are_signed_by_the_user_if_git_knows_one(desk: Desk, tmp_path: Path, config: str, author: str) -> None:
    (tmp_path / "identity").write_text(config + "[commit]\n\tgpgSign = true\n")

    pane = desk.start("demo: steps 1\ndemo: exit", GIT_CONFIG_GLOBAL=str(tmp_path / "identity"))

    assert pane.ended() == 0
    assert desk.lab.git("log", "-1", "--format=%an <%ae>", cwd=desk.tree) == author


def test_notes_go_elsewhere_when_the_project_ignores_their_folder(desk: Desk) -> None:
    exclude = desk.lab.root / ".git" / "info" / "exclude"
    exclude.write_text("/notes/\n")

    assert desk.start("demo: steps 1\ndemo: exit").ended() == 0

    assert desk.changed() == ["developer-notes.md"]


def test_notes_do_not_leave_the_worktree_by_a_link(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (desk.tree / "notes").symlink_to(tmp_path / "outside")

    assert desk.start("demo: steps 1\ndemo: exit").ended() == 0

    assert desk.changed() == ["developer-notes.md"]
    assert os.listdir(tmp_path / "outside") == []


def test_a_commit_that_git_refuses_is_told_and_work_goes_on(desk: Desk) -> None:
    hook = desk.lab.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no commits today >&2\nexit 1\n")
    hook.chmod(0o755)
    pane = desk.start("")

    assert "did not work: no commits today" in pane.see(PROMPT)
    assert desk.subjects() == []


def test_outside_a_repository_it_says_so(desk: Desk, tmp_path: Path) -> None:
    desk.tree = tmp_path
    pane = desk.start("", GIT_CEILING_DIRECTORIES=str(tmp_path.parent))

    assert pane.ended() == 1
    assert "cannot work here: fatal: not a git repository" in pane.text
    assert "Traceback" not in pane.text


# --- orders in the task -----------------------------------------------------------------------------


def test_a_task_is_taken_apart() -> None:
    task = Task.read(
        "# Ship it\n demo: steps 1\nnow\nDEMO: delay 0.25\ndemo:\ndemo: only a, dev: fail 3\ndemo: only b: crash\n"
        "demo: ask Deploy now?\ndemo: delay never\n",
        "DEV",
        "developer",
    )

    assert (task.text, task.topic, task.steps, task.delay) == ("# Ship it\nnow", "Ship it", 1, 0.25)
    assert task.orders == (Order("fail", "3"), Order("ask", "Deploy now?"), Order("delay", "never"))
    assert Task.read("").topic == "look around"
    assert Task.read("demo: steps 999").steps == 20


@pytest.mark.parametrize(
    ("order", "code"),
    [("fail 3", 3), ("fail", 1), ("exit", 0), ("crash", -signal.SIGKILL), ("only developer: fail 4", 4)],
)
def test_an_order_may_end_it(desk: Desk, order: str, code: int) -> None:
    assert desk.start(f"demo: steps 0\ndemo: {order}").ended() == code
    assert (desk.state[0] == "done") == (code == 0)


def test_orders_for_others_are_passed_over(desk: Desk) -> None:
    desk.start("demo: only reviewer: fail 3\ndemo: only developer, reviewer: say heard").see(f"heard\r\n{PROMPT}")


def test_edits_make_conflicts(desks: dict[str, Desk]) -> None:
    for name in ("one", "two"):
        pane = desks[name].start(f"demo: steps 0\ndemo: edit README {name} was here\ndemo: exit", role="developer")
        assert pane.ended() == 0
        assert (desks[name].tree / "README").read_text() == f"hello\n{name} was here\n"

    merged = subprocess.run(
        ["git", "merge-tree", "--write-tree", "swarm/one-s", "swarm/two-s"],
        cwd=desks["one"].lab.root,
        env=desks["one"].lab.env,
        capture_output=True,
        check=False,
    )
    assert merged.returncode == 1
    assert b"CONFLICT (content): Merge conflict in README" in merged.stdout


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("../../escape", "is not a file of this worktree"),
        ("/etc/escape", "is not a file of this worktree"),
        (".git", "is not a file of this worktree"),
        ("src", "is not a plain file"),
        ("secret/x", "git ignores secret/x"),
        ("README/x", "cannot write README/x"),
    ],
)
def test_an_edit_stays_in_the_worktree(desk: Desk, path: str, why: str) -> None:
    pane = desk.start(f"demo: steps 0\ndemo: edit {path} text")

    assert why in pane.see(PROMPT)
    assert desk.subjects() == []


# --- the prompt -------------------------------------------------------------------------------------


def _at_prompt(desk: Desk, **fields: int) -> Pane:
    pane = desk.start("demo: steps 0", **fields)  # type: ignore[arg-type]  # columns and rows
    pane.see(PROMPT)
    desk.is_now("idle", "ready")
    pane.forget()
    return pane


def test_it_is_idle_at_the_prompt_and_works_on(desk: Desk) -> None:
    pane = _at_prompt(desk)

    pane.type("work mend the door\n")
    assert "committed" in pane.see(PROMPT)
    pane.forget()
    pane.type("\nstatus\n")
    assert "last   " + desk.lab.git("log", "-1", "--format=%h %s", cwd=desk.tree) in pane.see(
        "notes  notes/developer.md"
    )

    desk.is_now("idle", "ready")
    assert desk.subjects() == ["developer: mend the door"]


def test_it_waits_for_an_answer(desk: Desk) -> None:
    pane = _at_prompt(desk)
    pane.type("ask Deploy now?\n")
    desk.is_now("waiting", "Deploy now?")
    pane.see("y/n> ")
    pane.type("perhaps\n")
    pane.see("y/n> perhaps\r\ny/n> ")
    assert desk.state == ("waiting", "Deploy now?")

    pane.type("y\n")

    pane.see(f"you said yes\r\n{PROMPT}")
    desk.is_now("idle", "ready")


def test_it_waits_for_a_permission(desk: Desk) -> None:
    pane = _at_prompt(desk)
    pane.type("permission Write\n")
    desk.is_now("waiting", "permission: Write")

    pane.type("no\n")

    pane.see(f"may not use Write\r\n{PROMPT}")
    desk.is_now("idle", "ready")


def test_it_can_be_busy_and_be_interrupted(desk: Desk) -> None:
    pane = _at_prompt(desk)
    pane.type("sleep 600\n")
    desk.is_now("working", "busy for 600 s")

    pane.type("\x03")

    pane.see(PROMPT)
    desk.is_now("idle", "ready")
    assert pane.is_running()


def test_ctrl_c_must_be_pressed_twice(desk: Desk) -> None:
    pane = _at_prompt(desk)
    pane.type("half a line\x03")
    pane.see(f"press again to exit\r\n{PROMPT}")
    pane.forget()
    pane.type("say still here\n")
    pane.see(f"still here\r\n{PROMPT}")
    pane.forget()

    pane.type("\x03")
    pane.see(PROMPT)
    assert pane.is_running()
    pane.type("\x03")

    assert pane.ended() == 130
    assert "Traceback" not in pane.text
    assert desk.state == ("idle", "ready")


def test_ctrl_c_in_the_work_leads_to_the_prompt(desk: Desk) -> None:
    pane = desk.start("demo: delay 600\ndemo: exit")
    desk.is_now("working", "[1/3] write down the plan")

    pane.type("\x03")

    assert "interrupted" in pane.see(PROMPT)
    desk.is_now("idle", "ready")


@pytest.mark.parametrize(("keys", "code"), [("exit\n", 0), ("\x04", 0), ("fail 7\n", 7), ("fail 256\nfail\n", 1)])
def test_how_it_is_ended(desk: Desk, keys: str, code: int) -> None:
    pane = _at_prompt(desk)

    pane.type(keys)

    assert pane.ended() == code
    assert desk.state == (("done", "ended well") if code == 0 else ("idle", "ready"))


def test_hanging_it_hears_nothing_but_signals(desk: Desk) -> None:
    pane = _at_prompt(desk)
    pane.type("hang\nsay heard\n")
    desk.is_now("working", "hanging")

    pane.send(signal.SIGTERM)

    assert pane.ended() == -signal.SIGTERM
    assert "\r\nheard" not in pane.text
    assert desk.state == ("working", "hanging")


def test_it_starts_a_process_that_leaves_its_group(desk: Desk) -> None:
    pane = _at_prompt(desk)
    pane.type("spawn\n")
    found = re.search(r"started process (\d+)\r\n", pane.see(PROMPT))
    assert found is not None

    child = int(found[1])

    assert os.getsid(child) == child
    start = processes.start_of(child)
    assert start is not None
    processes.send(child, start, signal.SIGKILL)


def test_help_and_what_is_not_understood(desk: Desk) -> None:
    pane = _at_prompt(desk)
    pane.type("dance\n")
    assert "unknown: dance; try help" in pane.see(PROMPT)
    pane.forget()
    pane.type("HELP\n")
    shown = pane.see("exit  end well")
    for word in ("work", "edit", "status", "ask", "permission", "say", "sleep", "spawn", "hang", "fail", "crash"):
        assert f"\r\n{word} " in shown


def test_it_takes_orders_from_a_pipe(desk: Desk) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "swarm.demo_agent"],
        cwd=desk.tree,
        env={**desk.lab.env, "PYTHONPATH": str(PROJECT), "SWARM_TASK_FILE": "/none"},
        input=b"say one\nask now?\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"nobody answered" in done.stdout
    assert done.stderr == b""


# --- the screen -------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 20])
def test_it_fits_a_small_pane(desk: Desk, columns: int) -> None:
    words = "Make the front page of the shop faster for visitors with an old telephone " * 5
    pane = desk.start(words + "\ndemo: say " + "x" * 100, columns=columns, rows=10)

    lines = pane.see(PROMPT).split("\r\n")

    assert max(map(len, lines)) < columns
    assert next(n for n, line in enumerate(lines) if line.startswith("[1/3]")) < 9


def test_without_colour_there_are_no_escapes(desk: Desk) -> None:
    assert "\x1b" not in desk.start("demo: fail", TERM="dumb").see("as asked")
    assert "\x1b" not in desk.start("demo: fail", TERM="tmux-256color", NO_COLOR="1").see("as asked")
    assert "\x1b[31mfailing with 1" in desk.start("demo: fail", TERM="tmux-256color").see("as asked")


def test_a_task_cannot_write_to_the_terminal(desk: Desk) -> None:
    pane = desk.start("Draw \x1b]0;owned\x07 and \x1b[2J\ndemo: say \x9b31m", TERM="tmux-256color", NO_COLOR="1")

    assert not set("\x1b\x07\x9b") & set(pane.see(PROMPT))


def test_a_terminal_of_another_character_set_does_not_stop_it(desk: Desk) -> None:
    pane = desk.start("Größe prüfen →\ndemo: exit", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    assert pane.ended() == 0
    assert "# developer: Größe prüfen →" in desk.notes()


def test_it_loads_little(desk: Desk) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import sys, swarm.demo.agent; print(*sys.modules)"],
        env={**desk.lab.env, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        check=True,
    )
    loaded = done.stdout.decode().split()
    assert not {"git", "yaml", "typer", "libtmux", "filelock", "asyncio"} & set(loaded)
    ours = {name for name in loaded if name.startswith("swarm.")}
    assert {name.split(".")[1] for name in ours} == {"version", "demo", "machine"}
