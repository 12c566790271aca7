"""Commands that git runs: by its subcommands, and by settings that name programs, in ``-c`` or stored."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from swarm.permissions.shell.programs import Handed

#: Its own options that take another word.
_TAKE_ONE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env"})
#: Options of its commands whose text is run.
_RUN = (
    *("--exec", "--extcmd", "--upload-pack", "--receive-pack", "--tree-filter", "--index-filter", "--msg-filter"),
    *("--env-filter", "--parent-filter", "--commit-filter", "--tag-name-filter", "--setup", "--open-files-in-pager"),
)
#: Commands with short ones.
_SHORT = {"rebase": "-x", "difftool": "-x", "clone": "-u", "grep": "-O"}
_SETTINGS = frozenset(
    {
        *("core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.hookspath", "core.askpass"),
        *("core.gitproxy", "core.alternaterefscommand", "sequence.editor", "diff.external", "interactive.difffilter"),
        *("uploadpack.packobjectshook", "web.browser", "init.templatedir", "include.path"),
    }
)
_GROUPS = (
    *("alias.", "pager.", "includeif.", "browser.", "man.", "trailer.", "filter.", "difftool.", "mergetool.", "tar."),
    *("instaweb.", "guitool.", "hook.", "sendemail."),
)
_ENDS = (".command", ".textconv", ".driver", ".program", ".helper", ".uploadpack", ".receivepack", ".vcs", ".update")
#: Values that run nothing of anybody's choice.
_HARMLESS = frozenset(
    {
        *("", "0", "1", "true", "false", "yes", "no", "on", "off", "cat", "less", "less -R", "less -FRX", "more", ":"),
        *("vi", "vim", "nano", "delta", "ssh", "/bin/true", "/dev/null"),
    }
)


def own_options(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return git's own options, and its command with its arguments."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _TAKE_ONE else 1
    return words[1:at], words[at:]


def handed(words: Sequence[str]) -> Handed | None:
    """Return the commands that git's arguments make it run; None without any."""
    from swarm.permissions.shell.programs import Handed

    options, rest = own_options(words)
    texts = list(_options(rest)) + list(_behind(rest))
    settings = [*_set(options), *_set_for_good(rest)]
    for key, value in settings:
        texts += (value.removeprefix("!"), f"git {value}") if key.startswith("alias.") else (value.removeprefix("!"),)
    return Handed(tuple(texts), unclear=bool(settings), fixed=True) if texts or settings else None


def _options(rest: Sequence[str]) -> Iterator[str]:
    """Give the texts of options that are run."""
    short = _SHORT.get(rest[0] if rest else "", "")
    for number, word in enumerate(rest):
        name, sign, value = word.partition("=")
        if len(name) > len("--e") and any(one.startswith(name) for one in _RUN):
            yield value if sign else " ".join(rest[number + 1 : number + 2])
        elif short and word.startswith(short):
            yield word.removeprefix(short) or " ".join(rest[number + 1 : number + 2])


def _behind(rest: Sequence[str]) -> Iterator[str]:
    """Give the scripts behind ``submodule foreach`` and ``bisect run``."""
    for command, word in (("submodule", "foreach"), ("bisect", "run")):
        if rest[:1] == [command] or rest[:1] == (command,):
            yield from rest[rest.index(word) + 1 :] if word in rest else ()


def _set(options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give the settings in git's own options that name programs, with their values."""
    for number, word in enumerate(options):
        if word in ("-c", "--config-env") and number + 1 < len(options):
            yield from _runs(*options[number + 1].partition("=")[::2])
        elif word.startswith("--config-env="):
            yield from _runs(*word.removeprefix("--config-env=").partition("=")[::2])


def _set_for_good(rest: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Give the same of ``git config`` and ``git clone -c``."""
    if rest and rest[0] == "config":
        plain = [word for word in rest[1:] if not word.startswith("-")]
        key = next((n for n, word in enumerate(plain) if "." in word or "$" in word), len(plain))
        if key + 1 < len(plain):
            yield from _runs(plain[key], plain[key + 1])
    elif rest and rest[0] == "clone":
        for number, word in enumerate(rest):
            if word in ("-c", "--config"):
                yield from _runs(*"".join(rest[number + 1 : number + 2]).partition("=")[::2])
            elif word.startswith("--config="):
                yield from _runs(*word.removeprefix("--config=").partition("=")[::2])


def _runs(key: str, value: str) -> Iterator[tuple[str, str]]:
    """Give a setting if it names a program, or may do so."""
    small = key.casefold()
    names = small in _SETTINGS or small.startswith(_GROUPS) or small.endswith(_ENDS)
    if "$" in key or "`" in key or (names and value.strip() not in _HARMLESS):
        yield small, value
