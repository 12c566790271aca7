"""The demo agent's identity and task."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.machine import session_record

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "demo:"
_ONLY = "only "
_LIMIT = 1 << 20
_MOST_STEPS = 20
_DELAY = 0.5
_LONGEST_DELAY = 3600.0


@dataclass(frozen=True, slots=True)
class Order:
    """An order typed at the prompt: a word and its arguments."""

    word: str
    rest: str = ""

    @classmethod
    def read(cls, line: str) -> Order:
        """Take a line apart."""
        word, _, rest = line.strip().partition(" ")
        return cls(word.lower(), rest.strip())


@dataclass(frozen=True, slots=True)
class Task:
    """The task, with the orders in it.

    Attributes:
        text: the task without the orders in it.
        orders: what to do after the work, in this order.
        steps: how many steps of work; None is as many as the role has.
        delay: seconds of thinking before a step.
        whole: all that was said.
    """

    text: str = ""
    orders: tuple[Order, ...] = ()
    steps: int | None = None
    delay: float = _DELAY
    whole: str = ""

    @property
    def topic(self) -> str:
        """The task in a few words."""
        first = next((line.strip().lstrip("#").strip() for line in self.text.splitlines() if line.strip()), "")
        first = first or "look around"
        return first if len(first) <= 60 else first[:57].rstrip() + "..."

    @classmethod
    def read(cls, text: str, *names: str) -> Task:
        """Take a task apart; orders that are for others than *names* are passed over."""
        said: list[str] = []
        orders: list[Order] = []
        steps: int | None = None
        delay = _DELAY
        wanted = {name.casefold() for name in names}
        for line in text.splitlines():
            if not line.strip().lower().startswith(_PREFIX):
                said.append(line)
                continue
            order = _for_me(line.strip()[len(_PREFIX) :].strip(), wanted)
            if order is None:
                continue
            if order.word == "steps" and order.rest.isdecimal():
                steps = min(int(order.rest), _MOST_STEPS)
            elif order.word == "delay" and (number := seconds(order.rest)) is not None:
                delay = number
            else:
                orders.append(order)
        return cls("\n".join(said).strip(), tuple(orders), steps, delay, text)


@dataclass(frozen=True, slots=True)
class Me:
    """The agent's identity, from the environment.

    Attributes:
        actor: the agent's name.
        about: the role in a sentence.
        prints: it does its task and ends, and asks nobody.
        run_dir: where state.json goes; None when run by hand.
        environ: the environment itself.
    """

    actor: str
    role: str
    session: str
    about: str
    task: Task
    run_dir: Path | None
    environ: Mapping[str, str]
    prints: bool = False

    def record(self) -> dict[str, Any]:
        """Return the session's record as it is now; empty when there is none."""
        return {} if self.run_dir is None else session_record.read(str(self.run_dir.parent.parent))

    def team(self) -> tuple[str, ...]:
        """Return the names of the session's agents."""
        return tuple(str(one["name"]) for one in session_record.agents(self.record()))

    def key(self, what: str) -> str:
        """Return a name for a piece of this session's work, by which it is known after a resume; empty by hand."""
        made = self.record().get("created_ms")
        if not isinstance(made, int):
            return ""
        return sha256(f"{self.session}/{made}/{self.actor}/{what}".encode()).hexdigest()[:16]

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Me:
        """Read the environment and the files that it names."""
        actor = environ.get("SWARM_ACTOR") or environ.get("SWARM_ROLE") or "demo"
        role = environ.get("SWARM_ROLE") or actor
        run_dir = environ.get("SWARM_RUN_DIR")
        return cls(
            actor=actor,
            role=role,
            session=environ.get("SWARM_SESSION", ""),
            about=_sentence(_text(environ.get("SWARM_ROLE_FILE"))),
            task=Task.read(_text(environ.get("SWARM_TASK_FILE")), actor, role),
            run_dir=Path(run_dir) if run_dir else None,
            environ=environ,
            prints=bool(environ.get("SWARM_DEMO_PRINT")),
        )


def seconds(text: str) -> float | None:
    """Read a number of seconds; None when it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number <= _LONGEST_DELAY else None


def _for_me(words: str, wanted: set[str]) -> Order | None:
    """Read an order; None when ``only NAME[,NAME]:`` says that it is for others, or it is empty."""
    if words.lower().startswith(_ONLY):
        names, _, words = words[len(_ONLY) :].partition(":")
        if wanted.isdisjoint(name.strip().casefold() for name in names.split(",")):
            return None
    order = Order.read(words)
    return order if order.word else None


def _text(path: str | None) -> str:
    if not path:
        return ""
    try:
        with Path(path).open("rb") as file:
            text = file.read(_LIMIT).decode("utf-8", "replace")
    except OSError:
        return ""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def _sentence(text: str) -> str:
    """Return the first paragraph below the heading."""
    paragraphs = ("\n".join(block.splitlines()) for block in text.split("\n\n"))
    first = next((p for p in paragraphs if p.strip() and not p.lstrip().startswith("#")), "")
    return " ".join(first.split())
