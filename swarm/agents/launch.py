"""Launch agent programs: their instructions, their private files and their panes.

    PrepareRun ─► OpenPanes (each waits at its gate) ─► … ─► WriteRecord ══ committed ══► the gates open

A pane runs swarm's launcher.  It starts the program only when the session's record carries the
operation, and ends without having started anything when the operation was taken back.  So no agent works
before its set exists, and nothing has to be launched after the commit: a crash there leaves a swarm that starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.agents import budgets, telemetry
from swarm.kit import files as fsio
from swarm.kit.errors import ConfigProblem, SwarmError, UsageProblem
from swarm.kit.words import count
from swarm.machine import runfiles, serving
from swarm.messages import directory
from swarm.messages.inboxes import inbox_folder
from swarm.programs.values import Launch, PanePlan
from swarm.project.config.settings import describe
from swarm.project.layout import root_dir
from swarm.roles.environment import environ_of, inherits, places_of
from swarm.roles.options import RoleOptions, plain
from swarm.terminal.marks import panes_of, repository_mark, stamp_of
from swarm.usage.spending.meter import source_of
from swarm.worktrees.lock_reason import is_running_reason, running_reason
from swarm.worktrees.steps.step import Registry, Step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.programs.values import LaunchSpec, Pane
    from swarm.project.model import Agent
    from swarm.project.ports import AgentProgram
    from swarm.project.world import World
    from swarm.roles.role import Role

#: How long a launcher waits for its set to be committed.
GATE_SECONDS = 600
#: How often, and after how many seconds, a pane is looked at that should be dead.
_LOOKS, _LOOK_AGAIN = 50, 0.02
#: The terminal of a program is its pane, not the one in which somebody typed `swarm start`.
_FROM_PANE = ("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
#: The name of the agent program that is any command of the user's.
_COMMAND = "command"
#: What showing the states in tmux needs of the caller's environment, beside swarm's settings.
_LABEL_ENV = frozenset(
    {
        *("PATH", "HOME", "USER", "LANG", "TMPDIR", "TMUX_TMPDIR"),
        # a command that calls the user needs the way to their screen
        *("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    }
)
_SETTINGS = frozenset(setting.variable for setting in describe())


@dataclass(frozen=True, slots=True)
class PrepareRun(Step):
    """Write down, privately, what an agent's launcher needs.

    Attributes:
        role_text, task: what the agent is told.
        resume: take up the conversation of an earlier start.
        anew: its folder is there from an earlier start, but its conversation is not taken up.
        options: what else the role's file says, as `role_fields.plain` gives it.
    """

    session: str
    agent: dict[str, Any]
    tree: str
    role_text: str
    task: str
    resume: bool
    options: dict[str, Any] = field(default_factory=dict)
    anew: bool = False

    def do(self, world: World) -> None:
        folder = world.layout.run_folder(self.session, str(self.agent["name"]))
        _private_folders(world, folder)
        fsio.write_atomic(folder / "role.md", _bytes(self.role_text), durable=False)
        fsio.write_atomic(folder / "task.md", _bytes(self.task), durable=False)
        spec = self._spec(world, folder)
        fsio.write_atomic(folder / "launch.json", json.dumps(spec, ensure_ascii=True).encode("ascii"), durable=False)

    def _spec(self, world: World, folder: Path) -> dict[str, Any]:
        name, role = str(self.agent["name"]), str(self.agent["role"])
        command = tuple(self.agent["command"])
        program = world.programs.get(str(self.agent["program"]), command)
        options = RoleOptions.from_plain(self.options)
        launch = Launch(
            agent=name,
            role=role,
            session=self.session,
            worktree=Path(self.tree),
            run_dir=folder,
            role_file=folder / "role.md",
            task_file=folder / "task.md",
            task=self.task,
            conversation=str(self.agent["conversation"]),
            resume=self.resume and not self.anew,
            executable=world.programs.find(str(self.agent["program"]), command, world.environ),
            options=options,
            main=world.layout.root,
        )
        ports = {name: str(port) for name, port in self.agent.get("ports", ())}
        launch = replace(launch, environ={**pane_environment(world, launch, program), **ports})
        made = program.launch(launch)
        env = {**launch.environ, **made.env}
        for file, text in made.files.items():
            if (folder / file).parent != folder:
                fsio.make_private_dir((folder / file).parent)
            fsio.write_atomic(folder / file, _bytes(text), durable=False)
        cwd = _working_dir(name, Path(self.tree), options.worktree.subdir)
        source = source_of(str(self.agent["program"]), command, env, cwd, int(self.agent["created_ms"]))
        runfiles.write(str(folder), runfiles.RECORD, source)
        runfiles.write(str(folder), runfiles.SERVES, {"records": serving.records(env)})
        return {
            "schema": 1,
            "operation": self.operation,
            "agent": name,
            "session": self.session,
            "root": str(world.layout.root),
            "record": str(world.layout.session_file(self.session)),
            "journal": str(world.layout.journal / f"{self.operation}.json"),
            "owner": {"pid": os.getpid(), "start": _own_start()},
            "run_dir": str(folder),
            "gate_timeout": GATE_SECONDS,
            "grace": world.settings.agents.stop_grace,
            "cwd": cwd,
            "argv": list(made.argv),
            "env": {name: value for name, value in env.items() if name not in made.without},
            "from_pane": [one for one in _FROM_PANE if not options.env.drops(one) and one not in options.env.set],
            "label": [sys.executable, "-P", "-m", "swarm", "-C", str(world.layout.root), "_label"],
            "label_env": {key: value for key, value in world.environ.items() if key in _LABEL_ENV | _SETTINGS},
            "screen": program.screens() is not None and not made.prints,
            "prints": made.prints,
            "deaf": made.deaf,
            "stamp": stamp_of(self.session, name, world.layout.root),
            "heartbeat": None if made.prints else plain(options.heartbeat, whole=True),
            "mail": self._mail(world, made),
            "budget": budgets.spec(world, name, self.session, options, source),
        }

    def _mail(self, world: World, made: LaunchSpec) -> dict[str, Any]:
        """Return how the supervisor tells the agent of its messages; a program that looks for itself is left alone.

        In print mode nothing is typed: hooks deliver at the end of the turn, and without any the sender is told.
        """
        name = str(self.agent["name"])
        command = [sys.executable, "-P", "-m", "swarm", "-C", str(world.layout.root), "_nudge", name, self.session]
        alone = made.pulls or (made.prints and made.awaits) or world.settings.agents.nudge == "never"
        return {
            "inbox": str(inbox_folder(world, self.session, name)),
            "address": f"{name}@{self.session}",
            "nudge": [] if alone else command,
            "send": [*command, "--heartbeat"],
            "pause": world.settings.agents.nudge_pause,
            "shell": self.agent["program"] == "shell",
            "awaited": made.awaits,
            "says": made.says,
        }

    def undo_files(self, world: World) -> None:
        folder = world.layout.run_folder(self.session, str(self.agent["name"]))
        drop_environment(folder)
        if not self.resume:
            fsio.remove_tree(folder)
            for parent in (folder.parent, folder.parent.parent):
                if parent.is_dir():
                    fsio.remove_empty(parent)

    def say(self) -> str:
        how = ", to do its task and end (print mode)" if self.options.get("print") else ""
        return f"write down what {self.agent['name']} is told{how}"


def drop_environment(folder: Path) -> None:
    """Remove what was written down for a launcher that will not come: it holds the caller's whole environment.

    What a kill in the middle of a write left goes with it, also of the program's own files.
    """
    fsio.unlink_if_there(folder / "launch.json")
    for where, _, names in os.walk(folder):
        for name in names:
            if fsio.is_temporary(name):
                fsio.unlink_if_there(Path(where, name))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _working_dir(agent: str, tree: Path, inside: str) -> str:
    """Return where in its worktree an agent works.

    Raises:
        ConfigProblem: there is no such folder in it.
    """
    folder = tree / inside
    if not folder.is_dir() or not folder.resolve().is_relative_to(tree.resolve()):
        raise ConfigProblem(
            f"cannot start {agent}: the worktree.subdir {inside} of its role is no folder of its worktree",
            hint="name a folder that is in the commit the worktree starts from",
        )
    return str(folder)


def _private_folders(world: World, folder: Path) -> None:
    fsio.make_private_dir(world.layout.sessions)
    for part in (folder.parent.parent, folder.parent, folder):
        fsio.make_private_dir(part)


def _own_start() -> int:
    try:
        return int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def pane_environment(world: World, launch: Launch, program: AgentProgram) -> dict[str, str]:
    """Return the whole environment of an agent: the caller's, less what redirects, plus swarm's words.

    swarm's settings go along, so that a `swarm` in the pane finds the same server and worktrees.  A role may
    narrow and change the rest of it; what the program itself must have wins.
    """
    role = launch.options.env
    off = telemetry.switches(world, program, launch.options)
    kept = {
        key: value
        for key, value in world.environ.items()
        if key in _SETTINGS or (inherits(key, role) and key not in off)
    }
    if "TMUX_TMPDIR" in world.environ:
        kept["SWARM_TMUX_SOCKET"] = world.terminal.socket_path()
    return {
        **kept,
        **telemetry.variables(world, program, launch),
        **role.set,
        **places_of(world),
        "SWARM_SESSION": launch.session,
        "SWARM_SESSION_DIR": str(launch.run_dir),
        "SWARM_ACTOR": launch.agent,
        "SWARM_ROLE": launch.role,
        "SWARM_RUN_DIR": str(launch.run_dir),
        "SWARM_ROLE_FILE": str(launch.role_file),
        "SWARM_TASK_FILE": str(launch.task_file),
    }


def pane_plan(world: World, session: str, agent: str, tree: Path) -> PanePlan:
    """Return the pane of an agent: swarm's launcher with the file that tells it the rest."""
    launcher = Path(__file__).parents[1] / "supervisor" / "launcher.py"
    spec = world.layout.run_folder(session, agent) / "launch.json"
    return PanePlan(agent, tree, (sys.executable, "-I", "-S", str(launcher), str(spec)))


