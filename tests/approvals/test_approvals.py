"""What agents ask to be allowed: asked by a real process, answered from another, recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from swarm import GrantExists, GrantNotFound, NotAPerson, SwarmError
from swarm.approvals.values import Question, Standing
from swarm.callers.caller import user_name
from swarm.kit.errors import Ambiguous, UsageProblem
from swarm.machine import processes
from swarm.machine.run_folder import hooklog, program_facts
from swarm.programs.reviewer import verdict_of
from swarm.testing.terminal import wait_for, without_terminal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from swarm.approvals.values import Approval
    from swarm.testing.lab import Lab

pytestmark = pytest.mark.integration

RUN = {"command": "touch x; rm -rf y", "description": "x"}


class Asker:
    """Runs ``swarm permission-request`` as an agent program's hook does."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.agent = "developer@fx"
        self.running: list[subprocess.Popen[str]] = []

    def ask(
        self, tool: str = "Bash", given: Any = None, *args: str, cwd: str = "", **env: str
    ) -> subprocess.Popen[str]:
        """Put a question."""
        asked = {"tool_name": tool, "tool_input": RUN if given is None else given}
        words = json.dumps({**asked, "cwd": cwd} if cwd else asked)
        return self.say(words, *args, **env)

    def say(self, words: str, *args: str, **env: str) -> subprocess.Popen[str]:
        """Give the command anything on stdin."""
        process = subprocess.Popen(
            [sys.executable, "-m", "swarm", "permission-request", "--agent", self.agent, *args],
            cwd=self.lab.root,
            env={**self.lab.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(words)
        process.stdin.close()
        self.running.append(process)
        return process

    def asked(self, count: int = 1) -> tuple[Approval, ...]:
        """Wait until so many questions wait."""
        wait_for(lambda: len(self.lab.swarm.approvals()) == count, f"{count} open questions", 60)
        return self.lab.swarm.approvals()

    def heard(self, process: subprocess.Popen[str], trouble: str = "") -> Any:
        """Return what the program is told; the trouble is for whoever looks at its stderr."""
        assert process.stdout is not None
        assert process.stderr is not None
        out = process.stdout.read()
        assert process.wait(60) == 0
        err = process.stderr.read()
        assert trouble in err if trouble else err == ""
        return json.loads(out)["hookSpecificOutput"]["decision"] if out else None


@pytest.fixture
def asker(lab: Lab) -> Iterator[Asker]:
    """Give a session with one agent, and someone who asks for it."""
    lab.swarm.create("fx", "developer")
    made = Asker(lab)
    yield made
    for process in made.running:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def test_a_question_is_shown_and_approved_from_another_process(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    assert (one.question.agent, one.question.session, one.question.tool) == ("developer", "fx", "Bash")
    assert one.question.given == RUN
    assert one.question.summary == "Bash(touch x; rm -rf y)"
    assert one.standing is Standing.OPEN

    for short in (one.question.id[:1], one.question.id[:2].upper()):
        with pytest.raises(UsageProblem, match="3 letters at least"):
            asker.lab.person.approvals.approve(short)
    asker.lab.person.approvals.approve(one.question.id[:3], reason="fine")

    assert asker.heard(process) == {"behavior": "allow"}
    (done,) = asker.lab.swarm.approvals(everything=True)
    assert done.standing is Standing.ALLOWED
    assert done.answer is not None
    assert done.answer.by.startswith("user")
    assert done.answer.reason == "fine"
    assert asker.lab.swarm.approvals() == ()


def test_the_beginning_of_two_open_questions_answers_neither(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    store = asker.lab.swarm.approvals._approval_store()
    ids = iter(("kdjrtb", "kdjxwz"))
    monkeypatch.setattr("swarm.approvals.store._fresh_id", lambda: next(ids))
    me = (os.getpid(), processes.start_of(os.getpid()) or 0, processes.boot_id())
    put = [store.ask(Question("", "fx", "developer", "Bash", RUN, 0, *me)) for _ in range(2)]
    monkeypatch.undo()
    assert [one.id for one in put] == ["kdjrtb", "kdjxwz"]

    for answer in (asker.lab.person.approvals.approve, asker.lab.person.approvals.deny):
        with pytest.raises(Ambiguous, match="kdjrtb, kdjxwz"):
            answer("kdj")
    assert len(asker.lab.swarm.approvals()) == 2
    asker.lab.person.approvals.deny("kdjx")
    assert [one.question.id for one in asker.lab.swarm.approvals()] == ["kdjrtb"]


COLOURS = {
    "question": "Which colour?",
    "header": "Colour",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cool"}],
}
SIZE = {"question": "How large?", "header": "Size", "options": []}


def test_a_question_in_words_is_answered_in_words(asker: Asker) -> None:
    """By a person only: neither a reviewer nor an answer for always says a word."""
    swarm = asker.lab.person
    process = asker.ask("AskUserQuestion", {"questions": [COLOURS, SIZE]})
    (one,) = asker.asked()
    assert one.question.questions == ("Which colour?", "How large?")
    assert one.question.summary == "AskUserQuestion(Which colour? Red | Blue; How large?)"
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "2 questions, and 0 answers given"),
        ({"answers": ["Blue"]}, "2 questions, and 1 answer given"),
        ({"answers": ["Blue", "10"], "always": True}, "for always"),
    )
    for how, why in wrong:
        with pytest.raises(UsageProblem, match=why):
            swarm.approvals.approve(one.question.id, **how)

    swarm.approvals.approve(one.question.id, answers=["Blue", "as large as a house"])

    assert asker.heard(process) == {
        "behavior": "allow",
        "updatedInput": {
            "questions": [COLOURS, SIZE],
            "answers": {"Which colour?": "Blue", "How large?": "as large as a house"},
        },
    }
    (done,) = swarm.approvals(everything=True)
    assert done.answer is not None
    assert done.answer.answers == ("Blue", "as large as a house")


def test_a_question_about_a_tool_takes_no_words(asker: Asker) -> None:
    asker.ask()
    (one,) = asker.asked()

    with pytest.raises(UsageProblem, match="in words"):
        asker.lab.person.approvals.approve(one.question.id, answers=["yes"])

    assert len(asker.asked()) == 1


def test_a_denial_reaches_the_program_with_its_reason(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()

    asker.lab.person.approvals.deny(one.question.id, reason="use the staging database")

    assert asker.heard(process) == {"behavior": "deny", "message": "use the staging database"}


def test_the_first_answer_counts(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.deny(one.question.id)

    with pytest.raises(SwarmError) as caught:
        asker.lab.person.approvals.approve(one.question.id)

    assert caught.value.code == "ALREADY_ANSWERED"
    assert asker.heard(process)["behavior"] == "deny"


def test_nobody_answers_in_time_and_the_program_asks_by_itself(asker: Asker) -> None:
    process = asker.ask("Bash", None, "--wait", "0.2")

    assert asker.heard(process) is None
    (one,) = asker.lab.swarm.approvals(everything=True)
    assert one.standing is Standing.WITHDRAWN


def test_a_question_whose_asker_was_killed_cannot_be_answered(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    process.kill()
    process.wait()

    asker.asked(0)
    (gone,) = asker.lab.swarm.approvals(everything=True)
    assert gone.standing is Standing.GONE
    with pytest.raises(SwarmError) as caught:
        asker.lab.person.approvals.approve(one.question.id)
    assert caught.value.code == "ALREADY_ANSWERED"


def test_always_needs_no_second_question_but_only_for_the_same(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id, always=True)
    assert asker.heard(process) == {"behavior": "allow"}

    assert asker.heard(asker.ask()) == {"behavior": "allow"}
    in_other_words = {**RUN, "description": "the same, as the model says it this time"}
    assert asker.heard(asker.ask("Bash", in_other_words)) == {"behavior": "allow"}

    asker.ask("Bash", {"command": "touch z"})
    (other,) = asker.asked()
    assert other.question.given == {"command": "touch z"}
    kinds = [a.answer.by for a in asker.lab.swarm.approvals(everything=True) if a.answer]
    assert sorted(kind.split(":")[0] for kind in kinds) == ["rule", "rule", "user"]


def test_the_same_is_the_same_in_the_same_folder_only(asker: Asker) -> None:
    process = asker.ask(cwd="/srv/a")
    (one,) = asker.asked()
    assert one.question.cwd == "/srv/a"
    asker.lab.person.approvals.approve(one.question.id, always=True)
    assert asker.heard(process) == {"behavior": "allow"}

    assert asker.heard(asker.ask(cwd="/srv/a")) == {"behavior": "allow"}
    asker.ask(cwd="/")
    (elsewhere,) = asker.asked()
    assert elsewhere.question.cwd == "/"


def test_a_record_without_a_folder_is_read(asker: Asker) -> None:
    """As an earlier swarm wrote it: no folder, no summary."""
    asker.ask()
    (one,) = asker.asked()
    path = asker.lab.root / ".swarm" / "approvals" / f"{one.question.id}.question.json"
    record = json.loads(path.read_text())
    for key in ("cwd", "said"):
        record.pop(key)
    path.write_text(json.dumps(record))

    (old,) = asker.lab.swarm.approvals()

    assert old.question.cwd == ""


# --- what nobody but swarm wrote ------------------------------------------------------------------------


def answer_file(asker: Asker, question: str, kind: str = "answer") -> Path:
    return asker.lab.root / ".swarm" / "approvals" / f"{question}.{kind}.json"


def test_an_answer_written_by_hand_allows_nothing(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    by_hand = {
        "verdict": "allow",
        "by": "user:root",
        "reason": "",
        "always": True,
        "rule": "",
        "at_ms": 1,
        "answers": [],
    }

    answer_file(asker, one.question.id).write_text(json.dumps({"schema": 1, **by_hand}))

    assert asker.heard(process, "cannot believe") is None
    problems: list[SwarmError] = []
    assert asker.lab.swarm.approvals(everything=True, problems=problems) == ()
    assert "cannot believe" in problems[0].message


@pytest.mark.parametrize("change", ["answer", "question", "another question"])
def test_an_answer_for_always_counts_for_the_question_it_was_given_to_alone(asker: Asker, change: str) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id, always=True)
    assert asker.heard(process) == {"behavior": "allow"}
    other = {"command": "rm -rf /"}
    if change == "answer":
        path = answer_file(asker, one.question.id, "always")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"rule": "Bash(rm *)"}))
    elif change == "question":
        path = answer_file(asker, one.question.id, "question")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"given": other}))
    else:
        for kind in ("question", "always"):
            path = answer_file(asker, one.question.id, kind)
            record = json.loads(path.read_text()) | ({"given": other, "id": "zzzzzz"} if kind == "question" else {})
            answer_file(asker, "zzzzzz", kind).write_text(json.dumps(record))

    asker.ask("Bash", other)

    (left,) = asker.asked()
    assert left.question.given == other


