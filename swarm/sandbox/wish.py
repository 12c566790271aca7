"""Decide which agents run in a box, before the first byte of a start is written.

    --sandbox, --no-sandbox  >  the role's `sandbox:`  >  the setting `sandbox.enabled`

What would take a box away counts only from the user's own files and from a command line that is no agent's.
What an agent in a box starts has at least its box (`inherited.py`).
"""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from swarm.callers import rights
from swarm.callers.caller import AGENT, caller
from swarm.callers.errors import NotForAgents
from swarm.kit import files
from swarm.kit.errors import ConfigProblem, EnvironmentProblem, UsageProblem
from swarm.project.config.hosts import NONE, PACKAGED
from swarm.project.model import Boxed
from swarm.roles.options import Network
from swarm.sandbox import check, command, inherited
from swarm.sandbox.errors import SandboxUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from concurrent.futures import Future

    from swarm.kit.errors import SwarmError
    from swarm.project.model import Agent
    from swarm.project.world import World
    from swarm.roles.role import Role


def is_wanted(world: World, asked: bool | None, role: Role | None) -> bool:  # noqa: FBT001  # as the option says it
    """Whether an agent is to run in a box; what an agent in a box starts always is."""
    if inherited.of_caller(world) is not None:
        return True
    if asked is not None:
        return asked
    said = role.options.sandbox if role is not None else None
    if said is False and (role is None or not rights.is_users_own(world, role)):
        said = None
    return world.settings.sandbox.enabled if said is None else said


def boxed(world: World, asked: bool | None, role: Role | None) -> Boxed | None:  # noqa: FBT001
    """Return how an agent is boxed, for its record; nothing stands against it, see `problems`."""
    if not is_wanted(world, asked, role):
        return None
    settings = world.settings.sandbox
    own = role.options.network if role is not None and rights.is_users_own(world, role) else Network()
    network = own.preset or settings.network
    packages = settings.package_hosts if network == PACKAGED else ()
    made = Boxed(
        unavailable(world)[0],
        tuple(_paths(world, settings.read_only_paths)),
        tuple(_paths(world, settings.read_write_paths)),
        network=network,
        hosts=tuple(dict.fromkeys((*packages, *settings.hosts, *own.hosts))),
        private=settings.private_networks,
        processes=settings.processes,
        memory=settings.memory,
        tmp=settings.tmp,
        disk=settings.disk,
        messages=settings.messages,
    )
    above = inherited.of_caller(world)
    return made if above is None else inherited.within(made, above)._replace(denied=inherited.rules_of_caller(world))


def begin(world: World, asked: bool | None, roles: Iterable[Role | None]) -> None:  # noqa: FBT001
    """Begin to find out whether a box can be made, where one is wanted: it takes longer than most other checks."""
    if any(is_wanted(world, asked, role) for role in roles) and not check.is_known(world.layout.state, world.environ):
        _trial(world)


def problems(
    world: World,
    asked: bool | None,  # noqa: FBT001
    wanted: Iterable[tuple[Role | None, bool]],
) -> Iterator[SwarmError]:
    """Yield all reasons against a start in boxes.

    Args:
        asked: what the command line says.
        wanted: for each agent its role, and whether its folder is not its own.
    """
    pairs = list(wanted)
    if asked is False and caller(world).kind == AGENT:
        yield NotForAgents("cannot start agents with --no-sandbox: only people can take a box away")
    shared = [shares for role, shares in pairs if is_wanted(world, asked, role)]
    if not shared:
        return
    if any(shared):
        yield UsageProblem(
            "cannot run it in a box: it would work in a folder that is not its own",
            hint="give it a worktree: --override worktree.enabled=true",
        )
    cause, hint = unavailable(world)
    if cause and (not world.settings.sandbox.allow_unsandboxed or inherited.of_caller(world) is not None):
        yield SandboxUnavailable(f"cannot make a box: {cause}", hint=hint)
    if not cause and files.exists(world.git.common / "reftable"):
        yield EnvironmentProblem("cannot make a box: the repository keeps its refs as a reftable")
    wished = {boxed(world, asked, role) for role, _ in pairs}
    if any(one is not None and one.network != NONE for one in wished) and find_spec("h11") is None:
        yield SandboxUnavailable(
            "cannot give a box a network: h11 is not installed",
            hint="pip install 'tmux-swarm[sandbox]', or do without: SWARM_SANDBOX_NETWORK=none",
        )
    yield from _bad_paths(world)