@dataclass(frozen=True, slots=True)
class Introduce(Step):
    """Answer beforehand what a program asks at its first start in a folder.

    Attributes:
        program: its name.
        home: the file of the program's that must know the folders.
        env: how the agents' environment differs from the caller's, as `role_fields.plain` gives it.
    """

    program: str
    home: str
    trees: tuple[str, ...]
    env: dict[str, Any]

    def do(self, world: World) -> None:
        trees = [Path(tree) for tree in self.trees]
        environ = environ_of(world, RoleOptions.from_plain({"env": self.env}).env)
        world.programs.get(self.program).introduce(self.home, world.layout.root, trees, environ)

    def undo_files(self, world: World) -> None:
        with contextlib.suppress(SwarmError):  # the file is the program's; what is left over there harms nobody
            world.programs.get(self.program).withdraw(self.home, [Path(tree) for tree in self.trees])

    def say(self) -> str:
        return f"let {self.program} know {count(len(self.trees), 'worktree')} ({self.home})"


@dataclass(frozen=True, slots=True)
class OpenPanes(Step):
    """Open one pane per agent; a dead pane that an agent still has is used again.

    Attributes:
        agents: (name, worktree) each.
        beside: the agent in whose window they are to be, if it has a pane.
    """

    session: str
    agents: tuple[tuple[str, str], ...]
    beside: str = ""

    def do(self, world: World) -> None:
        world.progress(count(len(self.agents), "pane"))
        there = self._dead_panes(world)
        plans = [pane_plan(world, self.session, name, Path(tree)) for name, tree in self.agents]
        for plan in plans:
            if plan.agent in there:
                world.terminal.respawn(there[plan.agent].id, plan)
        fresh = [plan for plan in plans if plan.agent not in there]
        if fresh:
            mark = repository_mark(world.layout.root)
            per_window = world.settings.tmux.panes_per_window
            beside = _pane_of_address(world, self.beside) if self.beside else None
            world.terminal.open(mark, self.operation, self.session, fresh, per_window, beside)

    def _dead_panes(self, world: World) -> dict[str, Pane]:
        """Return the panes that can be used again; one whose program has just ended is dead in a moment."""
        names = {name for name, _ in self.agents}
        mine: list[Pane] = []
        for _ in range(_LOOKS):
            mine = [pane for pane in panes_of(world, self.session) if pane.agent in names]
            if all(pane.dead for pane in mine):
                break
            time.sleep(_LOOK_AGAIN)
        return {pane.agent: pane for pane in mine if pane.dead}

    def undo_files(self, world: World) -> None:
        # A pane that was there before stays: the launcher in it ends by itself, its gate does not open.
        mark = repository_mark(world.layout.root)
        mine = [p.id for p in world.terminal.panes() if p.operation == self.operation and p.repository == mark]
        world.terminal.kill(mine)

    def say(self) -> str:
        return f"open {count(len(self.agents), 'pane')} in tmux"


