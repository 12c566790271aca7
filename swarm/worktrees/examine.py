"""Examine a worktree before removal: its owner, and work that exists nowhere else."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from swarm.git import owner
from swarm.git.changes import Checkout
from swarm.git.content.walk import MOST
from swarm.git.errors import GitBroken, GitFailed, GitTimeout
from swarm.kit import files as fsio
from swarm.kit.errors import SwarmError
from swarm.kit.host import processes_in
from swarm.kit.words import count
from swarm.programs import processes
from swarm.project.model import Placed
from swarm.worktrees import hindrance
from swarm.worktrees.lock_reason import is_running_reason
from swarm.worktrees.reports import Risk, RiskKind
from swarm.worktrees.saved.names import git_can_name, is_droppable, is_precious, roots_of
from swarm.worktrees.setup import setup_notes
from swarm.worktrees.steps import layout_steps
from swarm.worktrees.steps.file_steps import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from swarm.project.model import AdminDir, Agent, Session
    from swarm.project.world import World
    from swarm.worktrees.hindrance import Hindrance
    from swarm.worktrees.values import TreeState

#: What swarm writes into the worktree of a spawned lead, for people.
_LAYOUT = Placed(f"{layout_steps.STATE}/{layout_steps.CONFIG}", digest(layout_steps.LEAD))


@dataclass(frozen=True, slots=True)
class Target:
    """One agent's worktree, looked at.

    Attributes:
        kind: ``worktree``: as it should be. ``missing``: git knows it, the folder is gone.
            ``gone``: neither is there. ``folder``: a folder that git does not know as this worktree.
            ``shared``: the agent has none; nothing is at risk, for nothing is removed.
        unsafe: why it must not be touched even with force; empty when it may.
        way_out: what has to be done by hand before.
        link: a link stands in its place.
        admin: git's folder for it.
        state: what is in it; where that cannot be looked at, what git's folder for it says.
        keep, aside: files that are saved as git objects, or moved into the salvage.
        dropped: what can be made again and is not saved.
        untouched: files as swarm placed them; saved along, but nobody's work.
        again: files as the setup left them, and not saved: too large, or of a kind that can be made again.
    """

    session: Session
    agent: Agent
    tree: Path
    kind: str
    admin: AdminDir | None = None
    state: TreeState | None = None
    unsafe: str = ""
    way_out: str = ""
    link: bool = False
    keep: tuple[str, ...] = ()
    aside: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    again: frozenset[str] = frozenset()
    risks: tuple[Risk, ...] = ()


#: How long a process may take to end before it counts, and how often it is looked at, in seconds.
_ENDING, _LOOK_AGAIN = 1.0, 0.05


class Living(NamedTuple):
    """The live agents and processes in a worktree.

    Attributes:
        agent: the agent's own program runs, with everything it started.
        others: other processes, named for people.
    """

    agent: bool = False
    others: tuple[str, ...] = ()


def _processes_that_stay(trees: Sequence[Path], own: Sequence[int]) -> dict[Path, tuple[str, ...]]:
    """Return the processes in some worktrees; those just ending, such as helpers of a stopped agent, are awaited."""
    until = time.monotonic() + _ENDING
    found = processes_in(trees, own)
    while any(found.values()) and time.monotonic() < until:
        time.sleep(_LOOK_AGAIN)
        found = processes_in(trees, own)
    return found


def examine_all(world: World, agents: Sequence[tuple[Session, Agent]]) -> tuple[Target, ...]:
    """Look at several worktrees; the processes of the machine are looked at once."""
    trees = [world.layout.root / agent.worktree for _, agent in agents]
    run = [_program_of(world, *one) for one in agents]
    own = [pid for pid in run if pid]
    looked_at = [tree for (_, agent), tree in zip(agents, trees, strict=True) if not agent.shared and tree.is_dir()]
    found = _processes_that_stay(looked_at, own)
    living = [Living(bool(pid), found.get(tree, ())) for tree, pid in zip(trees, run, strict=True)]

    admins = world.git.admin_dirs()
    looks = zip(agents, trees, living, strict=True)
    found_out = [_at_once(world, *one, tree, life, admins) for one, tree, life in looks]
    seen = [one for one in found_out if isinstance(one, _Present)]
    states = dict(
        zip(
            (one.tree for one in seen),
            world.trees.look_all([Checkout(one.tree, one.admin.path) for one in seen], [one.known for one in seen]),
            strict=True,
        )
    )
    return tuple(_judged(world, one, states[one.tree]) if isinstance(one, _Present) else one for one in found_out)


@dataclass(frozen=True, slots=True)
class _Present:
    """A worktree as it should be, still to be looked into.

    Attributes:
        placed: files as swarm placed them.
        given: files that are as the setup left them.
        way: what is in the way of its removal.
    """

    session: Session
    agent: Agent
    tree: Path
    admin: AdminDir
    living: Living
    placed: frozenset[str]
    given: frozenset[str]
    way: Hindrance

    @property
    def known(self) -> frozenset[str]:
        """Files that need no further look."""
        return self.placed | self.given


def _program_of(world: World, session: Session, agent: Agent) -> int:
    """Return the process below which all of a running agent's are, swarm's helpers among them; 0: it does not run."""
    if not agent.program:
        return 0
    facts = processes.facts(world.layout.run_folder(session.name, agent.name))
    return (facts.supervisor if facts.supervised else facts.pid) if facts.alive else 0


def _at_once(
    world: World, session: Session, agent: Agent, tree: Path, living: Living, admins: Sequence[AdminDir]
) -> Target | _Present:
    """Return the target, or the facts with which to look into the worktree."""
    if agent.shared:
        way = hindrance.link(world, session, agent, None)
        risks = tuple(_process_risk(Living(living.agent)))
        return Target(session, agent, tree, "shared", unsafe=way.why, way_out=way.way_out, risks=risks)
    admin = owner.own_admin(world, agent)
    way = hindrance.of_removal(world, session, agent, tree, admin, admins)
    ordinary = admin is not None and tree.is_dir() and not tree.is_symlink()
    if way.why and not (ordinary and way.hides_nothing):
        return _hidden(session, agent, tree, admin, way)
    if tree.is_symlink():
        return _linked(world, session, agent, tree, admin)
    if not fsio.exists(tree):
        return _absent(world, session, agent, tree, admin)
    if admin is None or not tree.is_dir():
        return _stray(world, session, agent, tree, admin, living)
    known = (*agent.placed, *((_LAYOUT,) if session.is_child else ()))
    placed = frozenset(p.path for p in known if _digest(tree / p.path) == p.sha256)
    given = setup_notes.untouched(world, session.name, agent.name, tree) if agent.prepared else frozenset()
    return _Present(session, agent, tree, admin, living, placed, given, way)


def _judged(world: World, present: _Present, state: TreeState | SwarmError) -> Target:
    session, agent, tree, admin = present.session, present.agent, present.tree, present.admin
    living, given = present.living, present.given
    if isinstance(state, SwarmError) and present.way.why:
        return _hidden(session, agent, tree, admin, present.way)
    if isinstance(state, (GitFailed, GitBroken)):
        # git's folder for it says that it is ours; what its own .git file says may have been spoiled.
        endless = isinstance(state, GitTimeout) and agent.is_boxed  # it would be so at every look
        if not endless and world.trees.can_read(tree, admin.path):
            raise state  # something else was in the way, such as a full disk
        return _spoiled(world, session, agent, tree, admin, living, state)
    if isinstance(state, SwarmError):
        raise state
    sorted_out = _sort_files(world, present, state)
    risks = (
        *_pointer_risk(world, tree, admin),
        *_lock_risk(admin),
        *_process_risk(living),
        *_state_risks(state, sorted_out),
        *_submodule_risk(world, state),
    )
    return Target(
        *(session, agent, tree, "worktree", admin, state),
        keep=sorted_out.keep,
        aside=sorted_out.aside,
        dropped=sorted_out.dropped,
        untouched=sorted_out.untouched,
        again=given.difference(sorted_out.untouched),
        unsafe=present.way.why,
        way_out=present.way.way_out,
        risks=risks,
    )


def _hidden(session: Session, agent: Agent, tree: Path, admin: AdminDir | None, way: Hindrance) -> Target:
    """What stands in the way of the removal hides what is in it, too."""
    risks = (Risk(RiskKind.UNREADABLE, f"what it holds is not known: {way.why}", (str(tree),)),)
    return Target(session, agent, tree, "folder", admin, unsafe=way.why, way_out=way.way_out, risks=risks)


def _absent(world: World, session: Session, agent: Agent, tree: Path, admin: AdminDir | None) -> Target:
    """Nothing is at the path: it was deleted by hand, or git moved it elsewhere."""
    if admin is not None:
        state = world.trees.recall(admin.path)
        return Target(session, agent, tree, "missing", admin, state, risks=tuple(_lock_risk(admin)))
    moved = next((one for one in world.git.admin_dirs() if agent.admin and one.name == agent.admin), None)
    risks: tuple[Risk, ...] = ()
    if moved is not None and moved.gitdir:
        place = moved.gitdir.removesuffix("/.git")
        risks = (Risk(RiskKind.IDENTITY, "it was moved, and stays where it is now", (place,)),)
    return Target(session, agent, tree, "gone", risks=risks)


def _linked(world: World, session: Session, agent: Agent, tree: Path, admin: AdminDir | None) -> Target:
    """Examine a link in place of the worktree: a cleanup may remove the link, never its target."""
    target = _absent(world, session, agent, tree, admin)
    text = "it is a symbolic link, not the folder swarm made; --force removes the link and keeps its target"
    return replace(target, link=True, risks=(*target.risks, Risk(RiskKind.IDENTITY, text, (str(tree),))))


def _pointer_risk(world: World, tree: Path, admin: AdminDir) -> Iterator[Risk]:
    if owner.is_moved(admin, tree):
        yield Risk(
            RiskKind.IDENTITY,
            "git looks for it at another place; run this in the main checkout",
            (owner.repair(world),),
        )
    elif world.git.pointer_of(tree) != admin.path:
        yield Risk(RiskKind.IDENTITY, "its .git file is not the one that git wrote", (str(tree / ".git"),))


def _stray(world: World, session: Session, agent: Agent, tree: Path, admin: AdminDir | None, living: Living) -> Target:
    """A folder at the right place that git does not know as this worktree (any more)."""
    risks = list(_process_risk(living))
    if _has_content(tree):
        risks.append(Risk(RiskKind.IDENTITY, "git does not know this folder as the agent's worktree", (str(tree),)))
    state = world.trees.recall(admin.path) if admin is not None else None
    return Target(session, agent, tree, "folder", admin, state, risks=tuple(risks))


def _spoiled(
    world: World,
    session: Session,
    agent: Agent,
    tree: Path,
    admin: AdminDir,
    living: Living,
    error: SwarmError,
) -> Target:
    """A worktree that git cannot read, for its index is damaged: it is kept as a folder, with git's notes about it."""
    index = admin.path / "index"
    risk = Risk(RiskKind.UNREADABLE, f"git cannot read what it holds: {error.message}", (str(index),))
    state = world.trees.recall(admin.path)
    return Target(session, agent, tree, "folder", admin, state, risks=(*_process_risk(living), risk))


