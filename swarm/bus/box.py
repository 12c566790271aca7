"""One box: four lanes of messages and a reader log.

inbox/<agent>-<session>/  or  queue/<name>/  or  events/<agent>-<session>/
    interrupt/ high/ normal/ low/      a log each
    reader/ reader.state reader.lock   what the readers did
    drop/                              plain files that foreign programs want to be messages
    bad/                               what could not be read, each with a .why beside it
"""

from __future__ import annotations

import os
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus.log.files import beginning_of, locked_folder
from swarm.bus.log.log import Full, Log
from swarm.bus.wire import PRIORITIES
from swarm.machine import own
from swarm.machine.atomic import sweep_temporaries, sync_file, sync_folder, write_all, write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm.bus.log.files import Patience
    from swarm.bus.log.log import Written
    from swarm.bus.log.part import Line
    from swarm.bus.protocol import Place
    from swarm.bus.reader.choose import Needs
    from swarm.bus.reader.reader_log import ReaderLog
    from swarm.bus.wake import Wake
    from swarm.kit.errors import SwarmError

#: From then on it pays to remember the ids.
_FEW = 4
_OTHERS = ("reader", "drop", "bad")
_RECORD = ".record"
#: So much of a quota may be added to a lane, as one part of so many, before it is counted again.  When less is left
#: than all lanes together may have been allowed it is counted each time.
_GRANT = 40


class Limits(NamedTuple):
    """Limits on the unfinished messages of a box."""

    messages: int = 10_000
    octets: int = 256 << 20


class LaneEnds(NamedTuple):
    """Where the lanes of a box ended at some moment; another box may have its path later."""

    box: bytes
    places: tuple[int, ...]