def _pane_of_address(world: World, address: str) -> Pane | None:
    agent, _, session = address.partition("@")
    return next((pane for pane in panes_of(world, session) if pane.agent == agent), None)


@dataclass(frozen=True, slots=True)
class LockRunning(Step):
    """Lock the worktrees of agents that are about to run, so that no cleanup elsewhere takes them away."""

    session: str
    agents: tuple[tuple[str, str], ...]

    def do(self, world: World) -> None:
        for name, tree in self.agents:
            admin = world.git.admin_of(Path(tree))
            if admin is not None and admin.locked is None:
                world.git.lock(admin, running_reason(name, self.session))

    def undo_files(self, world: World) -> None:
        for _, tree in self.agents:
            release(world, Path(tree))

    def say(self) -> str:
        return "lock the worktrees while their agents run"


def release(world: World, tree: Path) -> None:
    """Take swarm's own lock off a worktree; the user's stays."""
    admin = world.git.admin_of(tree)
    if admin is not None and is_running_reason(admin.locked):
        world.git.unlock(admin)


Registry.add(PrepareRun, Introduce, OpenPanes, LockRunning)


# --- what a start adds to a create ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wish:
    """Which program plays the agents, and what it is told.

    Attributes:
        command: the argv when the program is ``command``.
        task: the goal.
        workflow: which kind of work it is.
        beside: the agent in whose window the panes are opened; empty: windows of their own.
        named: the user named the program, so what a role names does not count.
        print_mode: all of them do the task and end, whatever their roles say.
    """

    program: str
    command: tuple[str, ...] = ()
    task: str = ""
    workflow: str = ""
    beside: str = ""
    named: bool = True
    print_mode: bool = False

    def of(self, role: Role | None) -> Wish:
        """Return the wish for an agent of this role, which may name a program of its own."""
        if self.named or role is None:
            return self
        if role.options.command:
            return replace(self, program=_COMMAND, command=role.options.command)
        return replace(self, program=role.options.agent_type or self.program)