def test_a_denial_for_always_is_not_taken_back_by_a_file(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.deny(one.question.id, always=True)
    asker.heard(process)
    answer = answer_file(asker, one.question.id).read_text()
    answer_file(asker, one.question.id, "revoked").write_text(answer)

    process = asker.ask()

    asker.asked()  # it is not believed, and so a person is asked
    asker.lab.person.approvals.deny(asker.asked()[0].question.id)
    assert asker.heard(process)["behavior"] == "deny"


# --- grants -------------------------------------------------------------------------------------------------


def test_a_program_with_a_grant_answers_by_its_name_until_that_is_revoked(asker: Asker) -> None:
    lab = asker.lab
    lab.env["SWARM_GRANT"] = lab.person.approvals.grant("bridge")
    assert [(one.name, one.by) for one in lab.swarm.approvals.grants()] == [("bridge", user_name())]
    process = asker.ask()
    (one,) = asker.asked()

    without_terminal(lambda: lab.swarm.approvals.approve(one.question.id))

    assert asker.heard(process) == {"behavior": "allow"}
    assert [each.answer.by for each in lab.swarm.approvals(everything=True) if each.answer] == ["grant:bridge"]
    with pytest.raises(NotAPerson, match="a program with a grant makes no other"):
        without_terminal(lambda: lab.swarm.approvals.grant("more"))
    lab.person.approvals.revoke_grant("bridge")
    assert lab.swarm.approvals.grants() == ()
    asker.ask()
    (again,) = asker.asked()
    with pytest.raises(NotAPerson, match="SWARM_GRANT holds no valid grant"):
        without_terminal(lambda: lab.swarm.approvals.approve(again.question.id))


def test_a_grant_is_made_by_a_person_and_not_by_a_file(asker: Asker) -> None:
    lab = asker.lab
    token = lab.person.approvals.grant("bridge")
    for refused in ("bridge", "BRIDGE"):
        with pytest.raises(GrantExists):
            lab.person.approvals.grant(refused)
    with pytest.raises(NotAPerson):
        without_terminal(lambda: lab.swarm.approvals.grant("mine"))
    with pytest.raises(GrantNotFound):
        lab.person.approvals.revoke_grant("mine")
    folder = lab.root / ".swarm" / "grants"
    record = json.loads((folder / "bridge.json").read_text())
    assert token.partition(":")[2] not in json.dumps(record)
    (folder / "mine.json").write_text(json.dumps(record | {"name": "mine"}))

    assert [one.name for one in lab.swarm.approvals.grants()] == ["bridge"]
    assert (lab.root / ".swarm/key").stat().st_mode & 0o777 == 0o600


# --- rules ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "verb"),
    [("Bash(ls *)", "approve"), ("Bash(ls *)", "deny"), ("Read", "approve"), ("Bash(touch *)", "approve")],
)
def test_a_rule_that_is_not_about_the_question_is_refused(asker: Asker, rule: str, verb: str) -> None:
    asker.ask()
    (one,) = asker.asked()

    with pytest.raises(UsageProblem, match="does not match") as caught:
        getattr(asker.lab.person.approvals, verb)(one.question.id, rule=rule)

    assert f"swarm {verb} {one.question.id} --always" in caught.value.hint
    assert asker.lab.swarm.approvals() == (one,)


