"""The sections of the settings: every key declared once, with its type, default, limits and help.

One line below is all a new key needs.  From it follow the typed attribute
(``settings.worktrees.base_path``), the key in YAML (``worktrees.base_path``, or ``basePath``), the
environment variable (``SWARM_WORKTREES_BASE_PATH``), every check and the documentation.
"""

from __future__ import annotations

from swarm.kit.forms import choice, commands, listing, milliseconds, number, seconds, size, switch, text
from swarm.project.config.checks import (
    Section,
    collector,
    file_name,
    folder_inside,
    key,
    paths,
    patterns,
    prefix,
    private_file,
    program_name,
    program_or_none,
    tmux_name,
    tmux_socket,
    variables,
)
from swarm.project.names import BRANCH_PREFIX, PROGRAMS, PROGRAMS_IN_WORDS, WORKTREE_BASE

_WEEK = 604_800
_GIB = 1024**3

#: Names of files that hold secrets or data.
_PRECIOUS = """
    .env* *.local* *.sqlite* *.db credentials* secrets* kubeconfig* *.tfvars* *.tfstate*
    *.pem *.key *.p12 *.pfx *.jks *.keystore *.ppk id_rsa* id_dsa* id_ecdsa* id_ed25519*
    .git-credentials .htpasswd .netrc .npmrc .pgpass .pypirc
"""


