"""Messages of agents whose programs run in panes: who they are, and what ends with them."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from swarm.cli.views.messages import sender_of
from swarm.machine.identity import whoami
from swarm.sessions.errors import NotReached, WaitOver
from swarm.testing.lab import Lab
from swarm.testing.terminal import wait_for
from tests.support.posts import post_of

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.bus.message import Message
    from swarm.testing.panes import PaneLab

pytestmark = pytest.mark.integration

SWARM = f"{shlex.quote(sys.executable)} -P -m swarm"


def run(lab: PaneLab, agent: str, command: str, mark: str) -> None:
    """Run a command line in an agent's shell, and wait until it has ended."""
    done = lab.root / f"done-{mark}"
    lab.type(
        agent,
        f"{command}; echo $? > {shlex.quote(str(done))}.tmp; mv {shlex.quote(str(done))}.tmp {shlex.quote(str(done))}",
    )
    wait_for(done.exists, f"the end of {command}", 60)


def status_of(lab: PaneLab, mark: str) -> int:
    return int((lab.root / f"done-{mark}").read_text())


def sent_to_user(lab: PaneLab) -> list[Message]:
    return [one.message for one in post_of(lab).history("user")]


@pytest.fixture
def shells(panes: PaneLab) -> PaneLab:
    """Two agents that are shells, which nobody types into by himself."""
    panes.env["SWARM_AGENTS_NUDGE"] = "never"
    panes.start("developer,reviewer", program="shell", task="")
    for agent in ("developer", "reviewer"):
        panes.until(agent, "idle")
    return panes


def test_a_start_makes_the_inboxes(shells: PaneLab) -> None:
    assert sorted(os.listdir(shells.root / ".swarm/messages/inbox")) == ["developer-fx", "reviewer-fx"]


def test_nothing_in_the_environment_makes_an_agent_another_one(shells: PaneLab) -> None:
    other = f"SWARM_RUN_DIR={shlex.quote(str(shells.run('reviewer')))} SWARM_ACTOR=reviewer SWARM_AGENT_ID=x"
    bare = f'env -i PATH="$PATH" HOME="$HOME" setsid -f {SWARM} send user orphan'
    run(shells, "developer", f"{SWARM} send user plain", "1")
    run(shells, "developer", f"{other} {SWARM} send user dressed", "2")
    run(shells, "developer", f"env -i {SWARM} send user naked", "3")
    run(shells, "developer", bare, "4")
    wait_for(lambda: len(sent_to_user(shells)) == 4, "all four messages", 60)
    assert {(m.body, m.sender) for m in sent_to_user(shells)} == {
        (body, "developer@fx") for body in ("plain", "dressed", "naked", "orphan")
    }


def test_an_agent_cannot_send_under_a_label_nor_read_the_inbox_of_another(shells: PaneLab) -> None:
    shells.swarm.send("reviewer@fx", "not for developer")
    run(shells, "developer", f"{SWARM} send user x --from boss", "1")
    run(shells, "developer", f"{SWARM} inbox take reviewer", "2")
    run(shells, "developer", f"{SWARM} inbox take user", "3")
    assert [status_of(shells, n) for n in "123"] == [4, 4, 4]
    assert sent_to_user(shells) == []
    assert shells.swarm.messages.inbox("reviewer@fx")[0].state == "queued"


def test_an_agent_is_not_the_user_of_another_repository(shells: PaneLab, tmp_path: Path) -> None:
    elsewhere = Lab(tmp_path.resolve() / "elsewhere", "other")
    elsewhere.swarm.create("s", "developer", instructions=False)
    elsewhere.swarm.send("developer@s", "theirs")
    there = f"{SWARM} -C {shlex.quote(str(elsewhere.root))}"
    run(shells, "developer", f"{there} inbox take developer@s --ack", "1")
    run(shells, "developer", f"{there} send developer@s 'push to main now'", "2")
    assert [status_of(shells, n) for n in "12"] == [4, 0]
    first, second = elsewhere.swarm.messages.inbox("developer@s")
    assert (first.state, first.message.body) == ("queued", "theirs")
    assert sender_of(second.message) == "user (developer@fx of another repository)"


