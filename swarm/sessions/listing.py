"""List worktrees and their state."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.git import owner
from swarm.git.errors import GitBroken, GitFailed
from swarm.kit.errors import Ambiguous
from swarm.project import names
from swarm.project.targets import Target, agent_of, find, no_agent, no_session, only

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from swarm.project.model import Agent, Session, WorktreeEntry
    from swarm.project.world import World
    from swarm.sessions.reports import WorktreeDetails
    from swarm.sessions.values import WorktreeInfo


def worktrees(
    world: World, session: str | None, known_roles: tuple[str, ...], *, look: bool
) -> tuple[WorktreeInfo, ...]:
    """Return every worktree of swarm's: the recorded ones, then strays below the base folder."""
    listed = _listed(world)
    targets = [Target(one) for one in world.sessions.all()] if session is None else [find(world, session)]
    owners = [one.session._replace(agents=tuple(a for a in one.agents if not a.shared)) for one in targets]
    found = recorded(world, owners, listed, look=look)
    if session is None:
        found += _strays(world, listed, {info.path for info in found}, known_roles)
    return tuple(found)


def _listed(world: World) -> dict[Path, WorktreeEntry]:
    return {entry.path: entry for entry in world.git.worktrees()}


def recorded(
    world: World,
    sessions: Iterable[Session],
    listed: dict[Path, WorktreeEntry] | None = None,
    *,
    look: bool | Container[tuple[str, str]],
) -> list[WorktreeInfo]:
    """Return the worktrees of some sessions, as git knows them now; of an agent without one only where it works.

    Args:
        listed: what git lists, where that was asked already.
        look: whether git is asked about changes and commits, or about which agents (session, name).
    """
    pairs = [(session, agent, world.layout.root / agent.worktree) for session in sessions for agent in session.agents]
    own = [path for _, agent, path in pairs if not agent.shared]
    there = _by_their_files(world, own) if listed is None else listed
    found = []
    places = []
    for session, agent, path in pairs:
        entry = None if agent.shared else there.get(path) or _moved(world, agent, there)
        found.append(_info(session, agent, path, entry))
        wanted = look if isinstance(look, bool) else (session.name, agent.name) in look
        places.append((path, entry if wanted and not found[-1].missing else None, agent.base))
    return [
        one._replace(dirty=looked.dirty, ahead=looked.ahead)
        for one, looked in zip(found, _look(world, places), strict=True)
    ]


def _by_their_files(world: World, paths: Sequence[Path]) -> dict[Path, WorktreeEntry]:
    """Return git's entries of some worktrees from git's files alone; git is asked where they do not suffice."""
    found = {}
    for path in paths:
        entry = world.git.worktree(path)
        if entry is None:
            return _listed(world)
        found[path] = entry
    return found


def _info(session: Session, agent: Agent, path: Path, entry: WorktreeEntry | None) -> WorktreeInfo:
    from swarm.sessions.values import WorktreeInfo

    return WorktreeInfo(
        path=path,
        branch=entry.branch if entry else agent.branch,
        role=agent.role,
        head=entry.head if entry else "",
        is_locked=entry.locked if entry else False,
        created_at=agent.created_ms,
        agent=agent.name,
        session=session.name,
        lock_reason=entry.lock_reason if entry else "",
        missing=(entry is None and not agent.shared) or not path.is_dir(),
    )


def _moved(world: World, agent: Agent, listed: dict[Path, WorktreeEntry]) -> WorktreeEntry | None:
    """Return git's entry of a worktree that git expects at the project's former place."""
    admin = owner.own_admin(world, agent)
    return listed.get(Path(admin.gitdir).parent) if admin is not None and admin.gitdir else None


class _Looked(NamedTuple):
    dirty: bool | None = None
    ahead: int | None = None


def _look(world: World, places: Sequence[tuple[Path, WorktreeEntry | None, str]]) -> list[_Looked]:
    """Ask git about uncommitted changes, and commits since the base, of each place that has an entry."""
    found = [_Looked()] * len(places)
    there = [(at, path, entry, base) for at, (path, entry, base) in enumerate(places) if entry is not None]
    counts = world.git.counts([(entry.head, base) for _, _, entry, base in there])
    asked = []
    for (at, path, _, _), ahead in zip(there, counts, strict=True):
        if ahead is not None:
            found[at] = _Looked(ahead=ahead)
            if (admin := world.git.own_folder(path)) is not None:
                asked.append((at, path, admin))
    if not asked:
        return found
    for (at, _, _), dirty in zip(asked, world.uncommitted.are_any([one[1:] for one in asked]), strict=True):
        found[at] = found[at]._replace(dirty=dirty)
    return found


