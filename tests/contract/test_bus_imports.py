"""A send loads next to nothing, and the tuples that make this possible behave like Python's own."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from swarm.bus.filebus import FileBus
from swarm.bus.message import Message, new_id
from swarm.kit import tuples

PROJECT = Path(__file__).resolve().parents[2]
COSTLY = {
    "collections",
    "contextlib",
    "ctypes",
    "dataclasses",
    "enum",
    "json",
    "pathlib",
    "re",
    "secrets",
    "signal",
    "threading",
    "typing",
    "swarm.kit.errors",
    "swarm.kit.files",
    "swarm.bus.book",
    "swarm.bus.choose",
    "swarm.bus.state",
}
SEND = """
import sys
sys.path.insert(0, {project!r})
before = set(sys.modules)
from swarm.bus.message import Message
from swarm.bus.filebus import FileBus
FileBus({root!r}).send(Message("dev@s", "user", "hello"))
print(*(set(sys.modules) - before))
"""


def test_sending_loads_nothing_that_takes_long(tmp_path: Path) -> None:
    """A pattern, a parser, an error: each would cost a `swarm send` as much as all it does."""
    root = tmp_path / "messages"
    bus = FileBus(root)
    bus.declare("dev@s")
    code = SEND.format(project=str(PROJECT), root=str(root))
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)

    assert not COSTLY & set(done.stdout.split())
    assert bus.depth("dev@s").waiting == 1


class Theirs(NamedTuple):
    """One of Python's own."""

    a: int
    b: str = "x"

    @property
    def both(self) -> str:
        return f"{self.a}{self.b}"


class Ours(tuples.NamedTuple):
    """The same of ours."""

    a: int
    b: str = "x"

    @property
    def both(self) -> str:
        return f"{self.a}{self.b}"


@pytest.mark.parametrize("kind", [Theirs, Ours])
def test_our_tuples_are_like_those_of_python(kind: type[Theirs | Ours]) -> None:
    one = kind(1)
    a, b = one

    assert (a, b, one.both, len(one), one[0]) == (1, "x", "1x", 2, 1)
    assert one == (1, "x") == kind(a=1, b="x") == kind._make([1, "x"])
    assert one._replace(b="y") == kind(1, "y")
    assert one._asdict() == {"a": 1, "b": "x"}
    assert kind._fields == ("a", "b")
    assert repr(one) == f"{kind.__name__}(a=1, b='x')"
    assert hash(one) == hash((1, "x"))
    for twin in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert (twin, type(twin)) == (one, kind)
    match one:
        case Theirs(1, b=text) | Ours(1, b=text):
            assert text == "x"
        case _:
            pytest.fail("does not match")
    with pytest.raises(AttributeError):
        one.a = 2  # type: ignore[misc]  # what must not be
    for wrong in ((), (1, "x", 3)):
        with pytest.raises(TypeError):
            kind(*wrong)


def test_a_fork_makes_ids_of_its_own() -> None:
    import os

    new_id()
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, new_id().encode())
        os._exit(0)
    os.wait()
    theirs, mine = os.read(read, 100).decode(), new_id()
    os.close(read)
    os.close(write)

    assert theirs[12:] != mine[12:]
    assert len({new_id() for _ in range(10_000)}) == 10_000
    assert Message("a", "b") == Message("a", "b")
