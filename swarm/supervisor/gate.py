"""The gate before an agent program: read the launch file, await the commit, claim the launch.

        record lists the operation ───────────────────► open
        journal entry gone, record without it ────────► closed: rolled back
        owner dead, record without it ────────────────► closed: recovery will take it back
        time is up ───────────────────────────────────► closed

The record is written before the journal entry goes, so whatever speaks for *closed* is believed
only after another look at the record.
"""

from __future__ import annotations

import os
import time

from swarm.machine import own, processes, records, session_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm.supervisor import signals as sig

_LIMIT = 16 << 20
_SHORTEST = 0.02
_LONGEST = 0.1
_GRACE = 5.0


class Closed(Exception):
    """Nothing is to be started; says why, and the exit status."""

    def __init__(self, why: str, code: int = 0) -> None:
        super().__init__(why)
        self.code = code


class Launch:
    """A launch file; ``launcher.py`` lists the fields."""

    def __init__(self, record: dict[str, object]) -> None:
        """Raise ``KeyError``, ``TypeError`` or ``ValueError`` if the record is not of that form."""
        if record["schema"] != records.SCHEMA:
            raise ValueError(f"it has schema {record['schema']}")
        self.operation = _text(record["operation"])
        self.agent = _text(record["agent"])
        self.session = _text(record["session"])
        self.record = _text(record["record"])
        self.journal = _text(record["journal"])
        self.run_dir = _text(record["run_dir"])
        self.stamp = _text(record["stamp"])
        self.gate_timeout = _seconds(record["gate_timeout"])
        self.grace = _seconds(record.get("grace", _GRACE))
        self.cwd = _bytes(record["cwd"])
        self.argv = [_bytes(word) for word in _list(record["argv"])]
        self.env = {_bytes(name): _bytes(value) for name, value in _mapping(record["env"]).items()}
        self.from_pane = [_bytes(name) for name in _list(record.get("from_pane") or [])]
        self.label = [_bytes(word) for word in _list(record.get("label") or [])]
        self.label_env = {_bytes(k): _bytes(v) for k, v in _mapping(record.get("label_env") or {}).items()}
        self.screen = bool(record.get("screen"))
        box = _mapping(record.get("box") or {})
        self.boxed = bool(box)
        self.commits = [_bytes(path) for path in _list(box.get("commits") or [])]
        forward = _mapping(box.get("forward") or {})
        self.forward_folder = _text(forward.get("folder") or "")
        self.forward = [_bytes(word) for word in _list(forward.get("argv") or [])]
        self.take_in = [_bytes(word) for word in _list(box.get("take_in") or [])]
        self.streams = [_text(record.get(name) or "") for name in ("stdin", "stdout", "stderr")]
        self.timeout = _seconds(record.get("timeout") or 0)
        self.interrupt = _seconds(record.get("interrupt") or 0)
        self.after = [_bytes(word) for word in _list(record.get("after") or [])]
        self.spoken = Spoken(_mapping(record["talk"])) if record.get("talk") else None
        self.prints = record.get("prints") is True
        self.deaf = record.get("deaf") is True
        self.mail = Mail(_mapping(record.get("mail") or {}))
        self.heartbeat = Heartbeat(_mapping(record.get("heartbeat") or {}))
        self.program = _text(record.get("program") or "")
        self.role = _text(record.get("role") or "")
        self.pod = _text(record.get("pod") or "")
        self.socket = _text(record.get("socket") or "")
        self.budget = _mapping(record.get("budget") or {})
        self.disk = _mapping(self.budget.get("disk") or {})
        self.measure_disk = [_bytes(word) for word in _list(self.disk.get("argv") or [])]
        self.network = _mapping(record.get("network") or {})
        self.network_argv = [_bytes(word) for word in _list(self.network.get("argv") or [])]
        self.tell_budget = [_bytes(word) for word in _list(self.budget.get("tell") or [])]
        if not self.argv:
            raise ValueError("argv is empty")
        owner = _mapping(record["owner"])
        self.owner = (_whole(owner["pid"]), _whole(owner.get("start") or 0))

    def program_env(self) -> dict[bytes, bytes]:
        """Return the program's environment: the requested one plus ours and the terminal's, without tmux."""
        env = {name: value for name, value in self.env.items() if name not in (b"TMUX", b"TMUX_PANE")}
        for name in self.from_pane:
            env.pop(name, None)
            if name in os.environb:
                env[name] = os.environb[name]
        env[b"SWARM_AGENT_ID"] = _bytes(self.stamp)
        env[b"SWARM_RUN_DIR"] = _bytes(self.run_dir)
        return env


