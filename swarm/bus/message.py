"""Messages: fields, encoding and address.

A message is a named tuple, not a dataclass: sending is done from hooks and small programs, and
``dataclasses`` alone would double the time until the first message is out.
"""

from __future__ import annotations

import os
import time
from itertools import count
from json.encoder import encode_basestring as _quoted
from typing import TYPE_CHECKING, NamedTuple

from swarm.bus import wire
from swarm.bus.wire import ADDRESS, BOX, GROUPS, ID, MAX_TEXT, PRIORITIES, SURELY_FITS, TYPE, is_word

if TYPE_CHECKING:
    from typing import Any

    from swarm.bus.errors import MessageProblem

SCHEMA = 1
MAX_EXTRA = 64 << 10
MAX_AFTER = 100
#: Maximum depth of metadata and artifacts: printing them recurses as far.
MAX_DEPTH = 64
#: The bus itself, as a sender.
POSTMASTER = "swarm"
#: Prefixes of the ids of swarm's own notices, up to the first dot; reserved.
OWN_IDS = ("budget", "dead", "delivery", "ended", "event", "heartbeat", "overdue")
#: The sender of files in a drop folder.
DROP = "swarm.drop"
DEAD_LETTER = "dead-letter"
#: Kinds of boxes: an agent's messages; tasks; events of agents for their starter; messages to a bridge.
KINDS = ("inbox", "queue", "events", "bridge")


class Message(NamedTuple):
    """One message.

    Attributes:
        to: one recipient: ``agent@session``, ``user``, ``inbox.<name>``, ``queue.<name>``, ``events.<name>`` or
            ``bridge.<name>``.
        sender: the sender; swarm knows it from the process, never from the message's words.
        id: made by the sender, so that sending again cannot make two; "" lets the bus make one.
        time_ms: when it was sent, for people only; nothing is ordered by it. 0 means now.
        artifacts: attachments, each a mapping as ``Bus.attach`` returns it, or of the sender's own.
        deadline_ms, ttl_ms: how soon an answer is wanted, how long the message means anything; 0 means always.
        generation: which run of the recipient is meant; a later one of the same name never gets it.
        sender_generation: which run of the sender wrote it.
        after: in a queue, the messages of the same queue that must be done before this one is handed out.
    """

    to: str
    sender: str
    body: str = ""
    subject: str = ""
    type: str = "message"
    priority: str = "normal"
    id: str = ""
    time_ms: int = 0
    artifacts: tuple[dict[str, Any], ...] = ()
    metadata: dict[str, Any] = {}  # noqa: RUF012  # never changed in place
    thread_id: str = ""
    in_reply_to: str = ""
    requires_response: bool = False
    deadline_ms: int = 0
    ttl_ms: int = 0
    generation: str = ""
    sender_generation: str = ""
    after: tuple[str, ...] = ()

    @property
    def is_answerable(self) -> bool:
        """Whether its sender reads answers; swarm and files dropped into an inbox do not."""
        return self.sender not in {POSTMASTER, DROP}

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape that people and programs are shown: every field, and the checksum."""
        return to_record(self)

    @property
    def checksum(self) -> str:
        """A sum over everything in the message."""
        from zlib import crc32

        return f"crc32:{crc32(encode(self)):08x}"


_FILE_HINT = "put it into a file, and attach that"
_ADDRESS_HINT = "agent@session, user, inbox.NAME, queue.NAME or bridge.NAME"
_ID_HINT = "up to 100 letters and digits, and . _ : + - between them, such as job-17"


def _problem(text: str, *, hint: str | None = None) -> MessageProblem:
    from swarm.bus.errors import MessageProblem  # all the errors together take as long to load as all this

    return MessageProblem(text, hint=hint)


def _draw_anew() -> None:
    """Begin a stretch of random numbers of this process's own."""
    global _draw  # noqa: PLW0603  # a fork must not go on with its parent's
    _draw = count(int.from_bytes(os.urandom(8), "big") >> 1)


_draw = count()
_draw_anew()
os.register_at_fork(after_in_child=_draw_anew)


