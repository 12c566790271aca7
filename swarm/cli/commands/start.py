"""``swarm start``, ``attach``, ``stop``, ``resume``, ``restart``: agents in panes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import AgentNotRunning, UsageProblem
from swarm.api.known import PROGRAMS_IN_WORDS
from swarm.api.words import split_agent
from swarm.cli import completion
from swarm.cli.commands.status import not_listed
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.tasks import Task, TaskFile, read_tasks
from swarm.cli.text import count, place, plain, short_id
from swarm.cli.verb import NoSetup, Run, verb
from swarm.cli.views.agents import AgentName
from swarm.cli.views.panes import attach_to, need_terminal, next_line

if TYPE_CHECKING:
    from swarm import CreateReport, ResumeReport, StopReport, Swarm
    from swarm import Session as Record


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(
        root,
        "start",
        attempt="cannot start session {session}",
        examples="""
        swarm start feature-x --roles researcher,developer
        swarm start feature-x --roles developer:2,lead=architect --task "Go on"
        swarm start demo --roles researcher,developer --agent demo --attach
        swarm start fix --workflow implement --task-file goal.md
        swarm start --roles developer,reviewer --task Go --task reviewer=@how.md
        swarm start ux --roles developer:2 --override model=opus
        swarm start risky --roles developer --sandbox
        swarm start notes --roles researcher --print --task "Sum up the README"
        """,
    )(start)
    verb(root, "attach", attempt="cannot attach", examples="swarm attach\nswarm attach developer@feature-x")(attach)
    verb(
        root,
        "stop",
        attempt="cannot stop",
        examples="swarm stop feature-x\nswarm stop developer@feature-x\nswarm stop --all",
    )(stop)
    verb(root, "resume", attempt="cannot resume", examples="swarm resume feature-x\nswarm resume --all")(resume)
    verb(root, "restart", attempt="cannot restart {agent}", examples="swarm restart developer@feature-x")(restart)


# --- start -----------------------------------------------------------------------------------------


Session = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]", help="Name of the session; default: one made from the task.", show_default=False
    ),
]
Roles = Annotated[
    str | None,
    typer.Option(
        "--roles",
        metavar="ROLE[:N],…",
        help="Comma-separated roles; ROLE:N starts N agents, NAME=ROLE names one.",
        autocompletion=completion.role_lists,
        show_default=False,
    ),
]
Workflow = Annotated[
    str | None,
    typer.Option("--workflow", metavar="NAME", help="Use a predefined team and prompt.", show_default=False),
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
Agent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="PROGRAM",
        help=f"{PROGRAMS_IN_WORDS}; default: the setting agents.program.",
        show_default=False,
    ),
]
AgentCmd = Annotated[
    str | None,
    typer.Option(
        "--agent-cmd",
        metavar="COMMAND",
        help="Run this command in the panes instead of a known agent program.",
        show_default=False,
    ),
]
AttachAfter = Annotated[
    bool,
    typer.Option(
        "--attach/--detach",
        help="Attach to the panes afterwards, or return at once (the default).",
        show_default=False,
    ),
]
Beside = Annotated[
    str | None,
    typer.Option(
        "--beside",
        metavar="AGENT[@SESSION]",
        help="Open the panes in this agent's window.",
        autocompletion=completion.agents,
        show_default=False,
    ),
]
PrintMode = Annotated[
    bool,
    typer.Option("--print", help="Run every agent non-interactively until its task is done.", show_default=False),
]
SandboxOption = Annotated[
    bool | None,
    typer.Option(
        "--sandbox/--no-sandbox",
        help="Run every agent in a box, or none; default: as the roles and the setting sandbox.enabled say.",
        show_default=False,
    ),
]
Override = Annotated[
    list[str] | None,
    typer.Option(
        "--override",
        metavar="[NAME:]KEY=VALUE",
        help="Change a key of the roles for this start, such as model=opus; with NAME, of one agent or role.",
        autocompletion=completion.overrides,
        show_default=False,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)]


def start(
    run: Run,
    session: Session = None,
    roles: Roles = None,
    workflow: Workflow = None,
    task: Task = None,
    task_file: TaskFile = None,
    base: Base = None,
    agent: Agent = None,
    agent_cmd: AgentCmd = None,
    attach_after: AttachAfter = False,
    beside: Beside = None,
    print_mode: PrintMode = False,
    sandbox: SandboxOption = None,
    override: Override = None,
    no_setup: NoSetup = False,
    dry_run: DryRun = False,
) -> Answer:
    """Start a team: one worktree, one tmux pane and one agent for each role; all of them or none."""
    refuse_both(agent, agent_cmd)
    if (roles is None) == (workflow is None):
        raise UsageProblem("name either --roles or --workflow", hint="for example: --roles researcher,developer")
    goal, own = read_tasks(run, task, task_file)
    swarm = run.open()
    attach = wants_attach(run, swarm, attach_after=attach_after, dry_run=dry_run)
    how: dict[str, Any] = {"program": agent, "command": agent_cmd or "", "setup": not no_setup, "dry_run": dry_run}
    how |= {"sandbox": sandbox, "beside": beside or "", "print_mode": print_mode, "tasks": own}
    how["overrides"] = changes_of(override)
    if workflow is not None:
        report = swarm.start_workflow(workflow, goal, session=session, base=base, **how)
    else:
        report = swarm.start(session, roles or "", base=base, task=goal, **how)
    return started(run, swarm, report, attach=attach, dry_run=dry_run)


def wants_attach(run: Run, swarm: Swarm, *, attach_after: bool, dry_run: bool) -> bool:
    """Whether to attach after a start; refuse it, before anything is done, where tmux could show nothing."""
    wanted = attach_after and not dry_run and not run.output.json
    if wanted:
        need_terminal(swarm, "leave out --attach")
    return wanted


def started(run: Run, swarm: Swarm, report: CreateReport, *, attach: bool, dry_run: bool) -> Answer:
    """Show a started team, or the plan of one; attach to it if that is wanted."""
    if attach:
        _show_started(run.output, report)
        attach_to(run, swarm)
    data = {name: getattr(report, name) for name in ("session", "base_ref", "base", "agents", "warnings")}
    return Answer(
        {**data, "steps": report.steps if dry_run else (), "dry_run": dry_run},
        lambda output: _show_started(output, report),
        warnings=report.warnings,
        next=() if dry_run else (next_line(swarm), f"look: swarm status {report.session}"),
    )


def changes_of(words: Sequence[str] | None) -> dict[str, str]:
    """Return the changes of roles that some options name."""
    from swarm.api.known import read_overrides

    return read_overrides(words) if words else {}


def refuse_both(agent: str | None, agent_cmd: str | None) -> None:
    """Refuse options that exclude each other.

    Raises:
        UsageProblem
    """
    if agent and agent_cmd:
        raise UsageProblem("--agent and --agent-cmd exclude each other")
    if agent_cmd == "":
        raise UsageProblem("the agent command is empty", hint="for example: --agent-cmd 'aider --model x'")


def _show_started(output: Output, report: CreateReport) -> None:
    made = f"{count(len(report.agents), 'agent')} from {plain(report.base_ref)} ({short_id(report.base)})"
    if report.dry_run:
        output.out(f"would start session {plain(report.session)} with {made}:", "heading")
    else:
        output.out(f"started session {plain(report.session)} with {made}:", "good")
    rows = [(agent.name, agent.role, agent.branch, place(agent.path)) for agent in report.agents]
    output.table((Column("AGENT"), Column("ROLE", 2), Column("BRANCH", 1), Column("PATH", keep="end")), rows)
    if report.dry_run:
        output.out()
        for step in report.steps:
            output.item("  - ", step)
        output.err("nothing was changed")


# --- attach ----------------------------------------------------------------------------------------


def attach(
    run: Run,
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="[AGENT|SESSION]",
            help="Go to this agent's pane, or to the panes of this session.",
            autocompletion=completion.agents,
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Attach this terminal to the panes; inside tmux, switch to them."""
    swarm = run.open()
    if not run.output.json:
        if not agent:
            _need_panes(swarm)
        need_terminal(swarm)
    pane = swarm.panes.show(*split_agent(agent)) if agent else ""
    if run.output.json:
        return Answer({"command": swarm.panes.attach_command(), "pane": pane}, lambda _output: None)
    attach_to(run, swarm)
    return Answer({}, lambda _output: None)


