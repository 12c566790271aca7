"""A stage whose agents were started by `swarm start`: hostile programs in panes, which do what a test hands them.

test ── <worktree>/ask.json ──► hostile program ── <worktree>/answer.json ──► test, which judges from outside
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import swarm
from swarm.testing.terminal import wait_for
from tests.sandbox.conftest import SESSION, Boxed
from tests.sandbox.stage import Outcome, Probe, Stage

if TYPE_CHECKING:
    from swarm.testing.lab import Lab

_HOSTILE = """#!/usr/bin/python3 -IS
import json, os, subprocess, time
open("begun", "w").close()
while True:
    try:
        os.rename("ask.json", "asked.json")
    except OSError:
        time.sleep(0.02)
        continue
    argv = json.load(open("asked.json"))
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, close_fds=False)
        code, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, said = -1, late.stdout or b""
    except OSError as error:
        code, said = 127, str(error).encode()
    with open("answer.new", "w") as file:
        json.dump([code, said.decode("utf-8", "replace")], file)
    os.rename("answer.new", "answer.json")
"""
#: What supervisors write for agents that work: nothing of it may hold what a probe wrote.
_ALIVE = re.compile(
    r"/\.swarm/(?:sessions/[^/]*/run|journal|trash|lock|messages|events|server|log|tasks)(?:/|$)|/\.swarm/sessions/[^/]*/box/[^/]*/(?:io|taken|looked\.json|run)"
    r"|/\.git/(?:objects|logs|refs/heads/swarm|refs/swarm|packed-refs|index|worktrees/[^/]*/(?:index|logs|locked|ORIG_HEAD))"
    r"|/agents\.tmux|/tmux-|/home/(?!.*\.bashrc)|/(?:ask|asked|answer|begun)"
)
_PLANTED = b"planted\n"
#: Which task takes the place of which agent.
TASKS = {"developer": SESSION, "reviewer": "feature-y"}


def ordinary_python(folder: Path) -> str:
    """Return a Python with swarm that every user can run: ours may lie in a home of root's. Empty: there is none."""
    made = folder / "venv"
    system = shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""
    argv = [system, "-m", "venv", "--without-pip", str(made)]
    if not system or subprocess.run(argv, capture_output=True, check=False).returncode:
        return ""
    (packages,) = made.glob("lib/python3.*/site-packages")
    here = next(Path(one) for one in sys.path if one.endswith("site-packages"))
    (packages / "ours.pth").write_text(f"{Path(swarm.__file__).parent.parent}\n{here}\n")
    command = made / "bin/swarm"
    command.write_text(f"#!{made}/bin/python\nimport sys\nfrom swarm.cli.main import main\nsys.exit(main())\n")
    command.chmod(0o755)
    done = subprocess.run([made / "bin/python", "-c", "import swarm.api.swarm"], capture_output=True, check=False)
    return str(made / "bin/python") if done.returncode == 0 else ""


