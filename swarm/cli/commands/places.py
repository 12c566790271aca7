"""``swarm path``, ``shell``, ``open``: go to an agent's worktree."""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING, NoReturn

from swarm import EnvironmentProblem
from swarm.api.words import split_agent
from swarm.cli.output import Answer
from swarm.cli.verb import Run, verb
from swarm.cli.views.agents import AgentName

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import typer


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(
        root, "path", attempt="cannot find the worktree", examples='swarm path developer\ncd "$(swarm path developer)"'
    )(path)
    verb(root, "shell", attempt="cannot open a shell", examples="swarm shell developer\nexit")(shell)
    verb(
        root,
        "open",
        attempt="cannot open the editor",
        examples="swarm open developer\nEDITOR='code --wait' swarm open developer@feature-x",
    )(open_editor)


def path(run: Run, agent: AgentName) -> Answer:
    """Print the path of an agent's worktree, and nothing else."""
    found = run.open().worktrees.path(*split_agent(agent))
    # As it is, not made fit for a terminal: the caller is a shell.
    return Answer({"path": found}, lambda output: output.raw(f"{found}\n"))


def shell(run: Run, agent: AgentName) -> Answer:
    """Open your shell in an agent's worktree, with the agent's environment; `exit` comes back.

    You stay yourself there: messages from this shell are the user's.
    """
    worktrees = run.open().worktrees
    name, session = split_agent(agent)
    tree, environ = worktrees.path(name, session), worktrees.environment(name, session)
    argv = [os.environ.get("SHELL") or "/bin/sh"]
    if run.output.json:
        return Answer({"path": tree, "command": argv}, lambda _output: None)
    return _become(run, argv, tree, environ, "set SHELL to a shell of this machine")


def open_editor(run: Run, agent: AgentName) -> Answer:
    """Start your editor on an agent's worktree: the setting editor.command, else $VISUAL, else $EDITOR; no shell."""
    swarm = run.open()
    tree = swarm.worktrees.path(*split_agent(agent))
    said = swarm.config.settings.editor.command or os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        argv = shlex.split(said)
    except ValueError as error:
        raise EnvironmentProblem(f"cannot read the editor {said!a}: {error}", hint="check the quotes") from error
    if not argv:
        raise EnvironmentProblem("no editor is named", hint="EDITOR=vim swarm open …, or the setting editor.command")
    argv = [*argv, str(tree)]
    if run.output.json:
        return Answer({"path": tree, "command": argv}, lambda _output: None)
    return _become(run, argv, tree, dict(os.environ), "check VISUAL, EDITOR and the setting editor.command")


def _become(run: Run, argv: Sequence[str], folder: Path, environ: Mapping[str, str], hint: str) -> NoReturn:
    """Replace this process by a program that works in a folder."""
    program = shutil.which(argv[0])
    if program is None:
        raise EnvironmentProblem(f"there is no program {argv[0]!a}", hint=hint)
    run.output.clear_progress()
    os.chdir(folder)
    os.execve(os.path.abspath(program), list(argv), dict(environ))  # noqa: S606  # argv, no shell
