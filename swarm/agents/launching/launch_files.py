"""The step that writes a launcher's private files: its program, its environment, its folder."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.agents.budgets import drawn, limits
from swarm.agents.launching import door, telemetry
from swarm.callers.family import parent_from
from swarm.kit import files as fsio
from swarm.kit.errors import ConfigProblem, SwarmError
from swarm.machine.run_folder import runfiles
from swarm.messages.inboxes import inbox_folder
from swarm.programs import registry
from swarm.programs.values import Launch
from swarm.project.chore import chore
from swarm.project.codec import boxed_of
from swarm.project.config.settings import describe
from swarm.project.model import SHARED
from swarm.project.swarm_dir import socket_dir
from swarm.roles.environment import inherits, places_of
from swarm.roles.options import RoleOptions, plain
from swarm.sandbox import launching as boxes
from swarm.sandbox.bounds.limits import disk
from swarm.terminal.marks import stamp_of
from swarm.usage.spending.meter import source_of
from swarm.worktrees.steps.step import Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.base import Program
    from swarm.programs.turns import Turn
    from swarm.programs.values import LaunchSpec
    from swarm.project.model import Boxed
    from swarm.project.world import World


#: How long a launcher waits for its set to be committed.
GATE_SECONDS = 600
#: The terminal of a program is its pane, not the terminal of `swarm start`.
_FROM_PANE = ("TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
#: What showing the states in tmux needs of the caller's environment, beside swarm's settings.
_LABEL_ENV = frozenset(
    {
        *("PATH", "HOME", "USER", "LANG", "TMPDIR", "TMUX_TMPDIR"),
        # where git has the user's name, for the boxes of children
        *("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"),
        # a command that calls the user needs the way to their screen
        *("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    }
)
_SETTINGS = frozenset(setting.variable for setting in describe())


@dataclass(frozen=True, slots=True)
class PrepareRun(Step):
    """Write the private launch file of an agent.

    Attributes:
        role_text, task: what the agent is told.
        resume: take up the conversation of an earlier start.
        anew: its folder is there from an earlier start, but its conversation is not taken up.
        options: what else the role's file says, as `role_fields.plain` gives it.
        parent: agent, session and generation of the agent on whose budget its own is drawn; empty: on nobody's.
        unseen: how it is started for a turn without a pane, as ``unseen.Unseen`` has it; empty: in a pane.
    """

    session: str
    agent: dict[str, Any]
    tree: str
    role_text: str
    task: str
    resume: bool
    options: dict[str, Any] = field(default_factory=dict)
    anew: bool = False
    parent: tuple[str, ...] = ()
    unseen: dict[str, Any] = field(default_factory=dict)

    def do(self, world: World) -> None:
        folder = world.layout.run_folder(self.session, str(self.agent["name"]))
        _private_folders(world, folder)
        fsio.write_atomic(folder / "role.md", _bytes(self.role_text), durable=False)
        fsio.write_atomic(folder / "task.md", _bytes(self.task), durable=False)
        spec = self._spec(world, folder)
        fsio.write_atomic(folder / "launch.json", json.dumps(spec, ensure_ascii=True).encode("ascii"), durable=False)

    @property
    def _boxed(self) -> Boxed | None:
        """How the program is boxed; None: it is not."""
        found = boxed_of(self.agent.get("box"))
        return found if found is not None and not found.reason else None

    def _turn(self) -> Turn | None:
        """Return what it is told in a turn without a pane; None: it has one."""
        one = self.unseen
        if not one:
            return None
        from swarm.programs.turns import Turn  # few are started so

        return Turn(str(one["text"]), one["resume"] is True, one["again"] is True, str(one.get("id", "")))

    def _given(self) -> dict[str, str]:
        """Return the variables for a turn without a pane; their values are in a private file, not in this step."""
        if not self.unseen:
            return {}
        from swarm.agents.launching.unseen import variables

        return {"SWARM_TASK": str(self.unseen["task"]), **variables(Path(self.unseen["env"]))}

    def _launch(self, world: World, folder: Path, program: Program) -> Launch:
        """Return the argv, files and variables with which the program starts."""
        turn = self._turn()
        launch = Launch(
            agent=str(self.agent["name"]),
            role=str(self.agent["role"]),
            session=self.session,
            worktree=Path(self.tree),
            run_dir=folder,
            role_file=folder / "role.md",
            task_file=folder / "task.md",
            task=self.task,
            conversation=str(self.agent["conversation"]),
            resume=turn.resume if turn else self.resume and not self.anew,
            executable=registry.find(str(self.agent["program"]), tuple(self.agent["command"]), world.environ),
            options=RoleOptions.from_plain(self.options),
            main=world.layout.root,
            args=tuple(self.agent.get("args", ())),
            shared=self.agent.get("tree") == SHARED,
            branch=str(self.agent.get("branch", "")),
            turn=turn,
            door=door.command(world, str(self.agent["name"]), boxed=self._boxed is not None),
        )
        ports = {name: str(port) for name, port in self.agent.get("ports", ())}
        own = {**dict(self.agent.get("env", {})), **self._given()}
        environ = {**pane_environment(world, launch, program), **own, **ports}
        if self._boxed is not None:
            home = boxes.home_of(world, self.session, launch.agent)
            launch = boxes.inside(launch, environ, self._boxed, {*own, *ports}, home)
        else:
            launch = replace(launch, environ=environ)
        if launch.door:
            door.prepare(folder)
        return launch

    def _spec(self, world: World, folder: Path) -> dict[str, Any]:
        name, command = str(self.agent["name"]), tuple(self.agent["command"])
        program = registry.program(str(self.agent["program"]), command)
        launch = self._launch(world, folder, program)
        made, options = program.launch(launch), launch.options
        env = {**launch.environ, **made.env}
        cwd = self.tree if launch.shared else _working_dir(name, Path(self.tree), options.worktree.subdir)
        source = self._source(folder, launch, made, env, cwd)
        if self._boxed is not None:
            kept = boxes.of_agent(world, launch, self._boxed)
            made = boxes.wrapped(world, launch, made, cwd, kept, program.denied(options))
            env = dict(made.env)  # the box has one of its own
        write_files(folder, made.files)
        runfiles.write(str(folder), runfiles.RECORD, source)
        runfiles.write(str(folder), runfiles.SERVES, {**registry.services(env), "folder": self.tree})
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
            "label": chore(world, "label"),
            "label_env": {key: value for key, value in world.environ.items() if key in _LABEL_ENV | _SETTINGS},
            "screen": program.screens() is not None and not made.prints,
            "box": boxes.watched(world, self.session, launch) if self._boxed is not None else None,
            "network": self._served(world, launch, program),
            "prints": made.prints,
            "deaf": made.deaf,
            "program": str(self.agent["program"]),
            "role": launch.role,
            "pod": dict(self.agent.get("env", {})).get("SWARM_POD", ""),
            "socket": self._socket(world),
            "stamp": stamp_of(self.session, name, world.layout.root),
            "heartbeat": None if made.prints else plain(options.heartbeat, whole=True),
            "mail": self._mail(world, made),
            "budget": self._budget(world, folder, launch, source),
            **self._without_pane(folder, made, program),
        }

    def _without_pane(self, folder: Path, made: LaunchSpec, program: Program) -> dict[str, Any]:
        """Return what takes the place of a pane; nothing where there is one."""
        one = self.unseen
        if not one:
            return {}
        from swarm.agents.launching.unseen import streams

        given: dict[str, Any] = {name: one[name] for name in ("timeout", "grace", "after")}
        given["talk"] = json.loads(one.get("talk") or "{}")
        return {**streams(Path(one["folder"]), folder, made, program.interrupts), **given, "from_pane": []}

    def _source(
        self, folder: Path, launch: Launch, made: LaunchSpec, env: Mapping[str, str], cwd: str
    ) -> dict[str, Any]:
        """Return where the program keeps its records."""
        program, command = str(self.agent["program"]), tuple(self.agent["command"])
        source = source_of(program, command, env, cwd, int(self.agent["created_ms"]))
        if made.prints or launch.shared:
            source["conversation"] = launch.conversation
        if launch.shared:
            source["shared"] = True
        if self._boxed is not None:
            source["box_home"] = launch.environ["HOME"]
        return {**source, "run_dir": str(folder)}

    def _budget(self, world: World, folder: Path, launch: Launch, source: Mapping[str, Any]) -> dict[str, Any]:
        """Return what its supervisor holds the agent to; that of a child is drawn on the budget of its parent."""
        held = limits.limits_of(world, launch.options)
        if self.parent:
            program = str(self.agent["program"]), tuple(self.agent["command"])
            beside = folder if launch.shared else None
            asked = drawn.Asked(self.session, launch.agent, held, beside, program, launch.conversation)
            held = drawn.draw(world, parent_from(self.parent), asked, self.operation)
        limits.note(folder, held, self.operation)
        return limits.spec(world, launch.agent, self.session, held, source, self._disk(world))

    def _socket(self, world: World) -> str:
        """Return where the supervisor answers how the agent stands.

        Where no socket can be made the supervisor finds that out, and notes why: it is no reason to start no agent.
        """
        file = socket_dir.agent_socket(world.swarm_dir, world.layout.root, self.session, str(self.agent["name"]))
        with contextlib.suppress(SwarmError, OSError):
            return str(socket_dir.short(file.parent, world.environ) / file.name)
        return str(file)

    def _served(self, world: World, launch: Launch, program: Program) -> dict[str, Any] | None:
        """Return how the network of the program's box is served; its models with the user's own environment."""
        if self._boxed is None:
            return None
        environ = {**pane_environment(world, launch, program), **dict(self.agent.get("env", {}))}
        options = RoleOptions.from_plain(self.options)
        return boxes.served(launch, self._boxed, program.models(options, environ), program.denied(options))

    def _disk(self, world: World) -> dict[str, Any]:
        """Return how much an agent in a box may have on the disk, and how that is measured."""
        base = world.layout.box_folder(self.session, str(self.agent["name"]))
        streams = (Path(self.unseen["folder"]),) if self.unseen else ()
        return disk(world.environ, self._boxed, base, Path(self.tree), *streams) if self._boxed is not None else {}

    def _mail(self, world: World, made: LaunchSpec) -> dict[str, Any]:
        """Return how the supervisor tells the agent of its messages; a program that looks for itself is left alone.

        In print mode nothing is typed: hooks deliver at the end of the turn, and without any the sender is told.
        """
        name = str(self.agent["name"])
        alone = made.pulls or (made.prints and made.awaits) or world.settings.agents.nudge == "never"
        return {
            "inbox": str(inbox_folder(world, self.session, name)),
            "address": f"{name}@{self.session}",
            "nudge": [] if alone else chore(world, "nudge", name, self.session),
            "send": chore(world, "heartbeat", name, self.session),
            "idle": chore(world, "idle", name, self.session),
            "pause": world.settings.agents.nudge_pause,
            "shell": self.agent["program"] == "shell",
            "awaited": made.awaits,
            "says": made.says,
        }

    def undo_files(self, world: World) -> None:
        folder = world.layout.run_folder(self.session, str(self.agent["name"]))
        drop_environment(folder)
        if self.parent:
            drawn.take_back(world, parent_from(self.parent), self.session, str(self.agent["name"]), self.operation)
        if not self.resume:
            fsio.remove_tree(folder)
            for parent in (folder.parent, folder.parent.parent):
                if parent.is_dir():
                    fsio.remove_empty(parent)

    def say(self) -> str:
        how = ", to do its task and end (print mode)" if self.options.get("print") else ""
        return f"write down what {self.agent['name']} is told{how}"


def drop_environment(folder: Path) -> None:
    """Remove the files for a launcher that will not come: they hold the caller's whole environment.

    What a kill in the middle of a write left goes with it, also of the program's own files.
    """
    fsio.unlink_if_there(folder / "launch.json")
    for where, _, names in os.walk(folder):
        for name in names:
            if fsio.is_temporary(name):
                fsio.unlink_if_there(Path(where, name))


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files that a program wants in its run folder."""
    for file, text in files.items():
        if (folder / file).parent != folder:
            fsio.make_private_dir((folder / file).parent)
        fsio.write_atomic(folder / file, _bytes(text), durable=False)


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
            f"cannot start {agent}: the worktree.subdir {inside} of its role is not a folder in its worktree",
            hint="name a folder that the starting commit contains",
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


def pane_environment(world: World, launch: Launch, program: Program) -> dict[str, str]:
    """Return an agent's whole environment: the caller's without redirections, plus swarm's variables.

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
        **({"SWARM_SESSION_ID": launch.branch} if launch.branch else {}),
        "SWARM_SESSION_DIR": str(launch.run_dir),
        "SWARM_ACTOR": launch.agent,
        **({"SWARM_ROLE": launch.role, "SWARM_ROLE_FILE": str(launch.role_file)} if launch.role else {}),
        "SWARM_RUN_DIR": str(launch.run_dir),
        "SWARM_TASK_FILE": str(launch.task_file),
    }