def new_id(now_ms: int = 0) -> str:
    """Return a fresh id; those made later sort later, as far as the clock can be trusted."""
    return wire.id_of(now_ms or time.time_ns() // 1_000_000, next(_draw))


# --- addresses ------------------------------------------------------------------------------------


def box_of(address: str) -> str:
    """Return the box that an address of one recipient means: its kind, a dot, and its name, such as ``inbox.user``.

    Raises:
        MessageProblem: it is none, or means more than one recipient.
    """
    kind, dot, name = address.partition(".")
    if not (dot and kind in KINDS):
        agent, at, session = address.partition("@")
        if agent in GROUPS or agent.startswith("role:"):
            raise _problem(f"cannot send to {address[:60]!a}: it is not one recipient", hint=_ADDRESS_HINT)
        kind, name = "inbox", f"{agent}-{session}" if at else address
        if at and not session:
            name = ""
    if not is_word(BOX, name):
        raise _problem(f"no address: {address[:60]!a}", hint=_ADDRESS_HINT)
    return f"{kind}.{name}"


# --- checking and writing down ---------------------------------------------------------------------


def encode(message: Message, message_id: str = "", time_ms: int = 0) -> bytes:
    """Return the JSON of a message after checking it; ``decode`` gives back an equal one.

    What is given besides stands for what the message does not have.  The order of the keys is fixed: the bus
    finds id and sender at the start without parsing.

    Raises:
        MessageProblem: it is not a message.
    """
    try:
        to, sender, body, subject, kind, priority, own_id, own_time, artifacts, metadata = message[:10]
        head = _heads.get((sender, to, kind, priority)) or _checked_head(message)
        if own_id and not is_word(ID, own_id):
            raise _problem(f"not a message id: {own_id[:60]!a}", hint=_ID_HINT)
        if own_time and not _is_time(own_time):
            raise _problem("its time is not a number of milliseconds since 1970", hint="leave it out to mean now")
        if subject:
            _check_text("subject", subject)
        _check_text("body", body)
        extra = _extra(list(artifacts), metadata) if artifacts or metadata else ""
        rest = "" if message[10:] == _PLAIN else _rest(message)
        content = wire.content(_quoted(subject) if subject else '""', _quoted(body), extra)
        return wire.record(own_id or message_id, head, own_time or time_ms, content, rest)
    except UnicodeEncodeError as error:
        raise _problem("it holds bytes that are not UTF-8", hint="send them as a file with --attach") from error
    except (TypeError, ValueError, RecursionError, AttributeError) as error:
        raise _problem(f"not a message: {error}") from error


_PLAIN = Message("", "")[10:]
_TEXTS = ("thread_id", "in_reply_to", "generation", "sender_generation")
_NUMBERS = ("deadline_ms", "ttl_ms")


#: Heads that were checked before, with their encoding.
_heads: dict[tuple[str, str, str, str], str] = {}


def _checked_head(m: Message) -> str:
    for address in (m.to, m.sender):
        if not is_word(ADDRESS, address):
            raise _problem(f"no address: {address[:60]!a}", hint=_ADDRESS_HINT)
    if m.priority not in PRIORITIES:
        raise _problem(f"no priority: {m.priority!a}", hint="one of " + ", ".join(PRIORITIES))
    if not is_word(TYPE, m.type):
        raise _problem(f"not a message type: {m.type[:60]!a}", hint="one small word, such as message or build.red")
    head = wire.head(m.sender, m.to, m.type, m.priority)
    if len(_heads) < 256:
        _heads[m.sender, m.to, m.type, m.priority] = head
    return head


def _is_time(value: Any) -> bool:
    """Whether this is a number of milliseconds that programs of any language can count with."""
    return type(value) is int and 0 <= value < 1 << 53


def _check_text(what: str, text: str) -> None:
    if "\0" in text:
        raise _problem(f"the {what} holds a NUL character", hint="attach binary content as a file")
    # Few texts come near the limit; only those are counted in bytes.
    if len(text) > SURELY_FITS and len(text.encode()) > MAX_TEXT:
        raise _problem(f"the {what} is longer than {MAX_TEXT} bytes", hint="attach it as a file")


def _extra(artifacts: list[dict[str, Any]], metadata: dict[str, Any]) -> str:
    """Encode the content of a message besides its texts."""
    _check_extra([artifacts, metadata], MAX_DEPTH + 1)
    extra = f',"artifacts":{_dump(artifacts)},"metadata":{_dump(metadata)}'
    if len(extra) > MAX_EXTRA:
        text = f"metadata and artifacts have {len(extra)} bytes, at most {MAX_EXTRA} are allowed"
        raise _problem(text, hint=_FILE_HINT)
    return extra


def _check_extra(value: Any, deeper: int) -> None:
    """Let nothing in that would come back as something else, or that is nested deeper than so many times."""
    if isinstance(value, str):
        _check_text("metadata", value)
    elif isinstance(value, (dict, list, tuple)):
        if not deeper:
            raise _problem(f"metadata and artifacts are nested deeper than {MAX_DEPTH} levels", hint=_FILE_HINT)
        if isinstance(value, dict):
            for key in value:
                if type(key) is not str:
                    raise _problem(f"a key in the metadata is not text: {key!a}", hint="use texts as keys")
                _check_text("metadata", key)
            value = value.values()
        for item in value:
            _check_extra(item, deeper - 1)


def _dump(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _rest(m: Message) -> str:
    """Return the fields that most messages leave empty."""
    for name in (*_TEXTS, *_NUMBERS):
        value = getattr(m, name)
        if name in _NUMBERS and not _is_time(value):
            raise _problem(
                f"{name} is not a number of milliseconds below 2^53", hint="a time such as 30d; 0 means for ever"
            )
        if name in _TEXTS and value and not is_word(ID, value):
            raise _problem(f"{name} is not an id: {value[:60]!a}", hint=_ID_HINT)
    if m.after:
        _check_after(m)
    parts = [wire.member(n, getattr(m, n)) for n in _TEXTS]
    parts += [f',"after":{_dump(m.after)}'] if m.after else []
    parts += [f',"{n}":{getattr(m, n):d}' for n in _NUMBERS if getattr(m, n)]
    return "".join(parts) + (',"requires_response":true' if m.requires_response else "")


def _check_after(m: Message) -> None:
    if not m.to.startswith("queue."):
        text = f"only a task in a queue can wait for others, not a message to {m.to}"
        raise _problem(text, hint="add it to a queue: swarm queue add NAME TEXT --after ID")
    if len(m.after) > MAX_AFTER:
        text = f"it waits for {len(m.after)} others, at most {MAX_AFTER} are allowed"
        raise _problem(text, hint="let it wait for a task that waits for them")
    for one in m.after:
        if not is_word(ID, one):
            raise _problem(f"not a message id: {one[:60]!a}", hint=_ID_HINT)
        if one == m.id:
            raise _problem(f"{one} cannot wait for itself", hint="name other tasks of the queue, or none")


# --- reading back ----------------------------------------------------------------------------------

_KNOWN = {"schema", "id", "from", "to", "type", "priority", "time", "content", "requires_response", "checksum"}
_KNOWN |= {*_TEXTS, *_NUMBERS, "after"}
_CONTENT = {"subject", "body", "artifacts", "metadata"}


def decode(data: bytes) -> Message:
    """Read a message that stands alone, as a foreign program may have written it.

    Raises:
        MessageProblem: it is none, its checksum is wrong, or it holds what this version does not know.
    """
    import json

    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _problem(f"not a message: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("content"), dict):
        raise _problem("not a message: it has no content")
    unknown = sorted((record.keys() - _KNOWN) | (record["content"].keys() - _CONTENT))
    if unknown or record.get("schema") != SCHEMA:
        what = ", ".join(map(ascii, unknown[:5])) or f"schema {record.get('schema')!a}"
        raise _problem(f"not a message that this swarm knows: {what}")
    message = from_record(record)
    encode(message)
    if record.get("checksum", message.checksum) != message.checksum:
        raise _problem("the message is damaged: its checksum does not match")
    return message


def from_record(record: dict[str, Any]) -> Message:
    """Make a message from its parsed JSON; keys of the bus itself are passed over.

    Raises:
        MessageProblem: a part is missing or of the wrong kind.
    """
    try:
        content = record["content"]
        message = Message(
            to=record["to"],
            sender=record["from"],
            body=content["body"],
            subject=content.get("subject", ""),
            type=record.get("type", "message"),
            priority=record.get("priority", "normal"),
            id=record.get("id", ""),
            time_ms=record.get("time", 0),
            artifacts=tuple(content.get("artifacts", ())),
            metadata=content.get("metadata", {}),
            requires_response=record.get("requires_response", False) is True,
            after=tuple(record.get("after", ())),
            **{name: record[name] for name in (*_TEXTS, *_NUMBERS) if name in record},
        )
    except (KeyError, TypeError) as error:
        raise _problem(f"not a message: {error!r}") from error
    if not all(isinstance(a, dict) for a in message.artifacts) or not isinstance(message.metadata, dict):
        raise _problem("not a message: artifacts and metadata must be objects")
    return message


def to_record(message: Message) -> dict[str, Any]:
    """Return the JSON shape that people and programs are shown: every field, and the checksum."""
    m = message
    return {
        "schema": SCHEMA,
        "id": m.id,
        "time": m.time_ms,
        "from": m.sender,
        "to": m.to,
        "type": m.type,
        "priority": m.priority,
        "content": {
            "subject": m.subject,
            "body": m.body,
            "artifacts": list(m.artifacts),
            "metadata": m.metadata,
        },
        **{name: getattr(m, name) for name in (*_TEXTS, *_NUMBERS)},
        "requires_response": m.requires_response,
        "after": list(m.after),
        "checksum": m.checksum,
    }
