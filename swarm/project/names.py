"""Names of roles, agents and sessions, and the names derived from them.

A name is checked once, here, and then trusted: it is safe as part of a branch, a folder, a tmux
title and an address.  Nothing is ever read back *out of* such a spelling (``a-b`` + ``c`` and
``a`` + ``b-c`` look the same); records keep the parts.
"""

from __future__ import annotations

import re
import time
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from swarm.kit.errors import UsageProblem
from swarm.project.errors import InvalidName, NameCollision, ReservedName

if TYPE_CHECKING:
    from collections.abc import Container

BRANCH_PREFIX = "swarm"
WORKTREE_BASE = ".worktrees"
#: The agent programs, as the user types them and in the order they are suggested; each is a folder of `programs/`.
PROGRAMS = ("claude", "codex", "gemini", "opencode", "shell", "demo")
PROGRAMS_IN_WORDS = f"{', '.join(PROGRAMS[:-1])} or {PROGRAMS[-1]}"
#: How people call them too.
PROGRAM_ALIASES = {"claude_code": "claude", "claude-code": "claude"}
ROLES_DIR = "roles"
VALID_ROLES = ("researcher", "developer", "reviewer", "architect")

MAX_LENGTH = 40
MAX_AGENTS = 256
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}"
_PREFIX = r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}(/[A-Za-z0-9][A-Za-z0-9_-]{0,39})*"
#: Words that mean a group, a person or git itself in an address or a ref.
RESERVED = frozenset({"all", "user", "operator", "broadcast", "swarm", "head", "parent", "root"})

#: What stands for the session of saved branches that have no worktree.
LEFTOVER = "leftover"


def check_name(kind: str, name: object) -> str:
    """Return *name* if it can name a role, agent or session.

    Raises:
        InvalidName: it is not text of the allowed form.
        ReservedName: it has a meaning of its own.
    """
    if not isinstance(name, str):
        raise InvalidName(f"invalid {kind} name {_shown(repr(name), quote=False)}: it must be text")
    if not name:
        raise InvalidName(f"invalid {kind} name '': it is empty")
    if re.fullmatch(_NAME, name) is None:
        raise InvalidName(f"invalid {kind} name {_shown(name)}: {_why_invalid(name)}")
    if name.casefold() in RESERVED:
        raise ReservedName(f"invalid {kind} name {name!r}: the word is reserved")
    return str.__str__(name)  # plain text, also from a kind of text that would spell itself differently


def _shown(name: str, *, quote: bool = True) -> str:
    """Make a hostile name fit for one line of output: shortened, and without control characters."""
    cut = name if len(ascii(name)) <= 60 else name[:20] + "..."
    return ascii(cut) if quote else ascii(cut)[1:-1]


def _why_invalid(name: str) -> str:
    if len(name) > MAX_LENGTH and re.match(_NAME, name):
        return f"it has {len(name)} characters, at most {MAX_LENGTH} are allowed"
    if name[0] in "-_":
        return f"it starts with {name[0]!r}"
    bad = next((c for c in name if not (c.isascii() and (c.isalnum() or c in "_-"))), None)
    return "it is not a plain name" if bad is None else f"it contains {bad!a}"


def check_pod(name: str) -> str:
    """Return the name of a pod; empty is none.

    Raises:
        InvalidName
    """
    if name and re.fullmatch(r"[a-z0-9-]{1,40}", name) is None:
        raise InvalidName(f"invalid pod name {name[:60]!a}", hint="use 1 to 40 lower-case letters, digits and -")
    return name


def check_session(session: object) -> str:
    """Return a valid session name; a missing one says so in the words of the user's design."""
    if session is None or session == "":
        raise InvalidName("session_id is required")
    if isinstance(session, str) and "@" in session:  # an agent's address; its reader checks the parts
        rest = session.rpartition("@")[2]
        hint = f"name the session alone: {rest}" if re.fullmatch(_NAME, rest) else None
        raise InvalidName(f"invalid session name {_shown(session)}: it contains '@'", hint=hint)
    return check_name("session", session)


def check_new_session(session: object) -> str:
    """Return a valid name for a new session; its saved work must not look like something else."""
    name = check_session(session)
    if name.casefold() == LEFTOVER:
        raise ReservedName(f"invalid session name {name!r}: the word is reserved")
    return name


def check_prefix(prefix: str) -> str:
    """Return *prefix* if it can stand before the slash of a branch."""
    if re.fullmatch(_PREFIX, prefix) is None:
        raise InvalidName(f"invalid branch prefix {_shown(prefix)}: use letters, digits, - and _")
    return prefix


_newest = 0
_guard = Lock()


