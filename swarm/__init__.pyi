from swarm.agents.errors import AgentNotRunning as AgentNotRunning
from swarm.agents.errors import AgentRunning as AgentRunning
from swarm.agents.errors import LimitReached as LimitReached
from swarm.agents.errors import NotHeld as NotHeld
from swarm.agents.errors import WaitCycle as WaitCycle
from swarm.agents.event_values import AgentEvent as AgentEvent
from swarm.agents.outside import Outside as Outside
from swarm.api.approvals import Approvals as Approvals
from swarm.api.asynchronous import AsyncLive as AsyncLive
from swarm.api.asynchronous import AsyncMessages as AsyncMessages
from swarm.api.asynchronous import AsyncQueues as AsyncQueues
from swarm.api.asynchronous import AsyncSwarm as AsyncSwarm
from swarm.api.asynchronous import AsyncTasks as AsyncTasks
from swarm.api.boxes import Boxes as Boxes
from swarm.api.boxes import BoxReport as BoxReport
from swarm.api.bridges import Bridges as Bridges
from swarm.api.config import Config as Config
from swarm.api.delivery import Delivery as Delivery
from swarm.api.events import Events as Events
from swarm.api.hooks import Hooks as Hooks
from swarm.api.messages import Messages as Messages
from swarm.api.operations import Operations as Operations
from swarm.api.panes import Panes as Panes
from swarm.api.pods import CheckedPod as CheckedPod
from swarm.api.pods import Pods as Pods
from swarm.api.queues import Queues as Queues
from swarm.api.roles import CheckedRole as CheckedRole
from swarm.api.roles import Roles as Roles
from swarm.api.running import RunOptions as RunOptions
from swarm.api.salvage import Salvage as Salvage
from swarm.api.sandbox import Sandbox as Sandbox
from swarm.api.services import Services as Services
from swarm.api.sessions import Sessions as Sessions
from swarm.api.swarm import Swarm as Swarm
from swarm.api.tasks import Tasks as Tasks
from swarm.api.team import AgentHandle as AgentHandle
from swarm.api.team import AgentResult as AgentResult
from swarm.api.team import Team as Team
from swarm.api.tree import SpawnOptions as SpawnOptions
from swarm.api.tree import Tree as Tree
from swarm.api.usage import Usage as Usage
from swarm.api.workflows import Workflows as Workflows
from swarm.api.worktrees import Worktrees as Worktrees
from swarm.approvals.errors import AlreadyAnswered as AlreadyAnswered
from swarm.approvals.errors import ApprovalNotFound as ApprovalNotFound
from swarm.approvals.errors import GrantExists as GrantExists
from swarm.approvals.errors import GrantNotFound as GrantNotFound
from swarm.approvals.grants import Grant as Grant
from swarm.approvals.values import Answer as Answer
from swarm.approvals.values import Approval as Approval
from swarm.approvals.values import Question as Question
from swarm.approvals.values import Verdict as Verdict
from swarm.bridges.errors import BridgeExists as BridgeExists
from swarm.bridges.errors import BridgeNotFound as BridgeNotFound
from swarm.bridges.errors import BridgeRuns as BridgeRuns
from swarm.bridges.place import BridgeStatus as BridgeStatus
from swarm.bus.addressing import Member as Member
from swarm.bus.errors import AttachmentProblem as AttachmentProblem
from swarm.bus.errors import BusProblem as BusProblem
from swarm.bus.errors import ClaimLost as ClaimLost
from swarm.bus.errors import IdTaken as IdTaken
from swarm.bus.errors import InboxNotFound as InboxNotFound
from swarm.bus.errors import MessageNotFound as MessageNotFound
from swarm.bus.errors import MessageProblem as MessageProblem
from swarm.bus.errors import NothingToTake as NothingToTake
from swarm.bus.errors import QuotaReached as QuotaReached
from swarm.bus.message import Message as Message
from swarm.bus.protocol import Claim as Claim
from swarm.bus.protocol import Depth as Depth
from swarm.bus.protocol import Event as Event
from swarm.bus.protocol import Holder as Holder
from swarm.bus.protocol import Pruned as Pruned
from swarm.bus.protocol import PrunedAttachments as PrunedAttachments
from swarm.bus.protocol import Receipt as Receipt
from swarm.bus.protocol import Stored as Stored
from swarm.bus.protocol import Task as Task
from swarm.bus.protocol import Trace as Trace
from swarm.callers.errors import IdentityRefused as IdentityRefused
from swarm.callers.errors import NotAPerson as NotAPerson
from swarm.callers.errors import NotForAgents as NotForAgents
from swarm.callers.errors import NotInTree as NotInTree
from swarm.delivery.errors import PaneBusy as PaneBusy
from swarm.eventlog.values import LogEvent as LogEvent
from swarm.eventlog.values import LogPage as LogPage
from swarm.git.errors import BareRepository as BareRepository
from swarm.git.errors import BranchExists as BranchExists
from swarm.git.errors import GitBroken as GitBroken
from swarm.git.errors import GitBusy as GitBusy
from swarm.git.errors import GitFailed as GitFailed
from swarm.git.errors import GitMissing as GitMissing
from swarm.git.errors import GitTimeout as GitTimeout
from swarm.git.errors import GitTooOld as GitTooOld
from swarm.git.errors import NotARepo as NotARepo
from swarm.git.errors import RefConflict as RefConflict
from swarm.git.errors import RepositoryOwner as RepositoryOwner
from swarm.git.values import Commit as Commit
from swarm.kit.errors import Ambiguous as Ambiguous
from swarm.kit.errors import ConfigProblem as ConfigProblem
from swarm.kit.errors import EnvironmentProblem as EnvironmentProblem
from swarm.kit.errors import Interrupted as Interrupted
from swarm.kit.errors import NoPermission as NoPermission
from swarm.kit.errors import NoSpace as NoSpace
from swarm.kit.errors import Refused as Refused
from swarm.kit.errors import StateDirProblem as StateDirProblem
from swarm.kit.errors import SwarmError as SwarmError
from swarm.kit.errors import SymlinkInTheWay as SymlinkInTheWay
from swarm.kit.errors import UsageProblem as UsageProblem
from swarm.kit.errors import WorktreeError as WorktreeError
from swarm.live.live import Live as Live
from swarm.live.values import Change as Change
from swarm.live.values import Snapshot as Snapshot
from swarm.machine.identity import Identity as Identity
from swarm.merging.errors import IdentityMissing as IdentityMissing
from swarm.merging.errors import MergeBlocked as MergeBlocked
from swarm.merging.errors import MergeConflict as MergeConflict
from swarm.merging.errors import NotCommitted as NotCommitted
from swarm.merging.errors import TargetMoved as TargetMoved
from swarm.merging.errors import TargetNotFound as TargetNotFound
from swarm.merging.errors import TooMuchToRead as TooMuchToRead
from swarm.merging.values import ActingFile as ActingFile
from swarm.merging.values import AgentForecast as AgentForecast
from swarm.merging.values import ConflictReport as ConflictReport
from swarm.merging.values import DiffReport as DiffReport
from swarm.merging.values import FileChange as FileChange
from swarm.merging.values import FileConflict as FileConflict
from swarm.merging.values import Forecast as Forecast
from swarm.merging.values import HotFile as HotFile
from swarm.merging.values import MergedAgent as MergedAgent
from swarm.merging.values import MergeMethod as MergeMethod
from swarm.merging.values import MergeReport as MergeReport
from swarm.merging.values import OrderStep as OrderStep
from swarm.merging.values import PairForecast as PairForecast
from swarm.messages.deadlines import Reply as Reply
from swarm.messages.errors import AttachmentExists as AttachmentExists
from swarm.messages.errors import SentInPart as SentInPart
from swarm.messages.errors import TooManyMessages as TooManyMessages
from swarm.messages.office.post import Sender as Sender
from swarm.messages.office.post import Sent as Sent
from swarm.messages.office.post import Taken as Taken
from swarm.messages.queues import Queue as Queue
from swarm.messages.queues import TaskOutcome as TaskOutcome
from swarm.messages.send_options import SendOptions as SendOptions
from swarm.programs.errors import ProgramMissing as ProgramMissing
from swarm.programs.errors import RulesNotEnforced as RulesNotEnforced
from swarm.programs.reading.transcript import EntryKind as EntryKind
from swarm.programs.reading.transcript import Speaker as Speaker
from swarm.programs.reading.transcript import TranscriptEntry as TranscriptEntry
from swarm.programs.role_effects import Note as Note
from swarm.programs.rule_holds import RuleHold as RuleHold
from swarm.programs.status import Evidence as Evidence
from swarm.programs.status import State as State
from swarm.programs.status import Status as Status
from swarm.project.config.settings import Origin as Origin
from swarm.project.config.settings import Setting as Setting
from swarm.project.config.settings import Settings as Settings
from swarm.project.errors import AgentNotFound as AgentNotFound
from swarm.project.errors import ExtraMissing as ExtraMissing
from swarm.project.errors import InvalidName as InvalidName
from swarm.project.errors import Locked as Locked
from swarm.project.errors import NameCollision as NameCollision
from swarm.project.errors import RecordProblem as RecordProblem
from swarm.project.errors import ReservedName as ReservedName
from swarm.project.errors import ServerRuns as ServerRuns
from swarm.project.errors import SessionNotFound as SessionNotFound
from swarm.project.errors import SwarmDirExists as SwarmDirExists
from swarm.project.errors import SwarmDirNotFound as SwarmDirNotFound
from swarm.project.errors import SwarmDirProblem as SwarmDirProblem
from swarm.project.model import Agent as Agent
from swarm.project.model import Boxed as Boxed
from swarm.project.model import Parent as Parent
from swarm.project.model import Placed as Placed
from swarm.project.model import Session as Session
from swarm.project.model import WorktreeEntry as WorktreeEntry
from swarm.project.names import AgentSpec as AgentSpec
from swarm.roles.errors import OverrideProblem as OverrideProblem
from swarm.roles.errors import PodExists as PodExists
from swarm.roles.errors import PodNotFound as PodNotFound
from swarm.roles.errors import RoleExists as RoleExists
from swarm.roles.errors import RoleNotFound as RoleNotFound
from swarm.roles.errors import WorkflowNotFound as WorkflowNotFound
from swarm.roles.options import RoleOptions as RoleOptions
from swarm.roles.pods.template import Pod as Pod
from swarm.roles.pods.template import PodAgent as PodAgent
from swarm.roles.pods.template import PodTemplate as PodTemplate
from swarm.roles.pods.template import PodVariable as PodVariable
from swarm.roles.role import Role as Role
from swarm.roles.role import RoleKind as RoleKind
from swarm.roles.workflows import Workflow as Workflow
from swarm.sandbox.check import BoxCheck as BoxCheck
from swarm.sandbox.errors import IntakeRefused as IntakeRefused
from swarm.sandbox.errors import NotInBox as NotInBox
from swarm.sandbox.errors import SandboxUnavailable as SandboxUnavailable
from swarm.sandbox.inside import Said as Said
from swarm.services.calling import ServiceReply as ServiceReply
from swarm.services.errors import BrowserNotFound as BrowserNotFound
from swarm.services.errors import CodeRefused as CodeRefused
from swarm.services.errors import ComponentNotFound as ComponentNotFound
from swarm.services.errors import ComponentRuns as ComponentRuns
from swarm.services.errors import LooseMode as LooseMode
from swarm.services.errors import ServiceProblem as ServiceProblem
from swarm.services.values import Component as Component
from swarm.services.values import ComponentEnded as ComponentEnded
from swarm.services.values import ComponentHealth as ComponentHealth
from swarm.services.values import UnitFile as UnitFile
from swarm.sessions.errors import AgentExists as AgentExists
from swarm.sessions.errors import BaseNotFound as BaseNotFound
from swarm.sessions.errors import CleanupFailed as CleanupFailed
from swarm.sessions.errors import NoRecord as NoRecord
from swarm.sessions.errors import NotReached as NotReached
from swarm.sessions.errors import RestoreConflict as RestoreConflict
from swarm.sessions.errors import SessionExists as SessionExists
from swarm.sessions.errors import WaitOver as WaitOver
from swarm.sessions.reports import Check as Check
from swarm.sessions.reports import CleanupReport as CleanupReport
from swarm.sessions.reports import CreatedAgent as CreatedAgent
from swarm.sessions.reports import CreateReport as CreateReport
from swarm.sessions.reports import Removed as Removed
from swarm.sessions.reports import RestoreReport as RestoreReport
from swarm.sessions.reports import ResumeReport as ResumeReport
from swarm.sessions.reports import Skipped as Skipped
from swarm.sessions.reports import StopReport as StopReport
from swarm.sessions.reports import WorktreeDetails as WorktreeDetails
from swarm.sessions.values import AgentStatus as AgentStatus
from swarm.sessions.values import SessionStatus as SessionStatus
from swarm.sessions.values import WorktreeInfo as WorktreeInfo
from swarm.sessions.waiting import Reached as Reached
from swarm.tasks.errors import NotReturned as NotReturned
from swarm.tasks.errors import TaskBusy as TaskBusy
from swarm.tasks.errors import TaskFailed as TaskFailed
from swarm.tasks.errors import TaskInPane as TaskInPane
from swarm.tasks.errors import TaskNotFound as TaskNotFound
from swarm.tasks.errors import TaskNotHeld as TaskNotHeld
from swarm.tasks.errors import TaskNotIdle as TaskNotIdle
from swarm.tasks.errors import TaskNotTaken as TaskNotTaken
from swarm.tasks.errors import TaskOver as TaskOver
from swarm.tasks.errors import TaskTaken as TaskTaken
from swarm.tasks.requests import TaskOptions as TaskOptions
from swarm.tasks.values import AgentTask as AgentTask
from swarm.tasks.values import FailureType as FailureType
from swarm.tasks.values import InPane as InPane
from swarm.tasks.values import MessageState as MessageState
from swarm.tasks.values import Place as Place
from swarm.tasks.values import TaskEvent as TaskEvent
from swarm.tasks.values import TaskFailure as TaskFailure
from swarm.tasks.values import TaskMessage as TaskMessage
from swarm.tasks.values import TaskOutput as TaskOutput
from swarm.tasks.values import TaskPage as TaskPage
from swarm.tasks.values import TaskRun as TaskRun
from swarm.tasks.values import TaskState as TaskState
from swarm.tasks.values import TokenUsage as TokenUsage
from swarm.tasks.values import TurnReceipt as TurnReceipt
from swarm.terminal.errors import TerminalProblem as TerminalProblem
from swarm.terminal.errors import TmuxMissing as TmuxMissing
from swarm.terminal.errors import TmuxSessionTaken as TmuxSessionTaken
from swarm.terminal.errors import TmuxTooOld as TmuxTooOld
from swarm.tree.errors import AlreadyThere as AlreadyThere
from swarm.tree.errors import NoParent as NoParent
from swarm.tree.errors import TreeLimit as TreeLimit
from swarm.tree.errors import Uncommitted as Uncommitted
from swarm.tree.values import Awaited as Awaited
from swarm.tree.values import Completion as Completion
from swarm.tree.values import FoldedNode as FoldedNode
from swarm.tree.values import Notified as Notified
from swarm.tree.values import Spawned as Spawned
from swarm.tree.values import TreeAgent as TreeAgent
from swarm.usage.values import AgentUsage as AgentUsage
from swarm.usage.values import ModelUsage as ModelUsage
from swarm.usage.values import UsageReport as UsageReport
from swarm.version import __version__ as __version__
from swarm.worktrees.errors import SalvageFailed as SalvageFailed
from swarm.worktrees.errors import SalvageNotFound as SalvageNotFound
from swarm.worktrees.errors import SetupFailed as SetupFailed
from swarm.worktrees.errors import TeardownFailed as TeardownFailed
from swarm.worktrees.errors import WorkAtRisk as WorkAtRisk
from swarm.worktrees.errors import WorktreeExists as WorktreeExists
from swarm.worktrees.errors import WorktreeNotFound as WorktreeNotFound
from swarm.worktrees.reports import Pooled as Pooled
from swarm.worktrees.reports import RecoverReport as RecoverReport
from swarm.worktrees.reports import Risk as Risk
from swarm.worktrees.reports import RiskKind as RiskKind
from swarm.worktrees.reports import SalvageEntry as SalvageEntry
from swarm.worktrees.setup.setup_values import Ended as Ended
from swarm.worktrees.setup.setup_values import Notes as Notes

