"""``swarm role …``: list, show, create and check roles."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swarm import UsageProblem
from swarm.cli import completion
from swarm.cli.commands.validate import own_hint
from swarm.cli.output import Answer, Output
from swarm.cli.table import Column
from swarm.cli.text import count, place, plain
from swarm.cli.verb import Run, group, verb

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm import CheckedRole, Role, Roles, RuleHold

app = group("role", "List, show, create and check roles.", "swarm role list")

_Name = Annotated[
    str, typer.Argument(metavar="ROLE", help="Its name.", autocompletion=completion.roles, show_default=False)
]

_Pod = Annotated[bool, typer.Option("--pod", help="As the agents of a pod find them: those of pods/roles first.")]


def add_to(root: typer.Typer) -> None:
    """Add the group to the tree."""
    root.add_typer(app)


@verb(app, "list", attempt="cannot list the roles", examples="swarm role list")
def list_(run: Run, pod: _Pod = False) -> Answer:
    """List the roles: name, description, origin, and the roles of the same name that each hides.

    Warns about unusable roles; `swarm role check` shows their mistakes.
    """
    found = _roles(run, pod=pod)
    roles, problems = found.scan()
    hidden = found.hidden()

    def words(output: Output) -> None:
        columns = (Column("NAME", keep="all"), Column("DESCRIPTION"), Column("FROM", 1, keep="all"), Column("HIDES", 2))
        rows = [
            (role.name, role.description or "-", str(role.kind), ", ".join(_hidden(found, hidden, role)) or "-")
            for role in roles
        ]
        output.table(columns, rows)

    warnings = [problem.message for problem in problems]
    data = {
        "roles": [{**role_data(role), "overrides": hidden.get(role.name.casefold(), ())} for role in roles],
        "problems": [problem.as_dict() for problem in problems],
    }
    return Answer(data, words, warnings)


def _hidden(roles: Roles, hidden: Mapping[str, Sequence[Path]], role: Role) -> list[str]:
    return ["builtin" if roles.is_shipped(path) else place(path) for path in hidden.get(role.name.casefold(), ())]


@verb(app, "show", attempt="cannot show the role {name}", examples="swarm role show developer")
def show(run: Run, name: _Name, pod: _Pod = False) -> Answer:
    """Show one role: instructions, permissions and all other keys."""
    roles = _roles(run, pod=pod)
    role = roles.get(name)
    notes = roles.notes(role)
    data = {
        **role_data(role),
        "instructions": role.instructions,
        "system_prompt": role.system_prompt,
        "options": roles.options(role),
        "notes": [note._asdict() for note in notes],
    }
    return Answer(data, lambda output: _show(output, role), [f"{note.key} {note.text}" for note in notes])


def _show(output: Output, role: Role) -> None:
    from swarm.cli.views.roles import pairs_of

    output.pairs(
        [
            ("name", role.name),
            ("description", role.description),
            ("model", role.options.model or "(the program's own)"),
            ("from", f"{place(role.source)} ({role.kind})"),
            *pairs_of(role.options),
        ],
        prose=("description",),
    )
    for title, text in (("system prompt", role.system_prompt), ("instructions", role.instructions)):
        if text.strip():
            output.out()
            output.out(f"{title}:", "heading")
            output.prose(text, "  ")


@verb(
    app,
    "init",
    attempt="cannot write the role {name}",
    examples="swarm role init tester\nswarm role init strict-reviewer --from reviewer",
)
def init(
    run: Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new role.", show_default=False)],
    source: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="ROLE", help="Copy this role.", autocompletion=completion.roles, show_default=False
        ),
    ] = None,
    user: Annotated[bool, typer.Option("--user", help="Write it into your swarm directory.")] = False,
) -> Answer:
    """Write a new role file, with every key explained, into the project's `roles/`.

    Overwrites nothing. The new role hides a role of the same name from elsewhere, such as a shipped one.
    """
    path = _roles(run).init(name, source=source, user=user)
    nexts = (f"next: edit {place(path)}", f"next: swarm role check {name}")
    return Answer({"name": name, "path": path}, lambda output: output.out(f"{place(path)} written"), next=nexts)


@verb(
    app,
    "check",
    attempt="cannot check the roles",
    examples="swarm role check\nswarm role check developer\nswarm role check roles/tester.yaml",
)
def check(
    run: Run,
    which: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ROLE|FILE]…",
            help="Names, files or folders; without any, every role.",
            autocompletion=completion.roles,
            show_default=False,
        ),
    ] = None,
    pod: _Pod = False,
) -> Answer:
    """Check roles: every mistake with its place, keys without effect, and what holds each deny rule.

    Exit status 2: a role is unusable. A key without effect is a note, not a mistake.
    """
    found = _roles(run, pod=pod).check(which or (), run.directory)
    problems = [problem for one in found for problem in one.problems]
    data = {
        "roles": [
            {
                "name": one.name,
                "source": one.source,
                "problems": [problem.as_dict() for problem in one.problems],
                "notes": [note._asdict() for note in one.notes],
                "rules": [rule._asdict() for rule in one.rules],
            }
            for one in found
        ]
    }
    if not problems:
        return Answer(data, lambda output: _show_checked(output, found))
    errors, code = [problem.as_dict() for problem in problems], UsageProblem.exit_code
    return Answer(data, lambda output: _show_checked(output, found), errors=errors, exit_code=code, status="error")


def _show_checked(output: Output, found: Sequence[CheckedRole]) -> None:
    for one in found:
        where = f" ({place(one.source)})" if one.source is not None else ""
        output.out(f"{plain(one.name)}{where}: {'cannot be used' if one.problems else 'ok'}", "heading")
        for problem in one.problems:
            output.item("  wrong: ", problem.message, "bad")
            if own_hint(problem) and not output.quiet:
                output.item("      hint: ", problem.hint, "hint", command_last=True)
        for note in one.notes:
            output.item("  note: ", f"{note.key} {note.text}", "warn")
        for rule, held in _held(one.rules):
            output.item(f"  deny {plain(rule)}: ", held)
    number = sum(len(one.problems) for one in found)
    summary = count(number, "problem") if number else "no problems"
    output.err(f"{summary} found in {count(len(found), 'role')}", "bad" if number else "good")


_HOLDERS = {"guard": "swarm's guard", "program": "its own rules", "": "nothing"}


def _held(rules: Sequence[RuleHold]) -> Iterator[tuple[str, str]]:
    """Yield each deny rule with what holds it: a program in part, where a note says so."""
    for rule in dict.fromkeys(one.rule for one in rules):
        mine = [one for one in rules if one.rule == rule]
        found: dict[str, list[str]] = {}
        for one in mine:
            part = " in part" if one.note and one.by else ""
            for by in one.by or ("",):
                found.setdefault(by, []).extend(f"{name}{part}" for name in one.programs)
        told = "; ".join(f"{_HOLDERS[by]} with {', '.join(names)}" for by, names in found.items())
        box = mine[0]
        inside = f"{'yes' if box.box else 'no'}{f', {box.box_note}' if box.box_note else ''}"
        yield rule, f"{told}; box: {inside}"


def role_data(role: Role) -> dict[str, Any]:
    """Return a role for machines."""
    return {"name": role.name, "description": role.description, "kind": role.kind, "source": role.source}


def _roles(run: Run, *, pod: bool = False) -> Roles:
    """Return the roles; outside of a repository the user's own, and the shipped ones.

    Args:
        pod: as the agents of a pod find them; so does whoever is in a pod.
    """
    from swarm import Roles

    found = Roles.around(run.directory)
    return found.of_pods if pod or os.environ.get("SWARM_POD") else found