def check_again(world: World, asked: bool | None, role: Role | None, agent: Agent) -> None:  # noqa: FBT001
    """Refuse to run an agent again otherwise than in a box, or without one, as it was started first.

    Raises:
        UsageProblem
    """
    wanted = is_wanted(world, asked, role)
    if wanted != (agent.box is not None):
        raise UsageProblem(
            f"{agent.name} was started {'without' if wanted else 'in'} a box, and is run again as it was",
            hint="remove it first with `swarm cleanup`, or give the new one another --name",
        )


def warnings(world: World, asked: bool | None, roles: Iterable[Role | None]) -> tuple[str, ...]:  # noqa: FBT001
    """Return what is to be said at a start: that there is no box, or that a role's word does not count."""
    found: dict[str, None] = {}
    for role in roles:
        box = boxed(world, asked, role)
        if box is not None and box.network == PACKAGED and not world.settings.sandbox.package_hosts:
            found["agents reach no packages: sandbox.package_hosts names no host"] = None
        if is_wanted(world, asked, role) and (cause := unavailable(world)[0]):
            found[f"agents run without a box: {cause} (sandbox.allow_unsandboxed is set)"] = None
        off = role is not None and role.options.sandbox is False
        for key, said in (("sandbox", off and asked is None), ("network", role and role.options.network != Network())):
            if role is not None and said and not rights.is_users_own(world, role):
                found[f"{key} of role {role.name} does not count: its file is not in your own swarm directory"] = None
    return tuple(found)


def unavailable(world: World) -> tuple[str, str]:
    """Return why no box can be made, and the way out; asked once, by making one."""
    return ("", "") if check.is_known(world.layout.state, world.environ) else _trial(world).result()


def _trial(world: World) -> Future[tuple[str, str]]:
    program = command.find(world.environ)
    return _asked(program, os.stat(program).st_mtime_ns if program else 0, world.environ.get("PATH", ""))


@functools.cache
def _asked(program: str, _written: int, path: str) -> Future[tuple[str, str]]:
    del program
    one = ThreadPoolExecutor(1)
    made = one.submit(check.trouble, {"PATH": path})
    one.shutdown(wait=False)  # it ends by itself; at the end of this process Python waits for it
    return made


def _paths(world: World, paths: Iterable[str]) -> Iterator[str]:
    home = world.environ.get("HOME", "")
    for path in paths:
        whole = f"{home}/{path[2:]}" if path.startswith("~/") else path
        if os.path.exists(whole):
            yield os.path.realpath(whole)


def _bad_paths(world: World) -> Iterator[SwarmError]:
    """Refuse paths by which an agent would get out of its box."""
    for kind in ("read_only_paths", "read_write_paths"):
        for path in map(Path, _paths(world, getattr(world.settings.sandbox, kind))):
            why = trouble_with(world, path, writes=kind == "read_write_paths")
            if why:
                yield ConfigProblem(f"sandbox.{kind}: {why}")


def trouble_with(world: World, path: Path, *, writes: bool) -> str:
    """Return why a program in a box must not have a path, which leads through no link; empty: it may have it."""
    home = Path(os.path.realpath(world.environ.get("HOME") or "/"))
    layout = world.layout
    own = [Path(os.path.realpath(one)) for one in (layout.state, layout.base, world.git.common, world.swarm_dir)]
    inside = [one for one in own if path.is_relative_to(one) or one.is_relative_to(path)]
    if inside:
        return f"{path} would show what swarm and git keep in {inside[0]}"
    hidden = path.is_relative_to(home) and path != home and path.relative_to(home).parts[0][0] == "."
    if writes and (home.is_relative_to(path) or hidden):
        return f"what an agent changes in {path} would act outside of its box"
    return ""
