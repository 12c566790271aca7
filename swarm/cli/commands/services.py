"""``swarm services``, ``discover``, ``shutdown`` and ``kill``: the servers of a swarm directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.cli.output import Answer
from swarm.cli.table import Cell, Column
from swarm.cli.text import plain
from swarm.cli.verb import Run, group, seconds_of, verb
from swarm.cli.views.watch import until_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Component, ComponentEnded, ComponentHealth
    from swarm.cli.output import Output

_STYLES = {"idle": "good", "working": "good", "error": "bad", "not answering": "bad", "stopped": "dim"}
_COLOURS = {"green": "good", "yellow": "warn", "red": "bad", "grey": "dim"}
_COLUMNS = (Column("NAME"), Column("TYPE"), Column("STATE", keep="all"), Column("URL"), Column("TASK", 1))
_LAST_PORT = 65535
app = group("services", "List and start the servers of this swarm directory.", "swarm services", default="list")


def add_to(root: typer.Typer) -> None:
    """Add the group and the commands to the tree."""
    if getattr(root, "wanted", "services") == "services":
        root.add_typer(app)
    verb(root, "discover", attempt="cannot look for components", examples="swarm discover\nswarm discover --watch")(
        discover
    )
    verb(
        root,
        "shutdown",
        attempt="cannot shut down",
        examples="swarm shutdown --all\nswarm shutdown --port 9000 --timeout 2m",
    )(shutdown)
    verb(root, "kill", attempt="cannot kill", examples="swarm kill --all")(kill)


_All = Annotated[bool, typer.Option("--all", help="Every component of this swarm directory.", show_default=False)]
_Agents = Annotated[bool, typer.Option("--agents", help="The served agents.", show_default=False)]
_Port = Annotated[str | None, typer.Option("--port", metavar="N", help="The one on this port.", show_default=False)]


def discover(
    run: Run,
    ports: Annotated[
        str | None,
        typer.Option(
            "--ports",
            metavar="A-B",
            help="Which ports to ask; default: the setting discovery.port_range.",
            show_default=False,
        ),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Print how they do whenever that changes, until Ctrl-C.", show_default=False)
    ] = False,
) -> Answer:
    """List the servers that run: this directory's, and others.

    A server is counted as this directory's when it proves that; others are shown as not ours, and no secret is sent to
    them. With --watch green is healthy, yellow did not answer once or twice, red is unreachable.
    """
    services = run.open().services
    wanted = None if ports is None else _ports(ports)
    if not watch:
        found = services.discover(others=True, ports=wanted)
        return _listed(found, "no component runs; for example: swarm services start NAME")

    def view() -> None:
        last: object = None
        for found in services.watch(ports=wanted):
            now = [(one.colour, one.word, one.component._replace(says=None)) for one in found]
            if now != last:
                run.output.answer(run.command, _watched(found))
            last = now

    return until_ctrl_c(run, view)


@verb(app, "list", attempt="cannot list the components", examples="swarm services list")
def list_(run: Run) -> Answer:
    """List the components that files configure or that run, and how they stand."""
    return _listed(run.open().services(), "no component; for example: swarm agent serve --name reviewer --port 9000")


@verb(
    app,
    "start",
    attempt="cannot start components",
    examples="swarm services start\nswarm services start reviewer",
)
def start(
    run: Run,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME…]", help="Which ones; default: all that are stopped.")
    ] = None,
) -> Answer:
    """Start configured agents in the background; each goes on until it is shut down."""
    services = run.open().services
    chosen = names or [one.name for one in services() if one.state == "stopped"]
    return _listed([services.start(name) for name in chosen], "nothing to start")


def shutdown(
    run: Run,
    all: _All = False,
    agents: _Agents = False,
    directors: Annotated[bool, typer.Option("--directors", help="The directors.", show_default=False)] = False,
    port: _Port = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="So long a running task may go on.")
    ] = "30s",
    force: Annotated[bool, typer.Option("--force", help="Cancel running tasks at once.", show_default=False)] = False,
) -> Answer:
    """Ask servers to end, and wait until they have; a task that runs too long is cancelled."""
    how = _which(all=all, kinds={"agent": agents, "director": directors}, port=port)
    seconds = int(seconds_of("--timeout", timeout) or 0)
    return _ended(run.open().services.shutdown(**how, timeout=seconds, force=force))


def kill(run: Run, all: _All = False, port: _Port = None) -> Answer:
    """End the processes of servers, in five seconds at most. Their tasks go on, and the next server finds them."""
    return _ended(run.open().services.kill(**_which(all=all, kinds={}, port=port)))


def _which(*, all: bool, kinds: dict[str, bool], port: str | None) -> dict[str, Any]:  # as the options are called
    wanted = [kind for kind, asked in kinds.items() if asked]
    if int(all) + len(wanted) + (port is not None) != 1:
        options = ["--all", *(f"--{kind}s" for kind in kinds), "--port N"]
        raise UsageProblem(f"say which: one of {', '.join(options)}")
    if port is None:
        return {"kind": wanted[0] if wanted else None}
    if not (port.isascii() and port.isdecimal() and 0 < int(port[:6]) <= _LAST_PORT):
        raise UsageProblem(f"--port {port[:20]}: this is no port", hint="a number from 1 to 65535")
    return {"port": int(port)}


def _ports(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if all(one.isascii() and one.isdecimal() and len(one) < 6 for one in (first, last or first)):
        low, high = int(first), int(last or first)
        if 0 < low <= high <= _LAST_PORT:
            return low, high
    raise UsageProblem(f"--ports {text[:20]}: these are no ports", hint="for example: --ports 9000-9199")


def _watched(found: Sequence[ComponentHealth]) -> Answer:
    def show(output: Output) -> None:
        if not found:
            output.err("no component runs")
            return
        columns = (Column("HEALTH", keep="all"), Column("HEARD"), *_COLUMNS)
        rows = []
        for one in found:
            word = Cell(f"{one.colour} {one.word}", _COLOURS[one.colour])
            rows.append((word, f"{int(one.age)}s ago", *_row(one.component)))
        output.table(columns, rows)

    data = [{**one._asdict(), "component": one.component._asdict()} for one in found]
    return Answer({"components": data}, show)


def _listed(found: Sequence[Component], none: str) -> Answer:
    def show(output: Output) -> None:
        if not found:
            output.err(none)
            return
        output.table(_COLUMNS, [_row(one) for one in found])
        for one in found:
            if one.trouble:
                output.err(f"{plain(one.name)}: {plain(one.trouble)}", "bad")

    return Answer({"components": [one._asdict() for one in found]}, show)


def _row(one: Component) -> tuple[str | Cell, ...]:
    task = (one.says or {}).get("current_task")
    shown = f"{task.get('id', '')} {task.get('prompt_preview', '')}" if isinstance(task, dict) else ""
    state = Cell(one.state, _STYLES.get(one.state, "")) if one.is_ours else Cell(f"not ours: {plain(one.state)}", "dim")
    return plain(one.name) or "-", one.type, state, one.url or "-", plain(shown) or "-"


def _ended(found: Sequence[ComponentEnded]) -> Answer:
    def show(output: Output) -> None:
        if not found:
            output.err("no such component runs")
        for one in found:
            output.out(f"{one.type} {plain(one.name)}: {plain(one.words)}", "good" if one.done else "bad")

    data = {"components": [one._asdict() for one in found]}
    return Answer(data, show, exit_code=0 if all(one.done for one in found) else 1)
