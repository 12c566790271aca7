"""When a supervisor measures what its agent has on the disk, and what it makes of the answer."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine.run_folder import runfiles
from swarm.supervisor.boxed import disk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

LIMIT = 1 << 30


class Chores:
    """Takes down what it is told to run, and answers for it."""

    def __init__(self) -> None:
        self.started: list[SimpleNamespace] = []

    def start(self, argv: list[bytes], env: object, *, stdout: int) -> SimpleNamespace:
        self.started.append(SimpleNamespace(argv=argv, env=env, status=None, stdout=stdout))
        return self.started[-1]

    def answer(self, said: bytes, status: int = 0) -> None:
        os.write(self.started[-1].stdout, said)
        self.started[-1].status = status


class Machine:
    """A clock and a file system of which one says how they stand."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.free = 100 << 30


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr("time.monotonic", lambda: made.now)
    monkeypatch.setattr(disk, "_free", lambda _: made.free)
    return made


@pytest.fixture
def chores() -> Chores:
    return Chores()


@pytest.fixture
def watched(chores: Chores, machine: Machine, tmp_path: Path) -> disk.Disk:
    launch: Any = SimpleNamespace(disk={"limit": LIMIT, "at": "/"}, measure_disk=[b"du"], run_dir=str(tmp_path))
    given: Any = chores
    made = disk.Disk(launch, given)
    made.look()
    chores.answer(b"1024\t/tree\n2048\t/home\n")
    made.look()
    return made


def test_it_measures_at_once_and_adds_up_the_folders(watched: disk.Disk, tmp_path: Path) -> None:
    assert watched.used == 3 << 20
    assert (runfiles.read(str(tmp_path), runfiles.DISK) or {})["bytes"] == 3 << 20


def test_it_measures_again_when_much_was_written_or_after_a_while(
    watched: disk.Disk, chores: Chores, machine: Machine
) -> None:
    machine.now += 60
    machine.free -= 8 << 20
    watched.look()
    assert len(chores.started) == 1

    machine.free -= LIMIT // 4
    watched.look()
    assert len(chores.started) == 2
    watched.look()
    assert len(chores.started) == 2  # one at a time

    chores.answer(b"900000\t/tree\n124288\t/home\n")
    watched.look()
    assert watched.used == 1024288 << 10
    machine.now += 301
    watched.look()
    assert len(chores.started) == 3


def test_a_long_measurement_is_followed_by_a_long_rest(watched: disk.Disk, chores: Chores, machine: Machine) -> None:
    machine.now += 400
    watched.look()
    machine.now += 30
    chores.answer(b"1\t/tree\n")
    watched.look()
    machine.free = 0

    machine.now += 299
    watched.look()
    assert len(chores.started) == 2
    machine.now += 2
    watched.look()
    assert len(chores.started) == 3


@pytest.mark.parametrize(
    ("said", "status"),
    [(b"", 1), (b"du: no\n", 0), (b"12\t/a\nx\n", 0), (b"12\t/a\n", -1)],
    ids=["nothing", "words", "a line more", "ended by us"],
)
def test_what_says_nothing_counts_as_failed(
    watched: disk.Disk, chores: Chores, machine: Machine, said: bytes, status: int
) -> None:
    machine.now += 400
    watched.look()
    chores.answer(said, status)
    watched.look()
    assert (watched.failed, watched.used) == (1, 3 << 20)


def test_files_that_go_meanwhile_are_no_failure(watched: disk.Disk, chores: Chores, machine: Machine) -> None:
    machine.now += 400
    watched.look()
    chores.answer(b"5\t/tree\n", 1)
    watched.look()
    assert (watched.failed, watched.used) == (0, 5 << 10)
