"""The folder that git is started in: opened without following a link, and looked at again afterwards.

Who works in a tree can exchange its folder for a link, or put links into git's own folder for the tree, and git
writes through them: into the file behind ``logs/HEAD``, beside the one behind ``index``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.git import gitdir
from swarm.git.errors import GitFailed
from swarm.kit.errors import SymlinkInTheWay
from swarm.machine import own

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Where Linux shows the descriptors of a process, as folders that one can go to.
_SHOWN = "/proc/self/fd"


class Ground:
    """A folder to start programs in; one that is not swarm's own is used as it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_own = own.trusted(str(folder)) is not None
        self._identity = (0, 0)

    @contextlib.contextmanager
    def held(self) -> Iterator[str]:
        """Yield a folder path that stays valid for a program's start, even if the folder is moved.

        Raises:
            SymlinkInTheWay: a link is in the way.
            OSError: there is no such folder.
        """
        if not self._is_own:
            yield str(self._folder)
            return
        fd = self._open()
        try:
            info = os.fstat(fd)
            self._identity = info.st_dev, info.st_ino
            shown = f"{_SHOWN}/{fd}"
            yield shown if os.path.isdir(shown) else str(self._folder)
        finally:
            os.close(fd)

    def look(self) -> None:
        """Refuse a folder behind a link; a missing folder is none.

        Raises:
            SymlinkInTheWay
        """
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self.held():
            pass

    def check(self) -> None:
        """Look whether the path still leads to the folder that a program was started in.

        Raises:
            SymlinkInTheWay, GitFailed: it was exchanged while the program ran.
        """
        if not self._is_own:
            return
        try:
            fd = self._open()
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return  # it disappeared meanwhile: nothing is left to compare
        try:
            info = os.fstat(fd)
        finally:
            os.close(fd)
        if (info.st_dev, info.st_ino) != self._identity:
            raise GitFailed(f"cannot trust git's work in {self._folder}: the folder was exchanged meanwhile")

    def _open(self) -> int:
        try:
            return own.folder(str(self._folder))
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            raise _refused(self._folder, str(error.filename)) from None


def refuse_links(cwd: Path, env: Mapping[str, str]) -> None:
    """Refuse to let git write where its folder for a worktree holds links.

    Raises:
        SymlinkInTheWay: it names the link.
    """
    admins = {gitdir.pointer_of(cwd) if "GIT_DIR" not in env else Path(env["GIT_DIR"])}
    if "GIT_INDEX_FILE" in env:
        admins.add(Path(env["GIT_INDEX_FILE"]).parent)
    for admin in admins:
        if admin is not None and own.trusted(str(admin)) is not None:
            _refuse_links_in(admin, cwd)


def _refuse_links_in(admin: Path, cwd: Path) -> None:
    for folder in (admin, admin / "logs"):
        try:
            fd = own.folder(str(folder))
        except OSError as error:
            if error.errno != errno.ELOOP:
                continue  # git reports the problem itself
            raise _refused(cwd, str(error.filename)) from None
        try:
            with os.scandir(fd) as entries:
                links = [entry.name for entry in entries if entry.is_symlink()]
            for name in links:
                # By an old way of git's a link names a branch; git never writes through that one.
                if (folder, name) != (admin, "HEAD") or not os.readlink(name, dir_fd=fd).startswith("refs/"):
                    raise _refused(cwd, f"{folder}/{name}")
        finally:
            os.close(fd)


def _refused(cwd: Path, link: str) -> SymlinkInTheWay:
    hint = f"look where it leads, then remove it: rm {shlex.quote(link)}"
    return SymlinkInTheWay(f"cannot let git write for {cwd}: {link} is a symbolic link", hint=hint)
