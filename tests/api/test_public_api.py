"""What other programs may rely on: names, signatures and types. A change here is a change for users."""

from __future__ import annotations

import enum
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator  # noqa: TC003  # looked at below
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, assert_type

import pytest

import swarm
from swarm import AgentHandle, Swarm, worktrees
from swarm.api import functions
from swarm.api.design import Design
from swarm.kit.errors import all_error_classes
from swarm.project.model import Session, WorktreeEntry
from swarm.sessions.reports import CleanupReport, CreateReport, RestoreReport, WorktreeDetails
from swarm.sessions.values import WorktreeInfo
from swarm.worktrees.reports import RecoverReport, SalvageEntry
from tests.support.library import namespaces, verbs_of

pytestmark = pytest.mark.unit

FUNCTIONS = {
    "branch_exists": "(branch: str, *, repo: Repo = None) -> bool",
    "cleanup_orphaned_worktrees": "(max_age_ms: int | None = None, *, repo: Repo = None) -> int",
    "cleanup_swarm_branches": "(*, repo: Repo = None) -> int",
    "copy_role_config": "(role: str, worktree_path: str | Path, *, repo: Repo = None) -> Path",
    "create_worktree": (
        "(role: str, session_id: str | None = None, base_branch: str | None = None, "
        "copy_role_config: bool = True, *, reuse: bool = False, repo: Repo = None) -> Path"
    ),
    "create_worktrees": (
        "(roles: Sequence[str], session_id: str | None = None, base_branch: str | None = None, "
        "copy_role_config: bool = True, *, repo: Repo = None) -> dict[str, Path]"
    ),
    "full_cleanup": "(*, repo: Repo = None) -> dict[str, int]",
    "generate_branch_name": "(role: str, session_id: str | None = None, *, repo: Repo = None) -> str",
    "get_current_branch": "(*, repo: Repo = None) -> str | None",
    "get_git_root": "(*, repo: Repo = None) -> Path | None",
    "get_role_config_path": "(role: str, *, repo: Repo = None) -> Path",
    "get_worktree_head": "(role: str, session_id: str | None = None, *, repo: Repo = None) -> str | None",
    "get_worktree_info": "(role: str, session_id: str | None = None, *, repo: Repo = None) -> WorktreeInfo | None",
    "get_worktree_path": "(role: str, session_id: str | None = None, *, repo: Repo = None) -> Path",
    "has_commits": "(*, repo: Repo = None) -> bool",
    "has_uncommitted_changes": "(role: str, session_id: str | None = None, *, repo: Repo = None) -> bool",
    "is_git_repository": "(*, repo: Repo = None) -> bool",
    "list_all_worktrees": "(*, repo: Repo = None) -> tuple[WorktreeEntry, ...]",
    "list_worktrees": "(*, strict: bool = False, repo: Repo = None) -> list[WorktreeInfo]",
    "lock_worktree": (
        "(role: str, reason: str | None = None, *, session_id: str | None = None, repo: Repo = None) -> None"
    ),
    "new_session_id": "(*, repo: Repo = None) -> str",
    "prune_worktrees": "(*, repo: Repo = None) -> None",
    "remove_all_worktrees": "(force: bool = False, delete_branches: bool = True, *, repo: Repo = None) -> int",
    "remove_worktree": (
        "(role: str, force: bool = False, delete_branch: bool = True, *, "
        "session_id: str | None = None, repo: Repo = None) -> None"
    ),
    "role_config_exists": "(role: str, *, repo: Repo = None) -> bool",
    "unlock_worktree": "(role: str, *, session_id: str | None = None, repo: Repo = None) -> None",
    "update_role_config": (
        "(role: str, session_id: str | None = None, *, force: bool = False, repo: Repo = None) -> None"
    ),
    "validate_repository": "(*, repo: Repo = None) -> None",
    "worktree_exists": "(role: str, session_id: str | None = None, *, repo: Repo = None) -> bool",
}
#: What is given back by the verbs about what agents said and used up.
RECORDS = {
    "AgentUsage": (
        *("session", "agent", "role", "program", "models", "minutes", "recorded", "created_ms", "removed_ms"),
    ),
    "ModelUsage": ("model", "input", "output", "cache_read", "cache_write", "requests", "cost"),
    "TranscriptEntry": (
        *("at_ms", "who", "kind", "text", "tool", "given", "failed", "model", "subagent", "conversation", "id"),
    ),
    "UsageReport": ("agents", "prices_as_of"),
}
#: What is given back, or taken, by the verbs about messages and queues.
MESSAGES = {
    "AgentEvent": (
        "id", "kind", "worker", "session", "agent", "status", "message", "cause", "time_ms", "text", "approval", "by",
        "head", "ahead", "dirty", "about",
    ),
    "Claim": ("id", "address", "messages", "attempts", "lease", "places", "who", "since_ms", "taker"),
    "Depth": ("waiting", "claimed", "dead", "oldest_ms"),
    "Event": ("name", "time_ms", "evidence"),
    "Message": (
        "to", "sender", "body", "subject", "type", "priority", "id", "time_ms", "artifacts", "metadata", "thread_id",
        "in_reply_to", "requires_response", "deadline_ms", "ttl_ms", "generation", "sender_generation", "after",
    ),
    "Pruned": ("address", "messages", "octets"),
    "PrunedAttachments": ("files", "octets"),
    "Queue": (),
    "Reached": ("address", "state", "detail"),
    "Receipt": ("id", "address", "lane", "number", "durable", "duplicate"),
    "Reply": ("due_ms", "overdue", "answer", "late"),
    "Sender": ("address", "member", "who", "outside"),
    "Sent": ("id", "to", "note", "receipt"),
    "TaskOutcome": ("ids", "already"),
    "Stored": ("message", "address", "state", "number", "attempts", "reason"),
    "Taken": ("claim", "again"),
    "Task": ("stored", "needs", "blocked", "who", "since_ms", "note"),
    "Trace": ("stored", "events"),
}  # fmt: skip
#: What the other verbs give back or take; named where they are used, and what is in them.
RESULTS = {
    "ActingFile",
    "Agent",
    "AgentForecast",
    "AgentHandle",
    "AgentResult",
    "AgentSpec",
    "AgentStatus",
    "Answer",
    "Approval",
    "AsyncLive",
    "AsyncMessages",
    "Change",
    "Live",
    "LogEvent",
    "LogPage",
    "Snapshot",
    "AsyncQueues",
    "AsyncSwarm",
    "AsyncTasks",
    "AgentTask",
    "FailureType",
    "Place",
    "InPane",
    "MessageState",
    "TaskMessage",
    "TurnReceipt",
    "TaskEvent",
    "TaskFailure",
    "TaskOptions",
    "Component",
    "ComponentEnded",
    "ComponentHealth",
    "UnitFile",
    "ServiceReply",
    "TaskOutput",
    "TaskPage",
    "TaskRun",
    "TaskState",
    "TokenUsage",
    "BoxCheck",
    "BoxReport",
    "Said",
    "Boxes",
    "Boxed",
    "BridgeStatus",
    "Check",
    "CheckedRole",
    "CleanupReport",
    "Commit",
    "ConflictReport",
    "CreateReport",
    "CreatedAgent",
    "DiffReport",
    "Ended",
    "Evidence",
    "FileChange",
    "FileConflict",
    "Forecast",
    "Grant",
    "Holder",
    "Identity",
    "HotFile",
    "MergeMethod",
    "EntryKind",
    "MergeReport",
    "Member",
    "MergedAgent",
    "Note",
    "Notes",
    "OrderStep",
    "PairForecast",
    "Parent",
    "Placed",
    "Question",
    "Pooled",
    "RecoverReport",
    "Removed",
    "RestoreReport",
    "ResumeReport",
    "Risk",
    "RiskKind",
    "Role",
    "RoleOptions",
    "Outside",
    "RuleHold",
    "RoleKind",
    "SalvageEntry",
    "RunOptions",
    "SendOptions",
    "Session",
    "SessionStatus",
    "Origin",
    "CheckedPod",
    "Pod",
    "PodAgent",
    "PodTemplate",
    "PodVariable",
    "Setting",
    "Settings",
    "Skipped",
    "State",
    "Status",
    "StopReport",
    "Team",
    "Verdict",
    "Speaker",
    "Awaited",
    "Completion",
    "FoldedNode",
    "Notified",
    "SpawnOptions",
    "Spawned",
    "TreeAgent",
    "Workflow",
    "WorktreeDetails",
    "WorktreeEntry",
    "WorktreeInfo",
}
CONSTANTS = {
    "BRANCH_PREFIX": "swarm",
    "DEFAULT_MAX_AGE_MS": 86_400_000,
    "ROLES_DIR": "roles",
    "VALID_ROLES": ("researcher", "developer", "reviewer", "architect"),
    "WORKTREE_BASE": ".worktrees",
}
#: Which subjects there are, and what each offers.
NAMESPACES = {
    "approvals": ("__call__", "approve", "ask", "deny", "grant", "grants", "near", "revoke", "revoke_grant"),
    "config": ("__call__", "around", "init", "schema", "settings", "validate"),
    "events": ("back", "done", "follow", "last", "log", "record"),
    "boxes": ("explain", "run"),
    "hooks": ("collect", "collect_own", "note_own_trouble", "note_trouble", "trouble"),
    "messages": (
        *("ack", "address", "answer_to", "broadcast", "dead", "depth", "done", "extend", "get", "held_by", "history"),
        *("inbox", "me", "missing_from", "nack", "near", "outbox", "prune", "prune_attachments", "removed", "reply"),
        *("requeue", "save_files", "seen", "send", "take", "thread", "unreadable"),
    ),
    "pods": ("__call__", "check", "expand", "get", "init", "launch", "release", "running", "scan", "stop"),
    "queues": ("__call__", "get"),
    "roles": (
        "__call__",
        "around",
        "check",
        "get",
        "hidden",
        "init",
        "is_shipped",
        "names",
        "of_pods",
        "notes",
        "options",
        "scan",
    ),
    "delivery": ("announce", "notify_user", "heartbeat", "nudge", "report_endings"),
    "operations": ("__call__", "describe_unfinished", "unfinished"),
    "panes": ("attach_command", "label", "show", "type"),
    "salvage": ("__call__", "drop", "get"),
    "bridges": ("__call__", "init", "run", "start", "stop"),
    "sandbox": ("check",),
    "services": (
        *("__call__", "ask", "check_file", "discover", "give", "kill", "shutdown", "start", "validate", "variable"),
        *("watch", "write_unit"),
    ),
    "sessions": ("__call__", "elsewhere", "get", "prune", "target", "unreadable"),
    "tasks": (
        *("__call__", "advance", "ask", "cancel", "continue_", "end", "events", "follow", "get", "give_back"),
        *("history", "list", "message", "messages", "output", "show", "submit", "take", "wait"),
    ),
    "tree": (
        *("__call__", "acting_as", "acting_for", "adopt", "cleanup", "list_agents", "merge", "notify_parent"),
        *("report", "spawn_subtree", "spawn_worker", "stop", "wait_for_event"),
    ),
    "usage": ("__call__", "notify"),
    "workflows": ("__call__", "get"),
    "worktrees": (
        *("__call__", "drain_pool", "environment", "lock", "look_outside", "path", "pool", "prune", "remove"),
        *("setup_of", "show"),
        *("take_in", "unlock", "update_changed_roles", "update_role"),
    ),
}
#: The everyday verbs.
EVERYDAY = {
    *("open", "root", "is_changing", "run", "start", "start_workflow", "create", "team", "status", "why", "peek"),
    *("transcript", "watch_transcript", "diff", "conflicts", "merge", "send", "wait_for", "wait_for_event"),
    *("live", "fork", "stop", "resume", "restart", "cleanup", "restore", "recover", "doctor"),
}
VERBS = {
    "open": (
        "(root: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None, "
        "flags: Mapping[str, object] | None = None, progress: Callable[[str], None] | None = None) -> Self"
    ),
    "team": "(self, session: str) -> Team",
    "create": (
        "(self, session: str, roles: str | Sequence[str | names.AgentSpec], *, base: str | None = None, "
        "instructions: bool = True, setup: bool = True, dry_run: bool = False) -> CreateReport"
    ),
    "cleanup": (
        "(self, sessions: Sequence[str] = (), *, everything: bool = False, elsewhere: bool = True, "
        "force: bool = False, discard: bool = False, keep_branches: bool = False, older_than_ms: int | None = None, "
        "teardown: bool = True, dry_run: bool = False) -> CleanupReport"
    ),
    "worktrees.remove": (
        "(self, agent: str, session: str | None = None, *, force: bool = False, discard: bool = False, "
        "keep_branch: bool = False, teardown: bool = True, dry_run: bool = False) -> CleanupReport"
    ),
    "worktrees.pool": "(self) -> tuple[Pooled, ...]",
    "worktrees.drain_pool": "(self) -> int",
    "worktrees.prune": "(self, *, dry_run: bool = False) -> CleanupReport",
    "recover": "(self) -> RecoverReport",
    "restore": "(self, target: str, *, dry_run: bool = False) -> RestoreReport",
    "salvage.__call__": "(self, session: str | None = None, *, dropped: bool = False) -> tuple[SalvageEntry, ...]",
    "salvage.get": "(self, target: str) -> SalvageEntry",
    "salvage.drop": (
        "(self, targets: Sequence[str] = (), *, everything: bool = False, "
        "older_than_ms: int | None = None, now: bool = False) -> tuple[SalvageEntry, ...]"
    ),
    "worktrees.lock": "(self, agent: str, session: str | None = None, *, reason: str = '') -> WorktreeInfo",
    "worktrees.unlock": "(self, agent: str, session: str | None = None) -> WorktreeInfo",
    "worktrees.update_role": "(self, agent: str, session: str | None = None, *, force: bool = False) -> WorktreeInfo",
    "sessions.__call__": "(self) -> tuple[Session, ...]",
    "sessions.get": "(self, name: str) -> Session",
    "worktrees.__call__": "(self, session: str | None = None, *, look: bool = True) -> tuple[WorktreeInfo, ...]",
    "worktrees.show": "(self, agent: str, session: str | None = None) -> WorktreeDetails",
    "operations.__call__": "(self) -> tuple[dict[str, Any], ...]",
    "operations.unfinished": "(self) -> tuple[str, ...]",
    "transcript": "(self, agent: str, session: str | None = None) -> tuple[TranscriptEntry, ...]",
    "usage.__call__": "(self, session: str | None = None, *, everything: bool = False) -> UsageReport",
    "wait_for_event": (
        "(self, timeout: float | None = None, kinds: Sequence[str] = (), *, session: str | None = None, "
        "agents: Sequence[str] = (), ack: bool = True) -> AgentEvent | None"
    ),
    "watch_transcript": "(self, agent: str, session: str | None = None) -> Iterator[tuple[TranscriptEntry, ...]]",
}
#: Methods that take the session by position where the function has it by name only.
_SESSION_BY_POSITION = {"lock_worktree", "unlock_worktree", "remove_worktree"}


