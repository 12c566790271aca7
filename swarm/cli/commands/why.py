"""``swarm why``, ``swarm peek``: one agent, with all the evidence of its state, and its pane."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from swarm import UsageProblem
from swarm.api.data import agent_data
from swarm.api.words import split_agent
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell
from swarm.cli.text import age, iso, place, plain, short_id
from swarm.cli.verb import Run, verb
from swarm.cli.views.agents import STATE_STYLES, AgentName

if TYPE_CHECKING:
    from swarm import AgentStatus, BoxReport, Notes, Parent, Swarm


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(root, "why", attempt="cannot explain {agent}", examples="swarm why developer@feature-x")(why)
    verb(
        root,
        "peek",
        attempt="cannot look at {agent}",
        examples="swarm peek developer\nswarm peek developer@feature-x -n 100\nswarm peek developer --follow",
    )(peek)


def why(run: Run, agent: AgentName) -> Answer:
    """Explain an agent's state: every piece of evidence, and which one decided."""
    from swarm.cli.views.setup import setup_data

    name, session = split_agent(agent)
    swarm = run.open()
    one = swarm.why(name, session, look=run.output.json, unread=run.output.json)
    where = one.session
    box = swarm.boxes.explain(one.agent.name, where)
    done = swarm.worktrees.setup_of(one.agent.name, where)
    parent = swarm.sessions.get(where).parent
    trouble = swarm.hooks.trouble(one.agent.name, where)
    told = {
        "parent": parent.address if parent else "",
        "setup": done and setup_data(done),
        "box": {"by": box.by, "network": list(box.decisions)} if box.by else None,
        "hook_trouble": {"at": iso(trouble[0] * 1000), "text": trouble[1]} if trouble else None,
    }
    warnings = (f"a hook of its program failed {age(trouble[0] * 1000)} ago: {trouble[1]}",) if trouble else ()
    return Answer(
        {**agent_data(one, where), **told}, lambda output: _show_why(output, one, where, parent, done, box), warnings
    )


def _show_why(
    output: Output, one: AgentStatus, session: str, parent: Parent | None, done: Notes | None, box: BoxReport
) -> None:
    from swarm.cli.views.setup import setup_rows, show_setup

    output.pairs(
        [
            ("agent", f"{one.agent.name}@{session}"),
            ("state", Cell(one.status.state, STATE_STYLES.get(one.status.state, ""))),
            ("detail", one.status.detail or "-"),
            ("program", one.agent.program or "-"),
            *((("parent", parent.address),) if parent else ()),
            ("pane", one.pane or "-"),
            ("process", str(one.pid) if one.pid else "-"),
            ("worktree", place(one.worktree)),
            ("head", short_id(one.head) or "-"),
            *((("box", one.box),) if one.box else ()),
            *_limits(one),
            *((("held", one.held),) if one.held else ()),
            *setup_rows(one.agent, done),
        ]
    )
    if done is not None:
        show_setup(output, done)
    if one.outside:
        from swarm.cli.views.outside import show_outside  # most have none

        show_outside(output, one.outside)
    output.out()
    output.out("evidence:", "heading")
    for item in one.status.evidence:
        mark = "*" if item.decides else " "
        when = f"  ({age(item.at_ms)} ago)" if item.at_ms else ""
        output.item(f" {mark} ", f"{item.source}: {item.text}{when}")
    show_decisions(output, box)
    output.err("* decided the state")


def _limits(one: AgentStatus) -> Iterator[tuple[str, str]]:
    """Yield the line about the limits of an agent's box."""
    if one.limits:
        from swarm.cli.views.boxes import limits_words  # most have none

        yield "limits", limits_words(one.limits)


def show_decisions(output: Output, box: BoxReport) -> None:
    """Print what an agent in a box asked of the network, and what came of it."""
    if not box.decisions:
        return
    output.out()
    output.out("asked of the network, newest first:", "heading")
    for one in box.decisions:
        times = f", {one['times']} times" if one["times"] != 1 else ""
        said = f"{one['target'] or '-'}: {one['reason']} (by the {one['by']}{times})"
        output.item("  let through " if one["allowed"] else "  refused     ", said, "good" if one["allowed"] else "bad")


def peek(
    run: Run,
    agent: AgentName,
    lines: Annotated[str, typer.Option("-n", "--lines", metavar="LINES", help="Number of lines.")] = "40",
    follow: Annotated[
        bool, typer.Option("--follow", help="Show each change until Ctrl-C.", show_default=False)
    ] = False,
) -> Answer:
    """Print the last lines of an agent's pane."""
    wanted = int(lines) if lines.isascii() and lines.isdigit() and len(lines) <= 6 else 0
    if not 1 <= wanted <= 100_000:
        raise UsageProblem(f"--lines {lines}: give a number from 1 to 100000")
    name, session = split_agent(agent)
    swarm = run.open()
    if follow:
        return _follow(run, swarm, name, session, wanted)
    shown = swarm.peek(name, session, lines=wanted)
    return Answer({"agent": name, "lines": shown}, lambda output: _print(output, shown))


def _print(output: Output, lines: Sequence[str]) -> None:
    for line in lines:
        output.out(plain(line))


def _follow(run: Run, swarm: Swarm, name: str, session: str | None, lines: int) -> Answer:
    swarm.peek(name, session, lines=lines)  # is there anything to see?
    where = swarm.why(name, session, look=False, unread=False, ask=False)
    address = f"{where.agent.name}@{where.session}"

    from swarm.cli.views.watch import until_ctrl_c

    def view() -> None:
        with swarm.live(git=None) as live, live.show(address, lines=lines):
            revision = live.snapshot().revision
            while True:
                for change in live.wait(revision):
                    revision = change.revision
                    if change.kind == "screen" and change.subject == address and change.after is not None:
                        if change.after["problem"]:
                            swarm.peek(name, session, lines=lines)  # says what is wrong
                        _show_screen(run, name, change.after["lines"])

    return until_ctrl_c(run, view)


def _show_screen(run: Run, name: str, shown: list[str]) -> None:
    if run.output.json:
        run.output.answer(run.command, Answer({"agent": name, "lines": shown}, lambda _output: None))
    else:
        run.output.clear_screen()
        _print(run.output, shown)
