"""The ledger of a kill storm over the message bus (``storm.py``), and its judge.

Writers and readers are killed at any moment and started again.  Each writes down in one shared file,
a line a fact, what it is about to do and what it was told.  The file is judged afterwards:

    T sender number inbox          about to send
    A sender number                send has returned
    R pid inbox sender:number …    handed out, in this order
    B pid sender:number …          about to acknowledge
    K pid sender:number …          ack has returned
    N pid sender:number            about to give back
    X pid                          about to be killed
    D sender:number                given up in the end, after many attempts
    ! text                         what must not be

Promises: what was acknowledged to the sender arrives, or is given up after many attempts (0 lost);
nothing is handed out after its ack returned, nor twice at once (0 repeated); each sender's messages come
in order, also those that come again: none before an earlier one that is not done (0 order breaks); each
is whole (0 torn).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class Verdict:
    """What was found: counts of what happened, and of what must not."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()
        self.examples: list[str] = []

    def blame(self, kind: str, text: str) -> None:
        self.wrong[kind] += 1
        if self.wrong[kind] <= 3:
            self.examples.append(f"{kind}: {text}")

    def __str__(self) -> str:
        kinds = ("lost", "repeated", "order", "torn", "other")
        return (
            f"{self.counts['A']} sends returned, {self.counts['handed']} handed out, {self.counts['X']} kills: "
            + ", ".join(f"{self.wrong[kind]} {kind}" for kind in kinds)
            + f", {self.counts['D']} given up" * bool(self.counts["D"])
        )


class Judge:
    """Reads a ledger line by line."""

    def __init__(self) -> None:
        self.verdict = Verdict()
        self._returned: set[str] = set()
        self._acked: set[str] = set()
        self._maybe: set[str] = set()  # acknowledged, if the reader got so far
        self._holder: dict[str, str] = {}
        self._killed: set[str] = set()
        self._next: dict[str, int] = {}
        self._open: dict[str, set[int]] = {}  # of each sender: handed out, and nobody was about to acknowledge it
        self._overtaken: list[tuple[str, str]] = []  # what was so, and by which: wrong, unless it was given up
        self._dead: set[str] = set()
        self._noted = {"A": self._returned, "X": self._killed, "D": self._dead}

    def hear(self, line: str) -> None:
        kind, *words = line.split(" ")
        self.verdict.counts[kind] += 1
        if kind in self._noted:
            self._noted[kind].add(":".join(words))
        elif kind == "R":
            earlier: set[str] = set()
            for name in words[2:]:
                self._handed(name, words[0], earlier)
                earlier.add(name)
        elif kind == "B":
            self._maybe.update(words[1:])
            for name in words[1:]:
                sender, _, number = name.partition(":")
                self._open.get(sender, set()).discard(int(number))
        elif kind in "KN":
            for name in words[1:]:
                self._holder.pop(name, None)
            self._acked.update(words[1:] if kind == "K" else ())
        elif kind == "!":
            self.verdict.blame("torn" if words[0] == "torn" else "other", " ".join(words))

    def _handed(self, name: str, pid: str, earlier: set[str]) -> None:
        self.verdict.counts["handed"] += 1
        sender, _, number = name.partition(":")
        if name in self._acked:
            self.verdict.blame("repeated", f"{name} after its ack had returned")
        if name in self._holder and self._holder[name] not in self._killed:
            self.verdict.blame("repeated", f"{name} while {self._holder[name]} had it")
        due = self._next.get(sender, 0)
        if int(number) > due:
            self.verdict.blame("order", f"{name} before {due}")
        self._next[sender] = max(due, int(number) + 1)
        waiting = self._open.setdefault(sender, set())
        for one in waiting:
            if one < int(number) and f"{sender}:{one}" not in earlier:
                self._overtaken.append((f"{sender}:{one}", name))
        waiting.add(int(number))
        self._holder[name] = pid

    def close(self) -> Verdict:
        for name in sorted(self._returned - self._acked - self._maybe - self._dead):
            self.verdict.blame("lost", name)
        for name, by in self._overtaken:
            if name not in self._dead:
                self.verdict.blame("order", f"{by} before {name}, which came again")
        return self.verdict


def judge(path: Path) -> Verdict:
    """Read a ledger."""
    judge = Judge()
    with path.open(encoding="ascii") as file:
        for line in file:
            judge.hear(line.rstrip("\n"))
    return judge.close()
