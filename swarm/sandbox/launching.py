"""Put the launch of an agent into its box: what it shows, and what of the environment is seen inside."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.machine import broker
from swarm.project.chore import chore
from swarm.project.config.hosts import NONE
from swarm.sandbox import check, command, fresh, machine, private
from swarm.sandbox.bounds import denied, limits
from swarm.sandbox.values import HOME, IO

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from swarm.programs.model_access import Service
    from swarm.programs.values import Launch, LaunchSpec
    from swarm.project.model import Boxed
    from swarm.project.world import World
    from swarm.sandbox.values import Box

#: Of the caller's environment, beside what begins so: no key, no address, no place of the machine.
_SEEN = frozenset({"COLORTERM", "LANG", "LANGUAGE", "TZ"})
_SEEN_PREFIXES = ("LC_", "TERM")
#: Of swarm's own words to an agent.
_WORDS = frozenset(
    {
        *("SWARM_SESSION", "SWARM_SESSION_ID", "SWARM_SESSION_DIR", "SWARM_ACTOR", "SWARM_ROLE", "SWARM_ROLE_FILE"),
        *("SWARM_RUN_DIR", "SWARM_TASK_FILE", "SWARM_POD", "SWARM_TASK"),
    }
)
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ALWAYS = {"USER": "agent", "LOGNAME": "agent", "SHELL": "/bin/sh", "LANG": "C.UTF-8", "SWARM_SANDBOX": "bubblewrap"}
_SOCKET = {broker.VARIABLE: f"{IO}/{broker.NAME}"}

#: The ports in a box at which its proxy and its door are served.
PROXY, DOOR = 3128, 3129
_HERE = "127.0.0.1,localhost,::1"
#: How programs are told of the proxy; some know the one spelling, some the other.
_BY_PROXY = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), f"http://127.0.0.1:{PROXY}"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), _HERE),
    "NODE_USE_ENV_PROXY": "1",
}


class Kept(NamedTuple):
    """How a program is kept in a box.

    Attributes:
        boxed: as it was decided.
        base: the folder of its box, on the machine.
        box: what it shows.
    """

    boxed: Boxed
    base: Path
    box: Box


def of_agent(world: World, launch: Launch, boxed: Boxed) -> Kept:
    """Return how an agent's program is kept in its box."""
    base = world.layout.box_folder(launch.session, launch.agent)
    return Kept(boxed, base, private.box_of(launch.worktree, world.git.common, base))


def home_of(world: World, session: str, agent: str) -> Path:
    """Return where an agent's private home is on the machine."""
    return world.layout.box_folder(session, agent) / "home"


def narrowed(environ: Mapping[str, str], given: Iterable[str], home: Path) -> dict[str, str]:
    """Return an agent's environment with its private home, and of the caller's only what is harmless.

    Args:
        given: the names that its role and its start set on purpose.
    """
    named = {*_SEEN, *_WORDS, *given}
    kept = {name: value for name, value in environ.items() if name in named or name.startswith(_SEEN_PREFIXES)}
    return {**kept, "HOME": str(home), "SWARM_SANDBOX": _ALWAYS["SWARM_SANDBOX"]}


def inside(launch: Launch, environ: Mapping[str, str], boxed: Boxed, given: Iterable[str], home: Path) -> Launch:
    """Return a launch whose program has a private home, and a door to its models.

    Args:
        environ: what it would have without a box.
        given: the names in it that are set on purpose.
        home: on the machine.
    """
    options = replace(launch.options, claude_config_dir="")
    around = narrowed(environ, {*launch.options.env.set, *given}, home)
    return replace(launch, models_at=door_of(boxed), environ=around, options=options)


def door_of(boxed: Boxed) -> str:
    """Return the address in a box of the door to the agent's models; empty where it has no network."""
    return f"http://127.0.0.1:{DOOR}" if boxed.network != NONE else ""


def served(launch: Launch, boxed: Boxed, models: Iterable[Service], deny: Iterable[str]) -> dict[str, Any] | None:
    """Return how the network of an agent's box is served: the command, and all that it reads.

    Args:
        deny: the deny rules of its role.
        models: with the user's credentials; they are in the agent's launch file until that is read, and nowhere else.
    """
    if boxed.network == NONE:
        return None
    return {
        "argv": [sys.executable, "-P", "-m", "swarm.sandbox.network.serve"],
        "run_dir": str(launch.run_dir),
        "network": boxed.network,
        "hosts": list(boxed.hosts),
        "private": list(boxed.private),
        "denied": list(denied.hosts_of((*deny, *boxed.denied))),
        "services": [one.plain() for one in models],
    }


def watched(world: World, session: str, launch: Launch) -> dict[str, Any]:
    """Return what a supervisor watches and does: the files that change with a commit, and the command to take it in."""
    base = world.layout.box_folder(session, launch.agent)
    files = [] if launch.shared else [str(file) for file in fresh.signs(base, launch.branch)]
    argv = [sys.executable, "-P", "-m", "swarm.cli.forwarded", str(world.layout.root)]
    return {
        "commits": files,
        "take_in": chore(world, "take_in", launch.agent, session),
        "forward": {"folder": str(base / private.IO), "argv": argv},
    }


def wrapped(world: World, launch: Launch, made: LaunchSpec, cwd: str, kept: Kept, deny: Iterable[str]) -> LaunchSpec:
    """Return the launch of a program in its box.

    Who works without git is no agent of a session, and has no socket to speak by.

    Args:
        deny: the deny rules of its role.
        launch: its environment is as `narrowed` gives it.
    """
    boxed, base, box = kept
    speaks = box.git is not None
    executable, programs = machine.program(launch.executable)
    argv = tuple(executable if word == launch.executable else word for word in made.argv)
    told = (launch.role_file, launch.task_file, *(launch.run_dir / name for name in made.files))
    folders = dict.fromkeys(os.path.dirname(path) for path in (*programs, sys.executable))
    by_proxy = _BY_PROXY if boxed.network != NONE else {}
    manager = limits.manager(world.environ) if boxed.memory else ""
    inside = {**_ALWAYS, **by_proxy, **launch.environ, "PATH": ":".join((_PATH, *folders)), "HOME": HOME}
    inside |= _SOCKET if speaks else {}
    box = replace(
        box,
        cwd=cwd,
        io=str(base / private.IO) if speaks else "",
        read_only=(*machine.python(), *programs, *boxed.read_only, *map(str, told)),
        read_write=boxed.read_write,
        ports=(PROXY, DOOR) if boxed.network != NONE else (),
        tmp=boxed.tmp or box.tmp,
        memory=0 if manager else boxed.memory,
        file=boxed.disk,
        processes=boxed.processes or box.processes,
        env={name: value for name, value in inside.items() if name not in made.without},
    )
    home = world.environ.get("HOME", "")
    mine = denied.Mine(base, home, launch.shared and speaks, lambda path: speaks and _is_tracked(world, launch, path))
    cover = denied.covered(box, (*deny, *boxed.denied), mine)
    box = replace(box, covers=cover.options)
    check.note(world.layout.state, world.environ)
    spec = command.wrap(replace(made, argv=argv), box, str(launch.run_dir), command.find(world.environ))
    return limits.held(spec, boxed, manager, world.environ, cover.held)


def _is_tracked(world: World, launch: Launch, path: str) -> bool:
    """Whether git has a path of the worktree, or something below it, on the agent's branch."""
    what = f"cannot look for {path} in {launch.branch}"
    return bool(
        world.git.runner.ask("ls-tree", "--name-only", "-z", f"refs/heads/{launch.branch}", "--", path, what=what)
    )
