"""A crash is recovered by a process that has used nothing yet: whatever was begun, it can be read and ended."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

import pytest

import swarm
from swarm.sessions import recovery
from swarm.worktrees.steps.step import Step
from tests.support.crash import FreshTrials
from tests.support.scenarios import SCENARIOS
from tests.support.share import TURN
from tests.support.sources import files, nodes_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.crash import Bench

#: How many points of a scenario are tried; each commit tries others.
_POINTS = 3


@pytest.mark.crash
@pytest.mark.parametrize("name", SCENARIOS)
def test_swarm_recover_in_a_process_of_its_own(
    bench: Bench, name: str, record_property: Callable[[str, object], None]
) -> None:
    setup = bench.setup(SCENARIOS[name])
    stride = max(1, setup.count // _POINTS)

    tally = FreshTrials(setup, "kill-tree").run(range(1 + TURN % stride, setup.count + 1, stride))

    record_property("crash", tally.as_dict())
    assert tally.kills
    assert not tally.violations, "\n".join(tally.violations)


@pytest.mark.component
def test_every_step_is_known_to_the_recovery() -> None:
    for module in pkgutil.walk_packages(swarm.__path__, "swarm."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    assert {one.__name__ for one in Step.__subclasses__() if one.__module__.startswith("swarm.")} == set(
        recovery.known().steps
    )


@pytest.mark.component
def test_every_kind_of_operation_is_known_to_the_recovery() -> None:
    """The journal's entries are dicts in the code, with both of these keys; a kind may be a constant of its module."""
    written = {
        kind
        for path in files()
        for node in nodes_of(path)
        if isinstance(node, ast.Dict) and any(_is(one, "locks") for one in node.keys)
        for key, value in zip(node.keys, node.values, strict=True)
        if _is(key, "kind") and (kind := _text(path, value))
    }
    assert written == {"set", *recovery.known().kinds}


def _text(path: Path, value: ast.expr) -> object:
    if isinstance(value, ast.Constant):
        return value.value
    constants = {
        ast.unparse(one.targets[0]): one.value.value
        for one in nodes_of(path)
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Constant)
    }
    return constants.get(ast.unparse(value))


def _is(node: Any, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text
