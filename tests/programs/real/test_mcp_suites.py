"""The official programs against the door: the conformance suite of the protocol, and the Inspector."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.api import serving
from swarm.testing.terminal import wait_for
from tests.support.agents import cache, lacking
from tests.support.puppet import Puppets

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.agents, pytest.mark.story, pytest.mark.timeout(300)]
#: The checks that apply to a server of tools alone; the others ask for the suite's own tools, resources and prompts.
CHECKS = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
#: The suite names no token: this adds it, below the agent, and says its own Host and Origin as the server's.
PROXY = """
import http.client, http.server, sys
port, token = int(sys.argv[1]), sys.argv[2]

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def pass_on(self):
        here = f"{self.server.server_port}"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name: value.replace(here, str(port)) if name.lower() in ("host", "origin") else value
                   for name, value in self.headers.items() if name.lower() != "connection"}
        headers["Authorization"] = f"Bearer {token}"
        one = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        one.request(self.command, self.path, body, headers)
        answer = one.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        while piece := answer.read1(65536):
            self.wfile.write(piece)
            self.wfile.flush()
        self.close_connection = True

    do_GET = do_POST = do_DELETE = pass_on

    def log_message(self, *words):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


@pytest.fixture
def puppets(panes: PaneLab) -> Puppets:
    """Give an agent below which the programs run; they are never left out in CI."""
    if lacking():
        if os.environ.get("SWARM_REQUIRE_AGENTS"):
            pytest.fail(lacking())
        pytest.skip(lacking())
    made = Puppets(panes)
    made.start("fx", "developer")
    return made


@pytest.fixture
def port(puppets: Puppets) -> Iterator[int]:
    """Give the port of a server of the repository."""
    import subprocess

    lab = puppets.lab
    process = subprocess.Popen([sys.executable, "-P", "-m", "swarm", "serve"], cwd=lab.root, env=lab.env)
    try:
        wait_for(lambda: serving.status(lab.root) is not None, "the server", 60)
        now = serving.status(lab.root)
        assert now is not None
        yield now.port
    finally:
        process.terminate()
        assert process.wait(30) == 0


def token(puppets: Puppets) -> str:
    return (puppets.lab.run("developer") / "mcp.token").read_text()


def test_the_conformance_suite(puppets: Puppets, port: int) -> None:
    proxy = puppets.run("developer@fx", [sys.executable, "-c", PROXY, str(port), token(puppets)])
    try:
        url = f"http://127.0.0.1:{int(proxy.stdout.readline())}/agents/developer/mcp"
        for check in CHECKS:
            argv = [str(cache() / "bin/conformance"), "server", "--url", url, "--scenario", check]
            done = puppets.done("developer@fx", argv)
            assert done.returncode == 0, (check, done.stdout, done.stderr)
            assert "0 failed" in done.stdout + done.stderr, (check, done.stdout, done.stderr)
    finally:
        os.kill(proxy.pid, 15)
        proxy.close()


def test_the_inspector_by_http(puppets: Puppets, port: int) -> None:
    url = f"http://127.0.0.1:{port}/agents/developer/mcp"
    how = ["--transport", "http", "--server-url", url, "--header", f"Authorization: Bearer {token(puppets)}"]
    offers_and_answers(puppets, how, behind=True)


def test_the_inspector_by_stdio(puppets: Puppets) -> None:
    offers_and_answers(puppets, ["swarm", "-C", str(puppets.lab.root), "mcp", "--agent", "developer"], behind=False)


def offers_and_answers(puppets: Puppets, how: list[str], *, behind: bool) -> None:
    """Look at the tools and call one, rightly and wrongly."""
    program = str(cache() / "bin/mcp-inspector")

    def run(*words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
        argv = [program, "--cli", *words, *how] if behind else [program, "--cli", *how, *words]
        done = puppets.done("developer@fx", argv)
        found: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip().startswith("{") else {}
        return done, found

    done, listed = run("--method", "tools/list")
    assert done.returncode == 0, done
    assert "report" in [one["name"] for one in listed["tools"]]
    done, said = run("--method", "tools/call", "--tool-name", "report", "--tool-arg", "message=hello")
    assert done.returncode == 0, done
    assert said["structuredContent"]["sent"][0]["to"] == "user"
    assert [one.message.body for one in puppets.lab.swarm.messages.inbox("user")] == ["hello"]
    done, said = run("--method", "tools/call", "--tool-name", "send_message", "--tool-arg", "to=nobody", "body=x")
    assert said["isError"] is True, done
    assert said["structuredContent"]["error"]["code"] == "AGENT_NOT_FOUND"
