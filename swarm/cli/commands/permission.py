"""``swarm permission-request``: an agent program's hook asks here whether a tool may be used.

It prints the program's own form of an answer, or nothing, and then the program asks in its pane. Whatever
goes wrong is no answer: a hook must neither break the agent nor allow something by accident. It is told on
stderr, and by `swarm why`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm.api.words import split_agent
from swarm.cli.hooktrouble import hook_failed
from swarm.cli.output import Answer, Output
from swarm.cli.verb import Run, seconds_of, verb

if TYPE_CHECKING:
    from swarm import Answer as Verdict
    from swarm import Question

_LARGEST = 4 << 20
#: Time limit of a hook; the program's settings name the same.
PATIENCE = 86_000.0


def add_to(root: typer.Typer) -> None:
    """Add the command to the tree."""
    verb(
        root,
        "permission-request",
        attempt="cannot ask for permission",
        examples="swarm permission-request --agent developer < request.json",
    )(permission_request)


def permission_request(
    run: Run,
    agent: Annotated[
        str, typer.Option("--agent", metavar="AGENT[@SESSION]", help="The agent that asks.", show_default=False)
    ] = "",
    wait: Annotated[
        str, typer.Option("--wait", metavar="SECONDS", help="Seconds to wait for an answer.", show_default=False)
    ] = "",
) -> Answer:
    """Answer a program's permission question, given on stdin as its hook gets it: rules, reviewer, a person."""
    printed: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()
    timeout = seconds_of("--wait", wait or None)
    try:
        question, cwd = _question(agent)
        swarm, began = run.open(), int(time.time())
        found = swarm.approvals.ask(
            question,
            run_dir=os.environ.get("SWARM_RUN_DIR", ""),
            cwd=cwd,
            timeout=PATIENCE if timeout is None else timeout,
        )
        printed = _hook_answer(found, question) if found is not None else {}
        trouble = swarm.hooks.trouble(question.agent, question.session or None)
        warnings = (trouble[1],) if trouble is not None and trouble[0] >= began else ()
    except Exception as error:  # noqa: BLE001  # nothing may reach the program but an answer
        warnings = hook_failed(run, agent, "permission-request", error)

    def show(output: Output) -> None:
        if printed:
            output.raw(json.dumps(printed) + "\n")

    return Answer({"answer": printed}, show, warnings)


def _question(agent: str) -> tuple[Question, str]:
    """Return the program's question, and the folder in which it works."""
    from swarm import Question

    try:
        asked = json.loads(sys.stdin.buffer.read(_LARGEST))
    except ValueError as error:
        raise ValueError("standard input holds no request as JSON") from error
    tool, given = asked.get("tool_name"), asked.get("tool_input")
    if not isinstance(tool, str) or not isinstance(given, dict):
        raise ValueError("the request names no tool")  # noqa: TRY004  # what was written there is the matter
    name, session = (
        split_agent(agent) if agent else (os.environ.get("SWARM_ACTOR", ""), os.environ.get("SWARM_SESSION"))
    )
    if not name:
        raise ValueError("no agent is named: give --agent, or run it as an agent")
    cwd = asked.get("cwd")
    return Question("", session or "", name, tool, given), cwd if isinstance(cwd, str) else ""


def _hook_answer(found: Verdict, question: Question) -> dict[str, Any]:
    from swarm import Verdict as Kind

    if found.verdict is Kind.WITHDRAWN:
        return {}
    decision: dict[str, Any] = {"behavior": "allow"}
    if found.verdict is Kind.DENY:
        decision = {"behavior": "deny", "message": found.reason or f"denied by {found.by}"}
    elif found.answers:
        decision["updatedInput"] = question.with_answers(found.answers)
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