def _has_content(tree: Path) -> bool:
    try:
        return not tree.is_dir() or bool(os.listdir(tree))
    except OSError:
        return True


def _lock_risk(admin: AdminDir | None) -> Iterator[Risk]:
    if admin is not None and admin.locked is not None and not is_running_reason(admin.locked):
        yield Risk(RiskKind.LOCKED, "it is locked" + (f": {admin.locked}" if admin.locked else ""))


def _process_risk(living: Living) -> Iterator[Risk]:
    if living.agent:
        yield Risk(RiskKind.PROCESS, "the agent is running")
    if living.others:
        what = "1 process lives" if len(living.others) == 1 else f"{len(living.others)} processes live"
        yield Risk(RiskKind.PROCESS, f"{what} in it", living.others)


# --- which files are work, and how they are kept ------------------------------------------------


@dataclass(frozen=True, slots=True)
class SortedFiles:
    """The files of a worktree that are in no commit, by their treatment in a removal."""

    keep: tuple[str, ...]
    aside: tuple[str, ...]
    dropped: tuple[str, ...]
    precious: tuple[str, ...]
    untracked: tuple[str, ...]
    untouched: tuple[str, ...]


def _sort_files(world: World, present: _Present, state: TreeState) -> SortedFiles:
    rules = world.settings.cleanup
    agent, tree, given = present.agent, present.tree, present.given
    edited = {p.path for p in agent.placed} - present.placed
    untouched = present.placed | _worth_saving(world, tree, given)
    ignored = [path for path in state.ignored if path not in untouched and path not in given]
    bulk = {path for path in ignored if path not in edited and is_droppable(path, rules)}
    wanted_ignored = [path for path in ignored if path not in bulk]
    untracked = [path for path in state.untracked if path not in untouched and path not in given]
    sizes = world.trees.sizes(tree, [*wanted_ignored, *untracked, *untouched])
    # Moved, so that they get into no ref: `git push --mirror` would send the passwords along.
    placed = {p.path for p in agent.placed} | present.placed
    apart = {path for path, size in sizes.items() if size and path not in placed and is_precious(path, rules)}
    apart |= {
        *(path for path in wanted_ignored if sizes.get(path, 0) > rules.ignored_file_limit),
        *(path for path in untracked if sizes.get(path, 0) > rules.large_file),
        *(path for path in (*wanted_ignored, *untracked) if not git_can_name(path)),
        *(path for path in state.unreadable if path not in bulk),  # to be moved it need not be read
    }
    kept = [path for path in (*untracked, *wanted_ignored, *sorted(untouched)) if path not in apart]
    apart |= _beyond(world, tree, [*state.modified, *state.rewritten, *state.hidden, *state.unmerged, *kept])
    precious = [path for path in wanted_ignored if path in edited or is_precious(path, rules)]
    return SortedFiles(
        keep=tuple(path for path in kept if path not in apart),
        aside=(*sorted(apart), *state.nested),
        dropped=roots_of(bulk, rules.bulk),
        precious=tuple(precious),
        untracked=tuple(untracked),
        untouched=tuple(sorted(untouched)),
    )


