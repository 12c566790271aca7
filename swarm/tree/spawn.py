"""Spawn a child: its names, its place, the limits, and whether it is there already."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from swarm.agents.errors import AgentNotRunning
from swarm.agents.view import View
from swarm.callers import family, parents
from swarm.callers.errors import NotForAgents
from swarm.kit.errors import StateDirProblem, UsageProblem
from swarm.programs import processes
from swarm.project import names
from swarm.project.layout import SUBTREES
from swarm.project.model import SHARED, SUBTREE, WORKER
from swarm.sandbox import fresh, inherited
from swarm.sandbox.errors import IntakeRefused
from swarm.sessions.create.create_request import Child, Place, Request
from swarm.tree.errors import AlreadyThere, TreeLimit, Uncommitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.agents.launching.launch_request import LaunchRequest
    from swarm.kit.errors import SwarmError
    from swarm.project.model import Agent, Parent, Session
    from swarm.project.world import World
    from swarm.roles.options import RoleOptions
    from swarm.roles.role import Role
    from swarm.tree.ground import Ground

_MINUTE_MS = 60_000
#: So many changed files are named.
_MOST_NAMED = 5


class Wanted(NamedTuple):
    """A child as asked for.

    Attributes:
        kind: a subtree, or a worker.
        session: the name of its session.
        agent: its name.
        task: its whole instructions.
    """

    kind: str
    session: str
    agent: str
    task: str


def subtree(task: str, branch_name: str, role: str) -> Wanted:
    """Return the subtree that is asked for.

    Raises:
        UsageProblem: there is no task.
        InvalidName, ReservedName: no slug can be made of the branch's name.
    """
    slug = slug_of(branch_name)
    return Wanted(SUBTREE, slug, role, _task(task, f"spawn the subtree {slug}"))


def worker(name: str, prompt: str, ground: Ground) -> Wanted:
    """Return the worker that is asked for; its session is named after that of its parent.

    Raises:
        UsageProblem: there is no prompt.
        InvalidName, ReservedName
    """
    agent = names.check_name("worker", name).lower()
    above = ground.session.name if ground.session is not None else ""
    room = names.MAX_LENGTH - len(agent) - 1
    session = f"{above[:room].rstrip('-_')}-{agent}" if above and room > 0 else agent
    return Wanted(WORKER, session, agent, _task(prompt, f"spawn the worker {agent}"))


def slug_of(branch_name: str) -> str:
    """Return the word that a branch's name gives its worktree, its session and the last part of its branch.

    Raises:
        InvalidName, ReservedName: no such word can be made of it.
    """
    plain = re.sub(r"[/ ]+", "-", branch_name.strip()).lower()
    return names.check_new_session(names.check_name("branch", plain))


def _task(text: str, attempt: str) -> str:
    if not text.strip():
        raise UsageProblem(
            f"cannot {attempt}: it has no task", hint="say all that it needs to know: it has no other context"
        )
    return text


# --- what is there ------------------------------------------------------------------------------------


def there(world: World, wanted: Wanted, ground: Ground) -> tuple[Session, Agent] | None:
    """Return the child if it is there already, with this very task, and lives.

    Raises:
        AlreadyThere: what is there is another one.
    """
    session = world.sessions.get(wanted.session)
    if session is None:
        return None
    agent = next((one for one in session.agents), None)
    attempt = f"cannot spawn {wanted.session}"
    if not session.is_child or agent is None or session.parent != ground.me or session.kind != wanted.kind:
        raise AlreadyThere(f"{attempt}: there is a session of this name, which is no {wanted.kind} of yours")
    if (agent.task, agent.name) != (wanted.task, wanted.agent):
        raise AlreadyThere(
            f"{attempt}: your {session.kind} of this name has another task",
            hint=f"tell it more: swarm send {agent.name}@{session.name} 'TEXT'; or choose another name",
        )
    if not View(world, {(session.name, agent.name)}).status(session, agent).runs:
        raise AlreadyThere(
            f"{attempt}: your {session.kind} of this name has ended",
            hint=f"start it again: swarm resume {session.name}; or fold it in: swarm merge --tree {session.name}",
        )
    return session, agent


def refuse_tracked(world: World, wanted: Wanted) -> Iterator[SwarmError]:
    """Yield the refusal of a folder for subtrees that the project has in its history."""
    base = world.settings.tree.worktree_base
    if wanted.kind == SUBTREE and base != SUBTREES and world.git.tracked("HEAD", (base,)):
        yield StateDirProblem(
            f"cannot spawn {wanted.session}: the project has {base} in its history",
            hint="set tree.worktree_base to another folder",
        )


def check_limits(world: World, wanted: Wanted, ground: Ground) -> Iterator[SwarmError]:
    """Yield the limits that stand against a spawn. Caps count agents that live, not records."""
    tree, attempt = world.settings.tree, f"cannot spawn {wanted.session}"
    if wanted.kind == SUBTREE and ground.depth >= tree.max_depth:
        yield TreeLimit(
            f"{attempt}: {ground.name} is at depth {ground.depth}, and leads may exist down to tree.max_depth"
            f" {tree.max_depth}",
            hint="spawn workers in your own folder instead: swarm spawn worker NAME 'PROMPT'",
            limit="max_depth",
            value=tree.max_depth,
        )
    sessions = world.sessions.scan()[0]
    mine = list(family.children(sessions, ground.me))
    since = time.time_ns() // 1_000_000 - _MINUTE_MS
    late = sum(one.created_ms > since for one in mine if one.is_child)
    if tree.spawns_per_minute and late >= tree.spawns_per_minute:
        yield _limit(attempt, f"{ground.name} spawned {late} children in the last minute", "spawns_per_minute", world)
    view = View(world)
    living = sum(_lives(view, one) for one in mine)
    if living >= tree.max_children:
        yield _limit(attempt, f"{ground.name} has {living} living children", "max_children", world)
    root = _root(sessions, ground)
    whole = [one for one in sessions if one.is_child and family.root_of(sessions, one) == root]
    living = sum(_lives(view, one) for one in whole)
    if living >= tree.max_descendants:
        yield _limit(attempt, f"the whole tree has {living} living agents", "max_descendants", world)


def _limit(attempt: str, cause: str, name: str, world: World) -> TreeLimit:
    value = getattr(world.settings.tree, name)
    return TreeLimit(f"{attempt}: {cause}, and tree.{name} is {value}", limit=name, value=value)


def _root(sessions: Sequence[Session], ground: Ground) -> Parent | None:
    """Return the root of the caller's tree; None: the user."""
    if ground.session is None or ground.session.is_child:
        return family.root_of(sessions, ground.session) if ground.session is not None else None
    return ground.line[-1] if ground.line else ground.me


