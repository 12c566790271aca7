"""``swarm fork``: another agent from an agent's worktree as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from swarm import UsageProblem
from swarm.api.words import split_agent
from swarm.cli.output import Answer
from swarm.cli.tasks import read_tasks
from swarm.cli.text import place, plain
from swarm.cli.verb import NoSetup, Run, verb
from swarm.cli.views.agents import AgentName

if TYPE_CHECKING:
    from swarm import Team
    from swarm.cli.output import Output


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "fork",
        attempt="cannot fork {agent}",
        examples='swarm fork developer\nswarm fork developer@feature-x bold --task "Try it without a cache"',
    )(fork)


def fork(
    run: Run,
    agent: AgentName,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Name of the new agent; default: the old one's with a number.", show_default=False
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="TEXT",
            help="Its own prompt instead of the old one's; - reads it from stdin.",
            show_default=False,
        ),
    ] = None,
    no_setup: NoSetup = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)
    ] = False,
) -> Answer:
    """Start another agent of the same role in a worktree of its own, from an agent's worktree as it is.

    Uncommitted changes and new files come along, uncommitted. Ignored files, separate repositories, and a merge or
    rebase in progress stay behind. swarm only reads the old worktree.
    """
    told = "" if task is None else read_tasks(run, ["-"], None)[0] if task == "-" else task
    if task is not None and not told.strip():
        raise UsageProblem("the task is empty", hint="leave --task out to give it the task of the other agent")
    team = run.open().fork(*_names(agent, name), task=told, setup=not no_setup, dry_run=dry_run)
    made = team.agents[0]
    data = {name: getattr(team, name) for name in ("session", "base", "agents", "warnings")}
    return Answer(
        {**data, "steps": team.steps if dry_run else (), "dry_run": dry_run},
        lambda output: _show(output, agent, team),
        warnings=team.warnings,
        next=() if dry_run else (f"look: swarm attach {made.name}@{team.session}",),
    )


def _names(agent: str, name: str | None) -> tuple[str, str | None, str | None]:
    source, session = split_agent(agent)
    return source, name, session


def _show(output: Output, agent: str, team: Team) -> None:
    made = team.agents[0]
    what = "would fork" if team.dry_run else "forked"
    output.out(f"{what} {plain(agent)}: {plain(made.name)}@{plain(team.session)} in {place(made.path)}", "good")
    for step in team.steps if team.dry_run else ():
        output.item("  - ", step)
    if team.dry_run:
        output.err("nothing was changed")
