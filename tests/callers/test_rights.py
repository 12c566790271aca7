"""What agents may do to what others started: nothing, unless a role of the user's own directories says so."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from swarm.project.swarm_dir.dirs import init_dir
from swarm.roles.rights import VERBS, Need
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from typing import Any

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SWARM = f"{shlex.quote(sys.executable)} -P -m swarm"

#: How an agent would do each thing to what a person started: session `other`, and what is saved of `old`.
_TRIES = """
import json, sys
from swarm import Question, Swarm
from swarm.api.design import Design
from swarm.kit.errors import SwarmError

swarm, documents = Swarm.open(sys.argv[1]), Design.open(sys.argv[1])
question = Question("f" * 32, "other", "dev", "Bash", {"command": "true"})
tries = {
    "approvals.ask": lambda: swarm.approvals.ask(question, timeout=0),
    "hooks.collect": lambda: swarm.hooks.collect({"hook_event_name": "Stop"}, "dev", "other"),
    "hooks.note_trouble": lambda: swarm.hooks.note_trouble("collect", "x", "dev", "other"),
    "delivery.nudge": lambda: swarm.delivery.nudge("dev", "other"),
    "delivery.heartbeat": lambda: swarm.delivery.heartbeat("dev", "other", "x"),
    "usage.notify": lambda: swarm.usage.notify("dev", "other"),
    "cleanup": lambda: swarm.cleanup(["other"], force=True),
    "cleanup_orphaned_worktrees": lambda: documents.cleanup_orphaned_worktrees(0),
    "cleanup_swarm_branches": lambda: documents.cleanup_swarm_branches(),
    "full_cleanup": lambda: documents.full_cleanup(),
    "worktrees.remove": lambda: swarm.worktrees.remove("dev", "other", force=True),
    "remove_all_worktrees": lambda: documents.remove_all_worktrees(force=True),
    "remove_worktree": lambda: documents.remove_worktree("dev", force=True, session_id="other"),
    "merge": lambda: swarm.merge("other", into="swarm/lead-fx"),
    "restore": lambda: swarm.restore("old"),
    "resume": lambda: swarm.resume(["other"]),
    "restart": lambda: swarm.restart("dev", "other"),
    "stop": lambda: swarm.stop(["other"]),
    "pods.stop": lambda: swarm.pods.stop("blue"),
    "boxes.run": lambda: swarm.boxes.run("dev", "other", argv=("true",)),
    "pods.release": lambda: swarm.pods.release("dev", "other"),
    "tree.adopt": lambda: swarm.tree.adopt("dev@other", "user"),
    "tree.cleanup": lambda: swarm.tree.cleanup("dev@other", force=True),
    "tree.merge": lambda: swarm.tree.merge("dev@other"),
    "tree.stop": lambda: swarm.tree.stop("dev@other"),
    "copy_role_config": lambda: documents.copy_role_config("reviewer", documents.get_worktree_path("dev", "other")),
    "create": lambda: swarm.create("other", "tester=reviewer"),
    "fork": lambda: swarm.fork("dev", "twin", "other"),
    "worktrees.lock": lambda: swarm.worktrees.lock("dev", "other"),
    "lock_worktree": lambda: documents.lock_worktree("dev", session_id="other"),
    "worktrees.unlock": lambda: swarm.worktrees.unlock("dev", "other"),
    "unlock_worktree": lambda: documents.unlock_worktree("dev", "other"),
    "worktrees.update_role": lambda: swarm.worktrees.update_role("dev", "other", force=True),
    "worktrees.update_changed_roles": lambda: swarm.worktrees.update_changed_roles("dev", "other"),
    "update_role_config": lambda: documents.update_role_config("dev", "other", force=True),
    "approvals.approve": lambda: swarm.approvals.approve("abcdef"),
    "approvals.deny": lambda: swarm.approvals.deny("abcdef"),
    "approvals.revoke": lambda: swarm.approvals.revoke("abcdef"),
    "approvals.grant": lambda: swarm.approvals.grant("bridge"),
    "approvals.revoke_grant": lambda: swarm.approvals.revoke_grant("bridge"),
    "panes.type": lambda: swarm.panes.type("dev", "x", "other"),
    "merge.nested": lambda: swarm.merge("other", into="swarm/lead-fx", nested=True),
    "cleanup.discard": lambda: swarm.cleanup(["sub"], force=True, discard=True),
    "salvage.drop": lambda: swarm.salvage.drop(everything=True),
    "bridges.init": lambda: swarm.bridges.init("phone"),
    "bridges.run": lambda: swarm.bridges.run("phone"),
    "bridges.start": lambda: swarm.bridges.start("phone"),
    "bridges.stop": lambda: swarm.bridges.stop("phone"),
    "services.kill": lambda: swarm.services.kill(),
    "services.shutdown": lambda: swarm.services.shutdown(),
    "services.start": lambda: swarm.services.start("served"),
    "tasks.ask": lambda: swarm.tasks.ask("held", "/nowhere/ask-1.json"),
    "services.write_unit": lambda: swarm.services.write_unit("served"),
    "tasks.cancel": lambda: swarm.tasks.cancel("held"),
    "tasks.continue_": lambda: swarm.tasks.continue_("held", "x"),
    "tasks.end": lambda: swarm.tasks.end("held"),
    "tasks.give_back": lambda: swarm.tasks.give_back("held"),
    "tasks.take": lambda: swarm.tasks.take("held", timeout=1),
    "tasks.message": lambda: swarm.tasks.message("held", "x"),
    "worktrees.prune": lambda: swarm.worktrees.prune(),
    "worktrees.drain_pool": lambda: swarm.worktrees.drain_pool(),
    "sessions.prune": lambda: swarm.sessions.prune(older_than_ms=0),
    "prune_worktrees": lambda: documents.prune_worktrees(),
    "messages.prune": lambda: swarm.messages.prune(older_than_ms=0),
    "messages.prune_attachments": lambda: swarm.messages.prune_attachments(older_than_ms=0),
}
said = {}
for verb, attempt in tries.items():
    try:
        attempt()
        said[verb] = ["done", ""]
    except SwarmError as error:
        said[verb] = [error.code, str(error)]
