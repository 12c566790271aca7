"""Defaults for a program about which nothing better is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from swarm.kit.errors import SwarmError
    from swarm.programs.reading.screen_rules import Rules
    from swarm.programs.values import Login
    from swarm.project.config.sections import Telemetry
    from swarm.roles.options import RoleOptions


class Program:
    """The answers that most programs share; see ``ports.AgentProgram``."""

    prints = False

    def check(self, options: RoleOptions, environ: Mapping[str, str]) -> Iterator[SwarmError]:
        """Say what of a role the program would refuse: nothing."""
        return iter(())

    def check_project(
        self, options: RoleOptions, environ: Mapping[str, str], main: Path, read: Callable[[str], bytes | None]
    ) -> Iterator[SwarmError]:
        """Say what of a project the program would ask about at each start, whatever it was told: nothing.

        Args:
            main: the main checkout.
            read: returns a file as the worktrees will have it, by its path from their top; None for what is not there.
        """
        return iter(())

    def home(self, options: RoleOptions, environ: Mapping[str, str]) -> str:
        """Return the file that must know a folder before the program is started there: none."""
        return ""

    def introduce(self, home: str, main: Path, trees: Sequence[Path], environ: Mapping[str, str]) -> None:
        """Answer beforehand what the program asks at its first start in a folder."""

    def withdraw(self, home: str, trees: Sequence[Path]) -> None:
        """Take that back for folders that are gone."""

    def forget(self, run_dir: Path, tree: Path) -> None:
        """The same for one agent, from what was written down at its start."""

    def screens(self) -> Rules | None:
        """Return the rules by which its state is read from its pane: none."""
        return None

    def login(self, environ: Mapping[str, str]) -> Login | None:
        """Return whether the program has an account to use: it needs none."""
        return None

    def telemetry(self, wish: Telemetry) -> Mapping[str, str]:
        """Return what it must be told beside OpenTelemetry's own variables to send measurements: nothing."""
        return {}


def seen_login(environ: Mapping[str, str], variables: Iterable[str], files: Iterable[Path]) -> str:
    """Return the first of these that is there: a variable that is set, or a file; empty when none is."""
    found = [name for name in variables if environ.get(name)]
    return (found or [str(path) for path in files if path.is_file()] or [""])[0]


def home_of(environ: Mapping[str, str]) -> Path:
    """Return the home folder that a program with this environment has."""
    return Path(environ.get("HOME") or "~").expanduser()
