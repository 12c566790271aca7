"""``swarm merge``: put the agents' work on a branch."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import MergeMethod, SwarmError, UsageProblem
from swarm.cli import completion
from swarm.cli.commands.diff import show_files
from swarm.cli.commands.start import WholeTree
from swarm.cli.commands.tree import folded
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import count, place, plain, short_id
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm import MergedAgent, MergeReport, Swarm


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "merge",
        attempt="cannot merge {target}",
        examples="""
        swarm merge feature-x --dry-run
        swarm merge feature-x
        swarm merge feature-x/developer --into release --squash
        swarm merge --tree auth
        """,
    )(merge)


Target = Annotated[
    str,
    typer.Argument(
        metavar="SESSION|AGENT",
        help="Session, or one agent of it.",
        autocompletion=completion.targets,
        show_default=False,
    ),
]
Into = Annotated[
    str | None,
    typer.Option(
        "--into", metavar="BRANCH", help="Target; default: the branch the session started from.", show_default=False
    ),
]
Merge = Annotated[
    bool, typer.Option("--merge", help="A merge commit for each agent (the default).", show_default=False)
]
Squash = Annotated[bool, typer.Option("--squash", help="One commit for each agent.", show_default=False)]
Rebase = Annotated[
    bool, typer.Option("--rebase", help="Rebase each agent's commits onto the branch.", show_default=False)
]
CommittedOnly = Annotated[
    bool,
    typer.Option(
        "--committed-only", help="Merge the commits alone, and leave uncommitted work behind.", show_default=False
    ),
]
Nested = Annotated[
    bool,
    typer.Option(
        "--with-nested",
        help="Take in nested repositories (gitlinks) that the branch does not have. For people only.",
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)]

Unfinished = Annotated[
    bool,
    typer.Option("--unfinished", help="With --tree: also leads that did not report success.", show_default=False),
]


def merge(
    run: Run,
    target: Target,
    into: Into = None,
    merge: Merge = False,
    squash: Squash = False,
    rebase: Rebase = False,
    committed_only: CommittedOnly = False,
    nested: Nested = False,
    tree: WholeTree = False,
    unfinished: Unfinished = False,
    dry_run: DryRun = False,
) -> Answer:
    """Merge the agents of a session into a branch, all of them or none.

    swarm tries the merge first without touching anything; a conflict leaves everything as it was. A checkout of
    the branch follows it and keeps its local changes.

    With --tree every subtree goes into the branch that it was cut from, the deepest first, and what has landed is
    removed. The first that cannot be merged ends it.
    """
    how = _method(merge=merge, squash=squash, rebase=rebase)
    swarm = run.open()
    if tree:
        if into or committed_only or nested:
            raise UsageProblem(
                "--tree excludes --into, --committed-only and --with-nested", hint="merge one by one for those"
            )
        return folded(swarm.tree.merge(target, how=how, unfinished=unfinished, dry_run=dry_run), dry_run=dry_run)
    report = swarm.merge(
        target,
        into=into,
        how=how,
        committed_only=committed_only,
        nested=nested,
        dry_run=dry_run,
    )
    done = bool(report.merged) and not dry_run
    return Answer(
        merge_data(report),
        lambda output: _show(output, report),
        warnings=report.warnings,
        next=(*_undo(report), *_next(swarm, report)) if done else (),
    )


def _method(**wanted: bool) -> MergeMethod:
    chosen = [MergeMethod(name) for name, given in wanted.items() if given]
    if len(chosen) > 1:
        raise UsageProblem("--merge, --squash and --rebase exclude each other", hint="give one of them")
    return chosen[0] if chosen else MergeMethod.MERGE


def _next(swarm: Swarm, report: MergeReport) -> Iterator[str]:
    """Propose to remove merged agents, and nothing else."""
    done = {(one.session, one.agent) for one in report.agents}
    session = report.agents[0].session
    with suppress(SwarmError):  # then nothing is proposed
        there = {(session, agent.name) for agent in swarm.sessions.get(session).agents}
        if there <= done:
            yield f"next: swarm cleanup {session}"
        else:
            yield from (f"next: swarm worktree remove {agent}@{name}" for name, agent in sorted(done & there))


def merge_data(report: MergeReport) -> dict[str, Any]:
    """Return a merge for machines."""
    return {
        "into": report.into,
        "how": report.how,
        "old": report.old,
        "new": report.new,
        "agents": report.agents,
        "files": report.files,
        "checkout": report.checkout,
        "warnings": report.warnings,
        "dry_run": report.dry_run,
    }


def _undo(report: MergeReport) -> tuple[str, ...]:
    if report.checkout is None:
        return (f"undo with: git branch --force {report.into} {short_id(report.old)}",)
    where = place(report.checkout, quoted=True)
    return (f"undo with: git {'' if where == '.' else f'-C {where} '}reset --keep {short_id(report.old)}",)


def _show(output: Output, report: MergeReport) -> None:
    if not report.merged:
        output.out(f"nothing to merge into {plain(report.into)}")
    else:
        verb_word = "would merge" if report.dry_run else "merged"
        agents = count(len(report.merged), "agent")
        steps = f"{short_id(report.old)}..{short_id(report.new)}" if not report.dry_run else short_id(report.old)
        output.out(f"{verb_word} {agents} into {plain(report.into)} ({steps})", "" if report.dry_run else "good")
    output.table(
        (Column("AGENT", keep="all"), Column("COMMITS", right=True), Column("OUTCOME"), Column("BRANCH", 1)),
        [
            (f"{one.agent}@{one.session}", str(one.commits or "-"), _outcome(report, one), one.branch)
            for one in report.agents
        ],
    )
    if report.files:
        output.out()
        show_files(output, report.files)
    if report.dry_run:
        output.err("nothing was changed")


def _outcome(report: MergeReport, one: MergedAgent) -> str:
    if one.result:
        return {MergeMethod.MERGE: "merge commit", MergeMethod.SQUASH: "one commit", MergeMethod.REBASE: "rebased"}[
            report.how
        ]
    return "no commits" if one.landed == "fresh" else f"was there already ({one.landed})"