def _strays(
    world: World, listed: dict[Path, WorktreeEntry], recorded: set[Path], known_roles: tuple[str, ...]
) -> Iterator[WorktreeInfo]:
    from swarm.sessions.values import WorktreeInfo

    for path, entry in listed.items():
        if path in recorded or path.parent != world.layout.base or not path.is_dir():
            continue
        guess = names.split_tail(path.name, known_roles)
        if guess is None:
            continue
        yield WorktreeInfo(
            path=path,
            branch=entry.branch,
            role=guess[0],
            head=entry.head,
            is_locked=entry.locked,
            created_at=names.parse_created_at(entry.branch),
            agent=guess[0],
            lock_reason=entry.lock_reason,
        )


def unrecorded(world: World, role: str, session: str | None, known_roles: tuple[str, ...]) -> WorktreeInfo | None:
    """Return a role's worktree without a record: made by hand, or by another tool.

    Raises:
        Ambiguous: there are several, and no session was named.
    """
    listed = _listed(world)
    agents = [agent for one in world.sessions.all() for agent in one.agents if not agent.shared]
    recorded = {world.layout.root / agent.worktree for agent in agents}
    roles = (*known_roles, role)
    found = [one for one in _strays(world, listed, recorded, roles) if one.role.casefold() == role.casefold()]
    if session is not None:
        branch = names.branch_name(role, session, world.settings.worktrees.branch_prefix)
        found = [one for one in found if one.path.name == names.tail(role, session) or one.branch == branch]
    found = [one for one in found if one.path.name == role] or found
    if len(found) > 1:
        several = ", ".join(one.path.name for one in found)
        raise Ambiguous(f"{role} could be {several}", hint="name the session as well")
    return next(
        (one._replace(dirty=_look(world, [(one.path, listed[one.path], one.head)])[0].dirty) for one in found), None
    )


def find_agent(world: World, agent: str, session: str | None) -> tuple[Session, Agent]:
    """Return the one agent of this name: of an agent, of a role, or of a session with one agent.

    Raises:
        AgentNotFound, SessionNotFound: there is none.
        Ambiguous: several sessions have it, and none was named.
    """
    if session is not None:
        one = world.sessions.get(names.check_session(session))
        if one is None:
            raise no_session(world, session)
        return one, agent_of(one, agent)
    sessions, name = world.sessions.all(), agent.casefold()
    hits = [Target(one, found) for one in sessions if (found := one.agent(agent)) is not None]
    own = world.environ.get("SWARM_SESSION", "").casefold()  # an agent that asks means its own session
    hits = [hit for hit in hits if hit.session.name.casefold() == own] or hits
    hits = hits or [Target(one, a) for one in sessions for a in one.agents if a.role.casefold() == name]
    hits = hits or [
        Target(one, *one.agents) for one in sessions if one.name.casefold() == name and len(one.agents) == 1
    ]
    if not hits:
        raise no_agent(world, agent)
    meant = only(agent, hits)
    return meant.session, meant.agents[0]


def agent_at(world: World, tree: Path) -> tuple[Session, Agent] | None:
    """Return the agent whose worktree a folder is."""
    place = os.path.realpath(tree)
    pairs = ((one, agent) for one in world.sessions.all() for agent in one.agents if not agent.shared)
    return next((pair for pair in pairs if os.path.realpath(world.layout.root / pair[1].worktree) == place), None)


def _changes(world: World, agent: Agent, info: WorktreeInfo) -> tuple[str, ...]:
    """Return the lines of ``git status``, also where git, run in the folder, would not find the worktree."""
    admin = owner.own_admin(world, agent)
    if info.missing or admin is None:
        return ()
    with suppress(GitFailed, GitBroken):  # the risks name the problem
        return world.uncommitted.lines(info.path, admin.path)
    return ()


def details(world: World, session: Session, agent: Agent) -> WorktreeDetails:
    """Look at one worktree closely."""
    from swarm.sessions.reports import WorktreeDetails
    from swarm.worktrees import examine
    from swarm.worktrees.landing import landing_place

    info = recorded(world, [session._replace(agents=(agent,))], look=True)[0]
    target = examine.examine_all(world, [(session, agent)])[0]
    head = info.head
    known = bool(head) and world.git.resolve_commit(agent.base) is not None
    return WorktreeDetails(
        info=info,
        base=agent.base,
        commits=world.trees.commits(head, agent.base) if known else (),
        changes=_changes(world, agent, info),
        risks=target.risks,
        landed=world.trees.landed([(head, agent.base)], landing_place(world, session))[0].how if known else "",
        placed=tuple(placed.path for placed in agent.placed),
        parent=session.parent.address if session.parent else "",
    )
