"""swarm: launch a team of coding agents on a git repository and never lose their work.

    from swarm import Swarm, SwarmError

    swarm = Swarm.open()
    swarm.create("feature-x", ["researcher", "developer"])
    swarm.cleanup(everything=True, force=True)
    swarm.restore("feature-x")

The names below are the public ones; importing this package loads none of the libraries behind them.
"""

from __future__ import annotations

from swarm.version import __version__

#: Each module with the public names in it; ``__init__.pyi`` says the same to type checkers, and a test compares.
_PUBLIC = {
    "swarm.agents.errors": ("AgentNotRunning", "AgentRunning", "LimitReached", "NotHeld", "WaitCycle"),
    "swarm.agents.event_values": ("AgentEvent",),
    "swarm.api.approvals": ("Approvals",),
    "swarm.api.asynchronous": ("AsyncMessages", "AsyncQueues", "AsyncSwarm"),
    "swarm.api.config": ("Config",),
    "swarm.api.events": ("Events",),
    "swarm.api.delivery": ("Delivery",),
    "swarm.api.operations": ("Operations",),
    "swarm.api.panes": ("Panes",),
    "swarm.api.salvage": ("Salvage",),
    "swarm.api.bridges": ("Bridges",),
    "swarm.api.sandbox": ("Sandbox",),
    "swarm.api.sessions": ("Sessions",),
    "swarm.api.tree": ("SpawnOptions", "Tree"),
    "swarm.api.usage": ("Usage",),
    "swarm.api.workflows": ("Workflows",),
    "swarm.api.worktrees": ("Worktrees",),
    "swarm.api.boxes": ("BoxReport", "Boxes"),
    "swarm.api.hooks": ("Hooks",),
    "swarm.sandbox.inside": ("Said",),
    "swarm.api.messages": ("Messages",),
    "swarm.api.queues": ("Queues",),
    "swarm.api.pods": ("CheckedPod", "Pods"),
    "swarm.api.roles": ("CheckedRole", "Roles"),
    "swarm.api.swarm": ("Swarm",),
    "swarm.api.running": ("RunOptions",),
    "swarm.api.team": ("AgentHandle", "AgentResult", "Team"),
    "swarm.approvals.errors": ("AlreadyAnswered", "ApprovalNotFound", "GrantExists", "GrantNotFound"),
    "swarm.approvals.grants": ("Grant",),
    "swarm.approvals.values": ("Answer", "Approval", "Question", "Verdict"),
    "swarm.bus.addressing": ("Member",),
    "swarm.bus.errors": (
        "AttachmentProblem",
        "BusProblem",
        "ClaimLost",
        "IdTaken",
        "InboxNotFound",
        "MessageNotFound",
        "MessageProblem",
        "NothingToTake",
        "QuotaReached",
    ),
    "swarm.bus.message": ("Message",),
    "swarm.bus.protocol": (
        "Claim",
        "Depth",
        "Event",
        "Holder",
        "Pruned",
        "PrunedAttachments",
        "Receipt",
        "Stored",
        "Task",
        "Trace",
    ),
    "swarm.callers.errors": ("IdentityRefused", "NotAPerson", "NotForAgents", "NotInTree"),
    "swarm.delivery.errors": ("PaneBusy",),
    "swarm.git.errors": (
        "BareRepository",
        "BranchExists",
        "GitBroken",
        "GitBusy",
        "GitFailed",
        "GitMissing",
        "GitTimeout",
        "GitTooOld",
        "NotARepo",
        "RefConflict",
        "RepositoryOwner",
    ),
    "swarm.git.values": ("Commit",),
    "swarm.kit.errors": (
        "Ambiguous",
        "ConfigProblem",
        "EnvironmentProblem",
        "Interrupted",
        "NoPermission",
        "NoSpace",
        "Refused",
        "StateDirProblem",
        "SwarmError",
        "SymlinkInTheWay",
        "UsageProblem",
        "WorktreeError",
    ),
    "swarm.machine.identity": ("Identity",),
    "swarm.merging.errors": (
        "IdentityMissing",
        "MergeBlocked",
        "MergeConflict",
        "NotCommitted",
        "TargetMoved",
        "TargetNotFound",
    ),
    "swarm.merging.values": (
        "ActingFile",
        "AgentForecast",
        "ConflictReport",
        "DiffReport",
        "FileChange",
        "FileConflict",
        "Forecast",
        "HotFile",
        "MergeMethod",
        "MergeReport",
        "MergedAgent",
        "OrderStep",
        "PairForecast",
    ),
    "swarm.messages.deadlines": ("Reply",),
    "swarm.messages.errors": ("AttachmentExists", "SentInPart"),
    "swarm.messages.office.post": ("Sender", "Sent", "Taken"),
    "swarm.messages.queues": ("Queue", "TaskOutcome"),
    "swarm.messages.send_options": ("SendOptions",),
    "swarm.programs.errors": ("ProgramMissing", "RulesNotEnforced"),
    "swarm.programs.role_effects": ("Note",),
    "swarm.programs.status": ("Evidence", "State", "Status"),
    "swarm.programs.reading.transcript": ("EntryKind", "TranscriptEntry", "Speaker"),
    "swarm.project.config.settings": ("Origin", "Setting", "Settings"),
    "swarm.project.errors": (
        "AgentNotFound",
        "ExtraMissing",
        "InvalidName",
        "Locked",
        "NameCollision",
        "RecordProblem",
        "ReservedName",
        "ServerRuns",
        "SessionNotFound",
        "SwarmDirExists",
        "SwarmDirNotFound",
        "SwarmDirProblem",
    ),
    "swarm.project.model": ("Agent", "Boxed", "Parent", "Placed", "Session", "WorktreeEntry"),
    "swarm.project.names": ("AgentSpec",),
    "swarm.roles.errors": (
        "OverrideProblem",
        "PodExists",
        "PodNotFound",
        "RoleExists",
        "RoleNotFound",
        "WorkflowNotFound",
    ),
    "swarm.roles.options": ("RoleOptions",),
    "swarm.roles.pods.template": ("Pod", "PodAgent", "PodTemplate", "PodVariable"),
    "swarm.roles.role": ("Role", "RoleKind"),
    "swarm.roles.workflow": ("Workflow",),
    "swarm.bridges.errors": ("BridgeExists", "BridgeNotFound", "BridgeRuns"),
    "swarm.bridges.place": ("BridgeStatus",),
    "swarm.sandbox.check": ("BoxCheck",),
    "swarm.sandbox.errors": ("IntakeRefused", "NotInBox", "SandboxUnavailable"),
    "swarm.sessions.errors": (
        "AgentExists",
        "BaseNotFound",
        "CleanupFailed",
        "NoRecord",
        "NotReached",
        "RestoreConflict",
        "SessionExists",
        "WaitOver",
    ),
    "swarm.sessions.reports": (
        "Check",
        "CleanupReport",
        "CreateReport",
        "CreatedAgent",
        "Removed",
        "RestoreReport",
        "ResumeReport",
        "Skipped",
        "StopReport",
        "WorktreeDetails",
    ),
    "swarm.sessions.values": ("AgentStatus", "SessionStatus", "WorktreeInfo"),
    "swarm.sessions.waiting": ("Reached",),
    "swarm.terminal.errors": ("TerminalProblem", "TmuxMissing", "TmuxSessionTaken", "TmuxTooOld"),
    "swarm.tree.errors": ("AlreadyThere", "NoParent", "TreeLimit", "Uncommitted"),
    "swarm.tree.values": ("Awaited", "Completion", "FoldedNode", "Notified", "Spawned", "TreeAgent"),
    "swarm.usage.values": ("AgentUsage", "ModelUsage", "UsageReport"),
    "swarm.worktrees.errors": (
        "SalvageFailed",
        "SalvageNotFound",
        "SetupFailed",
        "TeardownFailed",
        "WorkAtRisk",
        "WorktreeExists",
        "WorktreeNotFound",
    ),
    "swarm.worktrees.reports": ("RecoverReport", "Risk", "RiskKind", "SalvageEntry"),
    "swarm.worktrees.setup.setup_values": ("Ended", "Notes"),
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names}
__all__ = ["__version__", *_HOMES]  # noqa: PLE0604  # texts, from the table


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name in _HOMES:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
