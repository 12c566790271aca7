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
    from swarm.agents.errors import AgentNotRunning, AgentRunning, LimitReached
    from swarm.agents.event_values import AgentEvent
    from swarm.api.asynchronous import AsyncSwarm
    from swarm.api.roles import CheckedRole, Roles
    from swarm.api.swarm import Swarm
    from swarm.api.team import AgentHandle, AgentResult, Team
    from swarm.approvals.errors import AlreadyAnswered, ApprovalNotFound, GrantExists, GrantNotFound
    from swarm.approvals.grants import Grant
    from swarm.approvals.values import Answer, Approval, Question, Verdict
    from swarm.bus.errors import (
        AttachmentProblem,
        BusProblem,
        ClaimLost,
        IdTaken,
        InboxNotFound,
        MessageNotFound,
        MessageProblem,
        NothingToTake,
        QuotaReached,
    )
    from swarm.bus.message import Message
    from swarm.bus.protocol import Claim, Depth, Event, Pruned, PrunedAttachments, Receipt, Stored, Task, Trace
    from swarm.callers.errors import NotAPerson, NotForAgents
    from swarm.delivery.errors import PaneBusy
    from swarm.git.errors import (
        BareRepository,
        BranchExists,
        GitBroken,
        GitBusy,
        GitFailed,
        GitMissing,
        GitTimeout,
        GitTooOld,
        NotARepo,
        RefConflict,
        RepositoryOwner,
    )
    from swarm.kit.errors import (
        Ambiguous,
        ConfigProblem,
        Environment,
        Interrupted,
        NoPermission,
        NoSpace,
        Refused,
        StateDirProblem,
        SwarmError,
        SymlinkInTheWay,
        UsageProblem,
        WorktreeError,
    )
    from swarm.merging.errors import (
        IdentityMissing,
        MergeBlocked,
        MergeConflict,
        NotCommitted,
        TargetMoved,
        TargetNotFound,
    )
    from swarm.merging.values import (
        AgentForecast,
        ConflictReport,
        DiffReport,
        FileChange,
        FileConflict,
        Forecast,
        HotFile,
        How,
        MergedAgent,
        MergeReport,
        OrderStep,
        PairForecast,
    )
    from swarm.messages.deadlines import Reply
    from swarm.messages.errors import AttachmentExists, SentInPart
    from swarm.messages.post import Post, Sender, Sent, Taken
    from swarm.messages.queues import Queue, Settled
    from swarm.messages.send_options import SendOptions
    from swarm.programs.errors import ProgramMissing, RulesNotHeld
    from swarm.programs.role_effects import Note
    from swarm.programs.status import Evidence, State, Status
    from swarm.programs.transcript import Kind, TranscriptEntry, Who
    from swarm.project.config.settings import Settings
    from swarm.project.errors import (
        AgentNotFound,
        InvalidName,
        Locked,
        NameCollision,
        RecordProblem,
        ReservedName,
        SessionNotFound,
        SwarmDirExists,
        SwarmDirNotFound,
        SwarmDirProblem,
    )
    from swarm.project.model import Agent, Parent, Placed, Session, WorktreeEntry
    from swarm.project.names import AgentSpec
    from swarm.project.reports import (
        AgentStatus,
        Check,
        CleanupReport,
        Commit,
        CreatedAgent,
        CreateReport,
        RecoverReport,
        Removed,
        RestoreReport,
        ResumeReport,
        Risk,
        SalvageEntry,
        SessionStatus,
        Skipped,
        StopReport,
        WorktreeDetails,
        WorktreeInfo,
    )
    from swarm.roles.errors import RoleExists, RoleNotFound, WorkflowNotFound
    from swarm.roles.options import RoleOptions
    from swarm.roles.role import Role
    from swarm.roles.workflow import Workflow
    from swarm.sessions.errors import (
        BaseNotFound,
        CleanupFailed,
        NoRecord,
        NotReached,
        RestoreConflict,
        SessionExists,
        WaitOver,
    )
    from swarm.sessions.waiting import Reached
    from swarm.terminal.errors import TerminalProblem, TmuxMissing, TmuxSessionTaken, TmuxTooOld
    from swarm.usage.values import AgentUsage, ModelUsage, UsageReport
    from swarm.worktrees.errors import (
        SalvageFailed,
        SalvageNotFound,
        SetupFailed,
        TeardownFailed,
        WorkAtRisk,
        WorktreeExists,
        WorktreeNotFound,
    )
    from swarm.worktrees.setup_values import Ended, Notes

