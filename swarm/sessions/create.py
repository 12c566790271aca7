"""Make a set of worktrees, all or nothing."""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from swarm.agents import budgets, launch
from swarm.callers import parents, rights
from swarm.git.errors import BranchExists, GitBroken, GitFailed, NotARepo, RefConflict
from swarm.kit import files as fsio
from swarm.kit.errors import NoPermission, NoSpace, StateDirProblem, SwarmError, SymlinkInTheWay, raise_all
from swarm.project import codec, names
from swarm.project import layout as places
from swarm.project.errors import NameCollision
from swarm.project.model import Agent, CreatedAgent, CreateReport, Placed, Session
from swarm.project.world import in_session, new_operation_id
from swarm.sessions.errors import BaseNotFound, SessionExists
from swarm.worktrees import hiding, inbox_steps, setup, steps, strays, transaction
from swarm.worktrees.errors import WorktreeExists

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from swarm.project.world import World
    from swarm.roles.options import RoleOptions
    from swarm.roles.role import Role
    from swarm.worktrees.steps import Step

#: Older ones cannot do what every command that changes something asks of them.
LEAST_GIT = (2, 20)
#: What one file costs at least: a block and an inode.
_BLOCK = 4096
#: Refs of exactly these names leave no room for those below.
_OWN_FOLDERS = ("refs/swarm", "refs/swarm/op", "refs/swarm/salvage")
#: What follows in the longest path of our own: a worktree's and its admin folder's name in the trash, and a file.
_LONGEST_REST = 160
_RESERVE = 16 << 20
_CHANGED = "uncommitted changes of {} stay there; the worktrees start from the last commit"


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for.

    Attributes:
        roles: for each agent its role's text; None puts no instructions in.
        base: branch, tag or commit; None means where the main checkout is.
        checkout: the agent's worktree of which *base* is what is checked out; None: it is not.
        launch: what is started in panes; None makes worktrees only.
        setup: for each agent what its role says, of which the setup counts; None: no setup.
    """

    session: str
    agents: tuple[names.AgentSpec, ...]
    roles: tuple[Role | None, ...]
    base: str | None = None
    launch: launch.Wish | None = None
    setup: tuple[RoleOptions, ...] | None = None
    checkout: Path | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the plan wants to know of the history; None is not known yet.

    Attributes:
        commit: where the worktrees start.
        content: its tree.
        folders: which of swarm's folders the project has in its history.
        file: whether the project has the instructions file in its history.
        refs: those around the branches that are wanted, and what the journal's mark was before they were read.
    """

    commit: str | None = None
    content: str = ""
    folders: tuple[str, ...] | None = None
    file: bool | None = None
    refs: tuple[tuple[int, int], frozenset[str]] | None = None


