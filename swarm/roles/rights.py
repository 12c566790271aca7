"""The table of rights: the right that an agent needs for each verb.

An agent acts on what it started itself: sessions it made, and those that their agents made.  A right that
its role gives lets it act on what others started, too.  What no right gives is for people.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Right(StrEnum):
    """Rights of a role's agent over sessions that others started (``may`` in its file)."""

    CLEANUP = "cleanup"
    MERGE = "merge"
    RESTORE = "restore"
    RESUME = "resume"
    STOP = "stop"
    WORKTREE = "worktree"


class Need(StrEnum):
    """Requirements of a verb that no right of a role can meet."""

    NOTHING = "nothing"  # it only looks, makes something new, or is about the caller's own messages and tasks
    OWN = "own"  # an agent may call it for itself and for agents that it started
    NO_AGENT = "no agent"  # an agent has no part in it; what goes is saved
    PERSON = "person"  # a proven person, or a program with a grant: the loss is final


_LOOKING = (
    *("conflicts", "diff", "doctor", "is_changing", "open", "live", "peek", "root", "status", "team"),
    *("transcript", "wait_for", "watch_transcript", "why"),
)
#: The documents' functions, of the module ``swarm.worktrees``.
_DOCUMENTS = (
    *("branch_exists", "create_worktree", "create_worktrees", "generate_branch_name", "get_current_branch"),
    *("get_git_root", "get_role_config_path", "get_worktree_head", "get_worktree_info", "get_worktree_path"),
    *("has_commits", "has_uncommitted_changes", "is_git_repository", "list_all_worktrees", "list_worktrees"),
    *("new_session_id", "role_config_exists", "validate_repository", "worktree_exists"),
)
_NAMESPACES = (
    *("approvals", "approvals.grants", "approvals.near", "bridges"),
    *("config", "config.around", "config.init", "config.schema", "config.settings", "config.validate"),
    *("delivery", "delivery.announce", "delivery.notify_user", "delivery.report_endings"),
    *("boxes", "boxes.explain"),
    *("hooks", "hooks.collect_own", "hooks.note_own_trouble", "hooks.trouble"),
    *("operations", "operations.describe_unfinished", "operations.unfinished"),
    *("panes", "panes.attach_command", "panes.label", "panes.show"),
    *("pods", "pods.check", "pods.expand", "pods.get", "pods.init", "pods.running", "pods.scan"),
    *("salvage", "salvage.get", "sandbox", "sandbox.check", "sessions", "sessions.elsewhere"),
    *("sessions.get", "sessions.target", "sessions.unreadable", "usage"),
    *("workflows", "workflows.get", "worktrees", "worktrees.environment", "worktrees.path"),
    *("worktrees.look_outside", "worktrees.pool", "worktrees.setup_of", "worktrees.show", "worktrees.take_in"),
)
_ROLES = (
    *(
        "roles",
        "roles.around",
        "roles.check",
        "roles.get",
        "roles.hidden",
        "roles.init",
        "roles.is_shipped",
        "roles.names",
        "roles.of_pods",
    ),
    *("roles.notes", "roles.options", "roles.scan"),
)
#: Messages, tasks and events: the bus knows the caller, and lets it change what is its own.
_POST = (
    *("events", "events.follow", "events.last", "events.log", "events.record"),
    *("events.back", "events.done", "messages", "messages.ack", "messages.address", "messages.answer_to"),
    *("messages.broadcast", "messages.dead", "messages.depth", "messages.done", "messages.extend", "messages.get"),
    *("messages.held_by", "messages.history", "messages.inbox", "messages.me", "messages.missing_from"),
    *("messages.outbox", "send", "wait_for_event"),
    *("messages.nack", "messages.near", "messages.removed", "messages.reply", "messages.requeue"),
    *("messages.save_files", "messages.seen", "messages.send", "messages.take", "messages.thread"),
    *("messages.unreadable",),
    *(
        "tree",
        "tree.acting_as",
        "tree.acting_for",
        "tree.list_agents",
        "tree.notify_parent",
        "tree.report",
        "tree.wait_for_event",
    ),
    *("queues", "queues.get", "queue.add", "queue.back", "queue.done", "queue.extend", "queue.fail"),
    *("queue.take", "queue.tasks"),
)
#: Tasks: whoever looks settles what is over; to change one an agent must have submitted it.
_TASKS = (
    *("tasks", "tasks.advance", "tasks.events", "tasks.get", "tasks.follow", "tasks.history", "tasks.list"),
    *("tasks.messages", "tasks.output", "tasks.show"),
)
#: Servers: whoever looks may ask them; what they do for an agent is theirs to decide.
_SERVICES = (
    *("services", "services.ask", "services.check_file", "services.discover", "services.validate"),
    *("services.give", "services.variable", "services.watch"),
)
#: New sessions and tasks, and recovery.
_HARMLESS = (
    "recover",
    "pods.launch",
    "run",
    "start",
    "start_workflow",
    "tasks.submit",
    "tasks.wait",
    "tree.spawn_subtree",
    "tree.spawn_worker",
)

