"""Every error that swarm raises.

    SwarmError
    ├── UsageProblem          what was asked for cannot be meant      (exit 2)
    │   ├── InvalidName · ReservedName · NameCollision · RefConflict
    │   ├── StateDirProblem · SymlinkInTheWay · ConfigProblem · Ambiguous · LimitReached
    ├── WorktreeExists · WorktreeNotFound · RoleNotFound · RoleExists · CleanupFailed
    ├── SetupFailed · TeardownFailed
    ├── GitFailed             git said no, its words are in ``details``
    │   ├── BranchExists · BaseNotFound · GitTimeout · GitBusy
    ├── SessionExists · SessionNotFound · WorkflowNotFound · SalvageNotFound · RestoreConflict
    ├── WorkAtRisk            refused to protect work                 (exit 4)
    │   └── NotCommitted
    ├── MergeConflict · MergeBlocked · TargetNotFound · TargetMoved · SalvageFailed
    ├── Environment           git, disk, permissions, programs        (exit 5)
    │   ├── NotARepo ── BareRepository
    │   ├── TmuxMissing · TmuxTooOld · TmuxSessionTaken · TerminalProblem · ProgramMissing · RulesNotHeld
    │   ├── GitMissing · GitTooOld · GitBroken · RepositoryOwner · NoSpace · NoPermission · RecordProblem
    │   ├── IdentityMissing
    ├── AgentRunning · AgentNotRunning · PaneBusy
    ├── ApprovalNotFound · AlreadyAnswered · NotForAgents · NotAPerson · NoRecord
    ├── GrantExists · GrantNotFound
    ├── AgentNotFound · NotReached · WaitOver
    ├── BusProblem            messages
    │   ├── MessageProblem · QuotaReached · InboxNotFound · ClaimLost · MessageNotFound · AttachmentProblem
    │   ├── AttachmentExists · NothingToTake · IdTaken · SentInPart
    ├── SwarmDirProblem ── SwarmDirNotFound · SwarmDirExists
    ├── Locked                another swarm command is at work        (exit 75)
    ├── Interrupted           a signal came, everything was rolled back
    └── Refused               several of the above at once

Catch the class, match the ``code``, follow the ``hint``.  ``WorktreeError`` is another name of the first.
Each class has one code, and each code one
meaning and one exit status; ``docs/errors.md`` lists them and a test keeps the two the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar

#: A message that begins so says already what was attempted.
SAYS_ATTEMPT = ("cannot ", "could not ", "nothing was ", "this is a bug")

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_EXISTS = 3
EXIT_REFUSED = 4
EXIT_ENVIRONMENT = 5
EXIT_NOT_FOUND = 6
EXIT_BUG = 70
EXIT_TRY_AGAIN = 75


class SwarmError(Exception):
    """Something could not be done.

    Attributes:
        message: what could not be done and to what, with the cause; one line.
        code: stable name to match on.
        hint: what to do about it, ready to paste where it is a command; may be empty.
        details: more to look at, for instance what git printed.
    """

    code: ClassVar[str] = "FAILED"
    exit_code: ClassVar[int] = EXIT_FAILED
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, *, hint: str | None = None, details: str | None = None, **facts: Any) -> None:
        message = one_line(message)
        super().__init__(message)
        self.message = message
        self.hint = self.default_hint if hint is None else one_line(hint)
        self.details = details
        self.facts: dict[str, Any] = facts

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions cross process borders in test runners and worker pools; keep every field.
        return (_rebuild, (type(self), self.message, self.hint, self.details, self.facts))

    def preface(self, what: str) -> None:
        """Begin the message with what was attempted."""
        self.message = one_line(f"{what}: {self.message}")
        self.args = (self.message,)

    def as_dict(self) -> dict[str, Any]:
        """Return the shape that ``--json`` prints in ``errors``."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "details": {"text": self.details, **self.facts} if self.details else dict(self.facts),
        }


