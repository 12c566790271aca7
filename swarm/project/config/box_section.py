"""The section of the settings about boxes."""

from __future__ import annotations

from swarm.kit.forms import choice, listing, number, size, switch, text
from swarm.project.config import hosts as host_names
from swarm.project.config.checks import Section, box_path, key


class Sandbox(Section):
    """Boxes for agents. A project's own files may only switch them on; all else is for your own files and commands."""

    enabled = key(
        False,  # noqa: FBT003
        switch(),
        "Run every agent in a box; a role can ask for one with `sandbox:`.",
    )
    allow_unsandboxed = key(
        False,  # noqa: FBT003
        switch(),
        "Where no box can be made, start agents without one, with a warning, instead of refusing.",
    )
    read_only_paths = key(
        (),
        listing(text(box_path, "path"), "list of paths"),
        "Further files and folders that agents in boxes can read.",
    )
    read_write_paths = key(
        (),
        listing(text(box_path, "path"), "list of paths"),
        "Further files and folders that agents in boxes can read and change.",
    )
    network = key(
        host_names.MODEL,
        choice(*host_names.PRESETS),
        "What agents in boxes can reach: their `model`, also the hosts of `packages`, `none`, or `all` public hosts.",
    )
    package_hosts = key(
        (),
        listing(text(host_names.host, "host"), "list of hosts"),
        "Hosts of the package registries that you use; with `packages` agents reach these, too.",
    )
    hosts = key(
        (),
        listing(text(host_names.host, "host"), "list of hosts"),
        "Further hosts that they can reach, such as example.org, *.example.org, example.org:8443 or http://example.org.",
    )
    private_networks = key(
        (),
        listing(text(host_names.network, "network"), "list of networks"),
        "Networks, such as 10.1.0.0/16, in which an allowed host may lie; all others must have public addresses.",
    )
    processes = key(
        4096,
        number(64, 1_000_000),
        "Most processes in a box at once; the kernel does not hold root to it.",
    )
    memory = key(
        0,
        size(0, 1 << 50),
        "Most memory of a box where the user has a manager of cgroups (systemd); else most address space of each of its"
        " processes, which is more than they use; 0 is no limit.",
    )
    tmp = key(
        1 << 30,
        size(1 << 20, 1 << 50),
        "Size of /tmp in a box; it counts as memory.",
    )
    disk = key(
        32 << 30,
        size(0, 1 << 50),
        "Most that an agent's worktree, home and git folder may take on the disk; swarm stops it there. 0 is no limit.",
    )
    messages = key(
        1000,
        number(0, 1_000_000),
        "Most messages and tasks for queues that an agent in a box may send in an hour. 0 is no limit.",
    )