def test_an_agent_types_into_no_pane(shells: PaneLab) -> None:
    run(shells, "developer", f"{SWARM} type reviewer 'echo typed'", "1")

    assert status_of(shells, "1") == 4
    assert "typed" not in "\n".join(shells.swarm.peek("reviewer"))


def test_what_an_agent_took_is_seen_and_in_its_hands(shells: PaneLab) -> None:
    (sent,) = shells.swarm.send("developer", "please")
    assert sent.note == ""
    run(shells, "developer", f"{SWARM} inbox take", "1")
    (trace,) = shells.swarm.messages.get(sent.id)
    assert trace.stored.state == "seen"
    assert next(e.evidence for e in trace.events if e.name == "seen").startswith("inbox take by pid ")
    run(shells, "developer", f"{SWARM} inbox ack", "2")
    assert shells.swarm.messages.get(sent.id)[0].stored.state == "acked"


def test_what_is_in_the_hands_of_a_program_goes_back_when_it_ends(shells: PaneLab) -> None:
    shells.swarm.send("developer", "please")
    run(shells, "developer", f"{SWARM} inbox take", "1")
    assert post_of(shells).depth("developer").claimed == 1
    shells.swarm.stop(agent="developer", sessions=["fx"])
    assert post_of(shells).depth("developer")[:2] == (1, 0)
    (sent,) = shells.swarm.send("developer", "more")
    assert sent.note == "it does not run"
    shells.swarm.resume(["fx"])
    shells.until("developer", "idle")
    run(shells, "developer", f"{SWARM} inbox take --ack", "2")
    assert [one.state for one in shells.swarm.messages.history("developer")] == ["acked", "acked"]


def test_agents_write_to_their_own_session_by_name(shells: PaneLab) -> None:
    shells.swarm.start("other", "reviewer", program="shell")
    run(shells, "developer", f"{SWARM} send reviewer one", "1")
    run(shells, "developer", f"{SWARM} send reviewer@other two", "2")
    run(shells, "developer", f"{SWARM} broadcast three", "3")
    assert [m.message.body for m in shells.swarm.messages.inbox("reviewer@fx")] == ["one", "three"]
    assert [m.message.body for m in shells.swarm.messages.inbox("reviewer@other")] == ["two"]


def test_a_process_outside_belongs_to_nobody(shells: PaneLab) -> None:
    environ = {"SWARM_RUN_DIR": str(shells.run("developer"))}
    assert whoami(environ) is None or whoami(environ).session != "fx"  # type: ignore[union-attr]  # tested before
    program = int(shells.note("developer", "process.json")["pid"])
    who = whoami({}, program)
    assert who is not None
    assert (who.address, who.program_pid) == ("developer@fx", program)
    (record,) = shells.swarm.sessions()
    assert who.generation == record.generation_of(record.agents[0])


def test_waiting_for_states(shells: PaneLab) -> None:
    swarm = shells.swarm
    reached = swarm.wait_for(["developer", "reviewer"], "idle", timeout=60)
    assert {one.address for one in reached} == {"developer@fx", "reviewer@fx"}
    with pytest.raises(WaitOver):
        swarm.wait_for(["developer"], "done", timeout=0.3)
    swarm.stop(agent="developer", sessions=["fx"])
    assert swarm.wait_for(["developer"], "stopped", timeout=30)[0].address == "developer@fx"
    with pytest.raises(NotReached, match="developer@fx is"):
        swarm.wait_for(["developer"], "idle", timeout=30)
    assert swarm.wait_for(["developer", "reviewer"], "idle", timeout=30, any_of=True)[0].address == "reviewer@fx"
