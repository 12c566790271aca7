"""Agents in boxes with a network: from settings and roles to the log (issue 16, point 7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm
from swarm.kit.errors import SwarmError
from swarm.machine.run_folder.decisions import FILE
from swarm.project.swarm_dir.dirs import init_dir
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


def decisions(panes: PaneLab) -> list[dict[str, Any]]:
    path = panes.root / ".swarm/sessions/s/run/developer" / FILE
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_agent_asks_for_a_host_and_it_is_logged(panes: PaneLab, boxes: None) -> None:
    script = (
        "import os, socket, time\n"
        "made = socket.create_connection(('127.0.0.1', 3128), 30)\n"
        "made.sendall(b'CONNECT evil.org:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n"
        "said = made.recv(4096).decode().split()[1]\n"
        "open('new', 'w').write(said + ' ' + os.environ['HTTPS_PROXY'])\n"
        "os.rename('new', 'said')\n"
        "time.sleep(600)\n"
    )
    panes.write({"ask.py": script})
    panes.commit("a program")

    panes.swarm.start("s", ["developer"], command="python3 ask.py", sandbox=True)

    said = panes.tree("developer", "s") / "said"
    wait_for(said.exists, "the agent in its box")
    assert said.read_text() == "403 http://127.0.0.1:3128"
    assert [(one["target"], one["allowed"]) for one in decisions(panes)] == [("evil.org:443", False)]
    launch = panes.root / ".swarm/sessions/s/run/developer/launch.json"
    assert not launch.exists()


def boxed(panes: PaneLab, *, role: str = "developer", **environ: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Start an agent and return how it is boxed, by its record, and the warnings."""
    swarm = Swarm.open(panes.root, environ={**panes.env, **environ})
    report = swarm.start("s", [role], command="sleep 600", sandbox=True)
    record = json.loads((panes.root / ".swarm/sessions/s/session.json").read_bytes())
    return record["agents"][0]["box"], report.warnings


def test_settings_of_the_users_widen_the_network(panes: PaneLab, boxes: None) -> None:
    box, _ = boxed(panes, SWARM_SANDBOX_NETWORK="packages", SWARM_SANDBOX_HOSTS="example.org,*.example.net:8443")

    assert (box["network"], box["hosts"]) == ("packages", ["example.org", "*.example.net:8443"])


@pytest.mark.parametrize(
    ("environ", "hosts", "warned"),
    [
        ({"SWARM_SANDBOX_NETWORK": "packages", "SWARM_SANDBOX_PACKAGE_HOSTS": "packages.example.org"}, 1, False),
        ({"SWARM_SANDBOX_NETWORK": "packages"}, 0, True),
        ({"SWARM_SANDBOX_PACKAGE_HOSTS": "packages.example.org"}, 0, False),
    ],
)
def test_the_hosts_of_packages_are_the_users_to_name(
    panes: PaneLab, boxes: None, environ: dict[str, str], hosts: int, warned: bool
) -> None:
    box, warnings = boxed(panes, **environ)

    assert box.get("hosts", []) == ["packages.example.org"][:hosts]
    assert any("package_hosts" in one for one in warnings) == warned


@pytest.mark.parametrize(
    "line",
    ["network: all", "hosts: [evil.org]", "package_hosts: [evil.org]", "private_networks: [10.0.0.0/8]", "tmp: 2GiB"],
)
def test_a_repositorys_settings_do_not(panes: PaneLab, line: str) -> None:
    panes.write({".swarm/config.yaml": f"sandbox:\n  {line}\n"})

    with pytest.raises(SwarmError, match="is not for a repository to say"):
        Swarm.open(panes.root, environ=panes.env)


@pytest.mark.parametrize("own", [True, False])
def test_a_role_widens_it_from_the_users_own_directory_only(panes: PaneLab, boxes: None, own: bool) -> None:
    where = panes.root / ".swarm"
    if own:
        where = init_dir(Path(panes.env["HOME"]) / ".swarm", environ=panes.env)
        panes.env["SWARM_DIR"] = str(where)
    role = "name: careful\ninstructions: go\nnetwork:\n  preset: packages\n  hosts: [example.org]\n"
    (where / "roles").mkdir(parents=True, exist_ok=True)
    (where / "roles" / "careful.yaml").write_text(role)

    box, warnings = boxed(panes, role="careful")

    assert (box["network"], box["hosts"]) == (("packages", ["example.org"]) if own else ("model", []))
    assert any("network of role careful does not count" in one for one in warnings) is not own


