"""Commands that were made to keep whoever judges them busy."""

from __future__ import annotations

import time

import pytest

from swarm.domain.pathrules import Place
from swarm.domain.permissions import Behavior, Rules, decide


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
