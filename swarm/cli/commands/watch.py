"""``swarm watch`` and ``swarm events``: what happens in a project, as it happens, and what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.api.data import approval_data, event_data, session_data
from swarm.cli import completion
from swarm.cli.output import Answer, Output
from swarm.cli.text import iso
from swarm.cli.verb import Run, verb
from swarm.cli.views.changes import show_agent, show_change
from swarm.cli.views.watch import until_ctrl_c

if TYPE_CHECKING:
    from collections.abc import Sequence

    from swarm import Change, Live, LogEvent, Snapshot

_MOST = 1000
_LAST = 1 << 62


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(root, "watch", attempt="cannot watch the project", examples="swarm watch\nswarm watch feature-x --json")(watch)
    verb(
        root,
        "events",
        attempt="cannot read the log of events",
        examples="swarm events\nswarm events --after 120 --json\nswarm events --follow",
    )(events)


_Session = Annotated[
    str | None,
    typer.Argument(
        metavar="[SESSION]",
        help="Only what is about this session.",
        autocompletion=completion.sessions,
        show_default=False,
    ),
]


def watch(run: Run, session: _Session = None) -> Answer:
    """Print each change of the project on a line, as it happens, until Ctrl-C.

    First it prints how every agent stands. It also does what the agents' supervisors do else: it shows the states in
    tmux, notifies you, and writes the log of events.
    """
    swarm = run.open()
    name = swarm.sessions.get(session).name if session is not None else ""

    def view() -> None:
        with swarm.live(tell=True) as live:
            while True:
                snapshot = live.snapshot()
                _show_snapshot(run, snapshot, name)
                _show_changes(run, live, snapshot, name)

    return until_ctrl_c(run, view)


def _show_changes(run: Run, live: Live, snapshot: Snapshot, session: str) -> None:
    """Print changes until this reader is too slow; then it needs another snapshot."""
    for change in live.changes(after=snapshot.revision):
        if change.kind != "lost" and session and not _is_about(change, session):
            continue
        if run.output.json:
            run.output.answer(run.command, Answer(_change_data(change), lambda _output: None))
        elif change.kind == "lost":
            run.output.err("too much happened at once to print it all; this is how the agents stand now:")
        else:
            show_change(run.output, change.kind, change.subject, change.before, change.after, change.at_ms)


def _show_snapshot(run: Run, snapshot: Snapshot, session: str) -> None:
    found = [one for one in snapshot.sessions if session in ("", one.session.name)]
    if run.output.json:
        data = {
            "snapshot": {
                "epoch": snapshot.epoch,
                "revision": snapshot.revision,
                "at": iso(snapshot.at_ms),
                "sessions": [session_data(one) for one in found],
                "approvals": [
                    approval_data(one) for one in snapshot.approvals if session in ("", one.question.session)
                ],
                "operations": snapshot.operations,
                "problems": snapshot.problems,
            }
        }
        run.output.answer(run.command, Answer(data, lambda _output: None))
        return
    for one in found:
        for agent in session_data(one)["agents"]:
            show_agent(run.output, f"{agent['name']}@{agent['session']}", agent, snapshot.at_ms)
    if not found:
        run.output.err("no agents yet; what happens is printed here")


def _is_about(change: Change | LogEvent, session: str) -> bool:
    """Whether a change is about a session, an agent of it, or what that agent asks."""
    thing = change.kind.partition(".")[0]
    if thing == "session":
        return change.subject == session
    if thing == "agent":
        return change.subject.partition("@")[2] == session
    fields = {**(change.before or {}), **(change.after or {})}
    return thing == "gap" or session in str(fields.get("session", "")).split(",")


def _change_data(change: Change) -> dict[str, Any]:
    return {
        "epoch": change.epoch,
        "revision": change.revision,
        "kind": change.kind,
        "subject": change.subject,
        "before": change.before,
        "after": change.after,
        "at": iso(change.at_ms),
    }


# --- the log ----------------------------------------------------------------------------------------


def events(
    run: Run,
    session: _Session = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="N", help="Only events with a higher number.", show_default=False),
    ] = None,
    limit: Annotated[str, typer.Option("--limit", metavar="N", help="So many events at most, from 1 to 1000.")] = str(
        _MOST
    ),
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep printing new events until Ctrl-C.", show_default=False)
    ] = False,
) -> Answer:
    """Print the log of events of the project, oldest first; each event has a number.

    What was not written down, or is not kept any more, is printed as a gap. With --follow and without --after it begins
    with the next event.
    """
    begin = None if after is None else _number("--after", after, 0, _LAST)
    most = _number("--limit", limit, 1, _MOST)
    swarm = run.open()
    name = swarm.sessions.get(session).name if session is not None and follow else session or ""
    if follow:

        def view() -> None:
            with swarm.live(tell=True):
                for event in swarm.events.follow(begin):
                    if not name or _is_about(event, name):
                        _show_event(run, event)

        return until_ctrl_c(run, view)
    page = swarm.events.log(begin or 0, limit=most)
    found = [one for one in page.events if not name or _is_about(one, name)]
    return Answer(
        {"events": [event_data(one) for one in found], "last": page.last, "more": page.more},
        lambda output: _show_page(output, found),
        next=(f"more: swarm events --after {page.last}",) if page.more else (),
    )


def _number(option: str, text: str, least: int, most: int) -> int:
    if text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most:
        return int(text)
    raise UsageProblem(f"{option} {text[:20]}: give a number from {least} to {most}")


def _show_page(output: Output, found: Sequence[LogEvent]) -> None:
    for event in found:
        show_change(output, event.kind, event.subject, event.before, event.after, event.at_ms, event.number)
    if not found:
        output.err("no events; whoever watches writes them down: swarm watch")


def _show_event(run: Run, event: LogEvent) -> None:
    if run.output.json:
        run.output.answer(run.command, Answer(event_data(event), lambda _output: None))
    else:
        show_change(run.output, event.kind, event.subject, event.before, event.after, event.at_ms, event.number)
