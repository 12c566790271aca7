"""``swarm transcript``: an agent's conversation, from its program's own record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import EntryKind, Speaker, UsageProblem
from swarm.api.words import split_agent
from swarm.cli.output import Answer, Output
from swarm.cli.text import iso, lines_of, plain
from swarm.cli.verb import Run, verb
from swarm.cli.views.agents import AgentName
from swarm.cli.views.watch import again

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm import TranscriptEntry

_MOST_LINES = 200
_NAME_WIDTH = 9
_STYLES = {EntryKind.CALL: "hint", EntryKind.NOTE: "dim", EntryKind.THINKING: "dim", EntryKind.RESULT: "dim"}


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "transcript",
        attempt="cannot show the conversation of {agent}",
        examples="swarm transcript developer\nswarm transcript developer@feature-x -n 20 --follow",
    )(transcript)


def transcript(
    run: Run,
    agent: AgentName,
    lines: Annotated[str, typer.Option("-n", "--last", metavar="NUMBER", help="Number of entries; 0 shows all.")] = "0",
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep printing new entries until Ctrl-C.", show_default=False)
    ] = False,
) -> Answer:
    """Show an agent's conversation: time, speaker and text, and one line per tool call.

    swarm reads the record that the agent's program keeps, even of a removed agent as long as the record exists.
    """
    wanted = int(lines) if lines.isascii() and lines.isdigit() and len(lines) <= 9 else -1
    if wanted < 0:
        raise UsageProblem(f"--last {lines}: give a number, 0 for all")
    name, session = split_agent(agent)
    swarm = run.open()
    if follow:
        return _follow(run, name, swarm.watch_transcript(name, session), wanted)
    found = _last(swarm.transcript(name, session), wanted)
    data = {"agent": name, "entries": [entry_data(name, entry) for entry in found]}
    return Answer(data, lambda output: _show(output, name, found))


def _follow(run: Run, name: str, told: Iterator[Sequence[TranscriptEntry]], wanted: int) -> Answer:
    page = Page(run.output, name)
    told = (_last(entries, 0 if number else wanted) for number, entries in enumerate(told))

    def look() -> None:
        shown = next(told)  # waits until there is more
        if not run.output.json:
            page.show(shown)
            return
        for entry in shown:
            run.output.answer(run.command, Answer(entry_data(name, entry), lambda _output: None))

    return again(run, look, 0)


def _last(entries: Sequence[TranscriptEntry], wanted: int) -> Sequence[TranscriptEntry]:
    return entries[-wanted:] if wanted else entries


def entry_data(agent: str, entry: TranscriptEntry) -> dict[str, Any]:
    """Return an entry as data."""
    return {
        "agent": agent,
        "at": iso(entry.at_ms),
        "who": entry.who,
        "kind": entry.kind,
        "text": entry.text,
        "tool": entry.tool,
        "given": dict(entry.given),
        "failed": entry.failed,
        "model": entry.model,
        "subagent": entry.subagent,
        "conversation": entry.conversation,
        "id": entry.id,
    }


def _show(output: Output, agent: str, entries: Sequence[TranscriptEntry]) -> None:
    if not entries:
        output.err(f"{plain(agent)} has no conversation yet")
        return
    Page(output, agent).show(entries)


class Page:
    """Entries for people, with the day where it changes."""

    def __init__(self, output: Output, agent: str) -> None:
        self._output = output
        self._agent = agent
        self._day = ""

    def show(self, entries: Sequence[TranscriptEntry]) -> None:
        """Show some more."""
        for entry in entries:
            self._show_day(entry.at_ms)
            self._show_entry(entry)

    def _show_day(self, at_ms: int) -> None:
        day = time.strftime("%Y-%m-%d", time.localtime(at_ms / 1000)) if at_ms else self._day
        if day != self._day:
            self._day = day
            self._output.out(day, "heading")

    def _show_entry(self, entry: TranscriptEntry) -> None:
        clock = time.strftime("%H:%M:%S", time.localtime(entry.at_ms / 1000)) if entry.at_ms else " " * 8
        head = f"{clock}  {plain(self._who(entry)):<{_NAME_WIDTH}} "
        style = "bad" if entry.failed else _STYLES.get(entry.kind, "heading" if entry.who is Speaker.USER else "")
        first, *rest = _lines(entry)
        self._output.item(head, first, style)
        indent = " " * len(head)
        for line in rest[: _MOST_LINES - 1]:
            self._output.item(indent, line)
        if len(rest) >= _MOST_LINES:
            self._output.item(indent, f"… {len(rest) - _MOST_LINES + 1} more lines", "dim")

    def _who(self, entry: TranscriptEntry) -> str:
        if entry.kind is EntryKind.RESULT:
            return ""
        if entry.who is Speaker.REVIEWER:
            return str(entry.who)
        who = self._agent if entry.who is Speaker.AGENT else str(entry.who)
        return f"{who}/{entry.subagent[:6]}" if entry.subagent else who


def _lines(entry: TranscriptEntry) -> list[str]:
    """Return the lines of an entry; a call and its result have one each."""
    lines = lines_of(entry.text) or [""]
    if entry.kind is EntryKind.CALL:
        return [f"> {plain(entry.tool)} {_short(lines)}".rstrip()]
    if entry.kind is EntryKind.RESULT:
        return [f"< {'failed: ' if entry.failed else ''}{_short(lines)}".rstrip()]
    if entry.kind is EntryKind.THINKING:
        return [f"(thinks) {lines[0]}", *lines[1:]]
    return [f"[{_short(lines)}]"] if entry.kind is EntryKind.NOTE else lines


def _short(lines: Sequence[str]) -> str:
    first = next((line.strip() for line in lines if line.strip()), "")
    more = sum(1 for line in lines if line.strip()) - 1
    cut = first if len(first) <= 160 else first[:159] + "…"
    return f"{cut} (+{more} lines)" if more > 0 else cut
