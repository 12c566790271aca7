"""The contract of an agent program, with the answers of one about which nothing better is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from swarm.machine import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from swarm.kit.errors import SwarmError
    from swarm.permissions.rules import Rules
    from swarm.permissions.translation import Gaps
    from swarm.programs.model_access import Service
    from swarm.programs.reading.screen_rules import Rules as ScreenRules
    from swarm.programs.turns import Said
    from swarm.programs.values import Launch, LaunchSpec, Login
    from swarm.project.config.sections import Telemetry
    from swarm.roles.options import RoleOptions


#: What can hold a deny rule outside of a box.
GUARD, OWN = "guard", "program"
#: Keys of a role's rules, and limits on what is counted from the record of a program.
RULES = frozenset({"permissions.allow", "permissions.deny"})
COUNTED = frozenset({"limits.tokens", "limits.cost"})


class Program:
    """A program that plays an agent.

    Attributes:
        name: what the user types.
        prints: it has a print mode: it can do one task without a dialog, and end.
        takes_texts: it may have a way to be given a text past its pane: ``hand_over``.
        background: variables that only its sessions in the background have in their environment.
        holds: what holds a role's deny rules with it: swarm's `GUARD`, its own rules (`OWN`), both, or nothing.
        obeys: the keys of a role that it obeys. A heartbeat needs a program that can be seen idle.
        title: what its makers call it.
        turns: it can do one turn without a terminal: ``launch`` with a ``turn`` says how.
        speaks: it then writes a result; without one the turn did not end well.
        speech: the module by which it is told texts, and asks, while its turn lasts; empty: it reads its prompt only.
        interrupts: seconds that it needs, when it is to be ended, to say what it has used so far.
        tells_version: ``--version`` makes it tell its version, and end: it can be started.
        token_variable: by which it takes a login token.
        acts: files of a project from which it takes programs or permissions, as patterns of ``merging/acting.py``.
    """

    name: str
    prints: bool = False
    takes_texts: bool = False
    background: tuple[str, ...] = ()
    obeys: frozenset[str] = frozenset()
    holds: tuple[str, ...] = ()
    title: str = ""
    turns: bool = False
    speaks: bool = True
    speech: str = ""
    interrupts: float = 0.0
    tells_version: bool = False
    token_variable: str = ""
    acts: tuple[str, ...] = ()

    def has_model(self, model: str) -> bool:  # most know models by names that others give out
        """Whether it can have a model of this name, as far as swarm knows."""
        return True

    def executable(self, environ: Mapping[str, str]) -> str:
        """Return the command that starts it, as a shell would find it."""
        raise NotImplementedError

    def launch(self, launch: Launch) -> LaunchSpec:
        """Return how it is started for one agent."""
        raise NotImplementedError

    def said(self, out: Path) -> Said:
        """Return what it said of a turn without a terminal: all that it wrote, without a verdict."""
        from swarm.programs import turns

        return turns.Said(text=turns.tail_text(out))

    def knows(self, launch: Launch) -> bool:
        """Whether its own record has the conversation, so that it can be taken up: none."""
        return False

    def last_conversation(self, launch: Launch) -> str:
        """Return the conversation that it had last where it worked; empty: that of its start."""
        return ""

    def heard(self, launch: Launch) -> frozenset[str]:
        """Return the ids of the texts that its own record of the conversation has; of one with a ``speech`` alone."""
        return frozenset()

    def check(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Return the parts of a role that the program would refuse: none."""
        return iter(())

    def settings_problems(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Say which of a role's ``settings``, the program's own, it would refuse: none."""
        return iter(())

    def denied(self, options: RoleOptions) -> tuple[str, ...]:
        """Return a role's deny rules, those in its settings for the program included."""
        return tuple(options.permissions.deny)

    def gaps(self, rules: Rules) -> Gaps | None:
        """Return the rules of a role that it enforces only in part, or not at all; None: it has no rules of its own."""
        return None

    def check_project(
        self, options: RoleOptions, environ: Mapping[str, str], main: Path, read: Callable[[str], bytes | None]
    ) -> Iterator[SwarmError]:
        """Yield the questions about a project that the program would ask at each start: none.

        Args:
            main: the main checkout.
            read: returns a file as the worktrees will have it, by its path from their top; None for what is not there.
        """
        return iter(())

    def home(self, options: RoleOptions, environ: Mapping[str, str]) -> str:
        """Return the file that must know a folder before the program is started there: none."""
        return ""

    def preapprove(self, home: str, main: Path, trees: Sequence[Path], environ: Mapping[str, str]) -> None:
        """Answer the program's questions at its first start in a folder in advance."""

    def withdraw(self, home: str, trees: Sequence[Path]) -> None:
        """Take that back for folders that are gone."""

    def forget(self, run_dir: Path, tree: Path) -> None:
        """Forget the answers for one agent, from the note made at its start."""

    def screens(self) -> ScreenRules | None:
        """Return the rules by which its state is read from its pane, from ``data/screens/``; None: it has none."""
        from swarm.programs.reading import screens

        return screens.find(self.name)

    def asking(self, run_dir: Path, pid: int, start: int) -> Callable[[], bool]:
        """Return a check whether a question of the program still takes an answer: while it lives."""
        return lambda: processes.is_alive(pid, start)

    def hand_over(self, run_dir: Path, pid: int, text: str) -> str:
        """Put a text into the conversation of the running program, past its pane; return how: it has no such way.

        Args:
            pid: of the program.
        """
        return ""

    def services(self, environ: Mapping[str, str]) -> list[Path]:
        """Return the files in which its services, which serve more than one agent, name their processes: none."""
        return []

    def talks(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables by which a command names its conversation, with the pattern of its record: none."""
        return {}

    def left_behind(self, run_dir: Path, worktree: Path) -> list[str]:
        """Return in words what a service of its own has left behind of an agent's conversation: nothing."""
        return []

    def login(self, environ: Mapping[str, str]) -> Login | None:
        """Return whether the program has an account to use: it needs none."""
        return None

    def models(self, options: RoleOptions, environ: Mapping[str, str]) -> tuple[Service, ...]:
        """Return the models that it uses, with the user's credentials, for the door of a box: none."""
        return ()

    def at_door(self, door: str) -> Mapping[str, str]:
        """Return the variables by which it finds its models in a box: none.

        Args:
            door: the address of the door to them.
        """
        return {}

    def telemetry(self, wish: Telemetry) -> Mapping[str, str]:
        """Return the variables for measurements that are not OpenTelemetry's own: none."""
        return {}


def seen_login(environ: Mapping[str, str], variables: Iterable[str], files: Iterable[Path]) -> str:
    """Return the first set variable or existing file; empty without one."""
    found = [name for name in variables if environ.get(name)]
    return (found or [str(path) for path in files if path.is_file()] or [""])[0]


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the home folder that a program with this environment has."""
    return Path(environ.get("HOME") or "~").expanduser()
