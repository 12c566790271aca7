"""Read a program's state from its screen by rules that are data.

A rules file (``swarm/data/screens/<program>.toml``) is a list of rules, looked through from the top; the first one
that matches decides.  A screen that no rule knows says nothing: it is never taken for idleness.  It may also say how
the row of the cursor looks while nothing is typed there.

What a dialog asks about is taken from the screen, too, where that is plain; it is the agent's text, and people answer
to what stands in the pane.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from swarm.machine.run_folder.program_facts import one_line
from swarm.programs.status import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: The keys of a rule, with their types.
_FIELDS = {
    "name": str,
    "state": str,
    "detail": str,
    "why": str,
    "title": str,
    "text": str,
    "last": int,
    "not": str,
    "fresh": bool,
    "asks": str,
}
#: What frames a line of a dialog.
_FRAME = " \t│┃"
#: A program may show something at the right edge, far from the cursor.
_FAR = "    "
_PROMPT_FIELDS = {"before": str, "hint": str, "faint": bool, "settle": float}
_STATES = frozenset({"starting", "working", "idle", "waiting"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; all that it asks for must hold.

    Attributes:
        title: pattern found in the pane's title.
        text: pattern found in the lines.
        unless: pattern not found in the lines.
        last: how many of the last lines that are not empty are looked at; 0 is all.
        fresh: it is how the program looks before its first turn, too.
        asks: pattern of a whole dialog in the lines without their frames; its group is what it asks about.
    """

    name: str
    state: str
    why: str
    detail: str = ""
    title: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    last: int = 0
    fresh: bool = False
    asks: re.Pattern[str] | None = None

    def matches(self, title: str, lines: Sequence[str]) -> bool:
        """Whether it holds of a screen without empty lines."""
        shown = "\n".join(lines[-self.last :])
        return (
            (self.title is None or bool(self.title.search(title)))
            and (self.text is None or bool(self.text.search(shown)))
            and (self.unless is None or not self.unless.search(shown))
        )

    def in_detail(self, lines: Sequence[str]) -> str:
        """Return the detail, with the subject of the screen's question where it is plain.

        It is not where the words of the question stand there twice: an agent may have written them.
        """
        if self.asks is None or self.text is None or len(self.text.findall("\n".join(lines))) != 1:
            return self.detail
        found = self.asks.search("\n".join(line.strip(_FRAME) for line in lines))
        words = one_line(found[1]) if found else ""
        return one_line(f"{self.detail}: {words}") if words else self.detail


@dataclass(frozen=True, slots=True)
class Prompt:
    """How the row of the cursor looks while nothing is typed there.

    Attributes:
        before: pattern of all that is left of the cursor.
        hint: pattern of what the program may show right of it before anything is typed.
        faint: that is anything at all, if it is written faintly.
        settle: seconds after a paste in which Enter is not taken for an order to send it.
    """

    before: re.Pattern[str]
    hint: re.Pattern[str] | None = None
    faint: bool = False
    settle: float = 0.0

    def is_free(self, before: str, after: str, *, faint: bool) -> bool:
        """Whether nothing is typed.

        Args:
            faint: what is right of the cursor is written faintly.
        """
        if not self.before.fullmatch(before):
            return False
        rest = after.split(_FAR, maxsplit=1)[0].strip()
        return not rest or (self.faint and faint) or bool(self.hint and self.hint.fullmatch(rest))


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one program.

    Attributes:
        beside: pattern of what is left of a column of its own at the right edge, in a line that shows the column.
    """

    program: str
    rules: tuple[Rule, ...]
    prompt: Prompt | None = None
    beside: re.Pattern[str] | None = None

    @classmethod
    def of(cls, program: str, data: Mapping[str, Any]) -> Rules:
        """Understand a rules file.

        Raises:
            ValueError: it is not one.
        """
        beside = re.compile(data["beside"]) if "beside" in data else None
        return cls(program, tuple(_rule(one) for one in data["rule"]), _prompt(data.get("prompt")), beside)

    def read(self, title: str, lines: Sequence[str], *, asked: bool = False) -> Verdict | None:
        """Return the state on a screen; None when no rule matches.

        Args:
            asked: the program was started a moment ago with a first prompt, so it is not idle because it looks fresh.
        """
        shown = [line.rstrip() for line in lines if line.strip()]
        for rule in self.rules:
            if rule.matches(title, shown) and rule.fresh and asked:
                why = f"{rule.why}, and its first prompt is on the way"
                return Verdict("starting", "", f"{self.program}/{rule.name}", why)
            if rule.matches(title, shown):
                detail = rule.in_detail(self._main_part(shown))
                return Verdict(rule.state, detail, f"{self.program}/{rule.name}", rule.why)
        return None

    def _main_part(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines without the column at the right edge."""
        found = [match.end() for line in lines if self.beside and (match := self.beside.search(line))]
        return [line[: found[-1]] for line in lines] if found else lines


def _prompt(data: Mapping[str, Any] | None) -> Prompt | None:
    if data is None:
        return None
    for key, value in data.items():
        if type(value) is not _PROMPT_FIELDS.get(key):
            raise ValueError(f"prompt: {key} is unknown or of the wrong kind")
    hint = re.compile(data["hint"]) if "hint" in data else None
    return Prompt(re.compile(data["before"]), hint, data.get("faint", False), data.get("settle", 0.0))


def _rule(data: Mapping[str, Any]) -> Rule:
    for key, value in data.items():
        if type(value) is not _FIELDS.get(key):
            raise ValueError(f"rule {data.get('name')!r}: {key} is unknown or of the wrong kind")
    if data.get("state") not in _STATES or not data.get("why") or not (data.get("title") or data.get("text")):
        raise ValueError(f"rule {data.get('name')!r}: it needs a state, a why, and a title or text to look for")
    patterns = {key: re.compile(data[key], re.MULTILINE) for key in ("title", "text", "not", "asks") if key in data}
    if "asks" in patterns and ("text" not in patterns or patterns["asks"].groups != 1):
        raise ValueError(f"rule {data.get('name')!r}: asks needs a text, and one group")
    return Rule(
        name=data["name"],
        state=data["state"],
        why=data["why"],
        detail=data.get("detail", ""),
        title=patterns.get("title"),
        text=patterns.get("text"),
        unless=patterns.get("not"),
        last=data.get("last", 0),
        fresh=data.get("fresh", False),
        asks=patterns.get("asks"),
    )
