"""What the verbs cost, counted: programs started, files opened, bytes written, none of which depends on the machine.

A test runs this, so a verb that begins to start a program for each file, or for each session, is noticed at once.
CPU is shown and not judged; nor are the files opened by verbs that may wait for a deletion in the background.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import scratch

if TYPE_CHECKING:
    from pathlib import Path

_AGENTS = 16
_FILES = 100
_PLAIN, _CREATE = f"git worktree add, {_AGENTS}", f"create {_AGENTS}"
#: Counted from when the repository is open; what a child of Python's does counts as one program.
#: Run with -B: a first run would count the modules that Python compiles, too.
_COUNT = """
import json, os, sys
from swarm import Swarm
swarm = Swarm.open(sys.argv[1], flags=json.loads(sys.argv[2]))
seen = {"programs": 0, "opened": 0}
def hear(name, args):
    if name == "subprocess.Popen":
        seen["programs"] += 1
    elif name == "open" and any(part in str(args[0]) for part in ("/.git/", "/.swarm/", "/.worktrees/")):
        seen["opened"] += 1
def written():
    with open("/proc/self/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("wchar"))
before, began = written(), sum(os.times()[:4])
sys.addaudithook(hear)
exec(sys.argv[3])
found = dict(seen)
used = sum(os.times()[:4]) - began
print(json.dumps({**found, "written": written() - before, "cpu_ms": round(used * 1000)}))
"""


class Case(NamedTuple):
    """A verb with what it may cost.

    Attributes:
        code: what is done, in Python.
        programs: how many it may start.
        written: how many bytes swarm itself may write; 0 where that is not asked.
        opened: how many files it may open; 0 where that is not asked.
    """

    name: str
    code: str
    programs: int
    written: int = 0
    opened: int = 0


def run(*, quick: bool) -> list[dict[str, object]]:  # noqa: ARG001  # it is quick in any case
    """Count every verb once."""
    with scratch.folder() as top:
        env = scratch.environment(top / "home")
        root = top / "repository"
        names = scratch.repository(root, env, _FILES)
        size = sum((root / name).lstat().st_size for name in names)
        return [_counted(case, root, env) for case in _cases(size)]


def _cases(size: int) -> list[Case]:
    """Return the verbs in the order in which they are done.

    Args:
        size: of all files of the repository.
    """
    team = f'swarm.create("bench", ["developer:{_AGENTS}"], instructions=False)'
    write = (
        "import subprocess\n"
        'for one in swarm.sessions.get("bench").agents:\n'
        "    tree = swarm.root / one.worktree\n"
        '    (tree / f"{one.name}.txt").write_text(one.name)\n'
        '    subprocess.run(["git", "add", "--all"], cwd=tree, check=True)\n'
        '    subprocess.run(["git", "commit", "--quiet", "-m", "work"], cwd=tree, check=True)\n'
    )
    plain = (
        "import subprocess\n"
        f"for n in range({_AGENTS}):\n"
        '    subprocess.run(["git", "worktree", "add", "-q", "-b", f"p{n}", f"../p{n}"], cwd=swarm.root, check=True)\n'
    )
    others = 'for n in range(12): swarm.create(f"other-{n}", ["reviewer"], instructions=False)'
    return [
        Case(_PLAIN, plain, 2 * _AGENTS),
        Case(_CREATE, team, 8, written=_AGENTS * (size + 40_000)),
        Case(f"status of {_AGENTS}", "swarm.status(look=False)", 2, opened=_AGENTS * 4),
        Case("a commit in each", write, 2 * _AGENTS),
        Case(f"conflicts of {_AGENTS}", 'swarm.conflicts("bench")', 12),
        Case(f"merge {_AGENTS}", 'swarm.merge("bench")', 22),
        Case(f"cleanup {_AGENTS}", 'swarm.cleanup(["bench"])', 14),
        Case("create 1", 'swarm.create("one", ["developer"], instructions=False)', 8),
        Case("list, 1 session", "swarm.status(look=False, unread=False)", 2, opened=6),
        Case("12 more sessions", others, 12 * 8),
        Case("list, 13 sessions", "swarm.status(look=False, unread=False)", 2, opened=13 * 4),
        Case("cleanup --all of 13", "swarm.cleanup(everything=True)", 14),
    ]


def _counted(case: Case, root: Path, env: dict[str, str]) -> dict[str, object]:
    flags = json.dumps({"cleanup.background": True})
    words = [sys.executable, "-B", "-c", _COUNT, str(root), flags, case.code]
    done = subprocess.run(words, cwd=root, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{case.name}: {done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    most = {"programs": case.programs, "opened": case.opened, "written": case.written}
    return {"what": case.name, **found, "most": {name: value for name, value in most.items() if value}}


def misses(rows: list[dict[str, object]]) -> list[str]:
    """Say what costs more than it may."""
    return [
        f"{row['what']}: {row[name]} {name}, at most {most}"
        for row in rows
        if isinstance(row["most"], dict)
        for name, most in row["most"].items()
        if int(str(row[name])) > most
    ]


def table(rows: list[dict[str, object]]) -> list[str]:
    """Return the rows for people."""
    lines = [f"{'counted':<24} {'programs':>9} {'opened':>8} {'written':>10} {'cpu ms':>7}  at most"]
    for row in rows:
        most = row["most"] if isinstance(row["most"], dict) else {}
        told = ", ".join(f"{value} {name}" for name, value in most.items())
        lines.append(
            f"{row['what']:<24} {row['programs']:>9} {row['opened']:>8} {row['written']:>10} {row['cpu_ms']:>7}  {told}"
        )
    return lines
