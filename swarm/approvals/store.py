"""Permission requests and their answers: one file each in ``.swarm/approvals/``.

``<id>.question.json`` is written by the one who waits; ``<id>.answer.json`` is put in place by a link,
which succeeds once: the first answer counts.  One that holds for always has a second name, ``<id>.always.json``,
so that it is found without reading all others; ``<id>.revoked.json`` says who took that back.  An answer, and what
takes it back, counts only with the code that shows that swarm wrote it to this question (``proof.py``).  What was
asked by agents that are gone is a line each in ``history.jsonl``.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.approvals import requests, values
from swarm.approvals.errors import AlreadyAnswered, ApprovalNotFound
from swarm.approvals.values import Approval
from swarm.kit import files
from swarm.kit.errors import Ambiguous, SwarmError, UsageProblem
from swarm.kit.words import count
from swarm.machine import own, records
from swarm.project.errors import RecordProblem
from swarm.project.proof import Proof

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.approvals.values import Answer, Question

_QUESTION, _ANSWER = requests.QUESTION, requests.ANSWER
_REVOKED, _ALWAYS = ".revoked.json", ".always.json"
_HISTORY = "history.jsonl"
#: It is there when every answer for always has its second name; an earlier swarm gave none.
_NAMED = ".always-named"
_LIMIT, _HISTORY_LIMIT = 1 << 20, 256 << 20
_LETTERS = "bcdfghjkmnpqrstvwxz"  # an id is typed by hand, and must not read as a word
_LENGTH = 6
_SHORTEST = 3


class Found(NamedTuple):
    """Records as far as they could be read.

    Attributes:
        problems: of those that could not; they hide no others.
    """

    records: tuple[Approval, ...]
    problems: tuple[SwarmError, ...] = ()


class Approvals:
    """The questions of one repository. Looking at them never creates anything."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._proof = Proof(folder.parent)

    def _path(self, name: str) -> str:
        return os.fspath(self._folder / name)

    def ask(self, question: Question) -> Question:
        """Put a question, under a fresh id."""
        files.make_private_dir(self._folder.parent)
        files.make_private_dir(self._folder)
        while True:
            name = _fresh_id()
            path = self._folder / (name + _QUESTION)
            if not files.exists(path):
                break
        import dataclasses

        made = dataclasses.replace(question, id=name)
        files.write_atomic(path, _bytes(values.question_to_record(made)))
        return made

    def answer(self, question_id: str, answer: Answer) -> None:
        """Answer a question.

        Raises:
            AlreadyAnswered: somebody was first; theirs counts.
        """
        self._write_once(question_id, _ANSWER, answer, f"cannot answer {question_id}: it is answered already")
        if answer.always:
            self._name_always(question_id)

    def revoke(self, question_id: str, by: Answer) -> None:
        """Record that an answer no longer covers new requests.

        Raises:
            AlreadyAnswered: it was taken back before.
        """
        self._write_once(question_id, _REVOKED, by, f"cannot revoke {question_id}: it is revoked already")

    def _name_always(self, question_id: str) -> None:
        with contextlib.suppress(FileExistsError):
            own.link(self._path(question_id + _ANSWER), self._path(question_id + _ALWAYS))
        files.sync_folder(self._folder)

    def _write_once(self, question_id: str, suffix: str, answer: Answer, taken: str) -> None:
        record = values.answer_to_record(answer)
        code = self._proof.of(suffix, self._proved(question_id, record))
        try:
            files.write_atomic(self._path(question_id + suffix), _bytes(record | {"mac": code}), replace=False)
        except FileExistsError:
            raise AlreadyAnswered(taken) from None

    def _proved(self, question_id: str, record: dict[str, Any]) -> dict[str, Any]:
        """Return the text under an answer's code: it binds the answer to the exact words of one question."""
        question = self._question(question_id)
        asked = None if question is None else values.question_to_record(question)
        return {"id": question_id, "question": asked, "answer": record}

    def get(self, question_id: str) -> tuple[Question, Answer | None]:
        """Return a request by its id, or by at least its first three letters.

        Raises:
            ApprovalNotFound, Ambiguous, UsageProblem
        """
        wanted = question_id.casefold()
        found = [name for name in self.ids() if name.startswith(wanted)] if wanted else []
        if wanted in found:
            found = [wanted]
        elif found and len(wanted) < _SHORTEST:
            raise UsageProblem(
                f"{question_id!a} is too short for an id: {_SHORTEST} letters at least", hint="swarm approvals"
            )
        if not found:
            raise ApprovalNotFound(f"there is no request {question_id[:40]!a}")
        if len(found) > 1:
            raise Ambiguous(f"{question_id!a} matches several requests: {', '.join(sorted(found)[:5])}")
        question = self._question(found[0])
        if question is None:
            raise ApprovalNotFound(f"there is no request {question_id[:40]!a}")
        return question, self.answer_of(found[0])

    def answer_of(self, question_id: str) -> Answer | None:
        """Return the answer to a request, or None."""
        return self._answer_in(question_id, _ANSWER)

    def revoked(self, question_id: str) -> Answer | None:
        """Return the person who revoked a standing answer, if any."""
        return self._answer_in(question_id, _REVOKED)

    def _answer_in(self, question_id: str, suffix: str) -> Answer | None:
        path = self._folder / (question_id + suffix)
        record = _read(path)
        if record is None:
            return None
        answer: Answer = _parsed(path, values.answer_from_record, record)
        kind = _ANSWER if suffix == _ALWAYS else suffix  # two names of one file
        said = self._proved(question_id, values.answer_to_record(answer))
        if not self._proof.holds(kind, said, record.get("mac")):
            raise RecordProblem(
                f"cannot believe {path}: its code does not match, or an earlier swarm wrote it",
                hint=f"read it, then remove it: {path.name}",
            )
        return answer

    def all(self) -> Found:
        """Return every question with its answer, oldest first, those that wait or waited and those that are over."""
        found, problems = self._past()
        for name in self.ids():
            try:
                if one := self._one(name):
                    found[name] = one
            except (SwarmError, OSError) as error:
                problems.append(_problem(self._folder / name, error))
        in_order = sorted(found.values(), key=lambda one: (one.question.asked_ms, one.question.id))
        return Found(tuple(in_order), tuple(problems))

    def _one(self, name: str) -> Approval | None:
        question = self._question(name)
        if question is None:
            return None
        answer = self.answer_of(name)
        revoked = self.revoked(name) if answer is not None and answer.always else None
        return Approval(question, answer, waits=False, revoked=revoked)

    def _past(self) -> tuple[dict[str, Approval], list[SwarmError]]:
        """Return the requests of removed agents."""
        path = self._folder / _HISTORY
        found: dict[str, Approval] = {}
        wrong = 0
        try:
            lines = files.read_small(path, _HISTORY_LIMIT).splitlines()
        except FileNotFoundError:
            return {}, []
        except (SwarmError, OSError) as error:
            return {}, [_problem(path, error)]
        for line in lines:
            try:
                one = values.past_from_record(json.loads(line))
                found[one.question.id] = one
            except (ValueError, RecursionError):
                wrong += 1
        return found, [RecordProblem(f"cannot read {count(wrong, 'line')} of {path}")] if wrong else []

    def standing(self, question: Question) -> Found:
        """Return the standing answers for an agent, without reading those of others.

        Whose an answer is that cannot be read is seen from its question; where that is lost, too, it may be of any.
        """
        found: list[Approval] = []
        problems: list[SwarmError] = []
        names = self._names()
        if _NAMED not in names:
            names = self._name_all(names)
        for name in sorted(one.removesuffix(_ALWAYS) for one in names if one.endswith(_ALWAYS)):
            try:
                asked = self._question(name)
                if asked is not None and values.asker(asked) != values.asker(question):
                    continue
                if name + _REVOKED in names and self.revoked(name) is not None:
                    continue
                if asked is not None:
                    found.append(Approval(asked, self._answer_in(name, _ALWAYS), waits=False))
            except (SwarmError, OSError) as error:
                problems.append(_problem(self._folder / name, error))
        return Found(tuple(found), tuple(problems))

    def _name_all(self, names: frozenset[str]) -> frozenset[str]:
        """Give answers of an earlier swarm their second names; one that cannot be read may be for always, too."""
        for name in (one.removesuffix(_ANSWER) for one in names if one.endswith(_ANSWER) and one[0] != "."):
            try:
                answer = self.answer_of(name)
            except (SwarmError, OSError):
                self._name_always(name)
            else:
                if answer is not None and answer.always:
                    self._name_always(name)
        if names:
            files.write_atomic(self._folder / _NAMED, b"")
        return self._names()

    def forget(self, session: str, agent: str) -> None:
        """Reduce the questions of a removed agent to one line each, and delete their files."""
        for name in self.ids():
            with contextlib.suppress(SwarmError):  # an unreadable file stays, and is reported
                one = self._one(name)
                if one is not None and (one.question.session, one.question.agent) == (session, agent):
                    line = json.dumps(values.past_to_record(one), ensure_ascii=True).encode("ascii")
                    files.append_line(self._folder / _HISTORY, line)
                    for suffix in (_ALWAYS, _REVOKED, _ANSWER, _QUESTION):
                        files.unlink_if_there(self._folder / (name + suffix))

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all questions."""
        return tuple(sorted(n.removesuffix(_QUESTION) for n in self._names() if n.endswith(_QUESTION) and n[0] != "."))

    def _names(self) -> frozenset[str]:
        try:
            return frozenset(os.listdir(self._folder))
        except (FileNotFoundError, NotADirectoryError):
            return frozenset()

    def _question(self, name: str) -> Question | None:
        path = self._folder / (name + _QUESTION)
        record = _read(path)
        return None if record is None else _parsed(path, values.question_from_record, record)


def _problem(path: Path, error: SwarmError | OSError) -> SwarmError:
    return error if isinstance(error, SwarmError) else files.translate(error, f"cannot read {path}")


def _bytes(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n"


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return records.read_object(str(path), _LIMIT)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise RecordProblem(f"cannot read {path}: {error}") from error


def _fresh_id() -> str:
    number = int.from_bytes(os.urandom(16))
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(_LENGTH))


def _parsed(path: Path, parse: Any, record: Any) -> Any:
    try:
        return parse(record)
    except ValueError as error:
        raise RecordProblem(f"cannot read {path}: {error}") from error
