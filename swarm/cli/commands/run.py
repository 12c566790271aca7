"""``swarm run``: one agent, or any command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.cli import completion
from swarm.cli.commands.start import Agent, DryRun, Override, SandboxOption, changes_of
from swarm.cli.output import Answer, Output
from swarm.cli.text import place, plain
from swarm.cli.verb import CommandWithRest, NoSetup, Run, verb
from swarm.cli.views.panes import attach_to, need_terminal, next_line

if TYPE_CHECKING:
    from swarm import AgentHandle, AgentResult


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "run",
        attempt="cannot run {name}",
        examples="""
        swarm run --role reviewer
        swarm run reviewer "Review the last commit"
        swarm run --role developer --name fixer --detach -- -v
        swarm run --name tests --detach -- make watch
        """,
        cls=CommandWithRest,
    )(run_agent)


Role = Annotated[
    str | None,
    typer.Argument(metavar="[ROLE]", help="Role of the agent.", autocompletion=completion.roles, show_default=False),
]
Task = Annotated[
    str | None,
    typer.Argument(
        metavar="[TASK]", help="Do this task, print the result, and end; nothing is attached.", show_default=False
    ),
]
RoleOption = Annotated[
    str | None,
    typer.Option("--role", metavar="ROLE", help="The same.", autocompletion=completion.roles, show_default=False),
]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name of the agent; default: its role.", show_default=False),
]
Pod = Annotated[
    str | None,
    typer.Option(
        "--pod",
        metavar="POD",
        help="Join this pod, whose roles come first; default: SWARM_POD.",
        show_default=False,
    ),
]
Prompt = Annotated[
    str | None,
    typer.Option("--task", metavar="TEXT", help="Prompt for the agent, which goes on after it.", show_default=False),
]
Detach = Annotated[
    bool, typer.Option("--detach", help="Return at once; default: attach to the pane.", show_default=False)
]


def run_agent(
    run: Run,
    role: Role = None,
    task: Task = None,
    role_option: RoleOption = None,
    name: Name = None,
    pod: Pod = None,
    prompt: Prompt = None,
    agent: Agent = None,
    sandbox: SandboxOption = None,
    override: Override = None,
    detach: Detach = False,
    no_setup: NoSetup = False,
    dry_run: DryRun = False,
) -> Answer:
    """Run one agent, or any command, in a pane of its own.

    With a role, what stands behind -- are further arguments of its program; without one it is the command.
    """
    behind = run.behind
    role, task = _only_one(role, task, role_option, prompt)
    swarm = run.open()
    if role is None and (task or not behind):
        hint = "swarm run --role ROLE, or: swarm run --name NAME -- COMMAND"
        raise UsageProblem("neither a role nor a command is given", hint=hint)
    attaches = not (detach or dry_run or run.output.json or task)
    if attaches:
        need_terminal(swarm, "add --detach")
    how: dict[str, Any] = {"args": behind} if role else {"command": behind}
    how |= {"pod": pod or "", "directory": run.directory, "setup": not no_setup, "dry_run": dry_run}
    how |= {"program": agent, "print_mode": bool(task), "sandbox": sandbox, "overrides": changes_of(override)}
    handle = swarm.run(role or "", name=name or "", task=task or prompt or "", **how)
    if task and not dry_run:
        return _result(handle)
    if attaches:
        _show(run.output, handle)
        run.output.err(f"come back: swarm attach {plain(handle.address)}")
        handle.show()
        attach_to(run, swarm)
    report = handle.report
    return Answer(
        {**_data(handle), "steps": report.steps if report and dry_run else (), "dry_run": dry_run},
        lambda output: _show(output, handle),
        warnings=report.warnings if report else (),
        next=() if dry_run else (f"attach: swarm attach {handle.address}", next_line(swarm)),
    )


def _only_one(role: str | None, task: str | None, option: str | None, prompt: str | None) -> tuple[str | None, str]:
    """Return the role and the one task whose result is wanted.

    Raises:
        UsageProblem: one of them is given twice.
    """
    if role and option:
        raise UsageProblem("the role is given twice", hint=f"swarm run --role {option}, or: swarm run {role}")
    if task and prompt:
        raise UsageProblem("the task is given twice", hint="give it once: swarm run ROLE TASK prints the result")
    if task is not None and not task.strip():
        raise UsageProblem("the task is empty", hint='swarm run ROLE "what to do"')
    return role or option, task or ""


def _data(handle: AgentHandle) -> dict[str, Any]:
    report = handle.report
    made = report.agents[0] if report else None
    return {
        "session": handle.session,
        "agent": handle.name,
        "role": made.role if made else "",
        "branch": made.branch if made else "",
        "path": made.path if made else None,
        "tree": made.tree if made else "",
        "warnings": report.warnings if report else (),
    }


def _show(output: Output, handle: AgentHandle) -> None:
    report = handle.report
    if report is None:
        return
    made = report.agents[0]
    where = f"in {place(made.path)}" + (f" on {plain(made.branch)}" if made.branch else "")
    if not report.dry_run:
        output.out(f"runs {plain(handle.address)} {where}", "good")
        return
    output.out(f"would run {plain(handle.address)} {where}:", "heading")
    for step in report.steps:
        output.item("  - ", step)
    output.err("nothing was changed")


def _result(handle: AgentHandle) -> Answer:
    """Wait for the end of the task, and return its outcome; a worktree without changes goes."""
    found = handle.result()
    kept = handle.tidy()
    code = found.exit_code if found.exit_code is not None else int(found.state != "done")
    status = {"state": found.state, "detail": found.detail, "text": found.text, "program_exit_code": found.exit_code}
    stays = (f"{handle.address} keeps its worktree {kept}, because something changed in it",) if kept else ()
    return Answer(
        {**_data(handle), **status, "kept": kept},
        lambda output: _show_text(output, found),
        warnings=() if found.state == "done" else (f"{handle.address} {found.state}: {found.detail}",),
        next=(*(f"look: swarm diff {handle.address}" for _ in stays), *stays),
        exit_code=code,
    )


def _show_text(output: Output, found: AgentResult) -> None:
    for line in found.text.splitlines():
        output.out(plain(line))
