"""Read the definitions of bridges: a file each in ``bridges/`` of the user's own swarm directory.

No file of a repository defines a bridge: agents write there, and a bridge runs a command of the user's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from swarm.bridges import place
from swarm.bridges.errors import BridgeNotFound
from swarm.kit import files, yaml
from swarm.kit.errors import raise_all
from swarm.kit.forms import Field, choice, filled, listing, mapping, refuse, text
from swarm.project import names

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
        example = places[0] / f"{name}.yaml" if places else "~/.swarm/bridges"
        raise BridgeNotFound(f"there is no bridge {name}", hint=f"defined are: {there}; write {example}")
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
    return Definition(path.stem, source=path, **found)


def _shipped(module: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(Path(__file__).with_name(f"{module}.py")))


def _bridge(**found: Any) -> dict[str, Any]:
    kind, command = found.pop("kind", "command"), found.pop("command", ())
    url, secret, form = (found.pop(key, "") for key in ("url_env", "secret_env", "format"))
    if (kind == "command") != bool(command):
        refuse("is needed" if kind == "command" else f"a bridge of kind {kind} has one of its own", key="command")
    if kind != "webhook" and (url or secret or form):
        refuse("is for the kind webhook", key="url_env" if url else "secret_env" if secret else "format")
    if kind == "webhook" and not url:
        refuse("a webhook needs the name of the variable that holds its address", key="url_env")
    settings = [("SWARM_URL_ENV", url), ("SWARM_SECRET_ENV", secret), ("SWARM_FORMAT", form)]
    passes = (*found.pop("env", ()), *(name for name in (url, secret) if name))
    return {
        **found,
        "command": tuple(command) or _shipped(kind),
        "passes": passes,
        "settings": tuple(pair for pair in settings if pair[1]),
    }


_WORDS = listing(text(filled, "word", least=1), "list of words", distinct=False)
_VARIABLE = text(filled, "variable", pattern="^[A-Za-z_][A-Za-z0-9_]*$")
BRIDGE = mapping(
    {
        "kind": Field(choice("command", "desktop", "webhook"), "A command of yours, or one that ships with swarm."),
        "command": Field(_WORDS, "The command and its arguments; there is no shell."),
        "to": Field(text(filled, "agent"), "The agent for messages that name none; default: the last sender."),
        "may": Field(listing(choice("approve"), "list of rights"), "What it may do beside sending messages."),
        "env": Field(listing(_VARIABLE, "list of variables"), "Variables of your environment that the command gets."),
        "url_env": Field(_VARIABLE, "Of a webhook: the variable that holds the address."),
        "secret_env": Field(_VARIABLE, "Of a webhook: the variable that holds the secret for signatures."),
        "format": Field(choice("json", "text", "content"), "Of a webhook: the whole message, or one text for a chat."),
    },
    _bridge,
    "bridge",
)