def _lives(view: View, session: Session) -> int:
    return sum(view.status(session, agent).runs for agent in session.agents if agent.program)


def refuse_stopped(world: World, wanted: Wanted, ground: Ground) -> Iterator[SwarmError]:
    """Yield the refusal of a caller that was stopped while its spawn waited, itself or with all below an ancestor."""
    for one in (ground.me, *ground.line) if ground.me is not None else ():
        facts = processes.facts(world.layout.run_folder(one.session, one.agent))
        if facts.stopped_ms and not (facts.alive or facts.supervised):
            yield AgentNotRunning(
                f"cannot spawn {wanted.session}: {one.address} was stopped",
                hint=f"start it again first: swarm resume {one.session}",
            )


# --- changes that the child would not see ------------------------------------------------------------


def uncommitted(world: World, ground: Ground) -> tuple[str, ...]:
    """Return what is not committed where a caller works, as ``git status`` shows it."""
    asked = world.git.begin_status(ground.checkout or world.layout.root)
    try:
        lines = asked.result().split(b"\0")
    finally:
        asked.end()
    return tuple(line.decode("utf-8", "replace") for line in lines if line)


def refuse_uncommitted(wanted: Wanted, ground: Ground, changes: Sequence[str]) -> Iterator[SwarmError]:
    """Yield the refusal of an agent that would leave its own changes behind unknowingly."""
    if changes and ground.me is not None:
        yield Uncommitted(
            f"cannot spawn {wanted.session}: you have changes that are not committed, and it would not see them:"
            f" {named(changes)}",
            changes=list(changes[:100]),
        )


