"""Which words of a command are files, and which of them it writes.

Options are read as most programs read them: several letters in one word, the value in the same word or in the next.
What takes a value nobody knows of every program, so what could be one counts.
"""

from __future__ import annotations

from collections import namedtuple

from swarm.permissions.shell.programs import program, talks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.permissions.paths import Place
    from swarm.permissions.shell.parts import Part

#: Write or remove each file that they are given.
_WRITE = frozenset(
    {
        *(
            "chattr",
            "chgrp",
            "chmod",
            "chown",
            "dos2unix",
            "ed",
            "emacs",
            "ex",
            "mkdir",
            "mkfifo",
            "mv",
            "nano",
            "nvim",
        ),
        *("patch", "prename", "rename", "rm", "rmdir", "setfacl", "shred", "sponge", "tee", "touch", "truncate"),
        *("unix2dos", "unlink", "vi", "vim", "black", "isort", "sd"),
    }
)
#: The same, unless they print.
_PACK = frozenset(
    {"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "lzma", "zstd", "unzstd", "compress", "uncompress", "pigz"}
)
#: Change all that is in a folder.
_WHOLE = frozenset({"chgrp", "chmod", "chown", "find", "git", "mv", "rm", "shred"})
#: Write the last of the files that they are given, or into the folder that it is.
_COPY = frozenset({"cp", "install", "link", "ln", "rsync", "scp", "split", "csplit"})
#: Options of theirs that take another word, which is no file they write.
_BESIDE = {"cp": "S", "install": "mogS", "ln": "S", "mv": "S", "rsync": "efTBM", "scp": "cFiJloPSX", "split": "abClnt"}
_BESIDE_LONG = ("--exclude", "--include", "--filter", "--rsh", "--files-from", "--exclude-from", "--include-from")
#: Write in place with a letter or a word, if no letter came before it that takes the rest.
_IN_PLACE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "sed": ("i", "efl", ("--in-place",)),
    "gsed": ("i", "efl", ("--in-place",)),
    "perl": ("i", "eEFImMxDCV", ()),
    "ruby": ("i", "erIEFCKxTW", ()),
    "yq": ("i", "", ("--inplace", "--in-place")),
    "clang-format": ("i", "", ()),
    "autopep8": ("i", "", ("--in-place",)),
    "gofmt": ("w", "", ()),
    "goimports": ("w", "", ()),
    "shfmt": ("w", "", ("--write",)),
    "prettier": ("w", "", ("--write",)),
    "eslint": ("", "", ("--fix",)),
    "find": ("", "", ("-delete",)),
    "gfind": ("", "", ("-delete",)),
}
#: Options whose value is a file or a folder that is written.
_INTO: dict[str, tuple[str, tuple[str, ...]]] = {
    "curl": (
        "oDc",
        ("--output", "--output-dir", "--dump-header", "--cookie-jar", "--trace", "--trace-ascii", "--stderr"),
    ),
    "wget": ("OoaP", ("--output-document", "--output-file", "--append-output", "--directory-prefix", "--save-cookies")),
    "sort": ("o", ("--output",)),
    "unzip": ("d", ()),
    "mktemp": ("p", ("--tmpdir",)),
    "ssh-keygen": ("f", ()),
    "find": ("", ("-fprint", "-fprint0", "-fprintf", "-fls")),
    **dict.fromkeys(("cp", "mv", "ln", "install"), ("t", ("--target-directory",))),
}
#: The same, of whatever else a program is called.
_OUTPUT = ("o", ("--output", "--output-file", "--output-dir", "--outfile", "--out-dir", "--outdir", "-out", "-outdir"))
#: Where that means something else.
_NO_OUTPUT = frozenset(
    {
        *("grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "find", "fd", "ps", "pgrep", "pkill", "ssh", "mount"),
        *("set", "sh", "bash", "dash", "zsh", "ksh", "id", "od", "tar", "rm", "python", "python3", "pytest", "sudo"),
    }
)
_TAR = frozenset({"tar", "bsdtar", "gtar"})
#: Run programs of others, by their names.
_RUNNERS = frozenset({"npx", "npm", "pnpm", "yarn", "bunx", "uvx", "poetry", "pipenv", "bundle"})
_GIT_WRITES = frozenset({"apply", "checkout", "clean", "clone", "init", "mv", "restore", "rm", "stash", "worktree"})
#: Make a branch of that name.
_GIT_NAMES = ("-b", "-B", "--orphan")
_GIT_OUTPUT = frozenset({"archive", "format-patch"})
#: Show the files that they are given: what their words will be matters.
_SHOW = frozenset(
    {
        *("awk", "base64", "bat", "cat", "cmp", "cut", "diff", "egrep", "fgrep", "grep", "gzip", "head", "hexdump"),
        *("jq", "less", "more", "nl", "od", "paste", "rev", "rg", "sed", "sort", "source", ".", "strings", "tac"),
        *("tail", "tar", "uniq", "xxd", "zip", "wc"),
        *_COPY,
    }
)
#: Take paths of their own kind in one word: ``HEAD:secrets/key``, ``-v secrets:/x``.
_COLONS = frozenset({"git", "docker", "podman", "nerdctl"})
_MOST_LETTERS = 6
_SHORTEST_LONG = 3


class Named(namedtuple("Named", ("path", "known", "writes", "whole", "sure"), defaults=(True, False, False, False))):
    """A word that may be a file.

    Attributes:
        path: as far as it is known.
        known: that is all of it.
        writes: it is written or removed.
        whole: with all that is in it.
        sure: it is a file, whatever the word looks like.
    """

    __slots__ = ()


class Argument(namedtuple("Argument", ("text", "known"), defaults=(True,))):
    """A word of a command as it will be: as far as it is known, and whether that is all of it."""

    __slots__ = ()


def named(part: Part, place: Place) -> Iterator[Named]:
    """Give the files that a command may read or write."""
    yield from (Named(plain(path, place), writes=True, sure=True) for path in part.writes)
    yield from (Named(plain(path, place), sure=True) for path in part.reads)
    if not part.words:
        return
    arguments = list(_arguments(part, place))
    names = _programs(part)
    if not talks(part.words):
        shows = bool(names & _SHOW)
        for one in arguments:
            if one.known or shows or _takes_files(names, one.text):
                colons = bool(names & _COLONS)
                yield from (Named(path, one.known, sure=shows) for path in _forms(one.text, place, colons=colons))
    if "xargs" in names:
        yield from (Named(_file(one.text), one.known, sure=True) for one in _after(arguments, "a", ("--arg-file",)))
    if part.fed and not talks(part.words):
        arguments.append(Argument("", known=False))
        yield from (Named("", known=False, sure=True) for _ in names & _SHOW)
    whole = bool(names & _WHOLE)
    for one in _written(part, names, arguments):
        yield Named(_file(one.text), one.known, writes=True, whole=whole, sure=True)


def plain(word: str, place: Place) -> str:
    """Fill in the known variables: the home, and the working directory."""
    if word == "~+" or word.startswith("~+/"):
        word = "." + word[2:]
    word = _put_in(word, "HOME", place.home)
    begins = word.startswith(("$PWD", "${PWD}"))
    return _put_in(word, "PWD", "." if begins else place.cwd)  # at the beginning: wherever that is by then


def _put_in(word: str, name: str, value: str) -> str:
    """Put in the value of a variable."""
    if not value or name not in word:
        return word
    first, *rest = word.replace(f"${{{name}}}", value).split(f"${name}")
    for piece in rest:
        first += (f"${name}" if piece[:1].isalnum() or piece[:1] == "_" else value) + piece
    return first


# --- words ----------------------------------------------------------------------------------------


def _arguments(part: Part, place: Place) -> Iterator[Argument]:
    for word, known in zip(part.words[1:], part.knowns[1:], strict=True):
        if part.fed and "{}" in word:
            continue  # its value is known only at run time
        text = plain(word, place)
        if known is None:
            yield Argument(plain(word, place) if word.startswith("~") else word)
        elif text != word and not set("$`*?[{") & set(text):
            yield Argument(text)
        else:
            yield from _expanded(text, known, place)


def _expanded(text: str, known: str, place: Place) -> Iterator[Argument]:
    """Yield the matches of a shell pattern, and the pattern itself, which stays if no file matches."""
    looked_up = None
    if place.names is not None and not set("$`{") & set(text):  # braces make several words of one
        at_home = place.home and (text == "~" or text.startswith("~/"))
        looked_up = place.names(place.home + text[1:] if at_home else text)
    if looked_up is None:
        yield Argument(plain(known, place), known=False)
    else:
        yield from (Argument(name) for name in (*looked_up, text))


def _forms(word: str, place: Place, *, colons: bool) -> Iterator[str]:
    """Give all files that a word may name: ``--file=x``, ``-fx``, ``if=x``, ``@x``."""
    if not word.startswith("-"):
        yield _file(word)
        if "=" in word:
            yield _file(word.rpartition("=")[2])
    elif "=" in word:
        yield _file(word.rpartition("=")[2])
    if word.startswith("-") and not word.startswith("--"):
        for at in range(2, min(len(word), _MOST_LETTERS)):
            tail = word[at:]
            if at == 2 or "/" in tail or tail.startswith((".", "~", "@", "<")):
                yield _file(tail)
    if colons and ":" in word:
        for piece in word.split(":"):
            path = piece.rpartition(")")[2] if word.startswith(":(") else piece
            if path:
                yield path
                yield path if path.startswith("/") or not place.root else f"{place.root}/{path}"


def _file(word: str) -> str:
    for sign in ("@", "<"):
        word = word.removeprefix(sign)
    return word.removeprefix("file://localhost").removeprefix("file://")


def _takes_files(names: set[str], word: str) -> bool:
    """Whether the unknown part of a word is a file that is sent."""
    return "curl" in names and ("@" in word or "=<" in word or word.startswith(("-T", "--upload-file=", "-K")))


def _programs(part: Part) -> set[str]:
    """Return the words that may be the program: the first, or one after a program that runs others."""
    first = {program(part.words)}
    several = part.wraps or bool(first & _RUNNERS)
    return first | {word.rpartition("/")[2] for word in part.words[1:]} if several else first


# --- written files --------------------------------------------------------------------------------


def _written(part: Part, names: set[str], arguments: Sequence[Argument]) -> Iterator[Argument]:
    operands = [one for one in arguments if not one.text.startswith("-") or one.text == "-"]
    if names & _WRITE or any(_in_place(name, arguments) for name in names & _IN_PLACE.keys()):
        yield from (one for operand in operands for one in _values(operand))
    if names & _PACK and not _has(arguments, "clt", ("--stdout", "--to-stdout", "--list", "--test")):
        yield from operands
    if names & {"gawk", "awk"} and any(one.text.endswith("inplace") for one in arguments):
        yield from operands
    if "dd" in names:
        yield from (one._replace(text=one.text[3:]) for one in operands if one.text.startswith("of="))
    for name in sorted(names & _INTO.keys()):
        yield from _after(arguments, *_INTO[name])
    yield from _made(part, names, arguments, operands)


def _made(
    part: Part, names: set[str], arguments: Sequence[Argument], operands: Sequence[Argument]
) -> Iterator[Argument]:
    """Yield the files written by programs that copy, pack, or make files."""
    if names & _COPY:
        yield from _copied(arguments, next(iter(names & _COPY)))
    if names & _TAR:
        yield from _unpacked(arguments)
    if "zip" in names:
        yield from operands[:1]
    if "git" in names:
        yield from _by_git(part, arguments)
    elif not names & (_NO_OUTPUT | _INTO.keys()) and not talks(part.words):
        yield from _after(arguments, *_OUTPUT)


def _values(one: Argument) -> Iterator[Argument]:
    yield one
    if "=" in one.text:
        yield one._replace(text=one.text.rpartition("=")[2])


def _in_place(name: str, arguments: Sequence[Argument]) -> bool:
    letters, stop, longs = _IN_PLACE[name]
    return _has(arguments, letters, longs, stop)


def _has(arguments: Sequence[Argument], letters: str, longs: Sequence[str], stop: str = "") -> bool:
    """Whether a command has one of some options, alone or among other letters."""
    for one in arguments:
        option = one.text.partition("=")[0]
        if option in longs or (len(option) > _SHORTEST_LONG and any(long.startswith(option) for long in longs)):
            return True
        if option.startswith("-") and not option.startswith("--"):
            for letter in option[1:]:
                if letter in letters:
                    return True
                if letter in stop:
                    break
    return False


def _after(arguments: Sequence[Argument], letters: str, longs: Sequence[str]) -> Iterator[Argument]:
    """Give the values of some options: behind ``=``, in the rest of the word, or the next word."""
    for number, one in enumerate(arguments):
        option, sign, value = one.text.partition("=")
        following = arguments[number + 1 : number + 2]
        long = option in longs or (
            option.startswith("--") and len(option) >= _SHORTEST_LONG and any(name.startswith(option) for name in longs)
        )
        if long:
            yield from [one._replace(text=value)] if sign else following
        elif one.text.startswith("-") and not one.text.startswith("--"):
            at = next((n for n, letter in enumerate(one.text) if n and letter in letters), 0)
            if at and (one.text[at + 1 :] or not one.known):
                yield one._replace(text=one.text[at + 1 :])
            elif at:
                yield from following


def _copied(arguments: Sequence[Argument], name: str) -> Iterator[Argument]:
    """Yield the files that a copy writes: its last word, or files of the same names in it."""
    rest: list[Argument] = []
    skip = False
    for one in arguments:
        short = one.text[1] if len(one.text) == 2 and one.text[0] == "-" else "-"
        if skip:
            skip = False
        elif one.text in _BESIDE_LONG or short in _BESIDE.get(name, ""):
            skip = True
        elif not one.text.startswith("-"):
            rest.append(one)
    into = list(_after(arguments, *_INTO[name])) if name in _INTO else []
    target = into[0] if into else rest.pop() if rest else None
    if target is None or (name in ("rsync", "scp") and ":" in target.text.partition("/")[0]):
        return
    yield target
    for one in rest:
        yield Argument(f"{target.text}/{one.text.rstrip('/').rpartition('/')[2]}", target.known)


def _unpacked(arguments: Sequence[Argument]) -> Iterator[Argument]:
    """Give the folder that an archive is unpacked into, or the archive that is made."""
    first = arguments[0].text if arguments else ""
    old = first if first and not first.startswith("-") else ""
    if "x" in old or _has(arguments, "x", ("--extract", "--get"), "fCT"):
        yield from _after(arguments, "C", ("--directory", "--cd"))
        yield from arguments[1 : 1 + sum(old.count(letter) for letter in "fCbTX")] if "C" in old else ()
    if set(old) & set("cruA") or _has(arguments, "cruA", ("--create", "--append", "--update"), "fCT"):
        yield from _after(arguments, "f", ("--file",))
        yield from arguments[1:2] if "f" in old else ()


def _by_git(part: Part, arguments: Sequence[Argument]) -> Iterator[Argument]:
    from swarm.permissions.shell.git import own_options

    words = [one.text for one in arguments]
    at = next((n for n, word in enumerate(part.words) if word.rpartition("/")[2] == "git"), 0)
    _, rest = own_options(["git", *words[at:]])
    given = arguments[len(arguments) - len(rest) :] if rest else []
    command = rest[0] if rest else ""
    if command in _GIT_WRITES and not any(word in _GIT_NAMES for word in rest):
        yield from (one for one in given[1:] if not one.text.startswith("-"))
    yield from _after(given, "o" if command in _GIT_OUTPUT else "", ("--output", "--output-directory"))