#: The one class of the user's design: whatever the worktree functions raise is caught by it.
WorktreeError = SwarmError


def one_line(text: str) -> str:
    """Return *text* with escapes for what would end the line or turn the terminal around.

    Paths may hold any byte; a message with one in it stays one honest line.  Bytes that are no UTF-8
    are kept as they are: whoever prints decides about them.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or "\ud800" <= c <= "\udfff" else ascii(c)[1:-1] for c in text)


def _rebuild(cls: type[SwarmError], message: str, hint: str, details: str | None, facts: dict[str, Any]) -> SwarmError:
    error = cls.__new__(cls)
    SwarmError.__init__(error, message, hint=hint, details=details, **facts)
    return error


# --- what was asked for cannot be meant -------------------------------------------------------


class UsageProblem(SwarmError):
    """The request itself is wrong."""

    code = "USAGE"
    exit_code = EXIT_USAGE


class InvalidName(UsageProblem):
    """A role, agent or session name is not one."""

    code = "INVALID_NAME"
    default_hint = "use 1 to 40 letters, digits, - and _, starting with a letter or digit"


class ReservedName(UsageProblem):
    """The name means something to swarm or git."""

    code = "NAME_RESERVED"
    default_hint = "choose another name"


class NameCollision(UsageProblem):
    """Two names differ only in case, or the same one was given twice."""

    code = "NAME_COLLISION"
    default_hint = "names are compared without case; choose one that differs in more than that"


class RefConflict(UsageProblem):
    """A branch is in the way of the folder of branches that swarm needs, or below one of them."""

    code = "REF_CONFLICT"
    default_hint = "rename that branch, or set worktrees.branch_prefix to another word"


class StateDirProblem(UsageProblem):
    """`.swarm` or `.worktrees` is not a plain folder of the user's own."""

    code = "STATE_DIR"
    default_hint = "move it away, or set worktrees.base_path to another folder"


class SymlinkInTheWay(UsageProblem):
    """A path that swarm would write through is a symbolic link."""

    code = "SYMLINK"
    default_hint = "replace the link by a plain folder"


class ConfigProblem(UsageProblem):
    """A YAML file, an environment variable or a flag holds something that is not allowed there."""

    code = "CONFIG"
    default_hint = "run `swarm validate` to see every problem at once"


class Ambiguous(UsageProblem):
    """Several things have this name."""

    code = "AMBIGUOUS"
    default_hint = "name the session as well"


# --- worktrees, branches, roles ---------------------------------------------------------------


class WorktreeExists(SwarmError):
    """Something is already at the path of the new worktree; that path is in ``details``."""

    code = "WORKTREE_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "remove the existing worktree with `swarm cleanup`, or use a different session name"


class WorktreeNotFound(SwarmError):
    """There is no such worktree."""

    code = "WORKTREE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "it may already be removed; `swarm worktree list` shows what is there"


class RoleNotFound(SwarmError):
    """No instructions exist for this role."""

    code = "ROLE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "create roles/<role>/CLAUDE.md first, or name an existing role"


class RoleExists(SwarmError):
    """A role of this name is already in that place."""

    code = "ROLE_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "edit it, or choose another name"


class CleanupFailed(SwarmError):
    """Some worktrees or branches could not be removed; ``facts['failed']`` lists them."""

    code = "CLEANUP_FAILED"
    default_hint = "look at the cause of each, then run the same command again, maybe with --force"


class SetupFailed(SwarmError):
    """A fresh worktree could not be made ready; what a command printed last is in ``details``."""

    code = "SETUP_FAILED"
    default_hint = "mend the cause, set the policy of the setup to warn, or leave it out: --no-setup"


class TeardownFailed(SwarmError):
    """A command that runs before a worktree goes failed, and its policy is *abort*: nothing was removed."""

    code = "TEARDOWN_FAILED"
    default_hint = "mend the cause, set the policy of the teardown to warn, or leave it out: --no-teardown"


