"""The files that a shell command names, for deny rules about files.

Redirections are certain.  Of the words of a command each may be a file that it reads; whether it writes one is
told by the program (``permission_words``).  What a program does by itself (``make``, a script, ``grep -r`` from above)
is not seen.
"""

from __future__ import annotations

from swarm.permissions import paths
from swarm.permissions.rules import EDITORS, Behavior, Decision
from swarm.permissions.shell.programs import MOST_WORDS, program
from swarm.permissions.words import Named, named, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.permissions.paths import Place
    from swarm.permissions.rules import Rule
    from swarm.permissions.shell.parts import Part, Script

_MOVERS = frozenset({"cd", "chdir", "pushd", "popd"})
#: Change how a shell finds files for a pattern.
_CHANGE_PATTERNS = frozenset({"shopt", "setopt", "unsetopt"})
#: Work in the folder that one of these options names.
_ELSEWHERE = {
    **dict.fromkeys(("git", "make", "gmake", "tar", "bsdtar", "gtar", "ninja"), ("-C", "--directory")),
    **dict.fromkeys(("env", "genv"), ("-C", "--chdir")),
    "sudo": ("-D", "--chdir"),
}
_MOST_BASES = 8


class _Bases:
    """The folders in which a script may be at work.

    Attributes:
        found: those that are known.
        lost: there may be others.
    """

    def __init__(self, found: Sequence[Place], *, lost: bool = False) -> None:
        self.found = list(found)
        self.lost = lost

    def go(self, target: str | None) -> None:
        """Replace each folder by the next one; None is an unknown folder."""
        if target is None or (target.startswith("~") and target != "~" and not target.startswith("~/")):
            self.lost = True
            return
        for here in list(self.found):
            there = here._replace(root=here.root or here.cwd, cwd=paths.absolute(target, here))
            if any(there.cwd == one.cwd for one in self.found):
                continue
            if len(self.found) >= _MOST_BASES:
                self.lost = True
                return
            self.found.append(there)


def judge(rules: Sequence[Rule], script: Script, place: Place) -> tuple[Rule | None, Decision | None]:
    """Return the rule that forbids a script, or else the unknown part about its files."""
    parts = (*script.parts, *script.hidden)
    bases = _Bases([place])
    for part in parts:
        for target in _targets(part, place):
            bases.go(target)
    if len(bases.found) > 1 or bases.lost or any(program(part.words) in _CHANGE_PATTERNS for part in parts):
        place = place._replace(names=None)  # files are looked up where it is now, and as usual
    unclear: Decision | None = None
    for part in parts:
        here = _bases_of(part, bases, place)
        for one in dict.fromkeys(named(part, place if here is bases else place._replace(names=None))):
            for rule in rules:
                if (rule.tool in EDITORS) != one.writes:
                    continue
                if one.known and any(_meets(rule, one, base) for base in here.found):
                    return rule, None
                if unclear is None and _could_meet(rule, one, here):
                    what = part.words[0][:40] if part.words else "it"
                    unclear = Decision(Behavior.ASK, f"which file {what} uses is only known when it runs")
    return None, unclear


# --- folders --------------------------------------------------------------------------------------


def _targets(part: Part, place: Place) -> Iterator[str | None]:
    """Yield the folders to which a command changes; None for an unknown one."""
    at = next((n for n, word in enumerate(part.words) if word in _MOVERS), None) if part.wraps else 0
    if at is None or not part.words or part.words[at] not in _MOVERS:
        return
    given = list(zip(part.words[at + 1 :], part.knowns[at + 1 :], strict=True))
    folders = [(word, known) for word, known in given if not word.startswith("-") or word == "-"]
    if part.words[at] == "popd" or len(folders) > 1 or any(word[:1] in ("+", "-") for word, _ in folders):
        yield None  # one that it was in before, or will be
    if not folders and part.words[at] in ("cd", "chdir"):
        yield place.home or None
    elif not folders:
        yield None
    for word, known in folders[-1:]:
        if word != "-":
            yield from _places(word, known, place)


def _places(word: str, known: str | None, place: Place) -> Iterator[str | None]:
    """Give the folders that a word stands for."""
    text = plain(word, place)
    if known is None or not set("$`*?[{") & set(text):
        yield text
        return
    looked_up = None if place.names is None or set("$`{") & set(text) else place.names(text)
    yield from looked_up if looked_up is not None else [None]


def _bases_of(part: Part, bases: _Bases, place: Place) -> _Bases:
    """Return the working folders of one command: an option may name another one."""
    for number, word in enumerate(part.words[:MOST_WORDS]):
        options = _ELSEWHERE.get(word.rpartition("/")[2], ()) if number == 0 or part.wraps else ()
        for option in options:
            made = _Bases(bases.found, lost=bases.lost)
            for at in range(number + 1, len(part.words)):
                one, known = part.words[at], part.knowns[at]
                if one == option and at + 1 < len(part.words):
                    one, known = part.words[at + 1], part.knowns[at + 1]
                elif one.startswith(f"{option}=") or (len(option) == 2 and one.startswith(option) and one != option):
                    one = one.removeprefix(option).removeprefix("=")
                else:
                    continue
                for target in _places(one, known, place):
                    made.go(target)
            if made.lost != bases.lost or len(made.found) > len(bases.found):
                return made
    return bases


# --- rules ----------------------------------------------------------------------------------------


def _meets(rule: Rule, one: Named, place: Place) -> bool:
    pattern = rule.pattern or ""
    if paths.forbids(pattern, one.path, place):
        return True
    if pattern.endswith("/**") and paths.forbids(_folder(pattern), one.path, place):
        return True
    return one.whole and paths.is_above(one.path, pattern, place)


def _folder(pattern: str) -> str:
    """Return the folder that a rule is about all of, which is where the rule says and nowhere else."""
    whole = pattern.removesuffix("/**")
    return whole if "/" in whole or whole == "~" else f"/{whole}"


def _could_meet(rule: Rule, one: Named, bases: _Bases) -> bool:
    """Whether a rule could be about a file that is not known, or is in a folder that is not."""
    pattern = rule.pattern or ""
    user, slash, rest = one.path.partition("/")
    away = user.startswith("~") and user != "~"
    if away:
        path = rest if slash else "."
    elif bases.lost and not one.path.startswith(("/", "~")):
        path = one.path
    else:
        return not one.known and any(_could_be_at(pattern, one, base) for base in bases.found)
    if not one.known:
        return True
    here = bases.found[0]
    for folder in (here.root or here.cwd, here.home):
        if folder and _meets(rule, one._replace(path=path), here._replace(root=here.root or here.cwd, cwd=folder)):
            return True
    if not one.sure or (away and user[1].isalpha()):  # another user's home
        return False
    return paths.could_end(pattern, path) or (one.whole and path in ("", "."))


def _could_be_at(pattern: str, one: Named, place: Place) -> bool:
    fixed = paths.fixed_part(pattern, place)
    known = paths.absolute(one.path, place) if one.path else ""
    return not fixed or fixed.startswith(known) or known.startswith(fixed)
