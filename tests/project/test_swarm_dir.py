"""The swarm directory in use: its roles stay known, to the user and to agents, whatever the repository keeps itself."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm import RoleNotFound, SwarmError
from swarm.api.config import Config
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from swarm.testing.lab import Lab
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

SWARM = f"{shlex.quote(sys.executable)} -P -m swarm"
ROLE = "name: mine\nagent_type: shell\ninstructions: Do it.\n"


def swarm_dir(folder: Path, role: str = ROLE) -> Path:
    """Make a swarm directory with one role."""
    (folder / "roles").mkdir(parents=True)
    (folder / ".swarm-dir.txt").write_text("v0.1.0\n")
    (folder / "roles/mine.yaml").write_text(role)
    return folder


def in_pane(lab: PaneLab, command: str) -> str:
    """Run a command line in the agent's shell and return what it printed; it must succeed."""
    out = lab.root.parent / f"out-{len(list(lab.root.parent.glob('out-*')))}"
    name = shlex.quote(str(out))
    lab.type("mine", f"{command} >{name}.part && mv {name}.part {name}", "fx")
    wait_for(out.exists, f"{command}: {lab.swarm.peek('mine', 'fx')}")
    return out.read_text()


def environ_of(lab: PaneLab) -> list[str]:
    """Return what stands in the environment of the agent's program; nothing while it does not run."""
    try:
        found = Path(f"/proc/{lab.note('mine', 'process.json')['pid']}/environ").read_bytes()
    except FileNotFoundError:
        return []
    return os.fsdecode(found).split("\0")


@pytest.mark.parametrize("place", ["home", "above"])
def test_roles_of_the_user_are_known_after_the_first_session_too(lab: Lab, place: str) -> None:
    made = swarm_dir(Path(lab.env["HOME"], ".swarm") if place == "home" else lab.root.parent)
    for session in ("one", "two"):
        lab.swarm.create(session, "mine")

    assert {lab.swarm.sessions.get(session).swarm_dir for session in ("one", "two")} == {str(made)}
    assert lab.swarm.roles.get("mine").source == made / "roles/mine.yaml"


def test_a_repository_without_another_directory_uses_its_own(lab: Lab) -> None:
    lab.swarm.create("one", "developer")

    assert lab.swarm.sessions.get("one").swarm_dir == str(lab.root / ".swarm")


def test_agents_see_the_users_roles_and_know_where_the_state_is(panes: PaneLab) -> None:
    made = swarm_dir(Path(panes.env["HOME"], ".swarm"))
    panes.swarm.start("fx", "mine")
    panes.until("mine", "idle")

    told = in_pane(panes, 'printf "%s\\n%s\\n" "$SWARM_DIR" "$SWARM_STATE_DIR"').splitlines()
    assert told == [str(made), str(panes.root / ".swarm")]
    sub = json.loads(in_pane(panes, f"{SWARM} start sub --roles mine --json"))
    assert [agent["role"] for agent in sub["data"]["agents"]] == ["mine"]
    sent = json.loads(in_pane(panes, f"cd / && {SWARM} send user hello --json"))
    assert sent["data"]["from"] == "mine@fx"


def test_a_session_keeps_the_directory_that_was_named_at_its_start(panes: PaneLab, tmp_path: Path) -> None:
    """Resumed, extended and cleaned up from a shell in which nobody names it."""
    torn = tmp_path / "torn"
    teardown = f"teardown: {{run: [[sh, -c, 'echo $SWARM_DIR >{torn}']]}}\n"
    made = swarm_dir(tmp_path / "team", f"{ROLE}{teardown}")
    named = type(panes.swarm).open(panes.root, environ={**panes.env, "SWARM_DIR": str(made)})
    named.start("fx", "mine")
    with pytest.raises(RoleNotFound):
        panes.swarm.roles.get("mine")

    panes.swarm.stop(["fx"])
    assert panes.swarm.resume(["fx"]).started == (("fx", "mine"),)
    wait_for(lambda: f"SWARM_DIR={made}" in environ_of(panes), "the environment of the program that was resumed")
    panes.swarm.restart("mine", "fx")
    panes.swarm.create("fx", "second=mine")
    panes.swarm.worktrees.update_role("mine", "fx")
    panes.swarm.stop(["fx"])

    report = panes.swarm.cleanup(["fx"])

    assert report.warnings == ()
    assert torn.read_text() == f"{made}\n"
    assert panes.swarm.sessions() == ()


def test_a_session_whose_directory_is_gone_uses_the_one_that_is_there(lab: Lab, tmp_path: Path) -> None:
    made = swarm_dir(tmp_path / "team")
    lab.env["SWARM_DIR"] = str(made)
    lab.swarm.create("fx", "mine", instructions=False)
    made.rename(tmp_path / "moved")
    lab.env["SWARM_DIR"] = str(tmp_path / "moved")

    lab.swarm.worktrees.update_role("mine", "fx")

    assert (lab.tree("mine", "fx") / "CLAUDE.local.md").read_text() == "Do it."


# --- its settings ---------------------------------------------------------------------------------


def retries(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(f"git:\n  retries: {number}\n")


def test_the_settings_of_the_directory_in_use_count_between_the_users_and_the_projects(
    lab: Lab, tmp_path: Path
) -> None:
    home, team = Path(lab.env["HOME"], ".swarm"), swarm_dir(tmp_path / "team")

    def found() -> tuple[int, int]:
        around = Config.around(lab.root, lab.env).settings.git.retries
        return lab.swarm.config.settings.git.retries, around

    retries(home, 11)
    retries(team, 12)
    assert found() == (11, 11)
    lab.env["SWARM_DIR"] = str(team)
    assert found() == (12, 12)
    assert lab.swarm.config.settings.origins["git.retries"].where.startswith(str(team / "config.yaml"))
    retries(lab.root / ".swarm", 13)
    assert found() == (13, 13)

    (team / "config.yaml").write_text("git:\n  retries: many\n")
    with pytest.raises(SwarmError, match=re.escape(str(team / "config.yaml"))):
        found()


def test_the_settings_of_one_above_the_project_count_and_of_one_inside_do_not(lab: Lab) -> None:
    above, inside = swarm_dir(lab.root.parent / ".swarm"), swarm_dir(lab.root / "deep" / ".swarm")
    retries(above, 21)
    retries(inside, 22)

    assert lab.swarm.config.settings.git.retries == 21
    assert lab.open(lab.root / "deep").config.settings.git.retries == 5
    lab.env["SWARM_DIR"] = str(inside)
    assert lab.swarm.config.settings.git.retries == 5