def signature_of(function: Callable[..., Any]) -> str:
    """Return a signature as it is written: annotations are text in all our modules."""
    plain = inspect.signature(function)
    parts = [
        parameter.replace(annotation=_Written(parameter.annotation))
        if parameter.annotation is not inspect.Parameter.empty
        else parameter
        for parameter in plain.parameters.values()
    ]
    return str(plain.replace(parameters=parts, return_annotation=_Written(plain.return_annotation)))


class _Written:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def test_the_package_exports_these_names() -> None:
    for path in Path(swarm.__path__[0]).glob("*/errors.py"):
        if path.parent.name != "cli":
            import_module(f"swarm.{path.parent.name}.errors")
    errors = {cls.__name__ for cls in all_error_classes() if cls.__module__.startswith("swarm.")}
    spaces = {kind.__name__ for kind in namespaces().values()}
    others = {"Swarm", "WorktreeError", "__version__", *spaces, *MESSAGES, *RECORDS, *RESULTS, *errors}
    assert set(swarm.__all__) == others
    for name in swarm.__all__:
        assert getattr(swarm, name) is not None
        assert name in dir(swarm)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = swarm.nothing  # type: ignore[attr-defined]


def _written_types(one: object) -> Iterator[str]:
    """Give the types that the annotations of a function or class name."""
    for text in getattr(one, "__annotations__", {}).values():
        yield from re.findall(r"\b[A-Z]\w+", str(text))


