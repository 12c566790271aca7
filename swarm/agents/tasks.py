"""The tasks of a start: one for all agents, one for each of some; and the session's name made from them."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from swarm.kit.errors import UsageProblem
from swarm.project import names
from swarm.project.errors import InvalidName, ReservedName

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_HEADING = re.compile(r"^===[ \t]+([A-Za-z0-9][A-Za-z0-9_-]{0,39})[ \t]+===[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_WORDS, _LONGEST = 4, 28
#: Words that say nothing about the work.
_EMPTY_WORDS = frozenset({"a", "an", "and", "for", "in", "of", "on", "please", "the", "to"})


def read_sections(text: str) -> tuple[str, dict[str, str]]:
    """Read a task file: the text for all agents, then a section below each line ``=== NAME ===``.

    Raises:
        UsageProblem: two sections have one name, or one is empty.
    """
    common, *rest = _HEADING.split(text)
    found: dict[str, str] = {}
    for name, body in zip(rest[::2], rest[1::2], strict=True):
        if name in found:
            raise UsageProblem(f"cannot read the task: the section {name} is there twice", hint="join the two")
        if not body.strip():
            raise UsageProblem(
                f"cannot read the task: the section {name} is empty", hint="write it, or remove its line"
            )
        found[name] = body.strip("\r\n") + "\n"
    return (common.strip("\r\n") + "\n" if found and common.strip() else "" if found else text), found


def assign(agents: Sequence[names.AgentSpec], tasks: Mapping[str, str]) -> dict[str, str]:
    """Return each agent's own task.

    Args:
        tasks: by the name of an agent, or of a role, which means all its agents; an agent's name comes first.

    Raises:
        UsageProblem: no agent and no role is called so, or a text is no text.
    """
    by_name = {agent.name for agent in agents}
    for name, text in tasks.items():
        if name not in by_name and not any(agent.role == name for agent in agents):
            there = ", ".join(dict.fromkeys(agent.name for agent in agents))
            raise UsageProblem(
                f"cannot give {str(name)[:60]!a} a task: this start has no agent and no role of that name",
                hint=f"it has {there}; a text for all that begins so: --task all=TEXT",
            )
        if not text.strip():
            raise UsageProblem(f"cannot give {name} a task: it is empty", hint=f'for example: --task {name}="Go on"')
    keys = {agent.name: agent.name if agent.name in tasks or agent.role in by_name else agent.role for agent in agents}
    return {name: tasks[key] for name, key in keys.items() if key in tasks}


def session_name(task: str, taken: Collection[str]) -> str:
    """Return a free name for a session, made from the first words of its task.

    A text without a word in Latin letters gives the time instead.
    """
    plain = unicodedata.normalize("NFKD", task).encode("ascii", "ignore").decode("ascii").lower()
    line = next((line for line in plain.splitlines() if re.search(r"[a-z0-9]", line)), "")
    words = [word for word in re.findall(r"[a-z0-9]+", line.replace("'", "")) if word not in _EMPTY_WORDS]
    name = ""
    for word in words[:_WORDS]:
        longer = f"{name}-{word}" if name else word[:_LONGEST]
        if len(longer) > _LONGEST:
            break
        name = longer
    there = {one.casefold() for one in taken}
    try:
        names.check_new_session(name)
    except (InvalidName, ReservedName):
        return names.new_session_id(there)
    numbered = (name if number == 1 else f"{name}-{number}" for number in range(1, len(there) + 3))
    return next(one for one in numbered if one not in there)
