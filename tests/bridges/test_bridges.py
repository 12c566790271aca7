"""Bridges: what goes out, what comes in, and what a kill leaves."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import SwarmError
from swarm.bridges import definition
from swarm.bridges.ledger import Ledger
from swarm.testing.panes import QUICK
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from swarm import BridgeStatus
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(150)]

#: Writes down what it is told and how often it was started; acknowledges, and says what stands in a file.
COMMAND = """
import json, os, pathlib, sys, time
top = pathlib.Path(sys.argv[1])
with open(top / "starts", "a") as file:
    print(os.getpid(), file=file)
print("noise on stderr", file=sys.stderr)
if (top / "say").exists():
    for line in (top / "say").read_text().splitlines():
        print(line, flush=True)
for text in sys.stdin:
    with open(top / "heard", "a") as file:
        file.write(text)
    line = json.loads(text)
    if line["type"] == "message" and (top / "acks").exists():
        print(json.dumps({"v": 1, "type": "ack", "id": line["id"]}), flush=True)
    if line["type"] == "approval" and (top / "allows").exists():
        answer = {"v": 1, "type": "answer", "id": line["id"], "allow": True, "code": line.get("code")}
        print(json.dumps(answer), flush=True)
        print(json.dumps(answer), flush=True)
    if line["type"] == "message" and line["body"] == "end":
        sys.exit(3)
