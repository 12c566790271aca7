"""``swarm tree``, ``notify-parent``, ``adopt``: who works for whom, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.tasks import read_tasks
from swarm.cli.text import age, iso, plain
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Completion, FoldedNode, TreeAgent

_STYLES = {"success": "good", "failure": "bad", "stopped": "warn"}
_STATES = {"waiting": "warn", "failed": "bad", "working": "good", "unknown": "dim"}


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(root, "tree", attempt="cannot look at the tree", examples="swarm tree\nswarm tree --json")(tree)
    verb(
        root,
        "notify-parent",
        attempt="cannot notify your parent",
        examples="""
        swarm notify-parent success "parser done in 3 commits, tests pass"
        swarm notify-parent failure - < report.md
        """,
    )(notify_parent)
    verb(root, "adopt", attempt="cannot adopt {child}", examples="swarm adopt auth --to boss@team")(adopt)


def agent_data(one: TreeAgent) -> dict[str, Any]:
    """Return an agent of the tree for machines."""
    told = {name: value for name, value in one._asdict().items() if name not in ("since_ms", "completion")}
    return {**told, "since": iso(one.since_ms), "completion": _completion_data(one.completion)}


def _completion_data(said: Completion | None) -> dict[str, Any] | None:
    if said is None:
        return None
    told = {name: value for name, value in said._asdict().items() if name != "time_ms"}
    return {**told, "at": iso(said.time_ms)}


def tree(
    run: Run,
    everything: Annotated[
        bool, typer.Option("--all", help="Also teams that nobody spawned.", show_default=False)
    ] = False,
) -> Answer:
    """Show who works for whom: subtrees, workers, and what came of their tasks.

    An agent sees itself and those below it. A folder that no record names is shown as such.
    """
    found = run.open().tree(everything=everything)
    return Answer({"agents": [agent_data(one) for one in found]}, lambda output: _show(output, found))


def _show(output: Output, found: Sequence[TreeAgent]) -> None:
    if not found:
        output.err("no agent has spawned another one; a lead does it with: swarm spawn subtree BRANCH TASK")
        return
    columns = (
        Column("AGENT"),
        Column("KIND", 3),
        Column("STATE", keep="all"),
        Column("OUTCOME"),
        Column("SINCE", 2, keep="all", right=True),
        Column("AHEAD", 4, keep="all", right=True),
        Column("UNREAD", 5, keep="all", right=True),
        Column("BRANCH", 6),
    )
    output.table(columns, [_row(one) for one in found])


def _row(one: TreeAgent) -> tuple[str | Cell, ...]:
    name = "  " * one.level + plain(one.address or one.name) + (" (orphan)" if one.orphan else "")
    said = one.completion
    words = f"{said.status}: {plain(said.message)}" if said is not None and said.message else ""
    outcome = words or (said.status if said is not None else one.detail if not one.address else "open")
    outcome = outcome if one.kind != "team" or said is not None else "-"
    return (
        name,
        one.kind,
        Cell(one.state, _STATES.get(one.state, "")),
        Cell(outcome, _STYLES.get(said.status, "") if said is not None else ""),
        age(one.since_ms) if one.since_ms else "-",
        "?" if one.ahead is None else str(one.ahead) + ("*" if one.dirty else ""),
        "?" if one.unread is None else str(one.unread),
        one.branch,
    )


def notify_parent(
    run: Run,
    status: Annotated[str, typer.Argument(metavar="success|failure", help="What came of it.", show_default=False)],
    message: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|-", help="What was done, where, what is left; - reads standard input.", show_default=False
        ),
    ],
) -> Answer:
    """Tell your parent what came of your task: once, at the end; other words later correct it.

    The commits and the uncommitted changes go along as git shows them. For anything before the end: swarm send parent
    """
    text = read_tasks(run, ["-"], None)[0] if message == "-" else message
    told = run.open().tree.notify_parent(status, text)
    return Answer(told._asdict(), lambda output: output.out(_told(told.parent, told.status, told.corrects), "good"))


def _told(parent: str, status: str, corrects: str) -> str:
    return f"{'corrected' if corrects else 'told'} {plain(parent)}: {status}"


# --- whole parts of the tree ------------------------------------------------------------------------


def folded(nodes: Sequence[FoldedNode], *, dry_run: bool) -> Answer:
    """Show what came of the merge of a tree: node by node, and never success for half."""
    left = [one for one in nodes if not one.merged]
    stay = [] if dry_run else [one for one in nodes if one.merged and not one.cleaned]
    errors = [
        {"code": one.code or "FAILED", "message": f"{one.address}: {one.why}", "hint": one.hint, "details": {}}
        for one in left
    ]
    return Answer(
        {"nodes": [one._asdict() for one in nodes], "dry_run": dry_run},
        lambda output: _show_folded(output, nodes, dry_run=dry_run),
        warnings=[f"{one.address} is merged, and stays: {one.why}" for one in stay],
        errors=errors,
        exit_code=1 if left else 0,
    )


def _show_folded(output: Output, nodes: Sequence[FoldedNode], *, dry_run: bool) -> None:
    columns = (
        Column("LEAD"),
        Column("OUTCOME", keep="all"),
        Column("COMMITS", 3, keep="all", right=True),
        Column("INTO", 2),
        Column("WHY"),
    )
    rows = []
    for one in nodes:
        word = "would merge" if dry_run else "merged, removed" if one.cleaned else "merged"
        outcome = Cell(word, "good") if one.merged else Cell("not merged", "bad")
        rows.append((one.address, outcome, str(one.commits) if one.merged else "-", one.into, plain(one.why) or "-"))
    output.table(columns, rows)
    if dry_run:
        output.err("nothing was changed")


def adopt(
    run: Run,
    child: Annotated[str, typer.Argument(metavar="CHILD[@SESSION]", help="A spawned agent.", show_default=False)],
    to: Annotated[
        str, typer.Option("--to", metavar="PARENT[@SESSION]", help="Its new parent, or user.", show_default=False)
    ],
) -> Answer:
    """Give a child another parent, which is told of it from then on. For people.

    What the former parent was told already stays with that one.
    """
    one = run.open().tree.adopt(child, to)
    return Answer(
        {"agent": agent_data(one)},
        lambda output: output.out(f"{plain(one.address)} works for {plain(one.parent)} now", "good"),
    )