@pytest.mark.parametrize("rule", ["", "Bash(npm *)"])
def test_what_holds_for_always_is_listed_and_can_be_revoked(asker: Asker, rule: str) -> None:
    process = asker.ask("Bash", {"command": "npm test"})
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id, always=True, rule=rule)
    asker.heard(process)
    assert [a.question.id for a in asker.lab.swarm.approvals(standing=True)] == [one.question.id]

    revoked = asker.lab.person.approvals.revoke(one.question.id, reason="meant for once")

    assert revoked.revoked is not None
    assert revoked.revoked.reason == "meant for once"
    assert asker.lab.swarm.approvals(standing=True) == ()
    asker.ask("Bash", {"command": "npm test"})
    (again,) = asker.asked()
    assert again.question.id != one.question.id
    with pytest.raises(SwarmError) as caught:
        asker.lab.person.approvals.revoke(one.question.id)
    assert caught.value.code == "ALREADY_ANSWERED"


def test_what_was_allowed_once_cannot_be_revoked(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    with pytest.raises(SwarmError, match="it has no answer yet"):
        asker.lab.person.approvals.revoke(one.question.id)
    asker.lab.person.approvals.approve(one.question.id)
    asker.heard(process)

    with pytest.raises(SwarmError, match="for that one time") as caught:
        asker.lab.person.approvals.revoke(one.question.id)

    assert caught.value.code == "USAGE"


def test_what_was_allowed_always_does_not_hold_for_a_later_agent_of_the_same_name(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id, always=True)
    assert asker.heard(process) == {"behavior": "allow"}
    asker.lab.swarm.cleanup(["fx"])
    asker.lab.swarm.create("fx", "developer")
    assert asker.lab.swarm.approvals(standing=True) == ()

    asker.ask()

    (again,) = asker.asked()
    assert again.question.given == RUN


def test_a_rule_answers_what_it_covers_and_nothing_hidden_behind_it(asker: Asker) -> None:
    process = asker.ask("Bash", {"command": "npm test"})
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id, rule="Bash(npm test *)")
    asker.heard(process)

    assert asker.heard(asker.ask("Bash", {"command": "npm test -- a.js"})) == {"behavior": "allow"}
    asker.ask("Bash", {"command": "npm test && rm -rf /"})
    (left,) = asker.asked()
    assert left.question.given["command"] == "npm test && rm -rf /"


