"""What `swarm usage` and `swarm transcript` print, here of agents that were removed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.usage import log as usagelog
from swarm.usage.values import AgentUsage, ModelUsage

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

pytestmark = pytest.mark.integration

MADE = 1_795_000_000_000


@pytest.fixture
def spent(cli: Cli) -> Cli:
    """A repository in which three agents of session fx were removed; Claude Code's record of one is still there."""
    cli.ok("init")
    home = cli.lab.root.parent / "claude"
    source = {"program": "claude", "home": str(home), "cwd": "/tree", "since_ms": MADE}
    folder = home / "projects" / "-tree"
    folder.mkdir(parents=True)
    words = "It is \x1b[31mgreen\x07.\nAnd\tdry."
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "touch a\ntouch b"}}
    lines: list[dict[str, Any]] = [
        {"type": "user", "message": {"content": "paint it"}},
        {"type": "assistant", "message": {"content": [{"type": "text", "text": words}]}},
        {"type": "assistant", "message": {"content": [call]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "is_error": True}]}},
    ]
    for number, line in enumerate(lines):
        line |= {"uuid": f"u{number}", "cwd": "/tree", "timestamp": f"2026-11-19T10:00:0{number}.000Z"}
    lines[1]["message"] |= {"id": "m", "model": "claude-opus-4-8", "usage": {"input_tokens": 200_000}}
    (folder / "one.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    log = cli.lab.root / ".swarm" / "usage.jsonl"
    common: dict[str, Any] = {"role": "dev", "minutes": 1.25, "created_ms": MADE, "removed_ms": MADE + 1}
    counted = AgentUsage("fx", "painter", program="claude", models=(), recorded=True, **common)
    gone = (ModelUsage("gpt-5", 1_000_000, 2, 3, 4, 5, 1.25), ModelUsage("new\x1b-model", 10, requests=1, cost=None))
    usagelog.add(log, usagelog.Kept(counted, source))
    usagelog.add(log, usagelog.Kept(AgentUsage("fx", "b", program="codex", models=gone, recorded=True, **common), {}))
    usagelog.add(log, usagelog.Kept(AgentUsage("fx", "c", program="demo", models=(), recorded=False, **common), {}))
    return cli


def test_the_table(spent: Cli) -> None:
    said = spent.ok("usage", "fx")
    rows = [re.split(r" {2,}", line.strip()) for line in said.out.splitlines()]
    assert " ".join(rows[0]) == "AGENT SESSION MODEL REQUESTS INPUT CACHED STORED OUTPUT COST MINUTES"
    assert rows[1] == ["painter (removed)", "fx", "claude-opus-4-8", "1", "200,000", "0", "0", "0", "$1.00", "1.2"]
    assert rows[2] == ["b (removed)", "fx", "gpt-5", "5", "1,000,000", "3", "4", "2", "$1.25", "1.2"]
    assert rows[3] == ["b (removed)", "fx", r"new\x1b-model", "1", "10", "0", "0", "0", "?"]
    assert rows[4] == ["c (removed)", "fx", "demo", "-", "-", "-", "-", "-", "-", "1.2"]
    assert rows[5] == ["total", "7", "1,200,010", "3", "4", "2", "$2.25 + ?", "3.8"]
    assert "1 agent with a program that does not record its usage" in said.err
    assert r"warning: no price is known for new\x1b-model" in said.err
    assert "list prices of 20" in said.err
    assert spent.ok("usage", "--all").out == said.out


def test_for_machines(spent: Cli) -> None:
    data = spent.ok("usage", "fx", "--json").data()
    assert [one["agent"] for one in data["agents"]] == ["painter", "b", "c"]
    numbers = {"input": 200_000, "output": 0, "cache_read": 0, "cache_write": 0, "tokens": 200_000, "requests": 1}
    assert data["agents"][0]["models"] == [{"model": "claude-opus-4-8", **numbers, "cost": 1.0}]
    assert data["total"]["cost"] is None
    assert data["total"]["minutes"] == 3.75
    assert data["unpriced"] == ["new\x1b-model"]
    assert spent.ok("usage", "--json").data()["agents"] == []
    assert spent("usage", "none", "--json").json()["errors"][0]["code"] == "SESSION_NOT_FOUND"


def test_prices_of_the_user_count(spent: Cli) -> None:
    (spent.lab.root / ".swarm" / "config.yaml").write_text('usage:\n  prices: ["claude-opus-* = 50/1"]\n')
    (painter,) = (one for one in spent.ok("usage", "fx", "--json").data()["agents"] if one["agent"] == "painter")
    assert painter["total"]["cost"] == 10


def test_a_transcript_is_safe_on_a_terminal(spent: Cli) -> None:
    lines = [line[10:] for line in spent.ok("transcript", "painter@fx").out.splitlines()[1:]]
    assert lines == [
        "user      paint it",
        r"painter   It is \x1b[31mgreen\x07.",
        "          And dry.",
        "painter   > Bash touch a (+1 lines)",
        "          < failed:",
    ]
    data = spent.ok("transcript", "painter", "-n", "2", "--json").data()
    assert [(one["kind"], one["tool"], one["failed"]) for one in data["entries"]] == [
        ("call", "Bash", False),
        ("result", "Bash", True),
    ]
    assert data["entries"][0]["given"] == {"command": "touch a\ntouch b"}
    assert spent("transcript", "c@fx").code == 6
    assert spent("transcript", "nobody").code == 6
    assert spent("transcript", "painter", "-n", "x").code == 2


def test_whoever_follows_a_transcript_ends_it_with_ctrl_c_and_that_is_no_error(spent: Cli) -> None:
    argv = [sys.executable, "-P", "-m", "swarm", "transcript", "painter@fx", "--follow", "-n", "1"]
    with subprocess.Popen(
        argv, cwd=spent.lab.root, env=spent.lab.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline()[10:] for _ in range(2)][1] == "          < failed:\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "\n")
        assert process.returncode == 130
