"""Who may ask: every rule as requests that break it, by TCP and by the private socket. None is obeyed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from swarm.testing.terminal import wait_for
from tests.support.hostile_http import AGENT, PROMPT, Probe, is_refused, probes, unknown

if TYPE_CHECKING:
    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def test_no_hostile_request_is_obeyed_and_none_learns_anything(served: Served) -> None:
    """S1, figure 6: at least 150 by TCP, and those about form by the socket too."""
    served.start()
    token = served.token
    asked = [*probes(AGENT), *unknown(AGENT)]
    assert len({one.what + one.method for one in asked}) >= 150
    wrong: list[str] = []
    heard = b""
    for private in (False, True):
        for one in probes(AGENT) if private else asked:
            if private and one.host == "localhost":
                continue  # the socket has no other name
            answer = served.raw(one.data(served.port, token), private=private)
            heard += answer
            if not is_refused(one, answer):
                wrong.append(f"{one.what} ({'socket' if private else 'tcp'}): {answer[:200]!r}")
    assert not wrong, "\n".join(wrong)

    assert served.lab.swarm.tasks.list(finished=True) == ()
    assert served.begun() == []
    assert served.status()["state"] == "idle"
    log = (served.root / "agents/rev/agent.log").read_bytes()
    served.end()
    for place, text in (("answers", heard), ("log", log), ("stderr", served.said)):
        for secret in (b"Traceback", token.encode(), PROMPT.encode()):
            assert secret not in text, (place, secret)


def test_every_answer_says_that_no_page_may_have_it(served: Served) -> None:
    served.start()
    for path, token in (("/status", "none"), ("/history", "right"), ("/none", "none")):
        answer = served.raw(Probe("", "GET", path, body=b"", token=token).data(served.port, served.token)).lower()
        head = answer.partition(b"\r\n\r\n")[0]
        for line in (b"cache-control: no-store", b"x-content-type-options: nosniff", b"x-frame-options: deny"):
            assert line in head, path
        assert b"server:" not in head
        assert b"access-control" not in head
    silent = served.raw(Probe("", "HEAD", "/status", body=b"").data(served.port, served.token))
    assert silent.partition(b"\r\n\r\n")[2] == b""


def test_wrong_tokens_are_counted_by_who_names_them(served: Served) -> None:
    """S4: after some, even the right one is not heard from there; by the socket it is, and so is /status."""
    served.start()
    codes = [served.ask("GET", "/history", token="wrong" * 10)[0] for _ in range(60)]
    assert codes[0] == 401
    assert codes[-1] == 429
    assert set(codes) == {401, 429}
    assert served.ask("GET", "/history")[0] == 429
    assert served.status()["state"] == "idle"
    whole = Probe("", "GET", "/history", body=b"", token="none").data(served.port, served.token)
    assert served.raw(whole, private=True).startswith(b"HTTP/1.1 200 ")


def test_what_a_task_is_about_is_in_no_log(served: Served) -> None:
    served.start()
    task_id = served.submit(f"{PROMPT}\n\x1b[31m\u202e", env={"HARMLESS": "a-value-that-nobody-may-see"})
    served.until(task_id, "completed")
    wait_for(lambda: served.status()["state"] == "idle", "the agent idle again")
    log = (served.root / "agents/rev/agent.log").read_text()
    assert task_id in log
    served.end()
    for text in (log, served.said.decode()):
        assert PROMPT not in text
        assert "a-value-that" not in text
