"""Read the commands and patterns of a worktree setup; no shell is involved."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.worktrees.setup.setup_values import Ended

#: A file of this name at the root of the main checkout says which ignored files every worktree gets.
INCLUDE_FILE = ".worktreeinclude"
#: In the environment of every command of a setup, and so of all that it starts.
STAMP = "SWARM_HOOK_ID"
#: Ports for agents: below those that the system assigns.
_FIRST_PORT, _PORTS = 20_000, 12_000
#: What would redirect git, tmux or swarm itself.
_OWN_VARIABLES = r"(SWARM_|TMUX).*|GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE)"
_NEVER_A_PORT = frozenset({"PATH", "HOME", "SHELL", "USER", "TERM", "PWD", "TMPDIR", "LANG", "LD_PRELOAD"})
_WILD = frozenset("*?[")
_OPERATOR = r"[;<>|&()\n]+"
_VARIABLE = r"\$(?:[A-Za-z_]\w*|[{(?@*#!$0-9])|`"


def inside(value: str) -> str:
    """Check a path, or a pattern of paths, that stays in the repository.

    Raises:
        ValueError: it does not.
    """
    if not value.strip():
        raise ValueError("must not be empty")
    if "\0" in value:
        raise ValueError("must not contain control characters")
    parts = value.split("/")
    if value.startswith(("/", "~")):
        raise ValueError("must be a path in the repository, not an absolute one")
    if ".." in parts or ".git" in [part.casefold() for part in parts]:
        raise ValueError("must not lead out of the repository or into .git")
    return value


def variable(value: str) -> str:
    """Check the name of an environment variable that may be set for an agent.

    Raises:
        ValueError: it is none, or swarm's own.
    """
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value) is None:
        raise ValueError("must be the name of a variable: letters, digits and _")
    if re.fullmatch(_OWN_VARIABLES, value):
        raise ValueError("is a variable that swarm keeps for itself")
    return value


def port(value: str) -> str:
    """Check the name of a variable that is to hold a port.

    Raises:
        ValueError: it is none, swarm's own, or no program would be found with a number in it.
    """
    if variable(value) in _NEVER_A_PORT:
        raise ValueError("is a variable that programs need as it is")
    return value


def is_literal(pattern: str) -> bool:
    """Whether a pattern is simply a path."""
    return _WILD.isdisjoint(pattern)


def words_of(line: str) -> list[str]:
    """Return a command's words, split as a shell would."""
    import shlex

    return shlex.split(line)


def line_of(words: Sequence[str]) -> str:
    """Return words as one line that `words_of` splits again."""
    import shlex

    return shlex.join(words)


def command(value: str) -> str:
    """Check a command given as one line. swarm starts the program without a shell, so shell syntax is refused.

    Raises:
        ValueError: it cannot be meant so.
    """
    line = value.strip()
    if not line:
        raise ValueError("must not be empty")
    try:
        words = words_of(line)
    except ValueError as error:
        raise ValueError(f"cannot be read: {str(error).lower()}") from None
    if not words or not words[0] or "\0" in line:
        raise ValueError("must name a program")
    found = _needs_a_shell(line)
    if found:
        what = "a second line" if found.isspace() else found
        raise ValueError(f"{what} needs a shell; write [sh, -c, '…'], or one command an entry")
    return line


def argv(words: Sequence[str]) -> str:
    """Check a command given as words, and return it as a line.

    Raises:
        ValueError: it names no program.
    """
    if not words or not words[0] or any("\0" in word for word in words):
        raise ValueError("must name a program")
    return line_of(words)


def _needs_a_shell(line: str) -> str:
    """Return the first part of a line that only a shell understands; empty without one."""
    bare, expanded = _unquoted(line)
    found = re.search(_OPERATOR, bare) or re.search(_VARIABLE, expanded)
    return found[0] if found else ""


def _unquoted(line: str) -> tuple[str, str]:
    """Return a line without the operators that quotes protect, and without all quoted text."""
    bare, expanded = "", ""
    quote, escaped = "", False
    for char in line:
        protected = escaped or quote == "'"
        expanded += "_" if protected else char
        bare += "_" if protected or quote else char
        if escaped:
            escaped = False
        elif char == "\\" and quote != "'":
            escaped = True
        elif char in "'\"" and quote in ("", char):
            quote = "" if quote else char
    return bare, expanded


def ports(seed: str) -> Iterator[int]:
    """Yield every port for agents, starting at a place that *seed* decides, so that repositories rarely meet."""
    from hashlib import sha256

    start = int.from_bytes(sha256(seed.encode("utf-8", "surrogateescape")).digest()[:4], "big")
    for number in range(_PORTS):
        yield _FIRST_PORT + (start + number) % _PORTS


def hook_stamp(root: str, *more: str) -> str:
    """Return by which commands are known; those of a part of them have more behind a slash."""
    from hashlib import sha256

    where = sha256(root.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return "/".join((where, *more))


def failure(done: Ended) -> str:
    """Describe the failure of a command."""
    return f"`{shown(done.line)}` {done.outcome}"


def shown(line: str) -> str:
    """Shorten a command for one line of text."""
    first, *more = line.splitlines() or [""]
    return first[:77] + "…" if more or len(first) > 78 else first