print(json.dumps(said))
"""


def run(lab: PaneLab, agent: str, session: str, command: str) -> tuple[int, str]:
    """Run a command line in an agent's shell, and return how it ended and what it printed."""
    out = lab.root.parent / f"out-{len(list(lab.root.parent.glob('out-*')))}"
    file = shlex.quote(str(out))
    lab.type(agent, f"{command} >{file}.text 2>&1; echo $? >{file}.tmp; mv {file}.tmp {file}", session)
    wait_for(out.exists, f"the end of {command}", 90)
    return int(out.read_text()), out.with_name(f"{out.name}.text").read_text()


def attempts(lab: PaneLab, agent: str, session: str) -> dict[str, list[str]]:
    """Let an agent try everything, and return the code and the message of each error."""
    script = lab.root.parent / "tries.py"
    script.write_text(_TRIES)
    code, said = run(lab, agent, session, shlex.join([sys.executable, "-P", str(script), str(lab.root)]))
    assert code == 0, said
    found: dict[str, list[str]] = json.loads(said.splitlines()[-1])
    return found


def record(lab: PaneLab, session: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lab.root / ".swarm/sessions" / session / "session.json").read_text())
    return found


def own_role(lab: PaneLab, name: str, text: str) -> Path:
    """Write a role into the user's own swarm directory."""
    folder = Path(lab.env["HOME"]) / ".swarm"
    lab.env["SWARM_DIR"] = str(folder)
    if not folder.is_dir():
        init_dir(folder, environ=lab.env)
    path = folder / "roles" / f"{name}.yaml"
    path.write_text(f"name: {name}\ninstructions: Lead the others.\n{text}\n")
    return path


@pytest.fixture
def team(panes: PaneLab) -> PaneLab:
    """Two sessions that a person started, `fx` with a lead that is a shell, and one that is cleaned up."""
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.swarm.create("old", "developer")
    panes.swarm.cleanup(["old"])
    panes.swarm.create("other", "dev=developer")
    panes.swarm.tasks.submit("true", program="shell", task_id="held", hold=True)
    file = panes.root / ".swarm/sessions/other/session.json"
    file.write_text(json.dumps({**record(panes, "other"), "pod": "blue"}))
    panes.start("lead=architect", program="shell", task="")
    panes.until("lead", "idle")
    return panes


def test_an_agent_without_rights_does_nothing_to_what_others_started(team: PaneLab) -> None:
    """Every verb that asks for something is tried, so that none can forget to ask."""
    before = [team.fingerprint(), record(team, "other"), [one.name for one in team.swarm.salvage()]]

    said = attempts(team, "lead", "fx")

    assert said.keys() == {verb for verb, need in VERBS.items() if need is not Need.NOTHING}
    assert {verb: one for verb, one in said.items() if one[0] != "NOT_FOR_AGENTS"} == {}
    assert all("you are agent lead@fx" in text for _, text in said.values()), said
    assert [team.fingerprint(), record(team, "other"), [one.name for one in team.swarm.salvage()]] == before


