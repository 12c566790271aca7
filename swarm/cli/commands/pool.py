"""``swarm pool …``: worktrees without work that wait for the next start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import age, count, iso
from swarm.cli.verb import Run, group, verb

if TYPE_CHECKING:
    import typer

app = group("pool", "List and delete worktrees that wait for the next start.", "swarm pool drain")


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(app, "list", attempt="cannot look into the pool", examples="swarm pool list")
def list_(run: Run) -> Answer:
    """List the worktrees that wait for the next start.

    With `worktrees.pool: 8` in the configuration `cleanup` keeps up to 8 worktrees without work. `start` takes them.
    """
    found = run.open().worktrees.pool()

    def show(output: Output) -> None:
        if not found:
            output.err("no worktree waits for the next start")
            return
        columns = (Column("SESSION"), Column("AGENT"), Column("SIZE", right=True), Column("AGE", right=True))
        rows = [(one.session, one.agent, f"{one.size / 1e6:.1f} MB", age(one.parked_ms)) for one in found]
        output.table(columns, rows)

    data = [
        {"session": one.session, "agent": one.agent, "size": one.size, "parked_at": iso(one.parked_ms)} for one in found
    ]
    return Answer({"worktrees": data}, show)


@verb(app, "drain", attempt="cannot drain the pool", examples="swarm pool drain")
def drain(run: Run) -> Answer:
    """Delete the worktrees that wait for the next start."""
    number = run.open().worktrees.drain_pool()
    words = f"deleted {count(number, 'worktree')}" if number else "no worktree waits for the next start"
    return Answer({"drained": number}, lambda output: output.out(words, "good" if number else ""))
