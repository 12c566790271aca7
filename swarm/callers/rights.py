"""Check whether an agent may act on another agent.

Who calls is read from the machine (``machine/identity.py``).  What an agent started is in the records of the sessions,
and so is what its role lets it do besides; both were written down when they were made, not when they are asked for.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from swarm.callers import caller as callers
from swarm.callers import parents
from swarm.callers.errors import NotAPerson, NotForAgents
from swarm.machine import person
from swarm.roles.rights import VERBS, Need, Right

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World
    from swarm.roles.role import Role

#: Verbs at whose end the programs of their targets do not run, or not as they did.
_ENDS_PROGRAMS = frozenset({"cleanup", "worktrees.remove", "restart", "stop", "tree.cleanup", "tree.stop"})


class Caller(NamedTuple):
    """An agent that calls.

    Attributes:
        me: which agent of this repository; None: one of another, which has nothing here.
        may: what its role lets it do to what others started.
    """

    address: str
    me: Parent | None
    may: frozenset[str] = frozenset()


def caller(world: World) -> Caller | None:
    """Return the agent to which this process belongs; None when it is none."""
    who = parents.seen(world)
    if who is None:
        return Caller("of a supervisor that cannot be seen", None) if person.descends_from_agent() else None
    me = parents.here(world, who)
    if me is None:
        return Caller(f"{who.address} of another repository", None)
    session = world.sessions.get(me.session)
    agent = session.agent(me.agent) if session is not None else None
    counts = session is not None and agent is not None and session.generation_of(agent) == me.generation
    return Caller(who.address, me, frozenset(agent.may) if counts and agent is not None else frozenset())


def check(world: World, verb: str, targets: Iterable[tuple[Session, Agent | None]] = (), *, attempt: str = "") -> None:
    """Refuse an agent without the right to act on these targets, and an unknown caller where a person is needed.

    Args:
        verb: as in ``roles.rights.VERBS``.
        targets: agents, or whole sessions.
        attempt: what could not be done, in words; default: the verb.

    Raises:
        NotForAgents, NotAPerson
    """
    who = caller(world)
    attempt = attempt or f"cannot {verb.replace('_', ' ')}"
    if who is None:
        if VERBS[verb] is Need.PERSON:
            check_person(callers.caller(world), attempt)
        return
    chosen = list(targets)
    if VERBS[verb] in (Need.PERSON, Need.NO_AGENT):
        raise for_people(attempt, who.address)
    if verb in _ENDS_PROGRAMS and any(_is_caller(who, session, agent) for session, agent in chosen):
        raise NotForAgents(
            f"{attempt}: you are agent {who.address}, and this command would end with you, half way",
            hint="end your program instead, or ask the user: swarm send user 'please …'",
        )
    strange = [_name(*one) for one in chosen if not allowed(world, who, verb, *one)]
    if strange:
        _refuse(who, verb, attempt, strange)


def check_others(world: World, verb: str, attempt: str) -> None:
    """Refuse an agent that may not do this to the work of others, such as their branches."""
    who = caller(world)
    if who is not None and VERBS[verb] not in who.may:
        _refuse(who, verb, attempt, ["what others made"])


def check_tree(world: World, verb: str, tree: Path) -> None:
    """Refuse an agent that would change a folder other than its worktree or those of agents it started."""
    who = caller(world)
    if who is None:
        return
    path = os.path.realpath(tree)
    of = [(session, agent) for session in world.sessions.all() for agent in session.agents]
    trees = [(one, world.layout.root / one[1].worktree) for one in of if not one[1].shared]
    owners = [one for one, own in trees if path == os.path.realpath(own)]
    if VERBS[verb] not in who.may and not any(allowed(world, who, verb, *one) for one in owners):
        _refuse(who, verb, f"cannot {verb.replace('_', ' ')} to {tree}", [str(tree)])


def check_branch(world: World, branch: str, checkout: Path | None) -> None:
    """Refuse an agent that would merge into a branch other than its own or those of agents it started."""
    who = caller(world)
    if who is None or Right.MERGE in who.may:
        return
    of = [(session, agent) for session in world.sessions.all() for agent in session.agents]
    own = [one for one in of if not one[1].shared]  # nothing that others share is theirs
    known = [one for one in own if one[1].branch == branch]
    there = [one for one in own if checkout is not None and checkout == world.layout.root / one[1].worktree]
    owners = known or there
    if owners and all(allowed(world, who, "merge", *one) for one in owners):
        return
    mine = [agent.branch for session, agent in own if _is_caller(who, session, agent)]
    hint = f"merge into your own branch: --into {mine[0]}" if mine else None
    _refuse(who, "merge", f"cannot merge into {branch}", [f"branch {branch}"], hint)


def allowed(world: World, who: Caller, verb: str, session: Session, agent: Agent | None) -> bool:
    """Whether an agent may do something to an agent, or to a whole session."""
    if VERBS[verb] is Need.NOTHING or VERBS[verb] in who.may:
        return True
    return who.me is not None and (_is_caller(who, session, agent) or _started(world, who.me, session))


def check_person(found: callers.Caller, attempt: str) -> None:
    """Refuse a caller that is neither a person nor a program with a grant.

    Raises:
        NotForAgents: it is one, of whatever repository.
        NotAPerson: nothing shows that it is a person.
    """
    if found.who is not None:
        raise for_people(attempt, found.who.address)
    if not found.consents:
        raise NotAPerson(f"{attempt}: this is for people, and nothing shows that a person runs it: {found.doubt}")


def for_people(attempt: str, address: str) -> NotForAgents:
    """Return the error for an agent's attempt that no right permits."""
    return NotForAgents(f"{attempt}: this is for people, and you are agent {address}")