def _beyond(world: World, tree: Path, paths: Iterable[str]) -> set[str]:
    """Return the largest of some files, as many as there are beyond what one save reads: they are moved."""
    sizes = world.trees.sizes(tree, paths)
    left, found = sum(sizes.values()), set()
    for path, size in sorted(sizes.items(), key=lambda one: one[1], reverse=True):
        if left <= MOST:
            break
        found.add(path)
        left -= size
    return found


def _worth_saving(world: World, tree: Path, given: frozenset[str]) -> set[str]:
    """Return those files of a setup that are saved along, so that a restored worktree has them again."""
    rules = world.settings.cleanup
    sizes = world.trees.sizes(tree, given)
    small = {path for path, size in sizes.items() if size <= rules.ignored_file_limit and git_can_name(path)}
    links = setup_notes.links_among(small, world.layout.root, tree)
    return {path for path in small if path in links or not is_droppable(path, rules)}


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(fsio.read_small(path, 1 << 20)).hexdigest() if not path.is_symlink() else ""
    except (OSError, SwarmError):  # whatever it is now, it is not what swarm put there
        return ""


def _state_risks(state: TreeState, files: SortedFiles) -> Iterator[Risk]:
    hidden = {*state.hidden, *state.unmerged}
    modified = tuple(path for path in state.modified if path not in hidden)
    nested = tuple(path for path in state.nested if path not in state.submodules)
    found = (
        (RiskKind.MODIFIED, modified, f"{count(len(modified), 'file')} changed and not committed"),
        (RiskKind.STAGED, state.staged, f"{count(len(state.staged), 'file')} staged and not committed"),
        (RiskKind.UNTRACKED, files.untracked, count(len(files.untracked), "untracked file")),
        (RiskKind.PRECIOUS, files.precious, f"{count(len(files.precious), 'file')} ignored by git but precious"),
        (RiskKind.HIDDEN, state.hidden, f"{count(len(state.hidden), 'file')} changed behind git's back"),
        (RiskKind.OPERATION, state.operations, f"a {' and a '.join(state.operations)} is in progress"),
        (RiskKind.NESTED, nested, f"{count(len(nested), 'repository', 'repositories')} inside"),
        *((RiskKind.SUBMODULE, (path,), f"submodule {path}: {why}") for path, why in state.submodule_risks),
        (RiskKind.BUSY, state.locks, "a git command is at work in it"),
        (RiskKind.UNREADABLE, state.unreadable, f"{count(len(state.unreadable), 'thing')} that may not be read"),
        (RiskKind.UNREADABLE, state.special, f"{count(len(state.special), 'thing')} that cannot be saved"),
    )
    for kind, items, text in found:
        if items:
            yield Risk(kind, text, items)


def _submodule_risk(world: World, state: TreeState) -> Iterator[Risk]:
    rules = world.settings.cleanup
    found = tuple(p for p in state.submodule_ignored if is_precious(p, rules) and not is_droppable(p, rules))
    if found:
        yield Risk(RiskKind.PRECIOUS, f"{count(len(found), 'file')} in a submodule ignored by git but precious", found)
