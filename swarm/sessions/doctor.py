"""Check the installation and the repository, and name a fix for each problem."""

from __future__ import annotations

import os
import pwd
import shlex
from contextlib import closing
from importlib.util import find_spec
from typing import TYPE_CHECKING

from swarm.git import owner
from swarm.kit import files
from swarm.kit.errors import SwarmError
from swarm.kit.words import count
from swarm.merging.errors import IdentityMissing
from swarm.messages.inboxes import bus_of
from swarm.programs import processes, registry
from swarm.programs.status import State
from swarm.roles.environment import places_of
from swarm.sandbox.check import check
from swarm.services import units
from swarm.sessions import status
from swarm.sessions.cleanup.cleanup import leftover_branches
from swarm.sessions.create.create_checks import LEAST_GIT, pin_base
from swarm.sessions.reports import Check
from swarm.terminal.marks import FOLLOWERS, repository_mark
from swarm.worktrees import deletion, pool, trash
from swarm.worktrees.lock_reason import is_running_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from swarm.project.world import World


def checks(world: World) -> tuple[Check, ...]:
    """Look at everything; one look that fails does not stop the others."""
    found: list[Check] = []
    looks = (
        _git,
        _identity,
        _commits,
        _tmux,
        _programs,
        _logins,
        _boxes,
        _state_folder,
        _operations,
        _records,
        _agents,
        _lost_panes,
    )
    for look in (*looks, _panes, _messages, _branches, _trash, _pool, _units):
        found += _safely(world, look)
    return tuple(found)


def _safely(world: World, look: Callable[[World], Iterator[Check]]) -> list[Check]:
    try:
        return list(look(world))
    except SwarmError as problem:
        return [Check(look.__name__.strip("_"), "bad", problem.message, problem.hint)]
    except OSError as error:
        return [Check(look.__name__.strip("_"), "bad", str(files.translate(error, "cannot look")), "")]


def _git(world: World) -> Iterator[Check]:
    if not world.git.exists:
        return
    version = ".".join(map(str, world.git.version()))
    if world.git.version()[:2] < LEAST_GIT:
        least = ".".join(map(str, LEAST_GIT))
        text = f"git {version} is too old: nothing of swarm works without git {least}, and all of it with 2.38"
        yield Check("git", "bad", text, "install git 2.38 or newer")
    elif world.git.version()[:2] < (2, 38):
        yield Check("git", "warn", f"git {version}: merging and conflict forecasts need 2.38", "install a newer git")
    else:
        yield Check("git", "ok", f"git {version}", "")


def _identity(world: World) -> Iterator[Check]:
    if not world.git.exists:
        return
    try:
        with world.merging.quarantine() as box:
            box.check_identity()
    except IdentityMissing as problem:
        text = "git does not know your name and address: `swarm merge` and most agents' commits fail"
        yield Check("identity", "warn", text, problem.hint)
    else:
        yield Check("identity", "ok", "git knows your name and address", "")


def _commits(world: World) -> Iterator[Check]:
    if not world.git.exists:
        text = f"{world.layout.root} is in no repository: agents work there without worktrees"
        yield Check("commits", "ok", text, "")
        return
    branch, commit = pin_base(world, None)
    yield Check("commits", "ok", f"worktrees start from {branch} ({commit[:10]})", "")


def _tmux(world: World) -> Iterator[Check]:
    try:
        world.terminal.check()
    except SwarmError as problem:
        yield Check("tmux", "bad", problem.message, problem.hint)
    else:
        name = world.settings.tmux.session
        yield Check("tmux", "ok", f"{world.terminal.version()}, and no foreign session is called {name}", "")


def _programs(world: World) -> Iterator[Check]:
    installed = registry.installed(world.environ)
    chosen = world.settings.agents.program
    if chosen in installed:
        yield Check("agent programs", "ok", f"{chosen} is the default; installed: {', '.join(installed)}", "")
    else:
        there = ", ".join(installed)
        yield Check(
            "agent programs",
            "warn",
            f"the default {chosen} is not installed; installed: {there}",
            "swarm start … --agent demo",
        )


