"""The demo agent without a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from swarm.demo.record import FILE
from swarm.demo.turn import AGAIN, FOLDER, TALKS
from swarm.programs.turns import Kind, Said, json_lines, number
from swarm.programs.values import LaunchSpec

if TYPE_CHECKING:
    from swarm.programs.values import Launch

_KINDS = {"retryable": Kind.RETRYABLE, "rate_limited": Kind.RATE_LIMITED}


def spec(launch: Launch, argv: tuple[str, ...]) -> LaunchSpec:
    """Return how it is started: it finds its prompt in the file of its task."""
    turn = launch.turn
    how = {AGAIN: "1"} if turn is not None and turn.again else {}
    how |= {TALKS: "1"} if turn is not None and turn.id else {}
    folder = "~" if _is_boxed(launch) else str(_home(launch))
    return LaunchSpec(argv, {FOLDER: folder, **how}, {}, prints=True)


def _is_boxed(launch: Launch) -> bool:
    return "SWARM_SANDBOX" in launch.environ


def _home(launch: Launch) -> Path:
    """Return the folder that stays between its runs."""
    if _is_boxed(launch):
        return Path(launch.environ["HOME"])
    return Path(launch.environ.get("SWARM_TASK_HOME") or launch.run_dir)


def knows(launch: Launch) -> bool:
    """Whether its record has a prompt."""
    return any(line.get("who") == "user" for line in json_lines(_home(launch) / FILE))


def heard(launch: Launch) -> frozenset[str]:
    """Return the ids of the texts in its record."""
    return frozenset(str(line["id"]) for line in json_lines(_home(launch) / FILE) if line.get("id"))


def said(out: Path) -> Said:
    """Return the last result that it wrote."""
    found, text = None, ""
    for line in json_lines(out):
        found = line if line.get("type") == "result" else found
        text = str(line["text"]) if line.get("type") == "text" and "text" in line else text
    if found is None:
        return Said(text=text)
    usage = found.get("usage") if isinstance(found.get("usage"), dict) else {}
    failed = _KINDS.get(str(found.get("kind")), Kind.FATAL)
    answer = str(found.get("text", ""))
    ok = found.get("ok") is True
    used = number(usage.get("input")), number(usage.get("output"))  # type: ignore[union-attr]  # a mapping, as seen
    return Said(Kind.DONE if ok else failed, answer, "" if ok else answer, *used)
