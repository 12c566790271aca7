"""``swarm diff``: show an agent's changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import SwarmError, UsageProblem
from swarm.api.words import split_agent
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import count, plain, short_id
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    from swarm import DiffReport, FileChange, Swarm

_MOST_UNTRACKED = 20


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "diff",
        attempt="cannot show the changes of an agent",
        examples="""
        swarm diff developer
        swarm diff developer@feature-x --patch | git apply --stat
        """,
    )(diff)


def diff(
    run: Run,
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="[AGENT[@SESSION]]",
            help="Agent; default: the agent of the current worktree, or the only agent.",
            autocompletion=completion.agents,
            show_default=False,
        ),
    ] = None,
    patch: Annotated[bool, typer.Option("--patch", help="Print only the patch.", show_default=False)] = False,
) -> Answer:
    """Show an agent's changes since its base commit.

    Lists committed changes first, then uncommitted ones. Changes nothing.
    """
    swarm = run.open()
    name, session = split_agent(agent) if agent else _here(run, swarm)
    report = swarm.diff(name, session, patch=patch or run.output.json)
    return Answer(diff_data(report), lambda output: _patch(output, report) if patch else _show(output, report))


def _here(run: Run, swarm: Swarm) -> tuple[str, str]:
    """Return the agent that is meant when none is named."""
    agents = [(agent, session) for session in swarm.sessions() for agent in session.agents]
    with suppress(SwarmError, OSError):
        here = run.directory.resolve()
        for agent, session in agents:
            if here.is_relative_to((swarm.root / agent.worktree).resolve()):
                return agent.name, session.name
    if len(agents) == 1:
        return agents[0][0].name, agents[0][1].name
    names = ", ".join(f"{agent.name}@{session.name}" for agent, session in agents)
    raise UsageProblem("no agent named", hint=f"name one of {names}" if names else "there are no agents")


def diff_data(report: DiffReport) -> dict[str, Any]:
    """Return a diff for machines."""
    return {
        "session": report.session,
        "agent": report.agent,
        "branch": report.branch,
        "path": report.path,
        "base": report.base,
        "head": report.head,
        "missing": report.missing,
        "commits": report.commits,
        "files": report.files,
        "patch": report.patch,
        "uncommitted": report.uncommitted,
        "uncommitted_patch": report.uncommitted_patch,
        "staged": report.staged,
        "untracked": report.untracked,
        "acting": [asdict(one) for one in report.acting],
    }


def _show(output: Output, report: DiffReport) -> None:
    name = f"{plain(report.agent)}@{plain(report.session)}"
    commits = count(len(report.commits), "commit")
    output.out(f"{name}: {commits} on {plain(report.branch)} since {short_id(report.base)}", "heading")
    if report.missing:
        output.out("  its worktree is gone; this is its branch")
    show_files(output, report.files)
    if report.uncommitted:
        output.out()
        staged = f", {len(report.staged)} of it staged" if report.staged else ""
        output.out(f"not committed{staged}:", "heading")
        show_files(output, report.uncommitted)
    if report.untracked:
        output.out()
        output.out("untracked:", "heading")
        for path in report.untracked[:_MOST_UNTRACKED]:
            output.out(f"  {plain(path)}")
        if len(report.untracked) > _MOST_UNTRACKED:
            output.out(f"  … and {len(report.untracked) - _MOST_UNTRACKED} more")
    if report.acting:
        output.out()
        output.out("act on your machine by themselves; read them before you merge or open the worktree:", "heading")
        for one in report.acting:
            output.item("  ", f"{one.path}: {one.reason}")


def show_files(output: Output, files: Sequence[FileChange]) -> None:
    """Print the changed files, a line each."""
    if not files:
        return
    columns = (
        Column("STATUS", keep="all"),
        Column("+", keep="all", right=True),
        Column("-", keep="all", right=True),
        Column("FILE", keep="end"),
    )
    output.table(columns, [(file.status, *_numbers(file), _name(file)) for file in files])
    added, deleted = (sum(number or 0 for number in numbers) for numbers in _columns(files))
    output.out(f"{count(len(files), 'file')}, {count(added, 'line')} added, {count(deleted, 'line')} deleted")


def _columns(files: Sequence[FileChange]) -> tuple[list[int | None], list[int | None]]:
    return [file.added for file in files], [file.deleted for file in files]


def _numbers(file: FileChange) -> tuple[Cell, Cell]:
    if file.added is None:
        return Cell("binary"), Cell("")
    return Cell(str(file.added), "good" if file.added else ""), Cell(str(file.deleted), "bad" if file.deleted else "")


def _name(file: FileChange) -> str:
    return f"{file.path} (was {file.old_path})" if file.old_path else file.path


def _patch(output: Output, report: DiffReport) -> None:
    """Print the patch: byte for byte into a pipe or a file, made safe on a terminal."""
    output.raw(report.patch + report.uncommitted_patch, _style_of)
    if report.untracked:
        output.err(f"not in the patch: {count(len(report.untracked), 'untracked file')}")
    if report.acting:
        output.err(f"act on your machine by themselves: {', '.join(plain(one.path) for one in report.acting)}")


def _style_of(line: str) -> str:
    """Return how a line of a patch looks on a terminal."""
    if line.startswith(("diff --git ", "+++ ", "--- ", "index ")):
        return "heading"
    return {"+": "good", "-": "bad", "@": "hint"}.get(line[:1], "")
