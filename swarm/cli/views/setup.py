"""Show a worktree's setup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.cli.output import Output
from swarm.cli.text import count, place, plain

if TYPE_CHECKING:
    from swarm import Agent, Notes


def setup_data(done: Notes) -> dict[str, Any]:
    """Return a setup for machines."""
    return {
        "copied": done.copied,
        "linked": done.linked,
        "seconds": done.seconds,
        "commands": [
            {"command": one.line, "outcome": one.outcome or "done", "seconds": one.seconds} for one in done.commands
        ],
        "warnings": done.warnings,
        "log": done.log or None,
    }


def setup_rows(agent: Agent, done: Notes | None) -> Iterator[tuple[str, str]]:
    """Yield the rows about a setup for a list of facts."""
    if agent.ports:
        yield "ports", ", ".join(f"{name}={port}" for name, port in agent.ports)
    if done is not None:
        parts = [f"{count(done.linked, 'link')}"] if done.linked else []
        parts += [f"{count(done.copied, 'file')} copied"] if done.copied else []
        parts += [count(len(done.commands), "command")] if done.commands else []
        yield "setup", f"{', '.join(parts) or 'nothing'}, {done.seconds:.1f} s"
    if done is not None and done.log:
        yield "its output", place(Path(done.log))


def show_setup(output: Output, done: Notes) -> None:
    """Show each failed command of a setup, with its last output."""
    for text in done.warnings:
        output.label("warning", text, "warn")
    for one in done.commands:
        for line in one.tail if one.outcome else ():
            output.out(f"  {plain(line)}")
