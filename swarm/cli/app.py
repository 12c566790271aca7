"""The command tree, and the one place where errors become words and exit codes.

0 done · 1 failed, or partly done · 2 usage · 3 not found, or already there · 4 refused to
protect work · 5 environment · 70 our bug · 75 try again · 128+n ended by signal n
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from swarm.cli import (
    approvals,
    cleanup,
    completion,
    config,
    conflicts,
    diff,
    doctor,
    hook,
    inbox,
    init,
    log,
    merge,
    message,
    nudge,
    permission,
    queue,
    recover,
    restore,
    role,
    salvage,
    send,
    signals,
    start,
    status,
    transcript,
    usage,
    validate,
    wait,
    wait_event,
    workflow,
    worktree,
)
from swarm.cli.errors import exit_code_of, explain, from_usage, show
from swarm.cli.help import Group, epilog
from swarm.cli.output import Answer, OutputLost, lost_output
from swarm.cli.verb import ROOT, Run, set_signature, signature, verb
from swarm.domain.errors import Interrupted

#: typer carries its own copy of click; this is the class of all its complaints about usage.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]

_ABOUT = """\
Launch a team of coding agents on a git repository, a worktree each, and never lose their work.

Every agent of a session gets its own branch and its own folder. What a cleanup removes is saved
first; `swarm restore` brings it back."""


def build() -> typer.Typer:
    """Return the whole command tree."""
    app = typer.Typer(
        name=ROOT,
        cls=Group,
        help=_ABOUT,
        epilog=epilog("swarm start feature-x --roles researcher,developer\nswarm status\nswarm cleanup --all"),
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    _add_root(app)
    version_command(app)
    for module in (
        start,
        status,
        transcript,
        usage,
        send,
        inbox,
        message,
        wait,
        wait_event,
        init,
        worktree,
        diff,
        conflicts,
        merge,
        cleanup,
        recover,
        restore,
        salvage,
        role,
        workflow,
        config,
        validate,
        queue,
        doctor,
        log,
        nudge,
        approvals,
        permission,
        hook,
    ):
        module.add_to(app)
    return app


def version_command(app: typer.Typer) -> None:
    """Add ``swarm version`` to the tree; mostly ``main`` answers it before there is one."""

    @verb(app, "version", attempt="cannot print the version", examples="swarm version")
    def version(run: Run) -> Answer:  # noqa: ARG001  # every verb has it
        """Print the version."""
        return _version_answer()


def _version_answer() -> Answer:
    from swarm.version import __version__

    return Answer({"version": __version__}, lambda output: output.out(f"swarm {__version__}"))


def _add_root(app: typer.Typer) -> None:
    def options(ctx: typer.Context, version: Annotated[bool, typer.Option("--version")] = False, **given: Any) -> None:
        run: Run = ctx.obj
        run.take(given)
        if version:
            raise typer.Exit(run.output.answer("version", _version_answer()))
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
        return exit_code_of(error)


def _run(this: Run, args: list[str]) -> int:
    if f"_{ROOT.upper()}_COMPLETE" in os.environ:
        return completion.answer(_command(), this)
    result = _command().main(args=args or ["--help"], prog_name=ROOT, standalone_mode=False, obj=this)
    return result if isinstance(result, int) else 0


def _command() -> Any:  # a class of typer's copy of click
    return typer.main.get_command(build())


def _fail(this: Run, args: Sequence[str], error: BaseException) -> int:
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
