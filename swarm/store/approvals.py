"""Questions and their answers, a file each, in ``.swarm/approvals/``.

``<id>.question.json`` is written by the one who waits; ``<id>.answer.json`` is put in place by a link,
which succeeds once: the first answer counts.  ``<id>.revoked.json`` says who took it back that the answer
holds for always.
"""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING, Any

from swarm import fsio
from swarm.domain import approvals as domain
from swarm.domain.errors import AlreadyAnswered, Ambiguous, ApprovalNotFound, RecordProblem

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.domain.approvals import Answer, Question

_QUESTION, _ANSWER, _REVOKED = ".question.json", ".answer.json", ".revoked.json"
_LIMIT = 1 << 20
_LETTERS = "bcdfghjkmnpqrstvwxz"  # an id is typed by hand, and must not read as a word
_LENGTH = 6


class Approvals:
    """The questions of one repository. Reading never creates anything."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def ask(self, question: Question) -> Question:
        """Put a question, under a fresh id."""
        fsio.make_private_dir(self._folder.parent)
        fsio.make_private_dir(self._folder)
        while True:
            name = "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))
            path = self._folder / (name + _QUESTION)
            if not fsio.exists(path):
                break
        import dataclasses

        made = dataclasses.replace(question, id=name)
        fsio.write_atomic(path, _bytes(domain.question_to_record(made)))
        return made

    def answer(self, question_id: str, answer: Answer) -> None:
        """Answer a question.

        Raises:
            AlreadyAnswered: somebody was first; theirs counts.
        """
        self._write_once(question_id, _ANSWER, answer, f"cannot answer {question_id}: it is answered already")

    def revoke(self, question_id: str, by: Answer) -> None:
        """Write down that an answer holds no longer for what is asked from now on.

        Raises:
            AlreadyAnswered: it was taken back before.
        """
        self._write_once(question_id, _REVOKED, by, f"cannot revoke {question_id}: it is revoked already")

    def _write_once(self, question_id: str, suffix: str, answer: Answer, taken: str) -> None:
        temporary = self._folder / f".{question_id}.{secrets.token_hex(4)}.tmp"
        fsio.write_atomic(temporary, _bytes(domain.answer_to_record(answer)))
        try:
            os.link(temporary, self._folder / (question_id + suffix))
        except FileExistsError:
            raise AlreadyAnswered(taken) from None
        finally:
            fsio.unlink_if_there(temporary)
        fsio.sync_folder(self._folder)

    def get(self, question_id: str) -> tuple[Question, Answer | None]:
        """Return a question by its id, or by what its id begins with.

        Raises:
            ApprovalNotFound, Ambiguous
        """
        found = [name for name in self.ids() if name.startswith(question_id.casefold())] if question_id else []
        if question_id in found:
            found = [question_id]
        if not found:
            raise ApprovalNotFound(f"there is no question {question_id[:40]!a}")
        if len(found) > 1:
            raise Ambiguous(f"{question_id!a} begins several questions: {', '.join(sorted(found)[:5])}")
        question = self._question(found[0])
        if question is None:
            raise ApprovalNotFound(f"there is no question {question_id[:40]!a}")
        return question, self.answer_of(found[0])

    def answer_of(self, question_id: str) -> Answer | None:
        """Return the answer to a question, if there is one."""
        return self._answer_in(question_id + _ANSWER)

    def revoked(self, question_id: str) -> Answer | None:
        """Return who took it back that an answer holds for always, if somebody did."""
        return self._answer_in(question_id + _REVOKED)

    def _answer_in(self, name: str) -> Answer | None:
        path = self._folder / name
        record = _read(path)
        return None if record is None else _parsed(path, domain.answer_from_record, record)

    def all(self) -> tuple[tuple[Question, Answer | None], ...]:
        """Return every question with its answer, oldest first."""
        found = [(question, self.answer_of(name)) for name in self.ids() if (question := self._question(name))]
        return tuple(sorted(found, key=lambda pair: (pair[0].asked_ms, pair[0].id)))

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all questions."""
        try:
            names = os.listdir(self._folder)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return tuple(sorted(n.removesuffix(_QUESTION) for n in names if n.endswith(_QUESTION) and n[0] != "."))

    def _question(self, name: str) -> Question | None:
        path = self._folder / (name + _QUESTION)
        record = _read(path)
        return None if record is None else _parsed(path, domain.question_from_record, record)


def _bytes(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=True).encode("ascii") + b"\n"


def _read(path: Path) -> Any:
    try:
        return json.loads(fsio.read_small(path, _LIMIT))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise RecordProblem(f"cannot read {path}: {error}") from error


def _parsed(path: Path, parse: Any, record: Any) -> Any:
    try:
        return parse(record)
    except ValueError as error:
        raise RecordProblem(f"cannot read {path}: {error}") from error
