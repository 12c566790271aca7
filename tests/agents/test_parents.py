"""Who started a session is known from the machine, and hears how its agents end: in the inbox, and as an event."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.agents import endings
from swarm.bus.errors import InboxNotFound
from swarm.bus.filebus import FileBus
from swarm.testing.panes import QUICK, PaneLab
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.message import Message

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SWARM = f"{shlex.quote(sys.executable)} -P -m swarm"
SOON = 90.0
LEAD = "lead@fx"


def run(lab: PaneLab, agent: str, session: str, command: str) -> tuple[int, str]:
    """Run a command line in an agent's shell, and return how it ended and what it printed."""
    out = lab.root.parent / f"out-{len(list(lab.root.parent.glob('out-*')))}"
    file = shlex.quote(str(out))
    lab.type(agent, f"{command} >{file}.text; echo $? >{file}.tmp; mv {file}.tmp {file}", session)
    wait_for(out.exists, f"the end of {command}", SOON)
    return int(out.read_text()), out.with_name(f"{out.name}.text").read_text()


def mail(lab: PaneLab, address: str, kind: str = endings.ENDED) -> list[Message]:
    """Return what came into a box."""
    bus = FileBus(lab.root / ".swarm" / "messages")
    try:
        return [one.message for one in bus.history(address) if not kind or one.message.type == kind]
    except InboxNotFound:
        return []
    finally:
        bus.close()


def events(lab: PaneLab, owner: str) -> list[str]:
    """Return what waits, or waited, in a queue of events, in words; not the ends of turns."""
    return [message.body for message in mail(lab, f"events.{owner}", "") if message.type != "agent-idle"]


