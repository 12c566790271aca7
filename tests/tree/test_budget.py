"""Budgets are drawn from the parent's: all agents of a tree together never get more than its root."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm.machine.run_folder import drawn, runfiles
from swarm.testing.terminal import wait_for
from tests.support.tree import as_agent, code_of, end, process, quiet, told

if TYPE_CHECKING:
    from swarm import Spawned, Swarm
    from swarm.testing.panes import PaneLab

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

#: Writes a record as Claude Code does, one conversation for each agent: an answer for each number that it is told.
FAKE = f"""#!{sys.executable}
import json, os, re, sys, time
folder = os.path.join(os.environ["HOME"], ".claude", "projects", re.sub(r"[^a-zA-Z0-9]", "-", os.getcwd()))
os.makedirs(folder, exist_ok=True)
talk = sys.argv[2]
with open(os.path.join(folder, talk + ".jsonl"), "a") as file:
    print('{{"type":"user"}}', file=file)
print("ready", flush=True)
for line in sys.stdin:
    used = int(line)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime())
    message = {{"id": f"m{{time.time_ns()}}", "model": "claude-opus-4-8", "usage": {{"input_tokens": used}},
               "content": [{{"type": "text", "text": f"read {{used}}"}}]}}
    told = {{"type": "assistant", "uuid": message["id"], "timestamp": stamp, "cwd": os.getcwd(), "message": message}}
    with open(os.path.join(folder, talk + ".jsonl"), "a") as file:
        file.write(json.dumps(told) + "\\n")
    print("done", used, flush=True)
