"""``swarm inbox …``: list, take and acknowledge the messages of an inbox."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import WaitOver
from swarm.cli import completion, given
from swarm.cli.commands.message import open_messages, show_lines
from swarm.cli.help import Group
from swarm.cli.output import Answer, Output
from swarm.cli.text import count, plain
from swarm.cli.verb import Run, group, milliseconds, seconds_of, verb
from swarm.cli.views.messages import (
    Most,
    count_of,
    nothing_taken,
    sender_of,
    show_stored,
    taken_data,
    taken_hints,
    taken_lines,
)

if TYPE_CHECKING:
    from swarm import Depth, Messages, Pruned, PrunedAttachments, Stored, Taken

LOOK = "show"


class _Inbox(Group):
    """Looks into an inbox when no command follows: ``swarm inbox developer`` is ``swarm inbox show developer``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words up to the command, and put in the one that was left out."""
        if not any(word in self.commands or word in ("-h", "--help") for word in args):
            args = [LOOK, *args]
        return super().parse_args(ctx, args)


app = group(
    "inbox",
    "Read and acknowledge messages; without a subcommand, list your inbox.",
    "swarm inbox\nswarm inbox developer@feature-x\nswarm inbox take --wait 60\nswarm inbox ack",
)
app.info.cls = _Inbox

_Agent = Annotated[
    str | None,
    typer.Argument(
        metavar="[AGENT[@SESSION]]",
        help="Inbox of this agent; default: your own.",
        autocompletion=completion.agents,
        show_default=False,
    ),
]
_Of = Annotated[
    str | None,
    typer.Option(
        "--of",
        metavar="AGENT[@SESSION]",
        help="Use this agent's inbox.",
        autocompletion=completion.agents,
        show_default=False,
    ),
]
_Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID…]", help="Messages; default: all that you have taken.", show_default=False),
]


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


# --- look --------------------------------------------------------------------------------------------


@verb(app, LOOK, attempt="cannot read the inbox", examples="swarm inbox\nswarm inbox show developer@feature-x --json")
def show(run: Run, agent: _Agent = None, most: Most = "100") -> Answer:
    """List unfinished messages, most urgent first. Changes nothing."""
    messages = open_messages(run)
    limit = count_of("--max", most)
    depth = messages.depth(agent)  # first: what comes after it is shown, and not counted
    found = messages.inbox(agent, limit)
    data = {"inbox": messages.address(agent), "depth": depth._asdict(), "messages": [one.as_dict() for one in found]}
    return Answer(
        data,
        lambda output: _show_list(output, found, messages.address(agent), "no messages"),
        _not_shown(messages, agent, depth, len(found), limit),
    )


def _not_shown(messages: Messages, agent: str | None, depth: Depth, shown: int, limit: int) -> tuple[str, ...]:
    """Name the number of messages that a list omits, and the reason."""
    more = depth.waiting + depth.claimed - shown
    why = "give a higher --max"
    if more > 0 and shown < limit:
        now = messages.depth(agent)  # another process may have finished them meanwhile
        more = min(more, now.waiting + now.claimed - shown)
        why = "damaged on the disk; the next reader sets them aside"
    return (f"{count(more, 'more message')} not shown; {why}",) if more > 0 else ()


@verb(app, "history", attempt="cannot read the inbox", examples="swarm inbox history developer@feature-x")
def history(run: Run, agent: _Agent = None, most: Most = "100") -> Answer:
    """List recent messages in every state."""
    messages = open_messages(run)
    found = messages.history(agent, count_of("--max", most))
    removed, address = messages.removed(agent), messages.address(agent)
    data = {"inbox": address, "messages": [one.as_dict() for one in found], "not_kept": removed}
    warnings = (f"{count(removed, 'earlier message')} no longer kept",) if removed else ()
    return Answer(data, lambda output: _show_list(output, found, address, "no messages"), warnings)


@verb(app, "dead", attempt="cannot read the inbox", examples="swarm inbox dead developer@feature-x")
def dead(run: Run, agent: _Agent = None) -> Answer:
    """List undeliverable messages, with reasons."""
    return _listed(run, agent, lambda messages: messages.dead(agent), "no dead letters")


def _listed(run: Run, agent: str | None, look: Callable[[Messages], Sequence[Stored]], nothing: str) -> Answer:
    messages = open_messages(run)
    found = look(messages)
    data = {"inbox": messages.address(agent), "messages": [one.as_dict() for one in found]}
    return Answer(data, lambda output: _show_list(output, found, messages.address(agent), nothing))


def _show_list(output: Output, found: Sequence[Stored], address: str, nothing: str) -> None:
    if not found:
        output.err(f"{nothing} in the inbox of {plain(address)}")
        return
    for one in found:
        show_stored(output, one, f"from {sender_of(one.message)}")


# --- take --------------------------------------------------------------------------------------------


@verb(
    app,
    "take",
    attempt="cannot take messages",
    examples="swarm inbox take\nswarm inbox take --wait 60 --ack\nswarm inbox take --max 1 --json",
)
def take(
    run: Run,
    agent: _Agent = None,
    wait: Annotated[
        str | None,
        typer.Option("--wait", metavar="SECONDS", help="Seconds to wait for a first message.", show_default=False),
    ] = None,
    most: Most = "100",
    lease: Annotated[
        str | None,
        typer.Option(
            "--lease",
            metavar="TIME",
            help="Return unacknowledged messages after this time; default: the setting messages.lease.",
            show_default=False,
        ),
    ] = None,
    ack: Annotated[bool, typer.Option("--ack", help="Acknowledge them at once.", show_default=False)] = False,
) -> Answer:
    """Take and print waiting messages. swarm delivers them again until `swarm inbox ack`.

    Prints taken messages again until you acknowledge them. An agent takes from its own inbox only.
    """
    seconds = seconds_of("--wait", wait)
    given.need_stdout("take messages")
    messages = open_messages(run)
    taken = messages.take(agent, wait=seconds or 0, limit=count_of("--max", most), lease=_lease(lease))
    holder = "" if taken else messages.held_by(agent)
    if taken is None and seconds:
        what = f"{holder} had messages in hand for" if holder else "no message came within"
        raise WaitOver(f"{what} {seconds:g} s", hint="wait again, or for longer")
    answer = Answer(
        taken_data(messages.address(agent), taken),
        lambda output: show_lines(output, taken_lines(taken)) if taken else output.err(nothing_taken(holder)),
        next=taken_hints(taken, ack=ack, of="" if agent is None else messages.address(agent)) if taken else (),
    )
    code = run.output.answer(run.command, answer)
    if taken is not None and not code:
        run.attempt = "cannot acknowledge"  # the answer is printed already: only printed messages count as seen
        run.output.json = False
        _finish(messages, taken, ack=ack)
    raise typer.Exit(code)


def _finish(messages: Messages, taken: Taken, *, ack: bool) -> None:
    """Record that printed messages reached their reader; with *ack* acknowledge them."""
    if messages.me().address == taken.messages[0].to:
        messages.seen(taken, f"inbox take by pid {os.getpid()}")
    if ack:
        messages.done(taken)


def _lease(text: str | None) -> float | None:
    """Return how long a claim lasts, in seconds; None leaves it to the settings."""
    return None if text is None else (milliseconds("--lease", text) or 0) / 1000


# --- settle ------------------------------------------------------------------------------------------


@verb(
    app, "ack", attempt="cannot acknowledge", examples="swarm inbox ack\nswarm inbox ack 018bcfe568001f2e3d4c5b6a7988"
)
def ack(run: Run, ids: _Ids = None, of: _Of = None) -> Answer:
    """Acknowledge taken messages; swarm never delivers them again."""
    return _settled("acked", open_messages(run).ack(tuple(ids or ()), of), "done")


@verb(
    app,
    "nack",
    attempt="cannot give back",
    examples="swarm inbox nack --delay 5m --reason 'waiting for the build'",
)
def nack(
    run: Run,
    ids: _Ids = None,
    of: _Of = None,
    delay: Annotated[
        str | None,
        typer.Option("--delay", metavar="TIME", help="Redeliver no earlier than after this time.", show_default=False),
    ] = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Reason, kept with the message.", show_default=False)
    ] = "",
) -> Answer:
    """Return taken messages for redelivery."""
    pause = (milliseconds("--delay", delay) or 0) / 1000
    return _settled("returned", open_messages(run).nack(tuple(ids or ()), of, delay=pause, reason=reason), "given back")


@verb(app, "extend", attempt="cannot extend", examples="swarm inbox extend --lease 30m")
def extend(
    run: Run,
    of: _Of = None,
    lease: Annotated[
        str | None,
        typer.Option(
            "--lease",
            metavar="TIME",
            help="New lease from now; default: the setting messages.lease.",
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Extend the lease on taken messages."""
    messages = open_messages(run)
    return _settled("extended", messages.extend(_lease(lease), of), "kept")


