"""What a box is made of, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The home of whoever works in a box.
HOME = "/home/agent"
#: Where the repository's object stores are in a box. No agent can write here, nor exchange a folder above it.
STORES = "/run/swarm/objects"
#: Where the sockets are by which an agent in a box reaches its supervisor, and its supervisor's helpers.
IO = "/run/swarm/io"
#: So many processes there may be at once in a box, if nothing else is said.
PROCESSES = 4096


class Mount(NamedTuple):
    """One thing that a box shows.

    Attributes:
        option: bubblewrap's, such as ``--ro-bind``.
        source: on the machine; of a link what it says.
        target: in the box.
    """

    option: str
    source: str
    target: str


class PrivateGit(NamedTuple):
    """The private git folder of an agent, which a box shows in place of the repository's.

    Attributes:
        common: the repository's git folder; so it is called in the box, too.
        folder: the private one.
        stores: the folders of the repository's objects, which the box shows read-only.
        hidden: files that say where a store has further objects; the box shows them empty.
        empty: an empty file.
    """

    common: str
    folder: str
    stores: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Box:
    """What one box shows, and how much may be used up in it.

    Attributes:
        tree: the folder to work in; writable.
        home: the private home, on the machine; writable.
        system: the machine's programs and libraries (``machine.system``).
        git: of a worktree: its private git folder.
        cwd: where to begin; empty: in *tree*.
        io: the folder, on the machine, of the sockets that its agent may use; empty: it may use none.
        read_only, read_write: further paths, at the same place as outside.
        covers: further options of bubblewrap, which hide or fix parts of what it shows (`bounds/denied.py`).
        env: the whole environment, but for ``HOME`` and what `passes` names.
        passes: variables that a box in a pane takes from its pane.
        tmp, shm: bytes that fit into ``/tmp`` and ``/dev/shm``.
        ports: on its loopback, at which the supervisor's proxy serves; none: the box has no network.
        memory: bytes of address space that each process may have; 0 is no limit.
        file: bytes that one file may have; 0 is no limit.
        processes: how many there may be at once; the kernel does not count those of root.
    """

    tree: str
    home: str
    system: tuple[Mount, ...]
    git: PrivateGit | None = None
    cwd: str = ""
    io: str = ""
    read_only: tuple[str, ...] = ()
    read_write: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    passes: tuple[str, ...] = ()
    tmp: int = 1 << 30
    shm: int = 256 << 20
    ports: tuple[int, ...] = ()
    memory: int = 0
    file: int = 0
    processes: int = PROCESSES
