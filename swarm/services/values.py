"""Values: a served agent as a file defines it, and a component as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.roles.agent_file import AgentFile

AGENT = "agent"
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
        port: on 127.0.0.1.
    """

    type: str
    name: str
    pid: int
    start: int
    boot: str
    port: int

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"


class Component(NamedTuple):
    """A component of a swarm directory as it is now.

    Attributes:
        state: as it says itself; ``stopped`` without a server, ``not answering`` where that is silent.
        pid: its server; 0 without one.
        url: where that listens; empty without one.
        says: its whole answer to ``/status``.
        trouble: why it cannot be started: what is wrong with its file.
    """

    type: str
    name: str
    state: str
    pid: int = 0
    url: str = ""
    says: dict[str, Any] | None = None
    trouble: str = ""


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
