"""Values of the tree: agents in it, and what its verbs answer with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

    from swarm.agents.event_values import AgentEvent


class Completion(NamedTuple):
    """What came of the task of a child.

    Attributes:
        id: of its event.
        status: ``success``, ``failure`` or ``stopped``.
        message: the words of the agent, else the cause.
        by: who noticed: ``word``, ``exit``, ``budget``, ``stop`` or ``lost``.
        head: the commit that it was at.
        ahead: how many commits it had made since its spawn; None when git could not tell.
        dirty: whether its folder had changes that were not committed; None as above.
        corrected: whether the agent said otherwise after the first completion.
    """

    id: str
    status: str
    message: str
    by: str
    time_ms: int
    head: str = ""
    ahead: int | None = None
    dirty: bool | None = None
    corrected: bool = False


class TreeAgent(NamedTuple):
    """One agent in the tree.

    Attributes:
        address: ``name@session``; a folder without a record has none.
        kind: ``team``, ``subtree``, ``worker``, or ``no record`` of a folder that no record names.
        parent: the address of its parent; ``user`` for those that the user spawned, empty for the root.
        branch: its own; of a worker that of its parent.
        path: the folder where it works.
        depth: 1 is the root.
        state: as in ``swarm status``.
        detail, since_ms: more about that state, and since when.
        unread: messages that wait for it; None: not counted.
        ahead, dirty: commits since its spawn, and whether changes are not committed; None: not looked at.
        completion: what came of its task; None: it is open.
        orphan: the parent that it had, when that is gone or does not run.
        level: how far below the top of this list it stands.
    """

    address: str
    name: str
    session: str
    kind: str
    role: str
    program: str
    parent: str
    branch: str
    path: Path
    depth: int
    state: str
    detail: str = ""
    since_ms: int = 0
    unread: int | None = None
    ahead: int | None = None
    dirty: bool | None = None
    completion: Completion | None = None
    orphan: str = ""
    level: int = 0
    task: str = ""


class Spawned(NamedTuple):
    """The answer of a spawn.

    Attributes:
        agent: the child.
        existing: it was there already, with this very task, and lives.
        base: the commit that it starts from.
        budget: what it may use up, in words, drawn from what its parent had left; empty: its parent has no limits.
        warnings: for people.
        steps: what was done, or with a dry run would be.
    """

    agent: TreeAgent
    existing: bool = False
    base: str = ""
    budget: str = ""
    warnings: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    dry_run: bool = False


class Notified(NamedTuple):
    """The answer to a completion: it is on the disk, and its parent is told.

    Attributes:
        ack: always true.
        event: the id of the event.
        parent: who is told.
        corrects: the id of the completion that this corrects; empty: it is the completion.
        head, ahead, dirty: the proof that goes with it.
    """

    ack: bool
    event: str
    parent: str
    status: str
    corrects: str = ""
    head: str = ""
    ahead: int | None = None
    dirty: bool | None = None


class Awaited(NamedTuple):
    """The answer of a wait.

    Attributes:
        event: None: nothing happened in time.
        cursor: hand it to the next wait as ``after``; that acknowledges the event.
        more: how many further events wait behind this one.
    """

    event: AgentEvent | None
    cursor: str
    more: int = 0


class FoldedNode(NamedTuple):
    """What came of one subtree in the merge of a tree.

    Attributes:
        address: of its lead.
        branch, into: what was to be merged, and where.
        merged: its work is on that branch.
        cleaned: it is removed, because its work is proved to have landed.
        commits: how many went in.
        tip: of the branch after it.
        why: why it was not merged, or not removed.
        code, hint: of the error behind that.
    """

    address: str
    session: str
    branch: str
    into: str
    merged: bool = False
    cleaned: bool = False
    commits: int = 0
    tip: str = ""
    why: str = ""
    code: str = ""
    hint: str = ""
