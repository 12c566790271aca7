"""The sections of the settings about work and what it may use: limits, tree, tasks, the MCP door, prices."""

from __future__ import annotations

from swarm.kit.forms import amount, choice, listing, milliseconds, number, seconds, size, switch, text
from swarm.project.config.checks import Section, box_path, folder_of_subtrees, key, port_range, prices, role_name
from swarm.project.layout import SUBTREES

_GIB = 1024**3


class Limits(Section):
    """Budget of each agent whose role sets none; 0 is no limit."""

    tokens = key(0, number(0, 10**12), "Tokens that an agent may read and write, including cache reads.")
    cost = key(0, amount(0, 10**6), "US dollars that an agent may cost, as `swarm usage` counts them.")
    minutes = key(0, amount(0, 10**6), "Minutes that an agent may run.")
    agents = key(0, number(0, 256), "Agents of one role in one session.")


class Tree(Section):
    """Sub-teams and workers that agents spawn."""

    worktree_base = key(
        SUBTREES,
        text(folder_of_subtrees, "folder in the repository"),
        "Folder for the worktrees of spawned leads, relative to the main checkout.",
    )
    max_depth = key(
        2,
        number(1, 20),
        "How deep leads may work: the root, which nobody spawned, is at 1, its subtrees at 2. Workers are leaves.",
    )
    max_children = key(8, number(0, 256), "Living children that one agent may have.")
    max_descendants = key(24, number(0, 1024), "Living agents below one root, in all.")
    spawns_per_minute = key(
        12,
        number(0, 1000),
        "Children that one agent may spawn in a minute; 0 is no limit. A lead may fill its width at once, and not for "
        "ever anew.",
    )
    budget_share = key(
        50,
        number(1, 100),
        "Percent of what is left of an agent's budget that one child gets at most; what it has not used at its end "
        "comes back.",
    )
    min_tokens = key(
        20_000,
        number(0, 10**12),
        "Tokens that a child must get at least; where an agent has too little left, its spawn is refused.",
    )
    min_cost = key(0.05, amount(0, 10**6), "US dollars that a child must get at least, as above.")
    lead_role = key("lead", text(role_name, "role"), "Role of a spawned lead where the spawn names none.")
    worker_role = key("worker", text(role_name, "role"), "Role of a spawned worker where the spawn names none.")
    on_parent_end = key(
        "keep",
        choice("keep", "pause", "stop"),
        "What happens to children when the program of their parent ends: they go on, they are not told of messages "
        "until it runs again, or they are stopped.",
    )


class Tasks(Section):
    """Tasks: agent programs without a terminal, see `swarm task`."""

    at_once = key(8, number(1, 256), "Tasks that run at the same time; the others wait in the queue.")
    timeout = key(1800, seconds(1, 7 * 86_400), "How long one turn of a task may take, unless the task says.")
    tries = key(3, number(1, 20), "How often swarm starts a turn, at most, where its failure may pass.")
    retry_pause = key(
        2,
        seconds(0, 3600),
        "Pause before the second try; each further one is twice as long, and after a rate limit ten times as long.",
    )
    idle_limit = key(
        86_400_000,
        milliseconds(1000, 365 * 86_400_000),
        "How long a held task may wait for `continue` or `end`; then it is completed.",
    )
    answer_within = key(
        900,
        seconds(1, 86_400),
        "How long a request of a held task's program waits for an answer; then it is denied, and the program goes on.",
    )
    workdirs = key(
        (),
        listing(text(box_path, "path"), "list of paths"),
        "Folders of yours in which a task may be asked to work, or below which: its `workdir`.",
    )
    keep = key(100, number(1, 100_000), "Finished tasks that swarm keeps; it removes the oldest first.")
    keep_bytes = key(
        _GIB, size(0, 1024 * _GIB), "Size of all finished tasks above which the oldest go earlier; 0: none."
    )


class Mcp(Section):
    """The MCP door of agents; it needs the extra `tmux-swarm[mcp]`."""

    enabled = key(
        True,  # noqa: FBT003
        switch(),
        "Give every agent swarm's tools by MCP, where its program can use them.",
    )


class Usage(Section):
    """Prices of tokens."""

    prices = key(
        (),
        prices(),
        "Prices of models in US dollars for a million tokens; they override swarm's own. `*` stands for any part of a "
        "name.",
    )


class Discovery(Section):
    """Where `swarm discover` looks for servers, beside those that are written down in the swarm directory."""

    method = key(
        "port_scan",
        choice("port_scan", "mdns"),
        "How: ask the ports of this machine, or also listen to announcements on its networks. With `mdns` servers "
        "announce themselves.",
    )
    port_range = key(
        (9000, 9199),
        port_range(),
        "First and last port that are asked.",
    )
    refresh_interval = key(1, seconds(0.1, 3600), "Time between two tables of `swarm discover --watch`.")
    keep = key(300, seconds(1, 86_400), "How long a server that does not answer is shown.")