"""


class Phone:
    """A bridge with a command of the tests' own."""

    def __init__(self, lab: PaneLab, top: Path, more: str = "") -> None:
        self.lab, self.top = lab, top
        top.mkdir()
        (top / "command.py").write_text(COMMAND)
        (top / "acks").touch()
        self.define(f"command: {json.dumps([sys.executable, str(top / 'command.py'), str(top)])}\n{more}")

    def define(self, text: str, name: str = "phone") -> None:
        file = Path(self.lab.env["HOME"], ".swarm/bridges", f"{name}.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def heard(self, kind: str = "message") -> list[dict[str, Any]]:
        file = self.top / "heard"
        lines = file.read_text().splitlines(keepends=True) if file.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return [line for line in found if line["type"] == kind]

    def bodies(self) -> list[str]:
        return [line["body"] for line in self.heard()]

    def starts(self) -> list[int]:
        file = self.top / "starts"
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def status(self) -> BridgeStatus:
        (found,) = (one for one in self.lab.swarm.bridges() if one.name == "phone")
        return found


@pytest.fixture
def phone(panes: PaneLab, tmp_path: Path) -> Iterator[Phone]:
    made = Phone(panes, tmp_path / "phone")
    try:
        yield made
    finally:
        for one in panes.swarm.bridges():
            panes.swarm.bridges.stop(one.name)


def say(phone: Phone, *lines: dict[str, Any]) -> None:
    (phone.top / "say").write_text("".join(json.dumps({"v": 1, **line}) + "\n" for line in lines))


def test_messages_go_out_once_and_old_ones_never(phone: Phone) -> None:
    send = phone.lab.swarm.send
    send("user", "before it was there")
    assert phone.status()[:3] == ("phone", "stopped", "never started here")

    started = phone.lab.swarm.bridges.start("phone")
    send("user", "one", subject="s")
    send("user", "two", priority="high")
    wait_for(lambda: len(phone.bodies()) == 2, "both messages")
    wait_for(lambda: phone.status().state == "up", "the state")
    assert phone.status().pid == started.pid

    phone.lab.swarm.bridges.stop("phone")
    assert phone.status().state == "stopped"
    send("user", "while it was down")
    phone.lab.swarm.bridges.start("phone")
    wait_for(lambda: len(phone.bodies()) == 3, "the third")
    assert sorted(phone.bodies()) == ["one", "two", "while it was down"]
    assert len(phone.lab.swarm.messages.inbox("user")) == 4  # a bridge takes nothing out of the inbox
    line = next(one for one in phone.heard() if one["body"] == "one")
    assert (line["v"], line["sender"], line["subject"]) == (1, "user", "s")


def test_a_message_to_a_bridge_by_its_name_reaches_this_bridge_alone(phone: Phone) -> None:
    """POD-12: a bridge has a box of its own; an agent of the same name comes first."""
    messages = phone.lab.swarm.messages
    with pytest.raises(SwarmError) as raised:
        phone.lab.swarm.send("phone", "it never ran")
    assert raised.value.code == "AGENT_NOT_FOUND"
    phone.define("command: [cat]\n", "other")
    for name in ("phone", "other"):
        phone.lab.swarm.bridges.start(name)
    assert phone.lab.swarm.send("Phone", "hello")[0][1:3] == ("bridge.phone", "")
    wait_for(lambda: phone.heard("acked"), "the acknowledgement")
    assert [(line["body"], line["to"]) for line in phone.heard()] == [("hello", "bridge.phone")]
    assert (messages.inbox("phone"), messages.history("user"), messages.history("other")) == ((), (), ())
    (kept,) = messages.history("bridge.phone")
    assert kept.state == "acked"
    assert messages.get(kept.message.id)[0].events[-1].evidence == "acknowledged by bridge phone"

    phone.lab.swarm.bridges.stop("phone")
    (sent,) = phone.lab.swarm.send("phone", "while it was down", ttl_ms=3_600_000)
    assert sent.note == "it does not run"
    role = phone.lab.root / ".swarm/roles/phone.yaml"
    role.parent.mkdir(exist_ok=True)
    role.write_text("name: phone\ninstructions: Ring.\n")
    phone.lab.swarm.create("fx", "phone")
    assert phone.lab.swarm.send("phone", "for the agent")[0].to == "phone@fx"
    phone.lab.swarm.send("bridge.phone", "for the bridge")
    phone.lab.swarm.bridges.start("phone")
    wait_for(lambda: len(phone.heard("acked")) == 3, "the others")
    assert sorted(phone.bodies()) == ["for the bridge", "hello", "while it was down"]


def test_an_answer_to_a_message_for_the_bridge_goes_to_its_sender(phone: Phone) -> None:
    phone.lab.env["SWARM_AGENTS_NUDGE"] = "never"
    phone.lab.swarm.bridges.start("phone")
    phone.lab.start("developer,reviewer", program="shell", task="")
    phone.lab.type("reviewer", f"{shlex.quote(sys.executable)} -P -m swarm send phone 'may I?'")
    wait_for(lambda: phone.heard("acked"), "the question")
    phone.lab.swarm.bridges.stop("phone")
    say(phone, {"type": "message", "id": "1", "body": "you may"})

    phone.lab.swarm.bridges.start("phone")

    wait_for(lambda: phone.lab.swarm.messages.history("reviewer"), "the answer")
    assert phone.lab.swarm.messages.history("reviewer")[0].message.body == "you may"


def test_what_is_not_acknowledged_comes_again_whoever_is_killed(phone: Phone) -> None:
    (phone.top / "acks").unlink()
    pid = phone.lab.swarm.bridges.start("phone").pid
    phone.lab.swarm.send("user", "keep me")
    wait_for(lambda: phone.bodies() == ["keep me"], "the message")

    os.kill(phone.starts()[-1], signal.SIGKILL)  # the command
    wait_for(lambda: phone.bodies() == ["keep me"] * 2, "it again")
    assert phone.status().pid == pid
    os.kill(pid, signal.SIGKILL)  # the supervisor
    wait_for(lambda: phone.status().state == "stopped", "its end")
    assert phone.status().detail == "its supervisor ended"

    (phone.top / "acks").touch()
    phone.lab.swarm.bridges.start("phone")
    wait_for(lambda: phone.bodies() == ["keep me"] * 3, "it for the third time")
    wait_for(lambda: phone.heard("acked"), "the acknowledgement")
    phone.lab.swarm.bridges.stop("phone")
    phone.lab.swarm.bridges.start("phone")
    phone.lab.swarm.send("user", "next")
    wait_for(lambda: "next" in phone.bodies(), "the next")
    assert phone.bodies() == ["keep me"] * 3 + ["next"]


def test_it_is_started_again_with_longer_and_longer_pauses(phone: Phone) -> None:
    phone.lab.swarm.bridges.start("phone")
    phone.lab.swarm.send("user", "end")

    wait_for(lambda: phone.status().state == "down", "its end")
    ended = "it ended with exit status 3: noise on stderr; it is started again in"
    assert phone.status().detail in {f"{ended} {n} s" for n in (1, 2)}
    wait_for(lambda: len(phone.starts()) >= 2, "the second start")
    assert phone.bodies().count("end") in (1, 2)  # whether its acknowledgement came before its end


def test_a_command_that_is_missing(phone: Phone) -> None:
    phone.define("command: [/nowhere/bridge]\n")
    phone.lab.swarm.bridges.start("phone")

    wait_for(lambda: phone.status().state == "down", "the trouble")
    assert phone.status().detail.startswith("cannot start /nowhere/bridge: No such file")


def test_a_command_that_repeats_what_it_hears_starts_no_endless_talk(phone: Phone) -> None:
    phone.lab.swarm.create("fx", "developer")
    heard = phone.top / "heard"
    phone.define(f"command: [tee, -a, {heard}]\nto: developer\n")
    phone.lab.swarm.bridges.start("phone")
    phone.lab.swarm.send("user", "one")
    wait_for(lambda: phone.bodies() == ["one"], "the first")
    phone.lab.swarm.send("user", "two")
    wait_for(lambda: phone.bodies() == ["one", "two"], "the second")

    assert phone.heard("error") == []
    assert phone.lab.swarm.messages.history("developer") == ()


def test_a_command_that_writes_nonsense_is_ended(phone: Phone) -> None:
    phone.define("command: ['yes']\n")
    phone.lab.swarm.bridges.start("phone")

    wait_for(lambda: phone.status().state == "down", "its end")
    assert "that mean nothing" in phone.status().detail


def test_there_is_one_of_each(phone: Phone) -> None:
    phone.lab.swarm.bridges.start("phone")

    with pytest.raises(SwarmError) as raised:
        phone.lab.swarm.bridges.start("phone")
    assert raised.value.code == "BRIDGE_RUNS"
    assert phone.lab.cli("bridge", "run", "phone").returncode == 3


def test_lines_become_messages_and_the_same_line_only_once(phone: Phone) -> None:
    phone.lab.start("developer,reviewer", task=QUICK)
    phone.lab.all_until("idle")
    one = {"type": "message", "id": "77 a", "to": "developer", "body": "from outside"}
    say(phone, one, one, {"type": "message", "id": "78", "body": "nobody wrote yet"}, {"type": "nonsense"})
    phone.lab.swarm.bridges.start("phone")

    wait_for(lambda: len(phone.heard("sent")) == 2 and len(phone.heard("error")) >= 2, "the answers")

    found = [one.message for one in phone.lab.swarm.messages.history("developer")]
    assert [(m.sender, m.body, m.metadata["label"], m.metadata["via"]) for m in found] == [
        ("user", "from outside", "bridge phone", "script")
    ]
    assert {line["code"] for line in phone.heard("error")} == {"USAGE", "LINE"}


def test_an_answer_goes_to_the_one_who_wrote_last(phone: Phone) -> None:
    phone.lab.env["SWARM_AGENTS_NUDGE"] = "never"
    phone.lab.start("developer,reviewer", program="shell", task="")
    phone.lab.type("reviewer", f"{shlex.quote(sys.executable)} -P -m swarm send user 'may I?'")
    wait_for(lambda: phone.lab.swarm.messages.history("user"), "the question")
    say(phone, {"type": "message", "id": "1", "body": "you may"})

    phone.lab.swarm.bridges.start("phone")

    wait_for(lambda: phone.lab.swarm.messages.history("reviewer"), "the answer")
    (told,) = phone.lab.swarm.messages.history("reviewer")
    assert told.message.body == "you may"
    assert told.message.in_reply_to == phone.lab.swarm.messages.history("user")[0].message.id


@pytest.mark.parametrize("may", [True, False])
def test_requests_are_answered_with_the_right_and_the_code_once(phone: Phone, *, may: bool) -> None:
    if may:
        phone.define((Path(phone.lab.env["HOME"], ".swarm/bridges/phone.yaml")).read_text() + "may: [approve]\n")
    (phone.top / "allows").touch()
    phone.lab.swarm.create("fx", "developer")
    asks = subprocess.Popen(
        [sys.executable, "-P", "-m", "swarm", "permission-request", "--agent", "developer@fx"],
        cwd=phone.lab.root,
        env=phone.lab.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert asks.stdin is not None
    assert asks.stdout is not None
    asks.stdin.write(json.dumps({"tool_name": "Bash", "tool_input": {"command": "make"}}).encode())
    asks.stdin.close()
    wait_for(phone.lab.swarm.approvals, "the request")
    phone.lab.swarm.bridges.start("phone")

    wait_for(lambda: len(phone.heard("error")) + len(phone.heard("answered")) >= 2, "both answers")

    (line,) = phone.heard("approval")
    assert ("code" in line) == may
    assert line["sender"] == "developer@fx"
    assert len(phone.heard("answered")) == (1 if may else 0)
    assert all(problem["code"] == "USAGE" for problem in phone.heard("error"))
    (asked,) = phone.lab.swarm.approvals(everything=True)
    assert (asked.answer.by if asked.answer else "") == ("bridge:phone" if may else "")
    if not may:
        asks.kill()
    assert (b'"allow"' in asks.stdout.read()) == may
    asks.stdout.close()
    asks.wait(60)


def test_a_wrong_code_counts_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.json")
    code = ledger.code_of("abcdef")

    assert not ledger.use("abcdef", code + "x")
    assert not ledger.use("other", code)
    assert not ledger.use("other", "")
    assert Ledger(tmp_path / "ledger.json").code_of("abcdef") == code
    assert ledger.use("abcdef", code)
    assert not ledger.use("abcdef", code)
    assert not Ledger(tmp_path / "ledger.json").use("abcdef", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("command: []\n", "phone.yaml"),
        ("kind: desktop\ncommand: [x]\n", "has one of its own"),
        ("kind: webhook\n", "url_env"),
        ("command: [x]\nmay: [everything]\n", "phone.yaml:2"),
        ("command: [x]\nmya: [approve]\n", "phone.yaml:2"),
        ("command: [x\n", "phone.yaml"),
    ],
)
def test_a_wrong_definition_is_told_with_its_place(phone: Phone, text: str, words: str) -> None:
    phone.define(text)

    done = phone.lab.cli("bridge", "start", "phone")

    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert phone.lab.cli("bridge", "list").returncode == 1
    assert phone.status().state == "refused"
    phone.define("command: ['true']\n")


@pytest.mark.parametrize("kind", ["desktop", "webhook", "command"])
def test_a_new_file_is_a_definition_that_editors_complete_and_nothing_is_overwritten(phone: Phone, kind: str) -> None:
    done = phone.lab.cli("bridge", "init", "mine", "--kind", kind)

    path = Path(phone.lab.env["HOME"], ".swarm/bridges/mine.yaml")
    assert (done.returncode, done.stdout) == (0, "~/.swarm/bridges/mine.yaml written\n"), done.stderr
    line = path.read_text().splitlines()[0]
    assert line.startswith("# yaml-language-server: $schema=")
    assert (path.parent / line.partition("=")[2]).resolve() == path.parents[1] / "schema/bridge.json"
    assert json.loads((path.parents[1] / "schema/bridge.json").read_text())["title"] == "Bridge of swarm"
    assert definition.read(path).command
    assert path.stat().st_mode & 0o777 == 0o600
    before = path.read_text()
    again = phone.lab.cli("bridge", "init", "MINE" if kind == "desktop" else "mine")
    assert (again.returncode, "code: BRIDGE_EXISTS" in again.stderr) == (3, True)
    assert path.read_text() == before
    assert phone.lab.cli("bridge", "init", "x", "--kind", "fax").returncode == 2


def test_a_repository_defines_none(panes: PaneLab) -> None:
    folder = panes.root / ".swarm/bridges"
    folder.mkdir(parents=True, mode=0o700)
    (panes.root / ".swarm").chmod(0o700)
    (folder / "evil.yaml").write_text("command: [touch, /tmp/evil]\nmay: [approve]\n")

    assert panes.swarm.bridges() == ()
    done = panes.cli("bridge", "start", "evil")
    assert (done.returncode, "there is no bridge evil" in done.stderr) == (6, True)


def test_on_the_command_line(phone: Phone) -> None:
    assert phone.lab.cli("bridge", "start", "phone").stdout == "started bridge phone\n"
    wait_for(lambda: phone.status().state == "up", "it")
    assert phone.lab.cli("bridge").stdout.splitlines()[1].split()[:2] == ["phone", "up"]
    assert json.loads(phone.lab.cli("list", "--json").stdout)["data"]["bridges"][0]["state"] == "up"
    assert phone.lab.cli("bridge", "stop", "phone").stdout == "stopped bridge phone\n"
    assert phone.lab.cli("bridge", "start", "nobody").returncode == 6


# --- the two that ship ------------------------------------------------------------------------------


def test_desktop_notifications(phone: Phone, tmp_path: Path) -> None:
    """A notification service of the tests' own: what stands for it writes down its arguments, and fails at first."""
    programs, shown = tmp_path / "bin", tmp_path / "shown"
    programs.mkdir()
    script = f'[ -e {shown} ] || {{ : > {shown}; exit 1; }}\nprintf "%s|" "$@" >> {shown}; echo >> {shown}\n'
    (programs / "notify-send").write_text(f"#!/bin/sh\n{script}")
    (programs / "notify-send").chmod(0o755)
    phone.lab.env["PATH"] = f"{programs}:{phone.lab.env['PATH']}"
    phone.define("kind: desktop\n", "desktop")
    phone.lab.swarm.bridges.start("desktop")

    phone.lab.swarm.send("user", "-- a <b>bold</b>\nword")

    wait_for(lambda: shown.exists() and shown.read_text(), "the notification")
    assert shown.read_text() == "--app-name=swarm|--|user writes|-- a &lt;b>bold&lt;/b> word|\n"


class Hook(BaseHTTPRequestHandler):
    """Answers 500 at first, then 204."""

    got: list[tuple[dict[str, str], bytes]]
    fails: int

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        cls = type(self)
        cls.got.append((dict(self.headers), body))
        cls.fails -= 1
        self.send_response(500 if cls.fails >= 0 else 204)
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_webhook_tries_again_and_signs(phone: Phone, form: str) -> None:
    hook = Hook
    hook.got, hook.fails = [], 1
    server = HTTPServer(("127.0.0.1", 0), hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    phone.lab.env |= {"CHAT_URL": f"http://127.0.0.1:{server.server_port}/in", "CHAT_SECRET": "secret"}
    phone.define(f"kind: webhook\nurl_env: CHAT_URL\nsecret_env: CHAT_SECRET\nformat: {form}\n", "chat")
    try:
        phone.lab.swarm.bridges.start("chat")
        phone.lab.swarm.send("user", "hello", id="m-1")
        wait_for(lambda: len(hook.got) == 2, "both requests")
    finally:
        server.shutdown()
        server.server_close()

    assert hook.got[0][1] == hook.got[1][1]
    headers, body = hook.got[1]
    code = hmac.new(b"secret", f"{headers['X-Swarm-Time']}.".encode() + body, hashlib.sha256).hexdigest()
    assert headers["X-Swarm-Signature"] == f"sha256={code}"
    assert headers["X-Swarm-Id"] == "m-1"
    said = json.loads(body)
    assert said == {"text": "user: hello"} if form == "text" else (said["id"], said["body"]) == ("m-1", "hello")
    ledger = phone.lab.root / ".swarm/bridges/chat/ledger.json"
    wait_for(lambda: json.loads(ledger.read_text())["upto"], "the acknowledgement")


def test_a_secret_reaches_the_command_and_the_rest_of_the_environment_does_not(phone: Phone, tmp_path: Path) -> None:
    out = tmp_path / "env"
    phone.lab.env |= {"TOKEN": "t", "OTHER_SECRET": "o"}
    phone.define(f"command: [sh, -c, 'env > {out}.tmp; mv {out}.tmp {out}; cat']\nenv: [TOKEN]\n")
    phone.lab.swarm.bridges.start("phone")
    wait_for(out.exists, "its environment")

    lines = out.read_text().splitlines()
    assert "TOKEN=t" in lines
    assert "SWARM_BRIDGE=phone" in lines
    assert not [line for line in lines if "OTHER_SECRET" in line]


def test_stop_ends_what_the_command_started(phone: Phone, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    phone.define(f"command: [sh, -c, 'sleep 600 & echo $! > {pid}; cat']\n")
    phone.lab.swarm.bridges.start("phone")
    wait_for(lambda: pid.exists() and pid.read_text().strip(), "the sleeper")

    phone.lab.swarm.bridges.stop("phone")

    def gone() -> bool:
        done = subprocess.run(["ps", "-o", "stat=", "-p", pid.read_text().strip()], capture_output=True, check=False)
        return done.stdout.strip()[:1] in (b"", b"Z")

    wait_for(gone, "its end")
