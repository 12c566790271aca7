"""Commands that were made to keep whoever judges them busy."""

from __future__ import annotations

import time

import pytest

from swarm.permissions.decide import Behavior, Rules, decide
from swarm.permissions.paths import Place

pytestmark = pytest.mark.component


@pytest.mark.parametrize(
    "command",
    [
        "$(" * 5000,
        "`" * 9999,
        "(" * 30_000,
        "sudo " * 10_000,
        "${" * 10_000,
        "a;" * 30_000,
        "bash -c " * 5000 + "x",
        "x" * 60_000,
        "{" * 30_000,
        "<<a " * 10_000,
        "'\"" * 20_000,
        "eval '" * 5000,
        "x " + "sudo " * 10_000,
        "x " + "-a " * 20_000,
        "x " + "sudo -a " * 5000,
        "env " * 60 + "-Sabcdef " * 2000,
        "su " * 60 + "-cabcdef\\ x " * 1000,
        "git " + "-c alias.x=y " * 4000,
        "echo $((" + "(" * 20_000,
        "${x[" * 5000,
        "cat <<X\n" + "a\\\n" * 10_000 + "X",
        "i=1;" * 5000 + "echo $((i))",
    ],
)
def test_hostile_commands_take_no_time_and_are_never_allowed_with_rules(command: str) -> None:
    start = time.process_time()

    rules = Rules.parse(("Bash(git *)",), ("Bash(*r*m*x*)", "Bash(rm *)", "Bash(git push *)"))
    found = decide(rules, "Bash", {"command": command}, Place(cwd="/work/tree", home="/home/me"))

    assert found.behavior != Behavior.ALLOW
    assert time.process_time() - start < 20  # of a slow machine; a quadratic search takes minutes


@pytest.mark.parametrize(
    "command",
    [
        *("cat " + "a=b " * 10_000, "cat " + "-abc/defg/x " * 5000, "cd a;" * 10_000 + "cat x"),
        *("; ".join(f"cd d{n}" for n in range(2000)) + "; cat x", "sudo " + "tar " * 10_000, "cp " + "-t x " * 10_000),
        *("git " + "-C x " * 10_000 + "rm y", "env " + "-C x " * 9000 + "cat y", "find . " + "-exec ls " * 5000),
        *("echo " + "$PWD" * 10_000, "cat " + "a* " * 9000, "docker " + "a:b:c:d " * 6000, "touch ~" + "/x" * 2000),
    ],
)
def test_hostile_commands_take_no_time_with_rules_for_files(command: str) -> None:
    start = time.process_time()

    rules = Rules.parse((), ("Read(.env)", "Edit(vault/**)", "Read(~/.ssh/**)"))
    place = Place(cwd="/work/tree", home="/home/me", real=lambda path: path, names=lambda _: [])
    assert decide(rules, "Bash", {"command": command}, place).behavior == Behavior.ASK  # no rule allows anything
    assert time.process_time() - start < 20
