"""The endpoint by HTTP: token, process, Host, Origin, slow peers, and the tools behind it."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.mcp_door.conftest import Serving
    from tests.support.puppet import Puppets

pytestmark = pytest.mark.integration
#: Posts what it reads, with the headers that it reads, and prints status and body.
CLIENT = """
import http.client, json, sys
asked = json.load(sys.stdin)
one = http.client.HTTPConnection("127.0.0.1", asked["port"], timeout=30)
for request in asked["requests"]:
    one.request(request.get("method", "POST"), request["path"], request.get("body"), request["headers"])
    answer = one.getresponse()
    print(json.dumps([answer.status, answer.read().decode()]), flush=True)
"""


def token(puppets: Puppets, agent: str) -> str:
    return (puppets.lab.run(agent) / "mcp.token").read_text()


def request(port: int, name: str, shown: str, **changes: Any) -> dict[str, Any]:
    """Return a call of ``report``."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "report", "arguments": {"message": "x"}},
    }
    headers = {
        "Host": f"127.0.0.1:{port}",
        "Authorization": f"Bearer {shown}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    path = changes.pop("path", f"/agents/{name}/mcp")
    for key, value in changes.items():
        headers = {k: v for k, v in headers.items() if k.lower() != key.replace("_", "-").lower()}
        if value is not None:
            headers[key.replace("_", "-")] = value
    return {"path": path, "headers": headers, "body": json.dumps(body)}


def answers(puppets: Puppets, agent: str, port: int, *requests: dict[str, Any]) -> list[tuple[int, str]]:
    """Make requests from a process of an agent."""
    made = puppets.run(agent, [sys.executable, "-c", CLIENT])
    made.stdin.write(json.dumps({"port": port, "requests": requests}).encode())
    made.stdin.close()
    out, err = made.stdout.read().decode(), made.stderr.read().decode()
    assert made.wait() == 0, err
    made.close()
    return [tuple(json.loads(line)) for line in out.splitlines()]


def reports(puppets: Puppets) -> list[str]:
    return [one.message.sender for one in puppets.lab.swarm.messages.inbox("user")]


def test_token_and_process_have_to_be_of_the_named_agent(puppets: Puppets, server: Serving) -> None:
    """TREE-12: the right token from another agent's process, a wrong one, one of another agent: refused and logged."""
    port = server.start()
    mine, other = token(puppets, "developer"), token(puppets, "reviewer")
    assert mine != other
    good = request(port, "developer", mine)
    ((status, body),) = answers(puppets, "developer@fx", port, good)
    assert status == 200, body
    assert reports(puppets) == ["developer@fx"]

    stolen = answers(puppets, "reviewer@fx", port, good)
    assert [status for status, _ in stolen] == [403]
    assert "a process of agent reviewer@fx" in stolen[0][1]
    refused = [
        request(port, "developer", other),
        request(port, "reviewer", mine),
        request(port, "developer", "0" * 64),
        request(port, "developer", ""),
        request(port, "nobody", mine),
        request(port, "developer", mine, Authorization=None),
        request(port, "developer", mine, Authorization=f"Basic {mine}"),
    ]
    for one in refused:
        ((status, body),) = answers(puppets, "developer@fx", port, one)
        assert status in (401, 403), (one, body)
    assert reports(puppets) == ["developer@fx"]
    log = (puppets.lab.root / ".swarm/server/refused.log").read_text()
    assert "its token came from a process of agent reviewer@fx" in log
    assert mine not in log


def test_the_token_of_an_earlier_launch_is_worth_nothing(puppets: Puppets, server: Serving) -> None:
    port = server.start()
    before = token(puppets, "developer")
    puppets.lab.swarm.restart("developer", "fx")
    puppets.lab.until("developer", "unknown", "working", "idle", "starting")
    after = token(puppets, "developer")
    assert before != after
    found = answers(puppets, "developer@fx", port, request(port, "developer", before))
    assert [status for status, _ in found] == [403]
    found = answers(puppets, "developer@fx", port, request(port, "developer", after))
    assert [status for status, _ in found] == [200]


def test_no_web_page_and_no_other_host_gets_through(puppets: Puppets, server: Serving) -> None:
    port = server.start()
    mine = token(puppets, "developer")
    wrong = [
        ({"Host": "evil.example"}, 421),
        ({"Host": f"evil.example:{port}"}, 421),
        ({"Host": f"127.0.0.1:{port}.evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"http://127.0.0.1:{port + 1}"}, 403),
        ({"path": f"/agents/developer/mcp?token={mine}"}, 404),
        ({"path": "/agents/../mcp"}, 401),  # what is no door of an agent is the project's, with a token of its own
        ({"path": "/agents/developer/mcp/"}, 401),
        ({"path": "/"}, 401),
        ({"Content_Type": "text/plain"}, 400),
    ]
    for change, wanted in wrong:
        ((status, body),) = answers(puppets, "developer@fx", port, request(port, "developer", mine, **change))
        assert status == wanted, (change, body)
    assert reports(puppets) == []
    fitting = request(port, "developer", mine, Origin=f"http://localhost:{port}", Host=f"localhost:{port}")
    assert answers(puppets, "developer@fx", port, fitting)[0][0] == 200


def test_a_peer_that_is_slow_is_let_go(puppets: Puppets, server: Serving) -> None:
    port = server.start()
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as silent, socket.create_connection(("127.0.0.1", port)) as half:
        half.sendall(b"POST /agents/developer/mcp HTTP/1.1\r\nHost: ")
        for one in (silent, half):
            one.settimeout(30)
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(100) == b""
    assert time.monotonic() - began < 25
