"""Held tasks: messages into the running turn with a receipt, and requests of the program answered by people."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from swarm import NotForAgents, TaskNotHeld, TaskOver, TaskTaken, UsageProblem
from swarm.approvals.store import Approvals
from swarm.approvals.values import Answer, Verdict
from swarm.testing.terminal import Pane, wait_for
from tests.tasks.conftest import LONG, TaskLab

if TYPE_CHECKING:
    from swarm import Approval, TaskMessage

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
ID = "one"


def requests(lab: TaskLab, but: str = "") -> list[Approval]:
    """Return the requests that wait, but for an earlier one, of which the process may still be there."""
    return [one for one in lab.swarm.approvals() if one.question.id != but]


def asked(lab: TaskLab, but: str = "") -> Approval:
    """Wait until the program asks; return its request."""
    found: list[Approval] = []

    def there() -> bool:
        found[:] = requests(lab, but)
        return bool(found)

    wait_for(there, "its request", LONG)
    return found[0]


def answer(lab: TaskLab, verdict: Verdict, reason: str = "", but: str = "") -> str:
    """Answer it as a person would: these tests have no terminal of a person."""
    name = asked(lab, but).question.id
    Approvals(lab.root / ".swarm/approvals").answer(name, Answer(verdict, "user:test", reason))
    return name


def stands(lab: TaskLab) -> list[tuple[str, int]]:
    return [(str(one.state), one.turn) for one in lab.swarm.tasks.messages(ID)]


def waiting(lab: TaskLab, *before: str, **options: object) -> TaskMessage:
    """Have a held task whose program waits for an answer, and a message that it has heard since."""
    lab.demo(*before, "permission Bash", lab.write_down("asked"), hold=True, task_id=ID, **options)
    asked(lab)
    return lab.swarm.tasks.message(ID, "demo: " + lab.write_down("told"))


def test_a_message_comes_into_the_running_turn_once_and_has_a_receipt(lab: TaskLab) -> None:
    sent = waiting(lab)
    assert (sent.number, sent.text.split()[-1]) == (1, "told")

    answer(lab, Verdict.ALLOW)
    done = lab.swarm.tasks.wait(ID, LONG)

    assert (done.state, len(done.runs), len(done.prompts)) == ("idle", 1, 1)
    assert lab.ledger() == ["asked", "told"]
    assert stands(lab) == [("answered", 1)]


def test_a_message_to_an_idle_task_is_its_next_prompt(lab: TaskLab) -> None:
    lab.over(lab.demo("say first", hold=True, task_id=ID))

    lab.swarm.tasks.message(ID, "demo: " + lab.write_down("told"))
    done = lab.swarm.tasks.wait(ID, LONG)

    assert (done.state, len(done.prompts), lab.ledger(), stands(lab)) == ("idle", 2, ["told"], [("answered", 2)])


def test_what_a_program_cannot_hear_while_it_works_is_its_next_prompt(lab: TaskLab) -> None:
    """A shell reads its script and nothing else; so do Codex, Gemini CLI and opencode."""
    go = lab.file.with_name("go")
    lab.shell(f"echo begun >>'{lab.file}'; until test -e '{go}'; do sleep 0.05; done", hold=True, task_id=ID)
    wait_for(lambda: lab.ledger() == ["begun"], "its first word", LONG)
    for word in ("told", "again"):
        lab.swarm.tasks.message(ID, f"echo {word} >>'{lab.file}'")
    assert stands(lab) == [("queued", 0), ("queued", 0)]

    go.touch()
    wait_for(lambda: stands(lab) == [("answered", 2), ("answered", 2)], "their turn", LONG)

    done = lab.swarm.tasks.get(ID)
    assert (done.state, len(done.prompts), lab.ledger()) == ("idle", 2, ["begun", "told", "again"])


def test_one_id_is_one_message(lab: TaskLab) -> None:
    lab.over(lab.demo("say first", hold=True, task_id=ID))
    text = "demo: " + lab.write_down("told")

    lab.swarm.tasks.message(ID, text, message_id="mine")
    lab.swarm.tasks.wait(ID, LONG)
    assert lab.swarm.tasks.message(ID, text, message_id="mine").turn == 2
    with pytest.raises(TaskTaken):
        lab.swarm.tasks.message(ID, "something else", message_id="mine")

    assert (lab.swarm.tasks.wait(ID, LONG).state, lab.ledger()) == ("idle", ["told"])


def test_a_message_is_refused_where_nobody_would_hear_it(lab: TaskLab) -> None:
    task = lab.shell(f"echo begun >>'{lab.file}'; sleep 1000", task_id=ID)
    lab.running(task)
    with pytest.raises(TaskNotHeld, match="it is not held"):
        lab.swarm.tasks.message(ID, "more")
    with pytest.raises(UsageProblem):
        lab.swarm.tasks.message(ID, " ")
    with pytest.raises(UsageProblem):
        lab.swarm.tasks.message(ID, "more", message_id="../x")
    lab.swarm.tasks.cancel(ID)
    with pytest.raises(TaskOver, match="cannot send a message to one: it is cancelled"):
        lab.swarm.tasks.message(ID, "more")

    assert lab.swarm.tasks.messages(ID) == ()


def test_what_was_not_heard_before_the_end_is_said_to_be_undelivered(lab: TaskLab) -> None:
    lab.running(lab.shell(f"echo begun >>'{lab.file}'; sleep 1000", hold=True, task_id=ID))
    lab.swarm.tasks.message(ID, "echo more")

    lab.swarm.tasks.cancel(ID)

    assert stands(lab) == [("undelivered", 0)]


# --- requests -------------------------------------------------------------------------------------


def test_a_request_is_answered_by_a_person_and_says_who_asks(lab: TaskLab) -> None:
    waiting(lab)
    request = asked(lab).question
    assert (request.who, request.summary, request.cwd) == (
        "task one",
        "Bash(demo)",
        str(lab.root / ".swarm/workspaces/session-one/work"),
    )

    answer(lab, Verdict.DENY, "not on a Friday")
    lab.swarm.tasks.wait(ID, LONG)

    said = lab.swarm.tasks.output(ID)[0].stdout.decode()
    assert "may not use Bash: not on a Friday" in said


def test_who_watches_the_approvals_sees_it_come_and_go(lab: TaskLab) -> None:
    lab.over(lab.shell("true"))  # so that there is something to watch
    watcher = Pane([sys.executable, "-P", "-m", "swarm", "approvals", "--watch", "--json"], env=lab.env, cwd=lab.root)
    try:
        waiting(lab)
        watcher.see('"state": "open"', LONG)
        answer(lab, Verdict.ALLOW)
        watcher.see('"state": "allowed"', LONG)
    finally:
        watcher.close()


def test_without_an_answer_a_request_is_denied_in_time(lab: TaskLab) -> None:
    lab.env["SWARM_TASKS_ANSWER_WITHIN"] = "1"

    done = lab.over(lab.demo("permission Bash", "say gone on", hold=True))

    assert (done.state, done.output) == ("idle", "gone on")
    assert "nobody answered" in lab.swarm.tasks.output(done.id)[0].stdout.decode()
    assert [str(one.standing) for one in lab.swarm.approvals(everything=True)] == ["withdrawn"]


def test_an_answer_for_always_holds_for_the_task_alone(lab: TaskLab) -> None:
    waiting(lab)
    given = Answer(Verdict.ALLOW, "user:test", always=True)
    Approvals(lab.root / ".swarm/approvals").answer(asked(lab).question.id, given)
    lab.swarm.tasks.wait(ID, LONG)

    lab.swarm.tasks.continue_(ID, "demo: permission Bash\ndemo: say second")
    assert lab.swarm.tasks.wait(ID, LONG).output == "second"

    lab.demo("permission Bash", hold=True, task_id="other")
    assert asked(lab).question.who == "task other"


def test_only_its_supervisor_asks_for_a_task(lab: TaskLab) -> None:
    """A program that asks in the name of another task is refused."""
    waiting(lab)
    (file,) = (lab.root / ".swarm/tasks/one/runs").glob("*/ask-1.json")
    code = f"from swarm import Swarm; Swarm.open({str(lab.root)!r}).tasks.ask('one', {str(file)!r})"
    other = lab.over(lab.swarm.tasks.submit("x", command=[sys.executable, "-P", "-c", code]))

    assert other.state == "failed"
    assert NotForAgents.__name__ in lab.swarm.tasks.output(other.id)[0].stderr.decode()


# --- deaths ---------------------------------------------------------------------------------------


def test_a_killed_supervisor_neither_loses_nor_doubles_a_message(lab: TaskLab) -> None:
    """The program had heard it, and was killed before it did what it says; it does it once, when it goes on."""
    waiting(lab, lab.write_down("begun"))
    run = lab.running(lab.swarm.tasks.get(ID))
    first = answer(lab, Verdict.ALLOW)
    wait_for(lambda: stands(lab)[0][0] in ("in_turn", "answered"), "the receipt", LONG)
    os.kill(run.supervisor, signal.SIGKILL)

    wait_for(lambda: lab.swarm.tasks.get(ID).state == "idle" or bool(requests(lab, first)), "its end", LONG)
    if lab.swarm.tasks.get(ID).state != "idle":
        answer(lab, Verdict.ALLOW, but=first)  # it was killed before the order that asked was noted: it asks again
    done = lab.swarm.tasks.wait(ID, LONG)

    assert (done.state, stands(lab)) == ("idle", [("answered", 1)])
    assert lab.ledger() == ["begun", "asked", "told"]


def test_a_message_outlives_the_supervisor_that_did_not_give_it(lab: TaskLab) -> None:
    lab.demo(lab.write_down("begun"), "permission Bash", hold=True, task_id=ID)
    run = lab.running(lab.swarm.tasks.get(ID))
    first = asked(lab).question.id
    os.kill(run.supervisor, signal.SIGSTOP)  # it gives nothing any more
    lab.swarm.tasks.message(ID, "demo: " + lab.write_down("told"))
    os.kill(run.supervisor, signal.SIGKILL)

    wait_for(lambda: len(lab.swarm.tasks.get(ID).runs) == 2, "the next run", LONG)
    answer(lab, Verdict.ALLOW, but=first)
    done = lab.swarm.tasks.wait(ID, LONG)

    assert (done.state, lab.ledger(), stands(lab)) == ("idle", ["begun", "told"], [("answered", 1)])
