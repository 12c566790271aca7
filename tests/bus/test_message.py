"""Messages: what is one, how it is written down, whom an address means."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swarm.bus.errors import MessageProblem
from swarm.bus.log import lines
from swarm.bus.message import Message, box_of, decode, encode, from_record, new_id, to_record
from swarm.bus.reader.state import FinishedRanges, State, dump, load
from swarm.bus.wire import PRIORITIES

pytestmark = pytest.mark.contract

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
word = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,20}", fullmatch=True)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text, lambda x: st.lists(x) | st.dictionaries(text, x)
)
messages = st.builds(
    Message,
    to=st.sampled_from(["dev@s", "user", "queue.work", "inbox.dev-s"]),
    sender=st.sampled_from(["user", "dev@s", "swarm.drop"]),
    body=text,
    subject=text,
    type=st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True),
    priority=st.sampled_from(PRIORITIES),
    id=st.just("") | word,
    time_ms=st.integers(0, 2**48),
    artifacts=st.lists(st.dictionaries(text, plain, max_size=3), max_size=2).map(tuple),
    metadata=st.dictionaries(text, plain, max_size=3),
    thread_id=st.just("") | word,
    in_reply_to=st.just("") | word,
    requires_response=st.booleans(),
    deadline_ms=st.integers(0, 2**40),
    ttl_ms=st.integers(0, 2**40),
    generation=st.just("") | word,
    sender_generation=st.just("") | word,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(messages)
def test_what_is_written_is_read_back(message: Message) -> None:
    data = encode(message)

    assert decode(data) == message
    assert from_record(json.loads(json.dumps(to_record(message)))) == message
    assert b"\n" not in data


@given(st.text())
def test_any_text_is_carried_or_refused(body: str) -> None:
    try:
        data = encode(Message("user", "user", body))
    except MessageProblem:
        assert "\0" in body or any("\ud800" <= c <= "\udfff" for c in body)
    else:
        assert decode(data).body == body


def test_what_is_wrong_with_bytes_of_another_encoding_is_told() -> None:
    with pytest.raises(MessageProblem, match="bytes that are not UTF-8"):
        encode(Message("user", "user", b"gr\xfcn".decode("utf-8", "surrogateescape")))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.binary(max_size=60) | messages.map(lambda m: encode(m)[:-3]))
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(MessageProblem):
        decode(data)


@pytest.mark.parametrize(
    ("address", "box"),
    [
        ("dev@feature-x", "inbox.dev-feature-x"),
        ("user", "inbox.user"),
        ("inbox.dev-s", "inbox.dev-s"),
        ("queue.work", "queue.work"),
    ],
)
def test_an_address_means_one_box(address: str, box: str) -> None:
    assert box_of(address) == box


@pytest.mark.parametrize(
    "address",
    [
        "",
        "all",
        "parent",
        "role:x",
        "dev@",
        "@s",
        "a/b",
        "..",
        "queue.",
        "queue.a.b",
        "inbox.../x",
        "a@b@c",
        "swarm.drop",
    ],
)
def test_what_means_no_single_box_is_refused(address: str) -> None:
    with pytest.raises(MessageProblem):
        box_of(address)


def test_ids_sort_by_their_making_and_never_meet() -> None:
    ids = [new_id() for _ in range(1000)]

    assert len({*ids}) == 1000
    assert [i[:12] for i in ids] == sorted(i[:12] for i in ids)


def test_a_checksum_covers_every_part() -> None:
    message = Message("user", "user", "x")
    sums = {m.checksum for m in (message, message._replace(body="y"), message._replace(ttl_ms=1))}

    assert len(sums) == 3
    with pytest.raises(MessageProblem):
        decode(json.dumps({**to_record(message), "from": "dev@s"}).encode())


@given(st.binary(max_size=50), st.integers(0, 10**18))
def test_a_line_tells_its_number_and_any_change(content: bytes, number: int) -> None:
    record = json.dumps({"x": content.hex()}).encode()
    line = lines.seal(record, number)[:-1]
    assert lines.verify(line) == number
    for place in range(0, len(line), 7):
        assert lines.verify(line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :]) == -1
        assert lines.verify(line[:place]) == -1
    assert lines.verify(b"{torn" + line) == -1


@given(st.permutations(range(12)), st.integers(0, 12))
def test_settled_parts_merge_in_any_order(order: list[int], count: int) -> None:
    spans = FinishedRanges()
    for n in order[:count]:
        assert spans.add(n * 10, n * 10 + 10)
        assert not spans.add(n * 10, n * 10 + 10)
    done = set(order[:count])
    for n in range(12):
        wanted = n
        while wanted in done:
            wanted += 1
        assert spans.skip(n * 10) == wanted * 10
    assert spans.total() == 10 * count
    assert len(spans.begins) == sum(n in done and n - 1 not in done for n in range(12))


def test_a_snapshot_gives_the_same_state() -> None:
    state = State()
    place = [2, 42, 100, "m1", "user"]
    other = [2, 142, 100, "m2", "user"]
    for entry in (
        {"op": "open", "generation": "g"},
        {"op": "claim", "claim": "c", "by": ["b", 1, 2], "up": 5, "lease": 7, "m": [place, other]},
        {"op": "dead", "why": "w", "t": 1, "m": [other]},
        {"op": "nack", "claim": "c", "m": [place], "until": 9, "boot": "b"},
        {"op": "requeue", "m": [other]},
        {"op": "from a later version", "m": []},
    ):
        state.apply(entry)

    assert dump(load(json.loads(json.dumps(dump(state))))) == dump(state)


def test_sending_loads_little() -> None:
    program = "import sys; import swarm.bus, swarm.bus.message; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()

    heavy = {"dataclasses", "inspect", "pathlib", "ctypes", "hashlib", "subprocess", "typer", "yaml", "git", "filelock"}
    assert not heavy & {*loaded}
