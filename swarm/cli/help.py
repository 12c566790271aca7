"""Format ``--help``: usage, arguments, own options, global options."""

# ruff: noqa: ARG002  # typer has no public names for the classes of its copy of click

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

#: The options that every command takes; they stand together, at the end.
GLOBAL_NAMES = ("directories", "as_json", "no_color", "quiet")


class _AsIs:
    """Takes a value as it is: our parameters are texts, lists of them, and switches.

    typer's own way loads pydantic, which takes as long as everything else together.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        return value


def _take_as_is(command: Any, ctx: Any) -> None:
    for parameter in command.get_params(ctx):
        if hasattr(parameter, "_runtime_param"):  # a typer without it has no such cost
            parameter._runtime_param = _AsIs()  # noqa: SLF001  # measured: 50 of 110 ms


class Command(TyperCommand):
    """A command whose arguments are shown by their names only."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line; if they are wrong, it is known whose they are."""
        ctx.obj.command = ctx.command_path.partition(" ")[2]
        _take_as_is(self, ctx)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the command in the usage line."""
        return ["[OPTIONS]", *(name for name, _ in _arguments(self)), *_required(self)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        write_rows(formatter, "Arguments", _arguments(self))
        _write_options(self, ctx, formatter)


class CommandWithRest(Command):
    """A command that passes all words after ``--`` on unread."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words up to the first ``--``, and keep the others."""
        if "--" in args:
            at = args.index("--")
            args, ctx.obj.behind = args[:at], tuple(args[at + 1 :])
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words after the command in the usage line."""
        return [*super().collect_usage_pieces(ctx), "[-- ARG…]"]


class Group(TyperGroup):
    """A group of commands.

    Attributes:
        default: the command that is meant where none is named.
    """

    default = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line up to the command."""
        _take_as_is(self, ctx)
        named = any(one in self.commands or one in ("-h", "--help") for one in args)
        if self.default and not named:
            args = [self.default, *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands first: readers look for them."""
        self.format_commands(ctx, formatter)
        _write_options(self, ctx, formatter)


def _arguments(command: Any) -> list[tuple[str, str]]:
    return [(one.metavar or one.name, one.help or "") for one in command.params if one.param_type_name == "argument"]


def _required(command: Any) -> list[str]:
    """Return the options without which the command cannot be meant."""
    options = [one for one in command.params if one.param_type_name == "option" and one.required]
    return [f"{max(one.opts, key=len)} {one.metavar}" for one in options]


def _write_options(command: Any, ctx: Any, formatter: Any) -> None:
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for one in command.get_params(ctx):
        record = one.get_help_record(ctx) if one.param_type_name == "option" else None
        if record is not None:
            (shared if one.name in GLOBAL_NAMES or one.name == "help" else own).append(record)
    write_rows(formatter, "Options", own)
    write_rows(formatter, "Global options", shared)


def write_rows(formatter: Any, title: str, records: Sequence[tuple[str, str]]) -> None:
    """Write a section with a line or more for each name."""
    if records:
        with formatter.section(title):
            formatter.write_dl(list(records))


def write_names(formatter: Any, groups: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Write names alone, a paragraph for each group."""
    margin = max(len(title) for title, _ in groups) + 4
    with formatter.section("More, explained by `swarm help --all`"):
        for title, names in groups:
            lines = textwrap.wrap(" ".join(names), formatter.width - margin, break_on_hyphens=False)
            lead = f"  {title}:".ljust(margin)
            formatter.write("\n".join(f"{' ' * margin if at else lead}{line}" for at, line in enumerate(lines)) + "\n")


def write_line(formatter: Any, text: str) -> None:
    """Write a line; a narrow terminal gets several."""
    lines = textwrap.wrap(text, formatter.width, subsequent_indent="  ", break_on_hyphens=False)
    formatter.write("".join(f"{line}\n" for line in lines))


def option_names(command: Any, ctx: Any) -> list[str]:
    """Return each option of a command as it is typed."""
    options = [one for one in command.get_params(ctx) if one.param_type_name == "option" and not one.hidden]
    # Sorted: the library keeps the names of --help in a set, so their order differs from run to run.
    return [", ".join(sorted(one.opts, key=len)) + (f" {one.metavar}" if one.metavar else "") for one in options]


def epilog(examples: str) -> str:
    """Return the examples as the end of a help text, line by line as they are."""
    lines = [f"  {line.strip()}" for line in examples.strip().splitlines()]
    return "\n".join(["\b", "Examples:" if len(lines) > 1 else "Example:", *lines])


def first_line(function: Callable[..., Any]) -> str:
    """Return the summary of a command for lists."""
    return (inspect.getdoc(function) or "").split("\n")[0].rstrip(".")
