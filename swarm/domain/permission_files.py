"""The files that a shell command names, as deny rules for files see them.

Redirections are certain.  Of the words of a command each may be a file that it reads; whether it writes one is
told by the program's name.  What a program does by itself (``make``, a script, ``grep -r`` from above) is not seen.
"""

from __future__ import annotations

from swarm.domain import pathrules
from swarm.domain.permission_rules import EDITORS, Behavior, Decision
from swarm.domain.tuples import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.domain.pathrules import Place
    from swarm.domain.permission_rules import Rule
    from swarm.domain.shellparts import Part, Script

#: Their words are no files, or are files whose content they do not show.
_TALK = frozenset(
    {"echo", "printf", "test", "[", "[[", "cd", "pushd", "ls", "stat", "mkdir", "true", "false", ":", "export", "which"}
)
#: Write or remove each file that they are given.
_WRITE = frozenset(
    {
        *("chgrp", "chmod", "chown", "dd", "ed", "ex", "mkdir", "mkfifo", "mv", "nano", "patch", "rm", "rmdir"),
        *("shred", "tee", "touch", "truncate", "unlink", "vi", "vim"),
    }
)
#: Of these, those that change all that is in a folder.
_WHOLE = frozenset({"chgrp", "chmod", "chown", "find", "git", "mv", "rm", "shred"})
#: Write the last of the files that they are given, or into the folder that it is.
_COPY = frozenset({"cp", "install", "link", "ln", "rsync", "scp"})
#: Write with one of these words.
_WRITE_WITH = {"sed": ("-i", "--in-place"), "perl": ("-i",), "find": ("-delete",), "sort": ("-o",), "curl": ("-o",)}
_GIT_WRITES = frozenset({"apply", "checkout", "clean", "mv", "restore", "rm"})
#: Show the files that they are given: what their words will be matters.
_SHOW = frozenset(
    {
        *("awk", "base64", "bat", "cat", "cmp", "cut", "diff", "egrep", "fgrep", "grep", "gzip", "head", "hexdump"),
        *("jq", "less", "more", "nl", "od", "paste", "rev", "rg", "sed", "sort", "source", ".", "strings", "tac"),
        *("tail", "tar", "uniq", "xxd", "zip", "wc"),
        *_COPY,
    }
)
_MOST_BASES = 8


class _Named(NamedTuple):
    """A word that may be a file.

    Attributes:
        path: as far as it is known.
        known: that is all of it.
        writes: it is written or removed.
        whole: with all that is in it.
    """

    path: str
    known: bool = True
    writes: bool = False
    whole: bool = False


def judge(rules: Sequence[Rule], script: Script, place: Place) -> tuple[Rule | None, Decision | None]:
    """Return the rule that forbids a script, and else what cannot be told about its files."""
    bases = _bases(script, place)
    if len(bases) > 1:
        place = place._replace(names=None)  # files are looked up where it is now
    unclear: Decision | None = None
    for part in (*script.parts, *script.hidden):
        for named in _names(part, place):
            for rule in rules:
                if (rule.tool in EDITORS) != named.writes:
                    continue
                if named.known:
                    if any(_meets(rule, named, here) for here in bases):
                        return rule, None
                elif unclear is None and _could_meet(rule, named, bases):
                    unclear = Decision(Behavior.ASK, f"which file {part.words[0][:40]} uses is only known when it runs")
    return None, unclear


def _bases(script: Script, place: Place) -> list[Place]:
    """Return the folders in which a script may be at work: it can go to others."""
    found = [place]
    for part in (*script.parts, *script.hidden):
        if (
            part.words
            and part.words[0] in ("cd", "chdir", "pushd")
            and len(part.words) > 1
            and len(found) < _MOST_BASES
        ):
            target = _plain(part.words[-1], place)
            found += [
                here._replace(root=place.root or place.cwd, cwd=pathrules.absolute(target, here)) for here in found
            ]
    return found


def _meets(rule: Rule, named: _Named, place: Place) -> bool:
    pattern = rule.pattern or ""
    if pathrules.forbids(pattern, named.path, place):
        return True
    if pattern.endswith("/**") and pathrules.forbids(pattern.removesuffix("/**") or "/", named.path, place):
        return True
    return named.whole and pathrules.is_above(named.path, pattern, place)


def _could_meet(rule: Rule, named: _Named, bases: Sequence[Place]) -> bool:
    pattern = rule.pattern or ""
    for place in bases:
        fixed = pathrules.fixed_part(pattern, place)
        known = pathrules.absolute(named.path, place) if named.path else ""
        if not fixed or fixed.startswith(known) or known.startswith(fixed):
            return True
    return False


# --- which words are files ------------------------------------------------------------------------


def _names(part: Part, place: Place) -> Iterator[_Named]:
    yield from (_Named(path, writes=True) for path in part.writes)
    yield from (_Named(path) for path in part.reads)
    words = list(_files(part, place))
    programs = _programs(part)
    if not programs & _TALK:
        shows = bool(programs & _SHOW)
        yield from (_Named(path, known) for path, known in words if known or shows)
    if programs & _COPY:
        yield from _copied(words)
    elif _writes(part, programs):
        whole = bool(programs & _WHOLE)
        yield from (_Named(path, known, writes=True, whole=whole) for path, known in words)


def _copied(words: Sequence[tuple[str, bool]]) -> Iterator[_Named]:
    """Give what a copy writes: its last word, or files of the same names in it."""
    if not words:
        return
    target, known = words[-1]
    yield _Named(target, known, writes=True)
    for path, _ in words[:-1]:
        yield _Named(f"{target}/{path.rstrip('/').rpartition('/')[2]}", known, writes=True)


def _files(part: Part, place: Place) -> Iterator[tuple[str, bool]]:
    """Give the words that may be files, each with whether that is all of it."""
    for word, known in zip(part.words[1:], part.knowns[1:], strict=True):
        if part.fed and "{}" in word:
            continue  # stands for what is said below
        plain = word if known is None else _plain(word, place)
        if known is None or (plain != word and not set("$`*?[{") & set(plain)):
            if _bare(plain):
                yield _bare(plain), True
            continue
        # braces make several words of one
        names = None if place.names is None or set("$`{") & set(word) else place.names(plain)
        if names is None:
            yield _bare(known), False
        else:
            yield from ((name, True) for name in names or (word,))
    if part.fed:
        yield "", False


def _bare(word: str) -> str:
    """Return the file in a word such as ``--file=x``, ``if=x`` and ``@x``."""
    if word.startswith("-") and "=" not in word:
        return ""
    return word.rpartition("=")[2].removeprefix("@")


def _plain(word: str, place: Place) -> str:
    """Put the two variables in whose values are known."""
    for name, value in (("HOME", place.home), ("PWD", place.cwd)):
        if value:
            word = word.replace(f"${{{name}}}", value).replace(f"${name}/", f"{value}/")
    return word


def _programs(part: Part) -> set[str]:
    """Return what may be the program: the first word, or one behind a program that runs others."""
    first = {part.words[0].rpartition("/")[2]} if part.words else set()
    return first | {word.rpartition("/")[2] for word in part.words[1:]} if part.wraps else first


def _writes(part: Part, programs: set[str]) -> bool:
    if programs & _WRITE:
        return True
    if "git" in programs:
        return any(word in _GIT_WRITES for word in part.words[1:3])
    return any(
        word.startswith(_WRITE_WITH[program]) for program in programs & _WRITE_WITH.keys() for word in part.words[1:]
    )
