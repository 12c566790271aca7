"""Show errors: the failed attempt, its cause, a hint, and the code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from swarm import BranchExists, Interrupted, Refused, SentInPart, SwarmError, UsageProblem, WorkAtRisk
from swarm.api.problems import as_problem
from swarm.cli.output import Output
from swarm.cli.text import count, lines_of, place, plain
from swarm.cli.verb import command_of

_MOST_ITEMS = 10
_MOST_LINES = 20


def explain(error: BaseException, command: str, attempt: str) -> SwarmError | None:
    """Return *error* as one of ours, with the attempt in front; None for a bug."""
    known = as_problem(error, attempt)
    if known is not None and known.code == UsageProblem.code and not known.hint:
        known.hint = f"swarm {command} --help"
    return known


def exit_code_of(error: SwarmError) -> int:
    """Return the exit status for an error."""
    if isinstance(error, Interrupted):
        return 128 + int(error.facts.get("signum", 2))
    return error.exit_code or 1


def from_usage(error: Any, command: str) -> tuple[str, UsageProblem]:
    """Return (command, error) of typer's complaint about a command line; *command* is the recognized part."""
    context = getattr(error, "ctx", None)
    if context is not None:
        command = command_of(context)
    message = error.format_message().strip().rstrip(".")
    whole = f"swarm {command}".strip()
    if context is not None and "Missing command" in message:
        message = f"`{whole}` needs a command: {', '.join(context.command.list_commands(context))}"
    return command, UsageProblem(message[:1].lower() + message[1:], hint=f"{whole} --help")


def show(output: Output, command: str, error: SwarmError, code: int) -> None:
    """Print an error in the form the user asked for."""
    if output.json:
        status, data = ("partial", _sent_data(error)) if isinstance(error, SentInPart) else ("error", {})
        output.envelope(command, status, code, data, [one.as_dict() for one in _parts(error)])
        return
    if isinstance(error, SentInPart):
        _show_sent(output, error)
    problems = _problems(error)
    if len(problems) > 1:
        attempt = _attempt_of(error).removesuffix(" has several problems")
        output.label("error", f"{attempt}: {count(len(problems), 'problem')}", "bad")
        for problem in problems:
            output.item("  - ", f"{problem.message} ({problem.code})", err=True)
    else:
        output.label("error", error.message, "bad")
    if isinstance(error, WorkAtRisk):
        _show_risks(output, error.facts.get("agents", ()))
    _show_details(output, error)
    _show_failed(output, error.facts.get("failed", ()))
    output.err()
    _show_hints(output, error, problems)
    output.label("code", error.code, "dim")


def _problems(error: SwarmError) -> Sequence[SwarmError]:
    """Return the several problems that an error holds."""
    if isinstance(error, SentInPart):
        problems: Sequence[SwarmError] = error.facts["problems"]
        return problems
    return error.problems if isinstance(error, Refused) else ()


def _parts(error: SwarmError) -> Sequence[SwarmError]:
    return _problems(error) or (error,)


def _sent_data(error: SentInPart) -> dict[str, Any]:
    """Return the recipients with and without a message, for machines."""
    from swarm.cli.views.messages import sent_data

    refused = [{"to": one.facts["to"], "code": one.code} for one in _problems(error)]
    return {**sent_data(error.facts["sender"], error.facts["sent"]), "refused": refused}


def _show_sent(output: Output, error: SentInPart) -> None:
    from swarm.cli.views.messages import sent_lines

    for line in sent_lines(error.facts["sent"]):
        output.out(line)


def _attempt_of(error: SwarmError) -> str:
    """Return the attempt that an error names before it lists its problems."""
    listed = "; ".join(problem.message for problem in _parts(error))
    return error.message.removesuffix(listed).rstrip(": ") or "cannot do this"


def _show_hints(output: Output, error: SwarmError, problems: Sequence[SwarmError]) -> None:
    hints = list(dict.fromkeys(problem.hint for problem in (error, *problems) if problem.hint))
    if "rollback" in error.facts:
        hints.append(f"the rollback is {error.facts['rollback']}; `swarm recover` finishes it")
    for position, hint in enumerate(hints):
        output.item("      " if position else "hint: ", hint, "hint", err=True, command_last=True)


def _show_details(output: Output, error: SwarmError) -> None:
    lines = lines_of(error.details) if error.details else []
    if (
        not lines
        or error.code == BranchExists.code
        or (len(lines) == 1 and lines[0].partition(": ")[2] in plain(error.message))
    ):
        return  # the message has said it
    output.err()
    _show_list(output, lines, "  ", _MOST_LINES)


def _show_failed(output: Output, failed: Iterable[object]) -> None:
    for one in failed:
        name, reason = getattr(one, "name", one), getattr(one, "reason", "")
        output.item("  - ", f"{name}" + (f": {reason}" if reason else ""), err=True)


def _show_risks(output: Output, agents: Iterable[Any]) -> None:
    for agent in agents:
        output.err(f"  {plain(agent.agent)}@{plain(agent.session)}  {place(agent.path)}")
        for risk in agent.risks:
            output.item("    - ", risk.text, err=True)
            _show_list(output, [plain(item) for item in risk.items], "        ", _MOST_ITEMS)


def _show_list(output: Output, lines: Sequence[str], indent: str, most: int) -> None:
    for line in lines[:most]:
        output.err(f"{indent}{line}".rstrip())
    if len(lines) > most:
        output.err(f"{indent}… and {len(lines) - most} more")
