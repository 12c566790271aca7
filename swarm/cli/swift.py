"""``swarm send TO TEXT`` in hardly more time than Python takes to start; an agent does it all day.

It does what ``engine/post_sending.py`` and ``store/bus/`` do for a message like most: to one recipient whose inbox is
there, with nothing special about it.  Whatever is different in any way it leaves to them, having changed nothing.
What a message, a record of the log and an identity are it does not know better: it uses the same functions.

The program ``bin/swarm`` loads this and what it imports, one by one; ``os`` alone would take half of the time that
there is.
"""

from __future__ import annotations

import posix
import sys
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock
from time import sleep, time_ns

from swarm.domain import plain
from swarm.domain.plain import is_word
from swarm.pane import proc, records
from swarm.pane.whoami import absence, generation_in, read_session, whoami
from swarm.store.bus import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_USER, _PARENT = "user", "parent"
_FOR_USER = (_USER, _PARENT)
_MEANS_SEVERAL = ("all", "broadcast")
_LANE = "normal"
_LESS_URGENT = "low"
_OTHERS = ("interrupt", "high", _LESS_URGENT)
_SUBJECT = '""'
#: A box into which so little was ever put is not full, whatever its readers have done.
MOST_MESSAGES, MOST_BYTES = 8_000, 192 << 20
#: A log that is rolled when it gets longer is left to who does that.
MOST_IN_PART = 8 << 20
_BOTH = posix.O_RDWR | posix.O_APPEND | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK
_TRIES, _PAUSE = 40, 0.0002


class NotSynced(Exception):
    """The message was added, but the disk did not take it; sent again under its id nobody gets it twice."""

    def __init__(self, box: str, error: OSError) -> None:
        super().__init__(box, error)
        self.box = box
        self.error = error
        self.id = ""


def run(args: list[str]) -> int | None:
    """Send a message and return the exit status; None: nothing was done, it is for the full program."""
    if len(args) != 3 or args[0] != "send" or args[1][:1] in ("", "-") or args[2][:1] in ("", "-"):
        return None
    if b"_SWARM_COMPLETE" in posix.environ or not proc.HAS_PROC:
        return None
    if not records.names_good_dir(_named_in(posix.environ)):
        return None
    try:
        said = send(args[1], args[2])
    except (OSError, ValueError, ImportError, RecursionError):
        return None
    return None if said is None else _say(said)


def _say(text: str) -> int:
    if sys.stdout is None:  # closed by whoever started us
        return 0
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        release()
        from swarm.cli.output import lost_output

        return lost_output()
    return 0


def failed(error: BaseException, args: list[str]) -> int:
    """Say what went wrong, as the full program does, and return the exit status."""
    release()
    from swarm.cli import quick

    if isinstance(error, NotSynced):
        from swarm.engine.post_refused import name_id
        from swarm.store.bus.files import translated

        problem = translated(error.error, f"cannot send to inbox.{error.box.rpartition('/')[2]}")
        name_id(problem, error.id)
        error = problem
    return quick.failed("send", "cannot send", error, args)


def release() -> None:
    """Let everything be imported from now on; ``boot`` puts what does that in this place."""


