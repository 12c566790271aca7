"""The common part of every command: global options, repository, answer."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from swarm import UsageProblem
from swarm.cli.help import Command, Group, epilog, first_line
from swarm.cli.help import CommandWithRest as CommandWithRest  # noqa: PLC0414  # offered here
from swarm.cli.output import Answer, Output

if TYPE_CHECKING:
    from swarm import Swarm

ROOT = "swarm"
_STOPPING = "stopping: swarm undoes the operation, or the next command finishes it\n(Ctrl-C again: stop at once)"

#: Of commands that make worktrees, and of those that remove them.
NoSetup = Annotated[
    bool,
    typer.Option(
        "--no-setup", help="Skip setup: copy no files and run no commands in the worktrees.", show_default=False
    ),
]
NoTeardown = Annotated[bool, typer.Option("--no-teardown", help="Skip the teardown commands.", show_default=False)]


class Run:
    """One invocation of the program.

    Attributes:
        output: where the words go.
        command: the words of the command, such as ``worktree create``.
        attempt: what the command could not do if it fails, such as ``cannot create session bugs``.
        behind: the words behind ``--``, of a command that hands them on.
    """

    def __init__(self) -> None:
        self.output = Output()
        self.command = ""
        self.attempt = ""
        self.behind: tuple[str, ...] = ()
        self._directory: Path | None = None
        self._opened: Swarm | None = None

    def take(self, options: Mapping[str, Any]) -> None:
        """Take global options; ``-C`` counts from the one before."""
        for directory in options.get("directories") or ():
            self._directory = Path(self._directory or "", directory)
        self.output.json |= bool(options.get("as_json"))
        self.output.quiet |= bool(options.get("quiet"))
        self.output.color &= not options.get("no_color")

    @property
    def directory(self) -> Path:
        """Where the command works; the process's own directory never changes.

        Raises:
            UsageProblem: ``-C`` names no folder.
        """
        if self._directory is None:
            return Path.cwd()
        whole = Path(os.path.abspath(self._directory))  # links stay as they are
        if not whole.is_dir():
            raise UsageProblem(f"-C {self._directory}: there is no such folder", hint="check the path after -C")
        return whole

    @property
    def named_directory(self) -> str | None:
        """The folder after ``-C``, or None."""
        return None if self._directory is None else str(self.directory)

    def open(self) -> Swarm:
        """Open the repository."""
        from swarm import Swarm

        self._opened = Swarm.open(self.directory, progress=self.output.progress)
        return self._opened

    def say_stopping(self) -> None:
        """Report a signal if an operation must be undone, which may take a moment."""
        if self._opened is not None and self._opened.is_changing:
            self.output.interject(_STOPPING)


def _global_options(*, hidden: bool) -> dict[str, tuple[Any, Any]]:
    """Return name → (annotation, default) of the options that every command takes."""

    def option(*names: str, help: str, metavar: str | None = None) -> object:
        return typer.Option(*names, help=help, hidden=hidden, show_default=False, metavar=metavar)

    return {
        "directories": (
            Annotated[
                list[str] | None,
                option("-C", help="Work in DIR; repeated, each counts from the one before.", metavar="DIR"),
            ],
            None,
        ),
        "as_json": (Annotated[bool, option("--json", help="Print one JSON object.")], False),
        "no_color": (Annotated[bool, option("--no-color", help="Print without colour.")], False),
        "quiet": (Annotated[bool, option("--quiet", help="Print no progress and no suggestions.")], False),
    }


def signature(parameters: list[inspect.Parameter], *, hidden: bool) -> inspect.Signature:
    """Return a command's signature for typer: its own parameters and the global options."""
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in _global_options(hidden=hidden).items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    return inspect.Signature([context, *parameters, *shared])


def set_signature(function: Callable[..., Any], whole: inspect.Signature) -> None:
    """Give a function the parameters that typer shall see."""
    function.__signature__ = whole  # type: ignore[attr-defined]  # what typer reads
    function.__annotations__ = {name: one.annotation for name, one in whole.parameters.items()}