def test_every_type_of_a_public_signature_can_be_imported_from_the_package() -> None:
    kinds = [Swarm, *namespaces().values()]
    members = [inspect.getattr_static(kind, name) for kind in kinds for name in verbs_of(kind)]
    public = [getattr(one, "__func__", None) or getattr(one, "fget", None) or one for one in members]
    public += [getattr(functions, name) for name in FUNCTIONS]
    public += [one for name, one in inspect.getmembers(AgentHandle, inspect.isfunction) if name[0] != "_"]
    of_python = {
        "Any",
        "Callable",
        "Iterable",
        "Iterator",
        "Mapping",
        "None",
        "Path",
        "PathLike",
        "Repo",
        "Self",
        "Sequence",
        "Unpack",
    }
    keyed = {"Setting", "Settings", "RoleOptions", "Place"}  # read by their keys; where the bus keeps a message
    seen: set[str] = set()
    todo = {name for one in public for name in _written_types(one)} - of_python
    while todo:
        seen |= todo
        assert sorted(todo - set(swarm.__all__) - {"Place"}) == []
        found = [getattr(swarm, name) for name in todo if name not in keyed]
        todo = {name for one in found if _is_value(one) for name in _written_types(one) if _is_ours(one, name)} - seen

    assert len(seen) > 50