class GitFailed(SwarmError):
    """A git command failed; what it printed is in ``details``."""

    code = "GIT_FAILED"
    default_hint = "read what git printed; disk space and permissions are the usual causes"


class BranchExists(GitFailed):
    """The branch name is taken; what git says of that is in ``details``."""

    code = "BRANCH_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "use a different session name, or delete that branch if nobody needs it"


class BaseNotFound(GitFailed):
    """The starting point is no commit of this repository."""

    code = "BASE_NOT_FOUND"
    exit_code = EXIT_USAGE
    default_hint = "name a branch, tag or commit that exists; `git branch -a` lists the branches"


class GitTimeout(GitFailed):
    """git, or a filter or hook that it ran, did not end in time."""

    code = "GIT_TIMEOUT"
    default_hint = "look for a filter that hangs, or raise git.timeout"


class GitBusy(GitFailed):
    """Another git program kept one of the repository's own lock files the whole time."""

    code = "GIT_BUSY"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait for the other git command, then try again; swarm never deletes a lock it did not make"


# --- sessions and salvage ---------------------------------------------------------------------


class SessionExists(SwarmError):
    """A session of this name is already there."""

    code = "SESSION_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "choose another session name, or remove the old one with `swarm cleanup`"


class SessionNotFound(SwarmError):
    """No session of this name."""

    code = "SESSION_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm list` shows the sessions there are"


class WorkflowNotFound(SwarmError):
    """No workflow of this name."""

    code = "WORKFLOW_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm workflow list` shows those there are"


class SalvageNotFound(SwarmError):
    """Nothing was salvaged under this name."""

    code = "SALVAGE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm salvage list` shows what can be restored"


class RestoreConflict(SwarmError):
    """What is there now is in the way of what should be brought back."""

    code = "RESTORE_CONFLICT"
    exit_code = EXIT_EXISTS
    default_hint = "clean up or rename what is in the way, then restore again"


class WorkAtRisk(SwarmError):
    """Refused: work would be gone from the working tree. ``facts['risks']`` lists it per agent."""

    code = "WORK_AT_RISK"
    exit_code = EXIT_REFUSED
    default_hint = "commit it, or add --force to salvage it first (`swarm restore` brings it back)"


class NotCommitted(WorkAtRisk):
    """Refused: agents hold work that a merge would leave out. ``facts['agents']`` lists it."""

    code = "NOT_COMMITTED"
    default_hint = "let them commit it, or add --committed-only to merge without it"


class MergeConflict(SwarmError):
    """Refused: the work does not go together. ``facts['conflicts']`` lists the files of each agent."""

    code = "MERGE_CONFLICT"
    exit_code = EXIT_REFUSED
    default_hint = "let one of them take the other's branch in and resolve it; `swarm conflicts` shows who meets whom"


class MergeBlocked(SwarmError):
    """Refused: local work in the checkout of the target branch stands in the way."""

    code = "MERGE_BLOCKED"
    exit_code = EXIT_REFUSED
    default_hint = "commit or stash it there, then merge again"


class TargetNotFound(SwarmError):
    """There is no such branch to merge into."""

    code = "TARGET_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "name a branch that exists with --into; `git branch` lists them"


class TargetMoved(SwarmError):
    """The target branch got another commit while the merge was made; everything was taken back."""

    code = "TARGET_MOVED"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "merge again"


class SalvageFailed(SwarmError):
    """Work could not be saved, so nothing was removed."""

    code = "SALVAGE_FAILED"
    default_hint = "nothing was removed; look at the cause, then try again"


# --- the environment --------------------------------------------------------------------------


class Environment(SwarmError):
    """The machine, not the request, is the problem."""

    code = "ENVIRONMENT"
    exit_code = EXIT_ENVIRONMENT
    default_hint = "look at what the message names, then try again"