@dataclass(frozen=True, slots=True)
class Start:
    """Where a set may start: nothing stands against it.

    Attributes:
        base_ref: what the user calls it.
    """

    base_ref: str
    commit: str
    facts: Facts


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be done; nothing of it has been."""

    operation: transaction.Operation
    report: CreateReport
    facts: Facts


def create(world: World, request: Request, facts: Facts | None = None) -> CreateReport:
    """Make the set. The caller holds the lock and has recovered.

    Args:
        facts: of the plan that was made before waiting for the lock: history does not change.

    Raises:
        SwarmError: nothing was made.
    """
    world = in_session(world, world.sessions.get(request.session))
    changes = _Changes(world, request)
    try:
        plan = make_plan(world, request, facts, look=False)
        if not fsio.exists(world.layout.base / ".gitignore"):
            changes.warnings()  # or the folder would be seen before it is hidden
        transaction.run(world, plan.operation)
        if request.launch is not None:
            inbox_steps.declare(world, request.session, [agent.name for agent in request.agents])
        warnings = (*plan.report.warnings, *setup.warnings(world, plan.operation), *changes.warnings())
        return replace(plan.report, warnings=warnings)
    finally:
        changes.end()


def make_plan(
    world: World,
    request: Request,
    facts: Facts | None = None,
    *,
    look: bool = True,
    problems: Sequence[SwarmError] = (),
) -> Plan:
    """Look at everything, change nothing.

    Args:
        look: also look for uncommitted changes, to warn of them.

    Raises:
        SwarmError: see ``check``.
    """
    start = check(world, request, facts, problems=problems, ahead=not look)
    plan = _lay_out(world, request, start.base_ref, start.commit, start.facts, look=look)
    warnings = (*plan.report.warnings, *(_Changes(world, request).warnings() if look else ()))
    return replace(plan, report=replace(plan.report, warnings=warnings))


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
    world.git.require(LEAST_GIT, "make worktrees")
    if ahead:
        world.git.look_closely(world.journal.mark())
    return _check(world, request, facts or _facts(world, request), list(problems))


def _check(world: World, request: Request, facts: Facts, found: list[SwarmError]) -> Start:
    base_ref, commit = "", ""
    there = world.sessions.get(request.session)
    if there is not None and request.launch is None:
        rights.check(world, "create", [(there, None)], attempt=f"cannot add agents to session {there.name}")
    try:
        base_ref, commit = pin_base(world, request.base, facts.commit)
    except BaseNotFound as problem:
        found.append(problem)
    if request.launch is not None:
        found += _check_start(world, request, request.launch, commit)
    found += budgets.too_many(world, world.sessions.get(request.session), request.agents, request.roles)
    if request.setup is not None:
        found += setup.refusals(world, request.setup)
    found += check_folders(world, facts.folders, session=request.session)
    refs = _refs_around(world, facts)
    if refs is not facts.refs:  # else all of it was looked at a moment ago, and no swarm was at work since
        found += _check_rights(world)
        found += _check_length(world, request)
    facts = replace(facts, refs=refs)
    if not any(isinstance(one, SessionExists) for one in found):  # else its branches and folders are there, of course
        found += _check_agents(world, request, facts)
    found += _check_room(world, len(request.agents))
    raise_all(f"cannot {_verb(request)} session {request.session}", found)
    return Start(base_ref, commit, facts)


def _facts(world: World, request: Request) -> Facts:
    """Ask git once for all of it; what is odd is left to be asked one by one, with better words."""
    if request.base is not None and (not request.base or not request.base.isprintable()):
        return Facts()  # no line of its own among git's questions
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


def _verb(request: Request) -> str:
    return "create" if request.launch is None else "start"


def _check_start(world: World, request: Request, wish: launch.Wish, commit: str) -> Iterator[SwarmError]:
    existing = world.sessions.get(request.session)
    if existing is not None:
        yield SessionExists(
            f"session {existing.name} exists already",
            hint=f"bring it back with `swarm resume {existing.name}`, or remove it: `swarm cleanup {existing.name}`",
        )
    told: set[str] = set()
    wishes = {(wish.of(role), role.name if role else ""): role for role in request.roles}
    looks = [launch.problems(world, one) for one in dict.fromkeys(one for one, _ in wishes)]
    looks += [launch.refusals(world, one, role) for (one, _), role in wishes.items()]
    looks += [launch.project_refusals(world, one, role, commit) for (one, _), role in wishes.items() if commit]
    for look in looks:
        for problem in look:
            if str(problem) not in told:
                told.add(str(problem))
                yield problem


def pin_base(world: World, base: str | None, commit: str | None = None) -> tuple[str, str]:
    """Return the starting point as (what the user calls it, commit).

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
        raise BaseNotFound(f"cannot start from {base!r}: it is no commit of this repository")
    return base, found


def check_folders(world: World, tracked: Iterable[str] | None = None, *, session: str) -> Iterator[SwarmError]:
    """Refuse state folders that are links, files, someone else's, or part of the project's history.

    Args:
        tracked: which are part of it, if that is known.
        session: which is to be made or added to.
    """
    for folder in (world.layout.state, world.layout.base):
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


def _refs_around(world: World, facts: Facts) -> tuple[tuple[int, int], frozenset[str]]:
    """Return the refs around the wanted branches; those read a moment ago do if no swarm was at work since."""
    mark = world.journal.mark()
    if facts.refs is not None and facts.refs[0] == mark:
        return facts.refs
    prefix = world.settings.worktrees.branch_prefix
    above = [places.HEADS + parent for parent in _parents(prefix)]
    return mark, world.git.refs_around([*above, *_OWN_FOLDERS], places.HEADS + prefix)


def _check_agents(world: World, request: Request, facts: Facts) -> Iterator[SwarmError]:
    prefix = world.settings.worktrees.branch_prefix
    refs = facts.refs[1] if facts.refs else frozenset()
    for name in sorted(ref for ref in refs if not ref.startswith(places.HEADS)):
        yield RefConflict(
            f"the ref {name!r} is in the way: swarm keeps refs below that name",
            hint=f"git update-ref refs/old/{name.removeprefix('refs/')} {name} && git update-ref -d {name}",
        )
    branches = {ref.removeprefix(places.HEADS) for ref in refs}
    for parent in _parents(prefix):
        if parent in branches:
            yield RefConflict(
                f"the branch {parent!r} is in the way: no branch {prefix}/... can exist beside it",
                hint=f"git branch -m {parent} {parent}-old, or set worktrees.branch_prefix to another word",
            )
    there = _listing(world.layout.base)
    registered = {admin.gitdir for admin in world.git.admin_dirs()}
    existing = world.sessions.get(request.session)
    if existing is not None and existing.name != request.session:
        yield NameCollision(f"session {request.session} differs from session {existing.name} only in case")
    for spec in request.agents:
        tree = world.layout.worktree(spec.name, request.session)
        yield from _check_path(world, tree, spec.name, request.session, there, registered)
        if there.get(tree.name.casefold()) == tree.name and str(tree / ".git") in registered:
            continue  # a worktree: its branch is there, of course
        branch = names.branch_name(spec.name, request.session, prefix)
        yield from _check_branch(branch, branches)
        if branch not in branches and _is_broken_ref(world.git.common / places.HEADS / branch):
            yield BranchExists(f"branch {branch} already exists, though git cannot read it")