def _is_ours(owner: object, name: str) -> bool:
    """Whether a type that a value names is a value or a choice of ours, too."""
    module = getattr(owner, "__module__", "")
    text = Path(sys.modules[module].__file__ or "").read_text()
    home = re.search(rf"from (swarm[\w.]*) import [^\n]*\b{name}\b", text)
    found = getattr(import_module(home[1] if home else module), name, None)
    return _is_value(found) or (inspect.isclass(found) and issubclass(found, enum.Enum))


def _is_value(found: object) -> bool:
    return is_dataclass(found) or hasattr(found, "_fields")


@pytest.mark.component  # it runs mypy
def test_a_type_checker_knows_every_public_name_and_no_other(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"from swarm import ({', '.join(sorted(swarm.__all__))})\nfrom swarm import Nonsense\n")
    options = ["--no-incremental", "--config-file=", "--follow-imports=skip", "--no-error-summary"]
    mypy = [sys.executable, "-m", "mypy", *options, f"{swarm.__file__}i", str(program)]

    done = subprocess.run(mypy, capture_output=True, text=True, check=False, cwd=tmp_path)

    said = done.stdout.splitlines()
    assert [line.split(": ", 1)[1] for line in said if "program.py" in line] == [
        'error: Module "swarm" has no attribute "Nonsense"  [attr-defined]'
    ], done.stdout + done.stderr