class Launched(Stage):
    """A stage whose developer and reviewer were started by `swarm start`.

    Args:
        boxed: with ``--sandbox``, or without.
    """

    def __init__(self, *, as_user: bool, boxed: bool = True) -> None:
        self._sandbox = ["--sandbox"] if boxed else ["--no-sandbox"]
        super().__init__(as_user=as_user)

    def _team(self, lab: Lab) -> Boxed:
        lab.git("config", "http.extraheader", f"Authorization: {self.token}")
        lab.git("branch", "precious")
        lab.write({".gitignore": "begun\nask*\nanswer*\n"})
        lab.commit("ignore what is said")
        program = self.top / "hostile"
        program.write_text(_HOSTILE)
        program.chmod(0o755)
        self.lab = lab
        self.python = ordinary_python(self.top) if self._drop else sys.executable
        if not self.python:
            pytest.skip("there is no Python that an ordinary user can run swarm with")
        self.env = {
            **lab.env,
            "PATH": f"{Path(self.python).parent}:{os.environ['PATH']}",
            "SWARM_TMUX_SOCKET": str(self.top / "agents.tmux"),
            "SWARM_AGENTS_NUDGE": "never",
            "API_KEY": self.token,
            "SHELL": "/bin/sh",
        }
        self._hand_over()
        self._stack.callback(self._end)
        self._launch(str(program))
        boxed = Boxed.__new__(Boxed)
        boxed.lab, boxed.agent, boxed.tree = lab, "developer", self.tree_of("developer")
        boxed.base = self.base_of("developer")
        for agent in ("developer", "reviewer"):
            wait_for((self.tree_of(agent) / "begun").exists, f"the program of {agent}", 90)
            home = self.base_of(agent) / "home"
            home.mkdir(parents=True, exist_ok=True)  # an agent without a box has none
            (home / "secret").write_text(self.token if agent == "reviewer" else "mine")
        return boxed

    def _launch(self, program: str) -> None:
        """Start the hostile program for both."""
        self.swarm("start", SESSION, "--roles", "developer,reviewer", "--agent-cmd", program, *self._sandbox)

    def tree_of(self, agent: str) -> Path:
        """Return where an agent works."""
        return self.lab.tree(agent)

    def base_of(self, agent: str) -> Path:
        """Return the folder of an agent's box."""
        return self.lab.root / f".swarm/sessions/{SESSION}/box/{agent}"

    def swarm(self, *words: str, code: int = 0) -> str:
        """Run swarm as the owner of the repository."""
        done = self._swarm(*words)
        assert done.returncode == code, (words, done)
        return done.stdout

    def _swarm(self, *words: str) -> subprocess.CompletedProcess[str]:
        argv = [*self._drop, self.python, "-P", "-m", "swarm", "-C", str(self.lab.root), *words]
        return subprocess.run(argv, env=self.env, cwd="/", capture_output=True, text=True, check=False)

    def _end(self) -> None:
        kill = (*self._drop, "tmux", "-S", self.env["SWARM_TMUX_SOCKET"], "kill-server")
        subprocess.run(kill, check=False, env={"PATH": os.environ["PATH"]}, capture_output=True)
        trees = [self.tree_of(one) for one in ("developer", "reviewer")]
        wait_for(lambda: not any(_works_in(tree) for tree in trees), "the end of the agents", 60)

    def ask(self, agent: str, argv: tuple[str, ...]) -> Outcome:
        """Have an agent run something, and judge."""
        tree = self.tree_of(agent)
        new = tree / "ask.new"
        new.write_text(json.dumps(argv))
        os.chmod(new, 0o666)
        if self._drop:
            shutil.chown(new, 65534, 65534)
        new.rename(tree / "ask.json")
        wait_for((tree / "answer.json").exists, f"the answer of {agent}", 90)
        code, said = json.loads((tree / "answer.json").read_text())
        (tree / "answer.json").unlink()
        return Outcome(tuple(self._judge(said, b"")), code, said)

    def probe(self, probe: Probe, agent: str = "developer") -> Outcome:
        """Have an agent try a probe, and judge."""
        return self.ask(agent, self._words(probe))

    def _fingerprint(self) -> dict[str, str]:
        found = super()._fingerprint()
        for path in [one for one in found if _ALIVE.search(one)]:
            found[path] = "planted" if _holds_planted(path) else "alive"
        return {path: what for path, what in found.items() if what != "alive"}


class LaunchedTasks(Launched):
    """The same with two tasks that were submitted by `swarm task`.

    Args:
        worktree: each in a worktree; else each in a folder of its own.
    """

    def __init__(self, *, as_user: bool, boxed: bool = True, worktree: bool = False) -> None:
        self._worktree = worktree
        super().__init__(as_user=as_user, boxed=boxed)

    def _launch(self, program: str) -> None:
        for agent, task in TASKS.items():
            where = ("--worktree", "--role", agent) if self._worktree else ("--session", task)
            how = ("--agent-cmd", program, "--id", task, "--timeout", "2h", "--detach", *self._sandbox)
            self.swarm("task", "submit", "be hostile", *where, *how)

    def tree_of(self, agent: str) -> Path:
        """Return where a task works."""
        if self._worktree:
            return self.lab.tree(agent, TASKS[agent])
        return self.lab.root / ".swarm/workspaces" / TASKS[agent] / "work"

    def base_of(self, agent: str) -> Path:
        """Return the folder of a task's box."""
        if self._worktree:
            return self.lab.root / f".swarm/sessions/{TASKS[agent]}/box/{agent}"
        return self.lab.root / ".swarm/workspaces" / TASKS[agent] / ".swarm-box"

    def _other_tree(self, lab: Lab) -> Path:  # as that of agents
        return self.tree_of("reviewer")

    def _words(self, probe: Probe) -> tuple[str, ...]:
        """Return a probe that is about the other task, where it would be about the other agent."""
        script = probe.script.replace("reviewer-feature-x", f"reviewer-{TASKS['reviewer']}")
        script = script.replace(f"@ROOT@/.swarm/sessions/{SESSION}/box/reviewer", str(self.base_of("reviewer")))
        return super()._words(probe._replace(script=script))

    def _end(self) -> None:
        for task in TASKS.values():
            self._swarm("task", "cancel", task)  # one may be over: the other has ended it
        super()._end()

    def _fingerprint(self) -> dict[str, str]:
        found = super()._fingerprint()
        if not self._worktree:
            del found["the tree's .git"]  # here it is the program's own
        return found


def _holds_planted(path: str) -> bool:
    try:
        return os.path.isfile(path) and _PLANTED in Path(path).read_bytes()
    except OSError:
        return False


def _works_in(tree: Path) -> bool:
    """Whether a process works in a folder."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd") == str(tree):
                return True
        except OSError:
            continue
    return False
