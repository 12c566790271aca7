"""An agent that calls is that agent, by its process, whatever it shows: it may give work, and end its own alone."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.terminal import wait_for
from tests.support.puppet import Puppets

if TYPE_CHECKING:
    from tests.http_door.conftest import Served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
#: Makes requests with the token that lies in the swarm directory, by TCP and by the socket there.
CLIENT = """
import http.client, json, os, socket, sys
asked = json.load(sys.stdin)
for private in (False, True):
    for method, path, body in asked["requests"]:
        one = http.client.HTTPConnection("127.0.0.1", asked["port"], timeout=60)
        if private:
            one.sock = socket.socket(socket.AF_UNIX)
            os.chdir(asked["folder"])
            one.sock.connect("socket")
        headers = {"Authorization": "Bearer " + open(asked["token"]).read().strip(), "Content-Type": "application/json"}
        one.request(method, path, body and json.dumps(body), headers)
        answer = one.getresponse()
        print(json.dumps([answer.status, json.loads(answer.read())]), flush=True)
"""


def asked(served: Served, *requests: tuple[str, str, Any]) -> str:
    return json.dumps(
        {
            "port": served.port,
            "folder": str(served.root / "services/agent-rev"),
            "token": str(served.root / "credentials/api-token"),
            "requests": requests,
        }
    )


def test_an_agent_with_the_token_is_that_agent_at_both_doors(served: Served) -> None:
    """S6: refused each time, by who is at the other end."""
    puppets = Puppets(served.lab)
    puppets.start("fx", "developer")
    served.start()
    task_id = served.submit("wait", hold=True)
    wait_for(served.begun, "the program")

    def by_agent(*requests: tuple[str, str, Any]) -> list[tuple[int, dict[str, Any]]]:
        made = puppets.run("developer@fx", [sys.executable, "-c", CLIENT])
        made.stdin.write(asked(served, *requests).encode())
        made.stdin.close()
        out, err = made.stdout.read().decode(), made.stderr.read().decode()
        assert made.wait() == 0, err
        made.close()
        return [tuple(json.loads(line)) for line in out.splitlines()]

    tries = by_agent(
        ("POST", f"/task/{task_id}/cancel", None),
        ("POST", f"/task/{task_id}/end", None),
        ("POST", f"/task/{task_id}/continue", {"prompt": "x"}),
    )
    assert [(code, said["error"]) for code, said in tries] == [(403, "forbidden")] * 6
    served.gate.touch()
    served.until(task_id, "idle")
    assert by_agent(("POST", f"/task/{task_id}/end", None))[0][0] == 403
    served.ask("POST", f"/task/{task_id}/end")

    (by_tcp, _by_socket) = by_agent(("POST", "/task", {"prompt": "of the agent", "hold": True}))
    assert by_tcp[0] == 201, by_tcp
    mine = by_tcp[1]["task_id"]
    assert served.lab.swarm.tasks.get(mine).by == "developer@fx"
    served.until(mine, "idle")
    assert by_agent(("POST", f"/task/{mine}/end", None))[0][1]["state"] == "completed"


def test_what_a_task_runs_may_change_nothing(served: Served) -> None:
    """Its program has the token before its eyes; it is no agent that could be named, and gives no work."""
    out = served.lab.root.parent / "answers"
    script = served.lab.root.parent / "call.py"
    script.write_text(CLIENT.replace("json.load(sys.stdin)", "json.loads(sys.stdin.read())").replace("print(", "say("))
    script.write_text(
        f"def say(text, flush):\n    open({str(out)!r}, 'a').write(text + chr(10))\n" + script.read_text()
    )
    served.start("--agent-cmd", f"{sys.executable} {script}")
    requests = [("POST", "/task", {"prompt": "x"}), ("POST", "/shutdown", {"force": True}), ("GET", "/history", None)]
    served.until(served.submit(asked(served, *requests)), "completed")
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert [code for code, _ in answers] == [403, 403, 200] * 2
    assert len(served.lab.swarm.tasks.list(finished=True)) == 1


def test_an_agent_serves_nobody(served: Served) -> None:
    puppets = Puppets(served.lab)
    puppets.start("fx", "developer")
    words = ["agent", "serve", "--name", "own", "--port", "0", "--agent-cmd", "cat"]
    made = puppets.run("developer@fx", [sys.executable, "-P", "-m", "swarm", *words])
    made.stdin.close()
    err = made.stderr.read().decode()
    assert made.wait() == 4, err
    assert "this is for people" in err
    made.close()