@pytest.mark.parametrize("name", MESSAGES)
def test_what_messages_are_made_of_keeps_its_fields(name: str) -> None:
    assert getattr(getattr(swarm, name), "_fields", ()) == MESSAGES[name]


@pytest.mark.parametrize("name", RECORDS)
def test_what_is_told_of_agents_keeps_its_fields(name: str) -> None:
    assert tuple(one.name for one in fields(getattr(swarm, name))) == RECORDS[name]


def test_the_worktree_functions_are_these_and_no_others() -> None:
    assert set(functions.__all__) == {*FUNCTIONS, *CONSTANTS, "WorktreeError"}
    assert functions.WorktreeError is swarm.WorktreeError
    public = {name for name, value in vars(functions).items() if inspect.isfunction(value) and name[0] != "_"}
    assert public == set(FUNCTIONS)
    assert all(getattr(worktrees, name) is getattr(functions, name) for name in worktrees.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = worktrees.nonsense


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_keeps_its_signature(name: str) -> None:
    assert signature_of(getattr(functions, name)) == FUNCTIONS[name]
    assert (getattr(functions, name).__doc__ or "").strip()


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_keeps_its_value(name: str) -> None:
    assert getattr(functions, name) == CONSTANTS[name]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_each_function_is_a_method_too(name: str) -> None:
    function = [p for p in inspect.signature(getattr(functions, name)).parameters.values() if p.name != "repo"]
    method = list(inspect.signature(getattr(Design, name)).parameters.values())[1:]
    assert [p.name for p in method] == [p.name for p in function]
    assert [p.default for p in method] == [p.default for p in function]
    if name not in _SESSION_BY_POSITION:
        assert [p.kind for p in method] == [p.kind for p in function]


def test_a_swarm_has_these_namespaces_with_these_verbs() -> None:
    found = {name: tuple(sorted(verbs_of(kind))) for name, kind in namespaces().items()}
    assert found == {name: tuple(sorted(verbs)) for name, verbs in NAMESPACES.items()}


def test_the_everyday_verbs_are_on_the_swarm_itself() -> None:
    assert set(verbs_of(Swarm)) == EVERYDAY | set(NAMESPACES)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_keeps_its_signature(name: str) -> None:
    space, _, verb = name.rpartition(".")
    function = getattr(namespaces()[space] if space else Swarm, verb)
    assert signature_of(function) == VERBS[name]
    assert (function.__doc__ or "").strip()


def test_every_public_method_tells_what_it_does() -> None:
    for kind in (Swarm, *namespaces().values()):
        for name in verbs_of(kind):
            assert (inspect.getdoc(getattr(kind, name)) or "").strip(), (kind, name)


def test_a_handle_has_the_verbs_of_an_agent_under_their_names() -> None:
    verbs = {name for name, _ in inspect.getmembers(AgentHandle, inspect.isfunction) if name[0] != "_"}
    assert verbs - {"result", "show", "tidy"} <= set(dir(Swarm))
    for name in verbs:
        assert (getattr(AgentHandle, name).__doc__ or "").strip(), name


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(swarm.__file__).parent / "py.typed").is_file()