def new_session_id(taken: Container[str] = ()) -> str:
    """Return a fresh session name: the milliseconds since 1970, or the next number that is free.

    Args:
        taken: names that it must not be; those given before in this process it never is.
    """
    global _newest  # noqa: PLW0603  # no name is given twice
    with _guard:
        _newest = max(time.time_ns() // 1_000_000, _newest + 1)
        while str(_newest) in taken:
            _newest += 1
        return str(_newest)


def tail(agent: str, session: str) -> str:
    """Return the one spelling that branch, worktree, inbox and salvage of an agent share."""
    return f"{agent}-{session}"


def branch_name(agent: str, session: str, prefix: str = BRANCH_PREFIX) -> str:
    """Return the agent's branch, without ``refs/heads/``."""
    return f"{prefix}/{tail(agent, session)}"


_ROLES_HINT = "for example: --roles researcher,developer:2,lead=architect"


class AgentSpec(NamedTuple):
    """One agent as asked for: its name, and the role it plays."""

    name: str
    role: str


def parse_roles(text: str) -> tuple[AgentSpec, ...]:
    """Read ``researcher,developer:2,lead=architect`` into agents, in the order given.

    Raises:
        UsageProblem: an entry cannot be read.
        InvalidName, ReservedName, NameCollision: as for the names in it.
    """
    entries = [part.strip() for part in text.split(",")]
    if not any(entries):
        raise UsageProblem("no roles given", hint="for example: --roles researcher,developer")
    if "" in entries:
        raise UsageProblem(f"cannot read roles {_shown(text)}: an entry is empty", hint=_ROLES_HINT)
    return expand_roles(entries)


def expand_roles(entries: object) -> tuple[AgentSpec, ...]:
    """Turn role entries (``developer``, ``developer:2``, ``lead=architect``) into named agents."""
    if isinstance(entries, str):
        return parse_roles(entries)
    if not isinstance(entries, (list, tuple)):
        raise UsageProblem(f"roles must be a list of names, not {type(entries).__name__}", hint=_ROLES_HINT)
    if not entries:
        raise UsageProblem("no roles given", hint="for example: roles=['researcher', 'developer']")
    specs = [spec for entry in entries for spec in _expand(entry)]
    if len(specs) > MAX_AGENTS:
        raise UsageProblem(
            f"{len(specs)} agents asked for, at most {MAX_AGENTS} are possible in one session",
            hint="spread them over several sessions",
        )
    _refuse_doubles(specs)
    return tuple(specs)


def _expand(entry: object) -> list[AgentSpec]:
    if isinstance(entry, AgentSpec):
        return [AgentSpec(check_name("agent", entry.name), check_name("role", entry.role))]
    if not isinstance(entry, str):
        raise InvalidName(f"invalid role name {_shown(repr(entry), quote=False)}: it must be text")
    given_name, equals, rest = entry.rpartition("=")
    role, colon, count_text = rest.partition(":")
    check_name("role", role)
    if equals:
        if colon:
            raise UsageProblem(
                f"cannot read role {_shown(entry)}: a named agent is one agent",
                hint=f"write them one by one, such as {_example(given_name, role)}",
            )
        return [AgentSpec(check_name("agent", given_name), role)]
    if not colon:
        return [AgentSpec(role, role)]
    digits = count_text.lstrip("0")  # so that its length bounds the number, before anything counts to it
    if not (digits.isascii() and digits.isdigit() and len(digits) < 4 and int(digits) <= MAX_AGENTS):
        raise UsageProblem(
            f"cannot read role {_shown(entry)}: after the colon comes a number from 1 to {MAX_AGENTS}",
            hint=f"for two of them write {role}:2",
        )
    count = int(digits)
    if count == 1:
        return [AgentSpec(role, role)]
    return [AgentSpec(check_name("agent", f"{role}-{n}"), role) for n in range(1, count + 1)]


def _example(name: str, role: str) -> str:
    name = name if re.fullmatch(_NAME, name) else "lead"
    return f"{name}-1={role},{name}-2={role}"


def _refuse_doubles(specs: list[AgentSpec]) -> None:
    seen: dict[str, AgentSpec] = {}
    for spec in specs:
        key = spec.name.casefold()
        if key not in seen:
            seen[key] = spec
        elif seen[key].name == spec.name:
            raise NameCollision(f"agent {spec.name} is asked for twice", hint=f"for two of them write {spec.role}:2")
        else:
            raise NameCollision(f"agents {seen[key].name} and {spec.name} differ only in case")


def parse_created_at(branch: str) -> int:
    """Guess the creation time (ms) from a branch of the form ``swarm/<role>-<ms>``; 0 means unknown.

    Only for branches without a record; records keep the real time.
    """
    match = re.match(r"swarm/\w+-(\d+)", branch)
    return int(match.group(1)) if match else 0


def split_tail(tail_text: str, known_roles: tuple[str, ...]) -> tuple[str, str] | None:
    """Guess (role, session) from a folder name, longest known role first; for things without a record."""
    for role in sorted(known_roles, key=len, reverse=True):
        if tail_text == role:
            return role, ""
        if tail_text.startswith(role + "-"):
            return role, tail_text[len(role) + 1 :]
    return None
