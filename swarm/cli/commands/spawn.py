"""``swarm spawn …``: a subtree with a branch of its own, or a worker in one's own folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.cli.commands.start import Agent, AgentCmd, DryRun, Override, refuse_both
from swarm.cli.commands.tree import agent_data
from swarm.cli.output import Answer, Output
from swarm.cli.tasks import read_tasks
from swarm.cli.text import place, plain
from swarm.cli.verb import NoSetup, Run, group, verb

if TYPE_CHECKING:
    from swarm import Spawned, SpawnOptions

app = group(
    "spawn",
    "Spawn a subtree with a branch of its own, or a worker in your own folder.",
    'swarm spawn subtree auth "Write the login"\nswarm spawn worker tests "Run the tests; report failures"',
)
_Task = Annotated[
    str,
    typer.Argument(metavar="TASK|-", help="All that it needs to know; - reads standard input.", show_default=False),
]
_Role = Annotated[str | None, typer.Option("--role", metavar="ROLE", help="Its role.", show_default=False)]


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(
    app,
    "subtree",
    attempt="cannot spawn {branch}",
    examples='swarm spawn subtree auth "Write the login; tests in tests/auth"\nswarm spawn subtree auth - < brief.md',
)
def subtree(
    run: Run,
    branch: Annotated[
        str,
        typer.Argument(
            metavar="BRANCH", help="Last part of its branch; names session and worktree too.", show_default=False
        ),
    ],
    task: _Task,
    role: _Role = None,
    agent: Agent = None,
    agent_cmd: AgentCmd = None,
    override: Override = None,
    from_head: Annotated[
        bool,
        typer.Option(
            "--from-head", help="Start from your last commit though you have uncommitted changes.", show_default=False
        ),
    ] = False,
    no_setup: NoSetup = False,
    dry_run: DryRun = False,
) -> Answer:
    """Start a lead with a branch and a worktree of its own, cut from your last commit.

    The same spawn again shows the child that is there. It reports to you: swarm wait-event --after
    """
    options = _options(agent, agent_cmd, override, role, dry_run=dry_run)
    options |= {"from_head": from_head, "setup": not no_setup}
    return _spawned(run.open().tree.spawn_subtree(_text(run, task), branch, **options))


@verb(
    app,
    "worker",
    attempt="cannot spawn {name}",
    examples='swarm spawn worker tests "Run the tests; report each failure"',
)
def worker(
    run: Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the worker.", show_default=False)],
    task: _Task,
    role: _Role = None,
    agent: Agent = None,
    agent_cmd: AgentCmd = None,
    override: Override = None,
    dry_run: DryRun = False,
) -> Answer:
    """Start a helper in your own folder, in a pane beside yours; it has no branch and no children."""
    options = _options(agent, agent_cmd, override, role, dry_run=dry_run)
    return _spawned(run.open().tree.spawn_worker(name, _text(run, task), **options))


def _options(
    agent: str | None, agent_cmd: str | None, override: list[str] | None, role: str | None, *, dry_run: bool
) -> SpawnOptions:
    from swarm.api.known import read_overrides

    refuse_both(agent, agent_cmd)
    found: SpawnOptions = {"program": agent, "command": agent_cmd or "", "dry_run": dry_run}
    if override:
        found["overrides"] = read_overrides(override)
    if role is not None:
        found["role"] = role
    return found


def _text(run: Run, task: str) -> str:
    told = read_tasks(run, ["-"], None)[0] if task == "-" else task
    if not told.strip():
        raise UsageProblem("the task is empty", hint="say all that it needs to know: it has no other context")
    return told


def _spawned(found: Spawned) -> Answer:
    data: dict[str, Any] = {
        "agent": agent_data(found.agent),
        "existing": found.existing,
        "base": found.base,
        "budget": found.budget,
        "warnings": found.warnings,
        "steps": found.steps if found.dry_run else (),
        "dry_run": found.dry_run,
    }
    address = found.agent.address
    more = () if found.dry_run else (f"look: swarm attach {address}", "its outcome: swarm wait-event --after last")
    return Answer(data, lambda output: _show(output, found), warnings=found.warnings, next=more)


def _show(output: Output, found: Spawned) -> None:
    one = found.agent
    what = "would spawn" if found.dry_run else "is there already:" if found.existing else "spawned"
    where = f"{place(one.path)}, branch {plain(one.branch)}"
    output.out(f"{what} {one.kind} {plain(one.address)} in {where}", "good")
    if found.budget:
        output.out(f"budget: {found.budget}, drawn from yours")
    for step in found.steps if found.dry_run else ():
        output.item("  - ", step)
    if found.dry_run:
        output.err("nothing was changed")