def _need_panes(swarm: Swarm) -> None:
    if not any(one.pane for found in swarm.status(look=False) for one in found.agents):
        raise AgentNotRunning("cannot attach: there are no panes", hint=_how_to_get_panes(swarm))


def _how_to_get_panes(swarm: Swarm) -> str:
    if any(one.program for session in swarm.sessions() for one in session.agents):
        return "bring the agents back with `swarm resume --all`"
    return "start some, for example: swarm start feature-x --roles researcher,developer"


# --- stop and resume -------------------------------------------------------------------------------

WholeTree = Annotated[
    bool, typer.Option("--tree", help="An agent, and all that it and its children spawned.", show_default=False)
]
_What = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION|AGENT]",
        help="A whole session, or one agent.",
        autocompletion=completion.sessions,
        show_default=False,
    ),
]
_All = Annotated[bool, typer.Option("--all", help="All sessions that `swarm list` lists.", show_default=False)]


def stop(run: Run, what: _What = None, everything: _All = False, tree: WholeTree = False) -> Answer:
    """Stop agents and every process they started; keep worktrees, branches and output."""
    sessions = _chosen(what, everything=everything)
    swarm = run.open()
    if tree:
        return stopped(swarm.tree.stop(one_of_tree([what] if what else [])))
    others = swarm.sessions.elsewhere() if everything else ()
    if others:
        sessions = _without(swarm, others)
    answer = stopped(swarm.stop(sessions, everything=everything and not others))
    return answer._replace(next=(*answer.next, *not_listed(others)))


