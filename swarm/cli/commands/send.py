"""``swarm send``, ``swarm broadcast``, ``swarm reply``: to agents, bridges and the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import NotForAgents, UsageProblem
from swarm.cli import completion, given
from swarm.cli.commands.message import open_messages
from swarm.cli.output import Answer
from swarm.cli.text import plain
from swarm.cli.verb import Run, span, verb
from swarm.cli.views.messages import sent_data, sent_lines

if TYPE_CHECKING:
    from swarm import SendOptions

_TEXT_LIMIT = 1 << 20


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    verb(
        root,
        "send",
        attempt="cannot send",
        examples="""
        swarm send reviewer "please look at parser.py"
        swarm send developer,user --subject "red tests" "see log" --attach ci.log
        git diff | swarm send role:reviewer -
        swarm send parent "which database?" --expects-reply --deadline 10m
        """,
    )(send)
    verb(root, "broadcast", attempt="cannot send", examples='swarm broadcast "main has moved, please rebase"')(
        broadcast
    )
    verb(
        root,
        "reply",
        attempt="cannot answer {message_id}",
        examples='swarm reply 018bcfe568001f2e3d4c5b6a7988 "yes, go on"',
    )(reply)


def _option(name: str, metavar: str, help: str) -> Any:
    return typer.Option(name, metavar=metavar, help=help, show_default=False)


_Text = Annotated[
    str | None,
    typer.Argument(metavar="[TEXT|-]", help="Text of the message; - reads standard input.", show_default=False),
]
_File = Annotated[str | None, _option("--file", "FILE", "Take the text from a file; - is standard input.")]
_Subject = Annotated[str, _option("--subject", "TEXT", "Subject line.")]
_Type = Annotated[str, _option("--type", "TYPE", "Type, for programs that read messages; default: message.")]
_Priority = Annotated[str, _option("--priority", "PRIORITY", "interrupt, high, normal or low; default: normal.")]
_Attach = Annotated[list[str] | None, _option("--attach", "PATH", "Attach a copy of a file; repeatable.")]
_Id = Annotated[str, _option("--id", "ID", "Id of your choice; sending twice under one id makes one message.")]
_Label = Annotated[
    str | None,
    _option("--from", "NAME", "Name of the sending program; the sender stays user. Not for agents."),
]
_Expects = Annotated[bool, typer.Option("--expects-reply", help="Ask for an answer.", show_default=False)]
_Deadline = Annotated[str | None, _option("--deadline", "TIME", "Time limit for the answer, such as 10m.")]
_Ttl = Annotated[
    str | None,
    _option("--ttl", "TIME", "Expire after this time, such as 2h; an unread message returns to you as a notice."),
]


def send(
    run: Run,
    to: Annotated[
        str,
        typer.Argument(
            metavar="TO[,TO…]",
            help="agent, agent@session, all, role:NAME, parent, user or a bridge; the own session unless one is named.",
            autocompletion=completion.recipients,
            show_default=False,
        ),
    ],
    text: _Text = None,
    file: _File = None,
    subject: _Subject = "",
    type: _Type = "message",
    priority: _Priority = "normal",
    reply_to: Annotated[str, _option("--reply-to", "ID", "Answer this message, in its thread.")] = "",
    expects_reply: _Expects = False,
    deadline: _Deadline = None,
    ttl: _Ttl = None,
    attach: _Attach = None,
    id: _Id = "",
    label: _Label = None,
) -> Answer:
    """Send a durable message to agents, bridges or the user.

    swarm reads the sender from the calling process: an agent's program sends as that agent, any other process as the
    user. Without a person at a terminal the message says `via: script`.
    If a recipient does not run, swarm says so, and the message waits in its inbox.
    """
    options: SendOptions = {
        "subject": subject,
        "type": type,
        "priority": priority,
        "reply_to": reply_to,
        "id": id,
        "expects_reply": expects_reply or deadline is not None,
        "deadline_ms": span("--deadline", deadline),
        "ttl_ms": span("--ttl", ttl),
        "attach": _files(run, attach),
    }
    return _send(run, to, _words(run, text, file), label, options)


def broadcast(
    run: Run,
    text: _Text = None,
    file: _File = None,
    subject: _Subject = "",
    priority: _Priority = "normal",
    id: _Id = "",
    session: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="SESSION",
            help="Session; default: your own, or the only one.",
            autocompletion=completion.sessions,
            show_default=False,
        ),
    ] = None,
) -> Answer:
    """Send a message to every agent of the session except yourself."""
    to = f"all@{session}" if session else "all"
    options: SendOptions = {"subject": subject, "priority": priority, "id": id}
    return _send(run, to, _words(run, text, file), None, options)


def reply(
    run: Run,
    message_id: Annotated[str, typer.Argument(metavar="ID", help="The message to answer.", show_default=False)],
    text: _Text = None,
    file: _File = None,
    subject: _Subject = "",
    priority: _Priority = "normal",
    attach: _Attach = None,
) -> Answer:
    """Answer a message."""
    options: SendOptions = {
        "subject": subject,
        "priority": priority,
        "reply_to": message_id,
        "attach": _files(run, attach),
    }
    return _send(run, (), _words(run, text, file), None, options)


def _send(run: Run, to: str | tuple[str, ...], words: str, label: str | None, options: SendOptions) -> Answer:
    if not (words or options.get("subject") or options.get("attach")):
        raise UsageProblem("there is no text", hint="write it after the recipient, or use --file")
    messages = open_messages(run)
    me = messages.me()
    if label is not None:
        if me.who is not None:
            raise NotForAgents(
                f"cannot send as {plain(label[:60])}: you are {me.address}",
                hint="remove --from; swarm reads the sender from the process",
            )
        options["metadata"] = {"label": label}
    sent = messages.send(to, words, **options)
    return Answer(sent_data(me.address, sent), lambda output: output.out("\n".join(sent_lines(sent))))


def _files(run: Run, attach: list[str] | None) -> tuple[Path, ...]:
    return tuple(Path(run.directory, one) for one in attach or ())


def _words(run: Run, text: str | None, file: str | None) -> str:
    """Return the text to send.

    Raises:
        UsageProblem: it is not said, said twice, or is no text.
    """
    if text is not None and file is not None:
        raise UsageProblem("TEXT and --file exclude each other")
    if text not in (None, "-"):
        return str(text)
    if text is None and file is None and given.is_typed():
        raise UsageProblem("there is no text", hint="write it after the recipient, or use --file")
    try:
        if file in (None, "-"):
            data = given.from_stdin(_TEXT_LIMIT)
        else:
            with Path(run.directory, str(file)).open("rb") as stream:
                data = stream.read(_TEXT_LIMIT + 1)
        if len(data) > _TEXT_LIMIT:
            raise UsageProblem("the text is longer than 1 MiB", hint="send it with --attach")
        return data.decode("utf-8")
    except OSError as error:
        raise UsageProblem(f"cannot read the text: {plain(file)}: {error.strerror}", hint="check the path") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"the text is not UTF-8: {error.reason}", hint="send it with --attach") from error
