"""``swarm conflicts``: forecast merge conflicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import AgentForecast, FileConflict, Forecast, SwarmError
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import count, plain
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    from swarm import ConflictReport, PairForecast

_MOST_FILES = 3
_MOST_HOT = 10
_STYLES = {Forecast.CLEAN: "good", Forecast.OVERLAP: "warn", Forecast.CONFLICT: "bad", Forecast.UNKNOWN: "bad"}


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "conflicts",
        attempt="cannot forecast conflicts",
        examples="""
        swarm conflicts
        swarm conflicts feature-x --json
        """,
    )(conflicts)


def conflicts(
    run: Run,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION|AGENT]",
            help="Only this session, or this agent with its pairs; default: all.",
            autocompletion=completion.sessions,
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Forecast merge conflicts between agents.

    Tries every agent against its base branch and against every other agent, uncommitted work included. Changes
    nothing.
    """
    report = run.open().conflicts(session)
    unknown = report.unknown
    return Answer(
        conflicts_data(report),
        lambda output: _show(output, report),
        errors=[_error(item) for item in unknown],
        exit_code=SwarmError.exit_code if unknown else 0,
    )


def conflicts_data(report: ConflictReport) -> dict[str, Any]:
    """Return a forecast for machines."""
    return {
        "conflicting": report.conflicting,
        "agents": report.agents,
        "pairs": report.pairs,
        "hot": report.hot,
        "order": report.order,
    }


def _error(item: AgentForecast | PairForecast) -> dict[str, Any]:
    name = item.name if isinstance(item, AgentForecast) else f"{item.one} and {item.other}"
    return {"code": "FAILED", "message": f"{name}: {item.reason}", "hint": "", "details": {}}


def _show(output: Output, report: ConflictReport) -> None:
    if not report.agents:
        output.err("there are no agents")
        return
    output.table(
        (Column("AGENT", keep="all"), Column("INTO", 1), Column("FORECAST", keep="all"), Column("FILES")),
        [(one.name, one.into, _status(one), _agent_files(one)) for one in report.agents],
    )
    worth_it = [pair for pair in report.pairs if pair.status is not Forecast.CLEAN]
    if worth_it:
        output.out()
        output.table(
            (
                Column("AGENT", keep="all"),
                Column("AND", keep="all"),
                Column("FORECAST", keep="all"),
                Column("FILES"),
            ),
            [(pair.one, pair.other, Cell(pair.status, _STYLES[pair.status]), _pair_files(pair)) for pair in worth_it],
        )
    elif len(report.pairs) > 0:
        output.out()
        output.out("no two agents touch the same file", "good")
    if report.hot:
        output.out()
        output.out("files that several agents touch:", "heading")
        for file in report.hot[:_MOST_HOT]:
            output.out(f"  {plain(file.path)}: {', '.join(plain(name) for name in file.agents)}")
        if len(report.hot) > _MOST_HOT:
            output.out(f"  … and {len(report.hot) - _MOST_HOT} more")
    if len(report.order) > 1:
        output.out()
        output.out("merge in this order:", "heading")
        for number, step in enumerate(report.order, 1):
            after = (
                f", conflicts with {', '.join(plain(one) for one in step.conflicts_with)}"
                if step.conflicts_with
                else ""
            )
            output.out(f"  {number}. {plain(step.agent)}{after}")


def _status(one: AgentForecast) -> Cell:
    if one.landed:
        return Cell("nothing to merge", "dim")
    return Cell(one.status, _STYLES[one.status])


def _agent_files(one: AgentForecast) -> str:
    if one.status is Forecast.UNKNOWN:
        return one.reason
    if one.conflicts:
        return files_text(one.conflicts)
    if one.landed:
        return "-"
    left = f", {len(one.uncommitted)} not committed" if one.uncommitted else ""
    return f"{count(len(one.touched), 'file')}{left}"


def _pair_files(pair: PairForecast) -> str:
    if pair.status is Forecast.UNKNOWN:
        return pair.reason
    return files_text(pair.conflicts) if pair.conflicts else _some(pair.overlap)


def files_text(files: Sequence[FileConflict]) -> str:
    """Return files in conflict on one line, with the kinds of conflict."""
    return _some([f"{file.path} ({', '.join(file.kinds)})" for file in files])


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _MOST_FILES} more" if len(items) > _MOST_FILES else ""
    return ", ".join(items[:_MOST_FILES]) + more
