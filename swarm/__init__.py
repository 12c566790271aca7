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

TYPE_CHECKING = False  # the module `typing` costs more than everything `swarm version` does
if TYPE_CHECKING:
    from typing import Any

    from swarm.api import Swarm
    from swarm.domain.agent_events import AgentEvent
    from swarm.domain.bus import Claim, Depth, Event, Pruned, Receipt, Stored, Task, Trace
    from swarm.domain.errors import (
        AgentNotFound,
        AgentNotRunning,
        AgentRunning,
        AlreadyAnswered,
        Ambiguous,
        ApprovalNotFound,
        AttachmentExists,
        AttachmentProblem,
        BareRepository,
        BaseNotFound,
        BranchExists,
        BusProblem,
        ClaimLost,
        CleanupFailed,
        ConfigProblem,
        Environment,
        GitBroken,
        GitBusy,
        GitFailed,
        GitMissing,
        GitTimeout,
        GitTooOld,
        GrantExists,
        GrantNotFound,
        IdentityMissing,
        IdTaken,
        InboxNotFound,
        Interrupted,
        InvalidName,
        LimitReached,
        Locked,
        MergeBlocked,
        MergeConflict,
        MessageNotFound,
        MessageProblem,
        NameCollision,
        NoPermission,
        NoRecord,
        NoSpace,
        NotAPerson,
        NotARepo,
        NotCommitted,
        NotForAgents,
        NothingToTake,
        NotReached,
        PaneBusy,
        ProgramMissing,
        QuotaReached,
        RecordProblem,
        RefConflict,
        Refused,
        RepositoryOwner,
        ReservedName,
        RestoreConflict,
        RoleExists,
        RoleNotFound,
        RulesNotHeld,
        SalvageFailed,
        SalvageNotFound,
        SentInPart,
        SessionExists,
        SessionNotFound,
        SetupFailed,
        StateDirProblem,
        SwarmDirExists,
        SwarmDirNotFound,
        SwarmDirProblem,
        SwarmError,
        SymlinkInTheWay,
        TargetMoved,
        TargetNotFound,
        TeardownFailed,
        TerminalProblem,
        TmuxMissing,
        TmuxSessionTaken,
        TmuxTooOld,
        UsageProblem,
        WaitOver,
        WorkAtRisk,
        WorkflowNotFound,
        WorktreeError,
        WorktreeExists,
        WorktreeNotFound,
    )
    from swarm.domain.message import Message
    from swarm.domain.transcript import TranscriptEntry
    from swarm.domain.usage import AgentUsage, ModelUsage, UsageReport
    from swarm.engine.overdue import Reply
    from swarm.engine.post import Post, Sender, Sent, Taken
    from swarm.engine.queues import Queue, Settled
    from swarm.engine.waiting import Reached

__all__ = [
    "AgentEvent",
    "AgentNotFound",
    "AgentNotRunning",
    "AgentRunning",
    "AgentUsage",
    "AlreadyAnswered",
    "Ambiguous",
    "ApprovalNotFound",
    "AttachmentExists",
    "AttachmentProblem",
    "BareRepository",
    "BaseNotFound",
    "BranchExists",
    "BusProblem",
    "Claim",
    "ClaimLost",
    "CleanupFailed",
    "ConfigProblem",
    "Depth",
    "Environment",
    "Event",
    "GitBroken",
    "GitBusy",
    "GitFailed",
    "GitMissing",
    "GitTimeout",
    "GitTooOld",
    "GrantExists",
    "GrantNotFound",
    "IdTaken",
    "IdentityMissing",
    "InboxNotFound",
    "Interrupted",
    "InvalidName",
    "LimitReached",
    "Locked",
    "MergeBlocked",
    "MergeConflict",
    "Message",
    "MessageNotFound",
    "MessageProblem",
    "ModelUsage",
    "NameCollision",
    "NoPermission",
    "NoRecord",
    "NoSpace",
    "NotAPerson",
    "NotARepo",
    "NotCommitted",
    "NotForAgents",
    "NotReached",
    "NothingToTake",
    "PaneBusy",
    "Post",
    "ProgramMissing",
    "Pruned",
    "PrunedAttachments",
    "Queue",
    "QuotaReached",
    "Reached",
    "Receipt",
    "RecordProblem",
    "RefConflict",
    "Refused",
    "Reply",
    "RepositoryOwner",
    "ReservedName",
    "RestoreConflict",
    "RoleExists",
    "RoleNotFound",
    "RulesNotHeld",
    "SalvageFailed",
    "SalvageNotFound",
    "Sender",
    "Sent",
    "SentInPart",
    "SessionExists",
    "SessionNotFound",
    "Settled",
    "SetupFailed",
    "StateDirProblem",
    "Stored",
    "Swarm",
    "SwarmDirExists",
    "SwarmDirNotFound",
    "SwarmDirProblem",
    "SwarmError",
    "SymlinkInTheWay",
    "Taken",
    "TargetMoved",
    "TargetNotFound",
    "Task",
    "TeardownFailed",
    "TerminalProblem",
    "TmuxMissing",
    "TmuxSessionTaken",
    "TmuxTooOld",
    "Trace",
    "TranscriptEntry",
    "UsageProblem",
    "UsageReport",
    "WaitOver",
    "WorkAtRisk",
    "WorkflowNotFound",
    "WorktreeError",
    "WorktreeExists",
    "WorktreeNotFound",
    "__version__",
]


_HOMES = {
    **dict.fromkeys(__all__, "swarm.domain.errors"),
    "Swarm": "swarm.api",
    "AgentEvent": "swarm.domain.agent_events",
    **dict.fromkeys(
        ("Claim", "Depth", "Event", "Pruned", "PrunedAttachments", "Receipt", "Stored", "Task", "Trace"),
        "swarm.domain.bus",
    ),
    "Message": "swarm.domain.message",
    "TranscriptEntry": "swarm.domain.transcript",
    **dict.fromkeys(("AgentUsage", "ModelUsage", "UsageReport"), "swarm.domain.usage"),
    "Reply": "swarm.engine.overdue",
    **dict.fromkeys(("Post", "Sender", "Sent", "Taken"), "swarm.engine.post"),
    **dict.fromkeys(("Queue", "Settled"), "swarm.engine.queues"),
    "Reached": "swarm.engine.waiting",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _HOMES:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