@pytest.mark.parametrize("words", ["127.0.0.1", "*.org", "evil.org/x", "evil.org:0"])
def test_hosts_that_are_none_are_refused(panes: PaneLab, words: str) -> None:
    with pytest.raises(SwarmError, match=r"sandbox\.hosts|SANDBOX_HOSTS"):
        Swarm.open(panes.root, environ={**panes.env, "SWARM_SANDBOX_HOSTS": words})


def test_without_a_network_there_is_no_proxy(panes: PaneLab, boxes: None) -> None:
    script = "import os, time\nopen('said', 'w').write(str(os.environ.get('HTTPS_PROXY')))\ntime.sleep(600)"
    panes.write({"ask.py": script})
    panes.commit("a program")
    swarm = Swarm.open(panes.root, environ={**panes.env, "SWARM_SANDBOX_NETWORK": "none"})

    swarm.start("s", ["developer"], command="python3 ask.py", sandbox=True)

    said = panes.tree("developer", "s") / "said"
    wait_for(lambda: said.exists() and said.read_text(), "the agent in its box")
    assert said.read_text() == "None"


def test_without_h11_a_box_with_a_network_is_refused(
    panes: PaneLab, boxes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm.sandbox.wish.find_spec", lambda _: None)

    with pytest.raises(SwarmError, match="h11 is not installed"):
        panes.swarm.start("s", ["developer"], command="sleep 600", sandbox=True)
    assert not os.path.exists(panes.root / ".swarm/sessions/s")


def test_why_and_explain_tell_what_was_asked_and_exec_looks_inside(panes: PaneLab, boxes: None) -> None:
    script = (
        "import socket, time\n"
        "for _ in range(2):\n"
        "    made = socket.create_connection(('127.0.0.1', 3128), 30)\n"
        "    made.sendall(b'CONNECT evil.org:443 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n"
        "    made.recv(4096)\n"
        "open('said', 'w').close()\n"
        "time.sleep(600)\n"
    )
    panes.write({"ask.py": script})
    panes.commit("a program")
    panes.swarm.start("s", ["developer"], command="python3 ask.py", sandbox=True)
    wait_for((panes.tree("developer", "s") / "said").exists, "the agent in its box")

    found = panes.swarm.boxes.explain("developer")
    said = panes.swarm.boxes.run("developer", argv=["sh", "-c", "id -u; ls; cat /etc/passwd; exit 3"])

    assert (found.by, found.network) == ("bubblewrap", "model")
    assert [(one["target"], one["allowed"], one["times"]) for one in found.decisions] == [("evil.org:443", False, 2)]
    assert (said.code, said.out.split()[0]) == (3, b"1000")
    assert b"ask.py" in said.out
    assert b"No such file" in said.err

    def typed(*words: str) -> str:
        command = [sys.executable, "-m", "swarm", *words]
        done = subprocess.run(command, cwd=panes.root, env=panes.env, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr + str(done.returncode)

    done = typed("why", "developer")
    assert "refused     evil.org:443: is not an allowed host (by the proxy, 2 times)" in done
    assert "network" in typed("sandbox", "explain", "developer")
    assert typed("sandbox", "exec", "developer", "--", "sh", "-c", "id -u; exit 3") == "1000\n3"


def test_an_agent_without_a_box_is_explained_and_has_no_exec(panes: PaneLab) -> None:
    panes.swarm.start("s", ["developer"], command="sleep 600")

    assert panes.swarm.boxes.explain("developer").by == ""
    with pytest.raises(SwarmError, match="has no box"):
        panes.swarm.boxes.run("developer", argv=["true"])


def test_memory_and_processes_are_limited(panes: PaneLab, boxes: None) -> None:
    panes.write({"grow.py": "try: x = b'x' * (600 << 20)\nexcept MemoryError: open('said', 'w').close()\n"})
    panes.commit("a program")
    swarm = Swarm.open(panes.root, environ={**panes.env, "SWARM_SANDBOX_MEMORY": "500MiB"})

    swarm.start("s", ["developer"], command="python3 grow.py", sandbox=True)

    wait_for((panes.tree("developer", "s") / "said").exists, "the end of its memory")
