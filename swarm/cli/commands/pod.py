"""``swarm pod …``: teams kept in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.api.words import split_agent
from swarm.cli import completion
from swarm.cli.commands.start import (
    Agent,
    AgentCmd,
    AttachAfter,
    Base,
    DryRun,
    Override,
    refuse_both,
    started,
    stopped,
    wants_attach,
)
from swarm.cli.commands.status import not_listed
from swarm.cli.commands.validate import own_hint
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import count, place, plain
from swarm.cli.verb import NoSetup, Run, group, verb
from swarm.cli.views.agents import AgentName, Everywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Pod, PodTemplate, Session

app = group(
    "pod",
    "Launch, stop, list, show, create and check teams kept in files.",
    "swarm pod init backend\nswarm pod launch backend",
)
_Template = Annotated[
    str,
    typer.Argument(
        metavar="TEMPLATE", help="Name of a pod template.", autocompletion=completion.pod_templates, show_default=False
    ),
]
_Var = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="NAME=VALUE", help="Value of a variable; repeatable.", show_default=False),
]
_Pod = Annotated[
    str | None,
    typer.Option(
        "--pod", metavar="POD", help="Name of the pod; default: SWARM_POD, else the template's.", show_default=False
    ),
]


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(
    app,
    "launch",
    attempt="cannot launch pod {template}",
    examples="""
    swarm pod launch backend
    swarm pod launch backend --var focus=parser --override model=opus
    swarm pod launch backend --pod backend-2 --dry-run
    """,
)
def launch(
    run: Run,
    template: _Template,
    var: _Var = None,
    pod: _Pod = None,
    session: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="SESSION", help="Name of the session; default: the pod's.", show_default=False
        ),
    ] = None,
    base: Base = None,
    agent: Agent = None,
    agent_cmd: AgentCmd = None,
    attach_after: AttachAfter = False,
    override: Override = None,
    no_setup: NoSetup = False,
    dry_run: DryRun = False,
) -> Answer:
    """Start every agent of a template, in one session; all of them or none."""
    from swarm.api.known import read_overrides

    refuse_both(agent, agent_cmd)
    swarm = run.open()
    attach = wants_attach(run, swarm, attach_after=attach_after, dry_run=dry_run)
    report = swarm.pods.launch(
        template,
        _values(var),
        pod=pod or "",
        session=session,
        base=base,
        overrides=read_overrides(override or ()),
        program=agent,
        command=agent_cmd or "",
        setup=not no_setup,
        dry_run=dry_run,
    )
    return started(run, swarm, report, attach=attach, dry_run=dry_run)


def _values(words: Sequence[str] | None) -> dict[str, str]:
    from swarm.api.known import read_variables

    return read_variables(words or ())


@verb(app, "stop", attempt="cannot stop pod {pod}", examples="swarm pod stop backend")
def stop(
    run: Run,
    pod: Annotated[
        str, typer.Argument(metavar="POD", help="Name of a pod.", autocompletion=completion.pods, show_default=False)
    ],
) -> Answer:
    """Stop the agents of a pod, and no other; keep worktrees, branches and output."""
    return stopped(run.open().pods.stop(pod))


@verb(app, "release", attempt="cannot release the task of {agent}", examples="swarm pod release critic@backend")
def release(run: Run, agent: AgentName) -> Answer:
    """Give an agent its held task now, although those for whom it waits have not finished theirs."""
    name, session = split_agent(agent)
    waited = run.open().pods.release(name, session)
    data = {"agent": name, "session": session, "waited_for": waited}
    return Answer(data, lambda output: output.out(f"{plain(agent)} has its task; it waited for {', '.join(waited)}"))


@verb(app, "list", attempt="cannot list the pods", examples="swarm pod list")
def list_(run: Run, everywhere: Everywhere = False) -> Answer:
    """List the templates with their variables, and the pods that have a session."""
    swarm = run.open()
    templates, problems = swarm.pods.scan()
    others = [] if everywhere else [one for one in swarm.sessions.elsewhere() if one.pod]
    own = {name: tuple(one for one in several if one not in others) for name, several in swarm.pods.running().items()}
    running = {name: several for name, several in own.items() if several}
    data = {
        "templates": [_template_data(one) for one in templates],
        "pods": [{"pod": name, "sessions": [one.name for one in several]} for name, several in running.items()],
        "elsewhere": [one.name for one in others],
        "problems": [problem.as_dict() for problem in problems],
    }
    warnings = [f"{problem.message}" for problem in problems]
    return Answer(data, lambda output: _show_list(output, templates, running), warnings, next=not_listed(others))


def _template_data(one: PodTemplate) -> dict[str, Any]:
    return {
        "name": one.name,
        "pod_name": one.pod_name,
        "description": one.description,
        "variables": [variable._asdict() for variable in one.variables],
        "source": one.source,
    }


def _show_list(output: Output, templates: Sequence[PodTemplate], running: dict[str, tuple[Session, ...]]) -> None:
    rows = [(one.name, _variables(one) or "-", one.description or "-") for one in templates]
    if rows:
        output.table((Column("TEMPLATE"), Column("VARIABLES"), Column("DESCRIPTION")), rows)
    else:
        output.err("no templates; write one with: swarm pod init NAME")
    if running:
        output.out()
        pods = [
            (name, str(sum(len(one.agents) for one in several)), ", ".join(one.name for one in several))
            for name, several in running.items()
        ]
        output.table((Column("POD"), Column("AGENTS", right=True), Column("SESSIONS")), pods)


def _variables(one: PodTemplate) -> str:
    return ", ".join(v.name if v.default is None else f"{v.name}={v.default}" for v in one.variables)


@verb(
    app,
    "show",
    attempt="cannot show pod {template}",
    examples="swarm pod show backend\nswarm pod show backend --var focus=parser",
)
def show(run: Run, template: _Template, var: _Var = None, pod: _Pod = None) -> Answer:
    """Show the agents that a launch would start, with all variables filled in."""
    swarm = run.open()
    source = swarm.pods.get(template).source
    found = swarm.pods.expand(template, _values(var), pod=pod or "")
    data = {
        "pod": found.name,
        "template": found.template,
        "source": source,
        "agents": [{**one._asdict(), "overrides": dict(one.overrides), "env": dict(one.env)} for one in found.members],
    }
    return Answer(data, lambda output: _show(output, found, place(source)))


def _show(output: Output, found: Pod, source: str) -> None:
    output.pairs([("pod", found.name), ("template", f"{found.template} ({source})")])
    for one in found.members:
        output.out()
        output.out(f"{plain(one.name)} ({plain(one.role)})", "heading")
        pairs = [(f"override {key}", value) for key, value in one.overrides]
        pairs += [(f"env {key}", value) for key, value in one.env]
        pairs += [("after", ", ".join(one.after))] if one.after else []
        pairs += [("task", one.task.strip())] if one.task.strip() else []
        output.pairs(pairs)


@verb(
    app,
    "init",
    attempt="cannot write the pod template {name}",
    examples="swarm pod init backend\nswarm pod init again --from feature-x",
)
def init(
    run: Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new template.", show_default=False)],
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SESSION",
            help="Write the team of this session.",
            autocompletion=completion.sessions,
            show_default=False,
        ),
    ] = None,
    user: Annotated[bool, typer.Option("--user", help="Write it into your swarm directory.")] = False,
) -> Answer:
    """Write a new template that explains every key, or the team of a session. Overwrites nothing."""
    path = run.open().pods.init(name, session=source, user=user)
    nexts = (f"next: edit {place(path)}", f"next: swarm pod check {name}")
    return Answer({"name": name, "path": path}, lambda output: output.out(f"{place(path)} written"), next=nexts)


@verb(app, "check", attempt="cannot check the pods", examples="swarm pod check\nswarm pod check backend")
def check(
    run: Run,
    which: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TEMPLATE]…",
            help="Names; without any, every template.",
            autocompletion=completion.pod_templates,
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Check templates and their roles: every mistake with its place.

    Exit status 2: a template is unusable. Variables without a value get one for the check.
    """
    found = run.open().pods.check(which or ())
    problems = [problem for one in found for problem in one.problems]
    data = {
        "templates": [
            {"name": one.name, "source": one.source, "problems": [problem.as_dict() for problem in one.problems]}
            for one in found
        ]
    }

    def show(output: Output) -> None:
        for one in found:
            where = f" ({place(one.source)})" if one.source is not None else ""
            output.out(f"{plain(one.name or 'a file')}{where}: {'cannot be used' if one.problems else 'ok'}", "heading")
            for problem in one.problems:
                output.item("  wrong: ", problem.message, "bad")
                if own_hint(problem) and not output.quiet:
                    output.item("      hint: ", problem.hint, "hint", command_last=True)
        summary = count(len(problems), "problem") if problems else "no problems"
        output.err(f"{summary} found in {count(len(found), 'template')}", "bad" if problems else "good")

    if not problems:
        return Answer(data, show)
    errors, code = [problem.as_dict() for problem in problems], UsageProblem.exit_code
    return Answer(data, show, errors=errors, exit_code=code, status="error")
