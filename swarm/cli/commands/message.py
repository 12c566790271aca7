"""``swarm message`` and ``swarm thread``: where messages are, and how we know."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.cli.output import Answer, Output
from swarm.cli.text import iso, local_time, plain
from swarm.cli.verb import Run, verb
from swarm.cli.views.messages import message_lines

if TYPE_CHECKING:
    from swarm import Messages, Reply, Stored, Trace

MessageId = Annotated[str, typer.Argument(metavar="ID", help="Id of a message.", show_default=False)]


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(
        root,
        "message",
        attempt="cannot show the message",
        examples="swarm message 018bcfe568001f2e3d4c5b6a7988\nswarm message 018bcfe568001f2e3d4c5b6a7988 --save .",
    )(message)
    verb(root, "thread", attempt="cannot show the thread", examples="swarm thread 018bcfe568001f2e3d4c5b6a7988")(thread)


def open_messages(run: Run) -> Messages:
    """Return the messages that this command is about; without git where plain files tell."""
    from swarm import Messages

    return Messages.near(run.named_directory) or run.open().messages  # reports the problem


# --- message and thread -----------------------------------------------------------------------------


def show_lines(output: Output, lines: Sequence[str]) -> None:
    """Print a message whose first line is its head."""
    for position, line in enumerate(lines):
        output.out(line, "" if position else "heading")


def message(
    run: Run,
    message_id: MessageId,
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="DIR", help="Copy the attachments into this folder.", show_default=False),
    ] = None,
) -> Answer:
    """Show a message and its delivery history, for each recipient."""
    messages = open_messages(run)
    found = [(trace, messages.answer_to(trace)) for trace in messages.get(message_id)]
    saved = [] if save is None else [str(path) for path in messages.save_files(message_id, Path(run.directory, save))]

    def show(output: Output) -> None:
        _show_traces(output, found)
        for path in saved:
            output.out(f"saved {plain(path)}", "good")

    data = {"messages": [_trace_data(*one) for one in found], "saved": saved}
    return Answer(data, show, [plain(one) for one in messages.unreadable(message_id)])


def _trace_data(trace: Trace, reply: Reply | None) -> dict[str, Any]:
    events = [{"event": e.name, "at": iso(e.time_ms), "evidence": e.evidence} for e in trace.events]
    expected = None
    if reply is not None:
        by = iso(reply.due_ms) if reply.due_ms else None
        expected = {"by": by, "overdue": reply.overdue, "answer": reply.answer or None, "late": reply.late}
    return {**trace.stored.as_dict(), "events": events, "reply": expected}


def _show_traces(output: Output, found: Sequence[tuple[Trace, Reply | None]]) -> None:
    show_lines(output, message_lines(found[0][0].stored.message))
    for trace, reply in found:
        stored = trace.stored
        output.out()
        why = f": {plain(stored.reason)}" if stored.reason else ""
        output.out(f"to {plain(stored.message.to)}: {stored.state}{why}", "bad" if stored.state == "dead" else "good")
        for event in trace.events:
            evidence = f"  {plain(event.evidence)}" if event.evidence else ""
            output.out(f"  {_second(event.time_ms)}  {event.name}{evidence}")
        if reply is not None:
            output.out(f"  {_reply_words(reply)}", "bad" if reply.overdue else "")


def _reply_words(reply: Reply) -> str:
    expected = f"reply expected by {_second(reply.due_ms)}" if reply.due_ms else "reply expected"
    if reply.answer:
        return f"{expected}: answered by {plain(reply.answer)}" + (", too late" if reply.late else "")
    return f"{expected}, overdue" if reply.overdue else expected


def _second(milliseconds: int) -> str:
    """Return a time in the user's zone; states follow each other within seconds."""
    known = local_time(milliseconds)
    return known if known == "unknown" else known + time.strftime(":%S", time.localtime(milliseconds // 1000))


def thread(run: Run, message_id: MessageId) -> Answer:
    """Show the conversation that a message belongs to, oldest first."""
    messages = open_messages(run)
    found = messages.thread(message_id)
    missing = messages.missing_from(found)
    data = {"messages": [one.as_dict() for one in found], "not_kept": list(missing)}
    warnings = [*(f"{plain(one)} is no longer kept" for one in missing), *map(plain, messages.unreadable())]
    return Answer(data, lambda output: _show_thread(output, found), warnings)


def _show_thread(output: Output, found: Sequence[Stored]) -> None:
    for position, stored in enumerate(found):
        if position:
            output.out()
        show_lines(output, message_lines(stored.message, f"to {plain(stored.message.to)}", stored.state))