def _logins(world: World) -> Iterator[Check]:
    """Look whether the programs have accounts, without asking anybody: only the default's is worth a warning."""
    installed = registry.installed(world.environ)
    logins = {name: registry.program(name).login({**world.environ, **places_of(world)}) for name in installed}
    needed = {name: login for name, login in logins.items() if login is not None}
    words = ", ".join(f"{name}: {login.seen or 'none seen'}" for name, login in needed.items())
    default = needed.get(world.settings.agents.program)
    if default is not None and not default.seen:
        name = world.settings.agents.program
        yield Check("logins", "warn", f"no login of {name} is seen, unless its own settings name one", default.way)
    elif words:
        yield Check("logins", "ok", words, "")


def _boxes(world: World) -> Iterator[Check]:
    """Look whether a box can be made here; as long as nothing asks for one it is no trouble that it cannot."""
    found = check(world.environ)
    wanted = world.settings.sandbox.enabled
    bad = "warn" if wanted else "ok"
    if not found.available:
        text = "this machine cannot make boxes" + ("" if wanted else ", and no setting asks for one")
        yield Check("boxes", bad, f"{text}: {found.cause}", found.hint)
    elif find_spec("h11") is None:
        text = f"this machine can make boxes, by {found.by}, but without a network: h11 is not installed"
        yield Check("boxes", bad, text, "pip install 'tmux-swarm[sandbox]'")
    else:
        yield Check("boxes", "ok", f"this machine can make boxes, by {found.by}", "")


def _state_folder(world: World) -> Iterator[Check]:
    state = world.layout.state
    if not files.exists(state):
        yield Check("state", "ok", "no .swarm folder yet; the first command that needs it creates it", "")
        return
    files.check_private_dir(state)
    opened = [
        os.path.relpath(os.path.join(where, name), world.layout.root)
        for where, _, names in os.walk(state)
        for name in names
        if name.endswith(".json") and os.lstat(os.path.join(where, name)).st_mode & 0o077
    ]
    if not os.access(state, os.W_OK):
        text = f"{state} is not writable: only read-only commands work"
        yield Check("state", "bad", text, f"ls -ld {shlex.quote(str(state))}; findmnt -T {shlex.quote(str(state))}")
    elif opened:
        yield Check("state", "warn", f"others can read {opened[0]}", "chmod -R go= .swarm")
    else:
        yield Check("state", "ok", f"{state} is private", "")


def _operations(world: World) -> Iterator[Check]:
    unfinished = world.journal.unfinished()
    if unfinished:
        yield Check("operations", "bad", count(len(unfinished), "interrupted operation"), "swarm recover")
    else:
        yield Check("operations", "ok", "no interrupted operation", "")


def _records(world: World) -> Iterator[Check]:
    sessions, problems = world.sessions.scan()
    for problem in problems:
        yield Check("sessions", "bad", problem.message, problem.hint)
    for session in sessions:
        for agent in session.agents:
            tree = world.layout.root / agent.worktree
            name = f"{agent.name}@{session.name}"
            if agent.shared:
                if not tree.is_dir():
                    yield Check("agents", "warn", f"the folder of {name} is gone: {tree}", f"swarm cleanup {name}")
            elif not tree.is_dir():
                yield Check("worktrees", "bad", f"the worktree of {name} is gone", "swarm worktree prune")
            elif (admin := owner.own_admin(world, agent)) is not None and owner.is_moved(admin, tree):
                text = f"git looks for the worktree of {name} at another place"
                yield Check("worktrees", "bad", text, owner.repair(world))
            elif world.git.admin_of(tree) is None:
                yield Check(
                    "worktrees", "bad", f"git does not know the worktree of {name}", f"swarm worktree show {name}"
                )
    number = sum(len(session.agents) for session in sessions)
    if not problems:
        yield Check("sessions", "ok", f"{count(len(sessions), 'session')}, {count(number, 'agent')}", "")


def _agents(world: World) -> Iterator[Check]:
    for found in status.status(world, world.sessions.scan()[0], look=False):
        for one in found.agents:
            name = f"{one.agent.name}@{found.session.name}"
            if one.status.state is State.FAILED:
                yield Check("agents", "warn", f"{name} failed: {one.status.detail}", f"swarm restart {name}")
            if one.status.state is State.WAITING:
                yield Check("agents", "warn", f"{name} waits for you: {one.status.detail}", f"swarm attach {name}")
            if one.stale and one.status.runs:
                yield Check("agents", "warn", f"{name} runs, but {one.stale}", f"swarm restart {name}")
            idle = one.status.state is State.STOPPED and one.agent.program and not one.agent.shared
            if idle and _is_locked_by_us(world, one.worktree):
                yield Check(
                    "agents", "warn", f"{name} does not run, its worktree is still locked", f"swarm stop {name}"
                )