def problems(world: World, wish: Wish) -> Iterator[SwarmError]:
    """Say what stands against starting, before anything is made."""
    for look in (world.terminal.check, lambda: world.programs.find(wish.program, wish.command, world.environ)):
        try:
            look()
        except SwarmError as problem:
            yield problem


def refusals(world: World, wish: Wish, role: Role | None) -> Iterator[SwarmError]:
    """Say what of a role its program would refuse, and why it is not for this repository."""
    options = role.options if role else RoleOptions()
    if role is not None:
        yield from _elsewhere(world, role)
    try:
        program = world.programs.get(wish.program, wish.command)
    except SwarmError:
        return  # ``problems`` tells it, with all the others
    yield from program.check(options, environ_of(world, options.env))
    yield from telemetry.problems(world, options)
    yield from _print_refusals(program, wish, role)


def _elsewhere(world: World, role: Role) -> Iterator[SwarmError]:
    """Say why a role whose ``root_dir`` is not in this repository cannot be started here."""
    wanted, home = role.options.root_dir, world.environ.get("HOME", "")
    folder = root_dir(wanted, cwd=world.layout.root, swarm_dir=world.swarm_dir, home=home)
    root = directory.find_root(str(folder)) if folder.is_dir() else None
    if root is None:
        yield ConfigProblem(
            f"cannot start {role.name}: its root_dir {folder} is no folder of a git repository",
            hint=f"a relative one counts from {world.swarm_dir}; a folder of its worktree is `worktree: {{subdir: …}}`",
        )
    elif not world.layout.root.samefile(root):
        yield UsageProblem(
            f"cannot start {role.name} here: its root_dir is in another repository, {root}",
            hint=f"swarm -C {shlex.quote(root)} start …",
        )