def record(lab: PaneLab, session: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((lab.root / ".swarm/sessions" / session / "session.json").read_text())
    return found


def kill(lab: PaneLab, agent: str, session: str) -> None:
    os.kill(int(lab.note(agent, "process.json", session)["pid"]), signal.SIGKILL)


@pytest.fixture
def lead(panes: PaneLab) -> PaneLab:
    """An agent that is a shell, which nobody types into by himself."""
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("lead=architect,reviewer", program="shell", task="")
    panes.until("lead", "idle")
    panes.until("reviewer", "idle")
    return panes


def start_sub(lab: PaneLab, program: str = "shell") -> None:
    """Let the lead start a session of its own."""
    (lab.tree("lead", "fx") / "task.md").write_text(QUICK)
    task = "--task-file task.md" if program == "demo" else ""
    code, _ = run(lab, "lead", "fx", f"{SWARM} start sub --roles developer --agent {program} {task}")
    assert code == 0, lab.swarm.peek("lead", "fx")
    lab.until("developer", "idle", session="sub")


def test_the_machine_says_who_started_a_session_not_the_environment(lead: PaneLab, tmp_path: Path) -> None:
    other = f"SWARM_RUN_DIR={shlex.quote(str(lead.run('reviewer')))} SWARM_ACTOR=reviewer"
    bare = f"env -i PATH=/usr/bin:/bin HOME={shlex.quote(lead.env['HOME'])} {SWARM}"
    for name, command in (("one", f"{other} {SWARM}"), ("two", bare)):
        code, _ = run(lead, "lead", "fx", f"{command} worktree create {name} --roles developer")
        assert code == 0
    assert lead.cli("worktree", "create", "three", "--roles", "developer",
                    env={"SWARM_RUN_DIR": str(lead.run("lead"))}).returncode == 0  # fmt: skip

    generation = record(lead, "fx")["agents"][0]["operation"]
    for name in ("one", "two"):
        assert record(lead, name)["parent"] == {"agent": "lead", "session": "fx", "generation": generation}
        assert lead.json("worktree", "show", f"developer@{name}")["data"]["parent"] == LEAD
    assert "parent" not in record(lead, "fx")
    assert "parent" not in record(lead, "three")
    shown = {one["session"]: one["parent"] for one in lead.json("list")["data"]["sessions"]}
    assert shown == {"fx": "", "one": LEAD, "two": LEAD, "three": ""}

    lead.cli("worktree", "create", "one", "--roles", "reviewer")
    lead.swarm.cleanup(["one", "three"], force=True)
    lead.swarm.restore("one")
    lead.swarm.restore("three")
    assert [lead.swarm.sessions.get(name).parent is None for name in ("one", "three")] == [False, True]


def test_the_team_of_an_agent_starts_from_the_agents_own_commit(lead: PaneLab) -> None:
    tree = lead.tree("lead", "fx")
    lead.write({"plan.md": "the plan\n"}, tree)
    tip = lead.commit("the plan", cwd=tree)
    lead.commit("somebody goes on in the main checkout")
    lead.write({"draft.md": "not committed\n"}, tree)

    def by_the_lead(command: str) -> str:
        code, said = run(lead, "lead", "fx", command)
        assert code == 0, lead.swarm.peek("lead", "fx")
        return said

    said = by_the_lead(f"{SWARM} worktree create one --roles developer --json")
    by_the_lead(f"{SWARM} worktree create two --roles developer --base main")
    by_the_lead(f"(cd {shlex.quote(str(lead.root))} && {SWARM} start sub --roles developer --agent shell)")
    by_the_lead(f"git checkout --quiet --detach && {SWARM} worktree create three --roles developer")
    lead.swarm.create("four", "developer")  # a person's

    assert json.loads(said)["data"]["warnings"] == [
        "uncommitted changes of your worktree lead-fx stay there; the worktrees start from the last commit"
    ]
    found = {name: lead.swarm.sessions.get(name) for name in ("one", "two", "sub", "three", "four")}
    main = lead.git("rev-parse", "main")
    bases = {"one": tip, "two": main, "sub": tip, "three": tip, "four": main}
    assert {name: one.base for name, one in found.items()} == bases
    assert [found[name].base_ref for name in ("one", "two", "three")] == ["swarm/lead-fx", "main", tip]
    assert (lead.tree("developer", "sub") / "plan.md").read_text() == "the plan\n"
    assert not (lead.tree("developer", "sub") / "draft.md").exists()


def test_parent_is_the_agent_that_started_the_session_and_later_the_user(lead: PaneLab) -> None:
    start_sub(lead)
    for command, option in (("swarm", ""), (SWARM, ""), (SWARM, "--subject x")):
        code, said = run(lead, "developer", "sub", f"{command} send parent hello {option}")
        assert code == 0
        assert f" to {LEAD}" in said
    assert [(m.sender, m.body) for m in mail(lead, LEAD, "message")] == [("developer@sub", "hello")] * 3
    code, said = run(lead, "lead", "fx", "swarm send parent 'from the lead'")
    assert (code, said.endswith(" to user\n")) == (0, True), lead.swarm.peek("lead", "fx")

    lead.swarm.cleanup(["fx"], force=True)
    lead.swarm.create("fx", "lead=architect", instructions=False)  # another of its name
    for command in ("swarm", SWARM):
        assert run(lead, "developer", "sub", f"{command} send parent orphaned")[1].endswith(" to user\n")
    assert [m.body for m in mail(lead, "user", "message")] == ["from the lead", "orphaned", "orphaned"]


def test_an_end_reaches_the_user_and_the_parent_once_and_waits_as_an_event_for_the_parent(lead: PaneLab) -> None:
    start_sub(lead, "demo")
    kill(lead, "developer", "sub")

    code, said = run(lead, "lead", "fx", f"{SWARM} wait-event --kind WorkerComplete --timeout 80 --json")

    assert code == 0
    event = json.loads(said)["data"]["event"]
    told = ("kind", "worker", "session", "agent", "status", "cause")
    assert [event[key] for key in told] == [
        *("WorkerComplete", "developer@sub", "sub", "developer", "failure", "killed by signal 9"),
    ]
    wait_for((lead.run("developer", "sub") / "told.json").exists, "the note that it was told", SOON)
    for _ in range(2):
        (lead.run("developer", "sub") / "told.json").unlink()  # as if who told it had been killed
        lead.swarm.delivery.report_endings()
        assert (lead.run("developer", "sub") / "told.json").exists()
    subject = "developer@sub is failed: killed by signal 9"
    assert [m.subject for m in mail(lead, "user")] == [subject]
    assert [m.subject for m in mail(lead, LEAD)] == [subject]
    assert len(events(lead, "lead-fx")) == 1
    assert events(lead, "user") == []  # that it started itself is the lead's own business
    assert run(lead, "lead", "fx", f"{SWARM} wait-event --kind WorkerComplete --timeout 0")[0] == 75

    kill(lead, "reviewer", "fx")
    found = lead.swarm.wait_for_event(timeout=SOON, kinds=["WorkerComplete"])
    assert found is not None
    assert (found.worker, found.status) == ("reviewer@fx", "failure")
    assert lead.swarm.wait_for_event(timeout=0, kinds=["WorkerComplete"]) is None


def test_whoever_waits_hears_of_an_end_that_no_supervisor_saw(lead: PaneLab) -> None:
    start_sub(lead, "demo")
    facts = lead.note("developer", "process.json", "sub")
    os.kill(facts["supervisor_pid"], signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # it has lost its terminal
        os.kill(facts["pid"], signal.SIGKILL)

    code, said = run(lead, "lead", "fx", f"{SWARM} wait-event --kind WorkerComplete --timeout 80")

    assert (code, said) == (0, "WorkerComplete developer@sub: failure (its process ended without a record)\n")
    assert [m.subject for m in mail(lead, LEAD)] == [m.subject for m in mail(lead, "user")] != []


def test_a_parent_that_was_removed_is_told_nothing_and_the_user_all(lead: PaneLab) -> None:
    start_sub(lead, "demo")
    wait_for(lambda: mail(lead, "events.lead-fx", ""), "the end of the first turn told to the lead", SOON)
    lead.swarm.cleanup(["fx"], force=True)
    before = len(events(lead, "user"))
    assert before == 2  # the ends of both of them
    kill(lead, "developer", "sub")

    wait_for(lambda: events(lead, "user")[before:], "the event for the user", SOON)

    assert events(lead, "user")[before:] == ["developer@sub: failure (killed by signal 9)"]
    assert mail(lead, "user")[-1].subject == "developer@sub is failed: killed by signal 9"
    assert not (lead.root / ".swarm/messages/inbox/lead-fx").exists()
    assert not (lead.root / ".swarm/messages/events/lead-fx").exists()


def test_an_agent_that_waits_for_a_person_is_an_event_each_time(lead: PaneLab) -> None:
    start_sub(lead, "demo")
    for _ in range(2):
        lead.type("developer", "permission Bash", session="sub")
        lead.until("developer", "waiting", session="sub")
        code, said = run(lead, "lead", "fx", f"{SWARM} wait-event --kind AgentWaiting --timeout 80")
        assert (code, said) == (0, "AgentWaiting developer@sub: waiting (permission: Bash)\n")
        lead.type("developer", "y", session="sub")
        lead.until("developer", "idle", session="sub")
    assert len(events(lead, "lead-fx")) == 2
