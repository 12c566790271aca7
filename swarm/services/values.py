"""Values: a served agent as a file defines it, and a component as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.roles.agent_file import AgentFile

AGENT = "agent"
#: What a component can be; see ``docs/service.md``.
KINDS = (AGENT, "director", "helper", "view")
#: States of a component that no server reports: no process, or one without an answer.
STOPPED, SILENT = "stopped", "not answering"


class ServedAgent(NamedTuple):
    """A served agent.

    Attributes:
        name: also the label of its tasks.
        says: what its file says, or the options of the command.
        source: the file; None: it has none.
    """

    name: str
    says: AgentFile
    source: Path | None = None


class Record(NamedTuple):
    """What a server wrote down of itself.

    Attributes:
        start, boot: when the process began, and since which start of the machine, so that no other is taken for it.
        port, host: where it listens.
        is_secured: it speaks TLS.
    """

    type: str
    name: str
    pid: int
    start: int
    boot: str
    port: int
    host: str = "127.0.0.1"
    is_secured: bool = False

    @property
    def url(self) -> str:
        """Where programs of this machine reach it."""
        host = "127.0.0.1" if self.host == "0.0.0.0" else self.host  # noqa: S104  # compared, not listened at
        return f"http{'s' if self.is_secured else ''}://{host}:{self.port}"


class Component(NamedTuple):
    """A component of a swarm directory as it is now.

    Attributes:
        state: as it says itself; ``stopped`` without a server, ``not answering`` where that is silent.
        pid: its server; 0 without one.
        url: where that listens; empty without one.
        says: its whole answer to ``/status``; of a stranger its ``interfaces`` alone.
        trouble: why it cannot be started: what is wrong with its file.
        is_ours: it is shown to belong to this swarm directory. Nothing is ever sent to others.
    """

    type: str
    name: str
    state: str
    pid: int = 0
    url: str = ""
    says: dict[str, Any] | None = None
    trouble: str = ""
    is_ours: bool = True

    def can(self, interface: str) -> bool:
        """Whether it has an interface: statusable, taskable, observable or configurable."""
        return interface in ((self.says or {}).get("interfaces") or ())


class ComponentHealth(NamedTuple):
    """How a component does, as repeated looks show it.

    Attributes:
        component: as it answered last.
        colour: green; yellow after one or two looks without an answer, red after three; grey is not ours.
        word: the same in words.
        age: seconds since its last answer.
    """

    component: Component
    colour: str
    word: str
    age: float

    @property
    def is_usable(self) -> bool:
        """Whether it can be given a task now."""
        one = self.component
        return self.colour == "green" and one.is_ours and one.can("taskable") and one.state == "idle"


class ComponentEnded(NamedTuple):
    """What came of the request to end a component.

    Attributes:
        done: it is ended, or ends by itself when its task is over.
        words: what it answered, or what happened.
    """

    type: str
    name: str
    done: bool
    words: str


class UnitFile(NamedTuple):
    """A file for the service manager of the user's.

    Attributes:
        path: the file.
        commands: to type next.
    """

    path: Path
    commands: tuple[str, ...]