class Box:
    """One box. ``mutex`` keeps threads apart; file locks do so for processes."""

    def __init__(self, root: str, address: str, limits: Limits, patience: Patience = None) -> None:
        kind, _, name = address.partition(".")
        self.address = address
        self.folder = f"{root}/{kind}/{name}"
        self.blobs = f"{root}/blobs"  # the attachments of all boxes
        self.ordered = kind == "inbox"
        self.lanes = tuple(Log(f"{self.folder}/{lane}", patience=patience) for lane in PRIORITIES)
        self._reader_log: ReaderLog | None = None
        self.mutex = RLock()
        self.patience = patience
        #: (sender, lane) → no message of theirs waits before this place.
        self.clear: dict[tuple[str, int], int] = {}
        #: What messages of a queue wait for.
        self.needs: Needs = {}
        self._limits = limits
        self._allowed = [(0, 0)] * len(PRIORITIES)
        self._allowed_in = [0] * len(PRIORITIES)  # which opening of the lane that was
        #: Kept for the next reader that waits: those of readers' notes only, or of everything.
        self.watches: dict[bool, list[Wake]] = {False: [], True: []}
        self._identity = b""  # of the box that all this was learnt of
        self._lookups = 0
        self._ids: set[int] = set()
        self._ids_upto = [0] * len(PRIORITIES)
        self._durable: dict[tuple[int, int], int] = {}
        self._secured: dict[int, tuple[int, int]] = {}  # lane → which opening of it, and up to where

    @property
    def reader_log(self) -> ReaderLog:
        """The reader log; most senders need none, and it takes longer to load than all the rest."""
        if self._reader_log is None:
            from swarm.bus.reader.reader_log import ReaderLog

            self._reader_log = ReaderLog(self.folder, self.address, self.patience)
        return self._reader_log

    def close(self) -> None:
        """Let go of the files."""
        for log in self.lanes:
            log.close()
        if self._reader_log is not None:
            self._reader_log.close()
        for kept in self.watches.values():
            while kept:
                kept.pop().close()
        self._forget()

    def learn_of(self, identity: bytes) -> None:
        """Forget an older box of the same path, if this is a new one."""
        if identity != self._identity:
            self._forget()
            self._identity = identity

    def _forget(self) -> None:
        self._lookups = 0
        self._ids.clear()
        self._ids_upto = [0] * len(PRIORITIES)
        self._durable.clear()
        self.clear.clear()
        self.needs.clear()

    def not_there(self) -> SwarmError:
        """Return the error that says so."""
        from swarm.bus.errors import InboxNotFound

        return InboxNotFound(f"there is no {self.address.replace('.', ' ', 1)}")

    # --- making ---------------------------------------------------------------------------------

    def make(self) -> None:
        """Make the box, or its missing parts; it counts once its lock file exists."""
        made = False
        for folder in (self.folder, *(f"{self.folder}/{name}" for name in (*PRIORITIES, *_OTHERS))):
            made |= _make_folder(folder)
        for log in (*self.lanes, self.reader_log.log):
            if not os.path.lexists(log.path):
                log.create()
        path = f"{self.folder}/reader.lock"
        if made or not os.path.lexists(path):
            with locked_folder(self.folder, self.patience):
                if not os.path.lexists(path):
                    sweep_temporaries(self.folder, "reader.lock")
                    write_atomic(path, os.urandom(16).hex().encode() + b"\n", name_too=False)  # names this very box
            for folder in (self.folder, os.path.dirname(self.folder), os.path.dirname(os.path.dirname(self.folder))):
                sync_folder(folder)

    # --- adding ---------------------------------------------------------------------------------

    def tails(self, lane: int) -> list[tuple[int, int]]:
        """Return where the less urgent lanes end that hold or held something: (lane, end)."""
        return [(n, log.whole_end()) for n, log in enumerate(self.lanes[lane + 1 :], lane + 1) if not log.is_empty()]

    def append(self, lane: int, record: bytes) -> Written:
        """Add a record within the quota.

        Raises:
            QuotaReached: nothing was added.
            InboxNotFound: there is no such box (any more).
        """
        try:
            while True:
                log = self.lanes[lane]
                try:
                    written = log.append(record, *self._allowed[lane])
                    if log.opened != self._allowed_in[lane]:  # it may be another box by now: count anew
                        self._allowed_in[lane] = log.opened
                        self._allowed[lane] = (0, 0)
                    return written
                except Full:
                    self._allow(lane, len(record) + 64)
        except (FileNotFoundError, NotADirectoryError):
            raise self.not_there() from None

    def _allow(self, lane: int, size: int) -> None:
        """Count the waiting messages, and set how many a lane may take before the next count.

        That is a small part of the quota, and when it is near no more than the record that is to be added now. What
        was allowed to a lane long ago and not used is not known to those who fill another one.
        """
        log = self.lanes[lane]
        number, end = (
            log.last_number(),
            log.end(),
        )  # before the count: messages that come meanwhile are within the limit
        most, most_octets = self._limits
        grant, octet_grant = max(1, most // _GRANT), max(size, most_octets // _GRANT)
        spare, spare_octets = len(self.lanes) * grant, len(self.lanes) * octet_grant
        room = most - sum(log.last_number() for log in self.lanes)
        octets = most_octets - sum(log.end() for log in self.lanes)
        if room < spare or octets < spare_octets:  # else there is room whatever the readers have settled
            room, octets = self._room()
        if room < 1 or octets < size:
            what = f"{most} messages" if room < 1 else f"{most_octets} bytes"
            from swarm.bus.errors import QuotaReached

            raise QuotaReached(f"{self.address} is full: {what} wait in it", room=max(room, 0), bytes=max(octets, 0))
        if room < spare or octets < spare_octets:
            grant, octet_grant = 1, size
        self._allowed[lane] = (number + grant, end + octet_grant)

    def _room(self) -> tuple[int, int]:
        """Return how many messages may be added, and how many bytes."""
        state = self.reader_log.look()
        room, octets = self._limits
        for index, log in enumerate(self.lanes):
            one = state.lanes[index]
            room -= state.pending(index, log.last_number())
            octets -= log.end() - one.low - one.spans.total() + sum(one.revived.values())
        return room, octets

    def ends(self) -> LaneEnds:
        """Return the present ends of the lanes, so that a reader need not read the parts before them again."""
        return LaneEnds(identity_of(f"{self.folder}/reader.lock"), tuple(log.whole_end() for log in self.lanes))

    def find(self, message_id: str, behind: LaneEnds | None = None) -> tuple[Place, Line] | None:
        """Return the first record of a message, in any lane; only those *behind* some ends of this very box."""
        identity = identity_of(f"{self.folder}/reader.lock")
        self.learn_of(identity)
        self._lookups += behind is None
        if self._lookups > _FEW and not self._may_hold(message_id):
            return None
        begins = behind.places if behind is not None and behind.box == identity else (0,) * len(self.lanes)
        from swarm.bus.reader.choose import place_of

        needle = f'"id":"{message_id}"'.encode()
        for lane, log in enumerate(self.lanes):
            for line in log.search(needle, begins[lane], log.end()):
                place = place_of(lane, line)
                if place is not None and place.id == message_id:
                    return place, line
        return None

    def _may_hold(self, message_id: str) -> bool:
        """Whether a message may be in this box. A process that asks again reads only the lines added since."""
        from swarm.bus.reader.choose import ids_in

        for lane, log in enumerate(self.lanes):
            for at, data in log.blocks(self._ids_upto[lane], log.end()):
                self._ids.update(map(hash, ids_in(data)))
                self._ids_upto[lane] = at + len(data)
        return hash(message_id.encode()) in self._ids

    def secure(self, places: tuple[Place, ...]) -> None:
        """Sync messages before their acknowledgement, or their places could be used again."""
        for place in places:
            end = place.at + place.size
            if not any(lane == place.lane and base <= place.at and end <= upto
                       for (lane, base), upto in self._durable.items()):  # fmt: skip
                base, upto = self.lanes[place.lane].sync(place.at)
                self._durable[place.lane, base] = upto

    def secure_tails(self, tails: list[tuple[int, int]]) -> None:
        """Sync every lane up to the given ends, as ``tails`` just returned them."""
        for lane, end in tails:
            log = self.lanes[lane]
            opened, upto = self._secured.get(lane, (0, 0))
            if opened != log.opened or upto < end:  # one that was opened anew may be another box's
                opened = log.opened
                log.sync(log.behind_last(end) - 1)
                self._secured[lane] = (opened, end)

    # --- setting aside --------------------------------------------------------------------------

    def fragments(self) -> Iterator[tuple[str, bytes]]:
        """Yield path and beginning of the rest of each damaged record; other files there are foreign."""
        for name in sorted(os.listdir(f"{self.folder}/bad")):
            lane, _, at = name.removesuffix(_RECORD).partition("-")
            if name.endswith(_RECORD) and lane in PRIORITIES and at.isdecimal():
                path = self.fragment(PRIORITIES.index(lane), int(at))
                yield path, beginning_of(path)

    def fragment(self, lane: int, at: int) -> str:
        """Return the file with the rest of a damaged record."""
        return f"{self.folder}/bad/{PRIORITIES[lane]}-{at}{_RECORD}"

    def set_aside(self, lane: int, line: Line) -> None:
        """Keep a damaged record with the reason; doing it twice makes one."""
        why = f"at {line.at} of lane {PRIORITIES[lane]}: it does not verify\n"
        self.keep_bad(os.path.basename(self.fragment(lane, line.at)), why, line.data)

    def keep_bad(self, name: str, why: str, data: bytes | None = None) -> None:
        """Write the reason, and the data unless the caller moves a file there."""
        for suffix, content in ((".why", why.encode("utf-8", "backslashreplace")), ("", data)):
            if content is not None:
                path = f"{self.folder}/bad/{name}{suffix}"
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                fd = own.open(path, flags, 0o600)
                try:
                    write_all(fd, content)
                    sync_file(fd)
                finally:
                    os.close(fd)
        sync_folder(f"{self.folder}/bad")


def _make_folder(path: str) -> bool:
    try:
        own.mkdir(path, 0o700)
    except FileExistsError:
        return False
    except FileNotFoundError:
        _make_folder(os.path.dirname(path))
        return _make_folder(path)
    return True


def identity_of(lock: str) -> bytes:
    """Return the name of a box, which stands in its lock file."""
    fd = own.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return os.pread(fd, 64, 0)
    finally:
        os.close(fd)
