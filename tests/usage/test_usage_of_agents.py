"""What agents used up: counted while they run, after they ended, and after they were removed; and held to a limit."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.kit.errors import SwarmError
from swarm.sessions.errors import NoRecord
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

#: Writes a record as Claude Code does: for each line it is told, an answer that read as many tokens.
FAKE = f"""#!{sys.executable}
import json, os, re, sys, time
folder = os.path.join(os.environ["HOME"], ".claude", "projects", re.sub(r"[^a-zA-Z0-9]", "-", os.getcwd()))
os.makedirs(folder, exist_ok=True)
print("ready", flush=True)
for line in sys.stdin:
    used = int(line)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
    message = {{"id": f"m{{time.time_ns()}}", "model": "claude-opus-4-8", "usage": {{"input_tokens": used}},
               "content": [{{"type": "text", "text": f"read {{used}} \\x1b[31m"}}]}}
    told = {{"type": "assistant", "uuid": message["id"], "timestamp": stamp, "cwd": os.getcwd(), "message": message}}
    with open(os.path.join(folder, "one.jsonl"), "a") as file:
        file.write((json.dumps(told) + "\\n") * 2)
    print("done", used, flush=True)
"""


def role(lab: PaneLab, **limits: float) -> None:
    body = {"name": "builder", "description": "x", "instructions": "You build.", "limits": limits}
    lab.write({"roles/builder.yaml": json.dumps(body)})


def use(lab: PaneLab, tokens: int) -> None:
    lab.type("builder", str(tokens))
    lab.see("builder", f"done {tokens}")


def subjects(lab: PaneLab) -> list[str]:
    return [message.message.subject for message in lab.swarm.messages.inbox("user")]


def test_an_agent_is_warned_of_and_then_stopped_with_its_work_kept(panes: PaneLab) -> None:
    panes.program("claude", FAKE)
    role(panes, tokens=1000)
    swarm = panes.start("builder", program="claude")
    panes.see("builder", "ready")
    use(panes, 850)
    wait_for(lambda: "85 %" in panes.one("builder").status.detail, "the warning in the state")
    wait_for(lambda: subjects(panes) == ["builder@fx: 85 % of its budget of 1,000 tokens used"], "the notice")
    (panes.one("builder").worktree / "work.txt").write_text("kept")

    use(panes, 200)

    found = panes.until("builder", "stopped")
    words = "over its budget of 1,000 tokens (1,050 used)"
    assert found.status.detail == words
    assert {one.source for one in found.status.evidence if one.decides} == {"exit"}
    wait_for(lambda: len(subjects(panes)) == 2, "the notice of the end")
    swarm.usage.notify("builder", "fx")
    swarm.delivery.report_endings()
    assert subjects(panes)[1] == f"builder@fx is stopped: {words}"
    assert len(subjects(panes)) == 2
    assert (found.worktree / "work.txt").read_text() == "kept"
    hints = panes.cli("status").stderr
    assert "swarm usage fx" in hints
    assert "swarm resume" not in hints
    with pytest.raises(SwarmError) as raised:
        swarm.resume(["fx"])
    assert (raised.value.code, raised.value.exit_code) == ("LIMIT_REACHED", 2)
    swarm.create("gx", "developer")
    (left_out,) = swarm.resume(everything=True).skipped
    assert left_out.name == "builder@fx"
    assert left_out.reason.startswith(f"{words}; raise limits.tokens in ")
    swarm.cleanup(["gx"])

    role(panes, tokens=2000)
    swarm.resume(["fx"])

    panes.until("builder", "starting", "unknown")
    usage = swarm.usage()
    assert (usage.total.tokens, usage.total.requests) == (1050, 2)
    assert usage.total.cost == pytest.approx(0.00525)
    assert usage.minutes > 0

    swarm.stop(["fx"])
    swarm.cleanup(["fx"], force=True)

    assert swarm.usage().agents == ()
    (gone,) = swarm.usage("fx").agents
    assert (gone.agent, gone.total.tokens, gone.removed_ms > 0) == ("builder", 1050, True)
    assert gone.minutes >= usage.minutes
    assert [one.text for one in swarm.transcript("builder", "fx")] == ["read 850 \x1b[31m", "read 200 \x1b[31m"]
    swarm.restore("fx")
    assert [(one.removed_ms, one.total.tokens) for one in swarm.usage(everything=True).agents] == [(0, 1050)]


def test_more_agents_than_a_role_allows_are_refused_before_anything_is_made(panes: PaneLab) -> None:
    role(panes, agents=2)
    before = panes.fingerprint()
    for verb in ("start", "create"):
        with pytest.raises(SwarmError) as raised:
            getattr(panes.swarm, verb)("fx", "builder:3", **({"program": "demo"} if verb == "start" else {}))
        assert raised.value.code == "LIMIT_REACHED"
        assert "role builder allows 2 agents" in str(raised.value)
        assert panes.fingerprint() == before
    panes.env["SWARM_LIMITS_AGENTS"] = "1"
    panes.swarm.create("fx", "builder")  # the role's own limit wins
    panes.swarm.create("fx", "second=builder,developer")
    with pytest.raises(SwarmError, match="and has 2; 1 is asked for"):
        panes.swarm.create("fx", "third=builder")
    with pytest.raises(SwarmError, match="role developer allows 1 agent in") as raised:
        panes.swarm.create("fx", "other=developer")
    assert raised.value.hint == "ask for fewer, or raise the setting limits.agents"  # its role says nothing


def test_the_demo_agent_keeps_a_record_and_other_commands_do_not(panes: PaneLab) -> None:
    panes.start("developer")
    panes.start("reviewer", session="two", command="/bin/cat")
    panes.until("developer", "idle")
    told = panes.swarm.watch_transcript("developer")
    assert [one.text for one in next(told)][:1] == ["demo agent: developer"]

    panes.type("developer", "say hello there")

    heard = [(one.who, one.text) for one in next(told)]
    if len(heard) < 2:
        heard += [(one.who, one.text) for one in next(told)]
    assert heard == [("user", "say hello there"), ("agent", "hello there")]
    with pytest.raises(NoRecord, match="its program is cat"):
        panes.swarm.transcript("reviewer")
    assert [one.recorded for one in panes.swarm.usage().agents] == [False, False]
