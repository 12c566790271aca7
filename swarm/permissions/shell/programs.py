"""Programs that run other commands: which of their words are one, which are a whole script, and when they are fed one.

Nobody here knows all options of all programs.  So what could be a command is taken for one: every rest of the words
of ``sudo``, everything that may be the text behind ``-c``.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SHELLS = frozenset(
    {
        *("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "csh", "tcsh", "mksh", "lksh", "oksh", "pdksh"),
        *("yash", "posh", "hush", "elvish", "xonsh", "nu"),
    }
)
#: Programs that run the command in their arguments.
WRAPPERS = frozenset(
    {
        *("builtin", "busybox", "caffeinate", "chroot", "chrt", "command", "doas", "env", "exec", "firejail", "flock"),
        *("ionice", "nice", "nohup", "nsenter", "parallel", "pkexec", "prlimit", "runuser", "setarch", "setpriv"),
        *("setsid", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "time", "timeout", "toybox"),
        *("unbuffer", "unshare", "watch", "xargs", "bwrap", "find", "fd", "git", "entr", "script", "coproc"),
        *("fakeroot", "fakechroot", "dbus-run-session", "sg", "ltrace", "perf", "chronic", "linux32", "linux64"),
        *("i386", "x86_64", "uname26", "arch", "numactl", "xvfb-run", "run0", "uv", "start-stop-daemon", "noglob"),
        *("nocorrect", "-", "repeat", "sem", "gosu", "su-exec", "setuidgid", "softlimit", "tini", "dumb-init", "proot"),
        *(
            "eatmydata",
            "faketime",
            "torsocks",
            "proxychains",
            "proxychains4",
            "valgrind",
            "cgexec",
            "choom",
            "cpulimit",
        ),
        *("catchsegv", "rlwrap", "ssh-agent", "dbus-launch", "aa-exec", "runcon", "sandbox-exec", "hyperfine"),
        *("gtimeout", "genv", "gnice", "gnohup", "gstdbuf", "gchroot", "gxargs", "gfind", "gtime", "cmd", "pwsh"),
        *("powershell", "iex", "Invoke-Expression"),
    }
)
#: Of the above, those that more often than not run nothing else: only behind one of these words.
_RUN_AFTER = {
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    "gfind": ("-exec", "-execdir", "-ok", "-okdir"),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "git": ("run", "--exec", "-x", "foreach"),
    "uv": ("run", "x"),
}
#: Programs whose arguments can each be a whole script.
_TAKE_SCRIPTS = frozenset(
    {
        *("watch", "su", "script", "parallel", "sem", "flock", "runuser", "sg"),
        *("hyperfine", "ssh", "tmux", "screen", "cmd", "pwsh", "powershell", "iex", "Invoke-Expression"),
    }
)
#: Of these, those whose words are mostly other things, so that a variable in them is none in a script.
_MOSTLY_WORDS = frozenset({"ssh", "tmux", "screen"})
#: Programs that run their standard input by default.
_READ_SCRIPTS = frozenset({"at", "batch", "su", "script", "newgrp", "sg", "chroot", "nsenter", "unshare", "run0"})
#: Options of shells that take another word.
_TAKES_MORE = frozenset({"--rcfile", "--init-file"})
#: Words of these are never a command that is run: they print, or look at files.
_TALKERS = frozenset(
    {
        *(
            "echo",
            "printf",
            "cat",
            "bat",
            "ls",
            "grep",
            "egrep",
            "fgrep",
            "zgrep",
            "rg",
            "ag",
            "ack",
            "test",
            "[",
            "[[",
        ),
        *("man", "which", "type", "whereis", "whatis", "apropos", "info", "tldr", "help", "stat", "file", "touch"),
        *("mkdir", "rmdir", "rm", "mv", "cp", "ln", "less", "more", "head", "tail", "wc", "sort", "uniq", "cut", "tr"),
        *("sed", "awk", "tee", "diff", "comm", "true", "false", ":", "export", "cd", "pushd", "popd", "read", "set"),
        *("unset", "declare", "local", "typeset", "readonly", "return", "exit", "wait", "kill", "sleep", "date", "jq"),
    }
)
#: Of these, and of those that only set or move something, no word is a file whose content they show.
_SHOW_NOTHING = frozenset(
    {"echo", "printf", "test", "[", "[[", "cd", "pushd", "ls", "stat", "mkdir", "true", "false", ":", "export", "which"}
)
#: Letters of options behind which a word more often than not belongs to them.
_WITH_A_WORD = frozenset("uUgGCDhpscRTeadE")
MOST_WORDS = 64
_MOST_LETTERS = 6
_EXE = ".exe"


class Handed(namedtuple("Handed", ("texts", "reads", "unclear", "fixed"), defaults=((), False, False, False))):
    """A command that a program gets to run.

    Attributes:
        texts: each may be a script.
        reads: it runs what comes in from outside.
        unclear: there may be more.
        fixed: variables in its words do not matter beyond that.
    """

    __slots__ = ()


def program(words: Sequence[str]) -> str:
    """Return the plain name of the program that is run; zsh finds ``=git`` by its path."""
    if not words:
        return ""
    name = words[0].rpartition("/")[2]
    return (name.removeprefix("=") or name).removesuffix(_EXE)


def wrapped(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield every command that a program like ``sudo`` may run, for any meaning of its options."""
    name = program(words)
    if name not in WRAPPERS:
        return
    begins = 1
    if name in _RUN_AFTER:
        begins = len(words)
        for number, word in enumerate(words):
            option, sign, value = word.partition("=")
            if word in _RUN_AFTER[name] or (sign and option in _RUN_AFTER[name]):
                begins = number + 1
                if sign:
                    yield (value, *words[begins:])
                break
    for start in range(begins, min(len(words), begins + MOST_WORDS)):
        yield words[start:]
    if name == "start-stop-daemon" and "--" in words:
        behind = words[words.index("--") + 1 :]
        yield from ((word.partition("=")[2] or word, *behind) for word in words[1 : words.index("--")])


