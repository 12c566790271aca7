"""Who answers agents by HTTP: a person at a terminal, a program with a grant, a browser that a person let in."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.testing.terminal import at_terminal, wait_for, without_terminal
from tests.http_door.project.test_acts import by_agent
from tests.support.puppet import Puppets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.http_door.project.conftest import Project
    from tests.support.puppet import Started

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


class Asking:
    """An agent with a request that waits."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.puppets = Puppets(project.lab)
        self.puppets.start("fx", "developer")
        self._made: list[Started] = []

    def ask(self) -> str:
        """Let the agent ask; return the id of the request."""
        before = {one.question.id for one in self.project.lab.swarm.approvals()}
        made = self.puppets.run(
            "developer@fx", [sys.executable, "-m", "swarm", "permission-request", "--agent", "developer"]
        )
        made.stdin.write(json.dumps({"tool_name": "Bash", "tool_input": {"command": "rm -rf y"}}).encode())
        made.stdin.close()
        self._made.append(made)
        wait_for(lambda: len(self.project.lab.swarm.approvals()) == len(before) + 1, "the request", 60)
        (new,) = {one.question.id for one in self.project.lab.swarm.approvals()} - before
        return new

    def close(self) -> None:
        swarm = self.project.lab.swarm
        at_terminal(lambda: [str(swarm.approvals.deny(one.question.id)) for one in swarm.approvals()])
        for made in self._made:
            made.stdout.read()
            made.close()


@pytest.fixture
def asking(project: Project) -> Iterator[Asking]:
    made = Asking(project)
    project.start()
    yield made
    made.close()


def as_script(project: Project, *words: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    """Make a request from a process without a terminal."""
    found: tuple[int, dict[str, Any]] = without_terminal(lambda: project.ask(*words, **headers))
    return found


def test_a_person_at_a_terminal_answers_and_a_script_with_the_token_does_not(asking: Asking) -> None:
    project = asking.project
    first = asking.ask()
    (one,) = project.ask("GET", "/approvals")[1]["approvals"]
    assert (one["id"], one["agent"], one["state"]) == (first, "developer", "open")
    wait_for(lambda: project.ask("GET", "/agents/developer/approvals")[1]["approvals"], "the request in the model")
    for path in (f"/approvals/{first}/allow", f"/approvals/{first}/deny", "/codes"):
        code, said = as_script(project, "POST", path)
        assert (code, said["error"], said["details"]["code"]) == (403, "forbidden", "NOT_A_PERSON"), said
    code, said = at_terminal(lambda: project.ask("POST", f"/approvals/{first}/allow", {"reason": "fine"}))
    assert (code, said["state"], said["reason"]) == (200, "allowed", "fine")
    assert said["by"].startswith("user")
    code, said = at_terminal(lambda: project.ask("POST", f"/approvals/{first}/deny"))
    assert (code, said["details"]["code"]) == (409, "ALREADY_ANSWERED")
    assert at_terminal(lambda: project.ask("POST", "/approvals/none/allow"))[0] == 404
    assert project.ask("GET", "/approvals")[1]["approvals"] == []
    assert len(project.ask("GET", "/approvals?everything=1")[1]["approvals"]) == 1


def test_a_grant_answers_and_one_that_does_not_count_does_not(asking: Asking) -> None:
    project = asking.project
    token = at_terminal(lambda: project.lab.swarm.approvals.grant("bot"))
    request = asking.ask()
    path = f"/approvals/{request}/deny"
    for wrong in ("bot:nonsense", "x", token[:-1]):
        assert as_script(project, "POST", path, Swarm_Grant=wrong)[0] == 403
    code, said = as_script(project, "POST", path, {"reason": "not here"}, Swarm_Grant=token)
    assert (code, said["state"]) == (200, "denied")
    assert "bot" in said["by"]
    log = (project.root / "server/server.log").read_text()
    assert token not in log


def test_an_agent_answers_nothing_whatever_it_shows(asking: Asking) -> None:
    """S6: with the token, with a grant, and with the token of a browser, at both doors."""
    project = asking.project
    grant = at_terminal(lambda: project.lab.swarm.approvals.grant("bot"))
    browser = _signed_in(project)
    request = asking.ask()
    tries = (("POST", f"/approvals/{request}/allow", None), ("POST", "/codes", None))
    for headers in ({}, {"Swarm-Grant": grant}, {"Authorization": f"Bearer {browser['token']}"}):
        for code, said in by_agent(project, asking.puppets, *tries, **headers):
            assert (code, said["error"]) == (403, "forbidden"), (headers, said)
    assert project.ask("GET", "/approvals")[1]["approvals"][0]["state"] == "open"


def _signed_in(project: Project) -> dict[str, Any]:
    code, made = at_terminal(lambda: project.ask("POST", "/codes"))
    assert (code, made["seconds"]) == (201, 60)
    origin = f"http://127.0.0.1:{project.port}"
    code, said = without_terminal(
        lambda: project.ask("POST", "/browsers", {"code": made["code"], "name": "phone"}, token=None, Origin=origin)
    )
    assert code == 201, said
    code, again = project.ask("POST", "/browsers", {"code": made["code"]}, token=None)
    assert (code, again["details"]["code"]) == (403, "CODE_REFUSED"), "it counts once"
    found: dict[str, Any] = said
    return found


def test_a_browser_signs_in_once_answers_for_the_person_and_is_signed_out(asking: Asking) -> None:
    project = asking.project
    browser = _signed_in(project)
    token = browser["token"]
    project.end()
    project.start()  # it is known to the next server, too
    request = asking.ask()
    code, said = without_terminal(lambda: project.ask("POST", f"/approvals/{request}/allow", token=token))
    assert (code, said["state"]) == (200, "allowed")
    (known,) = project.ask("GET", "/browsers")[1]["browsers"]
    assert (known["id"], known["name"]) == (browser["id"], "phone")
    assert "token" not in known
    with project.watching(token=token) as one:
        assert as_script(project, "POST", f"/browsers/{browser['id']}/revoke")[0] == 403
        assert at_terminal(lambda: project.ask("POST", f"/browsers/{browser['id']}/revoke"))[1] == {"browsers": []}
        assert one.event() == {}, "its stream ends"
    assert project.ask("GET", "/agents", token=token)[0] == 401
    assert at_terminal(lambda: project.ask("POST", "/browsers/0123456789abcdef/revoke"))[0] == 404
    secrets = subprocess.run(["grep", "-r", token, str(project.root)], capture_output=True, text=True, check=False)
    assert secrets.stdout == "", "it is kept nowhere"


def test_wrong_codes_are_soon_not_heard(project: Project) -> None:
    project.start()
    codes = [project.ask("POST", "/browsers", {"code": f"x{number}"}, token=None)[0] for number in range(25)]
    assert (codes[0], codes[-1]) == (403, 429)
