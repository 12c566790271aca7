"""``swarm agent …``: agents that are served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from swarm import UsageProblem
from swarm.cli.commands.start import Agent
from swarm.cli.output import Answer, Output
from swarm.cli.verb import Run, group, seconds_of, verb

if TYPE_CHECKING:
    from swarm import UnitFile
    from swarm.api.agent_server import AgentServer

_LAST_PORT = 65535
_NOT_BOXED = "noop"
app = group(
    "agent", "Serve an agent: it takes tasks by HTTP.", "swarm agent serve --name reviewer --port 9000", default=""
)


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="The agent's file; see `swarm config schema agent`."),
]
Name = Annotated[
    str,
    typer.Option("--name", metavar="NAME", help="Name; its file is agents/NAME/config.yaml.", show_default=False),
]
Port = Annotated[
    str | None,
    typer.Option("--port", metavar="N", help="Port; 0 is any free one.", show_default=False),
]
Bind = Annotated[
    str | None,
    typer.Option(
        "--bind",
        metavar="ADDRESS",
        help="Address at which it listens; one that other machines reach needs --tls. Default: 127.0.0.1.",
        show_default=False,
    ),
]
Tls = Annotated[
    bool, typer.Option("--tls", help="Speak HTTPS, with a certificate that swarm makes.", show_default=False)
]
Unit = Annotated[
    bool,
    typer.Option(
        "--unit", help="Serve nothing; write a file by which systemd or launchd serves it.", show_default=False
    ),
]
Command = Annotated[
    str | None,
    typer.Option("--agent-cmd", metavar="COMMAND", help="Any command, which reads the prompt.", show_default=False),
]
Model = Annotated[str | None, typer.Option("--model", metavar="NAME", help="Model of the program.", show_default=False)]
Timeout = Annotated[
    str | None,
    typer.Option("--timeout", metavar="TIME", help="Longest time of a task, such as 30m.", show_default=False),
]
InBox = Annotated[
    bool | None,
    typer.Option(
        "--sandbox/--no-sandbox",
        help="Run the program in a box, or without one; default: in one.",
        show_default=False,
    ),
]


@verb(
    app,
    "serve",
    attempt="cannot serve the agent",
    examples="swarm agent serve --name reviewer\nswarm agent serve --config reviewer.yaml\n"
    "swarm agent serve --name tester --port 9001 --agent demo",
)
def serve(
    run: Run,
    config: Config = None,
    name: Name = "",
    port: Port = None,
    bind: Bind = None,
    tls: Tls = False,
    unit: Unit = False,
    agent: Agent = None,
    agent_cmd: Command = None,
    model: Model = None,
    timeout: Timeout = None,
    sandbox: InBox = None,
) -> Answer:
    """Serve one agent by HTTP, until it is shut down; only this machine reaches it, unless --bind says otherwise.

    Its tasks are those of `swarm task`: when the server is killed, they go on, and the next server finds them.
    """
    from swarm.api import agent_server

    if agent and agent_cmd:
        raise UsageProblem("both --agent and --agent-cmd are given", hint="give one of them")
    swarm = run.open()
    if unit:
        if config or port or bind or tls or agent or agent_cmd or model or timeout or sandbox is not None:
            raise UsageProblem("--unit goes with --name alone", hint="write the rest into agents/NAME/config.yaml")
        if not name:
            raise UsageProblem("no agent is named", hint="swarm agent serve --name NAME --unit")
        return unit_written(swarm.services.write_unit(name))
    given = {"program": agent, "command": agent_cmd, "model": model, "timeout": seconds_of("--timeout", timeout)}
    wanted = _port("--port", port)
    if wanted is None:
        wanted = _port("SWARM_PORT", swarm.services.variable("SWARM_PORT"))
    given |= {"bind": bind, "sandbox": sandbox}
    found = agent_server.defined(swarm, run.directory / config if config else None, name, tls, port=wanted, **given)
    agent_server.check_installed()
    server = agent_server.AgentServer.of(swarm, found)
    from swarm.http_door.serve import serve as serve_agent

    serve_agent(server, lambda url: _tell_ready(run, server, url))
    return Answer({"name": found.name}, lambda output: output.err(f"agent {found.name} ended"))


def _tell_ready(run: Run, server: AgentServer, url: str) -> None:
    """Tell where the agent takes tasks, and who can check that it is this one."""
    found = server.agent
    run.output.err(f"agent {found.name} takes tasks on {url}; Ctrl-C ends it")
    if server.box.startswith(_NOT_BOXED):
        run.output.err(f"its program runs without a box: {server.box}", "warn")
    if server.certificate is None:
        return
    run.output.err(f"its certificate: {server.certificate.cert}\n  SHA-256 {server.certificate.shown}")
    if found.says.bind != "127.0.0.1":
        names = ", ".join(server.certificate.names)
        run.output.err(f"programs with its token reach it from other machines, under these names: {names}", "warn")


def unit_written(unit: UnitFile) -> Answer:
    """Tell of a file for the service manager, and what to type next."""

    def show(output: Output) -> None:
        output.out(f"wrote {unit.path}")
        for command in unit.commands:
            output.err(f"  {command}", "hint")

    return Answer({"path": str(unit.path), "commands": list(unit.commands)}, show)


def _port(what: str, text: str | None) -> int | None:
    if not text:
        return None
    if text.isascii() and text.isdecimal() and int(text[:6]) <= _LAST_PORT:
        return int(text)
    raise UsageProblem(f"{what} {text[:20]}: this is no port", hint="a number from 1024 to 65535; 0 is any free one")
