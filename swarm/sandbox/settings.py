"""The configuration of a private git folder: what git needs of the repository's, and none of its secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from swarm.git.running.runner import GitRunner

#: Sections of which all is taken over.
_WHOLE = frozenset(
    {
        *(
            "branch",
            "commitgraph",
            "diff",
            "extensions",
            "feature",
            "fetch",
            "filter",
            "format",
            "i18n",
            "index",
            "init",
        ),
        *("log", "merge", "pack", "pull", "push", "rebase", "rerere", "status", "submodule", "tag", "versionsort"),
    }
)
#: Single settings of other sections. Signing is none: the keys are not in the box.
_SINGLE = {
    "core": frozenset(
        {
            *("abbrev", "attributesfile", "autocrlf", "bare", "bigfilethreshold", "commentchar", "compression", "eol"),
            *(
                "filemode",
                "ignorecase",
                "logallrefupdates",
                "precomposeunicode",
                "quotepath",
                "repositoryformatversion",
            ),
            *("safecrlf", "sharedrepository", "sparsecheckout", "sparsecheckoutcone", "symlinks", "whitespace"),
        }
    ),
    "remote": frozenset({"url", "pushurl", "fetch", "push", "tagopt", "promisor", "partialclonefilter"}),
    "user": frozenset({"name", "email", "useconfigonly"}),
    "commit": frozenset({"cleanup", "template", "verbose", "status"}),
}
_PASSWORD = re.compile(rb"(\w://)[^/@\s]*@")
_TOKEN = re.compile(rb"token|secret|passw|credential|authoriz", re.IGNORECASE)


def copied(git: GitRunner, file: Path) -> bytes:
    """Return the content of a configuration file without secrets and without what lies outside of the box."""
    _, out, _ = git.attempt("config", "--file", str(file), "--no-includes", "--list", "-z")
    return b"".join(_lines(out.split(b"\0")))


def identity(git: GitRunner) -> bytes:
    """Return a configuration with the user's name and address, wherever that is set."""
    found = {}
    for name in ("user.name", "user.email"):
        code, out, _ = git.attempt("config", "--get", name)
        if code == 0:
            found[name] = out.removesuffix(b"\n")
    return b"".join(_lines(b"%s\n%s" % (name.encode("ascii"), value) for name, value in found.items()))


def _lines(items: Iterable[bytes]) -> Iterator[bytes]:
    for item in items:
        key, given, value = item.partition(b"\n")
        section, _, rest = key.partition(b".")
        middle, _, name = rest.rpartition(b".")
        if not (section and name and _is_taken(section, name)) or _TOKEN.search(name):
            continue
        value = _PASSWORD.sub(rb"\1", value)
        if section == b"core" and name == b"hookspath" and value.startswith((b"/", b"~")):
            continue  # it is not in the box
        head = b"[%s]" % section if not middle else b'[%s "%s"]' % (section, _escaped(middle))
        yield b"%s\n\t%s%s\n" % (head, name, b' = "%s"' % _escaped(value).replace(b"\n", b"\\n") if given else b"")


def _is_taken(section: bytes, name: bytes) -> bool:
    word = section.decode("ascii", "replace")
    if word in _WHOLE or (section, name) == (b"core", b"hookspath"):
        return True
    return name.decode("ascii", "replace") in _SINGLE.get(word, ())


def _escaped(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