#: Verb -> its requirements on an agent. Every public name of the library's objects is here; see test_rights.py.
VERBS: Mapping[str, Right | Need] = {
    **dict.fromkeys(
        (*_LOOKING, *_DOCUMENTS, *_NAMESPACES, *_ROLES, *_POST, *_TASKS, *_SERVICES, *_HARMLESS), Need.NOTHING
    ),
    **dict.fromkeys(
        (
            "approvals.ask",
            "hooks.collect",
            "hooks.note_trouble",
            "delivery.nudge",
            "delivery.heartbeat",
            "usage.notify",
            "tasks.ask",
            "tasks.cancel",
            "tasks.continue_",
            "tasks.end",
            "tasks.give_back",
            "tasks.message",
            "tasks.take",
        ),
        Need.OWN,
    ),
    **dict.fromkeys(
        ("cleanup", "cleanup_orphaned_worktrees", "cleanup_swarm_branches", "full_cleanup", "tree.cleanup"),
        Right.CLEANUP,
    ),
    **dict.fromkeys(("worktrees.remove", "remove_all_worktrees", "remove_worktree"), Right.CLEANUP),
    **dict.fromkeys(("merge", "tree.merge"), Right.MERGE),
    "restore": Right.RESTORE,
    **dict.fromkeys(("pods.release", "resume"), Right.RESUME),
    **dict.fromkeys(("pods.stop", "restart", "stop", "tree.stop"), Right.STOP),
    # `create` is here because it can add agents to another caller's session.
    **dict.fromkeys(
        (
            "copy_role_config",
            "create",
            "fork",
            "worktrees.lock",
            "lock_worktree",
            "worktrees.unlock",
            "unlock_worktree",
        ),
        Right.WORKTREE,
    ),
    **dict.fromkeys(("worktrees.update_role", "worktrees.update_changed_roles", "update_role_config"), Right.WORKTREE),
    **dict.fromkeys(
        ("approvals.approve", "approvals.deny", "approvals.grant", "approvals.revoke", "approvals.revoke_grant"),
        Need.PERSON,
    ),
    **dict.fromkeys(("panes.type", "tree.adopt"), Need.PERSON),
    "merge.nested": Need.PERSON,
    **dict.fromkeys(("cleanup.discard", "salvage.drop", "messages.prune", "messages.prune_attachments"), Need.PERSON),
    **dict.fromkeys(("boxes.run", "bridges.init", "bridges.run", "bridges.start", "bridges.stop"), Need.NO_AGENT),
    **dict.fromkeys(("services.kill", "services.shutdown", "services.start", "services.write_unit"), Need.NO_AGENT),
    **dict.fromkeys(("worktrees.prune", "worktrees.drain_pool", "sessions.prune", "prune_worktrees"), Need.NO_AGENT),
}
