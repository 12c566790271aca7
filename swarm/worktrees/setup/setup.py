"""The setup step of a new session: links, copies, commands, ports.

    links ─► copies ─► what is not ignored is hidden from git ─► commands (agents side by side) ─► notes

One step of the transaction that makes the set: when a part fails whose policy is *abort*, or swarm is killed,
everything that was started is ended, and the worktrees go with all that is in them.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.kit import commandline as rules
from swarm.kit import files as fsio
from swarm.kit.words import count
from swarm.project import codec
from swarm.roles.environment import environ_of
from swarm.roles.options import Env, Policy, RoleOptions, Setup, plain
from swarm.worktrees import hiding, transaction, trash
from swarm.worktrees.errors import SetupFailed
from swarm.worktrees.setup import commands, placing, setup_notes, setup_run
from swarm.worktrees.setup import ports as agent_ports
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from swarm.kit.errors import SwarmError
    from swarm.project.model import Agent
    from swarm.project.world import World
    from swarm.worktrees.reports import SalvageEntry

#: In the trash of an operation: from here on its setup made the files in its worktrees.
_BEGAN = "setup-began"


def parts_of(world: World, options: RoleOptions) -> tuple[Setup, ...]:
    """Return the setups of the configuration, then of the role."""
    config = world.settings.setup.values()
    config["policy"] = Policy(config["policy"])
    del config["post_checkout"]  # not a matter of roles
    return tuple(part for part in (Setup(**config), options.setup) if _asks_for_something(part))


def _asks_for_something(part: Setup) -> bool:
    return bool(part.copy or part.link or part.run or part.ports)


def stamp(world: World, operation: str, *more: str) -> str:
    """Return by which everything is known that the commands of a setup started."""
    return rules.hook_stamp(str(world.layout.root), operation, *more)


# --- before anything is made ---------------------------------------------------------------------


def refusals(world: World, options: Sequence[RoleOptions]) -> Iterator[SwarmError]:
    """Yield the parts of a setup that cannot work here."""
    found = {
        problem: None
        for one in options
        for part in parts_of(world, one)
        if part.policy is Policy.ABORT
        for problem in (*_missing_files(world, part), *_missing_programs(world, part, one.env))
    }
    for text, hint in found:
        yield SetupFailed(text, hint=hint)


def _missing_files(world: World, part: Setup) -> Iterator[tuple[str, str]]:
    for key, patterns in (("copy", part.copy), ("link", part.link)):
        for pattern in patterns:
            if rules.is_literal(pattern) and not fsio.exists(world.layout.root / pattern):
                hint = f"make it, write a pattern such as {pattern}*, or set the policy of this setup to warn"
                yield f"setup.{key} names {pattern}, which is not in the main checkout", hint


def _missing_programs(world: World, part: Setup, env: Env) -> Iterator[tuple[str, str]]:
    environ = environ_of(world, env)
    for line in part.run:
        words = rules.words_of(line)
        if not commands.program(words, environ):
            hint = "install it; shell syntax needs a shell: [sh, -c, '…']"
            yield f"setup.run needs the program {words[0]}, which is not installed", hint


def equipped(world: World, agents: Sequence[Agent], session: str, options: Sequence[RoleOptions]) -> Iterator[Agent]:
    """Give the agents' records with their ports."""
    names = [tuple(name for part in parts_of(world, one) for name in part.ports) for one in options]
    taken = agent_ports.taken(world) if any(names) else set()
    for agent, wanted in zip(agents, names, strict=True):
        ports = agent_ports.choose(world, agent.name, session, wanted, taken)
        yield agent._replace(ports=ports, prepared=True)


# --- the steps -----------------------------------------------------------------------------------


def steps_for(
    world: World, operation: str, session: str, agents: Sequence[Agent], options: Sequence[RoleOptions], *, count: bool
) -> Iterator[Step]:
    """Give the steps that make some agents' worktrees ready; none where nothing is asked for.

    Args:
        options: what the role of each agent says.
        count: also say which files there are, for a dry run.
    """
    include = fsio.exists(world.layout.root / rules.INCLUDE_FILE)
    hook = _hook(world)
    items: list[dict[str, Any]] = []
    links: dict[str, None] = {}
    for agent, one in zip(agents, options, strict=True):
        parts = parts_of(world, one)
        if hook or include or any(part.copy or part.link or part.run for part in parts):
            record = {**codec.agent_to_dict(agent), "command": list(agent.command)}
            items.append({"agent": record, "parts": [plain(part) for part in parts], "env": plain(one.env)})
            if hook:  # what git gives it: no commit was there before, this one is now, and it is a whole checkout
                items[-1]["hook"] = [hook, "0" * len(agent.base), agent.base, "1"]
            links.update(dict.fromkeys(pattern for part in parts for pattern in part.link))
    if not items:
        return
    yield from _hide_links(world, operation, world.preparing.whole(tuple(links)).paths)
    yield SetUp(
        operation, session, tuple(items), include, _files_in_words(world, items, include=include) if count else ""
    )


def _hook(world: World) -> str:
    """Return the repository's ``post-checkout`` hook; empty where none is to run.

    A path that is not absolute is one in the main checkout, as for a ``git worktree add`` there: in the new worktree an
    agent may have written the hook.
    """
    found = world.git.hook("post-checkout") if world.settings.setup.post_checkout else ""
    path = os.path.join(world.layout.root, found) if found else ""
    return path if os.access(path, os.X_OK) else ""


def _hide_links(world: World, operation: str, paths: Sequence[str]) -> Iterator[Step]:
    """Hide links from git: the main checkout may ignore the names, but `node_modules/` matches no link."""
    for path in world.preparing.ignored(paths):
        if _is_plain_pattern(path):
            yield hiding.everywhere(world, operation, path)


