"""Agents that work in boxes: start, commit, stop, resume, clean up."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm
from swarm.kit.errors import SwarmError
from swarm.sandbox import wish
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

#: Says what it sees, then commits what it is told to.
LOOKS = """sh -c '
id -u > seen; ls /proc | grep -c ^[0-9] >> seen; ls -A /home/agent >> seen; env | grep -c SECRET >> seen
cat /etc/passwd >> seen 2>&1; ls .swarm ../.. >> seen 2>&1; date +%N >> seen; git add seen && git commit -qm looked
trap "echo bye > ended; exit 7" TERM
while :; do sleep 0.05; done'"""


def start(panes: PaneLab, command: str, session: str = "s", **options: Any) -> Path:
    """Start a developer in a box and return its worktree."""
    panes.swarm.start(session, ["developer"], command=command, sandbox=True, **options)
    return panes.tree("developer", session)


def test_box_08_an_agent_in_a_box_works_and_commits_and_sees_nothing_else(panes: PaneLab, boxes: None) -> None:
    panes.env["MY_SECRET"] = "x"
    tree = start(panes, LOOKS)

    wait_for(lambda: panes.git("rev-list", "--count", "main..swarm/developer-s") == "1", "the agent in its box")

    uid, processes, *seen = (tree / "seen").read_text().splitlines()
    assert uid == "1000"
    assert int(processes) < 10
    assert "0" in seen  # variables
    assert "cat: /etc/passwd: No such file or directory" in seen
    assert "README" not in " ".join(seen)  # of the main checkout
    assert panes.git("show", "swarm/developer-s:seen").splitlines()[0] == "1000"
    record = json.loads((panes.root / ".swarm/sessions/s/session.json").read_bytes())
    box = record["agents"][0]["box"]
    assert (box["reason"], box["read_only"], box["read_write"], box["network"]) == ("", [], [], "model")


def test_an_agent_in_a_box_gets_the_grace_of_a_stop_and_comes_back_with_its_box(panes: PaneLab, boxes: None) -> None:
    tree = start(panes, LOOKS)
    wait_for((tree / "seen").exists, "the agent in its box")
    wait_for(lambda: panes.git("rev-list", "--count", "main..swarm/developer-s") == "1", "the agent in its box")

    panes.swarm.stop(["s"])

    assert (tree / "ended").read_text() == "bye\n"
    assert panes.swarm.why("developer", "s").exit_code == 7
    panes.swarm.resume(["s"])
    wait_for(lambda: panes.git("rev-list", "--count", "main..swarm/developer-s") == "2", "the agent in its box")


def test_what_is_only_in_the_box_is_saved_at_cleanup(panes: PaneLab, boxes: None) -> None:
    work = (
        "echo 1 > one; git add one; git commit -qm one; echo stashed > two; git add two; git stash -q; "
        "git checkout -qb other; echo 3 > three; git add three; git commit -qm three; echo 4 > four; touch done"
    )
    tree = start(panes, f"sh -c '{work}'")
    wait_for((tree / "done").exists, "the agent in its box")
    wait_for(lambda: not panes.swarm.why("developer", "s").status.runs, "the agent in its box")

    panes.swarm.cleanup(["s"], force=True)

    saved = {ref.rpartition("/box/")[2]: ref for ref in panes.git("for-each-ref", "--format=%(refname)").split()}
    assert panes.git("show", f"{saved['stash/0']}:two") == "stashed"
    assert panes.git("show", f"{saved['branch/other']}:three") == "3"
    assert panes.git("show", f"{saved['work']}:four") == "4"
    assert not (panes.root / ".swarm/sessions/s").exists()
    panes.swarm.restore("s")
    assert (tree / "four").read_text() == "4\n"


@pytest.mark.parametrize("said", ["setting", "role"])
def test_a_box_is_asked_for_by_the_setting_or_a_role(panes: PaneLab, boxes: None, said: str) -> None:
    if said == "setting":
        panes.write({".swarm/config.yaml": "sandbox:\n  enabled: true\n"})
    else:
        panes.write({".swarm/roles/careful.yaml": "name: careful\ninstructions: go\nsandbox: true\n"})

    report = panes.swarm.start("s", ["careful" if said == "role" else "developer"], command="sleep 1000", dry_run=True)

    assert any(step.startswith("make the box of") for step in report.steps)


