"""The end of a log is found from its end, also while somebody writes there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.bus.log import log
from swarm.bus.log.log import Log

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.unit


def test_a_writer_at_its_end_makes_nobody_read_the_whole_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    writer, reader = Log(str(folder)), Log(str(folder))
    for number in range(1, 40):
        writer.append(b'{"text":"%b"}' % (b"x" * 100 * number))
    assert reader.last_number() == 39
    with (folder / "active.log").open("ab") as file:
        file.write(b'{"text":"half of one')

    def never(*_: object) -> None:
        raise AssertionError("read from its beginning")

    monkeypatch.setattr(log, "whole_lines", never)
    assert reader.last_number() == 39


def test_a_lock_that_another_one_holds_is_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    one, other = Log(str(folder), patience=lambda: 0.0), Log(str(folder))
    one.append(b'{"n":1}')
    other.append(b'{"n":2}')
    assert log._lock_soon(one._fd)
    assert not log._lock_soon(other._fd)
    one.close()
    assert other.append(b'{"n":3}').number == 3
