"""Find files for a fresh worktree, and free ports."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from swarm.kit.commandline import is_literal
from swarm.worktrees.setup import placing
from swarm.worktrees.setup.setup_values import Selected

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from swarm.git.running.runner import GitRunner

_TAKEN = {errno.EADDRINUSE, errno.EACCES}


class Preparing:
    """Looks for files in one main checkout.

    Args:
        top: the main checkout.
        hidden: folders at its top that are swarm's own.
    """

    def __init__(self, runner: GitRunner, top: Path, hidden: Sequence[str]) -> None:
        self._git = runner
        self._top = top
        self._hidden = frozenset(hidden)

    # --- which files ---------------------------------------------------------------------------

    def files(self, patterns: Sequence[str]) -> Selected:
        """Return the untracked files that some patterns mean; a folder means all that is in it."""
        if not patterns:
            return Selected()
        tops, lacking = self._tops(patterns)
        tracked = self._tracked()
        found = [path for top in tops for path in placing.files_below(self._top, top, self._hidden)]
        chosen = placing.sort_out(self._top, [path for path in dict.fromkeys(found) if path not in tracked])
        return Selected(chosen.paths, tuple(lacking), chosen.problems)

    def whole(self, patterns: Sequence[str]) -> Selected:
        """Return the untracked files and folders that some patterns mean, each as one thing."""
        if not patterns:
            return Selected()
        tops, lacking = self._tops(patterns)
        tracked = self._tracked()
        folders = {path[:end] for path in tracked for end, char in enumerate(path) if char == "/"}
        mixed = [path for path in tops if path in tracked or path in folders]
        chosen = placing.sort_out(self._top, [path for path in tops if path not in mixed])
        why = (f"{path} {'is tracked by git' if path in tracked else 'holds files that git tracks'}" for path in mixed)
        return Selected(chosen.paths, tuple(lacking), (*why, *chosen.problems))

    def _tops(self, patterns: Sequence[str]) -> tuple[list[str], list[str]]:
        found: dict[str, None] = {}
        lacking = []
        for pattern in patterns:
            matches = list(placing.find(self._top, pattern, self._hidden))
            if not matches and is_literal(pattern):
                lacking.append(pattern)
            found.update(dict.fromkeys(matches))
        return list(found), lacking

    def _tracked(self) -> set[str]:
        return set(_names(self._git.ask("ls-files", "-z")))

    def included(self, file: str) -> Selected:
        """Return the files that git ignores and that a file of gitignore patterns names."""
        try:
            mode = os.lstat(self._top / file).st_mode
        except OSError:
            return Selected()
        if not stat.S_ISREG(mode):
            return Selected(problems=(f"{file} is no regular file",))
        wanted = self._git.ask("ls-files", "-z", "--others", "--ignored", f"--exclude-from={file}", cwd=self._top)
        named = [path for path in _names(wanted) if not path.endswith("/") and path.split("/")[0] not in self._hidden]
        return placing.sort_out(self._top, self.ignored(named))

    def ignored(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Return those of some paths that git ignores in the main checkout."""
        if not paths:
            return ()
        # This command takes no literal paths; behind a dot no path means anything but itself.
        lines = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        wish = {"GIT_LITERAL_PATHSPECS": "0"}
        out = self._git.run("check-ignore", "-z", "--stdin", stdin=lines, env=wish, cwd=self._top, ok=(0, 1))
        return tuple(path.removeprefix("./") for path in _names(out))

    def visible(self, tree: Path) -> frozenset[str]:
        """Return the untracked files of a worktree that `git add` would take."""
        return frozenset(_names(self._git.ask("ls-files", "-z", "--others", "--exclude-standard", cwd=tree)))

    def signatures(self, tree: Path, paths: Sequence[str]) -> dict[str, str]:
        """Return marks that show changes of files; empty for other entries."""
        return {path: placing.signature(tree / path) for path in paths}

    def port_is_free(self, port: int) -> bool:
        """Whether a port of this machine is free."""
        return _can_bind("127.0.0.1", port) and _can_bind("::1", port)


def _can_bind(address: str, port: int) -> bool:
    import socket

    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, port))
    except OSError as error:
        return error.errno not in _TAKEN  # a machine without this kind of address has no port to take
    return True


def _names(out: bytes) -> list[str]:
    return [os.fsdecode(item) for item in out.split(b"\0") if item]