@pytest.mark.parametrize(
    "line", ["allow_unsandboxed: true", "read_write_paths: [~/x]", "read_only_paths: [/opt]"], ids=str
)
def test_a_repository_cannot_widen_a_box(panes: PaneLab, line: str) -> None:
    panes.write({".swarm/config.yaml": f"sandbox:\n  {line}\n"})

    with pytest.raises(SwarmError, match="is not for a repository to say"):
        Swarm.open(panes.root, environ=panes.env)


def test_a_repository_cannot_switch_a_box_off(panes: PaneLab, boxes: None) -> None:
    panes.write({".swarm/config.yaml": "sandbox:\n  enabled: false\n"})
    panes.write({".swarm/roles/free.yaml": "name: free\ninstructions: go\nsandbox: false\n"})
    swarm = Swarm.open(panes.root, environ={**panes.env, "SWARM_SANDBOX_ENABLED": "true"})

    team = swarm.start("s", ["free"], command="sleep 1000", dry_run=True)

    assert any(step.startswith("make the box of") for step in team.steps)
    assert any("does not count" in warning for warning in team.warnings)


def test_c_39_without_a_box_nothing_starts_unless_the_user_said_so(
    panes: PaneLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("git", "tmux", "sh", "sleep", "env"):
        os.symlink(shutil.which(name) or "", tmp_path / name)
    environ = {**panes.env, "PATH": str(tmp_path)}
    monkeypatch.setenv("PATH", str(tmp_path))
    swarm = Swarm.open(panes.root, environ=environ)

    with pytest.raises(SwarmError) as error:
        swarm.start("s", ["developer"], command="sleep 1000", sandbox=True)

    assert error.value.code == "SANDBOX_UNAVAILABLE"
    assert not (panes.root / ".swarm/sessions").exists()
    assert panes.git("branch", "--list", "swarm/*") == ""
    swarm = Swarm.open(panes.root, environ={**environ, "SWARM_SANDBOX_ALLOW_UNSANDBOXED": "true"})
    team = swarm.start("s", ["developer"], command="sleep 1000", sandbox=True)
    assert any("without a box: bwrap is not installed" in warning for warning in team.warnings)
    box = swarm.status("s")[0].agents[0].agent.box
    assert box is not None
    assert box.by == "noop (bwrap is not installed)"


def test_the_machine_is_asked_once(panes: PaneLab, boxes: None) -> None:
    wish._asked.cache_clear()
    start(panes, "sleep 1000")

    assert wish._asked.cache_info().misses == 1


def test_what_is_forked_from_a_box_works_in_one(panes: PaneLab, boxes: None) -> None:
    tree = start(panes, LOOKS)
    wait_for((tree / "seen").exists, "the agent in its box")

    panes.swarm.fork("developer", "second", session="s")

    second = panes.swarm.sessions.get("s").agent("second")
    assert second is not None
    assert second.is_boxed
    wait_for((panes.tree("second", "s") / "seen").exists, "the second in its box")


def test_an_agent_is_run_again_in_a_box_only_if_it_was_first(panes: PaneLab, boxes: None) -> None:
    panes.write({".swarm/roles/own.yaml": "name: own\ninstructions: go\nworktree: {enabled: true}\n"})
    panes.swarm.run("own", command="true", sandbox=True)
    wait_for(lambda: not panes.swarm.why("own", "own").status.runs, "its end")

    with pytest.raises(SwarmError, match="was started in a box"):
        panes.swarm.run("own", command="true", sandbox=False)
    panes.swarm.run("own", command="true", sandbox=True)


def test_a_program_in_a_box_gets_no_descriptor_but_its_terminal(panes: PaneLab, boxes: None) -> None:
    """The supervisor's child becomes the box itself, with all that the supervisor has open."""
    script = "for one in /proc/self/fd/*; do readlink $one; done > tried; mv tried told; sleep 1000"
    tree = start(panes, f"sh -c '{script}'")

    wait_for((tree / "told").exists, "the agent in its box")

    found = [line for line in (tree / "told").read_text().splitlines() if line]
    ours = [line for line in found if not line.startswith("/dev/pts/") and not line.endswith("/tried")]
    assert [line for line in ours if not line.startswith("/proc/")] == []
    assert len(found) <= 4