def _is_plain_pattern(path: str) -> bool:
    """Whether a path means itself in an ignore file."""
    return rules.is_literal(path) and path.isprintable() and not path.endswith(" ") and "\\" not in path


def _files_in_words(world: World, items: Sequence[Mapping[str, Any]], *, include: bool) -> str:
    parts = [part for item in items for part in setup_run.parts_from(item)]
    patterns = tuple(dict.fromkeys(pattern for part in parts for pattern in part.copy))
    found = dict.fromkeys(world.preparing.files(patterns).paths)
    if include:
        found.update(dict.fromkeys(world.preparing.included(rules.INCLUDE_FILE).paths))
    return setup_run.some(tuple(found)) if found else ""


@dataclass(frozen=True, slots=True)
class SetUp(Step):
    """Make worktrees ready.

    Attributes:
        agents: for each its record, the parts of its setup, and how its environment differs from the caller's.
        include: there is a file that says which ignored files to copy.
        files: which would be copied, for a dry run.
    """

    session: str
    agents: tuple[dict[str, Any], ...]
    include: bool
    files: str = ""

    def do(self, world: World) -> None:
        """Make the change."""
        mark = stamp(world, self.operation)
        jobs = [setup_run.job_of(world, self.session, item, mark) for item in self.agents]
        fsio.write_new(world.layout.trash_folder(self.operation) / _BEGAN, b"", 0o600)
        world.progress(f"setup of {count(len(jobs), 'worktree')}")
        files = setup_run.Files(world)
        try:
            for job in jobs:
                setup_run.place(world, files, job, include=self.include)
            setup_run.run_all(world, jobs)
        except SetupFailed as error:
            transaction.note(world, self.operation, "setup", self.session, error.message)
            raise
        for job in jobs:
            setup_notes.write(world, self.session, job.name, setup_run.notes_of(world, job))

    def undo_files(self, world: World) -> None:
        """End the processes of the commands, and remove their notes."""
        commands.end_stamped(stamp(world, self.operation))
        for item in self.agents:
            setup_notes.forget(world, self.session, str(item["agent"]["name"]))

    def undo(self, world: World) -> None:
        """Remove the trees that were moved aside: all that is in them came from here."""
        hiding.turn_off(world)
        if fsio.exists(world.layout.trash_folder(self.operation) / _BEGAN):
            for item in self.agents:
                name = Path(item["agent"]["worktree"]).name
                fsio.remove_tree(trash.find(world, self.operation, f"{name}.tree"))

    def say(self) -> str:
        """Describe the step for a dry run."""
        parts = [part for item in self.agents for part in setup_run.parts_from(item)]
        said = {
            "link": [pattern for part in parts for pattern in part.link],
            "copy": [pattern for part in parts for pattern in part.copy] + [rules.INCLUDE_FILE] * self.include,
            "run": [f"`{item['hook'][0]}`" for item in self.agents if "hook" in item]
            + [f"`{rules.shown(line)}`" for part in parts for line in part.run],
        }
        what = "; ".join(f"{verb} {', '.join(dict.fromkeys(these))}" for verb, these in said.items() if these)
        return f"set up {count(len(self.agents), 'worktree')}: {what}" + (
            f" (files: {self.files})" if self.files else ""
        )


def steps_before(world: World, operation: str, restored: Iterable[tuple[SalvageEntry, Path]]) -> Iterator[Step]:
    """Yield the steps that hide the links of restored worktrees again; they run before the restore."""
    links: dict[str, None] = {}
    for entry, tree in restored:
        if notes := entry.manifest.get("setup"):
            links.update(dict.fromkeys(setup_notes.links_in(notes, world.layout.root, tree)))
    yield from _hide_links(world, operation, tuple(links))


def steps_back(operation: str, restored: Iterable[tuple[SalvageEntry, Path]]) -> Iterator[Step]:
    """Give the steps that a restored worktree takes which had been set up."""
    for entry, tree in restored:
        if notes := entry.manifest.get("setup"):
            yield RememberSetup(operation, entry.session, entry.agent, str(tree), notes)


@dataclass(frozen=True, slots=True)
class RememberSetup(Step):
    """Restore the notes of a worktree's setup, copy its unsaved files again, and hide them.

    Attributes:
        notes: as `setup_notes.plain` gave them.
    """

    session: str
    agent: str
    tree: str
    notes: dict[str, Any]

    def do(self, world: World) -> None:
        """Make the change."""
        setup_notes.give_back(world, self.session, self.agent, self.notes)
        again = self.notes.get(setup_notes.AGAIN) or ()
        placing.copy(
            world.layout.root, Path(self.tree), world.preparing.files([glob.escape(one) for one in again]).paths
        )
        admin = world.git.admin_of(Path(self.tree))
        if admin is not None and fsio.exists(admin.path / "config.worktree"):
            hiding.hide_in(world, Path(self.tree), ())

    def undo_files(self, world: World) -> None:
        """Remove the notes."""
        setup_notes.forget(world, self.session, self.agent)

    def undo(self, world: World) -> None:
        """Stop hiding."""
        hiding.turn_off(world)

    def say(self) -> str:
        """Describe the step for a dry run."""
        return f"record the results of the setup of {self.agent} had left"


def warnings(world: World, operation: transaction.Operation) -> tuple[str, ...]:
    """Return the warnings of an operation's setups."""
    names = [str(item["agent"]["name"]) for step in operation.steps if isinstance(step, SetUp) for item in step.agents]
    found = (setup_notes.read(world, operation.session, name) for name in names)
    return tuple(text for notes in found if notes is not None for text in notes.warnings)