def test_a_denied_rule_wins(asker: Asker) -> None:
    for rule, answer in (
        ("Bash(git push *)", asker.lab.person.approvals.deny),
        ("Bash(git *)", asker.lab.person.approvals.approve),
    ):
        process = asker.ask("Bash", {"command": rule[5:-1].replace("*", "x")})
        (one,) = asker.asked()
        answer(one.question.id, rule=rule)
        asker.heard(process)

    assert asker.heard(asker.ask("Bash", {"command": "git status"}))["behavior"] == "allow"
    assert asker.heard(asker.ask("Bash", {"command": "git push origin"}))["behavior"] == "deny"


@pytest.mark.parametrize("words", ["", "no json", "[]", "{}", '{"tool_name": 5, "tool_input": {}}', "\x00", "{" * 5000])
def test_what_is_no_question_breaks_nothing_and_allows_nothing(asker: Asker, words: str) -> None:
    assert asker.heard(asker.say(words), "warning: permission-request: ") is None
    assert asker.lab.swarm.approvals(everything=True) == ()


def test_an_unknown_agent_is_not_asked_for(asker: Asker) -> None:
    process = asker.ask("Bash", None, "--agent", "nobody@fx")

    assert asker.heard(process, "has no agent nobody") is None


@pytest.mark.parametrize("question", ["", "zzzzzz", "../x", "x" * 300])
def test_a_question_that_is_not_there(asker: Asker, question: str) -> None:
    with pytest.raises(SwarmError) as caught:
        asker.lab.person.approvals.approve(question)

    assert caught.value.code == "APPROVAL_NOT_FOUND"


