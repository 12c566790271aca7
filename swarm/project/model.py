"""Records of sessions and agents, and git's worktrees: frozen values that pass between the rooms."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


SCHEMA = 1
#: What ``Agent.tree`` can be: a worktree that swarm made for it, or a folder that is somebody else's.
OWN, SHARED = "own", "shared"
#: What ``Session.kind`` can be: a set that was started, or a child of an agent (or of the user, who is the root).
TEAM, SUBTREE, WORKER = "team", "subtree", "worker"


class Placed(NamedTuple):
    """A file that swarm put into a worktree; while unchanged it does not count as work.

    Attributes:
        path: relative to the worktree.
        sha256: of the bytes as written.
    """

    path: str
    sha256: str


class Boxed(NamedTuple):
    """How an agent's program is kept from the rest of the machine, as it was decided at its start.

    Attributes:
        reason: why there is no box although one was wanted; empty: there is one.
        read_only, read_write: paths of the machine that it shows beside the agent's own.
        network: the preset of hosts that it may reach, as `hosts` knows them.
        hosts: further hosts.
        private: networks that may be reached although they are not public.
        processes, memory, tmp: how much may be used up in it; 0 is no limit.
        disk: bytes that its worktree, home and git folder may take together; 0 is no limit.
        messages: how many its agent may send in an hour; 0 is no limit.
        denied: the deny rules of the agents in boxes above it, which hold for it as well.
    """

    reason: str = ""
    read_only: tuple[str, ...] = ()
    read_write: tuple[str, ...] = ()
    network: str = "none"
    hosts: tuple[str, ...] = ()
    private: tuple[str, ...] = ()
    processes: int = 0
    memory: int = 0
    tmp: int = 0
    disk: int = 0
    messages: int = 0
    denied: tuple[str, ...] = ()

    @property
    def by(self) -> str:
        """How it is called in reports: the program that makes it, or why there is none."""
        return f"noop ({self.reason})" if self.reason else "bubblewrap"


class Agent(NamedTuple):
    """One role at work in a session.

    Attributes:
        name: unique in its session, without case.
        role: whose instructions it follows; empty: a command without any.
        branch: without ``refs/heads/``; made by swarm. Empty: it has none.
        worktree: where it works, relative to the main checkout; absolute where that is outside of it.
        admin: name of git's own folder for the worktree, below ``worktrees/`` in the git directory.
        base: the commit it started from.
        created_ms: when, in milliseconds since 1970.
        placed: the files that swarm put into the tree.
        program: the program that swarm starts for it; empty for a worktree without one.
        command: the argv when the program is ``command``.
        conversation: id chosen before the first launch, by which a program can resume.
        operation: the operation that made the agent; no other agent of its name has it; empty in older records.
        ports: variables of its environment that are a port of its own.
        prepared: its worktree was set up as configuration and role say, and is torn down so.
        print_mode: its start requested print mode, over its role.
        may: its rights over agents that others started, as its role gave them at the start.
        task: its own task, beside the task of its session.
        overrides: the keys of its role, with their values as text, that its start changed.
        env: the variables of its environment that its start set.
        after: the agents that must have finished their tasks before it gets its own.
        args: further arguments of its program.
        tree: ``own``: its worktree is swarm's, and goes with it; ``shared``: it works in a folder that is not its
            own, such as the main checkout, of which swarm changes and removes nothing.
        box: its sandbox box; None: none was wanted.
    """

    name: str
    role: str
    branch: str
    worktree: str
    admin: str
    base: str
    created_ms: int
    placed: tuple[Placed, ...] = ()
    program: str = ""
    command: tuple[str, ...] = ()
    conversation: str = ""
    operation: str = ""
    ports: tuple[tuple[str, int], ...] = ()
    prepared: bool = False
    print_mode: bool = False
    may: tuple[str, ...] = ()
    task: str = ""
    overrides: tuple[tuple[str, str], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    after: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    tree: str = OWN
    box: Boxed | None = None

    @property
    def shared(self) -> bool:
        """Whether it works in a folder that is not its own."""
        return self.tree == SHARED

    @property
    def is_boxed(self) -> bool:
        """Whether its program runs in a box."""
        return self.box is not None and not self.box.reason


class Parent(NamedTuple):
    """The agent that started a session, as the machine showed it at that moment.

    Attributes:
        generation: the run of its name; a later agent of the same name is another agent.
    """

    agent: str
    session: str
    generation: str

    @property
    def address(self) -> str:
        """How messages call it."""
        return f"{self.agent}@{self.session}"


class Session(NamedTuple):
    """One named run of a set of agents; the record whose existence means that the set exists.

    Attributes:
        name: as the user typed it.
        operations: the operations that wrote this record, oldest first: the one that made the session, then those
            that added or restored agents. The first tells generations of one name apart.
        created_ms: when, in milliseconds since 1970.
        base_ref: the starting point, as the user named it.
        base: the commit it was when the set was made.
        agents: in the order asked for.
        task: the goal that was handed to them.
        workflow: which kind of work it is; empty without one.
        beside: the agent (``name@session``) in whose window its panes are; empty: they have windows of their own.
        parent: the agent whose program started it; None: a person did.
        swarm_dir: the swarm directory with which it was made; empty in older records.
        pod: the pod that it belongs to; empty: none.
        template: the pod template that it was made from; its roles come first from ``pods/roles``.
        kind: ``team``: a start made it; ``subtree``: the spawn of a lead with a branch of its own; ``worker``: the
            spawn of a helper in the folder of its parent.
        depth: how deep in the tree its agents are; those of the root are at 1. 0: as its parent says.
        ancestors: those above its parent, the nearest first.
    """

    name: str
    operations: tuple[str, ...]
    created_ms: int
    base_ref: str
    base: str
    agents: tuple[Agent, ...]
    task: str = ""
    workflow: str = ""
    beside: str = ""
    parent: Parent | None = None
    swarm_dir: str = ""
    pod: str = ""
    template: str = ""
    kind: str = TEAM
    depth: int = 0
    ancestors: tuple[Parent, ...] = ()

    @property
    def is_child(self) -> bool:
        """Whether a spawn made it: whoever did that is to learn its outcome."""
        return self.kind != TEAM

    @property
    def generation(self) -> str:
        """The operation that made the session."""
        return self.operations[0]

    def generation_of(self, agent: Agent) -> str:
        """Return which run of its name an agent is: messages to an earlier one never reach it."""
        return agent.operation or self.generation

    def agent(self, name: str) -> Agent | None:
        """Return the agent of this name, compared without case."""
        wanted = name.casefold()
        return next((agent for agent in self.agents if agent.name.casefold() == wanted), None)


def whole_task(common: str, own: str) -> str:
    """Return an agent's whole task: that of the team, then its own."""
    return f"{common.rstrip()}\n\n{own}" if common.strip() and own else own or common


class WorktreeEntry(NamedTuple):
    """One entry of ``git worktree list``."""

    path: Path
    head: str
    branch: str
    detached: bool = False
    bare: bool = False
    locked: bool = False
    lock_reason: str = ""
    prunable: bool = False


class AdminDir(NamedTuple):
    """git's folder for one worktree, as its files say; an empty field is a file that is not there."""

    name: str
    path: Path
    gitdir: str
    commondir: str
    head: str
    locked: str | None

    @property
    def says_head(self) -> bool:
        """Whether it names the checkout: a branch, or a commit."""
        return self.head.startswith("ref: ") or (self.head.isalnum() and len(self.head) in (40, 64))
