"""Hostile programs that `swarm task --sandbox` has started: against the machine, and against each other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.sandbox.launched import TASKS, LaunchedTasks
from tests.sandbox.probes import GROUPS
from tests.sandbox.stage import Probe
from tests.sandbox.test_hostile import THEM, USERS, program_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), pytest.mark.usefixtures("boxes")]
#: As whom, and whether in worktrees: these are launched as agents are, of which others are tried.
KINDS = [*((who, False) for who in USERS), ("user", True)]
_THEIR_TASK = f"@ROOT@/.swarm/tasks/{TASKS['reviewer']}"
#: What one task does to the other, beside what one agent does to the other by its process.
_TASK = {
    **{name: probe for name, probe in THEM.items() if "@THEIRS@" in probe.script},
    "its folder": THEM["its worktree"],
    "change its folder": THEM["change its worktree"],
    "its home": Probe("cat '@THEIR_BASE@/home/secret'"),
    "change its home": Probe("echo planted > '@THEIR_BASE@/home/.bashrc'"),
    "its record": Probe(f"grep -q feature-y '{_THEIR_TASK}/task.json' && echo ESCAPED"),
    "its credentials": Probe(f"cat '{_THEIR_TASK}/secrets.json'"),
    "its output": Probe(f"ls {_THEIR_TASK}/runs/*/out && echo ESCAPED"),
    "its session": Probe("ls '@THEIR_BASE@/../session.json' && echo ESCAPED"),
}


def made(kind: tuple[str, bool], *, boxed: bool = True) -> Iterator[LaunchedTasks]:
    stage = LaunchedTasks(as_user=kind[0] == "user", worktree=kind[1], boxed=boxed)
    try:
        yield stage
    finally:
        stage.close()


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{'worktree' if kind[1] else 'folder'}")
def stage(request: pytest.FixtureRequest, boxes: None) -> Iterator[LaunchedTasks]:
    yield from made(request.param)


@pytest.fixture(params=USERS)
def folders(request: pytest.FixtureRequest, boxes: None) -> Iterator[LaunchedTasks]:
    yield from made((request.param, False))


@pytest.fixture(params=USERS)
def bare(request: pytest.FixtureRequest) -> Iterator[LaunchedTasks]:
    yield from made((request.param, False), boxed=False)


def test_nothing_of_what_is_probed_gets_out_of_a_task(stage: LaunchedTasks) -> None:
    found = {name: stage.probe(probe) for group in GROUPS.values() for name, probe in group.items()}

    assert {name: one for name, one in found.items() if one.escapes} == {}
    assert not os.path.lexists(stage.names["CANARY"])
    assert [stage.host_git(*words).returncode for words in (("status",), ("fsck",))] == [0, 0]
    assert stage.swarm("task", "list", "--json").count('"state": "working"') == 2
    assert "box" in stage.swarm("sandbox", "explain", TASKS["developer"])
    assert stage.swarm("sandbox", "exec", TASKS["developer"], "--", "id", "-u").strip() == "1000"


def begin(stage: LaunchedTasks) -> None:
    stage.names["THEIRS"] = Path(program_of(stage, "reviewer"))
    stage.names["THEIR_BASE"] = stage.base_of("reviewer")


def test_of_two_hostile_tasks_neither_reaches_the_other(folders: LaunchedTasks) -> None:
    begin(folders)

    found = {name: folders.probe(probe) for name, probe in _TASK.items()}

    assert {name: one for name, one in found.items() if one.escapes} == {}
    folders.names["THEIRS"] = Path(program_of(folders, "developer"))
    back = folders.probe(Probe(f"ls '{folders.tree_of('developer')}' && echo ESCAPED"), "reviewer")
    assert (back.escapes, folders.probe(_TASK["end it"], "reviewer").escapes) == ((), ())
    refused = folders.probe(Probe("swarm task cancel feature-y; swarm status; swarm sandbox exec feature-y -- id"))
    assert refused.escapes == ()
    assert folders.swarm("task", "list", "--json").count('"state": "working"') == 2


def test_without_boxes_each_of_them_reaches_the_other(bare: LaunchedTasks) -> None:
    begin(bare)
    order = [name for name in _TASK if not name.startswith("end")] + ["end all", "end it"]

    missed = {}
    for name in order:
        outcome = bare.probe(_TASK[name])
        if not outcome.escapes:
            missed[name] = outcome
        bare.clean = bare._fingerprint()

    assert missed == {}
