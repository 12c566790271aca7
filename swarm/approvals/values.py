"""Values of permission requests, questions and answers.

The question, its answer, and that this holds no longer are files that are each written once.  Nothing
answers by silence: a question whose asker is gone is over, and the tool was not used because of swarm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from swarm.permissions.paths import Place

SCHEMA = 1
#: The answer comes from a person, a program with a grant, a standing answer of either, or the role's reviewer.
USER, GRANT, RULE, REVIEWER, PROGRAM = "user", "grant", "rule", "reviewer", "program"
#: In the place of a session: the request is a task's that has none, and the agent is the id of the task.
OF_TASKS = ".task"
#: The tool by which a program asks a person something; its answer is words, not yes.
ASKS = "AskUserQuestion"
_SUMMARY = 200
_REMARKS = {("Bash", "description")}
#: What of a tool's input says most to a person, first come first served.
_TELLING = ("command", "file_path", "path", "url", "pattern", "query", "prompt", "description")


class Verdict(StrEnum):
    """How a question ended."""

    ALLOW = "allow"
    DENY = "deny"
    #: It was answered in the pane, or the program no longer waits for it.
    WITHDRAWN = "withdrawn"


class Standing(StrEnum):
    """Where a question stands."""

    OPEN = "open"
    ALLOWED = "allowed"
    DENIED = "denied"
    WITHDRAWN = "withdrawn"
    #: The asking process is gone without a trace.
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Answer:
    """The state of a request.

    Attributes:
        by: ``user``, ``grant``, ``rule``, ``reviewer`` or ``program``; with a name after a colon where one is known.
        always: it holds for every such question of the agent from now on, too.
        rule: which those are, as a permission rule; empty: the same tool with the same input.
        answers: the answer to each question of ``Question.questions``, in their order.
    """

    verdict: Verdict
    by: str
    reason: str = ""
    always: bool = False
    rule: str = ""
    at_ms: int = 0
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A program's request.

    Attributes:
        id: short enough to type.
        tool, given: the tool, and its input.
        pid, pid_start, boot: the process that waits for the answer.
        generation: the agent's run of its name; a permission of an earlier run does not hold.
        cwd: where the program works; empty in records of an earlier swarm.
        said: its summary, where the tool's input is no longer kept.
    """

    id: str
    session: str
    agent: str
    tool: str
    given: dict[str, Any]
    asked_ms: int = 0
    pid: int = 0
    pid_start: int = 0
    boot: str = ""
    generation: str = ""
    cwd: str = ""
    said: str = ""

    @property
    def who(self) -> str:
        """Who asks, for people."""
        return f"task {self.agent}" if self.session == OF_TASKS else f"{self.agent}@{self.session}"

    @property
    def summary(self) -> str:
        """The tool and its object, on one line."""
        return self.said or summary_of(self.tool, self.given)

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions in words; empty for a request to use a tool."""
        return tuple(text for text, _ in _asked(self.tool, self.given))

    def with_answers(self, answers: tuple[str, ...]) -> dict[str, Any]:
        """Return the tool's input with a person's answers in it, so that the tool asks no more."""
        return {**self.given, "answers": dict(zip(self.questions, answers, strict=True))}


@dataclass(frozen=True, slots=True)
class Approval:
    """A question as it stands now."""

    question: Question
    answer: Answer | None
    waits: bool
    #: The person who revoked the standing answer, and the reason.
    revoked: Answer | None = None

    @property
    def standing(self) -> Standing:
        """Where it stands."""
        if self.answer is not None:
            kinds = {Verdict.ALLOW: Standing.ALLOWED, Verdict.DENY: Standing.DENIED}
            return kinds.get(self.answer.verdict, Standing.WITHDRAWN)
        return Standing.OPEN if self.waits else Standing.GONE

    @property
    def holds(self) -> bool:
        """Whether the answer stands for questions to come, too."""
        return self.answer is not None and self.answer.always and self.revoked is None


def standing_answer(past: Iterable[Approval], question: Question, place: Place | None = None) -> Answer | None:
    """Return the standing answer to such a request of this agent; a denial wins."""
    mine = (one for one in past if one.holds and asker(one.question) == asker(question))
    fitting = [one for one in mine if _fits(one, question, place)]
    answers = [one.answer for one in fitting if one.answer is not None]
    found = next((a for a in answers if a.verdict is Verdict.DENY), answers[0] if answers else None)
    if found is None:
        return None
    return Answer(found.verdict, f"{RULE}:{found.by}", found.reason)


def asker(question: Question) -> tuple[str, str, str]:
    """Return the asking agent; a later agent of the same name is another one."""
    return question.session, question.agent, question.generation


def covers(rule: str, verdict: Verdict, question: Question, place: Place | None) -> bool:
    """Whether a rule, allowed or denied for always, answers a question."""
    from swarm.permissions import decide

    denies = verdict is Verdict.DENY
    rules = decide.Rules.parse(deny=[rule]) if denies else decide.Rules.parse(allow=[rule])
    decision = decide.decide(rules, question.tool, question.given, place)
    return decision.behavior is (decide.Behavior.DENY if denies else decide.Behavior.ALLOW)


def _fits(one: Approval, question: Question, place: Place | None) -> bool:
    answer = one.answer
    if answer is None or not answer.rule:
        return _same(one.question) == _same(question)
    return covers(answer.rule, answer.verdict, question, place)


def _same(question: Question) -> tuple[str, str, dict[str, Any]]:
    """Return the key of identical requests: folder, tool and input."""
    return question.tool, question.cwd, _of_weight(question)


def _of_weight(question: Question) -> dict[str, Any]:
    """Return a tool's input without the model's own description, which varies."""
    return {key: value for key, value in question.given.items() if (question.tool, key) not in _REMARKS}


def summary_of(tool: str, given: dict[str, Any]) -> str:
    """Return the summary of a tool's use for a person; not yet made safe for a terminal."""
    telling = next((given[key] for key in _TELLING if isinstance(given.get(key), str) and given[key]), "")
    if asked := _asked(tool, given):
        telling = "; ".join(f"{text} {' | '.join(choices)}".strip() for text, choices in asked)
    text = telling or (json.dumps(given, ensure_ascii=False, sort_keys=True) if given else "")
    whole = f"{tool}({text})" if text else tool
    return whole if len(whole) <= _SUMMARY else whole[: _SUMMARY - 1] + "…"