class NotARepo(Environment):
    """Not inside a git work tree, or a repository without a commit."""

    code = "NOT_A_REPO"
    default_hint = "run `git init` and make a first commit, or point at a repository with -C DIR"


class BareRepository(NotARepo):
    """The repository has no work tree of its own; the code is that of ``NotARepo``."""

    default_hint = "run swarm in a clone that has a work tree"


class GitBroken(Environment):
    """git itself cannot read the repository."""

    code = "GIT_BROKEN"
    default_hint = "look at `git status` and `git fsck`; swarm changed nothing"


class RepositoryOwner(Environment):
    """The repository belongs to another user, and git refuses to use it."""

    code = "REPO_OWNER"
    default_hint = "if you trust it, add it to git's safe.directory list as git says"


class GitMissing(Environment):
    """There is no git program."""

    code = "GIT_MISSING"
    default_hint = "install git 2.38 or newer, for example: sudo apt-get install git"


class GitTooOld(Environment):
    """The git program is too old for this."""

    code = "GIT_TOO_OLD"
    default_hint = "install git 2.38 or newer"


class IdentityMissing(Environment):
    """git does not know whose commits it is to make."""

    code = "IDENTITY_MISSING"
    default_hint = "git config --global user.name 'Your Name' && git config --global user.email you@example.com"


class NoSpace(Environment):
    """The disk is full, or has too little room for what was asked."""

    code = "NO_SPACE"
    default_hint = "free some disk space, for example with `swarm cleanup`, then try again"


class NoPermission(Environment):
    """The operating system does not allow it."""

    code = "PERMISSION"
    default_hint = "check who owns the folder and whether it is writable"


class RecordProblem(Environment):
    """A file of swarm's own cannot be read, or was written by a newer swarm."""

    code = "RECORD"
    default_hint = "update swarm if the file is newer; else mend it, or put it aside (mv FILE FILE.bad)"


class TmuxMissing(Environment):
    """There is no tmux program."""

    code = "TMUX_MISSING"
    default_hint = "install tmux 3.2 or newer, for example: sudo apt-get install tmux"


class TmuxTooOld(Environment):
    """The tmux program is too old."""

    code = "TMUX_TOO_OLD"
    default_hint = "install tmux 3.2 or newer"


class TmuxSessionTaken(Environment):
    """A tmux session of the name is there that swarm did not make; it is neither used nor ended."""

    code = "TMUX_SESSION_TAKEN"
    default_hint = "rename that session, or set tmux.session to another name (SWARM_TMUX_SESSION=swarm2)"


class TerminalProblem(Environment):
    """tmux could not do what was asked."""

    code = "TMUX_FAILED"
    default_hint = "look at `tmux list-sessions`; `swarm doctor` checks the rest"


class ProgramMissing(Environment):
    """The agent program is not installed."""

    code = "AGENT_MISSING"
    default_hint = "install it, or try swarm without one: --agent demo"


class RulesNotHeld(Environment):
    """The agent program, as it is set up on this machine, would not hold the deny rules of a role."""

    code = "RULES_NOT_HELD"
    default_hint = "take another program with --agent, or `permissions.deny` out of the role"


class AgentRunning(SwarmError):
    """The agent runs already."""

    code = "AGENT_RUNNING"
    exit_code = EXIT_EXISTS
    default_hint = "`swarm status` shows it; stop it first with `swarm stop`"


class AgentNotRunning(SwarmError):
    """The agent does not run."""

    code = "AGENT_NOT_RUNNING"
    exit_code = EXIT_NOT_FOUND
    default_hint = "bring it back with `swarm resume`"


class AgentNotFound(SwarmError):
    """No agent of this name."""

    code = "AGENT_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm list` shows the agents there are"


class NotReached(SwarmError):
    """What was waited for can no longer happen."""

    code = "NOT_REACHED"
    default_hint = "`swarm why AGENT` tells what happened"