def types_of_the_public_names(one: Swarm) -> None:
    """Never run: mypy checks it with all other files."""
    assert_type(one.root, Path)
    assert_type(one.create("s", ["developer"]), CreateReport)
    assert_type(one.create("s", "developer:2").paths(), dict[str, Path])
    assert_type(one.start("s", "developer"), swarm.Team)
    assert_type(one.team("s")["developer"].send("hello", priority="high"), swarm.Sent)
    assert_type(one.team("s")["developer"].result().text, str)
    one.send("developer", "hello", nonsense=1)  # type: ignore[call-arg]
    assert_type(one.cleanup(everything=True), CleanupReport)
    assert_type(one.worktrees.remove("developer"), CleanupReport)
    assert_type(one.restore("s"), RestoreReport)
    assert_type(one.recover(), RecoverReport)
    assert_type(one.salvage(), tuple[SalvageEntry, ...])
    assert_type(one.sessions.get("s"), Session)
    assert_type(one.worktrees(), tuple[WorktreeInfo, ...])
    assert_type(one.worktrees.show("developer"), WorktreeDetails)
    assert_type(functions.full_cleanup(), dict[str, int])
    assert_type(one.usage("s").agents[0].total.cost, float | None)
    assert_type(one.transcript("developer"), tuple[swarm.TranscriptEntry, ...])
    assert_type(one.send("developer", "hello"), tuple[swarm.Sent, ...])
    assert_type(one.send("developer", "hello")[0].receipt, swarm.Receipt)
    assert_type(one.messages.take(), swarm.Taken | None)
    assert_type(swarm.Taken(one.messages._post.bus.claims("user")[0]).messages, tuple[swarm.Message, ...])
    assert_type(one.messages.inbox(), tuple[swarm.Stored, ...])
    assert_type(one.messages.get("id"), tuple[swarm.Trace, ...])
    assert_type(one.messages.get("id")[0].events, tuple[swarm.Event, ...])
    assert_type(one.wait_for(["developer"]), tuple[swarm.Reached, ...])
    assert_type(one.wait_for_event(timeout=1.0), swarm.AgentEvent | None)
    assert_type(one.wait_for_event(kinds=["WorkerComplete"], ack=False), swarm.AgentEvent | None)
    assert_type(one.queues.get("work"), swarm.Queue)
    assert_type(one.queues.get("work").take(), swarm.Claim | None)
    assert_type(one.queues(), tuple[tuple[str, swarm.Depth], ...])
    assert_type(one.messages, swarm.Messages)
    assert_type(one.messages.me(), swarm.Sender)
    assert_type(one.messages.answer_to(one.messages.get("id")[0]), swarm.Reply | None)
    assert_type(one.messages.prune(), tuple[swarm.Pruned, ...])
    assert_type(one.status()[0].agents[0].status.state, swarm.State)
    _ = swarm.Nonsense  # type: ignore[attr-defined]  # else every name would do
    assert_type(functions.create_worktree("developer", "s"), Path)
    assert_type(functions.create_worktrees(["developer"], "s"), dict[str, Path])
    assert_type(functions.get_worktree_info("developer"), WorktreeInfo | None)
    assert_type(functions.list_all_worktrees(), tuple[WorktreeEntry, ...])
    assert_type(functions.list_worktrees(), list[WorktreeInfo])
