"""The base of every error, and the errors that all rooms share; each room has its own in its ``errors.py``.

Catch the class, match the ``code``, follow the ``hint``.  ``WorktreeError`` is another name of the first.  Each class
has one code, and each code one meaning and one exit status; ``docs/errors.md`` lists them, and a test compares.
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
    """The command failed.

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
        """Put the attempt in front of the message."""
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
    """Return *text* with line ends and terminal control characters escaped.

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


# --- invalid requests -------------------------------------------------------------------------


class UsageProblem(SwarmError):
    """The request itself is wrong."""

    code = "USAGE"
    exit_code = EXIT_USAGE


class StateDirProblem(UsageProblem):
    """`.swarm` or `.worktrees` is not a plain folder of the user's own."""

    code = "STATE_DIR"
    default_hint = "move it away, or set worktrees.base_path to another folder"


class SymlinkInTheWay(UsageProblem):
    """A folder on the path that swarm would write to is a symbolic link."""

    code = "SYMLINK"
    default_hint = "replace the link by a plain folder"


class ConfigProblem(UsageProblem):
    """A YAML file, an environment variable or a flag has an invalid value."""

    code = "CONFIG"
    default_hint = "run `swarm validate` to see every problem at once"


class Ambiguous(UsageProblem):
    """The name matches more than one agent or session."""

    code = "AMBIGUOUS"
    default_hint = "name the session as well"


# --- sessions and salvage ---------------------------------------------------------------------


# --- the environment --------------------------------------------------------------------------


class EnvironmentProblem(SwarmError):
    """The machine has a problem; the request is fine."""

    code = "ENVIRONMENT"
    exit_code = EXIT_ENVIRONMENT
    default_hint = "fix the problem in the message, then try again"


class NoSpace(EnvironmentProblem):
    """The disk is full, or has too little space."""

    code = "NO_SPACE"
    default_hint = "free some disk space, for example with `swarm cleanup`, then try again"


class NoPermission(EnvironmentProblem):
    """The operating system denies access."""

    code = "PERMISSION"
    default_hint = "check the owner and the permissions of the folder"


class Interrupted(SwarmError):
    """A signal stopped the command; swarm rolled it back, or the next command finishes it."""

    code = "INTERRUPTED"

    def __init__(self, message: str, *, signum: int = 2, **facts: Any) -> None:
        super().__init__(message, signum=signum, **facts)


def told_of(error: BaseException) -> BaseException:
    """Return an error's text for the user: a foreign error may hide a signal.

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
