"""Instructions for programs that take them as an argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm.programs.values import Launch

_LONGEST = 100_000
#: The prompt after a resume in print mode: without a prompt the program would do nothing.
_GO_ON = "You were stopped before your task was done. Go on with it where you were."


def prompt(launch: Launch) -> str:
    """Return the first prompt: the task, or where it is."""
    if _fits(launch.task):
        return launch.task
    return f"Your task is in the file {launch.task_file}. Read all of it, then begin."


def print_prompt(launch: Launch, *, again: bool) -> str:
    """Return the one prompt of print mode.

    Args:
        again: the conversation in which the task was given is taken up again.
    """
    return _GO_ON if again else prompt(launch)


def role(launch: Launch) -> str:
    """Return the role's text, or where it is."""
    text = launch.role_file.read_text(encoding="utf-8", errors="surrogateescape")
    if _fits(text):
        return text
    return f"Your instructions are in the file {launch.role_file}. Read all of it first, and follow it."


def _fits(text: str) -> bool:
    return len(text.encode("utf-8", "surrogateescape")) <= _LONGEST
