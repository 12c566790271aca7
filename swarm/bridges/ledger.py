"""The ledger of a bridge: what its command acknowledged, and the one-time codes of requests."""

from __future__ import annotations

import hmac
import json
import secrets
from typing import TYPE_CHECKING

from swarm.kit import files
from swarm.machine import records
from swarm.project.errors import RecordProblem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from swarm.bus.protocol import Stored

_LIMIT = 16 << 20


class Ledger:
    """What is on the disk counts; every change is there when its method returns.

    Of each lane the messages up to a number are acknowledged, and some behind it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._upto: dict[str, int] = {}
        self._acked: dict[str, set[int]] = {}
        self._codes: dict[str, str] = {}
        self.is_new = not files.exists(path)
        if not self.is_new:
            self._read()

    def _read(self) -> None:
        try:
            record = records.read_object(str(self._path), _LIMIT)
            self._upto = {str(lane): int(number) for lane, number in record["upto"].items()}
            self._acked = {str(lane): set(map(int, numbers)) for lane, numbers in record["acked"].items()}
            self._codes = {str(name): str(code) for name, code in record["codes"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordProblem(f"cannot read {self._path}: {error!r}") from error

    def _write(
        self,
        *,
        upto: dict[str, int] | None = None,
        acked: dict[str, set[int]] | None = None,
        codes: dict[str, str] | None = None,
    ) -> None:
        """Write down what becomes different; it counts only when it is on the disk."""
        upto, acked = self._upto | (upto or {}), self._acked | (acked or {})
        codes = self._codes if codes is None else codes
        numbers = {lane: sorted(found) for lane, found in acked.items()}
        record = {"schema": 1, "upto": upto, "acked": numbers, "codes": codes}
        files.write_atomic(self._path, json.dumps(record).encode("ascii"))
        self._upto, self._acked, self._codes, self.is_new = upto, acked, codes, False

    # --- messages ------------------------------------------------------------------------------------

    def begin(self, known: Iterable[Stored]) -> None:
        """Begin after all of these: the first start of a bridge tells no old messages."""
        upto: dict[str, int] = {}
        for one in known:
            lane = one.message.priority
            upto[lane] = max(upto.get(lane, -1), one.number)
        self._write(upto=upto)

    def is_acked(self, one: Stored) -> bool:
        """Whether a message was acknowledged."""
        lane = one.message.priority
        return one.number <= self._upto.get(lane, -1) or one.number in self._acked.get(lane, ())

    def ack(self, one: Stored, waiting: Iterable[Stored]) -> None:
        """Write down that a message was acknowledged.

        Args:
            waiting: all messages that are not acknowledged yet, this one among them.
        """
        lane = one.message.priority
        behind = {*self._acked.get(lane, ()), one.number}
        left = [other.number for other in waiting if other.message.priority == lane and other.number not in behind]
        upto = max(self._upto.get(lane, -1), min(left) - 1 if left else max(behind))
        self._write(upto={lane: upto}, acked={lane: {number for number in behind if number > upto}})

    # --- codes ---------------------------------------------------------------------------------------

    def code_of(self, question: str) -> str:
        """Return the one-time code of a request; the same until it is used."""
        if question not in self._codes:
            self._write(codes={**self._codes, question: secrets.token_hex(8)})
        return self._codes[question]

    def use(self, question: str, code: object) -> bool:
        """Whether this is the code of a request; it counts no second time."""
        known = self._codes.get(question, "")
        if not known or not isinstance(code, str) or not hmac.compare_digest(known.encode(), code.encode()):
            return False
        self._write(codes={**self._codes, question: ""})
        return True

    def keep_codes(self, questions: Iterable[str]) -> None:
        """Forget the codes of all other requests: they are over."""
        there = set(questions)
        kept = {name: code for name, code in self._codes.items() if name in there}
        if kept != self._codes:
            self._write(codes=kept)

    def forget_used_codes(self) -> None:
        """Let requests whose code was used get a new one: those that wait still have got no answer by it."""
        kept = {name: code for name, code in self._codes.items() if code}
        if kept != self._codes:
            self._write(codes=kept)
