"""What the programs write at the end of a turn, in their own lines, and what is made of it; nothing odd breaks it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from swarm.programs import registry
from swarm.programs.turns import Ended, Kind, Said, judge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.component

INIT = {"type": "system", "subtype": "init", "session_id": "abc"}
HELLO = {"type": "assistant", "session_id": "abc", "message": {"content": [{"type": "text", "text": "Hello"}]}}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "session_id": "abc"}
USED = {"usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5}}


def said(program: str, path: Path, *lines: dict[str, Any] | bytes) -> Said:
    data = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    path.joinpath("out").write_bytes(data)
    return registry.program(program).said(path / "out")


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        ({}, Kind.DONE),
        ({"is_error": True, "api_error_status": 529}, Kind.RETRYABLE),
        ({"is_error": True, "api_error_status": None}, Kind.RETRYABLE),
        ({"is_error": True, "api_error_status": 429}, Kind.RATE_LIMITED),
        ({"is_error": True, "api_error_status": 401}, Kind.FATAL),
        ({"is_error": True, "terminal_reason": "prompt_too_long", "api_error_status": 400}, Kind.FATAL),
        ({"is_error": True, "subtype": "error_max_turns"}, Kind.FATAL),
        ({"is_error": True, "subtype": "error_during_execution", "terminal_reason": "aborted_tools"}, None),
    ],
)
def test_claude_code(tmp_path: Path, result: dict[str, Any], kind: Kind | None) -> None:
    found = said("claude", tmp_path, INIT, HELLO, {**RESULT, **USED, **result})

    assert found.kind is kind
    assert (found.input, found.output, found.conversation) == (7, 5, "abc")
    assert found.text == ("Done." if kind is Kind.DONE else "Hello")


def test_a_result_counts_only_when_nothing_comes_behind_it(tmp_path: Path) -> None:
    assert said("claude", tmp_path, INIT, RESULT, HELLO).kind is None


def test_codex(tmp_path: Path) -> None:
    begin = {"type": "thread.started", "thread_id": "t1"}
    words = {"type": "item.completed", "item": {"type": "agent_message", "text": "Done."}}
    end = {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 5}}
    whole = said("codex", tmp_path, begin, words, end)
    torn = said("codex", tmp_path, begin, words)
    limited = said("codex", tmp_path, begin, {"type": "error", "message": "x"}, failed("status 429 Too Many Requests"))

    assert whole == Said(Kind.DONE, "Done.", "", 3, 5, sum=True, conversation="t1")
    assert (torn.kind, torn.text, torn.conversation) == (None, "Done.", "t1")
    assert limited.kind is Kind.RATE_LIMITED
    assert said("codex", tmp_path, begin, failed("unexpected status 401 Unauthorized")).kind is Kind.FATAL
    assert said("codex", tmp_path, begin, failed("stream disconnected")).kind is Kind.RETRYABLE


def failed(message: str) -> dict[str, Any]:
    return {"type": "turn.failed", "error": {"message": message}}


def test_gemini(tmp_path: Path) -> None:
    begin = {"type": "init", "session_id": "g1"}
    parts = [{"type": "message", "role": "assistant", "content": text, "delta": True} for text in ("Do", "ne.")]
    end = {"type": "result", "status": "success", "stats": {"input_tokens": 3, "output_tokens": 5}}

    assert said("gemini", tmp_path, begin, *parts, end) == Said(Kind.DONE, "Done.", "", 3, 5, conversation="g1")
    error = {"type": "result", "status": "error", "error": {"type": "x", "message": "got status 429"}}
    assert said("gemini", tmp_path, begin, error).kind is Kind.RATE_LIMITED
    assert said("gemini", tmp_path, begin, *parts).kind is None


def test_opencode(tmp_path: Path) -> None:
    tokens = {"input": 2, "output": 5, "cache": {"read": 1}}
    lines = [
        {"type": "step_start", "sessionID": "o1", "part": {}},
        {"type": "text", "sessionID": "o1", "part": {"text": "Done."}},
        {"type": "step_finish", "sessionID": "o1", "part": {"reason": "stop", "tokens": tokens}},
    ]
    error = {"type": "error", "sessionID": "o1", "error": {"name": "APIError", "data": {"statusCode": 503}}}

    assert said("opencode", tmp_path, *lines) == Said(Kind.DONE, "Done.", "", 3, 5, conversation="o1")
    assert said("opencode", tmp_path, *lines[:2]).kind is None
    assert said("opencode", tmp_path, lines[0], error).kind is Kind.RETRYABLE


#: What the programs wrote at the scripted API, with the end of their standard error and their exit status.
TOO_LONG = "prompt is too long: 250000 tokens > 200000 maximum"
ERRORS: list[tuple[str, dict[str, Any], str, int, Kind]] = [
    ("codex", {"message": f'{{"error": {{"message": "{TOO_LONG}", "type": "x"}}}}'}, "", 1, Kind.FATAL),
    ("codex", {"message": "unexpected status 404 Not Found: model: no-such-model, url: x"}, "", 1, Kind.FATAL),
    ("codex", {"message": "exceeded retry limit, last status: 429 Too Many Requests"}, "", 1, Kind.RATE_LIMITED),
    ("codex", {"message": "We are currently experiencing high demand"}, "", 1, Kind.RETRYABLE),
    ("gemini", {"message": f'[API Error: {{"error":{{"code":400,"message":"{TOO_LONG}"}}}}]'}, "", 144, Kind.FATAL),
    ("gemini", {"message": "[API Error: model: no-such-model]"}, "  code: 404\n}\n", 1, Kind.FATAL),
    ("gemini", {"message": "[API Error: fetch failed]"}, "  code: 'ECONNREFUSED'\n}\n", 1, Kind.RETRYABLE),
]


@pytest.mark.parametrize(("program", "error", "err", "status", "kind"), ERRORS)
def test_an_error_is_understood_by_what_is_known_of_it(
    tmp_path: Path, program: str, error: dict[str, Any], err: str, status: int, kind: Kind
) -> None:
    line = {"type": "turn.failed"} if program == "codex" else {"type": "result", "status": "error"}
    found = said(program, tmp_path, {**line, "error": error})

    judged, why = judge(Ended("exited", status), found, err, speaks=True)

    assert (judged, why[:20]) == (kind, error["message"][:20])


@pytest.mark.parametrize("program", ["claude", "codex", "gemini", "opencode", "demo"])
def test_odd_lines_are_passed_over(tmp_path: Path, program: str) -> None:
    odd: list[Any] = [b"", b"\0\0", b"no json", b'{"type":', b"[1, 2]", b'"text"', b"\xff\xfe", b'{"type": "result"}']
    odd += [{"type": kind, "message": 3, "usage": [], "error": 7, "item": 5, "part": 1} for kind in KINDS]
    found = said(program, tmp_path, *odd, b"[" * 100_000, b'{"half": ')

    assert isinstance(found, Said)
    assert registry.program(program).said(tmp_path / "not there")._replace(sum=False) == Said()


KINDS = (
    *("assistant", "result", "rate_limit_event", "turn.completed", "turn.failed", "error", "item.completed"),
    *("message", "init", "step_finish", "text", "step_start", "thread.started"),
)


def test_of_a_long_file_the_beginning_and_the_end_are_read(tmp_path: Path) -> None:
    noise = [b'{"type": "stream_event", "text": "' + b"x" * 1_000_000 + b'"}'] * 40
    begin = {"type": "thread.started", "thread_id": "t1"}
    end = {"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 5}}

    found = said("codex", tmp_path, begin, *noise, end)

    assert (found.kind, found.conversation, found.input) == (Kind.DONE, "t1", 3)
