"""Run the setup of one worktree."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Any

from swarm.kit import commandline as rules
from swarm.kit import files as fsio
from swarm.kit.errors import ConfigProblem, SwarmError
from swarm.project import codec
from swarm.roles.environment import environ_of
from swarm.roles.options import Env, Policy, RoleOptions, Setup
from swarm.worktrees import hiding
from swarm.worktrees.errors import SetupFailed
from swarm.worktrees.setup import commands, placing, setup_notes
from swarm.worktrees.setup.setup_values import Notes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from swarm.project.model import Agent
    from swarm.project.world import World
    from swarm.worktrees.setup.setup_values import Ended, Selected

_MOST_NAMES = 3
_MOST_NOTED = 20_000


@dataclass(slots=True)
class Job:
    """The setup of one worktree while it is under way."""

    session: str
    name: str
    tree: Path
    placed: tuple[str, ...]
    parts: tuple[Setup, ...]
    environ: dict[str, str]
    stamp: str
    hook: tuple[str, ...] = ()
    began: float = field(default_factory=time.monotonic)
    copied: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    commands: list[Ended] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def fail(self, policy: Policy, what: str, *, hint: str | None = None, details: str | None = None) -> None:
        """Raise, or note a warning, as the policy says."""
        text = f"setup of {self.name}: {what}"
        if policy is Policy.ABORT:
            raise SetupFailed(text, hint=hint, details=details)
        self.warnings.append(text)


def job_of(world: World, session: str, item: Mapping[str, Any], stamp: str) -> Job:
    """Read a job as it was written down for the journal."""
    agent = codec.agent_from_dict(item["agent"], "the journal")
    return Job(
        session,
        agent.name,
        world.layout.root / agent.worktree,
        tuple(placed.path for placed in agent.placed),
        parts_from(item),
        environment(world, session, agent, RoleOptions.from_plain({"env": item["env"]}).env, "setup"),
        f"{stamp}/{agent.name}",
        tuple(item.get("hook", ())),
    )


def parts_from(item: Mapping[str, Any]) -> tuple[Setup, ...]:
    """Return the parts of a job: the configuration's and the role's."""
    return tuple(RoleOptions.from_plain({"setup": data}).setup for data in item["parts"])


def environment(world: World, session: str, agent: Agent, env: Env, phase: str) -> dict[str, str]:
    """Return a command's environment: its agent's variables, and its place."""
    return {
        **environ_of(world, env),
        "SWARM_SESSION": session,
        "SWARM_ACTOR": agent.name,
        "SWARM_ROLE": agent.role,
        "SWARM_PHASE": phase,
        "SWARM_WORKTREE": str(world.layout.root / agent.worktree),
        "SWARM_MAIN": str(world.layout.root),
        "SWARM_BRANCH": agent.branch,
        "TERM": "dumb",
        **{name: str(port) for name, port in agent.ports},
    }


class Files:
    """Looks for files in the main checkout, once for all worktrees."""

    def __init__(self, world: World) -> None:
        self.whole = cache(world.preparing.whole)
        self.files = cache(world.preparing.files)
        self.included = cache(lambda: world.preparing.included(rules.INCLUDE_FILE))


def place(world: World, files: Files, job: Job, *, include: bool) -> None:
    """Put links and copies into a worktree, and hide those from git that the project does not ignore."""
    for part in job.parts:
        found = files.whole(part.link)
        _left_out(job, part.policy, found)
        fresh = [path for path in found.paths if path not in job.linked]
        job.linked += fresh
        for problem in placing.link(world.layout.root, job.tree, fresh):
            job.fail(part.policy, f"cannot link {problem}")
    chosen = [(part.policy, files.files(part.copy)) for part in job.parts]
    if include:
        chosen.append((Policy(world.settings.setup.policy), files.included()))
    for policy, found in chosen:
        _left_out(job, policy, found)
        fresh = [path for path in found.paths if not _is_below(path, job.linked)]
        for problem in placing.copy(world.layout.root, job.tree, fresh):
            job.fail(policy, f"cannot copy {problem}")
        job.copied += fresh
    if job.linked or job.copied:
        _hide(world, job)


def _left_out(job: Job, policy: Policy, found: Selected) -> None:
    if found.lacking:
        job.fail(policy, some(found.lacking, "not in the main checkout: "))
    fresh = [problem for problem in found.problems if problem not in job.left_out]
    job.left_out.update(fresh)  # two lists may name the same file
    if fresh:
        job.warnings.append(f"setup of {job.name}: {some(fresh, 'left out: ')}")


def _is_below(path: str, tops: Sequence[str]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)


def some(names: Sequence[str], before: str = "") -> str:
    """Name a few of many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return before + ", ".join(names[:_MOST_NAMES]) + more


