"""``swarm cleanup``: remove sessions and agents; the report that all removals share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import CleanupFailed, SwarmError, UsageProblem
from swarm.cli import completion
from swarm.cli.commands.start import WholeTree, one_of_tree
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import count, plain
from swarm.cli.verb import NoTeardown, Run, group, milliseconds, verb

if TYPE_CHECKING:
    from swarm import CleanupReport, Removed, Skipped, Swarm

#: Why something was left alone on purpose; every other code is a failure.
_ON_PURPOSE = frozenset({"", "WORK_AT_RISK"})
#: How many files one line names.
_MOST_SHOWN = 20


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "cleanup",
        attempt="cannot clean up",
        examples="""
        swarm cleanup feature-x
        swarm cleanup feature-x --force
        swarm cleanup --all --older-than 7d
        """,
    )(cleanup)
    sessions = group("session", "Delete records of old sessions.", "swarm session prune --older-than 30d")
    verb(
        sessions,
        "prune",
        attempt="cannot prune the sessions",
        examples="swarm session prune\nswarm session prune --older-than 30d --dry-run",
    )(prune)
    root.add_typer(sessions)


Sessions = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SESSION|AGENT]...",
        help="Sessions or agents to remove.",
        autocompletion=completion.sessions,
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="Every session, and branches left over from one.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Save uncommitted work, then remove.", show_default=False)]
Discard = Annotated[
    bool,
    typer.Option("--discard", help="Remove without saving. The only way to lose work.", show_default=False),
]
KeepBranches = Annotated[bool, typer.Option("--keep-branches", help="Keep the branches.", show_default=False)]
OlderThan = Annotated[
    str | None,
    typer.Option(
        "--older-than",
        metavar="TIME",
        help="Only sessions older than this, such as 24h or 7d; skip those with work at risk.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)]


def cleanup(  # one parameter per option
    run: Run,
    sessions: Sessions = None,
    all: All = False,
    force: Force = False,
    discard: Discard = False,
    keep_branches: KeepBranches = False,
    older_than: OlderThan = None,
    no_teardown: NoTeardown = False,
    tree: WholeTree = False,
    dry_run: DryRun = False,
) -> Answer:
    """Remove sessions: their worktrees and branches.

    Refuses to remove uncommitted work, before it removes anything. With --force it saves that work first, as it
    always saves commits; `swarm restore` brings both back.

    A session made with another swarm directory is removed only by name.
    """
    chosen = tuple(sessions or ())
    age = milliseconds("--older-than", older_than)
    if chosen and all:
        raise UsageProblem("sessions and --all exclude each other", hint="give one of them")
    swarm = run.open()
    if tree:
        if all or discard or age is not None:
            raise UsageProblem("--tree excludes --all, --discard and --older-than", hint="leave them out")
        top = one_of_tree(chosen)
        keep = {"force": force, "keep_branches": keep_branches, "dry_run": dry_run}
        return removal(lambda: swarm.tree.cleanup(top, **keep))
    if not chosen and not all and age is None:
        raise UsageProblem("no session named", hint=_which(swarm))
    return removal(
        lambda: swarm.cleanup(
            chosen,
            everything=not chosen,
            elsewhere=False,
            force=force,
            discard=discard,
            keep_branches=keep_branches,
            older_than_ms=age,
            teardown=not no_teardown,
            dry_run=dry_run,
        )
    )


def prune(
    run: Run,
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than", metavar="TIME", help="Only sessions made longer ago than this.", show_default=True
        ),
    ] = "7d",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)
    ] = False,
) -> Answer:
    """Remove old sessions without running agents and without uncommitted work."""
    age = milliseconds("--older-than", older_than)
    swarm = run.open()
    return removal(lambda: swarm.sessions.prune(older_than_ms=age or 0, dry_run=dry_run), "there is nothing to prune")


def _which(swarm: Swarm) -> str:
    names: list[str] = []
    with suppress(SwarmError):
        names = [session.name for session in swarm.sessions()]
    if not names:
        return "there are no sessions"
    return f"name a session ({', '.join(names)}), or use --all"


# --- what every removal has to say ---------------------------------------------------------------


def removal(act: Callable[[], CleanupReport], nothing: str = "nothing to clean up") -> Answer:
    """Run a removal and return its report, also after a partial failure."""
    try:
        report = act()
    except CleanupFailed as error:
        partly = error.facts.get("report")
        if partly is None or not (partly.removed or partly.branches):
            raise
        report = partly
    failed = [item for item in report.skipped if item.code not in _ON_PURPOSE]
    return Answer(
        removal_data(report),
        lambda output: _show(output, report, nothing),
        warnings=(*report.warnings, *(f"{item.name} is still there: {item.reason}" for item in failed)),
        next=() if report.dry_run else _ways_back(report),
        errors=[_error(item) for item in failed],
        exit_code=SwarmError.exit_code if failed else 0,
    )


def removal_data(report: CleanupReport) -> dict[str, Any]:
    """Return a removal for machines."""
    return {
        "removed": report.removed,
        "skipped": report.skipped,
        "branches": report.branches,
        "sessions": report.sessions,
        "worktrees_removed": report.worktrees_removed,
        "branches_removed": report.branches_removed,
        "warnings": report.warnings,
        "dry_run": report.dry_run,
    }


def _error(item: Skipped) -> dict[str, Any]:
    return {"code": item.code, "message": f"{item.name}: {item.reason}", "hint": "", "details": {"name": item.name}}


def _ways_back(report: CleanupReport) -> list[str]:
    """Print the commands that restore the removed agents."""
    saved = [item for item in report.removed if item.salvage]
    names = [item.session if item.session in report.sessions else f"{item.session}/{item.agent}" for item in saved]
    return [f"restore with: swarm restore {name}" for name in dict.fromkeys(names)]


def _show(output: Output, report: CleanupReport, nothing: str) -> None:
    left = [item for item in report.skipped if item.code in _ON_PURPOSE]
    if not report.removed and not report.branches:
        output.out(nothing)
    else:
        verb_word = "would remove" if report.dry_run else "removed"
        trees = count(report.worktrees_removed, "worktree")
        branches = count(report.branches_removed, "branch", "branches")
        shared = sum(1 for item in report.removed if item.shared)
        parts = [f"{trees} and {branches}"] if report.worktrees_removed or report.branches_removed or not shared else []
        parts += [f"{count(shared, 'agent')} without a worktree"] if shared else []
        output.out(f"{verb_word} {', and '.join(parts)}", "" if report.dry_run else "good")
    if report.removed:
        _show_removed(output, report.removed, dry_run=report.dry_run)
    for branch in report.branches:
        output.out(f"  left-over branch {plain(branch)}")
    for item in left:
        output.out(f"  kept {plain(item.name)}: {plain(item.reason)}")
    if report.dry_run:
        output.err("nothing was changed")


def _show_removed(output: Output, removed: Sequence[Removed], *, dry_run: bool) -> None:
    columns = (Column("AGENT"), Column("COMMITS"), Column("SAVED"), Column("DROPPED"))
    if dry_run:
        rows: list[tuple[str | Cell, ...]] = [
            (f"{item.agent}@{item.session}", count(item.saved_files, "file"), _dropped(item)) for item in removed
        ]
        output.table((Column("AGENT"), Column("TO SAVE"), Column("TO DROP")), rows)
    else:
        rows = [(f"{item.agent}@{item.session}", _commits(item), _saved(item), _dropped(item)) for item in removed]
        output.table(columns, rows)
    for item in removed:
        if item.discarded:
            shown = ", ".join(item.discarded[:_MOST_SHOWN])
            more = f" and {len(item.discarded) - _MOST_SHOWN} more" if item.discarded[_MOST_SHOWN:] else ""
            did = "would discard" if dry_run else "discarded"
            output.out(f"  {plain(item.agent)}@{plain(item.session)}: {did} {plain(shown)}{more}")
        for note in item.notes:
            output.out(f"  {plain(item.agent)}@{plain(item.session)}: {plain(note)}")


def _commits(item: Removed) -> Cell:
    if not item.commits:
        return Cell("none")
    return Cell(f"{item.commits}, {item.landed or 'not merged'}", "" if item.landed else "warn")


def _saved(item: Removed) -> str:
    if not item.salvage:
        return "no"
    if item.whole:
        return "branch + whole folder" if item.head else "whole folder"
    files = f" + {count(item.saved_files, 'file')}" if item.saved_files else ""
    return f"branch{files}"


def _dropped(item: Removed) -> str:
    return ", ".join(item.dropped) or "-"
