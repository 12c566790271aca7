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
from swarm.agents.launching import unseen
from swarm.agents.launching.launch_files import GATE_SECONDS, pane_environment
from swarm.kit import files
from swarm.machine import processes
from swarm.machine.run_folder import runfiles
from swarm.programs import registry, turns
from swarm.programs.values import Launch
from swarm.project.chore import chore
from swarm.tasks import workspace
from swarm.tasks.bench import GRACE, program_of
from swarm.usage.spending.meter import source_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swarm.programs.values import LaunchSpec
    from swarm.project.world import World
    from swarm.roles.options import RoleOptions
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
    launch = Launch(
        agent=task.agent or "task",
        role=task.role,
        session="",
        worktree=workspace.folder_of(world.layout, task.session_id),
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
    return replace(launch, environ=_environment(world, launch, task, bench.store.environment(task.id)))


def _environment(world: World, launch: Launch, task: AgentTask, given: Mapping[str, str]) -> dict[str, str]:
    return {**pane_environment(world, launch, program_of(task)), **variables(world, task), **given}


def variables(world: World, task: AgentTask) -> dict[str, str]:
    """Return the variables of every program that works where a task does."""
    return {
        "GIT_CEILING_DIRECTORIES": str(world.layout.workspaces),  # the repository around it is not its own
        "SWARM_TASK": task.id,
        HOME: str(workspace.home_of(world.layout, task.session_id)),
    }


def write(bench: Bench, task: AgentTask, run: TaskRun, turn: turns.Turn, talk: dict[str, Any]) -> Path:
    """Write the folder of a run, with the launch file last; return the folder.

    Args:
        talk: see ``places.talk_of``.

    Raises:
        SwarmError: it cannot be started.
        OSError
    """
    workspace.prepare(bench.world.layout, task)
    run_dir = bench.store.run_folder(task.id, run.operation)
    launch = launch_of(bench, task, run_dir, turn)
    text = bench.role(task.role).instructions or (_TEXTS / (_HELD if turn.id else _ALONE)).read_text(encoding="utf-8")
    files.write_atomic(launch.role_file, _bytes(text), durable=False)
    files.write_atomic(launch.task_file, _bytes(turn.text), durable=False)
    made = program_of(task).launch(launch)
    for name, content in made.files.items():
        if (run_dir / name).parent != run_dir:
            files.make_private_dir((run_dir / name).parent)
        files.write_atomic(run_dir / name, _bytes(content), durable=False)
    spec = _spec(bench, task, run, launch, made) | {"talk": talk}
    files.write_atomic(run_dir / unseen.LAUNCH, json.dumps(spec, ensure_ascii=True).encode("ascii"), durable=False)
    return run_dir


def _spec(bench: Bench, task: AgentTask, run: TaskRun, launch: Launch, made: LaunchSpec) -> dict[str, Any]:
    """Return the launch file; ``supervisor/launcher.py`` lists its fields."""
    world, folder = bench.world, launch.run_dir
    env = {**launch.environ, **made.env}
    source = source_of(task.program, task.command, env, str(launch.worktree), task.created_ms)
    kept = str(workspace.home_of(world.layout, task.session_id))
    source |= {"conversation": task.conversation, "shared": True, "run_dir": str(folder), "kept": kept}
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
        "grace": GRACE - program_of(task).interrupts,
        "cwd": str(launch.worktree),
        "argv": list(made.argv),
        "env": {name: value for name, value in env.items() if name not in made.without},
        "label_env": {name: value for name, value in env.items() if name in _NEEDED or name.startswith("SWARM_")},
        "prints": True,
        "deaf": True,
        "program": task.program,
        "role": task.role,
        "stamp": stamp_of(world.layout.root, task.id),
        "budget": _budget(bench, launch.options, source),
        **unseen.streams(folder, folder, made, program_of(task).interrupts),
        "timeout": task.timeout,
        "after": chore(world, "settle", task.id),
    }


def _budget(bench: Bench, options: RoleOptions, source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits that the supervisor holds; nobody is told that they come near."""
    held = limits.limits_of(bench.world, options)
    spec = limits.spec(bench.world, "task", _SESSION, held, source)
    return {name: value for name, value in spec.items() if name != "tell"}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