def _started(world: World, me: Parent, session: Session) -> bool:
    """Whether an agent started a session, directly or through another agent."""
    if me in session.ancestors:
        return True
    seen = set()
    found: Session | None = session
    while found is not None and found.parent is not None and found.name not in seen:
        if found.parent == me:
            return True
        seen.add(found.name)
        living = parents.living(world, found)
        found = world.sessions.get(living.session) if living is not None else None
    return False


def _is_caller(who: Caller, session: Session, agent: Agent | None) -> bool:
    me = who.me
    return (
        me is not None
        and agent is not None
        and (me.agent, me.session, me.generation) == (agent.name, session.name, session.generation_of(agent))
    )


def _refuse(who: Caller, verb: str, attempt: str, strange: Sequence[str], hint: str | None = None) -> NoReturn:
    named = ", ".join(strange[:3]) + (f" and {len(strange) - 3} more" if len(strange) > 3 else "")
    right = VERBS[verb]
    without = f", and your role lacks `may: [{right}]`" if isinstance(right, Right) else ""
    raise NotForAgents(f"{attempt}: you are agent {who.address}, and did not start {named}{without}", hint=hint)


def _name(session: Session, agent: Agent | None) -> str:
    return session.name if agent is None else f"{agent.name}@{session.name}"


def check_overrides(world: World, keys: Collection[str]) -> None:
    """Refuse overrides of an agent that could give another one more than its role.

    Raises:
        NotForAgents
    """
    from swarm.roles.overrides import WIDENING

    wide = sorted(WIDENING.intersection(keys))
    who = caller(world) if wide else None
    if who is not None:
        what = f"cannot override {', '.join(wide)}: you are agent {who.address}, and it could widen an agent's rights"
        raise NotForAgents(what, hint="ask the user: swarm send user 'please …'")


# --- records of a start ---------------------------------------------------------------------------


def given(world: World, role: Role | None) -> tuple[str, ...]:
    """Return the rights of an agent of a role: none from a file that agents can edit, and none its starter lacks."""
    if role is None or not role.options.may or not is_users_own(world, role):
        return ()
    return passed_on(world, role.options.may)


def passed_on(world: World, rights: Iterable[str]) -> tuple[str, ...]:
    """Return those of some rights that the caller can give to an agent it starts or brings back."""
    who = caller(world)
    return tuple(str(right) for right in rights if who is None or right in who.may)


def warnings(world: World, roles: Iterable[Role | None]) -> tuple[str, ...]:
    """Return warnings for rights in roles that do not count."""
    from swarm.programs.role_effects import NO_RIGHTS

    found = []
    for role in roles:
        missing = [right for right in role.options.may if right not in given(world, role)] if role is not None else []
        if role is not None and missing:
            lacking = f"is without {', '.join(missing)}: its starter has no such right"
            found.append(f"may of role {role.name} {lacking if is_users_own(world, role) else NO_RIGHTS}")
    return tuple(dict.fromkeys(found))


def is_users_own(world: World, role: Role) -> bool:
    """Whether a role's file is in a directory of the user's, outside of the repository and its worktrees."""
    from swarm.roles.role import RoleKind

    if role.kind is not RoleKind.SWARM_DIR:
        return False
    file, root = os.path.realpath(role.source), os.path.realpath(world.layout.root)
    return os.path.commonpath((file, root)) != root
