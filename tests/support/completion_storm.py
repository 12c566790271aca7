"""A storm over completions: agents report their tasks while their programs exit and everything is killed at any moment.

Each task has a program, a supervisor that notices its end and reports it, the agent's own word, and somebody else who
looks for ends.  All of these are processes of their own, and any of them is killed.  Afterwards the next command looks
once, and an agent whose word was not answered may say it again.  Then each task has one completion in the queue of its
parent: none is lost, none is there twice.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.agents import completions, endings
from swarm.bus.filebus import FileBus
from swarm.machine.processes import boot_id, start_of
from swarm.machine.run_folder import runfiles
from swarm.project.model import SHARED, WORKER, Agent, Parent, Session
from swarm.testing.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Callable

    from swarm.project.world import World

#: The longest that anything of a task takes by itself.
_LONG = 0.04
_AT_ONCE = 6


class Found(NamedTuple):
    """What came of a storm.

    Attributes:
        wrong: words that were answered, and that the last statement does not say.
    """

    tasks: int
    completions: int
    lost: int
    doubled: int
    wrong: int
    killed: int
    answered: int
    seconds: float

    @property
    def good(self) -> bool:
        """Whether each task has one completion."""
        return (self.lost, self.doubled, self.wrong, self.completions) == (0, 0, 0, self.tasks)


class _Task:
    """One task: a session of one worker, whose parent is the lead."""

    def __init__(self, lab: Lab, number: int, seed: int, lead: Parent) -> None:
        self.lab, self.dice = lab, random.Random(f"{seed} {number}")
        name = f"t{number}"
        agent = Agent("w", "", "", str(lab.root), "", "", 1, program="command", command=("x",), tree=SHARED)
        self.session = Session(name, (f"op-{name}",), 1, "main", "", (agent,), parent=lead, kind=WORKER, depth=2)
        self.agent = agent
        self.killed = 0
        self.answer, self.kills = (Path(lab.env["HOME"], f"{word}-{name}") for word in ("answer", "kills"))

    @property
    def world(self) -> World:
        return self.lab.swarm._world

    def prepare(self) -> None:
        """Write the record, as a spawn does."""
        world = self.world
        world.sessions.write(self.session)
        self.run = world.layout.run_folder(self.session.name, "w")
        self.run.mkdir(parents=True, mode=0o700)

    def storm(self) -> None:
        """Let everything happen at once, and wait until it is over."""
        dice = self.dice
        program = self._program()
        others = [_fork(self._say, dice.random()), *(_fork(self._look, dice.random()) for _ in range(2))]
        victims = [one for one in (*others, *program) if dice.random() < 0.35]
        for pid in victims:
            time.sleep(dice.random() * _LONG / 2)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed += 1
        for pid in others:
            os.waitpid(pid, 0)
        os.waitpid(program[0], 0)
        while start_of(program[1]) is not None:
            time.sleep(0.002)

    def _program(self) -> tuple[int, int]:
        """Start a supervisor with a program; return both."""
        there, here = os.pipe()
        supervisor = os.fork()
        if supervisor == 0:
            _alone(lambda: self._supervise(here))
        os.close(here)
        with os.fdopen(there, "rb") as pipe:
            program = int(pipe.read() or b"0")
        return supervisor, program

    def _supervise(self, here: int) -> None:
        dice = self.dice
        code, wait = dice.choice([0, 1]), dice.random() * _LONG
        gate, known = os.pipe()
        program = os.fork()
        if program == 0:
            os.close(here)
            os.read(gate, 1)  # it begins when it is written down, as with the real supervisor
            time.sleep(wait)
            os._exit(code)
        note: dict[str, object] = {
            "supervisor_pid": os.getpid(),
            "supervisor_start": start_of(os.getpid()),
            "pid": program,
        }
        note |= {"pid_start": start_of(program), "boot_id": boot_id(), "started_ms": time.time_ns() // 1_000_000}
        runfiles.write(str(self.run), runfiles.PROCESS, {**note, "argv0": "x", "operation": self.session.generation})
        os.write(known, b"x")
        os.write(here, str(program).encode())
        os.close(here)
        _, status = os.waitpid(program, 0)
        ended: dict[str, object] = {
            "pid": program,
            "pid_start": note["pid_start"],
            "boot_id": boot_id(),
            "code": None,
            "signal": None,
        }
        how: dict[str, object] = (
            {"signal": os.WTERMSIG(status)} if os.WIFSIGNALED(status) else {"code": os.WEXITSTATUS(status)}
        )
        cause = "signal" if os.WIFSIGNALED(status) else "exited"
        note = {**ended, **how, "cause": cause, "ended_ms": time.time_ns() // 1_000_000, "operation": ""}
        runfiles.write(str(self.run), runfiles.EXIT, note)
        self._report()

    def _look(self, when: float) -> None:
        """Look for ends, as any command does."""
        time.sleep(when * _LONG * 1.5)
        self._report()

    def _report(self) -> None:
        world = self.world
        session = world.sessions.get(self.session.name)
        if session is not None:
            endings.report(world, [session])

    def _say(self, when: float) -> None:
        """Say the agent's own word; that it was answered is written down."""
        time.sleep(when * _LONG)
        completions.say(self.world, self.session, self.agent, "success", f"done {self.session.name}")
        self.answer.touch()

    def settle(self) -> None:
        """Do as the next command, and as an agent does whose call was cut off, or gave up."""
        if not self.answer.exists() and self.dice.random() < 0.5:
            self._say(0.0)
        self._report()


