"""Parse git's output about merges and differences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from swarm.merging.values import FileChange, FileConflict, Merged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from swarm.git.merge_trees import Answer

_STATUS = {
    "A": "added",
    "M": "modified",
    "D": "deleted",
    "R": "renamed",
    "C": "copied",
    "T": "type changed",
}
_KIND = re.compile(r"CONFLICT \(([^)]*)\)")


def read_merge(answer: Answer, names: Sequence[str]) -> Merged:
    """Read git's report of a merge: the files in conflict, and the kinds of conflict.

    Args:
        names: the commits; git adds one to a name that is taken.
    """
    if answer.clean:
        return Merged(answer.tree)
    kinds: dict[str, list[str]] = {}
    stages: dict[str, dict[str, tuple[str, str]]] = {}
    for mode, oid, stage, name in answer.stages:
        path = _real_name(name, names)
        kinds.setdefault(path, [])
        stages.setdefault(path, {})[stage] = (mode, oid)
    for paths, kind, text in answer.said:
        said = _KIND.search(kind if "binary" in kind else text) or _KIND.search(kind)
        if said:
            named = [_real_name(path, names) for path in paths]
            for path in [one for one in named if one in kinds] or named[:1]:
                kinds.setdefault(path, []).append(_kind(said[1]))
    return Merged(
        answer.tree,
        tuple(FileConflict(path, _tidy_kinds(found, stages.get(path, {}))) for path, found in sorted(kinds.items()))
        or (FileConflict("", ("unknown",)),),
    )


def _kind(said: str) -> str:
    if said.startswith("submodule"):
        return "submodule"  # git adds why it did not try
    return said.replace("contents", "content")


def _real_name(path: str, names: Sequence[str]) -> str:
    """Remove the suffix that git adds to a name in use: ``file~<commit>``."""
    for name in names:
        path = path.removesuffix(f"~{name}")
    return path


def _tidy_kinds(found: Sequence[str], stages: Mapping[str, tuple[str, str]]) -> tuple[str, ...]:
    kinds = list(dict.fromkeys(found)) or ["content"]
    if "binary" in kinds and len(kinds) > 1:
        kinds = [kind for kind in kinds if kind != "content"]
    ours, theirs = stages.get("2"), stages.get("3")
    if ours and theirs and ours[1] == theirs[1] and ours[0] != theirs[0]:
        kinds = ["mode", *(kind for kind in kinds if kind != "content")]
    return tuple(kinds)


def file_changes(fields: Sequence[str]) -> Iterator[FileChange]:
    """Read ``diff-tree -z --raw --numstat``: first a line of facts per file, then one of numbers."""
    rest = list(fields)
    kinds: dict[str, tuple[str, str]] = {}
    while rest and rest[0].startswith(":"):
        letter = rest.pop(0).rpartition(" ")[2][:1]
        old = rest.pop(0)
        path = rest.pop(0) if letter in "RC" else old
        kinds[path] = (letter, old if path != old else "")
    while rest and rest[0]:
        added, deleted, path = rest.pop(0).split("\t", 2)
        if not path:
            path = rest[1]
            del rest[:2]
        letter, old = kinds.get(path, ("M", ""))
        lines = [None if number == "-" else int(number) for number in (added, deleted)]
        yield FileChange(path, _STATUS.get(letter, "modified"), lines[0], lines[1], old)
