"""What in a half-made working tree neither git nor swarm can have written."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from swarm import fsio
from swarm.domain.errors import Environment, GitTimeout
from swarm.drivers import blobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from swarm.drivers.gitrun import GitRunner

    #: Given some paths, tells what git would have written there, of those of which that can be told.
    Asks = Callable[[Sequence[str]], Mapping[str, bytes]]

#: How long filter programs may take to say what they would have written; what is not known then is kept.
_FILTER_SECONDS = 5.0
_LARGEST = 1 << 31
_AT_ONCE = 500


def unlike_checkout(
    git: GitRunner, common: Path, tree: Path, entries: Mapping[str, tuple[str, str]], files: Iterable[str]
) -> list[str]:
    """Return those files that are neither what a checkout would write there nor a beginning of it.

    Args:
        entries: path → (mode, blob) of what is checked out.
        files: the paths to look at, all of them among the entries.
    """
    # Nearly all have just the bytes of the blob.  That is seen here: asked with an index that knows nothing of
    # the files yet, git takes all of them for changed, and each would be looked at by a git of its own.
    oids = {path: entries[path][1] for path in files}
    doubtful = {path: oid for path, oid in oids.items() if blobs.name_of(tree / path, len(oid)) != oid}
    if not doubtful:
        return []
    with tempfile.TemporaryDirectory(prefix="swarm-") as scratch:
        # The real tree may hold half of the attributes, so git is told of one with nothing but those.
        rules = Path(scratch) / "rules"
        rules.mkdir()
        env = {"GIT_DIR": str(common), "GIT_WORK_TREE": str(rules), "GIT_INDEX_FILE": str(Path(scratch) / "index")}
        lines = [f"{mode} {oid}\t{path}\0" for path, (mode, oid) in entries.items() if path.endswith(".gitattributes")]
        git.run("update-index", "-z", "--index-info", stdin=os.fsencode("".join(lines)), env=env, cwd=rules)
        git.run("checkout-index", "--all", "--force", env=env, cwd=rules)
        return _judge(_Checkout(git, env, doubtful), tree)


def _judge(checkout: _Checkout, tree: Path) -> list[str]:
    """Ask the user's filter programs last, and not for long: one that hangs may be why all is taken back."""
    filtered = checkout.filtered()
    left = _unlike(tree, checkout.oids.keys() - filtered, checkout.written)
    left = _unlike(tree, filtered.union(left), checkout.raw)
    asked = filtered.intersection(left)
    until = time.monotonic() + _FILTER_SECONDS
    unlike = _unlike(tree, asked, lambda paths: checkout.written(paths, until))
    return [path for path in left if path not in asked] + unlike


def _unlike(tree: Path, paths: Iterable[str], ask: Asks) -> list[str]:
    """Return the files that are no beginning of what *ask* tells; some at a time, so that memory is not filled."""
    wanted = sorted(paths)
    left: list[str] = []
    for start in range(0, len(wanted), _AT_ONCE):
        part = wanted[start : start + _AT_ONCE]
        whole = ask(part)
        left += [path for path in part if path not in whole or not _begins(tree / path, whole[path])]
    return left


def _begins(path: Path, whole: bytes) -> bool:
    try:
        return not path.is_symlink() and whole.startswith(fsio.read_small(path, _LARGEST))
    except (OSError, Environment):
        return False


class _Checkout:
    """What git would write into some files.

    Args:
        env: where git finds the attributes, and no other files.
        oids: path → blob.
    """

    def __init__(self, git: GitRunner, env: Mapping[str, str], oids: Mapping[str, str]) -> None:
        self._git = git
        self._env = env
        self._folder = Path(env["GIT_WORK_TREE"])
        self.oids = oids

    def filtered(self) -> set[str]:
        """Return the files for which git would run a filter program."""
        lines = b"".join(os.fsencode(path) + b"\0" for path in self.oids)
        told = self._git.ask("check-attr", "--stdin", "-z", "filter", stdin=lines, env=self._env, cwd=self._folder)
        words = told.split(b"\0")
        facts = zip(words[::3], words[2::3], strict=False)  # path, attribute, value; path, …
        return {os.fsdecode(path) for path, value in facts if value not in (b"unset", b"unspecified")}

    def raw(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the blobs, of those that are there."""
        return self._contents(paths, ())

    def written(self, paths: Sequence[str], until: float | None = None) -> dict[str, bytes]:
        """Return what would be written; nothing where git cannot tell, or not until then."""
        return self._contents(paths, ("--filters",), until)

    def _contents(self, paths: Sequence[str], flags: tuple[str, ...], until: float | None = None) -> dict[str, bytes]:
        # git says how large a blob is, not what a filter has made of it; so each begins with a word of ours.
        mark = secrets.token_hex(16)
        lines = "".join(f"{self.oids[path]} {path}\n" for path in paths if "\n" not in path)
        left = None if until is None else max(0.01, until - time.monotonic())
        try:
            code, out, _ = self._git.attempt(
                *("cat-file", "--buffer", f"--batch={mark} %(rest)", *flags),
                stdin=os.fsencode(lines),
                env=self._env,
                cwd=self._folder,
                timeout=left,
            )
        except GitTimeout:
            return {}
        parts = out.split(f"{mark} ".encode("ascii"))[1:] if code == 0 else ()
        found = (part.partition(b"\n") for part in parts)
        return {os.fsdecode(path): data.removesuffix(b"\n") for path, _, data in found}
