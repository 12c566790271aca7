"""Keep the repository fresh: take in what agents committed in their boxes, before anybody looks.

    looked.json    in an agent's box folder: how its refs were when the host took in last, and why it refused

Whether there may be something new is seen by two ``lstat``; an agent that hides it from these keeps its own commits
from others, until its worktree is removed: then all of it is taken in or saved, whatever they say.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from swarm.kit import files
from swarm.kit.errors import Interrupted, SwarmError, raise_all
from swarm.machine.run_folder import runfiles
from swarm.project.layout import HEADS
from swarm.sandbox import intake
from swarm.sandbox.errors import IntakeRefused
from swarm.sandbox.inside import Inside
from swarm.sandbox.private import box_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from swarm.project.model import Agent, Session
    from swarm.project.world import World

LOOKED = "looked.json"


def source_of(world: World, session: str, agent: Agent) -> intake.Source:
    """Return whose work is taken in."""
    base = world.layout.box_folder(session, agent.name)
    return intake.Source(f"{agent.name}@{session}", world.layout.root / agent.worktree, base)


def boxes(world: World, sessions: Iterable[Session]) -> Iterator[tuple[Session, Agent, Path]]:
    """Give the agents that have a box with a git folder of its own, each with its folder."""
    for session in sessions:
        for agent in session.agents:
            base = world.layout.box_folder(session.name, agent.name)
            if agent.is_boxed and not agent.shared and files.exists(base):
                yield session, agent, base


def are_due(world: World, sessions: Iterable[Session]) -> bool:
    """Whether any agent may have committed something in its box that was not looked at."""
    return any(_noted(base).get("mark") != _mark(base, agent) for _, agent, base in boxes(world, sessions))


def take_in(world: World, sessions: Iterable[Session], *, everything: bool = False) -> dict[str, str]:
    """Take in what is new in the boxes; return the reasons where it was refused. The caller holds the lock.

    Args:
        everything: ask the boxes also where nothing seems to be new.
    """
    refused = {}
    for session, agent, base in boxes(world, sessions):
        mark = _mark(base, agent)  # first: what is committed meanwhile is new again
        if not everything and _noted(base).get("mark") == mark:
            continue
        why = ""
        try:
            intake.take_in(world, source_of(world, session.name, agent))
        except Interrupted:
            raise
        except SwarmError as problem:
            why = problem.message
            refused[f"{agent.name}@{session.name}"] = why
        except OSError as problem:
            why = refused[f"{agent.name}@{session.name}"] = str(problem)
        runfiles.write(str(base), LOOKED, {"mark": mark, "refused": why})
    return refused


def require(world: World, session: Session | None) -> None:
    """Take in what is new in the boxes of a session. The caller holds the lock.

    Raises:
        IntakeRefused: something cannot be taken in; what goes on without it would go on without an agent's work.
    """
    refused = take_in(world, [session], everything=True) if session is not None else {}
    raise_all("cannot take in what agents committed", [IntakeRefused(why) for why in refused.values()])


def require_of(world: World, agent: Agent) -> None:
    """Take in what is new in the worktree in which an agent works: its own, or that of its lead.

    Raises:
        IntakeRefused: as for `require`.
    """
    for session in owners(world, agent):
        require(world, session)


def owners(world: World, agent: Agent) -> Iterator[Session]:
    """Give the owner of the worktree in which an agent in a box works, with its session: itself, or its lead."""
    tree = world.layout.root / agent.worktree
    for session in world.sessions.scan()[0] if agent.is_boxed else ():
        for owner in session.agents:
            if not owner.shared and world.layout.root / owner.worktree == tree:
                yield session._replace(agents=(owner,))


def is_behind(world: World, agent: Agent) -> bool:
    """Whether commits may have been made in an agent's box that are not taken in."""
    return are_due(world, owners(world, agent))


def branch_in_box(world: World, session: Session, agent: Agent) -> str:
    """Return the branch that is checked out in an agent's box, as git there says; empty: none, or it cannot say."""
    source = source_of(world, session.name, agent)
    inside = Inside(box_of(source.tree, world.git.common, source.base), world.environ)
    said = inside.run("git", "symbolic-ref", "--quiet", "HEAD", limit=1 << 12)
    ref = said.out.decode("utf-8", "replace").strip() if said.code == 0 else ""
    return ref.removeprefix(HEADS) if ref.startswith(HEADS) else ""


def refusals(world: World, sessions: Iterable[Session]) -> dict[tuple[str, str], str]:
    """Return why the last taking in was refused, by the agents (session, name) of which it was."""
    noted = {(session.name, agent.name): _noted(base) for session, agent, base in boxes(world, sessions)}
    return {one: str(said["refused"]) for one, said in noted.items() if said.get("refused")}


def _noted(base: Path) -> dict[str, Any]:
    return runfiles.read(str(base), LOOKED) or {}


def _mark(base: Path, agent: Agent) -> str:
    """Return a text that changes when a commit is made on the agent's branch in its box."""
    return " ".join(map(_seen, signs(base, agent.branch)))


def signs(base: Path, branch: str) -> tuple[Path, ...]:
    """Return the files that change when a commit is made on a branch in a box."""
    return base / "git" / HEADS / branch, base / "git" / "packed-refs"


def _seen(path: Path) -> str:
    try:
        info = os.lstat(path)
    except OSError:
        return "-"
    return f"{info.st_ino}:{info.st_size}:{info.st_mtime_ns}"