class WaitOver(SwarmError):
    """The time to wait was over before it happened."""

    code = "TIMEOUT"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait again, or for longer with --timeout"


class PaneBusy(SwarmError):
    """A pane does not take keys at this moment."""

    code = "PANE_BUSY"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "look at it with `swarm attach`, and try again"


class ApprovalNotFound(SwarmError):
    """No such question of an agent."""

    code = "APPROVAL_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "list the open ones with `swarm approvals`"


class NoRecord(SwarmError):
    """An agent's program writes nothing down of its conversation that swarm can read."""

    code = "NO_RECORD"
    exit_code = EXIT_NOT_FOUND
    default_hint = "what its pane shows: `swarm peek AGENT`"


class LimitReached(UsageProblem):
    """More was asked for than the limits of a role allow."""

    code = "LIMIT_REACHED"
    default_hint = "raise the limit in the role's file or the configuration"


class AlreadyAnswered(SwarmError):
    """Somebody answered an agent's question first."""

    code = "ALREADY_ANSWERED"
    exit_code = EXIT_EXISTS
    default_hint = "see who and how with `swarm approvals --all`"


class NotForAgents(SwarmError):
    """An agent tried what is for people, or what it has no right to do to others."""

    code = "NOT_FOR_AGENTS"
    exit_code = EXIT_REFUSED
    default_hint = "ask the user: swarm send user 'please …'"


class NotAPerson(SwarmError):
    """Nothing shows that a person, or a program with a grant, asks for what only these may do."""

    code = "NOT_A_PERSON"
    exit_code = EXIT_REFUSED
    default_hint = "type it in a terminal of your own; for a program: swarm approvals grant NAME"


class GrantExists(SwarmError):
    """A program's grant of this name is already there."""

    code = "GRANT_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "choose another name, or revoke it first: swarm approvals grant NAME --revoke"


class GrantNotFound(SwarmError):
    """No grant of this name."""

    code = "GRANT_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "`swarm approvals grants` lists them"


class SwarmDirProblem(UsageProblem):
    """A swarm directory was named that is none."""

    code = "SWARM_DIR"
    default_hint = "run `swarm init` in that directory, or unset the variable"


class SwarmDirNotFound(SwarmDirProblem):
    """No swarm directory anywhere."""

    code = "SWARM_DIR_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "run `swarm init`"


class SwarmDirExists(SwarmDirProblem):
    """The directory is already initialised."""

    code = "SWARM_DIR_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "nothing to do: it is ready for use"


class BusProblem(SwarmError):
    """A message could not be sent, taken or settled."""

    code = "BUS"
    default_hint = "look at what the message names, then try again"


class MessageProblem(BusProblem):
    """The message itself is wrong: too long, not text, or addressed to nobody in particular."""

    code = "MESSAGE"
    exit_code = EXIT_USAGE
    default_hint = "mend what is named, and send it again"


class IdTaken(BusProblem):
    """Another message has this id: one of another sender, or one of the same that says something else."""

    code = "ID_TAKEN"
    exit_code = EXIT_EXISTS
    default_hint = "choose another id, or none; `swarm message ID` shows what has it"


class SentInPart(BusProblem):
    """Some of the recipients have the message, and others refused it.

    ``facts`` tell the ``id``, the ``sender``, who has it (``sent``), and the ``problems``: an error for each other one,
    whose ``facts["to"]`` names it.
    """

    code = "SENT_IN_PART"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "send it again under the same id, to those alone who did not get it"


class QuotaReached(BusProblem):
    """The inbox holds as much as it may; nothing was added."""

    code = "QUOTA"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "try again when its owner has taken some of them"


class InboxNotFound(BusProblem):
    """There is no such inbox or queue."""

    code = "INBOX_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "starting a session makes the inboxes of its agents"


