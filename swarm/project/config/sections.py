"""The sections of the settings: every key declared once, with its type, default, limits and help.

One line below is all a new key needs.  From it follow the typed attribute
(``settings.worktrees.base_path``), the key in YAML (``worktrees.base_path``, or ``basePath``), the
environment variable (``SWARM_WORKTREES_BASE_PATH``), every check and the documentation.
"""

from __future__ import annotations

from swarm.project.config.forms import (
    Section,
    amount,
    choice,
    collector,
    commands,
    file_name,
    folder_inside,
    key,
    milliseconds,
    number,
    paths,
    patterns,
    prefix,
    prices,
    private_file,
    program,
    program_name,
    seconds,
    several,
    size,
    switch,
    text,
    tmux_name,
    tmux_socket,
    variables,
)
from swarm.project.names import BRANCH_PREFIX, PROGRAMS, PROGRAMS_IN_WORDS, WORKTREE_BASE

_WEEK = 604_800
_GIB = 1024**3


class Worktrees(Section):
    """Where the agents' worktrees are, and what they and their branches are called."""

    base_path = key(
        WORKTREE_BASE,
        text(folder_inside, "folder in the repository"),
        "Folder that holds the worktrees, relative to the main checkout.",
        "worktree_base",
    )
    branch_prefix = key(
        BRANCH_PREFIX,
        text(prefix, "branch prefix"),
        "First part of every agent's branch, before the slash.",
    )
    layout = key(
        "session",
        choice("session", "role"),
        "Folders are named `<agent>-<session>`, or with `role` just `<agent>` (then one session at a time).",
    )
    instructions_file = key(
        "CLAUDE.local.md",
        text(file_name, "file name"),
        "File at the root of a worktree that holds the role's instructions.",
    )
    auto_cleanup_age = key(
        86_400_000,
        milliseconds(0, 3650 * 86_400_000),
        "Sessions older than this are stale: `cleanup_orphaned_worktrees()` of the library removes them.",
    )
    durable = key(
        True,  # noqa: FBT003
        switch(),
        "Sync the file system before a set of worktrees counts as made.",
    )


class Git(Section):
    """How git is run."""

    timeout = key(120, seconds(1, _WEEK), "Longest time one git command may take.")
    retries = key(
        5,
        number(0, 100),
        "How often to try again when another git program holds one of its lock files.",
    )
    jobs = key(
        0,
        number(0, 64),
        "Worktrees that are filled at once; 0 is the number of processor cores.",
    )


class Lock(Section):
    """How long one swarm command waits for another."""

    timeout = key(10, seconds(0, _WEEK), "Longest wait for another swarm command on the same repository.")


class Cleanup(Section):
    """What counts as work when a worktree is removed."""

    keep_dropped = key(
        7 * 86_400_000,
        milliseconds(0, 3650 * 86_400_000),
        "How long dropped saved work can still be restored; 0: a drop deletes it at once.",
    )
    precious = key(
        (
            ".env*",
            "*.local*",
            "*.pem",
            "*.key",
            "*.sqlite*",
            "*.db",
            "*.p12",
            "credentials*",
            "secrets*",
        ),
        patterns(),
        "Files that git ignores and that still count as work.",
    )
    bulk = key(
        (
            "node_modules",
            ".venv",
            "venv",
            "target",
            "dist",
            "build",
            "__pycache__",
            ".tox",
            ".nox",
            ".mypy_cache",
            ".pytest_cache",
            ".ruff_cache",
            ".gradle",
            ".next",
            ".cache",
            "*.pyc",
            "*.o",
            "*.class",
        ),
        patterns(),
        "Ignored files that programs can regenerate; deleted unsaved and reported. `precious` files inside are saved.",
    )
    installed = key(
        (
            "node_modules",
            ".venv",
            "venv",
            "site-packages",
            "_deps",
            "__pycache__",
            ".tox",
            ".nox",
            ".mypy_cache",
            ".pytest_cache",
            ".ruff_cache",
            ".gradle",
            ".next",
            ".cache",
        ),
        patterns(),
        "Dependency and cache folders. `precious` does not apply inside them.",
    )
    ignored_file_limit = key(
        1024**2,
        size(0, 1024 * _GIB),
        "Other ignored files up to this size are saved too.",
    )
    large_file = key(
        16 * 1024**2,
        size(0, 1024 * _GIB),
        "Untracked files above this size are moved, not copied, into the salvage.",
    )


class Tmux(Section):
    """Where the agents' panes are."""

    socket = key(
        "",
        text(tmux_socket, "socket"),
        "tmux server: a path, or a plain name as for `tmux -L`; empty is the user's default server.",
    )
    session = key(
        "swarm",
        text(tmux_name, "tmux session name"),
        "tmux session that holds the windows; `tmux attach -t <this>` shows the agents.",
    )
    panes_per_window = key(
        16,
        number(1, 64),
        "Panes in one window; more agents get further windows.",
    )


