"""What changes outside of an agent's worktree during its turn is noticed, and nobody is accused."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from swarm import Swarm
from swarm.agents import outside
from swarm.machine.run_folder import runfiles
from swarm.programs.status import State
from swarm.testing.terminal import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.sessions.values import AgentStatus
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

SESSION = "feature-x"


class Turns:
    """A team of which one says who is at work; what is on the disk and what git says of it is real."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        lab.swarm.create(SESSION, ["developer", "reviewer"])
        since = time.time_ns() // 1_000_000 - 60_000
        self.states = {"developer": (State.IDLE, since), "reviewer": (State.IDLE, since)}
        self.box: Any = None
        self.swarm = lab.swarm
        self.look()

    def set(self, agent: str, state: State) -> None:
        self.states[agent] = (state, time.time_ns() // 1_000_000)

    def look(self) -> int:
        found = self.swarm.status(SESSION, look=False)
        for one in found[0].agents:
            self.run(one.agent.name).mkdir(parents=True, exist_ok=True)
        agents = tuple(self._with(one) for one in found[0].agents)
        return self.swarm.worktrees.look_outside([found[0]._replace(agents=agents)])

    def _with(self, one: AgentStatus) -> AgentStatus:
        state, since = self.states[one.agent.name]
        agent = one.agent._replace(program="claude", box=self.box)
        return one._replace(agent=agent, status=one.status._replace(state=state, since_ms=since))

    def run(self, agent: str) -> Path:
        return self.lab.root / ".swarm/sessions" / SESSION / "run" / agent

    def notes(self, agent: str = "developer") -> tuple[outside.Outside, ...]:
        return outside.notes(self.run(agent))

    def turn(self, **written: str) -> int:
        """Let the developer have a turn in which files are written."""
        self.set("developer", State.WORKING)
        self.look()
        for name, text in written.items():
            where, _, file = name.partition("__")
            folder = self.lab.root if where == "main" else self.lab.tree(where)
            (folder / file).write_text(text)
        self.set("developer", State.IDLE)
        return self.look()


@pytest.fixture
def turns(lab: Lab) -> Turns:
    return Turns(lab)


def test_files_of_the_main_checkout_and_of_an_agent_at_rest_are_noted(turns: Turns) -> None:
    assert turns.turn(main__new="x", reviewer__stray="x", developer__own="x") == 2

    found = {one.owner: one for one in turns.notes()}
    assert {owner: one.files for owner, one in found.items()} == {"": ("new",), f"reviewer@{SESSION}": ("stray",)}
    assert found[""].tree == str(turns.lab.root)
    assert (found[""].named, found[""].others) == ((), ())
    assert turns.notes("reviewer") == ()
    assert turns.look() == 0  # once


def test_what_was_there_before_the_turn_is_nobodys(turns: Turns) -> None:
    (turns.lab.root / "earlier").write_text("the user's")
    written = time.monotonic()
    wait_for(lambda: time.monotonic() > written + 0.1, "another tick of the kernel")
    turns.turn()
    assert [one.files for one in turns.notes()] == [("earlier",)]  # before the turn, after the look before it
    assert turns.turn(main__later="x") == 1
    assert turns.notes()[0].files == ("later",)


def test_an_agent_at_work_is_not_accused_of_its_own_worktree_and_is_named(turns: Turns) -> None:
    turns.set("reviewer", State.WORKING)

    assert turns.turn(main__new="x", reviewer__own="x") == 1
    assert (turns.notes()[0].owner, turns.notes()[0].others) == ("", (f"reviewer@{SESSION}",))


def test_what_its_conversation_names_is_said(turns: Turns, tmp_path: Path) -> None:
    tree = str(turns.lab.tree("developer"))
    source = {"program": "claude", "home": str(tmp_path), "cwd": tree, "since_ms": 1}
    runfiles.write(str(turns.run("developer")), runfiles.RECORD, source)
    folder = tmp_path / "projects" / "".join(c if c.isalnum() else "-" for c in tree)
    folder.mkdir(parents=True)
    call = {"type": "tool_use", "name": "Write", "input": {"file_path": str(turns.lab.root / "hers")}}
    line = {"type": "assistant", "timestamp": "3", "cwd": tree, "message": {"content": [call]}}
    (folder / "talk.jsonl").write_text(json.dumps(line) + "\n")

    turns.turn(main__hers="x", main__users="x")

    (note,) = turns.notes()
    assert (sorted(note.files), note.named) == (["hers", "users"], ("hers",))
    assert turns.lab.swarm.why("developer", SESSION).outside == (note,)


def test_what_is_deleted_or_committed_there_is_seen_as_far_as_git_tells(turns: Turns) -> None:
    tracked = next(path for path in turns.lab.root.iterdir() if path.is_file())
    turns.set("developer", State.WORKING)
    turns.look()
    tracked.unlink()
    turns.set("developer", State.IDLE)

    assert turns.look() == 1
    assert turns.notes()[0].files == (tracked.name,)


def test_many_files_and_turns_leave_few_notes(turns: Turns) -> None:
    turns.turn(**{f"main__f{number}": "x" for number in range(30)})
    assert (len(turns.notes()[0].files), turns.notes()[0].more) == (20, 10)
    for number in range(15):
        turns.turn(main__again=str(number))

    assert len(turns.notes()) == 10


def test_boxed_agents_and_a_switch_leave_it(turns: Turns, lab: Lab) -> None:
    from swarm.project.model import Boxed

    turns.box = Boxed()
    assert turns.turn(main__new="x") == 0
    turns.box = None
    lab.env["SWARM_AGENTS_WATCH_OUTSIDE"] = "false"
    turns.swarm = Swarm.open(lab.root, environ=lab.env)
    assert turns.turn(main__newer="x") == 0


def test_a_note_that_somebody_broke_is_no_note(turns: Turns) -> None:
    for broken in ([1, "x"], {"files": 7}, "x"):
        runfiles.write(str(turns.run("developer")), runfiles.OUTSIDE, {"found": broken})
        assert turns.notes() == ()
