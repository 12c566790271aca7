"""The files of a log: which one is active, and where each begins.

    active.log                  where records are added
    0000000000008388608.log     an older part, named by the offset of its first byte; never changed again
    removed.head                where the log went on behind the newest part that was removed

Every part begins with a header line: the offset of the whole log at which it begins.  So a position is one number,
which stays true when the active part is rolled.  A lock on the folder covers rolling and creating.
"""

from __future__ import annotations

import errno
import os
import stat
from time import monotonic
from typing import TYPE_CHECKING

from swarm.bus.log import lines
from swarm.bus.log.files import locked_folder
from swarm.bus.log.part import whole_lines
from swarm.machine import own
from swarm.machine.atomic import sweep_temporaries, write_atomic

if TYPE_CHECKING:
    from swarm.bus.log.files import Patience

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_BOTH = _READ | os.O_RDWR | os.O_APPEND
#: A process without the right to write may still read.
_MAY_LOOK = (errno.EROFS, errno.EACCES, errno.EPERM)

HEAD = lines.HEAD
REMOVED = "removed.head"

#: For so many seconds one is sure that a file is the active part.  Who rolls it or removes the box says so in the
#: file itself; this is about what foreign hands delete, and with it anything sent a moment before.
_SURE = 0.05


class Parts:
    """The files of one log."""

    def __init__(self, folder: str, patience: Patience = None) -> None:
        self.folder = folder
        self._patience = patience
        self.path = folder + "/active.log"
        self.opened = 0  # how often a part was opened to write to it: when it was rolled, or is another box's
        self._fd = -1  # of the active part
        self._looks = False  # it was opened only to be read
        self._ino = (0, 0)
        self._base = self._head = 0
        self._size = self._number = -1  # of the active part when this process last wrote to it
        self._rolled: list[int] = []
        self._whole = self._seen = -1  # of the active part: a size that ends whole, a size looked at
        self._sure_until = 0.0

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._ino = (0, 0)
            self._sure_until = 0.0

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def end(self) -> int:
        """Return the offset where the log ends now; it may count a torn end in."""
        if self._fd < 0 or (monotonic() >= self._sure_until and not self._is_active()):
            self.close()
            self._open(look=True)
        size = os.lseek(self._fd, 0, os.SEEK_END)
        if size != self._seen:
            # It grew; its last line tells if it did so for the last time.
            tail = os.pread(self._fd, lines.END_IN, max(0, size - lines.END_IN))
            if not lines.is_closed(tail):
                self._seen = size if tail[-1:] == b"\n" else -1  # only what ends so is never cut off again
            elif not self._is_active():  # else the closing process is about to roll it: check again next time
                self.close()
                return self.end()
        return self._base + size

    def _is_active(self) -> bool:
        """Whether the open file still is the active part: not rolled, not removed."""
        try:
            info = os.stat(self.path)
        except FileNotFoundError:
            return False
        self._sure_until = monotonic() + _SURE
        return info.st_ino == self._ino[1] and info.st_dev == self._ino[0]

    def whole_end(self) -> int:
        """Return the offset where the last whole line ends: the next record begins there, if not later."""
        size = self.end() - self._base
        if size and size != self._whole:
            back = 1
            while (tail := os.pread(self._fd, back, size - back).rfind(b"\n")) < 0 and back < size:
                back = min(back << 4, size)  # a writer is at it, or was killed
            if back == 1:
                self._whole = size  # what ends with a newline is never cut off again
            size += tail + 1 - back
        return self._base + size

    def _open(self, *, look: bool = False) -> None:
        """Open the active part; to *look* only to be read, where one must not write."""
        fd = -1
        mode = _BOTH
        while fd < 0:
            try:
                fd = own.open(self.path, mode)
            except FileNotFoundError:
                self.create()
            except OSError as error:
                if not look or mode == _READ or error.errno not in _MAY_LOOK:
                    raise
                mode = _READ
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.EINVAL, "is no regular file", self.path)  # noqa: TRY301  # closed below
            head = os.pread(fd, 256, 0).partition(b"\n")[0]
            if lines.verify(head) >= 0:
                self._base = int(head[len(HEAD) :].partition(b",")[0])
            else:  # damaged; the parts before it tell the same
                self._base = self._begin()[0]
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd
        self._looks = mode == _READ
        self.opened += 1
        self._ino = (info.st_dev, info.st_ino)
        self._head = len(head) + 1
        self._size = self._whole = self._seen = -1
        self._rolled = []

    def create(self) -> None:
        """Make the active part if it is missing.

        Raises:
            FileNotFoundError: there is no folder for it.
        """
        with locked_folder(self.folder, self._patience):
            if os.path.lexists(self.path):
                return
            base, number = self._begin()
            sweep_temporaries(self.folder)  # of a killed creator: no other process is here
            write_atomic(self.path, lines.seal(b"%b%d}" % (HEAD, base), number), name_too=False)

    def _begin(self) -> tuple[int, int]:
        """Return where the next part begins, and the number of the last record before it."""
        parts = self._list_parts()
        base, number = self._removed()
        if not parts or parts[-1] < base:
            return base, number
        fd = self._open_part(parts[-1])
        try:
            size = os.fstat(fd).st_size
            number = lines.last_number(os.pread, fd, size)
            if number < 0:  # damaged: count the records
                number = 0
                for line in whole_lines(fd, 0, 0):
                    number = line.number if line.number >= 0 else number + 1
        finally:
            os.close(fd)
        return parts[-1] + size, number

    def _part_at(self, position: int, mode: int = os.O_RDONLY) -> tuple[bool, int, int]:
        """Return whether the part that holds a position is rolled, its base, and a descriptor to be closed."""
        self.end()
        if position >= self._base:
            # Opened anew, not duplicated: a lock belongs to the open file, and must be our own.
            fd = self._open_active(mode)
            if fd >= 0:
                return False, self._base, fd
            self._sure_until = 0.0  # it was rolled just now
            return self._part_at(position, mode)
        if not self._rolled:
            self._rolled = self._list_parts()
        if not self._rolled:
            return self._part_at(self._base, mode)  # all before it were removed
        from bisect import bisect_right

        base = self._rolled[max(0, bisect_right(self._rolled, position) - 1)]
        try:
            return True, base, self._open_part(base, mode)
        except FileNotFoundError:  # removed since they were listed; the log goes on behind it
            self._rolled = []
        return self._part_at(position, mode)

    def _open_active(self, mode: int) -> int:
        """Open the active part again; -1 when it was replaced, or is missing for a moment."""
        try:
            fd = own.open(self.path, mode | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return -1
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) == self._ino:
            return fd
        os.close(fd)
        return -1

    def _next_base(self, base: int) -> int:
        self.end()
        self._rolled = self._list_parts()
        later = [b for b in self._rolled if b > base]
        return min(later, default=self._base)

    def _removed(self) -> tuple[int, int]:
        """Return where the newest part that was removed ended, and the number of its last record."""
        try:
            with open(f"{self.folder}/{REMOVED}", "rb") as file:
                head = file.read(256).partition(b"\n")[0]
        except FileNotFoundError:
            return 0, 0
        number = lines.verify(head)
        return (int(head[len(HEAD) :].partition(b",")[0]), number) if number >= 0 else (0, 0)

    def _list_parts(self) -> list[int]:
        names = (n[:-4] for n in os.listdir(self.folder) if n.endswith(".log"))
        return sorted(int(n) for n in names if n.isdigit())

    def _open_part(self, base: int, mode: int = os.O_RDONLY) -> int:
        return own.open(f"{self.folder}/{base:019d}.log", mode | os.O_NOFOLLOW | os.O_CLOEXEC)
