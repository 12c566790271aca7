"""The commands of a shell script as permission rules see them.

What a script may do is judged by two views of it.  *Suspects* are all texts under which a command could
be forbidden: without quotes, by the program's plain name, behind ``sudo`` and the like, inside of
``sh -c``.  For being allowed only the command as it stands counts.
"""

from __future__ import annotations

from swarm.domain import shellscan
from swarm.domain.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.domain.shellscan import Command, Word

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash"})
#: Programs that run the command in their arguments.
_WRAPPERS = frozenset(
    {
        *("builtin", "busybox", "caffeinate", "chroot", "chrt", "command", "doas", "env", "exec", "firejail", "flock"),
        *("ionice", "nice", "nohup", "nsenter", "parallel", "pkexec", "prlimit", "runuser", "setarch", "setpriv"),
        *("setsid", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "time", "timeout", "toybox"),
        *("unbuffer", "unshare", "watch", "xargs", "bwrap", "find", "fd", "git", "entr", "script", "coproc"),
    }
)
#: Of the above, those that more often than not run nothing else: only behind one of these words.
_RUN_AFTER = {
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "git": ("run", "--exec", "-x", "foreach"),
}
#: Programs whose arguments can each be a whole script.
_TAKE_SCRIPTS = frozenset({"eval", "trap", "watch", "su", "script", "env", "parallel", "flock", "runuser"})
#: Programs that add words which nobody can see to the command in their arguments; these do where it says ``{}``.
_FED = frozenset({"xargs", "parallel"})
_FINDS = frozenset({"find", "fd"})
_BEFORE = frozenset({"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"})
_AFTER = frozenset({"}", "fi", "done"})
_UNKNOWN = frozenset({"case", "esac", "select", "function", "coproc", "[[", "]]", "in"})
_MOVERS = frozenset({"cd", "chdir", "popd", "pushd"})
_MOST_WORDS = 64
_DEEPEST = 5
_CUTS = str.maketrans(dict.fromkeys(";&|\r(){}`\"'<>$\\", "\n"))


class Part(NamedTuple):
    """One simple command.

    Attributes:
        text: as written, without what is set before it.
        words: without quotes.
        raws: the words as written.
        known: the beginning that holds whatever variables are.
        dynamic: some of it depends on variables or on other commands.
        globs: names of files take the place of some words.
        assigns: it sets variables.
        writes, reads: files that it is redirected to and from.
        knowns: for each word the beginning that is known; None where that is all of it.
    """

    text: str
    words: tuple[str, ...]
    raws: tuple[str, ...]
    known: str
    dynamic: bool = False
    globs: bool = False
    assigns: bool = False
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    knowns: tuple[str | None, ...] = ()

    @property
    def fed(self) -> bool:
        """Whether it runs a command with words that it is told only then: read from a file, or found."""
        first = _program(self.words)
        return first in _FED or (first in _FINDS and any("{}" in word for word in self.words))

    @property
    def wraps(self) -> bool:
        """Whether it runs another command, which is among its words."""
        return next(iter(_wrapped(self.words)), None) is not None

    def runs(self) -> Iterator[str]:
        """Give the beginnings, as far as they are known, of the commands that it may run."""
        for words in _wrapped(self.words):
            known = list(words)
            known = known[: next((n for n, word in enumerate(known) if "{}" in word), len(known))]
            yield " ".join(known) if known else "{}"

    def allow_texts(self) -> Iterator[str]:
        """Give the texts under which it may be allowed."""
        yield " ".join(self.raws)
        if not any(len(word.split()) > 1 or word != word.strip() for word in self.words):
            yield " ".join(self.words)


class Script(NamedTuple):
    """A script, taken apart.

    Attributes:
        parts: the commands that a shell would run.
        understood: these are all of them for sure.
        hidden: commands that programs among them run in turn, such as ``sudo`` and ``sh -c``.
        rough: when it was not understood, whatever could be a command in it.
    """

    parts: tuple[Part, ...]
    understood: bool = True
    hidden: tuple[Part, ...] = ()
    rough: tuple[tuple[str, ...], ...] = ()

    def suspects(self) -> Iterator[str]:
        """Give every text under which it may be forbidden."""
        for part in (*self.parts, *self.hidden):
            yield part.text
            yield from _spelled(part.words)
        for words in self.rough:
            yield from _spelled(words)

    def moves(self) -> bool:
        """Whether it goes to another folder, so that relative paths are elsewhere."""
        return any(_program(part.words) in _MOVERS for part in (*self.parts, *self.hidden))

    def written(self) -> tuple[str, ...]:
        """Return the files that are written by redirection."""
        return tuple(path for part in (*self.parts, *self.hidden) for path in part.writes)

    def read(self) -> tuple[str, ...]:
        """Return the files that are read by redirection."""
        return tuple(path for part in (*self.parts, *self.hidden) for path in part.reads)


