"""Conversations, read from records of the shape that the programs write."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine import hook_events
from swarm.machine.run_folder import runfiles
from swarm.machine.tail import iso
from swarm.programs import reviewer
from swarm.programs.reading.transcript import last_said
from swarm.programs.reading.transcript_reading import telling
from swarm.programs.reading.transcripts import last_words, open_transcript
from swarm.usage.spending.meter import open_record

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.programs.reading.transcript import TranscriptEntry
    from swarm.programs.reading.transcripts import Transcript

pytestmark = pytest.mark.unit

TREE = "/work/my project/.worktrees/dev-fx"
SINCE = 1_795_000_000_000


DELIVERED = """<task-notification>
<summary>Stop hook feedback</summary>
</task-notification>
<system-reminder>
Stop hook blocking error from command "SessionStart:startup": [swarm] 1 message for dev@s

hello

[swarm] end of messages
</system-reminder>"""


USED = {"input_tokens": 1, "output_tokens": 2}


def at(seconds: int) -> str:
    return iso(SINCE + 1000 * seconds)


def opened(program: str, home: Path) -> Transcript:
    found = open_transcript(source(program, home))
    assert found is not None
    return found


def source(program: str, home: Path) -> dict[str, Any]:
    return {"program": program, "home": str(home), "cwd": TREE, "since_ms": SINCE, "run_dir": str(home)}


def write(path: Path, *lines: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)


def brief(entries: list[TranscriptEntry]) -> list[tuple[str, ...]]:
    return [(one.who, one.kind, one.tool, one.text) for one in entries]


def test_claude_code(tmp_path: Path) -> None:
    def line(second: int, kind: str, content: object, **more: Any) -> dict[str, Any]:
        said = {"role": kind, "content": content, **({"model": "opus"} if kind == "assistant" else {})}
        base = {"type": kind, "uuid": f"u{second}", "timestamp": at(second), "cwd": TREE, "sessionId": "one"}
        return {**base, "message": said, **more}

    folder = tmp_path / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", TREE)
    clear = "<command-name>/clear</command-name>\n<command-args></command-args>"
    result = [
        {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": [{"type": "text", "text": "no"}]}
    ]
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"description": "d", "command": "echo one"}}
    write(
        folder / "one.jsonl",
        {"type": "mode", "mode": "normal", "sessionId": "one"},
        line(1, "user", "paint it"),
        line(2, "user", "meta words", isMeta=True),
        line(3, "assistant", [{"type": "thinking", "thinking": "hm"}]),
        line(4, "assistant", [{"type": "text", "text": "Let me see."}]),
        line(5, "assistant", [call]),
        line(6, "user", result),
        {
            **line(7, "user", ""),
            "type": "attachment",
            "attachment": {"type": "queued_command", "prompt": "stop [swarm] it"},
        },
        {**line(9, "x", ""), "type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"},
        line(10, "user", clear),
        line(11, "user", "<task-notification>\n<task-id>a</task-id></task-notification>"),
        line(11, "user", DELIVERED),
    )
    write(folder / "print.jsonl", line(14, "user", "allow it?", entrypoint="sdk-cli", timestamp=iso(SINCE + 7500)))
    review = {"sessionId": f"{reviewer.CONVERSATIONS}4a5b-8c6d-0123456789ab", "entrypoint": "sdk-cli"}
    write(
        folder / "review.jsonl",
        line(15, "user", "You decide on one tool call", timestamp=iso(SINCE + 7600), **review),
        line(16, "assistant", [{"type": "text", "text": "ALLOW"}], timestamp=iso(SINCE + 7700), **review),
    )
    write(folder / "two.jsonl", line(1, "user", "paint it"), line(12, "user", [{"type": "text", "text": "again"}]))
    sub = line(8, "assistant", [{"type": "text", "text": "Sub."}], isSidechain=True, agentId="abc")
    write(folder / "one" / "subagents" / "agent-abc.jsonl", sub)
    found = opened("claude", tmp_path)

    entries = found.more()

    assert brief(entries) == [
        ("user", "text", "", "paint it"),
        ("agent", "thinking", "", "hm"),
        ("agent", "text", "", "Let me see."),
        ("agent", "call", "Bash", "echo one"),
        ("program", "result", "Bash", "no"),
        ("user", "text", "", "stop [swarm] it"),
        ("user", "text", "", "allow it?"),
        ("program", "text", "", "You decide on one tool call"),
        ("reviewer", "text", "", "ALLOW"),
        ("agent", "text", "", "Sub."),
        ("program", "note", "", "Conversation compacted"),
        ("user", "note", "", "/clear"),
        ("program", "note", "", "<task-notification>\n<task-id>a</task-id></task-notification>"),
        ("user", "text", "", "[swarm] 1 message for dev@s\n\nhello\n\n[swarm] end of messages"),
        ("user", "text", "", "again"),
    ]
    assert sorted(one.subagent for one in entries if one.subagent) == ["abc", "print", "reviewer", "reviewer"]
    assert entries[0].at_ms == SINCE + 1000
    assert [one.failed for one in entries].index(True) == 4
    assert entries[3].given == {"description": "d", "command": "echo one"}
    assert found.more() == []
    write(folder / "two.jsonl", line(13, "assistant", [{"type": "text", "text": "Yes."}]))
    assert brief(found.more()) == [("agent", "text", "", "Yes.")]


def test_claude_code_in_a_folder_that_others_share_tells_the_agents_own_conversations_alone(tmp_path: Path) -> None:
    folder = tmp_path / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", TREE)
    for second, name in enumerate(("own", "cleared", "the-users")):
        message = {"role": "assistant", "content": [{"type": "text", "text": name}], "model": "m", "usage": USED}
        line = {"type": "assistant", "uuid": name, "message": {**message, "id": name}, "timestamp": at(second + 1)}
        write(folder / f"{name}.jsonl", {**line, "sessionId": name, "cwd": TREE})
    shared = {**source("claude", tmp_path), "shared": True, "conversation": "own"}
    found, meter = open_transcript(shared), open_record(shared)
    assert found is not None
    assert meter is not None

    assert [one.text for one in found.more()] == ["own"]
    assert len(list(meter.uses())) == 1
    runfiles.write(str(tmp_path), hook_events.CONVERSATION, {"id": "cleared"})
    assert [one.text for one in found.more()] == ["cleared"]
    assert len(list(meter.uses())) == 1
    assert last_words(shared) == "cleared"


def test_claude_code_in_print_mode_is_the_agent_itself(tmp_path: Path) -> None:
    """Runs of the program by the agent look the same, and are somebody else's words."""
    folder = tmp_path / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", TREE)
    for second, name, said in ((1, "other", "A part of it."), (2, "own", "The result.")):
        message = {"role": "assistant", "content": [{"type": "text", "text": said}]}
        more = {"sessionId": name, "entrypoint": "sdk-cli", "timestamp": at(second), "cwd": TREE}
        write(folder / f"{name}.jsonl", {"type": "assistant", "uuid": name, "message": message, **more})
    source = {"program": "claude", "home": str(tmp_path), "cwd": TREE, "since_ms": SINCE, "conversation": "own"}
    found = open_transcript(source)
    assert found is not None

    entries = found.more()

    assert {one.text: one.subagent for one in entries} == {"The result.": "", "A part of it.": "print"}
    assert last_said(entries) == "The result."
    assert last_words(source) == "The result."