def project_refusals(world: World, wish: Wish, role: Role | None, commit: str) -> Iterator[SwarmError]:
    """Say what of the project its program would ask about at the start.

    Args:
        commit: where the worktrees start.
    """
    options = role.options if role else RoleOptions()
    try:
        program = world.programs.get(wish.program, wish.command)
    except SwarmError:
        return  # ``problems`` tells it
    asked = replace(options, print=program.prints and (options.print or wish.print_mode))
    read = partial(world.trees.saved_file, commit)
    yield from program.check_project(asked, environ_of(world, options.env), world.layout.root, read)


def _print_refusals(program: AgentProgram, wish: Wish, role: Role | None) -> Iterator[SwarmError]:
    """Say why an agent could not be started in print mode, if it is to be."""
    by_role = role is not None and role.options.print
    if wish.print_mode and not program.prints:
        yield UsageProblem(
            f"cannot start {_called(program, wish)} in print mode: it has none, and would not end by itself",
            hint="leave out --print, or take a program that can: --agent claude, codex, gemini, opencode or demo",
        )
    elif (wish.print_mode or by_role) and program.prints and not wish.task.strip():
        whose = f" {role.name}" if role is not None else ""
        yield UsageProblem(
            f"cannot start{whose} in print mode without a task: it does one task and ends",
            hint="say what to do: swarm start … --task TEXT" + (", or take `print` out of the role" if by_role else ""),
        )


def _called(program: AgentProgram, wish: Wish) -> str:
    """Return what people call the program of a wish."""
    return f"the command {wish.command[0]}" if wish.command else program.name


def equipped(agent: Agent, wish: Wish, conversation: str) -> Agent:
    """Return the agent's record with its program."""
    return replace(
        agent, program=wish.program, command=wish.command, conversation=conversation, print_mode=wish.print_mode
    )


def options_for(world: World, agent: Agent, role: Role | None) -> RoleOptions:
    """Return what holds for an agent: what its role says, and the print mode that was asked for at its start."""
    options = role.options if role else RoleOptions()
    can = world.programs.get(agent.program, agent.command).prints
    return replace(options, print=can and (options.print or agent.print_mode))


def warnings(agents: Sequence[tuple[Agent, Role | None]]) -> tuple[str, ...]:
    """Say which parts of the agents' roles have no effect with the programs that play them."""
    from swarm.programs import role_effects

    found = (
        f"{note.key} of role {role.name} {note.text}"
        for agent, role in agents
        if role is not None and agent.program
        for note in role_effects.notes(_asked_of(agent, role), (agent.program,))
    )
    return tuple(dict.fromkeys(found))


def _asked_of(agent: Agent, role: Role) -> RoleOptions:
    return replace(role.options, print=role.options.print or agent.print_mode)


def start_steps(
    world: World,
    operation: str,
    session: str,
    agents: Sequence[tuple[Agent, Role | None]],
    task: str,
    *,
    resume: bool,
    anew: bool = False,
    beside: str = "",
) -> Iterator[Step]:
    """Give the steps that open the panes of some agents.

    Args:
        agents: each with its role.
        resume: they were started before, and take up their conversations.
        anew: those in print mode do their task anew instead.
        beside: the agent in whose window the panes are to be.
    """
    from swarm.project.codec import agent_to_dict

    root = world.layout.root
    for agent, role in agents:
        tree = str(root / agent.worktree)
        text, options = role.instructions if role else "", options_for(world, agent, role)
        fresh = anew and options.print
        yield PrepareRun(operation, session, agent_to_dict(agent), tree, text, task, resume, plain(options), fresh)
    yield from _introductions(world, operation, agents)
    pairs = tuple((agent.name, str(root / agent.worktree)) for agent, _ in agents)
    yield LockRunning(operation, session, pairs)
    yield OpenPanes(operation, session, pairs, beside)


def _introductions(world: World, operation: str, agents: Sequence[tuple[Agent, Role | None]]) -> Iterator[Introduce]:
    """Give one step for each file that must know some worktrees; most programs have none."""
    found: dict[str, Introduce] = {}
    for agent, role in agents:
        options = role.options if role else RoleOptions()
        home = world.programs.get(agent.program, agent.command).home(options, environ_of(world, options.env))
        if home:
            first = Introduce(operation, agent.program, home, (), plain(options.env))
            one = found.setdefault(f"{agent.program} {home} {first.env}", first)
            tree = str(world.layout.root / agent.worktree)
            found[f"{agent.program} {home} {first.env}"] = replace(one, trees=(*one.trees, tree))
    yield from found.values()
