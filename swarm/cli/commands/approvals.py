"""``swarm approvals``, ``approve``, ``deny``, ``revoke``: list and answer agents' requests from any terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.api.data import approval_data
from swarm.cli.output import Answer, Output
from swarm.cli.table import Cell, Column
from swarm.cli.text import age, iso, plain
from swarm.cli.verb import Run, group, verb
from swarm.cli.views.watch import until_ctrl_c

if TYPE_CHECKING:
    from swarm import Answer as Verdict
    from swarm import Approval, Grant, SwarmError

_STYLES = {"open": "warn", "allowed": "good", "denied": "bad"}


def add_to(root: typer.Typer) -> None:
    """Add the commands to the tree."""
    app = group(
        "approvals",
        "List permission requests and questions; without a subcommand, those that wait.",
        "swarm approvals\nswarm approvals --watch\nswarm approvals grant bridge",
        default="list",
    )
    verb(
        app,
        "list",
        attempt="cannot show the approvals",
        examples="swarm approvals list\nswarm approvals --watch\nswarm approvals --standing\nswarm approvals --all",
    )(approvals)
    verb(
        app,
        "grant",
        attempt="cannot grant {name}",
        examples="swarm approvals grant bridge\nswarm approvals grant bridge --revoke",
    )(grant)
    verb(app, "grants", attempt="cannot show the grants", examples="swarm approvals grants")(grants)
    root.add_typer(app)
    verb(
        root,
        "approve",
        attempt="cannot approve {question}",
        examples="swarm approve kdjrtb\nswarm approve kdjrtb --rule 'Bash(npm test *)'\n"
        "swarm approve xmwqpa --answer Blue",
    )(approve)
    verb(
        root,
        "deny",
        attempt="cannot deny {question}",
        examples="swarm deny kdjrtb --reason 'use the staging database'",
    )(deny)
    verb(
        root,
        "revoke",
        attempt="cannot revoke {question}",
        examples="swarm revoke kdjrtb\nswarm revoke kdjrtb --reason 'meant for once'",
    )(revoke)


def approvals(
    run: Run,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running, and show each new request.", show_default=False)
    ] = False,
    all: Annotated[
        bool, typer.Option("--all", help="Also show answered requests, and by whom.", show_default=False)
    ] = False,
    standing: Annotated[
        bool, typer.Option("--standing", help="Show only standing answers that still apply.", show_default=False)
    ] = False,
) -> Answer:
    """List pending permission requests and questions, oldest first."""
    run.command = "approvals"  # as it was typed
    if standing and (watch or all):
        raise UsageProblem("--standing excludes --watch and --all")
    problems: list[SwarmError] = []
    look = _looker(run, standing=standing)
    found = look(all, problems)
    warnings = [problem.message for problem in problems]
    if watch:
        for warning in warnings:
            run.output.label("warning", warning, "warn")
        return _watch(run, everything=all)

    def show(output: Output) -> None:
        if not found:
            output.err("no standing answers" if standing else "no agent waits for a permission")
            return
        _table(output, found)

    hint = () if all or not found else (_how_to_answer(found[0]),)
    if standing and found:
        hint = (f"take back with: swarm revoke {found[0].question.id}",)
    data = {
        "approvals": [approval_data(one) for one in found],
        "problems": [problem.as_dict() for problem in problems],
    }
    return Answer(data, show, warnings, next=hint)


def _looker(run: Run, *, standing: bool) -> Callable[[bool, list[SwarmError]], Sequence[Approval]]:
    """Return a reader of the approvals; it needs no git where plain files suffice."""
    from swarm import Approvals

    near = None if standing else Approvals.near(run.directory)
    if near is not None:
        return lambda everything, problems: near(everything=everything, problems=problems)
    swarm = run.open()
    return lambda everything, problems: swarm.approvals(everything=everything, standing=standing, problems=problems)


def _how_to_answer(one: Approval) -> str:
    words = " --answer '…'" * len(one.question.questions)
    return f"answer with: swarm approve {one.question.id}{words}, or swarm deny …"


def _watch(run: Run, *, everything: bool) -> Answer:
    """Print each request when it appears and when it ends, until Ctrl-C; those that ended before only on request."""
    swarm = run.open()
    seen: dict[str, str] = {}

    def tell_new(*, but_ended: bool = False) -> None:
        for one in swarm.approvals(everything=True):
            stand = str(one.standing)
            if seen.get(one.question.id) != stand:
                seen[one.question.id] = stand
                if one.waits or not but_ended:
                    _tell(run, one)

    def view() -> None:
        with swarm.live(git=None) as live:
            tell_new(but_ended=not everything)
            after: int | str = live.snapshot().revision
            while changes := live.wait(after):
                after = live.snapshot().revision if changes[-1].kind == "lost" else changes[-1].revision
                if any(one.kind == "lost" or one.kind.startswith("approval.") for one in changes):
                    tell_new()

    return until_ctrl_c(run, view)


def _tell(run: Run, one: Approval) -> None:
    if run.output.json:
        run.output.answer(run.command, Answer({"approvals": [approval_data(one)]}, lambda _output: None))
        return
    question = one.question
    line = f"{question.id}  {question.who}  {one.standing}  {plain(question.summary)}"
    run.output.out(line, _STYLES.get(one.standing, ""))


def _table(output: Output, found: Sequence[Approval]) -> None:
    columns = (
        Column("ID", keep="all"),
        Column("AGENT"),
        Column("AGE", keep="all", right=True),
        Column("STATE", keep="all"),
        Column("BY", 1),
        Column("WHAT"),
    )
    rows = []
    for one in found:
        question, answer = one.question, one.answer
        rows.append(
            (
                question.id,
                question.who,
                age(question.asked_ms),
                Cell(str(one.standing), _STYLES.get(one.standing, "")),
                _by(one, answer) if answer else "-",
                question.summary,
            )
        )
    output.table(columns, rows)


def _by(one: Approval, answer: Verdict) -> str:
    said = "; ".join(answer.answers) or answer.reason
    lasting = f", for always{f' {answer.rule}' if answer.rule else ''}" if answer.always else ""
    if one.revoked is not None:
        lasting += f", revoked by {one.revoked.by}"
    return f"{answer.by}{lasting}: {said}" if said else f"{answer.by}{lasting}"


Question = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id of the request, or its first letters.", show_default=False),
]
Reason = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Reason, recorded and shown to the agent.", show_default=False)
]
Always = Annotated[
    bool, typer.Option("--always", help="Apply the answer to identical requests from now on.", show_default=False)
]
Rule = Annotated[
    str,
    typer.Option(
        "--rule",
        metavar="RULE",
        help="Apply the answer to everything this rule matches, such as 'Bash(npm test *)'.",
        show_default=False,
    ),
]


Answers = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="TEXT",
        help="Answer to a question of the agent; once for each question.",
        show_default=False,
    ),
]


def grant(
    run: Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name for the program.", show_default=False)],
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Withdraw the grant; earlier answers stay valid.", show_default=False)
    ] = False,
) -> Answer:
    """Let one of your programs answer agents on your behalf.

    Prints a token once; give it to the program as SWARM_GRANT. Any process that can read the token can use the grant,
    an agent without a sandbox included. Only a person at a terminal can make a grant.
    """
    swarm = run.open()
    if revoke:
        swarm.approvals.revoke_grant(name)
        return Answer({"name": name, "token": None}, lambda output: output.out(f"revoked {name}", "good"))
    token = swarm.approvals.grant(name)
    hints = (
        f"start the program with SWARM_GRANT={name}:…",
        f"take it back with: swarm approvals grant {name} --revoke",
    )
    return Answer({"name": name, "token": token}, lambda output: output.out(token), next=hints)


def grants(run: Run) -> Answer:
    """List the programs that hold a grant."""
    found = run.open().approvals.grants()

    def show(output: Output) -> None:
        if not found:
            output.err("no program has a grant")
            return
        columns = (Column("NAME", keep="all"), Column("MADE", keep="all", right=True), Column("BY"))
        output.table(columns, [(one.name, age(one.made_ms), one.by) for one in found])

    return Answer({"grants": [grant_data(one) for one in found]}, show)


def grant_data(one: Grant) -> dict[str, Any]:
    """Return a grant for machines."""
    return {"name": one.name, "made_at": iso(one.made_ms), "by": one.by}


def approve(
    run: Run,
    question: Question,
    answers: Answers = None,
    reason: Reason = "",
    always: Always = False,
    rule: Rule = "",
) -> Answer:
    """Approve a request of an agent, or answer its question."""
    return _said(
        "allowed",
        run.open().approvals.approve(question, reason=reason, always=always, rule=rule, answers=answers or ()),
    )


def deny(run: Run, question: Question, reason: Reason = "", always: Always = False, rule: Rule = "") -> Answer:
    """Deny a request; the agent gets the reason and continues."""
    return _said("denied", run.open().approvals.deny(question, reason=reason, always=always, rule=rule))


def revoke(run: Run, question: Question, reason: Reason = "") -> Answer:
    """Revoke a standing answer; swarm asks again from now on."""
    return _said("revoked", run.open().approvals.revoke(question, reason=reason))


def _said(word: str, one: Approval) -> Answer:
    question = one.question

    def show(output: Output) -> None:
        what = one.answer.rule if one.answer and one.answer.rule else question.summary
        style = "good" if word == "allowed" else "bad"
        output.out(f"{word} {question.who}: {plain(question.summary)}", style)
        if one.answer is not None and one.answer.always:
            lasts = "is asked again from now on" if one.revoked else "is not asked again"
            output.out(f"{plain(what)} {lasts}")

    hint = (f"take that back with: swarm revoke {question.id}",) if one.holds else ()
    return Answer({"approvals": [approval_data(one)]}, show, next=hint)
