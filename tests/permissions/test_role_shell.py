"""Commands as swarm takes them apart, beside what a real shell makes of them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from swarm.permissions.decide import Behavior, Rules, decide

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

BASH = shutil.which("bash")
#: How many scripts of each seed; SWARM_SHELL_SCRIPTS tries more.
SCRIPTS = int(os.environ.get("SWARM_SHELL_SCRIPTS", "60"))
#: Pieces of scripts: every quote, operator, keyword and expansion, and programs that run others.
PIECES = (
    *("git", "rm", "ls", "rm", "x", "-f", "a=1", "X=rm", "$X", "${X}", "${Y:-rm}", "$Y", "r\\m", "r'm'", 'r"m"'),
    "/rm",
    *(" ", " ", " ", " ", " ", " ", "\t", "\n", "\n", ";", " ; ", "&&", " && ", "||", "|", " | ", "|&", "&", "!", "! "),
    *("$(", ")", ")", "`", "`", "(", ")", "{ ", " ; }", "<(", "$((", "))", "'", "'", '"', '"', "\\", "\\\n", "$'", "#"),
    " # ",
    *("if ", "; then ", "; else ", "; fi", "while ", "; do ", "; done", "for x in a; do ", "case x in x) ", ";; esac"),
    *("> f", ">f ", "2>&1", "< f", "<<E\n", "\nE\n", "<<'E'\n", "<<<", "&> f", ">&2 ", "2>", "f() ", "function f "),
    "f",
    *("eval ", "sh -c ", "sh ", "env ", "xargs ", "command ", "exec ", "time ", "trap ", "builtin ", "echo ", "git x"),
    "rm x",
    *("((", "((X))", "$((X))", "${X@P}", "${X:-", "}", "\\\nE\n", "<<E ", "\nE", "time -p ", "eval -- ", "sh -s "),
    *("sh -ec ", "source /dev/stdin ", ". ", "<<<'rm x' ", "env -S", "env -S'rm x'", "a[1<<E]=", "X='a[$(rm x)]' "),
    "rm\tx",
    *("'rm x'", '"rm x"', "a'b", "{rm,x}", "r?", "[ x ]", "[[ x ]]", "true", "&& rm x", "; rm x", "| rm", "git log"),
)  # fmt: skip
RULES = {
    "everything but rm": Rules.parse(["Bash"], ["Bash(rm *)"]),
    "only git": Rules.parse(["Bash(git *)"]),
    "only git and echo": Rules.parse(["Bash(git *)", "Bash(echo *)", "Edit(*)"]),
}
FORBIDDEN = {"everything but rm": {"rm"}, "only git": {"rm", "ls", "x"}, "only git and echo": {"rm", "ls", "x"}}


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with programs that only write down that they ran."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("git", "rm", "ls", "x"):
        (folder / name).write_text(f'#!/bin/sh\necho {name} >> "{tmp_path}/ran"\n')
        (folder / name).chmod(0o755)
    for name in ("sh", "env", "xargs"):
        (folder / name).symlink_to(shutil.which(name) or "/bin/sh")
    (tmp_path / "cwd").mkdir()
    return folder


def ran(programs: Path, script: str) -> set[str]:
    """Run a script in bash and return which programs ran."""
    log = programs.parent / "ran"
    log.unlink(missing_ok=True)
    child = subprocess.Popen(
        [str(BASH), "-c", script],
        cwd=programs.parent / "cwd",
        env={"PATH": str(programs)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        child.wait(timeout=2)  # a loop without an end has run what it runs by then
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.wait()
    return set(log.read_text().split()) if log.exists() else set()


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@pytest.mark.parametrize("seed", range(4))
def test_what_is_allowed_runs_nothing_that_is_not(programs: Path, seed: int) -> None:
    dice = random.Random(seed)
    allowed = 0

    for _ in range(SCRIPTS * 40):
        script = "".join(dice.choices(PIECES, k=dice.randint(1, 9)))
        given = {"command": script}
        sure = [name for name, rules in RULES.items() if decide(rules, "Bash", given).behavior is Behavior.ALLOW]
        if not sure or allowed >= SCRIPTS:
            continue
        allowed += 1
        found = ran(programs, script)
        for name in sure:
            assert not found & FORBIDDEN[name], (name, script)

    assert allowed >= SCRIPTS // 2