def one_of_tree(named: Sequence[str]) -> str:
    """Return the one agent with whose tree a command is to do something.

    Raises:
        UsageProblem
    """
    if len(named) != 1:
        raise UsageProblem("--tree takes one agent, with all below it", hint="name it: `swarm tree` lists them")
    return named[0]


def stopped(report: StopReport) -> Answer:
    """Show the stopped agents."""
    return Answer(
        {"stopped": _pairs(report.stopped), "survivors": report.survivors},
        lambda output: _show_stopped(output, report),
        next=(f"bring back: swarm resume {report.stopped[0][0]}",) if report.stopped else (),
        exit_code=1 if report.survivors else 0,
    )


def resume(run: Run, what: _What = None, everything: _All = False) -> Answer:
    """Restart stopped agents in the same worktrees and panes."""
    sessions = _chosen(what, everything=everything)
    swarm = run.open()
    others = swarm.sessions.elsewhere() if everything else ()
    if others:
        sessions = _without(swarm, others)
    report = swarm.resume(sessions, everything=everything and not others)
    answer = _resumed(swarm, report, nothing="nothing to resume: all agents run")
    return answer._replace(next=(*answer.next, *not_listed(others)))


def restart(run: Run, agent: AgentName) -> Answer:
    """Stop one agent if it runs, and start it again."""
    swarm = run.open()
    return _resumed(swarm, swarm.restart(*split_agent(agent)), nothing="it runs already")


def _resumed(swarm: Swarm, report: ResumeReport, nothing: str) -> Answer:
    return Answer(
        {
            "started": _pairs(report.started),
            "running": _pairs(report.running),
            "skipped": report.skipped,
            "done": _pairs(report.done),
            "survivors": report.survivors,
        },
        lambda output: _show_resumed(output, report, nothing),
        next=(next_line(swarm),) if report.started else (),
        exit_code=1 if report.skipped or report.survivors else 0,
    )


def _chosen(what: str | None, *, everything: bool) -> list[str]:
    if (what is None) != everything:
        raise UsageProblem("name a session, an agent as AGENT@SESSION, or --all", hint="`swarm list` shows them")
    return [what] if what else []


def _without(swarm: Swarm, others: Sequence[Record]) -> list[str]:
    """Return the sessions that `swarm list` lists: those of the swarm directory in use."""
    hidden = {one.name for one in others}
    return [one.name for one in swarm.sessions() if one.name not in hidden]


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"session": session, "agent": agent} for session, agent in pairs]


def _show_stopped(output: Output, report: StopReport) -> None:
    if not report.stopped:
        output.err("nothing to stop: no agent runs")
    for session, agent in report.stopped:
        output.out(f"stopped {plain(agent)}@{plain(session)}", "good")
    _warn_of(report.survivors, output)


def _warn_of(survivors: Sequence[str], output: Output) -> None:
    for survivor in survivors:
        output.label("warning", f"could not end {survivor}", "warn")


def _show_resumed(output: Output, report: ResumeReport, nothing: str) -> None:
    if not report.started and not report.skipped and (report.running or not report.done):
        output.err(nothing)
    for session, agent in report.done:
        who = f"{plain(agent)}@{plain(session)}"
        output.err(f"{who} finished its task in print mode; repeat it: swarm restart {who}")
    for session, agent in report.started:
        output.out(f"started {plain(agent)}@{plain(session)}", "good")
    for skipped in report.skipped:
        output.label("warning", f"{skipped.name}: {skipped.reason}", "warn")
    _warn_of(report.survivors, output)
