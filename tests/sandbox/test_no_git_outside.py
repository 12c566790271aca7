"""Every command that looks: the machine's git runs in no folder that an agent in a box can write (point 5).

A git of the test's stands first in the path and notes where it runs and on what; in a box there is the machine's own.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600), pytest.mark.usefixtures("boxes")]

_AGENT = "developer@s"
#: The agent commits, changes, adds a nested repository with a filter of its own, and goes on to do so.
_WORK = """sh -ec '
echo 1 > one; git add one; git commit -qm one; echo 2 >> README; echo 3 > three
git init -q nested; cd nested; git config filter.x.clean "touch @MARK@; cat"; git config core.fsmonitor "touch @MARK@"
echo "* filter=x" > .gitattributes; echo n > n; git add -A; git commit -qm n; echo m >> n; cd ..
git checkout -q -b side; git stash -q; git stash apply -q; git checkout -q swarm/developer-s; touch ready
while :; do sleep 1; done'"""
#: In this order; the last ones remove the worktree.
COMMANDS = (
    *("status", "status --json", "list", f"why {_AGENT}", f"peek {_AGENT}", f"transcript {_AGENT}", "usage"),
    *(f"diff {_AGENT}", f"diff {_AGENT} --patch", "conflicts", "conflicts s", "merge s --dry-run"),
    *("merge s", f"merge {_AGENT} --committed-only", "worktree list", f"worktree show {_AGENT}", "tree", "log"),
    *("events", "doctor", "validate", "recover", f"path {_AGENT}", f"sandbox explain {_AGENT}", "salvage list"),
    *(f"fork {_AGENT}", "cleanup s --dry-run", "cleanup s", f"worktree remove {_AGENT}"),
    *("stop s", "status", f"why {_AGENT}", f"diff {_AGENT}", "resume s", "stop s", f"restart {_AGENT}", "stop s"),
    *("cleanup s --force", "salvage list", f"salvage show {_AGENT}", "restore s", "status", f"diff {_AGENT}"),
    "cleanup s --force --discard",
)


class Ran(NamedTuple):
    """One git on the machine: where, with which variables, and its words."""

    cwd: str
    env: dict[str, str]
    argv: list[str]


class Noted:
    """The gits of a lab, from now on."""

    def __init__(self, panes: PaneLab) -> None:
        folder = panes.root.parent / "noting"
        folder.mkdir()
        self._log = folder / "log"
        real = shutil.which("git", path="/usr/local/bin:/usr/bin:/bin")
        program = folder / "git"
        program.write_text(
            f"#!{shutil.which('python3', path='/usr/bin:/usr/local/bin')} -IS\n"
            "import json, os, sys\n"
            "env = {k: v for k, v in os.environ.items() if k.startswith('GIT_')}\n"
            f"fd = os.open({str(self._log)!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
            "os.write(fd, (json.dumps([os.getcwd(), env, sys.argv[1:]]) + '\\n').encode())\n"
            "os.close(fd)\n"
            f"os.execv({real!r}, ['git', *sys.argv[1:]])\n"
        )
        program.chmod(0o755)
        panes.env["PATH"] = f"{folder}:{panes.env['PATH']}"

    def take(self) -> list[Ran]:
        """Return those that ran since the last question."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.write_text("")
        return [Ran(*json.loads(line)) for line in lines]


def on_what_an_agent_writes(ran: Ran, writable: list[str]) -> bool:
    """Whether a git runs there, takes its files from there, or is told of it."""
    names = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
    words = [ran.cwd, *(ran.env.get(name, "") for name in names), *ran.argv]
    return any(f"{word}/".startswith(f"{one}/") for word in words for one in writable)


def test_no_command_runs_git_where_an_agent_in_a_box_can_write(panes: PaneLab) -> None:
    noted = Noted(panes)
    mark = panes.root.parent / "mark"
    tree = panes.tree("developer", "s")
    work = _WORK.replace("@MARK@", str(mark))
    started = panes.cli("start", "s", "--roles", "developer", "--sandbox", "--agent-cmd", work)
    assert started.returncode == 0, started
    wait_for((tree / "ready").exists, "the agent's work", 60)
    box = panes.root / ".swarm/sessions/s/box/developer"
    writable = [str(tree), str(box / "git"), str(box / "home")]
    noted.take()  # those that made the worktree, before there was an agent

    bad: dict[str, list[Ran]] = {}
    ran: dict[str, int] = {}
    for command in COMMANDS:
        done = panes.cli(*command.split())
        assert done.returncode in (0, 1, 4, 6), (command, done)
        assert "this is a bug" not in done.stderr, (command, done)
        found = noted.take()
        ran[command] = len(found)
        wrong = [one for one in found if on_what_an_agent_writes(one, writable) and not _is_new(one, command)]
        if wrong:
            bad[command] = wrong

    assert bad == {}
    assert not mark.exists()
    assert sum(ran.values()) > 100  # the machine's git did work, elsewhere


def _is_new(ran: Ran, command: str) -> bool:
    """Whether a git writes a worktree that nobody has worked in; it reads no file of it."""
    return command == "restore s" and bool({"worktree", "read-tree", "checkout-index"}.intersection(ran.argv))


def test_a_git_on_what_the_agent_writes_would_be_seen(panes: PaneLab) -> None:
    noted = Noted(panes)
    tree = panes.root / "tree"
    git = shutil.which("git", path=panes.env["PATH"]) or ""
    for argv, env in (
        (["-C", str(tree), "status"], {}),
        (["status"], {"GIT_WORK_TREE": str(tree)}),
        (["status"], {"GIT_DIR": f"{tree}/.git"}),
    ):
        os.spawnve(os.P_WAIT, git, ["git", *argv], {**panes.env, **env})

    assert [on_what_an_agent_writes(one, [str(tree)]) for one in noted.take()] == [True] * 3
