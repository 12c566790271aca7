"""Checks before a set of worktrees is made: they find all problems before the first byte is written."""

from __future__ import annotations

import os
import shlex
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

from swarm.agents.budgets import limits
from swarm.agents.launching import launch_checks, launch_request
from swarm.callers import rights
from swarm.git.errors import GitBroken, GitFailed, NotARepo
from swarm.kit import files as fsio
from swarm.kit.errors import (
    NoPermission,
    NoSpace,
    StateDirProblem,
    SwarmError,
    SymlinkInTheWay,
    UsageProblem,
    raise_all,
)
from swarm.project import layout as places
from swarm.project import names
from swarm.project.errors import AgentNotFound
from swarm.project.model import OWN, SHARED, WORKER, whole_task
from swarm.sandbox import inherited
from swarm.sandbox import wish as box_wish
from swarm.sessions.create import name_checks
from swarm.sessions.create.create_request import Facts, Request, Start, is_run, pays, verb
from swarm.sessions.errors import BaseNotFound, SessionExists
from swarm.worktrees.setup import setup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from swarm.project.world import World
    from swarm.roles.role import Role


#: Older ones cannot do what every command that changes something asks of them.
LEAST_GIT = (2, 20)
#: Minimum cost of a file: a block and an inode.
_BLOCK = 4096
#: What follows in the longest path of our own: a worktree's and its admin folder's name in the trash, and a file.
_LONGEST_REST = 160
_RESERVE = 16 << 20


def check(
    world: World,
    request: Request,
    facts: Facts | None = None,
    *,
    problems: Sequence[SwarmError] = (),
    ahead: bool = True,
) -> Start:
    """Look for everything that stands against it; change nothing.

    Args:
        facts: what is known already.
        problems: what stands against it already; told together with all others.
        ahead: begin to look how the worktrees are made, which takes longer than all of this.

    Raises:
        SwarmError: the one problem; or ``Refused`` with all of them.
    """
    if request.makes_trees:
        world.git.require(LEAST_GIT, "make worktrees")
    if request.launch is not None and not (request.launch.unseen and request.launch.decided is None):
        box_wish.begin(world, request.launch.sandbox, request.roles)
    if ahead and request.makes_trees:
        world.git.look_closely(world.journal.mark())
    known = facts or (_facts(world, request) if request.makes_trees else Facts())
    return _check(world, request, known, list(problems))


def _check(world: World, request: Request, facts: Facts, found: list[SwarmError]) -> Start:
    base_ref, commit = "", ""
    there = world.sessions.get(request.session)
    if there is not None and request.launch is None and request.fork is None:
        rights.check(world, "create", [(there, None)], attempt=f"cannot add agents to session {there.name}")
    if request.fork is not None and (there is None or there.agent(request.fork.source) is None):
        found.append(AgentNotFound(f"{request.fork.source}@{request.session} is gone"))
    try:
        base_ref, commit = pin_base(world, request.base, facts.commit) if request.makes_trees else ("", "")
    except BaseNotFound as problem:
        found.append(problem)
    if request.launch is not None:
        found += _check_start(world, request, request.launch, commit)
        found += limits.too_little(world, pays(world, request), request.session, request.agents, request.roles)
    else:
        for role in {one.name: one for one in request.roles if one is not None}.values():
            attempt = f"cannot make a worktree for {role.name}"
            found += launch_checks.misplaced(world, role, attempt, "worktree create")
    found += limits.too_many(world, there, request.agents, request.roles)
    if request.setup is not None:
        found += setup.refusals(world, request.setup)
    found += check_folders(world, facts.folders, session=request.session)
    if request.makes_trees:
        refs = name_checks.refs_around(world, request, facts)
        if refs is not facts.refs:  # else all of it was looked at a moment ago, and no swarm was at work since
            found += _check_rights(world)
            found += _check_length(world, request)
        facts = replace(facts, refs=refs)
    if not any(isinstance(one, SessionExists) for one in found):  # else its branches and folders are there, of course
        found += name_checks.check_names(world, request)
        found += name_checks.check_agents(world, request, facts) if request.makes_trees else ()
    found += _check_room(world, sum(one.tree == OWN for one in request.places_in(world)))
    raise_all(f"cannot {_attempt(request)}", found)
    return Start(base_ref, commit, facts)


def _attempt(request: Request) -> str:
    """Return the attempt in the user's words."""
    if request.fork:
        return f"fork {request.fork.source}@{request.session}"
    if is_run(request):
        return f"run {request.agents[0].name}"
    return f"{verb(request)} session {request.session}"


