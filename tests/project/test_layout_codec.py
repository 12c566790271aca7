"""Where everything lives, and records that are read exactly as they were written, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm.project import codec, layout, names
from swarm.project.errors import RecordProblem
from swarm.project.layout import Layout
from swarm.project.model import OWN, SCHEMA, SUBTREE, TEAM, WORKER, Agent, Boxed, Parent, Placed, Session
from tests.support.odd import reads_well

pytestmark = pytest.mark.contract

ROOT = Path("/home/u/my project")


# --- layout ----------------------------------------------------------------------------------------


def test_every_path_is_below_the_repository() -> None:
    where = Layout(ROOT)

    assert where.base == ROOT / ".worktrees"
    assert where.worktree("developer", "feature-x") == ROOT / ".worktrees" / "developer-feature-x"
    assert where.state == ROOT / ".swarm"
    assert where.lock == ROOT / ".swarm" / "lock"
    assert where.history == ROOT / ".swarm" / "journal" / "history.jsonl"
    assert where.session_file("feature-x") == ROOT / ".swarm" / "sessions" / "feature-x" / "session.json"
    assert where.salvage_folder("s", "a", "1") == ROOT / ".swarm" / "salvage" / "s" / "a" / "1"
    assert where.trash_folder("op") == ROOT / ".swarm" / "trash" / "op"


def test_by_role_a_worktree_is_named_after_its_agent_alone() -> None:
    assert Layout(ROOT, by_role=True).worktree("developer", "feature-x") == ROOT / ".worktrees" / "developer"


def test_the_base_may_be_several_folders_deep() -> None:
    assert Layout(ROOT, "a/b").worktree("x", "y") == ROOT / "a" / "b" / "x-y"


def test_refs_are_spelled_below_refs_swarm() -> None:
    assert layout.op_ref("1") == "refs/swarm/op/1"
    assert layout.salvage_ref("s", "a", "1", "head") == "refs/swarm/salvage/s/a/1/head"


NAME = st.from_regex(names._NAME, fullmatch=True).filter(lambda name: name.casefold() not in names.RESERVED)


@given(NAME, NAME, st.booleans())
def test_a_worktree_is_a_direct_child_of_the_base(agent: str, session: str, by_role: bool) -> None:
    where = Layout(ROOT, by_role=by_role)

    assert where.worktree(agent, session).parent == where.base
    assert where.session_file(session).parent.parent == where.sessions


# --- codec -----------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=[]))
PATH = TEXT.map(lambda text: "x" + text.replace("/", "").replace("\0", ""))
PLACED = st.builds(Placed, PATH, TEXT)
AGENT = st.builds(
    Agent,
    name=NAME,
    role=NAME,
    branch=TEXT,
    worktree=PATH,
    admin=TEXT,
    base=TEXT,
    created_ms=st.integers(),
    placed=st.lists(PLACED, max_size=2).map(tuple),
    program=TEXT,
    command=st.lists(TEXT, max_size=2).map(tuple),
    conversation=TEXT,
    print_mode=st.booleans(),
    env=st.dictionaries(TEXT, TEXT, max_size=2).map(lambda given: tuple(given.items())),
    after=st.lists(TEXT, max_size=2).map(tuple),
    overrides=st.dictionaries(TEXT, TEXT, max_size=2).map(lambda given: tuple(given.items())),
    args=st.lists(TEXT, max_size=2).map(tuple),
    tree=st.just(OWN),
)
SESSION = st.builds(
    Session,
    name=NAME,
    operations=st.lists(TEXT, min_size=1, max_size=3).map(tuple),
    created_ms=st.integers(),
    base_ref=TEXT,
    base=TEXT,
    agents=st.lists(AGENT, max_size=3).map(tuple),
    task=TEXT,
    workflow=TEXT,
    beside=TEXT,
    swarm_dir=TEXT,
    pod=TEXT,
    template=TEXT,
    parent=st.none() | st.builds(Parent, NAME, NAME, TEXT),
    kind=st.sampled_from([TEAM, SUBTREE, WORKER]),
    depth=st.integers(min_value=0, max_value=9),
    ancestors=st.lists(st.builds(Parent, NAME, NAME, TEXT), max_size=2).map(tuple),
)


@given(SESSION)
def test_a_record_is_read_exactly_as_it_was_written(session: Session) -> None:
    data = codec.session_to_bytes(session)

    assert codec.session_from_bytes(data, "x") == session
    assert data.isascii()
    assert data.endswith(b"\n")


def test_every_field_of_a_session_is_in_the_record() -> None:
    record = json.loads(
        codec.session_to_bytes(
            EXAMPLE._replace(
                beside="lead@other",
                parent=Parent("lead", "other", "op-0"),
                swarm_dir="/s",
                pod="p",
                template="t",
                kind=SUBTREE,
                depth=2,
                ancestors=(Parent("lead", "top", "op-1"),),
            )
        )
    )  # written where it says something

    assert set(record) == {"schema"} | {"session" if name == "name" else name for name in Session._fields}
    assert set(record["agents"][0]) == set(Agent._fields) - {"box", "overrides"}  # only of an agent with them
    assert record["schema"] == SCHEMA


@pytest.mark.parametrize("box", [None, Boxed(), Boxed("no such program"), Boxed("", ("/opt/a",), ("/srv/b", "/srv/c"))])
def test_box_02_how_an_agent_is_boxed_is_in_its_record(box: Boxed | None) -> None:
    agent = EXAMPLE.agents[0]._replace(box=box)

    back = codec.agent_from_dict(json.loads(json.dumps(codec.agent_to_dict(agent))), "a record")

    assert back == agent
    assert back.is_boxed == (box is not None and not box.reason)


EXAMPLE = Session(
    name="feature-x",
    operations=("op-1",),
    created_ms=5,
    base_ref="main",
    base="0" * 40,
    agents=(
        Agent(
            "developer",
            "developer",
            "swarm/developer-feature-x",
            ".worktrees/developer-feature-x",
            "d",
            "0" * 40,
            5,
            (),
        ),
    ),
)


def _record(**changes: Any) -> bytes:
    record = json.loads(codec.session_to_bytes(EXAMPLE))
    record.update(changes)
    return json.dumps({key: value for key, value in record.items() if value is not ...}).encode()


def _agent(**changes: Any) -> bytes:
    agent = json.loads(codec.session_to_bytes(EXAMPLE))["agents"][0]
    agent.update(changes)
    return _record(agents=[{key: value for key, value in agent.items() if value is not ...}])


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "cannot read x: Expecting value"),
    "cut": (codec.session_to_bytes(EXAMPLE)[:-20], "cannot read x"),
    "two": (codec.session_to_bytes(EXAMPLE) * 2, "Extra data"),
    "zeros": (b"\0" * 100, "cannot read x"),
    "not-utf-8": (b'{"schema": 1, "x": "\xff"}', "cannot read x"),
    "deep": (b"[" * 100_000, "cannot read x"),
    "null": (b"null", "not a record"),
    "list": (b"[1]", "not a record"),
    "number": (b"1", "not a record"),
    "no-schema": (b"{}", "not a record"),
    "text-schema": (_record(schema="1"), "not a record"),
    "true-schema": (_record(schema=True), "not a record"),
    "newer": (_record(schema=SCHEMA + 1), f"schema {SCHEMA + 1}, this swarm knows {SCHEMA}"),
    "unknown-field": (_record(color="red"), "unknown field 'color'"),
    "unknown-field-of-an-agent": (_agent(color="red"), "agent: unknown field 'color'"),
    "no-name": (_record(session=...), "'session' is missing"),
    "no-agents": (_record(agents=...), "'agents' is missing"),
    "agents-text": (_record(agents="developer"), "not a list"),
    "agents-null": (_record(agents=None), "not a list"),
    "agent-text": (_record(agents=["developer"]), "cannot read x: agent"),
    "agent-list": (_record(agents=[[]]), "cannot read x: agent"),
    "no-operation": (_record(operations=[]), "names no operation"),
    "operations-text": (_record(operations="abc"), "not a list"),
    "time-text": (_record(created_ms="soon"), "cannot read x"),
    "time-endless": (_record(created_ms=float("inf")), "cannot read x"),
    "time-nan": (_record(created_ms=float("nan")), "cannot read x"),
    "name-hostile": (_record(session="../../x"), "invalid session name"),
    "name-number": (_record(session=3), "invalid session name"),
    "agent-name-hostile": (_agent(name="a/../b"), "invalid agent name"),
    "role-hostile": (_agent(role="$(touch x)"), "invalid role name"),
    "path-absolute": (_agent(worktree="/etc"), "leads elsewhere"),
    "path-up": (_agent(worktree=".worktrees/../../x"), "leads elsewhere"),
    "path-empty": (_agent(worktree=""), "leads elsewhere"),
    "path-nul": (_agent(worktree="a\0b"), "leads elsewhere"),
    "placed-up": (_agent(placed=[{"path": "../x", "sha256": ""}]), "leads elsewhere"),
    "placed-text": (_agent(placed="CLAUDE.local.md"), "not a list"),
    "placed-half": (_agent(placed=[{"path": "x"}]), "'sha256' is missing"),
    "no-branch": (_agent(branch=...), "'branch' is missing"),
}


@pytest.mark.parametrize(("data", "says"), BROKEN.values(), ids=BROKEN.keys())
def test_a_record_that_is_not_as_written_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(RecordProblem) as caught:
        codec.session_from_bytes(data, "x")

    assert says in caught.value.message
    assert (caught.value.code, caught.value.exit_code) == ("RECORD", 5)
    reads_well(caught.value)


ANYTHING = st.recursive(st.none() | st.integers() | TEXT, lambda part: st.lists(part) | st.dictionaries(TEXT, part))


@given(st.binary(max_size=60) | ANYTHING.map(lambda x: json.dumps({"schema": 1, "session": x, "agents": [x]}).encode()))
def test_no_other_error_ever_comes_out(data: bytes) -> None:
    with pytest.raises(RecordProblem):
        codec.session_from_bytes(data, "x")


def test_a_record_without_the_later_fields_is_still_read() -> None:
    data = _record(task=..., workflow=...)

    assert codec.session_from_bytes(data, "x") == EXAMPLE


def test_bytes_of_a_path_that_are_no_utf_8_survive() -> None:
    session = Session("s", ("o",), 1, "caf\udce9", "0" * 40, ())

    assert codec.session_from_bytes(codec.session_to_bytes(session), "x").base_ref == "caf\udce9"
