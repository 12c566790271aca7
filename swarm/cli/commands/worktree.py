"""``swarm worktree …``: make, show, lock and remove the folders that agents work in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.api.words import split_agent
from swarm.cli import completion
from swarm.cli.commands.cleanup import removal
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, count, iso, lines_of, local_time, place, plain, short_id
from swarm.cli.verb import NoSetup, NoTeardown, Run, group, verb
from swarm.cli.views.agents import AgentName, SessionName
from swarm.cli.views.watch import again

if TYPE_CHECKING:
    from swarm import Commit, CreateReport, SwarmError, WorktreeDetails, WorktreeInfo

#: Seconds between two looks at the roles.
_LOOK_EVERY = 1.0

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Save uncommitted work, then remove.", show_default=False)]
Discard = Annotated[
    bool,
    typer.Option("--discard", help="Remove without saving. The only way to lose work.", show_default=False),
]

app = group("worktree", "Create, show, lock and remove worktrees.", "swarm worktree list")


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


# --- create --------------------------------------------------------------------------------------


Session = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Name of the session; an existing one gets more agents.",
        autocompletion=completion.sessions,
        show_default=False,
    ),
]
Roles = Annotated[
    str,
    typer.Option(
        "--roles",
        metavar="ROLE[:N],…",
        help="Comma-separated roles; ROLE:N starts N agents, NAME=ROLE names one.",
        autocompletion=completion.role_lists,
        show_default=False,
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="REF",
        help="Commit, tag or branch to start from; default: HEAD of the main checkout, or of the calling agent.",
        show_default=False,
    ),
]
NoInstructions = Annotated[
    bool,
    typer.Option("--no-instructions", help="Write no role instructions into the worktrees.", show_default=False),
]


@verb(
    app,
    "create",
    attempt="cannot create session {session}",
    examples="""
    swarm worktree create feature-x --roles researcher,developer
    swarm worktree create feature-x --roles developer:2,lead=architect
    """,
)
def create(
    run: Run,
    session: Session,
    roles: Roles,
    base: Base = None,
    no_instructions: NoInstructions = False,
    no_setup: NoSetup = False,
    dry_run: DryRun = False,
) -> Answer:
    """Create one worktree for each agent, all of them or none.

    Each agent gets a branch and a folder of its own. If a step fails, swarm rolls all of them back.
    """
    report = run.open().create(
        session, roles, base=base, instructions=not no_instructions, setup=not no_setup, dry_run=dry_run
    )
    data = {name: getattr(report, name) for name in ("session", "base_ref", "base", "agents", "warnings")}
    return Answer(
        {**data, "steps": report.steps if report.dry_run else (), "dry_run": report.dry_run},
        lambda output: _show_created(output, report),
        warnings=report.warnings,
        next=() if report.dry_run else _next_after_create(report),
    )


def _show_created(output: Output, report: CreateReport) -> None:
    made = f"{count(len(report.agents), 'worktree')} from {plain(report.base_ref)} ({short_id(report.base)})"
    if report.dry_run:
        output.out(f"would create session {plain(report.session)} with {made}:", "heading")
    else:
        output.out(f"created session {plain(report.session)} with {made}:", "good")
    rows = [(agent.name, place(agent.path), agent.branch, agent.role) for agent in report.agents]
    columns = (Column("AGENT"), Column("PATH", keep="end"), Column("BRANCH", 1), Column("ROLE", 2))
    output.table(columns, rows)
    if report.dry_run:
        output.out()
        for step in report.steps:
            output.item("  - ", step)
        output.err("nothing was changed")


def _next_after_create(report: CreateReport) -> Sequence[str]:
    first = report.agents[0].path
    return (f"next: cd {place(first, quoted=True)}", f"when done: swarm cleanup {report.session}")


# --- list and show -------------------------------------------------------------------------------


@verb(
    app,
    "list",
    attempt="cannot list the worktrees",
    examples="""
    swarm worktree list
    swarm worktree list feature-x --json
    """,
)
def list_(
    run: Run,
    session: SessionName = None,
) -> Answer:
    """List the worktrees and their changes.

    AHEAD is the number of commits since the start.
    """
    swarm = run.open()
    found = swarm.worktrees(session)
    lost = any(not info.session for info in found)
    unfinished = [f"{what} is not finished" for what in swarm.operations.describe_unfinished()]
    hints = [f"{'; '.join(unfinished)}: it still runs, or finish it with: swarm recover"] if unfinished else []
    if lost and not unfinished:
        hints.append("some belong to no known session; if swarm made them: swarm recover")
    return Answer(
        {"worktrees": [info_data(info) for info in found]},
        lambda output: _show_list(output, found, session),
        next=tuple(hints),
    )


def info_data(info: WorktreeInfo) -> dict[str, Any]:
    """Return a worktree for machines."""
    return {
        "agent": info.agent,
        "role": info.role,
        "session": info.session,
        "branch": info.branch,
        "path": info.path,
        "head": info.head,
        "locked": info.is_locked,
        "lock_reason": info.lock_reason,
        "created_at": iso(info.created_at),
        "dirty": info.dirty,
        "ahead": info.ahead,
        "missing": info.missing,
    }


def _show_list(output: Output, found: Sequence[WorktreeInfo], session: str | None) -> None:
    if not found:
        what = f"session {plain(session)} has no worktrees" if session else "no worktrees"
        output.err(f"{what}; make some with: swarm worktree create {plain(session or 'SESSION')} --roles developer")
        return
    columns = (
        Column("AGENT"),
        Column("SESSION"),
        Column("STATE", keep="all"),
        Column("AHEAD", keep="all", right=True),
        Column("AGE", 2, keep="all", right=True),
        Column("HEAD", 1, keep="all"),
        Column("BRANCH", 4),
        Column("ROLE", 3),
        Column("PATH", keep="end"),
    )
    output.table(columns, [_row(info) for info in found])


def _row(info: WorktreeInfo) -> tuple[str | Cell, ...]:
    return (
        info.agent or "-",
        info.session or "-",
        _state(info),
        "?" if info.ahead is None else str(info.ahead),
        age(info.created_at),
        short_id(info.head) or "-",
        info.branch or "(detached)",
        info.role or "-",
        place(info.path),
    )


def _state(info: WorktreeInfo) -> Cell:
    if info.missing:
        return Cell("missing", "bad")
    words = {True: "changed", False: "clean", None: "unknown"}[info.dirty]
    return Cell(words + (", locked" if info.is_locked else ""), "warn" if info.dirty else "")


@verb(
    app,
    "show",
    attempt="cannot show {agent}",
    examples="""
    swarm worktree show developer
    swarm worktree show developer@feature-x --json
    """,
)
def show(run: Run, agent: AgentName) -> Answer:
    """Show one worktree in detail.

    Shows its commits, its changes, and the reasons that would stop a cleanup.
    """
    found = run.open().worktrees.show(*split_agent(agent))
    data = {
        **info_data(found.info),
        "base": found.base,
        "landed": found.landed,
        "commits": [_commit(one) for one in found.commits],
        "changes": found.changes,
        "risks": found.risks,
        "placed": found.placed,
        "parent": found.parent,
    }
    return Answer(data, lambda output: _show_details(output, found))


def _commit(one: Commit) -> dict[str, Any]:
    return {"id": one.id, "author": one.author, "time": iso(one.time * 1000), "subject": one.subject}


_LANDED = {
    "fresh": "nothing to merge yet",
    "merged": "merged",
    "rebased": "merged (rebased)",
    "squashed": "merged (squashed)",
    "": "not merged",
}


def _show_details(output: Output, found: WorktreeDetails) -> None:
    info = found.info
    locked = f"yes: {info.lock_reason}" if info.lock_reason else "yes"
    output.pairs(
        [
            ("agent", f"{info.agent}@{info.session}"),
            ("role", info.role),
            *((("parent", found.parent),) if found.parent else ()),
            ("path", place(info.path)),
            ("branch", info.branch or "(detached)"),
            ("head", info.head),
            ("base", found.base),
            ("created", local_time(info.created_at)),
            ("locked", locked if info.is_locked else "no"),
            ("state", _state(info)),
            ("commits", f"{len(found.commits)}, {_LANDED.get(found.landed, found.landed)}"),
            ("placed by swarm", ", ".join(found.placed) or "nothing"),
        ]
    )
    _section(output, "commits", [f"{short_id(one.id)}  {plain(one.subject)}" for one in found.commits])
    _section(output, "changes", [line for one in found.changes for line in lines_of(one)])
    _section(output, "prevents a cleanup without --force", [plain(risk.text) for risk in found.risks])


def _section(output: Output, title: str, lines: Sequence[str]) -> None:
    if lines:
        output.out()
        output.out(f"{title}:", "heading")
        for line in lines:
            output.out(f"  {line}")


# --- locks, roles, removal -----------------------------------------------------------------------


@verb(
    app,
    "lock",
    attempt="cannot lock {agent}",
    examples="""
    swarm worktree lock developer@feature-x --reason "on a USB disk"
    """,
)
def lock(
    run: Run,
    agent: AgentName,
    reason: Annotated[
        str,
        typer.Option("--reason", metavar="TEXT", help="Reason, shown when a removal is refused.", show_default=False),
    ] = "",
) -> Answer:
    """Lock a worktree against removal, as git does."""
    return _changed(run.open().worktrees.lock(*split_agent(agent), reason=reason), "locked", "unlock")


@verb(app, "unlock", attempt="cannot unlock {agent}", examples="swarm worktree unlock developer@feature-x")
def unlock(run: Run, agent: AgentName) -> Answer:
    """Remove the lock of a worktree."""
    return _changed(run.open().worktrees.unlock(*split_agent(agent)), "unlocked", "")


def _changed(info: WorktreeInfo, did: str, undo: str) -> Answer:
    name = f"{info.agent}@{info.session}"
    return Answer(
        info_data(info),
        lambda output: output.out(f"{did} {plain(name)}: {place(info.path)}", "good"),
        warnings=(f"the edited instructions are kept: {info.kept}",) if info.kept else (),
        next=(f"undo: swarm worktree {undo} {name}",) if undo else (),
    )


@verb(
    app,
    "update-role",
    attempt="cannot update the role of {agent}",
    examples="swarm worktree update-role developer@feature-x\nswarm worktree update-role --watch",
)
def update_role(
    run: Run,
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="[AGENT[@SESSION]]",
            help="Agent; with --watch it may be left out, which means all agents.",
            autocompletion=completion.agents,
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite edits of the agent.", show_default=False)] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Do it whenever a role changes, and tell the agents.", show_default=False)
    ] = False,
) -> Answer:
    """Update the role instructions in an existing worktree.

    With --watch swarm goes on until Ctrl-C: it puts each changed text into the worktrees and tells their agents by a
    message.
    """
    if watch:
        if force:
            raise UsageProblem("--watch and --force exclude each other", hint="watched edits of an agent stay")
        return _watch_roles(run, agent)
    if agent is None:
        raise UsageProblem("no agent is named", hint="name one, or watch all: swarm worktree update-role --watch")
    info = run.open().worktrees.update_role(*split_agent(agent), force=force)
    return _changed(info, f"updated the instructions ({info.role}) of", "")


def _told(run: Run, info: WorktreeInfo, words: str) -> None:
    run.output.answer(run.command, Answer(info_data(info), lambda output: output.out(words, "good")))


def _watch_roles(run: Run, agent: str | None) -> Answer:
    """Look for changed roles every second; a problem is told once."""
    worktrees = run.open().worktrees
    name, session = split_agent(agent) if agent else (None, None)
    if name:
        worktrees.path(name, session)  # is there such an agent?
    told: set[str] = set()

    def look() -> None:
        problems: list[SwarmError] = []
        for info in worktrees.update_changed_roles(name, session, problems=problems):
            who = f"{info.agent}@{info.session}"
            _told(run, info, f"updated the instructions ({plain(info.role)}) of {plain(who)}")
        for problem in problems:
            if str(problem) not in told:
                run.output.label("warning", str(problem), "warn")
        told.clear()
        told.update(map(str, problems))

    return again(run, look, _LOOK_EVERY)


@verb(
    app,
    "remove",
    attempt="cannot remove {agent}",
    examples="""
    swarm worktree remove developer@feature-x
    swarm worktree remove developer@feature-x --force
    """,
)
def remove(
    run: Run,
    agent: AgentName,
    force: Force = False,
    discard: Discard = False,
    keep_branch: Annotated[bool, typer.Option("--keep-branch", help="Keep its branch.", show_default=False)] = False,
    no_teardown: NoTeardown = False,
    dry_run: DryRun = False,
) -> Answer:
    """Remove one agent's worktree and branch.

    swarm saves their content first; `swarm restore` brings it back.
    """
    name, session = split_agent(agent)
    swarm = run.open()
    return removal(
        lambda: swarm.worktrees.remove(
            name,
            session,
            force=force,
            discard=discard,
            keep_branch=keep_branch,
            teardown=not no_teardown,
            dry_run=dry_run,
        )
    )


@verb(app, "prune", attempt="cannot prune", examples="swarm worktree prune --dry-run")
def prune(run: Run, dry_run: DryRun = False) -> Answer:
    """Forget worktrees whose folder is gone; their branches stay."""
    swarm = run.open()
    return removal(lambda: swarm.worktrees.prune(dry_run=dry_run), nothing="nothing to prune")
