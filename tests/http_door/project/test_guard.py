"""The same hostile requests as for a served agent, on the paths of the project: none is obeyed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.hostile_http import PROMPT, Paths, Probe, is_refused, probes, unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.http_door.project.conftest import Project

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
LOOKS = ("/agents/{}", "/agents/{}/why", "/tasks/{}", "/tasks/{}/output", "/queues/{}")
CHANGES = ("/agents/{}/stop", "/tasks/{}/cancel", "/approvals/{}/allow", "/browsers/{}/revoke")
PROJECT = Paths(
    "/tasks",
    LOOKS,
    CHANGES,
    (
        *(path.format("x") for path in LOOKS),
        *("/agents", "/sessions", "/usage", "/approvals", "/messages", "/tasks", "/history", "/queues", "/events"),
        *("/browsers", "/openapi.json", "/none", "/status/"),
    ),
    (
        *(path.format("x") for path in CHANGES),
        *("/tasks", "/messages", "/queues/x/take", "/queues/x/tasks", "/codes", "/shutdown", "/status"),
    ),
)
#: Bodies for paths that a served agent has not.
BODIES = {
    "/messages": (
        {"to": [], "body": "x"},
        {"to": "user", "body": "x"},
        {"to": ["user"]},
        {"to": ["../x"], "body": "x"},
    ),
    "/queues/work/tasks": ({"text": ""}, {"text": "x", "id": "../x"}, {"text": "x", "after": ["\u0661"]}, {"text": 1}),
    "/queues/work/take": ({"limit": 0}, {"lease_seconds": 1e300}, {"wait_seconds": -1}, {"limit": 10**30}),
    "/queues/work/done": ({"ids": []}, {"ids": ["x" * 65]}, {"ids": ["a\nb"]}, {}),
    "/browsers": ({"code": ""}, {"code": "x" * 101}, {"code": 1}, {}),
}


def _more() -> Iterator[Probe]:
    for path, bodies in BODIES.items():
        yield from (Probe(f"{path} {body}", path=path, body=json.dumps(body).encode()) for body in bodies)
    for after in ("-1", "9223372036854775808", "1e3", "%0a", "0x1", "1&after=2"):
        yield Probe(f"after {after}", "GET", f"/events?after={after}", body=b"")
    for number in ("-1", "x", "9" * 20, "1,2"):
        headers = (("Accept", "text/event-stream"), ("Last-Event-ID", number))
        yield Probe(f"last {number}", "GET", "/events", headers, body=b"")
    for grant in ("x" * 300, "é", "a:b"):
        yield Probe(f"grant {grant[:9]}", path="/codes", headers=(("Swarm-Grant", grant),), body=b"")
    for path in ("/agents/x/mcp", "/agents/..%2fx/mcp"):
        yield Probe(f"MCP {path}", path=path)
    for inbox in ("../x", "a/b", "%00", "x" * 101):
        yield Probe(f"inbox {inbox[:9]}", "GET", f"/messages?inbox={inbox}", body=b"")


def test_no_hostile_request_is_obeyed_and_none_learns_anything(project: Project) -> None:
    """S1, figure 6: by TCP, and those about form by the socket too."""
    project.configure()
    project.root.mkdir(mode=0o700)
    (project.root / "config.yaml").write_text("agents:\n  program: demo\n")
    project.start()
    token = project.token
    asked = [*probes(PROJECT), *unknown(PROJECT), *_more()]
    assert len({one.what + one.method for one in asked}) >= 150
    wrong: list[str] = []
    heard = b""
    for private in (False, True):
        for one in [*probes(PROJECT), *_more()] if private else asked:
            if private and one.host == "localhost":
                continue  # the socket has no other name
            answer = project.raw(one.data(project.port, token), private=private)
            heard += answer
            if not is_refused(one, answer):
                wrong.append(f"{one.what} ({'socket' if private else 'tcp'}): {answer[:200]!r}")
    assert not wrong, "\n".join(wrong)

    assert project.lab.swarm.tasks.list(finished=True) == ()
    assert project.lab.swarm.queues() == ()
    assert project.lab.swarm.messages.inbox("user") == ()
    assert project.begun() == []
    assert project.status()["state"] == "idle"
    log = (project.root / "server/server.log").read_bytes()
    project.end()
    for place, text in (("answers", heard), ("log", log), ("stderr", project.said)):
        for secret in (b"Traceback", token.encode(), PROMPT.encode()):
            assert secret not in text, (place, secret)


def test_every_answer_says_that_no_page_may_have_it(project: Project) -> None:
    project.start()
    stream = Probe("", "GET", "/events", (("Accept", "text/event-stream"),), body=b"")
    for one in (Probe("", "GET", "/status", body=b"", token="none"), Probe("", "GET", "/none", body=b""), stream):
        head = project.raw(one.data(project.port, project.token), timeout=2).lower().partition(b"\r\n\r\n")[0]
        for line in (b"cache-control: no-store", b"x-content-type-options: nosniff", b"x-frame-options: deny"):
            assert line in head, one
        assert b"server:" not in head
        assert b"access-control" not in head