def send(to: str, text: str) -> str | None:
    """Send a message and return what is said about it; None when something is out of the ordinary.

    Raises:
        NotSynced
        OSError, ValueError: it is not as expected; nothing was added.
    """
    if len(text) > plain.SURELY_FITS or not (text.isascii() or sys.getfilesystemencoding() == "utf-8"):
        return None
    who = whoami({})
    state = _state() if who is None else who.state
    if state is None or not records.is_folder(posix.stat(f"{state}/sessions")):
        return None
    own = {} if who is None else read_session(who.session_folder)
    found = _recipient(to, state, "" if who is None else who.session, own)
    if found is None:
        return None
    address, generation, note = found
    sender, sender_generation = (_USER, "") if who is None else (who.address, generation_in(own, who.agent))
    box = address.replace("@", "-")
    words = all(is_word(plain.ADDRESS, one) for one in (sender, address)) and is_word(plain.BOX, box)
    if not words or not all(is_word(plain.ID, one) for one in (generation, sender_generation) if one):
        return None
    from _json import encode_basestring

    message_id = plain.id_of(time_ns() // 1_000_000, int.from_bytes(posix.urandom(8), "big") >> 1)
    head = plain.head(sender, address, "message", _LANE)
    rest = plain.member("generation", generation) + plain.member("sender_generation", sender_generation)
    content = plain.content(_SUBJECT, encode_basestring(text))
    record = plain.record(message_id, head, time_ns() // 1_000_000, content, rest)
    try:
        added = add(f"{state}/messages/inbox/{box}", record)
    except NotSynced as error:
        error.id = message_id
        raise
    if not added:
        return None
    return f"sent {message_id} to {address}{f' ({note}: it waits in the inbox)' if note else ''}\n"


def _named_in(environ: dict[bytes, bytes]) -> dict[str, str]:
    how = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()
    return {one: environ.get(one.encode(), b"").decode(*how) for one in records.NAMING}


# --- from whom to whom --------------------------------------------------------------------------------


def _state() -> str | None:
    """Return the ``.swarm`` folder of the repository around us, if this is a main checkout."""
    folder = posix.getcwd()
    while folder:
        try:
            info = posix.stat(f"{folder}/.git")
        except OSError:
            folder = folder.rpartition("/")[0]
            continue
        state = f"{folder}/.swarm"
        there = posix.lstat(state)
        ours = records.is_folder(there) and there.st_uid == posix.geteuid() and not there.st_mode & 0o022
        return state if ours and records.is_folder(info) else None
    return None


def _recipient(to: str, state: str, own_session: str, own: dict[str, object]) -> tuple[str, str, str] | None:
    """Return address, generation, and why it is not read now, of the one that is meant beyond doubt."""
    name, at, session = to.partition("@")
    lower = name.casefold()
    if "," in to or to != to.strip() or lower in _MEANS_SEVERAL or lower.startswith("role:"):
        return None
    if lower in _FOR_USER:
        started_by_agent = lower == _PARENT and _PARENT in own
        return None if at or started_by_agent else (_USER, "", "")
    if at:
        same = [one for one in posix.listdir(f"{state}/sessions") if one.casefold() == session.casefold()]
    else:
        same = [own_session] if own_session else posix.listdir(f"{state}/sessions")
    found = []
    for one in same:
        record = own if one == own_session else read_session(f"{state}/sessions/{one}")
        if "name" in record:
            return None
        found += [(one, record, agent) for agent in _agents(record) if agent["name"].casefold() == lower]
    if len(found) != 1:
        return None
    where, record, agent = found[0]
    if agent["name"] in plain.GROUPS:
        return None
    run = f"{state}/sessions/{where}/run/{agent['name']}"
    note = absence(run) if str(agent.get("program", "")) else "it has no program"
    return f"{agent['name']}@{where}", generation_in(record, agent["name"]), note


def _agents(record: dict[str, object]) -> list[dict[str, Any]]:
    agents = record.get("agents")
    all_of_them = agents if isinstance(agents, list) else ()
    return [one for one in all_of_them if isinstance(one, dict) and isinstance(one.get("name"), str)]


# --- into the log ---------------------------------------------------------------------------------------


def add(box: str, record: bytes) -> bool:
    """Add a record to a box and sync it; False: nothing was added, as there is more to be looked at first."""
    count, size = 0, 0
    for lane in _OTHERS:
        if posix.stat(f"{box}/{lane}/active.log").st_size == len(lines.EMPTY):
            continue
        if lane == _LESS_URGENT:
            return False  # the order of these and ours has to be written down
        fd = posix.open(f"{box}/{lane}/active.log", posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC)
        try:
            _, end, number = _look(fd)
        finally:
            posix.close(fd)
        if number < 0:
            return False
        count += number
        size += end
    path = f"{box}/{_LANE}/active.log"
    fd = posix.open(path, _BOTH)
    added = False
    try:
        try:
            added = _append(fd, path, record, count, size)
            if added:
                posix.fdatasync(fd)
        finally:
            posix.close(fd)
    except OSError as error:
        if added:
            raise NotSynced(box, error) from error
        raise
    return added


def _append(fd: int, path: str, record: bytes, count: int, size: int) -> bool:
    """Write a record below the lock of the log, which ends with the file's closing if not before.

    Args:
        count, size: how much is in the other lanes.
    """
    if not _lock(fd):
        return False
    opened, there = posix.fstat(fd), posix.stat(path)
    if (opened.st_ino, opened.st_dev) != (there.st_ino, there.st_dev):
        return False
    head, end, number = _look(fd)
    line = lines.seal(record, number + 1)
    few = number >= 0 and count + number < MOST_MESSAGES and size + end + len(line) < MOST_BYTES
    if not few or not head < opened.st_size <= MOST_IN_PART - len(line):
        return False
    if posix.write(fd, line) != len(line):
        posix.ftruncate(fd, opened.st_size)  # the full program is told why
        return False
    flock(fd, LOCK_UN)
    return True


def _lock(fd: int) -> bool:
    for _ in range(_TRIES):
        try:
            flock(fd, LOCK_EX | LOCK_NB)
            return True
        except BlockingIOError:
            sleep(_PAUSE)
    return False


def _look(fd: int) -> tuple[int, int, int]:
    """Return of a part how long its head is, where in the log it ends, its last number; -1 if that is not plain."""
    head = posix.pread(fd, 128, 0).partition(b"\n")[0]
    if lines.verify(head) < 0 or not head.startswith(lines.HEAD):
        return 0, 0, -1
    size = posix.fstat(fd).st_size
    tail = posix.pread(fd, lines.END_IN, max(0, size - lines.END_IN))
    number = -1 if lines.is_closed(tail) else lines.last_number(posix.pread, fd, size)
    return len(head) + 1, int(head[len(lines.HEAD) :].partition(b",")[0]) + size, number