@verb(app, "requeue", attempt="cannot requeue", examples="swarm inbox requeue 018bcfe568001f2e3d4c5b6a7988")
def requeue(
    run: Run,
    message_id: Annotated[
        str, typer.Argument(metavar="ID", help="Id of an undeliverable message.", show_default=False)
    ],
    of: _Of = None,
) -> Answer:
    """Return an undeliverable message to the inbox."""
    open_messages(run).requeue(message_id, of)
    return _settled("requeued", (message_id,), "waiting again")


def _settled(what: str, ids: Sequence[str], words: str) -> Answer:
    return Answer({what: list(ids)}, lambda output: output.out(f"{words}: {count(len(ids), 'message')}", "good"))


# --- remove ------------------------------------------------------------------------------------------


@verb(
    app,
    "prune",
    attempt="cannot remove messages",
    examples="swarm inbox prune --dry-run\nswarm inbox prune developer@feature-x --older-than 24h",
)
def prune(
    run: Run,
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="[AGENT[@SESSION]]",
            help="Whose inbox; default: for an agent its own, for a person every inbox and queue.",
            autocompletion=completion.agents,
            show_default=False,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            "--older-than",
            metavar="TIME",
            help="Older than this, such as 24h or 7d; default: the settings messages.keep and keep_bytes.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, and change nothing.", show_default=False)
    ] = False,
) -> Answer:
    """Prune finished and undeliverable messages; keep waiting and taken ones.

    swarm prunes whole files: an old message stays as long as a younger or waiting one shares its file. It removes an
    attachment when no message refers to it any longer.
    """
    age_ms = milliseconds("--older-than", older_than)
    messages = open_messages(run)
    pruned = messages.prune(agent, older_than_ms=age_ms, dry_run=dry_run)
    unused = messages.prune_attachments(agent, older_than_ms=age_ms, dry_run=dry_run)
    data = {
        "removed": [
            {"box": one.address, "messages": one.messages, "bytes": one.octets} for one in pruned if one.octets
        ],
        "attachments": {"files": unused.files, "bytes": unused.octets},
        "dry_run": dry_run,
    }
    return Answer(data, lambda output: _show_pruned(output, pruned, unused, dry_run=dry_run))


def _show_pruned(output: Output, pruned: Sequence[Pruned], unused: PrunedAttachments, *, dry_run: bool) -> None:
    what = "would be removed" if dry_run else "removed"
    done = [one for one in pruned if one.octets]
    for one in done:
        box = plain(one.address.replace(".", " ", 1))
        output.out(f"{box}: {count(one.messages, 'message')} {what} ({one.octets:,} bytes)", "good")
    if unused.files:
        output.out(f"{count(unused.files, 'attachment')} {what} ({unused.octets:,} bytes)", "good")
    if not (done or unused.files):
        output.err("nothing is old enough to be removed")
