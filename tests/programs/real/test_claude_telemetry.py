"""Claude Code sends its measurements where swarm's settings say, with the agent's name on them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.api import say
from swarm.testing.terminal import wait_for
from tests.support.agents import DEADLINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.agents import ClaudeLab

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent: (path, authorization, content)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[tuple[str, str, dict[str, Any]]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, self.headers.get("authorization", ""), body))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    threading.Thread(target=made.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()


def test_measurements_arrive_with_the_agents_name_and_without_prompts(claude: ClaudeLab, collector: Collector) -> None:
    claude.at_home("headers", "Authorization: Bearer of good news\n")
    (claude.home / "headers").chmod(0o600)
    claude.env |= {
        "SWARM_TELEMETRY_ENABLED": "true",
        "SWARM_TELEMETRY_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "SWARM_TELEMETRY_PROTOCOL": "http/json",
        "SWARM_TELEMETRY_HEADERS_FILE": "~/headers",
        "OTEL_METRIC_EXPORT_INTERVAL": "1000",
        "OTEL_LOGS_EXPORT_INTERVAL": "1000",
    }
    claude.role("builder", "You build.")
    claude.api.script("paint the hull", say("It is green now."))
    claude.begin("claude", "builder", "paint the hull")
    claude.shows("builder", "It is green now.")

    paths = {"/v1/metrics", "/v1/logs"}
    wait_for(lambda: {path for path, _, _ in collector.got} >= paths, f"measurements: {collector.got}", DEADLINE)

    def prompted() -> bool:
        return any("user_prompt" in json.dumps(body) for _, _, body in collector.got)

    wait_for(prompted, "the event of the prompt", DEADLINE)
    assert {told for _, told, _ in collector.got} == {"Bearer of good news"}
    for path, _, body in collector.got:
        (one,) = body["resourceMetrics" if path == "/v1/metrics" else "resourceLogs"]
        named = {pair["key"]: pair["value"].get("stringValue") for pair in one["resource"]["attributes"]}
        assert (named["swarm.session"], named["swarm.agent"], named["swarm.role"]) == ("fx", "builder", "builder")
        assert named["swarm.repository"] == "my project"
    assert "paint the hull" not in json.dumps(collector.got)
