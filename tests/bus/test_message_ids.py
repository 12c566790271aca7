"""Ids of messages are unique, also in processes that were forked."""

from __future__ import annotations

import pytest

from swarm.bus.message import Message, new_id

pytestmark = pytest.mark.contract


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