def _facts(world: World, request: Request) -> Facts:
    """Ask git once for all facts; odd ones are left to single questions with better errors."""
    if request.base is not None and (not request.base or not request.base.isprintable()):
        return Facts()  # no separate line among git's questions
    text = world.settings.worktrees.instructions_file
    if request.base is None:
        glance = world.git.glance((places.STATE_DIR, world.layout.base_path, text))
        if glance is not None:
            commit, content, there = glance
            folders = tuple(folder for folder in (places.STATE_DIR, world.layout.base_path) if folder in there)
            return Facts(commit, content, folders, text in there)
    return _asked_facts(world, request, text)


def _asked_facts(world: World, request: Request, text: str) -> Facts:
    base = f"{'HEAD' if request.base is None else request.base}^{{commit}}"
    trees = (f"{base}^{{tree}}", "HEAD^{tree}")
    folders = {f"HEAD:{folder}": folder for folder in (places.STATE_DIR, world.layout.base_path)}
    file = f"{base}:{text}"
    try:
        known = world.git.objects((base, *trees, *folders, file))
    except GitFailed:
        return Facts()
    if base not in known or not known.keys() >= set(trees):
        return Facts()
    found = tuple(folder for name, folder in folders.items() if name in known)
    return Facts(known[base], known[trees[0]], found, file in known)


def _check_start(
    world: World, request: Request, wish: launch_request.LaunchRequest, commit: str
) -> Iterator[SwarmError]:
    existing = world.sessions.get(request.session)
    if existing is not None and request.fork is None and not request.add:
        yield SessionExists(
            f"session {existing.name} already exists",
            hint=f"bring it back with `swarm resume {existing.name}`, or remove it: `swarm cleanup {existing.name}`",
        )
    told: set[str] = set()
    # Of the tasks it counts only whether there is one: twelve agents with tasks of their own are not twelve questions.
    plain = replace(wish, task="", tasks=(), overrides=(), env=(), after=())
    for spec, role in zip(request.agents, request.roles, strict=True):
        if role is not None and role.options.print and dict(wish.after).get(spec.name):
            what = f"cannot start {spec.name} after others in print mode: it ends before its task comes"
            yield UsageProblem(what, hint="remove `after` from the template, or `print` from the role")
    wishes = {
        (
            replace(plain, task=whole_task(wish.task, wish.task_of(spec.name)).strip()[:1]).of(role),
            role,
        ): role
        for spec, role in zip(request.agents, request.roles, strict=True)
    }
    programs = {(one.program, one.command): one for one, _ in wishes}
    decided = wish.unseen is not None and wish.decided is None  # there is no box, whatever is wanted by now
    looks = [] if decided else [box_wish.problems(world, wish.sandbox, _folders(world, request))]
    looks += [launch_checks.problems(world, one) for one in programs.values()]
    placed = bool(request.places)
    looks += [launch_checks.refusals(world, one, role, placed=placed) for (one, _), role in wishes.items()]
    looks += [launch_checks.project_refusals(world, one, role, commit) for (one, _), role in wishes.items() if commit]
    for look in looks:
        for problem in look:
            if str(problem) not in told:
                told.add(str(problem))
                yield problem


def _folders(world: World, request: Request) -> Iterator[tuple[Role | None, bool]]:
    """Give for each agent its role, and whether it has no worktree with a branch of its own.

    The worker of a lead in a box works in that one's worktree, and in the same private git folder.
    """
    beside = request.child is not None and request.child.kind == WORKER and inherited.of_caller(world) is not None
    for role, where in zip(request.roles, request.places_in(world), strict=True):
        yield role, not beside and (where.tree == SHARED or not where.branch)


def pin_base(world: World, base: str | None, commit: str | None = None) -> tuple[str, str]:
    """Return the starting point as (the user's name for it, commit).

    Args:
        commit: which it is, if that is known.

    Raises:
        NotARepo: there is no commit yet.
        GitBroken: there is one, but git cannot read it.
        BaseNotFound: the name means no commit.
    """
    if base is None:
        branch = world.git.head_branch()
        commit = commit or world.git.resolve_commit("HEAD")
        if commit is None:
            trouble = world.git.head_trouble()
            if trouble:  # there was a commit once; "make a first one" would be bad advice
                raise GitBroken(f"cannot start from HEAD of {world.layout.root}: {trouble}")
            raise NotARepo(
                f"the repository {world.layout.root} has no commit yet",
                hint="git commit --allow-empty -m start",
            )
        return branch or "HEAD", commit
    found = commit or world.git.resolve_commit(base)
    if found is None:
        said = world.git.commit_trouble(base) or None
        raise BaseNotFound(f"cannot start from {base!r}: it is no commit of this repository", details=said)
    return base, found