__all__ = [
    "ActingFile",
    "Agent",
    "AgentEvent",
    "AgentExists",
    "AgentForecast",
    "AgentHandle",
    "AgentNotFound",
    "AgentNotRunning",
    "AgentResult",
    "AgentRunning",
    "AgentSpec",
    "AgentStatus",
    "AgentTask",
    "AgentUsage",
    "AlreadyAnswered",
    "AlreadyThere",
    "Ambiguous",
    "Answer",
    "Approval",
    "ApprovalNotFound",
    "Approvals",
    "AsyncLive",
    "AsyncMessages",
    "AsyncQueues",
    "AsyncSwarm",
    "AsyncTasks",
    "AttachmentExists",
    "AttachmentProblem",
    "Awaited",
    "BareRepository",
    "BaseNotFound",
    "BoxCheck",
    "BoxReport",
    "Boxed",
    "Boxes",
    "BranchExists",
    "BridgeExists",
    "BridgeNotFound",
    "BridgeRuns",
    "BridgeStatus",
    "Bridges",
    "BrowserNotFound",
    "BusProblem",
    "Change",
    "Check",
    "CheckedPod",
    "CheckedRole",
    "Claim",
    "ClaimLost",
    "CleanupFailed",
    "CleanupReport",
    "CodeRefused",
    "Commit",
    "Completion",
    "Component",
    "ComponentEnded",
    "ComponentHealth",
    "ComponentNotFound",
    "ComponentRuns",
    "Config",
    "ConfigProblem",
    "ConflictReport",
    "CreateReport",
    "CreatedAgent",
    "Delivery",
    "Depth",
    "DiffReport",
    "Ended",
    "EntryKind",
    "EnvironmentProblem",
    "Event",
    "Events",
    "Evidence",
    "ExtraMissing",
    "FailureType",
    "FileChange",
    "FileConflict",
    "FoldedNode",
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
    "Holder",
    "Hooks",
    "HotFile",
    "IdTaken",
    "Identity",
    "IdentityMissing",
    "IdentityRefused",
    "InPane",
    "InboxNotFound",
    "IntakeRefused",
    "Interrupted",
    "InvalidName",
    "LimitReached",
    "Live",
    "Locked",
    "LogEvent",
    "LogPage",
    "LooseMode",
    "Member",
    "MergeBlocked",
    "MergeConflict",
    "MergeMethod",
    "MergeReport",
    "MergedAgent",
    "Message",
    "MessageNotFound",
    "MessageProblem",
    "MessageState",
    "Messages",
    "ModelUsage",
    "NameCollision",
    "NoParent",
    "NoPermission",
    "NoRecord",
    "NoSpace",
    "NotAPerson",
    "NotARepo",
    "NotCommitted",
    "NotForAgents",
    "NotHeld",
    "NotInBox",
    "NotInTree",
    "NotReached",
    "NotReturned",
    "Note",
    "Notes",
    "NothingToTake",
    "Notified",
    "Operations",
    "OrderStep",
    "Origin",
    "Outside",
    "OverrideProblem",
    "PairForecast",
    "PaneBusy",
    "Panes",
    "Parent",
    "Place",
    "Placed",
    "Pod",
    "PodAgent",
    "PodExists",
    "PodNotFound",
    "PodTemplate",
    "PodVariable",
    "Pods",
    "ProgramMissing",
    "Pruned",
    "PrunedAttachments",
    "Question",
    "Queue",
    "Queues",
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
    "RiskKind",
    "Role",
    "RoleExists",
    "RoleKind",
    "RoleNotFound",
    "RoleOptions",
    "Roles",
    "RuleHold",
    "RulesNotEnforced",
    "RunOptions",
    "Said",
    "Salvage",
    "SalvageEntry",
    "SalvageFailed",
    "SalvageNotFound",
    "Sandbox",
    "SandboxUnavailable",
    "SendOptions",
    "Sender",
    "Sent",
    "SentInPart",
    "ServerRuns",
    "ServiceProblem",
    "ServiceReply",
    "Services",
    "Session",
    "SessionExists",
    "SessionNotFound",
    "SessionStatus",
    "Sessions",
    "Setting",
    "Settings",
    "SetupFailed",
    "Skipped",
    "Snapshot",
    "SpawnOptions",
    "Spawned",
    "Speaker",
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
    "TaskBusy",
    "TaskEvent",
    "TaskFailed",
    "TaskFailure",
    "TaskInPane",
    "TaskMessage",
    "TaskNotFound",
    "TaskNotHeld",
    "TaskNotIdle",
    "TaskNotTaken",
    "TaskOptions",
    "TaskOutcome",
    "TaskOutput",
    "TaskOver",
    "TaskPage",
    "TaskRun",
    "TaskState",
    "TaskTaken",
    "Tasks",
    "Team",
    "TeardownFailed",
    "TerminalProblem",
    "TmuxMissing",
    "TmuxSessionTaken",
    "TmuxTooOld",
    "TokenUsage",
    "TooManyMessages",
    "TooMuchToRead",
    "Trace",
    "TranscriptEntry",
    "Tree",
    "TreeAgent",
    "TreeLimit",
    "TurnReceipt",
    "Uncommitted",
    "UnitFile",
    "Usage",
    "UsageProblem",
    "UsageReport",
    "Verdict",
    "WaitCycle",
    "WaitOver",
    "WorkAtRisk",
    "Workflow",
    "WorkflowNotFound",
    "Workflows",
    "WorktreeDetails",
    "WorktreeEntry",
    "WorktreeError",
    "WorktreeExists",
    "WorktreeInfo",
    "WorktreeNotFound",
    "Worktrees",
    "__version__",
]
