"""Find files that git calls clean although a checkout would write other bytes.

What passes through a filter program (LFS, git-crypt) is no matter of this: only the program could say, and to save
what it takes out of the tree would undo what it is there for.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.git.content.contents import Checkout
from swarm.kit import files
from swarm.kit.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from swarm.git.content.walk import Walk
    from swarm.git.running.runner import GitRunner

_ATTRIBUTES = ".gitattributes"
_NO = ("unset", "unspecified")
_FALSE = ("false", "no", "off", "0", "")
_LARGEST = 1 << 31
_AT_ONCE = 500


class Settings(NamedTuple):
    """The configuration of line ends.

    Attributes:
        takes: files lose carriage returns on their way into git, whatever their attributes say.
        gives: text gets them on its way into a worktree.
        names_file: there is a file of attributes outside of the repository.
    """

    takes: bool
    gives: bool
    names_file: bool


def unlike_checkout(
    git: GitRunner, env: Mapping[str, str], common: Path, oids: Mapping[str, str], found: Walk
) -> set[str]:
    """Return those files that a checkout would not write as they are.

    Args:
        oids: path → blob, of files that git calls clean.
        found: what is in the tree.
    """
    settings = settings_of(git.ask("config", "--list", "-z", env=env, cwd=Path(env["GIT_WORK_TREE"])))
    told: dict[str, dict[str, str]] = {}
    if settings.names_file or has_attributes(git, common, (*oids, *found.files)):
        told = _attributes(git, env, oids)
    elif not settings.takes:
        return set()
    taken: list[str] = []
    given: list[str] = []
    for path in oids:
        way = _way(told.get(path, {}), settings)
        if way == "gives":
            given.append(path)
        elif way == "takes":
            taken.append(path)
    return _of_other_size(git, oids, taken, found) | _of_other_content(git, env, oids, given)


def settings_of(listed: bytes) -> Settings:
    """Read the output of ``config --list -z``."""
    said = {}
    for item in os.fsdecode(listed).split("\0"):
        key, given, value = item.partition("\n")
        said[key] = value.lower() if given else "true"
    takes = said.get("core.autocrlf", "") not in _FALSE
    gives = (takes and said["core.autocrlf"] != "input") or said.get("core.eol") == "crlf"
    return Settings(takes, gives, "core.attributesfile" in said)


def has_attributes(git: GitRunner, common: Path, paths: Iterable[str]) -> bool:
    """Whether any file may have attributes; a file of the whole system's is where git is, or in /etc."""
    own = git.default_excludes().with_name("attributes")
    systems = (Path("/etc/gitattributes"), Path(str(git.program()[0])).parent.parent / "etc" / "gitattributes")
    if any(place.exists() for place in (common / "info" / "attributes", own, *systems)):
        return True
    return any(path.endswith(_ATTRIBUTES) for path in paths)


def _attributes(git: GitRunner, env: Mapping[str, str], paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return path → attribute → value, of those that are given."""
    lines = b"".join(os.fsencode(path) + b"\0" for path in paths)
    asked = ("check-attr", "--stdin", "-z", "--all")
    words = os.fsdecode(git.ask(*asked, stdin=lines, env=env, cwd=Path(env["GIT_WORK_TREE"]))).split("\0")
    told: dict[str, dict[str, str]] = {}
    for path, name, value in zip(words[::3], words[1::3], words[2::3], strict=False):
        told.setdefault(path, {})[name] = value
    return told


def _way(told: Mapping[str, str], settings: Settings) -> str:
    """Return how conversion changes a file: it ``gives`` other bytes to a worktree, only ``takes`` some, or neither."""

    def has(name: str) -> bool:
        return told.get(name, _NO[0]) not in _NO

    if has("filter"):
        return ""
    if has("ident") or has("working-tree-encoding"):
        return "gives"
    text = told.get("text", told.get("crlf", ""))
    if text == "unset":
        return ""
    is_text = text or has("eol")
    if told.get("eol") == "crlf" or (settings.gives and told.get("eol") != "lf" and (is_text or settings.takes)):
        return "gives"
    return "takes" if is_text or settings.takes else ""


def _of_other_size(git: GitRunner, oids: Mapping[str, str], paths: Sequence[str], found: Walk) -> set[str]:
    """Return the files that are not the blob: one that git calls clean lost only carriage returns, or nothing."""
    if not paths:
        return set()
    lines = "".join(f"{oids[path]}\n" for path in paths).encode("ascii")
    sizes = git.ask("cat-file", "--batch-check=%(objectsize)", stdin=lines).decode("ascii").splitlines()
    return {path for path, size in zip(paths, sizes, strict=True) if size != str(found.sizes.get(path))}


def _of_other_content(
    git: GitRunner, env: Mapping[str, str], oids: Mapping[str, str], paths: Sequence[str]
) -> set[str]:
    checkout = Checkout(git, env, oids)
    differ: set[str] = set()
    for start in range(0, len(paths), _AT_ONCE):
        part = paths[start : start + _AT_ONCE]
        written = checkout.written(part)
        differ.update(path for path in part if written.get(path) != _content(Path(env["GIT_WORK_TREE"], path)))
    return differ


def _content(path: Path) -> bytes:
    """Return a file's content; an unreadable file equals no other, and is reported elsewhere."""
    try:
        return files.read_small(path, _LARGEST)
    except (OSError, EnvironmentProblem):
        return b""
