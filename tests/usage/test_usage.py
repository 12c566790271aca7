"""Tokens are counted once, from records of the shape that the programs write."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine.tail import Tail, iso
from swarm.project.config.prices import parse
from swarm.usage import log
from swarm.usage.spending.meter import Meter, open_record, source_of
from swarm.usage.spending.prices import Prices
from swarm.usage.spending.use import Counts
from swarm.usage.values import AgentUsage, ModelUsage, UsageReport

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

TREE = "/work/my project/.worktrees/dev-fx"
SINCE = 1_795_000_000_000
LATER = iso(SINCE + 60_000)
TABLE = {"as_of": "2026-01-01", "models": {"claude-opus-4-8": [5, 25, 0.5, 6.25, 10], "gpt-5": [1, 10, 0.1, 1, 1]}}


def meter(program: str, home: Path, cwd: str = TREE) -> Meter:
    record = open_record({"program": program, "home": str(home), "cwd": cwd, "since_ms": SINCE})
    assert record is not None
    return Meter(record)


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)


# --- Claude Code ----------------------------------------------------------------------------------


def claude(message: str, usage: dict[str, Any], model: str = "claude-opus-4-8", **more: Any) -> dict[str, Any]:
    said = {"id": message, "role": "assistant", "model": model, "content": [], "usage": usage}
    line = {"type": "assistant", "uuid": os.urandom(4).hex(), "timestamp": LATER, "cwd": TREE, "sessionId": "one"}
    return {**line, "requestId": f"req_{message}", "message": said, **more}


def projects(home: Path, cwd: str = TREE) -> Path:
    return home / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", cwd)


def test_an_answer_of_several_lines_counts_once_with_its_last_word(tmp_path: Path) -> None:
    write(
        projects(tmp_path) / "one.jsonl",
        {"type": "user", "timestamp": LATER, "cwd": TREE, "message": {"role": "user", "content": 'about "usage"'}},
        claude("m1", {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 500}),
        claude("m1", {"input_tokens": 10, "output_tokens": 40, "cache_read_input_tokens": 500}),
        claude(
            "m2",
            {
                "input_tokens": 3,
                "output_tokens": 4,
                "cache_creation_input_tokens": 100,
                "cache_creation": {"ephemeral_1h_input_tokens": 60, "ephemeral_5m_input_tokens": 40},
            },
            model="claude-haiku-4-5",
        ),
        claude("m3", {"input_tokens": 0, "output_tokens": 0}, model="<synthetic>"),
    )
    found = meter("claude", tmp_path)

    assert found.look()
    assert not found.look()

    assert found.models == {
        "claude-opus-4-8": Counts(10, 40, 500, requests=1),
        "claude-haiku-4-5": Counts(3, 4, 0, 100, 60, requests=1),
    }


def test_cleared_forked_and_subagents_conversations_count_and_copies_do_not(tmp_path: Path) -> None:
    first = claude("m1", {"input_tokens": 10, "output_tokens": 1})
    write(projects(tmp_path) / "one.jsonl", first)
    write(projects(tmp_path) / "two.jsonl", {**first, "sessionId": "two"}, claude("m2", {"input_tokens": 20}))
    sub = claude("m3", {"input_tokens": 30}, isSidechain=True, agentId="a1")
    write(projects(tmp_path) / "one" / "subagents" / "agent-a1.jsonl", sub)
    found = meter("claude", tmp_path)

    found.look()

    assert found.models["claude-opus-4-8"] == Counts(60, 1, requests=3)


def test_only_what_was_added_is_read_and_a_begun_line_waits(tmp_path: Path) -> None:
    path = projects(tmp_path) / "one.jsonl"
    write(path, claude("m1", {"input_tokens": 10}))
    found = meter("claude", tmp_path)
    found.look()
    line = json.dumps(claude("m2", {"input_tokens": 5})) + "\n"
    with path.open("a") as file:
        file.write(line[:40])
        file.flush()
        found.look()
        assert found.tokens() == 10
        file.write(line[40:])
    found.look()
    assert found.tokens() == 15

    path.write_text(line)  # replaced by a shorter one: what was counted stays, once
    found.look()

    assert found.tokens() == 15


def test_a_whole_record_is_read_again_from_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    write(path, {"a": 1}, {"b": 2})
    tail = Tail(str(path))
    assert list(tail.lines()) == [{"a": 1}, {"b": 2}]
    assert not tail.grown()
    write(path, {"a": 3}, {"b": 4})
    with path.open("a") as file:
        file.write("no json\n[1]\n")
    assert tail.grown()
    assert list(tail.lines(b'"b"', b"no", b"[")) == [{"b": 4}]
    os.unlink(path)
    os.mkfifo(path)
    assert list(tail.lines()) == []  # and does not hang


def test_other_folders_of_the_same_name_and_earlier_agents_do_not_count(tmp_path: Path) -> None:
    other = TREE.replace("my project", "my-project")
    write(projects(tmp_path) / "other.jsonl", claude("m1", {"input_tokens": 10}, cwd=other))
    write(projects(tmp_path) / "below.jsonl", claude("m2", {"input_tokens": 20}, cwd=f"{TREE}/src"))
    write(projects(tmp_path) / "old.jsonl", claude("m3", {"input_tokens": 40}, timestamp=iso(SINCE - 1)))
    found = meter("claude", tmp_path)

    found.look()

    assert found.tokens() == 20


@pytest.mark.parametrize("odd", [None, "many", -5, True, 1.5, [1], {"a": 1}])
def test_what_is_no_number_counts_nothing(tmp_path: Path, odd: object) -> None:
    write(projects(tmp_path) / "one.jsonl", claude("m1", {"input_tokens": odd, "output_tokens": 7}))
    write(projects(tmp_path) / "two.jsonl", {"type": "assistant", "message": {"usage": odd}, "cwd": odd})
    found = meter("claude", tmp_path)

    found.look()

    assert found.tokens() == 7


def test_a_long_path_is_found_by_its_beginning(tmp_path: Path) -> None:
    long = "/" + "/".join(["folder"] * 40)
    folder = projects(tmp_path, long)
    write(folder.with_name(f"{folder.name[:200]}-h4sh") / "one.jsonl", claude("m1", {"input_tokens": 9}, cwd=long))
    found = meter("claude", tmp_path, long)

    found.look()

    assert found.tokens() == 9


# --- Codex ----------------------------------------------------------------------------------------


def codex(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": LATER, "type": kind, "payload": payload}


def rollout(home: Path, name: str = "one") -> Path:
    day = LATER[:10].replace("-", "/")
    return home / "sessions" / day / f"rollout-{LATER[:10]}T00-00-00-{name}.jsonl"


def test_codex_tells_each_answer_and_its_input_holds_the_cache(tmp_path: Path) -> None:
    usage = {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 10, "output_tokens": 7}
    write(
        rollout(tmp_path),
        codex("session_meta", cwd=TREE),
        codex("turn_context", model="gpt-5"),
        codex("token_usage_record", response_id="r1", usage=usage),
        codex("event_msg", type="token_count", info={"total_token_usage": usage, "last_token_usage": usage}),
        codex("token_usage_record", response_id="r1", usage=usage),
        codex("turn_context", model="gpt-6"),
        codex("token_usage_record", response_id="r2", usage={"input_tokens": 5, "output_tokens": 1}),
    )
    write(rollout(tmp_path, "other"), codex("session_meta", cwd="/elsewhere"))
    write(rollout(tmp_path, "other"), codex("token_usage_record", response_id="r9", usage=usage))
    found = meter("codex", tmp_path)

    found.look()

    assert found.models == {"gpt-5": Counts(30, 7, 60, 10, requests=1), "gpt-6": Counts(5, 1, requests=1)}


def test_earlier_versions_of_codex_tell_totals_again_and_again(tmp_path: Path) -> None:
    def told(read: int, written: int, last: int) -> dict[str, Any]:
        total = {"input_tokens": read, "output_tokens": written}
        info = {"total_token_usage": total, "last_token_usage": {"input_tokens": last, "output_tokens": 1}}
        return codex("event_msg", type="token_count", info=info)

    write(
        rollout(tmp_path),
        codex("session_meta", cwd=TREE),
        codex("turn_context", model="gpt-5"),
        codex("event_msg", type="token_count", info=None),
        told(100, 1, 100),
        told(100, 1, 100),
        told(250, 2, 150),
        told(40, 1, 40),  # it began to count anew
    )
    found = meter("codex", tmp_path)

    found.look()

    assert found.models == {"gpt-5": Counts(290, 3, requests=3)}


# --- Gemini CLI and opencode ----------------------------------------------------------------------


def test_gemini_writes_a_message_again_when_its_tools_have_run(tmp_path: Path) -> None:
    def message(name: str, read: int) -> dict[str, Any]:
        tokens = {"input": read, "output": 5, "cached": 20, "thoughts": 2, "tool": 1, "total": 0}
        return {"id": name, "timestamp": LATER, "type": "gemini", "content": "x", "tokens": tokens, "model": "g"}

    folder = tmp_path / "tmp" / "dev-fx"
    write(folder / "chats" / "session-1.jsonl", {"sessionId": "s"}, message("a", 100), message("a", 100))
    write(folder / "chats" / "session-1.jsonl", {"$set": {"messages": [message("b", 50)]}})
    (folder / "chats" / "session-0.json").write_text(json.dumps({"messages": [message("c", 30), message("a", 100)]}))
    (folder / ".project_root").write_text(TREE)
    write(tmp_path / "tmp" / "other" / "chats" / "session-1.jsonl", message("z", 1000))
    found = meter("gemini", tmp_path)

    assert found.look()
    assert not found.look()

    assert found.models == {"g": Counts(input=80 + 30 + 10 + 3, output=21, cache_read=60, requests=3)}


def test_opencode_keeps_a_database(tmp_path: Path) -> None:
    tables = """
    create table session (id text, directory text, parent_id text);
    create table message (id text, session_id text, data text);
    create table part (id text, message_id text, session_id text, time_created int, time_updated int, data text);
    """
    with closing(sqlite3.connect(tmp_path / "opencode.db")) as db:
        db.executescript(tables)
        sessions = (("s1", TREE, None), ("s2", f"{TREE}/src", "s1"), ("s3", f"{TREE}-other", None))
        db.executemany("insert into session values (?, ?, ?)", sessions)
        for number, (session, at_ms) in enumerate((("s1", 5), ("s2", 6), ("s3", 7), ("s1", -5))):
            tokens = {"input": 10, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 3}}
            part = {"type": "step-finish", "tokens": tokens, "cost": 0.5}
            time_ms = SINCE + at_ms
            db.execute(
                "insert into message values (?, ?, ?)", (f"m{number}", session, '{"modelID": "x", "role": "assistant"}')
            )
            row = (f"p{number}", f"m{number}", session, time_ms, time_ms, json.dumps(part))
            db.execute("insert into part values (?, ?, ?, ?, ?, ?)", row)
        db.commit()
    found = meter("opencode", tmp_path)

    found.look()
    found.look()

    assert found.models == {"x": Counts(20, 6, 8, 6, requests=2, told_cost=1.0)}
    assert found.cost(Prices(TABLE)) == (1.0, [])


def test_nothing_written_yet_is_nothing_used(tmp_path: Path) -> None:
    for program in ("claude", "codex", "gemini", "opencode"):
        found = meter(program, tmp_path / program)
        found.look()
        assert found.models == {}
    assert open_record({"program": "demo", "home": "", "cwd": TREE, "since_ms": 1}) is None
    assert open_record({}) is None


def test_where_a_programs_records_are_follows_its_environment(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert source_of("claude", (), {}, str(tmp_path / "link"), 1)["cwd"] == os.path.realpath(tmp_path)

    def home(program: str, *command: str, **env: str) -> object:
        return source_of(program, command, {"HOME": "/home/me", **env}, TREE, 1)["home"]

    assert home("claude") == "/home/me/.claude"
    assert home("claude", CLAUDE_CONFIG_DIR="/cfg") == "/cfg"
    assert home("command", "/opt/bin/codex", "exec") == "/home/me/.codex"
    assert home("codex", CODEX_HOME="/c") == "/c"
    assert home("gemini") == "/home/me/.gemini"
    assert home("opencode", XDG_DATA_HOME="/d") == "/d/opencode"
    assert home("shell") == ""


# --- prices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        *("claude-opus-4-8", "Claude-Opus-4-8", "anthropic/claude-opus-4-8", "claude-opus-4-8-20260501"),
        *("claude-opus-4-8[1m]", "us.anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8@20260501"),
    ],
)
def test_a_model_is_known_by_its_names(model: str) -> None:
    counts = Counts(1_000_000, 1_000_000, 1_000_000, 1_000_000, 400_000)
    assert Prices(TABLE).cost(model, counts) == pytest.approx(5 + 25 + 0.5 + 0.6 * 6.25 + 0.4 * 10)


@pytest.mark.parametrize("model", ["claude-opus-4-9", "claude-opus-4", "claude-opus-4-80", "", "gpt-5-mini"])
def test_another_model_has_no_price(model: str) -> None:
    assert Prices(TABLE).cost(model, Counts(1000)) is None


def test_the_users_prices_come_first() -> None:
    own = dict(parse(line) for line in ("my-* = 2/4", "claude-opus-4-8 = 1/1/1/1"))
    prices = Prices(json.loads(json.dumps(Prices(TABLE, own).plain())))  # as a supervisor gets them
    assert prices.cost("my-model", Counts(1_000_000, 1_000_000, 1_000_000, 1_000_000)) == 2 + 4 + 2 + 2
    assert prices.cost("claude-opus-4-8", Counts(1_000_000)) == 1
    assert prices.as_of == "2026-01-01"


@pytest.mark.parametrize("line", ["", "x", "x = 1", "x = 1/2/3/4/5/6", "x = a/b", "x = -1/2", "x y = 1/2", "= 1/2"])
def test_what_is_no_price_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="MODEL = INPUT/OUTPUT"):
        parse(line)


# --- sums -----------------------------------------------------------------------------------------


def usage(agent: str, *models: ModelUsage, **more: Any) -> AgentUsage:
    return AgentUsage("fx", agent, "dev", "claude", models, 1.5, recorded=True, created_ms=SINCE, **more)


def test_totals_add_up_and_an_unknown_price_stays_unknown() -> None:
    one = usage("a", ModelUsage("x", 1, 2, 3, 4, 1, 0.5), ModelUsage("y", 10, requests=1, cost=None))
    other = usage("b", ModelUsage("x", 1, 1, 1, 1, 1, 0.25))
    report = UsageReport((one, other), "2026-01-01")
    assert report.models == (ModelUsage("x", 2, 3, 4, 5, 2, 0.75), ModelUsage("y", 10, requests=1, cost=None))
    assert (report.total.tokens, report.total.requests, report.total.cost) == (24, 3, None)
    assert report.minutes == 3
    assert report.unpriced == ("y",)


def test_removed_agents_are_kept_and_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "usage.jsonl"
    first = log.Kept(usage("a", ModelUsage("x", 1), removed_ms=5), {"program": "claude"})
    again = log.Kept(usage("a", ModelUsage("x", 2), removed_ms=6), {})
    other = log.Kept(usage("b", ModelUsage("x", 2, cost=None), removed_ms=6), {})
    for one in (first, other, again):
        log.add(path, one)
    with path.open("ab") as file:
        file.write(b'{"schema": 2}\n{"schema": 1, "sess')
    assert log.read(path) == (other, again)
    log.add(path, other)

    assert log.read(path) == (again, other)
    assert log.read(tmp_path / "none") == ()
    assert path.stat().st_mode & 0o077 == 0