"""


@pytest.fixture
def lab(panes: PaneLab) -> PaneLab:
    """Give a team of one lead that may use up 1,000 tokens."""
    lab = quiet(panes)
    lab.env |= {"SWARM_TREE_MIN_TOKENS": "50", "SWARM_TREE_MAX_DEPTH": "3"}
    lab.program("claude", FAKE)
    role(lab, "boss", tokens=1000)
    role(lab, "lead")
    role(lab, "worker")
    lab.start("boss", "fx", program="claude", task="")
    process(lab, "boss", "fx")
    return lab


def role(lab: PaneLab, name: str, **limits: float) -> None:
    body = {"name": name, "description": "x", "instructions": "You work.", **({"limits": limits} if limits else {})}
    lab.write({f"roles/{name}.yaml": json.dumps(body)})


def spawn(lab: PaneLab, kind: str, name: str, by: Swarm, **options: Any) -> Spawned:
    options = {"from_head": True, "program": "claude"} | options if kind == "subtree" else {"program": "claude"}
    make = by.tree.spawn_subtree if kind == "subtree" else by.tree.spawn_worker
    made = make(f"do {name}", name, **options) if kind == "subtree" else make(name, f"do {name}", **options)
    process(lab, made.agent.name, made.agent.session)
    return made


def limits(lab: PaneLab, agent: str, session: str) -> float:
    """Return how many tokens an agent may use up, as its supervisor was told."""
    return float((runfiles.read(str(lab.run(agent, session)), runfiles.LIMITS) or {})["tokens"])  # type: ignore[arg-type]


def draws(lab: PaneLab, agent: str = "boss", session: str = "fx") -> float:
    return drawn.total(str(lab.run(agent, session)))["tokens"]


def use(lab: PaneLab, agent: str, session: str, tokens: int) -> None:
    lab.see(agent, "ready", session=session)
    lab.type(agent, str(tokens), session=session)
    lab.see(agent, f"done {tokens}", session=session)


def test_a_child_gets_a_share_of_what_its_parent_has_left_down_to_the_leaves(lab: PaneLab) -> None:
    boss = as_agent(lab, "boss", "fx")
    use(lab, "boss", "fx", 200)

    first = spawn(lab, "subtree", "auth", boss)
    second = spawn(lab, "subtree", "docs", boss)
    below = spawn(lab, "worker", "tests", as_agent(lab, "lead", "auth"))

    assert [one.budget for one in (first, second, below)] == ["400 tokens", "200 tokens", "200 tokens"]
    assert (limits(lab, "lead", "auth"), limits(lab, "lead", "docs")) == (400, 200)
    assert limits(lab, "tests", below.agent.session) == 200
    assert (draws(lab), draws(lab, "lead", "auth")) == (600, 200)


def test_a_role_that_allows_less_gets_less(lab: PaneLab) -> None:
    role(lab, "lead", tokens=120)
    made = spawn(lab, "subtree", "auth", as_agent(lab, "boss", "fx"))
    assert (made.budget, limits(lab, "lead", "auth"), draws(lab)) == ("120 tokens", 120, 120)


def test_a_spawn_with_too_little_left_is_refused_with_the_figures_and_leaves_nothing(lab: PaneLab) -> None:
    boss = as_agent(lab, "boss", "fx")
    use(lab, "boss", "fx", 910)
    before, panes = lab.fingerprint(), lab.panes()

    with pytest.raises(Exception, match="boss@fx has 90 tokens of its budget left") as raised:
        boss.tree.spawn_worker("tests", "x", program="claude")

    assert getattr(raised.value, "code", "") == "LIMIT_REACHED"
    assert "tree.min_tokens is 50 tokens" in str(raised.value)
    assert code_of(lambda: boss.tree.spawn_subtree("x", "auth", program="claude", from_head=True)) == "LIMIT_REACHED"
    assert (lab.fingerprint(), lab.panes(), draws(lab)) == (before, panes, 0)


def test_what_an_ended_child_has_not_used_comes_back_and_a_restart_draws_it_again(lab: PaneLab) -> None:
    boss = as_agent(lab, "boss", "fx")
    made = spawn(lab, "worker", "tests", boss)
    session = made.agent.session
    assert draws(lab) == 500
    use(lab, "tests", session, 100)

    end(lab, "tests", session)
    wait_for(lambda: draws(lab) == 100, "what was not used to come back")
    assert told(lab, "boss-fx") == [("WorkerComplete", f"tests@{session}", "failure")]
    lab.swarm.resume([session])

    assert (draws(lab), limits(lab, "tests", session)) == (550, 550)  # the 100, and half of the 900 left
    lab.swarm.stop([session])
    wait_for(lambda: draws(lab) == 100, "the rest to come back once more")
    lab.swarm.cleanup([session], force=True)
    assert draws(lab) == 100


def test_the_end_of_a_grandchild_comes_back_up_to_the_root(lab: PaneLab) -> None:
    spawn(lab, "subtree", "auth", as_agent(lab, "boss", "fx"))
    below = spawn(lab, "subtree", "deep", as_agent(lab, "lead", "auth"))
    use(lab, "lead", "deep", 30)
    end(lab, "lead", "auth")
    wait_for(lambda: draws(lab) == 250, "the lead's own part to come back")  # its child goes on with its 250
    end(lab, "lead", below.agent.session)
    wait_for(lambda: (draws(lab, "lead", "auth"), draws(lab)) == (30, 30), "the rest to come back to the root")


def test_a_lead_is_stopped_at_what_it_has_left_and_its_children_go_on(lab: PaneLab) -> None:
    boss = as_agent(lab, "boss", "fx")
    made = spawn(lab, "worker", "tests", boss)
    use(lab, "tests", made.agent.session, 300)  # counted once, although it works in the folder of its lead
    use(lab, "boss", "fx", 499)
    assert lab.one("boss").status.runs
    use(lab, "boss", "fx", 1)
    found = lab.until("boss", "stopped")
    assert found.status.detail == "over its budget of 1,000 tokens (500 used, 500 drawn by its children)"
    assert lab.one("tests", made.agent.session).status.runs


def test_a_start_by_an_agent_draws_too_and_one_that_fails_gives_it_back(lab: PaneLab) -> None:
    boss = as_agent(lab, "boss", "fx")
    lab.git("branch", "main.auth")
    lab.git("branch", "swarm/boss-fx.auth")

    assert code_of(lambda: boss.tree.spawn_subtree("x", "auth", program="claude", from_head=True)) == "BRANCH_EXISTS"
    assert draws(lab) == 0
    boss.start("gx", "a=lead,b=lead", program="claude")
    assert [limits(lab, name, "gx") for name in ("a", "b")] == [500, 250]
    assert draws(lab) == 750


def test_an_adopted_child_draws_on_its_new_parent(lab: PaneLab) -> None:
    spawn(lab, "subtree", "auth", as_agent(lab, "boss", "fx"))
    spawn(lab, "worker", "tests", as_agent(lab, "lead", "auth"))
    use(lab, "tests", "auth-tests", 50)
    role(lab, "small", tokens=100)
    lab.start("small", "gx", program="claude", task="")

    assert code_of(lambda: lab.person.tree.adopt("tests@auth-tests", "small@gx")) == "LIMIT_REACHED"
    lab.person.tree.adopt("tests@auth-tests", "boss@fx")

    assert draws(lab, "lead", "auth") == 50  # spent there
    assert draws(lab) == 500 + 250
    end(lab, "tests", "auth-tests")
    wait_for(lambda: draws(lab) == 500 + 50, "the rest to come back to the new parent")