def test_a_bad_rule_answers_nothing(asker: Asker) -> None:
    asker.ask()
    (one,) = asker.asked()

    with pytest.raises(SwarmError) as caught:
        asker.lab.person.approvals.approve(one.question.id, rule="Bsh(ls *)")

    assert caught.value.code == "USAGE"
    assert asker.lab.swarm.approvals() == (one,)


# --- the records --------------------------------------------------------------------------------------


def test_one_bad_record_hides_no_other_and_is_told(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    folder = asker.lab.root / ".swarm" / "approvals"
    (folder / "zzzzzz.question.json").write_text('{"schema": 99}')
    (folder / "yyyyyy.question.json").write_text('{"torn')
    problems: list[SwarmError] = []

    assert asker.lab.swarm.approvals(problems=problems) == (one,)

    assert [problem.code for problem in problems] == ["RECORD", "RECORD"]
    assert "zzzzzz.question.json" in str(problems)
    asker.lab.person.approvals.approve(one.question.id)
    assert asker.heard(process) == {"behavior": "allow"}


@pytest.mark.parametrize("lost", ["answer", "all"])
def test_where_an_answer_for_always_cannot_be_read_a_person_is_asked(asker: Asker, tmp_path: Path, lost: str) -> None:
    """It may have been a denial: neither what else was answered nor the reviewer counts then."""
    denied = ""
    for command, verb in (("make x", asker.lab.person.approvals.deny), ("make", asker.lab.person.approvals.approve)):
        process = asker.ask("Bash", {"command": command})
        (one,) = asker.asked()
        verb(one.question.id, rule=f"Bash({command} *)")
        asker.heard(process)
        denied = denied or one.question.id
    folder = asker.lab.root / ".swarm" / "approvals"
    (folder / f"{denied}.answer.json").write_text('{"schema": 99}')
    if lost == "all":
        (folder / f"{denied}.question.json").write_text("{")

    _reviewer(asker, tmp_path, "echo ALLOW")
    asker.ask("Bash", {"command": "make"})

    (left,) = asker.asked()
    assert left.question.given == {"command": "make"}


def test_an_answer_for_always_is_found_without_reading_what_others_asked(asker: Asker) -> None:
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id, always=True)
    asker.heard(process)
    asker.heard(asker.ask())  # the folder is known now
    folder = asker.lab.root / ".swarm" / "approvals"
    for number in range(5):
        (folder / f"zzzzz{number}.question.json").write_text("not read")
        (folder / f"zzzzz{number}.answer.json").write_text("not read")

    assert asker.heard(asker.ask()) == {"behavior": "allow"}


