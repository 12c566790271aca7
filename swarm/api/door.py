"""The base of every verb: the repository, its records and roles, and the lock."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.machine import own
from swarm.project import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from swarm.git.discover import Place
    from swarm.git.errors import NotARepo
    from swarm.git.repository import Git
    from swarm.git.running.runner import GitRunner
    from swarm.messages.office.post import Post
    from swarm.project.config.settings import Settings
    from swarm.project.model import Agent, Session
    from swarm.project.ports import Typist
    from swarm.project.targets import Target
    from swarm.project.world import World
    from swarm.roles.find import RolePlaces
    from swarm.roles.role import Role


T = TypeVar("T")


class _Later(Generic[T]):
    """Work done during another wait; its error is raised when the result is read."""

    def __init__(self, act: Callable[[], T]) -> None:
        self._act = act
        self._begun = False
        self._problem: Exception | None = None

    def begin(self) -> None:
        self._begun = True
        try:
            self._result = self._act()
        except (SwarmError, OSError) as problem:
            self._problem = problem

    def result(self) -> T:
        if not self._begun:  # there was no wait
            self.begin()
        if self._problem is not None:
            raise self._problem
        return self._result


def _world_of(
    place: Place,
    settings: Settings,
    environ: dict[str, str],
    swarm_dir: Callable[[], Path | None],
    progress: Callable[[str], None],
) -> World:
    """Return everything a verb may touch in one repository."""
    from swarm.api.parts import Parts
    from swarm.git.discover import NO_GIT
    from swarm.git.repository import Git
    from swarm.git.running.runner import GitRunner
    from swarm.project.journal import Journal
    from swarm.project.layout import Layout
    from swarm.project.sessions import Sessions
    from swarm.project.world import World

    home = place.root if place.common.name == NO_GIT else None  # there the swarm directory is all there is
    base, subtrees = settings.worktrees.base_path, settings.tree.worktree_base
    layout = Layout(place.root, base, by_role=settings.worktrees.layout == "role", state=home, subtrees=subtrees)
    for folder in (*layout.tops, place.common / "worktrees"):
        own.trust(str(folder))
    run, repository = (GitRunner, Git) if home is None else _without_git()
    runner = run(place.root, environ=environ, timeout=settings.git.timeout, retries=settings.git.retries)
    if layout.state.is_dir():
        from swarm.sandbox.looking import Looking

        runner.confine = Looking(layout, place.common, environ, settings.git.timeout)
    return World(
        git=repository(place, runner, jobs=settings.git.jobs),
        layout=layout,
        settings=settings,
        journal=Journal(layout),
        sessions=Sessions(layout),
        parts=Parts(place, runner, layout, settings, environ),
        environ=environ,
        swarm_dir=swarm_dir() or layout.state,
        progress=progress,
    )


def _without_git() -> tuple[type[GitRunner], type[Git]]:
    from swarm.git.running.absent import NoGit, NoRunner

    return NoRunner, NoGit


def _home(start: Path, environ: dict[str, str], swarm_dir: Path | None, problem: NotARepo) -> Place:
    """Return where swarm works outside of a repository: the repository of its swarm directory, or that directory.

    Raises:
        NotARepo: there is no swarm directory either, or the folder is not there at all.
    """
    from swarm.git.discover import NO_GIT, Place, discover, is_folder
    from swarm.git.errors import NotARepo
    from swarm.project.find import main_checkout

    if swarm_dir is None or not is_folder(start) or main_checkout(start) is not None:
        raise problem
    home = Path(os.path.realpath(swarm_dir))
    try:
        return discover(home, environ)
    except NotARepo:
        return Place(home, home / NO_GIT, home, "sha1")


class Opened:
    """An opened repository: the state that a ``Swarm`` and its namespaces share."""

    def __init__(self, world: World, swarm_dir: Path | None, start: Path) -> None:
        self.world = world
        self.start = start  # from where it was opened
        self.swarm_dir = swarm_dir
        self.mine = threading.local()  # the world of a thread that changes something: it reports its steps
        self.held = 0
        self.post: Post | None = None


def open_repository(
    root: str | os.PathLike[str] | None,
    environ: Mapping[str, str] | None,
    flags: Mapping[str, object] | None,
    progress: Callable[[str], None] | None,
) -> Opened:
    """Open the repository around a folder; see ``Swarm.open``."""
    from swarm.git.discover import discover
    from swarm.git.errors import NotARepo
    from swarm.project.config.file import load_settings
    from swarm.project.swarm_dir import dirs

    env = dict(os.environ if environ is None else environ)
    with files.os_errors("cannot open the repository"):
        start = Path(os.path.abspath(root)) if root is not None else Path.cwd()
        swarm_dir = _Later(lambda: dirs.find_dir(environ=env, cwd=start))
        try:
            place = discover(start, env, meanwhile=swarm_dir.begin)
        except NotARepo as problem:
            place = _home(start, env, swarm_dir.result(), problem)
        user_dir, found = dirs.user_dir(env), swarm_dir.result()
        settings = load_settings(
            place.root / ".swarm", user_dir=user_dir, environ=env, swarm_dir=found, flags=flags or {}
        )
        world = _world_of(place, settings, env, swarm_dir.result, progress or (lambda _text: None))
        return Opened(world, found, start)


def again(opened: Opened) -> Opened:
    """Open the same repository once more, for another thread; git is not asked."""
    world = opened.world
    made = _world_of(world.git.place, world.settings, dict(world.environ), lambda: world.swarm_dir, lambda _text: None)
    return Opened(made._replace(acting=world.acting, calling=world.calling), opened.swarm_dir, opened.start)


class Door:
    """The base of ``Swarm`` and its namespaces: the verbs are added by the classes above this one."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._root}>"

    @property
    def _world(self) -> World:
        found: World = getattr(self._opened.mine, "world", self._opened.world)
        return found

    @property
    def _root(self) -> Path:
        return self._world.layout.root

    @property
    def _repository(self) -> Path | None:
        """The main checkout; None outside of a repository."""
        return self._root if self._world.git.exists else None

    @property
    def _roles(self) -> RolePlaces:
        """Where roles are looked for."""
        from swarm.roles.find import RolePlaces

        return RolePlaces.standard(self._repository, self._opened.swarm_dir)

    @property
    def _post(self) -> Post:
        """The messages of the repository."""
        from swarm.messages.office.post import Post

        if self._opened.post is None:
            settings = self._world.settings
            self._opened.post = Post(
                self._world.layout.state,
                environ=self._world.environ,
                lease=settings.messages.lease,
                settings=lambda: settings,
                prepare=lambda: self._ready_for("send"),
                acting=self._world.acting,
                calling=self._world.calling,
            )
        return self._opened.post

    def _ready_for(self, command: str) -> None:
        """Make ``.swarm/`` in a repository that has none yet; that is a change as any other."""
        if not self._world.layout.state.is_dir():
            with self._changing(command):
                return

    def _sessions(self) -> tuple[Session, ...]:
        with files.os_errors("cannot read the sessions"):
            return self._world.sessions.all()

    def _session(self, name: str) -> Session:
        with files.os_errors("cannot read the sessions"):
            found = self._world.sessions.get(names.check_session(name))
        if found is None:
            from swarm.project.targets import no_session

            raise no_session(self._world, name)
        return found

    def _target(self, text: str) -> Target:
        """Return the session or the agent that a word names."""
        from swarm.project import targets

        with files.os_errors("cannot read the sessions"):
            return targets.find(self._world, text)

    def _role(self, name: str) -> Role:
        return self._role_in(None, names.check_name("role", name))

    def _role_names(self) -> tuple[str, ...]:
        from swarm.roles.find import role_names

        return tuple(role_names(self._roles))

    def _role_in(self, session: Session | None, name: str, *, pod: bool = False) -> Role:
        """Return a role as a session has it: of the swarm directory with which it was made.

        Args:
            pod: look among the roles of pods first, as for a session that belongs to one.
        """
        from dataclasses import replace

        from swarm.project.world import in_session
        from swarm.roles.find import RolePlaces, find_role
        from swarm.roles.role import no_role

        if name == "":  # a command has none
            return no_role()
        world = in_session(self._world, session)
        same = world.swarm_dir == self._world.swarm_dir
        places = self._roles if same else RolePlaces.standard(self._repository, world.swarm_dir)
        if pod or (session is not None and session.pod):
            places = replace(places, pod=True)
        with files.os_errors(f"cannot read the role {name}"):
            return find_role(names.check_name("role", name), places)

    def _preflight(self, request: Any, problems: Sequence[SwarmError], *, dry_run: bool) -> Any:
        """Refuse before the first byte is written; None where half of an earlier try would be in the way."""
        from swarm.kit.errors import raise_all
        from swarm.sessions.create import create, create_checks

        if dry_run:
            return create.make_plan(self._world, request, problems=problems)
        before = self._world.journal.mark()
        if not self._world.journal.unfinished():
            try:
                return create_checks.check(self._world, request, problems=problems)
            except SwarmError:
                if not self._world.journal.unfinished() and self._world.journal.mark() == before:
                    raise  # else it may be half of what another one is making; that is looked at again, with the lock
        raise_all(f"cannot create session {request.session}", problems)
        return None

    @contextlib.contextmanager
    def _making(self, what: str) -> Iterator[None]:
        """Run a block that makes worktrees; end every background probe with it, also after an error."""
        with files.os_errors(what):
            try:
                yield
            finally:
                self._world.git.stop_looking()

    def _is_bare(self) -> bool:
        """Whether swarm was never used here: idle commands then make no folder."""
        from swarm.worktrees import adopt

        return not (self._world.layout.state.is_dir() or adopt.has_copies(self._world))

    @contextlib.contextmanager
    def _changing(self, command: str, wait: float | None = None) -> Iterator[None]:
        """Hold the lock, with everything that crashed before brought to an end.

        Args:
            wait: seconds for the lock; None: as the settings say.
        """
        from swarm.agents import endings, orphans
        from swarm.kit.errors import Interrupted
        from swarm.sessions import recovery
        from swarm.worktrees import transaction

        before = None
        try:
            with self._locked(command, wait):
                recovery.recover(self._world, wait=not self._world.settings.cleanup.background)
                endings.report(self._world, held=True)
                orphans.stop_all(self._world)
                before = self._world.journal.mark()
                yield
        except Interrupted as error:  # it may have come when all was done
            if before is not None and (done := transaction.done_here(self._world, before)):
                error.message += f" ({done} is done, and stays)"
            raise

    def _freshen(self, sessions: Sequence[Session]) -> None:
        """Take in what agents committed in their boxes, if no other command is at work; who looks waits for nobody."""
        if not any(agent.box for session in sessions for agent in session.agents):
            return
        from swarm.project.errors import Locked
        from swarm.sandbox import fresh

        if self._opened.held or not fresh.are_due(self._world, sessions):
            return
        with contextlib.suppress(Locked, OSError), self._changing("take in", wait=0):
            fresh.take_in(self._world, sessions)

    @contextlib.contextmanager
    def _locked(self, command: str, wait: float | None = None) -> Iterator[None]:
        from swarm.project import lock
        from swarm.project.statedir import prepare
        from swarm.project.swarm_dir import dirs

        layout = self._world.layout
        prepare(self._world)
        dirs.make_root(self._world.environ, layout.root)
        name, tell = f"swarm {command}", self._world.progress
        limit = self._world.settings.lock.timeout if wait is None else wait
        with lock.hold(layout.lock, command=name, timeout=limit, waiting=tell) as fd, self._telling_others(fd, name):
            self._world.git.bind_lock(fd)
            self._opened.held += 1
            try:
                yield
            finally:
                self._opened.held -= 1
                self._world.git.bind_lock(None)

    @contextlib.contextmanager
    def _telling_others(self, fd: int, command: str) -> Iterator[None]:
        """Record the current step beside the lock, for processes that wait for the lock."""
        from swarm.project import lock

        world, doing = self._world, lock.Doing(fd, command)

        def tell(text: str) -> None:
            doing.tell(text)
            world.progress(text)

        self._opened.mine.world = world._replace(progress=tell)
        try:
            yield
        finally:
            self._opened.mine.world = world
            doing.end()

    def _start_of(self, base: str | None) -> tuple[str | None, Path | None]:
        """Return where a set starts, and the worktree of the agent that asks if that is why it starts there."""
        from swarm.callers import parents

        if base is not None:
            return base, None
        own = parents.own_checkout(self._world)
        return (None, None) if own is None else (own.ref, own.tree)

    def _role_texts(
        self, specs: Sequence[names.AgentSpec], session: str, *, wanted: bool, pod: bool = False
    ) -> tuple[tuple[Role | None, ...], list[SwarmError]]:
        """Return each agent's role, and the problems of unreadable ones.

        Args:
            session: its name; one that is there already keeps its swarm directory.
            pod: look among the roles of pods first.
        """
        old = self._world.sessions.get(session)
        found: list[Role | None] = []
        problems: list[SwarmError] = []
        for spec in specs:
            try:
                role = self._role_in(old, spec.role, pod=pod)
            except SwarmError as problem:
                if str(problem) not in map(str, problems):
                    problems.append(problem)
                role = None
            found.append(role if wanted else None)
        return tuple(found), problems

    def _person(self, attempt: str) -> str:
        """Return the caller's name for the records; refuse all but a person or a program with a grant.

        Raises:
            NotForAgents: it is one, of whatever repository.
            NotAPerson: nothing shows that it is a person.
        """
        from swarm.approvals import decide
        from swarm.callers import caller, rights

        found = caller.caller(self._world)
        rights.check_person(found, attempt)
        return decide.by_grant(found.grant) if found.grant else decide.by_user(caller.user_name())

    def _refuse_strangers(self, verb: str, session: Session, *agents: Agent) -> None:
        """Refuse where the caller is an agent that may not do this to these agents.

        Raises:
            NotForAgents
        """
        from swarm.callers import rights

        names_ = ", ".join(f"{agent.name}@{session.name}" for agent in agents[:3])
        doing = verb.rpartition(".")[2].replace("_", " ")
        rights.check(self._world, verb, [(session, agent) for agent in agents], attempt=f"cannot {doing} {names_}")

    def _find(self, agent: str, session: str | None) -> tuple[Any, Any]:
        from swarm.sessions import listing

        names.check_name("agent", agent)
        with files.os_errors("cannot read the sessions"):
            return listing.find_agent(self._world, agent, session)

    def _typist(self) -> Typist:
        from swarm.delivery.typist import Typist

        return Typist(cast("Any", self._world.terminal))
