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
    ],
)
def test_hostile_commands_take_no_time_and_are_never_allowed_with_rules(command: str) -> None:
    start = time.process_time()

    rules = Rules.parse(("Bash(git *)",), ("Bash(*r*m*x*)", "Bash(rm *)"))
    found = decide(rules, "Bash", {"command": command}, Place(cwd="/work/tree", home="/home/me"))

    assert found.behavior != Behavior.ALLOW
    assert time.process_time() - start < 20  # of a slow machine; a quadratic search takes minutes