def test_what_an_agent_asked_is_a_line_each_when_it_is_gone(asker: Asker) -> None:
    swarm = asker.lab.person
    secret = {"command": "touch x" + " y" * 300 + " TOKEN"}
    for given, answer in ((secret, swarm.approvals.approve), (RUN, swarm.approvals.deny)):
        process = asker.ask("Bash", given)
        (one,) = asker.asked()
        answer(one.question.id, reason="so it is")
        asker.heard(process)
    before = swarm.approvals(everything=True)

    swarm.cleanup(["fx"])

    folder = asker.lab.root / ".swarm" / "approvals"
    assert [path.name for path in folder.iterdir() if path.suffix == ".json"] == []
    assert "TOKEN" not in (folder / "history.jsonl").read_text()
    after = swarm.approvals(everything=True)
    assert [one.question.summary for one in after] == [one.question.summary for one in before]
    assert [one.answer for one in after] == [one.answer for one in before]
    assert [one.question.given for one in after] == [{}, {}]
    assert swarm.approvals() == ()
    with (folder / "history.jsonl").open("a") as file:
        file.write('{"schema": 1, "torn\n')
    problems: list[SwarmError] = []
    assert len(asker.lab.swarm.approvals(everything=True, problems=problems)) == 2
    assert "1 line" in problems[0].message


def test_the_records_of_agents_that_stay_are_kept(asker: Asker) -> None:
    asker.lab.swarm.create("other", "developer")
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id, always=True)
    asker.heard(process)

    asker.lab.swarm.cleanup(["other"])

    assert asker.heard(asker.ask()) == {"behavior": "allow"}


# --- who asks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["developer", "Developer@fx", "fx/developer"])
def test_an_agent_is_named_as_everywhere(asker: Asker, named: str) -> None:
    asker.agent = named
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id)

    assert (one.question.agent, one.question.session) == ("developer", "fx")
    assert asker.heard(process) == {"behavior": "allow"}


def test_without_a_session_an_agent_of_two_is_not_guessed(asker: Asker) -> None:
    asker.lab.swarm.create("gx", "developer")
    asker.agent = "developer"

    assert asker.heard(asker.ask(), "developer could be developer@fx, developer@gx") is None
    assert asker.lab.swarm.approvals() == ()


def test_what_cannot_be_asked_is_told_on_stderr_and_by_why(asker: Asker) -> None:
    run_dir = asker.lab.root / ".swarm/sessions/fx/run/developer"
    run_dir.mkdir(parents=True)

    assert asker.heard(asker.say('{"tool_input": {}}'), "the request names no tool") is None

    assert "the request names no tool" in (asker.lab.swarm.hooks.trouble("developer", "fx") or (0, ""))[1]
    asker.agent = "nobody"
    assert asker.heard(asker.ask(), "there is no agent nobody") is None


# --- the reviewer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("ALLOW", "allow"),
        ("**ALLOW**\n", "allow"),
        ("DENY: it deletes files", "deny"),
        ("DENY", "deny"),
        ("ASK_USER", None),
        ("", None),
        ("I would say ALLOW", None),
        ("ALLOWED", None),
        ("allow", None),
        ("DENYING nothing", None),
        ("ALLOW: it only reads", "allow"),
        ("**ALLOW**: it only reads", "allow"),
        ("```\nALLOW\n```", "allow"),
        ("> __DENY__\nit deletes files", "deny"),
        ("ALLOW? No. DENY", None),
        ("ALLOW or DENY: I'd say DENY", None),
        ("ALLOW\nDENY: x", None),
        ("ALLOW: fine\nDENY: x", None),
        ("ALLOW\nall is well", None),
        ("ALLOW: only if the user agrees, else ASK_USER", None),
        ("ALLOW: if the user agrees", None),
        ("ALLOW: no, this is denied", None),
        ("\u274c ALLOW", None),
        ("ALLOW - wait, this deletes the database. DENY: destructive", None),
        ("ALLOW_NOT", None),
        ("NOT ALLOW", None),
        ("DENY? No. ALLOW", None),
        ("DENY or ALLOW", None),
    ],
)
def test_only_a_clear_word_of_the_reviewer_counts(said: str, verdict: str | None) -> None:
    found = verdict_of(said)

    assert (found and str(found.verdict)) == verdict