__all__ = [
    "Agent",
    "AgentEvent",
    "AgentForecast",
    "AgentHandle",
    "AgentNotFound",
    "AgentNotRunning",
    "AgentResult",
    "AgentRunning",
    "AgentSpec",
    "AgentStatus",
    "AgentUsage",
    "AlreadyAnswered",
    "Ambiguous",
    "Answer",
    "Approval",
    "ApprovalNotFound",
    "AsyncSwarm",
    "AttachmentExists",
    "AttachmentProblem",
    "BareRepository",
    "BaseNotFound",
    "BranchExists",
    "BusProblem",
    "Check",
    "CheckedRole",
    "Claim",
    "ClaimLost",
    "CleanupFailed",
    "CleanupReport",
    "Commit",
    "ConfigProblem",
    "ConflictReport",
    "CreateReport",
    "CreatedAgent",
    "Depth",
    "DiffReport",
    "Ended",
    "Environment",
    "Event",
    "Evidence",
    "FileChange",
    "FileConflict",
    "Forecast",
    "GitBroken",
    "GitBusy",
    "GitFailed",
    "GitMissing",
    "GitTimeout",
    "GitTooOld",
    "Grant",
    "GrantExists",
    "GrantNotFound",
    "HotFile",
    "How",
    "IdTaken",
    "IdentityMissing",
    "InboxNotFound",
    "Interrupted",
    "InvalidName",
    "Kind",
    "LimitReached",
    "Locked",
    "MergeBlocked",
    "MergeConflict",
    "MergeReport",
    "MergedAgent",
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
    "Note",
    "Notes",
    "NothingToTake",
    "OrderStep",
    "PairForecast",
    "PaneBusy",
    "Parent",
    "Placed",
    "Post",
    "ProgramMissing",
    "Pruned",
    "PrunedAttachments",
    "Question",
    "Queue",
    "QuotaReached",
    "Reached",
    "Receipt",
    "RecordProblem",
    "RecoverReport",
    "RefConflict",
    "Refused",
    "Removed",
    "Reply",
    "RepositoryOwner",
    "ReservedName",
    "RestoreConflict",
    "RestoreReport",
    "ResumeReport",
    "Risk",
    "Role",
    "RoleExists",
    "RoleNotFound",
    "RoleOptions",
    "Roles",
    "RulesNotHeld",
    "SalvageEntry",
    "SalvageFailed",
    "SalvageNotFound",
    "SendOptions",
    "Sender",
    "Sent",
    "SentInPart",
    "Session",
    "SessionExists",
    "SessionNotFound",
    "SessionStatus",
    "Settings",
    "Settled",
    "SetupFailed",
    "Skipped",
    "State",
    "StateDirProblem",
    "Status",
    "StopReport",
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
    "Team",
    "TeardownFailed",
    "TerminalProblem",
    "TmuxMissing",
    "TmuxSessionTaken",
    "TmuxTooOld",
    "Trace",
    "TranscriptEntry",
    "UsageProblem",
    "UsageReport",
    "Verdict",
    "WaitOver",
    "Who",
    "WorkAtRisk",
    "Workflow",
    "WorkflowNotFound",
    "WorktreeDetails",
    "WorktreeEntry",
    "WorktreeError",
    "WorktreeExists",
    "WorktreeInfo",
    "WorktreeNotFound",
    "__version__",
]