class Mail:
    """The agent's inbox, and the command that announces its messages.

    Attributes:
        inbox: the folder; empty: it has none.
        address: what the inbox is addressed by.
        nudge: the command that tells it; empty: it looks into its inbox by itself, or nobody shall.
        send: the command that sends it the heartbeat, but for the name of the time of idleness.
        idle: the command that tells whether it is idle.
        pause: seconds that it may take to read its messages.
        shell: it is a shell, and is idle when nothing but itself has the terminal.
        awaited: its hooks wait for messages; it is told only when nobody does.
        says: the file in which it says what it is doing, with ``{pid}`` in it; empty: state.json, or none.
    """

    def __init__(self, record: dict[str, object]) -> None:
        self.inbox = _text(record.get("inbox") or "")
        self.address = _text(record.get("address") or "")
        self.nudge = [_bytes(word) for word in _list(record.get("nudge") or [])]
        self.send = [_bytes(word) for word in _list(record.get("send") or [])]
        self.idle = [_bytes(word) for word in _list(record.get("idle") or [])]
        self.pause = _seconds(record.get("pause") or 30)
        self.shell = record.get("shell") is True
        self.awaited = record.get("awaited") is True
        self.says = _text(record.get("says") or "")


class Heartbeat:
    """The message for an agent that has been idle for long.

    Attributes:
        idle_timeout: seconds; 0 is never.
        message: what it is told.
        condition: a shell command that must end well first; empty: none.
    """

    def __init__(self, record: dict[str, object]) -> None:
        self.idle_timeout = _seconds(record.get("idle_timeout") or 0)
        self.message = _text(record.get("message") or "")
        self.condition = _text(record.get("condition") or "")


class Spoken:
    """How to talk with a program while its turn lasts.

    Attributes:
        speech: the module with the program's own lines.
        id, text: what it is told first.
        messages: the folder of what it is told later.
        known: the messages that it has in its conversation from before.
        ask: the command that has a request answered, but for the name of the file with the request.
        within: seconds that an answer may take.
    """

    def __init__(self, record: dict[str, object]) -> None:
        self.speech = _text(record["speech"])
        self.id = _text(record["id"])
        self.text = _text(record["text"])
        self.messages = _text(record["messages"])
        self.known = [_text(one) for one in _list(record["known"])]
        self.ask = [_bytes(word) for word in _list(record["ask"])]
        self.within = _seconds(record["within"])


def read(path: str) -> Launch:
    """Read a launch file.

    Raises:
        Closed: there is none, or it is not one.
    """
    try:
        return Launch(records.read_object(path, _LIMIT, private=True))
    except FileNotFoundError:
        raise Closed("nothing to start: this pane's program was started before", 3) from None
    except OSError as error:
        raise Closed(f"cannot read the launch file: {error.strerror}", 5) from None
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise Closed(f"cannot use the launch file: {type(error).__name__}: {error}", 70) from None


def wait(launch: Launch, signals: sig.Signals) -> None:
    """Return when the launch is committed.

    Raises:
        Closed: it will not be.
    """
    record = _Record(launch.record, launch.operation)
    deadline = time.monotonic() + launch.gate_timeout
    pause = _SHORTEST
    while not record.has_it():
        why = _closed(launch, late=time.monotonic() >= deadline)
        if why:
            if record.has_it():
                return
            raise Closed(f"{launch.agent} was not started: {why}")
        signals.wait(pause)
        if signals.stops:
            raise Closed(f"{launch.agent} was not started: it was stopped first", 128 + signals.stops[0])
        pause = min(_LONGEST, pause * 1.25)


def claim(path: str) -> None:
    """Remove the launch file; only the process that removed it may start the program.

    Raises:
        Closed: somebody was faster, or it cannot be removed.
    """
    try:
        own.unlink(path)
    except FileNotFoundError:
        raise Closed("nothing to start: another launcher was faster", 3) from None
    except OSError as error:
        raise Closed(f"cannot remove the launch file: {error.strerror}", 5) from None


def _closed(launch: Launch, *, late: bool) -> str:
    if not os.path.lexists(launch.journal):
        return "the start was rolled back"
    if not _is_running(*launch.owner):
        return "the swarm command that started it is gone"
    return f"the start was not complete after {launch.gate_timeout:g} s" if late else ""


def _is_running(pid: int, start: int) -> bool:
    if processes.HAS_PROC and start:
        return processes.is_alive(pid, start)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's, but there
    return True


class _Record:
    """The session's record, read again only when it is another file: sixty gates may watch it."""

    def __init__(self, path: str, operation: str) -> None:
        self._path = path
        self._operation = operation
        self._seen: tuple[int, int, int] | None = None
        self._found = False

    def has_it(self) -> bool:
        """Whether the operation is committed."""
        try:
            info = os.stat(self._path)
            now = (info.st_ino, info.st_size, info.st_mtime_ns)
            if now == self._seen:
                return self._found
        except OSError:
            return False
        self._seen = now
        self._found = self._operation in session_record.operations(session_record.read_file(self._path))
        return self._found


# --- the form of a launch file ------------------------------------------------------------------


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text wanted, not {type(value).__name__}")
    return value


def _bytes(value: object) -> bytes:
    data = _text(value).encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ValueError("a text holds a NUL")
    return data


def _seconds(value: object) -> float:
    if not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        raise ValueError("seconds wanted")
    return float(value)


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError("a whole number wanted")
    return value


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise TypeError("a list wanted")
    return value


def _mapping(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError("a mapping wanted")
    return value
