"""The one reader of small JSON files: whatever somebody puts there, it gives an object or one kind of error."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import swarm
from swarm.machine import records

pytestmark = pytest.mark.component


def test_an_object_is_read_and_a_link_only_on_request(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"schema": 7, "word": "anvil"}')
    (tmp_path / "link").symlink_to("a")
    assert records.read_object(str(tmp_path / "a")) == {"schema": 7, "word": "anvil"}
    assert records.read_object(str(tmp_path / "link"), follow=True)["word"] == "anvil"
    with pytest.raises(OSError, match="symbolic links"):
        records.read_object(str(tmp_path / "link"))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "Expecting value"),
        (b"[1]", "not a JSON object"),
        (b"\x80{}", "decode"),
        (b"[" * 60_000, "nested too deep"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deep"),
        (b'{"a": "' + b"x" * (64 << 10) + b'"}', "larger than"),
    ],
    ids=["empty", "list", "no text", "deep list", "deep object", "large"],
)
def test_anything_else_is_a_value_error(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match=why):
        records.read_object(str(tmp_path / "a"))


def test_a_pipe_does_not_block_and_a_public_file_is_not_private(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"):
        records.read_object(str(tmp_path / "pipe"))
    (tmp_path / "a").write_text("{}")
    (tmp_path / "a").chmod(0o644)
    with pytest.raises(ValueError, match="not private"):
        records.read_object(str(tmp_path / "a"), private=True)
    (tmp_path / "a").chmod(0o600)
    assert records.read_object(str(tmp_path / "a"), private=True) == {}


def test_no_module_has_a_reader_of_its_own() -> None:
    own = re.compile(r"json\.loads\([^\n]*(read_small|read_bytes|read_text)\(")
    folder = Path(swarm.__file__).parent
    found = {str(one.relative_to(folder)) for one in folder.rglob("*.py") if own.search(one.read_text("utf-8"))}
    found = {one for one in found if not one.startswith("testing/")}
    assert found == {"usage/price_table.py"}  # a file of the package