def _hide(world: World, job: Job) -> None:
    """Hide the placed files from `git add --all`, where the project does not ignore them itself."""
    shown = world.preparing.visible(job.tree)
    seen = [path for path in dict.fromkeys((*job.linked, *job.copied)) if path in shown]
    if not seen:
        return
    try:
        hiding.hide_in(world, job.tree, seen)
    except ConfigProblem as problem:
        hint = f"let git ignore them, for instance in .git/info/exclude: {some(seen)}"
        raise SetupFailed(f"setup of {job.name}: {problem.message}", hint=hint) from problem


# --- commands ------------------------------------------------------------------------------------


def run_all(world: World, jobs: Sequence[Job]) -> None:
    """Run the commands of all worktrees side by side; when one fails, the others are ended."""
    busy = [job for job in jobs if job.hook or any(part.run for part in job.parts)]
    if not busy:
        return
    stop = Event()
    with ThreadPoolExecutor(min(len(busy), max(2, os.cpu_count() or 1))) as pool:
        try:
            for done in as_completed([pool.submit(_run, world, job, stop) for job in busy]):
                done.result()
        except BaseException:
            stop.set()
            raise


def _run(world: World, job: Job, stop: Event) -> None:
    log = setup_notes.folder_of(world, job.session, job.name) / setup_notes.LOG
    for policy, limit, line in (*_hook(world, job), *_commands(job)):
        if stop.is_set():
            return
        environ = {**job.environ, rules.STAMP: f"{job.stamp}/{len(job.commands)}"}
        done = commands.run(line, cwd=job.tree, environ=environ, log=log, limit=limit, stopped=stop.is_set)
        if job.hook and line == rules.line_of(job.hook):
            done = replace(done, line=job.hook[0].rpartition("/")[2])
        job.commands.append(done)
        if stop.is_set():
            return
        if done.outcome:
            kept = keep_log(world, log)
            hint = f"whole output: {kept}; or skip setup: --no-setup" if kept else "skip setup: --no-setup"
            job.fail(policy, in_words(done), details="\n".join(done.tail), hint=hint)


def _commands(job: Job) -> Iterator[tuple[Policy, float, str]]:
    return ((part.policy, part.timeout, line) for part in job.parts for line in part.run)


def _hook(world: World, job: Job) -> Iterator[tuple[Policy, float, str]]:
    """Give the repository's own hook; one that is in the tree itself may not be there in this commit."""
    if job.hook and os.access(job.tree / job.hook[0], os.X_OK):
        wish = world.settings.setup
        yield Policy(wish.policy), wish.timeout, rules.line_of(job.hook)


def in_words(done: Ended) -> str:
    """Return a command's failure in words, with its last line."""
    return rules.failure(done) + (f": {done.tail[-1][:200]}" if done.tail else "")


def keep_log(world: World, log: Path) -> Path | None:
    """Keep the output of failed commands, as the run folder may be deleted; None if it cannot be kept."""
    kept = world.layout.state / setup_notes.FAILED_LOG
    try:
        fsio.write_atomic(kept, fsio.read_small(log, 128 << 20), durable=False)
    except (OSError, SwarmError):
        return None
    return kept


# --- notes ---------------------------------------------------------------------------------------


def notes_of(world: World, job: Job) -> Notes:
    """Return the notes of a finished job."""
    admin = world.git.admin_of(job.tree)
    left: dict[str, str] = {}
    if admin is not None:
        state = world.trees.look(job.tree, admin.path)
        not_gits = [path for path in (*state.untracked, *state.ignored) if path not in job.placed]
        left = world.preparing.signatures(job.tree, not_gits[:_MOST_NOTED])
        if job.commands and state.modified:
            job.warnings.append(f"setup of {job.name}: {some(state.modified, 'its commands changed tracked files: ')}")
    return Notes(
        copied=len(job.copied),
        linked=len(job.linked),
        copies=tuple(job.copied[:_MOST_NOTED]),
        seconds=time.monotonic() - job.began,
        commands=tuple(job.commands),
        warnings=tuple(job.warnings),
        left=left,
    )