def _check_branch(branch: str, branches: set[str]) -> Iterator[SwarmError]:
    if branch in branches:
        yield BranchExists(f"branch {branch} already exists", details=in_git(branch))
        return
    below = next((other for other in sorted(branches) if other.startswith(branch + "/")), None)
    if below is not None:
        yield RefConflict(f"branch {branch} cannot be made: {below} exists below it")
    same = next((other for other in sorted(branches) if other.casefold() == branch.casefold()), None)
    if same is not None:
        yield NameCollision(f"branch {branch} differs from the existing {same} only in case")


def in_git(branch: str) -> str:
    """Return what git says when it is to make a branch that is there."""
    return f"fatal: a branch named '{branch}' already exists"


def _check_path(
    world: World, tree: Path, agent: str, session: str, there: dict[str, str], registered: set[str]
) -> Iterator[SwarmError]:
    found = there.get(tree.name.casefold())
    if found == tree.name:
        hint = None
        if strays.is_stray(world, tree):
            where = f"{shlex.quote(agent)}@{session}"
            hint = f"it is in no session: `swarm worktree remove {where} --force`, or use a different session name"
        yield WorktreeExists(f"worktree {tree.name} already exists: {tree}", hint=hint, details=str(tree))
    elif found is not None:
        yield NameCollision(f"worktree {tree.name} differs from the existing {found} only in case")
    elif str(tree / ".git") in registered:
        yield WorktreeExists(
            f"worktree {tree.name} is still registered in git, though its folder is gone",
            details=str(tree),
            hint=f"if it is not needed any more: git worktree remove --force {shlex.quote(str(tree))}",
        )


def _is_broken_ref(path: Path) -> bool:
    """Whether a ref's file is there that git does not list: damaged, or pointing at a branch that is not there.

    git itself would silently replace the second kind.
    """
    return path.is_symlink() or path.is_file()


def _listing(folder: Path) -> dict[str, str]:
    try:
        return {name.casefold(): name for name in os.listdir(folder)}
    except OSError:
        return {}


def _parents(prefix: str) -> list[str]:
    parts = prefix.split("/")
    return ["/".join(parts[: n + 1]) for n in range(len(parts))]


def _check_room(world: World, trees: int) -> Iterator[SwarmError]:
    """Refuse what cannot fit: every tracked file takes at least a block and an inode in each tree."""
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


def _lay_out(world: World, request: Request, base_ref: str, commit: str, facts: Facts, *, look: bool) -> Plan:
    operation = new_operation_id()
    now_ms = world.host.now_ns() // 1_000_000
    prefix = world.settings.worktrees.branch_prefix
    file = world.settings.worktrees.instructions_file
    tracked = bool(world.git.tracked(commit, (file,))) if facts.file is None else facts.file
    tracked = tracked and any(request.roles)
    agents: list[Agent] = []
    place: list[Step] = []
    for spec, role in zip(request.agents, request.roles, strict=True):
        tree = world.layout.worktree(spec.name, request.session)
        placed: tuple[Placed, ...] = ()
        if role is not None and not tracked:
            placed = (Placed(file, steps.digest(role.instructions)),)
            place.append(steps.PlaceInstructions(operation, str(tree), file, role.instructions))
        branch = names.branch_name(spec.name, request.session, prefix)
        relative = os.path.relpath(tree, world.layout.root)
        wish = request.launch
        may = rights.given(world, role) if wish else ()
        agent = Agent(spec.name, spec.role, branch, relative, "", commit, now_ms, placed, operation=operation, may=may)
        agents.append(launch.equipped(agent, wish.of(role), str(uuid4())) if wish else agent)
    if request.setup is not None:
        agents = list(setup.equipped(world, agents, request.session, request.setup))
    todo = (
        *_make_steps(world, operation, request, tuple(agents), facts.content),
        *place,
        *_finish_steps(world, operation, request, base_ref, commit, now_ms, tuple(agents), look=look),
    )
    refs = (places.op_ref(operation), *(places.HEADS + agent.branch for agent in agents))
    made = tuple(_created(world, agent) for agent in agents)
    report = CreateReport(
        session=request.session,
        base_ref=base_ref,
        base=commit,
        agents=made,
        warnings=(
            *((_tracked_warning(file),) if tracked else ()),
            *launch.warnings(list(zip(agents, request.roles, strict=True))),
            *(rights.warnings(world, request.roles) if request.launch else ()),
        ),
        steps=tuple(step.say() for step in todo),
    )
    now, boot = world.host.now_ns(), world.host.boot_id()
    done = transaction.Operation(operation, _verb(request), request.session, now, boot, todo, refs)
    return Plan(done, report, facts)


