"""What a shell puts in the place of a pattern, and when that is not waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.permissions.shell import glob

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.unit

FILES = (
    *(".env", ".envx", "README", "a.py", "b.py", "src/c.py", "src/deep/d.py", ".git/e.py", "secrets/key", "x]y"),
    "B",
)


def listing(folder: str, links: bool) -> Iterator[tuple[str, bool]]:
    inside = [path.removeprefix(folder) for path in FILES if path.startswith(folder)]
    yield from {(name.split("/")[0], "/" in name): None for name in inside}


def expand(pattern: str) -> list[str] | None:
    found = glob.expand(pattern, listing, lambda path: path in FILES or any(one.startswith(path) for one in FILES))
    return None if found is None else sorted(found)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["a.py", "b.py"]),
        ("[ab].py", ["a.py", "b.py"]),
        ("[!a].py", ["b.py"]),
        ("[^a].py", ["a.py", "b.py"]),  # a shell that does not know ^ takes it for one of the letters
        ("[b-z].py", ["b.py"]),
        ("[b]", ["B"]),  # a locale may say so
        ("?.py", ["a.py", "b.py"]),
        ("*", ["B", "README", "a.py", "b.py", "secrets", "src", "x]y"]),
        (".e*", [".env", ".envx"]),
        (".en[^x]", [".env"]),
        (".en?", [".env"]),
        ("[.]env", []),
        ("*/*.py", ["src/c.py"]),
        ("*/key", ["secrets/key"]),
        ("s*/k[!x]y", ["secrets/key"]),
        ("**/*.py", [".git/e.py", "a.py", "b.py", "src/c.py", "src/deep/d.py"]),
        ("x[]]y", ["x]y"]),
        ("x[", []),
        ("a*b", []),
        ("[[:lower:]].py", None),
        ("[[=a=]].py", None),
    ],
)
def test_patterns(pattern: str, names: list[str] | None) -> None:
    assert expand(pattern) == names


def test_too_much_is_given_up() -> None:
    def endless(folder: str, links: bool) -> Iterator[tuple[str, bool]]:
        while True:
            yield "a", True

    assert glob.expand("*/*", endless, bool) is None
    assert glob.expand("x*", endless, bool) is None
    assert glob.expand("**/x", endless, bool) is None
    many = [(str(n), False) for n in range(glob.MOST_FOUND + 1)]
    assert glob.expand("*", lambda *_: many, bool) is None