def _lost_panes(world: World) -> Iterator[Check]:
    """Find agents in a tmux server that lost its socket."""
    for found in status.status(world, world.sessions.scan()[0], look=False, ask=False):
        for one in found.agents:
            if not one.status.runs or one.pane:
                continue
            name = f"{one.agent.name}@{found.session.name}"
            facts = processes.facts(world.layout.run_folder(found.session.name, one.agent.name))
            server, taken = world.terminal.lost_server(facts.supervisor if facts.supervised else 0)
            if server:
                mend = f"swarm restart {name}" if taken else f"kill -USR1 {server}"
                yield Check("panes", "bad", f"{name} runs in tmux server {server}, whose socket is gone", mend)
            else:
                yield Check("panes", "warn", f"{name} runs without a pane", f"swarm restart {name}")


def _is_locked_by_us(world: World, tree: os.PathLike[str]) -> bool:
    from pathlib import Path

    admin = world.git.admin_of(Path(tree))
    return admin is not None and is_running_reason(admin.locked)


def _panes(world: World) -> Iterator[Check]:
    mark = repository_mark(world.layout.root)
    known = {(s.name, a.name) for s in world.sessions.all() for a in s.agents}
    stray = [p for p in world.terminal.panes() if p.repository == mark and p.session != FOLLOWERS]
    stray = [p for p in stray if (p.session, p.agent) not in known]
    for pane in stray:
        mend = world.terminal.say("kill-pane", "-t", pane.id)
        yield Check("panes", "warn", f"pane {pane.id} belongs to no session any more", mend)
    if not stray:
        yield Check("panes", "ok", "every pane of ours belongs to a session", "")


def _messages(world: World) -> Iterator[Check]:
    """Find messages set aside as damaged or refused, and unreadable boxes."""
    with closing(bus_of(world)) as bus:
        unreadable = bus.unreadable()
    for problem in unreadable:
        yield Check("messages", "bad", problem.message, problem.hint)
    found = {}
    for folder in sorted((world.layout.state / "messages").glob("*/*/bad")):
        names = [name for name in os.listdir(folder) if not name.endswith(".why")]
        if names:
            found[folder] = len(names)
    for folder, number in found.items():
        box = f"{folder.parent.parent.name} {folder.parent.name}"
        words = f"{box}: {count(number, 'message')} set aside as damaged or refused"
        yield Check("messages", "warn", words, f"ls {shlex.quote(str(folder))}")
    if not found and not unreadable:
        yield Check("messages", "ok", "none is damaged", "")


def _branches(world: World) -> Iterator[Check]:
    left = leftover_branches(world)
    if left:
        names = ", ".join(sorted(left)[:3])
        yield Check(
            "branches",
            "warn",
            f"{count(len(left), 'branch', 'branches')} of swarm's without a worktree: {names}",
            "swarm cleanup --all",
        )
    else:
        yield Check("branches", "ok", "no branch of swarm's is left over", "")


def _trash(world: World) -> Iterator[Check]:
    left = trash.left(world)
    busy = [one for one in left if deletion.is_under_way(world.layout, one)]
    if busy:
        number = sum(deletion.trees_in(world.layout, one) for one in busy)
        yield Check("trash", "ok", f"{count(number, 'removed worktree')} still being deleted in the background", "")
    if len(left) > len(busy):
        yield Check("trash", "warn", f"{count(len(left) - len(busy), 'folder')} to be deleted", "swarm recover")


def _pool(world: World) -> Iterator[Check]:
    there, most = pool.parked(world.layout), world.settings.worktrees.pool
    if there or most:
        size = f"{sum(one.size for one in there) / 1e6:.1f} MB"
        yield Check("pool", "ok", f"{count(len(there), 'worktree')} of at most {most} wait for a start ({size})", "")


def _units(world: World) -> Iterator[Check]:
    """Look at the files by which systemd or launchd starts servers, as far as swarm wrote them."""
    found = units.all_of(world.environ)
    user = pwd.getpwuid(os.geteuid()).pw_name
    wrong = [trouble for path in found for trouble in units.troubles(path, user)]
    for text, mend in wrong:
        yield Check("units", "warn", text, mend)
    if found and not wrong:
        yield Check(
            "units", "ok", f"{count(len(found), 'unit file')}: servers start with you, and tasks outlive them", ""
        )
