"""The commands of a shell script as permission rules see them.

What a script may do is judged by two views of it.  *Suspects* are all texts under which a command could
be forbidden: without quotes, by the program's plain name, behind ``sudo`` and the like, inside of
``sh -c``.  For being allowed only the command as it stands counts.
"""

from __future__ import annotations

from collections import namedtuple

from swarm.permissions.shell import programs, scan
from swarm.permissions.shell.programs import MOST_WORDS, SHELLS, has_space, program, wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.permissions.shell.scan import Command
    from swarm.permissions.shell.words import Word

#: Programs that add unknown words to the command in their arguments, in place of ``{}``.
_FED = frozenset({"xargs", "parallel"})
_FINDS = frozenset({"find", "fd"})
_BEFORE = frozenset({"!", "{", "if", "then", "elif", "else", "while", "until", "do", "time"})
_AFTER = frozenset({"}", "fi", "done"})
_UNKNOWN = frozenset({"case", "esac", "select", "function", "coproc", "[[", "]]", "in"})
_SOURCES = frozenset({".", "source"})
#: Commands that take names of variables.
_NAMERS = frozenset(
    {
        *("test", "[", "printf", "read", "unset", "declare", "typeset", "local", "export", "readonly", "mapfile"),
        *("readarray", "wait", "getopts"),
    }
)
#: Commands that set variables.
_SETTERS = frozenset({"export", "declare", "typeset", "local", "readonly", "env", "sudo", "doas"})
#: Variables whose values are run.
_RUN_VARIABLES = frozenset(
    {
        *("GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "EDITOR", "VISUAL", "PAGER", "GIT_PAGER", "MANPAGER", "GIT_SSH"),
        *("GIT_SSH_COMMAND", "GIT_ASKPASS", "SSH_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "BROWSER"),
        *("LESSOPEN", "BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS4"),
    }
)
#: Options that give git settings which can name programs.
_CONFIGURES = ("GIT_CONFIG_KEY", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
_MOVERS = frozenset({"cd", "chdir", "popd", "pushd"})
_DEEPEST = 5
_CUTS = str.maketrans(dict.fromkeys(";&|\r(){}`\"'<>$\\", "\n"))


class Part(
    namedtuple(
        "Part",
        ("text", "words", "raws", "known", "dynamic", "globs", "assigns", "writes", "reads", "knowns", "sets"),
        defaults=(False, False, False, (), (), (), ()),
    )
):
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
        sets: the variables set before it, with their values.
    """

    __slots__ = ()

    @property
    def fed(self) -> bool:
        """Whether it runs a command with words from a file or a search."""
        first = program(self.words)
        return first in _FED or (first in _FINDS and any("{}" in word for word in self.words))

    @property
    def wraps(self) -> bool:
        """Whether it runs another command, which is among its words."""
        return next(iter(wrapped(self.words)), None) is not None

    def runs(self) -> Iterator[str]:
        """Give the beginnings, as far as they are known, of the commands that it may run."""
        for words in wrapped(self.words):
            known = list(words)
            known = known[: next((n for n, word in enumerate(known) if "{}" in word), len(known))]
            yield "" if programs.is_open(known) else " ".join(known) if known else "{}"

    def beginnings(self) -> Iterator[str]:
        """Give how the command, and those it runs, begin for sure, as far as more is only known when they run."""
        for words in (self.words, *wrapped(self.words)):
            knowns = self.knowns[len(self.knowns) - len(words) :]
            for start in (0, *_behind_own(words)):
                begin = _beginning(words[start:], knowns[start:])
                if begin is None:
                    continue
                yield f"{program(words)} {begin}" if start else begin
                if not start:
                    first, space, rest = begin.partition(" ")
                    yield first.rpartition("/")[2] + space + rest

    def allow_texts(self) -> Iterator[str]:
        """Give the texts under which it may be allowed."""
        yield " ".join(self.raws)
        if not any(has_space(word) for word in self.words):
            yield " ".join(self.words)


class Script(namedtuple("Script", ("parts", "understood", "hidden", "rough"), defaults=(True, (), ()))):
    """A script, taken apart.

    Attributes:
        parts: the commands that a shell would run.
        understood: these are all of them for sure.
        hidden: commands that programs among them run in turn, such as ``sudo`` and ``sh -c``.
        rough: when it was not understood, whatever could be a command in it.
    """

    __slots__ = ()

    def suspects(self) -> Iterator[str]:
        """Give every text under which it may be forbidden."""
        for part in (*self.parts, *self.hidden):
            yield part.text
            yield from _spelled(part.words)
        for words in self.rough:
            yield from _spelled(words)

    def maybes(self) -> Iterator[str]:
        """Yield the texts under which a rule may forbid it, if an unknown program runs others."""
        for part in (*self.parts, *self.hidden):
            for words in programs.may_run(part.words):
                yield from _spelled(words)
                for one in (words, *wrapped(words)):
                    found = programs.handed(one) if program(one) in programs.SHELLS else None
                    for text in found.texts if found is not None else ():
                        yield from split(text).suspects()

    def moves(self) -> bool:
        """Whether it goes to another folder, so that relative paths are elsewhere."""
        return any(program(part.words) in _MOVERS for part in (*self.parts, *self.hidden))

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
    commands, understood = scan.scan(text)
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
    """Return the command without its control words, and whether the command is clear."""
    words = list(command.words)
    clear = True
    while words and not words[0].quoted and words[0].raw in _BEFORE | _AFTER:
        if words[0].raw == "time" and len(words) > 1 and words[1].raw.startswith("-"):
            break  # shells differ in its meaning: as with any other program, the command follows it
        closes = words[0].raw in _AFTER
        words.pop(0)
        clear &= not (closes and words)
    if words and words[0].raw == "for":
        clear &= len(words) > 1 and (len(words) == 2 or words[2].raw == "in")
        words = []
    if words and not words[0].quoted and words[0].raw in _UNKNOWN:
        clear = False
    assigned = 0
    while assigned < len(words) and scan.is_assignment(words[assigned]):
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
        sets=tuple(word.text for word in words[:assigned]),
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
    while rest and (rest[0] in _BEFORE | _AFTER or scan.assigns(rest[0])):
        if rest.pop(0) == "time":
            while rest and rest[0].startswith("-"):
                rest.pop(0)
    return tuple(rest)


def _spelled(words: Sequence[str]) -> Iterator[str]:
    """Give a command, and those it runs, by the programs' plain names as well."""
    for one in (words, *wrapped(words)):
        if one:
            yield " ".join(one)
            name = program(one)
            yield " ".join((name, *one[1:]))
            if name.startswith("git-"):
                yield " ".join(("git", name.removeprefix("git-"), *one[1:]))
            yield from (" ".join((name, *rest)) for rest in _behind_options(one))


def _behind_options(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words that may follow a program's own options: ``push`` in ``git -C . push``.

    Which options take a word nobody knows here, so each is tried with one and without.
    """
    at = 1
    while at < min(len(words), MOST_WORDS) and words[at].startswith("-"):
        yield words[at + 1 :]
        if at + 2 < len(words) and "=" not in words[at] and not words[at + 1].startswith("-"):
            yield words[at + 2 :]
            at += 1
        at += 1


def _behind_own(words: Sequence[str]) -> Iterator[int]:
    """Give where the words behind a program's own options can begin; of git's it is known."""
    if program(words) == "git":
        from swarm.permissions.shell import git

        yield len(words) - len(git.own_options(words)[1])
    elif len(words) > 1 and words[1].startswith("-"):
        yield from (len(words) - len(rest) for rest in _behind_options(words))


def _beginning(words: Sequence[str], knowns: Sequence[str | None]) -> str | None:
    """Return the words before the first unknown part; None when all is known."""
    end = next((n for n, known in enumerate(knowns) if known is not None), None)
    return None if end is None else " ".join((*words[:end], knowns[end] or ""))


def _inside(part: Part, command: Command, depth: int) -> Iterator[Script]:
    """Give the scripts that a command hands to a shell."""
    for setting in _settings(part):
        yield _split(setting, depth + 1) if setting is not None and depth < _DEEPEST else _UNCLEAR
    if programs.has_more(part.words) or _evaluates(part):
        yield _UNCLEAR
    is_fed = bool(command.fed) or command.piped
    seen: set[str] = set()
    for words in (part.words, *wrapped(part.words)):
        found = programs.handed(words)
        if found is None:
            continue
        if (part.dynamic and not found.fixed) or (depth >= _DEEPEST and found.texts):
            yield _UNCLEAR
            return
        more = part.fed and program(words) in SHELLS and any("{}" in text for text in found.texts or ("{}",))
        if (
            more
            or found.unclear
            or (command.piped and found.reads)
            or (is_fed and part.dynamic and program(words) in _SOURCES)
        ):
            yield _UNCLEAR
        for text in (*found.texts, *(command.fed if found.reads else ())):
            if text not in seen:
                seen.add(text)
                yield _split(text, depth + 1)


def _settings(part: Part) -> Iterator[str | None]:
    """Yield the values of variables that other programs run, set before a command or by one; None if unknown."""
    words = part.words[1:] if program(part.words) in _SETTERS else ()
    for word in (*part.sets, *words):
        name, sign, value = word.partition("=")
        if sign and name in _RUN_VARIABLES:
            yield value
        elif sign and name.startswith(_CONFIGURES) and value != "/dev/null":
            yield None


def _evaluates(part: Part) -> bool:
    """Whether a command evaluates the index in a variable's name, and so runs commands in it: ``a[$(x)]``."""
    name = program(part.words)
    if name == "let":
        return True
    if name not in _NAMERS:
        return False
    for before, word, known in zip(part.words, part.words[1:], part.knowns[1:], strict=False):
        if "[" in word and ("$(" in word or "`" in word):
            return True
        if before == "-v" and known is not None:
            return True
    return False


_UNCLEAR = Script((), understood=False)