def _asked(tool: str, given: dict[str, Any]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the questions of a tool that asks a person, each with the choices it offers."""
    asked = given.get("questions") if tool == ASKS else None
    found = []
    for one in asked if isinstance(asked, list) else ():
        text = one.get("question") if isinstance(one, dict) else None
        if not isinstance(text, str):
            return []
        options = one.get("options")
        labels = [each.get("label") for each in options if isinstance(each, dict)] if isinstance(options, list) else []
        found.append((text, tuple(label for label in labels if isinstance(label, str))))
    return found


# --- as records -----------------------------------------------------------------------------------


def question_to_record(question: Question) -> dict[str, Any]:
    """Return the JSON of a question."""
    return {"schema": SCHEMA, **{name: getattr(question, name) for name in Question.__slots__}}


def question_from_record(record: Any) -> Question:
    """Read a question.

    Raises:
        ValueError: it is none.
    """
    known = {"cwd": "", "said": "", **record} if isinstance(record, dict) else record
    return Question(**_fields(known, Question, {"given": dict, "asked_ms": int, "pid": int, "pid_start": int}))


def answer_to_record(answer: Answer) -> dict[str, Any]:
    """Return the JSON of an answer."""
    return {"schema": SCHEMA, **{name: getattr(answer, name) for name in Answer.__slots__}}


def answer_from_record(record: Any) -> Answer:
    """Read an answer.

    Raises:
        ValueError: it is none.
    """
    known = {"answers": [], **record} if isinstance(record, dict) else record
    found = _fields(known, Answer, {"always": bool, "at_ms": int, "answers": list})
    answers = tuple(str(one) for one in found["answers"])
    return Answer(**{**found, "verdict": Verdict(found["verdict"]), "answers": answers})


def past_to_record(one: Approval) -> dict[str, Any]:
    """Return the JSON of a closed question, without the tool's input."""
    question = replace(one.question, given={}, said=one.question.summary)
    return {
        "schema": SCHEMA,
        "question": question_to_record(question),
        "answer": answer_to_record(one.answer) if one.answer else None,
        "revoked": answer_to_record(one.revoked) if one.revoked else None,
    }


def past_from_record(record: Any) -> Approval:
    """Read a question that is over.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise ValueError("it is of another kind or a newer version")
    answers = (record.get(key) for key in ("answer", "revoked"))
    answer, revoked = (None if one is None else answer_from_record(one) for one in answers)
    return Approval(question_from_record(record.get("question")), answer, waits=False, revoked=revoked)


def _fields(record: Any, kind: type, kinds: dict[str, type]) -> dict[str, Any]:
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise ValueError("it is of another kind or a newer version")
    names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]  # a dataclass with slots
    found = {name: record.get(name) for name in names}
    wrong = [name for name, value in found.items() if type(value) is not kinds.get(name, str)]
    if wrong:
        raise ValueError(f"{wrong[0]} is missing or of the wrong kind")
    return found