def _make_steps(
    world: World, operation: str, request: Request, agents: tuple[Agent, ...], content: str
) -> Iterator[Step]:
    base = world.layout.base
    yield steps.MakeBase(operation, str(base), base.is_dir(), fsio.exists(base / ".gitignore"))
    yield steps.ReserveBranches(
        operation,
        tuple((agent.branch, agent.base) for agent in agents),
        tuple((request.session, agent.name) for agent in agents),
        agents[0].base,
    )
    file = world.settings.worktrees.instructions_file
    placed = any(agent.placed for agent in agents)
    if placed:
        yield from hiding.steps_before(world, operation, file)
    taken = tuple(admin.name for admin in world.git.admin_dirs())
    for agent in agents:
        tree = world.layout.root / agent.worktree
        yield steps.AddWorktree(operation, str(tree), agent.branch, agent.base, taken)
    trees = tuple(str(world.layout.root / agent.worktree) for agent in agents)
    yield steps.FillWorktrees(operation, trees, agents[0].base, content)
    if placed:
        yield from hiding.steps_within(world, operation, file, trees)


def _finish_steps(
    world: World,
    operation: str,
    request: Request,
    base_ref: str,
    commit: str,
    now_ms: int,
    agents: tuple[Agent, ...],
    *,
    look: bool,
) -> Iterator[Step]:
    yield steps.Verify(
        operation, tuple((str(world.layout.root / agent.worktree), agent.branch, agent.base) for agent in agents)
    )
    if request.setup is not None:
        yield from setup.steps_for(world, operation, request.session, agents, request.setup, count=look)
    wish = request.launch
    if wish is not None:
        told = list(zip(agents, request.roles, strict=True))
        yield from launch.start_steps(
            world, operation, request.session, told, wish.task, resume=False, beside=wish.beside
        )
    yield steps.Settle(operation, str(world.layout.base.parent))
    old = world.sessions.get(request.session)
    session = Session(
        name=request.session,
        operations=(*(old.operations if old else ()), operation),
        created_ms=old.created_ms if old else now_ms,
        base_ref=old.base_ref if old else base_ref,
        base=old.base if old else commit,
        agents=(*(old.agents if old else ()), *agents),
        task=wish.task if wish else old.task if old else "",
        workflow=wish.workflow if wish else old.workflow if old else "",
        beside=wish.beside if wish else old.beside if old else "",
        parent=old.parent if old else parents.starter(world),
        swarm_dir=old.swarm_dir if old else str(world.swarm_dir),
    )
    yield steps.WriteRecord(operation, codec.session_to_bytes(session).decode("ascii"))


def report_of(world: World, session: Session) -> CreateReport:
    """Return the report of a session that is there, with all its agents."""
    agents = tuple(_created(world, agent) for agent in session.agents)
    return CreateReport(session.name, session.base_ref, session.base, agents)


def _created(world: World, agent: Agent) -> CreatedAgent:
    return CreatedAgent(
        name=agent.name,
        role=agent.role,
        branch=agent.branch,
        path=world.layout.root / agent.worktree,
        instructions=agent.placed[0].path if agent.placed else "",
    )


def _tracked_warning(file: str) -> str:
    return f"the project has a {file} of its own, so the role's instructions were not put into the worktrees"


class _Changes:
    """What to say of changes where the set starts, which stay there: git looks for them while other things go on."""

    def __init__(self, world: World, request: Request) -> None:
        named = request.base is not None and request.checkout is None
        needless = named or (request.checkout is None and world.git.is_untouched())
        self._where = f"your worktree {request.checkout.name}" if request.checkout else "the main checkout"
        self._asked = None if needless else world.git.begin_status(request.checkout or world.layout.root)
        self._warnings: tuple[str, ...] | None = () if needless else None

    def warnings(self) -> tuple[str, ...]:
        if self._warnings is None:
            self._warnings = ()
            with contextlib.suppress(SwarmError):  # only a warning is lost
                if self._asked is not None and self._asked.result():
                    self._warnings = (_CHANGED.format(self._where),)
        return self._warnings

    def end(self) -> None:
        if self._asked is not None:
            self._asked.end()
