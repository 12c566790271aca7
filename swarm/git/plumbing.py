"""Parse the output that several git commands share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from swarm.git.changes import Changes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


GITLINK, LINK = "160000", "120000"
RAW_DIFF = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index")


def raw_changes(out: bytes) -> Changes:
    """Read ``diff-tree --raw -z``."""
    fields = out.split(b"\0")
    before: dict[str, tuple[str, str]] = {}
    after: dict[str, tuple[str, str]] = {}
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        old_mode, new_mode, old_oid, new_oid, _ = facts.decode("ascii").removeprefix(":").split(" ")
        path = os.fsdecode(name)
        if old_mode != "000000":
            before[path] = (old_mode, old_oid)
        if new_mode != "000000":
            after[path] = (new_mode, new_oid)
    return Changes(before, after)


def config_env(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that gives git, and every filter that it runs, these settings."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def alternate(path: Path) -> str:
    """Write a path for git's list of object directories, which colons part."""
    text = str(path)
    if ":" not in text and not text.startswith('"') and "\n" not in text:
        return text
    raw = os.fsencode(text)
    return (
        '"' + "".join(f"\\{byte:03o}" if byte < 33 or byte > 126 or byte in b'"\\' else chr(byte) for byte in raw) + '"'
    )


ONE_INDEX = config_env({"core.splitIndex": "false"})
