"""Where a message is that was put before a program, by the lines of the program's own record."""

from __future__ import annotations

import json

import pytest

from swarm.delivery.framing import Place, mark, place_of

pytestmark = pytest.mark.unit

ID = "01A"
NOTE = f"<task-notification>[swarm message {mark(ID)} from=user type=message]\n  hello</task-notification>"


def queue(operation: str, content: str = "") -> dict[str, object]:
    return {"type": "queue-operation", "operation": operation, **({"content": content} if content else {})}


USER = {"type": "user", "message": {"role": "user", "content": NOTE}}
MID_TURN = {"type": "attachment", "attachment": {"type": "queued_command", "prompt": NOTE}}
OTHER = {"type": "user", "message": {"role": "user", "content": "something else"}}
SENT = {"type": "api-request-blob", "message": {"role": "system", "content": NOTE}}


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([], Place.UNKNOWN),
        ([OTHER], Place.UNKNOWN),
        ([queue("enqueue", NOTE)], Place.QUEUED),
        ([queue("enqueue", NOTE), queue("enqueue", "another"), OTHER], Place.QUEUED),
        ([queue("enqueue", NOTE), queue("remove", NOTE)], Place.UNKNOWN),
        ([queue("enqueue", NOTE), queue("dequeue")], Place.UNKNOWN),
        ([queue("enqueue", NOTE), queue("dequeue"), SENT], Place.UNKNOWN),
        ([queue("enqueue", NOTE), queue("dequeue"), USER], Place.HEARD),
        ([queue("enqueue", NOTE), queue("remove", NOTE), MID_TURN, OTHER], Place.HEARD),
    ],
)
def test_only_its_conversation_proves_that_a_program_heard_it(lines: list[dict[str, object]], place: Place) -> None:
    record = "".join(json.dumps(line) + "\n" for line in [OTHER, *lines])

    assert place_of(record.encode(), ID) is place


def test_a_line_that_is_cut_or_not_yet_whole_proves_nothing() -> None:
    whole = json.dumps(USER).encode()

    assert place_of(whole[10:] + b"\n" + whole[:-10], ID) is Place.UNKNOWN
    assert place_of(b'["' + mark(ID).encode() + b'"]\n', ID) is Place.UNKNOWN
    assert place_of(whole[10:] + b"\n" + whole, ID) is Place.HEARD