def test_a_role_of_the_users_own_gives_rights_and_they_are_frozen_at_the_start(panes: PaneLab) -> None:
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    path = own_role(panes, "boss", "may: [stop, merge]")
    panes.swarm.create("other", "dev=developer")
    panes.start("boss", program="shell", task="")
    panes.until("boss", "idle")
    assert record(panes, "fx")["agents"][0]["may"] == ["stop", "merge"]
    path.write_text(path.read_text().replace("stop, merge", "cleanup"))

    assert run(panes, "boss", "fx", f"{SWARM} stop other")[0] == 0
    assert run(panes, "boss", "fx", f"{SWARM} merge other --into main")[0] == 0
    code, said = run(panes, "boss", "fx", f"{SWARM} cleanup other --force")
    assert (code, "`may: [cleanup]`" in said) == (4, True), said
    code, said = run(panes, "boss", "fx", f"{SWARM} stop fx")
    assert (code, "this command would end with you" in said) == (4, True), said
    panes.until("boss", "idle")


def test_an_agent_manages_what_it_started_and_what_that_started(team: PaneLab) -> None:
    code, said = run(team, "lead", "fx", f"{SWARM} start sub --roles developer --agent shell")
    assert code == 0, said
    team.until("developer", "idle", session="sub")
    code, said = run(team, "developer", "sub", f"{SWARM} worktree create deep --roles reviewer")
    assert code == 0, said
    code, said = run(team, "lead", "fx", f"{SWARM} merge sub --into main")
    assert (code, "--into swarm/lead-fx" in said) == (4, True), said
    script = team.root.parent / "manage.py"
    script.write_text("""
import sys
from swarm import Swarm

swarm = Swarm.open(sys.argv[1])
swarm.merge("sub", into="swarm/lead-fx")
swarm.worktrees.lock("reviewer", "deep")
swarm.worktrees.unlock("reviewer", "deep")
swarm.stop(["sub"])
swarm.cleanup(["deep"])
swarm.restore("deep")
swarm.cleanup(["deep", "sub"])
""")

    code, said = run(team, "lead", "fx", shlex.join([sys.executable, "-P", str(script), str(team.root)]))

    assert code == 0, said
    assert [one.name for one in team.swarm.sessions()] == ["fx", "other"]


def test_rights_do_not_come_from_a_repository_nor_from_a_starter_without_them(team: PaneLab) -> None:
    team.write({"roles/chief.yaml": "name: chief\ninstructions: Lead.\nmay: [cleanup]\n"})
    own_role(team, "boss", "may: [cleanup]")
    env = f"SWARM_DIR={shlex.quote(team.env['SWARM_DIR'])}"

    warned = team.swarm.start("one", "chief", program="shell").warnings
    code, said = run(team, "lead", "fx", f"{env} {SWARM} start two --roles boss --agent shell")
    assert code == 0, said

    assert [record(team, name)["agents"][0]["may"] for name in ("one", "two")] == [[], []]
    assert [text for text in warned if "may of role chief has no effect" in text]
    assert "may of role boss is without cleanup" in said


def test_an_agent_cannot_end_the_program_that_runs_its_own_command(team: PaneLab) -> None:
    for command in ("cleanup fx --force", "stop fx", "restart lead", "worktree remove lead --force"):
        code, said = run(team, "lead", "fx", f"{SWARM} {command}")

        assert code == 4, (command, said)
        assert "you are agent lead@fx, and this command would end with you" in said
    team.until("lead", "idle")


def test_an_agent_gives_another_one_no_more_by_an_override(panes: PaneLab) -> None:
    panes.start("lead=developer", program="shell")
    wait_for(panes.panes, "the pane")

    for word in ("claude_config_dir=/tmp", "root_dir=/tmp", "worktree.enabled=false"):
        code, said = run(
            panes, "lead", "fx", f"{SWARM} start sub --roles reviewer --agent demo --override {shlex.quote(word)}"
        )
        assert (code, "code: NOT_FOR_AGENTS" in said) == (4, True), said
        assert word.partition("=")[0] in said
    code, said = run(panes, "lead", "fx", f"{SWARM} start sub --roles reviewer --agent demo --override model=x")

    assert code == 0, said
    assert record(panes, "sub")["agents"][0]["overrides"] == {"model": "x"}