def check_folders(world: World, tracked: Iterable[str] | None = None, *, session: str) -> Iterator[SwarmError]:
    """Refuse state folders that are links, files, someone else's, or part of the project's history.

    Args:
        tracked: which are part of it, if that is known.
        session: which is to be made or added to.
    """
    for folder in (world.layout.state, world.layout.base, world.layout.subtrees):
        try:
            info = os.lstat(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(info.st_mode):
            yield SymlinkInTheWay(f"cannot use {folder}: it is a symbolic link")
        elif not stat.S_ISDIR(info.st_mode):
            yield StateDirProblem(f"cannot use {folder}: it is not a folder")
        elif folder == world.layout.state:
            yield from _check_private(folder)
    yield from _check_parents(world)
    yield from _check_links(world, session)
    if tracked is None:
        folders = (places.STATE_DIR, world.layout.base_path)
        tracked = world.git.tracked("HEAD", folders) if world.git.resolve_commit("HEAD") else ()
    for name in tracked:
        hint = "set worktrees.base_path to another folder"
        if name == places.STATE_DIR:  # that one cannot be moved
            hint = f"git rm -r --cached {name} && git commit -m 'stop tracking {name}'"
        yield StateDirProblem(f"cannot use {name}: the project has it in its history", hint=hint)


def _check_links(world: World, session: str) -> Iterator[SwarmError]:
    """Refuse links deeper in the state folder, where half of a set would already be made when they are met."""
    if world.layout.state.is_symlink():
        return  # said already
    for folder in (world.layout.trash, world.layout.session_file(session).parent / "run"):
        try:
            fsio.is_folder(folder, refuse_links=True)
        except SymlinkInTheWay as problem:
            yield problem


def _check_rights(world: World) -> Iterator[SwarmError]:
    """Refuse folders that are written to on the way and may not be: taking back could not be done there either."""
    common, heads = world.git.common, world.git.common / places.HEADS
    needed = [common, common / "refs", heads, heads / world.settings.worktrees.branch_prefix, common / "refs/swarm"]
    needed += [common / "objects", common / "worktrees", common / "info", common / "logs", world.layout.base]
    if not fsio.exists(world.layout.state) or not fsio.exists(world.layout.base):
        needed.append(world.layout.root)
    for folder in needed:
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            yield NoPermission(
                f"cannot make worktrees: {folder} is not writable",
                hint=f"chmod u+rwx {shlex.quote(str(folder))}, or check who owns it",
            )


def _check_length(world: World, request: Request) -> Iterator[SwarmError]:
    """Refuse paths that the system cannot hold: half way, not even taking back would be possible."""
    place = max(len(os.fsencode(path)) for path in (world.layout.root, world.layout.base, world.git.common))
    tail = max(len(names.tail(spec.name, request.session)) for spec in request.agents)
    over = place + 2 * tail + _LONGEST_REST - os.pathconf(world.layout.root, "PC_PATH_MAX")
    if over > 0:
        yield StateDirProblem(
            f"the path of the repository leaves no room for worktrees: paths in them would be {over} bytes too long",
            hint="move the repository to a shorter path, or use shorter names",
        )


def _check_private(folder: Path) -> Iterator[SwarmError]:
    try:
        fsio.check_private_dir(folder)
    except SwarmError as problem:
        yield problem


def _check_parents(world: World) -> Iterator[SwarmError]:
    """A base path must not lead out of the repository: through a link, or into a repository inside it."""
    base = world.layout.base
    for folder in (base, *base.parents):
        if folder == world.layout.root:
            break
        if folder.is_symlink():
            if folder != base:
                yield SymlinkInTheWay(f"cannot use {base}: {folder} is a symbolic link")
        elif folder.is_dir():
            if fsio.exists(folder / ".git"):
                yield StateDirProblem(f"cannot use {base}: {folder} is a repository of its own")
        elif folder != base and fsio.exists(folder):
            yield StateDirProblem(f"cannot use {base}: {folder} is not a folder")


def _check_room(world: World, trees: int) -> Iterator[SwarmError]:
    """Refuse trees that cannot fit on the disk: every tracked file takes at least a block and an inode in each."""
    files = _tracked_files(world)
    info = os.statvfs(world.layout.root)
    need = trees * files * _BLOCK + _RESERVE
    if info.f_bavail * info.f_frsize < need:
        free = info.f_bavail * info.f_frsize >> 20
        yield NoSpace(f"{trees} worktrees need at least {need >> 20} MiB, {free} MiB are free")
    elif info.f_files and info.f_favail < trees * files:
        yield NoSpace(f"{trees} worktrees need {trees * files} inodes, {info.f_favail} are free")


def _tracked_files(world: World) -> int:
    """Read the number of files from the head of the main checkout's index."""
    try:
        with (world.git.common / "index").open("rb") as file:
            head = file.read(12)
    except OSError:
        return 0
    return int.from_bytes(head[8:12], "big") if head[:4] == b"DIRC" else 0