class Worktrees(Section):
    """Place and names of the agents' worktrees and branches."""

    base_path = key(
        WORKTREE_BASE,
        text(folder_inside, "folder in the repository"),
        "Folder for the worktrees, relative to the main checkout.",
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
        "Form of the folder names: `<agent>-<session>`, or with `role` only `<agent>` (then one session at a time).",
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
    pool = key(
        0,
        number(0, 256),
        "How many worktrees without work `cleanup` keeps for the next start, which takes them instead of new ones.",
    )
    pool_size = key(2 << 30, size(0, 1 << 40), "All worktrees in the pool together have at most this size.")
    pool_age = key(7 * 86_400_000, milliseconds(0, 3650 * 86_400_000), "Older worktrees in the pool are deleted.")
    keep_ignored = key(
        (),
        patterns(),
        "Ignored files and folders that stay in a worktree of the pool, such as `node_modules`. Never precious files.",
    )


class Git(Section):
    """Limits for git commands."""

    timeout = key(120, seconds(1, _WEEK), "Longest time one git command may take.")
    retries = key(
        5,
        number(0, 100),
        "How often swarm tries again when another git process holds a lock file.",
    )
    jobs = key(
        0,
        number(0, 64),
        "Number of worktrees to fill at once; 0 is the number of processor cores.",
    )


class Lock(Section):
    """How long one swarm command waits for another."""

    timeout = key(10, seconds(0, _WEEK), "Longest wait for another swarm command on the same repository.")


class Cleanup(Section):
    """Which files count as work when swarm removes a worktree, and when swarm deletes the removed files."""

    background = key(
        True,  # noqa: FBT003
        switch(),
        "Delete the files of removed worktrees in the background, after the command; `swarm recover` waits for that.",
    )
    keep_dropped = key(
        7 * 86_400_000,
        milliseconds(0, 3650 * 86_400_000),
        "How long dropped work can still be restored; with 0 a drop deletes it at once.",
    )
    precious = key(
        tuple(_PRECIOUS.split()),
        patterns(),
        "Ignored files that still count as work, by names in any case; swarm saves them under no git ref.",
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
        "Size up to which swarm saves other ignored files, too.",
    )
    large_file = key(
        16 * 1024**2,
        size(0, 1024 * _GIB),
        "Size above which swarm moves untracked files into the salvage folder instead of copying them.",
    )


class Tmux(Section):
    """Place of the agents' panes."""

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
    """The agents' program, and swarm's patience with it."""

    program = key(
        PROGRAMS[0],
        text(program_name, "agent program"),
        f"Program that swarm starts for each agent: {PROGRAMS_IN_WORDS}.",
    )
    stop_grace = key(
        5,
        seconds(0, 3600),
        "How long a stopped agent may take to end before swarm kills it.",
    )
    nudge = key(
        "idle",
        choice("idle", "unknown", "never"),
        "When swarm types a line about waiting messages into an agent's pane: while the agent is idle, also while its "
        "state is unknown, or never. swarm types nothing while the agent works or waits for you.",
    )
    nudge_pause = key(
        30,
        seconds(0.1, 3600),
        "How long an agent may take to read its messages before swarm repeats the line; later pauses are longer.",
    )
    watch_outside = key(
        True,  # noqa: FBT003
        switch(),
        "After a turn of an agent without a box, look what changed in the main checkout and in worktrees of agents at "
        "rest.",
    )


class Notify(Section):
    """How swarm notifies you when an agent needs you."""

    states = key(
        ("waiting", "failed", "done"),
        listing(choice("waiting", "failed", "done", "idle", "stopped")),
        "States that notify you when an agent enters them.",
    )
    bell = key(
        True,  # noqa: FBT003
        switch(),
        "Ring the bell of every terminal attached to swarm's tmux session, and show a line there.",
    )
    command = key(
        "",
        program_or_none(),
        "Program to run as well, without a shell; its last argument is a line with agent and event. "
        "It gets SWARM_AGENT, SWARM_SESSION, SWARM_STATE, SWARM_DETAIL and SWARM_REPOSITORY.",
    )


class Editor(Section):
    """Your editor."""

    command = key(
        "",
        program_or_none(),
        "Editor for `swarm open`, started without a shell; empty is `VISUAL`, else `EDITOR` of your environment.",
    )


class Messages(Section):
    """Messages between agents and the user."""

    lease = key(
        600,
        seconds(1, 86_400),
        "How long a reader may hold taken messages before swarm returns them to the inbox.",
    )
    keep = key(
        30 * 86_400_000,
        milliseconds(3_600_000, 3650 * 86_400_000),
        "How long swarm keeps acknowledged messages and dead letters. It removes whole files of 8 MiB, so small "
        "inboxes keep more; see `swarm inbox prune`.",
    )
    keep_bytes = key(
        256 * 1024**2,
        size(0, 1024 * _GIB),
        "Size of an inbox or queue above which swarm removes the oldest earlier, but none of the last hour; 0 is no "
        "limit.",
    )
    lock_timeout = key(
        60,
        seconds(1, 86_400),
        "How long a process waits for others to write or take a message.",
    )


class Telemetry(Section):
    """Measurements that the agents' programs send to your collector (OpenTelemetry); off by default."""

    enabled = key(
        False,  # noqa: FBT003
        switch(),
        "Let the agents' programs send measurements. A role can override this with `telemetry:`.",
    )
    endpoint = key(
        "",
        text(collector, "address"),
        "Address of the collector; empty is `OTEL_EXPORTER_OTLP_ENDPOINT` of your environment, else this machine.",
    )
    protocol = key(
        "http/protobuf",
        choice("http/protobuf", "http/json", "grpc"),
        "Export protocol; usually port 4318 for http, 4317 for grpc.",
    )
    headers_file = key(
        "",
        text(private_file, "path"),
        "File of headers for the collector, such as `authorization: Bearer …`, one per line; only you may read it.",
    )
    prompts = key(
        False,  # noqa: FBT003
        switch(),
        "Also send the prompts of agents.",
    )


class Setup(Section):
    """Preparation of a new worktree before its agent's first turn; a role's own `setup:` adds to it."""

    copy = key(
        (),
        paths(),
        "Untracked files and folders of the main checkout to copy into each worktree.",
    )
    link = key(
        (),
        paths(),
        "Untracked files and folders of the main checkout to link into each worktree.",
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
        "Environment variables that hold a free port, a different one for each agent.",
    )
    post_checkout = key(
        True,  # noqa: FBT003
        switch(),
        "Run the repository's post-checkout hook in each new worktree, as `git worktree add` does.",
    )
    timeout = key(600, seconds(1, 86_400), "Longest time for each command.")
    policy = key(
        "abort",
        choice("abort", "warn"),
        "After a failure, start nothing and undo everything, or only warn.",
        "setup.on_failure",
    )


class Teardown(Section):
    """Commands to run in a worktree before swarm removes it; a role's own `teardown:` runs first."""

    run = key((), commands(), "Commands, as in setup.run.", "teardown.commands")
    timeout = key(60, seconds(1, 86_400), "Longest time for each command.")
    policy = key(
        "warn",
        choice("abort", "warn"),
        "After a failure, remove nothing, or only warn.",
        "teardown.on_failure",
    )
