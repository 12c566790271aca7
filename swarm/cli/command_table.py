"""The table of commands: module, summary and group of each.

The help is made from this table, and a command's module is imported only when the command runs.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """One command.

    Attributes:
        module: in ``swarm.cli.commands``; its ``add_to`` adds the command to a tree.
        summary: its line in the help, the first line of the command's own help.
    """

    module: str
    summary: str


#: What most users need; the help explains each on a line.
EVERYDAY = {
    "start": Entry("start", "Start a team: a worktree, a pane and an agent for each role"),
    "status": Entry("status", "Show the state of every agent"),
    "attach": Entry("start", "Show the panes in this terminal"),
    "send": Entry("send", "Send a message to agents or to the user"),
    "approvals": Entry("approvals", "List permission requests and questions"),
    "diff": Entry("diff", "Show an agent's changes since its base commit"),
    "merge": Entry("merge", "Merge a session's agents into a branch, all or none"),
    "stop": Entry("start", "Stop agents; keep worktrees, branches and output"),
    "cleanup": Entry("cleanup", "Remove sessions; unmerged work is saved first"),
}

#: All others, in groups that the help lists by name.
GROUPS = {
    "Agents": {
        "run": Entry("run", "Run one agent, or any command, in a pane of its own"),
        "list": Entry("status", "List the sessions, a line each"),
        "why": Entry("why", "Explain an agent's state with all evidence"),
        "peek": Entry("why", "Print the last lines of an agent's pane"),
        "transcript": Entry("transcript", "Show an agent's conversation"),
        "usage": Entry("usage", "Show tokens, cost and time of each agent"),
        "resume": Entry("start", "Restart stopped agents in the same worktrees"),
        "restart": Entry("start", "Stop one agent if it runs, and start it again"),
        "fork": Entry("fork", "Start another agent from an agent's worktree as it is"),
        "shell": Entry("places", "Open a shell in an agent's worktree"),
        "pod": Entry("pod", "Launch, stop, list, show, create and check teams kept in files"),
    },
    "Tree": {
        "tree": Entry("tree", "Show who works for whom, and what came of it"),
        "spawn": Entry("spawn", "Spawn a subtree with a branch of its own, or a worker in your own folder"),
        "notify-parent": Entry("tree", "Tell your parent what came of your task"),
        "wait-event": Entry("wait_event", "Print the next event of your agents"),
        "watch": Entry("watch", "Print each change of the project as it happens"),
        "events": Entry("watch", "Print the log of events of the project"),
        "adopt": Entry("tree", "Give a spawned agent another parent"),
    },
    "Services": {
        "agent": Entry("agent", "Serve an agent: it takes tasks by HTTP"),
        "services": Entry("services", "List and start the servers of this swarm directory"),
        "discover": Entry("services", "List the servers that run: this directory's, and others"),
        "shutdown": Entry("services", "Ask servers to end, and wait until they have"),
        "kill": Entry("services", "End the processes of servers; their tasks go on"),
        "serve": Entry("mcp", "Serve the project to programs by HTTP, and to agents by MCP"),
    },
    "Messages": {
        "broadcast": Entry("send", "Send a message to every agent of the session"),
        "reply": Entry("send", "Answer a message"),
        "inbox": Entry("inbox", "Read and acknowledge messages"),
        "outbox": Entry("outbox", "List the messages that an agent has sent"),
        "message": Entry("message", "Show a message and its delivery history"),
        "thread": Entry("message", "Show the conversation of a message"),
        "task": Entry("task", "Give an agent program work without a terminal, and get its result"),
        "queue": Entry("queue", "Share work between agents: add, take and finish tasks"),
        "wait": Entry("wait", "Wait until agents are idle, done or stopped"),
    },
    "Approvals": {
        "approve": Entry("approvals", "Approve a request, or answer a question"),
        "deny": Entry("approvals", "Deny a request"),
        "type": Entry("type", "Type a text into an agent's pane"),
        "revoke": Entry("approvals", "Revoke a standing answer"),
        "bridge": Entry("bridge", "Bring messages and requests to your desktop or chat"),
        "sandbox": Entry("sandbox", "Look at boxes of agents, and whether this machine can make them"),
    },
    "Work": {
        "path": Entry("places", "Print the path of an agent's worktree"),
        "open": Entry("places", "Open an agent's worktree in your editor"),
        "conflicts": Entry("conflicts", "Forecast merge conflicts between agents"),
        "worktree": Entry("worktree", "Create, show, lock and remove worktrees"),
        "restore": Entry("restore", "Restore worktrees that a cleanup removed"),
        "salvage": Entry("salvage", "List, show and delete saved work"),
        "session": Entry("cleanup", "Delete records of old sessions"),
        "recover": Entry("recover", "Finish or roll back interrupted operations"),
        "log": Entry("log", "List the operations in this repository"),
    },
    "Setup": {
        "init": Entry("init", "Create a swarm directory"),
        "doctor": Entry("doctor", "Check git, tmux, agent programs and leftovers"),
        "role": Entry("role", "List, show, create and check roles"),
        "workflow": Entry("workflow", "List and show predefined teams"),
        "config": Entry("config", "Show the settings, and the schemas of files"),
        "validate": Entry("validate", "Check configuration, roles and records"),
        "pool": Entry("pool", "List and delete worktrees that wait for the next start"),
        "help": Entry("about", "Show the help of a command, or all commands"),
        "version": Entry("about", "Print the version"),
    },
}

#: For agent programs; the help does not show them.
INTERNAL = {
    "hook": Entry("hook", "Take an event from an agent program's hook"),
    "mcp": Entry("mcp", "Offer swarm's tools to an agent's program by MCP"),
    "permission-request": Entry("permission", "Answer an agent program's permission request"),
}

COMMANDS: dict[str, Entry] = {
    **EVERYDAY,
    **{name: entry for group in GROUPS.values() for name, entry in group.items()},
    **INTERNAL,
}

#: Words that other tools use for the same thing.
ALIASES = {"ls": "list", "ps": "status", "logs": "transcript", "rm": "cleanup"}
