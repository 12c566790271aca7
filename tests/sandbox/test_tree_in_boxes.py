"""An agent in a box has its tools and spawns children, and none of them gets out of it (issue 16, point 6)."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents import endings
from swarm.machine import broker
from swarm.project.model import Boxed
from swarm.sandbox import inherited
from swarm.sandbox.values import IO
from swarm.testing.terminal import wait_for
from tests.support.puppet import Door, Puppets
from tests.support.tree import as_agent, end, mail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SOCKET = f"{IO}/{broker.NAME}"
SWARM = [sys.executable, "-P", "-m", "swarm"]


@pytest.fixture
def puppets(panes: PaneLab, boxes: None) -> Iterator[Puppets]:
    """Give agents in boxes that do what the test says: boss@fx and reviewer@fx; children have the role helper."""
    folder = Path(tempfile.mkdtemp(prefix="sb-"))
    panes.env |= {"SWARM_SANDBOX_READ_WRITE_PATHS": str(folder), "SWARM_SANDBOX_NETWORK": "none"}
    panes.env |= {"SWARM_AGENTS_NUDGE": "never", "SWARM_TREE_SPAWNS_PER_MINUTE": "0"}
    made = Puppets(panes, folder)
    panes.write({".swarm/roles/helper.yaml": f"name: helper\ninstructions: help\ncommand: [{made.program}]\n"})
    made.start("fx", "boss=architect,reviewer", sandbox=True)
    yield made
    shutil.rmtree(folder, ignore_errors=True)


def said(puppets: Puppets, agent: str, *words: str) -> CompletedProcess[str]:
    """Run swarm as an agent in its box."""
    return puppets.done(agent, [*SWARM, *words])


def answer(puppets: Puppets, agent: str, *words: str) -> Any:
    done = said(puppets, agent, *words, "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)["data"]


def shell(puppets: Puppets, agent: str, script: str) -> str:
    done = puppets.done(agent, ["sh", "-ec", script])
    assert done.returncode == 0, done
    return done.stdout.strip()


def box(lab: PaneLab, session: str) -> Boxed | None:
    found = lab.swarm.sessions.get(session).agents[0].box
    assert found is None or isinstance(found, Boxed)
    return found


def test_the_mcp_door_leads_out_of_the_box_as_this_agent_and_no_other(puppets: Puppets) -> None:
    with puppets.door("boss@fx", socket=SOCKET) as door:
        assert door.hello()["serverInfo"]["name"] == "swarm"
        assert {"send_message", "inbox_take", "spawn_subtree"} <= set(door.tools())

        (sent,) = door.call("send_message", to="reviewer", body="please look")["sent"]
        stored = puppets.lab.swarm.messages.get(sent["id"])[0].stored.message
        assert (stored.sender, stored.to, stored.body) == ("boss@fx", "reviewer@fx", "please look")
        assert door.call("send_message", to="nobody", body="x")["error"]["code"] == "AGENT_NOT_FOUND"
        puppets.lab.swarm.send("boss@fx", "paint it blue")
        assert [one["body"] for one in door.call("inbox_take")["messages"]] == ["paint it blue"]
        assert puppets.lab.run("boss").joinpath("door.opened").exists()

    refused = puppets.done("boss@fx", [*SWARM, "mcp", "--agent", "reviewer"])
    assert refused.returncode == 4
    assert "this process belongs to agent boss@fx" in refused.stderr


def test_by_the_command_it_is_the_same_door(puppets: Puppets) -> None:
    door = Door(puppets.run("boss@fx", [*SWARM, "mcp"]))
    try:
        assert door.hello()["serverInfo"]["name"] == "swarm"
        assert door.call("list_agents")["agents"][0]["address"] == "boss@fx"
    finally:
        door.close()


def test_a_lead_in_a_box_spawns_a_subtree_in_a_box_is_told_and_merges_its_work(puppets: Puppets) -> None:
    lab = puppets.lab
    shell(puppets, "boss@fx", "echo plan > plan; git add plan; git commit -qm plan")

    made = answer(puppets, "boss@fx", "spawn", "subtree", "auth", "write the login", "--role", "helper")

    tip = lab.git("rev-parse", "swarm/boss-fx")
    assert (made["base"], lab.git("log", "-1", "--format=%s", "swarm/boss-fx")) == (tip, "plan")
    assert (made["agent"]["parent"], made["agent"]["branch"]) == ("boss@fx", "swarm/boss-fx.auth")
    assert box(lab, "auth") == box(lab, "fx")
    shell(puppets, "helper@auth", "test -e plan; echo login > login; git add login; git commit -qm login")
    told = answer(puppets, "helper@auth", "notify-parent", "success", "the login is done")
    assert (told["parent"], told["ahead"]) == ("boss@fx", 1)
    assert told["head"] == lab.git("rev-parse", "swarm/boss-fx.auth")

    waited = answer(puppets, "boss@fx", "wait-event", "--after", "last", "--timeout", "60")
    assert waited["event"]["head"] == told["head"]
    shell(puppets, "boss@fx", f"git merge -q --no-edit {told['head']}; cat login")
    wait_for(lambda: lab.git("rev-parse", "swarm/boss-fx") == told["head"], "the merge, taken in", 60)


def test_the_end_of_a_child_tells_of_its_last_commit(puppets: Puppets) -> None:
    """Also when it ends before anybody could take it in: another command is at work here."""
    lab = puppets.lab
    answer(puppets, "boss@fx", "spawn", "subtree", "auth", "write the login", "--role", "helper")

    with lab.swarm._locked("be at work"):
        tip = shell(puppets, "helper@auth", "echo x > x; git add x; git commit -qm x; git rev-parse HEAD")
        end(lab, "helper", "auth")
        wait_for((lab.run("helper", "auth") / "exit.json").exists, "its end", 60)
        endings.report(lab.swarm._world)
        assert mail(lab, "events.boss-fx") == []

    wait_for(lambda: mail(lab, "events.boss-fx"), "its completion", 90)
    told = mail(lab, "events.boss-fx")[0].metadata
    assert (told["head"], told["ahead"], told["status"]) == (tip, 1, "failure")
    assert lab.git("rev-parse", "swarm/boss-fx.auth") == tip


def test_a_lead_on_another_branch_in_its_box_spawns_no_subtree(puppets: Puppets) -> None:
    """Its child would be cut from a commit on which it does not stand."""
    shell(puppets, "boss@fx", "git switch -q -c aside; echo a > a; git add a; git commit -qm aside")
    spawn = ("spawn", "subtree", "auth", "do it", "--role", "helper")

    refused = said(puppets, "boss@fx", *spawn)

    assert refused.returncode != 0
    assert "in your box you are on branch aside, and only swarm/boss-fx comes out of it" in refused.stderr
    assert "git switch swarm/boss-fx" in refused.stderr
    shell(puppets, "boss@fx", "git switch -q --detach")
    assert "you are on no branch" in said(puppets, "boss@fx", *spawn).stderr
    assert [one.name for one in puppets.lab.swarm.sessions()] == ["fx"]
    shell(puppets, "boss@fx", "git switch -q swarm/boss-fx")
    assert said(puppets, "boss@fx", *spawn).returncode == 0


def test_a_worker_of_a_lead_in_a_box_works_beside_it_in_a_box(puppets: Puppets) -> None:
    lab = puppets.lab

    made = answer(puppets, "boss@fx", "spawn", "worker", "tests", "run the tests", "--role", "helper")

    worker, tree = made["agent"]["address"], lab.tree("boss", "fx")
    assert (made["agent"]["path"], box(lab, "fx-tests")) == (str(tree), box(lab, "fx"))
    assert shell(puppets, worker, "cat /etc/passwd 2>/dev/null || id -u") == "1000"
    shell(puppets, "boss@fx", "echo secret > ~/mine")
    assert shell(puppets, worker, "ls ~") == ""  # it has a home of its own
    shell(puppets, worker, "echo t > t; git add t; git commit -qm tests")
    wait_for(lambda: lab.git("log", "-1", "--format=%s", "swarm/boss-fx") == "tests", "its commit, taken in", 60)
    assert shell(puppets, "boss@fx", "git log -1 --format=%s") == "tests"
    lab.swarm.stop(["fx-tests"])
    lab.swarm.resume(["fx-tests"])
    assert shell(puppets, worker, "git log -1 --format=%s") == "tests"
    lab.swarm.cleanup(["fx-tests"], force=True)
    assert shell(puppets, "boss@fx", "git log -1 --format=%s; cat t").split() == ["tests", "t"]


@pytest.mark.parametrize(
    "words",
    [
        "spawn subtree a x --agent-cmd /etc/passwd",
        "spawn worker a x --agent-cmd sh",
        "spawn subtree a x --override heartbeat.condition=touch",
        "spawn subtree a x --agent shell",
        "start s --roles helper",
        "run --role helper --no-sandbox",
    ],
)
def test_what_its_child_runs_is_not_for_it_to_say(puppets: Puppets, words: str) -> None:
    done = said(puppets, "boss@fx", *words.split())

    assert done.returncode == 4
    assert "NOT_IN_BOX" in done.stderr
    assert [one.name for one in puppets.lab.swarm.sessions()] == ["fx"]


def test_no_child_gets_out_of_the_box_of_its_lead(puppets: Puppets) -> None:
    """Not by a role, not by settings that have changed, and not by a machine that makes no boxes any more."""
    lab = puppets.lab
    mine = lab.root / ".swarm/roles"
    (mine / "free.yaml").write_text(
        f"name: free\ninstructions: go\ncommand: [{puppets.program}]\nsandbox: false\n"
        "network: {preset: all, hosts: [example.org]}\nsetup: {run: [touch pwned]}\n"
    )

    made = said(puppets, "boss@fx", "spawn", "subtree", "auth", "do it", "--role", "free")

    assert made.returncode == 0, made
    assert box(lab, "auth") == box(lab, "fx")
    assert "its setup is left out" in made.stderr
    assert not (lab.root / ".swarm/worktrees/auth/pwned").exists()
    with pytest.raises(Exception, match="you work in a box"):
        _as_boss(lab).tree.spawn_worker("w", "x", command=["true"])


def _as_boss(lab: PaneLab) -> Any:
    return as_agent(lab, "boss", "fx", sandbox__enabled=False)


def test_what_runs_outside_for_it_is_not_named_by_its_environment(puppets: Puppets) -> None:
    """A server that acts for an agent takes over the variables of its program, but not from a box."""
    acting = as_agent(puppets.lab, "boss", "fx")

    assert acting._opened.world.environ["PATH"] == puppets.lab.env["PATH"]
    assert acting._opened.world.acting is not None


def test_what_a_start_adds_to_the_settings_reaches_no_child_of_an_older_box(puppets: Puppets) -> None:
    lab = puppets.lab
    wider = {"sandbox__network": "all", "sandbox__read_only_paths": ["/opt"], "sandbox__processes": 9999}
    acting = as_agent(lab, "boss", "fx", **wider)

    acting.tree.spawn_subtree("do it", "auth", role="helper")

    found, above = box(lab, "auth"), box(lab, "fx")
    assert found is not None
    assert above is not None
    assert (found.network, found.read_only) == ("none", ())
    assert found.processes == above.processes


@pytest.mark.unit
@pytest.mark.parametrize(
    ("own", "above", "found"),
    [
        (Boxed(network="all"), Boxed(network="model", hosts=("a",)), Boxed(network="model", hosts=("a",))),
        (Boxed(network="none", hosts=("a",)), Boxed(network="all"), Boxed(network="none", hosts=("a",))),
        (Boxed(hosts=("a", "b")), Boxed(hosts=("b", "c")), Boxed(hosts=("b",))),
        (Boxed(read_write=("/a",)), Boxed(read_only=("/a",)), Boxed()),
        (Boxed(read_only=("/a", "/b")), Boxed(read_write=("/a",)), Boxed(read_only=("/a",))),
        (Boxed(private=("10.0.0.0/8",)), Boxed(), Boxed()),
        (Boxed(memory=0, tmp=5), Boxed(memory=7, tmp=3), Boxed(memory=7, tmp=3)),
    ],
)
def test_a_box_within_another_has_what_both_have(own: Boxed, above: Boxed, found: Boxed) -> None:
    assert inherited.within(own, above) == found


def test_children_of_a_boxed_lead_are_held_to_its_deny_rules(puppets: Puppets) -> None:
    role = {"name": "careful", "instructions": "lead", "permissions": {"deny": ["Edit(docs/**)", "Read(~/.ssh)"]}}
    puppets.lab.write({".swarm/roles/careful.yaml": json.dumps(role), "docs/page": "old\n"})
    puppets.lab.commit("a page")
    puppets.start("held", "careful", sandbox=True)

    worker = said(puppets, "careful@held", "spawn", "worker", "w", "help me", "--role", "helper")
    child = answer(puppets, "careful@held", "spawn", "subtree", "part", "do it", "--role", "helper")

    assert worker.returncode != 0
    assert "your box holds deny rules about files there" in worker.stderr
    name, session = child["agent"]["address"].split("@")
    found = box(puppets.lab, session)
    assert found is not None
    assert found.denied == ("Edit(docs/**)", "Read(~/.ssh)")
    rules = puppets.lab.swarm.boxes.explain(name, session).rules
    assert {rule: held for rule, held, _ in rules} == dict.fromkeys(found.denied, True)