def _fork(act: Callable[[float], None], when: float) -> int:
    pid = os.fork()
    if pid == 0:
        _alone(lambda: act(when))
    return pid


def _alone(act: Callable[[], None]) -> None:
    """Act in a process that ends with it, whatever happens."""
    try:
        act()
    except BaseException as error:  # noqa: BLE001  # the judge sees what is missing
        sys.stderr.write(f"{error!r}\n")
    finally:
        os._exit(0)


def storm(folder: Path, tasks: int, seed: int) -> Found:
    """Have a storm, and judge it."""
    began = time.monotonic()
    lab = Lab(folder)
    lead = Agent("lead", "", "", str(lab.root), "", "", 1, program="command", command=("x",), tree=SHARED)
    world = lab.swarm._world
    lab.swarm.create("made", ["developer"])  # so that swarm's folders are there
    world.sessions.write(Session("fx", ("op-fx",), 1, "main", "", (lead,)))
    every = [_Task(lab, number, seed, Parent("lead", "fx", "op-fx")) for number in range(tasks)]
    # Processes of one thread each: what is forked beside another thread may hold what that one held.
    doers = [_fork(lambda first: _several(every[int(first) :: _AT_ONCE]), float(at)) for at in range(_AT_ONCE)]
    for pid in doers:
        os.waitpid(pid, 0)
    return _judge(lab, every, time.monotonic() - began)


def _several(tasks: list[_Task]) -> None:
    for task in tasks:
        task.prepare()
        task.storm()
        task.settle()
        task.kills.write_text(str(task.killed))


def _judge(lab: Lab, every: list[_Task], seconds: float) -> Found:
    bus = FileBus(lab.root / ".swarm" / "messages")
    try:
        events = [one.message for one in bus.history("events.lead-fx", 10 * len(every) + 10)]
    finally:
        bus.close()
    told = Counter(one.metadata["session"] for one in events if one.type == "worker-complete")
    names = [task.session.name for task in every]
    said = {one.metadata["session"] for one in events if one.metadata.get("by") == "word"}
    wrong = [task for task in every if task.answer.exists() and task.session.name not in said]
    return Found(
        len(every),
        sum(told.values()),
        sum(told[name] == 0 for name in names),
        sum(told[name] > 1 for name in names),
        len(wrong),
        sum(int(task.kills.read_text()) for task in every if task.kills.exists()),
        sum(task.answer.exists() for task in every),
        seconds,
    )


def main() -> int:
    """Have a storm of so many tasks, and print the verdict."""
    parser = argparse.ArgumentParser(prog="scripts/completions", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    wish = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="swarm-completions-"))
    try:
        found = storm(folder, wish.tasks, wish.seed)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    facts = ", ".join(f"{name} {value:.0f}" for name, value in found._asdict().items())
    sys.stdout.write(f"{'good' if found.good else 'BAD'}: {facts}\n")
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