class OneCommand(typer.Typer):
    """A tree to which `verb` adds one command and no other of its module."""

    def __init__(self, wanted: str) -> None:
        super().__init__(rich_markup_mode=None)
        self.wanted = wanted


def verb(
    app: typer.Typer, name: str, *, attempt: str, examples: str, hidden: bool = False, cls: type[Command] = Command
) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
    """Register a function ``(run, **options) -> Answer`` as the command *name* of *app*.

    Args:
        app: the group, or the whole tree.
        name: the word the user types.
        attempt: what failed if it fails; may name parameters, as in ``cannot lock {agent}``.
        examples: a command a line, for the help.
        hidden: for swarm's own use, not in the list of commands.
        cls: how its command line is read.
    """

    def register(function: Callable[..., Answer]) -> Callable[..., Answer]:
        if isinstance(app, OneCommand) and app.wanted != name:
            return function
        hints = get_type_hints(function, include_extras=True)
        own = [
            one.replace(annotation=hints[one.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for one in inspect.signature(function).parameters.values()
            if one.name != "run"
        ]

        @functools.wraps(function)
        def call(ctx: typer.Context, **given: Any) -> int:
            run: Run = ctx.obj
            shared = {key: given.pop(key) for key in _global_options(hidden=False)}
            run.take(shared)
            run.command = command_of(ctx)
            run.attempt = attempt.format_map({key: "" if one is None else one for key, one in given.items()}).rstrip()
            answer = function(run, **given)
            run.output.clear_progress()
            return run.output.answer(run.command, answer)

        del call.__wrapped__  # or typer would see the parameters of both
        set_signature(call, signature(own, hidden=False))
        app.command(name, cls=cls, epilog=epilog(examples), short_help=first_line(function), hidden=hidden)(call)
        return function

    return register


def group(name: str, about: str, example: str, default: str = "") -> typer.Typer:
    """Return a new group of commands, which takes the global options before the command too.

    Args:
        default: the command that is meant where none is named.
    """
    app = typer.Typer(
        name=name,
        cls=type("Group", (Group,), {"default": default}) if default else Group,
        help=about,
        short_help=about.rstrip("."),
        epilog=epilog(example),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
    )

    def options(ctx: typer.Context, **given: Any) -> None:
        run: Run = ctx.obj
        run.take(given)
        run.command = command_of(ctx)

    set_signature(options, signature([], hidden=True))
    app.callback()(options)
    return app


def command_of(ctx: typer.Context) -> str:
    """Return the words of the command without the program's name."""
    return ctx.command_path.removeprefix(ROOT).strip()


def milliseconds(option: str, text: str | None) -> int | None:
    """Read a duration with a unit.

    Raises:
        UsageProblem: it is none; a number without a unit would be too easy to get wrong.
    """
    from swarm.api.words import milliseconds_from

    if text is None:
        return None
    hint = "for example: 90s, 30m, 24h, 7d"
    if text.replace(".", "").isdigit():
        raise UsageProblem(f"{option} {text}: the unit is missing", hint=hint)
    try:
        return milliseconds_from(text)
    except ValueError:
        raise UsageProblem(f"{option} {text}: this is not a duration", hint=hint) from None


def span(option: str, text: str | None) -> int:
    """Read how long something counts, in milliseconds; 0 where nothing is given, and only there."""
    time = milliseconds(option, text)
    if time == 0:
        raise UsageProblem(f"{option} {text}: must be longer than 0", hint="leave it out, or name one, such as 10m")
    if time is not None and time >= 1 << 53:
        raise UsageProblem(f"{option} {text}: that is too long", hint="leave it out to wait without end")
    return time or 0


#: More seconds than this, or no finite number, are a typo.
_LONGEST_WAIT = 1e10


def seconds_of(option: str, text: str | None) -> float | None:
    """Read seconds, or a time with a unit."""
    if text is None:
        return None
    if text.isascii() and text.replace(".", "", 1).isdigit():
        found = float(text)
        if found > _LONGEST_WAIT:
            raise UsageProblem(f"{option} {text[:40]}: this is too long")
        return found
    return (milliseconds(option, text) or 0) / 1000
