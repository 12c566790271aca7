"""The shared base of a repository: its place, its git program, and a look ahead at git's answers."""

from __future__ import annotations

import os
import re
import threading
from typing import TYPE_CHECKING

from swarm.git.errors import GitTooOld

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.git.discover import Place
    from swarm.git.running.runner import GitRunner
    from swarm.git.shortcuts.copying import Source
    from swarm.git.shortcuts.probe import Look

#: What each git program said its version is.
_VERSIONS: dict[tuple[object, ...], tuple[int, ...]] = {}
#: The index that was read last: callers of the library open the same repository time and again.
_READ: dict[Path, tuple[_Mark | None, Source | None]] = {}
#: A larger one is not kept.
_KEPT = 5000
#: Of a file: inode, size, when it was written, when it was changed.
_Mark = tuple[int, int, int, int]


class Base:
    """One repository: its place and its runner.

    Args:
        place: where it is.
        runner: runs git in the main checkout.
        jobs: how many trees are filled at the same time; 0 means one a processor.
    """

    #: Whether there is a repository at all.
    exists = True

    def __init__(self, place: Place, runner: GitRunner, *, jobs: int = 0) -> None:
        self.place = place
        self.root = place.root
        self.common = place.common
        self.runner = runner
        self._jobs = jobs or os.cpu_count() or 1
        self._version: tuple[int, ...] | None = None
        self._source: tuple[_Mark | None, Source | None] = (None, None)
        self._counted: dict[tuple[str, str], int] = {}  # commits between two commits, which never changes
        self._looks = threading.local()  # a thread that makes worktrees uses its own probe

    def version(self) -> tuple[int, ...]:
        """Return git's version as numbers."""
        if self._version is None:
            program = self.runner.program()
            if program not in _VERSIONS:
                text = self.runner.ask("version").decode("ascii", "replace")
                match = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
                _VERSIONS[program] = tuple(int(n or 0) for n in match.groups()) if match else (0, 0, 0)
            self._version = _VERSIONS[program]
        return self._version

    def require(self, minimum: tuple[int, int], purpose: str) -> None:
        """Refuse a git that is too old for *purpose*.

        Raises:
            GitTooOld
        """
        if self.version()[:2] < minimum:
            have, need = (".".join(map(str, v)) for v in (self.version(), minimum))
            raise GitTooOld(f"cannot {purpose}: git {need} or newer is needed, this is {have}")

    def bind_lock(self, fd: int | None) -> None:
        """Let every git from now on inherit the repository lock."""
        self.runner.bind_lock(fd)

    def stop_all(self) -> None:
        """End every git process that we started."""
        self.runner.stop_all()

    def resume(self) -> None:
        """Allow git again."""
        self.runner.resume()

    def look_closely(self, since: object = None) -> None:
        """Start probing how far the next ``add_worktree`` and ``fill`` can do without running git.

        They wait for the answer; never asked, both leave everything to git.

        Args:
            since: an earlier look with the same is as good, if nobody changed the settings or staged anything since.
        """
        from swarm.git.shortcuts.probe import Look

        mark, source = self._main_index()
        stamp = since, mark, mark_of(self.common / "config"), mark_of(self.common / "info/attributes")
        look = self._look
        if look is None or since is None or look.stamp != stamp:
            self.stop_looking()
            self._looks.mine = look = Look(self.runner, self.common, source, stamp)
            look.begin()  # noted down before: whatever stops it half way, it is ended

    def _look_on(self) -> None:
        """Use an idle moment to read ahead for ``fill``."""
        look = self._look
        if look is not None:
            look.read_ahead(self.root)

    @property
    def _look(self) -> Look | None:
        found: Look | None = getattr(self._looks, "mine", None)
        return found

    def stop_looking(self) -> None:
        """Forget found answers, and end running lookups."""
        look = self._look
        self._looks.mine = None
        if look is not None:
            look.end()

    def _main_index(self) -> tuple[_Mark | None, Source | None]:
        """Return the main checkout's index and of which moment it is; read again only when it is another."""
        from swarm.git.shortcuts import copying

        index = self.common / "index"
        mark = mark_of(index)
        known = _READ.get(index) or self._source  # taken at once: another thread may put a newer one there
        if known[0] != mark or mark is None:
            self._source = known = mark, copying.read(index) if mark is not None else None
            _READ.clear()
            if known[1] is not None and len(known[1].entries) <= _KEPT:
                _READ[index] = known
        return known


def mark_of(path: Path) -> _Mark | None:
    """Return a mark that distinguishes this state of a file from any other; None without a file."""
    try:
        info = os.stat(path)
    except OSError:
        return None
    return info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns
