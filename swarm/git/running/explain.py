"""Turn git's exit codes and words into swarm's errors."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from swarm.git.errors import BranchExists, GitBroken, GitBusy, GitFailed, NotARepo, RepositoryOwner
from swarm.kit.errors import NoPermission, NoSpace, SwarmError

if TYPE_CHECKING:
    from pathlib import Path


#: git's words for a repository that it cannot read.
_DAMAGE = (
    r"bad (config|object|tree)|unable to read (tree|sha1 file)|not a tree object|commondir"
    r"|unexpected line in .*packed-refs|missing object|could not parse (HEAD|object)|unable to parse object"
    r"|object file .* is empty|(loose|packed) object .* is corrupt|appears to be broken|index file (corrupt|smaller)"
    r"|Could not read [0-9a-f]{40}|bad (index file|signature)|unknown repository extension|Expected git repo version"
)
#: Last words that say nothing about the cause.
_VERDICT = r"^fatal: (Could not reset index file to revision|the remote end hung up)"
_NOT_WRITTEN = r"unable to (write|create)|(could not|cannot) (write|create|mkdir)|copy-fd|write error"
#: A file that did not fit is taken away again, so that much may be free on a full disk.
_NEARLY_FULL = 32 << 20
_FEW_INODES = 16
LOCK_TAKEN = (
    r"Unable to create '(?P<file>[^\n]*\.lock)': File exists|could not lock config file [^\n]*: File exists"
    # Its `gc` has just taken away the empty folder in which an object was to be made.
    r"|unable to create temporary file: No such file or directory"
)


def explain(what: str, code: int, text: str) -> SwarmError:
    """Turn git's exit code and words into one of our errors."""
    message = f"{what}: {cause_of(code, text)}"
    kind: type[SwarmError] = GitFailed
    if "No space left on device" in text or "Disk quota exceeded" in text:
        kind = NoSpace
    elif "dubious ownership" in text:
        kind = RepositoryOwner
    elif re.search(LOCK_TAKEN, text):
        kind = GitBusy
    elif "Permission denied" in text or "Read-only file system" in text:
        kind = NoPermission
    elif "not a git repository" in text and "worktrees" not in text:
        kind = NotARepo
    elif "reference already exists" in text or ("already exists" in text and "branch named" in text):
        kind = BranchExists
    elif re.search(_DAMAGE, text):
        kind = GitBroken
    return kind(message, details=text or None)


def or_full_disk(error: SwarmError, folder: Path) -> SwarmError:
    """Name a full disk where git only reports a failed write: a checkout hides the reason."""
    if type(error) is not GitFailed or not re.search(_NOT_WRITTEN, error.details or ""):
        return error
    try:
        info = os.statvfs(folder)
    except OSError:
        return error
    left = info.f_bavail * info.f_frsize
    if left < _NEARLY_FULL:
        return NoSpace(f"{error.message} (the disk is full: {left >> 10} KiB are free)", details=error.details)
    if info.f_files and info.f_favail < _FEW_INODES:
        return NoSpace(f"{error.message} (the disk is full: {info.f_favail} inodes are free)", details=error.details)
    return error


def cause_of(code: int, text: str) -> str:
    """Pick the most telling line of git's output: its verdict comes last."""
    if code < 0:
        return f"git was ended by signal {-code}"
    lines = [line.strip() for line in text.splitlines() if line.strip() and not re.search(_VERDICT, line)]
    missing = next((line for line in lines if line.endswith(": not found")), "")
    if missing:  # the shell's word about a filter program; all that git says is that it hung up
        return missing
    for prefix in ("fatal: ", "error: ", ""):
        found = next((line for line in lines if line.startswith(prefix)), "")
        if found:
            return found.removeprefix(prefix)
    return f"exit code {code}"
