"""``swarm sandbox …``: what this machine can do for boxes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from swarm.api.words import split_agent
from swarm.cli.commands.why import show_decisions
from swarm.cli.output import Answer, Output
from swarm.cli.text import plain
from swarm.cli.verb import Run, group, verb
from swarm.cli.views.agents import AgentName
from swarm.cli.views.boxes import limits_words

if TYPE_CHECKING:
    from swarm import BoxCheck, BoxReport, Said

_OWN, _OWN_FOLDER = "its worktree, its own home and git folder", "its folder and its own home"
app = group("sandbox", "Look at boxes of agents and tasks, and whether they can be made.", "swarm sandbox check")


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(
    app,
    "check",
    attempt="cannot check for boxes",
    examples="swarm sandbox check\nswarm sandbox check --json",
)
def check(run: Run) -> Answer:  # noqa: ARG001  # every verb has it
    """Make a box and look whether it holds; if it cannot be made, show the cause and the way out.

    A box keeps a program to one folder: no home, no network, no other process. `swarm start --sandbox` uses it.
    Exits with 5 if this machine cannot make one.
    """
    from swarm import Sandbox

    found = Sandbox().check()
    return Answer(asdict(found), lambda output: _show(output, found), exit_code=0 if found.available else 5)


@verb(
    app,
    "explain",
    attempt="cannot explain the box of {agent}",
    examples="swarm sandbox explain developer@feature-x\nswarm sandbox explain task-1a1f85359667b9c69",
)
def explain(run: Run, agent: AgentName) -> Answer:
    """Show what the box of an agent or a task shows and allows, and what was refused to it."""
    found = run.open().boxes.explain(*split_agent(agent))
    return Answer(asdict(found), lambda output: _explain(output, found))


def _explain(output: Output, found: BoxReport) -> None:
    if not found.by:
        output.out(f"{plain(_name(found))} has no box: it sees all that you see")
        return
    output.pairs(
        [
            ("agent" if found.session else "task", _name(found)),
            ("box", found.by),
            ("writes", ", ".join((_OWN if found.session else _OWN_FOLDER, *found.read_write))),
            ("reads", ", ".join(("/usr, its program", *found.read_only))),
            ("network", " and ".join((found.network, *found.hosts))),
            *((("private", ", ".join(found.private_networks)),) if found.private_networks else ()),
            ("limits", limits_words(found.limits) if found.limits else "none"),
        ]
    )
    _rules(output, found)
    show_decisions(output, found)


def _name(found: BoxReport) -> str:
    return f"{found.agent}@{found.session}" if found.session else found.agent


def _rules(output: Output, found: BoxReport) -> None:
    """Print the deny rules of an agent's role, and whether its box holds them."""
    if found.rules:
        output.out()
        output.out("deny rules:", "heading")
    for rule, held, note in found.rules:
        said = f"{rule}: {note}" if note else rule
        output.item("  by the box     " if held else "  not by the box ", said, "good" if held else "warn")


@verb(
    app,
    "exec",
    attempt="cannot run a command in the box of {agent}",
    examples="swarm sandbox exec developer -- git status\nswarm sandbox exec developer -- sh -c 'ls -A ~'",
)
def exec_(
    run: Run,
    agent: AgentName,
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="Command and its arguments.")],
) -> Answer:
    """Run a command in the box of an agent or a task, beside its program: it sees the same, and has no network.

    The command reads no input. Its output is printed when it ends, and its exit status is yours. Not for agents.
    """
    said = run.open().boxes.run(*split_agent(agent), argv=command)
    data = {"code": said.code, "out": said.out.decode("utf-8", "replace"), "err": said.err.decode("utf-8", "replace")}
    return Answer(data, lambda output: _said(output, said), exit_code=said.code)


def _said(output: Output, said: Said) -> None:
    output.raw(said.out.decode("utf-8", "surrogateescape"), lambda _: "")
    for line in said.err.decode("utf-8", "replace").splitlines():
        output.err(plain(line))


def _show(output: Output, found: BoxCheck) -> None:
    if found.available:
        output.item("ok    ", f"this machine can make boxes, by {found.by}", "good")
    else:
        output.item("no    ", f"this machine cannot make boxes: {found.cause}", "bad")
        output.item("      fix: ", found.hint, command_last=True)
    for note in found.notes:
        output.item("note  ", note, "warn")