@pytest.mark.parametrize(
    ("script", "decision"),
    [
        ("echo ALLOW", {"behavior": "allow"}),
        ("echo 'DENY: not here'", {"behavior": "deny", "message": "not here"}),
    ],
)
def test_the_reviewer_answers_instead_of_a_person(
    asker: Asker, tmp_path: Path, script: str, decision: dict[str, str]
) -> None:
    _reviewer(asker, tmp_path, f"cat > {tmp_path}/asked\n{script}")

    assert asker.heard(asker.ask()) == decision

    (one,) = asker.lab.swarm.approvals(everything=True)
    assert one.answer is not None
    assert one.answer.by == "reviewer"
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("Allow what is harmless.")
    assert "touch x; rm -rf y" in asked


@pytest.mark.parametrize("script", ["echo ASK_USER", "echo hm", "exit 3", "sleep 60", "echo ALLOW; exit 1"])
def test_what_the_reviewer_leaves_open_goes_to_a_person(asker: Asker, tmp_path: Path, script: str) -> None:
    timeout = 1 if script.startswith("sleep") else 60
    _reviewer(asker, tmp_path, script, timeout)
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.approve(one.question.id)

    failed = script.startswith("sleep") or "exit" in script
    assert asker.heard(process, "reviewer: " if failed else "") == {"behavior": "allow"}


def test_a_reviewer_that_takes_too_long_is_ended_with_all_that_it_started(asker: Asker, tmp_path: Path) -> None:
    left = tmp_path / "left"
    run_dir = _reviewer(asker, tmp_path, f"sh -c 'echo $$ > {left}; exec sleep 300' & wait", 1)
    process = asker.ask()
    (one,) = asker.asked()
    wait_for(lambda: not program_facts.is_reviewing(run_dir) and left.exists(), "the end of the reviewer", 60)

    wait_for(lambda: processes.start_of(int(left.read_text())) is None, "the end of what it started", 10)

    asker.lab.person.approvals.approve(one.question.id)
    assert asker.heard(process, "reviewer: ") == {"behavior": "allow"}


def test_a_reviewer_that_cannot_be_asked_is_written_down(asker: Asker, tmp_path: Path) -> None:
    run_dir = _reviewer(asker, tmp_path, "echo 'no such model' >&2; exit 3")
    process = asker.ask()
    (one,) = asker.asked()
    asker.lab.person.approvals.deny(one.question.id)
    asker.heard(process, "reviewer: ended with 3: no such model")

    found = hooklog.last(str(run_dir))

    assert found is not None
    assert found[1] == "reviewer: ended with 3: no such model"
    (run_dir / "hooks.log").write_text("x" * (300 << 10))
    hooklog.note(str(run_dir), "collect", "of\nlate")
    assert (run_dir / "hooks.log").stat().st_size < 100, "it does not grow for ever"
    assert (hooklog.last(str(run_dir)) or (0, ""))[1] == "collect: of late"


def test_a_run_folder_that_is_not_the_agents_has_no_say(asker: Asker, tmp_path: Path) -> None:
    """Whoever sets a variable would be the reviewer."""
    made_up = tmp_path / "made-up"
    made_up.mkdir()
    for file in _reviewer(asker, tmp_path, "echo ALLOW").iterdir():
        file.rename(made_up / file.name)

    asker.ask(SWARM_RUN_DIR=str(made_up))

    assert asker.asked()[0].standing is Standing.OPEN


def _reviewer(asker: Asker, folder: Path, script: str, timeout: int = 60) -> Path:
    program = folder / "reviewer"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    run_dir = asker.lab.root / ".swarm/sessions/fx/run/developer"
    run_dir.mkdir(parents=True)
    (run_dir / "permission-reviewer.md").write_text("Allow what is harmless.")
    (run_dir / "reviewer.json").write_text(
        json.dumps({"executable": str(program), "model": "haiku", "timeout": timeout})
    )
    return run_dir
