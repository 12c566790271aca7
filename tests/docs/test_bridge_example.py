"""The chat bridge of the documents, with a chat service of the tests' own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.panes import QUICK
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "examples/chat_bridge.py"


class Chat(BaseHTTPRequestHandler):
    """Two people write, one of them a stranger; what the bridge says is kept."""

    said: list[str]
    waiting = threading.Event()

    def do_POST(self) -> None:
        data = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        result: list[dict[str, Any]] = []
        if self.path.endswith("sendMessage"):
            type(self).said.append(data["text"])
        elif data["offset"] == "1":
            people = ((7, "from a friend"), (8, "from a stranger"))
            result = [
                {"update_id": n, "message": {"from": {"id": who}, "text": text}}
                for n, (who, text) in enumerate(people, 1)
            ]
        else:
            type(self).waiting.wait(30)
        body = json.dumps({"ok": True, "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def test_the_page_shows_the_example() -> None:
    assert EXAMPLE.read_text() in (DOCS / "bridges.md").read_text()


def test_the_chat_bridge(panes: PaneLab) -> None:
    Chat.said = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    panes.env |= {"CHAT_API": f"http://127.0.0.1:{server.server_port}/bot", "CHAT_ID": "1", "CHAT_ALLOWED": "7"}
    file = Path(panes.env["HOME"], ".swarm/bridges/chat.yaml")
    file.parent.mkdir(parents=True)
    command = json.dumps([sys.executable, str(EXAMPLE)])
    file.write_text(f"command: {command}\nenv: [CHAT_API, CHAT_ID, CHAT_ALLOWED]\nto: developer\n")
    panes.start("developer", task=QUICK)
    panes.all_until("idle")
    try:
        panes.swarm.bridges.start("chat")
        panes.swarm.send("user", "hello chat")
        wait_for(lambda: Chat.said == ["user: hello chat"], "the message in the chat")
        wait_for(lambda: panes.swarm.messages.history("developer"), "the friend's message")
    finally:
        panes.swarm.bridges.stop("chat")
        Chat.waiting.set()
        server.shutdown()
        server.server_close()
    assert [one.message.body for one in panes.swarm.messages.history("developer")] == ["from a friend"]


def test_it_starts_for_nobody() -> None:
    env = {**os.environ, "CHAT_API": "http://127.0.0.1:1", "CHAT_ID": "1", "CHAT_ALLOWED": " "}
    done = subprocess.run([sys.executable, str(EXAMPLE)], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "CHAT_ALLOWED names nobody\n")
