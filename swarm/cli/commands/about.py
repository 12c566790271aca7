"""``swarm help`` and ``swarm version``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from swarm.cli.output import Answer, Output
from swarm.cli.verb import ROOT, Run, verb

_Words = Annotated[
    list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Command; default: swarm itself.", show_default=False)
]
_All = Annotated[bool, typer.Option("--all", help="Show one line for every command.", show_default=False)]


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(root, "version", attempt="cannot print the version", examples="swarm version")(version)
    verb(root, "help", attempt="cannot show the help", examples="swarm help start\nswarm help --all")(help_)


def version(run: Run) -> Answer:  # noqa: ARG001  # every verb has it
    """Print the version."""
    return version_answer()


def version_answer() -> Answer:
    """Return the version, for the command and for the option."""
    from swarm.version import __version__

    return Answer({"version": __version__}, lambda output: output.out(f"swarm {__version__}"))


def help_(run: Run, words: _Words = None, everything: _All = False) -> Answer:  # noqa: ARG001  # every verb has it
    """Show the help of a command; without a name swarm's own, as `swarm --help` does."""
    if everything:
        return _every_command()
    from swarm.cli.app import build

    command: Any = build()
    context = _context(command, ROOT, None)
    for word in words or ():
        if not hasattr(command, "resolve_command"):
            context.fail(f"No such command '{word}'.")
        name, command, _ = command.resolve_command(context, [word])
        context = _context(command, name, context)
    text = command.get_help(context)
    return Answer({"help": text}, lambda output: output.out(text))


def _context(command: Any, name: str, parent: Any) -> Any:
    """Return the context that a command needs to print its help."""
    context = command.make_context(name, [], parent=parent, obj=Run(), resilient_parsing=True)
    context.resilient_parsing = False  # else an unknown command is no error
    return context


def _every_command() -> Answer:
    from swarm.cli.command_table import EVERYDAY, GROUPS

    groups = {"Everyday": EVERYDAY, **GROUPS}
    room = 2 + max(len(name) for entries in groups.values() for name in entries)

    def show(output: Output) -> None:
        for title, entries in groups.items():
            output.out(f"{title}:", "heading")
            for name, entry in entries.items():
                output.item(f"  {name:<{room}}", entry.summary)

    data = {title.casefold(): {name: one.summary for name, one in some.items()} for title, some in groups.items()}
    return Answer({"commands": data}, show)