def split(text: str) -> Script:
    """Take a script apart."""
    return _split(text, 0)


def _split(text: str, depth: int) -> Script:
    commands, understood = shellscan.scan(text)
    parts: list[Part] = []
    hidden: list[Part] = []
    rough: list[tuple[str, ...]] = []
    for command in commands:
        part, clear = _part(command)
        understood &= clear
        if part is None:
            continue
        parts.append(part)
        for inner in _inside(part, command, depth):
            hidden += (*inner.parts, *inner.hidden)
            rough += inner.rough
            understood &= inner.understood
    if not understood:
        rough += [words for piece in text.translate(_CUTS).split("\n") if (words := _bare(piece.split()))]
    return Script(tuple(parts), understood, tuple(hidden), tuple(rough))


def _part(command: Command) -> tuple[Part | None, bool]:
    """Return the command without what only says when it runs; and whether it is clear what it is."""
    words = list(command.words)
    clear = True
    while words and not words[0].quoted and words[0].raw in _BEFORE | _AFTER:
        closes = words[0].raw in _AFTER
        words.pop(0)
        clear &= not (closes and words)
    if words and words[0].raw == "for":
        clear &= len(words) > 1 and (len(words) == 2 or words[2].raw == "in")
        words = []
    if words and not words[0].quoted and words[0].raw in _UNKNOWN:
        clear = False
    assigned = 0
    while assigned < len(words) and shellscan.is_assignment(words[assigned]):
        assigned += 1
    if not words and not command.writes and not command.reads:
        return None, clear
    named = words[assigned:]
    if named and (named[0].dynamic or named[0].globs):
        clear = False
    part = Part(
        text=" ".join(word.raw for word in named) or " ".join(word.raw for word in words),
        words=tuple(word.text for word in named),
        raws=tuple(word.raw for word in named),
        known=_known(named),
        dynamic=any(word.dynamic for word in words),
        globs=any(word.globs for word in named),
        assigns=assigned > 0,
        writes=tuple(path for path in command.writes if path != "/dev/null"),
        reads=tuple(command.reads),
        knowns=tuple(word.known if word.dynamic or word.globs else None for word in named),
    )
    return part, clear


def _known(words: Sequence[Word]) -> str:
    known: list[str] = []
    for word in words:
        known.append(word.known)
        if word.dynamic or word.globs:
            break
    return " ".join(known)


# --- commands in commands -------------------------------------------------------------------------


def _bare(words: Sequence[str]) -> tuple[str, ...]:
    rest = list(words)
    while rest and (rest[0] in _BEFORE | _AFTER or shellscan.assigns(rest[0])):
        rest.pop(0)
    return tuple(rest)


def _program(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _spelled(words: Sequence[str]) -> Iterator[str]:
    """Give a command, and those it runs, by the programs' plain names as well."""
    for one in (words, *_wrapped(words)):
        if one:
            yield " ".join(one)
            program = _program(one)
            yield " ".join((program, *one[1:]))
            yield from (" ".join((program, *rest)) for rest in _behind_options(one))


def _behind_options(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give what could come behind a program's own options: ``push`` in ``git -C . push``.

    Which options take a word nobody knows here, so each is tried with one and without.
    """
    at = 1
    while at < min(len(words), _MOST_WORDS) and words[at].startswith("-"):
        yield words[at + 1 :]
        if at + 2 < len(words) and "=" not in words[at] and not words[at + 1].startswith("-"):
            yield words[at + 2 :]
            at += 1
        at += 1


def _wrapped(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Give what could be the command that a program like ``sudo`` runs: whatever its options mean, it is among them."""
    program = _program(words)
    if program not in _WRAPPERS:
        return
    begins = 1
    if program in _RUN_AFTER:
        begins = next((n + 1 for n, word in enumerate(words) if word in _RUN_AFTER[program]), len(words))
    for start in range(begins, min(len(words), begins + _MOST_WORDS)):
        yield words[start:]


def _inside(part: Part, command: Command, depth: int) -> Iterator[Script]:
    """Give the scripts that a command hands to a shell."""
    for words in (part.words, *_wrapped(part.words)):
        program = _program(words)
        if program not in _SHELLS | _TAKE_SCRIPTS:
            continue
        if depth >= _DEEPEST or part.dynamic:
            yield Script((), understood=False)
            return
        texts = _scripts(program, words)
        if program in _SHELLS and not any(not word.startswith("-") for word in words[1:]):
            yield Script((), understood=False)  # it reads its commands from somewhere
            texts = [*texts, *command.fed]
        for text in texts:
            yield _split(text, depth + 1)


def _scripts(program: str, words: Sequence[str]) -> list[str]:
    if program == "eval":
        return [" ".join(words[1:])]
    if program not in _SHELLS:
        return [word for word in words[1:] if " " in word]
    for n, word in enumerate(words[1:], start=1):
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            return [text for text in words[n + 1 :] if not text.startswith("-")][:1]
    return []
