"""The namespace ``swarm.approvals``: list requests, approve, deny, revoke, and grants for programs."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.api.door import Door
from swarm.kit import files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from swarm.approvals.grants import Grant, Grants
    from swarm.approvals.store import Approvals as Store
    from swarm.approvals.values import Answer, Approval, Question
    from swarm.kit.errors import SwarmError
    from swarm.permissions.paths import Place
    from swarm.project.model import Agent
    from swarm.project.world import World


class Approvals(Door):
    """Permission requests and questions of agents, and their answers. Call it for those that wait."""

    def __call__(
        self, *, everything: bool = False, standing: bool = False, problems: list[SwarmError] | None = None
    ) -> tuple[Approval, ...]:
        """Return the pending requests of agents, oldest first. Never writes, never waits.

        Args:
            everything: also answered and ended requests.
            standing: instead those whose answer was given for always and counts: not revoked, the agent is there.
            problems: is told of the records that cannot be read; they hide no others.
        """
        from swarm.approvals import decide

        found = decide.look_in(self._world.layout.state, everything=everything or standing, problems=problems)
        return tuple(one for one in found if one.holds and self._is_there(one.question)) if standing else found

    @staticmethod
    def near(
        directory: str | os.PathLike[str], environ: Mapping[str, str] | None = None
    ) -> Callable[..., tuple[Approval, ...]] | None:
        """Return a reader of the approvals of the repository around a folder; None where only git can find it.

        The look takes ``everything`` and ``problems``, as ``swarm.approvals`` does; it reads files and runs no git.
        """
        from swarm.approvals import decide
        from swarm.machine.records import names_good_dir
        from swarm.messages import directory as places

        state = None
        if names_good_dir(os.environ if environ is None else environ):
            state = places.find_state(os.fspath(directory), {})
        return None if state is None else partial(decide.look_in, Path(state))

    def approve(
        self, question: str, *, reason: str = "", always: bool = False, rule: str = "", answers: Sequence[str] = ()
    ) -> Approval:
        """Allow an agent's request, or answer its questions.

        Args:
            question: the id, or the beginning of one.
            answers: for each of its ``questions`` your answer: one of the choices, or words of your own.
            always: allow the same for the rest of the agent's life, too.
            rule: allow all of this, such as ``Bash(git *)``; implies *always*.

        Raises:
            ApprovalNotFound, AlreadyAnswered, NotForAgents, UsageProblem
        """
        from swarm.approvals.values import Verdict

        return self._answer(question, Verdict.ALLOW, reason, always=always, rule=rule, answers=tuple(answers))

    def deny(self, question: str, *, reason: str = "", always: bool = False, rule: str = "") -> Approval:
        """Deny an agent's request; the agent gets the reason. See ``approve``."""
        from swarm.approvals.values import Verdict

        return self._answer(question, Verdict.DENY, reason, always=always, rule=rule)

    def revoke(self, question: str, *, reason: str = "") -> Approval:
        """Revoke a standing answer: swarm asks again from now on.

        Raises:
            ApprovalNotFound, AlreadyAnswered, NotForAgents, UsageProblem
        """
        from swarm.approvals import decide
        from swarm.approvals.values import Answer, Verdict

        by = self._person(f"cannot revoke {question[:40]}")
        with files.os_errors(f"cannot revoke {question[:40]}"):
            return decide.revoke(self._approval_store(), question, Answer(Verdict.WITHDRAWN, by, reason))

    def grant(self, name: str) -> str:
        """Let a program answer agents as the user does, by a grant of this name; return the token it has to hold.

        The program has it in ``SWARM_GRANT``. It is kept nowhere else; a process that reads it can use the grant.

        Raises:
            GrantExists, InvalidName
            NotForAgents, NotAPerson: only a person at a terminal makes one.
        """
        import time

        from swarm.callers import caller
        from swarm.callers.errors import NotAPerson
        from swarm.project.statedir import prepare

        attempt = f"cannot grant {name[:40]!a}"
        self._person(attempt)
        if caller.caller(self._world).kind != caller.PERSON:
            raise NotAPerson(
                f"{attempt}: a program with a grant makes no other", hint="type it in a terminal of your own"
            )
        with files.os_errors(attempt):
            prepare(self._world)
            return self._grants().make(name, caller.user_name(), time.time_ns() // 1_000_000)

    def grants(self) -> tuple[Grant, ...]:
        """Return the grants that count. Never writes."""
        with files.os_errors("cannot read the grants"):
            return self._grants().all() if files.exists(self._world.layout.grants) else ()

    def revoke_grant(self, name: str) -> None:
        """Revoke a grant; its earlier answers stay valid.

        Raises:
            GrantNotFound, InvalidName, NotForAgents, NotAPerson
        """
        self._person(f"cannot revoke the grant {name[:40]!a}")
        with files.os_errors(f"cannot revoke the grant {name[:40]!a}"):
            self._grants().revoke(name)

    def _grants(self) -> Grants:
        from swarm.approvals.grants import Grants

        return Grants(self._world.layout.state)

    def ask(self, question: Question, *, run_dir: str = "", cwd: str = "", timeout: float = 86_400) -> Answer | None:
        """Make a request for an agent's program and wait for the answer; None without one.

        Args:
            question: without a session it is of the only session that has the agent.
            run_dir: the run folder of the asking process; if it is the agent's, the agent's program asks.
            cwd: where the program works at this moment.
            timeout: seconds until it is left to the program.
        """
        from swarm.approvals import decide
        from swarm.kit.errors import UsageProblem

        if not timeout >= 0:  # no number is none of both
            raise UsageProblem(f"cannot wait {timeout} seconds for an answer")
        session, agent = self._find(question.agent, question.session or None)
        self._refuse_strangers("approvals.ask", session, agent)
        own = self._world.layout.run_folder(session.name, agent.name)
        from_pane = bool(run_dir) and os.path.realpath(run_dir) == os.path.realpath(own)
        generation = session.generation_of(agent)
        with files.os_errors("cannot ask for permission"):
            return decide.decide(
                self._approval_store(),
                replace(question, session=session.name, agent=agent.name, generation=generation),
                review=reviewer_of(self._world, own),
                goes_on=self._program_asks(own) if from_pane else parent_waits(),
                timeout=timeout,
                place=self._place_of(agent, cwd),
            )

    def _is_there(self, question: Question) -> bool:
        """Whether the agent that asked is still there, and none that came later under its name."""
        from swarm.approvals.values import OF_TASKS
        from swarm.project.errors import AgentNotFound, SessionNotFound

        if question.session == OF_TASKS:  # its requests go with it
            return True
        try:
            session, agent = self._find(question.agent, question.session)
        except (AgentNotFound, SessionNotFound):
            return False
        return bool(session.generation_of(agent) == question.generation)

    def _place_asked(self, question: Question) -> Place:
        """Return where a question was asked."""
        from swarm.approvals.values import OF_TASKS

        if question.session == OF_TASKS:
            return self._place_in(question.cwd, question.cwd)
        _, agent = self._find(question.agent, question.session)
        return self._place_of(agent, question.cwd)

    def _place_of(self, agent: Agent, cwd: str) -> Place:
        """Return where paths in a question and in rules count from."""
        tree = str(self._root / agent.worktree)
        return self._place_in(cwd or tree, tree)

    def _place_in(self, cwd: str, tree: str) -> Place:
        from swarm.permissions.paths import Place

        return Place(cwd, tree, self._world.environ.get("HOME", ""), os.path.realpath)

    def _program_asks(self, run_dir: Path) -> Callable[[], bool]:
        """Return a check whether an agent's program still shows its question."""
        from swarm.machine.run_folder import program_facts
        from swarm.programs import registry
        from swarm.programs.reading import notes

        process = program_facts.read_process(run_dir)
        if process is None:
            return parent_waits()
        program = registry.noted(notes.read(run_dir))
        return program.asking(run_dir, process.pid, process.pid_start)

    def _answer(
        self, question: str, verdict: Any, reason: str, *, always: bool, rule: str, answers: tuple[str, ...] = ()
    ) -> Approval:
        from swarm.approvals.values import Answer
        from swarm.kit.errors import UsageProblem
        from swarm.permissions.decide import parse_rule

        try:
            rule = parse_rule(rule).text if rule else ""
        except ValueError as error:
            raise UsageProblem(f"cannot use the rule {rule[:60]!a}: it {error}") from error
        by = self._person(f"cannot answer {question[:40]}")
        return self._answered(question, Answer(verdict, by, reason, always or bool(rule), rule, answers=answers))

    def _answered(self, question: str, given: Answer) -> Approval:
        """Record the answer of a caller whose right was checked."""
        from swarm.approvals import decide

        with files.os_errors(f"cannot answer {question[:40]}"):
            return decide.answer(self._approval_store(), question, given, self._place_asked)

    def _approval_store(self) -> Store:
        from swarm.approvals.store import Approvals as Store

        return Store(self._world.layout.approvals)


def reviewer_of(world: World, run_dir: Path) -> Callable[[Question], Answer | None] | None:
    """Return the reviewer of the agent with this run folder; None when its role has none."""
    from swarm.machine.run_folder import runfiles

    if not os.path.lexists(run_dir / runfiles.REVIEWER):
        return None
    from swarm.programs import reviewer

    spec = reviewer.spec_of(run_dir)
    if spec is None:
        return None

    def review(question: Question) -> Answer | None:
        with reviewer.noted(run_dir):
            return reviewer.review(question, spec, world.environ, run_dir)

    return review


def parent_waits() -> Callable[[], bool]:
    """Return a check whether the process that started this one still runs."""
    parent = os.getppid()
    return lambda: os.getppid() == parent
