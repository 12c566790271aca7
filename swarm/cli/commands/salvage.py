"""``swarm salvage …``: list, show and delete saved work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.api.words import show_seconds
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import age, count, iso, local_time, plain, short_id
from swarm.cli.verb import Run, group, milliseconds, verb

if TYPE_CHECKING:
    from swarm import SalvageEntry

app = group("salvage", "List, show and delete saved work.", "swarm salvage list")


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(app, "list", attempt="cannot list the salvage", examples="swarm salvage list")
def list_(
    run: Run,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION|AGENT]",
            help="Only this session's, or this agent's.",
            autocompletion=completion.salvaged,
            show_default=False,
        ),
    ] = None,
    dropped: Annotated[
        bool, typer.Option("--dropped", help="Show dropped work that can still be restored.", show_default=False)
    ] = False,
) -> Answer:
    """List saved work, newest first."""
    return listing(run.open().salvage(session, dropped=dropped), hint="restore with: swarm restore SESSION[/AGENT]")


def listing(entries: Sequence[SalvageEntry], hint: str) -> Answer:
    """Return a list of saved worktrees."""

    def show(output: Output) -> None:
        if not entries:
            output.err("no saved work; `swarm cleanup` saves work before it removes a worktree")
            return
        columns = (
            Column("NAME", keep="all"),
            Column("AGE", keep="all", right=True),
            Column("TIP", 1),
            Column("BRANCH", 2),
        )
        output.table(columns, [(_name(e), age(e.created_ms), short_id(e.branch_tip), e.record.branch) for e in entries])

    return Answer({"entries": [entry_data(entry) for entry in entries]}, show, next=(hint,) if hint and entries else ())


def _name(entry: SalvageEntry) -> str:
    return entry.name


def entry_data(entry: SalvageEntry) -> dict[str, Any]:
    """Return a saved worktree for machines."""
    return {
        "name": entry.name,
        "session": entry.session,
        "agent": entry.agent,
        "id": entry.id,
        "role": entry.record.role,
        "branch": entry.record.branch,
        "branch_tip": entry.branch_tip,
        "head": entry.head,
        "base": entry.record.base,
        "saved_at": iso(entry.created_ms),
        "operation": entry.operation,
    }


Target = Annotated[
    str,
    typer.Argument(
        metavar="SESSION/AGENT[@ID]",
        help="A saved worktree; without an id the newest.",
        autocompletion=completion.salvaged,
        show_default=False,
    ),
]


@verb(app, "show", attempt="cannot show {target}", examples="swarm salvage show feature-x/developer")
def show(run: Run, target: Target) -> Answer:
    """Show one saved worktree."""
    entry = run.open().salvage.get(target)
    facts = entry.manifest
    dropped = [str(item) for item in facts.get("dropped") or ()]
    unsaved = [str(item) for item in facts.get("unsaved") or ()]

    def words(output: Output) -> None:
        output.pairs(
            [
                ("name", entry.name),
                ("role", entry.record.role),
                ("saved", local_time(entry.created_ms)),
                ("branch", entry.record.branch),
                ("branch tip", entry.branch_tip or "(gone)"),
                ("head", entry.head or "(none)"),
                ("base", entry.record.base),
                ("dropped", ", ".join(dropped) or "nothing"),
                ("not saved", ", ".join(unsaved) or "nothing"),
            ]
        )

    data = {**entry_data(entry), "dropped": dropped, "unsaved": unsaved, "manifest": dict(facts)}
    return Answer(data, words, next=(f"restore with: swarm restore {entry.name}",))


Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SESSION[/AGENT[@ID]]]...",
        help="Entries to drop.",
        autocompletion=completion.salvaged,
        show_default=False,
    ),
]
All = Annotated[bool, typer.Option("--all", help="All saved work.", show_default=False)]
OlderThan = Annotated[
    str | None,
    typer.Option("--older-than", metavar="TIME", help="Only work saved longer ago, such as 30d.", show_default=False),
]
Now = Annotated[
    bool, typer.Option("--now", help="Delete at once, including entries dropped before.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.", show_default=False)]


@verb(
    app,
    "drop",
    attempt="cannot drop the salvage",
    examples="""
    swarm salvage drop feature-x/developer --yes
    swarm salvage drop --older-than 30d --yes
    """,
)
def drop(
    run: Run,
    targets: Targets = None,
    all: All = False,
    older_than: OlderThan = None,
    now: Now = False,
    yes: Yes = False,
) -> Answer:
    """Drop saved work. Asks first, or needs --yes.

    `swarm restore` brings dropped work back for a week (cleanup.keep_dropped); then a cleanup deletes it. --now deletes
    it at once.
    """
    names = tuple(targets or ())
    limit = milliseconds("--older-than", older_than)
    if names and all:
        raise UsageProblem("names and --all exclude each other", hint="give one of them")
    if not names and not all and limit is None:
        raise UsageProblem(
            "nothing named to drop", hint="name entries (`swarm salvage list`), or use --all or --older-than"
        )
    swarm = run.open()
    now = now or not swarm.config.settings.cleanup.keep_dropped
    if not yes and not _confirmed(run.output, ", ".join(names) or "everything that was saved", older_than, now=now):
        return Answer({"dropped": [], "for_good": now}, lambda output: output.out("nothing was dropped"))
    dropped = swarm.salvage.drop(names, everything=all, older_than_ms=limit, now=now)

    def words(output: Output) -> None:
        what = count(len(dropped), "saved worktree") if dropped else ""
        done = f"deleted {what} for good" if now else f"dropped {what}"
        output.out(done if dropped else "nothing to drop", "good" if dropped else "")
        for entry in dropped:
            output.out(f"  {plain(entry.name)}")

    kept = show_seconds(swarm.config.settings.cleanup.keep_dropped / 1000)
    hint = f"take it back within {kept}: swarm restore {dropped[0].name}" if dropped and not now else ""
    data = {"dropped": [entry_data(entry) for entry in dropped], "for_good": now}
    return Answer(data, words, next=(hint,) if hint else ())


def _confirmed(output: Output, what: str, older_than: str | None, *, now: bool) -> bool:
    """Ask on the terminal.

    Raises:
        UsageProblem: there is nobody to ask.
    """
    if output.json or not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        raise UsageProblem("dropping saved work needs a confirmation", hint="add --yes")
    output.clear_progress()
    limit = f" older than {plain(older_than)}" if older_than else ""
    sys.stderr.write(f"Delete {plain(what)}{limit} for good? [y/N] " if now else f"Drop {plain(what)}{limit}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")