def named(changes: Sequence[str]) -> str:
    """Return the first of some changes in words."""
    shown = ", ".join(line[3:] for line in changes[:_MOST_NAMED])
    return shown + (f" and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else "")


def in_box(ground: Ground) -> bool:
    """Whether the caller works in a box. Setups of its children are left out: they would run outside, on its files."""
    return ground.agent is not None and ground.agent.is_boxed


def refuse_wider(wanted: Wanted, ground: Ground, *asked: object) -> None:
    """Refuse a caller in a box that names what its child runs, or changes its role: some of that acts outside.

    Raises:
        NotForAgents
    """
    if in_box(ground) and any(asked):
        raise NotForAgents(
            f"cannot spawn {wanted.session} with a command or changes of its role: you work in a box",
            hint="choose a role: --role NAME",
        )


def refuse_unfixed(world: World, wanted: Wanted, ground: Ground) -> None:
    """Refuse a worker in a worktree of which the caller's box fixes or hides files: its box could not do the same.

    Raises:
        NotForAgents
    """
    if in_box(ground) and wanted.kind == WORKER and inherited.has_fixed_files(world):
        raise NotForAgents(
            f"cannot spawn {wanted.agent} in your folder: your box holds deny rules about files there",
            hint="spawn a subtree, which has a worktree of its own",
        )


def refuse_other_branch(world: World, wanted: Wanted, ground: Ground) -> None:
    """Refuse a caller that stands on another branch in its box: only its own comes out, and its child is cut from that.

    Raises:
        IntakeRefused
    """
    session, agent = ground.session, ground.agent
    if wanted.kind != SUBTREE or not in_box(ground) or session is None or agent is None:
        return
    there = fresh.branch_in_box(world, session, agent)
    if there != agent.branch:
        raise IntakeRefused(
            f"cannot spawn {wanted.session}: in your box you are on {f'branch {there}' if there else 'no branch'}, and"
            f" only {agent.branch} comes out of it",
            hint=f"go back, with what the child is to start from: git switch {agent.branch}",
        )


# --- the request --------------------------------------------------------------------------------------


def request(
    world: World,
    wanted: Wanted,
    ground: Ground,
    role: Role,
    wish: LaunchRequest,
    setup: tuple[RoleOptions, ...] | None,
) -> Request:
    """Return the request of a new child, for the way that every start goes."""
    line = (ground.me, *ground.line) if ground.me is not None else ()
    child = Child(wanted.kind, ground.depth + 1, ground.me, line[1:])
    if wanted.kind == WORKER:
        commit = (world.git.resolve_commit(ground.base or "HEAD") or "") if world.git.exists else ""
        own = ground.agent is not None and not ground.agent.shared
        swarms = own or ground.folder == world.layout.root
        child = replace(child, ref=ground.branch, commit=commit, has_layout=swarms)
        place = Place(ground.folder, tree=SHARED)
        beside = ground.me.address if ground.me is not None else ""
        # It is known by its name, its role, and the branch of its lead.
        wish = replace(wish, beside=beside, env=((wanted.agent, (("SWARM_SESSION_ID", session_id(ground)),)),))
    else:
        place = Place(world.layout.subtrees / _folder(ground, wanted.session), f"{ground.branch}.{wanted.session}")
    return Request(
        wanted.session,
        (names.AgentSpec(wanted.agent, role.name),),
        (role if role.name else None,),
        ground.base if wanted.kind == SUBTREE else None,
        replace(wish, tasks=((wanted.agent, wanted.task),)),
        setup if wanted.kind == SUBTREE else None,
        ground.checkout if wanted.kind == SUBTREE else None,
        places=(place,),
        child=child,
    )


def session_id(ground: Ground) -> str:
    """Return what names a caller for ever: the branch on which it was born; ``root`` for the root."""
    if ground.agent is None or ground.session is None or not ground.session.is_child:
        return "root"
    return ground.agent.branch or "root"


def _folder(ground: Ground, slug: str) -> str:
    """Return the name of a worktree. No worktree lies inside another one: dots, of which slugs have none, nest them."""
    above = ground.session
    if above is None or above.kind != SUBTREE or ground.agent is None:
        return slug
    return f"{ground.agent.worktree.rpartition('/')[2]}.{slug}"


def program_of(ground: Ground) -> str:
    """Return the program that a child gets where neither the caller nor the role names one: that of its parent."""
    program = ground.agent.program if ground.agent is not None else ""
    return program if program in names.PROGRAMS and program != "shell" else ""


def starter_of(session: Session) -> str:
    """Return who spawned a session: an address, ``user``, or nothing for the root."""
    if session.parent is not None:
        return session.parent.address
    return "user" if session.is_child else ""


def heir_of(world: World, session: Session) -> str:
    """Return who is told of a session now, in place of a parent that is gone; empty while the parent is there."""
    if session.parent is None or parents.is_there(world, session.parent):
        return ""
    heir = parents.heir(world, session)
    return heir.address if heir is not None else "user"


def check_adoption(world: World, child: Session, to: tuple[Session, Agent] | None, depth: int) -> None:
    """Refuse to give a child to a parent that cannot have it.

    Args:
        depth: of the new parent.

    Raises:
        UsageProblem: it was not spawned, or the new parent is a worker.
        TreeLimit: leads may not exist so deep.
    """
    if not child.is_child:
        raise UsageProblem(f"cannot give session {child.name} a parent: it is a team that was started, not spawned")
    if to is not None and to[0].kind == WORKER:
        raise UsageProblem(f"cannot give {child.name} to {to[1].name}@{to[0].name}: workers have no children")
    if child.kind == SUBTREE and depth >= world.settings.tree.max_depth:
        most = world.settings.tree.max_depth
        raise TreeLimit(f"cannot give {child.name} a parent at depth {depth}: tree.max_depth is {most}", value=most)