class ClaimLost(BusProblem):
    """The claim is over: its time ran out or its holder ended, and the messages went back."""

    code = "CLAIM_LOST"
    exit_code = EXIT_NOT_FOUND
    default_hint = "take the messages again; claim them for longer, or extend the claim while you work"


class MessageNotFound(BusProblem):
    """No message of this id."""

    code = "MESSAGE_NOT_FOUND"
    exit_code = EXIT_NOT_FOUND
    default_hint = "look at the inbox for the ids of the messages in it"


class NothingToTake(BusProblem):
    """No task of the queue can be taken now: it is empty, or what it holds is taken, or waits for others."""

    code = "NOTHING_TO_TAKE"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "see what it holds with `swarm queue list`, or wait for a task: --wait 10m"


class AttachmentProblem(BusProblem):
    """An attachment is too large, gone, or not what was attached."""

    code = "ATTACHMENT"
    default_hint = "ask the sender to attach it again"


class AttachmentExists(AttachmentProblem):
    """A file is already there where an attachment would be copied to."""

    code = "ATTACHMENT_EXISTS"
    exit_code = EXIT_EXISTS
    default_hint = "name another folder"


class Locked(SwarmError):
    """Others held the repository's lock, or that of a box of messages, the whole time."""

    code = "LOCKED"
    exit_code = EXIT_TRY_AGAIN
    default_hint = "wait for it to end, then try again"


class Interrupted(SwarmError):
    """A signal asked to stop; what was begun has been rolled back, or is finished by the next command."""

    code = "INTERRUPTED"

    def __init__(self, message: str, *, signum: int = 2, **facts: Any) -> None:
        super().__init__(message, signum=signum, **facts)


def told_of(error: BaseException) -> BaseException:
    """Return what the user is told of an error: one that is not ours may be a signal underneath.

    What a signal's handler raises in the middle of Python's own code comes out wrapped: until Python 3.11 a class that
    is just being made turns it into a ``RuntimeError``.
    """
    if isinstance(error, SwarmError | OSError):
        return error
    chain = [error]
    while (one := chain[-1].__cause__ or chain[-1].__context__) is not None and one not in chain:
        chain.append(one)
    for one in chain:
        if isinstance(one, Interrupted):
            return one
        if isinstance(one, KeyboardInterrupt):
            return Interrupted("interrupted by SIGINT", signum=2)
    return error


class Refused(SwarmError):
    """Several problems at once; ``problems`` holds each. Code, details and exit status are the first one's."""

    def __init__(self, message: str, problems: Iterable[SwarmError]) -> None:
        self.problems = tuple(problems)
        first = self.problems[0]
        told = [p.as_dict() for p in self.problems]
        super().__init__(message, hint=first.hint, details=first.details, problems=told)
        self.code = first.code  # type: ignore[misc]  # the instance speaks for its first problem
        self.exit_code = first.exit_code  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        return (Refused, (self.message, self.problems))


def raise_all(what: str, problems: Iterable[SwarmError]) -> None:
    """Raise nothing, the one problem, or one ``Refused`` that holds them all.

    Args:
        what: the attempt in the user's words, such as "cannot create session feature-x".
        problems: what stands against it, most important first.
    """
    found = tuple(problems)
    if not found:
        return
    if len(found) == 1:
        if what.startswith(SAYS_ATTEMPT) and not found[0].message.startswith(SAYS_ATTEMPT):
            found[0].preface(what)
        raise found[0]
    lines = "; ".join(problem.message for problem in found)
    raise Refused(f"{what}: {lines}", found)


def all_error_classes() -> tuple[type[SwarmError], ...]:
    """Return every concrete error class, for the documentation and the tests."""
    found: list[type[SwarmError]] = []
    queue: list[type[SwarmError]] = [SwarmError]
    while queue:
        cls = queue.pop(0)
        found.append(cls)
        queue.extend(cls.__subclasses__())
    return tuple(found)