_HOMES = {
    **dict.fromkeys(__all__, "swarm.kit.errors"),
    **dict.fromkeys(
        (
            "AgentNotRunning",
            "AgentRunning",
            "LimitReached",
        ),
        "swarm.agents.errors",
    ),
    **dict.fromkeys(
        (
            "AlreadyAnswered",
            "ApprovalNotFound",
            "GrantExists",
            "GrantNotFound",
        ),
        "swarm.approvals.errors",
    ),
    **dict.fromkeys(
        (
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
        "swarm.bus.errors",
    ),
    **dict.fromkeys(
        (
            "NotAPerson",
            "NotForAgents",
        ),
        "swarm.callers.errors",
    ),
    **dict.fromkeys(("PaneBusy",), "swarm.delivery.errors"),
    **dict.fromkeys(
        (
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
        "swarm.git.errors",
    ),
    **dict.fromkeys(
        (
            "IdentityMissing",
            "MergeBlocked",
            "MergeConflict",
            "NotCommitted",
            "TargetMoved",
            "TargetNotFound",
        ),
        "swarm.merging.errors",
    ),
    **dict.fromkeys(
        (
            "AttachmentExists",
            "SentInPart",
        ),
        "swarm.messages.errors",
    ),
    **dict.fromkeys(
        (
            "ProgramMissing",
            "RulesNotHeld",
        ),
        "swarm.programs.errors",
    ),
    **dict.fromkeys(
        (
            "AgentNotFound",
            "InvalidName",
            "Locked",
            "NameCollision",
            "RecordProblem",
            "ReservedName",
            "SessionNotFound",
            "SwarmDirExists",
            "SwarmDirNotFound",
            "SwarmDirProblem",
        ),
        "swarm.project.errors",
    ),
    **dict.fromkeys(
        (
            "RoleExists",
            "RoleNotFound",
            "WorkflowNotFound",
        ),
        "swarm.roles.errors",
    ),
    **dict.fromkeys(
        (
            "BaseNotFound",
            "CleanupFailed",
            "NoRecord",
            "NotReached",
            "RestoreConflict",
            "SessionExists",
            "WaitOver",
        ),
        "swarm.sessions.errors",
    ),
    **dict.fromkeys(
        (
            "TerminalProblem",
            "TmuxMissing",
            "TmuxSessionTaken",
            "TmuxTooOld",
        ),
        "swarm.terminal.errors",
    ),
    **dict.fromkeys(
        (
            "SalvageFailed",
            "SalvageNotFound",
            "SetupFailed",
            "TeardownFailed",
            "WorkAtRisk",
            "WorktreeExists",
            "WorktreeNotFound",
        ),
        "swarm.worktrees.errors",
    ),
    "AsyncSwarm": "swarm.api.asynchronous",
    "Swarm": "swarm.api.swarm",
    **dict.fromkeys(("CheckedRole", "Roles"), "swarm.api.roles"),
    "Note": "swarm.programs.role_effects",
    **dict.fromkeys(("AgentHandle", "AgentResult", "Team"), "swarm.api.team"),
    "SendOptions": "swarm.messages.send_options",
    "AgentEvent": "swarm.agents.event_values",
    **dict.fromkeys(
        ("Claim", "Depth", "Event", "Pruned", "PrunedAttachments", "Receipt", "Stored", "Task", "Trace"),
        "swarm.bus.protocol",
    ),
    **dict.fromkeys(("Answer", "Approval", "Question"), "swarm.approvals.values"),
    **dict.fromkeys(
        (
            "AgentForecast",
            "ConflictReport",
            "DiffReport",
            "FileChange",
            "FileConflict",
            "HotFile",
            "MergedAgent",
            "MergeReport",
            "OrderStep",
            "PairForecast",
        ),
        "swarm.merging.values",
    ),
    **dict.fromkeys(("Agent", "Parent", "Placed", "Session", "WorktreeEntry"), "swarm.project.model"),
    **dict.fromkeys(
        (
            "AgentStatus",
            "Check",
            "CleanupReport",
            "Commit",
            "CreatedAgent",
            "CreateReport",
            "RecoverReport",
            "Removed",
            "RestoreReport",
            "ResumeReport",
            "Risk",
            "SalvageEntry",
            "SessionStatus",
            "Skipped",
            "StopReport",
            "WorktreeDetails",
            "WorktreeInfo",
        ),
        "swarm.project.reports",
    ),
    "AgentSpec": "swarm.project.names",
    **dict.fromkeys(("Ended", "Notes"), "swarm.worktrees.setup_values"),
    "Role": "swarm.roles.role",
    "RoleOptions": "swarm.roles.options",
    "Settings": "swarm.project.config.settings",
    **dict.fromkeys(("Evidence", "State", "Status"), "swarm.programs.status"),
    "Workflow": "swarm.roles.workflow",
    "Message": "swarm.bus.message",
    **dict.fromkeys(("Kind", "TranscriptEntry", "Who"), "swarm.programs.transcript"),
    **dict.fromkeys(("Forecast", "How"), "swarm.merging.values"),
    "Verdict": "swarm.approvals.values",
    **dict.fromkeys(("AgentUsage", "ModelUsage", "UsageReport"), "swarm.usage.values"),
    "Reply": "swarm.messages.deadlines",
    **dict.fromkeys(("Post", "Sender", "Sent", "Taken"), "swarm.messages.post"),
    **dict.fromkeys(("Queue", "Settled"), "swarm.messages.queues"),
    "Reached": "swarm.sessions.waiting",
    "Grant": "swarm.approvals.grants",
}


if not TYPE_CHECKING:  # a type checker that saw it would take every name for a public one

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name in _HOMES:
            from importlib import import_module

            value = globals()[name] = getattr(import_module(_HOMES[name]), name)
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