def test_codex(tmp_path: Path) -> None:
    def line(second: int, kind: str, **payload: Any) -> dict[str, Any]:
        return {"timestamp": at(second), "type": kind, "payload": {"id": f"i{second}", **payload}}

    day = at(0)[:10]
    call = {"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": '{"cmd": "echo one"}'}
    inner = [{"type": "input_text", "text": "<environment_context>\n…"}]
    write(
        tmp_path / "sessions" / day.replace("-", "/") / f"rollout-{day}-one.jsonl",
        line(0, "session_meta", cwd=TREE),
        line(1, "turn_context", model="gpt-5"),
        line(2, "response_item", type="message", role="developer", content=[{"type": "input_text", "text": "role"}]),
        line(3, "response_item", type="message", role="user", content=inner),
        line(4, "response_item", type="message", role="user", content=[{"type": "input_text", "text": "paint it"}]),
        line(5, "event_msg", type="item_completed", item={"type": "UserMessage"}),
        line(6, "response_item", type="reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        line(7, "response_item", **call),
        line(8, "response_item", type="function_call_output", call_id="c", output="one"),
        line(9, "response_item", type="message", role="assistant", content=[{"type": "output_text", "text": "Done."}]),
    )

    entries = opened("codex", tmp_path).more()

    assert brief(entries) == [
        ("user", "text", "", "paint it"),
        ("agent", "thinking", "", "hm"),
        ("agent", "call", "exec_command", "echo one"),
        ("program", "result", "exec_command", "one"),
        ("agent", "text", "", "Done."),
    ]
    assert entries[-1].model == "gpt-5"
    assert last_words(source("codex", tmp_path)) == "Done."


def test_gemini_gives_a_message_once_though_it_is_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "tmp" / "dev-fx"
    answer = {"id": "b", "timestamp": at(2), "type": "gemini", "content": "Let me see.", "model": "g", "thoughts": []}
    response = {"functionResponse": {"response": {"output": "<untrusted_context>\none\n</untrusted_context>"}}}
    call = {"id": "c", "name": "shell", "args": {"command": "echo one"}, "result": [response], "timestamp": at(3)}
    write(
        folder / "chats" / "session-1.jsonl",
        {"sessionId": "s", "kind": "main"},
        {
            "$set": {
                "messages": [
                    {"id": "0", "timestamp": at(0), "type": "user", "content": [{"text": "<session_context>"}]}
                ]
            }
        },
        {"id": "a", "timestamp": at(1), "type": "user", "content": [{"text": "paint it"}]},
        answer,
        {**answer, "toolCalls": [{**call, "status": "success"}]},
        {"id": "d", "timestamp": at(4), "type": "user", "content": [response]},
    )
    (folder / ".project_root").write_text(TREE)

    assert brief(opened("gemini", tmp_path).more()) == [
        ("user", "text", "", "paint it"),
        ("agent", "text", "", "Let me see."),
        ("agent", "call", "shell", "echo one"),
        ("program", "result", "shell", "one"),
    ]
    assert last_words(source("gemini", tmp_path)) == "Let me see."


def test_opencode_gives_a_part_once_it_is_whole(tmp_path: Path) -> None:
    tables = """
    create table session (id text, directory text, parent_id text, time_updated int);
    create table message (id text, session_id text, data text);
    create table part
    (id text primary key, message_id text, session_id text, time_created int, time_updated int, data text);
    """

    def put(number: int, role: str, **data: Any) -> None:
        time_ms = SINCE + 1000 * number
        message = json.dumps({"role": role, "modelID": "m"})
        db.execute("insert into message values (?, ?, ?)", (f"m{number}", "s", message))
        row = (f"p{number}", f"m{number}", "s", time_ms, time_ms, json.dumps(data))
        db.execute("insert or replace into part values (?, ?, ?, ?, ?, ?)", row)
        db.commit()

    with closing(sqlite3.connect(tmp_path / "opencode.db")) as db:
        db.executescript(tables)
        db.execute("insert into session values ('s', ?, null, 1)", (TREE,))
        put(1, "user", type="text", text="paint it")
        put(2, "assistant", type="text", text="Let", time={"start": 1})
        found = opened("opencode", tmp_path)
        assert brief(found.more()) == [("user", "text", "", "paint it")]
        db.execute("delete from message where id = 'm2'")
        put(2, "assistant", type="text", text="Let me see.", time={"start": 1, "end": 2})
        state = {"status": "completed", "input": {"command": "echo one"}, "output": "one"}
        put(3, "assistant", type="tool", tool="bash", state=state)
        put(4, "assistant", type="step-finish", tokens={})

        assert brief(found.more()) == [
            ("agent", "text", "", "Let me see."),
            ("agent", "call", "bash", "echo one"),
            ("program", "result", "bash", "one"),
        ]
        assert last_words(source("opencode", tmp_path)) == "Let me see."


def test_the_demo_agent(tmp_path: Path) -> None:
    write(tmp_path / "conversation.jsonl", {"at_ms": 5, "who": "user", "text": "say hi"}, {"at_ms": 6, "text": "hi"})
    assert brief(opened("demo", tmp_path).more()) == [("user", "text", "", "say hi"), ("agent", "text", "", "hi")]
    assert last_words(source("demo", tmp_path)) == "hi"
    assert open_transcript({"program": "demo"}) is None
    assert open_transcript({"program": "shell", "home": "", "cwd": TREE, "since_ms": 1}) is None


def test_the_last_words_are_those_of_the_newest_conversation_however_long_it_is(tmp_path: Path) -> None:
    day = at(0)[:10]
    folder = tmp_path / "sessions" / day.replace("-", "/")

    def said(second: int, words: str) -> dict[str, Any]:
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": words}]}
        return {"timestamp": at(second), "type": "response_item", "payload": item}

    def talk(name: str, cwd: str, *lines: dict[str, Any]) -> Path:
        path = folder / f"rollout-{day}-{name}.jsonl"
        write(path, {"timestamp": at(0), "type": "session_meta", "payload": {"cwd": cwd}}, *lines)
        return path

    talk("a", TREE, *(said(1, "x" * 10_000) for _ in range(110)), said(2, "The last one."))
    os.utime(talk("b", TREE, said(1, "An older talk.")), (1, 1))
    talk("c", f"{TREE}-other", said(3, "Somebody else's."))

    assert last_words(source("codex", tmp_path)) == "The last one."
    assert last_words(source("codex", tmp_path / "none")) == ""
    assert last_words({"program": "shell", "home": "", "cwd": TREE, "since_ms": 1}) == ""


def test_a_call_is_told_by_what_says_most() -> None:
    assert telling({"description": "make it", "command": "touch x"}) == "touch x"
    assert telling({"command": ["bash", "-lc", "ls"]}) == "bash -lc ls"
    assert telling({"odd": 1}) == '{"odd": 1}'
    assert telling({}) == ""
