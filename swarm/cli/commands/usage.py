"""``swarm usage``: show tokens, cost and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from swarm.api.data import usage_data
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import count, plain
from swarm.cli.verb import Run, verb

if TYPE_CHECKING:
    from swarm import AgentUsage, ModelUsage, UsageReport

#: Instead of the numbers of a program that tells none.
_NOTHING = ("-",) * 6


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(
        root,
        "usage",
        attempt="cannot count usage",
        examples="swarm usage\nswarm usage feature-x --json\nswarm usage --all",
    )(usage)


def usage(
    run: Run,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="[SESSION|AGENT]",
            help="Only this session, with its removed agents, or this agent.",
            autocompletion=completion.sessions,
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Also show removed agents.", show_default=False)] = False,
) -> Answer:
    """Show tokens, cost and time of each agent and model.

    CACHED counts cache reads, STORED cache writes. Costs are estimates from list prices.
    """
    report = run.open().usage(session, everything=everything)
    hidden = sum(1 for one in report.agents if not one.recorded)
    return Answer(usage_data(report), lambda output: _show(output, report, hidden), warnings=_warnings(report))


def _warnings(report: UsageReport) -> tuple[str, ...]:
    if not report.unpriced:
        return ()
    names = ", ".join(plain(name) for name in report.unpriced)
    return (f"no price is known for {names}, so costs are incomplete; set usage.prices in the configuration",)


def _show(output: Output, report: UsageReport, silent: int) -> None:
    if not report.agents:
        output.err("no agents; start some with: swarm start SESSION --roles researcher,developer")
        return
    columns = (
        Column("AGENT"),
        Column("SESSION", 6),
        Column("MODEL"),
        Column("REQUESTS", 3, keep="all", right=True),
        Column("INPUT", keep="all", right=True),
        Column("CACHED", 4, keep="all", right=True),
        Column("STORED", 5, keep="all", right=True),
        Column("OUTPUT", keep="all", right=True),
        Column("COST", keep="all", right=True),
        Column("MINUTES", 2, keep="all", right=True),
    )
    rows = [row for one in report.agents for row in _rows(one)]
    counted = silent < len(report.agents)
    if len(rows) > 1:
        numbers = (*_numbers(report.total)[:-1], _cost(report)) if counted else _NOTHING
        rows.append(("total", "", "", *numbers, f"{report.minutes:.1f}"))
    output.table(columns, rows)
    if silent:
        output.err(f"{count(silent, 'agent')} with a program that does not record its usage: shown as -")
    if counted:
        output.err(f"costs are estimates by list prices of {report.prices_as_of} and the setting usage.prices", "dim")


def _rows(one: AgentUsage) -> list[tuple[str | Cell, ...]]:
    name = f"{one.agent} (removed)" if one.removed_ms else one.agent
    minutes = f"{one.minutes:.1f}"
    if not one.models:
        nothing = (*("0",) * 5, "$0.00") if one.recorded else _NOTHING
        return [(name, one.session, one.program or "-", *nothing, minutes)]
    first, *others = one.models
    return [
        (name, one.session, first.model, *_numbers(first), minutes),
        *((name, one.session, model.model, *_numbers(model), "") for model in others),
    ]


def _numbers(one: ModelUsage) -> tuple[str, ...]:
    numbers = (one.requests, one.input, one.cache_read, one.cache_write, one.output)
    return (*(f"{number:,}" for number in numbers), "?" if one.cost is None else _dollars(one.cost))


def _dollars(cost: float) -> str:
    return "<$0.01" if 0 < cost < 0.005 else f"${cost:,.2f}"


def _cost(report: UsageReport) -> str:
    """Return the total cost, as far as prices are known."""
    known = [one.cost for one in report.models if one.cost is not None]
    if not report.unpriced:
        return _dollars(sum(known))
    return f"{_dollars(sum(known))} + ?" if any(known) else "?"
