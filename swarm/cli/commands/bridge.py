"""``swarm bridge …``: gateways between your inbox and programs of yours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.cli.output import Answer
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, place, plain
from swarm.cli.verb import Run, group, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import BridgeStatus, SwarmError
    from swarm.cli.output import Output

_STYLES = {"up": "good", "down": "bad", "refused": "bad", "starting": "warn", "stopped": "dim"}
_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the bridge.", show_default=False)]

app = group(
    "bridge",
    "Bring messages and requests to your desktop or chat.",
    "swarm bridge list\nswarm bridge start desktop",
    default="list",
)


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


def bridge_data(one: BridgeStatus) -> dict[str, Any]:
    """Return a bridge for machines."""
    return one._asdict()


@verb(app, "list", attempt="cannot list the bridges", examples="swarm bridge list")
def list_(run: Run) -> Answer:
    """List your bridges and their states in this repository."""
    problems: list[SwarmError] = []
    found = run.open().bridges(problems=problems)
    return Answer(
        {"bridges": [bridge_data(one) for one in found]},
        lambda output: show_table(output, found),
        errors=[problem.as_dict() for problem in problems],
        exit_code=1 if problems else 0,
    )


def show_table(output: Output, found: Sequence[BridgeStatus]) -> None:
    """Print a line for each bridge."""
    if not found:
        output.err("no bridge is defined; for notifications of your desktop: swarm bridge init desktop")
        return
    columns = (Column("BRIDGE"), Column("STATE", keep="all"), Column("SINCE", keep="all"), Column("DETAIL", 1))
    output.table(columns, [_row(one) for one in found])


def _row(one: BridgeStatus) -> tuple[str | Cell, ...]:
    since = age(one.since_ms) if one.since_ms else "-"
    return plain(one.name), Cell(one.state, _STYLES.get(one.state, "")), since, plain(one.detail) or "-"


@verb(
    app,
    "init",
    attempt="cannot write bridge {name}",
    examples="swarm bridge init desktop\nswarm bridge init chat --kind webhook",
)
def init(
    run: Run,
    name: _Name,
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="desktop, webhook or command; default: desktop.")
    ] = "desktop",
) -> Answer:
    """Write a new file that defines a bridge, into `bridges/` of your own swarm directory. Overwrites nothing."""
    path = run.open().bridges.init(name, kind=kind)
    nexts = (f"next: edit {place(path)}", f"next: swarm bridge start {name}")
    return Answer({"name": name, "path": path}, lambda output: output.out(f"{place(path)} written"), next=nexts)


@verb(app, "start", attempt="cannot start bridge {name}", examples="swarm bridge start desktop")
def start(run: Run, name: _Name) -> Answer:
    """Start a bridge in the background, for this repository."""
    found = run.open().bridges.start(name)
    return _changed(found, "started", f"look: swarm bridge list; stop it: swarm bridge stop {name}")


@verb(app, "stop", attempt="cannot stop bridge {name}", examples="swarm bridge stop desktop")
def stop(run: Run, name: _Name) -> Answer:
    """Stop a bridge; what comes meanwhile waits in your inbox."""
    return _changed(run.open().bridges.stop(name), "stopped", f"bring it back: swarm bridge start {name}")


def _changed(found: BridgeStatus, did: str, after: str) -> Answer:
    return Answer(
        bridge_data(found), lambda output: output.out(f"{did} bridge {plain(found.name)}", "good"), next=(after,)
    )


@verb(app, "run", attempt="cannot run bridge {name}", examples="swarm bridge run desktop")
def run_(run: Run, name: _Name) -> Answer:
    """Serve a bridge in the foreground until Ctrl-C, for systemd and the like."""
    swarm = run.open()
    swarm.bridges.run(name)
    return Answer({"name": name}, lambda output: output.err(f"bridge {plain(name)} ended"))
