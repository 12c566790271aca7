"""Watch an agent's usage: warn near a limit, end the program at the limit.

What is near or over is in budget.json; the notice to people is sent by a short process, ``swarm _budget``, and that of
the end by whoever tells of ends.  Each answer of a model is counted as soon as it is in the program's own record, of
which only the new part is read.
"""

from __future__ import annotations

import contextlib
import time

from swarm.machine.inbox_watch import SCAN_EVERY
from swarm.machine.run_folder import drawn, runfiles
from swarm.supervisor.boxed.disk import Disk
from swarm.usage.spending.meter import Meter, open_record
from swarm.usage.spending.prices import Prices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swarm.supervisor.chores import Chore, Chores
    from swarm.supervisor.gate import Launch

#: The share of a limit at which swarm warns.
WARN_AT = 0.8
#: The supervisor looks more often when there is more to do.
COUNT_EVERY = 1.5
#: Between two looks at the free space of an agent's disk.
DISK_EVERY = 1.0
_TELL_AGAIN = 30.0
#: So many times in a row the program's record could not be read: it is not just being written.
_FAILED_FOR_GOOD = 10
#: Errors that a foreign record can cause.
_ODD = (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError)


class Budget:
    """The limits of one agent.

    Attributes:
        over: why it is to be ended; empty while it is within its limits.

    Args:
        ran_ms: how long earlier programs of the agent ran.
    """

    def __init__(self, launch: Launch, chores: Chores, ran_ms: int) -> None:
        self.over = ""
        spec = launch.budget
        self._limits = {key: _limit(spec.get(key)) for key in ("tokens", "cost", "minutes")}
        record = open_record(_mapping(spec.get("source"))) if self._limits["tokens"] or self._limits["cost"] else None
        self._meter = Meter(record) if record is not None else None
        self._drawn: dict[str, float] = {}
        self._prices = Prices(_mapping(spec.get("prices")))
        self._disk = Disk(launch, chores) if launch.disk else None
        self._run_dir = launch.run_dir
        self._argv = launch.tell_budget
        self._env = launch.label_env
        self._chores = chores
        self._chore: Chore | None = None
        self._tell_at = 0.0
        self._count_at = 0.0
        self._failed = 0
        self._trouble = ""
        self._began = time.monotonic() - ran_ms / 1000
        self._notes: list[dict[str, object]] | None = None
        told = (runfiles.read(self._run_dir, runfiles.BUDGET) or {}).get("told")
        self._told: list[object] = told if isinstance(told, list) else []
        self._asked: list[str] = []

    def look(self) -> float:
        """Count, tell, and say how it stands; return after how many seconds to look again."""
        if self._meter is not None and time.monotonic() >= self._count_at:
            self._count_at = time.monotonic() + COUNT_EVERY
            self._drawn = drawn.total(self._run_dir)
            self._count(self._meter)
        if self._disk is not None:
            self._disk.look()
        found = (self._tokens(), self._cost(), self._minutes(), self._on_disk(), self._unread())
        notes = [note for note in found if note]
        if notes != self._notes:
            self._notes = notes
            self._write()
        self.over = next((str(note["words"]) for note in notes if note["level"] == "over"), "")
        if self.over:
            return 0.0
        self._tell()
        return SCAN_EVERY if self._disk is None else DISK_EVERY

    def _count(self, meter: Meter) -> None:
        try:
            meter.look()
        except _ODD as error:
            self._failed += 1
            self._trouble = f"{type(error).__name__}: {error}"[:200]
        else:
            self._failed = 0

    # --- the limits -----------------------------------------------------------------------------

    def _tokens(self) -> dict[str, object]:
        used, limit = self._meter.tokens() if self._meter else 0, self._limits["tokens"]
        given = self._drawn.get("tokens", 0.0)
        return _note("tokens", used, limit, f"{limit:,.0f} tokens", f"{used:,}", given, f"{given:,.0f}")

    def _cost(self) -> dict[str, object]:
        limit = self._limits["cost"]
        used, unknown = self._meter.cost(self._prices) if self._meter and limit else (0.0, [])
        given = self._drawn.get("cost", 0.0)
        note = _note("cost", used, limit, f"${limit:,.2f}", f"${used:,.2f}", given, f"${given:,.2f}")
        if unknown and not note:
            words = f"its budget of ${limit:,.2f} cannot be enforced: no price is known for {', '.join(unknown)}"
            return {"kind": "cost", "level": "unpriced", "limit": limit, "words": words}
        return note

    def _unread(self) -> dict[str, object]:
        """A limit that cannot be held must not be trusted in silence."""
        if self._failed < _FAILED_FOR_GOOD:
            return {}
        kind = "tokens" if self._limits["tokens"] else "cost"
        words = f"its budget cannot be enforced: its program's record is unreadable ({self._trouble})"
        return {"kind": kind, "level": "unread", "limit": self._limits[kind], "words": words}

    def _minutes(self) -> dict[str, object]:
        used, limit = (time.monotonic() - self._began) / 60, self._limits["minutes"]
        return _note("minutes", used, limit, f"{limit:g} minutes", f"{used:,.1f}".removesuffix(".0"))

    def _on_disk(self) -> dict[str, object]:
        """What it has on the disk; a limit that cannot be held must not be trusted in silence here either."""
        if self._disk is None:
            return {}
        if self._disk.failed >= _FAILED_FOR_GOOD:
            words = "its limit on the disk cannot be held: what it takes there could not be measured"
            return {"kind": "disk", "level": "unread", "limit": self._disk.limit, "words": words}
        used, limit = self._disk.used, self._disk.limit
        return _note("disk", used, limit, f"{_gib(limit)} on the disk", _gib(used))

    # --- telling --------------------------------------------------------------------------------

    def _tell(self) -> None:
        """Report unreported limits; a repeated report makes one notice."""
        if self._chore is not None:
            if self._chore.status is None:
                return
            if self._chore.status == 0:
                self._told += self._asked
                self._write()
            self._chore = None
        marks = [_mark(note) for note in self._notes or () if _mark(note) not in self._told]
        if marks and self._argv and time.monotonic() >= self._tell_at:
            self._tell_at = time.monotonic() + _TELL_AGAIN
            self._asked = marks
            self._chore = self._chores.start(self._argv, self._env)

    def _write(self) -> None:
        if not self._notes and runfiles.read(self._run_dir, runfiles.BUDGET) is None:
            return
        with contextlib.suppress(OSError):  # the disk is full: the limits hold all the same
            now = time.time_ns() // 1_000_000
            runfiles.write(self._run_dir, runfiles.BUDGET, {"at_ms": now, "notes": self._notes, "told": self._told})


def _note(
    kind: str, used: float, limit: float, words: str, shown: str, given: float = 0.0, shared: str = ""
) -> dict[str, object]:
    """Return the notice about a limit, or nothing.

    Args:
        given: what its children draw on it; what is left for itself counts.
        shared: that in words.
    """
    if not limit or used < WARN_AT * (limit - given):
        return {}
    if used + given >= limit:
        told = f"{shown} used, {shared} drawn by its children" if given else f"{shown} used"
        return {"kind": kind, "level": "over", "limit": limit, "words": f"over its budget of {words} ({told})"}
    part = int(100 * (used + given) / limit + 1e-9)
    told = "used or drawn by its children" if given else "used"
    return {"kind": kind, "level": "near", "limit": limit, "words": f"{part} % of its budget of {words} {told}"}


def _gib(count: int) -> str:
    return f"{count / (1 << 30):,.1f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):,.1f} MiB"


def _mark(note: dict[str, object]) -> str:
    """Return the name of a notice, which does not depend on the usage so far."""
    return f"{note['kind']}/{note['level']}/{note['limit']}"


def _limit(value: object) -> float:
    return float(value) if isinstance(value, (int, float)) and value > 0 else 0.0


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
