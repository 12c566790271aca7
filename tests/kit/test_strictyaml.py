"""Hostile and surprising YAML: one clear error with its position, never a stack trace."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.kit import yaml
from swarm.kit.errors import ConfigProblem, NoPermission
from swarm.kit.yaml import Listing, Scalar, Table

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

_BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (c, c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in b"bcdef"
)

HOSTILE = {
    "tab as indentation": (b"a:\n\tb: 1", "2:1"),
    "tab after a colon": (b"a:\tb", "1:3"),
    "tab in a flow list": (b"a: [\n\t1]", "2:1"),
    "tab ends a block": (b"a: |\n x\n\ty", "3:1"),
    "double key": (b"a: 1\nb: 2\na: 3", "3:1"),
    "double key below": (b"a:\n  b: 1\n  b: 2", "3:3"),
    "double key, quoted": (b"a: 1\n'a': 2", "2:1"),
    "double key in braces": (b"x: {a: 1, a: 2}", "1:11"),
    "two documents": (b"a: 1\n---\nb: 2", "2:1"),
    "two empty documents": (b"---\n...\n---\n", "3:1"),
    "python object": (b"a: !!python/object/apply:os.system [x]", "1:4"),
    "python name": (b"a: !!python/name:os.system", "1:4"),
    "custom tag": (b"a: !mine x", "1:4"),
    "standard tag": (b"a: !!str 1", "1:4"),
    "binary tag": (b"a: !!binary aGk=", "1:4"),
    "tag on the root": (b"!!map\na: 1", "1:1"),
    "tag on a key": (b"!!str a: 1", "1:1"),
    "tag directive": (b"%TAG ! tag:x,2000:\n---\na: 1", "1:1"),
    "version 3": (b"%YAML 3.0\n---\na: 1", "1:1"),
    "endless version": (b"%YAML " + b"9" * 5000 + b".1\n---\na: 1", "1:7"),
    "empty directive": (b"%\na: 1", "1:2"),
    "merge key": (b"a: &a {x: 1}\nb:\n  <<: *a", "3:3"),
    "alias of nothing": (b"a: *x", "1:4"),
    "alias of itself": (b"a: &x [*x]", "1:8"),
    "alias as a key": (b"a: &a b\n*a : c", "2:1"),
    "51 aliases": (b"a: &x 1\nb: [" + b"*x, " * 51 + b"]", "2:205"),
    "billion laughs": (_BOMB, "5:8"),
    "deep by aliases": (b"a: &x " + b"[" * 15 + b"]" * 15 + b"\nb: " + b"[" * 9 + b"*x", "2:13"),
    "deep list": (b"a: " + b"[" * 100_000, "1:23"),
    "deep mapping": (b"{a: " * 50_000, "1:81"),
    "deep block list": (b"- " * 5_000, "1:41"),
    "NUL": (b"a: 1\nb: \0", "2:4"),
    "NUL by escape": (b'a: "\\0"', "1:4"),
    "half a character": (b'a: "\\uD800"', "1:4"),
    "escape beyond unicode": (b'a: "\\UFFFFFFFF"', "1:7"),
    "bad escape": (b'a: "\\q"', "1:6"),
    "control character": (b"a: 1\nb: x\x07", "2:5"),
    "latin-1": (b"a: 1\nb: caf\xe9", "2:7"),
    "utf-16": ("a: 1".encode("utf-16"), "1:1"),
    "overlong utf-8": (b"a: \xc0\xaf", "1:4"),
    "number as a key": (b"a: 1\n2: x", "2:1"),
    "boolean as a key": (b"true: x", "1:1"),
    "null as a key": (b"null: x", "1:1"),
    "empty key": (b"? \n: x", "1:2"),
    "list as a key": (b"? [a]\n: b", "1:3"),
    "mapping as a key": (b"{a: 1}: b", "1:1"),
    "list at the top": (b"- a", "1:1"),
    "word at the top": (b"\nhello", "2:1"),
    "open bracket": (b"a: [1,\n", "2:1"),
    "open brace": (b"a: {b: 1", "1:9"),
    "open quote": (b'a: "b', "1:6"),
    "stray brace": (b"a: }", "1:4"),
    "stray comma": (b"a: [1,,2]", "1:7"),
    "two colons": (b"a: b: c", "1:5"),
    "wrong indentation": (b"a:\n    b: 1\n  c: 2", "3:3"),
    "no colon": (b"a: 1\nb", "2:2"),
    "at sign": (b"a: @x", "1:4"),
    "per cent": (b"a: %x", "1:4"),
    "endless block indicator": (b"a: >99\n x", "1:6"),
    "merge conflict": (b"<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> x", "2:2"),
    "template": (b"a: {{ name }}", "1:5"),
}


@pytest.mark.parametrize(("content", "position"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_yaml_is_one_error_with_its_position(content: bytes, position: str) -> None:
    with pytest.raises(ConfigProblem) as caught:
        yaml.load(content, "config.yaml")

    assert caught.value.code == "CONFIG"
    assert caught.value.message.startswith(f"config.yaml:{position}: ")
    assert caught.value.message.isprintable()


WORDS = ["no", "on", "yes", "1:20", "010", "0x10", "1_000", "1e3", "1.5", "2001-01-01", "~", "+1"]
WORDS += ["-0", ".inf", "9" * 19, "0o7", "=", "y", "NaN"]


@pytest.mark.parametrize("word", WORDS)
def test_words_stay_as_written(word: str) -> None:
    assert yaml.load(f"a: {word}".encode()).plain() == {"a": word}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("0", 0),
        ("-7", -7),
        ("86400000", 86_400_000),
        ("null", None),
        ("", None),
        ("'true'", "true"),
        ('"7"', "7"),
        ("''", ""),
        ("[1, 'x']", [1, "x"]),
        ("{b: }", {"b": None}),
    ],
)
def test_the_few_words_with_a_meaning(word: str, value: object) -> None:
    plain = yaml.load(f"a: {word}".encode()).plain()

    assert plain == {"a": value}
    assert type(plain["a"]) is type(value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# nothing\n", b"---\n", b"--- \n...\n", b"\xef\xbb\xbf", b"null"])
def test_a_file_without_content_is_an_empty_mapping(content: bytes) -> None:
    assert yaml.load(content).plain() == {}


def test_byte_order_mark_and_windows_line_ends_are_fine() -> None:
    assert yaml.load(b"\xef\xbb\xbfa: 1\r\nb: x\r\n").plain() == {"a": 1, "b": "x"}


def test_fifty_aliases_are_fine() -> None:
    table = yaml.load(b"a: &x [1]\nb: [" + b"*x, " * 50 + b"]")

    assert table.plain()["b"] == [[1]] * 50


def test_twenty_levels_are_fine() -> None:
    assert yaml.load(b"a: " + b"[" * 19 + b"]" * 19).pairs["a"].value.column == 4


def test_every_key_and_value_knows_its_place() -> None:
    table = yaml.load(b"a: 1\nb:\n  c: [x,\n   y]\n", "f.yaml")

    assert isinstance(table, Table)
    inner = table.get("b")
    assert isinstance(inner, Table)
    items = inner.pairs["c"].value
    assert isinstance(items, Listing)
    assert table.pairs["b"].key.where == "f.yaml:2:1"
    assert inner.pairs["c"].key.where == "f.yaml:3:3"
    assert [item.where for item in items.items] == ["f.yaml:3:7", "f.yaml:4:4"]
    assert isinstance(items.items[0], Scalar)
    assert table.get("nothing") is None


def test_a_line_break_in_the_name_forges_no_line() -> None:
    with pytest.raises(ConfigProblem) as caught:
        yaml.load(b"a", "x\nerror: y")

    assert "\n" not in caught.value.message


def test_more_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    big = tmp_path / "big.yaml"
    big.write_bytes(b"#" * (1 << 20) + b"\n")

    for source in (big, big.read_bytes()):
        with pytest.raises(ConfigProblem, match="larger than 1 MiB"):
            yaml.load(source)


def test_a_mebibyte_of_text_is_read(tmp_path: Path) -> None:
    text = "x" * 79 + "\n"
    content = b"a: |\n" + (f"  {text}" * 12_000).encode()

    assert yaml.load(content).plain() == {"a": text * 12_000}


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem, match="no such file"):
        yaml.load(tmp_path / "none.yaml")


@pytest.mark.parametrize("kind", ["fifo", "folder", "socket", "dangling", "loop", "device"])
def test_whatever_is_no_regular_file_is_refused_without_waiting(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.yaml"
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "fifo":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        elif kind == "socket":
            monkeypatch.chdir(tmp_path)  # pytest's folders are too long for a socket's path
            server.bind("c.yaml")
        else:
            targets = {"dangling": "nowhere", "loop": "c.yaml", "device": "/dev/zero"}
            path.symlink_to(targets[kind])

        with pytest.raises(ConfigProblem) as caught:
            yaml.load(path)

    assert str(path) in caught.value.message


def test_a_link_to_a_file_is_fine(tmp_path: Path) -> None:
    (tmp_path / "real.yaml").write_text("a: 1")
    (tmp_path / "link.yaml").symlink_to("real.yaml")

    assert yaml.load(tmp_path / "link.yaml").plain() == {"a": 1}


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, *_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "open", refuse)  # root may read everything, so chmod shows nothing

    with pytest.raises(NoPermission, match=r"c\.yaml"):
        yaml.load(tmp_path / "c.yaml")


def test_importing_the_module_does_not_import_yaml() -> None:
    code = "import sys, swarm.project.config.file; sys.exit('yaml' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
