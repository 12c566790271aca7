"""Start the program of a task in its folder, under a supervisor without a pane.

    record: starting ─► run folder, launch file ─► supervisor at its gate ─► record names the operation: the gate opens

Killed before the last step, the gate closes, as its owner is gone and the record does not name the operation; killed
after it, the program runs and is found again.  So a run begins once, whoever dies.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swarm.agents.budgets import limits
from swarm.agents.launching import launch_files, unseen
from swarm.agents.launching.launch_files import GATE_SECONDS, pane_environment
from swarm.kit import files
from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.programs import registry, turns
from swarm.programs.values import Launch
from swarm.project.chore import chore
from swarm.roles.options import PermissionMode
from swarm.sandbox import launching as boxes
from swarm.sandbox.bounds import limits as bounds
from swarm.tasks.bench import GRACE, program_of
from swarm.tasks.folders import boxing, workspace
from swarm.usage.spending.meter import source_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.values import LaunchSpec
    from swarm.project.world import World
    from swarm.tasks.bench import Bench
    from swarm.tasks.values import AgentTask, TaskRun

#: Names the folder that stays between the runs of a session.
HOME = "SWARM_TASK_HOME"
#: No session of agents can have this name.
_SESSION = ".task"
_TEXTS = Path(__file__).parents[1] / "data" / "tasks"
#: What a program without a role is told: of one that is talked with, and of all others.
_HELD, _ALONE = "held.md", "agent.md"
#: What the command for the end needs of the caller's environment.
_NEEDED = ("PATH", "HOME", "USER", "LANG", "TMPDIR")
#: Who commits, as `services/credentials.py` says it; a program in a box gets it, too.
_IDENTITY = tuple(f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL"))


def stamp_of(root: Path, task_id: str) -> str:
    """Return the mark in the environment of everything that a task starts."""
    return f"{sha256(os.fsencode(root)).hexdigest()[:12]}/{_SESSION}/{task_id}"


def launch_of(bench: Bench, task: AgentTask, run_dir: Path, turn: turns.Turn) -> Launch:
    """Return what the program of a task is given for one turn.

    Raises:
        ProgramMissing
    """
    world = bench.world
    found = bench.role(task.role)
    options = replace(found.options, print=True, model=task.model or found.options.model)
    if task.is_boxed and not task.role:  # nobody answers, and the box holds
        options = replace(options, permission_mode=PermissionMode.BYPASS)
    launch = Launch(
        agent=task.agent or "task",
        role=task.role,
        session="",
        worktree=workspace.of(world.layout, task).work,
        run_dir=run_dir,
        role_file=run_dir / "role.md",
        task_file=run_dir / "task.md",
        task=turn.text,
        conversation=task.conversation,
        resume=turn.resume,
        executable=registry.find(task.program, task.command, world.environ),
        options=options,
        main=world.layout.root,
        shared=True,
        turn=turn,
    )
    given = bench.store.environment(task.id)
    environ = _environment(world, launch, task, given)
    if task.box is None or task.box.reason:
        return replace(launch, environ=environ)
    return boxes.inside(launch, environ, task.box, (*_IDENTITY, *given), boxing.home(bench, task))


def _environment(world: World, launch: Launch, task: AgentTask, given: Mapping[str, str]) -> dict[str, str]:
    return {**pane_environment(world, launch, program_of(task)), **variables(world, task), **given}


def variables(world: World, task: AgentTask) -> dict[str, str]:
    """Return the variables of every program that works where a task does."""
    return {
        # The repository around it is not its own.
        **({} if task.workdir else {"GIT_CEILING_DIRECTORIES": str(workspace.of(world.layout, task).top.parent)}),
        "SWARM_TASK": task.id,
        HOME: str(workspace.of(world.layout, task).top),
    }


def write(bench: Bench, task: AgentTask, run: TaskRun, turn: turns.Turn, talk: dict[str, Any]) -> Path:
    """Write the folder of a run, with the launch file last; return the folder.

    Args:
        talk: see ``places.talk_of``.

    Raises:
        SwarmError: it cannot be started.
        OSError
    """
    boxing.require(bench, task)
    workspace.prepare(bench.world.git.runner, bench.world.layout, task)
    run_dir = bench.store.run_folder(task.id, run.operation)
    launch = launch_of(bench, task, run_dir, turn)
    text = bench.role(task.role).instructions or (_TEXTS / (_HELD if turn.id else _ALONE)).read_text(encoding="utf-8")
    files.write_atomic(launch.role_file, _bytes(text), durable=False)
    files.write_atomic(launch.task_file, _bytes(turn.text), durable=False)
    made = program_of(task).launch(launch)
    spec = _spec(bench, task, run, launch, made) | {"talk": talk}
    files.write_atomic(run_dir / unseen.LAUNCH, json.dumps(spec, ensure_ascii=True).encode("ascii"), durable=False)
    return run_dir


def _spec(bench: Bench, task: AgentTask, run: TaskRun, launch: Launch, made: LaunchSpec) -> dict[str, Any]:
    """Return the launch file; ``supervisor/launcher.py`` lists its fields."""
    world, folder, program = bench.world, launch.run_dir, program_of(task)
    env = {**launch.environ, **made.env}
    around = _environment(world, launch, task, {})
    kept, deny = boxing.kept(world, task), program.denied(launch.options)
    source = source_of(task.program, task.command, env, str(launch.worktree), task.created_ms)
    top = str(workspace.of(world.layout, task).top)
    source |= {"conversation": task.conversation, "shared": True, "run_dir": str(folder), "kept": top}
    if kept is not None:
        source["box_home"] = launch.environ["HOME"]
        boxing.introduce(bench, task, launch)
        made = boxes.wrapped(world, launch, made, str(launch.worktree), kept, deny)
        env = dict(made.env)  # the box has one of its own
    launch_files.write_files(folder, made.files)
    runfiles.write(str(folder), runfiles.RECORD, source)
    runfiles.write(str(folder), runfiles.SERVES, {**registry.services(env), "folder": str(launch.worktree)})
    return {
        "schema": 1,
        "operation": run.operation,
        "agent": task.id,
        "session": "",
        "root": str(world.layout.root),
        "record": str(bench.store.record(task.id)),
        "journal": str(folder),  # it is there as long as the run is
        "owner": {"pid": os.getpid(), "start": processes.start_of(os.getpid()) or 0},
        "run_dir": str(folder),
        "gate_timeout": GATE_SECONDS,
        "grace": GRACE - program.interrupts,
        "cwd": str(launch.worktree),
        "argv": list(made.argv),
        "env": {name: value for name, value in env.items() if name not in made.without},
        "label_env": {name: value for name, value in around.items() if name in _NEEDED or name.startswith("SWARM_")},
        "box": {"commits": []} if kept is not None else None,
        "network": kept and boxes.served(launch, kept.boxed, program.models(launch.options, around), deny),
        "prints": True,
        "deaf": True,
        "program": task.program,
        "role": task.role,
        "stamp": stamp_of(world.layout.root, task.id),
        "budget": _budget(bench, launch, source, kept),
        **unseen.streams(folder, folder, made, program.interrupts),
        "timeout": task.timeout,
        "after": chore(world, "settle", task.id),
    }


def _budget(bench: Bench, launch: Launch, source: Mapping[str, Any], kept: boxes.Kept | None) -> dict[str, Any]:
    """Return the limits that the supervisor holds; nobody is told that they come near."""
    world, written = bench.world, (launch.worktree, launch.run_dir)
    held = limits.limits_of(world, launch.options)
    disk = bounds.disk(world.environ, kept.boxed, kept.base, *written) if kept is not None else {}
    spec = limits.spec(world, "task", _SESSION, held, source, disk)
    return {name: value for name, value in spec.items() if name != "tell"}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