class Agents(Section):
    """Which program plays the agents, and how patient swarm is with it."""

    program = key(
        PROGRAMS[0],
        text(program_name, "agent program"),
        f"Program that is started for each agent: {PROGRAMS_IN_WORDS}.",
    )
    stop_grace = key(
        5,
        seconds(0, 3600),
        "How long a stopped agent may take to end before it is killed.",
    )
    nudge = key(
        "idle",
        choice("idle", "unknown", "never"),
        "When a line about waiting messages is typed into an agent's pane: when it is known to be idle, also when "
        "nothing is known, or never. Never while it works, or waits for you.",
    )
    nudge_pause = key(
        30,
        seconds(0.1, 3600),
        "How long an agent may take to read its messages before it is told again; later pauses are longer.",
    )


class Notify(Section):
    """How you are called when an agent needs you."""

    states = key(
        ("waiting", "failed", "done"),
        several("waiting", "failed", "done", "idle", "stopped"),
        "States of an agent of which you are told when it comes into them.",
    )
    bell = key(
        True,  # noqa: FBT003
        switch(),
        "Ring the bell of every terminal that is attached to swarm's tmux session, and show a line there.",
    )
    command = key(
        "",
        program(),
        "Program to run as well, without a shell; its last argument is a line with agent and event. "
        "SWARM_AGENT, SWARM_SESSION, SWARM_STATE, SWARM_DETAIL and SWARM_REPOSITORY are set for it.",
    )


class Messages(Section):
    """Messages between agents and the user."""

    lease = key(
        600,
        seconds(1, 86_400),
        "How long a reader may take over messages that it has taken and not acknowledged, before they go back.",
    )
    keep = key(
        30 * 86_400_000,
        milliseconds(3_600_000, 3650 * 86_400_000),
        "How long messages are kept that are done or were given up. They go in files of 8 MiB, so small inboxes keep "
        "more; see `swarm inbox prune`.",
    )
    keep_bytes = key(
        256 * 1024**2,
        size(0, 1024 * _GIB),
        "An inbox or queue that has more than this on the disk loses the oldest of them earlier, but none of the last "
        "hour; 0 is any amount.",
    )
    lock_timeout = key(
        60,
        seconds(1, 86_400),
        "How long a message waits to be written, or taken, while others do the same.",
    )


class Telemetry(Section):
    """Measurements that the agents' programs send to a collector of yours (OpenTelemetry); off unless switched on."""

    enabled = key(
        False,  # noqa: FBT003
        switch(),
        "Let the agents' programs send them. A role can decide otherwise with `telemetry:`.",
    )
    endpoint = key(
        "",
        text(collector, "address"),
        "Where the collector listens; empty is `OTEL_EXPORTER_OTLP_ENDPOINT` of your environment, else this machine.",
    )
    protocol = key(
        "http/protobuf",
        choice("http/protobuf", "http/json", "grpc"),
        "Export protocol; usually port 4318 for http, 4317 for grpc.",
    )
    headers_file = key(
        "",
        text(private_file, "path"),
        "File of headers for the collector, such as `authorization: Bearer …`, one per line; readable by you alone.",
    )
    prompts = key(
        False,  # noqa: FBT003
        switch(),
        "Send the prompts of agents as well.",
    )


class Setup(Section):
    """What a new worktree is given before its agent's first turn; a role's own `setup:` comes on top."""

    copy = key(
        (),
        paths(),
        "Untracked files and folders of the main checkout that each worktree gets a copy of.",
    )
    link = key(
        (),
        paths(),
        "Untracked files and folders of the main checkout that each worktree gets a symbolic link to.",
        "setup.symlink",
    )
    run = key(
        (),
        commands(),
        "Commands to run in each worktree, one after the other. There is no shell.",
        "setup.commands",
    )
    ports = key(
        (),
        variables(),
        "Environment variables that are a free port, another one for each agent.",
    )
    post_checkout = key(
        True,  # noqa: FBT003
        switch(),
        "Run the repository's post-checkout hook in each new worktree, as `git worktree add` does.",
    )
    timeout = key(600, seconds(1, 86_400), "Longest time one of the commands may take.")
    policy = key(
        "abort",
        choice("abort", "warn"),
        "What a failure means: nothing is started and all is taken back, or there is a warning.",
        "setup.on_failure",
    )


class Teardown(Section):
    """What is run in a worktree before it is removed; a role's own `teardown:` comes before."""

    run = key((), commands(), "Commands, as in setup.run.", "teardown.commands")
    timeout = key(60, seconds(1, 86_400), "Longest time one of the commands may take.")
    policy = key(
        "warn",
        choice("abort", "warn"),
        "What a failure means: nothing is removed, or there is a warning.",
        "teardown.on_failure",
    )


class Limits(Section):
    """How much an agent may use up whose role does not say it; 0 is no limit."""

    tokens = key(0, number(0, 10**12), "Tokens that it may read and write, those from the model's cache included.")
    cost = key(0, amount(0, 10**6), "US dollars that it may cost, by the prices that `swarm usage` shows.")
    minutes = key(0, amount(0, 10**6), "Minutes that it may run.")
    agents = key(0, number(0, 256), "Agents of one role in one session.")


class Usage(Section):
    """What tokens cost."""

    prices = key(
        (),
        prices(),
        "Prices of models in US dollars for a million tokens, looked at before those that swarm knows; `*` stands for "
        "any part of a name.",
    )
