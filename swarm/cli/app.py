"""Build the command tree, and turn every error into words and an exit status.

0 done · 1 failed, or partly done · 2 usage · 3 already there or running · 4 refused to protect
work · 5 environment · 6 not found or not running · 70 our bug · 75 try again · 128+n ended by signal n
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from swarm import Interrupted
from swarm.cli import signals
from swarm.cli.command_table import ALIASES, COMMANDS, EVERYDAY, GROUPS, INTERNAL
from swarm.cli.help import Group, option_names, write_line, write_names, write_rows
from swarm.cli.output import OutputLost, lost_output
from swarm.cli.verb import ROOT, OneCommand, Run, set_signature, signature

#: typer carries its own copy of click; this is the class of all its complaints about usage.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]

_ABOUT = "Launch a team of coding agents on a git repository; never lose their work."


class Root(Group):
    """The whole tree: a command's module is imported when the command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # the signature is typer's
        """Return the words of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the module of a command, and build its part of the tree."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            tree = OneCommand(cmd_name)
            import_module(f"swarm.cli.commands.{COMMANDS[cmd_name].module}").add_to(tree)
            self.commands.update(typer.main.get_group(tree).commands)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is meant, also by a word that other tools use."""
        word = ALIASES.get(args[0], args[0])
        if word not in COMMANDS:  # typer suggests from the commands that it has; internal ones are not for users
            self.commands = cast("Any", {name: None for name in COMMANDS if name not in INTERNAL})
        return super().resolve_command(ctx, [word, *args[1:]])

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  # the signature is typer's
        """Write the everyday commands a line each, all others as words."""
        write_rows(formatter, "Commands", [(name, entry.summary) for name, entry in EVERYDAY.items()])
        write_names(formatter, [(title, list(entries)) for title, entries in GROUPS.items()])

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the options on one line: the whole page fits a small terminal."""
        self.format_commands(ctx, formatter)
        shown = (one for one in option_names(self, ctx) if "-completion" not in one)  # `docs/commands.md` has those
        write_line(formatter, f"Options: {'  '.join(shown)}")


def build(*, completion: bool = True) -> Any:  # a class of typer's copy of click
    """Return the command tree.

    Args:
        completion: with the options that install completion in a shell; they take longer than many a command.
    """
    app = typer.Typer(
        name=ROOT,
        cls=Root,
        help=_ABOUT,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=completion,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    _add_root(app)
    return typer.main.get_command(app)


def _add_root(app: typer.Typer) -> None:
    def options(ctx: typer.Context, version: Annotated[bool, typer.Option("--version")] = False, **given: Any) -> None:
        run: Run = ctx.obj
        run.take(given)
        if version:
            from swarm.cli.commands.about import version_answer

            raise typer.Exit(run.output.answer("version", version_answer()))
        if ctx.invoked_subcommand is None:
            ctx.fail("Missing command.")

    import inspect

    shown = typer.Option("--version", help="Print the version.", show_default=False)
    parameter = inspect.Parameter(
        "version", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, shown]
    )
    set_signature(options, signature([parameter], hidden=False))
    app.callback(invoke_without_command=True)(options)


def run(args: Sequence[str]) -> int:
    """Run one command line; every error ends here."""
    this = Run()
    try:
        with signals.watched(this.say_stopping):
            try:
                return _run(this, list(args))
            except BaseException as error:  # noqa: BLE001  # the one handler: nothing leaves as a traceback
                return _fail(this, args, error)
            finally:
                this.output.clear_progress()
    except OutputLost:
        return lost_output()
    except Interrupted as error:  # while we were telling
        from swarm.cli.errors import exit_code_of

        return exit_code_of(error)


def _run(this: Run, args: list[str]) -> int:
    if f"_{ROOT.upper()}_COMPLETE" in os.environ:
        from swarm.cli import completion

        return completion.answer(build(), this)
    tree = build(completion=any("-completion" in one for one in args))
    result = tree.main(args=args or _default(), prog_name=ROOT, standalone_mode=False, obj=this)
    return result if isinstance(result, int) else 0


def _default() -> list[str]:
    """Return the command of a line without words: the state of this repository, elsewhere the help."""
    from swarm.api.known import main_checkout

    return ["status"] if main_checkout(Path.cwd()) is not None else ["--help"]


def _fail(this: Run, args: Sequence[str], error: BaseException) -> int:
    from swarm.cli.errors import exit_code_of, explain, from_usage, show

    if isinstance(error, OutputLost):
        raise error
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, _USAGE_ERROR):
        this.output.json |= "--json" in args
        this.attempt = ""
        this.command, error = from_usage(error, this.command)
    known = explain(error, this.command, this.attempt)
    if known is None:
        from swarm.cli.crash import write_report

        known = write_report(error, args)
    code = exit_code_of(known)
    show(this.output, this.command, known, code)
    return code
