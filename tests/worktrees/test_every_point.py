"""Stop every changing command at every change of the file system that it, or a git of its, makes.

A normal run tries every n-th point: of all scenarios with ``kill-tree``, and of a third of them with each other action.
Each commit has other ones. ``SWARM_CRASH=full`` (``scripts/crash``) tries all, and stops the recovery after each
at each of its places until every action had its turn there.
``SWARM_CRASH_AT=37`` with ``-k`` repeats one point, and ``SWARM_CRASH_TURN`` the share of a commit.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.terminal import at_terminal
from tests.support.crash import AgainTrials, NestedTrials, Tally, Trials
from tests.support.scenarios import MESSAGES, SCENARIOS, SESSION
from tests.support.share import FULL, TURN

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.testing.lab import Lab
    from tests.support.crash import Bench

pytestmark = [pytest.mark.crash, pytest.mark.timeout(3600 if FULL else 900)]

ACTIONS = (
    "kill-tree",  # everything dies
    "kill-self",  # one git, or swarm, dies; the others go on
    "kill-root",  # swarm dies; its git goes on
    "term-root",
    "int-root",
    "enospc",
    "enospc+sticky",  # and the disk stays full
    "eio",
    "eio+sticky",
)
#: For each scenario: every how-manieth point is tried in a normal run, with kill-tree and with the rest.
STRIDES = {
    "create": (4, 45),
    "create-packed": (8, 45),
    "create-git": (8, 60),
    "create-fails": (12, 60),
    "create-more": (9, 40),
    "fork": (9, 60),
    "create-hidden": (8, 50),
    "create-setup": (24, 200),
    "cleanup-setup": (80, 400),
    "cleanup": (24, 170),
    "cleanup-packed": (30, 170),
    "cleanup-messages": (30, 240),
    "cleanup-force": (40, 190),
    "cleanup-later": (40, 190),
    "pool-park": (4, 12),
    "pool-take": (8, 60),
    "cleanup-all": (54, 260),
    "remove": (18, 90),
    "merge": (8, 40),
    "restore": (22, 170),
    "restore-plain": (22, 170),
    "lock": (2, 4),
    "update-role": (4, 12),
    "salvage-drop": (12, 60),
}
CHUNKS = 8
#: The same for the other kinds of trials.
AGAIN_CHUNKS, NESTED_CHUNKS = (8, 64) if FULL else (1, 4)
ONLY = int(os.environ.get("SWARM_CRASH_AT", "0"))


def _has_turn(number: int) -> bool:
    """Whether this commit tries a scenario with an action; which points it tries is independent of that."""
    return ONLY > 0 or (number + TURN // 1000) % 3 == 0


def _plan() -> list[Any]:
    params = []
    for number, (name, (kills, others)) in enumerate(STRIDES.items()):
        for action in ACTIONS:
            stride = kills if action == "kill-tree" else others
            stride = 1 if FULL else stride
            if not (FULL or action == "kill-tree" or _has_turn(number + ACTIONS.index(action))):
                continue
            chunks = CHUNKS if stride == 1 else 1
            for chunk in range(chunks):
                label = f"{name}-{action}" + (f"-{chunk}" if chunks > 1 else "")
                # Not always the same points: each action begins elsewhere, and so does each commit.
                first = 1 + (number + ACTIONS.index(action) * 7 + TURN) % stride
                params.append(pytest.param(name, action, first + chunk * stride, stride * chunks, id=label))
    return params


def report(tally: Tally, record_property: Callable[[str, object], None]) -> None:
    """Hand the counts on, and fail with what was found."""
    record_property("crash", tally.as_dict())
    assert not tally.violations, f"{len(tally.violations)} violations:\n" + "\n".join(tally.violations[:20])


@pytest.mark.parametrize(("name", "action", "first", "step"), _plan())
def test_all_or_nothing(
    bench: Bench, name: str, action: str, first: int, step: int, record_property: Callable[[str, object], None]
) -> None:
    setup = bench.setup(SCENARIOS[name])
    points = [ONLY] if ONLY else range(first, setup.count + 1, step)
    report(Trials(setup, action, once=FULL).run(points), record_property)


def test_what_no_kill_changes_is_that_messages_go_into_the_salvage_and_come_back(bench: Bench) -> None:
    """What the trials of ``cleanup-messages`` are compared with, as somebody sees it who looks for a message."""
    setup = bench.setup(SCENARIOS["cleanup-messages"])

    def found(lab: Lab) -> dict[str, dict[str, str]]:
        all_of_them: dict[str, dict[str, str]] = {agent: {} for agent in MESSAGES}
        for one in (
            trace.stored
            for names in MESSAGES.values()
            for id_ in names
            for trace in lab.swarm.messages._post.bus.find(id_)
        ):
            all_of_them[one.address.removeprefix("inbox.").removesuffix(f"-{SESSION}")][one.message.id] = one.state
            for artifact in one.message.artifacts:
                assert lab.swarm.messages._post.bus.attachment(artifact).read_text() == "attached\n"
        return all_of_them

    lab = bench.load(setup.image)
    assert found(lab) == MESSAGES
    setup.act()
    assert found(bench.lab()) == {agent: {} for agent in MESSAGES}
    for agent in MESSAGES:
        assert len(list((lab.root / ".swarm/salvage" / SESSION / agent).glob("*/inbox"))) == 1
        assert at_terminal(lambda: lab.swarm.messages.prune_attachments(older_than_ms=0)) == (0, 0)
    lab.swarm.restore(SESSION)
    assert found(bench.lab()) == MESSAGES
    assert not list((lab.root / ".swarm/salvage").rglob("inbox"))


@pytest.mark.parametrize("chunk", range(AGAIN_CHUNKS))
@pytest.mark.parametrize(
    ("name", "stride"), [("create", 20), ("create-packed", 30), ("cleanup-force", 80), ("restore", 70), ("remove", 40)]
)
def test_the_same_command_is_the_next_command(
    bench: Bench, name: str, stride: int, chunk: int, record_property: Callable[[str, object], None]
) -> None:
    setup = bench.setup(SCENARIOS[name])
    trials = AgainTrials(setup, "kill-tree")
    trials.tally.action = "kill, again"
    first, step = (1 + chunk, AGAIN_CHUNKS) if FULL else (1 + TURN % stride, stride)
    report(trials.run(range(first, setup.count + 1, step)), record_property)


@pytest.mark.parametrize("chunk", range(NESTED_CHUNKS))
@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("create", 50, 12),
        ("create-hidden", 70, 15),
        ("cleanup-force", 140, 30),
        ("cleanup-packed", 100, 20),
        ("restore", 180, 30),
    ],
)
def test_a_recovery_may_be_stopped_too(
    bench: Bench, name: str, first: int, second: int, chunk: int, record_property: Callable[[str, object], None]
) -> None:
    setup = bench.setup(SCENARIOS[name])
    trials = NestedTrials(setup, "kill-tree")
    trials.tally.action = "in recovery"
    actions = ("kill-tree", "kill-tree", "kill-self", "kill-tree", "enospc", "kill-tree", "eio", "enospc+sticky")
    outer, inner = (1, 0) if FULL else (first, second)  # each place of the recovery, with each action
    points = range(1 + (chunk * 5 + 2 + TURN) % outer + chunk * outer, setup.count + 1, NESTED_CHUNKS * outer)
    report(trials.run_nested(points, inner, actions), record_property)
