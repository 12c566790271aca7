"""Write a new file that defines a bridge."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from swarm.bridges import place
from swarm.bridges.errors import BridgeExists
from swarm.kit import files
from swarm.kit.errors import UsageProblem
from swarm.project import names
from swarm.project.errors import SwarmDirExists
from swarm.project.swarm_dir import dirs
from swarm.roles import schemas

if TYPE_CHECKING:
    from pathlib import Path

_TEXTS = {
    "desktop": "kind: desktop\n",
    "webhook": """\
kind: webhook
url_env: CHAT_URL           # the variable that holds the address
# secret_env: CHAT_SECRET   # the variable that holds the secret for signatures
format: text                # json: the whole message; text or content: one text, as chat services take it
""",
    "command": """\
command: [python3, my_bridge.py]   # reads and writes lines of JSON; there is no shell
# env: [CHAT_TOKEN]                # variables of your environment that it gets
# to: lead@feature-x               # the agent for messages that name none; default: the last sender
# may: [approve]                   # it may answer requests of agents
""",
}
KINDS = tuple(_TEXTS)


def write(name: str, kind: str, places: tuple[Path, ...]) -> Path:
    """Write a definition into the user's swarm directory, which it makes if there is none; return the file.

    Raises:
        InvalidName, ReservedName, UsageProblem: it cannot be called so, there is no such kind, or no place.
        BridgeExists: there is one of this name.
    """
    names.check_name("bridge", name)
    if kind not in _TEXTS:
        raise UsageProblem(
            f"cannot write bridge {name}: there is no kind {kind[:40]!a}", hint=f"one of {', '.join(KINDS)}"
        )
    if not places:
        raise UsageProblem(
            f"cannot write bridge {name}: you have no swarm directory outside of the repository",
            hint="set HOME, or SWARM_DIR to such a directory",
        )
    there = next((path for one, path in place.defined(places).items() if one.casefold() == name.casefold()), None)
    path = places[0] / f"{name}.yaml"
    if there is not None or files.exists(path):
        raise BridgeExists(f"cannot write bridge {name}: {there or path} is there already")
    base = path.parent.parent
    with contextlib.suppress(SwarmDirExists):
        dirs.init_dir(base)
    schemas.place(base)
    files.make_private_dir(path.parent)
    try:
        files.write_new(path, (schemas.modeline("bridge", path, base) + _TEXTS[kind]).encode(), 0o600)
    except FileExistsError:
        raise BridgeExists(f"cannot write bridge {name}: {path} is there already") from None
    return path