def has_more(words: Sequence[str]) -> bool:
    """Whether there are more words than are looked at."""
    name = program(words)
    return name in WRAPPERS and name not in _RUN_AFTER and len(words) > MOST_WORDS


def may_run(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the ends of an unknown program's words: it may run one of them."""
    name = program(words)
    if name in WRAPPERS or name in _TALKERS or name in SHELLS:
        return
    for start in range(1, min(len(words), MOST_WORDS)):
        if not words[start].startswith("-") and not has_space(words[start]):
            yield words[start:]


def talks(words: Sequence[str]) -> bool:
    """Whether a command shows nothing of the files among its words, also behind programs that run it for sure."""
    name = program(words)
    if name not in WRAPPERS:
        return name in _SHOW_NOTHING
    starts = [1]
    if name in _RUN_AFTER:
        starts = [number + 1 for number, word in enumerate(words) if word in _RUN_AFTER[name]]
    return bool(starts) and all(_first(words, start) in _SHOW_NOTHING for start in starts)


def is_open(words: Sequence[str]) -> bool:
    """Whether a command is one that runs another, which is not among its words for sure: more may follow."""
    name = program(words)
    return name in WRAPPERS and name not in _RUN_AFTER and not _first(words, 1)


def _first(words: Sequence[str], start: int) -> str:
    """Return the program that is run behind some place; empty where that is not sure."""
    for number in range(start, len(words)):
        word = words[number]
        is_value = word.removesuffix("s").removesuffix("m").isdigit() or word == "{}" or "=" in word
        if word.startswith("-") or is_value or program((word,)) in WRAPPERS - _RUN_AFTER.keys():
            continue
        before = words[number - 1]
        unsure = len(before) == 2 and before[0] == "-" and before[1] in _WITH_A_WORD
        return "" if unsure else program((word,))
    return ""


def has_space(word: str) -> bool:
    """Whether a word could be several to a shell."""
    return len(word.split()) > 1 or word != word.strip()


def handed(words: Sequence[str]) -> Handed | None:
    """Return the scripts among a program's arguments; None if it takes no scripts."""
    name = program(words)
    if name in _OTHERS:
        return _OTHERS[name](words)
    if name in SHELLS:
        return _to_shell(name, words)
    if name not in _TAKE_SCRIPTS | _READ_SCRIPTS:
        return None
    fixed = name in _MOSTLY_WORDS or name not in _TAKE_SCRIPTS
    return Handed(tuple(_texts(words[1:])), reads=name in _READ_SCRIPTS, fixed=fixed)


def _to_git(words: Sequence[str]) -> Handed | None:
    from swarm.permissions.shell import git

    return git.handed(words)


def _to_env(words: Sequence[str]) -> Handed | None:
    return Handed(tuple(_texts(words[1:]))) if any(_splits(word) for word in words[1:]) else None


def _to_eval(words: Sequence[str]) -> Handed:
    return Handed((" ".join(words[2:] if words[1:2] in (["--"], ("--",)) else words[1:]),))


def _to_trap(words: Sequence[str]) -> Handed:
    return Handed(tuple(word for word in words[1:] if word != "--"))


def _to_alias(words: Sequence[str]) -> Handed:
    """Mark a name as an alias, whose meaning is unknown from now on."""
    values = tuple(value for _, sign, value in (word.partition("=") for word in words[1:]) if sign)
    return Handed(values, unclear=bool(values))


def _to_source(words: Sequence[str]) -> Handed:
    rest = [word for word in words[1:] if word != "--"]
    file = "".join(rest[:1])
    from_outside = _is_input(file)
    unclear = from_outside or ("/" not in file and not set("$`{*?[").isdisjoint(file))  # it looks where programs are
    return Handed((quoted(rest),), reads=from_outside, unclear=unclear, fixed=True)


#: Programs that take scripts in their own way.
_OTHERS: dict[str, Callable[[Sequence[str]], Handed | None]] = {
    "git": _to_git,
    "env": _to_env,
    "genv": _to_env,
    "eval": _to_eval,
    "trap": _to_trap,
    "alias": _to_alias,
    ".": _to_source,
    "source": _to_source,
}


def _splits(word: str) -> bool:
    """Whether a word makes ``env`` take another one apart."""
    return word.startswith("--s") or (word.startswith("-") and not word.startswith("--") and "S" in word)


def _texts(words: Sequence[str]) -> Iterator[str]:
    """Yield the words that may be scripts: those with several words in them, also after ``--option=`` and ``-xyz``."""
    for word in words[: MOST_WORDS * 2]:
        if word.startswith("--"):
            if "=" in word:
                yield word.partition("=")[2]
        elif word.startswith("-"):
            letters = 1
            while letters < min(len(word), _MOST_LETTERS) and word[letters].isalpha():
                letters += 1
                if word[letters:]:
                    yield word[letters:]
        elif has_space(word):
            yield word


def _to_shell(name: str, words: Sequence[str]) -> Handed:
    """Return the script of a shell call.

    How many words its options take is not known for sure, so each that may be the first of the rest counts as it.
    """
    command = stdin = False
    texts: list[str] = []
    rest: list[str] = []
    more = 1
    only = False
    for word in words[1:]:
        only |= len(rest) >= more  # that was the script, or the text of one
        if only or word[:1] not in ("-", "+") or word == "+":
            rest.append(word)
        elif word in ("-", "--"):
            only = True
        elif word.startswith("--"):
            option, _, value = word.partition("=")
            command |= option in ("--command", "--init-command") and not value
            texts += [value] if value and option not in _TAKES_MORE else []
            more += option in _TAKES_MORE
        else:
            command |= word[0] == "-" and ("c" in word or (name == "fish" and "C" in word))
            stdin |= "s" in word
            more += word.count("o") + word.count("O")
    first = rest[:more]
    if command:
        return Handed((*texts, *first), reads=stdin, unclear=stdin)
    reads = stdin or len(rest) < more or any(_is_input(one) for one in first)
    scripts = (quoted(rest[at:]) for at in range(min(more, len(rest))))  # a file is run as if it were called
    return Handed((*texts, *scripts), reads=reads, unclear=reads)


def quoted(words: Sequence[str]) -> str:
    """Return words quoted for a shell."""
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


def _is_input(path: str) -> bool:
    """Whether a path stands for input from outside, or from another command."""
    return path == "-" or path.startswith(("/dev/", "/proc/")) or "<(" in path
