"""``swarm send`` and ``swarm inbox take`` without loading what they do not need.

What is unusual (help, a spelling this does not know, ``-C``, settings in a file) is left to the full commands.  Those
take the names of their options from here, so that there is one list of them.
"""

from __future__ import annotations

import os
import sys

from swarm.cli.main import end_at_ctrl_c, raise_at_ctrl_c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from swarm.engine.post import Post, Sent, Taken

SEND = {
    "file": "--file",
    "type": "--type",
    "subject": "--subject",
    "priority": "--priority",
    "reply_to": "--reply-to",
    "deadline": "--deadline",
    "ttl": "--ttl",
    "attach": "--attach",
    "id": "--id",
    "label": "--from",
    "expects_reply": "--expects-reply",
}
TAKE = {"wait": "--wait", "most": "--max", "lease": "--lease", "ack": "--ack"}
#: Those with a value that is a plain text here as there.
_SEND_TEXTS = {SEND[name]: name for name in ("type", "subject", "priority", "reply_to", "id")}
_JSON = "--json"
_SEND_SWITCHES = {SEND["expects_reply"]: "expects_reply", _JSON: "json"}
_CONFIG_FILES = ("config.yaml", "config.local.yaml")


def run(args: Sequence[str]) -> int | None:
    """Do the command and return its exit status; None: it is for the full program."""
    if args[0] == "send":
        command, attempt, do = "send", "cannot send", _send
    elif args[:2] == ["inbox", "take"]:
        command, attempt, do = "inbox take", "cannot take messages", _take
    else:
        return None
    try:
        raise_at_ctrl_c()
        code = do(args[len(command.split()) :])
        end_at_ctrl_c()
    except BaseException as error:  # noqa: BLE001  # here, too, nothing leaves as a traceback
        return failed(command, attempt, error, args)
    return code


# --- send -------------------------------------------------------------------------------------------


def _send(args: Sequence[str]) -> int | None:
    read = _read_send(args)
    if read is None:
        return None
    to, text, how = read
    as_json = bool(how.pop("json", False))
    post = _find_post()
    if post is None:
        return None
    sent = post.send(to, text, **how)
    if as_json:
        return _say(_envelope("send", sent_data(post.me().address, sent)))
    return _say("".join(f"{line}\n" for line in sent_lines(sent)))


def _find_post() -> Post | None:
    """Return the messages around us; None: that has to be looked for, or a variable may name a wrong folder."""
    from swarm.engine.post import Post
    from swarm.pane.records import names_good_dir

    return Post.find() if names_good_dir(os.environ) else None


def _read_send(args: Sequence[str]) -> tuple[str, str, dict[str, Any]] | None:
    """Return recipient, text and options; None when there is anything out of the ordinary."""
    words: list[str] = []
    how: dict[str, Any] = {}
    waiting = iter(args)
    for word in waiting:
        if not word.startswith("-") or word == "-":
            words.append(word)
        elif word in _SEND_TEXTS:
            value = next(waiting, None)
            if value is None:
                return None
            how[_SEND_TEXTS[word]] = value
        elif word in _SEND_SWITCHES:
            how[_SEND_SWITCHES[word]] = True
        else:
            return None
    plain = len(words) == 2 and words[1] not in ("", "-")
    return (words[0], words[1], how) if plain else None


def sent_data(sender: str, sent: Sequence[Sent]) -> dict[str, Any]:
    """Return what was sent for machines."""
    return {
        "id": sent[0].id,
        "from": sender,
        "sent": [
            {
                "to": one.to,
                "id": one.id,
                "priority": one.receipt.lane,
                "number": one.receipt.number,
                "durable": one.receipt.durable,
                "duplicate": one.receipt.duplicate,
                "note": one.note,
            }
            for one in sent
        ],
    }


def sent_lines(sent: Sequence[Sent]) -> list[str]:
    """Return what was sent for people: the id, and for each recipient what stands against it being read now."""
    lines = []
    for one in sent:
        notes = ["sent before, nothing was added"] if one.receipt.duplicate else []
        notes += [f"{one.note}: it waits in the inbox"] if one.note else []
        lines.append(f"sent {one.id} to {one.to}" + (f" ({'; '.join(notes)})" if notes else ""))
    return lines


# --- inbox take -------------------------------------------------------------------------------------


def _take(args: Sequence[str]) -> int | None:
    if nobody_sees() or any(word not in (_JSON, TAKE["ack"]) for word in args):
        return None
    post = _find_post()
    if post is None or _may_have_settings(post):
        return None
    taken = post.take()
    ack = TAKE["ack"] in args
    code = _show_taken(post, taken, ack=ack, as_json=_JSON in args)
    return code or finish_take(post, taken, ack=ack)


def _may_have_settings(post: Post) -> bool:
    """Whether somebody may have set how long a claim lasts: then the settings have to be read."""
    if any(name.startswith("SWARM_MESSAGES_") for name in os.environ):
        return True
    home = os.environ.get("HOME", "")
    files = [f"{post.state}/{name}" for name in _CONFIG_FILES] + [f"{home}/.swarm/{_CONFIG_FILES[0]}"]
    return not home or any(os.access(path, os.F_OK) for path in files)


def _show_taken(post: Post, taken: Taken | None, *, ack: bool, as_json: bool) -> int:
    from swarm.cli.letters import nothing_taken, taken_data, taken_hints, taken_lines

    if as_json:
        return _say(_envelope("inbox take", taken_data(post.me().address, taken)))
    if taken is None:
        sys.stderr.write(f"{nothing_taken(post.held_by())}\n")
        return 0
    code = _say("".join(f"{line}\n" for line in taken_lines(taken)))
    sys.stderr.write("".join(f"{line}\n" for line in taken_hints(taken, ack=ack)))
    return code


def nobody_sees() -> bool:
    """Whether standard output was closed by whoever started us; in its place is a stream of ours that leads nowhere."""
    return sys.stdout is None or getattr(sys.stdout, "name", "") == os.devnull


def finish_take(post: Post, taken: Taken | None, *, ack: bool) -> int:
    """Write down that what was printed has reached its reader, and with *ack* that it is done."""
    if taken is None:
        return 0
    from swarm.domain.errors import SwarmError

    try:
        if post.me().address == taken.messages[0].to:
            post.seen(taken, f"inbox take by pid {os.getpid()}")
        if ack:
            post.done(taken)
    except SwarmError as error:  # the answer is out already; there is no second one
        return failed("inbox take", "cannot acknowledge", error, ())
    return 0


def failed(command: str, attempt: str, error: BaseException, args: Sequence[str]) -> int:
    """Say what went wrong, as the full program does."""
    from swarm.cli.errors import exit_code_of, explain, show
    from swarm.cli.output import Output

    output = Output()
    output.json = _JSON in args
    known = explain(error, command, attempt)
    if known is None:
        from swarm.cli.crash import write_report

        known = write_report(error, args)
    code = exit_code_of(known)
    show(output, command, known, code)
    return code


def _envelope(command: str, data: dict[str, Any]) -> str:
    import json

    whole = {"schema": 1, "command": command, "status": "ok", "exit_code": 0, "data": data, "errors": []}
    return json.dumps(whole, ensure_ascii=True) + "\n"


def _say(text: str) -> int:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, ValueError, AttributeError):
        from swarm.cli.output import lost_output

        return lost_output()
    return 0
