"""``swarm restore``: restore removed worktrees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from swarm.cli import completion
from swarm.cli.commands.salvage import listing
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import count, place, plain
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    from swarm import RestoreReport, Swarm


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "restore",
        attempt="cannot restore {target}",
        examples="""
        swarm restore --list
        swarm restore feature-x
        swarm restore feature-x/developer
        """,
    )(restore)


def restore(
    run: Run,
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION|AGENT|SESSION/AGENT@ID]",
            help="Saved worktrees; without an id the newest. Without a name, list them.",
            autocompletion=completion.salvaged,
            show_default=False,
        ),
    ] = None,
    list: Annotated[bool, typer.Option("--list", help="List the saved worktrees.", show_default=False)] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)
    ] = False,
) -> Answer:
    """Restore worktrees and branches that a cleanup removed.

    Branches, files and the index come back unchanged.
    """
    swarm = run.open()
    if list or target is None:
        return listing(swarm.salvage(target), hint="" if list else "restore with: swarm restore SESSION[/AGENT]")
    report = replace(swarm.restore(target, dry_run=dry_run), dry_run=dry_run)
    return Answer(
        report_data(report),
        lambda output: _show(output, report),
        warnings=report.warnings,
        next=_next(swarm, report) if report.agents and not report.dry_run else (),
    )


def _next(swarm: Swarm, report: RestoreReport) -> tuple[str, ...]:
    names = {agent.name for agent in report.agents}
    recorded = [a for s in swarm.sessions() if s.name == report.session for a in s.agents]
    again = (
        (f"start the agents: swarm resume {report.session}",)
        if any(a.program for a in recorded if a.name in names)
        else ()
    )
    return (f"next: cd {place(report.agents[0].path, quoted=True)}", *again)


def report_data(report: RestoreReport) -> dict[str, object]:
    """Return a restore for machines."""
    return {
        "session": report.session,
        "agents": report.agents,
        "branches": report.branches,
        "warnings": report.warnings,
        "dry_run": report.dry_run,
    }


def _show(output: Output, report: RestoreReport) -> None:
    verb_word = "would restore" if report.dry_run else "restored"
    tone = "" if report.dry_run else "good"
    for branch in report.branches:
        output.out(f"{verb_word} branch {plain(branch)}, which had no worktree", tone)
    if report.agents:
        trees = count(len(report.agents), "worktree")
        output.out(f"{verb_word} {trees} of session {plain(report.session)}:", tone)
        rows = [(agent.name, place(agent.path), agent.branch) for agent in report.agents]
        output.table((Column("AGENT"), Column("PATH", keep="end"), Column("BRANCH", 1)), rows)
    if report.dry_run:
        output.err("nothing was changed")
