"""Read the definitions of bridges: a file each in ``bridges/`` of the user's own swarm directory.

No file of a repository defines a bridge: agents write there, and a bridge runs a command of the user's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swarm.bridges import place
from swarm.bridges.errors import BridgeNotFound
from swarm.kit import files, yaml
from swarm.kit.errors import raise_all
from swarm.project import names
from swarm.roles.bridge_file import BRIDGE

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What a command gets of the environment without asking.
_PASSED = ("PATH", "HOME", "LANG", "USER", "TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR")
_DESKTOP = ("DBUS_SESSION_BUS_ADDRESS",)


class Definition(NamedTuple):
    """One bridge as the user defined it.

    Attributes:
        command: its argv.
        to: the agent that gets messages without a recipient; empty: the sender of the last message.
        may: beside sending messages: ``approve``.
        passes: variables of the environment that the command gets.
        settings: further variables.
    """

    name: str
    command: tuple[str, ...]
    source: Path
    to: str = ""
    may: tuple[str, ...] = ()
    passes: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    def environment(self, environ: Mapping[str, str], root: Path) -> dict[str, str]:
        """Return the variables of the command."""
        wanted = {*_PASSED, *_DESKTOP, *self.passes}
        kept = {key: value for key, value in environ.items() if key in wanted or key.startswith("LC_")}
        return {**kept, **dict(self.settings), "SWARM_BRIDGE": self.name, "SWARM_REPOSITORY": str(root)}


def find(name: str, places: tuple[Path, ...]) -> Definition:
    """Read one definition.

    Raises:
        BridgeNotFound
        ConfigProblem: the file is wrong; line and column are named.
    """
    names.check_name("bridge", name)
    path = place.defined(places).get(name)
    if path is None:
        there = ", ".join(place.defined(places)) or "none"
        raise BridgeNotFound(f"there is no bridge {name}", hint=f"defined are: {there}; swarm bridge init {name}")
    return read(path)


def read(path: Path) -> Definition:
    """Read a file."""
    files.refuse_foreign(path.parent)
    table = yaml.load(path)
    try:
        found = BRIDGE.read(table.plain())
    except ValueError as error:
        raise_all(f"bridge {path.stem} cannot be used", table.problems(error))
        raise AssertionError from error  # a ValueError always names a problem
    kind, command = found.pop("kind"), found.pop("command")
    return Definition(path.stem, tuple(command) or _shipped(kind), path, **found)


def _shipped(module: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name(f"{module}.py")))
